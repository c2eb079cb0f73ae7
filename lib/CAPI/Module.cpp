//===- Module.cpp - Modules and functions of the C API --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "ssa/InitAll.h"
#include "ssa/Reference/ArgumentNames.h"
#include "ssa/Reference/Tensor.h"
#include "llvm/Support/SourceMgr.h"
#include <mutex>

using namespace mlir;
using namespace mlir::ssa::capi;

struct SSAFunction {
  struct Argument {
    std::string name;
    SSAType type;
  };
  std::string name;
  std::vector<Argument> arguments;
  std::vector<SSAType> results;
};

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The parser descends into brackets, on a stack of the caller's that no one knows the size of. What people and
/// programs write is nested some ten deep.
static constexpr int64_t maxNesting = 500;

/// Where text is nested too deep; null if it is not. Brackets in strings and comments do not count, nor do arrows.
static const char *findDeepNesting(StringRef text) {
  int64_t depth = 0;
  bool inString = false;
  for (const char *c = text.begin(), *end = text.end(); c < end; ++c) {
    bool isOperator = c + 1 < end && c[1] == '=';
    if (inString) {
      inString = *c != '"' && *c != '\n';
      c += *c == '\\' && c + 1 < end;
    } else if (*c == '"') {
      inString = true;
    } else if (*c == '/' && c + 1 < end && c[1] == '/') {
      c += StringRef(c, end - c).take_until([](char d) { return d == '\n'; }).size();
    } else if (*c == '-' && c + 1 < end && c[1] == '>') {
      ++c;
    } else if (StringRef("([{").contains(*c) || (*c == '<' && !isOperator)) {
      if (++depth > maxNesting)
        return c;
    } else if (StringRef(")]}").contains(*c) || (*c == '>' && !isOperator)) {
      depth = std::max<int64_t>(depth - 1, 0);
    }
  }
  return nullptr;
}

/// Parses `source`, which the module keeps for its diagnostics.
static SSAError *parse(Call &call, std::unique_ptr<llvm::MemoryBuffer> source, SSAModule **module) {
  llvm::SourceMgr sourceMgr;
  sourceMgr.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(source->getMemBufferRef()), SMLoc());
  call.setSource(source.get());
  if (const char *place = isBytecode(*source) ? nullptr : findDeepNesting(source->getBuffer())) {
    auto [line, column] = sourceMgr.getLineAndColumn(SMLoc::getFromPointer(place));
    emitError(FileLineColLoc::get(call.getContext(), source->getBufferIdentifier(), line, column))
        << "brackets are nested more than " << maxNesting << " deep";
    return call.fail(SSA_ERROR_SYNTAX, "");
  }
  ParserConfig config(call.getContext(), /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> op = ssa::reference::parseNamed(sourceMgr, config);
  if (!op)
    return call.fail(SSA_ERROR_SYNTAX, source->getBufferIdentifier() + ": the text cannot be parsed");
  auto state = std::make_shared<ModuleState>();
  state->context = call.getState();
  state->source = std::move(source);
  state->op = std::move(op);
  *module = new SSAModule{std::move(state)};
  return nullptr;
}

SSAError *ssaModuleParse(SSAContext *context, const char *text, size_t length, const char *bufferName,
                         SSAModule **module) {
  if (module)
    *module = nullptr;
  Call call(__func__, context, {{"text", text}, {"module", module}});
  if (SSAError *error = call.takeRefusal())
    return error;
  // The copy ends with a null, which MLIR's lexer needs.
  auto source = llvm::MemoryBuffer::getMemBufferCopy(StringRef(text, length), bufferName ? bufferName : "<memory>");
  return parse(call, std::move(source), module);
}

SSAError *ssaModuleParseFile(SSAContext *context, const char *path, SSAModule **module) {
  if (module)
    *module = nullptr;
  Call call(__func__, context, {{"path", path}, {"module", module}});
  if (SSAError *error = call.takeRefusal())
    return error;
  // A mapped file could change under its reader.
  auto source = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true,
                                            /*IsVolatile=*/true);
  if (!source)
    return makeError(SSA_ERROR_FILE, "cannot read '" + StringRef(path) + "': " + source.getError().message());
  return parse(call, std::move(*source), module);
}

