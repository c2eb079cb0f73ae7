# RUN: %python %s
"""ssa-tune, as far as it needs no GPU: candidates, bundles for each, tuning files."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile

from ssatest import case, check, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from ssa import tune  # noqa: E402

PATTERN = """
!q = tensor<1x16x?x64xbf16>
!kv = tensor<1x4x?x64xbf16>
!s = !ssa.selection<1x4x?x4, key_block = 64>
func.func @chosen(%q: !q, %k: !kv, %v: !kv, %t: tensor<1x4x?x4xi32>) -> !q {
  %s = ssa.from_indices %t : tensor<1x4x?x4xi32> -> !s
  %o, %l = ssa.sparse_attend %q, %k, %v at %s {mask = #ssa.mask<causal>} : !q, !kv, !kv, !s -> !q, tensor<1x16x?xf32>
  return %o : !q
}
func.func @all(%q: !q, %k: !kv, %v: !kv) -> !q {
  %o, %l = ssa.sparse_attend %q, %k, %v {mask = #ssa.mask<causal>} : !q, !kv, !kv -> !q, tensor<1x16x?xf32>
  return %o : !q
}
"""


def run(*arguments):
    """Exit code and what was written to standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = tune.main(list(map(str, arguments)))
    return code, said.getvalue()


@contextlib.contextmanager
def pattern():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "pattern.mlir")
        path.write_text(PATTERN)
        yield path


@case
def prepare():
    with pattern() as path:
        folder = path.parent / "candidates"
        code, said = run("prepare", path, folder, "--sizes=tokens=4096,queries=1024", "--limit=3")
        check(code == 0, said)
        manifest = json.loads((folder / "candidates.json").read_text())
        check(manifest["assumed"] == {"tokens": 4096, "queries": 1024, "batch": 1}, f"{manifest['assumed']}")
        candidates = manifest["candidates"]
        check([c["entry"] for c in candidates] == ["chosen"] * 3 + ["all"] * 3, f"{candidates}")
        check([c["is_chosen"] for c in candidates] == [True, False, False] * 2, f"{candidates}")
        for candidate in candidates:
            check("problem" not in candidate, f"{candidate}")
            bundle = json.loads((folder / candidate["bundle"]).read_text())
            check(bundle["targets"][0]["chip"] == "sm_90a", "the chip")
        bundles = {(folder / c["bundle"]).read_text() for c in candidates if c["entry"] == "chosen"}
        check(len(bundles) == 3, "candidates must differ")
        lists = next(a for a in manifest["arguments"]["chosen"] if a["name"] == "t")
        check(lists["shape"] == [1, 4, 1024, 4] and lists["list"] == {"key_block": 64, "query_block": 1}, f"{lists}")


@case
def only_one_entry():
    with pattern() as path:
        explanation = json.loads(tune.run_compiler(str(path), "--explain=json", "--chip=sm_90a"))
        found = tune.list_candidates(explanation, "all", 100)
        check({c["entry"] for c in found} == {"all"} and len(found) > 10, f"{len(found)}")
        code, said = run("prepare", path, path.parent / "c", "--entry=none")
        check(code == 1 and "there is no function 'none'; the file has chosen, all" in said, said)


@case
def choosing():
    manifest = {"chip": "sm_90a", "assumed": {"queries": 16, "tokens": 4096}}
    timed = [{"op": "a", "schedule": "s0", "ms": 2.0}, {"op": "a", "schedule": "s1", "ms": 1.0}, {"op": "a", "schedule": "s2", "ms": 0.995},
             {"op": "b", "schedule": "s3", "problem": "no"}]
    entries = tune.choose(manifest, timed, "a GPU")
    check(entries == [{"chip": "sm_90a", "op": "a", "queries": 16, "tokens": 4096, "schedule": "s1", "ms": 1.0, "device": "a GPU"}], f"{entries}")
    old = [dict(entries[0], schedule="old"), dict(entries[0], tokens=8192)]
    merged = tune.merge_entries(old, entries)
    check([e["schedule"] for e in merged] == ["s1", "s1"] and merged[0]["tokens"] == 8192, f"{merged}")
    with tempfile.NamedTemporaryFile() as file:
        tune.write_tuning(file.name, merged)
        check(tune.read_tuning(file.name) == merged, "what is written is read")


@case
def refusals():
    with tempfile.TemporaryDirectory() as folder:
        code, said = run("time", folder)
        check(code == 1 and f"'{folder}' holds no candidates; make them with 'ssa-tune prepare'" in said, said)
        path = pathlib.Path(folder, "wrong.mlir")
        path.write_text("func.func @f() { return 1 }")
        code, said = run("prepare", path, folder)
        check(code == 1 and "error:" in said and "wrong.mlir" in said, said)
        path.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
        code, said = run("prepare", path, folder)
        check(code == 1 and "there is nothing to tune: no attention op has a schedule" in said, said)


@case
def types():
    for text, element in (("tensor<?x4x?x128xbf16>", "bf16"), ("tensor<1x2xi32>", "i32"), ("tensor<4x8xf8E4M3FN>", "f8E4M3FN"), ("f32", "f32")):
        check(tune.parse_type(text) == element, f"{text}: {tune.parse_type(text)}")


main()
