//===- Model.h - What kernels must take ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A static model of time: what each unit of a chip has to do for a kernel, and how long the kernel takes as far as measurements of
// kernels of its kind tell. docs/explain.md has the rates with their sources, and how far predictions are off.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_MODEL_MODEL_H
#define SSA_MODEL_MODEL_H

#include "ssa/IR/SSA.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string>

namespace mlir::ssa {

/// What a chip does in a second.
struct ChipRates {
  StringRef chip, product;
  /// False if the figures are public ones that nobody here has measured.
  bool isMeasured;
  double clock;       // Hz, under load
  double matrix;      // FLOP of products of 16-bit floats, by the widest instruction
  double mmaSync;     // the same by `mma.sync`
  double memory;      // bytes, as a copy reaches
  double l2;          // bytes

  /// Of a multiprocessor in a cycle, on all chips since sm_80.
  static constexpr double vectorFlopPerCycle = 256, exponentialsPerCycle = 16, sharedBytesPerCycle = 128;

  static const ChipRates &of(TargetAttr target);
};

/// Seconds that each unit is busy with a kernel.
struct UnitTimes {
  double matrix = 0, vector = 0, special = 0, shared = 0, l2 = 0, memory = 0;

  UnitTimes &operator+=(const UnitTimes &other);
  double longest() const;
  /// The name of what takes longest.
  StringRef binding() const;
  /// The same with names, in a fixed order.
  std::array<std::pair<StringRef, double>, 6> list() const;
};

/// Time of a kernel: no less than its units take, and what kernels of its kind take.
struct Prediction {
  UnitTimes units;
  double seconds = 0;
  /// What sets `seconds`: a unit, or "latency" where it is steps that wait for one another.
  StringRef binds;

  Prediction &operator+=(const Prediction &other);
};

/// The time of all runs of a kernel that is launched for `op`, but for kernels of tiles of attention: products of pairs where it makes
/// scores, else the bytes that it reads and writes.
class AssumedSizes;
Prediction predictKernel(Operation *op, StringRef kernel, AssumedSizes &sizes, TargetAttr target, double bytes, int64_t runs);

/// What a launch costs on the device.
inline constexpr double launchSeconds = 3e-6;
/// The same of a kernel that leaves at once, one behind another.
inline constexpr double idleLaunchSeconds = 1.2e-6;

/// The sizes that are taken where a type leaves them open, and what is assumed of selections.
struct Assumptions {
  int64_t batch = 1, queries = 0, tokens = 131072; // queries: 0 for as many as tokens
  llvm::StringMap<int64_t> rows;                   // of arguments by name
  /// The share of a list that the list of the next query has too; negative for what is usual for lists of their kind.
  double agreement = -1;

  int64_t getQueries() const { return queries ? queries : tokens; }
  /// Reads `131072`, `tokens=131072,queries=16,batch=2,c=32768`; an error says what is wrong.
  static FailureOr<Assumptions> parse(StringRef sizes, double agreement, llvm::function_ref<InFlightDiagnostic()> emitError);
};

/// Sizes of the values of a function under assumptions. Makes ops on the side, which it removes again.
class AssumedSizes {
public:
  AssumedSizes(const Assumptions &assumptions) : assumptions(assumptions) {}
  ~AssumedSizes();

  /// The size of a dimension of a tensor or selection.
  int64_t get(Value v, int64_t dim);
  /// Bytes of a tensor.
  int64_t getBytes(Value v);
  const Assumptions &getAssumptions() const { return assumptions; }

private:
  std::optional<int64_t> evaluate(OpFoldResult value);
  std::optional<int64_t> evaluate(Value value);
  std::optional<int64_t> reify(OpResult result, int64_t dim);

  Assumptions assumptions;
  Block scratch;
  DenseMap<std::pair<Value, int64_t>, int64_t> known;
};

/// The size that an argument is taken to have: what it serves as tells whether its rows are queries, tokens, blocks or lists.
int64_t getAssumedSize(BlockArgument argument, int64_t dim, const Assumptions &assumptions);

/// The name of an argument in the source; empty if it has none.
StringRef getSourceName(BlockArgument argument);

} // namespace mlir::ssa

#endif // SSA_MODEL_MODEL_H
