//===- Handles.h - What the handles of the C API hold -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CAPI_HANDLES_H
#define SSA_LIB_CAPI_HANDLES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "ssa-c/SSA.h"
#include "llvm/Support/MemoryBuffer.h"
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace mlir::ssa::capi {

/// A context with what a call on it needs.
struct ContextState {
  ContextState();

  MLIRContext context;
  SSADiagnosticCallback callback = nullptr;
  void *userData = nullptr;

  /// True during a call.
  std::atomic<bool> busy{false};
  /// The errors of the current call, and the source that they are about (may be null).
  std::string errors;
  const llvm::MemoryBuffer *source = nullptr;

private:
  /// Sends a diagnostic with its notes to the callback, and keeps the text of errors.
  void handle(Diagnostic &diagnostic);
  void handleOne(Diagnostic &diagnostic, bool isError);
};

/// A module; its members are destroyed in reverse, the context last.
struct ModuleState {
  std::shared_ptr<ContextState> context;
  std::unique_ptr<llvm::MemoryBuffer> source;
  OwningOpRef<ModuleOp> op;
  bool verified = false;
};

} // namespace mlir::ssa::capi

struct SSAError {
  SSAErrorKind kind;
  std::string message;
};

struct SSAContext {
  std::shared_ptr<mlir::ssa::capi::ContextState> state;
};

struct SSAModule {
  std::shared_ptr<mlir::ssa::capi::ModuleState> state;
};

struct SSAType {
  std::string text;
  SSADType dtype = SSA_DTYPE_NONE;
  int32_t rank = -1;
  std::vector<int64_t> shape;
};

namespace mlir::ssa::capi {

/// A pointer that a function was given, with the name of the parameter.
struct Parameter {
  StringRef name;
  const void *pointer;
};

/// An error of kind SSA_ERROR_USAGE if one of the pointers is null; null otherwise.
SSAError *checkParameters(StringRef function, ArrayRef<Parameter> parameters);

/// A call of a function on a context or module. Checks its pointers, reserves the context, and keeps handles alive that
/// are destroyed meanwhile.
class Call {
public:
  Call(StringRef function, SSAContext *context, ArrayRef<Parameter> others = {});
  Call(StringRef function, SSAModule *module, ArrayRef<Parameter> others = {});
  ~Call();
  Call(const Call &) = delete;

  /// Why the call must not go on; null if it may.
  SSAError *takeRefusal() { return std::exchange(refusal, nullptr); }

  /// An error with what has been diagnosed in this call; with `fallback` if that is nothing.
  SSAError *fail(SSAErrorKind kind, const Twine &fallback);

  /// Verifies the module unless that has been done; an error if it is not valid.
  SSAError *verify();

  const std::shared_ptr<ContextState> &getState() const { return context; }
  MLIRContext *getContext() const { return &context->context; }
  ModuleState &getModule() const { return *module; }
  void setSource(const llvm::MemoryBuffer *source) { context->source = source; }

private:
  void begin(StringRef function, ArrayRef<Parameter> others);

  std::shared_ptr<ContextState> context;
  std::shared_ptr<ModuleState> module;
  SSAError *refusal = nullptr;
  bool reserved = false;
};

/// The kind in which elements of a type come and go.
SSADType getDType(Type elementType);

/// What the C API tells about a type.
SSAType describeType(Type type);

/// The function with a body of a verified module; null, and the reason in `problem`, if there is none of that name.
FunctionOpInterface findFunction(ModuleState &module, StringRef name, std::string &problem);

/// An error that is no diagnostic.
SSAError *makeError(SSAErrorKind kind, const Twine &message);

/// Gives the caller a copy, to be freed by ssaStringFree; an error if there is no memory for it.
SSAError *giveString(StringRef function, StringRef text, char **string);

} // namespace mlir::ssa::capi

#endif // SSA_LIB_CAPI_HANDLES_H
