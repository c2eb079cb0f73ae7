# RUN: %python %s %source
"""Every rule of a description stands beside its check in the code and in the name of a test; every message is tested.

Rules are numbered in TableGen descriptions (I1.. inputs, C1.. constraints). In code a rule is a comment, `// route_c9`
or `/*route_i1*/`; tests are functions named `@route_c9` or `@route_c9_something`. `ssa_c1` is a rule of the dialect.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
TABLEGEN = sorted((ROOT / "dialects/ssa/IR").glob("*.td"))
CODE = sorted(p for p in (ROOT / "lib/ssa/IR").iterdir() if p.suffix in (".cpp", ".h"))
TESTS = sorted((ROOT / "test/IR").glob("*.mlir"))
# Whose messages are looked for.
MESSAGES = ["SSAVerifiers.cpp", "Verifier.h", "SSAAttrs.cpp", "SSAAssembly.h"]

failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def rules():
    """Labels of all rules in descriptions: {'route_c9', ..}."""
    found = set()
    for path in TABLEGEN:
        text = path.read_text()
        for definition in re.split(r"^(?=def |class )", text, flags=re.M):
            name = re.search(
                r'SSA_Op<"(\w+)"|SSA_Attr<"\w+", "(\w+)"|Op<SSA_Dialect, "(\w+)"|'
                r'let mnemonic = "(\w+)"|let name = "(\w+)"',
                definition,
            )
            description = re.search(r"let description = \[\{(.*?)\}\]", definition, flags=re.S)
            if name and description:
                found |= {
                    f"{next(filter(None, name.groups()))}_{r.lower()}"
                    for r in re.findall(r"\b[IC]\d+\b", description[1])
                }
    return found


def labels():
    """Labels in comments, each with a file that has it."""
    found = {}
    for path in TABLEGEN + CODE:
        for comment in re.findall(r"//[^\n]*|/\*.*?\*/", path.read_text(), flags=re.S):
            for label in re.findall(r"\b[a-z_]+_[ic]\d+\b", comment):
                if "`" not in comment:
                    found[label] = path.name
    return found


def tested():
    """Labels in names of test functions, each with a file that has it."""
    found = {}
    for path in TESTS:
        for name in re.findall(r"func\.func (?:private )?@(\w+)", path.read_text()):
            label = re.match(r"[a-z_]+?_[ic]\d+(?=_|$)", name)
            if label:
                found[label[0]] = path.name
    return found


def literals(text):
    """String literals of C++ source with neighbours joined, without comments and includes."""
    text = re.sub(r"^#include[^\n]*|//[^\n]*|/\*.*?\*/", "", text, flags=re.M | re.S)
    text = re.sub(r'"\s*\n\s*"', "", text)
    return [re.sub(r"\\(.)", r"\1", s) for s in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)]


def expectations():
    """What tests expect of messages."""
    return "\n".join(m for p in TESTS for m in re.findall(r"expected-(?:error|note)[^{]*\{\{(.*)\}\}", p.read_text()))


in_rules, in_code, in_tests = rules(), labels(), tested()
check(len(in_rules) > 80, f"found only {len(in_rules)} rules")
for label in sorted(in_rules - in_code.keys()):
    check(False, f"rule {label} stands beside no check: label the check, or drop the rule")
for label in sorted(in_code.keys() - in_rules):
    check(False, f"{in_code[label]}: label {label} is no rule: describe it, or drop the label")
for label in sorted(in_rules - in_tests.keys()):
    check(False, f"rule {label} has no test: add a function @{label} to test/IR")
for label in sorted(in_tests.keys() - in_rules):
    check(False, f"{in_tests[label]}: test {label} is named after no rule")

expected, count = expectations(), 0
for name in MESSAGES:
    for text in literals((ROOT / "lib/ssa/IR" / name).read_text()):
        # Words of messages have a space around or in them; what the printers print is none.
        if " " in text and re.search(r"[a-z]", text) and not re.search(r" = $|^ score \($|^, sorted$", text):
            count += 1
            check(text in expected, f"{name}: no test expects {text!r}")
check(count > 100, f"found only {count} parts of messages")

print(f"{len(in_rules)} rules, {count} parts of messages, {len(failures)} failures")
for failure in failures:
    print(failure, file=sys.stderr)
sys.exit(bool(failures))
