//===- GlueLinalg.cpp - Structured ops ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One evaluation for all of them, through LinalgOp. Loops that every output is indexed by run side by side, up to
// 256 of their points in the lanes of a ScalarProgram; the others run one after another inside. Accumulators are
// doubles until the result is written.
//
//===----------------------------------------------------------------------===//

#include "Cells.h"
#include "Glue.h"

using namespace mlir;
using namespace mlir::ssa::reference;

//===----------------------------------------------------------------------===//
// Affine expressions
//===----------------------------------------------------------------------===//

/// The value of an expression without symbols whose divisors are positive constants, which `isEvaluable` has checked.
static int64_t evaluateExpr(AffineExpr expr, ArrayRef<int64_t> loops) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t a = evaluateExpr(binary.getLHS(), loops), b = evaluateExpr(binary.getRHS(), loops);
  int64_t floor = binary.getKind() == AffineExprKind::Add || binary.getKind() == AffineExprKind::Mul
                      ? 0
                      : llvm::divideFloorSigned(a, b);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return static_cast<int64_t>(uint64_t(a) + uint64_t(b));
  case AffineExprKind::Mul:
    return static_cast<int64_t>(uint64_t(a) * uint64_t(b));
  case AffineExprKind::Mod:
    return a - floor * b;
  case AffineExprKind::CeilDiv:
    return floor + (floor * b != a);
  default:
    return floor;
  }
}

