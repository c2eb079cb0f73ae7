//===- Context.cpp - Contexts, errors and diagnostics of the C API --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "ssa/InitAll.h"
#include "ssa/Version.h"
#include "llvm/Config/llvm-config.h"
#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace mlir::ssa::capi;

//===----------------------------------------------------------------------===//
// Versions and errors
//===----------------------------------------------------------------------===//

uint32_t ssaGetApiVersion(void) { return SSA_API_VERSION_MAJOR << 16 | SSA_API_VERSION_MINOR; }

const char *ssaGetVersionText(void) { return SSA_VERSION_STRING " (LLVM " LLVM_VERSION_STRING ")"; }

SSAErrorKind ssaErrorGetKind(const SSAError *error) { return error ? error->kind : SSA_ERROR_NONE; }

const char *ssaErrorGetMessage(const SSAError *error) { return error ? error->message.c_str() : nullptr; }

void ssaErrorDestroy(SSAError *error) { delete error; }

void ssaStringFree(char *string) { std::free(string); }

SSAError *mlir::ssa::capi::makeError(SSAErrorKind kind, const Twine &message) {
  return new SSAError{kind, StringRef(message.str()).rtrim().str()};
}

SSAError *mlir::ssa::capi::giveString(StringRef function, StringRef text, char **string) {
  // The caller's language may have no other way to free it than through ssaStringFree.
  *string = static_cast<char *>(std::malloc(text.size() + 1));
  if (!*string)
    return makeError(SSA_ERROR_USAGE, function + ": no memory for " + Twine(text.size()) + " bytes");
  std::memcpy(*string, text.data(), text.size());
  (*string)[text.size()] = 0;
  return nullptr;
}

SSAError *mlir::ssa::capi::checkParameters(StringRef function, ArrayRef<Parameter> parameters) {
  for (const Parameter &parameter : parameters)
    if (!parameter.pointer)
      return makeError(SSA_ERROR_USAGE, function + ": '" + parameter.name + "' is null");
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

ContextState::ContextState() {
  DialectRegistry registry;
  ssa::registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  // Places are told by file, line and source; printing the op as a note would say it again.
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) { handle(diagnostic); });
}

/// The place in a file that a location stands for; null if it is none.
static FileLineColRange getPlace(Location location) {
  return static_cast<LocationAttr>(location).findInstanceOf<FileLineColRange>();
}

/// The line of the source that a diagnostic is about, and a caret below it; empty if the source does not have it.
/// Constants can make lines of any length, which nobody reads.
static std::string quoteSource(const llvm::MemoryBuffer *source, FileLineColRange place) {
  constexpr size_t maxLength = 300;
  if (!source || source->getBufferIdentifier() != place.getFilename().getValue() || !place.getStartLine())
    return "";
  StringRef rest = source->getBuffer(), line;
  for (unsigned i = 0; i < place.getStartLine(); ++i) {
    if (rest.empty())
      return "";
    std::tie(line, rest) = rest.split('\n');
  }
  line = line.rtrim();
  size_t column = place.getStartColumn();
  if (line.empty() || line.size() > maxLength || !column || column > line.size() + 1)
    return "";
  std::string caret;
  for (char c : line.take_front(column - 1))
    caret += c == '\t' ? '\t' : ' ';
  return (line + "\n" + caret + "^\n").str();
}

static std::pair<SSASeverity, StringRef> getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return {SSA_SEVERITY_ERROR, "error"};
  case DiagnosticSeverity::Warning:
    return {SSA_SEVERITY_WARNING, "warning"};
  case DiagnosticSeverity::Remark:
    return {SSA_SEVERITY_REMARK, "remark"};
  case DiagnosticSeverity::Note:
    return {SSA_SEVERITY_NOTE, "note"};
  }
  llvm_unreachable("unknown severity");
}

void ContextState::handleOne(Diagnostic &diagnostic, bool isError) {
  auto [severity, name] = getSeverity(diagnostic.getSeverity());
  std::string message = diagnostic.str(), file;
  FileLineColRange place = getPlace(diagnostic.getLocation());
  unsigned line = 0, column = 0;
  if (place) {
    file = place.getFilename().str();
    line = place.getStartLine();
    column = place.getStartColumn();
  }
  if (isError) {
    if (place)
      errors += (file + ":" + Twine(line) + ":" + Twine(column) + ": ").str();
    errors += (name + ": " + message + "\n").str();
    if (place)
      errors += quoteSource(source, place);
  }
  if (callback)
    callback(severity, message.c_str(), file.c_str(), line, column, userData);
}

void ContextState::handle(Diagnostic &diagnostic) {
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  handleOne(diagnostic, isError);
  for (Diagnostic &note : diagnostic.getNotes())
    handleOne(note, isError);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Call::Call(StringRef function, SSAContext *handle, ArrayRef<Parameter> others) {
  refusal = checkParameters(function, {{"context", handle}});
  if (refusal)
    return;
  context = handle->state;
  begin(function, others);
}

Call::Call(StringRef function, SSAModule *handle, ArrayRef<Parameter> others) {
  refusal = checkParameters(function, {{"module", handle}});
  if (refusal)
    return;
  module = handle->state;
  context = module->context;
  begin(function, others);
  if (reserved)
    setSource(module->source.get());
}

void Call::begin(StringRef function, ArrayRef<Parameter> others) {
  refusal = checkParameters(function, others);
  if (refusal)
    return;
  reserved = !context->busy.exchange(true);
  if (reserved)
    context->errors.clear();
  else
    refusal = makeError(SSA_ERROR_USAGE, function + ": the context is in use by another call, from another thread or "
                                                    "around this callback");
}

Call::~Call() {
  if (!reserved)
    return;
  context->source = nullptr;
  context->busy = false;
}

SSAError *Call::fail(SSAErrorKind kind, const Twine &fallback) {
  return context->errors.empty() ? makeError(kind, fallback) : makeError(kind, context->errors);
}

SSAError *Call::verify() {
  if (!module->verified && failed(mlir::verify(module->op->getOperation())))
    return fail(SSA_ERROR_VERIFY, "the module is not valid");
  module->verified = true;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

SSAError *ssaContextCreate(SSAContext **context) {
  if (SSAError *error = checkParameters(__func__, {{"context", context}}))
    return error;
  *context = new SSAContext{std::make_shared<ContextState>()};
  return nullptr;
}

void ssaContextDestroy(SSAContext *context) { delete context; }

SSAError *ssaContextSetDiagnosticCallback(SSAContext *context, SSADiagnosticCallback callback, void *userData) {
  Call call(__func__, context);
  if (SSAError *error = call.takeRefusal())
    return error;
  call.getState()->callback = callback;
  call.getState()->userData = userData;
  return nullptr;
}
