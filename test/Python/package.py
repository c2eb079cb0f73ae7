# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading, naming, threads, processes, the compiler's library, versions of Python."""

import glob
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from setup_fake import PLANS, ROOT, TESTS, equal, folder, launches, main, records, refused, test, text  # noqa: E402

import ssa  # noqa: E402

BASE = 0x7E0000000000
TEXT = text(*[make() for make in PLANS.values()])


def python(code, interpreter=sys.executable, **environment):
    """Exit code and output of a fresh process."""
    done = subprocess.run(
        [interpreter, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment},
    )
    return done.returncode, done.stdout + done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Bundles


@test
def N5_where_bundles_come_from():
    path = folder / "bundle.json"
    path.write_text(TEXT)
    for source in (str(path), path, TEXT, TEXT.encode(), "\n " + TEXT):
        equal(list(ssa.load(source)), list(PLANS))
    refused(FileNotFoundError, "[Errno 2] No such file or directory: 'nothing.json'", ssa.load, "nothing.json")
    path.write_text(TEXT[: len(TEXT) // 2])  # a file that is cut short
    refused(ssa.BundleError, f"'{path}' is no bundle: it is not JSON", ssa.load, path)
    refused(ssa.BundleError, '\'<memory>\' is no bundle: "format" is not "ssa-bundle"', ssa.load, "{}")


@test
def names():
    made = ssa.load(TEXT)
    equal((len(made), "axpy" in made, "nothing" in made, made.chips), (len(PLANS), True, False, ["sm_90a"]))
    assert made.axpy is made["axpy"]
    assert "axpy" in dir(made) and "load" in dir(made)
    listed = ", ".join(PLANS)
    equal(repr(made), f"<ssa.Bundle '<memory>': {listed}; for sm_90a>")
    for access, kind in ((lambda: made["nothing"], KeyError), (lambda: made.nothing, AttributeError)):
        found = None
        try:
            access()
        except kind as error:
            found = error.args[0]
        equal(found, f"'<memory>' has no entry 'nothing'; it has {listed}")
    assert not hasattr(made, "__wrapped__")


@test
def help_on_functions():
    made = ssa.load(TEXT)
    equal(made.axpy.__name__, "axpy")
    equal(made.axpy.arguments, ["a: f32", "x: f32[?, 8]", "y: f32[?, 8]"])
    equal(str(inspect.signature(made.axpy)), "(a, x, y, *, out=None, stream=None)")
    equal(repr(made.axpy), "<ssa.Function axpy(a: f32, x: f32[?, 8], y: f32[?, 8]) of '<memory>'>")
    equal(
        made.axpy.__doc__,
        "axpy of '<memory>'.\n\nArguments:\n    a: f32\n    x: f32[?, 8]\n    y: f32[?, 8]\n\n"
        "Returns:\n    z: f32[x.shape[0], 8]",
    )
    clash = PLANS["chunks"]()
    clash.lists["arguments"][0]["name"] = "out"
    equal(str(inspect.signature(ssa.load(text(clash)).chunks)), "(argument0, /, *, out=None, stream=None)")


@test
def loading_ahead():
    made = ssa.load(TEXT)
    assert made.load() is made
    made.load(1)
    made.load(device=1)
    equal([line.split()[2] for line in records() if line.startswith("load")], ["0", "1"])
    refused(ssa.DriverError, "there is no device 7; the CUDA driver has 2", made.load, 7)
    refused(
        ssa.BundleError,
        "'<memory>' has code for sm_80a, but device 0 (Fake 0) is sm_90; compile it with --chip=sm_90a",
        ssa.load(text(PLANS["axpy"](), chips=["sm_80a"])).load,
    )


@test
def errors_have_codes():
    code = None
    try:
        ssa.load(text(PLANS["axpy"](), ptx=".version 99.9\n")).load()
    except ssa.DriverError as error:
        code = error.code
    equal(code, 222)
    x = ssa.RawTensor(BASE, (4, 8), "f32")
    ssa.load(TEXT).axpy(0.5, x, x)  # the process goes on


# ---------------------------------------------------------------------------------------------------------------------
# Threads and processes


@test
def threads():
    """Code is loaded once, and no call gets the numbers of another."""
    made = ssa.load(text(PLANS["axpy"](), PLANS["pipeline"]()))
    failures, barrier = [], threading.Barrier(8)
    records()

    def work(number):
        try:
            barrier.wait()
            for i in range(30):
                rows = 1 + (number + i) % 5
                x = ssa.RawTensor(BASE + (number << 20), (rows, 8), "f32")
                made.axpy(
                    float(number),
                    x,
                    x,
                    out=ssa.RawTensor(BASE + (number << 20) + (1 << 19), (rows, 8), "f32"),
                    stream=number + 1,
                )
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    equal(failures, [])
    from launching import parameters, shape_of

    log = records()
    equal(len([line for line in log if line.startswith("load")]), 1)
    made_of = {}
    for line in launches(log):
        a, x, _, y, _, z, _, rows = parameters(line, "fpqpqpqq")
        number = int(a)
        equal((x, y, z, shape_of(line)[4]), (number << 20, number << 20, (number << 20) + (1 << 19), number + 1))
        made_of.setdefault(number, []).append(rows)
    equal(made_of, {n: [1 + (n + i) % 5 for i in range(30)] for n in range(8)})


@test
def forked_processes():
    code = (
        f"import os, ssa; b = ssa.load({text(PLANS['axpy']())!r}).load()\n"
        "if not os.fork():\n"
        "    try: b.load(1)\n"
        "    except ssa.DriverError as e: print(e, flush=True); os._exit(0)\n"
        "    os._exit(1)\n"
        "print(os.wait()[1])"
    )
    status, output = python(code)
    equal(status, 0)
    assert output.startswith(
        "this process was forked from one that used CUDA, which does not work; start it with the 'spawn' method"
    ), output
    assert output.endswith("\n0\n"), output


@test
def nothing_is_imported():
    """The standard library alone; no driver before it is needed."""
    code = (
        "import sys; before = set(sys.modules); import ssa, sysconfig\n"
        f"b = ssa.load({TEXT!r}); repr(b.axpy); b.axpy.__doc__\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before} - {'ssa'}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    equal(python(code, SSA_LIBCUDA="/nowhere/libcuda.so.1"), (0, "[]\n"))


@test
def no_driver():
    code = f"import ssa\ntry: ssa.load({text(PLANS['axpy']())!r}).load()\nexcept ssa.DriverError as e: print(e, e.code)"
    status, output = python(code, SSA_LIBCUDA="libnosuchcuda.so.1")
    assert output.startswith(
        "libnosuchcuda.so.1 cannot be opened: libnosuchcuda.so.1: cannot open shared object file"
    ), output
    assert output.endswith(
        "; running on a GPU needs the NVIDIA driver (SSA_LIBCUDA may name its library) None\n"
    ), output
    empty = library("empty", "int nothing;")
    equal(python(code, SSA_LIBCUDA=empty)[1], f"{empty} has no cuInit; update the NVIDIA driver None\n")


@test
def versions_of_python():
    """All that are on this machine, from 3.10: the package works the same."""
    code = (
        f"import sys, ssa; x = ssa.RawTensor({BASE}, (4, 8), 'f32'); z = ssa.load({TEXT!r}).axpy(0.5, x, y=x)\n"
        "print(sys.version_info[:2], z.shape, z.strides, z.dtype)"
    )
    found = {}
    candidates = [shutil.which(f"python3.{minor}") for minor in range(10, 16)]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[0-9].*/bin/python3")))
    for path in [sys.executable, *filter(None, candidates)]:
        status, output = python("import sys; print(sys.version_info[1])", path)
        if not status and int(output) >= 10:
            found.setdefault(int(output), path)
    for minor, path in sorted(found.items()):
        status, output = python(code, path)
        equal((status, output), (0, f"(3, {minor}) (4, 8) (8, 1) f32\n"))
    print("     with Python 3." + ", 3.".join(map(str, sorted(found))))


# ---------------------------------------------------------------------------------------------------------------------
# The compiler


def library(name, source):
    """A shared library made of C source."""
    path = folder / f"lib{name}.so"
    subprocess.run(
        [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-", "-o", path],
        input=source,
        text=True,
        check=True,
    )
    return str(path)


OLD = r"""
#include <stdlib.h>
#include <string.h>
const char *ssaGetVersionText(void) { return "0.0.1 (LLVM 22.1)"; }
const char *ssaErrorGetMessage(void *error) { return error; }
void ssaErrorDestroy(void *error) {}
void *ssaContextCreate(void **context) { *context = malloc(1); return 0; }
void ssaContextDestroy(void *context) { free(context); }
void *ssaModuleParse(void *context, const char *text, size_t length, const char *name, void **module) {
  if (strstr(text, "wrong")) return "in.mlir:1:1: error: that is wrong";
  *module = strdup(text);
  return 0;
}
void ssaModuleDestroy(void *module) { free(module); }
void ssaStringFree(void *text) { free(text); }
"""


@test
def compiling():
    made = text(PLANS["axpy"]())
    new = (
        OLD + "void *ssaModuleEmitBundle(void *module, const char *chips, char **text) {\n"
        '  if (strcmp(chips, "sm_90a,sm_100a") && strcmp(chips, "sm_90a")) return "unknown chip";\n'
        f"  *text = strdup({json.dumps(made)});\n  return 0;\n}}\n"
    )
    paths = {"old": library("old", OLD), "new": library("new", new)}
    code = (
        "import ssa\n"
        "def attempt(*args, **kw):\n"
        "    try: print(ssa.compile(*args, **kw))\n"
        "    except Exception as e: print(f'{type(e).__name__}: {e}')\n"
        "attempt('right', chip='sm_90a')\nattempt(b'right', ['sm_90a', 'sm_100a'], name='in.mlir')\nattempt('right')\n"
        "attempt('wrong', chip='sm_90a')\nattempt('right', chip='sm_7')\n"
    )
    equal(
        python(code, SSA_LIBRARY=paths["new"])[1].splitlines(),
        [
            "<ssa.Bundle '<memory>': axpy; for sm_90a>",
            "<ssa.Bundle 'in.mlir': axpy; for sm_90a>",
            "<ssa.Bundle '<memory>': axpy; for sm_90a>",
            "CompileError: in.mlir:1:1: error: that is wrong",
            "CompileError: unknown chip",
        ],
    )
    missing = (
        "CompilerNotFound: the compiler's library (0.0.1 (LLVM 22.1)) has no ssaModuleEmitBundle; install a later one, or "
        "compile "
        "with ssa-opt --emit=bundle and use ssa.load"
    )
    equal(python(code, SSA_LIBRARY=paths["old"])[1].splitlines(), [missing] * 5)
    status, output = python("import ssa; ssa.compile('right', chip='sm_90a')", SSA_LIBRARY="/nowhere/libSSACompiler.so")
    assert (
        "CompilerNotFound: the compiler's library cannot be opened: /nowhere/libSSACompiler.so: cannot open shared "
        "object file" in output
    )
    assert "or set SSA_LIBRARY to the path of libSSACompiler.so" in output


main(TESTS)
