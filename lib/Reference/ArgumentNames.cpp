//===- ArgumentNames.cpp - Names of function arguments --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Reference/ArgumentNames.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::ssa::reference;

/// Puts the `%name` of every function argument into its location.
static void nameArguments(ModuleOp module, const AsmParserState &state) {
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    const AsmParserState::BlockDefinition *block = state.getBlockDef(&function.getFunctionBody().front());
    if (!block)
      return;
    for (auto [argument, definition] : llvm::zip(function.getArguments(), block->arguments)) {
      SMRange range = definition.loc;
      if (!range.isValid())
        continue;
      StringRef name(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
      argument.setLoc(NameLoc::get(StringAttr::get(module.getContext(), name), argument.getLoc()));
    }
  });
}

OwningOpRef<ModuleOp> mlir::ssa::reference::parseNamed(const llvm::SourceMgr &sourceMgr, const ParserConfig &config) {
  const llvm::MemoryBuffer *buffer = sourceMgr.getMemoryBuffer(sourceMgr.getMainFileID());
  if (isBytecode(*buffer))
    return parseSourceFile<ModuleOp>(sourceMgr, config);

  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sourceMgr, &block, config, &state)))
    return nullptr;
  OwningOpRef<ModuleOp> module;
  if (llvm::hasSingleElement(block) && isa<ModuleOp>(block.front())) {
    module = cast<ModuleOp>(block.front());
    module->getOperation()->remove();
  } else {
    module = ModuleOp::create(FileLineColLoc::get(config.getContext(), buffer->getBufferIdentifier(), 0, 0));
    module->getBody()->getOperations().splice(module->getBody()->end(), block.getOperations());
  }
  nameArguments(*module, state);
  return module;
}

std::string mlir::ssa::reference::getArgumentName(FunctionOpInterface function, unsigned number) {
  if (function.isExternal())
    return "";
  auto name = dyn_cast<NameLoc>(function.getArgument(number).getLoc());
  return name ? ("%" + name.getName().getValue().ltrim('%')).str() : "";
}

std::string mlir::ssa::reference::describeArgument(FunctionOpInterface function, unsigned number) {
  std::string name = getArgumentName(function, number);
  return ("argument " + Twine(number) + (name.empty() ? "" : " '" + name + "'") + " of @" + function.getName()).str();
}

std::string mlir::ssa::reference::describeSignature(FunctionOpInterface function) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "@" << function.getName() << "(";
  llvm::ListSeparator separator;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    std::string name = getArgumentName(function, i);
    os << separator << name << (name.empty() ? "" : ": ") << type;
  }
  ArrayRef<Type> results = function.getResultTypes();
  os << ")" << (results.empty() ? "" : results.size() == 1 ? " -> " : " -> (");
  llvm::interleaveComma(results, os);
  os << (results.size() > 1 ? ")" : "");
  return text;
}
