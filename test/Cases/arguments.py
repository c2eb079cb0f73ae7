# RUN: %python %s
"""What only a run can see: arguments of the wrong shape, type or number are errors before anything is computed."""

from ssareference import *
from ssatest import *

ATTEND = """func.func @attend(%q: tensor<?x4x?x16xf32>, %k: tensor<?x2x?x16xf32>, %v: tensor<?x2x?x8xf32>, %idx: tensor<?x2x?x3xi32>)
    -> (tensor<?x4x?x8xf32>, tensor<?x4x?xf32>) {
  %sel = ssa.from_indices %idx : tensor<?x2x?x3xi32> -> !ssa.selection<?x2x?x3, key_block = 2>
  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel {mask = #ssa.mask<causal>}
    : tensor<?x4x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x8xf32>, !ssa.selection<?x2x?x3, key_block = 2>
    -> tensor<?x4x?x8xf32>, tensor<?x4x?xf32>
  return %o, %lse : tensor<?x4x?x8xf32>, tensor<?x4x?xf32>
}
"""


def arguments(q=(1, 4, 5, 16), k=(1, 2, 9, 16), v=(1, 2, 9, 8), idx=(1, 2, 5, 3)):
    return [data(*q, seed=1), data(*k, seed=2), data(*v, seed=3), np.zeros(idx, np.int32)]


def refuse(inputs, *words, text=ATTEND, entry="attend", convert=True):
    """The call is refused with a message that holds the words."""
    expect_error(lambda: run(text, entry, inputs, convert=convert), *words)


@case
def Q1_good_arguments_are_accepted():
    o, lse = run(ATTEND, "attend", arguments())
    q, k, v, idx = arguments()
    ref_o, ref_lse = attend(q, k, v, selected(idx, 5, 9, 4, 2, causal=True))
    compare("o", o, ref_o, "f32", 1)
    compare_lse("lse", lse, ref_lse)


def single(inputs):
    """The inputs with floats in single precision, to go in as they are."""
    return [x.astype(np.float32) if x.dtype.kind == "f" else x for x in inputs]


@case
def J6_types():
    """Indices are integers that fit i32, data is floating point; nothing is taken for the other."""
    good = single(arguments())
    ref = run(ATTEND, "attend", good, convert=False)
    for kind in (np.int64, np.int32, np.int16, np.uint32, np.uint8):
        try:
            got = run(ATTEND, "attend", [*good[:3], good[3].astype(kind)], convert=False)
        except SsaError as e:
            check("%idx" in str(e), f"expected '%idx' in the message, but got: {e}")
        else:
            compare_bits(f"indices as {kind.__name__}", got[0], ref[0])
    for kind in (np.float32, np.float64, np.float16, np.complex64):
        refuse([*good[:3], good[3].astype(kind)], "%idx", convert=False)
    for value in (2**31, -(2**31) - 1, 2**32, 2**40):
        refuse([*good[:3], np.full((1, 2, 5, 3), value)], "%idx", value, convert=False)
    for kind in (np.int32, np.int64, np.uint8, bool, np.complex64):
        refuse([good[0].astype(kind), *good[1:]], "%q", convert=False)


@case
def Q1_static_extents():
    """A shape that the type of the argument does not have: heads, head dim, width, rank."""
    refuse(arguments(q=(1, 6, 5, 16)), "%q", 4, 6)
    refuse(arguments(k=(1, 2, 9, 24)), "%k", 16, 24)
    refuse(arguments(idx=(1, 2, 5, 4)), "%idx", 3, 4)
    refuse(arguments(q=(4, 5, 16)), "%q", "rank 4")
    refuse(arguments(idx=(1, 1, 2, 5, 3)), "%idx", "rank 4")


@case
def Q1_extents_that_must_agree():
    """Keys and values, batches, rows of the lists and queries."""
    refuse(arguments(v=(1, 2, 8, 8)), "'value'", "'key'", 9, 8)
    refuse(arguments(q=(2, 4, 5, 16)), "'query'", "'key'", 2, 1)
    refuse(arguments(q=(0, 4, 5, 16)), "'query'", "'key'", 0, 1)
    refuse(arguments(idx=(3, 2, 5, 3)), "'selections'", 3, 1)
    refuse(arguments(idx=(1, 2, 4, 3)), "'selections'", 5, 4)
    refuse(arguments(idx=(1, 2, 0, 3)), "'selections'", 5, 0)
    o, _ = run(ATTEND, "attend", arguments(idx=(1, 2, 1, 3)))
    check(o.shape == (1, 4, 5, 8), "one list serves every query")


