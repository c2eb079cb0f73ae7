# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles that are not right: both launchers refuse them with the same words, and read what is only newer."""

import copy
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from launching import execute, folder, main  # noqa: E402
from plans import PLANS, bundle  # noqa: E402

NAMES = ("axpy", "pipeline", "chunks", "maps", "scalars", "aliases")
GOOD = bundle(*(PLANS[name]() for name in NAMES))


def answers_to(texts):
    """Both launchers' answers to loading these bundles."""
    batches = []
    for i, text in enumerate(texts):
        path = folder / f"bundle{i}.json"
        path.write_text(text)
        batches.append({"bundle": str(path), "device": 0, "calls": []})
    found = {}
    for launcher in ("C++", "Python"):
        found[launcher] = [line.replace(str(folder) + "/", "") for line in execute(launcher, batches, {})[0]]
        assert len(found[launcher]) == len(texts), (launcher, found[launcher])
    return found["C++"], found["Python"]


def expect(cases):
    """`cases` has pairs of the text of a bundle and the message that it must give ("" for none)."""
    failures = []
    for i, (message, *got) in enumerate(zip([m for _, m in cases], *answers_to([t for t, _ in cases]))):
        wanted = ("error: " + message.replace("FILE", f"bundle{i}.json")) if message else ""
        for launcher, answer in zip(("C++", "Python"), got):
            if answer != wanted:
                failures.append(f"{launcher}: expected {wanted!r}, but got {answer!r}")
    assert not failures, "\n  ".join(failures)


def changed(path, value):
    """The text of the good bundle with one element replaced, added, or removed if the value is None.

    "axpy.values.3.0" is in the plan of axpy; "/.." counts from the top.
    """
    tree = copy.deepcopy(GOOD)
    if path.startswith("/"):
        steps, node = path[1:].split("."), tree
    else:
        steps = path.split(".")
        node = tree["targets"][0]["entries"][NAMES.index(steps.pop(0))]
    steps = [int(s) if s.isdigit() else s for s in steps]
    for step in steps[:-1]:
        node = node[step]
    if value is None:
        del node[steps[-1]]
    elif isinstance(node, list) and steps[-1] == len(node):
        node.append(value)
    else:
        node[steps[-1]] = value
    return json.dumps(tree)


def refusals(rows):
    cases = []
    for path, value, what, where in rows:
        if path.startswith("/"):
            place = where
        else:
            place = f"bundle.targets[0].entries[{NAMES.index(path.split('.')[0])}]{where}"
        cases.append((changed(path, value), f"'FILE' is no bundle: {what} at {place}"))
    expect(cases)


