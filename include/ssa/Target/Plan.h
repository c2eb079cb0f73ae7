//===- Plan.h - What a launcher has to do -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans as docs/bundle.md says: what host functions on buffers become. The names here are those of the file format.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_TARGET_PLAN_H
#define SSA_TARGET_PLAN_H

#include "ssa/IR/SSA.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/JSON.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mlir::ssa {

/// The position of a value in a ValueTable or, once a plan is complete, in its `values`.
using ValueNumber = unsigned;

/// One 64-bit integer.
struct PlanValue {
  /// The operation, a string of static lifetime.
  StringRef operation;
  /// Of `cmp`.
  StringRef predicate;
  /// The constant, argument and dimension, .. of an operation that reads no values; else values.
  SmallVector<int64_t, 3> operands;
  /// When it can be computed: before there are results, after, or in repeat `stage - firstRepeat`.
  unsigned stage = 0;

  static constexpr unsigned beforeResults = 0, afterResults = 1, firstRepeat = 2;

  bool readsValues() const;
};

/// Integer expressions without repetition, folded where they are constant.
class ValueTable {
public:
  ValueNumber constant(int64_t c) { return add({"const", "", {c}, PlanValue::beforeResults}); }
  /// A value that reads no values.
  ValueNumber leaf(StringRef operation, ArrayRef<int64_t> operands, unsigned stage = PlanValue::beforeResults);
  ValueNumber binary(StringRef operation, ValueNumber x, ValueNumber y);
  ValueNumber compare(StringRef predicate, ValueNumber x, ValueNumber y);
  ValueNumber select(ValueNumber c, ValueNumber x, ValueNumber y);

  std::optional<int64_t> getConstant(ValueNumber v) const;
  unsigned getStage(ValueNumber v) const { return values[v].stage; }
  std::vector<PlanValue> &get() { return values; }

private:
  ValueNumber add(PlanValue value);

  std::vector<PlanValue> values;
  llvm::StringMap<ValueNumber> known;
};

struct PlanArgument {
  std::string name, dtype;
  bool isScalar = false;
  SmallVector<std::optional<int64_t>> shape, strides;
  bool isContiguous = false;
  int64_t alignment = 1;
  bool isRead = false, isWritten = false;
};

struct PlanCheck {
  StringRef kind; // equal, at_most, holds
  SmallVector<ValueNumber, 2> values;
  std::string message;
};

struct PlanBuffer {
  StringRef kind; // argument, result, workspace, view
  /// The argument, result or viewed buffer; of workspace a value.
  unsigned number = 0;
  ValueNumber offset = 0; // of views
  std::string dtype;
  SmallVector<ValueNumber> shape, strides;
};

struct PlanResult {
  std::string name, dtype;
  SmallVector<ValueNumber> shape;
  bool isContiguous = false;
  int64_t alignment = 1;
  unsigned buffer = 0;
};

/// A float that a kernel takes: a constant, or a scalar argument.
struct PlanFloat {
  double constant = 0;
  std::optional<unsigned> argument;
};

struct PlanKernelArgument {
  std::string kind; // pointer, tensormap, or a dtype
  unsigned number = 0;
  PlanFloat value;
};

struct PlanTensorMap {
  unsigned buffer = 0;
  SmallVector<int64_t> box;
  std::string swizzle, l2Promotion, fill, interleave;
};

/// The first element of a buffer, and what it is where a launch does something.
struct PlanWhen {
  unsigned buffer = 0;
  bool is = true;
};

struct PlanLaunch {
  std::string kernel;
  std::array<ValueNumber, 3> grid;
  std::array<int64_t, 3> block;
  ValueNumber shared = 0;
  SmallVector<int64_t, 3> cluster;
  bool isDependent = false; // the kernel waits by itself for those before it
  std::optional<ValueNumber> condition;
  std::optional<PlanWhen> when; // the kernel leaves at once otherwise
  std::vector<PlanKernelArgument> arguments;
  SmallVector<unsigned> after, reads, writes;
  /// The number of the op that it is launched for, if ops are numbered. Not written.
  std::optional<int64_t> origin;
};

struct PlanRepeat {
  ValueNumber count = 0;
  int64_t lanes = 1; // this many runs that follow one another may run at the same time
  std::array<unsigned, 2> values = {0, 0}, launches = {0, 0};
};

struct Plan {
  std::string entry;
  std::vector<PlanArgument> arguments;
  std::vector<PlanResult> results;
  std::vector<PlanValue> values;
  unsigned inputs = 0;
  std::vector<PlanCheck> checks;
  std::vector<PlanBuffer> buffers;
  ValueNumber workspaceBytes = 0;
  std::vector<PlanTensorMap> tensorMaps;
  std::vector<PlanRepeat> repeats;
  std::vector<PlanLaunch> launches;

  /// Calls `visit` with every value number outside of `values`.
  void forEachValue(llvm::function_ref<void(ValueNumber &)> visit);

  /// Writes an object, one line for each element of its lists.
  void print(llvm::json::OStream &json) const;
};

/// The plans of the public functions of a module of host functions and kernels, in order.
FailureOr<std::vector<Plan>> buildPlans(ModuleOp module, TargetAttr target);

} // namespace mlir::ssa

#endif // SSA_TARGET_PLAN_H
