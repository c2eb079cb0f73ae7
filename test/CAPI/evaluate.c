// RUN: %capi_cc -o %t %s && %t
/* Evaluation: strides, zero sizes, what does not fit, options. */

#include "Inputs/check.h"
#include <math.h>

static const char *text =
    "!q = tensor<?x2x?x4xf32>\n"
    "!kv = tensor<?x1x?x4xf32>\n"
    "!lse = tensor<?x2x?xf32>\n"
    "func.func @attend(%q: !q, %k: !kv, %v: !kv, %list: tensor<?x1x?x2xi32>) -> (!q, !lse) {\n"
    "  %sel = ssa.from_indices %list : tensor<?x1x?x2xi32> -> !ssa.selection<?x1x?x2, key_block = 2>\n"
    "  %o, %lse = ssa.sparse_attend %q, %k, %v at %sel\n"
    "    : !q, !kv, !kv, !ssa.selection<?x1x?x2, key_block = 2> -> !q, !lse\n"
    "  return %o, %lse : !q, !lse\n"
    "}\n"
    "func.func @subtract(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) -> tensor<?x3xf32> {\n"
    "  %c = arith.subf %a, %b : tensor<?x3xf32>\n"
    "  return %c : tensor<?x3xf32>\n"
    "}\n"
    "func.func @scalars(%a: f32, %i: index, %flag: i1) -> (f32, index, i1) {\n"
    "  return %a, %i, %flag : f32, index, i1\n"
    "}\n"
    "func.func @divide(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {\n"
    "  %c = arith.divsi %a, %b : tensor<?xi32>\n"
    "  return %c : tensor<?xi32>\n"
    "}\n"
    "func.func @dense(%q: tensor<1x2x2048x64xf32>) -> tensor<1x2x2048x64xf32> {\n"
    "  %o, %lse = ssa.sparse_attend %q, %q, %q\n"
    "    : tensor<1x2x2048x64xf32>, tensor<1x2x2048x64xf32>, tensor<1x2x2048x64xf32>\n"
    "      -> tensor<1x2x2048x64xf32>, tensor<1x2x2048xf32>\n"
    "  return %o : tensor<1x2x2048x64xf32>\n"
    "}\n"
    "func.func private @declared(%x: f32)\n";

/* One batch, two query heads, three queries, five keys in blocks of two; a query of 0 averages what it sees. */
static void testAttend(SSAModule *module) {
  static const int64_t qShape[] = {1, 2, 3, 4}, kvShape[] = {1, 1, 5, 4}, listShape[] = {1, 1, 3, 2};
  static const int64_t broadcast[] = {0, 0, 0, 0}, columns[] = {0, 0, 1, 0};
  static const float zero = 0, values[] = {10, 20, 30, 40, 50};
  static const int32_t list[] = {0, 2, -1, 2, -1, 7};
  static const float means[] = {(10 + 20 + 50) / 3.0f, 50, 0};
  const SSAArrayView inputs[] = {{SSA_DTYPE_F32, 4, qShape, broadcast, &zero},
                                 {SSA_DTYPE_F32, 4, kvShape, columns, values},
                                 {SSA_DTYPE_F32, 4, kvShape, columns, values},
                                 {SSA_DTYPE_I32, 4, listShape, NULL, list}};
  SSAArray *outputs[2];
  OK(ssaModuleEvaluate(module, "attend", inputs, 4, outputs, 2, NULL));
  CHECK(ssaArrayGetDType(outputs[0]) == SSA_DTYPE_F32 && ssaArrayGetRank(outputs[0]) == 4);
  CHECK(!memcmp(ssaArrayGetShape(outputs[0]), qShape, sizeof(qShape)));
  CHECK(ssaArrayGetRank(outputs[1]) == 3 && ssaArrayGetNumElements(outputs[1]) == 6);
  const float *o = getData(outputs[0], SSA_DTYPE_F32), *lse = getData(outputs[1], SSA_DTYPE_F32);
  for (int i = 0; i < 24; ++i)
    CHECK(fabsf(o[i] - means[i / 4 % 3]) < 1e-5f);
  for (int h = 0; h < 2; ++h)
    CHECK(fabs(lse[h * 3] - log(3)) < 1e-6 && lse[h * 3 + 1] == 0 && lse[h * 3 + 2] == -INFINITY);
  /* Asked again it is the same. */
  CHECK(getData(outputs[0], SSA_DTYPE_F32) == (const void *)o);
  CHECK(getData(outputs[0], SSA_DTYPE_F64) == getData(outputs[0], SSA_DTYPE_F64));
  CHECK(fabs(((const double *)getData(outputs[0], SSA_DTYPE_F64))[0] - means[0]) < 1e-5);
  ssaArrayDestroy(outputs[0]);
  ssaArrayDestroy(outputs[1]);
}

