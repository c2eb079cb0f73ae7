//===- Call.h - One call of a plan ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From arguments to launches, without a device: everything that a plan says, evaluated and checked.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_RUNTIME_CALL_H
#define SSA_RUNTIME_CALL_H

#include "ssa/Runtime/Bundle.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::ssa::runtime {

/// An array in device memory, or what one has to be like.
struct ArrayView {
  uint64_t pointer = 0;
  DType dtype = DType::F32;
  /// In elements.
  llvm::SmallVector<int64_t, 5> shape, strides;

  /// Row-major without gaps.
  static ArrayView contiguous(uint64_t pointer, DType dtype, llvm::ArrayRef<int64_t> shape);

  bool isEmpty() const;

  /// Bytes from the first element to the end of the last one; 0 if there are none.
  int64_t getExtentInBytes() const;
};

/// What is passed for an argument.
struct ArgumentValue {
  ArgumentValue(ArrayView array) : array(std::move(array)) {}
  static ArgumentValue ofInteger(int64_t value);
  static ArgumentValue ofFloat(double value);

  bool isScalar = false;
  ArrayView array;
  DType dtype = DType::I64; // of scalars
  int64_t integer = 0;
  double floating = 0;

private:
  ArgumentValue() = default;
};

/// A kernel launch with all numbers known.
struct ReadyLaunch {
  std::string kernel;
  std::array<uint32_t, 3> grid, block, cluster;
  bool hasCluster = false, isDependent = false;
  uint32_t sharedBytes = 0;
  /// The parameters of the kernel, and where in this memory each begins.
  std::vector<uint8_t> parameters;
  llvm::SmallVector<size_t, 0> offsets;

  /// A tensor map that goes to `offset` in `parameters`.
  struct Map {
    size_t offset;
    unsigned number;
    ArrayView array;
  };
  llvm::SmallVector<Map, 0> maps;

  /// Which of `count` lanes the run of a repeat is in: runs in different lanes need not wait for one another.
  struct Lane {
    int repeat = -1;
    unsigned number = 0, count = 1;
  };
  Lane lane;
};

/// A call. Use: create; allocate what `results` says, as contiguous arrays unless the caller has others, and give it to
/// setResults; allocate getWorkspaceBytes; getLaunches.
class Call {
public:
  /// Checks the arguments and all that depends on them alone. `plan` must outlive the call.
  static llvm::Expected<Call> create(const Plan &plan, llvm::ArrayRef<ArgumentValue> arguments);

  /// What the results have to be like; after setResults, what they are. Those without memory of their own (see
  /// Result::isOwned) then point into arguments and other results.
  llvm::ArrayRef<ArrayView> results() const { return resultArrays; }

  /// Gives one array for each result; those of results that have no memory of their own are not looked at.
  llvm::Error setResults(llvm::ArrayRef<ArrayView> arrays);

  int64_t getWorkspaceBytes() const { return workspaceBytes; }
  int64_t getWorkspaceAlignment() const { return plan->workspaceAlignment; }

  const Plan &getPlan() const { return *plan; }

  /// Checks all arrays that kernels touch with `check`, a function of "argument 'q'" and the array.
  llvm::Error
  forEachArray(llvm::function_ref<llvm::Error(const llvm::Twine &what, const ArrayView &array)> check) const;

  /// An error that starts with the name of the entry.
  llvm::Error fail(const llvm::Twine &message) const;

  /// The launches, in order. `workspace` may be 0 if no bytes are needed.
  llvm::Expected<std::vector<ReadyLaunch>> getLaunches(uint64_t workspace);

private:
  explicit Call(const Plan &plan) : plan(&plan) {}

  llvm::Error checkArguments();
  llvm::Error checkArray(unsigned number);
  void evaluate(unsigned number);
  llvm::Error evaluateRest();
  llvm::Expected<int64_t> compute(unsigned number) const;
  llvm::Error runChecks();
  llvm::Error checkResult(unsigned number) const;
  llvm::Error checkOverlap(unsigned number) const;
  uint64_t getAddress(unsigned buffer, uint64_t workspace) const;
  ArrayView getArray(unsigned buffer, uint64_t workspace) const;
  llvm::Error addLaunch(const Launch &launch, uint64_t workspace, const ReadyLaunch::Lane &lane,
                        std::vector<ReadyLaunch> &launches) const;
  llvm::Error addParameters(const Launch &launch, uint64_t workspace, ReadyLaunch &ready) const;

  const Plan *plan;
  std::vector<ArgumentValue> arguments;
  std::vector<ArrayView> resultArrays;
  /// Values that are not known (yet), or that could not be computed, have none.
  std::vector<std::optional<int64_t>> values;
  std::vector<int64_t> indices;
  /// Why the first value that could not be computed could not.
  std::string problem;
  int64_t workspaceBytes = 0;
};

/// True if the two surely share no byte; a byte apart is enough, also where rows of one lie between rows of the other.
bool areDisjoint(const ArrayView &a, const ArrayView &b);

/// True if different indices surely are different elements.
bool isInjective(const ArrayView &array);

} // namespace mlir::ssa::runtime

#endif // SSA_RUNTIME_CALL_H
