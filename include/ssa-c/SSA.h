/*===- ssa-c/SSA.h - The C API --------------------------------------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*===----------------------------------------------------------------------===
|*
|* Reads, checks, simplifies, evaluates and compiles sparse attention written
|* in the ssa dialect. Plain C99; link libSSACompiler.
|*
|*   SSAContext *context;
|*   SSAModule *module = NULL;
|*   SSAError *error = ssaContextCreate(&context);
|*   if (!error)
|*     error = ssaModuleParseFile(context, "nsa.mlir", &module);
|*   if (!error)
|*     error = ssaModuleEvaluate(module, "nsa", inputs, 6, &output, 1, NULL);
|*   if (error)
|*     fprintf(stderr, "%s\n", ssaErrorGetMessage(error));
|*
|* Errors. A function that can fail returns an SSAError, NULL on success. The
|* caller destroys it. What the function would have given through a pointer
|* is NULL or 0 then. A null pointer where an object or a string is expected
|* is an error as well, unless the function's comment allows it; functions
|* that return no error take NULL and give NULL, 0 or SSA_DTYPE_NONE. No
|* exception leaves the library, and nothing here ends the process but, as in
|* all of LLVM, running out of memory. That arrays fit is checked before.
|*
|* Ownership. What a function gives as a handle (SSAContext, SSAModule,
|* SSAFunction, SSAArray, SSAError) belongs to the caller, who destroys it
|* with the function of that name, in any order: a module keeps what it needs
|* of its context. A const char * or other pointer that a function returns
|* belongs to the handle it was asked of, and lives as long. Strings are
|* null-terminated UTF-8. What the caller passes is copied during the call.
|*
|* Threads. Contexts are independent: any number of threads may use the
|* library, each with a context of its own. A context and what was made with
|* it serve one call at a time; a second one, from another thread or from a
|* callback, is an error. ssaArrayGetData and functions that return no error
|* may be called at any time, as long as the handle lives. An evaluation uses
|* all cores.
|*
|* Stability. Functions are added, never changed: a program built with one
|* version of this header runs with every later one of the same major number.
|*
\*===----------------------------------------------------------------------===*/

#ifndef SSA_C_SSA_H
#define SSA_C_SSA_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SSA_CAPI __attribute__((visibility("default")))
#else
#define SSA_CAPI
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------===*\
|* Versions
\*===----------------------------------------------------------------------===*/

#define SSA_API_VERSION_MAJOR 1
#define SSA_API_VERSION_MINOR 1

/* The version of the library that is running, major << 16 | minor. */
SSA_CAPI uint32_t ssaGetApiVersion(void);

/* The versions of the compiler and of the LLVM it stands on: "0.1.0 (LLVM 22.1.8)". Lives forever. */
SSA_CAPI const char *ssaGetVersionText(void);

/*===----------------------------------------------------------------------===*\
|* Errors
\*===----------------------------------------------------------------------===*/

typedef struct SSAError SSAError;

/* Who has to mend what. More may be added. */
typedef enum SSAErrorKind {
  SSA_ERROR_NONE = 0,     /* no error: NULL was asked */
  SSA_ERROR_USAGE = 1,    /* the call is wrong: null pointers, unknown names, a context in use */
  SSA_ERROR_FILE = 2,     /* a file cannot be read */
  SSA_ERROR_SYNTAX = 3,   /* the text cannot be parsed */
  SSA_ERROR_VERIFY = 4,   /* the module is not valid */
  SSA_ERROR_ARGUMENT = 5, /* an array does not fit the argument it is passed for */
  SSA_ERROR_EVALUATE = 6, /* the evaluation failed: sizes that do not agree, an op without a meaning here, memory */
  SSA_ERROR_PIPELINE = 7, /* a pipeline is unknown, or failed */
  SSA_ERROR_COMPILE = 8   /* the module has no kernels for a chip, or the chip is unknown (since 1.1) */
} SSAErrorKind;

SSA_CAPI SSAErrorKind ssaErrorGetKind(const SSAError *error);

/* One or more lines without a newline at the end. Diagnostics read "file:line:column: error: message" and are followed
 * by the line of the source and a caret, as compilers print them. */
SSA_CAPI const char *ssaErrorGetMessage(const SSAError *error);

SSA_CAPI void ssaErrorDestroy(SSAError *error);

/* Frees a string that a function gave through a char ** (NULL is allowed). */
SSA_CAPI void ssaStringFree(char *string);

/*===----------------------------------------------------------------------===*\
|* Contexts and diagnostics
\*===----------------------------------------------------------------------===*/

/* Owns types and threads. Making one takes some milliseconds; programs usually have one, or one a thread. */
typedef struct SSAContext SSAContext;

SSA_CAPI SSAError *ssaContextCreate(SSAContext **context);
SSA_CAPI void ssaContextDestroy(SSAContext *context);

