# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention to a list of blocks for every query and key head, as one would first write it in Triton: a baseline."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(q, k, v, lists, o, tokens, scale, WIDTH: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    g = tl.program_id(1).to(tl.int64)
    row, column, key = tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, BLOCK)
    at = ((g * GROUP + row) * tokens + m)[:, None] * DIM + column[None, :]
    exists = row[:, None] < GROUP
    queries = tl.load(q + at, mask=exists, other=0.0)
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    last = tl.full((), -1, tl.int32)
    for i in range(WIDTH):
        block = tl.load(lists + (g * tokens + m) * WIDTH + i)
        if (block >= 0) & (block != last):
            n = block.to(tl.int64) * BLOCK + key
            place = (g * tokens + n)[:, None] * DIM + column[None, :]
            keys = tl.load(k + place, mask=n[:, None] < tokens, other=0.0)
            x = tl.dot(queries, tl.trans(keys)) * (scale * 1.4426950408889634)
            x = tl.where(n[None, :] <= m, x, float("-inf"))
            top = tl.maximum(best, tl.max(x, 1))
            top_or_0 = tl.where(top == float("-inf"), 0.0, top)
            w = tl.exp2(x - top_or_0[:, None])
            old = tl.exp2(best - top_or_0)
            total = total * old + tl.sum(w, 1)
            values = tl.load(v + place, mask=n[:, None] < tokens, other=0.0)
            acc = acc * old[:, None] + tl.dot(w.to(values.dtype), values)
            best = top
        last = block
    acc = acc / tl.where(total == 0, 1.0, total)[:, None]
    tl.store(o + at, acc.to(o.dtype.element_ty), mask=exists)


def attend(q, k, v, lists, block):
    """q: 1 x heads x tokens x dim; lists: 1 x key heads x tokens x width, ascending; all contiguous."""
    _, heads, tokens, dim = q.shape
    key_heads, group = k.shape[1], heads // k.shape[1]
    o = torch.empty_like(q)
    kernel[(tokens, key_heads)](q, k, v, lists, o, tokens, dim**-0.5, WIDTH=lists.shape[3], BLOCK=block, GROUP=group,
                                ROWS=max(16, triton.next_power_of_2(group)), DIM=dim, num_warps=4)
    return o
