# RUN: %python %s
"""Ops of the tensor dialect against NumPy."""

from ssatest import *

RNG = np.random.default_rng(7)


def function(arguments, results, body):
    return f"func.func @f({arguments}) -> {results} {{\n{body}\n}}\n"


def call(arguments, results, body, *inputs):
    return run(function(arguments, results, body), "f", inputs, convert=False)


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def index(*values):
    return [np.array(v, np.int64) for v in values]


@case
def slices():
    x = data(4, 7, 9)
    (r,) = call(
        "%x: tensor<?x?x9xf32>, %o: index, %n: index, %s: index",
        "tensor<2x?x3xf32>",
        """
      %r = tensor.extract_slice %x[1, %o, 2] [2, %n, 3] [1, %s, 2] : tensor<?x?x9xf32> to tensor<2x?x3xf32>
      return %r : tensor<2x?x3xf32>""",
        x,
        *index(1, 3, 2),
    )
    compare_exact("extract", r, x[1:3, 1:7:2, 2:8:2])
    (r,) = call(
        "%x: tensor<4x7x9xf32>",
        "tensor<9x7xf32>",
        """
      %a = tensor.extract_slice %x[2, 0, 0] [1, 7, 9] [1, 1, 1] : tensor<4x7x9xf32> to tensor<7x9xf32>
      %e = tensor.empty() : tensor<9x7xf32>
      %r = linalg.transpose ins(%a : tensor<7x9xf32>) outs(%e : tensor<9x7xf32>) permutation = [1, 0]
      return %r : tensor<9x7xf32>""",
        x,
    )
    compare_exact("reduced", r, x[2].T)
    y = data(7, 3)
    (r,) = call(
        "%x: tensor<4x7x9xf32>, %y: tensor<?x3xf32>, %n: index",
        "tensor<4x7x9xf32>",
        """
      %r = tensor.insert_slice %y into %x[3, 0, 1] [1, %n, 3] [1, 1, 3] : tensor<?x3xf32> into tensor<4x7x9xf32>
      return %r : tensor<4x7x9xf32>""",
        x,
        y,
        *index(7),
    )
    ref = x.copy()
    ref[3, :, 1:9:3] = y
    compare_exact("insert", r, ref)


@case
def the_source_of_an_insert_stays():
    x = data(3)
    a, b = call(
        "%x: tensor<3xf32>",
        "(tensor<3xf32>, tensor<3xf32>)",
        """
      %i = arith.constant 1 : index
      %v = arith.constant 5.0 : f32
      %r = tensor.insert %v into %x[%i] : tensor<3xf32>
      return %x, %r : tensor<3xf32>, tensor<3xf32>""",
        x,
    )
    compare_exact("source", a, x)
    compare_exact("result", b, [x[0], 5, x[2]])


@case
def shapes():
    x = data(6, 20)
    (r,) = call(
        "%x: tensor<?x20xf32>, %n: index",
        "tensor<?x3x4x5xf32>",
        """
      %r = tensor.expand_shape %x [[0, 1], [2, 3]] output_shape [%n, 3, 4, 5]
        : tensor<?x20xf32> into tensor<?x3x4x5xf32>
      return %r : tensor<?x3x4x5xf32>""",
        x,
        *index(2),
    )
    compare_exact("expand", r, x.reshape(2, 3, 4, 5))
    (r,) = call(
        "%x: tensor<?x3x4x5xf32>",
        "tensor<?x20xf32>",
        """
      %r = tensor.collapse_shape %x [[0, 1], [2, 3]] : tensor<?x3x4x5xf32> into tensor<?x20xf32>
      return %r : tensor<?x20xf32>""",
        x.reshape(2, 3, 4, 5),
    )
    compare_exact("collapse", r, x)
    (r,) = call(
        "%x: tensor<6x20xf32>, %s: tensor<3xi32>",
        "tensor<?x?x?xf32>",
        """
      %r = tensor.reshape %x(%s) : (tensor<6x20xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
      return %r : tensor<?x?x?xf32>""",
        x,
        np.array([4, 2, 15], np.int32),
    )
    compare_exact("reshape", r, x.reshape(4, 2, 15))
    (r,) = call(
        "%x: tensor<6x20xf32>",
        "tensor<?x20xf32>",
        """
      %r = tensor.cast %x : tensor<6x20xf32> to tensor<?x20xf32>
      return %r : tensor<?x20xf32>""",
        x,
    )
    compare_exact("cast", r, x)


