# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How benchmarks time things."""

import statistics
import time

import torch


def median_ms(run, count=10):
    """The median of `count` runs after two, in ms of the device."""
    for _ in range(2):
        run()
    times = []
    for _ in range(count):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def rested_ms(run, count=5, rest=0.15):
    """The median of `count` runs with `rest` seconds before each, in which the device cools: under load its clock falls."""
    times = []
    for _ in range(count):
        time.sleep(rest)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)
