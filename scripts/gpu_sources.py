# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of attention to keys from several places in one kernel: several parts of a merge or mix. See gpu_patterns.py."""

from gpu_attend import CAUSAL, SHORT, raw_lists
from gpu_orders import WINDOW, tile
from gpu_patterns import SMALL, examples, keys, op, per_query, queries, states

NEAR = "mask = #ssa.mask<causal, window = 70>"


def source(mask=CAUSAL, lists=None, blocks=None, more="", score=""):
    """Keys of an attention: lists as in gpu_attend; `blocks` as size and stride where keys are summaries of these, with a tensor of their own."""
    return dict(mask=mask, lists=lists, blocks=blocks, more=more, score=score)


def together(name, join, heads, key_heads, schedule, sources, d=64, dv=None, elem="bf16", result="bf16", values_are_keys=False, others=(), gate="sigmoid",
             sizes=SHORT, shared_keys=False, rounding=1):
    """`others` are the types of parts that come from elsewhere; they stand first. With `shared_keys` sources of tokens have the same keys. `rounding` is what
    bounds are multiplied by: weights are rounded to 16 bits also where results are f32."""
    wide = dv or d
    q, k, v = (f"tensor<?x{h}x?x{w}x{elem}>" for h, w in ((heads, d), (key_heads, d), (key_heads, wide)))
    row, l = (lambda e: f"tensor<?x{heads}x?x{wide}x{e}>"), f"tensor<?x{heads}x?xf32>"
    arguments, text, parts = {"q": (q, queries(heads, d, elem))}, "", []
    weight = states(heads) if join == "merge" else per_query(heads)

    def add_tensors(i, count):
        if f"k{i}" not in arguments:
            arguments[f"k{i}"] = k, lambda rng, b, m, n: keys(key_heads, d, elem)(rng, b, count(n), count(n))
            if not values_are_keys:
                arguments[f"v{i}"] = v, lambda rng, b, m, n: keys(key_heads, wide, elem)(rng, b, count(n), count(n))
        if not values_are_keys:
            return f"%k{i}, %v{i}"
        sizes_of = f"  %b{i} = tensor.dim %k{i}, %zero : {k}\n  %n{i} = tensor.dim %k{i}, %two : {k}\n"
        return f"%k{i}, %vk{i}", sizes_of + f"  %vk{i} = tensor.extract_slice %k{i}[0, 0, 0, 0] [%b{i}, {key_heads}, %n{i}, {wide}] [1, 1, 1, 1] : {k} to {v}\n"

    for i, e in enumerate(others):
        arguments[f"o{i}"] = row(e), queries(heads, wide, e)
        arguments[f"w{i}"] = l, weight
        parts.append((f"%o{i}", f"%w{i}", e))
    if values_are_keys:
        text += "  %zero = arith.constant 0 : index\n  %two = arith.constant 2 : index\n"
    for i, s in enumerate(sources):
        size, stride = s["blocks"] or (1, 1)
        count = (lambda n, size=size: -(-n // size)) if size == stride else (lambda n, size=size, stride=stride: max((n - size) // stride + 1, 0))
        number = 0 if shared_keys and not s["blocks"] else i
        names = add_tensors(number, count)
        if values_are_keys:
            names, slices = names
            text += slices if f"%vk{number} =" not in text else ""
        words = [s["mask"]] * bool(s["mask"]) + [f"ssa.schedule = #ssa.schedule<{schedule}{s['more']}>"]
        of, at, types = "", "", f"{q}, {k}, {v}"
        if s["blocks"]:
            words.append(f"blocks = #ssa.blocks<{size}, stride = {stride}>")
            arguments["n"] = f"tensor<?x{key_heads}x?x8x{elem}>", keys(key_heads, 8, elem)
            of, types = " of %n", types + f", {arguments['n'][0]}"
        if s["lists"]:
            g, width, block, query_block, one = s["lists"]
            shape = f"?x{g}x{1 if one else '?'}x{width}"
            sel = f"!ssa.selection<{shape}, key_block = {block}, query_block = {query_block}>"
            arguments[f"t{i}"] = f"tensor<{shape}xi32>", raw_lists(g, width, block * stride, query_block, one)
            text += f"  %s{i} = ssa.from_indices %t{i} : tensor<{shape}xi32> -> {sel}\n"
            at, types = f" at %s{i}", types + f", {sel}"
        if join == "mix":
            arguments[f"g{i}"] = l, weight
        text += f"  %p{i}, %l{i} = ssa.sparse_attend %q, {names}{of}{at} {{{', '.join(words)}}}{s['score']} : {types} -> {row('f32')}, {l}\n"
        parts.append((f"%p{i}", f"%l{i}" if join == "merge" else f"%g{i}", "f32"))
    sinks = ""
    if join == "merge" and heads % 4:
        arguments["z"] = f"tensor<{heads}xf32>", examples.weights(heads)
        sinks = " sink_logits %z"
    pairs, types = ", ".join(f"({o}, {w})" for o, w, _ in parts), ", ".join(f"{row(e)}, {l}" for _, _, e in parts)
    last = len(parts) - 1
    fused = f"ssa.fused_attend = #ssa.fused_attend<part = {last}, with = [{', '.join(str(i) for i in range(len(others), last))}]>"
    if join == "merge":
        types += f", tensor<{heads}xf32>" if sinks else ""
        text += f"  %r, %y = ssa.merge {pairs}{sinks} {{{fused}}} : {types} -> {row(result)}, {l}\nreturn %r, %y : {row(result)}, {l}"
    else:
        text += f"  %r = ssa.mix {pairs} {{gate = {gate}, {fused}}} : {types} -> {row(result)}\nreturn %r : {row(result)}"
    op(
        f"{join} in one kernel: {name}",
        text,
        "rows lse" if join == "merge" else "rows",
        " ".join(n for n in arguments if n[0] in ("k" if values_are_keys else "v") + "o" and n != "q"),
        " ".join(f"{n}:{t}".replace(" ", "") for n, (t, _) in arguments.items()),
        branches=rounding * (len(parts) if join == "mix" else 1),
        queries_vary=all(not s["lists"] or s["lists"][3] == 1 for s in sources),
        sizes=sizes,
        **{n: make for n, (_, make) in arguments.items()},
    )


def add_sources():
    blocks, tokens = (2, 3, 128, 64, False), (2, 70, 1, 1, False)
    capped = " score (%x, %b, %h, %p, %j) {\n    %t = math.tanh %x : f32\n    ssa.yield %t : f32\n  }"
    for join in ("merge", "mix"):
        together("blocks for 64 queries and a window", join, 6, 2, tile(64, 64), [source(lists=blocks), source(NEAR)], shared_keys=True)
        together("128 rows, heads of 128, window and sink first", join, 8, 2, tile(128, 128), [source(WINDOW), source(lists=blocks)], d=128, shared_keys=True)
        together("tokens, blocks for more queries, a window", join, 32, 2, tile(64, 32), [source(lists=tokens), source(lists=(2, 4, 16, 5, False)), source(NEAR)], d=128)
        together("summaries and other keys", join, 8, 2, tile(64, 64, 3), [source(blocks=(16, 16)), source(NEAR)], others=("bf16",))
        together("score region", join, 4, 4, tile(64, 32), [source("", (4, 3, 8, 8, False)), source(NEAR, score=capped)], elem="f16", result="f16")
        together("one list, no mask", join, 3, 1, tile(64, 64), [source("", (1, 20, 8, 1, True)), source("")], d=72, result="f32", rounding=16)
        together("576/512", join, 16, 1, tile(64, 64), [source(lists=(1, 70, 1, 1, False)), source(NEAR)], d=576, dv=512, values_are_keys=True, sizes=SMALL)
        together("summaries, values are keys of 512", join, 6, 1, tile(64, 64), [source(blocks=(32, 32)), source(NEAR)], d=512, values_are_keys=True, sizes=SMALL)
        together("values of 384", join, 2, 1, tile(64, 32), [source(blocks=(8, 4)), source(NEAR)], d=384, elem="f16", result="f16", sizes=SMALL)
        together("mma_sync", join, 8, 2, tile(16, 16, 4, "mma_sync"), [source(lists=(2, 5, 64, 1, False)), source(NEAR)], shared_keys=True)
        together("mma_sync, 64 rows", join, 6, 2, tile(64, 32, 2, "mma_sync"), [source(blocks=(16, 8)), source(lists=tokens)], others=("f32",))
    together("tcgen05, blocks for 64 queries and a window", "merge", 6, 2, tile(128, 64, 2, "tcgen05"), [source(lists=blocks), source(NEAR)], shared_keys=True)
    together("tcgen05, 256 rows, tokens, blocks for more queries, a window", "merge", 32, 2, tile(256, 64, 2, "tcgen05"), [source(lists=tokens), source(lists=(2, 4, 16, 5, False)), source(NEAR)], d=128)
    together("tcgen05, summaries, values are keys of 512", "merge", 6, 1, tile(128, 32, 2, "tcgen05"), [source(blocks=(32, 32)), source(NEAR)], d=512, values_are_keys=True, others=("bf16",), sizes=SMALL)
    together("gates that are factors", "mix", 8, 2, tile(64, 64), [source(lists=blocks), source(NEAR)], gate="none", others=("bf16", "bf16"))


add_sources()
