# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices, and bundles loaded on them. lib/Runtime/Launcher.cpp does the same, with the same messages."""

from __future__ import annotations

import ctypes
import re
import threading
from ctypes import byref, c_char, c_int, c_uint, c_uint32, c_uint64, c_void_p

from . import _bundle
from ._call import Lane, Map, ReadyLaunch, pack_float
from ._driver import UNSUPPORTED_PTX_VERSION, Driver, LaunchAttribute, LaunchConfig, get_driver
from ._errors import BundleError, DriverError
from ._layout import text

_MASK = 2**64 - 1
_FIRST_DRIVER = {
    "8.0": "12.0",
    "8.1": "12.1",
    "8.2": "12.2",
    "8.3": "12.3",
    "8.4": "12.4",
    "8.5": "12.5",
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    "9.0": "13.0",
    "9.1": "13.1",
}
_TENSOR_MAP_TYPES = {
    "i1": 0,
    "i8": 0,
    "f8e4m3fn": 0,
    "f8e5m2": 0,
    "i16": 1,
    "i32": 3,
    "i64": 5,
    "f16": 6,
    "f32": 7,
    "f64": 8,
    "bf16": 9,
}
_COMPUTE_MAJOR, _COMPUTE_MINOR, _SHARED, _SHARED_OPTIN = 75, 76, 8, 97
_STATIC_SHARED, _MAX_DYNAMIC_SHARED, _LARGE_CLUSTERS = 1, 8, 14
# Attributes of launches, and the first driver that captures launches with the second.
_CLUSTER_DIMENSION, _PROGRAMMATIC_SERIALIZATION, _FIRST_DEPENDENT = 4, 6, 12030
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6
_MEMORY_TYPE, _DEVICE_ORDINAL, _HOST_MEMORY = 2, 9, 1


