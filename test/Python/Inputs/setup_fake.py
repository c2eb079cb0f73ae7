# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sets up this process for tests on the fake driver; to be imported before `ssa`."""

import atexit
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "test/Runtime/Inputs"), str(pathlib.Path(__file__).parent)]
from launching import TESTS, equal, fake_driver, folder, launches, main, parameters, shape_of, test  # noqa: E402, F401
from plans import PLANS, bundle, text  # noqa: E402, F401

os.environ["SSA_LIBCUDA"] = fake_driver()
LOG = folder / "log"
os.environ["FAKE_CUDA_LOG"] = str(LOG)
os.environ["FAKE_CUDA_DEVICES"] = "2"
atexit.register(shutil.rmtree, folder, ignore_errors=True)


def records():
    """What the driver was asked for since the last time."""
    lines = LOG.read_text().splitlines() if LOG.exists() else []
    LOG.unlink(missing_ok=True)
    return lines


def refused(kind, message, call, *args, **kwargs):
    """Calls; the call must raise an error of exactly this type with exactly this message, and must launch nothing."""
    records()
    try:
        call(*args, **kwargs)
    except Exception as error:  # noqa: BLE001
        assert type(error) is kind, f"expected {kind.__name__}, but got {type(error).__name__}: {error}"
        equal(str(error), message)
    else:
        raise AssertionError(f"expected {kind.__name__}: {message}")
    equal(launches(records()), [])
