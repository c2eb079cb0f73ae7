// RUN: %capi_cc -o %t %s && %t
/* Kinds of elements: bits come back as they went in, f32 is rounded for narrower types, integers are checked. */

#include "Inputs/check.h"
#include <math.h>

static const char *text =
    "func.func @f64(%x: tensor<?xf64>) -> tensor<?xf64> { return %x : tensor<?xf64> }\n"
    "func.func @f32(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }\n"
    "func.func @f16(%x: tensor<?xf16>) -> tensor<?xf16> { return %x : tensor<?xf16> }\n"
    "func.func @bf16(%x: tensor<?xbf16>) -> tensor<?xbf16> { return %x : tensor<?xbf16> }\n"
    "func.func @f8(%x: tensor<?xf8E4M3FN>) -> tensor<?xf8E4M3FN> { return %x : tensor<?xf8E4M3FN> }\n"
    "func.func @e5m2(%x: tensor<?xf8E5M2>) -> tensor<?xf8E5M2> { return %x : tensor<?xf8E5M2> }\n"
    "func.func @i1(%x: tensor<?xi1>) -> tensor<?xi1> { return %x : tensor<?xi1> }\n"
    "func.func @i4(%x: tensor<?xi4>) -> tensor<?xi4> { return %x : tensor<?xi4> }\n"
    "func.func @i8(%x: tensor<?xi8>) -> tensor<?xi8> { return %x : tensor<?xi8> }\n"
    "func.func @i16(%x: tensor<?xi16>) -> tensor<?xi16> { return %x : tensor<?xi16> }\n"
    "func.func @i32(%x: tensor<?xi32>) -> tensor<?xi32> { return %x : tensor<?xi32> }\n"
    "func.func @i64(%x: tensor<?xi64>) -> tensor<?xi64> { return %x : tensor<?xi64> }\n"
    "func.func @index(%x: tensor<?xindex>) -> tensor<?xindex> { return %x : tensor<?xindex> }\n"
    "func.func @complex(%x: complex<f32>) { return }\n";

static SSAModule *module;

/* What the function `entry`, which returns its argument, makes of an array. */
static SSAArray *pass(const char *entry, SSADType dtype, int64_t count, const void *data) {
  SSAArray *output;
  SSAArrayView input = view(dtype, 1, &count, data);
  OK(ssaModuleEvaluate(module, entry, &input, 1, &output, 1, NULL));
  return output;
}

static SSAError *refuse(const char *entry, SSADType dtype, int64_t count, const void *data) {
  SSAArray *output;
  SSAArrayView input = view(dtype, 1, &count, data);
  return ssaModuleEvaluate(module, entry, &input, 1, &output, 1, NULL);
}

static float bf16Value(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}

static double f16Value(unsigned bits, int exponentBits, int digitBits) {
  int bias = (1 << (exponentBits - 1)) - 1, exponent = (int)(bits >> digitBits) & ((1 << exponentBits) - 1);
  unsigned digits = bits & ((1u << digitBits) - 1);
  double value = exponent ? ldexp(1 + ldexp(digits, -digitBits), exponent - bias) : ldexp(digits, 1 - bias - digitBits);
  return bits >> (exponentBits + digitBits) ? -value : value;
}

