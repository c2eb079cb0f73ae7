#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times attention kernels on a GPU.

    ssa-opt benchmarks/attend.mlir --emit=bundle --chip=sm_90a -o attend.json
    python3 benchmarks/attend.py attend.json [--tokens 131072] [--only WORD ..] [--agreement 0.75 ..]

Lists of single queries are timed in every loop order: random ones, and those of which neighbours share the given parts.

Needs torch and python/ssa. Prints the device and one line a pattern: median of 10 runs after 2 back to back, and of 5 with a rest before
each; the useful work (products of visible pairs only, 2 * (D + Dv) FLOP each) and its rates, beside what the work takes at 810 TFLOP/s, the
matrix rate that one H200 reaches on bf16.
"""

import argparse
import pathlib
import sys

import torch
from timing import median_ms, rested_ms

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import ssa  # noqa: E402

HEADS, KEY_HEADS, DIM = 64, 4, 128
MATRIX_RATE = 810e12


ORDERS = {"head_packed": "per_query", "union": "per_query_union", "key_outer": "per_query_key_outer"}


def distinct_blocks(rows, own, count, device):
    """`count` block numbers for each row, the row's own block first, the others random and not after it."""
    others = (torch.rand(rows, count - 1, device=device) * own[:, None].clamp(min=1)).int()
    return torch.cat([own[:, None].int(), others], 1)


def agreeing_lists(rows, count, agreement, device):
    """`count` block numbers of 64 for each query, its own first: so many of them, as a share, are those of the query before. The others were
    drawn when their place in the list was last drawn anew."""
    own = torch.arange(rows, device=device) // 64
    kept = max((agreement * count - 63 / 64) / (count - 1), 0)
    time = torch.arange(rows, device=device)[:, None].expand(rows, count - 1)
    anew = torch.rand(rows, count - 1, device=device) >= kept
    drawn = torch.where(anew, time, 0).cummax(0).values
    values = (torch.rand(rows, count - 1, device=device) * own[:, None].clamp(min=1)).int()
    return torch.cat([own[:, None].int(), values.gather(0, drawn)], 1)


def visible_pairs(lists, own, block):
    """Pairs of a query and a key that causal lists select, summed over rows: whole blocks, and half of the own one."""
    whole = sum(len(set(row) - {o}) for row, o in zip(lists.tolist(), own.tolist()))
    return whole * block + lists.shape[0] * block / 2


def patterns(bundle, n, device, agreements):
    """(name, function to time, FLOP of its useful work) for each pattern."""

    def rows(heads, count=n, dim=DIM):
        return torch.randn(1, heads, count, dim, device=device).bfloat16()

    def flop(pairs, heads=HEADS, dims=2 * DIM):
        return 2 * dims * heads * pairs

    q, k, v = rows(HEADS), rows(KEY_HEADS), rows(KEY_HEADS)
    yield "dense, causal", lambda: bundle.dense(q, k, v), flop(n * (n + 1) / 2)
    window = min(4096, n)
    yield "window of 4096", lambda: bundle.window(q, k, v), flop(n * window - window * (window - 1) / 2)

    own = torch.arange(n, device=device) // 64
    sample = slice(0, n, max(n // 4096, 1))
    for agreement in (None, *agreements):
        made = [distinct_blocks(n, own, 16, device) if agreement is None else agreeing_lists(n, 16, agreement, device) for _ in range(KEY_HEADS)]
        lists = torch.stack(made)[None]
        pairs = visible_pairs(lists[0, 0, sample], own[sample], 64) * n / len(own[sample])
        for order, entry in ORDERS.items():
            name = f"16 x 64 a query, {'random' if agreement is None else agreement}, {order}"
            yield name, lambda: getattr(bundle, entry)(q, k, v, lists), flop(pairs)

    few, chosen = rows(HEADS, 1), torch.randperm(n // 64, device=device)[:16].sort().values.int().expand(1, KEY_HEADS, 1, 16).contiguous()
    yield "one query, all keys, split", lambda: bundle.decode(few, k, v), flop(n)
    yield "one query, 16 x 64, split", lambda: bundle.decode_lists(few, k, v, chosen), flop(1024)

    for block, count, run in (128, 8, bundle.shared), (64, 16, bundle.shared_64):
        own = torch.arange(n // block, device=device)
        shared = torch.stack([distinct_blocks(n // block, own, count, device) for _ in range(HEADS)])[None]
        pairs = visible_pairs(shared[0, 0], own, block) * block
        yield f"{count} blocks of {block} for {block} queries, random", lambda: run(q, k, v, shared), flop(pairs)

    queries, keys, count = 4096, min(n, 32768), 2048
    q, k = rows(128, queries, 576), rows(1, keys, 576)
    tokens = torch.stack([torch.randperm(keys - queries, device=device)[:count].sort().values.int() for _ in range(queries)])[None, None]
    name = f"DSA: {count} of {keys} tokens, {queries} queries"
    yield name, lambda: bundle.dsa(q, k, tokens), flop(queries * count, 128, 576 + 512)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--tokens", type=int, default=131072, help="queries and keys, a multiple of 128")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="patterns whose name has one of these words")
    parser.add_argument("--agreement", nargs="*", type=float, default=[0.5, 0.75, 0.9], help="shares of the lists that neighbours have in common")
    options = parser.parse_args()
    device = torch.device("cuda")
    bundle = ssa.load(options.bundle)
    print(f"{torch.cuda.get_device_name(0)}, {options.tokens} tokens, {HEADS}/{KEY_HEADS} heads of {DIM}, bf16")
    print(f"{'pattern':42} {'ms':>9} {'rested':>9} {'useful TFLOP':>13} {'TFLOP/s':>8} {'rested':>8} {'floor ms':>9}")
    for name, run, work in patterns(bundle, options.tokens, device, options.agreement):
        if not any(word in name for word in options.only):
            continue
        ms, rested = median_ms(run), rested_ms(run)
        rates = f"{work / ms / 1e9:8.0f} {work / rested / 1e9:8.0f}"
        print(f"{name:42} {ms:9.2f} {rested:9.2f} {work / 1e12:13.2f} {rates} {work / MATRIX_RATE * 1e3:9.2f}", flush=True)


if __name__ == "__main__":
    main()
