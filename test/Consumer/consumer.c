/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Evaluates a function through the C API. */

#include "ssa-c/SSA.h"
#include <stdio.h>
#include <string.h>

static const char *text = "func.func @scale(%x: tensor<?xbf16>) -> tensor<?xbf16> {\n"
                          "  %y = arith.addf %x, %x : tensor<?xbf16>\n"
                          "  return %y : tensor<?xbf16>\n"
                          "}\n";

int main(void) {
  const float x[] = {1.5f, -2, 1000};
  const int64_t shape[] = {3};
  const SSAArrayView input = {SSA_DTYPE_F32, 1, shape, NULL, x};
  SSAContext *context = NULL;
  SSAModule *module = NULL;
  SSAArray *output = NULL;
  const void *data = NULL;
  SSAError *error = ssaContextCreate(&context);
  if (!error)
    error = ssaModuleParse(context, text, strlen(text), "scale.mlir", &module);
  if (!error)
    error = ssaModuleEvaluate(module, "scale", &input, 1, &output, 1, NULL);
  if (!error)
    error = ssaArrayGetData(output, SSA_DTYPE_F32, &data);
  if (error)
    fprintf(stderr, "%s\n", ssaErrorGetMessage(error));
  else
    printf("doubled %g %g %g\n", ((const float *)data)[0], ((const float *)data)[1], ((const float *)data)[2]);
  ssaArrayDestroy(output);
  ssaModuleDestroy(module);
  ssaContextDestroy(context);
  ssaErrorDestroy(error);
  return error != NULL;
}
