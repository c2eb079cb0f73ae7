//===- SSAGPU.cpp - The ssa_gpu dialect -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa_gpu/IR/SSAGPU.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

#include "ssa_gpu/IR/SSAGPUDialect.cpp.inc"
#include "ssa_gpu/IR/SSAGPUEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ssa_gpu/IR/SSAGPUAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ssa_gpu/IR/SSAGPUTypes.cpp.inc"

#define GET_OP_CLASSES
#include "ssa_gpu/IR/SSAGPUOps.cpp.inc"

void SSAGPUDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ssa_gpu/IR/SSAGPUAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ssa_gpu/IR/SSAGPUTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ssa_gpu/IR/SSAGPUOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

int64_t ssa_gpu::getGroups(RankedTensorType tile) {
  auto layout = dyn_cast<AccumulatorAttr>(tile.getEncoding());
  return layout ? layout.getGroups() : 1;
}

int64_t ssa_gpu::getFolds(RankedTensorType tile) {
  if (auto layout = dyn_cast<AccumulatorAttr>(tile.getEncoding()))
    return layout.getFolds();
  auto rows = dyn_cast<RowsAttr>(tile.getEncoding());
  return rows ? rows.getFolds() : 1;
}

bool ssa_gpu::isRowwise(RankedTensorType tile) {
  auto layout = dyn_cast<AccumulatorAttr>(tile.getEncoding());
  auto rows = dyn_cast<RowsAttr>(tile.getEncoding());
  return (layout && layout.getRowwise()) || (rows && rows.getRowwise());
}

int64_t ssa_gpu::getValuesPerThread(RankedTensorType tile) {
  if (hasLayout<PlacesAttr>(tile)) // one lane or more for 16 rows, of all warps in the worst case
    return (tile.getDimSize(0) + 15) / 16;
  if (isRowwise(tile))
    return hasLayout<RowsAttr>(tile) ? 1 : tile.getDimSize(1) / getGroups(tile);
  int64_t folds = getFolds(tile);
  if (hasLayout<RowsAttr>(tile))
    return folds > 1 ? 1 : 2;
  return tile.getDimSize(1) / 2 / getGroups(tile) / folds;
}

int64_t ssa_gpu::getBoxRows(Type map, SharedType tile) {
  auto box = dyn_cast<nvgpu::TensorMapDescriptorType>(map);
  return box ? box.getTensor().getDimSize(0) : tile.getShape()[0];
}

/// `<64x128xbf16>`
template <typename MemoryType>
static Type parseMemory(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(elementType) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<MemoryType>(loc, parser.getContext(), shape, elementType);
}

template <typename MemoryType>
static void printMemory(AsmPrinter &printer, MemoryType type) {
  printer << '<';
  printer.printDimensionList(type.getShape());
  printer << 'x' << type.getElementType() << '>';
}

Type SharedType::parse(AsmParser &parser) { return parseMemory<SharedType>(parser); }
void SharedType::print(AsmPrinter &printer) const { printMemory(printer, *this); }
Type TensorMemoryType::parse(AsmParser &parser) { return parseMemory<TensorMemoryType>(parser); }
void TensorMemoryType::print(AsmPrinter &printer) const { printMemory(printer, *this); }

LogicalResult TensorMemoryType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type elementType) {
  if (!isa<Float32Type, Float16Type, BFloat16Type>(elementType))
    return emitError() << "expected elements of f32, f16 or bf16, but got " << elementType;
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "expected rank 2, or 3 for a ring, but got " << shape.size();
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows == rowsOfPair && shape.front() > 0 && columns >= 32 && columns % 32 == 0)
    return success();
  if (shape.front() < 1 || rows < lanes || rows % lanes != 0 || columns < 16 || columns % 16 != 0)
    return emitError() << "expected rows that are a multiple of " << lanes << " and columns that are one of 16, or " << rowsOfPair
                       << " rows of a pair and columns that are a multiple of 32, but got " << rows << " and " << columns;
  return success();
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type elementType) {
  if (!elementType.isIntOrFloat() || !llvm::is_contained({8u, 16u, 32u}, elementType.getIntOrFloatBitWidth()))
    return emitError() << "expected elements of 8 or 16 bits for a tile or of 32 bits for an array, but got " << elementType;
  size_t rank = elementType.getIntOrFloatBitWidth() <= 16 ? 2 : 1;
  if (shape.size() != rank && shape.size() != rank + 1)
    return emitError() << "expected rank " << rank << ", or " << rank + 1 << " for a ring, but got " << shape.size();
  for (int64_t size : shape)
    if (size < 1)
      return emitError() << "expected sizes of at least 1, but got " << size;
  return success();
}

