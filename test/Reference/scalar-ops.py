# RUN: %python %s
"""Scalar ops give what upstream's own folders give: each op on many values, as it is and canonicalized."""

import itertools
import os
import re
import subprocess
import tempfile

from ssatest import *

INTEGERS = {
    "i1": [0, 1],
    "i8": [-128, -127, -8, -3, -1, 0, 1, 2, 7, 100, 127],
    "i32": [-(2**31), -(2**31) + 1, -65537, -7, -1, 0, 1, 3, 31, 32, 1 << 16, 2**31 - 1],
    "i64": [-(2**63), -(2**63) + 1, -(2**32), -5, -1, 0, 1, 4, 63, 2**32 + 1, 2**63 - 1],
    "index": [-(2**63), -9, -1, 0, 1, 2, 62, 2**40, 2**63 - 1],
}
FLOATS = [
    "0.0",
    "-0.0",
    "1.0",
    "-1.0",
    "0.5",
    "2.5",
    "-2.5",
    "3.5",
    "1.0e-30",
    "-7.25",
    "88.0",
    "1.0e30",
    "INF",
    "-INF",
    "NAN",
]
HEX = {
    "f32": {"INF": "0x7F800000", "-INF": "0xFF800000", "NAN": "0x7FC00000"},
    "f64": {"INF": "0x7FF0000000000000", "-INF": "0xFFF0000000000000", "NAN": "0x7FF8000000000000"},
}
PREDICATES_I = "eq ne slt sle sgt sge ult ule ugt uge".split()
PREDICATES_F = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


def literal(value, type):
    """A value as MLIR writes it."""
    if type == "i1":
        return "true" if value else "false"
    return f"{HEX.get(type, {}).get(value, value)} : {type}"


def values(type):
    return INTEGERS.get(type, FLOATS)


def divides(op):
    return re.search("div|rem", op) and not op.endswith("f")


def shifts(op):
    return re.search("sh[lr]", op)


def cases(op, types):
    """Operands that have a meaning: no division by zero, no shift by the width or more."""
    width = {"i1": 1, "i8": 8, "i32": 32}.get(types[0], 64)
    for operands in itertools.product(*map(values, types)):
        if divides(op) and operands[1] == 0 or shifts(op) and not 0 <= operands[1] < width:
            continue
        yield operands


class Batch:
    """Ops that are compared in one run of each tool: every op gives one tensor, of its results on all operands."""

    def __init__(self):
        self.lines, self.tensors, self.types, self.checks, self.constants = [], [], [], [], {}

    def constant(self, value, type):
        key = (value, type)
        if key not in self.constants:
            self.constants[key] = f"%c{len(self.constants)}"
            self.lines.insert(0, f"  {self.constants[key]} = arith.constant {literal(value, type)}")
        return self.constants[key]

    def add(self, op, types, result, body, share=0.3, ulps=0, number=None, skip=lambda operands: False):
        """Adds an op whose text is `body` of its operands' names. `share` of its uses at least must fold; `number` is
        the result that counts, of several."""
        n, results = len(self.tensors), []
        for operands in cases(op, types):
            if skip(operands):
                continue
            name = f"%r{n}_{len(results)}"
            left = name if number is None else f"{name}, {name}x" if number == 0 else f"{name}x, {name}"
            self.lines.append(f"  {left} = {body([self.constant(v, t) for v, t in zip(operands, types)])}")
            results.append(name)
        self.types.append(f"tensor<{len(results)}x{result}>")
        self.tensors.append(f"%t{n}")
        self.lines.append(f"  %t{n} = tensor.from_elements {', '.join(results)} : {self.types[-1]}")
        self.checks.append((op, types, share, ulps))

    def compare(self):
        types, values = ", ".join(self.types), ", ".join(self.tensors)
        text = f"func.func @f() -> ({types}) {{\n" + "\n".join(self.lines) + f"\n  return {values} : {types}\n}}\n"
        after = folded(text)
        for op, share in {op: share for op, _, share, _ in self.checks}.items():
            uses = text.count(f" {op} ")
            check(after.count(f" {op} ") <= (1 - share) * uses, f"{op}: upstream folds too little to compare")
        for (op, types, _, ulps), got, ref in zip(self.checks, run(text, "f", []), run(after, "f", [])):
            if ulps:
                with np.errstate(invalid="ignore"):
                    same = (
                        (got == ref)
                        | (np.isnan(got) & np.isnan(ref))
                        | (np.abs(got - ref) <= ulps * np.spacing(np.abs(ref)))
                    )
                check(same.all(), f"{op} {types}: {got[~same][:4]} is not {ref[~same][:4]}")
                continue
            compare_exact(f"{op} {types}", got, ref)
            if got.dtype.kind == "f":
                same = np.isnan(got) | (np.signbit(got) == np.signbit(ref))
                check(same.all(), f"{op} {types}: the sign of a zero differs")


