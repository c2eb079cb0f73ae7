# RUN: %python %s --sample 4 --quick --least 0.7
"""Removes or weakens one synchronizing instruction at a time in our own kernels, and counts how many of these mutants the simulator catches.

    mutants.py [--chips sm_90a,sm_100,sm_100a] [--sample N] [--quick] [--least PART] [--missed] [PATTERN ..]

A mutant is caught by a fault, or by a result with other bits. Not every one can be: a barrier may stand beside another one that does the same, a
group of copies may be empty, and what a barrier guards may not happen with the inputs at hand. Instructions that are not executed are left out (a
`trap` in their place changes nothing); others that are missed are listed with --missed. On sm_100a only kernels with `tcgen05` are changed: the
others are those of sm_100.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "test/Support")]

from gpu_patterns import PATTERNS
from make_gpu_tests import compile_pattern, source_of
from simulator import kinds_of_faults, simulate, with_few_blocks

# Pattern and sizes: all families of kernels. What the first size misses is tried with the second, at which every loop takes several steps.
CASES = {
    "window_sink": ((1, 5, 260), (2, 150, 300)),
    "attend at 16 x 64, group 4": ((1, 5, 700), (1, 40, 300)),
    "pair, all keys, 3 heads": ((1, 5, 260), (1, 70, 300)),
    "pair, three pieces of values": ((1, 5, 260), (1, 70, 300)),
    "moba_select": ((1, 130, 400),),
    "nsa_select": ((1, 20, 300), (1, 70, 300)),
    "low_rank_select": ((1, 20, 200), (1, 150, 300)),
    "hisa_select": ((1, 5, 300), (1, 40, 300)),
    "vertical_slash_select": ((1, 40, 70), (1, 150, 200)),
    "topk 1000 of long rows": ((1, 1, 300), (1, 6, 300)),
    "sort 1000, few numbers": ((1, 3, 300), (1, 9, 300)),
    "union 64 and 100": ((1, 3, 300), (1, 9, 300)),
    "merge with sinks": ((1, 5, 64),),
    "project bf16": ((1, 5, 64), (1, 300, 64)),
    "pool mean 64": ((1, 5, 200),),
    "route of an indexer, f8": ((1, 5, 200), (1, 150, 300)),
}
SYNC = re.compile(r"\b(bar\.sync|bar\.warp\.sync|barrier\.|cp\.async\.(?:wait|commit|mbarrier)|fence\.proxy|wgmma\.(?:fence|commit|wait)|mbarrier\.(?:arrive|try_wait|init)|tcgen05\.(?:fence|wait|commit))")


def mutate(line):
    """What may stand in place of a line: nothing, or less."""
    if "try_wait" in line:
        yield "does not wait", re.sub(r"mbarrier\.try_wait\S*\s+([^,]+),[^;]*;", r"setp.eq.u32 \1, 0, 0;", line)
        return
    wait = re.search(r"wait_group(?:\.sync\.aligned)?\s+(\d+)", line)
    yield "removed", SYNC.sub("\0", line, count=1).split("\0")[0] + line.partition(";")[2]
    if wait:
        yield "waits for one group less", line[: wait.start(1)] + str(int(wait[1]) + 1) + line[wait.end(1) :]


def same(a, b):
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b))


def kernel_at(lines, number):
    while number and ".entry" not in lines[number]:
        number -= 1
    return re.search(r"\.entry (\w+)", lines[number])[1] if number else ""


# Instructions that touch memory or decide what is executed; between two barriers without one of these, the first orders what the second does.
ACTS = re.compile(r"^\s*(?:@\S+\s+)?(?:ld\.(?!param)|st\.|atom|red\.|cp\.|ldmatrix|stmatrix|wgmma|tcgen05|mbarrier|bra|ret|[\w$]+:(?!:))")
# What makes the writes of a thread known or used, or decides what is executed: up to there a later fence does as well.
PUBLISHES = re.compile(r"^\s*(?:@\S+\s+)?(?:bar|mbarrier\.(?!init)|cp\.|wgmma|tcgen05|bra|ret|[\w$]+:(?!:))")


def body_of(lines, number):
    """The lines of the kernel that a line is in, as a range."""
    first = max(i for i in range(number + 1) if ".entry" in lines[i])
    last = next((i for i in range(number + 1, len(lines)) if ".entry" in lines[i]), len(lines))
    return first, last


def why_harmless(lines, number):
    """What proves that a line may be left out, from the text alone; '' if nothing does."""
    first, last = body_of(lines, number)
    body = lines[first:last]
    instruction = SYNC.search(lines[number])[1]
    if instruction.startswith("cp.async.") and "mbarrier" not in instruction and not any(re.search(r"cp\.async\.c[ag]", line) for line in body):
        return "the kernel copies nothing with cp.async"
    if instruction == "fence.proxy":
        for line in lines[number + 1 : last]:
            if "fence.proxy.async" in line:
                return "another fence follows before anything is made known"
            if PUBLISHES.search(line):
                return ""
    if instruction == "bar.warp.sync" or re.search(r"bar\.sync\s+0;", lines[number]):
        others = re.compile(r"^\s*bar\.sync\s+0;" if instruction == "bar.sync" else r"^\s*bar\.(sync\s+0;|warp\.sync)")
        for part in (lines[number + 1 : last], lines[number - 1 : first : -1]):
            for line in part:
                if others.search(line):
                    return "it stands beside another one, with no access to memory between them"
                if ACTS.search(line):
                    break
    return ""


def run_case(name, chip, options, pool, counts, missed, harmless):
    pattern = next(p for p in PATTERNS if p.name == name)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        good, _, _ = compile_pattern(source_of(pattern), [chip], folder / "b.json")
        if not good:
            return
        bundle = with_few_blocks(json.loads((folder / "b.json").read_text()))
        (folder / "b.json").write_text(json.dumps(bundle))
        inputs = [pattern.make(*size, seed=0) for size in CASES[name][: 1 if options.quick else None]]
        right = {}

        def expected(number):
            if number not in right:
                results, problem = simulate(folder / "b.json", pattern, inputs[number], chip)
                if results is None:
                    sys.exit(f"{name} on {chip} is not right to begin with: {problem}")
                right[number] = results
            return right[number]

        expected(0)
        lines = bundle["targets"][0]["ptx"].split("\n")
        sites = [i for i, line in enumerate(lines) if SYNC.search(line) and not line.strip().startswith("//")]
        if chip == "sm_100a":
            tensors = {kernel_at(lines, i) for i, line in enumerate(lines) if "tcgen05.mma" in line}
            sites = [i for i in sites if kernel_at(lines, i) in tensors]
        launched = {launch["kernel"] for plan in bundle["targets"][0]["entries"] for launch in plan["launches"]}
        mutants = [(i, what, text) for i in sites if kernel_at(lines, i) in launched for what, text in mutate(lines[i])]
        if options.sample and len(mutants) > options.sample:
            mutants = [mutants[k * len(mutants) // options.sample] for k in range(options.sample)]

        def attempt(number, text, label, size):
            changed = json.loads(json.dumps(bundle))
            changed["targets"][0]["ptx"] = "\n".join(lines[:number] + [text] + lines[number + 1 :])
            path = folder / f"{number}-{label}.json"
            path.write_text(json.dumps(changed))
            results, problem = simulate(path, pattern, inputs[size], chip, timeout=120)
            path.unlink()
            return results, problem

        def judge(mutant):
            number, what, text = mutant
            is_executed = False
            for size in range(len(inputs)):
                results, problem = attempt(number, text, what.split()[0], size)
                if results is None:
                    if "INVALID_PTX" in problem:
                        sys.exit(f"the mutant of line {number + 1} '{lines[number]}' is no PTX: {text}")
                    kinds = kinds_of_faults(problem)
                    return mutant, f"fault: {kinds[0] if kinds else problem[:200]}"
                if not same(results, expected(size)):
                    return mutant, "other bits"
                trapped, _ = attempt(number, "\ttrap;", what.split()[0] + "-trap", size)
                is_executed |= trapped is None
                if reason := why_harmless(lines, number):
                    return mutant, f"harmless: {reason}"
            return mutant, "missed" if is_executed else "not executed"

        for (number, what, _), verdict in pool.map(judge, mutants):
            kind = SYNC.search(lines[number])[1].rstrip(".") + (" weakened" if what.startswith("waits") else "")
            counts.setdefault(kind, {}).setdefault(verdict.split(":")[0], []).append(verdict)
            if verdict.startswith("harmless"):
                harmless[verdict[10:]] = harmless.get(verdict[10:], 0) + 1
            if verdict == "missed":
                missed.append(f"{name} on {chip}, {kernel_at(lines, number)}, line {number + 1} '{lines[number].strip()}' {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--chips", default="sm_90a,sm_100,sm_100a")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each case and chip; all if 0")
    parser.add_argument("--quick", action="store_true", help="the first size of each case only")
    parser.add_argument("--least", type=float, default=0.0, help="the part that must be caught")
    parser.add_argument("--missed", action="store_true")
    options = parser.parse_intermixed_args()
    counts, missed, harmless = {}, [], {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in options.patterns or CASES:
            for chip in options.chips.split(","):
                run_case(name, chip, options, pool, counts, missed, harmless)
    total = caught = 0
    for kind, verdicts in sorted(counts.items()):
        numbers = {verdict: len(found) for verdict, found in verdicts.items()}
        kinds = sorted(set(sum(verdicts.values(), [])) - set(numbers))
        relevant = sum(numbers.values()) - numbers.get("not executed", 0) - numbers.get("harmless", 0)
        found = relevant - numbers.get("missed", 0)
        total, caught = total + relevant, caught + found
        print(f"{kind:32} {found:4} of {relevant:4} caught", numbers, *kinds)
    for reason, number in sorted(harmless.items()):
        print(f"{number} are harmless: {reason}")
    print(f"{caught} of {total} mutants that were executed and could matter are caught" + (f" ({100 * caught / total:.1f} %)" if total else ""))
    if options.missed:
        print("\n".join(missed))
    sys.exit(caught < options.least * total)


if __name__ == "__main__":
    main()
