#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests. Arguments go to lit:
#
#   scripts/test.sh --filter=topk
#
# common.sh lists the environment variables that choose another build folder or another LLVM. Tests that assemble PTX take the
# ptxas of an installed CUDA toolkit, else one from PyPI, which is put below the build folder.

source "$(dirname "$0")/common.sh"

has_ptxas() {
  local folder
  command -v ptxas >/dev/null && return
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    [[ -z $folder || ! -x $folder/bin/ptxas ]] || return 0
  done
  return 1
}

# Sets CUDA_HOME to a folder with a ptxas, or says why tests that need one are skipped.
provide_ptxas() {
  local wheel=nvidia-cuda-nvcc==13.0.88 folder=$build/ptxas-env why
  if ! has_ptxas && [[ ! -x $folder/bin/ptxas ]]; then
    say "getting ptxas from $wheel"
    if ! "$python" -m pip --version >/dev/null 2>&1; then
      why="$python has no pip"
    elif ! logged ptxas '.' timeout 300 "$python" -m pip download --no-deps --only-binary=:all: -d "$folder" "$wheel"; then
      why="the download failed, see $logs/ptxas.log"
    else
      "$python" - "$folder" <<'END' || why="the wheel has no ptxas"
import pathlib, sys, zipfile

folder = pathlib.Path(sys.argv[1])
for wheel in folder.glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/bin/ptxas"))
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin/part").write_bytes(archive.read(name))
    wheel.unlink()
(folder / "bin/part").chmod(0o755)
(folder / "bin/part").rename(folder / "bin/ptxas")
END
    fi
    [[ -z ${why:-} ]] || say "tests that assemble PTX are skipped: no ptxas is installed, and $why"
  fi
  [[ ! -x $folder/bin/ptxas ]] || has_ptxas || export CUDA_HOME=$folder
}

has_ptxas || tools+=(python3-pip)
build_all
provide_ptxas

results=$build/test-results.json
rm -f "$results"
export PYTHONUNBUFFERED=1
printf -v LIT_OPTS ' %q' --no-progress-bar --print-result-after=all -o "$results" "$@"
export LIT_OPTS

say "testing"
status=0
logged test '^(PASS|XFAIL|UNSUPPORTED|\[)' cmake --build "$build" --target check-ssa || status=$?
[[ -s $results ]] || die "the tests did not run; mend what $logs/test.log says and run this script again"

"$python" - "$results" <<'END'
import collections, json, sys

count = collections.Counter(test["code"] for test in json.load(open(sys.argv[1]))["tests"])
passed = count.pop("PASS", 0) + count.pop("FLAKYPASS", 0) + count.pop("XFAIL", 0)
skipped = count.pop("UNSUPPORTED", 0) + count.pop("SKIPPED", 0) + count.pop("EXCLUDED", 0)
print(f"{passed} passed, {sum(count.values())} failed" + (f", {skipped} skipped" if skipped else ""))
END
((status == 0)) || die "tests failed; their output is in $logs/test.log"
