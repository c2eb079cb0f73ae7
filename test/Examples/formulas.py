"""What the tests of the examples share: dense float64 formulas over explicit boolean matrices, and the comparison of lists.

A test computes the published formula of its pattern on the same inputs as the example. `keep[.., t, i]` says that query `t` may
attend to key `i`; everything is dense, nothing is skipped.
"""

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "test/Support"), str(ROOT / "examples")]

from generate import ENTRIES, generate
from ssatest import check, compare, compare_exact, main, round_to, run

# (batch, queries, keys) that every example must take.
SHAPES = {
    "odd_length": (1, 197, 197),
    "chunk_of_a_longer_sequence": (1, 61, 325),
    "one_query": (1, 1, 325),
    "shorter_than_a_block": (1, 5, 7),
    "more_queries_than_keys": (1, 9, 5),
    "batch_of_two": (2, 67, 131),
    "no_keys": (1, 3, 0),
    "no_queries": (1, 0, 70),
    "no_batch": (0, 5, 70),
}


def cases(test, shapes=SHAPES, **more):
    """One case of `test(B, M, N)` for every shape."""

    def bind(shape):
        return lambda: test(*shape)

    return [(name, bind(shape)) for name, shape in (shapes | more).items()]


class Example:
    """An example with generated inputs: the tensors by name, in float64 (lists as integers)."""

    def __init__(self, name, B, M, N, seed=0):
        self.name, self.raw = name, generate(name, B, M, N, seed)
        self.path = ROOT / "examples" / f"{name}.mlir"

    def __getitem__(self, name):
        x = self.raw[name]
        return x if x.dtype == np.int32 else x.astype(np.float64)

    def run(self, entry, **replaced):
        """The result of an entry, a list if there are several. `replaced` stand in for inputs of that name."""
        arguments = [replaced.get(a, self.raw[a]) for a in ENTRIES[self.name][entry].split()]
        results = run(self.path, entry, arguments)
        return results[0] if len(results) == 1 else results


# --- Positions and matrices ------------------------------------------------------------------------------------------


def positions(M, N):
    """The absolute position of every query: the last query stands at the last key."""
    return np.arange(M) + N - M


def causal(M, N):
    """`[t, i]`: key `i` is not after query `t`."""
    return np.arange(N) <= positions(M, N)[:, None]


