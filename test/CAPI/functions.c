// RUN: %capi_cc -o %t %s && %t
/* Functions of a module, and the types of their arguments and results. */

#include "Inputs/check.h"

static const char *text =
    "func.func private @declared(%x: f32)\n"
    "func.func @attend(%q: tensor<?x8x?x64xbf16>, %sel: !ssa.selection<?x2x?x4, key_block = 64>, %scale: f32)\n"
    "    -> (tensor<?x8x?x64xbf16>, index) {\n"
    "  %n = arith.constant 7 : index\n"
    "  return %q, %n : tensor<?x8x?x64xbf16>, index\n"
    "}\n"
    "func.func @kinds(%a: tensor<f64>, %b: tensor<f32>, %c: tensor<f16>, %d: tensor<f8E4M3FN>, %e: tensor<i1>,\n"
    "    %f: tensor<i8>, %g: tensor<i16>, %h: tensor<i32>, %i: tensor<i64>, %j: tensor<f8E5M2>, %k: tensor<i4>,\n"
    "    %l: tensor<*xf32>, %m: memref<2xf32>, %n: tensor<complex<f32>>, %o: tensor<2x0xi1>) { return }\n";

static void testSignature(SSAModule *module) {
  SSAFunction *attend, *found;
  const SSAType *type;
  size_t count;
  OK(ssaModuleGetNumFunctions(module, &count));
  CHECK(count == 2); /* @declared has no body */
  OK(ssaModuleGetFunction(module, 0, &attend));
  CHECK(!strcmp(ssaFunctionGetName(attend), "attend"));
  CHECK(ssaFunctionGetNumArguments(attend) == 3 && ssaFunctionGetNumResults(attend) == 2);
  CHECK(!strcmp(ssaFunctionGetArgumentName(attend, 0), "q") && !strcmp(ssaFunctionGetArgumentName(attend, 2), "scale"));

  type = ssaFunctionGetArgumentType(attend, 0);
  CHECK(!strcmp(ssaTypeGetText(type), "tensor<?x8x?x64xbf16>"));
  CHECK(ssaTypeGetDType(type) == SSA_DTYPE_BF16 && ssaTypeGetRank(type) == 4);
  CHECK(ssaTypeGetShape(type)[0] == -1 && ssaTypeGetShape(type)[1] == 8 && ssaTypeGetShape(type)[2] == -1 &&
        ssaTypeGetShape(type)[3] == 64);
  type = ssaFunctionGetArgumentType(attend, 1);
  CHECK(!strcmp(ssaTypeGetText(type), "!ssa.selection<?x2x?x4, key_block = 64>"));
  CHECK(ssaTypeGetDType(type) == SSA_DTYPE_I32 && ssaTypeGetRank(type) == 4 && ssaTypeGetShape(type)[3] == 4);
  type = ssaFunctionGetArgumentType(attend, 2);
  CHECK(ssaTypeGetDType(type) == SSA_DTYPE_F32 && ssaTypeGetRank(type) == 0 && !ssaTypeGetShape(type));
  type = ssaFunctionGetResultType(attend, 1);
  CHECK(!strcmp(ssaTypeGetText(type), "index") && ssaTypeGetDType(type) == SSA_DTYPE_I64);

  OK(ssaModuleFindFunction(module, "kinds", &found));
  CHECK(ssaFunctionGetNumArguments(found) == 15 && ssaFunctionGetNumResults(found) == 0);
  ssaFunctionDestroy(found);

  /* What does not exist. */
  FAILS(ssaModuleGetFunction(module, 2, &found), SSA_ERROR_USAGE,
        "expected 'index' to be below 2, the number of functions, but got 2");
  CHECK(found == NULL);
  FAILS(ssaModuleFindFunction(module, "atend", &found), SSA_ERROR_USAGE,
        "no function @atend with a body in 'test.mlir'; it has @attend, @kinds");
  FAILS(ssaModuleFindFunction(module, "declared", &found), SSA_ERROR_USAGE, "no function @declared with a body");
  CHECK(!ssaFunctionGetArgumentName(attend, 3) && !ssaFunctionGetArgumentType(attend, 3));
  CHECK(!ssaFunctionGetResultType(attend, 2));
  ssaFunctionDestroy(attend);
}

static void testKinds(SSAModule *module) {
  static const SSADType kinds[] = {SSA_DTYPE_F64, SSA_DTYPE_F32,  SSA_DTYPE_F16,  SSA_DTYPE_F8E4M3, SSA_DTYPE_BOOL,
                                   SSA_DTYPE_I8,  SSA_DTYPE_I16,  SSA_DTYPE_I32,  SSA_DTYPE_I64,    SSA_DTYPE_F32,
                                   SSA_DTYPE_I8,  SSA_DTYPE_NONE, SSA_DTYPE_NONE, SSA_DTYPE_NONE,   SSA_DTYPE_BOOL};
  static const size_t sizes[] = {0, 8, 4, 2, 2, 1, 1, 1, 2, 4, 8};
  SSAFunction *function;
  OK(ssaModuleFindFunction(module, "kinds", &function));
  for (size_t i = 0; i < 15; ++i) {
    const SSAType *type = ssaFunctionGetArgumentType(function, i);
    CHECK(ssaTypeGetDType(type) == kinds[i]);
    CHECK(ssaTypeGetRank(type) == (i == 14 ? 2 : kinds[i] == SSA_DTYPE_NONE ? -1 : 0));
  }
  for (int i = 0; i <= 10; ++i)
    CHECK(ssaDTypeGetSize((SSADType)i) == sizes[i]);
  CHECK(!strcmp(ssaDTypeGetName(SSA_DTYPE_F8E4M3), "f8E4M3FN") && !strcmp(ssaDTypeGetName(SSA_DTYPE_I64), "i64"));
  CHECK(ssaDTypeGetSize((SSADType)11) == 0 && !strcmp(ssaDTypeGetName((SSADType)-1), "none"));
  ssaFunctionDestroy(function);
}

int main(void) {
  SSAContext *context;
  OK(ssaContextCreate(&context));
  SSAModule *module = parse(context, text);
  testSignature(module);
  testKinds(module);
  ssaModuleDestroy(module);
  ssaContextDestroy(context);
  return finish();
}
