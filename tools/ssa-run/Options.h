//===- Options.h - The command line of ssa-run ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TOOLS_SSA_RUN_OPTIONS_H
#define SSA_TOOLS_SSA_RUN_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::ssa::reference {

/// What the command line asks for. Not by llvm::cl: its options share one name space with those of every library that
/// is linked, whose clashes end the program, and it writes some of its messages itself.
struct Options {
  bool help = false, print = false, time = false;
  std::string file, entry, device = "cpu", chip;
  SmallVector<std::string> inputs, outputs;
  unsigned numCores = 0;
  double progressAfter = 2;

  static llvm::Expected<Options> parse(ArrayRef<const char *> arguments);
};

} // namespace mlir::ssa::reference

#endif // SSA_TOOLS_SSA_RUN_OPTIONS_H
