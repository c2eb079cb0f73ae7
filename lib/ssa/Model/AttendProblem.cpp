//===- AttendProblem.cpp - What an attention op has to do -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Model/Attend.h"
#include "ssa/IR/AttendJoin.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::ssa;

/// What lists of neighbouring queries are taken to have in common where nobody says it. Those that a selector makes of scores follow the
/// queries, which change slowly; of others nothing is known.
static double getUsualAgreement(SparseAttendOp op) {
  constexpr double ofScores = 0.5;
  Value lists = op.getSelections().empty() ? Value() : op.getSelections().front();
  while (auto sort = lists ? lists.getDefiningOp<SortOp>() : nullptr)
    lists = sort.getInput();
  return lists && lists.getDefiningOp<TopKOp>() ? ofScores : 0;
}

AttendProblem::AttendProblem(SparseAttendOp op, AssumedSizes &sizes) : op(op), rows(op.getBlocksOrTokens()) {
  batch = sizes.get(op.getQuery(), 0);
  heads = op.getQuery().getType().getDimSize(1);
  dim = op.getQuery().getType().getDimSize(3);
  valueDim = op.getOutput().getType().getDimSize(3);
  elementBytes = op.getQuery().getType().getElementTypeBitWidth() / 8;
  geometry = {sizes.get(op.getQuery(), 2), sizes.get(op.getTokens() ? op.getTokens() : op.getKey(), 2), op.getMask().value_or(MaskAttr())};
  agreement = sizes.getAssumptions().agreement;
  if (agreement < 0)
    agreement = getUsualAgreement(op);
  if (auto said = op->getAttrOfType<FloatAttr>("ssa.agreement"))
    agreement = said.getValueAsDouble();
  if (std::optional<AttendJoin> join = AttendJoin::of(op))
    for (Value part : join->getParts()) {
      auto attend = part.getDefiningOp<SparseAttendOp>();
      joinedBytes += attend && llvm::is_contained(join->attends, attend) ? 0 : sizes.getBytes(part);
    }
  cells = op.getKey().getType().getDimSize(1);
  hasLists = !op.getSelections().empty();
  if (!hasLists)
    return;
  auto selection = cast<SelectionType>(op.getSelections().front().getType());
  cells = std::lcm(cells, selection.getHeads());
  keyBlock = selection.getKeyBlock();
  width = selection.getWidth();
  queryBlock = selection.getQueryBlock();
  isShared = selection.getDimSize(2) == 1;
  forced = ForcedBlocks::of(op);
}

JoinedProblem::JoinedProblem(const AttendJoin &join, AssumedSizes &sizes) : join(join) {
  int64_t queryBlock = join.getQueryBlock();
  for (SparseAttendOp attend : join.attends) {
    AttendProblem &source = sources.emplace_back(attend, sizes);
    source.joinedBytes = 0;
    if (queryBlock) {
      source.queryBlock = queryBlock;
      source.isShared = false;
    }
  }
  for (size_t i = 0; i < join.getParts().size(); ++i)
    if (!llvm::is_contained(join.parts, i / 2))
      sources.front().joinedBytes += sizes.getBytes(join.getParts()[i]);
}

std::optional<int64_t> AttendProblem::getRowsPerList() const {
  return isShared ? std::nullopt : std::optional(queryBlock * getGroup());
}

/// The mean of `f` over some runs of `count` neighbouring queries.
double AttendProblem::average(llvm::function_ref<double(int64_t, int64_t)> f, int64_t count) const {
  constexpr int64_t samples = 32;
  if (geometry.queries == 0)
    return 0;
  double sum = 0;
  for (int64_t i = 0; i < samples; ++i) {
    int64_t first = (2 * i + 1) * geometry.queries / (2 * samples) / count * count;
    int64_t last = std::min(first + count, geometry.queries) - 1;
    sum += f(geometry.position(first), geometry.position(last));
  }
  return sum / samples;
}

/// Rows of keys that the mask allows to the queries at these positions.
static double countAllowed(const Geometry &geometry, BlocksAttr rows, int64_t first, int64_t last) {
  auto size = [&](TokenRange range) {
    return std::max<int64_t>(std::min(range.end, geometry.tokens) - std::max<int64_t>(range.begin, 0), 0);
  };
  AllowedKeys allowed = geometry.allowed(first, last);
  TokenRange both = {std::max(allowed.sink.begin, allowed.window.begin), std::min(allowed.sink.end, allowed.window.end)};
  int64_t tokens = size(allowed.sink) + size(allowed.window) - (both.begin < both.end ? size(both) : 0);
  return double(tokens) / rows.getStride();
}

double AttendProblem::getAllowedKeys(int64_t count) const {
  return average([&](int64_t first, int64_t last) { return countAllowed(geometry, rows, first, last); }, count);
}

double AttendProblem::getKeysPerList(int64_t count) const {
  if (!hasLists)
    return getAllowedKeys(count);
  double most = double(width) * keyBlock;
  return average([&](int64_t first, int64_t last) { return std::min(most, countAllowed(geometry, rows, first, last)); }, count);
}

/// Of `b` blocks a list has `k`; each following list keeps a share of them and draws the others anew from the rest.
double AttendProblem::getUnion(int64_t count) const {
  auto different = [&](int64_t first, int64_t last) {
    double b = std::max(std::ceil(countAllowed(geometry, rows, last, last) / keyBlock), 1.0), k = std::min<double>(width, b);
    if (k >= b)
      return b * keyBlock;
    double kept = std::max(agreement, k / b), drawn = (1 - kept) * k / (b - k);
    return b * (1 - (1 - k / b) * std::pow(1 - drawn, double(count - 1))) * keyBlock;
  };
  return average(different, count);
}

double AttendProblem::getUsefulFlop() const {
  // Half of the block that holds a causal query is behind it.
  double hidden = hasLists && geometry.mask && geometry.mask.getCausal() && keyBlock > 1 ? keyBlock / 2.0 : 0;
  double keys = std::max(getKeysPerList(1) - hidden, std::min(getKeysPerList(1), 1.0));
  return double(batch) * geometry.queries * heads * keys * getFlopPerPair();
}

std::string ssa::getTuningKey(SparseAttendOp op) {
  std::string key;
  llvm::raw_string_ostream os(key);
  RankedTensorType query = op.getQuery().getType(), keys = op.getKey().getType();
  os << "sparse_attend " << query.getElementType() << " heads " << query.getDimSize(1) << "/" << keys.getDimSize(1) << " dims " << query.getDimSize(3)
     << "/" << op.getOutput().getType().getDimSize(3);
  for (Value s : op.getSelections()) {
    auto type = cast<SelectionType>(s.getType());
    os << " lists " << type.getHeads() << " x " << type.getWidth() << " of " << type.getKeyBlock();
    if (type.getDimSize(2) == 1)
      os << " for all";
    else
      os << " for " << type.getQueryBlock();
  }
  if (auto mask = op.getMask())
    os << " mask " << (mask->getCausal() ? "causal" : "both ways") << " " << mask->getWindow() << " " << mask->getSink();
  if (!op.getBlocksOrTokens().isTokens())
    os << " summaries " << op.getBlocksOrTokens().getSize() << "/" << op.getBlocksOrTokens().getStride();
  os << (op.isGathered() ? " gathered" : "") << (op.valuesAreKeys() ? " values in keys" : "") << (op.getScore().empty() ? "" : " score region");
  return key;
}
