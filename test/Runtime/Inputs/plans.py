# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bundles made by hand, for tests of launchers."""

import json


class Plan:
    """Builds a plan; values are made once each. `result_stride` and `index` end the leading values."""

    def __init__(self, entry):
        self.entry = entry
        self.lists = {
            key: []
            for key in ("arguments", "results", "values", "checks", "buffers", "launches", "tensormaps", "repeats")
        }
        self.inputs = None
        self.bytes, self.alignment = 0, 256

    def _add(self, key, item):
        self.lists[key].append(item)
        return len(self.lists[key]) - 1

    def value(self, *operation):
        operation = list(operation)
        if operation[0] in ("result_stride", "index") and self.inputs is None:
            self.inputs = len(self.lists["values"])
        known = self.lists["values"]
        if operation in known and operation[0] != "index":
            return known.index(operation)
        return self._add("values", operation)

    def const(self, number):
        return self.value("const", number)

    def consts(self, *numbers):
        return [self.const(n) for n in numbers]

    def tensor(self, name, dtype, shape, strides="free", alignment=16, access="read"):
        """Adds an argument with its buffer; returns the number of the argument. "free": innermost stride 1."""
        if strides == "free":
            strides = [None] * (len(shape) - 1) + [1] if shape else []
        number = self._add(
            "arguments",
            {
                "name": name,
                "dtype": dtype,
                "shape": shape,
                "strides": strides,
                "alignment": alignment,
                "access": access,
            },
        )
        return number

    def buffer(self, argument):
        """The buffer of an argument."""
        item = self.lists["arguments"][argument]
        dims = range(len(item["shape"]))
        return self._add(
            "buffers",
            {
                "argument": argument,
                "dtype": item["dtype"],
                "shape": [self.value("dim", argument, d) for d in dims],
                "strides": [self.value("stride", argument, d) for d in dims],
            },
        )

    def scalar(self, name, kind):
        return self._add("arguments", {"name": name, "scalar": kind})

    def result(self, name, dtype, shape, strides="any", alignment=16, buffer=None):
        """Adds a result; returns (number, buffer)."""
        number = self._add(
            "results",
            {
                "name": name,
                "dtype": dtype,
                "shape": shape,
                "strides": strides,
                "alignment": alignment,
                "buffer": buffer,
            },
        )
        return number

    def own(self, result):
        """The buffer of a result with memory of its own."""
        item = self.lists["results"][result]
        strides = [self.value("result_stride", result, d) for d in range(len(item["shape"]))]
        item["buffer"] = self._add(
            "buffers", {"result": result, "dtype": item["dtype"], "shape": item["shape"], "strides": strides}
        )
        return item["buffer"]

    def workspace(self, offset, dtype, shape, strides):
        return self._add("buffers", {"workspace": offset, "dtype": dtype, "shape": shape, "strides": strides})

    def view(self, buffer, offset, dtype, shape, strides):
        return self._add(
            "buffers", {"view": buffer, "offset": offset, "dtype": dtype, "shape": shape, "strides": strides}
        )

    def check(self, message, **what):
        self._add("checks", {**what, "message": message})

    def launch(self, kernel, grid, arguments, block=(128, 1, 1), shared=None, **more):
        item = {
            "kernel": kernel,
            "grid": list(grid),
            "block": list(block),
            "shared": self.const(0) if shared is None else shared,
            "arguments": arguments,
            "after": [],
            "reads": [],
            "writes": [],
        }
        item.update({"if" if key == "condition" else key: value for key, value in more.items()})
        return self._add("launches", item)

    def json(self):
        if not self.lists["values"]:
            self.const(0)
        plan = {
            "entry": self.entry,
            "inputs": len(self.lists["values"]) if self.inputs is None else self.inputs,
            "workspace": {"bytes": self.bytes or self.const(0), "alignment": self.alignment},
        }
        optional = ("tensormaps", "repeats")
        plan.update({key: items for key, items in self.lists.items() if items or key not in optional})
        return plan


