# RUN: %python %s
"""Structured ops against NumPy: named ones, generic ones, indices, maps that divide, several outputs, accumulators."""

from ssatest import *

RNG = np.random.default_rng(11)


def call(arguments, results, body, *inputs):
    return run(f"func.func @f({arguments}) -> {results} {{\n{body}\n}}\n", "f", inputs, convert=False)


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@case
def matmul():
    a, b, c = data(5, 300), data(300, 7), data(5, 7)
    (r,) = call(
        "%a: tensor<?x?xf32>, %b: tensor<?x7xf32>, %c: tensor<?x7xf32>",
        "tensor<?x7xf32>",
        """
      %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x7xf32>) outs(%c : tensor<?x7xf32>) -> tensor<?x7xf32>
      return %r : tensor<?x7xf32>""",
        a,
        b,
        c,
    )
    compare_exact(
        "rounded once", r, (c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    )
    q, k = data(2, 3, 40), data(2, 50, 40)
    (r,) = call(
        "%q: tensor<2x?x40xf32>, %k: tensor<2x?x40xf32>, %m: index, %n: index",
        "tensor<2x?x?xf32>",
        """
      %e = tensor.empty(%m, %n) : tensor<2x?x?xf32>
      %zero = arith.constant 0.0 : f32
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
      %r = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, d) -> (b, m, d)>,
          affine_map<(b, m, n, d) -> (b, n, d)>, affine_map<(b, m, n, d) -> (b, m, n)>]
        ins(%q, %k : tensor<2x?x40xf32>, tensor<2x?x40xf32>) outs(%z : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
      return %r : tensor<2x?x?xf32>""",
        q,
        k,
        np.int64(3),
        np.int64(50),
    )
    check(np.abs(r - q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2)).max() < 1e-5, "batch_matmul")


@case
def accumulators_are_wide():
    # 1 + 4096 * 2^-9 is lost in bf16 if every addition rounds.
    x = np.full((3, 4097), 2.0**-9, np.float32)
    x[:, 0] = 1
    (r,) = call(
        "%x: tensor<3x?xbf16>",
        "tensor<3xbf16>",
        """
      %z = arith.constant dense<0.0> : tensor<3xbf16>
      %r = linalg.reduce { arith.addf } ins(%x : tensor<3x?xbf16>) outs(%z : tensor<3xbf16>) dimensions = [1]
      return %r : tensor<3xbf16>""",
        x,
    )
    compare_exact("sum", r, [9, 9, 9])


@case
def shapes():
    x = data(3, 4)
    a, b, c = call(
        "%x: tensor<3x4xf32>, %n: index",
        "(tensor<3x?x4xf32>, tensor<4x3xf32>, tensor<3x4xf32>)",
        """
      %e = tensor.empty(%n) : tensor<3x?x4xf32>
      %a = linalg.broadcast ins(%x : tensor<3x4xf32>) outs(%e : tensor<3x?x4xf32>) dimensions = [1]
      %f = tensor.empty() : tensor<4x3xf32>
      %b = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%f : tensor<4x3xf32>) permutation = [1, 0]
      %g = tensor.empty() : tensor<3x4xf32>
      %c = linalg.map ins(%x, %x : tensor<3x4xf32>, tensor<3x4xf32>) outs(%g : tensor<3x4xf32>)
        (%p: f32, %q: f32, %o: f32) { %s = arith.mulf %p, %q : f32  linalg.yield %s : f32 }
      return %a, %b, %c : tensor<3x?x4xf32>, tensor<4x3xf32>, tensor<3x4xf32>""",
        x,
        np.int64(5),
    )
    compare_exact("broadcast", a, np.broadcast_to(x[:, None], (3, 5, 4)))
    compare_exact("transpose", b, x.T)
    compare_exact("map", c, x * x)


@case
def indices():
    (r,) = call(
        "%m: index, %n: index",
        "tensor<?x?xi64>",
        """
      %e = tensor.empty(%m, %n) : tensor<?x?xi64>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          outs(%e : tensor<?x?xi64>) {
      ^bb0(%o: i64):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %c = arith.constant 1000 : index
        %a = arith.muli %i, %c : index
        %b = arith.addi %a, %j : index
        %v = arith.index_cast %b : index to i64
        linalg.yield %v : i64
      } -> tensor<?x?xi64>
      return %r : tensor<?x?xi64>""",
        np.int64(30),
        np.int64(70),
    )
    compare_exact("lanes", r, 1000 * np.arange(30)[:, None] + np.arange(70))
    x = data(4, 33)
    r, s = call(
        "%x: tensor<4x?xf32>",
        "(tensor<4xf32>, tensor<4xi32>)",
        """
      %least = arith.constant dense<0xFF800000> : tensor<4xf32>
      %zero = arith.constant dense<0> : tensor<4xi32>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x?xf32>)
          outs(%least, %zero : tensor<4xf32>, tensor<4xi32>) {
      ^bb0(%v: f32, %best: f32, %at: i32):
        %j = linalg.index 1 : index
        %j32 = arith.index_cast %j : index to i32
        %better = arith.cmpf ogt, %v, %best : f32
        %b = arith.select %better, %v, %best : f32
        %a = arith.select %better, %j32, %at : i32
        linalg.yield %b, %a : f32, i32
      } -> (tensor<4xf32>, tensor<4xi32>)
      return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>""",
        x,
    )
    compare_exact("max", r, x.max(axis=1))
    compare_exact("argmax", s, x.argmax(axis=1))


