#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests. Arguments go to lit:
#
#   scripts/test.sh --filter=topk
#
# common.sh lists the environment variables that choose another build folder or another LLVM.

source "$(dirname "$0")/common.sh"
build_all

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
