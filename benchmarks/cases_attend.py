# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of attention: those of attend.mlir."""

import inputs
import peers
import torch
from common import DIM, HEADS, KEY_HEADS, Case, Prepared, generator, some_rows

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


def dense(bundle, n):
    def prepare():
        g = generator()
        q, k, v = (inputs.rows(h, n, DIM, g) for h in (HEADS, KEY_HEADS, KEY_HEADS))
        return Prepared(
            {"ssa": lambda: lambda: bundle.dense(q, k, v), "torch flash": lambda: peers.sdpa("flash", q, k, v),
             "torch cudnn": lambda: peers.sdpa("cudnn", q, k, v), "flex": lambda: peers.flex_window(q, k, v, n),
             "flashinfer": lambda: peers.flashinfer_dense(q, k, v)},
            attention_check(q, k, v, lambda at: torch.arange(n, device="cuda") <= at[:, None]), flop=4 * DIM * HEADS * n * (n + 1) / 2)

    return Case("dense, causal", "attend", prepare, n)


def window(bundle, n, size=4096):
    def prepare():
        g = generator()
        q, k, v = (inputs.rows(h, n, DIM, g) for h in (HEADS, KEY_HEADS, KEY_HEADS))
        reach = min(size, n)

        def keep(at):
            i = torch.arange(n, device="cuda")
            return (i <= at[:, None]) & (i > at[:, None] - size)

        return Prepared(
            {"ssa": lambda: lambda: bundle.window(q, k, v), "flex": lambda: peers.flex_window(q, k, v, size),
             "flashinfer": lambda: peers.flashinfer_dense(q, k, v, size)},
            attention_check(q, k, v, keep), flop=4 * DIM * HEADS * (n * reach - reach * (reach - 1) / 2))

    return Case(f"window of {size}", "attend", prepare, n)


def per_query(bundle, n, agreement, realistic=None):
    """NSA's selected branch. `realistic` makes the lists from keys in topics by a chain of the bundle `realistic`."""
    width, block = 16, 64

    def prepare():
        g = generator()
        v = inputs.rows(KEY_HEADS, n, DIM, g)
        if realistic:
            q, k = inputs.topical(HEADS, KEY_HEADS, n, DIM, g)
            chosen = realistic.chain_64(q, k)
        else:
            q, k = inputs.rows(HEADS, n, DIM, g), inputs.rows(KEY_HEADS, n, DIM, g)
            chosen = inputs.lists(KEY_HEADS, n, width, block, 1, agreement, g)

        def keep(at):
            return lists_to_mask(chosen, block, n, at) & (torch.arange(n, device="cuda") <= at[:, None])

        pairs = selected_pairs(chosen, block, 1, n, n)
        return Prepared(
            {"ssa": lambda: lambda: bundle.per_query(q, k, v, chosen), "triton": lambda: peers.triton_lists(q, k, v, chosen, block),
             "fla": lambda: peers.fla_lists(q, k, v, chosen, block)},
            attention_check(q, k, v, keep), flop=4 * DIM * HEADS // KEY_HEADS * pairs, notes={"agreement": inputs.measure_agreement(chosen)})

    kind = "chosen from keys in topics" if realistic else "random" if agreement == 0 else f"agreeing in {agreement:.0%}"
    return Case(f"{width} blocks of {block} a query, {kind}", "attend", prepare, n)


def shared(bundle, n, block, width):
    def prepare():
        g = generator()
        q, k, v = (inputs.rows(h, n, DIM, g) for h in (HEADS, KEY_HEADS, KEY_HEADS))
        chosen = inputs.lists(HEADS, n // block, width, block, block, 0.0, g)

        def keep(at):
            return lists_to_mask(chosen, block, n, at // block) & (torch.arange(n, device="cuda") <= at[:, None])

        entry = bundle.shared if block == 128 else bundle.shared_64
        implementations = {"ssa": lambda: lambda: entry(q, k, v, chosen)}
        if block == 128:
            implementations["flex"] = lambda: peers.flex_lists(q, k, v, chosen, block)
        return Prepared(implementations, attention_check(q, k, v, keep), flop=4 * DIM * selected_pairs(chosen, block, block, n, n))

    return Case(f"{width} blocks of {block} for {block} queries, random", "attend", prepare, n)


def dsa(bundle, n, queries=4096, width=2048):
    def prepare():
        g = generator()
        q, k = inputs.rows(128, queries, 576, g), inputs.rows(1, n, 576, g)
        chosen = torch.stack([torch.randperm(n - queries, device="cuda", generator=g)[:width].sort().values.int() for _ in range(queries)])[None, None]
        return Prepared(
            {"ssa": lambda: lambda: bundle.dsa(q, k, chosen), "flash_mla": lambda: peers.flash_mla_sparse(q, k, chosen, 512)},
            attention_check(q, k, k[..., :512], lambda at: lists_to_mask(chosen, 1, n, at)), flop=2 * (576 + 512) * 128 * queries * width)

    return Case(f"DSA: {width} tokens for 128 heads, {queries} queries", "attend", prepare, n)


def attend_cases(bundle, select, n):
    yield dense(bundle, n)
    yield window(bundle, n)
    for agreement in (0.0, 0.75, 0.9):
        yield per_query(bundle, n, agreement)
    if select:
        yield per_query(bundle, n, 0.0, realistic=select)
    yield shared(bundle, n, 128, 8)
    yield shared(bundle, n, 64, 16)
    if n >= 8192:
        yield dsa(bundle, n)
