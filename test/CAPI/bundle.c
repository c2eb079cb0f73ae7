// RUN: %capi_cc -o %t %s && %t > %t.json && ssa-opt %t.mlir --emit=bundle --chip=sm_90a,sm_100 | diff %t.json -
/* Compiling: the same bundle as ssa-opt makes; what can be wrong. */

#include "Inputs/check.h"
#include <pthread.h>

static const char *text = "func.func @f(%a: tensor<?x2x?x64xbf16>, %w: tensor<2x64x8xbf16>) -> tensor<?x2x?x8xf32> {\n"
                          "  %b = ssa.project %a, %w : tensor<?x2x?x64xbf16>, tensor<2x64x8xbf16> -> tensor<?x2x?x8xf32>\n"
                          "  return %b : tensor<?x2x?x8xf32>\n"
                          "}\n";

/* No kernel does this. */
static const char *unknown = "func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xi32> {\n"
                             "  %b = tensor.bitcast %a : tensor<4x4xf32> to tensor<4x4xi32>\n"
                             "  return %b : tensor<4x4xi32>\n"
                             "}\n";

static void testErrors(SSAContext *context) {
  char *bundle = (char *)text;
  SSAModule *module = parse(context, text);
  FAILS(ssaModuleEmitBundle(module, "sm_7", &bundle), SSA_ERROR_COMPILE, "sm_7");
  CHECK(!bundle);
  FAILS(ssaModuleEmitBundle(module, "sm_90a,,sm_100", &bundle), SSA_ERROR_USAGE,
        "ssaModuleEmitBundle: expected 'chips' to be names with commas between, but got 'sm_90a,,sm_100'");
  FAILS(ssaModuleEmitBundle(module, "", &bundle), SSA_ERROR_USAGE, "but got ''");
  FAILS(ssaModuleEmitBundle(module, "sm_90a,sm_90a", &bundle), SSA_ERROR_COMPILE, "the chip 'sm_90a' is named twice");
  ssaModuleDestroy(module);
  module = parse(context, unknown);
  FAILS(ssaModuleEmitBundle(module, "sm_90a", &bundle), SSA_ERROR_COMPILE, "test.mlir:2:8: error: 'tensor.bitcast' op");
  ssaModuleDestroy(module);
  module = parse(context, "func.func @f() -> f32 { return }\n");
  FAILS(ssaModuleEmitBundle(module, "sm_90a", &bundle), SSA_ERROR_VERIFY, "has 0 operands");
  ssaModuleDestroy(module);
}

/* A chip that is not named is the module's, else the default. */
static void testChips(SSAContext *context) {
  char *bundle = NULL;
  SSAModule *module = parse(context, text);
  OK(ssaModuleEmitBundle(module, NULL, &bundle));
  CHECK(bundle && strstr(bundle, "\"chip\": \"sm_100a\""));
  ssaStringFree(bundle);
  OK(ssaModuleRunPipeline(module, "ssa-attach-target{chip=sm_90}"));
  OK(ssaModuleEmitBundle(module, NULL, &bundle));
  CHECK(bundle && strstr(bundle, "\"chip\": \"sm_90\""));
  ssaStringFree(bundle);
  ssaModuleDestroy(module);
}

/* The module stays as it is, and is compiled as often as one likes. */
static char *testRepeated(SSAContext *context) {
  char *first = NULL, *second = NULL, *before = NULL, *after = NULL;
  SSAModule *module = parse(context, text);
  OK(ssaModulePrint(module, &before));
  OK(ssaModuleEmitBundle(module, "sm_90a,sm_100", &first));
  OK(ssaModuleEmitBundle(module, " sm_90a, sm_100 ", &second));
  OK(ssaModulePrint(module, &after));
  CHECK(!strcmp(before, after));
  CHECK(first && second && !strcmp(first, second));
  ssaStringFree(second);
  ssaStringFree(before);
  ssaStringFree(after);
  ssaModuleDestroy(module);
  return first;
}

static void *work(void *expected) {
  SSAContext *context = NULL;
  SSAModule *module = NULL;
  char *bundle = NULL;
  SSAError *error = ssaContextCreate(&context);
  if (!error)
    error = ssaModuleParse(context, text, strlen(text), "test.mlir", &module);
  if (!error)
    error = ssaModuleEmitBundle(module, "sm_90a,sm_100", &bundle);
  int same = !error && !strcmp(bundle, expected);
  ssaErrorDestroy(error);
  ssaStringFree(bundle);
  ssaModuleDestroy(module);
  ssaContextDestroy(context);
  return same ? NULL : expected;
}

int main(int argc, char **argv) {
  SSAContext *context;
  (void)argc;
  /* The other side of the comparison. */
  char path[4096];
  snprintf(path, sizeof(path), "%s.mlir", argv[0]);
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(text, file) >= 0 && !fclose(file));

  OK(ssaContextCreate(&context));
  testErrors(context);
  testChips(context);
  char *bundle = testRepeated(context);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    CHECK(!pthread_create(&threads[i], NULL, work, bundle));
  for (int i = 0; i < 2; ++i) {
    void *wrong = bundle;
    CHECK(!pthread_join(threads[i], &wrong) && !wrong);
  }
  ssaContextDestroy(context);
  if (numFailures || !bundle)
    return finish();
  fputs(bundle, stdout);
  ssaStringFree(bundle);
  return 0;
}
