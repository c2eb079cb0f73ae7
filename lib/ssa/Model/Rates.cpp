//===- Rates.cpp - What chips do in a second ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Model/Model.h"

using namespace mlir;
using namespace mlir::ssa;

// sm_90 and sm_90a: measured on one H200 (docs/kernels.md): the matrix rate that products alone reach, what a copy reaches, what loads of
// rows from the second-level cache reach. All others: public figures of the product, see docs/explain.md for the sources; a
// copy is taken to reach 85 % of the memory's rate, the second-level cache what it reaches on the H200, for each multiprocessor and
// cycle.
static constexpr double tera = 1e12, giga = 1e9;
static constexpr ChipRates knownRates[] = {
    // chip      product        measured  clock        matrix       mma.sync    memory        L2
    {"sm_80", "A100", false, 1.41 * giga, 312 * tera, 312 * tera, 1.73 * tera, 6.0 * tera},
    {"sm_86", "RTX 3090", false, 1.70 * giga, 71 * tera, 71 * tera, 0.80 * tera, 5.5 * tera},
    {"sm_89", "L40S", false, 2.52 * giga, 362 * tera, 362 * tera, 0.73 * tera, 14 * tera},
    {"sm_90", "H200", true, 1.75 * giga, 810 * tera, 500 * tera, 4.3 * tera, 9.7 * tera},
    {"sm_90a", "H200", true, 1.75 * giga, 810 * tera, 500 * tera, 4.3 * tera, 9.7 * tera},
    {"sm_100", "B200", false, 1.85 * giga, 2250 * tera, 500 * tera, 6.8 * tera, 11.5 * tera},
    {"sm_100a", "B200", false, 1.85 * giga, 2250 * tera, 500 * tera, 6.8 * tera, 11.5 * tera},
    {"sm_100f", "B200", false, 1.85 * giga, 2250 * tera, 500 * tera, 6.8 * tera, 11.5 * tera},
    {"sm_103a", "B300", false, 1.85 * giga, 2250 * tera, 500 * tera, 6.8 * tera, 11.5 * tera},
    {"sm_110a", "Jetson Thor", false, 1.57 * giga, 258 * tera, 60 * tera, 0.23 * tera, 1.3 * tera},
    {"sm_120", "RTX 5090", false, 2.41 * giga, 209 * tera, 209 * tera, 1.52 * tera, 17 * tera},
    {"sm_120a", "RTX 5090", false, 2.41 * giga, 209 * tera, 209 * tera, 1.52 * tera, 17 * tera},
};

const ChipRates &ChipRates::of(TargetAttr target) {
  const auto *row = llvm::find_if(knownRates, [&](const ChipRates &rates) { return rates.chip == target.getChip(); });
  assert(row != std::end(knownRates) && "every known chip has a row");
  return *row;
}

std::array<std::pair<StringRef, double>, 6> UnitTimes::list() const {
  return {{{"matrix", matrix}, {"vector", vector}, {"special", special}, {"shared", shared}, {"L2", l2}, {"memory", memory}}};
}

double UnitTimes::longest() const { return std::max({matrix, vector, special, shared, l2, memory}); }

StringRef UnitTimes::binding() const {
  auto all = list();
  return llvm::max_element(all, [](auto a, auto b) { return a.second < b.second; })->first;
}

UnitTimes &UnitTimes::operator+=(const UnitTimes &other) {
  matrix += other.matrix;
  vector += other.vector;
  special += other.special;
  shared += other.shared;
  l2 += other.l2;
  memory += other.memory;
  return *this;
}

Prediction &Prediction::operator+=(const Prediction &other) {
  if (seconds < other.seconds)
    binds = other.binds;
  units += other.units;
  seconds += other.seconds;
  return *this;
}
