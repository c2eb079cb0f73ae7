# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ssa-run --device=cuda`, of bundles and of patterns, on a driver that records."""

import os
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from launching import BASE, HEAP, environment, equal, folder, launches, main, parameters, shape_of  # noqa: E402
from plans import PLANS, text  # noqa: E402

LOG = folder / "log"
MERGE = """
func.func @merge(%o1: tensor<?x2x?x16xbf16>, %l1: tensor<?x2x?xf32>) -> tensor<?x2x?x16xbf16> {
  %o, %l = ssa.merge (%o1, %l1) : tensor<?x2x?x16xbf16>, tensor<?x2x?xf32> -> tensor<?x2x?x16xbf16>, tensor<?x2x?xf32>
  return %o : tensor<?x2x?x16xbf16>
}
"""


def write(name, content):
    path = folder / name
    path.write_text(content)
    return str(path)


def run(*command, status=0, settings=None, **variables):
    """Output and records of a run of ssa-run."""
    LOG.unlink(missing_ok=True)
    done = subprocess.run(
        [os.environ.get("SSA_RUN", "ssa-run"), *command],
        capture_output=True,
        text=True,
        timeout=120,
        env={**environment(LOG, **(settings or {})), **variables},
    )
    assert done.returncode == status, f"exit code {done.returncode}: {done.stderr}"
    return (done.stderr if status else done.stdout + done.stderr).replace(str(folder) + "/", ""), (
        LOG.read_text().splitlines() if LOG.exists() else []
    )


def a_bundle():
    """Inputs are copied, kernels launched and waited for, results copied back, all memory freed."""
    path = write("axpy.json", text(PLANS["axpy"]()))
    output, log = run(
        path,
        "--device=cuda",
        "--in",
        "value:0.5,zeros:4x8,arange:4x8",
        "--out",
        str(folder / "z.npy"),
        "--print",
        "--time",
    )
    z = np.load(folder / "z.npy")
    equal((z.shape, z.dtype, z.any()), ((4, 8), np.float32, False))
    assert (
        "input 0 %a: f32" in output
        and "input 1 %x: tensor<?x8xf32>, shape 4x8" in output
        and "result 0: tensor<?x8xf32>" in output
    ), output
    for step in ("load", "copy in", "kernels", "copy out"):
        assert f"  {step}\n" in output, output
    kinds = [line.split()[0] for line in log]
    equal(
        kinds,
        ["load", "allocate", "copy", "allocate", "copy", "allocate", "launch", "synchronize", "free", "free", "free"],
    )
    equal(parameters(launches(log)[0], "fpqpqpqq"), [0.5, HEAP, 8, HEAP + 512, 8, HEAP + 1024, 8, 4])
    equal(shape_of(launches(log)[0])[4], 0)


def elements_in_memory():
    """Every dtype in the bits that kernels read."""
    values = np.array([0.0, -0.0, 1.0, -2.5, 0.1, 65504.0, np.inf, np.nan, 448.0, 2.0**-9])
    bits = {
        "f16": np.float16(values).view(np.uint16),
        "f32": np.float32(values),
        "f64": values,
        "bf16": (np.float32(values).view(np.uint32) + 0x8000 >> 16).astype(np.uint16),
        "f8e4m3fn": np.array([0, 0x80, 0x38, 0xC2, 0x1D, 0x7E, 0x7E, 0x7F, 0x7E, 0x01], np.uint8),
        "i1": np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], np.uint8),
    }
    bits["bf16"][5], bits["bf16"][6], bits["bf16"][7] = 0x4780, 0x7F80, 0x7FC0
    np.save(folder / "x.npy", values)
    integers = np.array([0, 1, -1, 127, -128, 5, 6, 7, 8, 9])
    np.save(folder / "i.npy", integers)
    np.save(folder / "b.npy", bits["i1"].astype(bool))
    for kind in ("i8", "i16", "i32", "i64"):
        bits[kind] = integers.astype(kind.replace("i", "int"))
    for dtype, expected in bits.items():
        plan = PLANS["chunks"]()
        plan.lists["arguments"][0].update(dtype=dtype, alignment=1)
        plan.lists["buffers"][0].update(dtype=dtype)
        source = "b" if dtype == "i1" else "i" if dtype[0] == "i" else "x"
        np.save(folder / "in.npy", np.load(folder / f"{source}.npy").reshape(2, 5))
        _, log = run(
            write("types.json", text(plan)),
            "--device=cuda",
            "--in",
            str(folder / "in.npy"),
            "--out",
            str(folder / "y.npy"),
        )
        total, data = 0, expected.tobytes()
        for byte in data:
            total = (total * 31 + byte) % 2**64
        copied = [line for line in log if line.startswith("copy")][0]
        equal(copied, f"copy {len(data)} to {BASE + HEAP:#x} sum {total:x}")


