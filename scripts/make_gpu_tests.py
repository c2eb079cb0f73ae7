#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the folder that gpu_test.py runs on a machine with a GPU: bundles, what is right, and the scripts themselves.

    scripts/make_gpu_tests.py OUT [--chips=sm_90a,sm_100] [WORD ..]

Every pattern of gpu_patterns.py (or those with one of the words in their name) is compiled by ssa-opt, and evaluated
for its cases by ssa-run's interpreter. A pattern that the compiler refuses has no kernel yet, and is noted with the
reason. What is in OUT already is kept if neither the pattern nor the interpreter's answer to it can have changed: its
text, its sizes. OUT needs nothing else: copy it to the other machine and run

    python3 OUT/gpu_test.py

Tools are taken from build/bin, else from PATH (SSA_OPT and SSA_RUN name others).
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from gpu_patterns import PATTERNS  # noqa: E402

ELEMENTS_KEPT = 24576  # of a result; of a larger one a sample of its rows, at least 24
FORMAT = 4


def tool(name):
    built = ROOT / "build/bin" / name
    return os.environ.get(name.upper().replace("-", "_")) or (str(built) if built.exists() else name)


def only(text, entry):
    """The module with nothing but a function and those that it uses."""
    blocks = re.findall(r"^func\.func .*?^}\n", text, re.M | re.S)
    functions = {re.search(r"@([\w.$-]+)", block)[1]: block for block in blocks}
    wanted, pending = set(), [entry]
    while pending:
        name = pending.pop()
        if name in functions and name not in wanted:
            wanted.add(name)
            pending += re.findall(r"@([\w.$-]+)", functions[name])
    for name, block in functions.items():
        if name not in wanted:
            text = text.replace(block, "")
    return text


def source_of(pattern):
    text = pattern.source if "\n" in pattern.source else (ROOT / "examples" / pattern.source).read_text()
    return only(text, pattern.entry)


def compile_pattern(source, chips, path, flags=()):
    """Compiles for each chip that has kernels for it. Returns these, why others have none, and for which the compiler
    died."""
    missing, wrong, good = {}, {}, []
    for chip in chips:
        done = subprocess.run(
            [tool("ssa-opt"), "-", "--emit=bundle", f"--chip={chip}", "-o", str(path), *flags],
            input=source,
            text=True,
            capture_output=True,
        )
        errors = re.findall(r"error: (.*)", done.stderr)
        if not done.returncode:
            good.append(chip)
        elif done.returncode == 1 and errors:
            missing[chip] = "; ".join(dict.fromkeys(errors))
        else:
            wrong[chip] = done.stderr.strip()[-2000:] or f"exit code {done.returncode}"
    if good:
        subprocess.run(
            [tool("ssa-opt"), "-", "--emit=bundle", f"--chip={','.join(good)}", "-o", str(path), *flags],
            input=source,
            text=True,
            capture_output=True,
            check=True,
        )
    else:
        path.unlink(missing_ok=True)
    return good, missing, wrong


def digest(arrays):
    """Of the bytes of arguments: the other machine makes them again, and must make the same."""
    state = hashlib.sha256()
    for name, x in arrays.items():
        state.update(f"{name} {x.dtype.str} {x.shape};".encode())
        state.update(np.ascontiguousarray(x).tobytes())
    return state.hexdigest()