/* All bit patterns of the 16-bit formats go through unchanged (a NaN as some NaN), and mean what they should. */
static void testAllPatterns(void) {
  static uint16_t bits[65536];
  for (int i = 0; i < 65536; ++i)
    bits[i] = (uint16_t)i;
  SSAArray *halves = pass("f16", SSA_DTYPE_F16, 65536, bits), *bfloats = pass("bf16", SSA_DTYPE_BF16, 65536, bits);
  const uint16_t *f16 = getData(halves, SSA_DTYPE_F16), *bf16 = getData(bfloats, SSA_DTYPE_BF16);
  const float *fromF16 = getData(halves, SSA_DTYPE_F32), *fromBF16 = getData(bfloats, SSA_DTYPE_F32);
  CHECK(ssaArrayGetDType(halves) == SSA_DTYPE_F16 && ssaArrayGetDType(bfloats) == SSA_DTYPE_BF16);
  int wrong = 0;
  for (int i = 0; i < 65536; ++i) {
    if ((i & 0x7fff) > 0x7c00)
      wrong += !isnan(fromF16[i]) || (f16[i] & 0x7c00) != 0x7c00 || !(f16[i] & 0x3ff);
    else
      wrong +=
          f16[i] != i || fromF16[i] != ((i & 0x7fff) == 0x7c00 ? i >> 15 ? -INFINITY : INFINITY : f16Value(i, 5, 10));
    if ((i & 0x7fff) > 0x7f80)
      wrong += !isnan(fromBF16[i]) || (bf16[i] & 0x7f80) != 0x7f80 || !(bf16[i] & 0x7f);
    else
      wrong += bf16[i] != i || fromBF16[i] != bf16Value((uint16_t)i);
  }
  CHECK(wrong == 0);
  ssaArrayDestroy(halves);
  ssaArrayDestroy(bfloats);

  static uint8_t bytes[256];
  for (int i = 0; i < 256; ++i)
    bytes[i] = (uint8_t)i;
  SSAArray *eights = pass("f8", SSA_DTYPE_F8E4M3, 256, bytes);
  const uint8_t *f8 = getData(eights, SSA_DTYPE_F8E4M3);
  const float *fromF8 = getData(eights, SSA_DTYPE_F32);
  for (int i = 0; i < 256; ++i)
    wrong += f8[i] != i || ((i & 127) == 127 ? !isnan(fromF8[i]) : fromF8[i] != f16Value(i, 4, 3));
  CHECK(wrong == 0);
  ssaArrayDestroy(eights);
}

/* f32 for narrower types, and results as narrower kinds than they are: to nearest, ties to even. */
static void testRounding(void) {
  static const float x[] = {1 + 0x1p-8f, 1 + 0x3p-8f, -(1 + 0x1p-8f + 0x1p-20f),
                            2049,        2051,        65519,
                            65520,       -65520,      0x1p-25f,
                            0x3p-25f,    17,          19,
                            447,         464,         465,
                            -1000,       INFINITY,    -INFINITY,
                            0x1p-10f,    0x1.8p-9f};
  static const float bf16[] = {1,      1 + 0x1p-6f, -(1 + 0x1p-7f), 2048,      2048,     65536,    65536,
                               -65536, 0x1p-25f,    0x3p-25f,       17,        19,       448,      464,
                               464,    -1000,       INFINITY,       -INFINITY, 0x1p-10f, 0x1.8p-9f};
  static const float f16[] = {1 + 0x1p-8f, 1 + 0x3p-8f, -(1 + 0x1p-8f), 2048,      2052,     65504,    INFINITY,
                              -INFINITY,   0,           0x1p-23f,       17,        19,       447,      464,
                              465,         -1000,       INFINITY,       -INFINITY, 0x1p-10f, 0x1.8p-9f};
  static const float f8[] = {1,  1,  -1,  448, 448, 448,  448, -448, 0, 0,
                             16, 20, 448, 448, 448, -448, 448, -448, 0, 0x1p-8f};
  enum { count = sizeof(x) / sizeof(x[0]) };
  static const struct {
    const char *entry;
    SSADType dtype;
    const float *expected;
  } cases[] = {{"bf16", SSA_DTYPE_BF16, bf16}, {"f16", SSA_DTYPE_F16, f16}, {"f8", SSA_DTYPE_F8E4M3, f8}};
  SSAArray *whole = pass("f32", SSA_DTYPE_F32, count, x);
  for (int c = 0; c < 3; ++c) {
    SSAArray *array = pass(cases[c].entry, SSA_DTYPE_F32, count, x);
    const float *got = getData(array, SSA_DTYPE_F32);
    for (int i = 0; i < count; ++i) {
      CHECK(got[i] == cases[c].expected[i]);
      if (got[i] != cases[c].expected[i])
        printf("  %s of %a: expected %a, but got %a\n", cases[c].entry, x[i], cases[c].expected[i], got[i]);
    }
    /* A result of f32 asked for in the narrow kind has the same bits. */
    CHECK(!memcmp(getData(whole, cases[c].dtype), getData(array, cases[c].dtype),
                  count * ssaDTypeGetSize(cases[c].dtype)));
    ssaArrayDestroy(array);
  }
  ssaArrayDestroy(whole);

  /* f64 is kept, and rounded once when it is asked for in a narrower kind. */
  static const double d[] = {1 + 0x1p-40, 1e300, 1 + 0x1p-8 + 0x1p-40};
  SSAArray *doubles = pass("f64", SSA_DTYPE_F64, 3, d);
  CHECK(!memcmp(getData(doubles, SSA_DTYPE_F64), d, sizeof(d)));
  CHECK(((const float *)getData(doubles, SSA_DTYPE_F32))[0] == 1 &&
        isinf(((const float *)getData(doubles, SSA_DTYPE_F32))[1]));
  CHECK(((const uint16_t *)getData(doubles, SSA_DTYPE_BF16))[2] == 0x3f81);
  ssaArrayDestroy(doubles);
}