int64_t SharedType::getSlotBytes() const {
  ArrayRef<int64_t> shape = getShape();
  if (isTile())
    return shape[shape.size() - 2] * getRowBytes(shape.back(), getElementType());
  return shape.back() * 4;
}

int64_t SharedType::getNumSlots() const { return isRing() ? getShape().front() : 1; }

LogicalResult PipeType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t slots, bool, bool) {
  if (slots < 1)
    return emitError() << "expected at least 1 slot, but got " << slots;
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

void RolesOp::build(OpBuilder &builder, OperationState &state, ArrayRef<int32_t> threads, ArrayRef<int32_t> registers) {
  state.addAttribute(getThreadsAttrName(state.name), builder.getDenseI32ArrayAttr(threads));
  state.addAttribute(getRegistersAttrName(state.name), builder.getDenseI32ArrayAttr(registers));
  for (size_t i = 0; i < threads.size(); ++i)
    ensureTerminator(*state.addRegion(), builder, state.location);
}

int32_t RolesOp::getFirstThread(unsigned role) {
  int32_t first = 0;
  for (unsigned i = 0; i < role; ++i) { // one with other registers begins with a warpgroup
    first += getThreads()[i];
    if (getRegisters()[i] != getRegisters()[i + 1])
      first = llvm::alignTo(first, warpgroup);
  }
  return first;
}

LogicalResult RolesOp::verify() {
  size_t roles = getPrograms().size();
  if (getThreads().size() != roles || getRegisters().size() != roles)
    return emitOpError() << "expected threads and registers for " << roles << " programs, but got " << getThreads().size() << " and "
                         << getRegisters().size();
  for (auto [threads, registers] : llvm::zip(getThreads(), getRegisters())) {
    if (threads < 32 || threads % 32 != 0)
      return emitOpError() << "expected the threads of a role to be a multiple of 32, but got " << threads;
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return emitOpError() << "expected the registers of a role to be a multiple of 8 in 24 .. 256, but got " << registers;
  }
  return success();
}

template <typename Op>
static LogicalResult verifyTake(Op op) {
  if (op.getPair() && !op.getPipe().getType().getPair())
    return op.emitOpError() << "expected a pipe with 'pair = true', as it is 'in pair', but got " << op.getPipe().getType();
  return success();
}
LogicalResult AcquireOp::verify() { return verifyTake(*this); }
LogicalResult AwaitOp::verify() { return verifyTake(*this); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult SlotOp::verify() {
  auto verify = [&](auto ring, auto slot) -> LogicalResult {
    if (!slot || !ring.isRing() || slot.getShape() != ring.getShape().drop_front() || slot.getElementType() != ring.getElementType())
      return emitOpError() << "expected " << getSlot().getType() << " to be one slot of a ring, but got " << getRing().getType();
    return success();
  };
  Type ring = getRing().getType(), slot = getSlot().getType();
  if (auto shared = dyn_cast<SharedType>(ring))
    return verify(shared, dyn_cast<SharedType>(slot));
  return verify(cast<TensorMemoryType>(ring), dyn_cast<TensorMemoryType>(slot));
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

int64_t AllocTensorsOp::getColumns(TypeRange types) {
  int64_t columns = 0;
  for (Type type : types)
    columns += cast<TensorMemoryType>(type).getColumns();
  return columns;
}

int64_t AllocTensorsOp::getAllocatedColumns(TypeRange types) {
  constexpr int64_t least = 32;
  return std::max<int64_t>(llvm::PowerOf2Ceil(getColumns(types)), least);
}

LogicalResult AllocTensorsOp::verify() {
  if (int64_t columns = getColumns(getResultTypes()); columns > TensorMemoryType::maxColumns)
    return emitOpError() << "needs " << columns << " columns of tensor memory, but there are " << TensorMemoryType::maxColumns;
  return success();
}

LogicalResult MmaTensorOp::verify() {
  TensorMemoryType result = getResult().getType();
  SharedType rhs = getRhs().getType();
  auto [shape, element, isRing] = [&]() -> std::tuple<ArrayRef<int64_t>, Type, bool> {
    if (auto shared = dyn_cast<SharedType>(getLhs().getType()))
      return {shared.getShape(), shared.getElementType(), shared.isRing()};
    auto tensor = cast<TensorMemoryType>(getLhs().getType());
    return {tensor.getShape(), tensor.getElementType(), tensor.isRing()};
  }();
  if (isRing || rhs.isRing() || !rhs.isTile() || result.isRing() || element != rhs.getElementType() || !result.getElementType().isF32())
    return emitOpError() << "expected tiles, of one type for a result of f32, but got " << getLhs().getType() << ", " << rhs << " and " << result;
  int64_t k = rhs.getShape()[getTransposed() ? 1 : 0], n = rhs.getShape()[getTransposed() ? 0 : 1], columns = result.getShape().back();
  bool isOfPair = result.isOfPair();
  int64_t own = isOfPair ? columns / 2 : columns; // columns of the right operand that this block has
  if (shape[0] != result.getRows() || n != own || shape[1] != k)
    return emitOpError() << "expected " << result.getRows() << "x" << k << " and " << k << "x" << own
                         << " as operands (the right one transposed), but got " << shape[0] << "x" << shape[1] << " and " << k << "x" << n;
  int64_t step = getInnerStep();
  if (isOfPair && (!isa<SharedType>(getLhs().getType()) || own > 128))
    return emitOpError() << "expected of a pair a left operand in shared memory and up to 256 columns, but got " << getLhs().getType() << " and " << result;
  if (constexpr int64_t most = 256; k % step != 0 || n % 16 != 0 || n > most)
    return emitOpError() << "expected the inner size to be a multiple of " << step << " and the columns of 16, at most " << most << ", but got " << k
                         << " and " << n;
  if (step == 32 && (!getTransposed() || !isa<Float8E4M3FNType>(element)))
    return emitOpError() << "expected elements of f8E4M3FN and a transposed right operand, as they have 8 bits, but got " << rhs;
  return success();
}

/// A tile of registers that is some columns of one in tensor memory.
static LogicalResult verifyAccess(Operation *op, RankedTensorType tile, TensorMemoryType memory) {
  if (memory.isRing() || !isRowwise(tile) || getGroups(tile) != (memory.isOfPair() ? 2 : 1) || tile.getDimSize(0) != memory.getRows() || tile.getDimSize(1) > memory.getShape().back() ||
      tile.getDimSize(1) % 16 != 0 || !tile.getElementType().isF32())
    return op->emitOpError() << "expected a rowwise tile of f32 with " << memory.getRows() << " rows and a multiple of 16 columns of a tile, but got " << tile
                             << " and " << memory;
  return success();
}

SmallVector<int64_t> LoadTensorOp::getPieces(int64_t columns) {
  SmallVector<int64_t> pieces;
  for (int64_t width : {32, 16, 8})
    for (; columns >= width; columns -= width)
      pieces.push_back(width);
  return pieces;
}
SmallVector<int64_t> StoreTensorOp::getPieces(int64_t columns) { return LoadTensorOp::getPieces(columns); }

LogicalResult LoadTensorOp::verify() {
  if (!getSource().getType().getElementType().isF32())
    return emitOpError() << "expected elements of f32, but got " << getSource().getType();
  return verifyAccess(*this, getTile().getType(), getSource().getType());
}
LogicalResult StoreTensorOp::verify() { return verifyAccess(*this, getTile().getType(), getTarget().getType()); }

LogicalResult SaveRowsOp::verify() {
  RankedTensorType rows = getRows().getType();
  SharedType array = getArray().getType();
  if (array.isTile() || array.isRing() || array.getShape()[0] != rows.getDimSize(0) || array.getElementType() != rows.getElementType())
    return emitOpError() << "expected an array with an entry for each row of the tile, but got " << rows << " and " << array;
  return success();
}


static LogicalResult verifyUnfolded(Operation *op, RankedTensorType tile) {
  return getFolds(tile) == 1 ? success() : op->emitOpError("expected a tile whose rows are not folded");
}

LogicalResult ChangeRowsOp::verify() { return verifyUnfolded(*this, getTile().getType()); }

LogicalResult HideColumnsOp::verify() {
  if (failed(verifyUnfolded(*this, getTile().getType())))
    return failure();
  size_t parts = getLast().size();
  if (parts == 0 || getTile().getType().getDimSize(1) % (parts * getGroups(getTile().getType())) != 0)
    return emitOpError() << "expected an entry of 'last' for each of some equal parts of " << getTile().getType().getDimSize(1) << " columns, but got " << parts;
  if (parts > 1 && getGroups(getTile().getType()) > 1)
    return emitOpError() << "expected one part, as columns are spread over groups of warps, but got " << parts;
  for (auto [name, bounds] : {std::pair("first", getFirst()), std::pair("below", getBelow())})
    if (!bounds.empty() && bounds.size() != parts)
      return emitOpError() << "expected " << parts << " of '" << name << "', as many as of 'last', but got " << bounds.size();
  if (!getBelow().empty() && getFirst().empty())
    return emitOpError("expected 'first', as 'below' is about columns before it");
  return success();
}

LogicalResult MmaOp::verify() {
  RankedTensorType acc = getAccumulator().getType();
  auto shapeOf = [](Type type) {
    auto shared = dyn_cast<SharedType>(type);
    return shared ? shared.getShape() : cast<RankedTensorType>(type).getShape();
  };
  ArrayRef<int64_t> lhs = shapeOf(getLhs().getType()), rhs = getRhs().getType().getShape();
  if (lhs.size() != 2 || rhs.size() != 2)
    return emitOpError("expected tiles, not rings, as operands");
  int64_t k = getTransposed() ? rhs[1] : rhs[0], n = getTransposed() ? rhs[0] : rhs[1];
  if (lhs[0] != acc.getDimSize(0) || n != acc.getDimSize(1) || lhs[1] != k)
    return emitOpError() << "expected " << acc.getDimSize(0) << "x" << k << " and " << k << "x" << acc.getDimSize(1)
                         << " as operands (the right one transposed), but got " << lhs[0] << "x" << lhs[1] << " and " << k << "x" << n;
  int64_t step = 32 / getRhs().getType().getElementBytes(); // inner columns of an instruction
  if (k % step != 0 || n % 8 != 0)
    return emitOpError() << "expected the inner size to be a multiple of " << step << " and the columns of 8, but got " << k << " and " << n;
  if (step == 32 && (getFamily() != Family::wgmma || !getTransposed()))
    return emitOpError("expected 'wgmma' and a transposed right operand, as elements have 8 bits");
  if ((getAsync() || getAdds()) && getFamily() != Family::wgmma)
    return emitOpError() << "expected 'wgmma', as '" << (getAsync() ? "async" : "adds") << "' needs it";
  // A group's columns are whole blocks of the instructions, and of a right operand that is not transposed whole panels.
  int64_t groups = getGroups(acc), part = n / groups, multiple = getTransposed() ? (getFamily() == Family::mma_sync ? 16 : 8) : 64;
  if (groups > 1 && (n % groups != 0 || part % multiple != 0))
    return emitOpError() << "expected the columns of a group to be a multiple of " << multiple << ", but got " << n << " for " << groups
                         << " groups";
  return success();
}

/// The region takes one i32, the number of a row, column or entry, and yields values of these types.
static LogicalResult verifyBody(Operation *op, ArrayRef<Type> yielded) {
  Block &block = op->getRegion(0).front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isInteger(32) || !yield ||
      yield.getValues().getTypes() != TypeRange(yielded))
    return op->emitOpError() << "expected a region from i32 to (" << ArrayRef<Type>(yielded) << ")";
  return success();
}

static SmallVector<Type> placeTypes(Operation *op) {
  return {IndexType::get(op->getContext()), IntegerType::get(op->getContext(), 1)};
}

LogicalResult ColumnsOp::verify() {
  SharedType tile = getTile().getType(), part = getPart().getType();
  ArrayRef<int64_t> from = tile.getShape(), to = part.getShape();
  int64_t first = getFirst();
  if (!tile.isTile() || tile.isRing() || tile.getPanelColumns() != 64 || to.size() != 2 || to[0] != from[0] || part.getElementType() != tile.getElementType() ||
      first < 0 || first % 64 != 0 || first + to[1] > from[1])
    return emitOpError() << "expected " << part << " to be columns of " << tile << " from a multiple of 64 on, but got " << first;
  return success();
}

LogicalResult CopyBoxOp::verify() {
  SharedType tile = getTile().getType();
  int64_t first = getFirstRow(), rows = getBoxRows(getMap().getType(), tile);
  if (!tile.isTile() || tile.isRing() || first < 0 || first % 8 != 0 || first + rows > tile.getShape()[0])
    return emitOpError() << "expected the box to be rows of " << tile << " from a multiple of 8 on, but got " << rows << " from " << first;
  return success();
}

LogicalResult GatherBoxOp::verify() {
  SharedType tile = getTile().getType();
  if (!tile.isTile() || tile.isRing() || tile.getShape()[0] % 8 != 0)
    return emitOpError() << "expected a tile of a multiple of 8 rows, but got " << tile;
  return verifyBody(*this, IntegerType::get(getContext(), 32));
}

LogicalResult OrderOp::verify() {
  if (!getLow().getType().isTile() || getLow().getType().isRing() || getLow().getType() != getHigh().getType())
    return emitOpError() << "expected two tiles of one type, but got " << getLow().getType() << " and " << getHigh().getType();
  return success();
}

template <typename Op>
static LogicalResult verifyPlaces(Op op) {
  RankedTensorType places = op.getPlaces().getType();
  SharedType tile = op.getTile().getType();
  int64_t pieces = cast<PlacesAttr>(places.getEncoding()).getPieces(), width = op.getWidth();
  bool isOrder = tile.isTile() && !tile.isRing() && tile.getShape()[1] % width == 0 &&
                 PlacesAttr::getRowsOfWarp(tile.getShape()[1] / width) == PlacesAttr::getRowsOfWarp(pieces);
  if (!isOrder || places.getDimSize(0) != tile.getShape()[0])
    return op.emitOpError() << "expected places of the rows of " << tile << ", of " << width << " elements a piece, but got " << places;
  return success();
}

LogicalResult ConvertRowsOp::verify() {
  if (cast<MemRefType>(getSource().getType()).getElementTypeBitWidth() != 8)
    return emitOpError() << "expected elements of 8 bits, but got " << getSource().getType();
  return verifyPlaces(*this);
}
LogicalResult CopyRowsOp::verify() { return verifyPlaces(*this); }
LogicalResult FindRowsOp::verify() { return verifyBody(*this, placeTypes(*this)); }
LogicalResult StoreRowsOp::verify() {
  int64_t width = getWidth(), columns = getColumns();
  if (!llvm::is_contained({1, 2, 8}, width) || columns % width != 0)
    return emitOpError() << "expected a width of 1, 2 or 8 that divides " << columns << " columns, but got " << width;
  if (RankedTensorType tile = getTile().getType(); getShare() && (!isRowwise(tile) || columns != tile.getDimSize(1)))
    return emitOpError() << "expected with 'share' all columns of a rowwise tile, but got " << columns << " of " << tile;
  if (getShare() && !getSources().empty())
    return emitOpError("expected no 'share' where rows are added");
  if (getInQuads() && (isRowwise(getTile().getType()) || width != 8 || columns % 32 != 0 || getTile().getType().getDimSize(1) % (32 * getGroups(getTile().getType())) != 0 ||
                       cast<MemRefType>(getTarget().getType()).getElementTypeBitWidth() != 16 || !getSources().empty()))
    return emitOpError() << "expected with 'in_quads' a width of 8, multiples of 32 columns of a tile that is not rowwise, a target of 16 bits and no sources";
  int64_t sourceWidth = getSourceWidth();
  if (!llvm::is_contained({1, 2, 4, 8}, sourceWidth))
    return emitOpError() << "expected a 'source_width' of 1, 2, 4 or 8, but got " << sourceWidth;
  if (width == 1 && !getSources().empty())
    return emitOpError("expected a width of 2 or 8 where rows are added, but got 1");
  SmallVector<Type> yielded = placeTypes(*this);
  yielded.append(getSources().size(), IndexType::get(getContext()));
  return verifyBody(*this, yielded);
}
LogicalResult LoadQuadsOp::verify() {
  SharedType tile = getTile().getType();
  RankedTensorType rows = getRows().getType();
  bool isPlain = !isRowwise(rows) && getFolds(rows) == 1 && getGroups(rows) == 1 && rows.getDimSize(1) % 32 == 0 && rows.getElementTypeBitWidth() == 16;
  if (!isPlain || !tile.isTile() || tile.isRing() || tile.getPanelColumns() != 64 || tile.getShape() != rows.getShape() || tile.getElementType() != rows.getElementType())
    return emitOpError() << "expected a tile of 16 bits and multiples of 32 columns, and as much of an accumulator that is neither rowwise nor of groups, but got " << tile
                         << " and " << rows;
  return success();
}
LogicalResult StoreEntriesOp::verify() { return verifyBody(*this, placeTypes(*this)); }
LogicalResult FillOp::verify() { return verifyBody(*this, getArray().getType().getElementType()); }
LogicalResult MapRowsOp::verify() { return verifyBody(*this, getType().getElementType()); }
LogicalResult MapOp::verify() {
  if (getTiles().empty() || getOutputs().empty())
    return emitOpError("expected at least one tile and one result");
  auto first = cast<RankedTensorType>(getTiles().front().getType());
  Block &block = getBody().front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  auto elementsOf = [](TypeRange tiles) { return llvm::map_to_vector(tiles, [](Type type) { return getElementTypeOrSelf(type); }); };
  SmallVector<Type> taken = elementsOf(getTiles().getTypes()), yielded = elementsOf(getOutputs().getTypes());
  if (block.getArgumentTypes() != TypeRange(taken) || !yield || yield.getValues().getTypes() != TypeRange(yielded))
    return emitOpError() << "expected a region from (" << taken << ") to (" << yielded << ")";
  for (Type type : llvm::concat<Type>(getTiles().getTypes(), getOutputs().getTypes()))
    if (auto tile = cast<RankedTensorType>(type); tile.getShape() != first.getShape() || tile.getEncoding() != first.getEncoding())
      return emitOpError() << "expected tiles of one shape and layout, but got " << first << " and " << tile;
  return success();
}
LogicalResult StoreColumnsOp::verify() { return verifyBody(*this, placeTypes(*this)); }

LogicalResult FoldOp::verify() {
  RankedTensorType tile = getTile().getType(), result = getResult().getType();
  int64_t columns = getColumns(), period = getPeriod(), groups = getGroups(tile), most = tile.getDimSize(1) / groups;
  bool isPeriod = period == 1 || period == 2 || period == 4 || (period > 0 && period % 8 == 0);
  if (!isPeriod || columns < period || columns % std::max<int64_t>(period, 8) != 0 || columns > most)
    return emitOpError() << "expected a period of 1, 2, 4 or a multiple of 8 that divides 'columns', a multiple of 8 up to "
                         << most << ", but got " << period << " and " << columns;
  auto expected = RankedTensorType::get({tile.getDimSize(0), std::max<int64_t>(period, 8) * groups}, tile.getElementType(), tile.getEncoding());
  if (result != expected)
    return emitOpError() << "expected a result of " << expected << ", but got " << result;
  return success();
}

/// The type of `tile` with `factor` times as many rows joined.
static RankedTensorType foldType(RankedTensorType tile, int64_t factor) {
  auto layout = AccumulatorAttr::get(tile.getContext(), getGroups(tile), /*rowwise=*/false, getFolds(tile) * factor);
  return RankedTensorType::get({tile.getDimSize(0) / factor, tile.getDimSize(1)}, tile.getElementType(), layout);
}

/// The values that a thread has of a tile come in twos of neighbouring columns, and halves of them in fours.
static LogicalResult verifyFolded(Operation *op, RankedTensorType tile, RankedTensorType result, int64_t leastFolds, int64_t mostFolds) {
  int64_t folds = getFolds(tile);
  if (isRowwise(tile) || folds < leastFolds || folds > mostFolds || getValuesPerThread(tile) % 8 != 0)
    return op->emitOpError() << "expected a tile that threads have rows of, in eights, with 'folds' from " << leastFolds << " to " << mostFolds << ", but got " << tile;
  if (RankedTensorType expected = foldType(tile, 2); result != expected)
    return op->emitOpError() << "expected a result of " << expected << ", but got " << result;
  return success();
}

LogicalResult FoldRowsOp::verify() { return verifyFolded(*this, getTile().getType(), getResult().getType(), 1, 1); }

LogicalResult JoinRowsOp::verify() {
  RankedTensorType tile = getTile().getType();
  if (failed(verifyFolded(*this, tile, getResult().getType(), 2, 4)))
    return failure();
  constexpr int64_t rowsOfGroup = 64;
  if (tile.getDimSize(0) * getFolds(tile) != rowsOfGroup)
    return emitOpError() << "expected a tile of " << rowsOfGroup << " rows before they were joined, but got " << tile;
  auto scratch = getScratch().getType();
  int64_t entries = tile.getDimSize(0) * tile.getDimSize(1) / 2;
  if (!scratch.getElementType().isF32() || scratch.isRing() || scratch.getShape()[0] < entries)
    return emitOpError() << "expected " << entries << " entries of f32 in 'scratch', but got " << scratch;
  return success();
}

LogicalResult MapColumnsOp::verify() { return verifyBody(*this, getType().getElementType()); }
