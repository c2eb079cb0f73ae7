//===- KeyOuter.cpp - The kernels of the order key_outer ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KeyOuter.h"
#include "ElementKernel.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

/// What partial outputs take at most, unless those of one list take more.
static constexpr int64_t maxPartialBytes = int64_t(1) << 30;

KeyOuter::KeyOuter(HostFunction &host, SparseAttendOp op, const AttendPlan &plan)
    : host(host), op(op), plan(plan), type(cast<SelectionType>(op.getSelections().front().getType())) {
  Emitter e(host.builder, op.getLoc());
  Type element = e.builder.getF32Type();
  if (ScheduleAttr::of(op).getPartials() == Partials::bf16)
    element = e.builder.getBF16Type();
  int64_t rowsOfList = plan.cells * plan.rowsPerList * type.getWidth(), rowBytes = plan.valueDim * element.getIntOrFloatBitWidth() / 8 + 4;
  int64_t most = std::clamp<int64_t>(maxPartialBytes / (rowsOfList * rowBytes), 1, TransposedLists::maxLists);
  lists = e.ceilDiv(e.dim(host.getBuffer(op.getQuery()), 2), e.index(plan.queryBlock));
  // Ranges are of about one size.
  Value number = e.ceilDiv(lists, e.index(most));
  capacity = e.max(e.ceilDiv(lists, e.max(number, e.index(1))), e.index(1));
  ranges = e.ceilDiv(lists, capacity);
  transposed.emplace(host, op, capacity, plan.rowsPerList, plan.tileRows);
  partials = allocatePartials(host, op.getLoc(), e.mul(capacity, e.index(rowsOfList)), plan.valueDim, element);
}

LogicalResult KeyOuter::build(Value output, Value lse,
                              llvm::function_ref<LogicalResult(const PartialOutputs &partials, ValueRange transposed, Value items)> attend) {
  Emitter e(host.builder, op.getLoc());
  Value count = e.mul(e.dim(host.getBuffer(op.getQuery()), 0), ranges);
  auto loop = scf::ForOp::create(host.builder, op.getLoc(), e.index(0), count, e.index(1));
  OpBuilder::InsertionGuard guard(host.builder);
  host.builder.setInsertionPointToStart(loop.getBody());
  host.loop = loop;
  Value number = loop.getInductionVar(), first = e.mul(e.rem(number, ranges), capacity);
  ListRange range{e.div(number, ranges), first, e.min(capacity, e.sub(lists, first))};
  transposed->build(range);
  fill(host, op, partials.lses, -std::numeric_limits<double>::infinity()); // of places that stand for nothing
  LogicalResult result = attend(partials, {transposed->items, transposed->entries, transposed->numItems, range.batch, range.first, range.count},
                                e.mul(transposed->mostItems, e.index(plan.cells / type.getHeads())));
  join(range, output, lse);
  host.loop = nullptr;
  return result;
}

void KeyOuter::join(const ListRange &range, Value output, Value lse) {
  Emitter e(host.builder, op.getLoc());
  RowPart part(range.batch, e.index(1), e.mul(range.first, e.index(plan.queryBlock)), e.mul(range.count, e.index(plan.queryBlock)));
  constexpr unsigned countArg = 4;
  joinPartials(host, op, partials, type.getWidth(), part.getRows(host, output), part.getRows(host, lse), {range.count},
               [&](KernelBuilder &k, const Place &at) -> PartsOfRow {
    Value group = k.index(plan.group), queryBlock = k.index(plan.queryBlock), rows = k.index(plan.rowsPerList);
    Value inList = k.add(k.mul(k.rem(at.m, queryBlock), group), k.rem(at.h, group));
    Value list = k.add(k.mul(k.div(at.h, group), k.getArgument(countArg)), k.div(at.m, queryBlock));
    return {k.add(k.mul(k.mul(list, k.index(type.getWidth())), rows), inList), rows};
  });
}
