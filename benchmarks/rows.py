# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows of compare.py's table: what is measured, and what is to be reached. Needs no torch, so that a table can be listed and printed anywhere."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    work: str
    tokens: int = 0  # of the keys; 0 where it has none
    target: float = 0
    unit: str = "ms"  # of the target, or TFLOP/s
    public: str = ""  # the best public implementations on an H200, as measured elsewhere
    kind: str = "attend"  # attend, select, method, topk, op, compile

    @property
    def title(self):
        return self.work + (f", {in_words(self.tokens)} tokens" if self.tokens else "")


def in_words(tokens):
    for unit, size in (("M", 2**20), ("K", 2**10)):
        if tokens % size == 0:
            return f"{tokens // size}{unit}"
    return str(tokens)


K = 1024
ALL_ROWS = (
    Row("nsa-0", "NSA without its window, random lists", 128 * K, 38, public="103.5", kind="method"),
    Row("nsa-75", "NSA without its window, neighbours agree in 75 %", 128 * K, 27, public="95.7", kind="method"),
    Row("nsa-select", "means of 64, softmax, sum, 16 blocks", 128 * K, 9, public="58.0 with the compressed output", kind="select"),
    Row("selected-0", "16 blocks of 64 a query, random", 128 * K, 26, public="43.8"),
    Row("selected-75", "16 blocks of 64 a query, agreeing in 75 %", 128 * K, 16, public="41"),
    Row("selected-90", "16 blocks of 64 a query, agreeing in 90 %", 128 * K, 12, public="41"),
    Row("shared-8", "8 blocks of 128 for 128 queries of 16 heads", 128 * K, 620, "TFLOP/s", "338 (FlexAttention)"),
    Row("shared-32", "32 blocks of 128 for 128 queries of 16 heads", 128 * K, 680, "TFLOP/s"),
    Row("shared-64", "16 blocks of 64 for 64 queries of 16 heads", 128 * K, 450, "TFLOP/s"),
    Row("window-sink", "window of 4096 and the first 64", 128 * K, 27, public="43.0 (FlexAttention)"),
    Row("dense-32", "dense, 32/4 heads", 32 * K, 640, "TFLOP/s", "611 (cuDNN), 352 (FlashAttention-2)"),
    Row("moba-2048", "MoBA, 32 heads, 3 chunks of 2048", 64 * K, 16, public="39.4", kind="method"),
    Row("moba-512", "MoBA, 32 heads, 8 chunks of 512", 64 * K, 24, public="83.1", kind="method"),
    Row("dsa-8k", "DSA, 2048 tokens for 128 heads, 4096 queries", 8 * K, 640, "TFLOP/s", "606 (FlashMLA)"),
    Row("dsa-128k", "DSA, 2048 tokens for 128 heads, 4096 queries", 128 * K, 560, "TFLOP/s", "484 (FlashMLA)"),
    Row("dsa-select", "DSA's indexer, 2048 tokens, 4096 queries", 128 * K, 7.5, public="10.6", kind="select"),
    Row("topk-2048", "topk 2048 of 8192 x 131072", 0, 1.3, public="3.9", kind="topk"),
    Row("topk-16", "topk 16 of 65536 x 2048", 0, 0.18, public="1.2", kind="topk"),
    Row("low-rank", "two-level low-rank tokens, 32/8 heads", 128 * K, 24, public="dense: 243 (cuDNN), 419 (FlashAttention-2)", kind="method"),
    Row("low-rank-1m", "two-level low-rank tokens, 32/8 heads", K * K, 260, public="dense: 18813 (cuDNN), 29378 (FlashAttention-2)", kind="method"),
    Row("compile", "NSA from a pattern to PTX, CPU time of one thread with the start of the process", 0, 300, public="700 (Triton)", kind="compile"),
    Row("compile-wall", "NSA from a pattern to PTX on all cores, wall time without the start of the process", 0, 150, public="700 (Triton)", kind="compile"),
    # Without a target.
    Row("dense", "dense, 64/4 heads", 128 * K),
    Row("window", "window of 4096", 128 * K),
    Row("selected-topics", "16 blocks of 64 a query, of keys in topics", 128 * K),
    Row("shared-8-heads", "8 blocks of 128 for 128 queries of a head", 128 * K),
    Row("shared-64-heads", "16 blocks of 64 for 64 queries of a head", 128 * K),
    Row("decode", "one query, all keys", 128 * K),
    Row("decode-lists", "one query, 16 blocks of 64", 128 * K),
    Row("nsa-select-overlapping", "means of 32 every 16, softmax, sum, 16 blocks", 128 * K, kind="select"),
    *(Row(f"topk-{k}-{name}", f"topk {k} of {size}, {words}", kind="topk")
      for k, size in ((16, "65536 x 2048"), (2048, "8192 x 131072"))
      for name, words in (("ties", "ties"), ("few", "few above zero"), ("rising", "rising"), ("equal", "all equal"))),
    Row("sort-16", "sort 16 of 65536 lists", kind="op"),
    Row("sort-2048", "sort 2048 of 4096 lists", kind="op"),
    Row("pool-64", "means of 64", 128 * K, kind="op"),
    Row("pool-32", "means of 32 every 16", 128 * K, kind="op"),
    Row("gather", "16 blocks of 64, 2048 queries", 32 * K, kind="op"),
    Row("rebin", "rebin of 65536 x 8191, 32/16 to 64", kind="op"),
)


def find_rows(words, sizes=()):
    """Rows with one of the words in their name (a whole name means that row alone), with their own numbers of tokens or once for each of `sizes`."""
    names = {row.name for row in ALL_ROWS}
    found = [r for r in ALL_ROWS if not words or any(r.name == w or (w not in names and w in r.name) for w in words)]
    if not sizes:
        return found
    return [dataclasses.replace(r, tokens=n, target=r.target if n == r.tokens else 0) for r in found if r.tokens for n in sizes]


def reached(row, result, times="ms"):
    """What our kernels reach, in the unit of the row's target; 0 where they were not measured."""
    ms = result[times].get("ssa", 0)
    return result["flop"] / ms / 1e9 if ms and row.unit == "TFLOP/s" else ms


def make_table(results):
    """Lines of a table of the rows that have a target, in Markdown."""
    lines = ["| row | work | measured | rested | target | floor | peers here | public best |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in ALL_ROWS:
        result = results.get((row.name, row.tokens))
        if not row.target or not result:
            continue
        ours, rested = reached(row, result), reached(row, result, "rested")
        met = ours and (ours >= row.target if row.unit == "TFLOP/s" else ours <= row.target)
        peers = ", ".join(f"{name} {ms:.3g} ms" for name, ms in sorted(result["ms"].items(), key=lambda p: p[1]) if not name.startswith("ssa"))
        floor = result["flop"] / result["floor_ms"] / 1e9 if row.unit == "TFLOP/s" else result["floor_ms"]
        shown = f"{'**' * met}{ours:.3g}{'**' * met} {row.unit}" if ours else "-"
        lines.append(f"| `{row.name}` | {row.title} | {shown} | {f'{rested:.3g}' if rested else '-'} | {row.target:g} | {f'{floor:.3g}' if floor else '-'} "
                     f"| {peers or '-'} | {row.public or '-'} |")
    return lines
