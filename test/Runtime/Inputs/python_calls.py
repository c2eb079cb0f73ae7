# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ssa-test-calls does, by the Python launcher."""

import ctypes
import json
import os
import sys

import ssa

fake = ctypes.CDLL(os.environ["SSA_LIBCUDA"]) if os.environ.get("FAKE_CUDA_LOG") else None


def argument(value):
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return value["float"]
    return ssa.RawTensor(value["pointer"], value["shape"], value["dtype"], value["strides"])


def call(bundle, item):
    out = item.get("results")
    values = bundle[item["entry"]](
        *map(argument, item["arguments"]), out=out and [argument(o) if o else None for o in out], stream=item["stream"]
    )
    return "ok" + "".join(f" {v.pointer}" for v in (values if isinstance(values, tuple) else (values,)))


def attempt(what, *args):
    try:
        return what(*args)
    except (TypeError, ValueError, ssa.DriverError) as error:
        return "error: " + str(error).replace("\n", "|")


def batch(item):
    bundle = attempt(ssa.load, item["bundle"])
    loaded = bundle if isinstance(bundle, str) else attempt(bundle.load, item["device"])
    if isinstance(loaded, str):
        return [loaded]
    lines = []
    for one in item["calls"]:
        if fake:
            fake.fakeBegin()
        lines.append(attempt(call, bundle, one))
    return lines


for item in json.load(sys.stdin):
    print("\n".join(batch(item)), flush=True)
