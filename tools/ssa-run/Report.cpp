//===- Report.cpp - What a run tells its user -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa::reference;

//===----------------------------------------------------------------------===//
// Summaries
//===----------------------------------------------------------------------===//

namespace {
struct Statistics {
  explicit Statistics(const Tensor &tensor);

  int64_t numNaN = 0, numInf = 0, numNegativeInf = 0, numNegative = 0, numFinite = 0;
  double min = 0, max = 0, mean = 0;
};
} // namespace

Statistics::Statistics(const Tensor &tensor) {
  for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
    double x = tensor.getFloat(i);
    numNaN += std::isnan(x);
    numInf += std::isinf(x) && x > 0;
    numNegativeInf += std::isinf(x) && x < 0;
    numNegative += x < 0;
    if (!std::isfinite(x))
      continue;
    min = numFinite ? std::min(min, x) : x;
    max = numFinite ? std::max(max, x) : x;
    ++numFinite;
    mean += (x - mean) / static_cast<double>(numFinite);
  }
}

static void printShape(raw_ostream &os, ArrayRef<int64_t> shape) {
  if (shape.empty())
    os << "()";
  llvm::interleave(shape, os, "x");
}

static void printElement(raw_ostream &os, const Tensor &tensor, int64_t i) {
  if (tensor.isFloat())
    os << llvm::format("%.6g", tensor.getFloat(i));
  else
    os << tensor.getInt(i);
}

void mlir::ssa::reference::printSummary(raw_ostream &os, const Twine &name, Type type, const Tensor &tensor) {
  constexpr int64_t maxShown = 8;
  os << name << ": " << type;
  if (auto shaped = dyn_cast<ShapedType>(type); shaped && !shaped.hasStaticShape()) {
    os << ", shape ";
    printShape(os, tensor.getShape());
  }
  int64_t count = tensor.getNumElements();
  if (tensor.getRank() > 0) {
    Statistics statistics(tensor);
    if (statistics.numFinite)
      os << llvm::format(", min %.6g, max %.6g, mean %.6g", statistics.min, statistics.max, statistics.mean);
    if (tensor.isFloat())
      os << ", nan " << statistics.numNaN << ", inf " << statistics.numInf << ", -inf " << statistics.numNegativeInf;
    else if (tensor.getElementType().isInteger(32) && tensor.getRank() == 4)
      os << ", padding " << statistics.numNegative;
  }
  os << (count ? ", values" : ", no values");
  for (int64_t i = 0; i < std::min(count, maxShown); ++i)
    printElement(os << " ", tensor, i);
  os << (count > maxShown ? " .." : "") << "\n";
}

//===----------------------------------------------------------------------===//
// Progress and times
//===----------------------------------------------------------------------===//

void ProgressLine::update(StringRef opName, double fraction) {
  std::chrono::duration<double> onTerminal(0.2);
  Clock::time_point now = Clock::now();
  bool isTerminal = llvm::errs().is_displayed();
  if (now - start < interval || now - last < (isTerminal ? onTerminal : interval))
    return;
  last = now;
  isShown = isTerminal;
  double seconds = std::chrono::duration<double>(now - start).count();
  llvm::errs() << (isTerminal ? "\r\x1b[K" : "")
               << llvm::format("%3.0f %% of %s, %.0f s", 100 * fraction, opName.str().c_str(), seconds)
               << (isTerminal ? "" : "\n");
}

void ProgressLine::clear() {
  if (isShown)
    llvm::errs() << "\r\x1b[K";
  isShown = false;
}

void TimeTable::add(StringRef opName, double seconds) {
  Row &row = rows[opName];
  ++row.count;
  row.seconds += seconds;
}

void TimeTable::print(raw_ostream &os) const {
  auto sorted = llvm::to_vector(rows);
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return std::make_pair(b.second.seconds, a.first) < std::make_pair(a.second.seconds, b.first);
  });
  for (const auto &[name, row] : sorted)
    os << llvm::format("%9.3f s  %5u x  ", row.seconds, row.count) << name << "\n";
}