@case
def maps_that_divide():
    # Key heads repeated for their query heads.
    k = data(2, 2, 5, 3)
    (r,) = call(
        "%k: tensor<2x2x?x3xf32>, %n: index",
        "tensor<2x8x?x3xf32>",
        """
      %e = tensor.empty(%n) : tensor<2x8x?x3xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(b, h, n, d) -> (b, h floordiv 4, n, d)>,
          affine_map<(b, h, n, d) -> (b, h, n, d)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x2x?x3xf32>)
          outs(%e : tensor<2x8x?x3xf32>) {
      ^bb0(%x: f32, %o: f32):
        linalg.yield %x : f32
      } -> tensor<2x8x?x3xf32>
      return %r : tensor<2x8x?x3xf32>""",
        k,
        np.int64(5),
    )
    compare_exact("repeat", r, np.repeat(k, 4, axis=1))
    expect_error(
        lambda: call(
            "%k: tensor<2x?x3xf32>, %n: index",
            "tensor<2x8x3xf32>",
            """
      %e = tensor.empty() : tensor<2x8x3xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(b, h, d) -> (b, h floordiv 4, d)>,
          affine_map<(b, h, d) -> (b, h, d)>],
          iterator_types = ["parallel", "parallel", "parallel"]} ins(%k : tensor<2x?x3xf32>)
          outs(%e : tensor<2x8x3xf32>) {
      ^bb0(%x: f32, %o: f32):
        linalg.yield %x : f32
      } -> tensor<2x8x3xf32>
      return %r : tensor<2x8x3xf32>""",
            k[0, :, :1].reshape(2, 1, 3),
            np.int64(5),
        ),
        "operand 0 has shape 2x1x3, which ends before the element that loops at (0, 4, 0) need",
    )


@case
def convolution():
    x, w = data(20), data(4)
    (r,) = call(
        "%x: tensor<?xf32>, %w: tensor<?xf32>, %n: index",
        "tensor<?xf32>",
        """
      %zero = arith.constant 0.0 : f32
      %z = tensor.splat %zero[%n] : tensor<?xf32>
      %r = linalg.conv_1d ins(%x, %w : tensor<?xf32>, tensor<?xf32>) outs(%z : tensor<?xf32>) -> tensor<?xf32>
      return %r : tensor<?xf32>""",
        x,
        w,
        np.int64(17),
    )
    check(np.abs(r - np.correlate(x, w, "valid")).max() < 1e-5, "conv_1d")


@case
def outputs_of_different_loops():
    # Running sums: the second output is indexed by the loop that the first one is reduced over.
    x = data(3, 50).astype(np.float64)
    r, s = call(
        "%x: tensor<3x50xf64>",
        "(tensor<3xf64>, tensor<3x50xf64>)",
        """
      %z = arith.constant dense<0.0> : tensor<3xf64>
      %e = tensor.empty() : tensor<3x50xf64>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x50xf64>)
          outs(%z, %e : tensor<3xf64>, tensor<3x50xf64>) {
      ^bb0(%v: f64, %sum: f64, %o: f64):
        %t = arith.addf %sum, %v : f64
        linalg.yield %t, %t : f64, f64
      } -> (tensor<3xf64>, tensor<3x50xf64>)
      return %r#0, %r#1 : tensor<3xf64>, tensor<3x50xf64>""",
        x,
    )
    compare_exact("scan", s, np.cumsum(x, axis=1))
    compare_exact("sum", r, s[:, -1])


@case
def regions():
    # Tensors and scalars from outside, branches whose failures do not count, a constant tensor inside.
    x, t = np.array([3, -1, 0, 4, 2], np.int32), data(5)
    (r,) = call(
        "%x: tensor<?xi32>, %t: tensor<5xf32>, %y: f32",
        "tensor<?xf32>",
        """
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xi32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x : tensor<?xi32>) outs(%e : tensor<?xf32>) {
      ^bb0(%v: i32, %o: f32):
        %zero = arith.constant 0 : i32
        %i = arith.index_cast %v : i32 to index
        %there = arith.cmpi sge, %v, %zero : i32
        %read = scf.if %there -> f32 {
          %q = tensor.extract %t[%i] : tensor<5xf32>
          %nonzero = arith.cmpi ne, %v, %zero : i32
          %p = scf.if %nonzero -> f32 {
            %twelve = arith.constant 12 : i32
            %d = arith.divsi %twelve, %v : i32
            %f = arith.sitofp %d : i32 to f32
            scf.yield %f : f32
          } else {
            scf.yield %y : f32
          }
          %s = arith.addf %q, %p : f32
          scf.yield %s : f32
        } else {
          %table = arith.constant dense<[7.0, 8.0]> : tensor<2xf32>
          %one = arith.constant 1 : index
          %k = tensor.extract %table[%one] : tensor<2xf32>
          scf.yield %k : f32
        }
        linalg.yield %read : f32
      } -> tensor<?xf32>
      return %r : tensor<?xf32>""",
        x,
        t,
        np.float32(0.25),
    )
    compare_exact("regions", r, np.array([t[3] + 4, 8, t[0] + np.float32(0.25), t[4] + 3, t[2] + 6], np.float32))


@case
def zero_sizes():
    for m, n in ((0, 3), (3, 0), (0, 0)):
        r, s = call(
            "%x: tensor<?x?xf32>, %m: index",
            "(tensor<?xf32>, tensor<f32>)",
            """
          %one = arith.constant 1.0 : f32
          %z = tensor.splat %one[%m] : tensor<?xf32>
          %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
          %y = arith.constant dense<2.0> : tensor<f32>
          %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%y : tensor<f32>) dimensions = [0, 1]
          return %r, %s : tensor<?xf32>, tensor<f32>""",
            np.zeros((m, n), np.float32),
            np.int64(m),
        )
        compare_exact("rows", r, np.ones(m))
        compare_exact("all", s, 2)


main()
