/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Checks of the tests of the C API. Each test ends with `return finish();`. */

#ifndef CHECK_H
#define CHECK_H

#include "ssa-c/SSA.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int numChecks = 0, numFailures = 0;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    ++numChecks;                                                                                                       \
    if (!(condition)) {                                                                                                \
      ++numFailures;                                                                                                   \
      printf("%s:%d: expected %s\n", __FILE__, __LINE__, #condition);                                                  \
    }                                                                                                                  \
  } while (0)

/* Checks that a call succeeded. */
#define OK(call) checkOk(call, __FILE__, __LINE__)

/* Checks that a call failed with a kind of error and a text in its message. */
#define FAILS(call, kind, text) checkFails(call, kind, text, __FILE__, __LINE__)

static inline void checkOk(SSAError *error, const char *file, int line) {
  ++numChecks;
  if (!error)
    return;
  ++numFailures;
  printf("%s:%d: expected no error, but got: %s\n", file, line, ssaErrorGetMessage(error));
  ssaErrorDestroy(error);
}

static inline void checkFails(SSAError *error, SSAErrorKind kind, const char *text, const char *file, int line) {
  const char *message = error ? ssaErrorGetMessage(error) : "no error";
  ++numChecks;
  if (!error || ssaErrorGetKind(error) != kind || !strstr(message, text)) {
    ++numFailures;
    printf("%s:%d: expected an error of kind %d with '%s', but got one of kind %d: %s\n", file, line, (int)kind, text,
           (int)ssaErrorGetKind(error), message);
  }
  ssaErrorDestroy(error);
}

static inline SSAModule *parse(SSAContext *context, const char *text) {
  SSAModule *module;
  OK(ssaModuleParse(context, text, strlen(text), "test.mlir", &module));
  return module;
}

/* A dense array; the extents stay with the caller. */
static inline SSAArrayView view(SSADType dtype, int rank, const int64_t *shape, const void *data) {
  SSAArrayView result = {dtype, rank, shape, NULL, data};
  return result;
}

static inline const void *getData(SSAArray *array, SSADType dtype) {
  const void *data;
  OK(ssaArrayGetData(array, dtype, &data));
  return data;
}

static inline int finish(void) {
  printf("%d checks, %d failed\n", numChecks, numFailures);
  return numFailures || !numChecks;
}

#endif
