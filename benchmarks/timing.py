# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How benchmarks time things."""

import dataclasses
import statistics
import time

import torch


# Cycles that the device is kept busy before a run, about half a millisecond, so that what the host needs to launch it does not count.
HEAD_START = 1_000_000


def time_once(run):
    """One run, in ms of the device."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(HEAD_START)
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def rested_ms(run, count=5, rest=0.15):
    """The median of `count` runs with `rest` seconds before each, in which the device cools: under load its clock falls."""
    times = []
    for _ in range(count):
        time.sleep(rest)
        times.append(time_once(run))
    return statistics.median(times)


@dataclasses.dataclass
class Times:
    """Runs in ms of the device."""

    runs: list

    @property
    def median(self):
        return statistics.median(self.runs)

    @property
    def spread(self):
        """Half of what lies between the quartiles, as a share of the median."""
        low, _, high = statistics.quantiles(self.runs, n=4)
        return (high - low) / 2 / self.median


def time_alternating(runs, count=10, warm=2):
    """Times of each of the functions by name, one after another in turns, so that what the device does meanwhile meets all of them. A
    function that fails is left out; its error comes in place of times."""
    times, errors = {name: [] for name in runs}, {}
    for turn in range(warm + count):
        for name, run in runs.items():
            if name in errors:
                continue
            try:
                ms = time_once(run)
            except Exception as error:  # noqa: BLE001: one peer does not stop the rest
                errors[name] = error
                torch.cuda.empty_cache()
                continue
            if turn >= warm:
                times[name].append(ms)
    return {name: Times(list_) for name, list_ in times.items() if name not in errors}, errors
