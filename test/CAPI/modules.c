// RUN: %capi_cc -o %t %s && %t %t.mlir
/* Parsing, diagnostics, verification, printing, pipelines. */

#include "Inputs/check.h"

static const char *text = "func.func @f(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {\n"
                          "  %b = arith.addf %a, %a : tensor<?x2xf32>\n"
                          "  %c = arith.addf %a, %a : tensor<?x2xf32>\n"
                          "  %d = arith.mulf %b, %c : tensor<?x2xf32>\n"
                          "  return %d : tensor<?x2xf32>\n"
                          "}\n";

/* More forced blocks than the list holds. */
static const char *invalid = "func.func @f(%s: tensor<1x2x8x16xf32>, %k: tensor<1x2x1024x64xf32>) {\n"
                             "\t%sel = ssa.topk %s of %k {init_blocks = 1, local_blocks = 4}\n"
                             "    : tensor<1x2x8x16xf32>, tensor<1x2x1024x64xf32>\n"
                             "    -> !ssa.selection<1x2x8x4, key_block = 64, sorted>\n"
                             "  return\n"
                             "}\n";

typedef struct Diagnostic {
  SSASeverity severity;
  char message[200], file[50];
  uint32_t line, column;
} Diagnostic;

typedef struct Log {
  int count;
  Diagnostic entries[8];
} Log;

static void record(SSASeverity severity, const char *message, const char *file, uint32_t line, uint32_t column,
                   void *userData) {
  Log *log = userData;
  if (log->count < 8) {
    Diagnostic *entry = &log->entries[log->count];
    entry->severity = severity;
    snprintf(entry->message, sizeof(entry->message), "%s", message);
    snprintf(entry->file, sizeof(entry->file), "%s", file);
    entry->line = line;
    entry->column = column;
  }
  ++log->count;
}

static void testVersions(void) {
  CHECK(ssaGetApiVersion() == (SSA_API_VERSION_MAJOR << 16 | SSA_API_VERSION_MINOR));
  CHECK(strstr(ssaGetVersionText(), "(LLVM 22.1."));
}

static void testSyntaxErrors(SSAContext *context) {
  static const char *bad = "func.func @f(%a: f32) {\n  return %b : f32\n}\n";
  SSAModule *module = (SSAModule *)&bad;
  Log log = {0};
  OK(ssaContextSetDiagnosticCallback(context, record, &log));
  FAILS(ssaModuleParse(context, bad, strlen(bad), "bad.mlir", &module), SSA_ERROR_SYNTAX,
        "bad.mlir:2:10: error: use of undeclared SSA value name\n  return %b : f32\n         ^");
  CHECK(module == NULL);
  CHECK(log.count == 1 && log.entries[0].severity == SSA_SEVERITY_ERROR);
  CHECK(!strcmp(log.entries[0].message, "use of undeclared SSA value name"));
  CHECK(!strcmp(log.entries[0].file, "bad.mlir") && log.entries[0].line == 2 && log.entries[0].column == 10);

  /* Only the given length is read, and without a callback nothing else changes. */
  OK(ssaContextSetDiagnosticCallback(context, NULL, NULL));
  FAILS(ssaModuleParse(context, text, 20, NULL, &module), SSA_ERROR_SYNTAX, "<memory>:1:");
  CHECK(log.count == 1);
  OK(ssaModuleParse(context, "}", 0, NULL, &module));
  ssaModuleDestroy(module);
}

/* Depth that could exhaust the stack is an error; what only looks deep is not. */
static void testNesting(SSAContext *context) {
  enum { count = 10000 };
  static char deep[count + 100], flat[2 * count + 100];
  SSAModule *module;
  strcpy(deep, "module attributes {a = ");
  memset(deep + strlen(deep), '[', count);
  FAILS(ssaModuleParse(context, deep, strlen(deep), "deep.mlir", &module), SSA_ERROR_SYNTAX,
        "deep.mlir:1:523: error: brackets are nested more than 500 deep");
  CHECK(module == NULL);
  strcpy(flat, "module attributes {a = \"\\\"");
  memset(flat + strlen(flat), '<', count);
  strcat(flat, "\"} {} // ");
  memset(flat + strlen(flat), '(', count);
  OK(ssaModuleParse(context, flat, strlen(flat), "flat.mlir", &module));
  ssaModuleDestroy(module);
}

static void testVerifyErrors(SSAContext *context) {
  Log log = {0};
  SSAModule *module = parse(context, invalid);
  size_t count = 1;
  char *printed;
  OK(ssaContextSetDiagnosticCallback(context, record, &log));
  FAILS(ssaModuleVerify(module), SSA_ERROR_VERIFY,
        "test.mlir:2:9: error: 'ssa.topk' op expected 'init_blocks' + 'local_blocks' to be at most 4");
  CHECK(log.count == 1 && log.entries[0].line == 2 && log.entries[0].column == 9);
  /* The caret stands below the op: a tab is as wide there as in the source. */
  FAILS(ssaModuleVerify(module), SSA_ERROR_VERIFY, "local_blocks = 4}\n\t       ^");

  /* What builds on a valid module says the same; printing works. */
  FAILS(ssaModuleGetNumFunctions(module, &count), SSA_ERROR_VERIFY, "to be at most 4");
  CHECK(count == 0);
  FAILS(ssaModuleRunPipeline(module, "ssa-optimize"), SSA_ERROR_VERIFY, "to be at most 4");
  FAILS(ssaModuleEvaluate(module, "f", NULL, 0, NULL, 0, NULL), SSA_ERROR_VERIFY, "to be at most 4");
  OK(ssaModulePrint(module, &printed));
  CHECK(strstr(printed, "\"ssa.topk\"("));
  ssaStringFree(printed);
  ssaModuleDestroy(module);
  OK(ssaContextSetDiagnosticCallback(context, NULL, NULL));
}

