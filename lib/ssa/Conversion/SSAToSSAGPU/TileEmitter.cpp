//===- TileEmitter.cpp - Building tile programs ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::ssa;

RankedTensorType TileEmitter::accumulatorType(int64_t columns, Type elementType) {
  return RankedTensorType::get({rows, columns}, elementType, ssa_gpu::AccumulatorAttr::get(builder.getContext(), groups, rowwise, folds));
}

RankedTensorType TileEmitter::rowsType(Type elementType) {
  return RankedTensorType::get({rows}, elementType, ssa_gpu::RowsAttr::get(builder.getContext(), rowwise, folds));
}

Value TileEmitter::constant(RankedTensorType tile, Attribute scalar) {
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(tile, scalar));
}

Value TileEmitter::alloc(ArrayRef<int64_t> shape, Type elementType) {
  return ssa_gpu::AllocOp::create(builder, loc, ssa_gpu::SharedType::get(builder.getContext(), shape, elementType), IntegerAttr());
}

SmallVector<Value> TileEmitter::allocTensors(ArrayRef<std::pair<SmallVector<int64_t>, Type>> tiles) {
  auto types = llvm::map_to_vector(tiles, [&](const auto &tile) -> Type {
    return ssa_gpu::TensorMemoryType::get(builder.getContext(), tile.first, tile.second);
  });
  return SmallVector<Value>(ssa_gpu::AllocTensorsOp::create(builder, loc, types, IntegerAttr()).getResults());
}

Value TileEmitter::slot(Value ring, Value index) {
  if (auto tensors = dyn_cast<ssa_gpu::TensorMemoryType>(ring.getType())) {
    auto one = ssa_gpu::TensorMemoryType::get(builder.getContext(), tensors.getShape().drop_front(), tensors.getElementType());
    return ssa_gpu::SlotOp::create(builder, loc, one, ring, index);
  }
  auto type = cast<ssa_gpu::SharedType>(ring.getType());
  auto one = ssa_gpu::SharedType::get(builder.getContext(), type.getShape().drop_front(), type.getElementType());
  return ssa_gpu::SlotOp::create(builder, loc, one, ring, index);
}

Value TileEmitter::columns(Value tile, int64_t first, int64_t columns) {
  auto type = cast<ssa_gpu::SharedType>(tile.getType());
  auto part = ssa_gpu::SharedType::get(builder.getContext(), {type.getShape()[0], columns}, type.getElementType());
  return ssa_gpu::ColumnsOp::create(builder, loc, part, tile, first);
}

void TileEmitter::buildBody(Region &region, llvm::function_ref<SmallVector<Value>(Value)> body) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&region, {}, builder.getI32Type(), loc);
  ssa_gpu::YieldOp::create(builder, loc, body(block->getArgument(0)));
}

Value TileEmitter::findRows(ssa_gpu::SharedType tile, int64_t width, llvm::function_ref<RowPlace(Value)> place) {
  auto layout = ssa_gpu::PlacesAttr::get(builder.getContext(), tile.getShape()[1] / width);
  auto op = ssa_gpu::FindRowsOp::create(builder, loc, RankedTensorType::get({tile.getShape()[0]}, builder.getI64Type(), layout));
  buildBody(op.getBody(), [&](Value row) {
    RowPlace p = place(row);
    return SmallVector<Value>{p.begin, p.exists};
  });
  return op;
}

void TileEmitter::convertRows(Value source, Value tile, int64_t columns, int64_t width, llvm::function_ref<RowPlace(Value)> place) {
  Value places = findRows(cast<ssa_gpu::SharedType>(tile.getType()), width, place);
  ssa_gpu::ConvertRowsOp::create(builder, loc, source, places, tile, columns, width);
}

void TileEmitter::order(Value low, Value high) { ssa_gpu::OrderOp::create(builder, loc, low, high); }

void TileEmitter::fill(Value array, llvm::function_ref<Value(Value)> value) {
  auto op = ssa_gpu::FillOp::create(builder, loc, array);
  buildBody(op.getBody(), [&](Value entry) { return SmallVector<Value>{value(entry)}; });
}

