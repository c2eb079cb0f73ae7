# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of attention: those of attend.mlir. A function makes the inputs for some number of tokens."""

import inputs
import peers
import torch
from common import DIM, HEADS, KEY_HEADS, Prepared, generator, ours, some_rows

# ---------------------------------------------------------------------------------------------------------------------
# What is right, in float64, for some rows


def attention_rows(q, k, v, keep, at, value_dim=None):
    """Attention of the queries `at`, heads x rows x dim; `keep` is key heads x rows x keys or rows x keys."""
    group = q.shape[1] // k.shape[1]
    out = []
    for head in range(q.shape[1]):
        keys, values = k[0, head // group].double(), v[0, head // group].double()
        kept = keep if keep.dim() == 2 else keep[head * keep.shape[0] // q.shape[1]]
        x = q[0, head, at].double() @ keys.T * q.shape[3] ** -0.5
        out.append(torch.softmax(x.masked_fill(~kept, -torch.inf), -1).nan_to_num(0) @ values)
    return torch.stack(out)


def attention_check(q, k, v, keep_of, count=12):
    """The largest difference of some rows in units of 2^-7 of the largest value, which roundings to bf16 stay well below."""
    at = some_rows(count, q.shape[2])
    right = attention_rows(q, k, v, keep_of(at), at)
    bound = 2**-7 * v.abs().max().double() + 2**-7 * right.abs()

    def check(result):
        return ((result[0, :, at].double() - right).abs() / bound).max().item()

    return check


def lists_to_mask(chosen, block, keys, rows_at):
    """heads x rows x keys: which keys the lists of these rows lead to."""
    some = chosen[0][:, rows_at].long()
    blocks = torch.zeros((some.shape[0], some.shape[1], -(-keys // block) + 1), dtype=torch.bool, device="cuda")
    blocks.scatter_(2, torch.where(some < 0, blocks.shape[2] - 1, some), True)
    return blocks[..., :-1].repeat_interleave(block, 2)[..., :keys]


def selected_pairs(chosen, block, query_block, queries, tokens):
    """Pairs of a query and a key that causal lists lead to, over all rows; repeats and what is hidden aside. From a sample of the lists."""
    rows = chosen.shape[2]
    at = some_rows(min(rows, 2048), rows)
    some = chosen[0][:, at].long()
    fresh = torch.ones_like(some, dtype=torch.bool)
    fresh[..., 1:] = some[..., 1:] != some[..., :-1]
    fresh &= some >= 0
    middle = at * query_block + (query_block - 1) / 2 + tokens - queries
    seen = (middle[:, None] + 1 - some * block).clamp(0, block) * fresh
    return seen.sum().item() * rows / len(at) * query_block


# ---------------------------------------------------------------------------------------------------------------------
# Attention


def random_inputs(n, heads=HEADS, queries=None):
    g = generator()
    return inputs.rows(heads, queries or n, DIM, g), inputs.rows(KEY_HEADS, n, DIM, g), inputs.rows(KEY_HEADS, n, DIM, g), g


def dense(entry, heads):
    def prepare(bundles, n):
        q, k, v, _ = random_inputs(n, heads)
        return Prepared(
            {"ssa": ours(bundles, "attend", entry, q, k, v), "torch flash": lambda: peers.sdpa("flash", q, k, v),
             "torch cudnn": lambda: peers.sdpa("cudnn", q, k, v), "flex": lambda: peers.flex_window(q, k, v, n),
             "flashinfer": lambda: peers.flashinfer_dense(q, k, v)},
            attention_check(q, k, v, lambda at: torch.arange(n, device="cuda") <= at[:, None]), flop=4 * DIM * heads * n * (n + 1) / 2)

    return prepare


def window(entry, size, sink):
    def prepare(bundles, n):
        q, k, v, _ = random_inputs(n)
        reach, sinks = min(size, n), min(sink, max(n - size, 0))

        def keep(at):
            i = torch.arange(n, device="cuda")
            return (i <= at[:, None]) & ((i > at[:, None] - size) | (i < sink))

        implementations = {"ssa": ours(bundles, "attend", entry, q, k, v), "flex": lambda: peers.flex_window(q, k, v, size, sink)}
        if not sink:
            implementations["flashinfer"] = lambda: peers.flashinfer_dense(q, k, v, size)
        pairs = n * reach - reach * (reach - 1) / 2 + sinks * (sinks + 1) / 2 + (n - reach - sinks) * sink
        return Prepared(implementations, attention_check(q, k, v, keep), flop=4 * DIM * HEADS * pairs)

    return prepare


def per_query(entry, agreement):
    """NSA's selected branch. Without an agreement lists are chosen from keys in topics."""
    width, block = 16, 64

    def prepare(bundles, n):
        q, k, v, g = random_inputs(n)
        if agreement is None:
            q, k = inputs.topical(HEADS, KEY_HEADS, n, DIM, g)
            chosen = bundles["select"].chain_64(q, k)
        else:
            chosen = inputs.lists(KEY_HEADS, n, width, block, 1, agreement, g)

        def keep(at):
            return lists_to_mask(chosen, block, n, at) & (torch.arange(n, device="cuda") <= at[:, None])

        implementations = {"ssa": ours(bundles, "attend", entry, q, k, v, chosen)}
        if agreement is not None:
            implementations["ssa, agreement unsaid"] = ours(bundles, "attend", "per_query", q, k, v, chosen)
        implementations["ssa, device chooses"] = ours(bundles, "attend", "per_query_any", q, k, v, chosen)
        implementations |= {"triton": lambda: peers.triton_lists(q, k, v, chosen, block), "fla": lambda: peers.fla_lists(q, k, v, chosen, block)}
        return Prepared(implementations, attention_check(q, k, v, keep), flop=4 * DIM * HEADS // KEY_HEADS * selected_pairs(chosen, block, 1, n, n),
                        notes={"agreement": inputs.measure_agreement(chosen)})

    return prepare


def shared(entry, block, width, heads=KEY_HEADS):
    """A list for every block of queries and each of `heads` heads."""

    def prepare(bundles, n):
        q, k, v, g = random_inputs(n)
        chosen = inputs.lists(heads, n // block, width, block, block, 0.0, g)

        def keep(at):
            return lists_to_mask(chosen, block, n, at // block) & (torch.arange(n, device="cuda") <= at[:, None])

        implementations = {"ssa": ours(bundles, "attend", entry, q, k, v, chosen)}
        if block == 128:
            implementations["flex"] = lambda: peers.flex_lists(q, k, v, chosen.repeat_interleave(HEADS // heads, 1), block)
        return Prepared(implementations, attention_check(q, k, v, keep), flop=4 * DIM * HEADS // heads * selected_pairs(chosen, block, block, n, n))

    return prepare


def decode(bundles, n):
    q, k, v, _ = random_inputs(n, queries=1)
    check = attention_check(q, k, v, lambda at: torch.ones((1, n), dtype=torch.bool, device="cuda"))
    return Prepared({"ssa": ours(bundles, "attend", "decode", q, k, v), "torch flash": lambda: peers.sdpa("flash", q, k, v, causal=False)}, check,
                    moved=2 * 2 * KEY_HEADS * n * DIM)


def decode_lists(bundles, n):
    q, k, v, g = random_inputs(n, queries=1)
    chosen = torch.randperm(n // 64, device="cuda", generator=g)[:16].sort().values.int().expand(1, KEY_HEADS, 1, 16).contiguous()
    check = attention_check(q, k, v, lambda at: lists_to_mask(chosen, 64, n, at))
    return Prepared({"ssa": ours(bundles, "attend", "decode_lists", q, k, v, chosen)}, check, moved=2 * 2 * KEY_HEADS * 1024 * DIM)


def dsa(bundles, n, queries=4096, width=2048):
    g = generator()
    q, k = inputs.rows(128, queries, 576, g), inputs.rows(1, n, 576, g)
    chosen = torch.stack([torch.randperm(n - queries, device="cuda", generator=g)[:width].sort().values.int() for _ in range(queries)])[None, None]
    return Prepared(
        {"ssa": ours(bundles, "attend", "dsa", q, k, chosen), "flash_mla": lambda: peers.flash_mla_sparse(q, k, chosen, 512)},
        attention_check(q, k, k[..., :512], lambda at: lists_to_mask(chosen, 1, n, at)), flop=2 * (576 + 512) * 128 * queries * width)


CASES = {
    "dense": dense("dense", HEADS), "dense-32": dense("dense_32", 32),
    "window": window("window", 4096, 0), "window-sink": window("window_sink", 4096, 64),
    "selected-0": per_query("per_query_0", 0.0), "selected-75": per_query("per_query_75", 0.75), "selected-90": per_query("per_query_90", 0.9),
    "selected-topics": per_query("per_query", None),
    "shared-8": shared("shared_8_128", 128, 8), "shared-32": shared("shared_32_128", 128, 32), "shared-64": shared("shared_16_64", 64, 16),
    "shared-8-heads": shared("shared", 128, 8, HEADS), "shared-64-heads": shared("shared_64", 64, 16, HEADS),
    "decode": decode, "decode-lists": decode_lists, "dsa-8k": dsa, "dsa-128k": dsa,
}
