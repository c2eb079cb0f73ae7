#!/usr/bin/env bash
# Installs what is missing, builds, and runs native sparse attention (NSA) from examples/nsa.mlir on
# generated .npy files. The result is then compared with an independent NumPy computation.
#
# common.sh lists the environment variables that choose another build folder or another LLVM.

source "$(dirname "$0")/common.sh"
build_all

folder=${build#"$root/"}/demo
rm -rf "$folder"
say "inputs in $folder: a causal sequence of 1021 tokens, 16 query heads, 4 key heads"
inputs=$("$python" examples/generate.py nsa "$folder" --m=1021) || die "examples/generate.py failed; see the message above"

command=(ssa-run examples/nsa.mlir --entry=nsa --in "$inputs" --out "$folder/o.npy" --print)
say "${command[*]}"
step run '^$' "${command[@]}"

say "comparing $folder/o.npy with an independent NumPy computation"
export PYTHONPATH=$root/test/Support
step check '^$' "$python" test/Examples/nsa.py --check "$folder" "$folder/o.npy"
say "done"
