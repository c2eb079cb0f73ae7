#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the same bundles with the same inputs in the simulator and on a GPU, and compares the results bit by bit.

    python3 scripts/compare_simulator.py make FOLDER [--chips sm_90a,sm_90] [--most N]    here: bundles, and what the simulator gives
    python3 compare_simulator.py run FOLDER [--markdown FILE]                             there: with torch and the driver; no compiler

`make` copies this script and what it needs into FOLDER. The patterns are those of gpu_patterns.py. Bits are equal where the instruction set
defines them; sums inside of matrix instructions and ex2, lg2, tanh are not defined to the last bit, so results that go through them are
compared within the bounds of the GPU tests. Lists are compared exactly, scores and rows in units of the bound.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

from gpu_patterns import PATTERNS  # noqa: E402

SIZES = ((1, 37, 67), (2, 9, 200))
EPSILON = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-12}


def digest(arrays):
    state = hashlib.sha256()
    for name, x in arrays.items():
        state.update(f"{name} {x.dtype.str} {x.shape};".encode())
        state.update(np.ascontiguousarray(x).tobytes())
    return state.hexdigest()


# ---------------------------------------------------------------------------------------------------------------------
# Here


def simulate(bundle, pattern, arrays, chip, tool):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, x in arrays.items():
            np.save(folder / f"{name}.npy", x)
        outs = [folder / f"out{i}.npy" for i in range(len(pattern.results.split()))]
        command = [tool("ssa-run"), str(bundle), f"--entry={pattern.entry}", "--device=sim", f"--chip={chip}"]
        command += ["--in", ",".join(str(folder / f"{name}.npy") for name in arrays), "--out", ",".join(map(str, outs))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{pattern.name} on {chip}: {done.stderr}")
        return [np.load(out) for out in outs]


def make(out, chips, most, words):
    from make_gpu_tests import compile_pattern, source_of, tool

    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for pattern in PATTERNS:
        if words and not any(word in pattern.name for word in words):
            continue
        for chip in chips:
            name = f"{len(rows)}.json"
            good, _, _ = compile_pattern(source_of(pattern), [chip], out / name)
            if not good:
                continue
            row = {"pattern": pattern.name, "chip": chip, "bundle": name + ".gz", "cases": []}
            for number, size in enumerate(SIZES):
                if size not in pattern.sizes and pattern.sizes[0][0] != 1:
                    continue
                arrays = pattern.make(*size, seed=number)
                results = simulate(out / name, pattern, arrays, chip, tool)
                path = f"{len(rows)}-{number}.npz"
                packed = {}
                for i, x in enumerate(results):
                    narrow = x.dtype == np.float32 and not (x.view(np.uint32) & 0xFFFF).any()
                    packed[f"{'b' if narrow else 'x'}{i}"] = (x.view(np.uint32) >> 16).astype(np.uint16) if narrow else x
                np.savez_compressed(out / path, **packed)
                row["cases"].append({"size": size, "seed": number, "inputs": digest(arrays), "results": path})
            (out / row["bundle"]).write_bytes(gzip.compress((out / name).read_bytes()))
            (out / name).unlink()
            rows.append(row)
            print(f"{len(rows)}: {pattern.name} on {chip}", flush=True)
        if most and len(rows) >= most:
            break
    (out / "rows.json").write_text(json.dumps(rows))
    for path in (pathlib.Path(__file__), *HERE.glob("gpu_*.py"), HERE.parent / "examples/generate.py", *HERE.parent.glob("examples/*.mlir")):
        shutil.copy(path, out / path.name)


# ---------------------------------------------------------------------------------------------------------------------
# There


def unpack(path):
    with np.load(path) as stored:
        results = {}
        for key in stored.files:
            x = stored[key]
            results[int(key[1:])] = (x.astype(np.uint32) << 16).view(np.float32) if key[0] == "b" else x
    return [results[i] for i in sorted(results)]


def compare(pattern, arrays, got, expected, dtypes):
    """Elements that differ in their bits, elements, and the largest difference in units of the bound."""
    largest = max((float(np.abs(arrays[n][np.isfinite(arrays[n])]).max(initial=0)) for n in pattern.values.split() if n in arrays), default=0.0)
    differ = count = 0
    error = 0.0
    for kind, a, b, dtype in zip(pattern.results.split(), got, expected, dtypes):
        if a.shape != b.shape:
            return -1, 0, np.inf
        count += a.size
        if kind == "list" or a.dtype.kind != "f":
            differ += int((a != b).sum())
            error = max(error, np.inf if (a != b).any() else 0)
            continue
        same = (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))
        differ += int((~same).sum())
        x, y = a.astype(np.float64), b.astype(np.float64)
        size = np.abs(np.where(np.isfinite(y), y, 0))
        scale = pattern.branches * largest if kind == "rows" else size.max(initial=0)
        bound = 2e-3 + 1e-3 * size if kind == "lse" else EPSILON.get(dtype, 2.0**-12) * (scale + size)
        finite = np.isfinite(x) & np.isfinite(y)
        special = (np.isfinite(x) != np.isfinite(y)).any()
        ratio = np.where(finite, np.abs(np.where(finite, x, 0) - np.where(finite, y, 0)), 0) / np.maximum(bound, 1e-300)
        error = max(error, np.inf if special else float(ratio.max(initial=0)))
    return differ, count, error


