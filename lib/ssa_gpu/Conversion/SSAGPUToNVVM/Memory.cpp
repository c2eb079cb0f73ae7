//===- Memory.cpp - Shared memory and copies ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

struct ConvertAlloc : OpConversionPattern<AllocOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(AllocOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return op.emitOpError("has no offset; run 'ssa-gpu-allocate' first");
    ThreadEmitter e(rewriter, op);
    auto type = LLVM::LLVMPointerType::get(op.getContext(), 3);
    Value base = LLVM::AddressOfOp::create(rewriter, e.loc, type, sharedMemoryName);
    rewriter.replaceOp(op, e.offset(base, int64_t(*op.getOffset())));
    return success();
  }
};

struct ConvertSlot : OpConversionPattern<SlotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(SlotOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    rewriter.replaceOp(op, e.offset(adaptor.getRing(), e.mul(adaptor.getIndex(), op.getRing().getType().getSlotBytes())));
    return success();
  }
};

/// Panels of 64 columns follow one another.
struct ConvertColumns : OpConversionPattern<ColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ColumnsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t rows = op.getTile().getType().getShape()[0], first = op.getFirst();
    rewriter.replaceOp(op, e.offset(adaptor.getTile(), first / 64 * rows * 128));
    return success();
  }
};

/// Where one piece of a row comes from and where it goes.
struct Piece {
  Value from, to; // addresses
  Value reads;    // else it is 0
};

/// The pieces of a tile that a thread copies. It copies the same columns of every so manieth row, where the threads are a multiple of the
/// pieces of a row.
template <typename Op>
class Pieces {
public:
  Pieces(ThreadEmitter &e, Op op, Value tile)
      : e(e), op(op), tile(tile), rows(op.getTile().getType().getShape()[0]), pieces(op.getTile().getType().getShape()[1] / int64_t(op.getWidth())),
        threads(e.getNumThreads()), source(e.globalAddress(op.getSource())) {}

  /// Calls `body` for every piece.
  void forEach(llvm::function_ref<void(const Piece &)> body) {
    int64_t total = rows * pieces;
    // Places are cheap to compute and dear to keep: LLVM would compute those of all copies before the loop that this is in, and keep them.
    Value thread = e.computeHere(e.thread());
    // Many narrow copies are a loop: side by side they would take too many registers.
    if (int64_t copies = total / threads; total % threads == 0 && copies > (op.getWidth() < 8 ? 8 : 16)) {
      scf::ForOp::create(e.builder, e.loc, e.i32(0), e.i32(copies), e.i32(1), ValueRange(), [&](OpBuilder &, Location, Value i, ValueRange) {
        Value number = e.add(thread, e.mul(i, threads));
        body(locate(e.div(number, pieces), e.rem(number, pieces)));
        scf::YieldOp::create(e.builder, e.loc);
      });
      return;
    }
    bool sameColumns = threads % pieces == 0;
    int64_t rowsAtATime = threads / pieces;
    // Rows a multiple of 8 apart exchange their pieces alike.
    bool sameExchange = sameColumns && rowsAtATime % 8 == 0;
    Value firstRow = e.div(thread, pieces), firstPiece = e.rem(thread, pieces), firstPlace = sameExchange ? getPlace(firstRow, firstPiece) : Value();
    for (int64_t begin = 0; begin < total; begin += threads) {
      auto copy = [&] {
        if (!sameColumns) {
          Value number = e.add(thread, begin);
          return body(locate(e.div(number, pieces), e.rem(number, pieces)));
        }
        Value row = e.add(firstRow, begin / pieces);
        body(locate(row, firstPiece, sameExchange ? e.offset(firstPlace, begin / pieces * 128) : Value()));
      };
      if (begin + threads <= total) {
        copy();
        continue;
      }
      scf::IfOp::create(e.builder, e.loc, arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::ult, thread, e.i32(total - begin)),
                        [&](OpBuilder &, Location) {
                          copy();
                          scf::YieldOp::create(e.builder, e.loc);
                        });
    }
  }

