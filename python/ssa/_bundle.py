# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles as launchers read them.

The classes mirror docs/bundle.md, which says what everything means. What `parse` returns is consistent: every number
that refers to something refers to something that exists and comes early enough. lib/Runtime reads the same, with the
same messages.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, NamedTuple

from ._errors import BundleError

DTYPE_BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "f8e4m3fn": 1,
    "f8e5m2": 1,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
}
INTEGERS = ("i1", "i8", "i16", "i32", "i64")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
OPERANDS = {"const": 1, "dim": 2, "stride": 2, "scalar": 1, "result_stride": 2, "index": 1, "select": 3}
OPERANDS.update(dict.fromkeys(("add", "sub", "mul", "div", "rem", "floordiv", "ceildiv", "max", "min", "and", "or"), 2))
ON_VALUES = frozenset(OPERANDS) - {"const", "dim", "stride", "scalar", "result_stride", "index"} | set(PREDICATES)
MAX_I64 = 2**63 - 1


MAX_LANES = 16  # of a repeat


class Argument(NamedTuple):
    """A scalar has a dtype only; `strides` is None where the array must be contiguous."""

    name: str
    dtype: str
    is_scalar: bool = False
    shape: "tuple[int | None, ...]" = ()
    strides: "tuple[int | None, ...] | None" = ()
    alignment: int = 1
    access: str = "none"


class Result(NamedTuple):
    """`owned` is false if it is (part of) an argument or an earlier result, and needs no memory of its own."""

    name: str
    dtype: str
    shape: "tuple[int, ...]"
    contiguous: bool
    alignment: int
    buffer: int
    owned: bool = True


class Check(NamedTuple):
    kind: str
    left: int
    right: int
    message: str


class Buffer(NamedTuple):
    kind: str
    number: int
    offset: int
    dtype: str
    shape: "tuple[int, ...]"
    strides: "tuple[int, ...]"


class TensorMap(NamedTuple):
    """The enumerations of cuTensorMapEncodeTiled are kept as the driver's numbers."""

    buffer: int
    box: "tuple[int, ...]"
    swizzle: int
    l2_promotion: int
    fill: int
    interleave: int


class Repeat(NamedTuple):
    """Up to `lanes` runs that follow one another may be under way at a time."""

    count: int
    values: "tuple[int, int]"
    launches: "tuple[int, int]"
    lanes: int


class Launch(NamedTuple):
    """`arguments` are ("pointer", buffer), ("i32", value), ("f32", number), ("f32", ("argument", number)), .."""

    kernel: str
    grid: "tuple[int, int, int]"
    block: "tuple[int, int, int]"
    cluster: "tuple[int, int, int] | None"
    dependent: bool  # the kernel waits by itself for those before it
    shared: int
    condition: "int | None"
    arguments: "tuple[tuple[str, Any], ...]"


class Plan(NamedTuple):
    entry: str
    arguments: "tuple[Argument, ...]"
    results: "tuple[Result, ...]"
    values: "tuple[tuple, ...]"
    inputs: int
    checks: "tuple[Check, ...]"
    buffers: "tuple[Buffer, ...]"
    workspace_bytes: int
    workspace_alignment: int
    tensor_maps: "tuple[TensorMap, ...]"
    repeats: "tuple[Repeat, ...]"
    launches: "tuple[Launch, ...]"


class Target(NamedTuple):
    chip: str
    ptx_version: str
    ptx: str
    entries: "dict[str, Plan]"


class _Fault(Exception):
    pass


