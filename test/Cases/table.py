# RUN: %python %s
"""The table of docs/cases.md and the tests agree."""

from ssatest import *

FOLDER = pathlib.Path(__file__).resolve().parent


@case
def table_names_every_test():
    tests = {(p.name, name) for p in FOLDER.glob("*.py") for name in re.findall(r"^@case\ndef (\w+)\(", p.read_text(), re.M)}
    for folder in ("Runtime", "Python", "Integration/GPU"):  # where tests of cases stand among others
        for path in (FOLDER.parent / folder).glob("*.py"):
            tests |= {(path.name, name) for name in re.findall(r"^@test\ndef ([A-Z]\d+_\w+)\(", path.read_text(), re.M)}
    listed = set()
    for line in (FOLDER.parents[1] / "docs" / "cases.md").read_text().splitlines():
        for file, names in re.findall(r"`([\w-]+\.py)`: ((?:`\w+`(?:, )?)+)", line):
            listed |= {(file, name) for name in re.findall(r"`(\w+)`", names)}
            number = re.match(r"\| ([A-Z]\d+) \|", line)
            for name in re.findall(r"`(\w+)`", names) if number else ():
                check(name.startswith(number[1] + "_"), f"{name} stands in the row of {number[1]}")
    check(tests - listed == set(), f"not in the table: {sorted(tests - listed)}")
    check(listed - tests == set(), f"no such test: {sorted(listed - tests)}")


main()
