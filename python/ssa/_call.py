# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans evaluated for one set of sizes: everything that does not depend on addresses, so that it can be kept.

lib/Runtime does the same, with the same messages.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, NamedTuple

from . import _layout as layout
from ._bundle import DTYPE_BYTES, INTEGERS, Argument, Plan, Result

_LOW, _HIGH = -(2**63), 2**63 - 1
_MAX_GRID = (2**31 - 1, 65535, 65535)
_FORMATS = {"i64": "<q", "i32": "<i", "i16": "<h", "i8": "<b", "i1": "<b", "f32": "<f", "f64": "<d"}


def _div(x: int, y: int) -> int:
    if not y:
        return 0
    return x // y if (x < 0) == (y < 0) else -(-x // y)


_BINARY: "dict[str, Callable[[int, int], int]]" = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _div,
    "rem": lambda x, y: x - _div(x, y) * y if y else 0,
    "floordiv": lambda x, y: x // y if y else 0,
    "ceildiv": lambda x, y: -(-x // y) if y else 0,
    "max": max,
    "min": min,
    "eq": lambda x, y: int(x == y),
    "ne": lambda x, y: int(x != y),
    "slt": lambda x, y: int(x < y),
    "sle": lambda x, y: int(x <= y),
    "sgt": lambda x, y: int(x > y),
    "sge": lambda x, y: int(x >= y),
    "and": lambda x, y: int(bool(x and y)),
    "or": lambda x, y: int(bool(x or y)),
}


class Map(NamedTuple):
    """A tensor map at `offset` in the parameters, of the array at `base` + `distance`."""

    offset: int
    number: int
    base: int
    distance: int
    dtype: str
    shape: "tuple[int, ...]"
    strides: "tuple[int, ...]"


class ReadyLaunch(NamedTuple):
    """A launch with all numbers known but the addresses: `pointers` has (offset, base, distance), `floats` (offset, format,
    argument); a base is the number of an argument, the number of arguments + that of a result, or -1, the workspace."""

    kernel: str
    grid: "tuple[int, int, int]"
    block: "tuple[int, int, int]"
    cluster: "tuple[int, int, int] | None"
    shared: int
    parameters: bytes
    pointers: "tuple[tuple[int, int, int], ...]"
    floats: "tuple[tuple[int, str, int], ...]"
    maps: "tuple[Map, ...]"


class Alias(NamedTuple):
    """A result that is memory of an argument or of another result, see ReadyLaunch."""

    base: int
    distance: int
    strides: "tuple[int, ...]"


class Prepared(NamedTuple):
    results: "tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]"
    aliases: "tuple[Alias | None, ...]"
    workspace: int
    launches: "tuple[ReadyLaunch, ...]"


