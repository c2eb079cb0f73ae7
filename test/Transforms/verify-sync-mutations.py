# RUN: %python %s %source
"""ssa-gpu-verify-sync must find what is missing: every kernel of the examples that has tiles in shared memory is taken as it is,
which must be right, and with each of its waits, barriers and groups left out or weakened, which must be wrong.

A mutant that is not found is right after all, if what is left out is done by another op as well. Those are listed in
HARMLESS with the reason; a new one must be understood before it is added.
"""

import bisect
import collections
import os
import pathlib
import re
import subprocess
import sys

CHIPS = ("sm_90a", "sm_100", "sm_100a")
PASSES = "inline,ssa-attach-target{chip=%s},ssa-optimize,ssa-fuse,ssa-sort-selection,ssa-select-schedule,convert-ssa-to-ssa-gpu,cse,canonicalize"
HARMLESS = {
    # Of a kernel with `mma.sync`: it waits for its queries before the loop over keys, so no copy of the last item is under way.
    ("ssa_sparse_attend", "weaker ssa_gpu.wait_copies 0"),
    ("ssa_sparse_attend", "barrier for ssa_gpu.wait_copies 0"),
    # Of groups of warps that see keys from several places: it waits for the copies of one before it begins with the next, and sums are joined behind a barrier.
    ("ssa_sparse_attend of groups", "without ssa_gpu.wait_copies 0"),
    ("ssa_sparse_attend of groups", "weaker ssa_gpu.wait_copies 0"),
    ("ssa_sparse_attend of groups", "barrier for ssa_gpu.wait_copies 0"),
    # The next group is closed before anything is waited for, and the wait is for all of them.
    ("ssa_route_softmax", "without ssa_gpu.commit_copies"),
}
SYNC = re.compile(
    r"^\s+((?:ssa_)?gpu\.barrier|ssa_gpu\.commit_copies|ssa_gpu\.(?:wait|finish)_copies (\d+)"
    r"|(ssa_gpu\.(?:acquire|publish|await|release)) .*|%\S+ = (ssa_gpu\.wait_mma) \S+ pending (\d+) .*)$"
)


def run(text, passes):
    command = [os.environ["SSA_OPT"], "-", f"--pass-pipeline=builtin.module({passes})"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def kernels_of(text, chip):
    """Every kernel with tiles as a module of its own."""
    done = run(text, PASSES % chip)
    if done.returncode:
        return
    for kernel in re.findall(r"^    gpu\.func @.*?^    }\n", done.stdout, re.M | re.S):
        # Routing's loops from an unknown step on are not looked at: the simulator's tests do.
        name = re.search(r"@(\w+)", kernel)[1]
        if "ssa_gpu.alloc" in kernel and not re.fullmatch(r"ssa_route(_\d+)?", name):
            yield name, f"gpu.module @kernels {{\n{kernel}}}\n"


def mutants_of(kernel):
    """(what was done, the text) for each change."""
    lines = kernel.splitlines(keepends=True)
    for i, line in enumerate(lines):
        found = SYNC.match(line)
        if not found:
            continue
        changes = {} if found[4] else {"without": ""}
        if found[2]:
            changes["weaker"] = line.replace(found[2], str(int(found[2]) + 1))
        if found[2] and "wait" in found[1]:
            changes["barrier for"] = line.replace(found[1], "gpu.barrier")
        if found[4]:
            changes["weaker"] = line.replace(f"pending {found[5]}", f"pending {int(found[5]) + 1}")
        for name, changed in changes.items():
            yield f"{name} {found[3] or found[4] or found[1]}", i, "".join(lines[:i] + [changed] + lines[i + 1 :])


def find(kernels):
    """For each of some kernels whether an error is found in it; all in one run, which tells them apart by lines."""
    ends, text = [], ""
    for kernel in kernels:
        text += kernel + "\n// -----\n\n"
        ends.append(text.count("\n"))
    command = [os.environ["SSA_OPT"], "-", "--split-input-file", "--pass-pipeline=builtin.module(gpu.module(ssa-gpu-verify-sync))"]
    done = subprocess.run(command, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = {bisect.bisect_left(ends, int(line)) for line in re.findall(r"^<stdin>:(\d+):\d+: error:", done.stderr, re.M)}
    assert done.returncode in (0, 1) and (done.returncode == 1) == bool(found), done.stderr
    return [number in found for number in range(len(kernels))]


def main():
    source = pathlib.Path(sys.argv[1])
    seen, found, missed, faults = set(), collections.Counter(), collections.Counter(), []
    for path in [*sorted((source / "examples").glob("*.mlir")), source / "test/Target/pair.mlir"]:
        for chip in CHIPS:
            for name, kernel in kernels_of(path.read_text(), chip):
                key = re.sub(r"@\w+|!llvm\S+", "", kernel)
                if key in seen:
                    continue
                seen.add(key)
                mutants = list(mutants_of(kernel))
                unchanged, *verdicts = find([kernel] + [mutant for _, _, mutant in mutants])
                if unchanged:
                    faults.append(f"{path.stem} {name} for {chip}: an error in a kernel that nothing was changed in")
                for (what, line, _), detected in zip(mutants, verdicts):
                    kind = re.sub(r"(_\d+)?$", "", name) + (" with roles" if "ssa_gpu.roles" in kernel else "")
                    kind += " of groups" if "<groups =" in kernel else ""
                    (found if detected else missed)[kind, what] += 1
                    if not detected and (kind, what) not in HARMLESS:
                        faults.append(f"{path.stem} {name} for {chip}: not found {what}, line {line + 1} of the kernel")
    for key in sorted({*found, *missed}):
        print(f"{key[0]:28} {key[1]:36} found {found[key]:3}  not found {missed[key]:3}")
    print(f"{sum(found.values())} found, {sum(missed.values())} not")
    if sum(found.values()) < 400 or any(not found[key] for key in set(missed) - HARMLESS):
        faults.append("expected at least 400 mutants to be found, some of each kind")
    sys.exit("\n".join(faults) or 0)


main()
