# RUN: %python %s
"""benchmarks/, as far as it needs no GPU: the rows and their cases, the table of results, plots, patterns, and what the README says of them."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest.mock

from ssatest import _tool, case, check, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
sys.path.insert(0, str(FOLDER))
import rows  # noqa: E402


def compare(*arguments):
    return subprocess.run([sys.executable, FOLDER / "compare.py", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def result(name, ms, **more):
    row = next(r for r in rows.ALL_ROWS if r.name == name)
    return {"name": name, "title": row.title, "kind": row.kind, "tokens": row.tokens, "flop": 0, "bytes": 0, "floor_ms": 1.5, "ms": ms, "rested": ms} | more


@case
def every_row_has_a_case():
    """torch is not here: the cases are only named."""
    with unittest.mock.patch.dict(sys.modules, {name: unittest.mock.MagicMock() for name in ("torch", "torch.nn", "torch.nn.attention")}):
        import cases_attend
        import cases_method
        import cases_select
    cases = {**cases_attend.CASES, **cases_select.CASES, **cases_method.CASES}
    named = [row.name for row in rows.ALL_ROWS if row.kind != "compile"]
    check(sorted(named) == sorted(cases), f"rows and cases differ by {set(named) ^ set(cases)}")


@case
def entries_that_cases_call_exist():
    for path in FOLDER.glob("cases_*.py"):
        for bundle, entry in re.findall(r'ours\(bundles, "(\w+)", "(\w+)"', path.read_text()):
            check(f"@{entry}(" in (FOLDER / f"{bundle}.mlir").read_text(), f"{path.name}: no @{entry} in {bundle}.mlir")


@case
def methods_compile():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "methods.json"
        done = subprocess.run([_tool("ssa-opt"), FOLDER / "methods.mlir", "--emit=bundle", "--chip=sm_90a", "-o", out], capture_output=True, text=True, timeout=120)
        check(done.returncode == 0 and out.exists(), done.stderr)


@case
def rows_are_found_by_words():
    def found(words, sizes=()):
        return [(r.name, r.tokens) for r in rows.find_rows(words, sizes)]

    check(found(["shared-8"]) == [("shared-8", 131072)], found(["shared-8"]))
    check(found(["low-rank"]) == [("low-rank", 131072)], f"a whole name means that row alone: {found(['low-rank'])}")
    check([n for n, _ in found(["moba"])] == ["moba-2048", "moba-512"], found(["moba"]))
    check(found(["window"], [4096, 8192]) == [("window", 4096), ("window", 8192)], found(["window"], [4096, 8192]))
    check(not found(["topk-16"], [4096]), "a row without tokens has no other number of them")
    listed = compare("--list").stdout
    check(all(line.split()[0] == row.name for line, row in zip(listed.splitlines(), rows.ALL_ROWS)), listed)
    check("38 ms" in listed and "620 TFLOP/s" in listed, listed)
    refused = compare("nothing-like-it")
    check(refused.returncode == 1 and "no row has nothing-like-it in its name" in refused.stderr, refused.stderr)


@case
def table_and_plots_of_results():
    flop = 4e12
    before = {"results": [result("nsa-0", {"ssa": 60}), result("topk-16", {"ssa": 0.2, "torch": 1.25})]}
    after = {"results": [result("nsa-0", {"ssa": 37}, rested={"ssa": 36.5}), result("shared-8", {"ssa": 8, "flex": 10}, flop=flop, floor_ms=flop / 810e9),
                         result("dense", {"ssa": 400}), result("dense", {"ssa": 30}, tokens=32768), result("selected-0", {})]}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, content in enumerate((before, after)):
            files.append(pathlib.Path(folder) / f"{number}.json")
            files[-1].write_text(json.dumps(content))
        done = compare("--results", *files, "--plots", folder)
        check(done.returncode == 0, done.stderr)
        drawn = sorted(p.stem for p in pathlib.Path(folder).glob("*.*") if p.suffix in (".svg", ".png"))
        check(drawn == ["roof", "speedup-131072", "speedup-32768", "time-dense"], drawn)
    lines = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    check([line.split("`")[1] for line in lines] == ["nsa-0", "selected-0", "shared-8", "topk-16"], lines)
    check("| **37** ms | 36.5 | 38 | 1.5 | - | 103.5 |" in lines[0], f"what counts is the later file: {lines[0]}")
    check("| - | - | 26 |" in lines[1], lines[1])
    check("| 500 TFLOP/s | 500 | 620 | 810 | flex 10 ms |" in lines[2], lines[2])
    check("| 0.2 ms | 0.2 | 0.18 | 1.5 | torch 1.25 ms | 1.2 |" in lines[3], lines[3])


@case
def documents_name_rows_that_exist():
    names = {row.name for row in rows.ALL_ROWS}
    for path in (ROOT / "README.md", *(ROOT / "docs/performance").glob("*.md")):
        text = path.read_text()
        for words in re.findall(r"compare\.py((?: [a-z0-9-]+)*)", text):
            for word in words.split():
                check(word.startswith("-") or any(word in name for name in names), f"{path.name}: no row has '{word}' in its name")
        for name in re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.M):
            check(name in names, f"{path.name}: no row '{name}'")


if __name__ == "__main__":
    main()
