#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times selection on a GPU: topk, sort, pool, rebin, gather.

    ssa-opt benchmarks/select.mlir --emit=bundle --chip=sm_90a -o select.json
    python3 benchmarks/select.py select.json [WORD ..]

Needs torch and python/ssa. Prints the device and one line a case (those with one of the words in their name): median of 10 runs after
2, and the bytes that must be read and written once, at the rate that was reached, beside what they take at 4.3 TB/s, which a copy
reaches on one H200. Results of topk are checked against a stable sort of some rows.
"""

import argparse
import pathlib
import sys

import torch
from timing import median_ms

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import ssa  # noqa: E402

COPY_RATE = 4.3e12


def fill(kind, rows, columns):
    """Scores of one kind, `1 x 1 x rows x columns`."""
    shape = (1, 1, rows, columns)
    if kind == "normal":
        return torch.randn(shape, device="cuda")
    if kind == "ties":
        return torch.randint(0, 64, shape, device="cuda").float()
    if kind == "zeros, few others":
        return torch.relu(torch.randn(shape, device="cuda") - 3)
    if kind == "rising":
        return torch.arange(columns, device="cuda").float().expand(shape).contiguous()
    return torch.zeros(shape, device="cuda")


def check(scores, lists):
    """Some rows against a stable sort, which prefers the lower of equals."""
    for row in range(0, scores.shape[2], max(scores.shape[2] // 8, 1)):
        best = torch.sort(scores[0, 0, row], descending=True, stable=True).indices[: lists.shape[3]].sort().values
        if not torch.equal(best, lists[0, 0, row].long()):
            sys.exit(f"row {row} is wrong: expected {best.tolist()[:8]} .., but got {lists[0, 0, row].tolist()[:8]} ..")


def cases(bundle):
    """(name, what prepares and gives the function to time, bytes read and written once)."""
    def topk(entry, width, kind, rows, columns, checks=True):
        def prepare():
            scores, tokens = fill(kind, rows, columns), torch.empty((1, 1, columns, 16), device="cuda").bfloat16()
            if checks:
                check(scores, bundle[entry](scores, tokens))
            return lambda: bundle[entry](scores, tokens)
        return f"{entry} {rows} x {columns}, {kind}", prepare, rows * (columns + width) * 4

    for kind in ("normal", "ties", "zeros, few others", "rising", "equal"):
        yield topk("topk_16", 16, kind, 65536, 2048)

    def forced():
        scores, tokens = torch.randn((32, 1, 2048, 2048), device="cuda"), torch.empty((32, 1, 2048, 16), device="cuda").bfloat16()
        return lambda: bundle.topk_16_forced(scores, tokens)

    yield "topk_16_forced 32 x 2048 x 2048, causal", forced, 32 * 2048 * (1024 + 16) * 4
    yield topk("topk_16", 16, "normal", 262144, 256)
    yield topk("topk_16", 16, "normal", 16384, 16384)
    for kind in ("normal", "ties", "zeros, few others", "rising", "equal"):
        yield topk("topk_2048", 2048, kind, 8192, 131072)
    yield topk("topk_2048", 2048, "normal", 8192, 8192)
    yield topk("top_p_64", 64, "normal", 16384, 1024, checks=False)

    def sort(entry, width, rows):
        def prepare():
            lists = torch.randint(-1, 4096, (1, 1, rows, width), device="cuda", dtype=torch.int32)
            return lambda: bundle[entry](lists)
        return f"{entry} of {rows} lists", prepare, 2 * rows * width * 4

    yield sort("sort_16", 16, 524288)
    yield sort("sort_2048", 2048, 8192)

    def keys(n):
        return torch.randn((1, 4, n, 128), device="cuda").bfloat16()

    def rows_of(entry, n, written, *more):
        def prepare():
            k = keys(n)
            return lambda: bundle[entry](k, *more)
        return f"{entry} of {n} keys", prepare, 4 * n * 256 + written

    yield rows_of("pool_64", 131072, 4 * 2048 * 256)
    yield rows_of("pool_32_16", 131072, 4 * 8191 * 256)
    queries = 2048
    lists = torch.randint(0, 512, (1, 4, queries, 16), device="cuda", dtype=torch.int32)
    yield rows_of("gather", 32768, 4 * queries * 1024 * 256, lists)

    def rebin(entry, rows, columns, tokens, written):
        def prepare():
            scores, k = torch.rand((1, 1, rows, columns), device="cuda"), torch.empty((1, 1, tokens, 16), device="cuda").bfloat16()
            return lambda: bundle[entry](scores, k)
        return f"{entry} {rows} x {columns}", prepare, rows * (columns + written) * 4

    yield rebin("rebin", 65536, 8191, 131072, 2048)
    yield rebin("rebin_tokens", 8192, 131072, 131072, 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    bundle = ssa.load(options.bundle)
    print(torch.cuda.get_device_name(0))
    print(f"{'case':46} {'ms':>8} {'MB':>8} {'TB/s':>6} {'floor ms':>9}")
    for name, prepare, moved in cases(bundle):
        if options.words and not any(word in name for word in options.words):
            continue
        ms = median_ms(prepare())
        print(f"{name:46} {ms:8.3f} {moved / 1e6:8.0f} {moved / ms / 1e9:6.2f} {moved / COPY_RATE * 1e3:9.3f}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