def declare(kernel, arguments):
    """The head of a kernel: what the driver knows of its parameters."""
    types = {"pointer": ".u64", "i64": ".u64", "i32": ".u32", "i16": ".u16", "i8": ".u8", "i1": ".u8"}
    forms = [
        f".param .align 64 .b8 p{i}[128]" if kind == "tensormap" else f".param {types.get(kind, '.' + kind)} p{i}"
        for i, (kind, *_) in enumerate(arguments)
    ]
    return f".visible .entry {kernel}({', '.join(forms)}) {{ ret; }}\n"


def bundle(*plans, chips=("sm_90a",), ptx=None):
    plans = [plan.json() if isinstance(plan, Plan) else plan for plan in plans]
    kernels = {launch["kernel"]: launch["arguments"] for plan in plans for launch in plan["launches"]}
    text = ptx or ".version 8.8\n.target {chip}\n" + "".join(declare(*kernel) for kernel in sorted(kernels.items()))
    targets = [
        {"chip": chip, "ptx_version": "8.8", "ptx": text.replace("{chip}", chip), "entries": plans} for chip in chips
    ]
    return {"format": "ssa-bundle", "version": 1, "producer": "test", "targets": targets}


def text(*plans, **more):
    return json.dumps(bundle(*plans, **more))


def axpy():
    """z = a * x + y, rows of 8: free strides, a scalar, equal sizes."""
    p = Plan("axpy")
    a, x, y = p.scalar("a", "f32"), p.tensor("x", "f32", [None, 8]), p.tensor("y", "f32", [None, 8])
    n, eight, one = p.value("dim", x, 0), p.const(8), p.const(1)
    p.check("dimension 0 of 'y' must be dimension 0 of 'x'", equal=[p.value("dim", y, 0), n])
    bx, by = p.buffer(x), p.buffer(y)
    grid = p.value("ceildiv", p.value("mul", n, eight), p.const(128))
    z = p.result("z", "f32", [n, eight])
    bz = p.own(z)
    p.launch(
        "axpy",
        [grid, one, one],
        [
            ["f32", {"argument": a}],
            ["pointer", bx],
            ["i64", p.value("stride", x, 0)],
            ["pointer", by],
            ["i64", p.value("stride", y, 0)],
            ["pointer", bz],
            ["i64", p.value("result_stride", z, 0)],
            ["i64", n],
        ],
    )
    return p


def pipeline():
    """Two launches over a workspace; `if`, a view, contiguous memory, a large block of shared memory."""
    p = Plan("pipeline")
    x, k = p.tensor("x", "bf16", [None, None, None], "contiguous", 2), p.scalar("k", "i32")
    dims = [p.value("dim", x, d) for d in range(3)]
    one, zero = p.const(1), p.const(0)
    p.check("'k' must be at most dimension 2 of 'x'", at_most=[p.value("scalar", k), dims[2]])
    p.check("'k' must not be 0", holds=p.value("cmp", "ne", p.value("scalar", k), zero))
    bx = p.buffer(x)
    rows = p.value("mul", dims[0], dims[1])
    elements = p.value("mul", rows, dims[2])
    aligned = p.value("mul", p.value("ceildiv", p.value("mul", elements, p.const(4)), p.const(256)), p.const(256))
    out, lse = p.result("out", "bf16", dims, "contiguous", 2), p.result("lse", "f32", dims[:2], "contiguous", 4)
    bout, blse = p.own(out), p.own(lse)
    scratch = p.workspace(zero, "f32", [rows, dims[2]], [dims[2], one])
    second = p.workspace(aligned, "i32", [rows], [one])
    half = p.view(
        bx, p.value("mul", p.value("div", elements, p.const(2)), p.const(2)), "bf16", [rows, dims[2]], [dims[2], one]
    )
    p.bytes = p.value("add", aligned, p.value("mul", rows, p.const(4)))
    p.launch(
        "first",
        [rows, one, one],
        [["pointer", bx], ["pointer", scratch], ["i32", dims[2]], ["i32", p.value("scalar", k)]],
    )
    p.launch(
        "odd", [one, one, one], [["pointer", half], ["pointer", second]], condition=p.value("rem", elements, p.const(2))
    )
    p.launch(
        "second",
        [dims[1], dims[0], one],
        [["pointer", scratch], ["pointer", second], ["pointer", half], ["pointer", bout], ["pointer", blse]],
        (64, 2, 1),
        p.const(60000),
        after=[0, 1],
    )
    return p


