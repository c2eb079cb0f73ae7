#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the loop orders of attention at lists of single queries with what the model predicts, and with what it chooses.

    python3 benchmarks/orders.py [FOLDER] [--tokens 32768] [--json FILE] [--markdown FILE]
    python3 benchmarks/orders.py prepare FOLDER     only the part that needs the compiler
    python3 benchmarks/orders.py time FOLDER        only the part that needs a GPU, and torch

A cell is a group (query heads of a key head), a size of blocks and a share of its list that a query keeps of the one before, besides its own
block, which is always there; lists lead to 1024 keys. For each cell the schedule that is predicted to be fastest is compiled of every order and instruction. On
the GPU all of them run on the same tensors, are compared with float64 on some rows, and are timed in turns. The loss is how much longer the
chosen schedule takes than the fastest. Cells that FILE of --json has already are not measured again; --limit ends early.
"""

import argparse
import functools
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

HEADS, DIM, KEYS = 64, 128, 1024
GROUPS, BLOCKS, KEPT = (1, 4, 8, 16, 64), (1, 16, 64, 128, 512), (0.0, 0.5, 0.9)
CHIP, MANIFEST = "sm_90a", "orders.json"


# ---------------------------------------------------------------------------------------------------------------------
# Where the compiler is


def get_function(name, group, block, schedule=""):
    key_heads, width = HEADS // group, KEYS // block
    q, kv = f"tensor<1x{HEADS}x?x{DIM}xbf16>", f"tensor<1x{key_heads}x?x{DIM}xbf16>"
    lists = f"!ssa.selection<1x{key_heads}x?x{width}, key_block = {block}, sorted>"
    said = f", ssa.schedule = {schedule}" if schedule else ""
    return (
        f"func.func @{name}(%q: {q}, %k: {kv}, %v: {kv}, %s: {lists}) -> {q} {{\n"
        f"  %o, %l = ssa.sparse_attend %q, %k, %v at %s {{mask = #ssa.mask<causal>{said}}} : {q}, {kv}, {kv}, {lists} -> {q}, tensor<1x{HEADS}x?xf32>\n"
        f"  return %o : {q}\n}}\n")


def get_kind(schedule):
    """Order and instruction of a schedule; the order is left out where it is the usual one."""
    fields = dict(field.split(" = ") for field in schedule[len("#ssa.schedule<") : -1].split(", "))
    return fields.get("order", "shared_list"), fields["instruction"]


def get_agreement(block, kept):
    """The share of a list that the next query's has too."""
    width = KEYS // block
    return ((1 - 1 / block) + (width - 1) * kept) / width


def predict(tune, text, tokens, agreement):
    """What is chosen, and of every order the fastest, with another instruction where that is predicted to come near."""
    with tune.tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        said = json.loads(tune.run_compiler(file.name, "--explain=json", f"--chip={CHIP}", f"--sizes={tokens}", f"--agreement={agreement}"))
    choice = said["entries"][0]["choices"][0]
    best, near = {}, 1.4
    for one in choice["schedules"]:
        best.setdefault(get_kind(one["schedule"]), one)
    of_order = {order: min(one["ms"] for kind, one in best.items() if kind[0] == order) for order, _ in best}
    chosen = choice["chosen"]
    predicted = {one["schedule"]: one["ms"] for kind, one in best.items() if one["ms"] <= near * of_order[kind[0]]} | {chosen["schedule"]: chosen["ms"]}
    return chosen["schedule"], predicted


def prepare(folder, tokens):
    from ssa import tune

    folder.mkdir(parents=True, exist_ok=True)
    cells, bundles = [], {}
    for group in GROUPS:
        for block in BLOCKS:
            schedules = {}
            for kept in KEPT:
                chosen, predicted = predict(tune, get_function("f", group, block), tokens, get_agreement(block, kept))
                names = {schedules.setdefault(s, f"f{len(schedules)}"): ms for s, ms in predicted.items()}
                cells.append({"group": group, "block": block, "kept": kept, "chosen": schedules[chosen], "predicted_ms": names})
            name = f"group-{group}-block-{block}"
            text = "".join(get_function(function, group, block, schedule) for schedule, function in schedules.items())
            (folder / f"{name}.mlir").write_text(text)
            (folder / f"{name}.json").write_text(tune.run_compiler(str(folder / f"{name}.mlir"), "--emit=bundle", f"--chip={CHIP}"))
            bundles[name] = {function: schedule for schedule, function in schedules.items()}
            print(f"{name}: {len(schedules)} schedules", file=sys.stderr, flush=True)
    (folder / MANIFEST).write_text(json.dumps({"tokens": tokens, "cells": cells, "schedules": bundles}, indent=1))


# ---------------------------------------------------------------------------------------------------------------------
# Where the GPU is


@functools.cache
def load_bundle(path):
    import ssa

    return ssa.load(path)


def get_runs(bundle, schedules, arguments, check):
    """The functions of schedules that give what is right, and why others do not."""
    runs, wrong = {}, {}
    for name in schedules:
        try:
            error = check(bundle[name](*arguments))
        except Exception as problem:  # noqa: BLE001: one does not stop the rest
            wrong[name] = f"{type(problem).__name__}: {problem}"
            continue
        if error <= 1:
            runs[name] = lambda name=name: bundle[name](*arguments)
        else:
            wrong[name] = f"wrong: {error:.3g} times the bound"
    return runs, wrong


