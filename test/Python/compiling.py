# RUN: %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ssa.compile with the compiler's library of the build, on all versions of Python that are here."""

import glob
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ["SSA_BIN"]).parent / "lib/libSSACompiler.so"
CHECKS = '''
import pathlib, sys, ssa
path = pathlib.Path(sys.argv[1])
text, expected = path.read_text(), ssa.load(sys.argv[2])
for source in (text, text.encode()):
    made = ssa.compile(source, chip=("sm_90a", "sm_100"), name="in.mlir")
    assert repr(made) == "<ssa.Bundle 'in.mlir': f; for sm_90a, sm_100>", made
    assert made.f.__doc__.splitlines()[1:] == expected.f.__doc__.splitlines()[1:], made.f.__doc__
assert ssa.compile(text, chip="sm_90a").chips == ["sm_90a"]

def refused(kind, words, *args, **keywords):
    try:
        ssa.compile(*args, **keywords)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"expected {kind.__name__}: {words}")

refused(ssa.CompileError, "in.mlir:1:1: error: custom op 'nonsense' is unknown", "nonsense", "sm_90a", "in.mlir")
refused(ssa.CompileError, "sm_7", text, "sm_7")
refused(ssa.CompileError, "expected 'chips' to be names with commas between", text, [])
refused(ssa.CompileError, "error: 'ssa.project' op", text.replace("2x64x8", "2x65x8"), "sm_90a")
assert not {"torch", "numpy"} & sys.modules.keys()
print("done")
'''
TEXT = """func.func @f(%a: tensor<?x2x?x64xbf16>, %w: tensor<2x64x8xbf16>) -> tensor<?x2x?x8xf32> {
  %b = ssa.project %a, %w : tensor<?x2x?x64xbf16>, tensor<2x64x8xbf16> -> tensor<?x2x?x8xf32>
  return %b : tensor<?x2x?x8xf32>
}
"""


def interpreters():
    """One of each version from 3.10 on."""
    candidates = [sys.executable, *(f"python3.{minor}" for minor in range(10, 20))]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[0-9].*/bin/python3")))
    found = {}
    for candidate in candidates:
        try:
            done = subprocess.run([candidate, "-c", "import sys; print(sys.version_info[:2] >= (3, 10), sys.version_info[:2])"],
                                  capture_output=True, text=True)
        except OSError:
            continue
        if done.stdout.startswith("True"):
            found.setdefault(done.stdout, candidate)
    return found.values()


with tempfile.TemporaryDirectory() as folder:
    source, bundle = pathlib.Path(folder, "f.mlir"), pathlib.Path(folder, "f.json")
    source.write_text(TEXT)
    compiler = os.environ.get("SSA_OPT", "ssa-opt")
    subprocess.run([compiler, str(source), "--emit=bundle", "--chip=sm_90a,sm_100", "-o", str(bundle)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "SSA_LIBRARY": str(LIBRARY)}
    for interpreter in interpreters():
        done = subprocess.run([interpreter, "-W", "error", "-c", CHECKS, str(source), str(bundle)],
                              capture_output=True, text=True, env=environment, timeout=300)
        if done.returncode or done.stdout != "done\n":
            sys.exit(f"{interpreter}: {done.stdout}{done.stderr}")
