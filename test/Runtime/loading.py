# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What both launchers load on which device, and what they say of drivers, devices and code that are not right."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from launching import (  # noqa: E402
    BASE,
    HEAP,
    SPACE,
    TESTS,
    array,
    call,
    equal,
    launches,
    main,
    make_calls,
    refused,
    shape_of,
    test,
)
from plans import PLANS, bundle, text  # noqa: E402


def load(chips, **settings):
    answers, records = make_calls(
        text(PLANS["scalars"](), chips=chips), [call("scalars", 0, 0, 0, 0, 0, 0.0, 0.0)], **settings
    )
    equal(len(answers), 1)
    return answers[0], [r for some in records for r in some if r.startswith("load")]


@test
def choice_of_a_target():
    """The code tells which was taken: `.target` is part of it, and its length is recorded."""
    chips = ["sm_80", "sm_90", "sm_100", "sm_90a", "sm_100a", "sm_100f", "sm_103f", "sm_120a", "sm_9"]
    for capability, subset, expected in (
        (90, chips, "sm_90a"),
        (100, chips, "sm_100a"),
        (103, chips, "sm_103f"),
        (103, ["sm_100f", "sm_100", "sm_100a"], "sm_100f"),
        (101, ["sm_103f", "sm_100f", "sm_90"], "sm_100f"),
        (110, chips, "sm_100"),
        (120, ["sm_100f", "sm_100", "sm_120"], "sm_120"),
        (89, chips, "sm_80"),
        (90, ["sm_80", "sm_100a"], "sm_80"),
        (86, ["sm_80", "sm_90"], "sm_80"),
        (121, chips, "sm_100"),
    ):
        lengths = {chip: len(bundle(PLANS["scalars"](), chips=[chip])["targets"][0]["ptx"]) for chip in subset}
        # Names of equal length are told apart by padding.
        made = bundle(PLANS["scalars"](), chips=subset)
        for i, target in enumerate(made["targets"]):
            target["ptx"] += " " * i
            lengths[target["chip"]] += i
        answers, records = make_calls(json.dumps(made), [call("scalars", 0, 0, 0, 0, 0, 0.0, 0.0)], CC=capability)
        assert answers[0].startswith("ok"), answers
        taken = [r for r in records[0] if r.startswith("load")]
        equal(taken, [f"load device 0 bytes {lengths[expected]} capture mode 2"])


@test
def no_target_for_the_device():
    for capability, chips in (
        (80, ["sm_90a", "sm_90"]),
        (90, ["sm_100", "sm_100f"]),
        (100, ["sm_90a"]),
        (103, ["sm_100a", "sm_103x"]),
    ):
        answer, loads = load(chips, CC=capability)
        equal(
            answer,
            f"error: 'bundle.json' has code for {', '.join(chips)}, but device 0 (Fake 0) is "
            f"sm_{capability}; compile it with "
            f"--chip=sm_{capability}{'a' * (capability >= 90)}",
        )
        equal(loads, [])


@test
def second_device():
    x, y = array(BASE + SPACE, "f32", [4, 8]), array(BASE + SPACE + 4096, "f32", [4, 8])
    answers, records = make_calls(text(PLANS["axpy"]()), [call("axpy", 0.5, x, y)], device=1, DEVICES=2)
    equal(answers, [f"ok {BASE + SPACE + HEAP}"])
    equal(shape_of(launches(records[1])[0])[0], "axpy")
    assert " device 1 " in launches(records[1])[0]


@test
def no_such_device():
    answers, _ = make_calls(text(PLANS["axpy"]()), [], device=3, DEVICES=2)
    equal(answers, ["error: there is no device 3; the CUDA driver has 2"])


def load_text(ptx, **settings):
    answers, _ = make_calls(text(PLANS["scalars"](), ptx=ptx), [], **settings)
    return answers


@test
def N9_ptx_that_is_too_new():
    first = "error: 'bundle.json': the code for sm_90a is PTX "
    equal(
        load_text(".version 99.9\n.target sm_90a\n", VERSION=12040),
        [first + "99.9, which the CUDA driver (version 12.4) does not read; update the NVIDIA driver"],
    )
    equal(
        load_text(".version 8.8\n.target sm_90a\n", VERSION=12080, FAIL="cuModuleLoadDataEx=222"),
        [
            first
            + "8.8, which the CUDA driver (version 12.8) does not read; update the NVIDIA driver to one of CUDA 12.9 or "
            "later"
        ],
    )
    equal(
        load_text("// no version\n", VERSION=12080, FAIL="cuModuleLoadDataEx=222"),
        [
            first
            + "8.8, which the CUDA driver (version 12.8) does not read; update the NVIDIA driver to one of CUDA 12.9 or "
            "later"
        ],
    )


@test
def ptx_that_is_wrong():
    equal(
        load_text(".version 8.8\nnonsense\n"),
        [
            "error: 'bundle.json': cannot load the code for sm_90a on device 0 (Fake 0): CUDA_ERROR_INVALID_PTX|"
            "ptxas application ptx input, "
            "line 4; fatal   : Parsing error near 'nonsense'"
        ],
    )


@test
def kernels_that_are_missing():
    answers, _ = make_calls(text(PLANS["scalars"](), ptx=".version 8.8\n"), [call("scalars", 0, 0, 0, 0, 0, 0.0, 0.0)])
    equal(answers, ["error: scalars: cannot find kernel 'scalars' in the code for sm_90a: CUDA_ERROR_NOT_FOUND"])


@test
def launches_that_fail():
    refused(
        "scalars",
        "cannot launch kernel 'scalars' (grid 1x1x1, block 128x1x1, 0 bytes of shared memory): "
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        0,
        0,
        0,
        0,
        0,
        0.0,
        0.0,
        FAIL="cuLaunchKernel=700",
    )
    refused(
        "scalars",
        "cannot launch kernel 'scalars' (grid 1x1x1, block 128x1x1, 0 bytes of shared memory): CUresult 999",
        0,
        0,
        0,
        0,
        0,
        0.0,
        0.0,
        FAIL="cuLaunchKernel=999",
    )


@test
def drivers_that_do_not_start():
    answers, _ = make_calls(text(PLANS["scalars"]()), [], FAIL="cuInit=100")
    equal(
        answers, ["error: cannot initialize the CUDA driver: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"]
    )
    answers, _ = make_calls(text(PLANS["scalars"]()), [], FAIL="cuDevicePrimaryCtxRetain=2")
    equal(answers, ["error: cannot make a context on device 0 (Fake 0): CUDA_ERROR_OUT_OF_MEMORY"])


main(TESTS)