def get_count(predicted_ms, most):
    """How often to run schedules that take so long together: for a second or so."""
    return max(3, min(most, int(1000 / sum(predicted_ms))))


def measure(folder, manifest, cell, most):
    import cases_attend
    import inputs
    import torch
    from common import generator
    from timing import time_alternating

    group, block, n = cell["group"], cell["block"], manifest["tokens"]
    name, g = f"group-{group}-block-{block}", generator()
    q, k, v = (inputs.rows(heads, n, DIM, g) for heads in (HEADS, HEADS // group, HEADS // group))
    chosen = inputs.distinct_lists(HEADS // group, n, KEYS // block, block, cell["kept"], g)

    def keep(at):
        return cases_attend.lists_to_mask(chosen, block, n, at) & (torch.arange(n, device="cuda") <= at[:, None])

    check = cases_attend.attention_check(q, k, v, keep)
    runs, wrong = get_runs(load_bundle(folder / f"{name}.json"), cell["predicted_ms"], (q, k, v, chosen), check)
    times, failed = time_alternating(runs, get_count(cell["predicted_ms"].values(), most))
    wrong |= {name: str(error) for name, error in failed.items()}
    return cell | {
        "measured_agreement": inputs.measure_agreement(chosen), "ms": {name: t.median for name, t in times.items()},
        "spread": {name: t.spread for name, t in times.items()}, "wrong": wrong, "schedules": manifest["schedules"][name]}


def time_cells(folder, known, count, limit, write):
    """Results of all cells, those that are known first; `write` is called with them after each."""
    manifest, began, results = json.loads((folder / MANIFEST).read_text()), time.time(), list(known)

    def place(cell):
        return cell["group"], cell["block"], cell["kept"]

    missing = [c for c in manifest["cells"] if place(c) not in map(place, known)]
    for number, cell in enumerate(missing):
        if time.time() - began > limit:
            print(f"{len(missing) - number} cells are left", file=sys.stderr)
            break
        print(f"[{number + 1}/{len(missing)}] group {cell['group']}, blocks of {cell['block']}, kept {cell['kept']}", file=sys.stderr, flush=True)
        results.append(measure(folder, manifest, cell, count))
        for name, problem in results[-1]["wrong"].items():
            print(f"  {results[-1]['schedules'][name]}: {problem}", file=sys.stderr, flush=True)
        write(results)
    return results


# ---------------------------------------------------------------------------------------------------------------------
# What comes of it


def get_orders(result):
    """Of every order the fastest as measured: (ms predicted, ms measured), by name."""
    best = {}
    for name, ms in result["ms"].items():
        order = get_kind(result["schedules"][name])[0]
        if order not in best or ms < best[order][1]:
            best[order] = result["predicted_ms"][name], ms
    return best


def get_loss(result):
    """How much longer the chosen schedule takes than the fastest; nothing if it does not run."""
    ms = result["ms"]
    return ms[result["chosen"]] / min(ms.values()) - 1 if result["chosen"] in ms else None


def to_table(results):
    orders = ("head_packed", "union", "key_outer")
    lines = ["| group | block | agreement | chosen | " + " | ".join(f"{o}: predicted / measured" for o in orders) + " | loss |", "| --- " * 8 + "|"]
    for r in results:
        best, loss = get_orders(r), get_loss(r)
        fastest = min(best, key=lambda order: best[order][1])
        cells = [("{:.2f} / **{:.2f}**" if o == fastest else "{:.2f} / {:.2f}").format(*best[o]) if o in best else "" for o in orders]
        said = "wrong" if loss is None else f"{loss:.0%}"
        lines.append(f"| {r['group']} | {r['block']} | {r['measured_agreement']:.2f} | {get_kind(r['schedules'][r['chosen']])[0]} | {' | '.join(cells)} | {said} |")
    losses = [loss for loss in map(get_loss, results) if loss is not None]
    errors = [abs(r["predicted_ms"][name] / ms - 1) for r in results for name, ms in r["ms"].items()]
    if losses:
        lines.append(f"\n{len(results)} cells: the chosen schedule loses {max(losses):.0%} at most, more than 10 % in {sum(x > 0.1 for x in losses)}; "
                     f"{len(errors)} predictions are off by {sum(errors) / len(errors):.1%} in the mean, {max(errors):.0%} at most.")
    return "\n".join(lines) + "\n"


def main():
    words = sys.argv[1:]
    command = words.pop(0) if words and words[0] in ("prepare", "time") else "all"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?" if command == "all" else None, default=pathlib.Path("orders"))
    parser.add_argument("--tokens", type=int, default=32768, help="queries and keys, a multiple of 512 (default 32768)")
    parser.add_argument("--count", type=int, default=10, help="runs of which the median counts, fewer where they take long (default 10)")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no other cell is begun")
    parser.add_argument("--json", type=pathlib.Path, help="where results are kept")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the table there")
    options = parser.parse_args(words)
    if command != "time":
        prepare(options.folder, options.tokens)
    if command == "prepare":
        return
    known = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    write = (lambda results: options.json.write_text(json.dumps(results, indent=1))) if options.json else (lambda results: None)
    table = to_table(time_cells(options.folder, known, options.count, options.limit, write))
    print(table)
    if options.markdown:
        options.markdown.write_text(table)


if __name__ == "__main__":
    main()
