# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention that fill tiles of tensor memory, or do not: see gpu_patterns.py."""

from gpu_attend import CAUSAL, attend
from gpu_orders import ordered, tile
from gpu_patterns import SMALL


def add_tiles():
    for name, heads, key_heads, lists, options in (
        ("d 64, group 128", 128, 1, [], dict(d=64)),
        ("d 256", 3, 1, [], dict(d=256)),
        ("d 384, in two parts", 2, 1, [], dict(d=384, elem="f16")),
        ("d 72, group 3", 6, 2, [], dict(d=72)),
        ("128 heads of 576/512, tokens", 128, 1, [(1, 70, 1, 1, False)], dict(d=576, dv=512)),
        ("lists of 130 queries of 2 heads", 4, 2, [(2, 5, 64, 130, False)], dict(d=128)),
        # Maxima that grow by more than what is held, and logits so large that only their differences count.
        ("steep", 6, 2, [], dict(d=128, dictionary=f"{CAUSAL}, scale = 4.0")),
        ("one-hot", 2, 2, [], dict(d=64, dictionary=f"{CAUSAL}, scale = 1.0e5")),
        ("rising from less than nothing", 2, 2, [], dict(d=64, dictionary=f"{CAUSAL}, scale = -2.0")),
    ):
        attend(f"attend in tiles, {name}", heads, key_heads, lists, sizes=SMALL, **options)


def add_orders():
    """The loop orders, where tensor memory is."""
    rows = tile(128, 64, instruction="tcgen05")
    ordered("tcgen05, union of 8 queries", f"order = union, {rows}", 32, 2, [(2, 5, 64, 1, False)], sizes=SMALL)
    ordered("tcgen05, union of lists of 5 queries, tokens", f"order = union, {rows}", 4, 2, [(2, 40, 1, 5, False)], sizes=SMALL)
    ordered("tcgen05, key_outer", f"order = key_outer, {rows}, partials = bf16", 32, 2, [(2, 5, 64, 1, False)], d=128, sizes=SMALL)
    ordered("tcgen05, 3 parts of lists", f"order = head_packed, {rows}, split = 3", 8, 2, [(2, 9, 64, 1, False)], d=128, sizes=SMALL)


add_tiles()
add_orders()