private:
  /// Where a piece goes.
  Value getPlace(Value row, Value piece) {
    int64_t width = op.getWidth();
    Value column = e.mul(piece, width), within = e.rem(column, 64);
    // The panel depends on the piece, and so on the thread.
    Value panel = e.mul(e.div(column, 64), rows * 128);
    Value to = e.swizzled(e.offset(tile, panel), rows, 0, row, e.div(within, 8));
    return width < 8 ? e.offset(to, e.mul(e.rem(column, 8), 2)) : to;
  }

  Piece locate(Value row, Value piece, Value to = {}) {
    OpBuilder &b = e.builder;
    int64_t columns = op.getColumns();
    SmallVector<Value> place = e.inlineBody(op.getBody(), row);
    Value column = e.mul(piece, op.getWidth()), reads = place[1];
    if (columns < op.getTile().getType().getShape()[1])
      reads = arith::AndIOp::create(b, e.loc, reads, e.lt(column, columns));
    // What is not read forms no address outside of the buffer either.
    Value zero = arith::ConstantIndexOp::create(b, e.loc, 0);
    Value wide = arith::IndexCastUIOp::create(b, e.loc, b.getIndexType(), column);
    Value at = arith::AddIOp::create(b, e.loc, place[0], wide);
    Type type = cast<MemRefType>(op.getSource().getType()).getElementType();
    Type address = type.getIntOrFloatBitWidth() == 8 ? b.getI8Type() : type;
    Value from = e.element(source, arith::SelectOp::create(b, e.loc, reads, at, zero), address);
    return {from, to ? to : getPlace(row, piece), reads};
  }

  ThreadEmitter &e;
  Op op;
  Value tile;
  int64_t rows, pieces, threads;
  Value source;
};

