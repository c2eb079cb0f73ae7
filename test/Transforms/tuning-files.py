# RUN: %python %s
"""Tuning files: what ssa-opt and ssa-tune refuse, with the same words."""

import json
import pathlib
import subprocess
import sys
import tempfile

from ssatest import _tool, case, check, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from ssa.tune import TuneError, read_tuning  # noqa: E402

ENTRY = {"chip": "sm_90a", "op": "sparse_attend", "queries": 1, "tokens": 1,
         "schedule": "#ssa.schedule<instruction = wgmma, tile_rows = 64, tile_keys = 64, stages = 2>"}
LACKS = "has an entry 0 that lacks one of 'chip', 'op', 'schedule' (text), 'queries', 'tokens' (numbers of at least 1)"


def compiler_says(path):
    done = subprocess.run([_tool("ssa-opt"), "-", f"--ssa-select-schedule=tuning={path}"], input="module {}", capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def python_says(path):
    try:
        read_tuning(path)
    except TuneError as error:
        return str(error)
    return ""


def expect(content, words, readers=(compiler_says, python_says)):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "t.json")
        path.write_text(content)
        for reader in readers:
            said = reader(path)
            check((words in said and f"tuning file '{path}'" in said) if words else not said, f"{reader.__name__}: expected '{words}', but got '{said}'")


def file_with(**changed):
    entry = {name: value for name, value in (ENTRY | changed).items() if value is not None}
    return json.dumps({"format": "ssa-tuning", "version": 1, "entries": [entry]})


@case
def right():
    expect(file_with(), "")
    expect(file_with(ms=3.5, device="one"), "")


@case
def wrong():
    expect("{", "is not JSON: ")
    for content in ("[]", "{}", '{"format": "ssa-tuning", "version": 2, "entries": []}'):
        expect(content, "is none: expected an object with 'format' \"ssa-tuning\" and 'version' 1")
    expect('{"format": "ssa-tuning", "version": 1}', "has no list 'entries'")
    for changed in ({"op": None}, {"chip": 90}, {"tokens": 0}, {"queries": "16"}, {"schedule": None}):
        expect(file_with(**changed), LACKS)


@case
def schedules_are_checked():
    for text, words in (("#ssa.schedule<instruction = wgmma, tile_rows = 65, tile_keys = 64, stages = 2>", "expected 'tile_rows' to be a multiple of 64"),
                        ("#ssa.mask<causal>", "it is no '#ssa.schedule<..>'"), ("fast", "")):
        expect(file_with(schedule=text), f"has an entry 0 whose 'schedule' is wrong: {words}", [compiler_says])


@case
def missing():
    for reader in (compiler_says, python_says):
        said = reader("/no/such/file")
        check("tuning file '/no/such/file' cannot be read: No such file or directory" in said, said)


main()
