# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where arrays lie in memory, and what plans want of that. lib/Runtime/Call.cpp and Arrays.cpp say the same."""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple

from ._bundle import DTYPE_BYTES

LIMIT = (2**63 - 1) // 16


class View(NamedTuple):
    """An array in memory; strides in elements. `device` is an ordinal, HOST, ANYWHERE if it need not be known, or
    UNKNOWN."""

    pointer: int
    dtype: str
    shape: "tuple[int, ...]"
    strides: "tuple[int, ...]"
    device: int = -1
    source: Any = None


HOST, UNKNOWN, ANYWHERE = -2, -1, -3


def contiguous(shape: "Iterable[int]") -> "tuple[int, ...]":
    """Row-major strides without gaps; sizes of 0 count as 1."""
    strides, step = [], 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= size if size > 0 else 1
    return tuple(reversed(strides))


def normalized(shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> "tuple[int, ...]":
    """The strides, those of a contiguous array where there is nothing to step along, or no element."""
    if 0 in shape:
        return contiguous(shape)
    if strides and min(shape) <= 1:
        return tuple(c if size <= 1 else s for size, s, c in zip(shape, strides, contiguous(shape)))
    return strides


def extent_in_bytes(dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> int:
    """Bytes from the first element to the end of the last one."""
    if 0 in shape:
        return 0
    return (sum((n - 1) * s for n, s in zip(shape, strides)) + 1) * DTYPE_BYTES[dtype]


def text(extents: "Iterable[int | None]") -> str:
    return "x".join("?" if e is None else str(e) for e in extents) or "()"


def check_layout(what: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> None:
    """What has to hold for any array: `what` is "argument 'q'"."""
    elements, last = 1, 0
    if shape and min(shape) < 0:
        raise ValueError(f"{what} must not have negative sizes, but got {text(shape)}")
    if 0 in shape:
        strides = contiguous(shape)
    for size, stride in zip(shape, strides):
        if size > 1 and stride < 0:
            raise ValueError(f"{what} must not have negative strides, but got {text(strides)}")
        elements *= max(size, 1)
        last += (size - 1) * stride if size > 1 else 0
    if elements > LIMIT or last > LIMIT:
        raise ValueError(f"{what} is too large: shape {text(shape)}, strides {text(strides)}")


def check_contiguous(what: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> None:
    if 0 not in shape and strides != contiguous(shape):
        raise ValueError(f"{what} must be contiguous, but got shape {text(shape)} with strides {text(strides)}")


def check_stride(
    what: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]", dimension: int, expected: int
) -> None:
    if shape[dimension] > 1 and strides[dimension] != expected:
        raise ValueError(
            f"{what} must have stride {expected} in dimension {dimension}, but got strides {text(strides)}"
        )


def check_stride_alignment(
    what: str,
    dtype: str,
    shape: "tuple[int, ...]",
    strides: "tuple[int, ...]",
    alignment: int,
    is_free: "Callable[[int], bool]",
) -> None:
    for d, (size, stride) in enumerate(zip(shape, strides)):
        step = stride * DTYPE_BYTES[dtype]
        if size > 1 and is_free(d) and step % alignment:
            raise ValueError(
                f"{what} must be aligned to {alignment} bytes, but its stride in dimension {d} is {step} bytes"
            )


def check_address(what: str, pointer: int, alignment: int) -> None:
    if not pointer:
        raise ValueError(f"{what} must not be a null pointer")
    if pointer % alignment:
        raise ValueError(f"{what} must be aligned to {alignment} bytes, but its address is {pointer:#x}")


def is_injective(shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> bool:
    """True if different indices surely are different elements."""
    last = 0
    if 0 in shape:
        return True
    for stride, size in sorted((stride, size) for size, stride in zip(shape, strides) if size > 1):
        if stride <= last:
            return False
        last += (size - 1) * stride
    return True


def _footprint(view: View, period: int) -> int:
    """Bytes that the dimensions with strides below `period` bytes reach; 0 if a longer stride is no multiple of it."""
    size_of = DTYPE_BYTES[view.dtype]
    last = 0
    for size, stride in zip(view.shape, view.strides):
        if size == 1:
            continue
        if stride * size_of < period:
            last += (size - 1) * stride * size_of
        elif stride * size_of % period:
            return 0
    return last + size_of


def are_disjoint(a: View, b: View) -> bool:
    """True if the two surely share no byte, also where rows of one lie between rows of the other."""
    end_a = a.pointer + extent_in_bytes(a.dtype, a.shape, a.strides)
    end_b = b.pointer + extent_in_bytes(b.dtype, b.shape, b.strides)
    if 0 in a.shape or 0 in b.shape or end_a <= b.pointer or end_b <= a.pointer:
        return True
    for view in (a, b):
        for size, stride in zip(view.shape, view.strides):
            period = stride * DTYPE_BYTES[view.dtype]
            if size <= 1 or period <= 0:
                continue
            size_a, size_b = _footprint(a, period), _footprint(b, period)
            if size_a and size_b and size_a + size_b <= period:
                if size_a <= (b.pointer - a.pointer) % period <= period - size_b:
                    return True
    return False
