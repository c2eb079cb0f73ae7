# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the fastest schedule of every attention op of a pattern, by timing.

    ssa-tune nsa.mlir -o tuning.json                       on a machine that has both the compiler and the GPU
    ssa-opt nsa.mlir --emit=bundle --tuning=tuning.json -o nsa.json

    ssa-tune prepare nsa.mlir --chip=sm_90a nsa-tuning     where the compiler is: bundles of all candidates
    ssa-tune time nsa-tuning -o tuning.json                where the GPU is: needs torch, but no compiler

The candidates are the legal schedules that `ssa-opt --explain=json` lists, those that it predicts to be fastest first. Each is compiled
into the whole function and timed there on random inputs, median of several runs; one that fails to compile, or gives other results than
the others, is reported and left out. The file says for every op what was fastest on which chip at which sizes; docs/explain.md describes it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

FORMAT, VERSION = "ssa-tuning", 1
MANIFEST = "candidates.json"


class TuneError(Exception):
    """What went wrong, for people."""


def find_compiler() -> str:
    """The path of ssa-opt: what SSA_OPT names, in PATH, or in the build tree that the package is in."""
    named = os.environ.get("SSA_OPT")
    built = Path(__file__).resolve().parents[2] / "build" / "bin" / "ssa-opt"
    path = named or shutil.which("ssa-opt") or (str(built) if built.exists() else None)
    if not path:
        raise TuneError("there is no ssa-opt in PATH; install ssa, or set SSA_OPT to its path")
    return path


def run_compiler(*arguments: str) -> str:
    """What ssa-opt writes."""
    try:
        done = subprocess.run([find_compiler(), *arguments], capture_output=True, text=True)
    except OSError as error:
        raise TuneError(f"cannot run ssa-opt: {error}") from error
    if done.returncode:
        raise TuneError(done.stderr.strip() or f"ssa-opt ended with code {done.returncode}")
    return done.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Tuning files


def read_tuning(path: "str | Path") -> "list[dict[str, Any]]":
    """The entries of a tuning file; an error says what is wrong with it."""
    try:
        content = json.loads(Path(path).read_text())
    except OSError as error:
        raise TuneError(f"tuning file '{path}' cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise TuneError(f"tuning file '{path}' is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise TuneError(f"tuning file '{path}' is none: expected an object with 'format' \"{FORMAT}\" and 'version' {VERSION}")
    entries = content.get("entries")
    if not isinstance(entries, list):
        raise TuneError(f"tuning file '{path}' has no list 'entries'")
    for i, entry in enumerate(entries):
        texts = isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in ("chip", "op", "schedule"))
        if not texts or not all(isinstance(entry.get(name), int) and entry[name] >= 1 for name in ("queries", "tokens")):
            raise TuneError(
                f"tuning file '{path}' has an entry {i} that lacks one of 'chip', 'op', 'schedule' (text), "
                "'queries', 'tokens' (numbers of at least 1)"
            )
    return entries


def write_tuning(path: "str | Path", entries: "list[dict[str, Any]]") -> None:
    """Writes entries, one a line."""
    lines = ",\n".join("  " + json.dumps(entry) for entry in entries)
    Path(path).write_text(f'{{"format": "{FORMAT}", "version": {VERSION}, "entries": [\n{lines}\n]}}\n')


