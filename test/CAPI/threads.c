// RUN: %capi_cc -o %t %s && %t
/* Two threads with two contexts; one context serves one call at a time. */

#include "Inputs/check.h"
#include <math.h>
#include <pthread.h>

static const char *text =
    "func.func @attend(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x?xf32>) "
    "{\n"
    "  %o, %lse = ssa.sparse_attend %q, %k, %k {mask = #ssa.mask<causal>}\n"
    "    : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32> -> tensor<1x1x?x4xf32>, tensor<1x1x?xf32>\n"
    "  return %o, %lse : tensor<1x1x?x4xf32>, tensor<1x1x?xf32>\n"
    "}\n";

enum { rows = 300, rounds = 10 };

/* Queries of 0 weigh all keys alike: the lse of row m is log(m + 1), the output the mean of the rows up to m. */
static long countWrong(SSAModule *module, float step) {
  static const float zeros[rows * 4];
  static const int64_t shape[] = {1, 1, rows, 4};
  float *keys = malloc(sizeof(float) * rows * 4);
  SSAArray *outputs[2];
  long wrong = 0;
  for (int i = 0; i < rows * 4; ++i)
    keys[i] = step * (float)(i / 4);
  SSAArrayView inputs[] = {view(SSA_DTYPE_F32, 4, shape, zeros), view(SSA_DTYPE_F32, 4, shape, keys)};
  SSAError *error = ssaModuleEvaluate(module, "attend", inputs, 2, outputs, 2, NULL);
  const void *o = NULL, *lse = NULL;
  if (error || ssaArrayGetData(outputs[0], SSA_DTYPE_F32, &o) || ssaArrayGetData(outputs[1], SSA_DTYPE_F32, &lse))
    return -1;
  for (int m = 0; m < rows; ++m) {
    wrong += fabs(((const float *)lse)[m] - log(m + 1)) > 1e-5;
    wrong += fabs(((const float *)o)[m * 4 + 3] - step * (float)m / 2) > 1e-3;
  }
  ssaArrayDestroy(outputs[0]);
  ssaArrayDestroy(outputs[1]);
  free(keys);
  return wrong;
}

static void *work(void *step) {
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    SSAContext *context = NULL;
    SSAModule *module = NULL;
    SSAError *error = ssaContextCreate(&context);
    if (!error)
      error = ssaModuleParse(context, text, strlen(text), "test.mlir", &module);
    if (!error)
      error = ssaModuleRunPipeline(module, "ssa-optimize");
    wrong += error ? 1 : labs(countWrong(module, *(float *)step));
    ssaErrorDestroy(error);
    ssaContextDestroy(context);
    ssaModuleDestroy(module);
  }
  return (void *)wrong;
}

static void testTwoContexts(void) {
  static float steps[] = {1, -2};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    CHECK(!pthread_create(&threads[i], NULL, work, &steps[i]));
  for (int i = 0; i < 2; ++i) {
    void *wrong = &threads;
    CHECK(!pthread_join(threads[i], &wrong));
    CHECK(wrong == NULL);
  }
}

typedef struct Reentry {
  SSAContext *context;
  int count;
} Reentry;

static void reenter(SSASeverity severity, const char *message, const char *file, uint32_t line, uint32_t column,
                    void *userData) {
  Reentry *reentry = userData;
  SSAModule *module;
  SSAContext *other;
  (void)severity, (void)message, (void)file, (void)line, (void)column;
  ++reentry->count;
  FAILS(ssaModuleParse(reentry->context, text, strlen(text), NULL, &module), SSA_ERROR_USAGE,
        "ssaModuleParse: the context is in use by another call");
  /* Another context is fine. */
  OK(ssaContextCreate(&other));
  ssaModuleDestroy(parse(other, text));
  ssaContextDestroy(other);
}

static void testReentry(void) {
  Reentry reentry = {NULL, 0};
  SSAModule *module;
  OK(ssaContextCreate(&reentry.context));
  OK(ssaContextSetDiagnosticCallback(reentry.context, reenter, &reentry));
  FAILS(ssaModuleParse(reentry.context, "x", 1, "bad.mlir", &module), SSA_ERROR_SYNTAX, "bad.mlir:1:1");
  CHECK(reentry.count == 1);
  OK(ssaContextSetDiagnosticCallback(reentry.context, NULL, NULL));
  ssaModuleDestroy(parse(reentry.context, text));
  ssaContextDestroy(reentry.context);
}

int main(void) {
  testTwoContexts();
  testReentry();
  return finish();
}
