//===- Mma.cpp - Matrix products ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

Value ssa_gpu::makeDescriptor(ThreadEmitter &e, Value address, int64_t leading) {
  OpBuilder &b = e.builder;
  Type i64 = b.getI64Type();
  Value number = LLVM::PtrToIntOp::create(b, e.loc, b.getI32Type(), address);
  Value low = arith::AndIOp::create(b, e.loc, e.div(number, 16), e.i32(0x3fff));
  uint64_t head = (uint64_t(1) << 62) | (uint64_t(1024 / 16) << 32) | (uint64_t(leading / 16) << 16);
  Value wide = arith::ExtUIOp::create(b, e.loc, i64, low);
  return arith::OrIOp::create(b, e.loc, wide, arith::ConstantIntOp::create(b, e.loc, i64, int64_t(head)));
}

bool ssa_gpu::needsProxyFence(Operation *op) {
  return op->getParentOfType<gpu::GPUFuncOp>()
      .walk([](Operation *inner) {
        auto mma = dyn_cast<MmaOp>(inner);
        bool needs = isa<MmaTensorOp>(inner) || (mma && mma.getFamily() == Family::wgmma);
        return needs ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

/// Reads four 8x8 matrices of 16-bit values; lane l gives the address of row l%8 of matrix l/8.
SmallVector<Value> loadMatrices(ThreadEmitter &e, Value address, bool transposed) {
  auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape = NVVM::LdStMatrixShapeAttr::get(e.builder.getContext(), 8, 8);
  Type i32 = e.builder.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), {i32, i32, i32, i32});
  Value loaded = NVVM::LdMatrixOp::create(e.builder, e.loc, type, address, 4, layout, shape, NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> matrices;
  for (int64_t i = 0; i < 4; ++i)
    matrices.push_back(LLVM::ExtractValueOp::create(e.builder, e.loc, loaded, i));
  return matrices;
}

/// The row within 16 and the piece within two that lane l addresses: matrices 1 and 3 are 8 rows down, 2 and 3 a piece to the right.
std::pair<Value, Value> rowsThenPieces(ThreadEmitter &e) {
  return {e.rem(e.lane(), 16), e.div(e.lane(), 16)};
}

/// The other way round: matrices 1 and 3 are a piece to the right, 2 and 3 are 8 rows down.
std::pair<Value, Value> piecesThenRows(ThreadEmitter &e) {
  return {e.add(e.mul(e.div(e.lane(), 16), 8), e.rem(e.lane(), 8)), e.rem(e.div(e.lane(), 8), 2)};
}

/// Addresses of this lane in a swizzled tile, relative to where its first one is. Elements have 16 bits, or are pairs of 8.
struct LaneAddress {
  LaneAddress(ThreadEmitter &e, Value tile, int64_t rows, Value row, Value piece) : e(e), rows(rows), first(e.swizzled(tile, rows, 0, row, piece)) {}

  /// `row` is a multiple of 8, `column` of 16: its bits of pieces are none of the first.
  Value at(int64_t row, int64_t column) {
    return e.offset(e.flip(first, e.i32(column % 64 / 8 * 16)), (column / 64 * rows + row) * 128);
  }

  ThreadEmitter &e;
  int64_t rows;
  Value first;
};

/// Where a thread finds what it holds of a left operand of `rows` rows at `tile`.
LaneAddress addressLhs(ThreadEmitter &e, Value tile, int64_t rows) {
  auto [rowInWarp, piece] = rowsThenPieces(e);
  return LaneAddress(e, tile, rows, e.add(e.mul(e.warpInGroup(rows), 16), rowInWarp), piece);
}

struct ConvertLoadOperand : OpConversionPattern<LoadOperandOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(LoadOperandOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t rows = op.getTile().getType().getShape()[0], inner = op.getTile().getType().getShape()[1];
    SmallVector<Value> registers;
    LaneAddress address = addressLhs(e, adaptor.getTile(), rows);
    for (int64_t k = 0; k < inner * op.getTile().getType().getElementBytes() / 2; k += 16)
      registers.append(loadMatrices(e, address.at(0, k), /*transposed=*/false));
    rewriter.replaceOp(op, e.fromElements(registers));
    return success();
  }
};

/// One m16n8k16 product added to values `first` .. `first`+3 of `accumulator`.
Value multiply(ThreadEmitter &e, ArrayRef<Value> lhs, ArrayRef<Value> rhs, Value accumulator, int64_t first, NVVM::MMATypes type) {
  SmallVector<Value> sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(e.extract(accumulator, first + i));
  // The op takes pairs of f16 as what they are, pairs of bf16 as i32.
  auto toPairs = [&](ArrayRef<Value> registers) {
    if (type == NVVM::MMATypes::bf16)
      return llvm::to_vector(registers);
    auto pair = VectorType::get({2}, e.builder.getF16Type());
    return llvm::map_to_vector(registers, [&](Value v) -> Value { return LLVM::BitcastOp::create(e.builder, e.loc, pair, v); });
  };
  Type f32 = e.builder.getF32Type();
  auto result = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), {f32, f32, f32, f32});
  Value product = NVVM::MmaOp::create(e.builder, e.loc, result, toPairs(lhs), toPairs(rhs), sums, /*shape=*/ArrayRef<int64_t>{16, 8, 16},
                                      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
                                      std::array<NVVM::MMATypes, 2>{type, type},
                                      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (int64_t i = 0; i < 4; ++i)
    accumulator = e.insert(LLVM::ExtractValueOp::create(e.builder, e.loc, product, i), accumulator, first + i);
  return accumulator;
}