typedef enum SSASeverity {
  SSA_SEVERITY_ERROR = 0,
  SSA_SEVERITY_WARNING = 1,
  SSA_SEVERITY_REMARK = 2,
  SSA_SEVERITY_NOTE = 3 /* adds to the diagnostic before it */
} SSASeverity;

/* Receives one diagnostic, during a call, on the thread of that call. `file` is the name of the buffer or file, "" if
 * the place is not known; `line` and `column` count from 1, 0 if they are not known. The strings live until the
 * callback returns. It must not call functions on the same context. */
typedef void (*SSADiagnosticCallback)(SSASeverity severity, const char *message, const char *file, uint32_t line,
                                      uint32_t column, void *userData);

/* Sends the diagnostics of later calls to `callback`, or nowhere if it is NULL, as at first. Warnings and remarks come
 * by this way only; errors are in the text of the SSAError, too. */
SSA_CAPI SSAError *ssaContextSetDiagnosticCallback(SSAContext *context, SSADiagnosticCallback callback, void *userData);

/*===----------------------------------------------------------------------===*\
|* Modules
\*===----------------------------------------------------------------------===*/

/* What stands in a file: functions. */
typedef struct SSAModule SSAModule;

/* Parses `length` bytes of text (or MLIR bytecode). `bufferName` is the file of diagnostics; NULL: "<memory>". Parsing
 * finds errors of syntax and unknown names; ssaModuleVerify, which everything but printing begins with, the others. */
SSA_CAPI SSAError *ssaModuleParse(SSAContext *context, const char *text, size_t length, const char *bufferName,
                                  SSAModule **module);

/* Parses a file. */
SSA_CAPI SSAError *ssaModuleParseFile(SSAContext *context, const char *path, SSAModule **module);

SSA_CAPI void ssaModuleDestroy(SSAModule *module);

/* Checks that the module is valid. */
SSA_CAPI SSAError *ssaModuleVerify(SSAModule *module);

/* Prints the module; in the generic form if it is not valid. The caller frees `*text` with ssaStringFree. */
SSA_CAPI SSAError *ssaModulePrint(SSAModule *module, char **text);

/* Runs passes, given as for `ssa-opt --pass-pipeline`, with or without "builtin.module(..)" around them:
 * "ssa-optimize", MLIR's own "canonicalize,cse". If this fails the module is as it was before. */
SSA_CAPI SSAError *ssaModuleRunPipeline(SSAModule *module, const char *pipeline);

/* Compiles the public functions for GPUs and gives a bundle: code for each chip with what a launcher has to do, one text
 * that docs/bundle.md describes. `chips` names them, "sm_90a" or "sm_90a,sm_100"; NULL: the one that the module names,
 * else sm_100a. Needs neither a GPU nor CUDA. The module stays as it is. The caller frees `*bundle` with ssaStringFree.
 * Since 1.1. */
SSA_CAPI SSAError *ssaModuleEmitBundle(SSAModule *module, const char *chips, char **bundle);

/*===----------------------------------------------------------------------===*\
|* Functions and types
\*===----------------------------------------------------------------------===*/

/* Kinds of elements, each with its layout in memory, in the byte order of the machine. */
typedef enum SSADType {
  SSA_DTYPE_NONE = 0,   /* nothing that can be passed */
  SSA_DTYPE_F64 = 1,    /* IEEE binary64 */
  SSA_DTYPE_F32 = 2,    /* IEEE binary32 */
  SSA_DTYPE_F16 = 3,    /* IEEE binary16 */
  SSA_DTYPE_BF16 = 4,   /* bfloat16: the upper half of a binary32 */
  SSA_DTYPE_F8E4M3 = 5, /* 8 bits, 4 of exponent, without infinities (f8E4M3FN) */
  SSA_DTYPE_BOOL = 6,   /* i1: one byte, 0 or not */
  SSA_DTYPE_I8 = 7,
  SSA_DTYPE_I16 = 8,
  SSA_DTYPE_I32 = 9, /* indices, and lists of selections */
  SSA_DTYPE_I64 = 10 /* i64 and index */
} SSADType;

/* Bytes of one element; 0 for values that are no kind. */
SSA_CAPI size_t ssaDTypeGetSize(SSADType dtype);

/* "f32", "bf16", "f8E4M3FN", "bool", "i32"; "none" for values that are no kind. Lives forever. */
SSA_CAPI const char *ssaDTypeGetName(SSADType dtype);

/* The signature of a function, as it was when it was asked for. Later changes of the module do not show. */
typedef struct SSAFunction SSAFunction;

/* How many functions with a body the module has. */
SSA_CAPI SSAError *ssaModuleGetNumFunctions(SSAModule *module, size_t *count);

/* The function number `index`, in the order of the source. */
SSA_CAPI SSAError *ssaModuleGetFunction(SSAModule *module, size_t index, SSAFunction **function);

/* The function called `name`, without "@". */
SSA_CAPI SSAError *ssaModuleFindFunction(SSAModule *module, const char *name, SSAFunction **function);

