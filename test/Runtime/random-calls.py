# RUN: env CC=%cc %python %s
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls, right and wrong ones, by both launchers: the same answers, the same launches.

python3 test/Runtime/random-calls.py [SEED ..]      (default: 1, 2)
"""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from launching import array, call, make_calls  # noqa: E402
from plans import PLANS, text  # noqa: E402

CALLS = 150  # of each plan
DTYPES = ("f32", "bf16", "i32", "f8e4m3fn", "i64")


class Maker:
    """Makes calls that are mostly right."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def rarely(self, chance=0.05):
        return self.random.random() < chance

    def array(self, dtype, shape):
        """An array of the shape, None standing for any size."""
        choose = self.random.choice
        shape = [
            choose((0, 1, 1, 2, 3, 4, 5, 7, -1) if self.rarely(0.1) else (1, 2, 3, 4, 5)) if n is None else n
            for n in shape
        ]
        if shape and self.rarely():
            shape[-1] += 1
        if self.rarely():
            shape = shape[:-1] or [3]
        pointer = 0 if self.rarely() else choose((0, 16, 4096, 4098, 1 << 20, 2 << 20, 3 << 20))
        made = array(pointer or None, choose(DTYPES) if self.rarely() else dtype, shape)
        if self.random.random() < 0.5:
            last = len(shape) - 1
            steps = [choose((1, 1, 2, 4, 0, 3, -1) if d < last else (1, 1, 1, 1, 2)) for d in range(len(shape))]
            made["strides"] = [stride * step for stride, step in zip(made["strides"], steps)]
        return made

    def argument(self, declared):
        if "scalar" not in declared:
            return self.array(declared["dtype"], declared["shape"])
        if declared["scalar"][0] == "f":
            return self.random.choice((0.5, 1e300, -2.0))
        return self.random.choice((0, 1, 1, 2, 3, 5, -1, 127, 200, 70000, 2**31, 2**62))

    def results(self, declared, arguments):
        """Memory for some of the results, mostly of the shape of an argument."""
        given = []
        for result in declared:
            rank = len(result["shape"])
            made = None if self.rarely(0.3) else self.array(result["dtype"], [None] * rank)
            like = [a for a in arguments if isinstance(a, dict) and len(a["shape"]) == rank]
            if made and like and not self.rarely(0.3):
                made.update(shape=like[0]["shape"], strides=array(None, "f32", like[0]["shape"])["strides"])
            given.append(made)
        return given

    def call(self, name, plan):
        arguments = [self.argument(declared) for declared in plan.lists["arguments"]]
        if self.rarely(0.03):
            arguments.pop()
        wants_results = self.rarely(0.4) and name != "aliases"
        out = self.results(plan.lists["results"], arguments) if wants_results else None
        return call(name, *arguments, out=out, stream=self.random.choice((0, 5)))


def main():
    right = wrong = 0
    for seed in map(int, sys.argv[1:] or (1, 2)):
        maker = Maker(seed)
        for name, make in PLANS.items():
            calls = [maker.call(name, make()) for _ in range(CALLS)]
            answers, _ = make_calls(text(make()), calls)
            right += sum(answer.startswith("ok") for answer in answers)
            wrong += sum(answer.startswith("error") for answer in answers)
    print(f"{right} calls were made, {wrong} refused")
    assert right > wrong // 4 and wrong > right // 4, "too few of one kind"


main()