@case
def parts():
    x, y = data(2, 3, 4), data(2, 5, 4)
    (r,) = call(
        "%x: tensor<2x?x4xf32>, %y: tensor<2x5x4xf32>",
        "tensor<2x?x4xf32>",
        """
      %r = tensor.concat dim(1) %x, %y, %x
        : (tensor<2x?x4xf32>, tensor<2x5x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
      return %r : tensor<2x?x4xf32>""",
        x,
        y,
    )
    compare_exact("concat", r, np.concatenate([x, y, x], axis=1))
    (r,) = call(
        "%x: tensor<2x3x4xf32>, %n: index, %v: f32",
        "tensor<?x3x7xf32>",
        """
      %r = tensor.pad %x low[1, 0, %n] high[%n, 0, 1] {
      ^bb0(%i: index, %j: index, %k: index):
        tensor.yield %v : f32
      } : tensor<2x3x4xf32> to tensor<?x3x7xf32>
      return %r : tensor<?x3x7xf32>""",
        x,
        *index(2),
        np.float32(-3),
    )
    compare_exact("pad", r, np.pad(x, ((1, 2), (0, 0), (2, 1)), constant_values=-3))


@case
def new_elements():
    r, s, t = call(
        "%n: index",
        "(tensor<?x3xi32>, tensor<2x?xf32>, tensor<2x2xindex>)",
        """
      %g = tensor.generate %n {
      ^bb0(%i: index, %j: index):
        %c = arith.constant 10 : index
        %a = arith.muli %i, %c : index
        %b = arith.addi %a, %j : index
        %r = arith.index_cast %b : index to i32
        tensor.yield %r : i32
      } : tensor<?x3xi32>
      %v = arith.constant 0.5 : f32
      %s = tensor.splat %v[%n] : tensor<2x?xf32>
      %c1 = arith.constant 1 : index
      %d = tensor.dim %s, %c1 : tensor<2x?xf32>
      %k = tensor.rank %s : tensor<2x?xf32>
      %t = tensor.from_elements %n, %d, %k, %c1 : tensor<2x2xindex>
      return %g, %s, %t : tensor<?x3xi32>, tensor<2x?xf32>, tensor<2x2xindex>""",
        *index(4),
    )
    compare_exact("generate", r, 10 * np.arange(4)[:, None] + np.arange(3))
    compare_exact("splat", s, np.full((2, 4), 0.5))
    compare_exact("from_elements", t, [[4, 4], [2, 1]])


@case
def constants():
    a, b, c, d, e = call(
        "",
        "(tensor<2x2xbf16>, tensor<3xf8E4M3FN>, tensor<2x3xi1>, tensor<2xi64>, f16)",
        """
      %a = arith.constant dense<[[1.0, 1.0e-3], [-2.5, 3.0e38]]> : tensor<2x2xbf16>
      %b = arith.constant dense<0.3> : tensor<3xf8E4M3FN>
      %c = arith.constant dense<[[true, false, true], [false, false, true]]> : tensor<2x3xi1>
      %d = arith.constant dense_resource<numbers> : tensor<2xi64>
      %e = arith.constant 1.1 : f16
      return %a, %b, %c, %d, %e : tensor<2x2xbf16>, tensor<3xf8E4M3FN>, tensor<2x3xi1>, tensor<2xi64>, f16
    }
    {-# dialect_resources: { builtin: { numbers: "0x08000000FEFFFFFFFFFFFFFF0700000000000000" } } #-}
    module {""",
    )
    compare_exact("bf16", a, round_to([[1.0, 1e-3], [-2.5, 3e38]], "bf16"))
    compare_exact("f8", b, round_to([0.3] * 3, "f8E4M3FN"))
    check(c.dtype == bool, "i1 is a boolean array")
    compare_exact("i1", c, [[1, 0, 1], [0, 0, 1]])
    compare_exact("resource", d, [-2, 7])
    compare_exact("f16", e, round_to(1.1, "f16"))


@case
def ops_that_only_fold():
    # Without a row of their own in the interpreter: upstream's folder gives the value.
    a, b = call(
        "%n: index, %m: index",
        "(index, index)",
        """
      %a = affine.apply affine_map<(i)[s] -> (i floordiv s + 3)>(%n)[%m]
      %b = affine.min affine_map<(i, j) -> (i, j, i mod 4)>(%n, %n)
      return %a, %b : index, index""",
        *index(17, 5),
    )
    compare_exact("apply", a, 6)
    compare_exact("min", b, 1)


@case
def zero_sizes():
    x = np.zeros((2, 0, 4), np.float32)
    r, s = call(
        "%x: tensor<2x?x4xf32>",
        "(tensor<2x?xf32>, tensor<2x?x4xf32>)",
        """
      %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x?x4xf32> into tensor<2x?xf32>
      %k = tensor.concat dim(1) %x, %x : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
      return %c, %k : tensor<2x?xf32>, tensor<2x?x4xf32>""",
        x,
    )
    check(r.shape == (2, 0) and s.shape == (2, 0, 4), "shapes")


@case
def calls():
    (r,) = run(
        """
    func.func private @twice(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
      %y = arith.addf %x, %x : tensor<?xf32>
      return %y, %x : tensor<?xf32>, tensor<?xf32>
    }
    func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
      %a, %b = call @twice(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
      %c, %d = call @twice(%a) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
      %r = arith.addf %c, %b : tensor<?xf32>
      return %r : tensor<?xf32>
    }""",
        "f",
        [np.arange(4.0)],
    )
    compare_exact("calls", r, 5 * np.arange(4.0))


main()