def chunks():
    """A repeat over chunks of 4 rows, between two launches."""
    p = Plan("chunks")
    x = p.tensor("x", "i32", [None, 5], "contiguous", 4)
    n, four, one, zero, five = p.value("dim", x, 0), p.const(4), p.const(1), p.const(0), p.const(5)
    count = p.value("ceildiv", n, four)
    bytes_of_row = p.const(20)
    bx = p.buffer(x)
    y = p.result("y", "i32", [n, five], "contiguous", 4)
    by = p.own(y)
    p.launch("begin", [one, one, one], [["pointer", by]])
    begin = len(p.lists["values"])
    row = p.value("mul", p.value("index", 0), four)
    rows = p.value("min", p.value("sub", n, row), four)
    offset = p.value("mul", row, bytes_of_row)
    end = len(p.lists["values"])
    vx, vy = p.view(bx, offset, "i32", [rows, five], [five, one]), p.view(by, offset, "i32", [rows, five], [five, one])
    p.launch("copy", [rows, one, one], [["pointer", vx], ["pointer", vy], ["i32", rows]])
    p.launch("check", [one, one, one], [["pointer", vy], ["i64", row]])
    p.launch("end", [one, one, one], [["pointer", by], ["i64", zero]])
    p.lists["repeats"] = [{"count": count, "values": [begin, end], "launches": [1, 3]}]
    return p


def maps():
    """Tensor maps and clusters."""
    p = Plan("maps")
    x = p.tensor("x", "bf16", [None, 2, None, 64])
    bx = p.buffer(x)
    one = p.const(1)
    n = p.value("dim", x, 2)
    y = p.result("y", "f32", [p.value("dim", x, 0), p.const(64)])
    by = p.own(y)
    view = p.view(bx, p.const(256), "f8e4m3fn", [n, p.const(64)], [p.const(128), one])
    p.lists["tensormaps"] = [
        {
            "buffer": bx,
            "box": [1, 1, 32, 64],
            "swizzle": "128b",
            "l2_promotion": "256b",
            "fill": "zero",
            "interleave": "none",
        },
        {
            "buffer": view,
            "box": [16, 64],
            "swizzle": "none",
            "l2_promotion": "none",
            "fill": "nan",
            "interleave": "none",
        },
    ]
    p.launch(
        "tma",
        [p.const(4), n, one],
        [["i32", n], ["tensormap", 0], ["pointer", by], ["tensormap", 1], ["i8", one]],
        cluster=[2, 1, 1],
        dependent=True,
        condition=p.value("cmp", "sgt", n, p.const(0)),
    )
    p.launch(
        "wide",
        [p.const(16), one, one],
        [["tensormap", 1]],
        cluster=[16, 1, 1],
        condition=p.value("cmp", "sgt", n, p.const(0)),
    )
    return p


def scalars():
    """Every kind of scalar and constant, with its alignment in the parameters."""
    p = Plan("scalars")
    kinds = ("i1", "i8", "i16", "i32", "i64", "f32", "f64")
    arguments = [p.scalar(kind + "s", kind) for kind in kinds]
    values = [p.value("scalar", a) for a in arguments[:5]]
    passed = [
        ["i1", values[0]],
        ["i64", values[4]],
        ["i8", values[1]],
        ["i16", values[2]],
        ["i8", values[1]],
        ["i32", values[3]],
        ["i8", values[1]],
        ["f32", {"argument": arguments[5]}],
        ["f64", {"argument": arguments[6]}],
        ["f32", "inf"],
        ["f32", "-inf"],
        ["f64", "nan"],
        ["f32", 0.1],
        ["f64", 0.1],
        ["f32", 1e60],
        ["i16", p.const(-2)],
    ]
    one = p.const(1)
    p.launch("scalars", [one, one, one], passed)
    p.launch("nothing", [one, one, one], [])
    r = p.result("r", "i8", [one], "contiguous", 1)
    p.own(r)
    return p


