"""The ops of the dialect in float64, for numeric tests. They follow docs/dialect.md and share no code with the interpreter.

Key sets are functions of (b, h, m), a query of a head of a sequence: the keys that it attends to, ascending.
"""

import numpy as np


# ---------------------------------------------------------------------------------------------------------------------
# Key sets


def position(m, M, N):
    """Position of query `m`: bottom-right aligned, negative when it sees nothing."""
    return m + N - M


def allowed(m, M, N, causal=False, window=None, sink=0):
    """The keys that a mask allows to query `m`."""
    n, p = np.arange(N), position(m, M, N)
    keep = np.ones(N, bool)
    if causal:
        keep &= n <= p
    if window is not None:
        near = p - n < window
        if not causal:
            near &= n - p < window
        keep &= near | (n < sink)
    return n[keep]


def num_blocks(N, size, stride=None, offset=0):
    """How many blocks `#ssa.blocks<size, stride, offset>` has over `N` tokens."""
    stride = stride or size
    if stride == size:
        return -((offset - N) // stride) if N else 0
    return max((N - offset - size) // stride + 1, 0)


def block_tokens(j, N, size, stride=None, offset=0):
    """The tokens of block `j` that exist; none when there is no such block."""
    if not 0 <= j < num_blocks(N, size, stride, offset):
        return np.arange(0)
    start = j * (stride or size) + offset
    return np.arange(max(start, 0), min(start + size, N))


def listed(blocks, N, size=1):
    """The tokens of the blocks of a list, each once, in ascending order. Numbers out of range are padding."""
    tokens = [block_tokens(int(j), N, size) for j in np.unique(np.asarray(blocks, np.int64))]
    return np.concatenate(tokens + [np.arange(0)]).astype(np.int64)


def masked(M, N, **mask):
    """Key sets of a mask alone: a function of (b, h, m)."""
    return lambda b, h, m: allowed(m, M, N, **mask)


def selected(lists, M, N, Hq, size=1, query_block=1, **mask):
    """Key sets of lists `BxGxMqxK` under a mask: a function of (b, h, m). `Mq` may be 1, to serve every query."""
    lists = np.asarray(lists)
    G, Mq = lists.shape[1:3]

    def keys(b, h, m):
        row = lists[b, h // (Hq // G), 0 if Mq == 1 else m // query_block]
        return np.intersect1d(listed(row, N, size), allowed(m, M, N, **mask))

    return keys


def union(*sets):
    """The union of key sets, each a function of (b, h, m)."""
    return lambda b, h, m: np.unique(np.concatenate([s(b, h, m) for s in sets]))


# ---------------------------------------------------------------------------------------------------------------------
# Ops


def attend(q, k, v, keys, scale=None, score=None, dtype=np.float64):
    """Attention over explicit key sets: `o` and `lse`.

    `keys(b, h, m)` is the array of key numbers of a query; a repeat counts once. `score(x, b, h, p, n)` maps the logits
    of a row. An empty row gives 0 and -inf; a logit of -inf is as if its key were not in the set.
    """
    q, k, v = (np.asarray(x, dtype) for x in (q, k, v))
    B, H, M, D = q.shape
    N, group = k.shape[2], H // k.shape[1]
    scale = dtype(1 / np.sqrt(D) if scale is None else np.float32(scale))
    o = np.zeros((B, H, M, v.shape[3]), dtype)
    lse = np.full((B, H, M), -np.inf, dtype)
    for b, h, m in np.ndindex(B, H, M):
        n = np.unique(np.asarray(keys(b, h, m), np.int64))
        with np.errstate(invalid="ignore", over="ignore"):
            x = scale * (k[b, h // group, n] @ q[b, h, m])
            if score:
                x = score(x, b, h, position(m, M, N), n)
        live = ~(x == -np.inf)
        n, x = n[live], x[live]
        if not len(n):
            continue
        if not np.isfinite(x).all():
            o[b, h, m], lse[b, h, m] = np.nan, np.nan
            continue
        w = np.exp(x - x.max())
        with np.errstate(invalid="ignore", over="ignore"):
            o[b, h, m] = w @ v[b, h // group, n] / w.sum()
        lse[b, h, m] = x.max() + np.log(w.sum())
    return o, lse


def pool(kind, x, size, stride=None, offset=0):
    """One row per block over the tokens that exist; `kind` is mean, max or min."""
    x = np.asarray(x, np.float64)
    N = x.shape[2]
    rows = [getattr(np, kind)(x[:, :, block_tokens(j, N, size, stride, offset)], axis=2)
            for j in range(num_blocks(N, size, stride, offset))]
    return np.stack(rows, axis=2) if rows else np.zeros(x.shape[:2] + (0,) + x.shape[3:])


def visible(j, i, M, N, size=1, stride=None, offset=0, query_block=1, partial=False, **mask):
    """Whether route shows block `j` to row `i`: the mask allows it to a query of the row, and it is complete."""
    queries = range(i * query_block, min((i + 1) * query_block, M))
    tokens = block_tokens(j, N, size, stride, offset)
    if not any(np.isin(tokens, allowed(m, M, N, **mask)).any() for m in queries):
        return False
    end = j * (stride or size) + offset + size - 1
    return partial or not mask.get("causal") or end <= position(queries[-1], M, N)


def route(q, kc, G=None, N=None, M=None, blocks=(1,), query_block=1, scale=None, scales=None, weights=None, score=None,
          normalize=None, reduce=None, partial=False, mask=None):
    """Scores `BxGxMqxNb` of queries against summaries. `score(x, w, b, h, p, j)` takes the scores of one row."""
    q, kc = np.asarray(q, np.float64), np.asarray(kc, np.float64)
    (B, H, Mq, D), (_, Hk, Nb, _) = q.shape, kc.shape
    M, N, G = Mq if M is None else M, Nb if N is None else N, G or H
    x = np.float64(1 / np.sqrt(D) if scale is None else np.float32(scale)) * (q @ np.repeat(kc, H // Hk, axis=1).swapaxes(2, 3))
    if scales is not None:
        x = x * np.repeat(np.asarray(scales, np.float64), H // np.shape(scales)[1], axis=1)[:, :, None]
    w = np.ones((B, H, Mq)) if weights is None else np.asarray(weights, np.float64)
    hidden = np.array([[not visible(j, i, M, N, *blocks, query_block=query_block, partial=partial, **(mask or {}))
                        for j in range(Nb)] for i in range(Mq)], bool).reshape(Mq, Nb)
    for b, h, i in np.ndindex(B, H, Mq):
        p = position(min((i + 1) * query_block, M) - 1, M, N)
        row = score(x[b, h, i], w[b, h, i], b, h, p, np.arange(Nb)) if score else x[b, h, i] * w[b, h, i]
        if normalize:
            live = row[~hidden[i]]
            bad = np.isnan(live).any() or (live == np.inf).any()
            top = live.max(initial=-np.inf)
            e = np.exp(live - top) if np.isfinite(top) else np.full(len(live), np.nan if bad else -np.inf)
            row[~hidden[i]] = e / e.sum() if np.isfinite(top) and not bad else np.nan if bad else -np.inf
        x[b, h, i] = np.where(hidden[i], -np.inf, row)
    if reduce:
        x = getattr(np, reduce)(x.reshape(B, G, H // G, Mq, Nb), axis=2)
    return x


def merge(parts, sink_logits=None):
    """Attention states `[(o, lse), ..]` over parts of the keys as one softmax. The sink is not in the returned lse."""
    lse = np.stack([np.asarray(l, np.float64) for _, l in parts])
    o = np.stack([np.asarray(o, np.float64) for o, _ in parts])
    top = lse.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0)
    total = safe + np.log(np.exp(lse - safe).sum(axis=0), where=~(top == -np.inf), out=np.full(top.shape, -np.inf))
    z = total if sink_logits is None else np.logaddexp(total, np.asarray(sink_logits, np.float64)[:, None])
    weight = np.exp(lse - np.where(total == -np.inf, 0, z))
    return (weight[..., None] * np.where(lse[..., None] == -np.inf, 0, o)).sum(axis=0), total


def topk(scores, k, deny=(), forced=(), top_p=None, threshold=None):
    """The list of one row of scores: the forced blocks, then the best; ascending, padded with -1 to the width `k`."""
    scores = np.asarray(scores, np.float64)
    may = np.setdiff1d(np.arange(len(scores)), deny)
    forced = [j for j in sorted(set(forced)) if j in may][:k]
    weight = np.where(np.isnan(scores), 0, np.maximum(np.nan_to_num(scores, nan=0, posinf=np.inf, neginf=0), 0))
    total, taken = weight[may].sum(), weight[forced].sum() if forced else 0.0
    chosen = list(forced)
    for j in sorted((j for j in may if j not in forced and scores[j] > -np.inf), key=lambda j: (-scores[j], j)):
        if len(chosen) == k or (threshold is not None and scores[j] < np.float32(threshold)):
            break
        if top_p is not None and not taken < np.float32(top_p) * total:
            break
        chosen.append(int(j))
        taken += weight[j]
    return np.array(sorted(chosen) + [-1] * (k - len(chosen)), np.int32)