Value convertMmaSync(ThreadEmitter &e, MmaOp op, Value lhs, Value rhs, Value accumulator) {
  ArrayRef<int64_t> shape = op.getRhs().getType().getShape();
  bool transposed = op.getTransposed();
  int64_t rows = shape[0], inner = transposed ? shape[1] : shape[0], columns = transposed ? shape[0] : shape[1];
  auto type = isa<BFloat16Type>(op.getRhs().getType().getElementType()) ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  auto [row, piece] = transposed ? piecesThenRows(e) : rowsThenPieces(e);
  bool lhsInRegisters = isa<VectorType>(lhs.getType());
  RankedTensorType result = op.getAccumulator().getType();
  int64_t lhsRows = result.getDimSize(0), groups = getGroups(result);
  columns /= groups;
  // A group's columns are rows of a transposed operand, else whole panels.
  if (groups > 1)
    rhs = e.offset(rhs, e.mul(e.group(lhsRows), transposed ? columns * 128 : columns / 64 * rows * 128));
  LaneAddress address(e, rhs, rows, row, piece);
  std::optional<LaneAddress> lhsAddress;
  if (!lhsInRegisters)
    lhsAddress.emplace(addressLhs(e, lhs, lhsRows));
  for (int64_t k = 0; k < inner; k += 16) {
    SmallVector<Value> a;
    if (lhsInRegisters)
      for (int64_t i = 0; i < 4; ++i)
        a.push_back(e.extract(lhs, k / 4 + i));
    else
      a = loadMatrices(e, lhsAddress->at(0, k), /*transposed=*/false);
    for (int64_t n = 0; n < columns; n += 16) {
      // Four matrices: two pieces of inner columns for each of two blocks of 8 result columns.
      SmallVector<Value> b = loadMatrices(e, transposed ? address.at(n, k) : address.at(k, n), /*transposed=*/!transposed);
      accumulator = multiply(e, a, {b[0], b[1]}, accumulator, n / 2, type);
      accumulator = multiply(e, a, {b[2], b[3]}, accumulator, n / 2 + 4, type);
    }
  }
  return accumulator;
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// The text of one piece of inline assembly: products on `values` accumulator registers of each part, which are `$0`.. and are
/// followed by the operands. All in one piece, since between two pieces every accumulator passes through LLVM and its code generator,
/// which may also put moves there that `ptxas` would have to wait for.
class WgmmaText {
public:
  WgmmaText(int64_t values, bool hasInits) : next(hasInits ? 2 * values : values), os(text) {}

  /// The next `count` operands.
  SmallVector<std::string> operands(int64_t count) {
    SmallVector<std::string> names;
    for (int64_t i = 0; i < count; ++i)
      names.push_back("$" + std::to_string(next++));
    return names;
  }

  void line(const Twine &instruction) { os << instruction << ";\n"; }

  /// A descriptor `bytes` past another.
  std::string advance(StringRef descriptor, int64_t bytes) {
    if (bytes == 0)
      return descriptor.str();
    std::string name = "d" + std::to_string(numDescriptors++);
    line(".reg .b64 " + name);
    line("add.s64 " + name + ", " + descriptor + ", " + Twine(bytes / 16));
    return name;
  }

  /// A product of 64 rows, `inner` inner columns and `columns` columns on the accumulators from `first`.
  /// `adds` is 0, 1 or a predicate.
  void multiply(StringRef types, int64_t columns, int64_t inner, int64_t first, StringRef lhs, StringRef rhs, StringRef adds, StringRef layouts) {
    os << "wgmma.mma_async.sync.aligned.m64n" << columns << "k" << inner << ".f32." << types << " {";
    for (int64_t i = 0; i < columns / 2; ++i)
      os << (i ? ", $" : "$") << first + i;
    line("}, " + lhs + ", " + rhs + ", " + adds + ", 1, 1" + layouts);
  }

  std::string take() { return "{\n" + text + "}"; }

private:
  int64_t next, numDescriptors = 0;
  std::string text;
  llvm::raw_string_ostream os;
};

/// Inline assembly that gives `count` f32 registers, which begin as `inits` if there are any.
SmallVector<Value> callAsm(ThreadEmitter &e, StringRef text, int64_t count, ArrayRef<Value> inits, ArrayRef<Value> inputs) {
  std::string constraints;
  for (int64_t i = 0; i < count; ++i)
    constraints += "=&f,";
  for (size_t i = 0; i < inits.size(); ++i)
    constraints += std::to_string(i) + ",";
  for (Value v : inputs)
    constraints += v.getType().isInteger(64) ? "l," : "r,";
  constraints.pop_back();
  SmallVector<Value> operands(inits);
  llvm::append_range(operands, inputs);
  auto type = LLVM::LLVMStructType::getLiteral(e.builder.getContext(), SmallVector<Type>(count, e.builder.getF32Type()));
  Value registers = e.inlineAsm(type, text, constraints, operands);
  SmallVector<Value> results;
  for (int64_t i = 0; i < count; ++i)
    results.push_back(LLVM::ExtractValueOp::create(e.builder, e.loc, registers, i));
  return results;
}

StringRef getTypes(Type type) {
  return isa<BFloat16Type>(type) ? "bf16.bf16" : isa<Float8E4M3FNType>(type) ? "e4m3.e4m3" : "f16.f16";
}

Value convertWgmma(ThreadEmitter &e, MmaOp op, Value lhs, Value rhs, Value accumulator, Value addsIf) {
  constexpr int64_t maxColumns = 256;
  ArrayRef<int64_t> shape = op.getRhs().getType().getShape();
  bool transposed = op.getTransposed();
  int64_t rows = shape[0], inner = transposed ? shape[1] : shape[0], columns = transposed ? shape[0] : shape[1];
  StringRef types = getTypes(op.getRhs().getType().getElementType());
  int64_t elementBytes = op.getRhs().getType().getElementBytes(), step = 32 / elementBytes; // inner columns of an instruction
  bool lhsInRegisters = isa<VectorType>(lhs.getType());
  RankedTensorType result = op.getAccumulator().getType();
  int64_t lhsRows = result.getDimSize(0), groups = getGroups(result);
  columns /= groups;
  if (groups > 1) { // a group's columns are rows of a transposed operand, else whole panels
    int64_t bytes = transposed ? columns * 128 : columns / 64 * rows * 128;
    rhs = e.offset(rhs, e.mul(e.uniform(e.group(lhsRows)), bytes));
  }
  bool adds = !matchPattern(op.getAccumulator(), m_AnyZeroFloat());

  SmallVector<Value> inits, inputs;
  if (adds)
    inits = e.elements(accumulator);
  if (lhsInRegisters)
    inputs = e.elements(lhs);
  else // a warpgroup has its own 64 rows
    inputs.push_back(makeDescriptor(e, e.offset(lhs, e.mul(e.uniform(e.div(e.warpInGroup(lhsRows), 4)), 64 * 128)), 0));
  // Where rows are the inner dimension the panels are `rows` rows apart.
  inputs.push_back(makeDescriptor(e, rhs, transposed ? 0 : rows * 128));

  WgmmaText text(columns / 2, adds);
  SmallVector<std::string> lhsNames = text.operands(inputs.size() - 1);
  std::string rhsName = text.operands(1).front(), firstAdds = adds ? "1" : "0";
  if (adds && addsIf) {
    inputs.push_back(arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI32Type(), addsIf));
    firstAdds = "adds";
    text.line(".reg .pred adds");
    text.line("setp.ne.b32 adds, " + text.operands(1).front() + ", 0");
  }
  text.line("wgmma.fence.sync.aligned");
  for (int64_t first = 0; first < columns; first += maxColumns) {
    int64_t width = std::min(maxColumns, columns - first);
    for (int64_t k = 0; k < inner; k += step) {
      int64_t byte = k * elementBytes;
      std::string left = lhsInRegisters ? "{" + llvm::join(ArrayRef(lhsNames).slice(byte / 8, 4), ", ") + "}"
                                        : text.advance(lhsNames.front(), byte / 128 * lhsRows * 128 + byte % 128);
      std::string right = text.advance(rhsName, transposed ? first * 128 + byte / 128 * rows * 128 + byte % 128
                                                           : first / 64 * rows * 128 + k * 128);
      std::string layouts = (lhsInRegisters ? "" : ", 0") + std::string(transposed ? ", 0" : ", 1");
      if (elementBytes == 1) // rows are along the inner size, always
        layouts.clear();
      text.multiply(types, width, step, first / 2, left, right, k > 0 ? "1" : firstAdds, layouts);
    }
  }
  text.line("wgmma.commit_group.sync.aligned");
  if (!op.getAsync())
    text.line("wgmma.wait_group.sync.aligned 0");
  return e.fromElements(callAsm(e, text.take(), columns / 2, inits, inputs));
}

struct ConvertMma : OpConversionPattern<ssa_gpu::MmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ssa_gpu::MmaOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs(), accumulator = adaptor.getAccumulator();
    rewriter.replaceOp(op, op.getFamily() == Family::wgmma ? convertWgmma(e, op, lhs, rhs, accumulator, adaptor.getAdds()) : convertMmaSync(e, op, lhs, rhs, accumulator));
    return success();
  }
};

struct ConvertWaitMma : OpConversionPattern<WaitMmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(WaitMmaOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    // The accumulators pass through the wait, so that nothing reads them before it.
    SmallVector<Value> values = e.elements(adaptor.getTile());
    std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(op.getPending()) + ";";
    rewriter.replaceOp(op, e.fromElements(callAsm(e, text, values.size(), values, {})));
    return success();
  }
};

} // namespace

void ssa_gpu::populateMmaPatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertLoadOperand, ConvertMma, ConvertWaitMma>(converter, patterns.getContext());
}