void ssaModuleDestroy(SSAModule *module) { delete module; }

SSAError *ssaModuleVerify(SSAModule *module) {
  Call call(__func__, module);
  if (SSAError *error = call.takeRefusal())
    return error;
  return call.verify();
}

SSAError *ssaModulePrint(SSAModule *module, char **text) {
  if (text)
    *text = nullptr;
  Call call(__func__, module, {{"text", text}});
  if (SSAError *error = call.takeRefusal())
    return error;
  std::string printed;
  llvm::raw_string_ostream os(printed);
  call.getModule().op->print(os);
  return giveString(__func__, printed, text);
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

/// Fills `pm` with a pipeline that may be wrapped in builtin.module(..); parsing it into an anchored manager as it
/// stands would nest it, and run nothing.
static LogicalResult parsePipeline(StringRef text, PassManager &pm, raw_ostream &errors) {
  // The registry is one for the process, and only ever grows.
  static std::once_flag registered;
  std::call_once(registered, [] {
    registerTransformsPasses();
    ssa::registerPasses();
  });
  if (!text.starts_with("builtin.module("))
    return parsePassPipeline(text, pm, errors);
  FailureOr<OpPassManager> wrapped = parsePassPipeline(text, errors);
  if (failed(wrapped))
    return failure();
  static_cast<OpPassManager &>(pm) = std::move(*wrapped);
  return success();
}

SSAError *ssaModuleRunPipeline(SSAModule *module, const char *pipeline) {
  Call call(__func__, module, {{"pipeline", pipeline}});
  if (SSAError *error = call.takeRefusal())
    return error;
  StringRef text = StringRef(pipeline).trim();
  PassManager pm(call.getContext(), ModuleOp::getOperationName());
  std::string problems;
  llvm::raw_string_ostream os(problems);
  if (failed(parsePipeline(text, pm, os)))
    return makeError(SSA_ERROR_PIPELINE, "pipeline '" + text + "': " + problems);
  if (SSAError *error = call.verify())
    return error;
  OwningOpRef<ModuleOp> changed = call.getModule().op->clone();
  if (failed(pm.run(*changed)))
    return call.fail(SSA_ERROR_PIPELINE, "pipeline '" + text + "' failed");
  call.getModule().op = std::move(changed);
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

SSADType mlir::ssa::capi::getDType(Type elementType) {
  if (!ssa::reference::Tensor::isSupported(elementType))
    return SSA_DTYPE_NONE;
  if (elementType.isF64())
    return SSA_DTYPE_F64;
  if (elementType.isF16())
    return SSA_DTYPE_F16;
  if (elementType.isBF16())
    return SSA_DTYPE_BF16;
  if (isa<Float8E4M3FNType>(elementType))
    return SSA_DTYPE_F8E4M3;
  if (isa<FloatType>(elementType))
    return elementType.getIntOrFloatBitWidth() <= 32 ? SSA_DTYPE_F32 : SSA_DTYPE_NONE;
  unsigned width = elementType.isIndex() ? 64 : elementType.getIntOrFloatBitWidth();
  if (width == 1)
    return SSA_DTYPE_BOOL;
  return width <= 8 ? SSA_DTYPE_I8 : width <= 16 ? SSA_DTYPE_I16 : width <= 32 ? SSA_DTYPE_I32 : SSA_DTYPE_I64;
}

SSAType mlir::ssa::capi::describeType(Type type) {
  SSAType result;
  llvm::raw_string_ostream(result.text) << type;
  auto shaped = dyn_cast<ShapedType>(type);
  // What the interpreter holds: scalars, ranked tensors, and selections.
  if (shaped && !isa<RankedTensorType>(type) && type.getDialect().getNamespace() != "ssa")
    return result;
  result.dtype = getDType(getElementTypeOrSelf(type));
  if (result.dtype == SSA_DTYPE_NONE)
    return result;
  result.rank = shaped ? shaped.getRank() : 0;
  for (int32_t i = 0; i < result.rank; ++i)
    result.shape.push_back(shaped.isDynamicDim(i) ? -1 : shaped.getDimSize(i));
  return result;
}

const char *ssaTypeGetText(const SSAType *type) { return type ? type->text.c_str() : nullptr; }

SSADType ssaTypeGetDType(const SSAType *type) { return type ? type->dtype : SSA_DTYPE_NONE; }

int32_t ssaTypeGetRank(const SSAType *type) { return type ? type->rank : -1; }

const int64_t *ssaTypeGetShape(const SSAType *type) { return type && type->rank > 0 ? type->shape.data() : nullptr; }

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static SmallVector<FunctionOpInterface> getFunctions(ModuleOp module) {
  SmallVector<FunctionOpInterface> functions;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      functions.push_back(function);
  return functions;
}

static SSAFunction *describeFunction(FunctionOpInterface function) {
  auto *result = new SSAFunction;
  result->name = function.getName().str();
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    result->arguments.push_back(
        {StringRef(ssa::reference::getArgumentName(function, i)).ltrim('%').str(), describeType(type)});
  for (Type type : function.getResultTypes())
    result->results.push_back(describeType(type));
  return result;
}

FunctionOpInterface mlir::ssa::capi::findFunction(ModuleState &module, StringRef name, std::string &problem) {
  std::string known;
  for (FunctionOpInterface function : getFunctions(*module.op)) {
    if (function.getName() == name)
      return function;
    known += (known.empty() ? "@" : ", @") + function.getName().str();
  }
  problem = ("no function @" + name + " with a body in '" + module.source->getBufferIdentifier() + "'; it has " +
             (known.empty() ? "none" : known))
                .str();
  return nullptr;
}

SSAError *ssaModuleGetNumFunctions(SSAModule *module, size_t *count) {
  if (count)
    *count = 0;
  Call call(__func__, module, {{"count", count}});
  if (SSAError *error = call.takeRefusal())
    return error;
  if (SSAError *error = call.verify())
    return error;
  *count = getFunctions(*call.getModule().op).size();
  return nullptr;
}

SSAError *ssaModuleGetFunction(SSAModule *module, size_t index, SSAFunction **function) {
  if (function)
    *function = nullptr;
  Call call(__func__, module, {{"function", function}});
  if (SSAError *error = call.takeRefusal())
    return error;
  if (SSAError *error = call.verify())
    return error;
  SmallVector<FunctionOpInterface> functions = getFunctions(*call.getModule().op);
  if (index >= functions.size())
    return makeError(SSA_ERROR_USAGE, "ssaModuleGetFunction: expected 'index' to be below " + Twine(functions.size()) +
                                          ", the number of functions, but got " + Twine(index));
  *function = describeFunction(functions[index]);
  return nullptr;
}

SSAError *ssaModuleFindFunction(SSAModule *module, const char *name, SSAFunction **function) {
  if (function)
    *function = nullptr;
  Call call(__func__, module, {{"name", name}, {"function", function}});
  if (SSAError *error = call.takeRefusal())
    return error;
  if (SSAError *error = call.verify())
    return error;
  std::string problem;
  FunctionOpInterface found = findFunction(call.getModule(), name, problem);
  if (!found)
    return makeError(SSA_ERROR_USAGE, problem);
  *function = describeFunction(found);
  return nullptr;
}

void ssaFunctionDestroy(SSAFunction *function) { delete function; }

const char *ssaFunctionGetName(const SSAFunction *function) { return function ? function->name.c_str() : nullptr; }

size_t ssaFunctionGetNumArguments(const SSAFunction *function) { return function ? function->arguments.size() : 0; }

size_t ssaFunctionGetNumResults(const SSAFunction *function) { return function ? function->results.size() : 0; }

const char *ssaFunctionGetArgumentName(const SSAFunction *function, size_t index) {
  return index < ssaFunctionGetNumArguments(function) ? function->arguments[index].name.c_str() : nullptr;
}

const SSAType *ssaFunctionGetArgumentType(const SSAFunction *function, size_t index) {
  return index < ssaFunctionGetNumArguments(function) ? &function->arguments[index].type : nullptr;
}

const SSAType *ssaFunctionGetResultType(const SSAFunction *function, size_t index) {
  return index < ssaFunctionGetNumResults(function) ? &function->results[index] : nullptr;
}