def per_head(x, heads):
    """Heads of keys (or lists) repeated for the query heads that read them."""
    return np.repeat(x, heads // x.shape[1], axis=1)


def softmax(x, keep):
    """Along the last axis over the kept entries; zeros where none is kept."""
    x = np.where(keep, x, -np.inf)
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    w = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = w.sum(axis=-1, keepdims=True)
    return np.divide(w, total, out=np.zeros_like(w), where=total > 0)


def logits(q, k, scale=None):
    """`scale * (q . k)`, 1/sqrt(d) by default."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return scale * (q @ per_head(k, q.shape[1]).swapaxes(2, 3))


def attention(q, k, v, keep, scale=None):
    """Softmax attention over the kept keys; 0 where there is none."""
    B, H, M, _ = q.shape
    k, v, keep = per_head(k, H), per_head(v, H), np.broadcast_to(keep, (B, H, M, k.shape[2]))
    o = np.zeros((B, H, M, v.shape[3]))
    for b, h in np.ndindex(B, H):
        s = slice(b, b + 1), slice(h, h + 1)
        o[s] = softmax(logits(q[s], k[s], scale), keep[s]) @ v[s]
    return o


def means(x, size, stride=None):
    """Means over blocks of rows; a last block that is not whole exists only where blocks do not overlap."""
    n = x.shape[2]
    starts = range(0, n, size) if stride is None else range(0, n - size + 1, stride)
    rows = [x[:, :, i : i + size].mean(axis=2) for i in starts]
    return np.stack(rows, axis=2) if rows else np.zeros(x.shape[:2] + (0,) + x.shape[3:])


def tokens_of(lists, N, size=1):
    """`[b, g, row, i]`: token `i` is in one of the blocks of the list."""
    found = np.zeros(lists.shape[:3] + (N + 1,), bool)
    for offset in range(size):
        token = lists.astype(np.int64) * size + offset
        np.put_along_axis(found, np.where((lists >= 0) & (token < N), token, N), True, axis=3)
    return found[..., :N]


def rows_of(x, M, size):
    """Rows of query blocks repeated for their queries."""
    return np.repeat(x, size, axis=2)[:, :, :M]


# --- Comparisons -----------------------------------------------------------------------------------------------------


def compare_output(what, got, ref, v, fmt="bf16"):
    compare(what, got, ref, fmt, np.abs(v).max(initial=0))


def choose(scores, may, forced, width):
    """The lists of the formula, best first, and for each whether its cut is clear by 1e-3 relative."""
    rank = np.where(may, np.where(forced, np.inf, scores), -np.inf)
    order = np.argsort(-rank, axis=-1, kind="stable")
    rank = np.take_along_axis(rank, order, axis=-1)
    lists = np.where(rank > -np.inf, order, -1)[..., :width]
    if rank.shape[-1] <= width:
        return lists, np.ones(rank.shape[:-1], bool)
    last, next = rank[..., width - 1], rank[..., width]
    return lists, (next == -np.inf) | (last - 1e-3 * np.abs(last) > next)


def compare_lists(what, lists, scores, may, forced=False, top_p=None):
    """Checks lists against float64 scores `[b, g, row, j]`: `may` says what may be taken, `forced` what must be.

    The best scores must be there: exactly these where the cut is clear by 1e-3 relative, else scores as good. With
    `top_p` the number taken is free where the mass is within 1e-3 of the cut. Returns how many rows left something out
    by score and were compared exactly.
    """
    exact = 0
    may, forced = np.broadcast_to(may, scores.shape), np.broadcast_to(forced, scores.shape)
    check(lists.shape[:3] == scores.shape[:3], f"{what}: expected lists for {scores.shape[:3]}, but got {lists.shape[:3]}")
    for row in np.ndindex(lists.shape[:3]):
        s, got, where = scores[row], lists[row], f"{what}{list(row)}"
        chosen = got[got >= 0]
        ordered = (np.diff(chosen) > 0).all() and (got[len(chosen) :] == -1).all()
        check(ordered, f"{where}: expected ascending numbers and then -1, but got {got}")
        allowed = np.flatnonzero(may[row])
        check(np.isin(chosen, allowed).all(), f"{where}: expected numbers among {allowed}, but got {chosen}")
        must = np.flatnonzero(forced[row] & may[row])
        check(np.isin(must, chosen).all(), f"{where}: expected {must} to be there, but got {chosen}")

        left = np.flatnonzero(may[row] & ~forced[row] & (s > -np.inf))
        best = left[np.argsort(-s[left], kind="stable")]
        low = high = min(len(got) - len(must), len(best))
        if top_p is not None:
            before = np.cumsum(np.concatenate([[s[must].clip(0).sum()], s[best].clip(0)]))[:-1]
            total = s[may[row]].clip(0).sum()
            low, high = (min(high, (before < (1 + e) * top_p * total).sum()) for e in (-1e-3, 1e-3))
        by_score = np.setdiff1d(chosen, must)
        k = len(by_score)
        check(low <= k <= high, f"{where}: expected {low} to {high} numbers by score, but got {by_score}")

        cut = 0 < k < len(best)
        tolerance = 1e-3 * np.abs(s[best[k - 1 : k + 1]]).max() + 1e-6 * np.abs(s[best]).max() if cut else 0
        if cut and s[best[k - 1]] - s[best[k]] <= tolerance:
            same = np.allclose(np.sort(s[by_score]), np.sort(s[best[:k]]), rtol=0, atol=tolerance)
            check(same, f"{where}: expected scores as good as those of {np.sort(best[:k])}, but got {by_score}")
        else:
            same = np.array_equal(by_score, np.sort(best[:k]))
            check(same, f"{where}: expected {np.sort(best[:k])} by score, but got {by_score}")
            exact += cut
    return exact
