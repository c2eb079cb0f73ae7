# REQUIRES: ptxas
# RUN: %python %s %ptxas %source
"""ptxas.py PTXAS SOURCE: assembles every kernel of every example and of pairs of blocks, and fails on errors, spills and warnings.

The warnings that count most are C7510 .. C7519: `ptxas` waits for products or adds fences of its own because it cannot
prove that registers of products in flight are left alone. A kernel that several examples share is assembled once. Attention and routing
on sm_100a have to use tensor memory, which they free.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

CHIPS = ("sm_90a", "sm_100", "sm_100a")


def entries_of(text):
    """The module once for each public function, which it then has alone, with the private ones."""
    functions = re.findall(r"^func\.func (?!private).*?^}\n", text, re.M | re.S)
    for kept in functions:
        module = text
        for function in functions:
            module = module.replace(function, "") if function != kept else module
        yield re.search(r"@([\w.$-]+)", kept)[1], module


def compile_example(text, chip):
    """PTX of a module, or None if there is no kernel for an op of it yet."""
    done = subprocess.run(
        [os.environ["SSA_OPT"], "-", "--emit=ptx", f"--chip={chip}"], input=text, capture_output=True, text=True
    )
    if done.returncode not in (0, 1) or (done.returncode == 1 and "error:" not in done.stderr):
        sys.exit(f"the compiler died for {chip}: {done.stderr[-2000:]}")
    return done.stdout if done.returncode == 0 else None


def split(ptx):
    """(name, PTX of this kernel alone) for each kernel; equal kernels have equal text."""
    header, body = ptx.split(".address_size 64\n", 1)
    parts = re.split(r"^(?=\.visible \.entry )", body, flags=re.M)
    variables = re.findall(r"^\.(?:extern|visible|global|shared)\b.*;$", body, re.M)
    for part in parts[1:]:
        name = re.match(r"\.visible \.entry (\w+)", part)[1]
        code = part[: part.rindex("\n}\n") + 3]
        code = re.sub(r"\$L__BB\d+_", "$L__BB0_", re.sub(rf"\b{name}(?=_param_|\()", "kernel", code))
        used = [line for line in variables if re.search(r"(\w+)(?:\[\d*\])?;$", line)[1] in code]
        yield name, "\n".join([header + ".address_size 64", *used, code])


def assemble(ptxas, chip, ptx):
    """What is wrong with a kernel."""
    done = subprocess.run([ptxas, "-v", f"-arch={chip}", "-o", os.devnull, "-"], input=ptx, capture_output=True, text=True)
    said = done.stdout + done.stderr
    faults = [line for line in said.splitlines() if re.search(r"\bC75\d\d\b|\berror\b|\bwarning\b", line, re.I)]
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said)
    if done.returncode == 0 and not spills:
        faults.append("it does not say what it spills")
    elif spills and spills.groups() != ("0", "0"):
        faults.append(spills[0])
    if done.returncode and not faults:
        faults.append(said.strip() or f"exit code {done.returncode}")
    return faults


def tensor_faults(chip, name, ptx):
    """What is wrong with how a kernel of attention or routing makes its products, if it is one on tensor cores."""
    if chip != "sm_100a" or not re.match(r"ssa_(sparse_attend|route)", name):
        return []
    counts = {text: ptx.count(text) for text in ("mma.sync", "tcgen05.mma", "tcgen05.alloc", "tcgen05.dealloc")}
    uses = int(counts["tcgen05.mma"] > 0)
    good = counts["mma.sync"] == 0 and counts["tcgen05.alloc"] == counts["tcgen05.dealloc"] == uses
    return [] if good else [f"expected products in tensor memory only, which is allocated and freed once, but got {counts}"]


def main():
    ptxas, source = sys.argv[1], pathlib.Path(sys.argv[2])
    missing, unsuited, kernels = [], [], {}
    pairs = source / "test/Target/pair.mlir"
    for path in [*sorted((source / "examples").glob("*.mlir")), pairs]:
        for chip in ["sm_100a"] if path == pairs else CHIPS:
            text, found = path.read_text(), []
            whole = compile_example(text, chip)
            for entry, module in [(None, None)] if whole else entries_of(text):
                ptx = whole or compile_example(module, chip)
                missing += [] if ptx else [f"{entry} for {chip}"]
                found += split(ptx) if ptx else []
            for name, ptx in found:
                where = f"{path.stem} {name} for {chip}"
                kernels.setdefault((chip, ptx), where)
                unsuited += [f"{where}: {fault}" for fault in tensor_faults(chip, name, ptx)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda kernel: assemble(ptxas, *kernel), kernels)
        faults = unsuited + [f"{where}: {fault}" for where, found in zip(kernels.values(), results) for fault in found]
    print(f"{len(kernels)} kernels; without any: {', '.join(missing) or 'none'}")
    counts = [sum(chip == known for known, _ in kernels) for chip in CHIPS]
    tensors = sum("tcgen05.mma" in ptx for _, ptx in kernels)
    if tensors < 20:
        faults.append(f"expected at least 20 kernels with products in tensor memory, but got {tensors}")
    if min(counts) < 20:
        faults.append(f"expected at least 20 kernels for each chip, but got {counts}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
