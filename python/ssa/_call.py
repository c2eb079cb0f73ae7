# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans evaluated for one set of sizes: everything that does not depend on addresses, so that it can be kept.

lib/Runtime does the same, with the same messages.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from . import _layout as layout
from ._bundle import DTYPE_BYTES, INTEGERS, Argument, Plan, Result
from ._values import Evaluator, Values

_MAX_GRID = (2**31 - 1, 65535, 65535)
_FORMATS = {"i64": "<q", "i32": "<i", "i16": "<h", "i8": "<b", "i1": "<b", "f32": "<f", "f64": "<d"}


class Map(NamedTuple):
    """A tensor map at `offset` in the parameters, of the array at `base` + `distance`."""

    offset: int
    number: int
    base: int
    distance: int
    dtype: str
    shape: "tuple[int, ...]"
    strides: "tuple[int, ...]"


class Lane(NamedTuple):
    """Which of `count` lanes a run of a repeat is in: runs in different lanes need not wait for one another."""

    repeat: int
    number: int
    count: int


class ReadyLaunch(NamedTuple):
    """A launch with all numbers known but the addresses: `pointers` has (offset / 8, base, distance), `floats`
    (offset, format, argument); a base is the number of an argument, the number of arguments + that of a result, or
    -1, the workspace."""

    kernel: str
    grid: "tuple[int, int, int]"
    block: "tuple[int, int, int]"
    cluster: "tuple[int, int, int] | None"
    dependent: bool
    shared: int
    parameters: bytes
    offsets: "tuple[int, ...]"  # of each parameter in them
    pointers: "tuple[tuple[int, int, int], ...]"
    floats: "tuple[tuple[int, str, int], ...]"
    maps: "tuple[Map, ...]"
    lane: "Lane | None"
    slots: list  # memory for the parameters, kept for later launches; taken and put back by whoever launches


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


def check_array(
    argument: Argument, dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]", pointer: int
) -> "tuple[int, ...]":
    """Checks an array for an argument; returns the strides that kernels get."""
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
    if argument.access != "none" and 0 not in shape:
        layout.check_address(what, pointer, argument.alignment)
        if expected is not None:
            free = [stride is None for stride in expected]
            layout.check_stride_alignment(what, dtype, shape, strides, argument.alignment, free.__getitem__)
    return strides


def check_result(
    result: Result,
    shape: "tuple[int, ...]",
    dtype: str,
    given: "tuple[int, ...]",
    strides: "tuple[int, ...]",
    pointer: int,
) -> "tuple[int, ...]":
    """Checks an array that a caller gives for a result of this shape; returns the strides that kernels get."""
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
        layout.check_address(what, pointer, result.alignment)
        if not result.contiguous:
            layout.check_stride_alignment(what, dtype, shape, strides, result.alignment, lambda d: d + 1 < len(shape))
    if not layout.is_injective(shape, strides):
        raise ValueError(
            f"{what} must not overlap itself, but got shape {layout.text(shape)} with strides "
            f"{layout.text(strides)}"
        )
    return strides


