//===- Help.h - Help of the tools -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_TOOLS_HELP_H
#define SSA_TOOLS_HELP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ssa {

/// Prints `text` if help is asked for; true if so. The help that LLVM makes lists a thousand options, of which a
/// newcomer wants the few that matter: it is there for --help-all.
inline bool printHelp(int argc, char **argv, llvm::StringRef text) {
  static char help[] = "--help";
  for (char *&arg : llvm::MutableArrayRef(argv + 1, argc - 1)) {
    llvm::StringRef option(arg);
    if (option == "--help" || option == "-help" || option == "-h") {
      llvm::outs() << text;
      return true;
    }
    if (option == "--help-all" || option == "-help-all")
      arg = help;
  }
  return false;
}

} // namespace mlir::ssa

#endif // SSA_TOOLS_HELP_H
