// RUN: %capi_cc -o %t %s && %t
/* No null pointer does harm: it is an error, or gives NULL, 0, or no kind. */

#include "Inputs/check.h"

static void testErrors(SSAContext *context, SSAModule *module) {
  SSAModule *made;
  SSAFunction *function;
  size_t count;
  char *printed;
  const void *data;
  FAILS(ssaContextCreate(NULL), SSA_ERROR_USAGE, "ssaContextCreate: 'context' is null");
  FAILS(ssaContextSetDiagnosticCallback(NULL, NULL, NULL), SSA_ERROR_USAGE, "'context' is null");
  FAILS(ssaModuleParse(NULL, "", 0, "a", &made), SSA_ERROR_USAGE, "ssaModuleParse: 'context' is null");
  FAILS(ssaModuleParse(context, NULL, 0, "a", &made), SSA_ERROR_USAGE, "ssaModuleParse: 'text' is null");
  FAILS(ssaModuleParse(context, "", 0, "a", NULL), SSA_ERROR_USAGE, "ssaModuleParse: 'module' is null");
  FAILS(ssaModuleParseFile(NULL, "a", &made), SSA_ERROR_USAGE, "'context' is null");
  FAILS(ssaModuleParseFile(context, NULL, &made), SSA_ERROR_USAGE, "'path' is null");
  FAILS(ssaModuleParseFile(context, "a", NULL), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModuleVerify(NULL), SSA_ERROR_USAGE, "ssaModuleVerify: 'module' is null");
  FAILS(ssaModulePrint(NULL, &printed), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModulePrint(module, NULL), SSA_ERROR_USAGE, "'text' is null");
  FAILS(ssaModuleRunPipeline(NULL, "cse"), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModuleRunPipeline(module, NULL), SSA_ERROR_USAGE, "'pipeline' is null");
  FAILS(ssaModuleEmitBundle(NULL, "sm_90a", &printed), SSA_ERROR_USAGE, "ssaModuleEmitBundle: 'module' is null");
  FAILS(ssaModuleEmitBundle(module, "sm_90a", NULL), SSA_ERROR_USAGE, "'bundle' is null");
  FAILS(ssaModuleGetNumFunctions(NULL, &count), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModuleGetNumFunctions(module, NULL), SSA_ERROR_USAGE, "'count' is null");
  FAILS(ssaModuleGetFunction(NULL, 0, &function), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModuleGetFunction(module, 0, NULL), SSA_ERROR_USAGE, "'function' is null");
  FAILS(ssaModuleFindFunction(NULL, "f", &function), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModuleFindFunction(module, NULL, &function), SSA_ERROR_USAGE, "'name' is null");
  FAILS(ssaModuleFindFunction(module, "f", NULL), SSA_ERROR_USAGE, "'function' is null");
  FAILS(ssaArrayGetData(NULL, SSA_DTYPE_F32, &data), SSA_ERROR_USAGE, "'array' is null");
}

static void testEvaluate(SSAModule *module) {
  SSAArray *output = (SSAArray *)&module;
  const float zero = 0;
  const int64_t shape[] = {0};
  SSAArrayView input = view(SSA_DTYPE_F32, 1, shape, &zero);
  FAILS(ssaModuleEvaluate(NULL, "f", &input, 1, &output, 1, NULL), SSA_ERROR_USAGE, "'module' is null");
  FAILS(ssaModuleEvaluate(module, NULL, &input, 1, &output, 1, NULL), SSA_ERROR_USAGE, "'entry' is null");
  FAILS(ssaModuleEvaluate(module, "f", NULL, 1, &output, 1, NULL), SSA_ERROR_USAGE, "'inputs' is null");
  FAILS(ssaModuleEvaluate(module, "f", &input, 1, NULL, 1, NULL), SSA_ERROR_USAGE, "'outputs' is null");
  CHECK(output == NULL);
  input.shape = NULL;
  FAILS(ssaModuleEvaluate(module, "f", &input, 1, &output, 1, NULL), SSA_ERROR_ARGUMENT,
        "argument 0 '%x' of @f has no shape: 'shape' is null, but the rank is 1");
  input.shape = shape;
  input.data = NULL;
  OK(ssaModuleEvaluate(module, "f", &input, 1, &output, 1, NULL));
  FAILS(ssaArrayGetData(output, SSA_DTYPE_F32, NULL), SSA_ERROR_USAGE, "ssaArrayGetData: 'data' is null");
  ssaArrayDestroy(output);
  /* Nothing in, nothing out. */
  OK(ssaModuleEvaluate(module, "nothing", NULL, 0, NULL, 0, NULL));
}

int main(void) {
  SSAContext *context;
  OK(ssaContextCreate(&context));
  SSAModule *module = parse(context, "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }\n"
                                     "func.func @nothing() { return }\n");
  testErrors(context, module);
  testEvaluate(module);

  CHECK(ssaErrorGetKind(NULL) == SSA_ERROR_NONE && !ssaErrorGetMessage(NULL));
  CHECK(!ssaFunctionGetName(NULL) && !ssaFunctionGetNumArguments(NULL) && !ssaFunctionGetNumResults(NULL));
  CHECK(!ssaFunctionGetArgumentName(NULL, 0) && !ssaFunctionGetArgumentType(NULL, 0));
  CHECK(!ssaFunctionGetResultType(NULL, 0));
  CHECK(!ssaTypeGetText(NULL) && ssaTypeGetDType(NULL) == SSA_DTYPE_NONE);
  CHECK(ssaTypeGetRank(NULL) == -1 && !ssaTypeGetShape(NULL));
  CHECK(ssaArrayGetDType(NULL) == SSA_DTYPE_NONE && !ssaArrayGetRank(NULL) && !ssaArrayGetShape(NULL));
  CHECK(!ssaArrayGetNumElements(NULL));
  ssaErrorDestroy(NULL);
  ssaStringFree(NULL);
  ssaModuleDestroy(module);
  ssaModuleDestroy(NULL);
  ssaFunctionDestroy(NULL);
  ssaArrayDestroy(NULL);
  ssaContextDestroy(context);
  ssaContextDestroy(NULL);
  return finish();
}
