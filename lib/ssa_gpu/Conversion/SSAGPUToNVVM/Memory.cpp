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

/// A thread copies the same columns of every so manieth row, where the threads are a multiple of the pieces of a row.
struct ConvertCopyRows : OpConversionPattern<CopyRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(CopyRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SharedType tile = op.getTile().getType();
    int64_t rows = tile.getShape()[0], pieces = tile.getShape()[1] / int64_t(op.getWidth()), threads = e.getNumThreads();
    Value source = e.globalAddress(op.getSource());
    int64_t total = rows * pieces;
    for (int64_t begin = 0; begin < total; begin += threads) {
      Value row, piece;
      if (threads % pieces == 0) {
        row = e.add(e.div(e.thread(), pieces), begin / pieces);
        piece = e.rem(e.thread(), pieces);
      } else {
        Value number = e.add(e.thread(), begin);
        row = e.div(number, pieces);
        piece = e.rem(number, pieces);
      }
      if (begin + threads <= total) {
        copyPiece(e, op, adaptor.getTile(), source, row, piece);
        continue;
      }
      scf::IfOp::create(rewriter, e.loc, e.lt(e.thread(), total - begin), [&](OpBuilder &, Location) {
        copyPiece(e, op, adaptor.getTile(), source, row, piece);
        scf::YieldOp::create(rewriter, e.loc);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

  static void copyPiece(ThreadEmitter &e, CopyRowsOp op, Value tile, Value source, Value row, Value piece) {
    OpBuilder &b = e.builder;
    int64_t width = op.getWidth(), columns = op.getColumns(), bytes = 2 * width, rows = op.getTile().getType().getShape()[0];
    SmallVector<Value> place = e.inlineBody(op.getBody(), row);
    Value column = e.mul(piece, width), reads = place[1];
    if (columns < op.getTile().getType().getShape()[1])
      reads = arith::AndIOp::create(b, e.loc, reads, e.lt(column, columns));
    // What is not read forms no address outside of the buffer either.
    Value zero = arith::ConstantIndexOp::create(b, e.loc, 0);
    Value wide = arith::IndexCastUIOp::create(b, e.loc, b.getIndexType(), column);
    Value at = arith::AddIOp::create(b, e.loc, place[0], wide);
    Type type = cast<MemRefType>(op.getSource().getType()).getElementType();
    Value from = e.element(source, arith::SelectOp::create(b, e.loc, reads, at, zero), type);
    Value size = arith::SelectOp::create(b, e.loc, reads, e.i32(bytes), e.i32(0));
    // The panel depends on the piece, and so on the thread.
    Value panel = e.mul(e.div(column, 64), rows * 128);
    Value within = e.rem(column, 64);
    Value to = e.swizzled(e.offset(tile, panel), rows, 0, row, e.div(within, 8));
    if (width < 8)
      to = e.offset(to, e.mul(e.rem(column, 8), 2));
    auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
    NVVM::CpAsyncOp::create(b, e.loc, to, from, bytes, cache, size);
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
  patterns.add<ConvertAlloc, ConvertSlot, ConvertCopyRows, ConvertFill, ConvertLoadEntry, ConvertCommitCopies, ConvertWaitCopies>(
      converter, patterns.getContext());
}