void TileEmitter::fill(Value array, ArrayRef<Value> entries) {
  Emitter e(builder, loc);
  fill(array, [&](Value entry) {
    Value value = entries.back();
    for (auto [i, other] : llvm::enumerate(entries.drop_back()))
      value = e.select(e.eq(entry, e.i32(i)), other, value);
    return value;
  });
}

Value TileEmitter::loadEntry(Value array, Value index) {
  Type type = cast<ssa_gpu::SharedType>(array.getType()).getElementType();
  return ssa_gpu::LoadEntryOp::create(builder, loc, type, array, index);
}

void TileEmitter::commitCopies() { ssa_gpu::CommitCopiesOp::create(builder, loc); }
void TileEmitter::waitCopies(int64_t pending) { ssa_gpu::WaitCopiesOp::create(builder, loc, pending); }

void TileEmitter::gatherBox(Value map, Value column, Value tile, Value pipe, Value ticket, llvm::function_ref<Value(Value)> row) {
  auto op = ssa_gpu::GatherBoxOp::create(builder, loc, map, column, tile, pipe, ticket);
  buildBody(op.getBody(), [&](Value r) { return SmallVector<Value>{row(r)}; });
}

Value TileEmitter::allocPipe(int64_t slots, int64_t producers, int64_t consumers, bool pair, bool copies) {
  return ssa_gpu::AllocPipeOp::create(builder, loc, ssa_gpu::PipeType::get(builder.getContext(), slots, pair, copies), producers, consumers, IntegerAttr());
}

Value TileEmitter::mma(ssa_gpu::Family family, Value lhs, Value rhs, bool transposed, Value accumulator) {
  return ssa_gpu::MmaOp::create(builder, loc, accumulator.getType(), lhs, rhs, accumulator, /*adds=*/Value(), transposed, /*async=*/false, family);
}

/// The type of `rows` x `columns` as left operand.
static RankedTensorType operandType(int64_t rows, int64_t columns, Type elementType) {
  return RankedTensorType::get({rows, columns}, elementType, ssa_gpu::OperandAttr::get(elementType.getContext()));
}

Value TileEmitter::loadOperand(Value tile) {
  auto type = cast<ssa_gpu::SharedType>(tile.getType());
  return ssa_gpu::LoadOperandOp::create(builder, loc, operandType(rows, type.getShape()[1], type.getElementType()), tile);
}

Value TileEmitter::loadQuads(Value tile, Value counts) {
  auto type = cast<ssa_gpu::SharedType>(tile.getType());
  return ssa_gpu::LoadQuadsOp::create(builder, loc, accumulatorType(type.getShape()[1], type.getElementType()), tile, counts);
}

Value TileEmitter::toOperand(Value accumulator, Type elementType) {
  int64_t columns = cast<RankedTensorType>(accumulator.getType()).getDimSize(1);
  return ssa_gpu::ToOperandOp::create(builder, loc, operandType(rows, columns, elementType), accumulator);
}

Value TileEmitter::reduce(ssa_gpu::RowReduction kind, Value tile, bool ofLanes) {
  return ssa_gpu::ReduceOp::create(builder, loc, rowsType(getElementTypeOrSelf(tile)), kind, tile, ofLanes);
}

void TileEmitter::storeOperand(Value accumulator, Value tile) { ssa_gpu::StoreOperandOp::create(builder, loc, accumulator, tile); }

Value TileEmitter::joinGroups(ssa_gpu::RowReduction kind, Value rowVector, Value scratch) {
  return groups == 1 ? rowVector : ssa_gpu::JoinGroupsOp::create(builder, loc, rowVector.getType(), kind, rowVector, scratch, groups).getResult();
}

Value TileEmitter::fold(ssa_gpu::RowReduction kind, Value tile, int64_t columns, int64_t period) {
  auto type = accumulatorType(std::max<int64_t>(period, 8) * groups, getElementTypeOrSelf(tile));
  return ssa_gpu::FoldOp::create(builder, loc, type, kind, tile, columns, period);
}

TileEmitter TileEmitter::folded(int64_t factor) const {
  TileEmitter t = *this;
  t.rows /= factor;
  t.folds *= factor;
  return t;
}

Value TileEmitter::foldRows(ssa_gpu::RowReduction kind, Value tile, Value before) {
  return ssa_gpu::FoldRowsOp::create(builder, loc, before.getType(), kind, tile, before);
}

