"""Support for tests that run bundles in the simulator."""

import pathlib
import re
import subprocess
import tempfile

import numpy as np
from make_gpu_tests import tool


def with_few_blocks(bundle, most=2):
    """The same bundle with at most so many blocks along x in every launch: each block then takes several items, one after another, as it does
    on a GPU at real sizes. All kernels loop over their items. Launches whose grid is computed anew in every run of a repeat stay as they are."""
    for target in bundle["targets"]:
        for plan in target["entries"]:
            values = plan["values"]
            repeated = [range(*repeat["values"]) for repeat in plan.get("repeats", [])]
            values.append(["const", most])
            limit = len(values) - 1
            for launch in plan["launches"]:
                if any(launch["grid"][0] in numbers for numbers in repeated):
                    continue
                values.append(["min", launch["grid"][0], limit])
                launch["grid"][0] = len(values) - 1
    return bundle


def simulate(bundle, pattern, arrays, chip, timeout=300):
    """The results of a bundle in the simulator and ''; or None and what it had to say. `bundle` is a path, `arrays` the arguments by name."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, x in arrays.items():
            np.save(folder / f"{name}.npy", x)
        outs = [folder / f"out{i}.npy" for i in range(len(pattern.results.split()))]
        command = [tool("ssa-run"), str(bundle), f"--entry={pattern.entry}", "--device=sim", f"--chip={chip}", "--cores=1"]
        command += ["--in", ",".join(str(folder / f"{name}.npy") for name in arrays), "--out", ",".join(map(str, outs))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return None, f"no end after {timeout} s"
        if done.returncode:
            return None, done.stderr.strip()
        return [np.load(out) for out in outs], ""


def kinds_of_faults(message):
    """ "race", "uninitialized", ..: what the simulator found."""
    return re.findall(r"^ +\w+: line \d+ '.*': ([\w-]+): ", message, re.M)
