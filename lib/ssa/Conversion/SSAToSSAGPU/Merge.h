//===- Merge.h - What merge and mix do with a row ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_MERGE_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_MERGE_H

#include "RowKernel.h"
#include "ssa/IR/AttendJoin.h"

namespace mlir::ssa {

/// What the parts of a row are multiplied by before they are added.
struct JoinFactors {
  SmallVector<Value> parts;
  Value lse; // of a merge, without the sink
};

/// Those of a `merge` or `mix`, whose parts have these lses or gates; `sink` may be null. All are scalars, or row tiles.
JoinFactors getJoinFactors(Emitter &e, Operation *op, ArrayRef<Value> weights, Value sink);

/// A `merge` or `mix` as a kernel sees it: buffers of what it reads, among the kernel's arguments. What parts the kernel makes itself are not among
/// them.
class JoinArguments {
public:
  /// For a kernel of its own, which reads all parts.
  JoinArguments(HostFunction &host, Operation *op);
  /// For the kernel that makes some of the parts.
  JoinArguments(HostFunction &host, const AttendJoin &join);

  /// What is to be passed for all rows, or what `ofRows` and `ofSinks` make of it for some.
  ArrayRef<Value> get() const { return arguments; }
  SmallVector<Value> getParts(llvm::function_ref<Value(Value rows)> ofRows, llvm::function_ref<Value(Value sinks)> ofSinks) const;

  /// Requires that what is passed has the rows of `output`, and finds out how many elements of a row a thread may read at a time, `output`'s too.
  void requireSizes(HostFunction &host, Value output);
  int64_t getWidth() const { return width; }

  Operation *getOp() const { return op; }
  bool isMerge() const { return isa<MergeOp>(op); }
  unsigned getNumParts() const { return AttendJoin::getParts(op).size() / 2; }
  /// Whether the kernel makes a part itself, and whether it has its lse so; the parts that it makes.
  bool isOwn(unsigned part) const { return llvm::is_contained(own, part); }
  unsigned getOwn(unsigned number) const { return own[number]; }
  bool hasOthers() const { return own.size() < getNumParts(); }
  bool hasOwnWeight(unsigned part) const { return isMerge() && isOwn(part); }
  /// Which of the arguments these are.
  unsigned getOutput(unsigned part) const { return outputs[part]; }
  unsigned getWeight(unsigned part) const { return weights[part]; }
  std::optional<unsigned> getSinks() const { return sinks; }

private:
  JoinArguments(HostFunction &host, Operation *op, ArrayRef<unsigned> own);

  Operation *op;
  SmallVector<unsigned> own;
  SmallVector<Value> arguments;
  SmallVector<unsigned> outputs, weights;
  std::optional<unsigned> sinks;
  int64_t width = 1;
};

/// In a kernel that has the arguments from number `first` on: the joined row at a place, and of a merge its lse. `ownOutput` and `ownLse` are of
/// the part that the kernel makes, null if there is none.
std::pair<Value, Value> joinRow(RowKernel &k, const JoinArguments &join, unsigned first, const Place &at, Value ownOutput, Value ownLse);

/// Makes the kernel that writes the rows of a `merge` or `mix`, and of a merge its lse. Of parts that `join` does not pass nothing was seen.
void buildJoin(HostFunction &host, const JoinArguments &join, Value output, Value lse);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_MERGE_H