class _At:
    """A place in the JSON tree, with the value there; None stands for a value that is missing."""

    __slots__ = ("value", "path")

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    def fail(self, message: str) -> "_Fault":
        return _Fault(f"{message} at {self.path}")

    def object(self) -> "_At":
        if not isinstance(self.value, dict):
            raise self.fail("expected object")
        return self

    def has(self, key: str) -> bool:
        return key in self.object().value

    def field(self, key: str) -> "_At":
        if not self.has(key):
            raise _Fault(f"missing value at {self.path}.{key}")
        return _At(self.value[key], f"{self.path}.{key}")

    def items(self) -> "list[_At]":
        if not isinstance(self.value, list):
            raise self.fail("expected array")
        return [_At(v, f"{self.path}[{i}]") for i, v in enumerate(self.value)]

    def triple(self) -> "list[_At]":
        items = self.items()
        if len(items) != 3:
            raise self.fail("expected 3 elements")
        return items

    def string(self) -> str:
        if not isinstance(self.value, str):
            raise self.fail("expected string")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.fail("expected boolean")
        return self.value

    def integer(self, low: int = -(2**63), high: int = MAX_I64) -> int:
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value <= MAX_I64:
            raise self.fail("expected integer")
        if not low <= value <= high:
            raise self.fail("number out of range")
        return value

    def number(self, bound: int) -> int:
        """A number below `bound` of something that the plan has that many of."""
        value = self.integer()
        if not 0 <= value < bound:
            raise self.fail("reference to what does not exist")
        return value

    def dtype(self) -> str:
        if self.string() not in DTYPE_BYTES:
            raise self.fail("unknown dtype")
        return self.value

    def word(self, words: "tuple[str, ...]", message: str = "unknown word") -> int:
        if self.string() not in words:
            raise self.fail(message)
        return words.index(self.value)

    def alignment(self) -> int:
        at = self.field("alignment")
        value = at.integer(1, 1 << 20)
        if value & (value - 1):
            raise at.fail("expected a power of two")
        return value

    def extents(self) -> "tuple[int | None, ...]":
        return tuple(None if at.value is None else at.integer(0) for at in self.items())


