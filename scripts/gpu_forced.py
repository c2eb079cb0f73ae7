# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention to lists that have blocks in common, which a kernel of their own attends to: see gpu_patterns.py."""

import numpy as np

from gpu_attend import CAUSAL, SHORT
from gpu_orders import tile
from gpu_patterns import keys, op, per_query, queries, states


def spotted_scores(heads, block):
    """Some of which are never chosen."""

    def make(rng, b, m, n):
        x = rng.standard_normal((b, heads, m, -(-n // block))).astype(np.float32)
        return np.where(rng.random(x.shape) < 0.1, rng.choice(np.array([-np.inf, np.nan], np.float32), x.shape), x)

    return make


def forced(name, heads, key_heads, width, block, init, local, schedule, join="", most=0, d=64, dv=None, sizes=SHORT):
    """Of a `join`, merge or mix, the attention is the second part; `most` bytes of partial outputs."""
    wide = dv or d
    q, k, v, o = (f"tensor<?x{h}x?x{w}xbf16>" for h, w in ((heads, d), (key_heads, d), (key_heads, wide), (heads, wide)))
    s, l = f"tensor<?x{key_heads}x?x?xf32>", f"tensor<?x{heads}x?xf32>"
    sel = f"!ssa.selection<?x{key_heads}x?x{width}, key_block = {block}, sorted>"
    decided = f"ssa.forced_apart, ssa.schedule = #ssa.schedule<order = key_outer, {schedule}, partials = bf16>" + f", ssa.partial_bytes = {most} : i64" * bool(most)
    made = (f"  %a = ssa.topk %s of %k {{init_blocks = {init}, local_blocks = {local}, {CAUSAL}}} : {s}, {k} -> {sel}\n"
            f"  %o, %l = ssa.sparse_attend %q, %k, %v at %a {{{CAUSAL}, {decided}}} : {q}, {k}, {v}, {sel} -> {o}, {l}\n")
    arguments = {"q": (q, queries(heads, d)), "k": (k, keys(key_heads, d)), "v": (v, keys(key_heads, wide)), "s": (s, spotted_scores(key_heads, block))}
    last, results = f"return %o, %l : {o}, {l}", "rows lse"
    if join:
        arguments |= {"p": (o, queries(heads, wide)), "w": (l, states(heads)), "g": (l, per_query(heads))}
        parts, types = f"(%p, %w), (%o, {'%l' if join == 'merge' else '%g'})", f"{o}, {l}, {o}, {l}"
        made += f"  %r{', %z' * (join == 'merge')} = ssa.{join} {parts} : {types} -> {o}{', ' + l if join == 'merge' else ''}\n"
        last, results = (f"return %r, %z : {o}, {l}", "rows lse") if join == "merge" else (f"return %r : {o}", "rows")
    op(
        f"forced apart: {name}",
        made + last,
        results,
        "v p" if join else "v",
        " ".join(f"{n}:{t}".replace(" ", "") for n, (t, _) in arguments.items()),
        branches=2,  # parts are rounded to bf16
        sizes=sizes,
        **{n: make for n, (_, make) in arguments.items()},
    )


def add_forced():
    many = SHORT + ((1, 300, 300), (2, 130, 700))
    forced("16 of 64 for 16 heads", 32, 2, 16, 64, 1, 2, tile(192, 64), d=128, sizes=many)
    forced("nothing at the beginning", 16, 4, 5, 32, 0, 1, tile(64, 32), sizes=many)
    forced("groups of 3, blocks of 16", 6, 2, 9, 16, 2, 3, tile(64, 16), sizes=many)
    forced("a head, one other block", 2, 2, 5, 64, 1, 3, tile(128, 64), sizes=many)
    forced("blocks of 48, values of 96", 8, 1, 6, 48, 1, 2, tile(64, 48), dv=96)
    forced("part of a mix", 32, 2, 8, 64, 1, 2, tile(128, 64), join="mix", d=128)
    forced("part of a merge", 8, 2, 8, 32, 2, 1, tile(64, 32), join="merge")
    forced("some lists at a time", 32, 2, 8, 64, 1, 2, tile(64, 64), most=416000)
    forced("40 heads of a key", 40, 1, 6, 64, 1, 2, tile(64, 64))


add_forced()