/* %a is stored as 0 1 2 / 3 4 5 and seen through strides; %b is all zeros but at its end. */
static void testStrides(SSAModule *module) {
  static const float a[] = {0, 1, 2, 3, 4, 5}, b[] = {0, 0, 0, 0, 0, 100};
  static const int64_t shape[] = {2, 3};
  static const struct {
    int64_t strides[2], offset;
    float expected[6];
  } cases[] = {{{3, 1}, 0, {0, 1, 2, 3, 4, -95}},    /* dense */
               {{1, 2}, 0, {0, 2, 4, 1, 3, -95}},    /* transposed */
               {{0, 1}, 3, {3, 4, 5, 3, 4, -95}},    /* one row for both */
               {{1, 0}, 1, {1, 1, 1, 2, 2, -98}},    /* one value a row */
               {{-3, -1}, 5, {5, 4, 3, 2, 1, -100}}, /* backwards */
               {{0, 0}, 2, {2, 2, 2, 2, 2, -98}},    /* one value */
               {{1, 1}, 0, {0, 1, 2, 1, 2, -97}}};   /* overlapping windows */
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    SSAArray *output;
    SSAArrayView inputs[] = {view(SSA_DTYPE_F32, 2, shape, a + cases[i].offset), view(SSA_DTYPE_F32, 2, shape, b)};
    inputs[0].strides = cases[i].strides;
    OK(ssaModuleEvaluate(module, "subtract", inputs, 2, &output, 1, NULL));
    CHECK(!memcmp(getData(output, SSA_DTYPE_F32), cases[i].expected, sizeof(cases[i].expected)));
    ssaArrayDestroy(output);
  }
  /* Elements need no alignment. */
  char bytes[sizeof(a) + 1];
  SSAArray *output;
  memcpy(bytes + 1, a, sizeof(a));
  const SSAArrayView inputs[] = {view(SSA_DTYPE_F32, 2, shape, bytes + 1), view(SSA_DTYPE_F32, 2, shape, b)};
  OK(ssaModuleEvaluate(module, "subtract", inputs, 2, &output, 1, NULL));
  CHECK(((const float *)getData(output, SSA_DTYPE_F32))[4] == 4);
  ssaArrayDestroy(output);
}

static void testZeroSizes(SSAModule *module) {
  static const int64_t empty[] = {0, 3}, strides[] = {INT64_MAX, INT64_MAX};
  static const int64_t qShape[] = {2, 2, 0, 4}, kvShape[] = {2, 1, 5, 4}, listShape[] = {2, 1, 0, 2};
  static const float zeros[40];
  SSAArray *outputs[2];
  SSAArrayView two[] = {view(SSA_DTYPE_F32, 2, empty, NULL), view(SSA_DTYPE_F32, 2, empty, zeros)};
  two[0].strides = strides;
  OK(ssaModuleEvaluate(module, "subtract", two, 2, outputs, 1, NULL));
  CHECK(ssaArrayGetNumElements(outputs[0]) == 0 && ssaArrayGetShape(outputs[0])[0] == 0);
  CHECK(getData(outputs[0], SSA_DTYPE_F32) && getData(outputs[0], SSA_DTYPE_BF16));
  ssaArrayDestroy(outputs[0]);

  /* No query. */
  const SSAArrayView four[] = {view(SSA_DTYPE_F32, 4, qShape, NULL), view(SSA_DTYPE_F32, 4, kvShape, zeros),
                               view(SSA_DTYPE_F32, 4, kvShape, zeros), view(SSA_DTYPE_I32, 4, listShape, NULL)};
  OK(ssaModuleEvaluate(module, "attend", four, 4, outputs, 2, NULL));
  CHECK(ssaArrayGetShape(outputs[1])[0] == 2 && ssaArrayGetShape(outputs[1])[2] == 0);
  ssaArrayDestroy(outputs[0]);
  ssaArrayDestroy(outputs[1]);
}

static void testScalars(SSAModule *module) {
  static const float a = 1.5f;
  static const int64_t wide = 1234567890123;
  static const int32_t narrow = -3;
  static const char flag = 64;
  SSAArray *outputs[3];
  SSAArrayView inputs[] = {view(SSA_DTYPE_F32, 0, NULL, &a), view(SSA_DTYPE_I64, 0, NULL, &wide),
                           view(SSA_DTYPE_BOOL, 0, NULL, &flag)};
  OK(ssaModuleEvaluate(module, "scalars", inputs, 3, outputs, 3, NULL));
  CHECK(*(const float *)getData(outputs[0], SSA_DTYPE_F32) == 1.5f && !ssaArrayGetShape(outputs[0]));
  CHECK(ssaArrayGetDType(outputs[1]) == SSA_DTYPE_I64);
  CHECK(*(const int64_t *)getData(outputs[1], SSA_DTYPE_I64) == wide);
  CHECK(ssaArrayGetDType(outputs[2]) == SSA_DTYPE_BOOL && *(const char *)getData(outputs[2], SSA_DTYPE_BOOL) == 1);
  for (int i = 0; i < 3; ++i)
    ssaArrayDestroy(outputs[i]);
  inputs[1] = view(SSA_DTYPE_I32, 0, NULL, &narrow);
  OK(ssaModuleEvaluate(module, "scalars", inputs, 3, outputs, 3, NULL));
  CHECK(*(const int64_t *)getData(outputs[1], SSA_DTYPE_I64) == -3);
  for (int i = 0; i < 3; ++i)
    ssaArrayDestroy(outputs[i]);
}