def a_pattern():
    """Compiled in the process, for the chip of the device."""
    path = write("merge.mlir", MERGE)
    output, log = run(
        path, "--device=cuda", "--in", "randn:1x2x5x16,randn:1x2x5", "--out", str(folder / "o.npy"), "--time"
    )
    assert "  compile\n" in output, output
    equal([line.split()[0] for line in log if line.split()[0] in ("load", "launch")], ["load", "launch"])
    output, log = run(path, "--device=cuda:1", "--in", "randn:1x2x5x16,randn:1x2x5", settings={"DEVICES": 2})
    equal([line.split()[2] for line in log if line.startswith("load")], ["1"])


def arguments_that_are_refused():
    path = write("axpy.json", text(PLANS["axpy"]()))
    for inputs, message in (
        ("value:1,zeros:4x7,zeros:4x8", "axpy: argument 'x' must have shape ?x8, but got 4x7"),
        ("value:1,zeros:4x8,zeros:5x8", "axpy: dimension 0 of 'y' must be dimension 0 of 'x', but got 5 and 4"),
    ):
        output, log = run(path, "--device=cuda", "--in", inputs, status=1)
        equal(output.splitlines()[-1], f"error: device 'cuda': {message}")
        equal(launches(log), [])
    output, _ = run(path, "--device=cuda", "--in", "value:1,zeros:4x8", status=1)
    equal(
        output,
        "error: @axpy takes 3 inputs, but --in gives 2: @axpy(%a: f32, %x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> "
        "tensor<?x8xf32>\n",
    )


def choice_of_an_entry():
    path = write("two.json", text(PLANS["axpy"](), PLANS["chunks"]()))
    output, _ = run(path, "--device=cuda", "--in", "zeros:4x5", status=1)
    equal(output, "error: 'two.json' has several public functions; choose one with --entry: @axpy, @chunks\n")
    run(path, "--device=cuda", "--in", "zeros:4x5", "--entry=chunks")


def devices_that_are_not_there():
    path, pattern = write("axpy.json", text(PLANS["axpy"]())), write("merge.mlir", MERGE)
    inputs = ("--in", "randn:1x2x5x16,randn:1x2x5")
    output, _ = run(path, "--in", "value:1,zeros:4x8,zeros:4x8", status=1)
    equal(output, "error: 'axpy.json' is a bundle, which runs on a GPU only; use --device=cuda or --device=sim\n")
    for device in ("cuda:", "cuda:x", "cuda0", "gpu", ""):
        output, _ = run(pattern, f"--device={device}", *inputs, status=1)
        equal(output, f"error: device '{device}' is not known; there are cpu, cuda, cuda:N and sim\n")
    output, _ = run(pattern, "--device=cuda:4", *inputs, status=1)
    equal(output, "error: device 'cuda:4': there is no device 4; the CUDA driver has 1\n")
    output, _ = run(pattern, "--device=cuda", *inputs, status=1, SSA_LIBCUDA="libnosuchcuda.so.1")
    assert output.startswith(
        "error: device 'cuda': libnosuchcuda.so.1 cannot be opened: libnosuchcuda.so.1: cannot open shared object "
        "file: "
        "No such file or directory; running on a GPU needs the NVIDIA driver"
    ), output
    output, _ = run(path, "--device=cuda", "--in", "value:1,zeros:4x8,zeros:4x8", status=1, settings={"CC": 80})
    equal(
        output,
        "error: device 'cuda': 'axpy.json' has code for sm_90a, but device 0 (Fake 0) is sm_80; compile it with "
        "--chip=sm_80\n",
    )


def failures_on_the_device():
    path = write("axpy.json", text(PLANS["axpy"]()))
    for function, code, message in (
        ("cuStreamSynchronize", 700, "axpy: cannot run on device 0 (Fake 0): CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("cuMemAlloc_v2", 2, "cannot allocate 128 bytes: CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuMemcpyHtoD_v2", 700, "cannot copy argument 'x' to the device: CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("cuMemcpyDtoH_v2", 700, "cannot copy a result from the device: CUDA_ERROR_ILLEGAL_ADDRESS"),
    ):
        output, _ = run(
            path,
            "--device=cuda",
            "--in",
            "value:1,zeros:4x8,zeros:4x8",
            "--out",
            str(folder / "none.npy"),
            status=1,
            settings={"FAIL": f"{function}={code}"},
        )
        equal(output.splitlines()[-1], f"error: device 'cuda': {message}")
        assert not (folder / "none.npy").exists()


main(
    [
        a_bundle,
        elements_in_memory,
        a_pattern,
        arguments_that_are_refused,
        choice_of_an_entry,
        devices_that_are_not_there,
        failures_on_the_device,
    ]
)