static bool isEvaluable(AffineExpr expr) {
  bool evaluable = true;
  expr.walk([&](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    if (isa<AffineSymbolExpr>(part))
      evaluable = false;
    if (!binary || binary.getKind() == AffineExprKind::Add || binary.getKind() == AffineExprKind::Mul)
      return;
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    evaluable &= divisor && divisor.getValue() > 0;
  });
  return evaluable;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {
/// An operand and where its map leads.
struct Access {
  Tensor tensor;
  AffineMap map;
  SmallVector<int64_t> strides;
  /// Of a plain map, whose results are loops and constants: the place of the element, as a constant and a factor for
  /// each loop. Anything else is evaluated, and checked, point by point.
  bool isPlain = true;
  int64_t constant = 0;
  SmallVector<int64_t> factors;

  /// The number of the element at a point of the loops, -1 if there is none.
  int64_t placeAt(ArrayRef<int64_t> loops) const {
    int64_t place = 0;
    for (auto [d, expr] : llvm::enumerate(map.getResults())) {
      int64_t index = evaluateExpr(expr, loops);
      if (index < 0 || index >= tensor.getDim(d))
        return -1;
      place += index * strides[d];
    }
    return place;
  }
};

/// What the points of one batch need.
struct Batch {
  Batch(int64_t lanes, size_t loops, size_t operands, size_t results)
      : lanes(lanes), inner(loops, 0), points(loops, std::vector<int64_t>(lanes, 0)),
        places(operands, std::vector<int64_t>(lanes, 0)), bases(operands, 0), operandCells(operands), indexCells(loops),
        resultCells(results) {}

  int64_t lanes;
  /// The current point of the inner loops; 0 for lane loops.
  SmallVector<int64_t> inner;
  /// [loop][lane], of lane loops.
  std::vector<std::vector<int64_t>> points;
  /// [operand][lane]: the place of its element, to which the operand's base is added.
  std::vector<std::vector<int64_t>> places;
  SmallVector<int64_t> bases;
  std::vector<CellArray> operandCells, indexCells, resultCells;
  SmallVector<const Cell *> arguments;
  SmallVector<Cell *> programResults;
};

/// One structured op in the course of its evaluation.
class StructuredLoops {
public:
  StructuredLoops(Evaluation &evaluation, linalg::LinalgOp op)
      : evaluation(evaluation), op(op), numInputs(op.getNumDpsInputs()) {}

  LogicalResult run();

private:
  LogicalResult findRanges();
  LogicalResult checkOperand(OpOperand &operand);
  void addAccess(OpOperand &operand);
  void splitLoops();
  LogicalResult allocateResults();

  LogicalResult runBatch(int64_t first, int64_t lanes);
  void startBatch(Batch &batch, int64_t first) const;
  void bindProgram(Batch &batch) const;
  bool advance(Batch &batch) const;
  LogicalResult runPoint(Batch &batch);
  LogicalResult placeOperand(Batch &batch, unsigned operand) const;

  /// True if the accumulator of an output stays in the lane: no inner loop indexes it.
  bool isInLane(unsigned result) const { return inLane[result]; }

  Evaluation &evaluation;
  linalg::LinalgOp op;
  unsigned numInputs;
  SmallVector<int64_t> ranges;
  /// The operand whose shape a range was taken from.
  SmallVector<unsigned> rangeOwners;
  std::vector<Access> accesses;
  SmallVector<unsigned> laneLoops, innerLoops;
  SmallVector<Tensor> results;
  SmallVector<bool> inLane;
  /// The accumulators of outputs that are not in the lane.
  std::vector<std::vector<Cell>> accumulators;
  std::optional<ScalarProgram> program;
};
} // namespace

/// The sizes of the loops follow from the operands' shapes through the op's own map.
LogicalResult StructuredLoops::findRanges() {
  SmallVector<int64_t> sizes;
  SmallVector<unsigned> owners;
  for (OpOperand &operand : op->getOpOperands()) {
    ArrayRef<int64_t> shape = evaluation[operand.get()].getShape();
    sizes.append(shape.begin(), shape.end());
    owners.append(shape.size(), operand.getOperandNumber());
  }
  AffineMap shapesToLoops = op.getShapesToLoopsMap();
  if (!shapesToLoops || shapesToLoops.getNumDims() != sizes.size() ||
      !llvm::all_of(shapesToLoops.getResults(), isEvaluable))
    return op->emitOpError("has indexing maps that the interpreter cannot evaluate");
  for (AffineExpr expr : shapesToLoops.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    ranges.push_back(std::max<int64_t>(evaluateExpr(expr, sizes), 0));
    rangeOwners.push_back(dim ? owners[dim.getPosition()] : 0);
  }
  return success();
}

LogicalResult StructuredLoops::checkOperand(OpOperand &operand) {
  ArrayRef<int64_t> shape = evaluation[operand.get()].getShape();
  for (auto [d, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    if (!isEvaluable(expr))
      return op->emitOpError("has indexing maps that the interpreter cannot evaluate");
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || shape[d] == ranges[loop.getPosition()])
      continue;
    unsigned owner = rangeOwners[loop.getPosition()];
    return op->emitOpError() << describeOperand(op, operand.getOperandNumber()) << " has shape " << shapeText(shape)
                             << ", expected " << ranges[loop.getPosition()] << " at dimension " << d << " as in "
                             << describeOperand(op, owner) << " of shape "
                             << shapeText(evaluation[op->getOperand(owner)].getShape());
  }
  return success();
}

void StructuredLoops::addAccess(OpOperand &operand) {
  Access access;
  access.tensor = evaluation[operand.get()];
  access.map = op.getMatchingIndexingMap(&operand);
  access.strides.assign(access.tensor.getRank(), 1);
  access.factors.assign(ranges.size(), 0);
  // Strides overflow only for tensors without elements, which nothing reads.
  for (int64_t d = access.tensor.getRank() - 1; d > 0; --d)
    access.strides[d - 1] = static_cast<int64_t>(uint64_t(access.strides[d]) * uint64_t(access.tensor.getDim(d)));
  for (auto [d, expr] : llvm::enumerate(access.map.getResults())) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      access.factors[loop.getPosition()] += access.strides[d];
    else if (constant && constant.getValue() >= 0 && constant.getValue() < access.tensor.getDim(d))
      access.constant += constant.getValue() * access.strides[d];
    else
      access.isPlain = false;
  }
  accesses.push_back(std::move(access));
}