struct ConvertCopyRows : OpConversionPattern<CopyRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(CopyRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t bytes = 2 * op.getWidth();
    auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
    Pieces<CopyRowsOp>(e, op, adaptor.getTile()).forEach([&](const Piece &piece) {
      Value size = arith::SelectOp::create(rewriter, e.loc, piece.reads, e.i32(bytes), e.i32(0));
      NVVM::CpAsyncOp::create(rewriter, e.loc, piece.to, piece.from, bytes, cache, size);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertConvertRows : OpConversionPattern<ConvertRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ConvertRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t width = op.getWidth();
    Type narrow = cast<MemRefType>(op.getSource().getType()).getElementType(), wide = op.getTile().getType().getElementType();
    auto bytes = VectorType::get({width}, rewriter.getI8Type());
    Value none = arith::ConstantOp::create(rewriter, e.loc, DenseElementsAttr::get(bytes, rewriter.getI8IntegerAttr(0)));
    Pieces<ConvertRowsOp>(e, op, adaptor.getTile()).forEach([&](const Piece &piece) {
      auto read = scf::IfOp::create(
          rewriter, e.loc, piece.reads,
          [&](OpBuilder &b, Location) {
            scf::YieldOp::create(b, e.loc, LLVM::LoadOp::create(b, e.loc, bytes, piece.from, /*alignment=*/width).getResult());
          },
          [&](OpBuilder &b, Location) { scf::YieldOp::create(b, e.loc, none); });
      Value values = arith::BitcastOp::create(rewriter, e.loc, VectorType::get({width}, narrow), read.getResult(0));
      Value converted = arith::ExtFOp::create(rewriter, e.loc, VectorType::get({width}, wide), values);
      LLVM::StoreOp::create(rewriter, e.loc, converted, piece.to, /*alignment=*/2 * width);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertOrder : OpConversionPattern<OrderOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(OrderOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    constexpr int64_t width = 8, bytes = 16;
    SharedType tile = op.getLow().getType();
    auto type = VectorType::get({width}, tile.getElementType());
    int64_t total = tile.getSlotBytes() / bytes;
    for (int64_t begin = 0; begin < total; begin += e.getNumThreads()) {
      Value number = e.add(e.thread(), begin);
      scf::IfOp::create(rewriter, e.loc, e.lt(number, total), [&](OpBuilder &b, Location) {
        Value low = e.offset(adaptor.getLow(), e.mul(number, bytes)), high = e.offset(adaptor.getHigh(), e.mul(number, bytes));
        Value x = LLVM::LoadOp::create(b, e.loc, type, low, bytes), y = LLVM::LoadOp::create(b, e.loc, type, high, bytes);
        LLVM::StoreOp::create(b, e.loc, arith::MinimumFOp::create(b, e.loc, x, y), low, bytes);
        LLVM::StoreOp::create(b, e.loc, arith::MaximumFOp::create(b, e.loc, x, y), high, bytes);
        scf::YieldOp::create(b, e.loc);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertSpread : OpConversionPattern<SpreadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(SpreadOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    for (unsigned half : {0, 1}) {
      Value row = e.offset(adaptor.getArray(), e.mul(e.row(half, op.getTile().getType().getDimSize(0)), 4 * op.getPitch()));
      for (int64_t j = 0, n = op.getTile().getType().getDimSize(1) / 8; j < n; ++j) {
        int64_t first = 4 * j + 2 * half;
        Value pair = e.fromElements({e.extract(adaptor.getTile(), first), e.extract(adaptor.getTile(), first + 1)});
        LLVM::StoreOp::create(rewriter, e.loc, pair, e.offset(row, e.mul(e.column(j), 4)), /*alignment=*/8);
      }
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertFill : OpConversionPattern<FillOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FillOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t size = op.getArray().getType().getShape().back();
    for (int64_t begin = 0; begin < size; begin += e.getNumThreads()) {
      Value number = e.add(e.thread(), begin);
      scf::IfOp::create(rewriter, e.loc, e.lt(number, size), [&](OpBuilder &, Location) {
        Value value = e.inlineBody(op.getBody(), number).front();
        LLVM::StoreOp::create(rewriter, e.loc, value, e.offset(adaptor.getArray(), e.mul(number, 4)), /*alignment=*/4);
        scf::YieldOp::create(rewriter, e.loc);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertLoadEntry : OpConversionPattern<LoadEntryOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(LoadEntryOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Value address = e.offset(adaptor.getArray(), e.mul(adaptor.getIndex(), 4));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address, /*alignment=*/4);
    return success();
  }
};

struct ConvertCommitCopies : OpConversionPattern<CommitCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(CommitCopiesOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncCommitGroupOp>(op);
    return success();
  }
};

struct ConvertWaitCopies : OpConversionPattern<WaitCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(WaitCopiesOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncWaitGroupOp::create(rewriter, op.getLoc(), op.getPending());
    // `wgmma` reads shared memory through another proxy than copies write it through.
    bool needsFence = false;
    op->getParentOfType<gpu::GPUFuncOp>().walk([&](MmaOp mma) { needsFence |= mma.getFamily() == Family::wgmma; });
    if (needsFence)
      NVVM::FenceProxyOp::create(rewriter, op.getLoc(), NVVM::ProxyKind::async_shared,
                                 NVVM::SharedSpaceAttr::get(op.getContext(), NVVM::SharedSpace::shared_cta));
    rewriter.replaceOpWithNewOp<gpu::BarrierOp>(op);
    return success();
  }
};

} // namespace

void ssa_gpu::populateMemoryPatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertAlloc, ConvertSlot, ConvertColumns, ConvertCopyRows, ConvertConvertRows, ConvertOrder, ConvertSpread, ConvertFill,
               ConvertLoadEntry, ConvertCommitCopies, ConvertWaitCopies>(converter, patterns.getContext());
}