def no_bundles():
    text = json.dumps(GOOD)
    newer = "is a bundle of version {}, but this launcher reads version 1; update it"
    expect(
        [
            ("", "'FILE' is no bundle: it is not JSON"),
            (text[: len(text) // 2], "'FILE' is no bundle: it is not JSON"),
            ("[]", '\'FILE\' is no bundle: "format" is not "ssa-bundle"'),
            ("3", '\'FILE\' is no bundle: "format" is not "ssa-bundle"'),
            (changed("/format", "other"), '\'FILE\' is no bundle: "format" is not "ssa-bundle"'),
            (changed("/format", None), '\'FILE\' is no bundle: "format" is not "ssa-bundle"'),
            (changed("/version", 2), f"'FILE' {newer.format(2)}"),
            (changed("/version", "1"), f"'FILE' {newer.format('unknown')}"),
            (changed("/version", None), f"'FILE' {newer.format('unknown')}"),
            (changed("/version", True), f"'FILE' {newer.format('unknown')}"),
            (changed("/targets", []), "'FILE' is no bundle: it has no targets"),
            (text, ""),
        ]
    )


def newer_keys_are_ignored():
    expect(
        [
            (changed(path, {"anything": [1]}), "")
            for path in (
                "/new",
                "/targets.0.new",
                "axpy.new",
                "axpy.arguments.1.new",
                "axpy.results.0.new",
                "axpy.checks.0.new",
                "axpy.buffers.0.new",
                "axpy.launches.0.new",
                "maps.tensormaps.0.new",
                "chunks.repeats.0.new",
                "axpy.workspace.new",
            )
        ]
    )


def targets():
    refusals(
        [
            ("/targets", None, "missing value", "bundle.targets"),
            ("/targets", {}, "expected array", "bundle.targets"),
            ("/targets.0", 3, "expected object", "bundle.targets[0]"),
            ("/targets.0.chip", None, "missing value", "bundle.targets[0].chip"),
            ("/targets.0.ptx", 5, "expected string", "bundle.targets[0].ptx"),
            ("/targets.0.ptx_version", [], "expected string", "bundle.targets[0].ptx_version"),
            ("/targets.0.entries", None, "missing value", "bundle.targets[0].entries"),
            ("/targets.0.entries.0", [], "expected object", "bundle.targets[0].entries[0]"),
        ]
    )


def arguments_and_results():
    refusals(
        [
            ("axpy.entry", None, "missing value", ".entry"),
            ("axpy.arguments", None, "missing value", ".arguments"),
            ("axpy.arguments.0", None or {"name": "a"}, "missing value", ".arguments[0].dtype"),
            ("axpy.arguments.0.scalar", "bf16", "unknown kind of scalar", ".arguments[0].scalar"),
            ("axpy.arguments.1.dtype", "f4", "unknown dtype", ".arguments[1].dtype"),
            ("axpy.arguments.1.shape", "?", "expected array", ".arguments[1].shape"),
            ("axpy.arguments.1.shape.1", -1, "number out of range", ".arguments[1].shape[1]"),
            ("axpy.arguments.1.shape.1", "8", "expected integer", ".arguments[1].shape[1]"),
            ("axpy.arguments.1.shape.1", 8.5, "expected integer", ".arguments[1].shape[1]"),
            ("axpy.arguments.1.shape.1", True, "expected integer", ".arguments[1].shape[1]"),
            ("axpy.arguments.1.strides", [1], "expected as many strides as sizes", ".arguments[1].strides"),
            ("axpy.arguments.1.strides", "dense", "expected array", ".arguments[1].strides"),
            ("axpy.arguments.1.alignment", 12, "expected a power of two", ".arguments[1].alignment"),
            ("axpy.arguments.1.alignment", 0, "number out of range", ".arguments[1].alignment"),
            ("axpy.arguments.1.access", "rw", "unknown access", ".arguments[1].access"),
            ("axpy.results.0.strides", "free", "expected 'any' or 'contiguous'", ".results[0].strides"),
            ("axpy.results.0.shape.0", 999, "reference to what does not exist", ".results[0].shape[0]"),
            ("axpy.results.0.buffer", 99, "reference to what does not exist", ".results[0].buffer"),
            ("axpy.results.0.buffer", -1, "number out of range", ".results[0].buffer"),
            ("axpy.buffers.2.result", 1, "reference to what does not exist", ".buffers[2].result"),
            (
                "pipeline.results.0.buffer",
                2,
                "expected memory of this result, an argument or an earlier result",
                ".results[0].buffer",
            ),
            (
                "pipeline.results.0.buffer",
                3,
                "expected memory of this result, an argument or an earlier result",
                ".results[0].buffer",
            ),
            ("pipeline.results.1.buffer", 1, "this result has no memory of its own", ".buffers[2]"),
        ]
    )


def values():
    last = len(GOOD["targets"][0]["entries"][0]["values"])
    refusals(
        [
            ("axpy.values", None, "missing value", ".values"),
            ("axpy.inputs", 99, "reference to what does not exist", ".inputs"),
            ("axpy.values.0", [], "expected array", ".values[0]"),
            ("axpy.values.0", 7, "expected array", ".values[0]"),
            ("axpy.values.0", ["pow", 1, 2], "unknown operation", ".values[0][0]"),
            ("axpy.values.0", ["eq", 1, 2], "unknown operation", ".values[0][0]"),
            ("axpy.values.0", [3], "expected string", ".values[0][0]"),
            ("axpy.values.0", ["const"], "wrong number of operands", ".values[0]"),
            ("axpy.values.0", ["const", 1, 2], "wrong number of operands", ".values[0]"),
            ("axpy.values.0", ["const", "1"], "expected integer", ".values[0][1]"),
            ("axpy.values.0", ["cmp", "ult", 0, 0], "unknown predicate", ".values[0][1]"),
            ("axpy.values.0", ["cmp"], "wrong number of operands", ".values[0]"),
            ("axpy.values.3", ["add", 0, 3], "reference to what does not exist", ".values[3][2]"),
            ("axpy.values.3", ["add", -1, 0], "reference to what does not exist", ".values[3][1]"),
            ("axpy.values.3", ["cmp", "eq", 0, 5], "reference to what does not exist", ".values[3][3]"),
            ("axpy.values.0", ["dim", 9, 0], "reference to what does not exist", ".values[0][1]"),
            ("axpy.values.0", ["dim", 1, 2], "reference to what does not exist", ".values[0][2]"),
            ("axpy.values.0", ["dim", 0, 0], "reference to what does not exist", ".values[0][2]"),
            ("axpy.values.0", ["scalar", 0], "expected an integer argument", ".values[0][1]"),
            ("axpy.values.0", ["scalar", 1], "expected an integer argument", ".values[0][1]"),
            ("axpy.values.0", ["result_stride", 0, 0], "values before 'inputs' must not need results", ".values[0]"),
            ("axpy.values.0", ["index", 0], "values before 'inputs' must not need results", ".values[0]"),
            (f"axpy.values.{last}", ["index", 0], "reference to what does not exist", f".values[{last}][1]"),
            (f"axpy.values.{last}", ["result_stride", 0, 2], "reference to what does not exist", f".values[{last}][2]"),
            ("axpy.checks.0", {"message": "m", "less": [0, 0]}, "unknown check", ".checks[0]"),
            ("axpy.checks.0.equal", [0], "expected 2 elements", ".checks[0].equal"),
            ("axpy.checks.0.equal.0", last - 1, "reference to what does not exist", ".checks[0].equal[0]"),
            ("axpy.checks.0.message", None, "missing value", ".checks[0].message"),
            ("pipeline.checks.1.holds", 99, "reference to what does not exist", ".checks[1].holds"),
        ]
    )


def buffers():
    refusals(
        [
            ("axpy.buffers.0.argument", 0, "expected a tensor", ".buffers[0].argument"),
            ("axpy.buffers.0.argument", None, "unknown kind of buffer", ".buffers[0]"),
            ("axpy.buffers.0.shape.0", 99, "reference to what does not exist", ".buffers[0].shape[0]"),
            ("axpy.buffers.0.strides", [0], "expected as many strides as sizes", ".buffers[0].strides"),
            ("pipeline.buffers.5.view", 5, "reference to what does not exist", ".buffers[5].view"),
            (
                "pipeline.buffers.6",
                {"view": 5, "offset": 0, "dtype": "i8", "shape": [], "strides": []},
                "view of a view",
                ".buffers[6].view",
            ),
            ("pipeline.buffers.5.offset", None, "missing value", ".buffers[5].offset"),
            ("pipeline.workspace", None, "missing value", ".workspace"),
            ("pipeline.workspace.bytes", -3, "reference to what does not exist", ".workspace.bytes"),
            ("pipeline.workspace.alignment", 3, "expected a power of two", ".workspace.alignment"),
            (
                "maps.tensormaps.0.box",
                [1, 1],
                "expected one number for each of the 1 to 5 dimensions of the buffer",
                ".tensormaps[0].box",
            ),
            ("maps.tensormaps.0.box.0", 257, "number out of range", ".tensormaps[0].box[0]"),
            ("maps.tensormaps.0.swizzle", "96b", "unknown word", ".tensormaps[0].swizzle"),
            ("maps.tensormaps.0.fill", "one", "unknown word", ".tensormaps[0].fill"),
            ("maps.tensormaps", None, "reference to what does not exist", ".launches[0].arguments[1][1]"),
        ]
    )


def launches():
    refusals(
        [
            ("axpy.launches", None, "missing value", ".launches"),
            ("axpy.launches.0.kernel", None, "missing value", ".launches[0].kernel"),
            ("axpy.launches.0.grid", [0, 0], "expected 3 elements", ".launches[0].grid"),
            ("axpy.launches.0.grid.2", 99, "reference to what does not exist", ".launches[0].grid[2]"),
            ("axpy.launches.0.block.0", 0, "number out of range", ".launches[0].block[0]"),
            ("axpy.launches.0.block.0", 1025, "number out of range", ".launches[0].block[0]"),
            ("axpy.launches.0.cluster", [1, 1], "expected 3 elements", ".launches[0].cluster"),
            ("axpy.launches.0.dependent", 1, "expected boolean", ".launches[0].dependent"),
            ("axpy.launches.0.shared", None, "missing value", ".launches[0].shared"),
            ("axpy.launches.0.if", 99, "reference to what does not exist", ".launches[0].if"),
            ("axpy.launches.0.arguments.0", ["f32"], "expected a kind and a number", ".launches[0].arguments[0]"),
            (
                "axpy.launches.0.arguments.0",
                ["f16", 1.0],
                "unknown kind of kernel argument",
                ".launches[0].arguments[0][0]",
            ),
            (
                "axpy.launches.0.arguments.0",
                ["texture", 1],
                "unknown kind of kernel argument",
                ".launches[0].arguments[0][0]",
            ),
            ("axpy.launches.0.arguments.0", ["f32", "big"], "expected number", ".launches[0].arguments[0][1]"),
            (
                "axpy.launches.0.arguments.0",
                ["f32", {"argument": 1}],
                "expected an argument of this kind",
                ".launches[0].arguments[0][1]",
            ),
            (
                "axpy.launches.0.arguments.0",
                ["f64", {"argument": 0}],
                "expected an argument of this kind",
                ".launches[0].arguments[0][1]",
            ),
            (
                "axpy.launches.0.arguments.1",
                ["pointer", 9],
                "reference to what does not exist",
                ".launches[0].arguments[1][1]",
            ),
            (
                "axpy.launches.0.arguments.1",
                ["i64", 99],
                "reference to what does not exist",
                ".launches[0].arguments[1][1]",
            ),
        ]
    )


def repeats():
    plan = GOOD["targets"][0]["entries"][NAMES.index("chunks")]
    first, last = plan["repeats"][0]["values"]
    refusals(
        [
            ("chunks.repeats.0.values", [5], "expected the bounds of a range", ".repeats[0].values"),
            ("chunks.repeats.0.launches", [3, 1], "expected the bounds of a range", ".repeats[0].launches"),
            ("chunks.repeats.0.launches.1", 9, "reference to what does not exist", ".repeats[0].launches[1]"),
            ("chunks.repeats.0.values.0", 0, "values before 'inputs' must not repeat", ".repeats[0]"),
            ("chunks.repeats.0.count", first, "use of a value outside of its repeat", ".repeats[0].count"),
            ("chunks.repeats.0.lanes", 0, "number out of range", ".repeats[0].lanes"),
            ("chunks.repeats.0.lanes", 17, "number out of range", ".repeats[0].lanes"),
            ("chunks.repeats.0.lanes", "2", "expected integer", ".repeats[0].lanes"),
            ("chunks.repeats.1", plan["repeats"][0], "ranges of repeats must not overlap", ".repeats[1]"),
            (
                f"chunks.values.{last}",
                ["add", first, first],
                "use of a value outside of its repeat",
                f".values[{last}]",
            ),
            (f"chunks.values.{last}", ["index", 0], "use of a value outside of its repeat", f".values[{last}]"),
            ("chunks.launches.3.arguments.1", ["i64", first], "use of a value outside of its repeat", ".launches[3]"),
            ("chunks.launches.3.arguments.0", ["pointer", 2], "use of a value outside of its repeat", ".launches[3]"),
            ("chunks.launches.0.grid.0", first, "use of a value outside of its repeat", ".launches[0]"),
            ("chunks.launches.0.if", first, "use of a value outside of its repeat", ".launches[0]"),
            ("chunks.workspace.bytes", first, "use of a value outside of its repeat", ".workspace"),
        ]
    )


main([no_bundles, newer_keys_are_ignored, targets, arguments_and_results, values, buffers, launches, repeats])