static int numWarnings;
static char lastWarning[200];

static void warn(SSASeverity severity, const char *message, const char *file, uint32_t line, uint32_t column,
                 void *userData) {
  (void)file, (void)line, (void)column, (void)userData;
  numWarnings += severity == SSA_SEVERITY_WARNING;
  snprintf(lastWarning, sizeof(lastWarning), "%s", message);
}

static void testOverflow(SSAContext *context) {
  static const float x[] = {1e30f, 448, -500, INFINITY, NAN};
  OK(ssaContextSetDiagnosticCallback(context, warn, NULL));
  ssaArrayDestroy(pass("f8", SSA_DTYPE_F32, 5, x));
  CHECK(numWarnings == 1 && !strcmp(lastWarning, "argument 0 '%x' of @f8: 2 of 5 values overflow 'f8E4M3FN'"));
  ssaArrayDestroy(pass("bf16", SSA_DTYPE_F32, 5, x));
  CHECK(numWarnings == 1);
  OK(ssaContextSetDiagnosticCallback(context, NULL, NULL));
}

static void testIntegers(void) {
  static const int8_t i8[] = {-128, 127, 0, 7}, i4[] = {-8, 7, 0, 1}, flags[] = {0, 1, -1, 4};
  static const int16_t i16[] = {-32768, 32767};
  static const int32_t i32[] = {INT32_MIN, INT32_MAX, 5};
  static const int64_t i64[] = {INT64_MIN, INT64_MAX, 3000000000};
  static const int64_t widened[] = {INT32_MIN, INT32_MAX, 5};
  SSAArray *array = pass("i8", SSA_DTYPE_I8, 4, i8);
  const void *data;
  CHECK(ssaArrayGetDType(array) == SSA_DTYPE_I8 && !memcmp(getData(array, SSA_DTYPE_I8), i8, sizeof(i8)));
  CHECK(((const int64_t *)getData(array, SSA_DTYPE_I64))[0] == -128);
  ssaArrayDestroy(array);
  array = pass("i4", SSA_DTYPE_I8, 4, i4);
  CHECK(ssaArrayGetDType(array) == SSA_DTYPE_I8 && !memcmp(getData(array, SSA_DTYPE_I8), i4, sizeof(i4)));
  ssaArrayDestroy(array);
  array = pass("i1", SSA_DTYPE_BOOL, 4, flags);
  CHECK(ssaArrayGetDType(array) == SSA_DTYPE_BOOL && !memcmp(getData(array, SSA_DTYPE_BOOL), "\0\1\1\1", 4));
  CHECK(((const int32_t *)getData(array, SSA_DTYPE_I32))[3] == 1);
  ssaArrayDestroy(array);
  array = pass("i16", SSA_DTYPE_I16, 2, i16);
  CHECK(ssaArrayGetDType(array) == SSA_DTYPE_I16 && !memcmp(getData(array, SSA_DTYPE_I16), i16, sizeof(i16)));
  ssaArrayDestroy(array);
  array = pass("index", SSA_DTYPE_I32, 3, i32);
  CHECK(ssaArrayGetDType(array) == SSA_DTYPE_I64 && !memcmp(getData(array, SSA_DTYPE_I64), widened, sizeof(widened)));
  CHECK(!memcmp(getData(array, SSA_DTYPE_I32), i32, sizeof(i32)));
  FAILS(ssaArrayGetData(array, SSA_DTYPE_I16, &data), SSA_ERROR_USAGE,
        "ssaArrayGetData: element 0 is -2147483648, which i16 does not hold");
  CHECK(data == NULL);
  ssaArrayDestroy(array);
  array = pass("i64", SSA_DTYPE_I64, 3, i64);
  CHECK(!memcmp(getData(array, SSA_DTYPE_I64), i64, sizeof(i64)));
  FAILS(ssaArrayGetData(array, SSA_DTYPE_BOOL, &data), SSA_ERROR_USAGE, "which bool does not hold");
  FAILS(ssaArrayGetData(array, SSA_DTYPE_F64, &data), SSA_ERROR_USAGE,
        "expected an integer kind, as the elements are, but got f64");
  FAILS(ssaArrayGetData(array, SSA_DTYPE_NONE, &data), SSA_ERROR_USAGE, "but got none");
  ssaArrayDestroy(array);
}