class Device:
    """A GPU and its primary context, which is the one that torch and CuPy use."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        if not 0 <= ordinal < driver.num_devices:
            raise DriverError(f"there is no device {ordinal}; the CUDA driver has {driver.num_devices}")
        self.driver, self.ordinal = driver, ordinal
        handle, name = c_int(), ctypes.create_string_buffer(256)
        driver.check(driver.cuDeviceGet(byref(handle), ordinal), f"get device {ordinal}")
        driver.check(driver.cuDeviceGetName(name, 255, handle), "get the name of a device")
        self.name = name.value.decode(errors="replace")

        def attribute(number: int) -> int:
            value = c_int()
            driver.check(driver.cuDeviceGetAttribute(byref(value), number, handle), f"get attribute {number} of {self}")
            return value.value

        self.major, self.minor = attribute(_COMPUTE_MAJOR), attribute(_COMPUTE_MINOR)
        self.default_shared, self.max_shared = attribute(_SHARED), attribute(_SHARED_OPTIN)
        context = c_void_p()
        driver.check(driver.cuDevicePrimaryCtxRetain(byref(context), handle), f"make a context on {self}")
        self.context = context.value
        self.lock = threading.Lock()
        self.beside: "dict[int, list[int]]" = {}

    def __str__(self) -> str:
        return f"device {self.ordinal} ({self.name})"

    @property
    def chip(self) -> str:
        return f"sm_{self.major * 10 + self.minor}"

    @property
    def best_chip(self) -> str:
        """The chip to compile for: "sm_90a", with all that the device has."""
        return self.chip + ("a" if self.major >= 9 else "")

    def scope(self) -> "_Scope":
        """Makes the context current in this thread: `with device.scope():`"""
        return _Scope(self)


    def streams_beside(self, stream: int, count: int) -> "list[int]":
        """Streams for work beside that of a caller's stream, the same for all calls on it: one that captures a graph has those for
        itself."""
        relaxed, non_blocking = c_int(2), 1
        with self.lock:
            streams = self.beside.setdefault(stream, [])
            while len(streams) < count:
                made = c_void_p()
                self.driver.cuThreadExchangeStreamCaptureMode(byref(relaxed))
                result = self.driver.cuStreamCreate(byref(made), non_blocking)
                self.driver.cuThreadExchangeStreamCaptureMode(byref(relaxed))
                self.driver.check(result, f"make a stream on {self}")
                streams.append(made.value)
            return streams[:count]


class _Scope:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.pushed = False

    def __enter__(self) -> None:
        driver, current = self.device.driver, c_void_p()
        driver.cuCtxGetCurrent(byref(current))
        if current.value != self.device.context:
            driver.check(driver.cuCtxPushCurrent(self.device.context), f"make the context of {self.device} current")
            self.pushed = True

    def __exit__(self, *_: object) -> None:
        if self.pushed:
            self.device.driver.cuCtxPopCurrent(byref(c_void_p()))


_devices: "dict[int, Device]" = {}
_lock = threading.Lock()


def get_device(ordinal: int) -> Device:
    driver = get_driver()
    device = _devices.get(ordinal)
    if device is None:
        with _lock:
            device = _devices.get(ordinal) or Device(driver, ordinal)
            _devices[ordinal] = device
    return device


def current_device() -> int:
    """The device whose context is current in this thread, else 0."""
    driver, current = get_driver(), c_void_p()
    driver.cuCtxGetCurrent(byref(current))
    for ordinal, device in list(_devices.items()):
        if device.context == current.value:
            return ordinal
    return 0


def pointer_device(pointer: int) -> "int | None":
    """The device in whose memory an address is; None for host memory."""
    driver, kind, owner = get_driver(), c_uint(), c_int(-1)
    if driver.cuPointerGetAttribute(byref(kind), _MEMORY_TYPE, pointer) or kind.value == _HOST_MEMORY:
        return None
    if driver.cuPointerGetAttribute(byref(owner), _DEVICE_ORDINAL, pointer):
        return None
    return owner.value


def allocate(device: Device, bytes_: int, stream: int) -> int:
    """Memory in the order of a stream; 0 if no bytes are asked for."""
    pointer = c_uint64()
    if bytes_:
        with device.scope():
            device.driver.check(
                device.driver.cuMemAllocAsync(byref(pointer), bytes_, stream), f"allocate {bytes_} bytes on {device}"
            )
    return pointer.value


def release(device: Device, pointer: int, stream: int) -> None:
    if pointer:
        with device.scope():
            device.driver.cuMemFreeAsync(pointer, stream)


def wait_for(device: Device, stream: int, producer: int, whose: str = "the stream of an argument") -> None:
    """Has `stream` wait for what is queued on `producer`; the host waits for nothing."""
    driver, event = device.driver, c_void_p()
    disable_timing = 2
    with device.scope():
        driver.check(driver.cuEventCreate(byref(event), disable_timing), "make an event")
        try:
            driver.check(driver.cuEventRecord(event, producer), f"record an event on {whose}")
            driver.check(driver.cuStreamWaitEvent(stream, event, 0), f"wait for {whose}")
        finally:
            driver.cuEventDestroy(event)


class _Kernel:
    """`handles` are functions by (dynamic shared bytes, cluster) that have been allowed."""

    def __init__(self, function: int, static: int, dynamic: int) -> None:
        self.function, self.static, self.max_dynamic = function, static, dynamic
        self.large_clusters = False


class Program:
    """The target of a bundle that suits a device, loaded there. Thread safe."""

    def __init__(self, device: Device, targets: "list[_bundle.Target]", name: str) -> None:
        target = _bundle.find_target(targets, device.major, device.minor)
        if target is None:
            chips = ", ".join(t.chip for t in targets)
            raise BundleError(
                f"'{name}' has code for {chips}, but {device} is {device.chip}; compile it with "
                f"--chip={device.best_chip}"
            )
        self.device, self.target, self.name = device, target, name
        self.lock = threading.Lock()
        self.kernels: "dict[str, _Kernel]" = {}
        self.ready: "dict[tuple, int]" = {}
        self.maps: "dict[tuple, bytes]" = {}
        self.module = self.load()

    def load(self) -> int:
        driver, module = self.device.driver, c_void_p()
        log = ctypes.create_string_buffer(16384)
        options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), len(log) - 1)
        # While another thread, or the stream of this call, captures a graph, loading is only allowed in this mode.
        relaxed = c_int(2)
        with self.device.scope():
            driver.cuThreadExchangeStreamCaptureMode(byref(relaxed))
            result = driver.cuModuleLoadDataEx(byref(module), self.target.ptx.encode(), 2, options, values)
            driver.cuThreadExchangeStreamCaptureMode(byref(relaxed))
        if not result:
            return module.value
        if result == UNSUPPORTED_PTX_VERSION:
            stated = re.search(r"\.version ([^\r\n]*)", self.target.ptx)
            version = stated[1].strip() if stated else self.target.ptx_version
            first = _FIRST_DRIVER.get(version)
            raise DriverError(
                f"'{self.name}': the code for {self.target.chip} is PTX {version}, which the CUDA driver (version "
                f"{driver.version_text}) does not read; update the NVIDIA driver"
                + (f" to one of CUDA {first} or later" if first else ""),
                result,
            )
        try:
            driver.check(result, f"load the code for {self.target.chip} on {self.device}")
        except DriverError as error:
            message = log.value.decode(errors="replace").strip()
            raise DriverError(f"'{self.name}': {error}" + (f"\n{message}" if message else ""), result) from None
        raise AssertionError

    def function(self, launch: ReadyLaunch) -> int:
        """The function of a launch, after the driver has been asked to allow what it needs."""
        key = launch.kernel, launch.shared, launch.cluster
        function = self.ready.get(key)
        if function is None:
            with self.lock:
                function = self.ready[key] = self.prepare(launch)
        return function

    def prepare(self, launch: ReadyLaunch) -> int:
        driver, name = self.device.driver, launch.kernel
        kernel = self.kernels.get(name)
        if kernel is None:
            function, static = c_void_p(), c_int()
            driver.check(
                driver.cuModuleGetFunction(byref(function), self.module, name.encode()),
                f"find kernel '{name}' in the code for {self.target.chip}",
            )
            driver.check(
                driver.cuFuncGetAttribute(byref(static), _STATIC_SHARED, function),
                f"get the shared memory of kernel '{name}'",
            )
            kernel = _Kernel(function.value, static.value, self.device.default_shared - static.value)
            self.kernels[name] = kernel
        if launch.shared > kernel.max_dynamic:
            if launch.shared + kernel.static > self.device.max_shared:
                raise DriverError(
                    f"kernel '{name}' needs {launch.shared + kernel.static} bytes of shared memory for a block, but "
                    f"{self.device} has {self.device.max_shared}"
                )
            driver.check(
                driver.cuFuncSetAttribute(kernel.function, _MAX_DYNAMIC_SHARED, launch.shared),
                f"allow kernel '{name}' {launch.shared} bytes of shared memory",
            )
            kernel.max_dynamic = launch.shared
        cluster = launch.cluster or (1, 1, 1)
        if cluster[0] * cluster[1] * cluster[2] > 8 and not kernel.large_clusters:
            driver.check(
                driver.cuFuncSetAttribute(kernel.function, _LARGE_CLUSTERS, 1),
                f"allow kernel '{name}' clusters of more than 8 blocks",
            )
            kernel.large_clusters = True
        return kernel.function

    def encode(self, map_: Map, parameters: "_bundle.TensorMap", pointer: int) -> bytes:
        """The 128 bytes of a tensor map. Kept, as programs tend to come back with the same arrays."""
        key = parameters, pointer, map_.dtype, map_.shape, map_.strides
        found = self.maps.get(key)
        if found is not None:
            return found
        driver = self.device.driver
        if driver.cuTensorMapEncodeTiled is None:
            raise DriverError(
                "tensor maps need a CUDA driver of version 12.0 or later, but this one is " + driver.version_text
            )
        if 0 in map_.shape:  # the driver has no maps of nothing, and no kernel copies a box of one
            return bytes(128)
        # The driver counts dimensions from the innermost.
        rank = len(map_.shape)
        size_of = _bundle.DTYPE_BYTES[map_.dtype]
        sizes = (c_uint64 * rank)(*reversed(map_.shape))
        strides = (c_uint64 * rank)(*(stride * size_of for stride in reversed(map_.strides[:-1])))
        box = (c_uint32 * rank)(*reversed(parameters.box))
        steps = (c_uint32 * rank)(*[1] * rank)
        raw = (c_char * 192)()
        address = ctypes.addressof(raw) + -ctypes.addressof(raw) % 64
        driver.check(
            driver.cuTensorMapEncodeTiled(
                address,
                _TENSOR_MAP_TYPES[map_.dtype],
                rank,
                pointer,
                sizes,
                strides,
                box,
                steps,
                parameters.interleave,
                parameters.swizzle,
                parameters.l2_promotion,
                parameters.fill,
            ),
            f"encode tensor map {map_.number}",
        )
        encoded = ctypes.string_at(address, 128)
        if len(self.maps) >= 1024:
            self.maps.clear()
        self.maps[key] = encoded
        return encoded

    def functions(self, launches: "tuple[ReadyLaunch, ...]") -> "list[int]":
        return [self.function(launch) for launch in launches]

    def launch(
        self,
        plan: "_bundle.Plan",
        launches: "tuple[ReadyLaunch, ...]",
        functions: "list[int]",
        bases: "list[int]",
        scalars: "list",
        stream: int,
    ) -> None:
        """Queues launches; `bases` are the addresses of arguments, then results, then the workspace. The context is
        current."""
        filled = [self.fill(plan, launch, bases, scalars) for launch in launches]
        lanes = _Lanes(self.device, stream)
        try:
            for launch, function, slot in zip(launches, functions, filled):
                self.launch_one(launch, function, slot, lanes.enter(launch.lane))
                launch.slots.append(slot)  # the driver has copied it
        finally:
            lanes.enter(None)

    def fill(self, plan: "_bundle.Plan", launch: ReadyLaunch, bases: "list[int]", scalars: "list") -> "_Slot":
        try:
            slot = launch.slots.pop()
        except IndexError:
            slot = _Slot(launch.parameters, launch.offsets, self.configure(launch))
        words = slot.words
        for word, base, distance in launch.pointers:
            pointer = bases[base]
            words[word] = pointer + distance if pointer else 0
        for offset, form, argument in launch.floats:
            data = pack_float(form, scalars[argument])
            slot.memory[offset : offset + len(data)] = data
        for map_ in launch.maps:
            pointer = bases[map_.base]
            pointer = pointer + map_.distance & _MASK if pointer else 0
            slot.memory[map_.offset : map_.offset + 128] = self.encode(map_, plan.tensor_maps[map_.number], pointer)
        return slot

    def configure(self, launch: ReadyLaunch) -> "LaunchConfig | None":
        """What a launch needs beyond cuLaunchKernel; the stream is set later."""
        driver, attributes = self.device.driver, []
        if launch.cluster is not None:
            if driver.cuLaunchKernelEx is None:
                raise DriverError(
                    "clusters need a CUDA driver of version 11.8 or later, but this one is " + driver.version_text
                )
            attributes.append(LaunchAttribute(_CLUSTER_DIMENSION, 0, (c_uint * 16)(*launch.cluster)))
        # Earlier drivers do not capture such launches into graphs.
        if launch.dependent and driver.cuLaunchKernelEx is not None and driver.version >= _FIRST_DEPENDENT:
            attributes.append(LaunchAttribute(_PROGRAMMATIC_SERIALIZATION, 0, (c_uint * 16)(1)))
        if not attributes:
            return None
        array = (LaunchAttribute * len(attributes))(*attributes)
        return LaunchConfig((c_uint * 3)(*launch.grid), (c_uint * 3)(*launch.block), launch.shared, None, array, len(attributes))

    def launch_one(self, launch: ReadyLaunch, function: int, slot: "_Slot", stream: int) -> None:
        driver, config = self.device.driver, slot.config
        if config is None:
            result = driver.cuLaunchKernel(
                function, *launch.grid, *launch.block, launch.shared, stream, slot.pointers, None
            )
        else:
            config.stream = stream
            result = driver.cuLaunchKernelEx(byref(config), function, slot.pointers, None)
        if result:
            driver.check(
                result,
                f"launch kernel '{launch.kernel}' (grid {text(launch.grid)}, block {text(launch.block)}, "
                f"{launch.shared} bytes of shared memory)",
            )


class _Lanes:
    """The streams of a call: the caller's, and those beside it for runs of a repeat that may be under way at a time."""

    def __init__(self, device: Device, stream: int) -> None:
        self.device, self.stream, self.repeat = device, stream, -1
        self.others: "list[int]" = []

    def enter(self, lane: "Lane | None") -> int:
        """The stream of a lane, or the caller's, in which all before has ended where that is not said of lanes."""
        repeat = lane.repeat if lane else -1
        if repeat != self.repeat:
            for other in self.others:
                wait_for(self.device, self.stream, other, "a lane")
            self.others = self.device.streams_beside(self.stream, lane.count - 1) if lane else []
            for other in self.others:
                wait_for(self.device, other, self.stream, "the stream of a call")
            self.repeat = repeat
        return self.others[lane.number - 1] if lane and lane.number else self.stream


class _Slot:
    """The parameters of one launch, and a pointer to each: where a tensor map lies in a kernel's parameters only the
    driver knows, since it is aligned in the chip's memory, not to their start."""

    __slots__ = ("memory", "words", "pointers", "config")

    def __init__(self, parameters: bytes, offsets: "tuple[int, ...]", config: "LaunchConfig | None") -> None:
        self.config = config
        self.memory = memory = bytearray(parameters) + bytes(-len(parameters) % 8 or 8)
        self.words = (c_uint64 * (len(memory) // 8)).from_buffer(memory)
        start = ctypes.addressof(self.words)
        self.pointers = (c_void_p * len(offsets))(*[start + offset for offset in offsets])
