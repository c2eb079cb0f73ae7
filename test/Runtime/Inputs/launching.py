# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the same calls by both launchers on the fake driver, and compares what the driver was asked for."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BASE = 0x7E0000000000  # where the fake driver's memory begins
SPACE = 1 << 36  # of each device
HEAP = 1 << 32  # where allocations begin in it
sys.path[:0] = [str(HERE), str(ROOT / "python")]

from plans import PLANS, text  # noqa: E402

folder = pathlib.Path(tempfile.mkdtemp(prefix="ssa-launchers-"))


def fake_driver():
    """The path of the fake driver, built by the compiler in CC."""
    path = folder / "libfakecuda.so"
    if not path.exists():
        subprocess.run(
            [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-pthread", "-o", path, HERE / "fakecuda.c"], check=True
        )
    return str(path)


def environment(log, **settings):
    found = {k: v for k, v in os.environ.items() if not k.startswith("FAKE_CUDA")}
    return {
        **found,
        "SSA_LIBCUDA": fake_driver(),
        "FAKE_CUDA_LOG": str(log),
        "PYTHONPATH": str(ROOT / "python"),
        **{f"FAKE_CUDA_{k}": str(v) for k, v in settings.items()},
    }


LAUNCHERS = {
    "C++": [os.path.join(os.environ.get("SSA_BIN", ""), "ssa-test-calls")],
    "Python": [sys.executable, str(HERE / "python_calls.py")],
}


def array(pointer, dtype, shape, strides=None):
    """An argument; `pointer` counts from the beginning of the fake memory. Row-major unless strides are given."""
    if strides is None:
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= max(size, 1)
    pointer = pointer if pointer is None or pointer >= BASE else BASE + pointer
    return {"pointer": pointer or 0, "dtype": dtype, "shape": list(shape), "strides": list(strides)}


def call(entry, *arguments, out=None, stream=0):
    arguments = [{"float": a} if isinstance(a, float) else a for a in arguments]
    return {"entry": entry, "arguments": arguments, "results": out, "stream": stream}


def execute(launcher, batches, settings):
    """Lines of answers and a list of records for each call, the first one being those before any call."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        LAUNCHERS[launcher],
        input=json.dumps(batches),
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(log, **settings),
    )
    if done.returncode:
        raise AssertionError(f"{launcher}: exit code {done.returncode}: {done.stderr[-3000:]}")
    records = [[]]
    for line in log.read_text().splitlines() if log.exists() else []:
        if line == "call":
            records.append([])
        else:
            records[-1].append(line)
    return done.stdout.splitlines(), records


def make_calls(bundle, calls, device=0, **settings):
    """Makes calls with both launchers, which must agree; returns their answers and records.

    `bundle` is the text of a bundle. Records are compared but for allocations, in which the two differ by design.
    """
    path = folder / "bundle.json"
    path.write_text(bundle)
    batch = [{"bundle": str(path), "device": device, "calls": calls}]
    answers, records = {}, {}
    for launcher in LAUNCHERS:
        answers[launcher], records[launcher] = execute(launcher, batch, settings)
    for i, (a, b) in enumerate(zip(answers["C++"], answers["Python"])):
        if a != b:
            raise AssertionError(f"call {i}: C++ says\n  {a}\nbut Python\n  {b}")
    assert len(answers["C++"]) == len(answers["Python"]), answers
    cpp, python = ([comparable(lines) for lines in records[launcher]] for launcher in ("C++", "Python"))
    for i, (a, b) in enumerate(zip(cpp, python)):
        if a != b:
            raise AssertionError(
                f"call {i - 1}: the driver was asked by C++ for\n  "
                + "\n  ".join(map(str, a))
                + "\nby Python for\n  "
                + "\n  ".join(map(str, b))
            )
    assert len(cpp) == len(python)
    return [answer.replace(str(path), "bundle.json") for answer in answers["C++"]], records["C++"]


def comparable(lines):
    """What both launchers must ask for. Tensor maps are compared by what is in parameters: Python keeps encoded ones."""
    return [line for line in lines if line.startswith(("load", "attribute", "launch"))]


def parameters(record, kinds):
    """The kernel's arguments out of a record of a launch: "p" pointers (from the beginning of the fake memory), "m"
    tensor maps, else struct's letters."""
    block, offset, values = bytes.fromhex(record.rpartition(" parameters ")[2]), 0, []
    for kind in kinds:
        size, alignment = (128, 64) if kind == "m" else (8, 8) if kind == "p" else (struct.calcsize(kind),) * 2
        offset += -offset % alignment
        data = block[offset : offset + size]
        if kind == "m":
            values.append(data)
        else:
            value = struct.unpack("<" + ("Q" if kind == "p" else kind), data)[0]
            values.append(value - BASE if kind == "p" and value else value)
        offset += size
    assert offset == len(block), f"{len(block)} bytes of parameters, but {offset} are expected"
    return values


def launches(records):
    return [record for record in records if record.startswith("launch")]


def shape_of(record):
    """Kernel, grid, block, shared bytes and stream of a record of a launch."""
    found = re.match(
        r"launch (\w+) device \d+ grid (\d+) (\d+) (\d+) block (\d+) (\d+) (\d+) shared (\d+) stream (\S+)", record
    )
    numbers = list(map(int, found.groups()[1:8]))
    return (
        found[1],
        tuple(numbers[:3]),
        tuple(numbers[3:6]),
        numbers[6],
        0 if found[9] == "(nil)" else int(found[9], 16),
    )


TESTS = []


def test(function):
    TESTS.append(function)
    return function


def equal(got, expected):
    assert got == expected, f"expected\n  {expected}\nbut got\n  {got}"


def one(name, *arguments, out=None, stream=0, **settings):
    """The answer to one call of a plan, and its launches."""
    answers, records = make_calls(text(PLANS[name]()), [call(name, *arguments, out=out, stream=stream)], **settings)
    assert len(answers) == 1, answers
    return answers[0], launches(records[-1])


def refused(name, message, *arguments, out=None, **settings):
    """A call that must give this message, and launch nothing."""
    answer, made = one(name, *arguments, out=out, **settings)
    equal(answer, f"error: {name}: {message}")
    equal(made, [])


def main(tests):
    """Runs tests (functions), those whose name has one of the words of the command line if there are some."""
    words, failed, count = sys.argv[1:], 0, 0
    for test in tests:
        if words and not any(word in test.__name__ for word in words):
            continue
        count += 1
        try:
            test()
            print(f"ok   {test.__name__}")
        except Exception as error:  # noqa: BLE001
            import traceback

            failed += 1
            where = (
                "".join(traceback.format_exception(error)) if not isinstance(error, AssertionError) else f"{error}\n"
            )
            line = traceback.extract_tb(error.__traceback__)
            print(f"FAIL {test.__name__} (line {[f.lineno for f in line if f.name == test.__name__][-1:]}): {where}")
    print(f"{count - failed} passed, {failed} failed")
    sys.exit(bool(failed) or not count)
