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


def add_key_outer():
    for name, schedule, arguments, options in (
        ("partials of bf16", tile(128, 64) + ", partials = bf16", (32, 2, [(2, 5, 64, 1, False)]), dict(d=128)),
        ("12 queries of 16 heads", tile(192, 64) + ", partials = bf16", (32, 2, [(2, 5, 64, 1, False)]), dict(d=128)),
        ("lists of 3 queries of 8 heads, two steps", tile(192, 32), (16, 2, [(2, 5, 64, 3, False)]), {}),
        ("blocks of 128 in two steps", tile(64, 64), (6, 2, [(2, 3, 128, 1, False)]), {}),
        ("blocks of 64 in four steps", tile(128, 16, 3), (6, 2, [(2, 3, 64, 1, False)]), dict(mask="")),
        ("blocks of 512 in eight steps", tile(64, 64), (6, 2, [(2, 2, 512, 1, False)]), {}),
        ("blocks of 512, heads of 128", tile(128, 128) + ", partials = bf16", (32, 2, [(2, 2, 512, 1, False)]), dict(d=128)),
        ("a head, blocks of 16", tile(64, 16, 3), (2, 2, [(2, 20, 16, 1, False)]), dict(elem="f16")),
        ("mma_sync", tile(32, 32, instruction="mma_sync"), (8, 2, [(2, 5, 32, 1, False)]), {}),
        ("lists of 5 queries, window", tile(64, 64), (8, 2, [(4, 4, 64, 5, False)]), dict(mask=WINDOW)),
        ("no mask, 6 lists for 4 key heads", tile(64, 64), (12, 4, [(6, 5, 64, 1, False)]), dict(mask="")),
        ("3 lists for 6 key heads", tile(64, 64), (12, 6, [(3, 5, 64, 1, False)]), {}),
        ("lists of 40 queries of 16 heads", tile(128, 64), (16, 1, [(1, 5, 64, 40, False)]), {}),
    ):
        ordered(f"key_outer, {name}", f"order = key_outer, {schedule}", *arguments, **options)


def add_runs():
    """Some lists, or heads, at a time; and more lists than a kernel turns around in one go."""
    for name, most, arguments, options in (
        ("10 lists at a time", 416000, (32, 2, [(2, 5, 64, 1, False)]), {}),
        ("2 of 6 heads at a time, as far as they go", 600000, (24, 3, [(6, 7, 32, 1, False)]), {}),
        ("4500 lists", 1 << 30, (2, 2, [(2, 3, 16, 1, False)]), dict(sizes=((1, 37, 67), (1, 4500, 4500)))),
    ):
        block = arguments[2][0][2]
        dictionary = f"{CAUSAL}, ssa.partial_bytes = {most} : i64, ssa.schedule = #ssa.schedule<order = key_outer, {tile(64, block)}>"
        attend(f"key_outer, {name}", *arguments, dictionary=dictionary, **options)


def add_split():
    for name, schedule, arguments, options in (
        ("4 parts of all keys", tile(64, 64) + ", split = 4", (8, 2), dict(d=128)),
        ("64 parts, window", tile(64, 64) + ", split = 64", (8, 2), dict(mask=WINDOW)),
        ("3 parts of lists of blocks", "order = head_packed, " + tile(64, 64) + ", split = 3", (8, 2, [(2, 9, 64, 1, False)]), dict(d=128)),
        ("8 parts of lists of tokens", tile(16, 16, 4, "mma_sync") + ", split = 8", (8, 2, [(2, 300, 1, 1, False)]), dict(elem="f16")),
        ("2 parts of one list", tile(64, 64) + ", split = 2", (8, 2, [(2, 9, 64, 1, True)]), {}),
    ):
        ordered(f"split, {name}", schedule, *arguments, **options)


def add_stretches():
    """Steps of several blocks, and of a sink and a window."""
    for name, schedule, arguments, options in (
        ("2 blocks of 64 for 64 queries of 16 heads", tile(128, 128), (32, 2, [(2, 5, 64, 64, False)]), dict(d=128)),
        ("4 blocks of 32, window", tile(128, 128), (16, 2, [(2, 7, 32, 40, False)]), dict(mask=WINDOW)),
        ("3 blocks of 48, no mask", tile(128, 144), (8, 1, [(1, 4, 48, 32, True)]), dict(mask="", elem="f16")),
        ("2 blocks of 64, union of 8 queries", "order = union, " + tile(128, 128), (32, 2, [(2, 3, 64, 1, False)]), {}),
        ("4 blocks of 16, 3 parts", tile(64, 64, 3) + ", split = 3", (4, 2, [(2, 19, 16, 20, False)]), {}),
        ("a sink of 64", tile(128, 128), (16, 2), dict(mask="mask = #ssa.mask<causal, window = 200, sink = 64>", d=128)),
    ):
        ordered(f"stretches, {name}", schedule, *arguments, **options)


def add_choices():
    """Both schedules of an op of which the device chooses one, by how much lists agree: always the second, and the first unless all are the same."""
    arguments, key_outer, union = (32, 2, [(2, 5, 64, 1, False)]), f"order = key_outer, {tile(64, 64)}", f"order = union, {tile(64, 64)}"
    for percent in (0, 100):
        ordered(f"the device chooses, from {percent} %", f"{key_outer}>, ssa.agreeing = #ssa.agreeing<percent = {percent}, schedule = <{union}>", *arguments, d=128)


add_split()
add_stretches()
add_unions()
add_key_outer()
add_runs()
add_choices()
