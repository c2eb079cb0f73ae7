# RUN: %python %s
"""ssa-opt --explain: what it says of every example, for people and for tools, and what it refuses."""

import json
import pathlib
import subprocess

from ssatest import _tool, case, check, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.mlir"))


def ssa_opt(*arguments, text=""):
    return subprocess.run([_tool("ssa-opt"), *map(str, arguments)], input=text, capture_output=True, text=True, errors="replace", timeout=120)


def explain(*arguments, text=""):
    done = ssa_opt("--explain=json", *arguments, text=text)
    check(done.returncode == 0 and not done.stderr, f"{arguments}: {done.stderr}")
    return json.loads(done.stdout)


@case
def every_example_for_tools():
    for path in EXAMPLES:
        said = explain(path, "--chip=sm_90a", "--sizes=32768")
        check(said["format"] == "ssa-explanation" and said["version"] == 1 and said["measured"], f"{path.name}: {said}")
        check(len(said["entries"]) >= 1, f"{path.name}: no entries")
        for entry in said["entries"]:
            where = f"{path.name} @{entry['entry']}"
            check(not entry["refusals"], f"{where}: the assumed sizes do not fit: {entry['refusals']}")
            check(entry["kernels"], f"{where}: no kernels")
            total = sum(kernel["ms"] for kernel in entry["kernels"])
            check(abs(total - entry["ms"]) <= 1e-9 + 1e-9 * total, f"{where}: {total} and {entry['ms']} ms")
            for kernel in entry["kernels"]:
                check(kernel["op"], f"{where}: {kernel['kernel']} is launched for no op")
                longest = max(kernel["busy_ms"].values())
                check(0 < longest <= kernel["ms"] * (1 + 1e-9), f"{where}: {kernel['kernel']} takes less than its units: {kernel}")
                check(kernel["runs"] >= 1 and kernel["blocks"] >= 1 and kernel["blocks_per_sm"] >= 1, f"{where}: {kernel}")
            for choice in entry["choices"]:
                schedules = [s["schedule"] for s in choice["schedules"]]
                check(len(schedules) == len(set(schedules)), f"{where}: a schedule is listed twice")
                times = [s["ms"] for s in choice["schedules"]]
                check(times == sorted(times) and choice["chosen"]["ms"] > 0, f"{where}: not by time: {times}")


@case
def every_example_for_people():
    for path in EXAMPLES:
        done = ssa_opt("--explain", path, "--chip=sm_90a")
        check(done.returncode == 0 and not done.stderr, f"{path.name}: {done.stderr}")
        lines = done.stdout.splitlines()
        widest = max(lines, key=len)
        check(len(widest) <= 120, f"{path.name}: {len(widest)} columns: {widest}")
        for word in ("Kernels, in the order of their launch", "Where the time goes", "Memory: arguments"):
            check(word in done.stdout, f"{path.name}: expected '{word}'")


@case
def other_chips():
    for chip, measured in (("sm_100a", False), ("sm_90", True), ("sm_80", False)):
        said = explain(ROOT / "examples/nsa.mlir", f"--chip={chip}")
        check(said["chip"] == chip and said["measured"] == measured, f"{chip}: {said['chip']}, {said['measured']}")
    done = ssa_opt("--explain", ROOT / "examples/nsa.mlir", "--chip=sm_100a")
    check("rates of B200 as published, not measured" in done.stdout, done.stdout[:200])


@case
def useful_work_and_its_limit():
    """Lists of a head for 128 queries, on a B200: tiles of 128 rows load keys of their own each."""
    q, kv, l, sel = "tensor<?x64x?x128xbf16>", "tensor<?x4x?x128xbf16>", "tensor<?x64x?xf32>", "!ssa.selection<?x64x?x8, key_block = 128, query_block = 128, sorted>"
    text = (f"func.func @shared(%q: {q}, %k: {kv}, %v: {kv}, %s: {sel}) -> {q} {{\n  %o, %l = ssa.sparse_attend %q, %k, %v at %s {{mask = #ssa.mask<causal>}} "
            f": {q}, {kv}, {kv}, {sel} -> {q}, {l}\n  return %o : {q}\n}}\n")
    useful = explain("-", "--chip=sm_100a", "--sizes=131072", text=text)["entries"][0]["choices"][0]["useful_tflops"]
    check(1300 <= useful["predicted"] <= useful["at_most"] < 1500 and useful["by"] == "L2", f"{useful}")


@case
def sizes_of_arguments_follow_from_their_use():
    said = explain(ROOT / "examples/second-stream.mlir", "--chip=sm_90a", "--sizes=tokens=8192,queries=16")
    shapes = {a["name"]: a["shape"] for a in said["entries"][0]["arguments"] if "shape" in a}
    check(shapes["q"][2] == 16 and shapes["k"][2] == 8192 and shapes["e"][2] == 2048 and shapes["w"][2] == 16, f"{shapes}")
    said = explain(ROOT / "benchmarks/attend.mlir", "--chip=sm_90a", "--sizes=tokens=8192,batch=3")
    shared = next(e for e in said["entries"] if e["entry"] == "shared")
    lists = next(a for a in shared["arguments"] if "list" in a)
    check(lists["shape"] == [3, 64, 64, 8] and lists["list"] == {"key_block": 128, "query_block": 128}, f"{lists}")
    said = explain(ROOT / "examples/moba.mlir", "--chip=sm_90a", "--sizes=tokens=8192,k=4096")
    check(any("got" in refusal for refusal in said["entries"][0]["refusals"]), f"{said['entries'][0]['refusals']}")


