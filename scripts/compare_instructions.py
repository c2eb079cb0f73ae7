#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the kernels of test/Simulator/instructions.py on the GPU of this machine and compares with the simulator bit by bit.

    python3 test/Simulator/instructions.py --store FILE     here
    python3 scripts/compare_instructions.py FILE            there: needs the driver only

Instructions that the GPU does not have are counted and left out.
"""

import ctypes
import json
import sys
from ctypes import byref, c_int, c_uint64, c_void_p

HEADER = ".version 8.6\n.target sm_{}\n.address_size 64\n"


def main():
    rows = json.load(open(sys.argv[1]))
    cuda = ctypes.CDLL("libcuda.so.1")

    def check(result, what):
        if result:
            sys.exit(f"{what}: error {result}")

    device, context, major, minor = c_int(), c_void_p(), c_int(), c_int()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    cuda.cuDeviceGetAttribute(byref(major), 75, device)
    cuda.cuDeviceGetAttribute(byref(minor), 76, device)
    chip = f"{major.value}{minor.value}" + ("a" if major.value >= 9 else "")
    missing, same, inexact, other = [], 0, [], []
    for row in rows:
        module, function = c_void_p(), c_void_p()
        text = (HEADER.format(chip) + row["kernel"]).encode()
        if cuda.cuModuleLoadData(byref(module), text):
            missing.append(row["name"])
            continue
        check(cuda.cuModuleGetFunction(byref(function), module, row["entry"].encode()), "cuModuleGetFunction")
        count, width = len(row["inputs"]), len(row["inputs"][0])
        total = -(-count // 128) * 128
        words = [x for case in row["inputs"] for x in case]
        words += [0] * (total * width - len(words))
        host = (c_uint64 * len(words))(*words)
        out, into = c_uint64(), c_uint64()
        check(cuda.cuMemAlloc_v2(byref(out), ctypes.c_size_t(8 * total)), "cuMemAlloc")
        check(cuda.cuMemAlloc_v2(byref(into), ctypes.c_size_t(8 * len(words))), "cuMemAlloc")
        check(cuda.cuMemcpyHtoD_v2(into, host, ctypes.c_size_t(8 * len(words))), "cuMemcpyHtoD")
        parameters = (c_void_p * 2)(ctypes.cast(byref(out), c_void_p), ctypes.cast(byref(into), c_void_p))
        check(cuda.cuLaunchKernel(function, total // 128, 1, 1, 128, 1, 1, 0, None, parameters, None), "cuLaunchKernel")
        results = (c_uint64 * total)()
        check(cuda.cuMemcpyDtoH_v2(results, out, ctypes.c_size_t(8 * total)), f"run {row['name']}")
        mask = (1 << row["bits"]) - 1
        differ = [(case, want & mask, got & mask) for case, want, got in zip(row["inputs"], row["outputs"], results) if (want ^ got) & mask]
        if not differ:
            same += 1
        else:
            case, want, got = differ[0]
            (inexact if row["approximate"] else other).append(
                f"{row['name']}: {len(differ)} of {count} differ, first {[hex(x) for x in case]}: simulator {want:#x}, GPU {got:#x}"
            )
        cuda.cuMemFree_v2(out)
        cuda.cuMemFree_v2(into)
        cuda.cuModuleUnload(module)
    print(f"sm_{chip}: {same} of {len(rows)} instructions give the same bits; {len(missing)} are not there: {', '.join(missing)}")
    print("approximations:", *inexact, sep="\n  ")
    print("others:", *other, sep="\n  ")


if __name__ == "__main__":
    main()