def merge_entries(old: "list[dict[str, Any]]", new: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """What is new in place of what was said of the same op on the same chip at the same sizes."""

    def place(entry: "dict[str, Any]") -> tuple:
        return tuple(entry[name] for name in ("chip", "op", "queries", "tokens"))

    replaced = {place(entry) for entry in new}
    return [entry for entry in old if place(entry) not in replaced] + new


# ---------------------------------------------------------------------------------------------------------------------
# Candidates


def list_candidates(explanation: "dict[str, Any]", entry: "str | None", limit: int) -> "list[dict[str, Any]]":
    """Schedules to time: (entry, key of the op, schedule) for each attention op that has one, the predicted best first."""
    known = [e["entry"] for e in explanation["entries"]]
    if entry and entry not in known:
        raise TuneError(f"there is no function '{entry}'; the file has {', '.join(known)}")
    found, seen = [], set()
    for one in explanation["entries"]:
        for choice in one["choices"]:
            if choice["key"] in seen or (entry and one["entry"] != entry):
                continue
            seen.add(choice["key"])
            schedules = [choice["chosen"]] + [s for s in choice["schedules"] if s["schedule"] != choice["chosen"]["schedule"]]
            for number, schedule in enumerate(schedules[:limit]):
                found.append({"entry": one["entry"], "op": choice["key"], "schedule": schedule["schedule"], "predicted_ms": schedule["ms"],
                              "is_chosen": number == 0})
    if not found:
        raise TuneError("there is nothing to tune: no attention op has a schedule")
    return found


def prepare(pattern: str, folder: Path, chip: str, sizes: str, agreement: float, entry: "str | None", limit: int) -> None:
    """Compiles all candidates into `folder`."""
    common = [f"--chip={chip}", f"--sizes={sizes}"] + ([f"--agreement={agreement}"] if agreement >= 0 else [])
    explanation = json.loads(run_compiler(pattern, "--explain=json", *common))
    assumed = explanation["assumed"]
    candidates = list_candidates(explanation, entry, limit)
    folder.mkdir(parents=True, exist_ok=True)
    for number, candidate in enumerate(candidates):
        print(f"\rcompiling {number + 1} of {len(candidates)}", end="", file=sys.stderr, flush=True)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            write_tuning(file.name, [{"chip": chip, **{name: candidate[name] for name in ("op", "schedule")},
                                      "queries": assumed["queries"], "tokens": assumed["tokens"]}])
            try:
                text = run_compiler(pattern, "--emit=bundle", f"--tuning={file.name}", *common)
            except TuneError as error:
                candidate["problem"] = str(error)
                continue
        candidate["bundle"] = f"candidate-{number}.json"
        (folder / candidate["bundle"]).write_text(text)
    print(file=sys.stderr)
    arguments = {e["entry"]: e["arguments"] for e in explanation["entries"]}
    content = {"chip": chip, "assumed": assumed, "arguments": arguments, "candidates": candidates}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1))


# ---------------------------------------------------------------------------------------------------------------------
# Inputs


def parse_type(text: str) -> str:
    """The element type of `tensor<1x?x3xbf16>`, or the type itself if it is none of a tensor."""
    match = re.fullmatch(r"tensor<(?:(?:\d+|\?)x)*([A-Za-z]\w*)>", text)
    return match[1] if match else text