@case
def the_model_on_what_was_measured():
    """H200, 131072 tokens, docs/performance; the table of docs/explain.md. Within a quarter, so that a change of the model shows."""
    measured = {"dense": 479.1, "window": 31.1, "per_query": 34.4, "shared": 9.1, "shared_64": 11.5}
    said = explain(ROOT / "benchmarks/attend.mlir", "--chip=sm_90a")
    for entry in said["entries"]:
        if entry["entry"] in measured:
            ms = measured[entry["entry"]]
            check(abs(entry["ms"] - ms) <= 0.25 * ms, f"{entry['entry']}: predicted {entry['ms']}, measured {ms}")
    dsa = explain(ROOT / "benchmarks/attend.mlir", "--chip=sm_90a", "--sizes=tokens=32768,queries=4096")["entries"]
    ms = next(e["ms"] for e in dsa if e["entry"] == "dsa")
    check(abs(ms - 5.4) <= 0.25 * 5.4, f"dsa: predicted {ms}, measured 5.4")


@case
def agreement_changes_the_order():
    random, agreeing = (explain(ROOT / "benchmarks/attend.mlir", "--chip=sm_90a", f"--agreement={share}") for share in (0, 0.9))
    for said, order in ((random, "key_outer"), (agreeing, "union")):
        choice = next(e for e in said["entries"] if e["entry"] == "per_query")["choices"][0]
        check(f"order = {order}" in choice["chosen"]["schedule"], f"expected {order}, but got {choice['chosen']['schedule']}")


@case
def the_device_chooses():
    """Both schedules are told, with the agreement from which on the second one is the better; kernels of the one that is not used cost a launch."""
    pattern = ROOT / "benchmarks/attend.mlir"
    random = explain(pattern, "--chip=sm_90a", "--choose-at-run-time")
    entry = next(e for e in random["entries"] if e["entry"] == "per_query")
    choice, leaving = entry["choices"][0], [k for k in entry["kernels"] if k.get("leaves")]
    check(choice["source"] == "device" and "order = key_outer" in choice["chosen"]["schedule"], f"{choice}")
    check("order = union" in choice["on_device"]["other"]["schedule"], f"{choice}")
    least, same, most = choice["on_device"]["times"]
    check(least["ms"] < least["agreeing_ms"] and same["agreeing_ms"] <= same["ms"] and most["agreeing_ms"] < 0.9 * most["ms"], f"{choice['on_device']}")
    check(len(leaving) == 3 and sum(k["ms"] for k in leaving) < 0.01, f"{leaving}")
    shown = ssa_opt("--explain", pattern, "--chip=sm_90a", "--choose-at-run-time").stdout
    check("the device chooses: schedule 2 where the next query's list has" in shown, shown)


@case
def memory_saved_by_compression():
    said = explain(ROOT / "examples/kv-compress.mlir", "--chip=sm_90a")
    compress = next(e for e in said["entries"] if e["entry"] == "compress")
    gathers = compress["memory"]["gathers"]
    check(len(gathers) == 2 and all(g["kept_bytes"] * 256 == g["source_bytes"] for g in gathers), f"{gathers}")
    shown = ssa_opt("--explain", ROOT / "examples/kv-compress.mlir", "--chip=sm_90a").stdout
    check("keeps 512 KiB of 128 MiB: 128 MiB saved (99 %)" in shown, shown)


@case
def ops_that_one_kernel_does():
    """In a fused mix the part that is last is neither written nor read."""
    nsa = ROOT / "examples/nsa.mlir"
    entry = next(e for e in explain(nsa, "--chip=sm_90a", "--sizes=32768")["entries"] if e["entry"] == "nsa")
    joins = [f for f in entry["fusions"] if f["op"] == "ssa.mix"]
    check(len(joins) == 1 and joins[0]["into"]["op"] == "ssa.sparse_attend", f"{entry['fusions']}")
    check(joins[0]["saved_bytes"] == 2 * 16 * 32768 * 128 * 2, f"{joins}")
    check(not any(k["kernel"].startswith("ssa_mix") for k in entry["kernels"]), "there is a kernel for the mix")
    shown = ssa_opt("--explain", nsa, "--chip=sm_90a", "--sizes=32768").stdout
    sums = [f for f in entry["fusions"] if f["part"]]
    check(len(sums) == 1 and (sums[0]["op"], sums[0]["part"], sums[0]["into"]["op"]) == ("ssa.route", "sums", "ssa.sparse_attend"), f"{entry['fusions']}")
    check("ssa.mix :38 is done by the kernel of ssa.sparse_attend :37: 256 MiB less to move" in shown, shown)


@case
def refusals():
    nsa = ROOT / "examples/nsa.mlir"
    for arguments, words in (
            (["--explain", "--emit=ptx", nsa], "'--explain' and '--emit' exclude each other"),
            (["--sizes=4096", nsa], "'--sizes' needs '--explain' or '--emit'"),
            (["--choose-at-run-time", nsa], "'--choose-at-run-time' needs '--explain' or '--emit'"),
            (["--explain-registers", "--emit=plan", nsa], "'--explain-registers' needs '--explain'"),
            (["--explain", "--sizes=many", nsa], "expected 'sizes' to be like '131072' or 'tokens=131072,queries=16,NAME=1024', of numbers in 1 .. "
                                                 "2147483647, but got 'many'"),
            (["--explain", "--agreement=1.5", nsa], "expected 'agreement' to be a share in 0 .. 1, but got 1.5"),
            (["--explain", "--chip=sm_90a,sm_100a", nsa], "expected one chip to explain, but got 2"),
            (["--explain", "--tuning=/no/such/file", nsa], "tuning file '/no/such/file' cannot be read: No such file or directory")):
        done = ssa_opt(*arguments)
        check(done.returncode == 1 and not done.stdout and words in done.stderr, f"{arguments}: {done}")


main()