def evaluate(source, pattern, arrays, count):
    """The interpreter's `count` results."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "in.mlir").write_text(source)
        for name, x in arrays.items():
            np.save(folder / f"{name}.npy", x)
        outs = [folder / f"out{i}.npy" for i in range(count)]
        command = [tool("ssa-run"), str(folder / "in.mlir"), f"--entry={pattern.entry}"]
        command += ["--in", ",".join(str(folder / f"{name}.npy") for name in arrays), "--out", ",".join(map(str, outs))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{pattern.name}: ssa-run: {done.stderr.strip()}")
        return [np.load(out) for out in outs]


def sample(result, kind, seed):
    """Some rows of a result (all, of small ones), and their numbers; rows run along the last axis of all kinds but
    lse."""
    width = 1 if kind == "lse" or not result.shape else max(result.shape[-1], 1)
    flat = result.reshape(result.size // width, width)
    count = len(flat)
    most = max(ELEMENTS_KEPT // flat.shape[1], 24)
    chosen = np.arange(count)
    if count > most:
        chosen[1 : most - 1] = np.sort(1 + np.random.default_rng(seed).choice(count - 2, most - 2, replace=False))
        chosen = np.append(chosen[: most - 1], count - 1)
    return chosen.astype(np.int64), flat[chosen]


def facts(result):
    """Of a whole result: how many NaN, inf, -inf it has; the sum, of integers."""
    if result.dtype.kind != "f":
        return np.array([0, 0, 0, result.astype(np.int64).sum()])
    return np.array([np.isnan(result).sum(), (result == np.inf).sum(), (result == -np.inf).sum(), 0])


def scores_source(pattern, source):
    """The module that returns what the only `ssa.topk` of a pattern selects from, in place of the list; and its threshold. None of other
    patterns: their rows may differ as far as `outliers` says."""
    topks = re.findall(r"ssa\.topk (%\w+) ([^:\n]*): ([^,\n]*?xf32>|!\w+),", source)
    if pattern.results != "list" or not pattern.outliers or len(topks) != 1 or "top_p" in topks[0][1]:
        return None
    value, attributes, kind = topks[0]
    blocks = []
    for block in re.split(r"(?=^func\.func)", source, flags=re.M):
        if f"ssa.topk {value} " in block:
            block = re.sub(r"return %\w+ : .*", f"return {value} : {kind}", block)
            block = re.sub(r"(?m)^(func\.func .*) -> \S.* \{$", rf"\1 -> {kind} {{", block)
        elif f"@{pattern.entry}(" in block:
            block = re.sub(r"(%\w+)( = func\.call .*) -> !\w+\n", rf"\1\2 -> {kind}\n", block)
            block = re.sub(r"return %\w+ : .*", f"return {re.search(r'(%[a-z]+) = func.call', block)[1]} : {kind}", block)
            block = "\n".join(line for line in block.split("\n") if "ssa.to_indices" not in line)
            block = re.sub(r"(?m)^(func\.func .*) -> \S.* \{$", rf"\1 -> {kind} {{", block)
        blocks.append(block)
    threshold = re.search(r"threshold = ([\d.]+)", attributes)
    return "".join(blocks), float(threshold[1]) if threshold else None


def near_ties(scores, lists, threshold):
    """Entries that docs/dialect.md lets a list have or not: (row, number) of those whose score is within 1e-3 of the best one that is not in
    the list, where that is full, or of the threshold."""
    found = []
    for row, (score, entries) in enumerate(zip(scores.astype(np.float64), lists)):
        chosen = np.zeros(len(score), bool)
        chosen[entries[entries >= 0]] = True
        left = np.where(chosen | ~np.isfinite(score), -np.inf, score).max(initial=-np.inf)
        near = np.zeros(len(score), bool)
        for cut in ([left] if (entries >= 0).all() and np.isfinite(left) else []) + ([] if threshold is None else [threshold]):
            near |= np.isfinite(score) & (np.abs(score - cut) <= 1e-3 * abs(cut))
        found += [(row, number) for number in np.flatnonzero(near)]
    return np.array(found, np.int32).reshape(-1, 2)


def make_case(pattern, source, size, number, path):
    b, m, n = size
    arrays = pattern.make(b, m, n, seed=number)
    started = time.time()
    results = evaluate(source, pattern, arrays, len(pattern.results.split()))
    kept = {}
    for i, (kind, result) in enumerate(zip(pattern.results.split(), results)):
        rows, values = sample(result, kind, seed=1000 + number)
        as_bf16 = values.dtype == np.float32 and not (values.view(np.uint32) & 0xFFFF).any()
        kept.update(
            {
                f"shape{i}": np.array(result.shape, np.int64),
                f"rows{i}": rows,
                f"facts{i}": facts(result),
                f"values{i}": (values.view(np.uint32) >> 16).astype(np.uint16) if as_bf16 else values,
            }
        )
    of_scores = scores_source(pattern, source)
    if of_scores:
        (scores,) = evaluate(of_scores[0], pattern, arrays, 1)
        scores = scores.reshape(int(np.prod(scores.shape[:-1])), scores.shape[-1])[kept["rows0"]]
        kept["near0"] = near_ties(scores, kept["values0"], of_scores[1])
        kept["counts_vary0"] = np.array(of_scores[1] is not None)
    np.savez_compressed(path, **kept)
    return {
        "size": list(size),
        "seed": number,
        "file": path.name,
        "inputs": digest(arrays),
        "seconds": round(time.time() - started, 2),
    }


def make_row(pattern, out, chips, known, flags):
    source = source_of(pattern)
    slug = re.sub(r"[^a-zA-Z0-9]+", "-", pattern.name).strip("-")
    good, missing, wrong = compile_pattern(source, chips, out / f"{slug}.json", flags)
    row = {
        "name": pattern.name,
        "entry": pattern.entry,
        "bundle": f"{slug}.json" if good else None,
        "chips": good,
        "missing": missing,
        "wrong": wrong,
        "key": hashlib.sha256(f"{FORMAT} {source} {pattern.results}".encode()).hexdigest(),
        "cases": [],
    }
    before = {tuple(case["size"]): case for case in known.get("cases", ())} if known.get("key") == row["key"] else {}
    for number, size in enumerate(pattern.sizes):
        path = out / f"{slug}-{number}.npz"
        case = before.get(size)
        if not case or case["file"] != path.name or not path.exists():
            case = make_case(pattern, source, size, number, path)
        row["cases"].append(case)
    return row


def copy_scripts(out):
    for path in (*ROOT.glob("scripts/gpu_*.py"), ROOT / "examples/generate.py", *ROOT.glob("examples/*.mlir")):
        shutil.copy(path, out)
    shutil.rmtree(out / "ssa", ignore_errors=True)
    shutil.copytree(ROOT / "python/ssa", out / "ssa", ignore=shutil.ignore_patterns("__pycache__"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument(
        "words", nargs="*", help="only patterns whose name has one of these words; others stay as they are"
    )
    parser.add_argument("--chips", default="sm_90a,sm_100", help="comma-separated (sm_90a,sm_100)")
    parser.add_argument("--every-lane-arrives", action="store_true", help="kernels for compute-sanitizer's racecheck")
    options = parser.parse_intermixed_args()
    flags = ["--every-lane-arrives"] if options.every_lane_arrives else []
    out, chips = options.out, options.chips.split(",")
    out.mkdir(parents=True, exist_ok=True)
    manifest = out / "manifest.json"
    rows = {row["name"]: row for row in json.loads(manifest.read_text())["rows"]} if manifest.exists() else {}
    known_names = {pattern.name for pattern in PATTERNS}
    rows = {name: row for name, row in rows.items() if name in known_names}
    started = time.time()
    for pattern in PATTERNS:
        if options.words and not any(word in pattern.name for word in options.words):
            continue
        rows[pattern.name] = row = make_row(pattern, out, chips, rows.get(pattern.name, {}), flags)
        state = (
            "for " + ", ".join(row["chips"])
            if row["chips"]
            else "no kernel yet" if not row["wrong"] else "THE COMPILER DIED"
        )
        print(f"[{time.time() - started:5.0f}s] {pattern.name}: {state}, {len(row['cases'])} cases", flush=True)
        for chip, message in {**row["missing"], **row["wrong"]}.items():
            print(f"         {chip}: {message.splitlines()[0]}", flush=True)
        ordered = [rows[p.name] for p in PATTERNS if p.name in rows]
        manifest.write_text(json.dumps({"format": FORMAT, "chips": chips, "rows": ordered}, indent=1))
    copy_scripts(out)
    total = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    counts = [
        sum(bool(row["chips"]) for row in rows.values()),
        sum(not row["chips"] and not row["wrong"] for row in rows.values()),
        sum(bool(row["wrong"]) for row in rows.values()),
    ]
    print(
        f"{counts[0]} patterns compiled, {counts[1]} have no kernel yet, the compiler died of {counts[2]}; "
        f"{total / 2**20:.1f} MiB in {out}"
    )
    print(f"run: python3 {out / 'gpu_test.py'}")
    return bool(counts[2])


if __name__ == "__main__":
    sys.exit(main())
