# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the GPU tests run: a table of patterns, one row each, and the arguments they get.

Used by make_gpu_tests.py, which compiles them and computes what is right, and by gpu_test.py, which runs them. A new
pattern is one more row of PATTERNS.
"""

import dataclasses
import importlib.util
import pathlib
import re

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def _load_generator():
    """examples/generate.py, or its copy beside this file."""
    for path in (HERE / "generate.py", HERE.parent / "examples/generate.py"):
        if path.exists():
            spec = importlib.util.spec_from_file_location("ssa_example_generator", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise FileNotFoundError("generate.py is neither beside this file nor in examples/")


examples = _load_generator()
queries, keys, per_query = examples.queries, examples.keys, examples.per_query

# Sizes (b, m, n) of the cases. Few queries at the end of a long sequence cost the interpreter little; "whole" runs
# all of the queries on the GPU and compares the last ones.
SMALL = ((1, 1, 1), (1, 63, 63), (2, 64, 64), (1, 65, 65), (2, 37, 130), (1, 1, 300))
LONG = ((1, 200, 1000), (1, 64, 4096), (1, 16, 32768))
ALL = SMALL + LONG


@dataclasses.dataclass
class Pattern:
    """One row.

    name: what the table calls it; unique.
    source: MLIR text, or the name of a file in examples/.
    entry: the function.
    arguments: {name: maker(rng, b, m, n)} in order.
    results: what each result is, a word each:
        rows    floats that are means or weighted sums of rows of `values`: |got - ref| <= e * (max|value| + |ref|)
        lse     |got - ref| <= 2e-3 + 1e-3 |ref|
        scores  f32, |got - ref| <= 2^-12 * (max|score| + |ref|)
        list    lists of numbers, exactly
    values: names of the arguments that bound results of kind rows.
    outliers: the part of the rows of a result that may be different, where a selection inside hangs on scores that
        differ by less than rounding does. 0 for single ops.
    sizes: cases (b, m, n).
    queries_vary: false if a row of the results depends on more than its query and the keys, so that a "whole" case
    cannot be made of a case: pooled keys, blocks of queries.
    """

    name: str
    source: str
    entry: str
    arguments: dict
    results: str
    values: str = ""
    outliers: float = 0.0
    sizes: tuple = ALL
    queries_vary: bool = True

    def make(self, b, m, n, seed):
        """The arguments as f32, i32 or bool arrays, in order."""
        rng = np.random.default_rng(seed)
        return {name: maker(rng, b, m, n) for name, maker in self.arguments.items()}

    def query_axes(self):
        """For each argument the axis that counts queries, or None."""
        one, two = self.make(1, 128, 256, 0), self.make(1, 256, 256, 0)
        axes = {}
        for name in one:
            found = [d for d, (p, q) in enumerate(zip(one[name].shape, two[name].shape)) if p != q]
            axes[name] = found[0] if found else None
        return axes


PATTERNS = []


# ---------------------------------------------------------------------------------------------------------------------
# Examples


def result_kinds(example, entry):
    """What the results of an entry are, from how it is declared."""
    folder = HERE if (HERE / f"{example}.mlir").exists() else HERE.parent / "examples"
    text = (folder / f"{example}.mlir").read_text()
    declared = re.search(r"^func\.func @" + entry + r"\(.*?\) -> (.*) \{$", text, re.M)[1]
    lists_ = declared.count("xi32>")
    return " ".join(["list"] * lists_) if lists_ else "scores" if declared == "!s" else "rows"


def add_examples():
    values = {"dsa": "k", "hisa": "k", "second-stream": "k e e128"}
    no_selection = "soft_cap alibi alibi_at hca window_sink window_sink_logit low_rank_reuse quest_bound".split()
    blocks_of_queries = "low-rank vertical-slash xattention".split()  # they begin with the call, not with the sequence
    for example, entries in examples.ENTRIES.items():
        for entry, names in entries.items():
            tensors = {name: examples.TENSORS[example][name] for name in names.split()}
            PATTERNS.append(
                Pattern(
                    entry,
                    f"{example}.mlir",
                    entry,
                    tensors,
                    result_kinds(example, entry),
                    values.get(example, "v"),
                    0.0 if entry in no_selection else 0.005,
                    queries_vary=example not in blocks_of_queries,
                )
            )


# ---------------------------------------------------------------------------------------------------------------------
# Single ops


def op(name, text, results, values="", types="", **arguments):
    """A row for one op: `text` is the body; %name are its arguments, of the types that `types` gives after `name:`."""
    more = {key: arguments.pop(key) for key in ("outliers", "sizes", "queries_vary") if key in arguments}
    declared = [part.split(":", 1) for part in types.split()]
    assert [n for n, _ in declared] == list(arguments), (name, declared, list(arguments))
    header = ", ".join(f"%{n}: {t}" for n, t in declared)
    *body, last = text.strip().split("\n")
    returned = last.strip().removeprefix("return ")
    result_types = returned.partition(" : ")[2]
    entry = re.sub(r"[^a-zA-Z0-9]+", "_", name)
    source = f"func.func @{entry}({header}) -> ({result_types}) {{\n" + "\n".join(body) + f"\n  return {returned}\n}}\n"
    PATTERNS.append(Pattern(name, source, entry, arguments, results, values, **more))


def positive_scores(heads, blocks):
    return lambda rng, b, m, n: rng.exponential(size=(b, heads, m, blocks(n))).astype(np.float32)


def whole_scores(heads, blocks):
    """With many ties."""
    return lambda rng, b, m, n: rng.integers(-3, 3, (b, heads, m, blocks(n))).astype(np.float32)


def scores(heads, blocks, hidden=0.1):
    """Scores of blocks, some of them -inf or NaN; `blocks` gives their number."""

    def make(rng, b, m, n):
        x = rng.standard_normal((b, heads, m, blocks(n))).astype(np.float32)
        kind = rng.random(x.shape)
        x[kind < hidden] = -np.inf
        x[(kind >= hidden) & (kind < hidden + 0.02)] = np.nan
        x[(kind >= hidden + 0.02) & (kind < hidden + 0.03)] = np.inf
        return x

    return make


def tokens(heads=1, width=16):
    return lambda rng, b, m, n: np.zeros((b, heads, n, width), np.float32)


def lists(heads, width, block=1):
    return examples.lists(heads, width, block)


def states(heads):
    """lse of parts: some empty, some far apart."""

    def make(rng, b, m, n):
        x = (4 * rng.standard_normal((b, heads, m))).astype(np.float32)
        kind = rng.random(x.shape)
        x[kind < 0.1] = -np.inf
        x[kind > 0.95] += 1000
        return x

    return make


def add_merges():
    for elem in ("bf16", "f16", "f32"):
        for heads, width in ((4, 128), (3, 80)):
            q, l = f"tensor<?x{heads}x?x{width}x{elem}>", f"tensor<?x{heads}x?xf32>"
            op(
                f"merge {elem} {heads}x{width}",
                f"  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2), (%o3, %l3) : {q}, {l}, {q}, {l}, {q}, {l} -> {q}, {l}\n"
                f"return %o, %l : {q}, {l}",
                "rows lse",
                "o1 o2 o3",
                f"o1:{q} l1:{l} o2:{q} l2:{l} o3:{q} l3:{l}",
                o1=queries(heads, width, elem),
                l1=states(heads),
                o2=queries(heads, width, elem),
                l2=states(heads),
                o3=queries(heads, width, elem),
                l3=states(heads),
            )
    q, l = "tensor<?x4x?x64xbf16>", "tensor<?x4x?xf32>"
    op(
        "merge with sinks",
        f"  %o, %l = ssa.merge (%o1, %l1), (%o2, %l2) sink_logits %s : {q}, {l}, {q}, {l}, tensor<4xf32> -> {q}, {l}\n"
        f"return %o, %l : {q}, {l}",
        "rows lse",
        "o1 o2",
        f"o1:{q} l1:{l} o2:{q} l2:{l} s:tensor<4xf32>",
        o1=queries(4, 64),
        l1=states(4),
        o2=queries(4, 64),
        l2=states(4),
        s=examples.weights(4),
    )
    for gate in ("sigmoid", "none"):
        op(
            f"mix gate {gate}",
            f"  %o = ssa.mix (%o1, %g1), (%o2, %g2) {{gate = {gate}}} : {q}, {l}, {q}, {l} -> {q}\nreturn %o : {q}",
            "rows",
            "o1 o2",
            f"o1:{q} g1:{l} o2:{q} g2:{l}",
            o1=queries(4, 64),
            g1=per_query(4),
            o2=queries(4, 64),
            g2=per_query(4),
        )


def add_rows():
    for kind in ("mean", "max", "min"):
        for blocks in ("64", "32, stride = 16", "48, offset = -5"):
            t = "tensor<?x3x?x80xbf16>"
            op(
                f"pool {kind} {blocks}",
                f"  %y = ssa.pool {kind} %k {{blocks = #ssa.blocks<{blocks}>}} : {t} -> {t}\nreturn %y : {t}",
                "rows",
                "k",
                f"k:{t}",
                k=keys(3, 80),
                queries_vary=False,
            )
    t = "tensor<?x2x?x128xf8E4M3FN>"
    op(
        "pool mean f8 with scales",
        "  %y = ssa.pool mean %k scales %s {blocks = #ssa.blocks<128>} : "
        f"{t}, tensor<?x2x?xf32> -> tensor<?x2x?x128xbf16>\nreturn %y : tensor<?x2x?x128xbf16>",
        "rows",
        "k",
        f"k:{t} s:tensor<?x2x?xf32>",
        k=keys(2, 128, "f8E4M3FN"),
        s=lambda rng, b, m, n: rng.uniform(0.5, 1.0, (b, 2, n)).astype(np.float32),
        queries_vary=False,
    )
    x, w, y = "tensor<?x4x?x128xbf16>", "tensor<4x128x16xbf16>", "tensor<?x4x?x16xbf16>"
    op(
        "project bf16",
        f"  %y = ssa.project %x, %w : {x}, {w} -> {y}\nreturn %y : {y}",
        "scores",
        "",
        f"x:{x} w:{w}",
        x=queries(4, 128),
        w=examples.weights(4, 128, 16, fmt="bf16"),
    )
    for elem, width, block in (("bf16", 128, 1), ("f16", 64, 32), ("f32", 24, 3)):
        k, sel = f"tensor<?x2x?x{width}x{elem}>", f"!ssa.selection<?x4x?x5, key_block = {block}>"
        rows = f"tensor<?x4x?x{5 * block}x{width}x{elem}>"
        op(
            f"gather {elem} blocks of {block}",
            f"  %s = ssa.from_indices %t : tensor<?x4x?x5xi32> -> {sel}\n"
            f"  %g = ssa.gather %k at %s : {k}, {sel} -> {rows}\n"
            f"return %g : {rows}",
            "list",
            "",
            f"k:{k} t:tensor<?x4x?x5xi32>",
            k=keys(2, width, elem),
            t=lists(4, 5, block),
            sizes=SMALL + ((1, 200, 1000),),
        )


def add_lists():
    for width in (1, 5, 64, 100, 2048):
        raw, out = (
            f"!ssa.selection<?x2x?x{width}, key_block = 1>",
            f"!ssa.selection<?x2x?x{width}, key_block = 1, sorted>",
        )
        t = f"tensor<?x2x?x{width}xi32>"
        op(
            f"sort {width}",
            f"  %a = ssa.from_indices %t : {t} -> {raw}\n"
            f"  %b = ssa.sort %a : {raw} -> {out}\n"
            f"  %r = ssa.to_indices %b : {out} -> {t}\n"
            f"return %r : {t}",
            "list",
            "",
            f"t:{t}",
            t=lists(2, width),
            sizes=SMALL + ((1, 40, 5000),),
        )
    for first, second in ((4, 7), (64, 100)):
        a, b = (f"!ssa.selection<?x2x?x{w}, key_block = 16>" for w in (first, second))
        out = f"!ssa.selection<?x2x?x{first + second}, key_block = 16, sorted>"
        r = f"tensor<?x2x?x{first + second}xi32>"
        op(
            f"union {first} and {second}",
            f"  %a = ssa.from_indices %s : tensor<?x2x?x{first}xi32> -> {a}\n"
            f"  %b = ssa.from_indices %t : tensor<?x2x?x{second}xi32> -> {b}\n"
            f"  %c = ssa.union %a, %b : {a}, {b} -> {out}\n  %r = ssa.to_indices %c : {out} -> {r}\nreturn %r : {r}",
            "list",
            "",
            f"s:tensor<?x2x?x{first}xi32> t:tensor<?x2x?x{second}xi32>",
            s=lists(2, first, 16),
            t=lists(2, second, 16),
            sizes=SMALL + ((1, 40, 5000),),
        )


def add_selectors():
    def topk(name, width, block, dictionary, maker, blocks, sizes=ALL):
        sel = f"!ssa.selection<?x2x?x{width}, key_block = {block}, sorted>"
        s, k, r = "tensor<?x2x?x?xf32>", "tensor<?x1x?x16xbf16>", f"tensor<?x2x?x{width}xi32>"
        op(
            name,
            f"  %a = ssa.topk %s of %k {dictionary} : {s}, {k} -> {sel}\n"
            f"  %r = ssa.to_indices %a : {sel} -> {r}\n"
            f"return %r : {r}",
            "list",
            "",
            f"s:{s} k:{k}",
            s=maker(2, blocks),
            k=tokens(),
            sizes=sizes,
        )

    def of(block):
        return lambda n: -(-n // block)

    causal = "mask = #ssa.mask<causal>"
    for width in (1, 16, 33):
        topk(f"topk {width} of blocks of 64", width, 64, f"{{{causal}}}", scores, of(64))
    topk("topk 16, forced blocks", 16, 64, f"{{{causal}, init_blocks = 1, local_blocks = 2}}", scores, of(64))
    topk("topk 16, top_p", 16, 64, f"{{{causal}, top_p = 0.7}}", positive_scores, of(64))
    topk("topk 16, threshold", 16, 64, f"{{{causal}, threshold = 0.5}}", scores, of(64))
    topk("topk 16, ties", 16, 16, f"{{{causal}}}", whole_scores, of(16))
    for width in (256, 2048):
        topk(
            f"topk {width} of tokens", width, 1, f"{{{causal}}}", scores, of(1), SMALL + ((1, 40, 5000), (1, 8, 32768))
        )
    s, k = "tensor<?x4x?x?xf32>", "tensor<?x1x?x16xbf16>"
    for kind in ("sum", "max"):
        op(
            f"rebin {kind} 32/16 to 64",
            f"  %i = ssa.rebin {kind} %s of %k {{from = #ssa.blocks<32, stride = 16>, to = #ssa.blocks<64>}} : {s}, {k} -> {s}\n"
            f"return %i : {s}",
            "scores",
            "",
            f"s:{s} k:{k}",
            s=scores(4, lambda n: max((n - 32) // 16 + 1, 0)),
            k=tokens(),
            sizes=SMALL + LONG[:2],
        )


def add_routes():
    short = SMALL + LONG[:2]

    def route(name, options, tq, tk, out, arguments, region="", extra=()):
        """`extra` has clauses (keyword, argument, type) after the keys."""
        clauses = "".join(f" {keyword} %{n}" for keyword, n, _ in extra)
        types = "".join(f", {t}" for _, _, t in extra)
        op(
            name,
            f"  %y = ssa.route %q, %k{clauses} {{{options}}}{region} : {tq}, {tk}{types} -> {out}\nreturn %y : {out}",
            "scores",
            "",
            f"q:{tq} k:{tk}" + "".join(f" {n}:{t}" for _, n, t in extra),
            sizes=short,
            **arguments,
        )

    q, k, out = "tensor<?x8x?x128xbf16>", "tensor<?x2x?x128xbf16>", "tensor<?x2x?x?xf32>"
    causal, plain = "mask = #ssa.mask<causal>", dict(q=queries(8, 128), k=keys(2, 128))
    route("route sum of 4 heads", f"{causal}, reduce = sum", q, k, out, plain)
    route("route softmax and max", f"{causal}, normalize = softmax, reduce = max", q, k, out, plain)
    narrow = "tensor<?x8x?x128xf8E4M3FN>", "tensor<?x1x?x128xf8E4M3FN>", "tensor<?x1x?x?xf32>"
    region = (
        " score (%x, %wh, %b, %h, %p, %j) {\n"
        "    %zero = arith.constant 0.0 : f32\n"
        "    %r = arith.maximumf %x, %zero : f32\n"
        "    %z = arith.mulf %r, %wh : f32\n    ssa.yield %z : f32\n  }"
    )
    route(
        "route of an indexer, f8",
        f"scale = 1.0, {causal}, reduce = sum",
        *narrow,
        dict(q=queries(8, 128, "f8E4M3FN"), k=keys(1, 128, "f8E4M3FN"), w=per_query(8), sc=examples.scales()),
        region,
        (("weights", "w", "tensor<?x8x?xf32>"), ("scales", "sc", "tensor<?x1x?xf32>")),
    )


def add_route_forms():
    """Each clause and attribute of route on summaries of blocks, which are arguments of their own: no rounding of a pool comes between."""

    def form(
        name,
        hq,
        hk,
        g,
        d,
        options,
        blocks=(16, 16),
        elem="bf16",
        query_block=1,
        within=None,
        word="",
        names=("k",),
        extra=(),
    ):
        size, stride = blocks
        q, k, tokens = f"tensor<?x{hq}x?x{d}x{elem}>", f"tensor<?x{hk}x?x{d}x{elem}>", f"tensor<?x{hk}x?x{d}xbf16>"
        operands, types, arguments, before, columns = (
            "%q, " + ", ".join(f"%{n}" for n in names) + " of %t",
            [q] + [k] * len(names) + [tokens],
            {},
            "",
            "?",
        )

        def summaries(rng, b, m, n):
            count = -(-n // size) if size == stride else max((n - size) // stride + 1, 0)
            return keys(hk, d, elem)(rng, b, m, count)

        arguments["q"] = lambda rng, b, m, n: queries(hq, d, elem)(rng, b, -(-m // query_block), n)
        arguments |= {n: summaries for n in names} | {"t": keys(hk, d)}
        if query_block > 1:
            operands, arguments["q0"] = operands + " for %q0", queries(hq, d)
            types.append(f"tensor<?x{hq}x?x{d}xbf16>")
        for keyword, n, t, maker in extra:
            operands, arguments[n] = operands + f" {keyword} %{n}", maker
            types.append(t)
        declared = dict(zip(arguments, types))
        if within:
            width, block = within
            raw, listed = f"tensor<?x{g}x?x{width}xi32>", f"!ssa.selection<?x{g}x?x{width}, key_block = {block}"
            before = f"  %a = ssa.from_indices %l : {raw} -> {listed}>\n  %c = ssa.sort %a : {listed}> -> {listed}, sorted>\n"
            operands, arguments["l"], columns = operands + " within %c", lists(g, width, block), width * block // size
            declared["l"] = raw
            types.append(f"{listed}, sorted>")
        out = f"tensor<?x{g}x?x{columns}xf32>"
        text = f"{before}  %y = ssa.route {word}{operands} {{blocks = #ssa.blocks<{size}, stride = {stride}>, {options}}} : {', '.join(types)} -> {out}"
        op(
            name,
            f"{text}\nreturn %y : {out}",
            "scores",
            "",
            " ".join(f"{n}:{t}" for n, t in declared.items()),
            sizes=tuple(case for case in SMALL + LONG[:2] if case[2] >= size),
            queries_vary=query_block == 1,
            **arguments,
        )

    causal, softmax = "mask = #ssa.mask<causal>", "normalize = softmax, reduce = sum"
    form("route overlapping blocks, softmax", 16, 1, 1, 128, f"{causal}, {softmax}", (32, 16))
    form("route 4 key heads of a selection head", 16, 4, 1, 128, f"{causal}, {softmax}")
    form("route 3 heads, 2 to a key head", 12, 6, 4, 72, f"{causal}, visible = partial, reduce = max", elem="f16")
    form("route 20 heads", 20, 1, 1, 64, f"{causal}, {softmax}")
    form(
        "route window and sink",
        6,
        2,
        6,
        72,
        "mask = #ssa.mask<causal, window = 100, sink = 40>, visible = partial",
        elem="f16",
    )
    form("route window both ways", 6, 2, 2, 80, "mask = #ssa.mask<window = 50>, reduce = sum", (24, 7))
    form("route query blocks", 12, 4, 4, 64, f"{causal}, query_block = 64, reduce = sum", (64, 64), query_block=64)
    form("route bound", 8, 2, 2, 128, f"{causal}, visible = partial, reduce = max", word="bound ", names=("k", "kx"))
    form(
        "route weights, f32",
        8,
        2,
        2,
        40,
        f"{causal}, {softmax}",
        elem="f32",
        extra=(("weights", "w", "tensor<?x8x?xf32>", per_query(8)),),
    )
    form("route odd head dim", 4, 2, 2, 65, f"{causal}, reduce = sum")
    form("route head dim 576", 16, 1, 1, 576, f"{causal}, reduce = sum")
    form("route within lists of single queries", 64, 1, 1, 128, f"{causal}, reduce = sum", (1, 1), within=(12, 64))
    form("route within, softmax", 8, 2, 2, 64, f"{causal}, {softmax}", within=(5, 64))
    for elem, rows, heads, inner, rank in (
        ("bf16", 1, 8, 7168, 64),
        ("f16", 4, 1, 130, 200),
        ("f32", 3, 3, 72, 6),
        ("bf16", 2, 2, 64, 33),
    ):
        x, w, y = (
            f"tensor<?x{rows}x?x{inner}x{elem}>",
            f"tensor<{heads}x{inner}x{rank}x{elem}>",
            f"tensor<?x{max(rows, heads)}x?x{rank}xf32>",
        )
        op(
            f"project {elem} {inner}x{rank}",
            f"  %y = ssa.project %x, %w : {x}, {w} -> {y}\nreturn %y : {y}",
            "scores",
            "",
            f"x:{x} w:{w}",
            x=queries(rows, inner, elem),
            w=examples.weights(heads, inner, rank, fmt=elem),
            sizes=SMALL,
        )


def add_attends():
    def attend(name, hq, hk, d, dv, dictionary, elem="bf16", at="", types="", before="", sizes=ALL, **lists_):
        q, k, v, o = (f"tensor<?x{h}x?x{w}x{elem}>" for h, w in ((hq, d), (hk, d), (hk, dv), (hq, dv)))
        l = f"tensor<?x{hq}x?xf32>"
        declared = f"q:{q} k:{k} v:{v}" + "".join(f" {n}:{t}" for n, (t, _) in lists_.items())
        op(
            name,
            f"{before}  %o, %l = ssa.sparse_attend %q, %k, %v{at} {{{dictionary}}} : {q}, {k}, {v}{types} -> {o}, {l}\n"
            f"return %o, %l : {o}, {l}",
            "rows lse",
            "v",
            declared,
            q=queries(hq, d, elem),
            k=keys(hk, d, elem),
            v=keys(hk, dv, elem),
            sizes=sizes,
            **{n: maker for n, (_, maker) in lists_.items()},
        )

    causal, short = "mask = #ssa.mask<causal>", SMALL + LONG[:2]
    for group in (1, 3, 5, 16):
        attend(f"attend causal, group {group}", 2 * group, 2, 128, 128, causal, sizes=short)
    attend("attend window 100, sink 3", 4, 2, 64, 64, "mask = #ssa.mask<causal, window = 100, sink = 3>")
    attend("attend f16, 192/128", 4, 1, 192, 128, causal, "f16", sizes=short)
    attend("attend 576/512, 16 heads", 16, 1, 576, 512, causal, sizes=SMALL)
    attend("attend d 80", 3, 3, 80, 80, causal, sizes=short)
    for width, block, heads, group in ((16, 64, 4, 4), (5, 32, 2, 1), (300, 1, 8, 8), (3, 128, 6, 3)):
        g = heads // group
        sel, t = f"!ssa.selection<?x{g}x?x{width}, key_block = {block}>", f"tensor<?x{g}x?x{width}xi32>"
        attend(
            f"attend at {width} x {block}, group {group}",
            heads,
            g,
            128,
            128,
            causal,
            at=" at %s",
            types=f", {sel}",
            before=f"  %s = ssa.from_indices %t : {t} -> {sel}\n",
            t=(t, lists(g, width, block)),
        )


add_examples()
add_merges()
add_rows()
add_lists()
add_selectors()
add_routes()
add_route_forms()
add_attends()
assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS), "names must differ"
