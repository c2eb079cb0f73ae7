# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of selecting: those of select.mlir, single ops and whole chains from keys to lists."""

import inputs
import peers
import torch
from common import DIM, HEADS, KEY_HEADS, Case, Prepared, generator, some_rows

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


def topk(bundle, width, kind, rows, columns):
    def prepare():
        scores, tokens = fill(kind, rows, columns), torch.empty((1, 1, columns, 16), device="cuda").bfloat16()
        at = some_rows(8, rows)
        right = scores[0, 0, at].sort(-1, descending=True).values[:, :width].sort(-1).values

        def check(result):
            """The chosen scores, which are the same whoever breaks ties; numbers ascend and differ."""
            numbers = result[0, 0, at].long()
            ascend = (numbers[:, 1:] > numbers[:, :-1]).all().item()
            return 0 if ascend and torch.equal(scores[0, 0, at].gather(-1, numbers).sort(-1).values, right) else float("inf")

        entry = bundle[f"topk_{width}"]
        return Prepared({"ssa": lambda: lambda: entry(scores, tokens), "torch": lambda: peers.torch_topk(scores, width)}, check,
                        moved=rows * (columns + width) * 4)

    return Case(f"topk {width} of {rows} x {columns}, {kind}", "topk", prepare)


def topk_cases(bundle):
    for kind in ("normal", "ties", "few above zero", "rising", "equal"):
        yield topk(bundle, 16, kind, 65536, 2048)
    yield topk(bundle, 16, "normal", 262144, 256)
    yield topk(bundle, 16, "normal", 16384, 16384)
    for kind in ("normal", "ties", "few above zero", "rising", "equal"):
        yield topk(bundle, 2048, kind, 8192, 131072)


# ---------------------------------------------------------------------------------------------------------------------
# Other single ops, beside PyTorch


def op(name, make, moved):
    """`make` gives ours and PyTorch's; ours must be close to PyTorch's."""

    def prepare():
        run, peer = make()
        right = peer().float()

        def check(result):
            bound = 2**-7 * right.abs() + 2**-7 * right.abs().max()
            return ((result.float() - right).abs() / bound.clamp(min=1e-30)).max().item()

        return Prepared({"ssa": lambda: run, "torch": lambda: peer}, check, moved=moved)

    return Case(name, "op", prepare)


def op_cases(bundle):
    def sort(width, rows):
        def make():
            numbers = torch.rand((rows, width * 2), device="cuda", generator=generator()).argsort(-1)[:, :width].int()[None, None].contiguous()
            return lambda: bundle[f"sort_{width}"](numbers), lambda: numbers.sort(-1).values
        return op(f"sort {width} of {rows} lists", make, rows * width * 8)

    def pool(entry, size, stride, n=131072):
        def make():
            k = inputs.rows(KEY_HEADS, n, DIM, generator())
            return lambda: bundle[entry](k), lambda: k.unfold(2, size, stride).float().mean(-1).bfloat16()
        return op(f"pool {size}/{stride} of {n} keys", make, KEY_HEADS * DIM * 2 * (n + (n - size) // stride + 1))

    def gather(n=32768, queries=2048):
        def make():
            g = generator()
            k, numbers = inputs.rows(KEY_HEADS, n, DIM, g), torch.randint(0, n // 64, (1, KEY_HEADS, queries, 16), device="cuda", dtype=torch.int32, generator=g)
            blocks = k[0].unflatten(1, (-1, 64))
            head = torch.arange(KEY_HEADS, device="cuda")[:, None, None]
            return lambda: bundle.gather(k, numbers), lambda: blocks[head, numbers[0].long()].flatten(2, 3)[None]
        return op(f"gather 16 x 64 of {n} keys, {queries} queries", make, KEY_HEADS * (queries * 1024 + n) * DIM * 2)

    def rebin(rows=65536, columns=8191, n=131072):
        def make():
            scores, k = torch.rand((1, 1, rows, columns), device="cuda", generator=generator()), torch.empty((1, 1, n, 16), device="cuda").bfloat16()
            return lambda: bundle.rebin(scores, k), lambda: peers.torch_regroup(scores, n // 64)
        return op(f"rebin {rows} x {columns}, 32/16 to 64", make, rows * (columns + n // 64) * 4)

    yield sort(16, 65536)
    yield sort(2048, 4096)
    yield pool("pool_64", 64, 64)
    yield pool("pool_32_16", 32, 16)
    yield gather()
    yield rebin()


# ---------------------------------------------------------------------------------------------------------------------
# Chains


def compare_lists(result, right, at):
    """Lists of some rows: of a hundred numbers two may be others than PyTorch's, as scores tie up to rounding."""
    got, wanted = result[0][:, at], right[0][:, at]
    off = (~(got[..., :, None] == wanted[..., None, :]).any(-1) & (got >= 0)).float().mean().item()
    return off / 0.02


def chain(bundle, entry, size, stride, n):
    """Means of keys, softmax, sum of 16 heads, regrouped to 64 where blocks overlap, the best 16 blocks."""

    def prepare():
        q, k = inputs.topical(HEADS, KEY_HEADS, n, DIM, generator())
        right = peers.torch_select(q, k, size, stride, 16)()
        at = some_rows(64, n)
        visible = sum(max((m + 1 - size) // stride + 1, 0) for m in range(0, n, stride)) * stride
        return Prepared({"ssa": lambda: lambda: bundle[entry](q, k), "torch, in parts": lambda: peers.torch_select(q, k, size, stride, 16)},
                        lambda result: compare_lists(result, right, at), flop=2 * 2 * visible * HEADS * DIM,
                        notes={"agreement": inputs.measure_agreement(right)})

    return Case(f"means of {size} every {stride}, softmax, sum, 16 blocks of 64", "select", prepare, n)


def indexer(bundle, n, queries=4096):
    """DSA's: 64 heads of fp8, 2048 tokens for every query."""

    def prepare():
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

        return Prepared({"ssa": lambda: lambda: bundle.chain_dsa(q, k, w, c), "torch, in parts": lambda: peers.torch_indexer(q, k, w, c, 2048)}, check,
                        flop=2 * HEADS * DIM * queries * (n - queries / 2))

    return Case(f"DSA's indexer: 2048 tokens, {queries} queries", "select", prepare, n)


def select_cases(bundle, n):
    yield chain(bundle, "chain_64", 64, 64, n)
    yield chain(bundle, "chain_nsa", 32, 16, n)
    if n > 8192:
        yield indexer(bundle, n)