def folded(text):
    """A module after upstream's folding."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "in.mlir")
        path.write_text(text)
        command = [os.environ.get("SSA_OPT", "ssa-opt"), str(path), "--canonicalize"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@case
def integers():
    batch = Batch()
    ops = "addi subi muli divsi divui remsi remui ceildivsi ceildivui floordivsi maxsi maxui minsi minui"
    ops += " andi ori xori shli shrsi shrui"
    for op, type in itertools.product(ops.split(), INTEGERS):
        batch.add(f"arith.{op}", [type, type], type, lambda n: f"arith.{op} {n[0]}, {n[1]} : {type}")
    batch.compare()


@case
def integer_comparisons():
    batch = Batch()
    for predicate, type in itertools.product(PREDICATES_I, INTEGERS):
        batch.add("arith.cmpi", [type, type], "i1", lambda n: f"arith.cmpi {predicate}, {n[0]}, {n[1]} : {type}")
    batch.compare()


@case
def index_ops():
    batch = Batch()
    ops = "add sub mul divs divu rems remu ceildivs ceildivu floordivs maxs maxu mins minu and or xor shl shrs shru"
    for op in ops.split():
        # Upstream folds only where 32-bit and 64-bit arithmetic agree; its division of -2^63 upwards overflows.
        batch.add(
            f"index.{op}",
            ["index", "index"],
            "index",
            lambda n: f"index.{op} {n[0]}, {n[1]}",
            share=0.05,
            skip=lambda operands: op in ("ceildivs", "floordivs") and operands[0] == -(2**63),
        )
    for predicate in PREDICATES_I:
        batch.add("index.cmp", ["index", "index"], "i1", lambda n: f"index.cmp {predicate}({n[0]}, {n[1]})", share=0.05)
    batch.compare()


@case
def extended():
    batch = Batch()
    for type, number in itertools.product(("i8", "i32", "i64"), range(2)):
        for op, tail in (("addui_extended", f"{type}, i1"), ("mulsi_extended", type), ("mului_extended", type)):
            batch.add(
                f"arith.{op}",
                [type, type],
                "i1" if "i1" in tail.split() and number else type,
                lambda n: f"arith.{op} {n[0]}, {n[1]} : {tail}",
                number=number,
            )
    batch.compare()


@case
def integer_casts():
    batch = Batch()
    order = ["i1", "i8", "i32", "i64"]
    for a, b in itertools.combinations(order, 2):
        for op in ("extsi", "extui"):
            batch.add(f"arith.{op}", [a], b, lambda n: f"arith.{op} {n[0]} : {a} to {b}")
        batch.add("arith.trunci", [b], a, lambda n: f"arith.trunci {n[0]} : {b} to {a}")
    for type, op in itertools.product(order, ("index_cast", "index_castui")):
        batch.add(f"arith.{op}", [type], "index", lambda n: f"arith.{op} {n[0]} : {type} to index")
        batch.add(f"arith.{op}", ["index"], type, lambda n: f"arith.{op} {n[0]} : index to {type}")
    batch.compare()


@case
def floats():
    batch = Batch()
    for type in ("f32", "f64"):
        for op in "addf subf mulf divf remf maximumf minimumf maxnumf minnumf".split():
            batch.add(f"arith.{op}", [type, type], type, lambda n: f"arith.{op} {n[0]}, {n[1]} : {type}")
        batch.add("arith.negf", [type], type, lambda n: f"arith.negf {n[0]} : {type}")
        for predicate in PREDICATES_F:
            batch.add("arith.cmpf", [type, type], "i1", lambda n: f"arith.cmpf {predicate}, {n[0]}, {n[1]} : {type}")
    batch.compare()


@case
def float_casts():
    batch = Batch()
    batch.add("arith.extf", ["f32"], "f64", lambda n: f"arith.extf {n[0]} : f32 to f64")
    for to in ("f32", "f16", "bf16"):
        batch.add("arith.truncf", ["f64"], to, lambda n: f"arith.truncf {n[0]} : f64 to {to}")
    for integer, type in itertools.product(("i1", "i8", "i32", "i64"), ("f32", "f64")):
        batch.add("arith.sitofp", [integer], type, lambda n: f"arith.sitofp {n[0]} : {integer} to {type}")
        batch.add("arith.uitofp", [integer], type, lambda n: f"arith.uitofp {n[0]} : {integer} to {type}")
    for a, b in (("f32", "i32"), ("f64", "i64"), ("i32", "f32"), ("i64", "f64")):
        batch.add("arith.bitcast", [a], b, lambda n: f"arith.bitcast {n[0]} : {a} to {b}")
    batch.compare()


@case
def math_ops():
    batch = Batch()
    exact = "absf ceil copysign floor round roundeven trunc isfinite isinf isnan isnormal sqrt".split()
    close = "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1 log log10 log1p log2".split()
    close += "powf rsqrt sin sinh tan tanh".split()
    # Upstream folds some of these in some versions only.
    never = "acos acosh asin asinh atan atanh cbrt cos cosh erfc exp2 rsqrt sin sinh tan tanh".split()
    never += "isfinite isinf isnan isnormal".split()
    for op, type in itertools.product(exact + close, ("f32", "f64")):
        batch.add(
            f"math.{op}",
            [type] * (2 if op in ("copysign", "atan2", "powf") else 1),
            "i1" if op.startswith("is") else type,
            lambda n: f"math.{op} {', '.join(n)} : {type}",
            share=0 if op in never else 0.3,
            ulps=0 if op in exact else 2,
            # Upstream: NaN; C and IEEE 754: a zero or pi.
            skip=lambda operands: op == "atan2" and {*operands} <= {"0.0", "-0.0"},
        )
    batch.compare()


@case
def integer_math():
    batch = Batch()
    for op, type in itertools.product(("absi", "ctlz", "cttz", "ctpop"), ("i8", "i32", "i64")):
        batch.add(f"math.{op}", [type], type, lambda n: f"math.{op} {n[0]} : {type}")
    batch.compare()


main()
