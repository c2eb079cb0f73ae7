# RUN: %python %s
"""ssa-opt as a newcomer meets it: help, start-up time, versions, errors."""

import re
import resource
import shlex
import subprocess
import tempfile

from ssatest import _tool, case, check, main

PATTERN = """func.func @blocks(%k: tensor<?x2x?x64xf32>) -> tensor<?x2x?x64xf32> {
  %kc = ssa.pool mean %k {blocks = #ssa.blocks<64>} : tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  return %kc : tensor<?x2x?x64xf32>
}
"""


def ssa_opt(*arguments, text=PATTERN):
    return subprocess.run([_tool("ssa-opt"), *arguments], input=text, capture_output=True, text=True,
                          errors="replace", timeout=60)


def options(text):
    """The options that a text names, with their values: one at the start of a line, or several separated by commas."""
    for line in text.splitlines():
        named = re.match(r"  (--?\w.*?)(?:  |$)", line)
        yield from (re.split(r",\s+", named[1]) if named else [])


@case
def help_fits_a_screen_and_names_the_pipelines():
    shown = ssa_opt("--help")
    check(shown.returncode == 0 and not shown.stderr, f"expected help, but got {shown}")
    check(len(shown.stdout.splitlines()) <= 50, f"help has {len(shown.stdout.splitlines())} lines")
    check(max(map(len, shown.stdout.splitlines())) <= 100, "help is wider than a terminal")
    every = ssa_opt("--help-all").stdout
    check(len(every.splitlines()) > 500 and "--convert-scf-to-cf" in every, "--help-all lists the passes of MLIR")
    pipelines = re.findall(r"--(ssa-[\w-]+)", every[every.index("Pass Pipelines:"):].split("\n  --")[0])
    check("ssa-optimize" in pipelines, f"expected our pipelines, but got {pipelines}")
    for pipeline in pipelines:
        check(f"--{pipeline} " in shown.stdout, f"help does not name --{pipeline}")
    for spelling in ("-h", "-help"):
        check(ssa_opt(spelling).stdout == shown.stdout, f"{spelling} is help, too")


@case
def every_option_in_help_is_accepted():
    named = list(options(ssa_opt("--help").stdout))
    check(len(named) >= 14 and "--ssa-optimize" in named and "-o FILE" in named, f"found only {named}")
    with tempfile.NamedTemporaryFile() as file:
        for option in named:
            words = shlex.split(option.replace("FILE", file.name))
            # What makes kernels takes some patterns for some chips, and a module without any.
            kernels = "kernels" in option or option.startswith(("--emit=", "--chip=", "--sizes="))
            words += ["--emit=bundle"] if option.startswith(("--chip=", "--sizes=")) else []
            done = ssa_opt(*words, text="module {}\n" if kernels else PATTERN)
            check(done.returncode == 0, f"{option}: {done.stderr}")


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@case
def start_up():
    """--help starts within 150 ms, and checking a small file within twice that. In CPU time: what else the machine
    does, such as running other tests, has no part in it."""
    for arguments, limit in ((["--help"], 0.15), (["-o", "/dev/null"], 0.3)):
        times = []
        for _ in range(5):
            start = cpu_seconds()
            ssa_opt(*arguments)
            times.append(cpu_seconds() - start)
        check(0 < min(times) < limit, f"{arguments}: expected less than {limit} s, but got {min(times):.3f} s")


@case
def versions():
    done = ssa_opt("--version")
    check(re.fullmatch(r"ssa-opt \d+\.\d+\.\d+ \(LLVM 22\.1\.\d+\)\n", done.stdout), f"got {done.stdout!r}")
    check(",ssa," in ssa_opt("--show-dialects").stdout, "ssa is a dialect that can be read")


@case
def files():
    done = ssa_opt("missing.mlir")
    check(done.returncode == 1, f"expected exit code 1, but got {done.returncode}")
    check(done.stderr == "ssa-opt: error: cannot read 'missing.mlir': No such file or directory\n", done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        done = ssa_opt(folder)
        check(done.returncode == 1 and "Is a directory" in done.stderr, f"got {done}")
        done = ssa_opt("-o", f"{folder}/no/such/file")
        check(done.returncode == 1 and "No such file or directory" in done.stderr, f"got {done}")
    check(ssa_opt("-").stdout == ssa_opt().stdout != "", "'-' is standard input")
    # What can be read only once.
    done = subprocess.run(["bash", "-c", f"{_tool('ssa-opt')} <(cat)"], input=PATTERN, capture_output=True, text=True,
                          timeout=60)
    check(done.returncode == 0 and "ssa.pool" in done.stdout, f"a pipe by its name: {done}")


@case
def unknown_passes():
    for arguments, words in (
            (["--ssa-optimise"], ["Unknown command line argument '--ssa-optimise'", "Did you mean '--ssa-optimize'?"]),
            (["--pass-pipeline=builtin.module(ssa-optimise)"],
             ["'ssa-optimise' does not refer to a registered pass or pass pipeline"]),
            (["--pass-pipeline=ssa-optimize"], ["expected pass pipeline to be wrapped", "builtin.module(...)"])):
        done = ssa_opt(*arguments)
        check(done.returncode == 1 and not done.stdout, f"{arguments}: expected exit code 1 and no output: {done}")
        for w in words:
            check(w in done.stderr, f"{arguments}: expected {w!r}, but got {done.stderr!r}")


@case
def errors_show_the_source():
    done = ssa_opt(text=PATTERN.replace("blocks<64>", "blocks<0>"))
    check(done.returncode == 1 and not done.stdout, f"got {done}")
    check(re.search(r"<stdin>:2:\d+: error: .*\n  %kc = ssa.pool .*\n +\^", done.stderr), f"got {done.stderr}")


main()
