# RUN: %python %s %build/docs/ssa-dialect.md
"""Every op, attribute and type of the generated documentation has an example that parses and verifies.

An example of an op gets a function around it, whose arguments are the values that the example uses but does not make;
their types are those that the example itself gives its operands.
"""

import os
import pathlib
import re
import subprocess
import sys


def accepted(text):
    """The first error of a module, '' when there is none."""
    done = subprocess.run([os.environ["SSA_OPT"]], input=text, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else next((l for l in done.stderr.splitlines() if "error" in l), done.stderr)


def split_types(text):
    """Types of a list, which have commas inside of their brackets."""
    return re.findall(r"[^,<\s]+(?:<[^>]*>)?", text)


def wrap(example):
    """The example in a function, with its free values as arguments."""
    # The operands of the op stand in front of its region, their types behind it.
    head, _, region = example.partition(" score (")
    tail = region.partition("} : ")[2] if region else head.rpartition(" : ")[2]
    names = re.findall(r"%\w+", head.partition(" = ")[2])
    types = split_types(tail.partition("->")[0])
    if len(names) != len(types):
        raise ValueError(f"{len(names)} operands, but {len(types)} types in\n{example}")
    arguments = ", ".join(f"{n}: {t}" for n, t in dict(zip(names, types)).items())
    return f"func.func @example({arguments}) {{\n{example}\n  return\n}}\n"


def examples_of(title, section):
    """Modules made of the examples of a section of the documentation; None where it needs none."""
    op = re.match(r"`(ssa\.\w+)`", title)
    if op:
        return [wrap(e) for e in re.findall(r"```mlir\n(.*?)```", section, flags=re.S) if op[1] in e]
    if not re.fullmatch(r"\w+(Attr|Type)", title) or "an enum of type" in section:
        return None
    paragraph = re.search(r"^Example: (.*?)\n\n", section, flags=re.M | re.S)
    spelled = re.findall(r"`([#!][^`]*)`", paragraph[1]) if paragraph else []
    return [f"module attributes {{test.value = {e}}} {{}}" for e in spelled]


failures, count = [], 0
for part in re.split(r"^### ", pathlib.Path(sys.argv[1]).read_text(), flags=re.M)[1:]:
    title, _, section = part.partition("\n")
    examples = examples_of(title, section)
    if examples == []:
        failures.append(f"{title}: has no example")
    for example in examples or []:
        count += 1
        message = accepted(example)
        if message:
            failures.append(f"{title}: {message}\n{example}")

print(f"{count} examples, {len(failures)} failures")
if count < 20:
    failures.append("found too few examples")
for failure in failures:
    print(failure, file=sys.stderr)
sys.exit(bool(failures))