class _Reader:
    """Reads one plan; the parts in the order in which they refer to each other."""

    def __init__(self, at: _At) -> None:
        self.at = at.object()

    def read(self) -> Plan:
        at = self.at
        inputs, values = at.field("inputs"), at.field("values")
        self.num_values = len(values.value) if isinstance(values.value, list) else 0
        self.inputs = inputs.number(self.num_values + 1)
        repeats = at.value.get("repeats", [])
        self.num_repeats = len(repeats) if isinstance(repeats, list) else 0
        entry = at.field("entry").string()
        self.arguments = tuple(map(self.argument, at.field("arguments").items()))
        self.results = tuple(map(self.result, at.field("results").items()))
        self.values = tuple(self.value(v, i) for i, v in enumerate(values.items()))
        checks = tuple(map(self.check, at.field("checks").items()))
        self.buffers: "tuple[Buffer, ...]" = ()
        for item in at.field("buffers").items():
            self.buffers += (self.buffer(item),)
        self.tensor_maps = tuple(map(self.tensor_map, at.field("tensormaps").items())) if at.has("tensormaps") else ()
        self.launches = tuple(map(self.launch, at.field("launches").items()))
        self.repeats = tuple(map(self.repeat, at.field("repeats").items())) if at.has("repeats") else ()
        workspace = at.field("workspace")
        workspace_bytes = workspace.field("bytes").number(self.num_values)
        alignment = workspace.alignment()
        self.check_results()
        self.check_repeats()
        self.check_uses([workspace_bytes], -1, workspace)
        self.check_all_uses()
        return Plan(
            entry,
            self.arguments,
            self.results,
            self.values,
            self.inputs,
            checks,
            self.buffers,
            workspace_bytes,
            alignment,
            self.tensor_maps,
            self.repeats,
            self.launches,
        )

    def value_number(self, at: _At) -> int:
        return at.number(self.num_values)

    def value_numbers(self, at: _At) -> "tuple[int, ...]":
        return tuple(map(self.value_number, at.items()))

    def argument(self, at: _At) -> Argument:
        name = at.field("name").string()
        if at.has("scalar"):
            dtype = at.field("scalar").dtype()
            if dtype not in INTEGERS and dtype not in ("f32", "f64"):
                raise at.field("scalar").fail("unknown kind of scalar")
            return Argument(name, dtype, True)
        dtype = at.field("dtype").dtype()
        shape = at.field("shape").extents()
        alignment = at.alignment()
        access = at.field("access").string()
        at_strides = at.field("strides")
        strides = None if at_strides.value == "contiguous" else at_strides.extents()
        if strides is not None and len(strides) != len(shape):
            raise at_strides.fail("expected as many strides as sizes")
        at.field("access").word(("none", "read", "write", "read_write"), "unknown access")
        return Argument(name, dtype, False, shape, strides, alignment, access)

    def result(self, at: _At) -> Result:
        name, dtype, alignment = at.field("name").string(), at.field("dtype").dtype(), at.alignment()
        shape = tuple(item.number(self.inputs) for item in at.field("shape").items())
        contiguous = at.field("strides").word(("any", "contiguous"), "expected 'any' or 'contiguous'")
        return Result(name, dtype, shape, bool(contiguous), alignment, at.field("buffer").integer(0, 2**31 - 1))

    def value(self, at: _At, position: int) -> tuple:
        items = at.items() or [_At(None, at.path)]
        if not at.value:
            raise at.fail("expected array")
        name, operands = items[0].string(), items[1:]
        if name == "cmp":
            if not operands or not isinstance(operands[0].value, str):
                raise at.fail("wrong number of operands")
            name = PREDICATES[operands[0].word(PREDICATES, "unknown predicate")]
            operands = operands[1:]
        elif name not in OPERANDS:
            raise items[0].fail("unknown operation")
        if len(operands) != OPERANDS.get(name, 2):
            raise at.fail("wrong number of operands")
        if name == "const":
            return name, operands[0].integer()
        if name in ON_VALUES:
            return (name, *(operand.number(position) for operand in operands))
        if name in ("result_stride", "index") and position < self.inputs:
            raise at.fail("values before 'inputs' must not need results")
        if name == "index":
            return name, operands[0].number(self.num_repeats)
        if name == "result_stride":
            number = operands[0].number(len(self.results))
            return name, number, operands[1].number(len(self.results[number].shape))
        number = operands[0].number(len(self.arguments))
        argument = self.arguments[number]
        if name == "scalar":
            if not argument.is_scalar or argument.dtype not in INTEGERS:
                raise operands[0].fail("expected an integer argument")
            return name, number
        return name, number, operands[1].number(len(argument.shape))

    def check(self, at: _At) -> Check:
        message = at.field("message").string()
        if at.has("holds"):
            return Check("holds", at.field("holds").number(self.inputs), 0, message)
        kind = "equal" if at.has("equal") else "at_most"
        if not at.has(kind):
            raise at.fail("unknown check")
        pair = [item.number(self.inputs) for item in at.field(kind).items()]
        if len(pair) != 2:
            raise at.field(kind).fail("expected 2 elements")
        return Check(kind, pair[0], pair[1], message)

    def buffer(self, at: _At) -> Buffer:
        dtype = at.field("dtype").dtype()
        shape, strides = self.value_numbers(at.field("shape")), self.value_numbers(at.field("strides"))
        if len(shape) != len(strides):
            raise at.field("strides").fail("expected as many strides as sizes")
        for kind in ("argument", "result", "workspace", "view"):
            if at.has(kind):
                break
        else:
            raise at.fail("unknown kind of buffer")
        bounds = {"argument": len(self.arguments), "result": len(self.results), "workspace": self.num_values}
        number, offset = at.field(kind).number(bounds.get(kind, len(self.buffers))), 0
        if kind == "argument" and self.arguments[number].is_scalar:
            raise at.field(kind).fail("expected a tensor")
        if kind == "view":
            offset = self.value_number(at.field("offset"))
            if self.buffers[number].kind == "view":
                raise at.field(kind).fail("view of a view")
        return Buffer(kind, number, offset, dtype, shape, strides)

    def tensor_map(self, at: _At) -> TensorMap:
        buffer = at.field("buffer").number(len(self.buffers))
        box = tuple(item.integer(1, 256) for item in at.field("box").items())
        if not 1 <= len(box) <= 5 or len(box) != len(self.buffers[buffer].shape):
            raise at.field("box").fail("expected one number for each of the 1 to 5 dimensions of the buffer")
        return TensorMap(
            buffer,
            box,
            at.field("swizzle").word(("none", "32b", "64b", "128b")),
            at.field("l2_promotion").word(("none", "64b", "128b", "256b")),
            at.field("fill").word(("zero", "nan")),
            at.field("interleave").word(("none", "16b", "32b")),
        )

    def repeat(self, at: _At) -> Repeat:
        def bounds(key: str, bound: int) -> "tuple[int, int]":
            pair = [item.number(bound + 1) for item in at.field(key).items()]
            if len(pair) != 2 or pair[0] > pair[1]:
                raise at.field(key).fail("expected the bounds of a range")
            return pair[0], pair[1]

        return Repeat(
            self.value_number(at.field("count")),
            bounds("values", self.num_values),
            bounds("launches", len(self.launches)),
            at.field("lanes").integer(1, MAX_LANES) if at.has("lanes") else 1,
        )

    def launch(self, at: _At) -> Launch:
        kernel = at.field("kernel").string()
        grid = tuple(map(self.value_number, at.field("grid").triple()))
        block = tuple(item.integer(1, 1024) for item in at.field("block").triple())
        shared = self.value_number(at.field("shared"))
        arguments = tuple(map(self.kernel_argument, at.field("arguments").items()))
        cluster = tuple(item.integer(1, 1024) for item in at.field("cluster").triple()) if at.has("cluster") else None
        condition = self.value_number(at.field("if")) if at.has("if") else None
        dependent = at.field("dependent").boolean() if at.has("dependent") else False
        return Launch(kernel, grid, block, cluster, dependent, shared, condition, arguments)

    def kernel_argument(self, at: _At) -> "tuple[str, Any]":
        if not isinstance(at.value, list) or len(at.value) != 2:
            raise at.fail("expected a kind and a number")
        kind, second = at.items()
        name = kind.string()
        if name == "pointer":
            return name, second.number(len(self.buffers))
        if name == "tensormap":
            return name, second.number(len(self.tensor_maps))
        if name in INTEGERS:
            return name, self.value_number(second)
        if name not in ("f32", "f64"):
            raise kind.fail("unknown kind of kernel argument")
        if isinstance(second.value, dict):
            number = second.field("argument").number(len(self.arguments))
            if not self.arguments[number].is_scalar or self.arguments[number].dtype != name:
                raise second.fail("expected an argument of this kind")
            return name, ("argument", number)
        if second.value in ("inf", "-inf", "nan"):
            return name, float(second.value)
        if not isinstance(second.value, (int, float)) or isinstance(second.value, bool):
            raise second.fail("expected number")
        return name, float(second.value)

    def check_results(self) -> None:
        """Checks the buffers of results and finds out which results have memory of their own."""
        for i, result in enumerate(self.results):
            at = self.at.field("results").items()[i].field("buffer")
            if result.buffer >= len(self.buffers):
                raise at.fail("reference to what does not exist")
            buffer = self.buffers[result.buffer]
            if buffer.kind == "result" and buffer.number == i:
                continue
            if buffer.kind == "view":
                buffer = self.buffers[buffer.number]
            if buffer.kind != "argument" and not (buffer.kind == "result" and buffer.number < i):
                raise at.fail("expected memory of this result, an argument or an earlier result")
            self.results = self.results[:i] + (result._replace(owned=False),) + self.results[i + 1 :]
        for i, buffer in enumerate(self.buffers):
            if buffer.kind == "result" and not self.results[buffer.number].owned:
                raise self.at.field("buffers").items()[i].fail("this result has no memory of its own")

    def values_of(self, number: int) -> "list[int]":
        """The values that the address and the extents of a buffer need."""
        buffer = self.buffers[number]
        used = [*buffer.shape, *buffer.strides]
        if buffer.kind == "view":
            used.append(buffer.offset)
            buffer = self.buffers[buffer.number]
        if buffer.kind == "workspace":
            used.append(buffer.number)
        return used

    def check_uses(self, used: "list[int]", launch: int, at: _At) -> None:
        """Checks that a launch, or what is outside of all launches if that is negative, may use these values."""
        for repeat in self.repeats:
            inside = repeat.launches[0] <= launch < repeat.launches[1]
            if not inside and any(repeat.values[0] <= number < repeat.values[1] for number in used):
                raise at.fail("use of a value outside of its repeat")

    def check_repeats(self) -> None:
        for i, repeat in enumerate(self.repeats):
            at = self.at.field("repeats").items()[i]
            first, last = repeat.values
            if first < self.inputs and first != last:
                raise at.fail("values before 'inputs' must not repeat")
            for other in self.repeats[:i]:
                for a, b in ((repeat.values, other.values), (repeat.launches, other.launches)):
                    if a[0] < b[1] and b[0] < a[1]:
                        raise at.fail("ranges of repeats must not overlap")
            self.check_uses([repeat.count], -1, at.field("count"))
            for number, value in enumerate(self.values):
                uses = value[0] == "index" and value[1] == i
                uses |= value[0] in ON_VALUES and any(first <= operand < last for operand in value[1:])
                if uses and not first <= number < last:
                    raise self.at.field("values").items()[number].fail("use of a value outside of its repeat")

    def check_all_uses(self) -> None:
        for result, at in zip(self.results, self.at.field("results").items()):
            self.check_uses(self.values_of(result.buffer), -1, at)
        for i, (launch, at) in enumerate(zip(self.launches, self.at.field("launches").items())):
            used = [*launch.grid, launch.shared]
            if launch.condition is not None:
                used.append(launch.condition)
            for kind, argument in launch.arguments:
                if kind == "pointer":
                    used += self.values_of(argument)
                elif kind == "tensormap":
                    used += self.values_of(self.tensor_maps[argument].buffer)
                elif kind in INTEGERS:
                    used.append(argument)
            self.check_uses(used, i, at)


