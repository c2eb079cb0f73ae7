//===- PlanSizes.h - The numbers of a plan at given sizes -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_BUNDLE_PLANSIZES_H
#define SSA_LIB_TARGET_BUNDLE_PLANSIZES_H

#include "ssa/Target/Plan.h"

namespace mlir::ssa {

/// The values of a plan for contiguous arguments of given shapes, the first run of every repeat. Integer arguments are taken to be 1.
class PlanSizes {
public:
  PlanSizes(const Plan &plan, ArrayRef<SmallVector<int64_t>> shapes);

  int64_t get(ValueNumber v) const { return numbers[v]; }
  /// Bytes of a buffer that is no view.
  int64_t getBytes(unsigned buffer) const;
  /// How often a launch runs; 0 if it is left out.
  int64_t getRuns(unsigned launch) const;
  /// In how many lanes these runs are.
  int64_t getLanes(unsigned launch) const;
  /// Messages of checks that fail.
  std::vector<std::string> getRefusals() const;

private:
  int64_t compute(const PlanValue &value) const;
  static int64_t getStride(ArrayRef<int64_t> shape, int64_t dim);

  const Plan &plan;
  SmallVector<SmallVector<int64_t>> shapes;
  SmallVector<int64_t> numbers;
};

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_BUNDLE_PLANSIZES_H
