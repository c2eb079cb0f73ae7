# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles and the functions in them."""

from __future__ import annotations

import inspect
import operator
import os
import threading
from typing import Any, Iterator, NamedTuple

from . import _arrays as arrays
from . import _bundle, _device
from . import _layout as layout
from ._bundle import INTEGERS, Argument, Plan, Result
from ._call import Alias, Call, Prepared, Prepares, check_result
from ._errors import BundleError, DriverError

_CACHED_CALLS = 256


class _Known(NamedTuple):
    """A call that was made before; `masks` are the bits that must not be set in the addresses of its arguments."""

    program: "_device.Program"
    plan: Plan
    prepared: Prepared
    library: Any
    masks: "list[int]"
    functions: "list[int]"


def _type_text(dtype: str, shape: "Any") -> str:
    return f"{dtype}[{', '.join('?' if e is None else str(e) for e in shape)}]"


def _describe(argument: Argument) -> str:
    return argument.dtype if argument.is_scalar else _type_text(argument.dtype, argument.shape)


class _Refusal(Exception):
    """Why a call is refused: becomes an error of `kind` with the name of the function in front."""

    def __init__(self, kind: type, message: str) -> None:
        super().__init__(message)
        self.kind = TypeError if issubclass(kind, TypeError) else ValueError


def _type_error(message: str) -> _Refusal:
    return _Refusal(TypeError, message)


def _value_error(message: str) -> _Refusal:
    return _Refusal(ValueError, message)


class Bundle:
    """Compiled patterns: what `ssa-opt --emit=bundle` writes.

    `bundle["nsa"]` and `bundle.nsa` are the function of that name; `list(bundle)` names all of them. Nothing touches
    a GPU before the first call or `load`. Safe to use from several threads.

    Attributes:
        name: what messages call it: its path.
        chips: the targets it has code for, e.g. ["sm_90a", "sm_100"].
    """

    def __init__(self, text: str, name: str = "<memory>") -> None:
        """Raises BundleError if `text` is no bundle."""
        self.name = name
        self._targets = _bundle.parse(text, name)
        if not self._targets:
            raise BundleError(f"'{name}' is no bundle: it has no targets")
        self._programs: "dict[int, _device.Program]" = {}
        self._lock = threading.Lock()
        self._functions = {entry: Function(self, plan) for entry, plan in self._targets[0].entries.items()}

    @property
    def chips(self) -> "list[str]":
        return [target.chip for target in self._targets]

    def __getitem__(self, entry: str) -> "Function":
        try:
            return self._functions[entry]
        except KeyError:
            raise KeyError(f"'{self.name}' has no entry '{entry}'; it has {', '.join(self._functions)}") from None

    def __getattr__(self, entry: str) -> "Function":
        if entry.startswith("_"):
            raise AttributeError(entry)
        try:
            return self[entry]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> "Iterator[str]":
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, entry: object) -> bool:
        return entry in self._functions

    def __dir__(self) -> "list[str]":
        return sorted({*super().__dir__(), *self._functions})

    def __repr__(self) -> str:
        return f"<ssa.Bundle '{self.name}': {', '.join(self._functions)}; for {', '.join(self.chips)}>"

    def load(self, device: "int | None" = None) -> "Bundle":
        """Loads the code on a device (ordinal; None: the current one), which the first call does otherwise. Returns
        the bundle.

        Raises BundleError if it has no code for that device, DriverError if there is no driver or it refuses the code.
        """
        self._program(_device.current_device() if device is None else operator.index(device))
        return self

    def _program(self, ordinal: int) -> "_device.Program":
        program = self._programs.get(ordinal)
        if program is None:
            with self._lock:
                program = self._programs.get(ordinal)
                if program is None:
                    program = _device.Program(_device.get_device(ordinal), self._targets, self.name)
                    self._programs[ordinal] = program
        return program