class _Packing:
    """How the parameters of a launch lie: what does not depend on addresses is packed in one go."""

    def __init__(self, plan: Plan, launch: "Any") -> None:
        form, size = "<", 0
        self.kernel, self.fields = launch.kernel, []  # (position, kind, value number)
        self.constants: "list[tuple[int, bytes]]" = []
        self.pointers, self.floats, self.maps = [], [], []
        offsets = []
        for position, (kind, argument) in enumerate(launch.arguments):
            width, alignment = (
                (8, 8) if kind == "pointer" else (128, 64) if kind == "tensormap" else (DTYPE_BYTES[kind],) * 2
            )
            padding = -size % alignment
            size += padding
            offsets.append(size)
            form += f"{padding}x"
            if kind in INTEGERS:
                self.fields.append((position, kind, argument))
                form += "?" if kind == "i1" else _FORMATS[kind][1]
            else:
                form += f"{width}x"
            if kind == "pointer":
                self.pointers.append((size // 8, argument))
            elif kind == "tensormap":
                self.maps.append((size, argument))
            elif isinstance(argument, tuple):
                self.floats.append((size, _FORMATS[kind], argument[1]))
            elif kind not in INTEGERS:
                self.constants.append((size, pack_float(_FORMATS[kind], argument)))
            size += width
        self.offsets = tuple(offsets)
        self.struct = struct.Struct(form)
        self.numbers = [number for _, _, number in self.fields]
        self.bits = [number for _, kind, number in self.fields if kind == "i1"]

    def pack(self, values: "list[Any]") -> bytes:
        try:
            block = self.struct.pack(*[values[number] for number in self.numbers])
        except struct.error:
            block = b""
        if not block and self.numbers or any(values[number] not in (0, 1) for number in self.bits):
            self.complain(values)
        if self.constants:
            block = bytearray(block)
            for offset, data in self.constants:
                block[offset : offset + len(data)] = data
        return bytes(block)

    def complain(self, values: "list[Any]") -> None:
        for position, kind, number in self.fields:
            value, half = values[number], 1 << 8 * DTYPE_BYTES[kind] - 1
            if value not in (0, 1) if kind == "i1" else not -half <= value < half:
                raise ValueError(f"argument {position} of kernel '{self.kernel}' is {value}, which does not fit {kind}")


class Prepares:
    """Evaluates a plan; made once for it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.evaluator = Evaluator(plan)
        self.packings = [_Packing(plan, launch) for launch in plan.launches]


class Call:
    """One evaluation of a plan. `arguments` has (dtype, shape, strides, pointer) for arrays, numbers for scalars.

    After construction `shapes` are those of the results; `finish` takes their strides.
    """

    def __init__(self, prepares: Prepares, arguments: "list[Any]") -> None:
        self.prepares, self.plan = prepares, prepares.plan
        checked: "list[Any]" = list(arguments)
        for i, (argument, value) in enumerate(zip(self.plan.arguments, arguments)):
            if argument.is_scalar:
                check_scalar(argument, value)
            else:
                dtype, shape, strides, pointer = value
                checked[i] = (dtype, shape, check_array(argument, dtype, shape, strides, pointer))
        self.evaluation = Values(prepares.evaluator, checked)
        self.values = self.evaluation.list
        self.evaluation.inputs()
        self.run_checks()
        self.shapes = tuple(self.numbers(result.shape) for result in self.plan.results)
        for result, shape in zip(self.plan.results, self.shapes):
            layout.check_layout(f"result '{result.name}'", shape, layout.contiguous(shape))

    def run_checks(self) -> None:
        for kind, left_number, right_number, message in self.plan.checks:
            left, right = self.values[left_number], self.values[right_number]
            if left is None or (right is None and kind != "holds"):
                break
            if kind == "holds":
                if not left:
                    raise ValueError(message)
            elif left != right if kind == "equal" else left > right:
                raise ValueError(f"{message}, but got {left} and {right}")
        self.check_problem()

    def check_problem(self) -> None:
        if self.evaluation.problem:
            raise ValueError(self.evaluation.problem)

    def finish(self, strides: "list[tuple[int, ...]]") -> Prepared:
        """Evaluates the rest; `strides` are those of the results' memory."""
        plan = self.plan
        self.evaluation.rest(strides)
        self.check_problem()
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
        return tuple([self.values[number] for number in values])

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
        starts = {
            repeat.launches[0]: (r, repeat)
            for r, repeat in enumerate(plan.repeats)
            if repeat.launches[0] < repeat.launches[1]
        }
        ready: "list[ReadyLaunch]" = []
        i = 0
        while i < len(plan.launches):
            if i not in starts:
                self.add_launch(i, ready)
                i += 1
                continue
            r, repeat = starts[i]
            count = self.values[repeat.count]
            lanes = min(repeat.lanes, count)
            for index in range(count):
                self.evaluation.repeat(r, index)
                self.check_problem()
                lane = Lane(r, index % lanes, lanes) if lanes > 1 else None
                for k in range(*repeat.launches):
                    self.add_launch(k, ready, lane)
            i = repeat.launches[1]
        return ready

    def add_launch(self, number: int, ready: "list[ReadyLaunch]", lane: "Lane | None" = None) -> None:
        launch, packing = self.plan.launches[number], self.prepares.packings[number]
        grid = self.numbers(launch.grid)
        if 0 in grid or (launch.condition is not None and not self.values[launch.condition]):
            return
        if any(not 0 < n <= most for n, most in zip(grid, _MAX_GRID)):
            raise ValueError(
                f"kernel '{launch.kernel}' has a grid of {layout.text(grid)} blocks, but only "
                f"{layout.text(_MAX_GRID)} are possible"
            )
        shared = self.values[launch.shared]
        if not 0 <= shared < 2**31:
            raise ValueError(f"kernel '{launch.kernel}' has {shared} bytes of shared memory")
        block = packing.pack(self.values)
        pointers = tuple([(word, *self.address(buffer)) for word, buffer in packing.pointers])
        maps = tuple(self.map(offset, map_number) for offset, map_number in packing.maps)
        ready.append(
            ReadyLaunch(
                launch.kernel,
                grid,
                launch.block,
                launch.cluster,
                launch.dependent,
                shared,
                block,
                packing.offsets,
                pointers,
                tuple(packing.floats),
                maps,
                lane,
                [],
            )
        )

    def map(self, offset: int, number: int) -> Map:
        buffer_number = self.plan.tensor_maps[number].buffer
        buffer = self.plan.buffers[buffer_number]
        return Map(
            offset,
            number,
            *self.address(buffer_number),
            buffer.dtype,
            self.numbers(buffer.shape),
            self.numbers(buffer.strides),
        )


def pack_float(form: str, value: float) -> bytes:
    try:
        return struct.pack(form, value)
    except OverflowError:  # rounds to infinity, as C does
        return struct.pack(form, float("inf") if value > 0 else float("-inf"))