/* Evaluates @subtract with `a` as its first argument, which is wrong. */
static SSAError *subtract(SSAModule *module, SSAArrayView a) {
  static const float zeros[6];
  static const int64_t shape[] = {2, 3};
  SSAArray *output = (SSAArray *)&shape;
  const SSAArrayView inputs[] = {a, view(SSA_DTYPE_F32, 2, shape, zeros)};
  SSAError *error = ssaModuleEvaluate(module, "subtract", inputs, 2, &output, 1, NULL);
  CHECK(output == NULL);
  return error;
}

static void testMisfits(SSAModule *module) {
  static const float f[6];
  static const int64_t good[] = {2, 3}, wide[] = {2, 4}, rows[] = {4, 3}, negative[] = {-1, 3}, huge[] = {1LL << 40, 3},
                       beyond[] = {1LL << 62, 3};
  FAILS(subtract(module, view(SSA_DTYPE_F32, 2, wide, f)), SSA_ERROR_ARGUMENT,
        "error: argument 0 '%a' of @subtract has shape 2x4, but its type tensor<?x3xf32> wants 3 at dimension 1");
  FAILS(subtract(module, view(SSA_DTYPE_F32, 1, good, f)), SSA_ERROR_ARGUMENT,
        "argument 0 '%a' of @subtract has rank 1, but its type tensor<?x3xf32> wants 2");
  FAILS(subtract(module, view(SSA_DTYPE_F32, 2, negative, f)), SSA_ERROR_ARGUMENT, "negative at dimension 0");
  FAILS(subtract(module, view(SSA_DTYPE_F64, 2, good, f)), SSA_ERROR_ARGUMENT,
        "argument 0 '%a' of @subtract has kind f64, but its type tensor<?x3xf32> wants f32");
  FAILS(subtract(module, view(SSA_DTYPE_I32, 2, good, f)), SSA_ERROR_ARGUMENT, "has kind i32");
  FAILS(subtract(module, view(SSA_DTYPE_NONE, 2, good, f)), SSA_ERROR_ARGUMENT, "has kind none");
  FAILS(subtract(module, view((SSADType)99, 2, good, f)), SSA_ERROR_ARGUMENT, "has kind none");
  FAILS(subtract(module, view(SSA_DTYPE_F32, 2, good, NULL)), SSA_ERROR_ARGUMENT,
        "argument 0 '%a' of @subtract has no elements: 'data' is null, but the shape is 2x3");
  FAILS(subtract(module, view(SSA_DTYPE_F32, 2, huge, f)), SSA_ERROR_ARGUMENT,
        "which needs 13194139533312 bytes, but one tensor may take at most ");
  FAILS(subtract(module, view(SSA_DTYPE_F32, 2, beyond, f)), SSA_ERROR_ARGUMENT, "which needs more than any memory");
  /* Each fits its type, but not the other: a diagnostic of the op. */
  FAILS(subtract(module, view(SSA_DTYPE_F32, 2, rows, (const float[12]){0})), SSA_ERROR_EVALUATE,
        "test.mlir:11:8: error:");

  SSAArray *outputs[2];
  SSAArrayView inputs[3] = {view(SSA_DTYPE_F32, 2, good, f), view(SSA_DTYPE_F32, 2, good, f)};
  FAILS(ssaModuleEvaluate(module, "subtract", inputs, 1, outputs, 1, NULL), SSA_ERROR_ARGUMENT,
        "expected 2 inputs, but got 1, for @subtract(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) -> tensor<?x3xf32>");
  FAILS(ssaModuleEvaluate(module, "subtract", inputs, 2, outputs, 2, NULL), SSA_ERROR_ARGUMENT,
        "expected 1 outputs, but got 2");
  CHECK(!outputs[0] && !outputs[1]);
  FAILS(ssaModuleEvaluate(module, "substract", inputs, 2, outputs, 1, NULL), SSA_ERROR_USAGE,
        "no function @substract with a body in 'test.mlir'; it has @attend, @subtract");
  FAILS(ssaModuleEvaluate(module, "declared", inputs, 1, NULL, 0, NULL), SSA_ERROR_USAGE, "no function @declared");
  FAILS(ssaModuleEvaluate(module, "", inputs, 1, NULL, 0, NULL), SSA_ERROR_USAGE, "no function @ ");
}