def run(folder, markdown):
    import torch

    import ssa

    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i32": torch.int32, "i1": torch.bool,
             "f8e4m3fn": torch.float8_e4m3fn, "i64": torch.int64, "f64": torch.float64}
    lines = ["| pattern | code for | elements | bits differ | largest error / bound | |", "| --- | --- | --- | --- | --- | --- |"]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    for row in json.loads((folder / "rows.json").read_text()):
        pattern = next(p for p in PATTERNS if p.name == row["pattern"])
        text = gzip.decompress((folder / row["bundle"]).read_bytes()).decode()
        plan = next(p for p in json.loads(text)["targets"][0]["entries"] if p["entry"] == pattern.entry)
        differ = count = 0
        error, note = 0.0, ""
        try:
            function = ssa.Bundle(text, row["bundle"])[pattern.entry]
            for case in row["cases"]:
                arrays = pattern.make(*case["size"], seed=case["seed"])
                if digest(arrays) != case["inputs"]:
                    note = "other inputs"
                    continue
                tensors = [torch.from_numpy(np.ascontiguousarray(x)).cuda().to(types[a["dtype"]]) for x, a in zip(arrays.values(), plan["arguments"])]
                results = function(*tensors)
                results = results if isinstance(results, tuple) else (results,)
                torch.cuda.synchronize()
                got = [(r.float() if r.dtype.is_floating_point else r).cpu().numpy() for r in results]
                d, c, e = compare(pattern, arrays, got, unpack(folder / case["results"]), [r["dtype"] for r in plan["results"]])
                differ, count, error = differ + d, count + c, max(error, e)
        except Exception as problem:  # the table shows it and goes on
            note = f"{type(problem).__name__}: {problem}".split("\n")[0][:90]
        verdict = note or ("same bits" if not differ else "within the bound" if error <= 1 else "DIFFERENT")
        lines.append(f"| {pattern.name} | {row['chip']} | {count} | {differ} | {error:.3f} | {verdict} |")
        print(lines[-1], flush=True)
    if markdown:
        markdown.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=("make", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("words", nargs="*", help="only patterns whose name has one of these")
    parser.add_argument("--chips", default="sm_90a,sm_90")
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    if options.mode == "make":
        make(options.folder, options.chips.split(","), options.most, options.words)
    else:
        run(options.folder, options.markdown)


if __name__ == "__main__":
    main()
