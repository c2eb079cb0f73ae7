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


def run(*command):
    """The output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(f"{message}")


def install():
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run(cmake, "--install", build, "--prefix", first)
    first.rename(moved)
    for path in ("bin/ssa-opt", "bin/ssa-run", "bin/ssa-lsp-server", "bin/ssa-reduce", "lib/libSSACompiler.so", "lib/libSSAPlugin.so",
                 "lib/libSSADialect.a", "lib/libSSAReference.a", "lib/cmake/ssa/SSAConfig.cmake", "lib/cmake/ssa/SSATargets.cmake",
                 "lib/cmake/ssa/SSAConfigVersion.cmake", "include/ssa-c/SSA.h", "include/ssa/IR/SSA.h",
                 "include/ssa/IR/SSAOps.h.inc", "include/ssa/IR/SSAOps.td", "include/ssa/Version.h"):
        check((moved / path).exists(), f"{path} is not installed")
    for path in moved.rglob("*"):
        check(path.suffix != ".cpp" and not path.name.endswith(".cpp.inc"), f"{path} is installed")


def contents():
    """Every public header and TableGen file of the source is there; nothing knows where it was built or installed."""
    for folder in ("include", "dialects"):
        for path in (source / folder).rglob("*"):
            if path.suffix in (".h", ".td"):
                check((moved / "include" / path.relative_to(source / folder)).exists(), f"{path} is not installed")
    for path in [*moved.glob("lib/cmake/ssa/*"), *moved.rglob("include/**/*.*")]:
        found = re.search(f"{build}|{source}|{first}|cmake_pch|PrecompiledHeader", path.read_text())
        check(not found, f"{path} holds '{found and found[0]}'")
    for path in [*moved.glob("bin/*"), *moved.glob("lib/*.so")]:
        for line in run(pathlib.Path(llvm_tools, "llvm-readelf"), "-d", path).splitlines():
            check(not re.search(f"{build}|{source}|{work}", line), f"{path}: {line.strip()}")


def tools():
    example = source / "examples" / "nsa.mlir"
    plugin = moved / "lib" / "libSSAPlugin.so"
    run(moved / "bin" / "ssa-opt", example, "--ssa-optimize", "-o", "/dev/null")
    run(pathlib.Path(llvm_tools, "mlir-opt"), f"--load-dialect-plugin={plugin}", example, "-o", "/dev/null")


def downstream():
    folder = work / "consumer"
    run(cmake, "-G", "Ninja", "-S", source / "test" / "Consumer", "-B", folder, f"-DCMAKE_PREFIX_PATH={moved}",
        f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}")
    output = run(cmake, "--build", folder, "--verbose")
    check("plugin: libSSAPlugin.so" in output, output)
    check("cmake_pch" not in output and build not in output.replace(str(work), ""), f"something of the build is used:\n{output}")
    # Two of the five keys listed, of width two.
    output = run(folder / "consumer")
    check(output == "width 2\noutput 3.333333e+00 4.333333e+00\n", output)
    output = run(folder / "consumer-c")
    check(output == "doubled 3 -4 2000\n", output)
    # Another version is refused.
    done = subprocess.run([cmake, "-G", "Ninja", "-S", source / "test" / "Consumer", "-B", work / "old", f"-DCMAKE_PREFIX_PATH={moved}",
                           f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}", "-DSSA_WANTED=99.0"], capture_output=True, text=True)
    check(done.returncode and 'requested version "99.0"' in done.stderr, done.stderr)


install()
contents()
tools()
downstream()
