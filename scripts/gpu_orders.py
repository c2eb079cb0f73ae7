# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention in all loop orders: see gpu_patterns.py."""

from gpu_attend import CAUSAL, attend

WINDOW = "mask = #ssa.mask<causal, window = 100, sink = 3>"


def ordered(name, schedule, *arguments, mask=CAUSAL, **options):
    attend(name, *arguments, dictionary=f"{mask + ', ' * bool(mask)}ssa.schedule = #ssa.schedule<{schedule}>", **options)


def tile(rows, keys, stages=2, instruction="wgmma"):
    return f"instruction = {instruction}, tile_rows = {rows}, tile_keys = {keys}, stages = {stages}"


def add_unions():
    for name, schedule, arguments, options in (
        ("4 queries", tile(64, 64), (32, 2, [(2, 5, 64, 1, False)]), dict(d=128)),
        ("4 queries, mma_sync", tile(64, 32, instruction="mma_sync"), (32, 2, [(2, 5, 64, 1, False)]), {}),
        ("12 queries, blocks of 128", tile(192, 64), (16, 1, [(1, 3, 128, 1, False)]), {}),
        ("21 queries of 3 heads, blocks of 16", tile(64, 64, 3), (6, 2, [(2, 7, 16, 1, False)]), {}),
        ("64 queries of a head, tokens", tile(64, 32), (2, 2, [(2, 40, 1, 1, False)]), dict(elem="f16")),
        ("64 queries of a head, blocks of 64", tile(64, 64), (2, 2, [(2, 4, 64, 1, False)]), {}),
        ("lists of 5 queries, window", tile(128, 64), (8, 2, [(4, 4, 64, 5, False)]), dict(mask=WINDOW)),
        ("no mask, 6 lists for 4 key heads", tile(64, 64), (12, 4, [(6, 5, 64, 1, False)]), dict(mask="")),
    ):
        ordered(f"union, {name}", f"order = union, {schedule}", *arguments, **options)


add_unions()
