# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the GPU tests run: a table of patterns, one row each, and the arguments they get.

Used by make_gpu_tests.py, which compiles them and computes what is right, and by gpu_test.py, which runs them. A new
pattern is one more row: of an example here, of an op in gpu_ops.py or gpu_forms.py, of both
routing and selecting in gpu_select.py.
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
        scores  |got - ref| <= e * (max|score| + |ref|)
        list    lists of numbers, exactly
    values: names of the arguments that bound results of kind rows.
    branches: how many weighted sums of values, each with weights of a sum of at most 1, a result of kind rows adds.
    outliers: the part of the rows of a result that may be different, where a selection inside hangs on scores that
        differ by less than rounding does. 0 for single ops. Lists of a pattern with one `topk` without
        `top_p` are held to more: they may differ in near ties alone (make_gpu_tests.py).
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
    branches: int = 1
    outliers: float = 0.0
    sizes: tuple = ALL
    queries_vary: bool = True

    def make(self, b, m, n, seed):
        """The arguments as f32, i32 or bool arrays, in order."""
        rng = np.random.default_rng(seed)
        return {name: maker(rng, b, m, n) for name, maker in self.arguments.items()}

    def query_axes(self):
        """For each argument the axis that counts queries, or None."""
        return self._axes((1, 128, 256), (1, 256, 256))

    def batch_axes(self):
        """For each argument the axis that counts sequences, or None."""
        return self._axes((1, 4, 256), (2, 4, 256))

    def _axes(self, first, second):
        """For each argument the axis whose size differs between two cases, or None."""
        one, two = self.make(*first, 0), self.make(*second, 0)
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


def in_chunks(example):
    """The text of an example with its selections made for 64 rows at a time."""
    folder = HERE if (HERE / f"{example}.mlir").exists() else HERE.parent / "examples"
    text = (folder / f"{example}.mlir").read_text()
    return re.sub(r"(ssa\.topk [^{\n]*\{)", r"\1ssa.chunk = #ssa.chunk<bytes = 4096, rows = 64>, ", text)


def add_examples():
    values = {"dsa": "k", "hisa": "k", "second-stream": "k e e128", "kv-compress": "v vc vn"}
    no_selection = "soft_cap alibi alibi_at hca window_sink window_sink_logit low_rank_reuse quest_bound attend_compressed gather_by".split()
    chains = "nsa infllm-v2 msa xattention hisa dsa quest moba low-rank fading".split()
    blocks_of_queries = "low-rank vertical-slash xattention kv-compress".split()  # they begin with the call, not with the sequence
    for example, entries in examples.ENTRIES.items():
        for entry, names in entries.items():
            if entry == "compress":
                continue  # the parts are compared: what `compress_select` selects, and `gather_by`
            tensors = {name: examples.TENSORS[example][name] for name in names.split()}
            PATTERNS.append(
                Pattern(
                    entry,
                    f"{example}.mlir",
                    entry,
                    tensors,
                    result_kinds(example, entry),
                    values.get(example, "v"),
                    branches=3 if entry == "nsa" else 1,
                    outliers=0.0 if entry in no_selection else 0.005,
                    queries_vary=example not in blocks_of_queries,
                )
            )
            if example in chains and entry.endswith("_select"):
                last = PATTERNS[-1]
                PATTERNS.append(dataclasses.replace(last, name=f"{entry} in chunks", source=in_chunks(example)))


# ---------------------------------------------------------------------------------------------------------------------
# Single ops


def op(name, text, results, values="", types="", **arguments):
    """A row for one op: `text` is the body; %name are its arguments, of the types that `types` gives after `name:`."""
    more = {key: arguments.pop(key) for key in ("outliers", "sizes", "queries_vary", "branches") if key in arguments}
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


add_examples()
import gpu_attend  # noqa: E402, F401
import gpu_forced  # noqa: E402, F401
import gpu_forms  # noqa: E402, F401
import gpu_fused  # noqa: E402, F401
import gpu_ops  # noqa: E402, F401
import gpu_orders  # noqa: E402, F401
import gpu_select  # noqa: E402, F401
import gpu_sources  # noqa: E402, F401
import gpu_tiles  # noqa: E402, F401

assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS), "names must differ"