SSA_CAPI void ssaFunctionDestroy(SSAFunction *function);

SSA_CAPI const char *ssaFunctionGetName(const SSAFunction *function);
SSA_CAPI size_t ssaFunctionGetNumArguments(const SSAFunction *function);
SSA_CAPI size_t ssaFunctionGetNumResults(const SSAFunction *function);

/* The name of an argument in the source, without "%"; "" if the module was not text. NULL if there is no such argument.
 */
SSA_CAPI const char *ssaFunctionGetArgumentName(const SSAFunction *function, size_t index);

/* The type of an argument or a result. */
typedef struct SSAType SSAType;

/* NULL if there is no such argument or result. */
SSA_CAPI const SSAType *ssaFunctionGetArgumentType(const SSAFunction *function, size_t index);
SSA_CAPI const SSAType *ssaFunctionGetResultType(const SSAFunction *function, size_t index);

/* The type as it is written: "tensor<?x8x?x64xbf16>". */
SSA_CAPI const char *ssaTypeGetText(const SSAType *type);

/* The kind of an array that is passed for the type or comes back for it; SSA_DTYPE_NONE if the type can be neither. A
 * type without a kind of its own has the one that holds its values: f32, or the narrowest integer. */
SSA_CAPI SSADType ssaTypeGetDType(const SSAType *type);

/* The number of extents: 0 for scalars, -1 for NULL and types that cannot be passed. */
SSA_CAPI int32_t ssaTypeGetRank(const SSAType *type);

/* As many extents as the rank says, -1 where one is dynamic. NULL if the rank is not positive. */
SSA_CAPI const int64_t *ssaTypeGetShape(const SSAType *type);

/*===----------------------------------------------------------------------===*\
|* Arrays and evaluation
\*===----------------------------------------------------------------------===*/

/* An array of the caller's. Scalars have rank 0. Elements need no alignment. */
typedef struct SSAArrayView {
  SSADType dtype;
  int32_t rank;
  const int64_t *shape; /* `rank` extents, in elements; may be NULL if the rank is 0 */
  const int64_t
      *strides; /* `rank` distances, in elements: any, 0 and negative ones too. NULL: dense, last extent innermost */
  const void *data; /* the element at index 0, 0, ..; may be NULL if an extent is 0 */
} SSAArrayView;

/* An array of the library's: a result. */
typedef struct SSAArray SSAArray;

/* Hears how far an evaluation of some length is: the op that runs, and how much of it is done, 0 to 1. Called at most
 * about ten times a second, never twice at the same time, on whichever thread does the work. It must not call functions
 * on the same context. */
typedef void (*SSAProgressCallback)(const char *op, double fraction, void *userData);

/* Options of an evaluation. Set `size` to sizeof(SSAEvaluateOptions) and everything else to 0, then what is wanted. */
typedef struct SSAEvaluateOptions {
  size_t size;
  SSAProgressCallback progress; /* may be NULL */
  void *progressUserData;
  int64_t maxTensorBytes; /* most bytes that one tensor may take inside; 0: half of the machine's memory */
} SSAEvaluateOptions;

/* Evaluates the function `entry` on the CPU, with the reference interpreter: in double precision, every op's results
 * rounded once to the type that is written.
 *
 * There are as many `inputs` as the function has arguments. An array must have the kind of its argument
 * (ssaTypeGetDType), with two exceptions: f32 may be passed for any narrower floating point type and is rounded to
 * nearest, ties to even (a warning says so if finite values overflow), and i32 may be passed for `index`. Extents must
 * match those of the type, and where ops equate extents of several arguments, each other's.
 *
 * `outputs` receives as many arrays as the function has results, `numOutputs`; all are NULL after an error. `inputs`
 * and `outputs` may be NULL if their number is 0; `options` may be NULL. */
SSA_CAPI SSAError *ssaModuleEvaluate(SSAModule *module, const char *entry, const SSAArrayView *inputs, size_t numInputs,
                                     SSAArray **outputs, size_t numOutputs, const SSAEvaluateOptions *options);

SSA_CAPI void ssaArrayDestroy(SSAArray *array);

/* The kind of the result's type. */
SSA_CAPI SSADType ssaArrayGetDType(const SSAArray *array);

SSA_CAPI int32_t ssaArrayGetRank(const SSAArray *array);

/* As many extents as the rank says; NULL if it is 0. */
SSA_CAPI const int64_t *ssaArrayGetShape(const SSAArray *array);

SSA_CAPI int64_t ssaArrayGetNumElements(const SSAArray *array);

/* The elements as `dtype`, dense, last extent innermost. Floating point results can be had as any floating point kind,
 * rounded to nearest, ties to even; integers as any integer kind that holds them all. `*data` belongs to the array: it
 * lives until that is destroyed, and asking again gives the same pointer. It is not NULL, even where there are no
 * elements. */
SSA_CAPI SSAError *ssaArrayGetData(SSAArray *array, SSADType dtype, const void **data);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SSA_C_SSA_H */
