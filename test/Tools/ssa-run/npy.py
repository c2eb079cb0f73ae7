# RUN: %python %s
"""NumPy files in and out: what converts to what, and what is refused."""

from ssatest import *


def identity(type):
    return f"func.func @f(%x: {type}) -> {type} {{\n  return %x : {type}\n}}\n"


def through(x, type):
    """An array after it went in and out as an argument of a type."""
    return run(identity(type), "f", [x], convert=False)[0]


def read(data, type="tensor<?xf32>"):
    """Runs with a file of the given bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "x.npy")
        path.write_bytes(data)
        source = pathlib.Path(folder, "f.mlir")
        source.write_text(identity(type))
        done = subprocess.run(
            [os.environ.get("SSA_RUN", "ssa-run"), str(source), "--in", str(path)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        check(done.returncode in (0, 1), f"exit code {done.returncode}")
        check(done.returncode == 0 or done.stderr.count("\n") == 1, f"not one line: {done.stderr}")
        if done.returncode:
            raise SsaError(done.stderr)
        return done.stdout + done.stderr


def npy(header, data=b"", version=1):
    """An .npy file with a header of one's own."""
    header = header.encode("latin1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + data


def header(descr="'<f4'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@case
def floats():
    x = np.array([[0.1, -2.5e-3, 1e-7], [np.inf, np.nan, 300.25]])
    for source in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):
            y = x.astype(source)
        for fmt in ("f32", "bf16", "f16"):
            got = through(y, f"tensor<?x3x{fmt}>")
            check(got.dtype == np.float32, f"{fmt} is written as f4")
            compare_exact(f"{source} {fmt}", got, round_to(y, fmt))
        got = through(y, "tensor<?x3xf64>")
        check(got.dtype == np.float64, "f64 is written as f8")
        compare_exact(f"{source} f64", got, y)
        compare_exact(
            f"{source} f8",
            through(y[:, 1:], "tensor<?x2xf8E4M3FN>"),
            round_to(np.where(np.isinf(y), 448, y)[:, 1:].astype(np.float64), "f8E4M3FN"),
        )


@case
def integers():
    for source in (np.int32, np.int64, np.int8, np.uint8, np.bool_):
        x = np.array([0, 1, 1, 0, 1]).astype(source)
        for type, target in (
            ("i32", np.int32),
            ("i64", np.int64),
            ("i8", np.int32),
            ("i1", np.bool_),
            ("index", np.int64),
        ):
            got = through(x, f"tensor<?x{type}>")
            check(got.dtype == target, f"{type} is written as {target}")
            compare_exact(f"{source} {type}", got, x)
    compare_exact("i64", through(np.array([-(2**63), 2**63 - 1]), "tensor<?xi64>"), np.array([-(2**63), 2**63 - 1]))
    compare_exact("u1", through(np.array([200], np.uint8), "tensor<?xi32>"), [200])


@case
def shapes():
    for shape, type in (
        ((), "f32"),
        ((), "tensor<f32>"),
        ((0,), "tensor<?xf32>"),
        ((2, 0, 3), "tensor<2x?x3xf32>"),
        ((1, 2, 3, 1, 2, 2), "tensor<1x2x?x?x2x2xf32>"),
    ):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        compare_bits(f"{shape}", through(x, type), x)
    for version in (1, 2, 3):
        check("values 1 2" in read(npy(header(), np.array([1, 2], "<f4").tobytes(), version)), f"version {version}")
    check(
        "values 1 2"
        in read(npy("""{"shape":(2,),"descr":"<f4","fortran_order":True}""", np.array([1, 2], "<f4").tobytes())),
        "order of keys",
    )


@case
def overflow_is_told():
    for type, value, total in (("bf16", 3.4e38, 2), ("f16", 65520.0, 2), ("f8E4M3FN", 465.0, 2), ("f32", 1e39, 2)):
        text = read(
            npy(header("'<f8'", shape="(5,)"), np.array([1, value, -value, np.inf, np.nan]).tobytes()),
            f"tensor<?x{type}>",
        )
        check(
            f"warning: input 0 '%x' (" in text
            and f"x.npy) was rounded to {type}; {total} values of 5 overflow it" in text,
            text,
        )
    for type, value in (("bf16", 3.38e38), ("f16", 65519.0), ("f8E4M3FN", 464.0), ("f32", 3.4e38)):
        text = read(npy(header("'<f8'"), np.array([value, -value]).tobytes()), f"tensor<?x{type}>")
        check("warning" not in text, text)


@case
def kinds_do_not_mix():
    floats, ints = np.zeros(3, np.float32), np.zeros(3, np.int32)
    expect_error(
        lambda: through(floats, "tensor<?xi32>"),
        "input 0 '%x' (",
        "in0.npy) has floating point elements ('<f4'), but i32 is expected",
    )
    expect_error(lambda: through(ints, "tensor<?xbf16>"), "has integer elements ('<i4'), but bf16 is expected")
    expect_error(
        lambda: through(np.zeros((3, 2), np.float32), "tensor<?xf32>"),
        "argument 0 '%x' of @f has shape 3x2",
        "wants rank 1",
    )


@case
def integers_must_fit():
    for value, source, type in (
        (128, np.int32, "i8"),
        (-129, np.int32, "i8"),
        (2**31, np.int64, "i32"),
        (-(2**31) - 1, np.int64, "i32"),
        (2, np.uint8, "i1"),
        (-1, np.int8, "i1"),
    ):
        expect_error(
            lambda: through(np.array([0, value], source), f"tensor<?x{type}>"),
            f"has {value} at element 1, which does not fit {type}",
        )


@case
def faulty_files():
    good = npy(header(), b"\0" * 8)
    dictionary = "has a header that is no dictionary of 'descr', 'fortran_order' and 'shape'"
    for data, message in (
        (b"", "is no .npy file: it does not begin with \\x93NUMPY"),
        (b"PK\3\4" + good, "is no .npy file"),
        (good[:7], "ends within its header"),
        (good[:9], "ends within its header"),
        (good[:40], "ends within its header"),
        (good[:6] + b"\2\0" + good[8:], "ends within its header"),
        (good[:6] + b"\x09\0" + good[8:], "is of .npy format 9.0; 1.0 to 3.0 can be read"),
        (good[:-1], "has 7 bytes of elements, but its shape 2 of '<f4' needs 8"),
        (good + b"\0", "has 9 bytes of elements, but its shape 2 of '<f4' needs 8"),
        (npy(header(shape="()")), "has 0 bytes of elements, but its shape () of '<f4' needs 4"),
        (npy(header(shape="(4000000000, 4000000000)")), "has 0 bytes of elements, but its shape 4000000000x4000000000"),
        (
            npy(header("'>f4'"), b"\0" * 8),
            "has elements of type '>f4'; these can be read: <f2, <f4, <f8, <i4, <i8, |i1, |u1, |b1",
        ),
        (npy(header("'<c8'"), b"\0" * 16), "has elements of type '<c8'"),
        (npy(header("'|O'"), b"\0" * 16), "has elements of type '|O'"),
        (npy(header(order="True", shape="(1, 2)"), b"\0" * 8), "is in Fortran order; save numpy.ascontiguousarray(a)"),
        (npy(header("[('a', '<f4')]"), b"\0" * 8), dictionary),
        (npy(header(shape="(-2,)")), dictionary),
        (npy(header(shape="(99999999999999999999,)")), dictionary),
        (npy(header(shape="(2")), dictionary),
        (npy(header(shape="(2 3)")), dictionary),
        (npy(header(order="Maybe")), dictionary),
        (npy("{'descr': '<f4', 'shape': (2,)}"), dictionary),
        (npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), dictionary),
        (npy("{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}"), dictionary),
        (npy(header() + "x"), dictionary),
        (npy("{"), dictionary),
        (npy(""), dictionary),
    ):
        expect_error(lambda: read(data), "x.npy) " + message)


@case
def truncated_and_changed_files():
    # Whatever the bytes, there is an answer.
    good = npy(header(), b"\0" * 8)
    rng = np.random.default_rng(3)
    for i in range(60):
        data = bytearray(good[: rng.integers(len(good))] if i % 2 else good)
        for _ in range(i % 3 + (i % 2 == 0)):
            if data:
                data[rng.integers(len(data))] = rng.integers(256)
        try:
            read(bytes(data))
        except SsaError as e:
            check(str(e).startswith("error: input 0 '%x' (") or "argument 0 '%x' of @f" in str(e), str(e))


main()