def make_list(torch: Any, shape: "list[int]", key_block: int, query_block: int, tokens: int, queries: int, agreement: float, generator: Any) -> Any:
    """Lists as a causal selector makes them: each row's own block and random earlier ones, ascending; a row takes each of its numbers from the
    row before with probability `agreement`, else anew."""
    batch, heads, rows, width = shape
    last = torch.arange(rows, device=generator.device) * query_block + query_block - 1 + (tokens - queries)
    own = (last.clamp(0, tokens - 1) // key_block)[:, None]
    draws = torch.rand((batch, heads, rows, width), device=generator.device, generator=generator)
    anew = torch.rand((batch, heads, rows, width), device=generator.device, generator=generator) >= agreement
    anew[:, :, 0] = True
    row = torch.arange(rows, device=generator.device)[:, None]
    since = torch.where(anew, row, torch.zeros_like(row)).cummax(2).values
    numbers = (draws.gather(2, since) * own[since, 0].clamp(min=1)).int()
    numbers[..., 0] = own[:, 0].int()
    return numbers.sort(-1).values


def make_argument(torch: Any, argument: "dict[str, Any]", assumed: "dict[str, Any]", generator: Any) -> Any:
    """A random argument of the shape that the compiler assumed."""
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64,
             "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, "i32": torch.int32, "i64": torch.int64, "i8": torch.int8}
    element = parse_type(argument["type"])
    if "shape" not in argument:
        return 1 if element.startswith("i") else 1.0
    if "list" in argument:
        return make_list(torch, argument["shape"], argument["list"]["key_block"], argument["list"]["query_block"], assumed["tokens"],
                         assumed["queries"], max(assumed.get("agreement", 0.0), 0.0), generator)
    if element not in types:
        raise TuneError(f"argument '{argument['name']}' of type {argument['type']} cannot be made up")
    if element.startswith("i"):
        return torch.zeros(argument["shape"], dtype=types[element], device=generator.device)
    return torch.randn(argument["shape"], device=generator.device, generator=generator).to(types[element])


# ---------------------------------------------------------------------------------------------------------------------
# Timing


def median_ms(torch: Any, run: "Callable[[], Any]", count: int) -> float:
    for _ in range(2):
        run()
    times = []
    for _ in range(count):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def describe(schedule: str) -> str:
    return schedule.removeprefix("#ssa.schedule<").removesuffix(">")


def differ(torch: Any, a: Any, b: Any) -> bool:
    """Whether results are further apart than roundings of 16 bits explain."""
    pairs = zip(a, b) if isinstance(a, (tuple, list)) else [(a, b)]
    return any(x.dtype.is_floating_point and not torch.allclose(x.float(), y.float(), rtol=3e-2, atol=3e-2, equal_nan=True) for x, y in pairs)


def time_candidates(torch: Any, folder: Path, manifest: "dict[str, Any]", count: int) -> "Iterator[dict[str, Any]]":
    """The candidates with `ms`, or with `problem`; progress goes to standard error."""
    import ssa

    expected: "dict[str, Any]" = {}
    total = len(manifest["candidates"])
    for number, candidate in enumerate(manifest["candidates"]):
        label = f"[{number + 1}/{total}] {candidate['entry']}: {describe(candidate['schedule'])}"
        if "problem" not in candidate:
            try:
                generator = torch.Generator(device="cuda").manual_seed(0)
                arguments = [make_argument(torch, a, manifest["assumed"], generator) for a in manifest["arguments"][candidate["entry"]]]
                function = ssa.load(folder / candidate["bundle"])[candidate["entry"]]
                result = function(*arguments)
                if differ(torch, expected.setdefault(candidate["entry"], result), result):
                    raise TuneError("gives other results than the schedule chosen without tuning")
                candidate["ms"] = median_ms(torch, lambda: function(*arguments), count)
            except Exception as error:  # one candidate does not stop the rest
                candidate["problem"] = f"{type(error).__name__}: {error}"
        said = f"{candidate['ms']:.4f} ms, predicted {candidate['predicted_ms']:.4f} for the op" if "ms" in candidate else candidate["problem"].splitlines()[0]
        print(f"{label}: {said}", file=sys.stderr, flush=True)
        yield candidate


def choose(manifest: "dict[str, Any]", timed: "list[dict[str, Any]]", device: str) -> "list[dict[str, Any]]":
    """Entries for a tuning file: the fastest schedule of every op. A later one must be faster by more than timing varies."""
    best: "dict[str, dict[str, Any]]" = {}
    for candidate in timed:
        known = best.get(candidate["op"])
        if "ms" in candidate and (known is None or candidate["ms"] < 0.99 * known["ms"]):
            best[candidate["op"]] = candidate
    assumed = manifest["assumed"]
    return [{"chip": manifest["chip"], "op": op, "queries": assumed["queries"], "tokens": assumed["tokens"], "schedule": c["schedule"],
             "ms": round(c["ms"], 4), "device": device} for op, c in best.items()]


def time_folder(folder: Path, output: str, count: int) -> None:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise TuneError(f"'{folder}' holds no candidates; make them with 'ssa-tune prepare': {error}") from error
    try:
        import torch
    except ImportError as error:
        raise TuneError("timing needs torch, which makes inputs and measures") from error
    if not torch.cuda.is_available():
        raise TuneError("timing needs a GPU, but torch finds none")
    entries = choose(manifest, list(time_candidates(torch, folder, manifest, count)), torch.cuda.get_device_name(0))
    if not entries:
        raise TuneError("no candidate could be timed")
    old = read_tuning(output) if Path(output).exists() else []
    write_tuning(output, merge_entries(old, entries))
    print(f"{output}: {len(entries)} of {len({c['op'] for c in manifest['candidates']})} ops tuned", file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------------------
# Command line


def main(arguments: "list[str] | None" = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    command = words[0] if words and words[0] in ("prepare", "time") else "tune"
    parser = argparse.ArgumentParser(prog="ssa-tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    if command != "tune":
        words = words[1:]
    if command != "time":
        parser.add_argument("pattern", help="a file in the ssa dialect")
        parser.add_argument("--chip", default="sm_90a")
        parser.add_argument("--sizes", default="131072", help="as for ssa-opt --explain")
        parser.add_argument("--agreement", type=float, default=-1.0, help="share that lists of neighbouring queries have in common; default: random")
        parser.add_argument("--entry", help="only this function")
        parser.add_argument("--limit", type=int, default=12, help="candidates for an op (default 12)")
    if command != "tune":
        parser.add_argument("folder", type=Path, help="where candidates are")
    if command != "prepare":
        parser.add_argument("-o", "--output", default="tuning.json", help="tuning file; what it says of other ops stays")
        parser.add_argument("--count", type=int, default=10, help="runs of which the median counts (default 10)")
    options = parser.parse_args(words)
    try:
        if command == "time":
            time_folder(options.folder, options.output, options.count)
            return 0
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.folder if command == "prepare" else Path(scratch)
            prepare(options.pattern, folder, options.chip, options.sizes, options.agreement, options.entry, options.limit)
            if command == "tune":
                time_folder(folder, options.output, options.count)
    except TuneError as error:
        print(f"ssa-tune: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
