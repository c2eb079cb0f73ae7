// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ssa/IR/SSAOps.td"

def Consumer_Dialect : Dialect {
  let name = "consumer";
  let cppNamespace = "::consumer";
}

def Consumer_WidthOp : Op<Consumer_Dialect, "width", [Pure]> {
  let summary = "the number of blocks that each row of a selection can hold";
  let arguments = (ins SSA_SelectionType:$selection);
  let results = (outs Index:$width);
  let assemblyFormat = "$selection attr-dict `:` type(operands) `->` type(results)";
  let hasFolder = 1;
}
