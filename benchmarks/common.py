# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cases of compare.py are made of."""

import dataclasses
import functools
from typing import Callable

import torch

HEADS, KEY_HEADS, DIM = 64, 4, 128


@dataclasses.dataclass
class Prepared:
    """Implementations by name: functions that give what to run, or raise. `check` says of a result how far it is from what is right, 1 being the
    bound. `dense` are such of attention to all keys instead, timed beside. `flop` and `moved`, bytes, are what must be done once."""

    implementations: dict
    check: Callable
    flop: float = 0
    moved: float = 0
    notes: dict = dataclasses.field(default_factory=dict)
    dense: dict = dataclasses.field(default_factory=dict)


def generator():
    return torch.Generator(device="cuda").manual_seed(1)


def some_rows(count, rows):
    """Numbers of some rows, the first and the last among them."""
    return torch.linspace(0, rows - 1, min(count, rows), device="cuda").long()


def ours(bundles, bundle, entry, *arguments):
    """Our implementation of a case: a function of a bundle."""
    return lambda: functools.partial(bundles[bundle][entry], *arguments)