static void testNotes(SSAContext *context) {
  Log log = {0};
  SSAModule *module = parse(context, "func.func private @f()\nfunc.func private @f()\n");
  OK(ssaContextSetDiagnosticCallback(context, record, &log));
  FAILS(ssaModuleVerify(module), SSA_ERROR_VERIFY, "test.mlir:1:1: note: see existing symbol definition here");
  CHECK(log.count == 2);
  CHECK(log.entries[0].severity == SSA_SEVERITY_ERROR && log.entries[0].line == 2);
  CHECK(log.entries[1].severity == SSA_SEVERITY_NOTE && log.entries[1].line == 1);
  ssaModuleDestroy(module);
  OK(ssaContextSetDiagnosticCallback(context, NULL, NULL));
}

static void testFiles(SSAContext *context, const char *path) {
  SSAModule *module;
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(text, 1, strlen(text), file) == strlen(text) && !fclose(file));
  OK(ssaModuleParseFile(context, path, &module));
  OK(ssaModuleVerify(module));
  ssaModuleDestroy(module);
  FAILS(ssaModuleParseFile(context, "/no/such.mlir", &module), SSA_ERROR_FILE,
        "cannot read '/no/such.mlir': No such file or directory");
  CHECK(module == NULL);
  FAILS(ssaModuleParseFile(context, "/", &module), SSA_ERROR_FILE, "cannot read '/': ");
}

static void testPipelines(SSAContext *context) {
  static const char *const good[] = {"ssa-optimize", " builtin.module(ssa-optimize) ", "cse,canonicalize",
                                     "builtin.module(func.func(cse))"};
  static const char *foldable = "func.func @f(%a: i32) -> (i32, i32) {\n"
                                "  %zero = arith.constant 0 : i32\n"
                                "  %b = arith.addi %a, %zero : i32\n"
                                "  %c = arith.addi %a, %zero : i32\n"
                                "  return %b, %c : i32, i32\n"
                                "}\n";
  SSAModule *module, *again;
  char *before, *after;
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
    module = parse(context, text);
    OK(ssaModuleRunPipeline(module, good[i]));
    OK(ssaModulePrint(module, &after));
    /* One of the two additions is gone; what is printed can be read. */
    CHECK(strstr(after, "arith.addf") && !strstr(strstr(after, "arith.addf") + 1, "arith.addf"));
    again = parse(context, after);
    OK(ssaModuleVerify(again));
    ssaModuleDestroy(again);
    ssaStringFree(after);
    ssaModuleDestroy(module);
  }

  module = parse(context, foldable);
  OK(ssaModulePrint(module, &before));
  FAILS(ssaModuleRunPipeline(module, "ssa-optimise"), SSA_ERROR_PIPELINE,
        "'ssa-optimise' does not refer to a registered pass or pass pipeline");
  FAILS(ssaModuleRunPipeline(module, "builtin.module(nope)"), SSA_ERROR_PIPELINE, "'nope' does not refer");
  FAILS(ssaModuleRunPipeline(module, "func.func(cse"), SSA_ERROR_PIPELINE, "pipeline 'func.func(cse'");
  /* The first pass changes the module, the second fails: nothing of it is left. */
  FAILS(ssaModuleRunPipeline(module, "cse,canonicalize{max-iterations=1 test-convergence=true}"), SSA_ERROR_PIPELINE,
        "pipeline 'cse,canonicalize{max-iterations=1 test-convergence=true}' failed");
  OK(ssaModulePrint(module, &after));
  CHECK(!strcmp(before, after));
  ssaStringFree(before);
  ssaStringFree(after);
  ssaModuleDestroy(module);
}

/* Handles may go in any order. */
static void testOrder(void) {
  SSAContext *context;
  OK(ssaContextCreate(&context));
  SSAModule *module = parse(context, text);
  SSAFunction *function;
  OK(ssaModuleGetFunction(module, 0, &function));
  ssaContextDestroy(context);
  OK(ssaModuleVerify(module));
  ssaModuleDestroy(module);
  CHECK(!strcmp(ssaFunctionGetName(function), "f"));
  ssaFunctionDestroy(function);
}

int main(int argc, char **argv) {
  SSAContext *context;
  CHECK(argc == 2);
  OK(ssaContextCreate(&context));
  testVersions();
  testSyntaxErrors(context);
  testNesting(context);
  testVerifyErrors(context);
  testNotes(context);
  testFiles(context, argv[1]);
  testPipelines(context);
  testOrder();
  ssaContextDestroy(context);
  return finish();
}
