//===- ArgumentNames.h - Names of function arguments ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_REFERENCE_ARGUMENTNAMES_H
#define SSA_REFERENCE_ARGUMENTNAMES_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace mlir {
class ModuleOp;
class ParserConfig;
} // namespace mlir

namespace mlir::ssa::reference {

/// Parses text or bytecode and verifies it. Arguments of functions in text keep their names, in their locations:
/// messages of the interpreter then say `argument 1 '%k'`. Null, after diagnostics, if the source is not right.
OwningOpRef<ModuleOp> parseNamed(const llvm::SourceMgr &sourceMgr, const ParserConfig &config);

/// The name of an argument with its `%`; empty if it has none.
std::string getArgumentName(FunctionOpInterface function, unsigned number);

/// "argument 1 '%k' of @nsa".
std::string describeArgument(FunctionOpInterface function, unsigned number);

/// "@nsa(%q: tensor<..>, %k: tensor<..>) -> tensor<..>".
std::string describeSignature(FunctionOpInterface function);

} // namespace mlir::ssa::reference

#endif // SSA_REFERENCE_ARGUMENTNAMES_H
