#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times attention kernels on a GPU.

    ssa-opt benchmarks/attend.mlir --emit=bundle --chip=sm_90a -o attend.json
    python3 benchmarks/attend.py attend.json [--tokens 131072]

Needs torch and python/ssa. Prints the device and one line a pattern: median of 10 runs after 2, the useful work (products of visible
pairs only, 4 * D FLOP each) and its rate, beside what the work takes at 810 TFLOP/s, the matrix rate that one H200 reaches on bf16.
"""

import argparse
import pathlib
import statistics
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import ssa  # noqa: E402

HEADS, KEY_HEADS, DIM = 64, 4, 128
MATRIX_RATE = 810e12


def median_ms(run, count=10):
    for _ in range(2):
        run()
    times = []
    for _ in range(count):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def distinct_blocks(rows, own, count, device):
    """`count` block numbers for each row, the row's own block first, the others random and not after it."""
    others = (torch.rand(rows, count - 1, device=device) * own[:, None].clamp(min=1)).int()
    return torch.cat([own[:, None].int(), others], 1)


def visible_pairs(lists, own, block):
    """Pairs of a query and a key that causal lists select, summed over rows: whole blocks, and half of the own one."""
    whole = sum(len(set(row) - {o}) for row, o in zip(lists.tolist(), own.tolist()))
    return whole * block + lists.shape[0] * block / 2


def patterns(bundle, n, device):
    """(name, function to time, visible pairs of one head) for each pattern."""
    def rows(heads):
        return torch.randn(1, heads, n, DIM, device=device).bfloat16()

    q, k, v = rows(HEADS), rows(KEY_HEADS), rows(KEY_HEADS)
    yield "dense, causal", lambda: bundle.dense(q, k, v), n * (n + 1) / 2
    window = min(4096, n)
    yield "window of 4096", lambda: bundle.window(q, k, v), n * window - window * (window - 1) / 2

    own = torch.arange(n, device=device) // 64
    lists = torch.stack([distinct_blocks(n, own, 16, device) for _ in range(KEY_HEADS)])[None]
    sample = slice(0, n, max(n // 4096, 1))
    pairs = visible_pairs(lists[0, 0, sample], own[sample], 64) * n / len(own[sample])
    yield "16 blocks of 64 a query, random", lambda: bundle.per_query(q, k, v, lists), pairs

    count = n // 128
    own = torch.arange(count, device=device)
    lists = torch.stack([distinct_blocks(count, own, 8, device) for _ in range(HEADS)])[None]
    pairs = visible_pairs(lists[0, 0], own, 128) * 128
    yield "8 blocks of 128 for 128 queries, random", lambda: bundle.shared(q, k, v, lists), pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--tokens", type=int, default=131072, help="queries and keys, a multiple of 128")
    options = parser.parse_args()
    device = torch.device("cuda")
    bundle = ssa.load(options.bundle)
    print(f"{torch.cuda.get_device_name(0)}, {options.tokens} tokens, {HEADS}/{KEY_HEADS} heads of {DIM}, bf16")
    print(f"{'pattern':42} {'ms':>9} {'useful TFLOP':>13} {'TFLOP/s':>8} {'floor ms':>9}")
    for name, run, pairs in patterns(bundle, options.tokens, device):
        ms, work = median_ms(run), 4 * DIM * HEADS * pairs
        print(f"{name:42} {ms:9.2f} {work / 1e12:13.2f} {work / ms / 1e9:8.0f} {work / MATRIX_RATE * 1e3:9.2f}", flush=True)


if __name__ == "__main__":
    main()