/* What goes wrong in the middle says where. */
static void testRuntimeErrors(SSAModule *module) {
  static const int32_t a[] = {6, 7}, b[] = {3, 0};
  static const int64_t shape[] = {2};
  SSAArray *output;
  const SSAArrayView inputs[] = {view(SSA_DTYPE_I32, 1, shape, a), view(SSA_DTYPE_I32, 1, shape, b)};
  FAILS(ssaModuleEvaluate(module, "divide", inputs, 2, &output, 1, NULL), SSA_ERROR_EVALUATE, "test.mlir:18:8: error:");
  CHECK(output == NULL);
  FAILS(ssaModuleEvaluate(module, "divide", inputs, 2, &output, 1, NULL), SSA_ERROR_EVALUATE, "by zero");
}

typedef struct Progress {
  int calls, wrong;
  double last;
} Progress;

static void advance(const char *op, double fraction, void *userData) {
  Progress *progress = userData;
  ++progress->calls;
  progress->wrong += strcmp(op, "ssa.sparse_attend") || fraction < progress->last || fraction > 1;
  progress->last = fraction;
}

static void testOptions(SSAModule *module) {
  static const int64_t shape[] = {1, 2, 2048, 64}, broadcast[] = {0, 0, 0, 0}, small[] = {2, 3};
  static const float one = 1, zeros[6];
  Progress progress = {0, 0, 0};
  SSAArray *output;
  SSAArrayView input = view(SSA_DTYPE_F32, 4, shape, &one);
  SSAEvaluateOptions options = {sizeof(SSAEvaluateOptions), advance, &progress, 0};
  input.strides = broadcast;
  OK(ssaModuleEvaluate(module, "dense", &input, 1, &output, 1, &options));
  CHECK(progress.calls > 0 && !progress.wrong && progress.last > 0);
  CHECK(((const float *)getData(output, SSA_DTYPE_F32))[2 * 2048 * 64 - 1] == 1);
  ssaArrayDestroy(output);

  SSAEvaluateOptions limited = {sizeof(SSAEvaluateOptions), NULL, NULL, 1000000};
  FAILS(ssaModuleEvaluate(module, "dense", &input, 1, &output, 1, &limited), SSA_ERROR_ARGUMENT,
        "argument 0 '%q' of @dense has shape 1x2x2048x64, which needs 1048576 bytes, but one tensor may take at most "
        "1000000");
  limited.maxTensorBytes = -1;
  FAILS(ssaModuleEvaluate(module, "dense", &input, 1, &output, 1, &limited), SSA_ERROR_USAGE,
        "expected 'options->maxTensorBytes' not to be negative, but got -1");

  /* A program that knows fewer options than there are, and one that knows more. */
  struct {
    SSAEvaluateOptions known;
    int64_t later;
  } newer = {{sizeof(newer), NULL, NULL, 0}, 0};
  const SSAArrayView inputs[] = {view(SSA_DTYPE_F32, 2, small, zeros), view(SSA_DTYPE_F32, 2, small, zeros)};
  limited.size = 0;
  FAILS(ssaModuleEvaluate(module, "subtract", inputs, 2, &output, 1, &limited), SSA_ERROR_USAGE, "'options->size'");
  OK(ssaModuleEvaluate(module, "subtract", inputs, 2, &output, 1, &newer.known));
  ssaArrayDestroy(output);
  newer.later = 1;
  FAILS(ssaModuleEvaluate(module, "subtract", inputs, 2, &output, 1, &newer.known), SSA_ERROR_USAGE,
        "'options' asks for something that this version of the library does not know");
}

int main(void) {
  SSAContext *context;
  OK(ssaContextCreate(&context));
  SSAModule *module = parse(context, text);
  testAttend(module);
  testStrides(module);
  testZeroSizes(module);
  testScalars(module);
  testMisfits(module);
  testRuntimeErrors(module);
  testOptions(module);

  /* Results outlive their module. */
  static const float f[6] = {7};
  static const int64_t shape[] = {2, 3};
  SSAArray *output;
  const SSAArrayView same[] = {view(SSA_DTYPE_F32, 2, shape, f), view(SSA_DTYPE_F32, 2, shape, f)};
  OK(ssaModuleEvaluate(module, "subtract", same, 2, &output, 1, NULL));
  ssaModuleDestroy(module);
  ssaContextDestroy(context);
  CHECK(*(const uint16_t *)getData(output, SSA_DTYPE_BF16) == 0);
  ssaArrayDestroy(output);
  return finish();
}
