//===- ChipNeeds.h - Which instructions need which chip ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_NVPTX_CHIPNEEDS_H
#define SSA_LIB_TARGET_NVPTX_CHIPNEEDS_H

#include "ssa/IR/SSA.h"

namespace mlir::ssa {

/// What a chip must be asked before an instruction is used.
using ChipQuery = bool (TargetAttr::*)() const;

/// What `instruction` needs, or null if every known chip has it. It is in the spelling of PTX, of an NVVM op or of an
/// LLVM intrinsic, without what stands before the first word (`nvvm.`, `llvm.nvvm.`, a predicate).
ChipQuery getChipNeed(StringRef instruction);

/// Calls `visit` with each instruction of inline PTX.
void forEachInstruction(StringRef ptx, llvm::function_ref<void(StringRef)> visit);

/// "requires one of sm_90, ..; but the target is 'sm_80'".
std::string describeNeed(ChipQuery query, TargetAttr target);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_NVPTX_CHIPNEEDS_H
