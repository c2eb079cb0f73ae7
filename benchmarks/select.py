#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times selection on a GPU: topk, sort, pool, rebin, gather, and whole chains from keys to lists.

    ssa-opt benchmarks/select.mlir --emit=bundle --chip=sm_90a -o select.json
    python3 benchmarks/select.py select.json [WORD ..]

Needs torch and python/ssa. Prints the device and one line a case (those with one of the words in their name): median of 10 runs after
2, and the bytes that must be read and written once, at the rate that was reached, beside what they take at 4.3 TB/s, which a copy
reaches on one H200. Results of topk are checked against a stable sort of some rows. Chains have a table of their own: the products of
visible pairs, once for each pass over them (a softmax takes two), beside what they take at 810 TFLOP/s, and the memory that a call takes
besides arguments and results. Their lists are checked against scores of some rows in float64.
"""

import argparse
import pathlib
import sys

import torch
from timing import median_ms

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import ssa  # noqa: E402

COPY_RATE = 4.3e12
MATRIX_RATE = 810e12
HEADS, KEY_HEADS, DIM = 64, 4, 128


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


def block_scores(q, k, query, size, stride):
    """Scores of all summaries for the rows of one query, `key heads x summaries`, in float64; -inf where not complete."""
    k64 = k[0].double()
    means = k64.unfold(1, size, stride).mean(-1).to(k.dtype).double()
    x = torch.einsum("ghd,gnd->ghn", q[0, :, query].double().view(KEY_HEADS, -1, DIM), means) / DIM**0.5
    end = torch.arange(means.shape[1], device=q.device) * stride + size - 1
    hidden = end > query + k.shape[2] - q.shape[2]
    return torch.softmax(x.masked_fill(hidden, -torch.inf), -1).nan_to_num(0).sum(1).masked_fill(hidden, -torch.inf)


def regroup(scores, blocks):
    """NSA's equation 9: 32/16 to 64."""
    padded = torch.nn.functional.pad(scores.clamp(min=0), (1, 4 * blocks + 4 - scores.shape[1]))
    return sum(w * padded[:, i : i + 4 * blocks : 4] for i, w in enumerate((1, 2, 2, 2, 1)))


def check_list(scores, chosen, forced, width, where):
    """`chosen` must be the forced blocks and the best others, up to what rounding may exchange."""
    chosen = [i for i in chosen.tolist() if i >= 0]
    free = scores.clone()
    free[list(forced)] = -torch.inf
    count = min(width - len(forced), int((free > -torch.inf).sum()))
    others = [i for i in chosen if i not in forced]
    least = torch.topk(free, count).values[-1] if count else 0
    if len(others) != count or not set(forced) <= set(chosen) or chosen != sorted(chosen) or any(free[i] < least * (1 - 2e-3) for i in others):
        sys.exit(f"the list of {where} is wrong: {chosen[:16]} .., expected the best {count} besides {sorted(forced)}")


def chains(bundle):
    """(name, what prepares and gives the function to time, FLOP)."""
    def blocks(entry, size, stride, n, queries=None):
        queries = queries or n
        visible = sum(max((n - queries + m + 1 - size) // stride + 1, 0) for m in range(queries))

        def prepare():
            q, k = torch.randn((1, HEADS, queries, DIM), device="cuda").bfloat16(), torch.randn((1, KEY_HEADS, n, DIM), device="cuda").bfloat16()
            lists = bundle[entry](q, k)
            for query in sorted({0, 1, 63, 64, 200, queries // 3, queries // 2, queries - 2, queries - 1} & set(range(queries))):
                scores = block_scores(q, k, query, size, stride)
                own = (query + n - queries) // 64
                scores = regroup(scores, -(-n // 64)) if stride != size else scores
                scores = scores.masked_fill(torch.arange(scores.shape[1], device="cuda") > own, -torch.inf)
                for g in range(KEY_HEADS):
                    check_list(scores[g], lists[0, g, query], {0, own, max(own - 1, 0)}, 16, f"{entry}, query {query}, head {g}")
            return lambda: bundle[entry](q, k)

        return f"{entry}, {queries} queries, {n} tokens", prepare, 2 * 2 * visible * HEADS * DIM

    def indexer(n, queries):
        def prepare():
            def fp8(*shape):
                return torch.randn(shape, device="cuda").to(torch.float8_e4m3fn)

            q, k = fp8(1, HEADS, queries, DIM), fp8(1, 1, n, DIM)
            w, c = torch.randn((1, HEADS, queries), device="cuda"), torch.rand((1, 1, n), device="cuda") + 0.5
            lists = bundle.chain_dsa(q, k, w, c)
            for query in (0, queries // 2, queries - 1):
                x = torch.relu(q[0, :, query].double() @ k[0, 0].double().T * c[0, 0].double())
                scores = (x * w[0, :, query, None].double()).sum(0)
                scores[n - queries + query + 1 :] = -torch.inf
                best, chosen = torch.topk(scores, 2048), lists[0, 0, query].long()
                worst, slack = scores[chosen].min(), 1e-4 * scores[best.indices].abs().max()
                if len(set(chosen.tolist())) != 2048 or worst < best.values[-1] - slack:
                    sys.exit(f"the list of chain_dsa, query {query} is wrong: {worst} is below {best.values[-1]}")
            return lambda: bundle.chain_dsa(q, k, w, c)

        return f"chain_dsa, {queries} queries, {n} tokens", prepare, 2 * HEADS * DIM * queries * (n - queries / 2)

    yield blocks("chain_64", 64, 64, 131072)
    yield blocks("chain_64", 64, 64, 32768)
    yield blocks("chain_64", 64, 64, 131072, 16)
    yield blocks("chain_nsa", 32, 16, 131072)
    yield blocks("chain_nsa", 32, 16, 131072, 16)
    yield indexer(131072, 4096)


def extra_mib(run):
    """The memory that a call takes besides its arguments and results."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, result = torch.cuda.memory_allocated(), run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before - result.numel() * result.element_size()) / 2**20


def time_chains(bundle, words):
    print(f"{'chain':46} {'ms':>8} {'TFLOP':>8} {'TFLOP/s':>8} {'floor ms':>9} {'MiB':>8}")
    for name, prepare, flop in chains(bundle):
        if words and not any(word in name for word in words):
            continue
        run = prepare()
        ms = median_ms(run)
        print(f"{name:46} {ms:8.3f} {flop / 1e12:8.2f} {flop / ms / 1e9:8.0f} {flop / MATRIX_RATE * 1e3:9.2f} {extra_mib(run):8.0f}",
              flush=True)
        torch.cuda.empty_cache()


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
    time_chains(bundle, options.words)


if __name__ == "__main__":
    main()
