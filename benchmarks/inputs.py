# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of benchmarks: random ones, and ones like those of models, whose neighbouring queries look at much the same keys."""

import torch


def rows(heads, count, dim, generator, dtype=torch.bfloat16):
    """Normal numbers, made a head at a time: a whole tensor in f32 could be too much."""
    made = torch.empty((1, heads, count, dim), device="cuda", dtype=dtype)
    for head in range(heads):
        made[0, head] = torch.randn((count, dim), device="cuda", generator=generator)
    return made


def topical(heads, key_heads, tokens, dim, generator, noise=0.5, topics=64, run=512, length=20):
    """Queries and keys: a sequence is about one of `topics` at a time, for about `run` tokens, and its keys lie around the topic's centre; queries
    look for a mixture of topics that drifts to another within `length` tokens, each with a `noise` of its own."""
    centres = torch.randn((key_heads, topics, dim), device="cuda", generator=generator)
    changes = torch.rand(tokens, device="cuda", generator=generator) < 1 / run
    number = changes.int().cumsum(0)
    topic = torch.randint(0, topics, (tokens + 1,), device="cuda", generator=generator)[number]
    keys = centres[:, topic] + torch.randn((key_heads, tokens, dim), device="cuda", generator=generator)
    # Wanted topics: random points, and between them a smooth way from one to the next.
    points = torch.randn((key_heads, topics, -(-tokens // length) + 1), device="cuda", generator=generator)
    wanted = torch.nn.functional.interpolate(points, size=tokens, mode="linear").transpose(1, 2)
    looks = torch.softmax(3 * wanted, -1) @ centres
    queries = rows(heads, tokens, dim, generator)
    for head in range(heads):
        queries[0, head] = (looks[head * key_heads // heads] + noise * queries[0, head].float()) * (1 + noise**2) ** -0.5
    return queries, keys[None].bfloat16()


def agreeing(heads, key_heads, tokens, dim, make_generator, select, agreement):
    """Such queries and keys, with so much noise that a selector's lists of neighbouring queries have the share `agreement` in common: found by
    halving. `select(q, k)` gives a function from numbers of queries to their lists."""
    low, high = 0.01, 100.0
    for _ in range(10):
        noise = (low * high) ** 0.5
        q, k = topical(heads, key_heads, tokens, dim, make_generator(), noise, length=512)
        low, high = (noise, high) if agreement_of(select(q, k), tokens) > agreement else (low, noise)
    return q, k


def lists(heads, count, width, block, query_block, agreement, generator, tokens=None):
    """Lists as a causal selector makes them, ascending: the row's own block, and `width - 1` random earlier ones. The list of the row before has the
    share `agreement` of them: its own block is the row's, too, but at the first row of a block."""
    tokens = tokens or count * query_block
    own = (torch.arange(count, device="cuda") * query_block + query_block - 1 + tokens - count * query_block) // block
    alike = 1 - query_block / block if query_block < block else 0
    kept = max((agreement * width - alike) / (width - 1), 0) if width > 1 else 0
    draws = torch.rand((heads, count, width), device="cuda", generator=generator)
    anew = torch.rand((heads, count, width), device="cuda", generator=generator) >= kept
    anew[:, 0] = True
    row = torch.arange(count, device="cuda")[:, None]
    since = torch.where(anew, row, torch.zeros_like(row)).cummax(1).values
    numbers = (draws.gather(1, since) * own[since].clamp(min=1)).int()
    numbers[..., 0] = own.int()
    return numbers.sort(-1).values[None].contiguous()


def agreement_of(select, tokens, sample=256):
    """The share of a list that is in the list of the next query, too; of some queries whose lists `select` gives."""
    at = torch.linspace(tokens // 2, tokens - 2, sample, device="cuda").long()
    return common_share(select(at), select(at + 1))


def distinct_lists(heads, count, width, block, agreement, generator):
    """The same for each of `count` queries of as many tokens, without repeats and padded with -1. Each place of a list draws from blocks of its own,
    every `width`-th, and keeps what it drew from one query to the next with probability `agreement`."""
    query = torch.arange(count, device="cuda")[:, None]
    own, place = query // block, torch.arange(width, device="cuda")
    number = torch.div(own - place, width, rounding_mode="floor") + 1  # of blocks that a place can draw, the query's own among them
    made = []
    for _ in range(heads):
        anew = torch.rand((count, width), device="cuda", generator=generator) >= agreement
        since = torch.where(anew, query, 0).cummax(0).values
        drawn = torch.rand((count, width), device="cuda", generator=generator).gather(0, since) * number.gather(0, since).clamp(min=1)
        blocks = torch.where(number.gather(0, since) > 0, drawn.int() * width + place, torch.iinfo(torch.int32).max)
        blocks = torch.where(own % width == place, own, blocks).int().sort(-1).values
        made.append(torch.where(blocks > own, -1, blocks))
    return torch.stack(made)[None].int()


def measure_agreement(chosen, sample=2048):
    """The same of lists that there are; a sample of rows."""
    _, heads, count, width = chosen.shape
    sample = min(sample, count - 1, max(2**30 // (heads * width**2), 1))  # pairs of numbers are compared
    at = torch.linspace(0, count - 2, sample, device=chosen.device).long()
    return common_share(chosen[:, :, at], chosen[:, :, at + 1])


def common_share(here, after):
    """Padding aside."""
    common = ((here[..., :, None] == after[..., None, :]) & (here >= 0)[..., :, None]).any(-1).sum(-1)
    return (common / (here >= 0).sum(-1).clamp(min=1)).mean().item()