def arithmetic():
    """All operations on two integer arguments, as parameters."""
    p = Plan("arithmetic")
    x, y = (p.value("scalar", p.scalar(name, "i64")) for name in "xy")
    names = ("add", "sub", "mul", "div", "rem", "floordiv", "ceildiv", "max", "min")
    values = [p.value(name, x, y) for name in names]
    values += [p.value("cmp", predicate, x, y) for predicate in ("eq", "ne", "slt", "sle", "sgt", "sge")]
    values += [
        p.value("and", values[-1], values[-2]),
        p.value("or", values[-1], values[-2]),
        p.value("select", values[-1], x, y),
    ]
    one = p.const(1)
    p.launch("arithmetic", [one, one, one], [["i64", value] for value in values])
    return p


def aliases():
    """Results that are an argument, parts of one, own memory, and a part of that."""
    p = Plan("aliases")
    x = p.tensor("x", "f32", [None, 4], "contiguous", 4)
    n, four, one = p.value("dim", x, 0), p.const(4), p.const(1)
    bx = p.buffer(x)
    last = p.view(bx, p.value("mul", p.value("sub", n, one), p.const(16)), "f32", [four], [one])
    bits = p.view(bx, p.const(0), "i32", [n, four], [four, one])
    p.result("same", "f32", [n, four], "contiguous", 4, bx)
    p.result("last", "f32", [four], "contiguous", 4, last)
    p.result("bits", "i32", [n, four], "contiguous", 4, bits)
    own = p.result("own", "f32", [n, four], "contiguous", 4)
    bown = p.own(own)
    p.result("again", "f32", [n, four], "contiguous", 4, bown)
    p.launch("fill", [n, one, one], [["pointer", bown], ["pointer", bx]], (4, 1, 1))
    return p


def sizes_only():
    """An argument of which only sizes are used, and an f8 one with a fixed middle stride."""
    p = Plan("sizes_only")
    like, x = p.tensor("like", "bf16", [None, None], access="none"), p.tensor(
        "x", "f8e4m3fn", [None, 3, 16], [None, 16, 1], 8
    )
    n = p.value("dim", like, 1)
    blike, bx = p.buffer(like), p.buffer(x)
    y = p.result("y", "i64", [p.value("dim", like, 0), n], alignment=8)
    by = p.own(y)
    p.launch("sizes", [n, p.value("dim", x, 0), p.const(1)], [["pointer", blike], ["pointer", bx], ["pointer", by]])
    return p


def limits():
    """Numbers that become too large: what `what` chooses."""
    p = Plan("limits")
    what, n = (p.value("scalar", p.scalar(name, "i64")) for name in ("what", "n"))
    one, zero = p.const(1), p.const(0)

    def chosen(number, otherwise):
        return p.value("select", p.value("cmp", "eq", what, p.const(number)), n, otherwise)

    squares = p.value("mul", n, n)
    p.check("'n' must be at most 2^40", at_most=[n, p.const(2**40)])
    r = p.result("r", "f32", [chosen(5, one)], "contiguous", 4)
    p.own(r)
    p.bytes = chosen(6, zero)
    p.launch(
        "limits",
        [chosen(0, one), chosen(1, one), chosen(2, one)],
        [["i32", chosen(3, one)], ["i1", chosen(7, one)]],
        shared=chosen(4, zero),
    )
    p.launch("square", [one, one, one], [["i64", squares]])
    return p


PLANS = {
    make.__name__: make for make in (axpy, pipeline, chunks, maps, scalars, arithmetic, aliases, sizes_only, limits)
}
