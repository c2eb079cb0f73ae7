//===- KeyOuter.cpp - The kernels of the order key_outer ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KeyOuter.h"
#include "ssa/Conversion/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::ssa;

/// Rows of queries of a run that stay in the second-level cache, as each is gathered once for every block of its list.
static constexpr int64_t nearBytes = int64_t(16) << 20;

/// What partial outputs take at most, unless those of one list take more: 2.25 GiB, or what the op says.
static int64_t getMostBytes(SparseAttendOp op) {
  auto said = op->getAttrOfType<IntegerAttr>("ssa.partial_bytes");
  return said ? said.getInt() : int64_t(9) << 28;
}

/// Runs that are under way at a time: what one waits for at its end is hidden by the next.
static constexpr int64_t mostLanes = 2;

KeyOuter::KeyOuter(HostFunction &host, SparseAttendOp op, const AttendPlan &plan)
    : host(host), op(op), plan(plan), type(cast<SelectionType>(op.getSelections().front().getType())) {
  Emitter e(host.builder, op.getLoc());
  Type element = e.builder.getF32Type();
  if (plan.partials == Partials::bf16)
    element = e.builder.getBF16Type();
  int64_t rowsOfList = plan.cells / type.getHeads() * plan.rowsPerList * plan.placesOfList(), rowBytes = plan.valueDim * element.getIntOrFloatBitWidth() / 8 + 4;
  int64_t most = std::max<int64_t>(getMostBytes(op) / mostLanes / (rowsOfList * rowBytes), 1);
  int64_t near = std::max<int64_t>(nearBytes / (plan.rowsPerList * plan.dim * cast<MemRefType>(host.getBuffer(op.getQuery()).getType()).getElementTypeBitWidth() / 8), 1);
  lists = e.ceilDiv(e.dim(host.getBuffer(op.getQuery()), 2), e.index(plan.queryBlock));
  // As many lists of a head as have their queries near, so that a block has rows for whole tiles; then as many heads as fit. Runs are of about
  // one size.
  auto divide = [&](Value all, Value atMost) {
    Value runs = e.ceilDiv(all, e.max(e.min(atMost, all), e.index(1)));
    return e.max(e.ceilDiv(all, e.max(runs, e.index(1))), e.index(1));
  };
  capacity = divide(lists, e.index(std::min(most, near)));
  heads = divide(e.index(type.getHeads()), e.div(e.index(most), capacity));
  headRanges = e.ceilDiv(e.index(type.getHeads()), heads);
  ranges = e.ceilDiv(lists, capacity);
  count = e.mul(e.dim(host.getBuffer(op.getQuery()), 0), e.mul(headRanges, ranges));
  lanes = e.max(e.min(count, e.index(mostLanes)), e.index(1));
  transposed.emplace(host, op, plan.forced, heads, capacity, lanes, plan.cells / type.getHeads(), plan.rowsPerList, plan.tileRows);
  Value rows = e.mul(e.mul(capacity, heads), e.index(rowsOfList));
  outputs = LaneBuffer(host, op.getLoc(), lanes, rows, {e.builder.getIndexAttr(plan.valueDim)}, element);
  lses = LaneBuffer(host, op.getLoc(), lanes, rows, {}, e.builder.getF32Type());
}

LogicalResult KeyOuter::build(Value output, Value lse, const JoinArguments *further, Attend attend, Finish finish) {
  Emitter e(host.builder, op.getLoc());
  auto loop = scf::ForOp::create(host.builder, op.getLoc(), e.index(0), count, e.index(1));
  loop->setAttr(lanesAttrName, host.builder.getI64IntegerAttr(mostLanes));
  OpBuilder::InsertionGuard guard(host.builder);
  host.builder.setInsertionPointToStart(loop.getBody());
  host.loop = loop;
  Value number = loop.getInductionVar(), first = e.mul(e.rem(number, ranges), capacity);
  Value firstHead = e.mul(e.rem(e.div(number, ranges), headRanges), heads);
  ListRange range{e.div(number, e.mul(headRanges, ranges)), firstHead, e.min(heads, e.sub(e.index(type.getHeads()), firstHead)), first,
                  e.min(capacity, e.sub(lists, first)), e.rem(number, lanes)};
  for (LaneBuffer *buffer : {&outputs, &lses})
    buffer->select(host, range.lane);
  PartialOutputs partials{outputs.here, lses.here, plan.partialsInQuads};
  transposed->build(range, partials.lses);
  Value cellsOfHead = e.index(plan.cells / type.getHeads());
  Run run{range.batch, e.mul(range.firstHead, cellsOfHead), e.mul(range.heads, cellsOfHead), range.first, range.count, e.mul(range.lane, getListsOfLane(e))};
  LogicalResult result = attend(partials, {transposed->items.here, transposed->entries.here, transposed->numItems.here, run.batch, run.firstCell, run.firstList, run.lists},
                                e.mul(transposed->mostItems, cellsOfHead));
  if (finish && succeeded(result))
    result = finish(partials, run);
  else
    join(range, partials, output, lse, further);
  host.loop = nullptr;
  return result;
}

void KeyOuter::join(const ListRange &range, const PartialOutputs &partials, Value output, Value lse, const JoinArguments *further) {
  Emitter e(host.builder, op.getLoc());
  RowPart part(range.batch, e.index(1), e.mul(range.first, e.index(plan.queryBlock)), e.mul(range.count, e.index(plan.queryBlock)));
  constexpr unsigned countArg = 4;
  // The query heads of the range.
  Value perHead = e.index(plan.cells / type.getHeads() * plan.group), first = e.mul(range.firstHead, perHead), count = e.mul(range.heads, perHead);
  auto rows = [&](Value buffer) { return host.getPart(part.getRows(host, buffer), 1, first, count); };
  joinPartials(host, op, partials, type.getWidth(), rows(output), rows(lse), {range.count},
               [&](KernelBuilder &k, const Place &at) -> PartsOfRow {
    Value group = k.index(plan.group), queryBlock = k.index(plan.queryBlock), rows = k.index(plan.rowsPerList);
    Value inList = k.add(k.mul(k.rem(at.m, queryBlock), group), k.rem(at.h, group));
    Value list = k.add(k.mul(k.div(at.h, group), k.getArgument(countArg)), k.div(at.m, queryBlock));
    return {k.add(k.mul(k.mul(list, k.index(type.getWidth())), rows), inList), rows};
  }, further, further ? further->getParts(rows, [&](Value sinks) { return host.getPart(sinks, 0, first, count); }) : SmallVector<Value>());
}