def _read_target(at: _At) -> Target:
    chip, version, ptx = (at.field(key).string() for key in ("chip", "ptx_version", "ptx"))
    plans = [_Reader(item).read() for item in at.field("entries").items()]
    return Target(chip, version, ptx, {plan.entry: plan for plan in plans})


def parse(text: str, name: str) -> "list[Target]":
    """Reads the text of a bundle; `name` is what messages call it. Raises BundleError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise BundleError(f"'{name}' is no bundle: it is not JSON") from None
    if not isinstance(value, dict) or value.get("format") != "ssa-bundle":
        raise BundleError(f'\'{name}\' is no bundle: "format" is not "ssa-bundle"')
    version = value.get("version")
    if version != 1 or isinstance(version, bool):
        known = version if isinstance(version, int) and not isinstance(version, bool) else "unknown"
        raise BundleError(f"'{name}' is a bundle of version {known}, but this launcher reads version 1; update it")
    try:
        return [_read_target(item) for item in _At(value, "bundle").field("targets").items()]
    except _Fault as fault:
        raise BundleError(f"'{name}' is no bundle: {fault}") from None


def find_target(targets: "list[Target]", major: int, minor: int) -> "Target | None":
    """The target to run on a device of this compute capability, by the rules of docs/bundle.md."""
    device = major * 10 + minor
    best: "tuple[int, int] | None" = None
    found = None
    for target in targets:
        chip = re.fullmatch(r"sm_(\d+)([af]?)", target.chip)
        if not chip:
            continue
        number, suffix = int(chip[1]), chip[2]
        runs: "dict[str, Callable[[], bool]]" = {
            "a": lambda: number == device,
            "f": lambda: number // 10 == major and number <= device,
            "": lambda: number <= device,
        }
        rank = (("", "f", "a").index(suffix), number)
        if runs[suffix]() and (best is None or rank > best):
            best, found = rank, target
    return found