class Function:
    """One function of a bundle. Calling it queues its kernels and returns without waiting for them.

        o = fn(q, k, v)                  # torch tensors, CuPy arrays, DLPack objects, RawTensor, ..
        o, lse = fn(q, k, v, out=(o, None))
        o = fn(q, k, v=v, stream=s)

    Arguments, by position or name, are arrays on one GPU (anything with `data_ptr()`, `__cuda_array_interface__` or
    `__dlpack__`) and Python numbers; `fn.arguments` and `help(fn)` say which. Any strides will do as far as the plan
    says so: innermost 1, others free.

    out: an array, or a tuple with an array or None for each result, to write to. What is left out is allocated the
    way the arguments' library does it: torch's caching allocator, CuPy's pool, else a DeviceArray.

    stream: where the kernels are queued: a stream of torch or CuPy, or the driver's handle. None: the current stream
    of torch or CuPy if one of their arrays is passed, else the legacy default stream. The call copies nothing between
    host and device and waits for nothing, and can be captured in a CUDA graph: with torch.cuda.graph as it is,
    otherwise if results are given.

    Raises, before anything is launched:
        TypeError: number or kind of arguments, a dtype, an array in host memory.
        ValueError: a shape (also against those of other arguments), strides, alignment, a null pointer, another
            device, results that overlap.
        BundleError, DriverError: as Bundle.load.

    Returns the result, or a tuple of results.
    """

    def __init__(self, bundle: Bundle, plan: Plan) -> None:
        self._bundle = bundle
        self._arguments, self._results = plan.arguments, plan.results
        self._positions = {argument.name: i for i, argument in enumerate(plan.arguments)}
        self._prepared: "dict[tuple, Prepared]" = {}
        self._known: "dict[tuple | None, _Known]" = {}
        self._prepares: "dict[str, Prepares]" = {}
        self.__name__ = self.__qualname__ = plan.entry
        self.__doc__ = self._make_doc()
        self.__signature__ = self._make_signature()

    def _make_doc(self) -> str:
        lines = [f"{self.__name__} of '{self._bundle.name}'.", "", "Arguments:"]
        lines += [f"    {argument.name}: {_describe(argument)}" for argument in self._arguments]
        plan = self._bundle._targets[0].entries[self.__name__]
        shapes = [[self._dimension(plan, number) for number in result.shape] for result in plan.results]
        lines += ["", "Returns:"] + [f"    {r.name}: {_type_text(r.dtype, s)}" for r, s in zip(self._results, shapes)]
        return "\n".join(lines)

    @staticmethod
    def _dimension(plan: Plan, number: int) -> "str | None":
        """A size of a result as text: a number, or the dimension of an argument that it equals."""
        value = plan.values[number]
        if value[0] == "const":
            return str(value[1])
        return f"{plan.arguments[value[1]].name}.shape[{value[2]}]" if value[0] == "dim" else None

    def _make_signature(self) -> inspect.Signature:
        keyword = inspect.Parameter.KEYWORD_ONLY
        names = [a.name for a in self._arguments]
        usable = all(name.isidentifier() and name not in ("out", "stream") for name in names) and len(
            set(names)
        ) == len(names)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if usable else inspect.Parameter.POSITIONAL_ONLY
        shown = names if usable else [f"argument{i}" for i in range(len(names))]
        own = [inspect.Parameter(name, keyword, default=None) for name in ("out", "stream")]
        return inspect.Signature([inspect.Parameter(name, kind) for name in shown] + own)

    @property
    def arguments(self) -> "list[str]":
        """Each argument as text: "q: bf16[?, 64, ?, 128]"."""
        return [f"{argument.name}: {_describe(argument)}" for argument in self._arguments]

    def __repr__(self) -> str:
        return f"<ssa.Function {self.__name__}({', '.join(self.arguments)}) of '{self._bundle.name}'>"

    # -----------------------------------------------------------------------------------------------------------------
    # Calls

    def __call__(self, *args: Any, out: Any = None, stream: Any = None, **kwargs: Any) -> Any:
        try:
            return self._call(args, kwargs, out, stream)
        except _Refusal as refusal:
            raise refusal.kind(f"{self.__name__}: {refusal}") from None

    def _call(self, args: tuple, kwargs: "dict[str, Any]", out: Any, stream: Any) -> Any:
        values = self._bind(args, kwargs)
        key = None
        if out is None and stream is None:
            key, pointers = self._torch_key(values)
            known = self._known.get(key)
            if known is not None and not any(map(operator.and_, pointers, known.masks)):
                return self._call_again(known, values, pointers)
        given = self._bind_results(out)
        library = self._library(values, given)
        ordinal, handle = self._place(values, given, library, stream)
        views = self._views(values, handle, ordinal)
        results = self._result_views(given, handle, ordinal)
        program = self._bundle._program(ordinal)
        plan = program.target.entries[self.__name__]
        prepared = self._prepare(plan, program.target.chip, views, results)
        with program.device.scope():
            context = library.on_stream(ordinal, handle)
            if context is None:
                outputs = self._run(program, plan, prepared, library, values, views, given, results, handle)
            else:
                with context:
                    outputs = self._run(program, plan, prepared, library, values, views, given, results, handle)
        if key is not None:
            self._remember(key, program, plan, prepared, library)
        return outputs

    def _torch_key(self, values: "list[Any]") -> "tuple[tuple | None, list[int]]":
        """What a call with torch tensors and plain numbers depends on but their addresses, and these; None for other
        calls."""
        library = arrays.get_torch()
        if library is None:
            return None, []
        torch = library.torch
        key: "list[Any]" = []
        pointers = []
        for argument, value in zip(self._arguments, values):
            if argument.is_scalar:
                if type(value) is int and argument.dtype in INTEGERS:
                    key.append(value)
                elif type(value) is not float or argument.dtype in INTEGERS:
                    return None, []
                pointers.append(0)
                continue
            if (
                not isinstance(value, torch.Tensor)
                or value.layout is not torch.strided
                or (value.requires_grad and torch.is_grad_enabled())
            ):
                return None, []
            key += (value.dtype, value.shape, value.stride(), value.device)
            pointers.append(value.data_ptr() if argument.access != "none" else 0)
        return tuple(key), pointers

    def _remember(self, key: tuple, program: "_device.Program", plan: Plan, prepared: Prepared, library: Any) -> None:
        """Keeps what a successful call has found out for calls with the same key."""
        if any(alias is not None for alias in prepared.aliases):
            return
        masks = [
            0 if argument.is_scalar or argument.access == "none" else argument.alignment - 1
            for argument in self._arguments
        ]
        if len(self._known) >= _CACHED_CALLS:
            self._known = {}
        self._known[key] = _Known(program, plan, prepared, library, masks, program.functions(prepared.launches))

    def _call_again(self, known: "_Known", values: "list[Any]", pointers: "list[int]") -> Any:
        """A call of which only addresses and floating point numbers are new."""
        program, plan, prepared, library, _, functions = known
        ordinal = program.device.ordinal
        stream = library.current_stream(ordinal)
        outputs = []
        for result, (shape, _strides) in zip(plan.results, prepared.results):
            output = library.empty(shape, result.dtype, ordinal, stream)
            outputs.append(output)
            pointers.append(output.data_ptr())
        scratch, memory = library.scratch(prepared.workspace, ordinal, stream) if prepared.workspace else (0, None)
        pointers.append(scratch)
        with program.device.scope():
            try:
                program.launch(plan, prepared.launches, functions, pointers, values, stream)
            except DriverError as error:
                raise DriverError(f"{self.__name__}: {error}", error.code) from None
        del memory
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _bind(self, args: tuple, kwargs: "dict[str, Any]") -> "list[Any]":
        expected = len(self._arguments)
        if len(args) == expected and not kwargs:
            return list(args)
        names = ", ".join(self._positions)
        for name in kwargs:
            if name not in self._positions:
                raise _type_error(f"there is no argument '{name}'; the arguments are {names}")
            if self._positions[name] < len(args):
                raise _type_error(f"argument '{name}' is given twice")
        if len(args) + len(kwargs) != expected:
            raise _type_error(
                f"expected {expected} argument{'s' * (expected != 1)} ({names}), but got {len(args) + len(kwargs)}"
            )
        values = list(args) + [None] * (expected - len(args))
        for name, value in kwargs.items():
            values[self._positions[name]] = value
        return values

    def _bind_results(self, out: Any) -> "list[Any]":
        count = len(self._results)
        if out is None:
            return [None] * count
        given = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != count:
            raise _type_error(
                f"out must have {count} array{'s' * (count != 1)}, one for each result, but has {len(given)}"
            )
        for result, array in zip(self._results, given):
            if array is not None and not result.owned:
                raise _value_error(
                    f"result '{result.name}' is memory of an argument or another result; out must be None for it"
                )
        return given

    def _library(self, values: "list[Any]", given: "list[Any]") -> Any:
        found = None
        for array in (*values, *given):
            if arrays.is_torch(array):
                return arrays.get_torch()
            if found is None and arrays.is_cupy(array):
                found = arrays.CuPy()
        return found or arrays.Own()

    def _subjects(self, values: "list[Any]", given: "list[Any]") -> "Iterator[tuple[str, str, bool, Any]]":
        """(what, dtype, whether kernels touch it, array) for all that is passed for arrays."""
        for argument, value in zip(self._arguments, values):
            if not argument.is_scalar:
                yield f"argument '{argument.name}'", argument.dtype, argument.access != "none", value
        for result, array in zip(self._results, given):
            if array is not None:
                yield f"result '{result.name}'", result.dtype, True, array

    def _place(self, values: "list[Any]", given: "list[Any]", library: Any, stream: Any) -> "tuple[int, int]":
        """The device and the stream of a call."""
        ordinal, host = None, None
        for what, dtype, used, array in self._subjects(values, given):
            if not arrays.is_array(array):
                got = type(array).__name__
                raise _type_error(
                    f"{what} must be an array, but got {'a number' if isinstance(array, (int, float)) else got}"
                )
            if not used:
                continue
            device = arrays.device_of(array)
            if device in (None, layout.ANYWHERE):
                host = host or what
            elif ordinal is None and device >= 0:
                ordinal = device
        if ordinal is None and host:
            raise _type_error(f"{host} must be in memory of a GPU, but is in host memory")
        if ordinal is None:
            ordinal = _device.current_device()
        if stream is None:
            return ordinal, library.current_stream(ordinal)
        try:
            return ordinal, arrays.stream_handle(stream)
        except TypeError as error:
            raise _type_error(str(error)) from None

    def _view(self, what: str, used: bool, array: Any, stream: int, ordinal: int) -> "tuple[layout.View, bool]":
        try:
            view, read_only = arrays.view_of(array, stream if used else None)
        except (TypeError, ValueError) as error:
            if str(error).startswith(("must", "requires")):
                raise _Refusal(type(error), f"{what} {error}") from None
            raise
        if not used or 0 in view.shape:
            return view, read_only
        device: "int | None" = view.device
        if device == layout.UNKNOWN:
            device = _device.pointer_device(view.pointer) if view.pointer else ordinal
        if device is None or device in (layout.HOST, layout.ANYWHERE):
            raise _type_error(f"{what} must be in memory of device {ordinal}, but is in host memory")
        if device != ordinal:
            raise _value_error(f"{what} must be in memory of device {ordinal}, but is on device {device}")
        return view, read_only

    def _views(self, values: "list[Any]", stream: int, ordinal: int) -> "list[Any]":
        views: "list[Any]" = []
        for argument, value in zip(self._arguments, values):
            if argument.is_scalar:
                views.append(self._scalar(argument, value))
            else:
                used = argument.access != "none"
                views.append(self._view(f"argument '{argument.name}'", used, value, stream, ordinal)[0])
        return views

    def _scalar(self, argument: Argument, value: Any) -> "int | float":
        what = f"argument '{argument.name}' must be {argument.dtype}"
        if arrays.is_array(value) and (not hasattr(value, "__array_interface__") or tuple(value.shape) != ()):
            raise _type_error(f"{what}, but got an array")
        if argument.dtype in INTEGERS:
            if hasattr(value, "__index__"):
                return operator.index(value)
        elif hasattr(value, "__float__") or hasattr(value, "__index__"):
            return float(value)
        got = "a floating point number" if isinstance(value, float) else type(value).__name__
        raise _type_error(f"{what}, but got {got}")

    def _result_views(self, given: "list[Any]", stream: int, ordinal: int) -> "list[layout.View | None]":
        views: "list[layout.View | None]" = []
        for result, array in zip(self._results, given):
            if array is None:
                views.append(None)
                continue
            view, read_only = self._view(f"result '{result.name}'", True, array, stream, ordinal)
            if read_only:
                raise _value_error(f"result '{result.name}' must not be read-only")
            views.append(view)
        return views

    def _prepare(self, plan: Plan, chip: str, views: "list[Any]", results: "list[layout.View | None]") -> Prepared:
        """Everything that depends on sizes, strides and integers only. Kept for calls with the same ones."""
        key = (
            chip,
            *[v[1:4] if type(v) is layout.View else v if type(v) is int else None for v in views],
            *[v and v[1:4] for v in results],
        )
        prepared = self._prepared.get(key)
        if prepared is not None:
            self._check_addresses(views, results)
            return prepared
        try:
            prepares = self._prepares.get(chip) or self._prepares.setdefault(chip, Prepares(plan))
            call = Call(prepares, [(*v[1:4], v.pointer) if isinstance(v, layout.View) else v for v in views])
            strides = []
            for i, (result, view, shape) in enumerate(zip(plan.results, results, call.shapes)):
                if view is None:
                    strides.append(layout.contiguous(shape))
                else:
                    strides.append(check_result(result, shape, *view[1:4], view.pointer))
                    self._check_overlap(i, views, results)
            prepared = call.finish(strides)
        except (TypeError, ValueError) as error:
            raise _Refusal(type(error), str(error)) from None
        if len(self._prepared) >= _CACHED_CALLS:
            self._prepared = {}
        self._prepared[key] = prepared
        return prepared

    def _check_addresses(self, views: "list[Any]", results: "list[layout.View | None]") -> None:
        """What may differ between calls of the same sizes and strides: alignment, null, overlap."""
        for argument, view in zip(self._arguments, views):
            if not argument.is_scalar and argument.access != "none" and 0 not in view.shape:
                if not view.pointer or view.pointer % argument.alignment:
                    self._address_error(f"argument '{argument.name}'", view.pointer, argument.alignment)
        for i, (result, view) in enumerate(zip(self._results, results)):
            if view is None or 0 in view.shape:
                continue
            if not view.pointer or view.pointer % result.alignment:
                self._address_error(f"result '{result.name}'", view.pointer, result.alignment)
            self._check_overlap(i, views, results)

    def _check_overlap(self, number: int, views: "list[Any]", results: "list[layout.View | None]") -> None:
        """Checks a result that is given against arguments and earlier results."""
        view, what = results[number], f"result '{self._results[number].name}' must not overlap"
        assert view is not None
        for argument, other in zip(self._arguments, views):
            if not argument.is_scalar and argument.access != "none" and not layout.are_disjoint(view, other):
                raise _value_error(f"{what} argument '{argument.name}'")
        for result, earlier in zip(self._results[:number], results):
            if earlier is not None and not layout.are_disjoint(view, earlier):
                raise _value_error(f"{what} result '{result.name}'")

    @staticmethod
    def _address_error(what: str, pointer: int, alignment: int) -> None:
        try:
            layout.check_address(what, pointer, alignment)
        except ValueError as error:
            raise _value_error(str(error)) from None

    def _run(
        self,
        program: "_device.Program",
        plan: Plan,
        prepared: Prepared,
        library: Any,
        values: "list[Any]",
        views: "list[Any]",
        given: "list[Any]",
        results: "list[layout.View | None]",
        stream: int,
    ) -> Any:
        """Allocates and launches; the context is current, and memory is allocated for the stream."""
        ordinal = program.device.ordinal
        outputs: "list[Any]" = list(given)
        bases = [v.pointer if isinstance(v, layout.View) else 0 for v in views]
        for i, (result, view) in enumerate(zip(plan.results, results)):
            if view is None and result.owned:
                try:
                    outputs[i] = library.empty(prepared.results[i][0], result.dtype, ordinal, stream)
                except TypeError as error:
                    raise _type_error(f"result '{result.name}' cannot be allocated: {error}") from None
                view = arrays.view_of(outputs[i], None)[0]
                if 0 not in view.shape and view.pointer % result.alignment:
                    self._address_error(f"result '{result.name}'", view.pointer, result.alignment)
            bases.append(view.pointer if view else 0)
        scratch, memory = library.scratch(prepared.workspace, ordinal, stream) if prepared.workspace else (0, None)
        if scratch % plan.workspace_alignment:
            raise _value_error(f"the workspace must be aligned to {plan.workspace_alignment} bytes")
        bases.append(scratch)
        try:
            functions = program.functions(prepared.launches)
            program.launch(plan, prepared.launches, functions, bases, views, stream)
        except DriverError as error:
            raise DriverError(f"{self.__name__}: {error}", error.code) from None
        del memory
        for i, (result, alias) in enumerate(zip(plan.results, prepared.aliases)):
            if alias is not None:
                outputs[i] = self._part(result, alias, prepared.results[i][0], library, values, views, outputs, stream)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _part(
        self,
        result: Result,
        alias: Alias,
        shape: "tuple[int, ...]",
        library: Any,
        values: "list[Any]",
        views: "list[Any]",
        outputs: "list[Any]",
        stream: int,
    ) -> Any:
        """A result that is memory of an argument or of another result."""
        is_argument = alias.base < len(values)
        base = values[alias.base] if is_argument else outputs[alias.base - len(values)]
        view = views[alias.base] if is_argument else None
        if view is not None and alias.distance == 0 and (view.dtype, view.shape) == (result.dtype, shape):
            if layout.normalized(shape, view.strides) == alias.strides:
                return base
        owner = library
        if not (arrays.is_torch(base) if isinstance(library, arrays.Torch) else arrays.is_cupy(base)):
            owner = arrays.Own()
        return owner.part(base, alias.distance, result.dtype, shape, alias.strides, stream)


def load(path_or_text: "str | bytes | os.PathLike[str]") -> Bundle:
    """Reads a bundle from a file, or from the text of one (which begins with "{").

    Raises OSError if there is no such file, BundleError if it is no bundle.
    """
    if isinstance(path_or_text, (bytes, bytearray)):
        path_or_text = bytes(path_or_text).decode()
    if isinstance(path_or_text, str) and path_or_text.lstrip()[:1] == "{":
        return Bundle(path_or_text)
    path = os.fspath(path_or_text)
    with open(path, encoding="utf-8") as file:
        return Bundle(file.read(), str(path))
