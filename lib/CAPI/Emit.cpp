//===- Emit.cpp - Compiling with the C API --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "mlir/Support/Timing.h"
#include "ssa/Target/Bundle.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ssa::capi;

SSAError *ssaModuleEmitBundle(SSAModule *module, const char *chips, char **bundle) {
  if (bundle)
    *bundle = nullptr;
  Call call(__func__, module, {{"bundle", bundle}});
  if (SSAError *error = call.takeRefusal())
    return error;
  ssa::CompileOptions options;
  if (chips)
    for (StringRef chip : llvm::split(chips, ','))
      options.chips.push_back(chip.trim().str());
  if (llvm::is_contained(options.chips, ""))
    return makeError(SSA_ERROR_USAGE, Twine(__func__) + ": expected 'chips' to be names with commas between, but got '" + chips + "'");
  if (SSAError *error = call.verify())
    return error;
  OwningOpRef<ModuleOp> copy = call.getModule().op->clone();
  std::string text;
  llvm::raw_string_ostream os(text);
  TimingScope timing;
  if (failed(ssa::compile(*copy, options, os, timing)))
    return call.fail(SSA_ERROR_COMPILE, "the module cannot be compiled");
  return giveString(__func__, text, bundle);
}