@case
def Q1_number_of_arguments():
    refuse(arguments()[:3], 4, 3)
    refuse(arguments() + [np.zeros(3)], 4, 5)
    refuse([], 4, 0)


@case
def Q1_entry_and_file():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "in.mlir")
        path.write_text(ATTEND)
        tool = os.environ.get("SSA_RUN", "ssa-run")
        for command in ([tool, str(path), "--entry=other"], [tool, str(path) + "x", "--entry=attend"],
                        [tool, str(path), "--entry=attend", "--in", "missing.npy,zeros:1,zeros:1,zeros:1"],
                        [tool, str(path), "--entry=attend", "--in", "zeros:ax3"],
                        [tool, str(path), "--entry=attend", "--in", "rand:3"]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            check(done.returncode == 1 and "error" in done.stderr,
                  f"{command[1:]}: expected exit code 1 and a message, but got {done.returncode}: {done.stderr}")


@case
def J3_memory_order():
    """Arrays in column order are read right or refused."""
    good = single(arguments())
    ref = run(ATTEND, "attend", good, convert=False)
    ref_o, ref_lse = attend(*good[:3], selected(good[3], 5, 9, 4, 2, causal=True))
    compare("o", ref[0], ref_o, "f32", 1)
    compare_lse("lse", ref[1], ref_lse)
    try:
        got = run(ATTEND, "attend", [np.asfortranarray(x) for x in good], convert=False)
    except SsaError as e:
        return check("error:" in str(e), f"expected 'error:' in the message, but got: {e}")
    compare_bits("o", got[0], ref[0])
    compare_bits("lse", got[1], ref[1])


@case
def Q4_every_argument_counts():
    """Scalars and tensors that only a score region reads change the result."""
    text = """func.func @main(%q: tensor<1x1x1x1xf32>, %k: tensor<1x1x3x1xf32>, %v: tensor<1x1x3x1xf32>, %slope: f32, %bias: tensor<3xf32>)
    -> tensor<1x1x1xf32> {
  %o, %lse = ssa.sparse_attend %q, %k, %v {scale = 1.0} score (%x, %b, %h, %p, %n) {
    %at = arith.index_cast %n : i32 to index
    %y = tensor.extract %bias[%at] : tensor<3xf32>
    %z = arith.mulf %x, %slope : f32
    %r = arith.addf %y, %z : f32
    ssa.yield %r : f32
  } : tensor<1x1x1x1xf32>, tensor<1x1x3x1xf32>, tensor<1x1x3x1xf32> -> tensor<1x1x1x1xf32>, tensor<1x1x1xf32>
  return %lse : tensor<1x1x1xf32>
}
"""
    q, k = np.ones((1, 1, 1, 1)), np.array([1.0, 2, 3]).reshape(1, 1, 3, 1)
    for slope, bias in ((2.0, [0, 0, 0]), (0.0, [1, 2, 3]), (-1.0, [0.5, -7, -np.inf])):
        lse = run(text, "main", [q, k, k, np.float32(slope), np.array(bias, float)])[0]
        logits = slope * k.ravel() + bias
        compare_lse(f"slope {slope}", lse, np.full((1, 1, 1), np.log(np.exp(logits).sum())))
    refuse([q, k, k, np.float32(1), np.zeros(4)], 3, 4, text=text, entry="main")
    refuse([q, k, k, np.ones(1), np.zeros(3)], text=text, entry="main")


@case
def G4_heads_are_checked_by_both_tools():
    bad = ATTEND.replace("?x2x?x16xf32", "?x3x?x16xf32").replace("?x2x?x8xf32", "?x3x?x8xf32")
    refuse(arguments(k=(1, 3, 9, 16), v=(1, 3, 9, 8)), 4, 3, text=bad)


main()
