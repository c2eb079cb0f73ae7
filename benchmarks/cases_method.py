# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of whole methods: those of methods.mlir. A function makes the inputs for some number of tokens."""

import inputs
import peers
import torch
from cases_attend import attention_rows, lists_to_mask, random_inputs
from common import DIM, HEADS, KEY_HEADS, Prepared, generator, ours, some_rows


def most_rows(at, right, largest):
    """How far the nearest nine of ten rows are off, in units of attention_check's bound: scores that tie up to rounding give a row another list."""
    bound = 2**-7 * largest.double() + 2**-7 * right.abs()

    def check(result):
        return ((result[0, :, at].double() - right).abs() / bound).amax(-1).flatten().quantile(0.9).item()

    return check


def causal(at, keys):
    return torch.arange(keys, device="cuda") <= at[:, None]


# ---------------------------------------------------------------------------------------------------------------------
# NSA


def compressed_rows(q, k, v, at, block):
    """Attention to means of keys and values of complete blocks."""
    means = [x.unflatten(2, (-1, block)).float().mean(3).bfloat16() for x in (k, v)]
    ends = torch.arange(means[0].shape[2], device="cuda") * block + block - 1
    return attention_rows(q, *means, ends <= at[:, None], at)


def nsa(entry, agreement):
    block, width = 64, 16

    def prepare(bundles, n):
        def select(q, k):
            return peers.torch_select(q, k, block, block, width).rows

        q, k, v, g = random_inputs(n)
        if agreement:
            q, k = inputs.agreeing(HEADS, KEY_HEADS, n, DIM, generator, select, agreement)
        gates = [torch.randn((1, HEADS, n), device="cuda", generator=g) for _ in range(2)]
        at = some_rows(12, n)
        chosen = select(q, k)(at)
        keep = lists_to_mask(chosen, block, n, torch.arange(len(at), device="cuda")) & causal(at, n)
        weights = [torch.sigmoid(x[0][:, at].double())[..., None] for x in gates]
        right = weights[0] * compressed_rows(q, k, v, at, block) + weights[1] * attention_rows(q, k, v, keep, at)
        blocks = n / block
        flop = 4 * DIM * HEADS * (n * blocks / 2 + n * (width - 0.5) * block)
        implementations = {"ssa": ours(bundles, "methods", entry, q, k, v, *gates), "ssa, device chooses": ours(bundles, "methods", "nsa_any", q, k, v, *gates)}
        return Prepared(implementations, most_rows(at, right, v.abs().max()), flop=flop,
                        notes={"agreement": inputs.agreement_of(select(q, k), n)}, dense=dense(q, k, v))

    return prepare


def dense(q, k, v):
    """Others' attention to all keys, where it takes less than a minute."""
    return {f"{name}, dense": lambda name=name: peers.sdpa(name, q, k, v) for name in ("flash", "cudnn")} if q.shape[2] <= 2**17 else {}


# ---------------------------------------------------------------------------------------------------------------------
# MoBA


def moba_keep(q, k, at, chunk, width):
    """heads x rows x keys: the tokens of each query's own chunk and of the best of those before."""
    means = k.unflatten(2, (-1, chunk)).float().mean(3).bfloat16()
    number, own = torch.arange(means.shape[2], device="cuda"), at[:, None] // chunk
    score = torch.einsum("hmd,hnd->hmn", q[0][:, at].double(), means[0].double())
    score = score.masked_fill(number > own, -torch.inf).masked_fill(number == own, torch.inf)
    best = score.topk(min(width, len(number)), -1)
    chosen = best.indices.masked_fill(best.values == -torch.inf, -1)[None]
    return lists_to_mask(chosen, chunk, k.shape[2], torch.arange(len(at), device="cuda")) & causal(at, k.shape[2])


def moba(entry, chunk, width, heads=32):
    def prepare(bundles, n):
        g = generator()
        q, k, v = (inputs.rows(heads, n, DIM, g) for _ in range(3))
        at = some_rows(12, n)
        right = attention_rows(q, k, v, moba_keep(q, k, at, chunk, width), at)
        pairs = sum(min(i, width - 1) * chunk + chunk / 2 for i in range(n // chunk)) * chunk
        return Prepared({"ssa": ours(bundles, "methods", entry, q, k, v)}, most_rows(at, right, v.abs().max()),
                        flop=heads * (2 * DIM * n * n / chunk / 2 + 4 * DIM * pairs), dense=dense(q, k, v))

    return prepare


# ---------------------------------------------------------------------------------------------------------------------
# Two-level low rank


def low_rank_keep(q, k, wq, wk, at, block=64, blocks=64, tokens=64):
    """key heads x rows x keys: the tokens that some queries, each of another block of queries, choose."""
    key_heads, n = k.shape[1], k.shape[2]
    rows = (at // block * block)[:, None] + torch.arange(block, device="cuda")
    a = torch.einsum("hmbd,hdr->hmbr", q[0][:, rows], wq).unflatten(0, (key_heads, -1)).float().sum(1).bfloat16()
    b = torch.einsum("hnd,hdr->hnr", k[0], wk)
    means_a, means_b = a.float().mean(2).bfloat16(), b.unflatten(1, (-1, block)).float().mean(2).bfloat16()
    own, number = at[:, None] // block, torch.arange(n // block, device="cuda")
    score = torch.einsum("hmr,hnr->hmn", means_a.double(), means_b.double())
    score = score.masked_fill((number == 0) | (number == own - 1) | (number == own), torch.inf).masked_fill(number > own, -torch.inf)
    best = score.topk(min(blocks, n // block), -1)
    candidates = lists_to_mask(best.indices.masked_fill(best.values == -torch.inf, -1)[None], block, n, torch.arange(len(at), device="cuda"))
    mine = a[:, torch.arange(len(at), device="cuda"), at % block]
    score = torch.einsum("hmr,hnr->hmn", mine.float(), b.float())
    token = torch.arange(n, device="cuda")
    forced = (token < 4) | (token > at[:, None] - 16)
    score = score.masked_fill(forced, torch.inf).masked_fill(~(candidates & causal(at, n)), -torch.inf)
    best = score.topk(tokens, -1)
    keep = torch.zeros(score.shape, dtype=torch.bool, device="cuda")
    return keep.scatter_(2, best.indices, best.values > -torch.inf)


def low_rank(bundles, n, heads=32, key_heads=8, rank=64):
    g = generator()
    q, k, v = (inputs.rows(h, n, DIM, g) for h in (heads, key_heads, key_heads))
    wq, wk = (torch.randn((h, DIM, rank), device="cuda", generator=g).mul_(DIM**-0.5).bfloat16() for h in (heads, key_heads))
    at = some_rows(12, n)
    right = attention_rows(q, k, v, low_rank_keep(q, k, wq, wk, at), at)
    flop = 2 * DIM * rank * n * (heads + key_heads) + 2 * rank * key_heads * n * min(n, 4096) + 4 * DIM * heads * n * 64
    return Prepared({"ssa": ours(bundles, "methods", "low_rank", q, k, v, wq, wk)}, most_rows(at, right, v.abs().max()), flop=flop,
                    moved=2 * DIM * n * (2 * heads + 2 * key_heads), dense=dense(q, k, v))


CASES = {
    "nsa-0": nsa("nsa_0", 0.0), "nsa-75": nsa("nsa_75", 0.75), "moba-2048": moba("moba_2048", 2048, 3), "moba-512": moba("moba_512", 512, 8),
    "low-rank": low_rank, "low-rank-1m": low_rank,
}
