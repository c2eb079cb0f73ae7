# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of benchmarks: random ones, and ones like those of models, whose neighbouring queries look at much the same keys."""

import torch


def rows(heads, count, dim, generator, dtype=torch.bfloat16):
    return torch.randn((1, heads, count, dim), device="cuda", generator=generator).to(dtype)


def topical(heads, key_heads, tokens, dim, generator, topics=64, run=512, drift=0.05):
    """Queries and keys: a sequence is about one of `topics` at a time, for about `run` tokens, and its keys lie around the topic's centre;
    queries look for a mixture of topics that drifts, by a share `drift` of anew a token."""
    centres = torch.randn((key_heads, topics, dim), device="cuda", generator=generator)
    changes = torch.rand(tokens, device="cuda", generator=generator) < 1 / run
    number = changes.int().cumsum(0)
    topic = torch.randint(0, topics, (tokens + 1,), device="cuda", generator=generator)[number]
    keys = centres[:, topic] + torch.randn((key_heads, tokens, dim), device="cuda", generator=generator)
    # Wanted topics: random points, and between them a smooth way from one to the next.
    length = max(int(1 / drift), 1)
    points = torch.randn((key_heads, topics, -(-tokens // length) + 1), device="cuda", generator=generator)
    wanted = torch.nn.functional.interpolate(points, size=tokens, mode="linear").transpose(1, 2)
    looks = torch.softmax(3 * wanted, -1) @ centres
    group = heads // key_heads
    queries = looks.repeat_interleave(group, 0) + 0.5 * torch.randn((heads, tokens, dim), device="cuda", generator=generator)
    return queries[None].bfloat16(), keys[None].bfloat16()


def lists(heads, count, width, block, query_block, agreement, generator, tokens=None):
    """Lists as a causal selector makes them, ascending: the row's own block, and `width - 1` random earlier ones, of which the row before has
    each with probability `agreement`."""
    tokens = tokens or count * query_block
    own = (torch.arange(count, device="cuda") * query_block + query_block - 1 + tokens - count * query_block) // block
    draws = torch.rand((heads, count, width), device="cuda", generator=generator)
    anew = torch.rand((heads, count, width), device="cuda", generator=generator) >= agreement
    anew[:, 0] = True
    row = torch.arange(count, device="cuda")[:, None]
    since = torch.where(anew, row, torch.zeros_like(row)).cummax(1).values
    numbers = (draws.gather(1, since) * own[since].clamp(min=1)).int()
    numbers[..., 0] = own.int()
    return numbers.sort(-1).values[None].contiguous()


def measure_agreement(chosen, sample=2048):
    """The share of a list that is in the list of the next row, too; a sample of rows, padding aside."""
    count = chosen.shape[2]
    at = torch.linspace(0, count - 2, min(sample, count - 1), device=chosen.device).long()
    here, after = chosen[:, :, at], chosen[:, :, at + 1]
    common = ((here[..., :, None] == after[..., None, :]) & (here >= 0)[..., :, None]).any(-1).sum(-1)
    return (common / (here >= 0).sum(-1).clamp(min=1)).mean().item()