def check_scalar(argument: Argument, value: "int | float") -> None:
    if argument.dtype in INTEGERS:
        bits = 1 if argument.dtype == "i1" else 8 * DTYPE_BYTES[argument.dtype]
        low, high = (0, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if not low <= value <= high:
            raise ValueError(f"argument '{argument.name}' must be {argument.dtype}, but got {value}")


def check_array(argument: Argument, dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> "tuple[int, ...]":
    """Checks all but the address; returns the strides that kernels get."""
    what = f"argument '{argument.name}'"
    if dtype != argument.dtype:
        raise TypeError(f"{what} must be {argument.dtype}, but got {dtype}")
    if len(shape) != len(argument.shape) or any(e is not None and e != n for e, n in zip(argument.shape, shape)):
        raise ValueError(f"{what} must have shape {layout.text(argument.shape)}, but got {layout.text(shape)}")
    if len(strides) != len(shape):
        raise ValueError(f"{what} must have as many strides as sizes")
    layout.check_layout(what, shape, strides)
    strides = layout.normalized(shape, strides)
    expected = argument.strides
    if expected is None:
        layout.check_contiguous(what, shape, strides)
    else:
        for d in range(len(shape) - 1, -1, -1):
            if expected[d] is not None:
                layout.check_stride(what, shape, strides, d, expected[d])
    if argument.access != "none" and expected is not None and 0 not in shape:
        layout.check_stride_alignment(what, dtype, shape, strides, argument.alignment, lambda d: expected[d] is None)
    return strides


def check_result(result: Result, shape: "tuple[int, ...]", dtype: str, given: "tuple[int, ...]",
                 strides: "tuple[int, ...]") -> "tuple[int, ...]":
    """Checks an array that a caller gives for a result of this shape, all but the address; returns the strides."""
    what = f"result '{result.name}'"
    if dtype != result.dtype:
        raise TypeError(f"{what} must be {result.dtype}, but got {dtype}")
    if given != shape or len(strides) != len(shape):
        raise ValueError(f"{what} must have shape {layout.text(shape)}, but got {layout.text(given)}")
    strides = layout.normalized(shape, strides)
    layout.check_layout(what, shape, strides)
    if result.contiguous:
        layout.check_contiguous(what, shape, strides)
    elif shape:
        layout.check_stride(what, shape, strides, len(shape) - 1, 1)
        if 0 not in shape:
            layout.check_stride_alignment(what, dtype, shape, strides, result.alignment, lambda d: d + 1 < len(shape))
    if not layout.is_injective(shape, strides):
        raise ValueError(f"{what} must not overlap itself, but got shape {layout.text(shape)} with strides "
                         f"{layout.text(strides)}")
    return strides


class Call:
    """One evaluation of a plan. `arguments` has (dtype, shape, strides) for arrays, numbers for scalars.

    After construction `shapes` are those of the results; `finish` takes their strides.
    """

    def __init__(self, plan: Plan, arguments: "list[Any]") -> None:
        self.plan = plan
        self.arguments = list(arguments)
        self.indices = [0] * len(plan.repeats)
        self.values: "list[int | None]" = [None] * len(plan.values)
        self.result_strides: "list[tuple[int, ...]]" = []
        self.problem = ""
        for i, (argument, value) in enumerate(zip(plan.arguments, arguments)):
            if argument.is_scalar:
                check_scalar(argument, value)
            else:
                dtype, shape, strides = value
                self.arguments[i] = (dtype, shape, check_array(argument, dtype, shape, strides))
        for number in range(plan.inputs):
            self.evaluate(number)
        self.run_checks()
        self.shapes = tuple(tuple(self.values[n] for n in result.shape) for result in plan.results)
        for result, shape in zip(plan.results, self.shapes):
            layout.check_layout(f"result '{result.name}'", shape, layout.contiguous(shape))

    def evaluate(self, number: int) -> None:
        """Computes a value. That it does not fit in 64 bits is an error only if a check does not say it better."""
        operation, *operands = self.plan.values[number]
        values = self.values
        result: "int | None"
        binary = _BINARY.get(operation)
        if binary:
            x, y = values[operands[0]], values[operands[1]]
            result = None if x is None or y is None else binary(x, y)
            if result is not None and not _LOW <= result <= _HIGH:
                result = None
                self.problem = self.problem or f"value {number}, '{operation}' of {x} and {y}, does not fit in 64 bits"
        elif operation == "const":
            result = operands[0]
        elif operation == "dim":
            result = self.arguments[operands[0]][1][operands[1]]
        elif operation == "stride":
            result = self.arguments[operands[0]][2][operands[1]]
        elif operation == "scalar":
            result = self.arguments[operands[0]]
        elif operation == "result_stride":
            result = self.result_strides[operands[0]][operands[1]]
        elif operation == "index":
            result = self.indices[operands[0]]
        else:
            known = [values[operand] for operand in operands]
            result = None if None in known else known[1] if known[0] else known[2]
        values[number] = result

    def run_checks(self) -> None:
        for check in self.plan.checks:
            left, right = self.values[check.left], self.values[check.right]
            if left is None or (right is None and check.kind != "holds"):
                break
            if check.kind == "holds":
                if not left:
                    raise ValueError(check.message)
            elif left != right if check.kind == "equal" else left > right:
                raise ValueError(f"{check.message}, but got {left} and {right}")
        if self.problem:
            raise ValueError(self.problem)

    def finish(self, strides: "list[tuple[int, ...]]") -> Prepared:
        """Evaluates the rest; `strides` are those of the results' memory."""
        plan = self.plan
        self.result_strides = strides
        repeated = {number for repeat in plan.repeats for number in range(*repeat.values)}
        for number in range(plan.inputs, len(plan.values)):
            if number not in repeated:
                self.evaluate(number)
        if self.problem:
            raise ValueError(self.problem)
        workspace = self.values[plan.workspace_bytes]
        if workspace < 0:
            raise ValueError(f"the workspace has {workspace} bytes")
        launches = self.launches()
        aliases = tuple(None if result.owned else self.alias(result.buffer) for result in plan.results)
        return Prepared(tuple(zip(self.shapes, strides)), aliases, workspace, tuple(launches))

    def alias(self, number: int) -> Alias:
        base, distance = self.address(number)
        return Alias(base, distance, self.numbers(self.plan.buffers[number].strides))

    def numbers(self, values: "tuple[int, ...]") -> "tuple[int, ...]":
        return tuple(self.values[number] for number in values)

    def address(self, number: int) -> "tuple[int, int]":
        """Base and distance in bytes of a buffer, see ReadyLaunch."""
        buffer = self.plan.buffers[number]
        distance = 0
        if buffer.kind == "view":
            distance = self.values[buffer.offset]
            buffer = self.plan.buffers[buffer.number]
        if buffer.kind == "argument":
            return buffer.number, distance
        if buffer.kind == "result":
            return len(self.plan.arguments) + buffer.number, distance
        return -1, distance + self.values[buffer.number]

    def launches(self) -> "list[ReadyLaunch]":
        plan = self.plan
        starts = {repeat.launches[0]: (r, repeat) for r, repeat in enumerate(plan.repeats) if repeat.launches[0] < repeat.launches[1]}
        ready: "list[ReadyLaunch]" = []
        i = 0
        while i < len(plan.launches):
            if i not in starts:
                self.add_launch(i, ready)
                i += 1
                continue
            r, repeat = starts[i]
            for index in range(max(self.values[repeat.count], 0)):
                self.indices[r] = index
                for number in range(*repeat.values):
                    self.evaluate(number)
                if self.problem:
                    raise ValueError(self.problem)
                for k in range(*repeat.launches):
                    self.add_launch(k, ready)
            i = repeat.launches[1]
        return ready

    def add_launch(self, number: int, ready: "list[ReadyLaunch]") -> None:
        launch = self.plan.launches[number]
        grid = self.numbers(launch.grid)
        if 0 in grid or (launch.condition is not None and not self.values[launch.condition]):
            return
        if any(not 0 < n <= most for n, most in zip(grid, _MAX_GRID)):
            raise ValueError(f"kernel '{launch.kernel}' has a grid of {layout.text(grid)} blocks, but only "
                             f"{layout.text(_MAX_GRID)} are possible")
        shared = self.values[launch.shared]
        if not 0 <= shared < 2**31:
            raise ValueError(f"kernel '{launch.kernel}' has {shared} bytes of shared memory")
        block, pointers, floats, maps = bytearray(), [], [], []

        def append(data: bytes, alignment: int) -> int:
            block.extend(bytes(-len(block) % alignment))
            block.extend(data)
            return len(block) - len(data)

        for i, (kind, argument) in enumerate(launch.arguments):
            if kind == "pointer":
                pointers.append((append(bytes(8), 8), *self.address(argument)))
            elif kind == "tensormap":
                offset = append(bytes(128), 64)
                buffer = self.plan.buffers[self.plan.tensor_maps[argument].buffer]
                maps.append(Map(offset, argument, *self.address(self.plan.tensor_maps[argument].buffer), buffer.dtype,
                                self.numbers(buffer.shape), self.numbers(buffer.strides)))
            elif isinstance(argument, tuple):
                floats.append((append(bytes(DTYPE_BYTES[kind]), DTYPE_BYTES[kind]), _FORMATS[kind], argument[1]))
            else:
                append(self.pack(launch.kernel, i, kind, argument), DTYPE_BYTES[kind])
        ready.append(ReadyLaunch(launch.kernel, grid, launch.block, launch.cluster, shared, bytes(block), tuple(pointers),
                                 tuple(floats), tuple(maps)))

    def pack(self, kernel: str, position: int, kind: str, argument: Any) -> bytes:
        if kind not in INTEGERS:
            return pack_float(_FORMATS[kind], argument)
        value = self.values[argument]
        if kind == "i1" and value not in (0, 1) or not -(1 << 8 * DTYPE_BYTES[kind] - 1) <= value < 1 << 8 * DTYPE_BYTES[kind] - 1:
            raise ValueError(f"argument {position} of kernel '{kernel}' is {value}, which does not fit {kind}")
        return struct.pack(_FORMATS[kind], value)


def pack_float(form: str, value: float) -> bytes:
    try:
        return struct.pack(form, value)
    except OverflowError:  # rounds to infinity, as C does
        return struct.pack(form, float("inf") if value > 0 else float("-inf"))