/// Points that differ in a lane loop write different elements of every output, so their order is of no meaning.
void StructuredLoops::splitLoops() {
  llvm::SmallBitVector inLanes(ranges.size(), true);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    llvm::SmallBitVector indexed(ranges.size());
    if (map.isProjectedPermutation(/*allowZeroInResults=*/true))
      for (AffineExpr expr : map.getResults())
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          indexed.set(loop.getPosition());
    inLanes &= indexed;
  }
  for (unsigned d = 0; d < ranges.size(); ++d)
    (inLanes.test(d) ? laneLoops : innerLoops).push_back(d);
}

LogicalResult StructuredLoops::allocateResults() {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    const Tensor &start = evaluation[init.get()];
    FailureOr<Tensor> result = evaluation.allocate(op, results.size(), start.getShape());
    if (failed(result))
      return failure();
    AffineMap map = op.getMatchingIndexingMap(&init);
    accumulators.emplace_back();
    inLane.push_back(llvm::none_of(innerLoops, [&](unsigned d) { return map.isFunctionOfDim(d); }));
    if (!inLane.back()) {
      int64_t count = start.getNumElements();
      if (failed(evaluation.checkBytes(op, "the accumulator of result " + Twine(results.size()),
                                       count * int64_t(sizeof(Cell)))))
        return failure();
      accumulators.back().resize(count);
      loadCells(start, 0, count, accumulators.back().data());
    }
    results.push_back(*result);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// Finds the lanes' points, the places of plain operands at them, and the start of the accumulators in the lanes.
void StructuredLoops::startBatch(Batch &batch, int64_t first) const {
  int64_t stride = 1;
  for (unsigned d : llvm::reverse(laneLoops)) {
    for (int64_t n = 0; n < batch.lanes; ++n)
      batch.points[d][n] = (first + n) / stride % ranges[d];
    stride *= ranges[d];
  }
  for (auto [i, access] : llvm::enumerate(accesses)) {
    for (int64_t &place : batch.places[i])
      place = access.constant;
    for (unsigned d : laneLoops)
      for (int64_t n = 0; n < batch.lanes && access.factors[d]; ++n)
        batch.places[i][n] += access.factors[d] * batch.points[d][n];
    if (i >= numInputs && isInLane(i - numInputs))
      gatherCells(access.tensor, batch.places[i], 0, batch.resultCells[i - numInputs].data());
  }
}

void StructuredLoops::bindProgram(Batch &batch) const {
  unsigned numArguments = op->getRegion(0).getNumArguments();
  batch.arguments.assign(numArguments + ranges.size(), nullptr);
  for (unsigned i = 0; i < std::min<unsigned>(numArguments, accesses.size()); ++i) {
    bool inLane = i >= numInputs && isInLane(i - numInputs);
    batch.arguments[i] = (inLane ? batch.resultCells[i - numInputs] : batch.operandCells[i]).data();
  }
  for (unsigned d = 0; d < ranges.size(); ++d) {
    batch.arguments[numArguments + d] = batch.indexCells[d].data();
    for (int64_t n = 0; n < batch.lanes; ++n)
      batch.indexCells[d][n].i = batch.points[d][n];
  }
  for (CellArray &cells : batch.resultCells)
    batch.programResults.push_back(cells.data());
}

/// Sets the base of a plain operand at the current point of the inner loops, or all places of another one.
LogicalResult StructuredLoops::placeOperand(Batch &batch, unsigned operand) const {
  const Access &access = accesses[operand];
  batch.bases[operand] = 0;
  if (access.isPlain) {
    for (unsigned d : innerLoops)
      batch.bases[operand] += access.factors[d] * batch.inner[d];
    return success();
  }
  SmallVector<int64_t> loops(batch.inner);
  for (int64_t n = 0; n < batch.lanes; ++n) {
    for (unsigned d : laneLoops)
      loops[d] = batch.points[d][n];
    batch.places[operand][n] = access.placeAt(loops);
    if (batch.places[operand][n] < 0)
      return op->emitOpError() << describeOperand(op, operand) << " has shape " << shapeText(access.tensor.getShape())
                               << ", which ends before the element that loops at (" << loops << ") need";
  }
  return success();
}

/// Runs the program at the current point of the inner loops on all lanes.
LogicalResult StructuredLoops::runPoint(Batch &batch) {
  for (unsigned i = 0; i < accesses.size(); ++i) {
    if (i >= numInputs && isInLane(i - numInputs))
      continue;
    if (failed(placeOperand(batch, i)))
      return failure();
    if (i < numInputs)
      gatherCells(accesses[i].tensor, batch.places[i], batch.bases[i], batch.operandCells[i].data());
    else
      for (int64_t n = 0; n < batch.lanes; ++n)
        batch.operandCells[i][n] = accumulators[i - numInputs][batch.bases[i] + batch.places[i][n]];
  }
  ScalarProgram::Failure wrong;
  if (failed(program->run(batch.lanes, batch.arguments, batch.programResults, wrong)))
    return emitFailure(wrong);
  for (unsigned r = 0; r < results.size(); ++r)
    for (int64_t n = 0; n < batch.lanes && !isInLane(r); ++n)
      accumulators[r][batch.bases[numInputs + r] + batch.places[numInputs + r][n]] = batch.resultCells[r][n];
  return success();
}

/// The next point of the inner loops; false after the last.
bool StructuredLoops::advance(Batch &batch) const {
  for (unsigned d : llvm::reverse(innerLoops)) {
    bool wraps = ++batch.inner[d] == ranges[d];
    if (wraps)
      batch.inner[d] = 0;
    batch.indexCells[d].fill(makeCell(batch.inner[d]));
    if (!wraps)
      return true;
  }
  return false;
}

LogicalResult StructuredLoops::runBatch(int64_t first, int64_t lanes) {
  Batch batch(lanes, ranges.size(), accesses.size(), results.size());
  startBatch(batch, first);
  bindProgram(batch);
  bool any = llvm::none_of(innerLoops, [&](unsigned d) { return ranges[d] == 0; });
  while (any) {
    if (failed(runPoint(batch)))
      return failure();
    any = advance(batch);
  }
  for (unsigned r = 0; r < results.size(); ++r)
    if (isInLane(r))
      scatterCells(results[r], batch.places[numInputs + r], batch.resultCells[r].data());
  return success();
}

LogicalResult StructuredLoops::run() {
  if (failed(findRanges()))
    return failure();
  for (OpOperand &operand : op->getOpOperands()) {
    if (failed(checkOperand(operand)))
      return failure();
    addAccess(operand);
  }
  splitLoops();
  FailureOr<ScalarProgram> compiled = ScalarProgram::compile(*op.getBlock(), [&](Value v) { return evaluation[v]; });
  if (failed(compiled) || failed(allocateResults()))
    return failure();
  program = std::move(*compiled);

  // Every lane loop indexes an output, so there are at most as many points as elements.
  int64_t count = 1, batch = ScalarProgram::maxLanes;
  for (unsigned d : laneLoops)
    count *= ranges[d];
  LogicalResult done = evaluation.parallelFor(op, llvm::divideCeil(count, batch), [&](int64_t b) {
    return runBatch(b * batch, std::min(batch, count - b * batch));
  });
  for (auto [r, result] : llvm::enumerate(results)) {
    if (!isInLane(r))
      storeCells(result, 0, result.getNumElements(), accumulators[r].data());
    evaluation.set(op->getResult(r), result);
  }
  return done;
}

LogicalResult mlir::ssa::reference::evaluateLinalgOp(Evaluation &evaluation, linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumRegions() != 1 || op.getNumDpsInits() == 0)
    return emitNotEvaluated(op, "");
  return StructuredLoops(evaluation, op).run();
}
