# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of selecting: those of select.mlir, single ops and whole chains from keys to lists. A function makes the inputs for some number of tokens."""

import inputs
import peers
import torch
from common import DIM, HEADS, KEY_HEADS, Prepared, generator, ours, some_rows

# ---------------------------------------------------------------------------------------------------------------------
# topk


def fill(kind, rows, columns):
    """Scores of one kind, `1 x 1 x rows x columns`."""
    shape, g = (1, 1, rows, columns), generator()
    if kind == "normal":
        return torch.randn(shape, device="cuda", generator=g)
    if kind == "ties":
        return torch.randint(0, 64, shape, device="cuda", generator=g).float()
    if kind == "few above zero":
        return torch.relu(torch.randn(shape, device="cuda", generator=g) - 3)
    if kind == "rising":
        return torch.arange(columns, device="cuda").float().expand(shape).contiguous()
    return torch.zeros(shape, device="cuda")


def topk(width, kind, rows, columns):
    def prepare(bundles, _):
        scores, tokens = fill(kind, rows, columns), torch.empty((1, 1, columns, 16), device="cuda").bfloat16()
        at = some_rows(8, rows)
        right = scores[0, 0, at].sort(-1, descending=True).values[:, :width].sort(-1).values

        def check(result):
            """The chosen scores, which are the same whoever breaks ties; numbers ascend and differ."""
            numbers = result[0, 0, at].long()
            ascend = (numbers[:, 1:] > numbers[:, :-1]).all().item()
            return 0 if ascend and torch.equal(scores[0, 0, at].gather(-1, numbers).sort(-1).values, right) else float("inf")

        return Prepared({"ssa": ours(bundles, "select", f"topk_{width}", scores, tokens), "torch": lambda: peers.torch_topk(scores, width)}, check,
                        moved=rows * (columns + width) * 4)

    return prepare


# ---------------------------------------------------------------------------------------------------------------------
# Other single ops, beside PyTorch


def op(entry, make):
    """`make` gives our arguments, PyTorch's function and the bytes to move; results must be close."""

    def prepare(bundles, n):
        arguments, peer, moved = make(n)
        right = peer().float()

        def check(result):
            bound = 2**-7 * right.abs() + 2**-7 * right.abs().max()
            return ((result.float() - right).abs() / bound.clamp(min=1e-30)).max().item()

        return Prepared({"ssa": ours(bundles, "select", entry, *arguments), "torch": lambda: peer}, check, moved=moved)

    return prepare


def sort(width, rows):
    def make(_):
        numbers = torch.rand((rows, width * 2), device="cuda", generator=generator()).argsort(-1)[:, :width].int()[None, None].contiguous()
        return (numbers,), lambda: numbers.sort(-1).values, rows * width * 8

    return op(f"sort_{width}", make)


def pool(entry, size, stride):
    def make(n):
        k = inputs.rows(KEY_HEADS, n, DIM, generator())
        return (k,), lambda: k.unfold(2, size, stride).float().mean(-1).bfloat16(), KEY_HEADS * DIM * 2 * (n + (n - size) // stride + 1)

    return op(entry, make)


def gather(n, queries=2048):
    g = generator()
    k, numbers = inputs.rows(KEY_HEADS, n, DIM, g), torch.randint(0, n // 64, (1, KEY_HEADS, queries, 16), device="cuda", dtype=torch.int32, generator=g)
    blocks = k[0].unflatten(1, (-1, 64))
    head = torch.arange(KEY_HEADS, device="cuda")[:, None, None]
    return (k, numbers), lambda: blocks[head, numbers[0].long()].flatten(2, 3)[None], KEY_HEADS * (queries * 1024 + n) * DIM * 2


def rebin(_, rows=65536, columns=8191, n=131072):
    scores, k = torch.rand((1, 1, rows, columns), device="cuda", generator=generator()), torch.empty((1, 1, n, 16), device="cuda").bfloat16()
    return (scores, k), lambda: peers.torch_regroup(scores, n // 64), rows * (columns + n // 64) * 4


# ---------------------------------------------------------------------------------------------------------------------
# Chains


def compare_lists(got, wanted):
    """Of a hundred numbers two may be others than PyTorch's, as scores tie up to rounding."""
    off = (~(got[..., :, None] == wanted[..., None, :]).any(-1) & (got >= 0)).float().mean().item()
    return off / 0.02


def chain(entry, size, stride):
    """Means of keys, softmax, sum of 16 heads, regrouped to 64 where blocks overlap, the best 16 blocks."""

    def prepare(bundles, n):
        q, k = inputs.topical(HEADS, KEY_HEADS, n, DIM, generator())
        select = peers.torch_select(q, k, size, stride, 16)
        at = some_rows(64, n)
        right = select.rows(at)
        visible = sum(max((m + 1 - size) // stride + 1, 0) for m in range(0, n, stride)) * stride
        return Prepared({"ssa": ours(bundles, "select", entry, q, k), "torch, in parts": lambda: select}, lambda result: compare_lists(result[:, :, at], right),
                        flop=2 * visible * HEADS * DIM, notes={"agreement": inputs.agreement_of(select.rows, n)})

    return prepare


def indexer(bundles, n, queries=4096):
    """DSA's: 64 heads of fp8, 2048 tokens for every query."""
    g = generator()
    q, k = (inputs.rows(heads, count, DIM, g, torch.float8_e4m3fn) for heads, count in ((HEADS, queries), (1, n)))
    w, c = torch.randn((1, HEADS, queries), device="cuda", generator=g), torch.rand((1, 1, n), device="cuda", generator=g) + 0.5
    at = some_rows(8, queries)
    x = torch.relu(q[0][:, at].double() @ k[0, 0].double().T * c[0, 0].double())
    scores = (x * w[0][:, at, None].double()).sum(0)
    scores.masked_fill_(torch.arange(n, device="cuda") > (n - queries + at)[:, None], -torch.inf)
    least = scores.topk(2048).values[:, -1]

    def check(result):
        """How far the worst of the chosen is below the worst that belongs there, in units of 1e-4 of the largest score."""
        worst = scores.gather(-1, result[0, 0, at].long()).min(-1).values
        return ((least - worst) / (1e-4 * scores.masked_fill(scores == -torch.inf, 0).abs().amax(-1))).max().item()

    # Products of fp8 have twice the rate of those of bf16.
    return Prepared({"ssa": ours(bundles, "select", "chain_dsa", q, k, w, c), "torch, in parts": lambda: peers.torch_indexer(q, k, w, c, 2048)}, check,
                    flop=HEADS * DIM * queries * (n - queries / 2))


KINDS = {"ties": "ties", "few": "few above zero", "rising": "rising", "equal": "equal"}
CASES = {
    "nsa-select": chain("chain_64", 64, 64), "nsa-select-overlapping": chain("chain_nsa", 32, 16), "dsa-select": indexer,
    "topk-16": topk(16, "normal", 65536, 2048), "topk-2048": topk(2048, "normal", 8192, 131072),
    **{f"topk-16-{name}": topk(16, kind, 65536, 2048) for name, kind in KINDS.items()},
    **{f"topk-2048-{name}": topk(2048, kind, 8192, 131072) for name, kind in KINDS.items()},
    "sort-16": sort(16, 65536), "sort-2048": sort(2048, 4096), "pool-64": pool("pool_64", 64, 64), "pool-32": pool("pool_32_16", 32, 16),
    "gather": op("gather", gather), "rebin": op("rebin", rebin),
}
