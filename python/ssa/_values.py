# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The integers of a plan.

`Values` computes them twice over: by functions made of Python source once per plan, which is quick but knows no
limits, and, where a number turns out not to fit in 64 bits, one by one, to say which.
"""

from __future__ import annotations

from typing import Any, Callable

from ._bundle import ON_VALUES, Plan

_LOW, _HIGH = -(2**63), 2**63 - 1


def _div(x: int, y: int) -> int:
    if not y:
        return 0
    return x // y if (x < 0) == (y < 0) else -(-x // y)


def _rem(x: int, y: int) -> int:
    return x - _div(x, y) * y if y else 0


_SOURCE = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "_div({0}, {1})",
    "rem": "_rem({0}, {1})",
    "floordiv": "{0} // {1} if {1} else 0",
    "ceildiv": "-(-{0} // {1}) if {1} else 0",
    "max": "{0} if {0} >= {1} else {1}",
    "min": "{0} if {0} <= {1} else {1}",
    "eq": "1 if {0} == {1} else 0",
    "ne": "1 if {0} != {1} else 0",
    "slt": "1 if {0} < {1} else 0",
    "sle": "1 if {0} <= {1} else 0",
    "sgt": "1 if {0} > {1} else 0",
    "sge": "1 if {0} >= {1} else 0",
    "and": "1 if {0} and {1} else 0",
    "or": "1 if {0} or {1} else 0",
    "select": "{1} if {0} else {2}",
    "const": "{0}",
    "dim": "A[{0}][1][{1}]",
    "stride": "A[{0}][2][{1}]",
    "scalar": "A[{0}]",
    "result_stride": "R[{0}][{1}]",
    "index": "I[{0}]",
}


def _make(plan: Plan, numbers: "list[int]") -> "Callable[[list, list, list, list], None]":
    """A function of arguments, strides of results, indices and values, which fills in the values of these numbers."""
    own = set(numbers)

    def operand(number: int) -> str:
        operation, *rest = plan.values[number]
        if operation == "const":
            return f"({rest[0]})"
        return f"v{number}" if number in own else f"V[{number}]"

    lines = ["def compute(A, R, I, V):"]
    for number in numbers:
        operation, *operands = plan.values[number]
        texts = [operand(n) for n in operands] if operation in ON_VALUES else operands
        lines.append(f"    V[{number}] = v{number} = {_SOURCE[operation].format(*texts)}")
    lines.append("    return None")
    scope: "dict[str, Any]" = {"_div": _div, "_rem": _rem}
    exec(compile("\n".join(lines), f"<values of {plan.entry}>", "exec"), scope)  # numbers and names of our own only
    return scope["compute"]


class Evaluator:
    """What is made once of the values of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        repeated = {number for repeat in plan.repeats for number in range(*repeat.values)}
        self.rest = [number for number in range(plan.inputs, len(plan.values)) if number not in repeated]
        self.compute_inputs = _make(plan, list(range(plan.inputs)))
        self.compute_rest = _make(plan, self.rest)
        self.compute_repeats = [_make(plan, list(range(*repeat.values))) for repeat in plan.repeats]


class Values:
    """The values of one call. Those that are not known (yet), or do not fit in 64 bits, are None.

    `problem` says of the first that does not fit why.
    """

    def __init__(self, evaluator: Evaluator, arguments: "list[Any]") -> None:
        self.evaluator, self.plan = evaluator, evaluator.plan
        self.arguments = arguments
        self.result_strides: "list[tuple[int, ...]]" = []
        self.indices = [0] * len(self.plan.repeats)
        self.list: "list[Any]" = [None] * len(self.plan.values)
        self.problem = ""

    def inputs(self) -> None:
        self._run(self.evaluator.compute_inputs, range(self.plan.inputs))

    def rest(self, result_strides: "list[tuple[int, ...]]") -> None:
        self.result_strides = result_strides
        self._run(self.evaluator.compute_rest, self.evaluator.rest)

    def repeat(self, number: int, index: int) -> None:
        self.indices[number] = index
        self._run(self.evaluator.compute_repeats[number], range(*self.plan.repeats[number].values))

    def _run(self, compute: "Callable[[list, list, list, list], None]", numbers: Any) -> None:
        if self.problem:
            return
        values = self.list
        compute(self.arguments, self.result_strides, self.indices, values)
        for number in numbers:
            if not _LOW <= values[number] <= _HIGH:
                for n in numbers:
                    self._compute_one(n)
                return

    def _compute_one(self, number: int) -> None:
        operation, *operands = self.plan.values[number]
        values = self.list
        if operation not in ON_VALUES:
            return  # is there, and fits
        known = [values[operand] for operand in operands]
        if None in known:
            values[number] = None
            return
        source = _SOURCE[operation].format(*(f"({x})" for x in known))
        result = eval(source, {"_div": _div, "_rem": _rem})
        if not _LOW <= result <= _HIGH:
            self.problem = (
                self.problem or f"value {number}, '{operation}' of {known[0]} and {known[1]}, does not fit in 64 bits"
            )
            result = None
        values[number] = result
