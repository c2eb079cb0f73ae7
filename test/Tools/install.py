# RUN: %python %s %cmake %build %t %llvm_tools %cc %cxx
"""Installs the build, moves what was installed, and builds the downstream project in test/Consumer against it."""

import pathlib
import re
import shutil
import subprocess
import sys

cmake, build, work, llvm_tools, cc, cxx = sys.argv[1:]
source = pathlib.Path(__file__).parents[2]
work = pathlib.Path(work)
first, moved = work / "first", work / "moved"
has_plugin = pathlib.Path(build, "lib", "libSSAPlugin.so").exists()

EXPECTED = """bin/ssa-opt bin/ssa-run bin/ssa-lsp-server bin/ssa-reduce
lib/libSSACompiler.so lib/libSSADialect.a lib/libSSAReference.a lib/libSSATransforms.a
lib/cmake/ssa/SSAConfig.cmake lib/cmake/ssa/SSATargets.cmake lib/cmake/ssa/SSAConfigVersion.cmake
include/ssa-c/SSA.h include/ssa/IR/SSA.h include/ssa/IR/SSAOps.h.inc include/ssa/IR/SSAOps.td include/ssa/Version.h
share/licenses/ssa/LICENSE"""


def run(*command):
    """The output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(not done.returncode, f"{' '.join(map(str, command))}\nexit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(message)


def install():
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run(cmake, "--install", build, "--prefix", first)
    first.rename(moved)
    for path in EXPECTED.split() + ["lib/libSSAPlugin.so"] * has_plugin:
        check((moved / path).exists(), f"{path} is not installed")
    for path in moved.rglob("*"):
        check(path.suffix != ".cpp" and not path.name.endswith(".cpp.inc"), f"{path} is installed")


def contents():
    """Every public header and TableGen file of the source is there; nothing knows where it was built or installed."""
    for folder in ("include", "dialects"):
        for path in (source / folder).rglob("*"):
            if path.suffix in (".h", ".td"):
                check((moved / "include" / path.relative_to(source / folder)).exists(), f"{path} is not installed")
    for path in [*moved.glob("lib/cmake/ssa/*"), *(p for p in moved.rglob("include/**/*") if p.is_file())]:
        found = re.search(f"{build}|{source}|{first}|cmake_pch|PrecompiledHeader", path.read_text())
        check(not found, f"{path} holds '{found and found[0]}'")
    for path in [*moved.glob("bin/*"), *moved.glob("lib/*.so")]:
        for line in run(pathlib.Path(llvm_tools, "llvm-readelf"), "-d", path).splitlines():
            check(not re.search(f"{build}|{source}|{work}", line), f"{path}: {line.strip()}")


def tools():
    example = source / "examples" / "nsa.mlir"
    run(moved / "bin" / "ssa-opt", example, "--ssa-optimize", "-o", "/dev/null")
    if has_plugin:
        plugin = moved / "lib" / "libSSAPlugin.so"
        run(pathlib.Path(llvm_tools, "mlir-opt"), f"--load-dialect-plugin={plugin}", example, "-o", "/dev/null")


def downstream():
    folder = work / "consumer"
    run(cmake, "-G", "Ninja", "-S", source / "test" / "Consumer", "-B", folder, f"-DCMAKE_PREFIX_PATH={moved}",
        f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}")
    output = run(cmake, "--build", folder, "--verbose")
    check(("plugin: libSSAPlugin.so" in output) == has_plugin, output)
    used = output.replace(str(work), "").replace(str(source / "test" / "Consumer"), "")
    check("cmake_pch" not in used and build not in used and str(source) not in used, f"the build is used:\n{output}")
    # Of five keys the listed blocks, of width two, hold three.
    output = run(folder / "consumer")
    check(output == "width 2\noutput 3.333333e+00 4.333333e+00\n", output)
    output = run(folder / "consumer-c")
    check(output == "doubled 3 -4 2000\n", output)


install()
contents()
tools()
downstream()
