# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a case of compare.py is."""

import dataclasses
from typing import Callable

import torch

HEADS, KEY_HEADS, DIM = 64, 4, 128
# What one H200 reaches: products of bf16, and copies.
MATRIX_RATE, COPY_RATE = 810e12, 4.3e12


@dataclasses.dataclass
class Prepared:
    """Implementations by name: functions that give what to run, or raise. `check` says of a result how far it is from what is right, 1 being the
    bound. `work` is in FLOP or bytes, of what must be done once."""

    implementations: dict
    check: Callable
    flop: float = 0
    moved: float = 0
    notes: dict = dataclasses.field(default_factory=dict)

    @property
    def floor_ms(self):
        return max(self.flop / MATRIX_RATE, self.moved / COPY_RATE) * 1e3


@dataclasses.dataclass
class Case:
    name: str
    kind: str  # attend, select, topk, move
    prepare: Callable
    tokens: int = 0


def generator():
    return torch.Generator(device="cuda").manual_seed(1)


def some_rows(count, rows):
    """Numbers of some rows, the first and the last among them."""
    return torch.linspace(0, rows - 1, min(count, rows), device="cuda").long()