static void testRefused(void) {
  static const double x[4];
  static const int8_t i4[] = {1, 8};
  static const uint16_t quarter = 0x3400;
  SSAArray *array = pass("e5m2", SSA_DTYPE_F32, 1, (const float[1]){0.25f});
  const void *data;
  CHECK(ssaArrayGetDType(array) == SSA_DTYPE_F32 && *(const float *)getData(array, SSA_DTYPE_F32) == 0.25f);
  CHECK(*(const uint16_t *)getData(array, SSA_DTYPE_F16) == quarter);
  FAILS(ssaArrayGetData(array, SSA_DTYPE_I32, &data), SSA_ERROR_USAGE, "expected a floating point kind");
  ssaArrayDestroy(array);
  FAILS(refuse("i4", SSA_DTYPE_I8, 2, i4), SSA_ERROR_ARGUMENT,
        "argument 0 '%x' of @i4 has 8 at element 1, which does not fit 'i4'");
  FAILS(refuse("bf16", SSA_DTYPE_F16, 1, x), SSA_ERROR_ARGUMENT,
        "has kind f16, but its type tensor<?xbf16> wants bf16 or f32");
  FAILS(refuse("f64", SSA_DTYPE_F32, 1, x), SSA_ERROR_ARGUMENT, "has kind f32, but its type tensor<?xf64> wants f64");
  FAILS(refuse("index", SSA_DTYPE_I8, 1, x), SSA_ERROR_ARGUMENT,
        "has kind i8, but its type tensor<?xindex> wants i64 or i32");
  FAILS(refuse("i64", SSA_DTYPE_I32, 1, x), SSA_ERROR_ARGUMENT, "has kind i32, but its type tensor<?xi64> wants i64");
  FAILS(refuse("i32", SSA_DTYPE_F32, 1, x), SSA_ERROR_ARGUMENT, "has kind f32, but its type tensor<?xi32> wants i32");
  SSAArrayView input = view(SSA_DTYPE_F32, 0, NULL, x);
  FAILS(ssaModuleEvaluate(module, "complex", &input, 1, NULL, 0, NULL), SSA_ERROR_ARGUMENT,
        "argument 0 '%x' of @complex has type complex<f32>, for which no array can be passed");
}

int main(void) {
  SSAContext *context;
  OK(ssaContextCreate(&context));
  module = parse(context, text);
  testAllPatterns();
  testRounding();
  testOverflow(context);
  testIntegers();
  testRefused();
  ssaModuleDestroy(module);
  ssaContextDestroy(context);
  return finish();
}
