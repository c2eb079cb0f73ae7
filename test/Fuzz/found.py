# RUN: %python %s
"""What the fuzzer found: each input ends with a message now. Seeds are those with which fuzz.py made it first."""

import os
import resource
import subprocess

FAILURES = []


def refused(name, tool, text, *words, arguments=(), memory=None):
    """The tool refuses the input, with exit code 1 and a message that holds the words."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None
    done = subprocess.run(
        [os.environ[tool], "-", *arguments], input=text, capture_output=True, text=True, timeout=120, preexec_fn=limit
    )
    if done.returncode != 1 or not all(w in done.stderr for w in words):
        FAILURES.append(f"{name}: exit code {done.returncode}: {done.stderr[:1000]}")


# Seed 1, input 3367: a constant takes all the memory that the process may have, which is less than the machine has.
refused(
    "constant_of_all_memory",
    "SSA_RUN",
    """
func.func @main() {
  %c = arith.constant dense<1.0> : tensor<536870912xf32>
  return
}
""",
    "'arith.constant' op",
    "needs 2147483648 bytes, but at most",
    memory=2 << 30,
)

# Seed 101, input 4704: upstream's verifier of this op looks at dimension -1. ssa-run says so; ssa-opt cannot.
refused(
    "concat_along_a_negative_dimension",
    "SSA_RUN",
    """
func.func @main(%x: tensor<?x?xf32>) {
  %d = tensor.concat dim(-1) %x, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}
""",
    "is not valid",
)

for failure in FAILURES:
    print(failure)
assert not FAILURES
