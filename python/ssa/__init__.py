# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs compiled sparse attention on NVIDIA GPUs.

    import ssa
    bundle = ssa.load("nsa.json")      # from: ssa-opt nsa.mlir --emit=bundle --chip=sm_90a -o nsa.json
    o = bundle.nsa(q, k, v, g1, g2, g3)

Pure Python: it needs the CUDA driver and nothing else, and imports neither torch nor NumPy; arrays of torch, CuPy and
whatever speaks `__cuda_array_interface__` or DLPack go in and come out. The environment variable SSA_LIBCUDA may name
the driver's library (default: libcuda.so.1).
"""

from ._arrays import DeviceArray, RawTensor
from ._compiler import compile
from ._errors import BundleError, CompileError, CompilerNotFound, DriverError
from ._function import Bundle, Function, load

__version__ = "0.1.0"
__all__ = [
    "Bundle",
    "BundleError",
    "CompileError",
    "CompilerNotFound",
    "DeviceArray",
    "DriverError",
    "Function",
    "RawTensor",
    "compile",
    "load",
]

for _name in __all__:
    globals()[_name].__module__ = "ssa"  # where users find it
del _name