Value TileEmitter::joinRows(ssa_gpu::RowReduction kind, Value tile, Value scratch) {
  auto type = cast<RankedTensorType>(tile.getType());
  return ssa_gpu::JoinRowsOp::create(builder, loc, folded(2).accumulatorType(type.getDimSize(1), type.getElementType()), kind, tile, scratch);
}

Value TileEmitter::broadcast(Value rowVector, int64_t columns) {
  return ssa_gpu::BroadcastOp::create(builder, loc, accumulatorType(columns, getElementTypeOrSelf(rowVector)), rowVector);
}

Value TileEmitter::broadcastParts(ArrayRef<Value> rowVectors, int64_t columns) {
  Value tile = broadcast(rowVectors.front(), columns);
  if (rowVectors.size() == 1)
    return tile;
  Type i32 = builder.getI32Type();
  Value column = mapColumns(columns, i32, [](Value column) { return column; });
  for (auto [i, rowVector] : llvm::enumerate(rowVectors.drop_front())) {
    Value begin = constant(accumulatorType(columns, i32), builder.getI32IntegerAttr((i + 1) * columns / rowVectors.size()));
    Value isBehind = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, begin, column);
    tile = arith::SelectOp::create(builder, loc, isBehind, broadcast(rowVector, columns), tile);
  }
  return tile;
}

Value TileEmitter::mapRows(Type elementType, llvm::function_ref<Value(Value)> value) {
  auto op = ssa_gpu::MapRowsOp::create(builder, loc, rowsType(elementType));
  buildBody(op.getBody(), [&](Value row) { return SmallVector<Value>{value(row)}; });
  return op;
}

Value TileEmitter::mapColumns(int64_t columns, Type elementType, llvm::function_ref<Value(Value)> value) {
  auto op = ssa_gpu::MapColumnsOp::create(builder, loc, accumulatorType(columns, elementType));
  buildBody(op.getBody(), [&](Value column) { return SmallVector<Value>{value(column)}; });
  return op;
}

SmallVector<Value> TileEmitter::map(ValueRange tiles, TypeRange elementTypes, llvm::function_ref<SmallVector<Value>(ValueRange)> values) {
  auto like = cast<RankedTensorType>(tiles.front().getType());
  auto types = llvm::map_to_vector(elementTypes, [&](Type type) -> Type { return like.clone(type); });
  auto op = ssa_gpu::MapOp::create(builder, loc, types, tiles);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> taken = llvm::map_to_vector(tiles.getTypes(), [](Type type) { return getElementTypeOrSelf(type); });
  Block *block = builder.createBlock(&op.getBody(), {}, taken, SmallVector<Location>(taken.size(), loc));
  ssa_gpu::YieldOp::create(builder, loc, values(block->getArguments()));
  return op.getResults();
}

void TileEmitter::storeRows(Value tile, Value target, int64_t columns, int64_t width, llvm::function_ref<RowPlace(Value)> place, const AddedRows &added,
                            int64_t share, bool inQuads) {
  auto op = ssa_gpu::StoreRowsOp::create(builder, loc, tile, target, added.sources, added.factors, columns, width, added.width, added.skipZeros,
                                         share ? builder.getI64IntegerAttr(share) : IntegerAttr(), inQuads);
  buildBody(op.getBody(), [&](Value row) {
    RowPlace p = place(row);
    SmallVector<Value> yielded = {p.begin, p.exists};
    for (size_t i = 0; i < added.sources.size(); ++i)
      yielded.push_back(added.begin(i, row));
    return yielded;
  });
}

void TileEmitter::storeColumns(Value tile, Value target, Value count, llvm::function_ref<RowPlace(Value)> place) {
  auto op = ssa_gpu::StoreColumnsOp::create(builder, loc, tile, target, count);
  buildBody(op.getBody(), [&](Value column) {
    RowPlace p = place(column);
    return SmallVector<Value>{p.begin, p.exists};
  });
}

void TileEmitter::storeEntries(Value rowVector, Value target, llvm::function_ref<RowPlace(Value)> place) {
  auto op = ssa_gpu::StoreEntriesOp::create(builder, loc, rowVector, target);
  buildBody(op.getBody(), [&](Value row) {
    RowPlace p = place(row);
    return SmallVector<Value>{p.begin, p.exists};
  });
}
