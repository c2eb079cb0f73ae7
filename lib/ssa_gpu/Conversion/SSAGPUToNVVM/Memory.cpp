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
    rewriter.replaceOp(op, e.sharedAddress(*op.getOffset()));
    return success();
  }
};

struct ConvertSlot : OpConversionPattern<SlotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(SlotOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    if (auto tensors = dyn_cast<TensorMemoryType>(op.getRing().getType()))
      rewriter.replaceOp(op, e.add(adaptor.getRing(), e.mul(adaptor.getIndex(), tensors.getColumnsOfSlot())));
    else
      rewriter.replaceOp(op, e.offset(adaptor.getRing(), e.mul(adaptor.getIndex(), cast<SharedType>(op.getRing().getType()).getSlotBytes())));
    return success();
  }
};

/// Panels follow one another.
struct ConvertColumns : OpConversionPattern<ColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ColumnsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t rows = op.getTile().getType().getShape()[0], first = op.getFirst();
    rewriter.replaceOp(op, e.offset(adaptor.getTile(), first / op.getTile().getType().getPanelColumns() * rows * 128));
    return success();
  }
};

/// Where one piece of a row comes from and where it goes.
struct Piece {
  Value from, to; // addresses
  Value reads;    // else it is 0; null if it always reads
};

/// The pieces of a tile that a thread copies. The lanes of a warp take the pieces of as many rows as they suffice for; of long rows each takes one
/// piece in so many, from few rows at once. The next rows are those of the next warp, and so on in passes.
class Copies {
public:
  Copies(ThreadEmitter &e, int64_t rows, int64_t pieces)
      : e(e), rows(rows), pieces(pieces), lanesOfRow(PlacesAttr::getLanesOfRow(pieces)), rowsOfWarp(PlacesAttr::getRowsOfWarp(pieces)),
        rowsOfPass(e.getNumThreads() / 32 * rowsOfWarp), passes((rows + rowsOfPass - 1) / rowsOfPass) {
    // Places are cheap to compute and dear to keep: LLVM would compute those of all copies before the loop that this is in, and keep them.
    Value thread = e.computeHere(e.thread());
    lane = e.rem(thread, 32);
    subRow = e.div(lane, lanesOfRow);
    firstPiece = e.rem(lane, lanesOfRow);
    warpRow = e.mul(e.div(thread, 32), rowsOfWarp);
  }

  /// What is copied, in `width` elements a piece.
  void setTile(SharedType type, Value memory, int64_t tileColumns, int64_t tileWidth, Value buffer, Type bufferType, int64_t first) {
    tile = memory;
    paddedColumns = type.getShape()[1];
    panelColumns = type.getPanelColumns();
    pieceColumns = type.getPieceColumns();
    columns = tileColumns;
    width = tileWidth;
    elementType = bufferType.getIntOrFloatBitWidth() == 8 ? e.builder.getI8Type() : bufferType;
    source = first > 0 ? advance(buffer, arith::ConstantIntOp::create(e.builder, e.loc, e.builder.getI64Type(), first)) : buffer;
    firstSource = advance(source, wide(e.mul(firstPiece, width)));
    firstPlace = getPlace(e.add(warpRow, subRow), firstPiece);
  }

  /// A lane finds the place of one row of a few passes, for all lanes that copy of it; -1 if it is not to be read.
  SmallVector<Value> find(llvm::function_ref<SmallVector<Value>(Value row)> place) {
    SmallVector<Value> found;
    for (int64_t begin = 0; begin < passes; begin += passesAtATime()) {
      Value pass = e.add(e.div(lane, rowsOfWarp), begin);
      SmallVector<Value> own = place(e.add(e.add(e.mul(pass, rowsOfPass), warpRow), e.rem(lane, rowsOfWarp)));
      Value start = arith::IndexCastOp::create(e.builder, e.loc, e.builder.getI64Type(), own[0]);
      Value none = arith::ConstantIntOp::create(e.builder, e.loc, e.builder.getI64Type(), -1);
      found.push_back(arith::SelectOp::create(e.builder, e.loc, own[1], start, none));
    }
    return found;
  }

  /// Rows that lie anywhere.
  void gather(Value places, llvm::function_ref<void(const Piece &)> body, bool rare = false) {
    isRare = rare;
    for (int64_t begin = 0, i = 0; begin < passes; begin += passesAtATime(), ++i) {
      Value start = e.extract(places, i);
      // Where a row of a pass begins, and whether it is to be read.
      auto getStart = [&](Value pass) {
        Value own = e.readLane(start, e.add(e.mul(sub(pass, begin), rowsOfWarp), subRow));
        Value none = arith::ConstantIntOp::create(e.builder, e.loc, e.builder.getI64Type(), 0);
        return std::pair(own, arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::sge, own, none).getResult());
      };
      int64_t end = std::min(passes, begin + passesAtATime());
      forEachPass(begin, end, [&](Value pass) {
        auto [own, reads] = getStart(pass);
        copyPass(pass, advance(firstSource, own), reads, body);
      });
    }
  }

  /// Rows that follow one another.
  void copyBlock(Value begin, Value stride, llvm::function_ref<void(const Piece &)> body) {
    auto mulAdd = [&](Value row, Value a, Value b) -> Value {
      return arith::AddIOp::create(e.builder, e.loc, arith::MulIOp::create(e.builder, e.loc, row, a), b);
    };
    Value rowStride = wide(stride), first = mulAdd(wide(e.add(warpRow, subRow)), rowStride, wide(begin));
    Value step = arith::MulIOp::create(e.builder, e.loc, rowStride, arith::ConstantIntOp::create(e.builder, e.loc, e.builder.getI64Type(), rowsOfPass));
    Value row = advance(firstSource, first);
    if (passes * chunks() > unrolled) {
      forEachPass(0, passes, [&](Value pass) {
        copyPass(pass, advance(row, arith::MulIOp::create(e.builder, e.loc, wide(pass), step)), Value(), body);
      });
      return;
    }
    // An addition a pass, and not a product: those LLVM would make of a product's operands are kept in registers.
    for (int64_t pass = 0; pass < passes; ++pass) {
      copyPass(e.i32(pass), row, Value(), body);
      row = advance(row, step);
    }
  }

private:
  static constexpr int64_t unrolled = 64, unrolledRare = 1; // pieces

  int64_t chunks() const { return pieces / lanesOfRow; }
  int64_t passesAtATime() const { return 32 / rowsOfWarp; }
  Value sub(Value a, int64_t b) { return b ? arith::SubIOp::create(e.builder, e.loc, a, e.i32(b)) : a; }

  /// All passes one after another; of many, or of rare ones, some at a time in a loop.
  void forEachPass(int64_t begin, int64_t end, llvm::function_ref<void(Value pass)> body) {
    int64_t most = isRare ? unrolledRare : unrolled, atOnce = std::min(end - begin, std::max<int64_t>(most / chunks(), 1));
    while ((end - begin) % atOnce != 0)
      --atOnce;
    auto some = [&](Value first) {
      for (int64_t i = 0; i < atOnce; ++i)
        body(e.add(first, i));
    };
    if (atOnce == end - begin)
      return some(e.i32(begin));
    auto loop = scf::ForOp::create(e.builder, e.loc, e.i32(begin), e.i32(end), e.i32(atOnce), ValueRange(),
                                   [&](OpBuilder &, Location, Value first, ValueRange) {
                                     some(first);
                                     scf::YieldOp::create(e.builder, e.loc);
                                   });
    e.keepRolled(loop);
  }

  /// Where a piece goes.
  Value getPlace(Value row, Value piece) {
    Value column = e.mul(piece, width), within = e.rem(column, panelColumns);
    // The panel depends on the piece, and so on the thread.
    Value panel = e.mul(e.div(column, panelColumns), rows * rowBytes);
    Value to = e.swizzled(e.offset(tile, panel), rows, 0, row, e.div(within, pieceColumns));
    return width < pieceColumns ? e.offset(to, e.mul(e.rem(column, pieceColumns), 16 / pieceColumns)) : to;
  }

  /// The same of the rows of a pass. Where these differ from the first by bits that no first row has, and chunks are whole panels, so does
  /// the place.
  Value getPlaceInPass(Value passRow, int64_t chunk) {
    bool areBits = rowsOfPass % swizzledRows == 0 || llvm::isPowerOf2_64(rowsOfPass);
    if (!areBits || rows % swizzledRows != 0 || (chunk > 0 && lanesOfRow * width % panelColumns != 0))
      return getPlace(e.add(e.add(warpRow, subRow), passRow), e.add(firstPiece, lanesOfRow * chunk));
    Value place = rowsOfPass % swizzledRows == 0 ? firstPlace : e.flip(firstPlace, e.mul(e.rem(passRow, swizzledRows), 16));
    return e.offset(e.offset(place, e.mul(passRow, rowBytes)), lanesOfRow * chunk * width / panelColumns * rows * rowBytes);
  }

  /// The pieces of this lane in the row of a pass, the first of which begins at `from`.
  void copyPass(Value pass, Value from, Value reads, llvm::function_ref<void(const Piece &)> body) {
    Value passRow = e.mul(pass, rowsOfPass);
    Value isLane;
    auto require = [&](Value condition) { isLane = isLane ? arith::AndIOp::create(e.builder, e.loc, isLane, condition) : condition; };
    if (rows % rowsOfPass != 0)
      require(e.lt(e.add(e.add(warpRow, subRow), passRow), rows));
    if (pieces < 32 && 32 % pieces != 0)
      require(e.lt(subRow, rowsOfWarp));
    auto copy = [&] {
      for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
        int64_t first = lanesOfRow * chunk;
        Value at = chunk == 0 ? from : advance(from, arith::ConstantIntOp::create(e.builder, e.loc, e.builder.getI64Type(), first * width));
        body(getPiece(at, reads, e.mul(e.add(firstPiece, first), width), getPlaceInPass(passRow, chunk)));
      }
    };
    if (!isLane)
      return copy();
    scf::IfOp::create(e.builder, e.loc, isLane, [&](OpBuilder &, Location) {
      copy();
      scf::YieldOp::create(e.builder, e.loc);
    });
  }

  Piece getPiece(Value from, Value reads, Value column, Value to) {
    if (columns < paddedColumns) {
      Value isColumn = e.lt(column, columns);
      reads = reads ? arith::AndIOp::create(e.builder, e.loc, reads, isColumn) : isColumn;
    }
    return {from, to, reads};
  }

  /// As 64 bits: an index, or a number that is not negative.
  Value wide(Value number) {
    Type i64 = e.builder.getI64Type();
    if (number.getType().isIndex())
      return arith::IndexCastOp::create(e.builder, e.loc, i64, number);
    return arith::ExtUIOp::create(e.builder, e.loc, i64, number);
  }

  Value advance(Value address, Value elements) {
    return LLVM::GEPOp::create(e.builder, e.loc, address.getType(), elementType, address, LLVM::GEPArg(elements));
  }

  static constexpr int64_t rowBytes = 128, swizzledRows = 8;

  ThreadEmitter &e;
  bool isRare = false;
  int64_t rows, pieces, lanesOfRow, rowsOfWarp, rowsOfPass, passes;
  Value lane, subRow, firstPiece, warpRow;
  int64_t paddedColumns = 0, panelColumns = 0, pieceColumns = 0, columns = 0, width = 0;
  Value tile, source;
  Value firstSource, firstPlace; // of this lane's first piece
  Type elementType;
};

template <typename Op>
Copies getCopies(ThreadEmitter &e, Op op, Value tile) {
  SharedType type = op.getTile().getType();
  int64_t width = op.getWidth();
  Copies copies(e, type.getShape()[0], type.getShape()[1] / width);
  int64_t first = 0;
  if constexpr (std::is_same_v<Op, CopyRowsOp>)
    first = op.getFirst();
  copies.setTile(type, tile, op.getColumns(), width, e.globalAddress(op.getSource()), cast<MemRefType>(op.getSource().getType()).getElementType(), first);
  return copies;
}

struct ConvertFindRows : OpConversionPattern<FindRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FindRowsOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType type = op.getPlaces().getType();
    Copies copies(e, type.getDimSize(0), cast<PlacesAttr>(type.getEncoding()).getPieces());
    SmallVector<Value> places = copies.find([&](Value row) { return e.inlineBody(op.getBody(), row); });
    places.resize(getValuesPerThread(type), places.back()); // fewer where there are more warps
    rewriter.replaceOp(op, e.fromElements(places));
    return success();
  }
};

/// Copies pieces of `width` elements of a tile.
auto copyAsynchronously(ThreadEmitter &e, SharedType tile, int64_t width) {
  int64_t bytes = tile.getElementType().getIntOrFloatBitWidth() / 8 * width;
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  return [&e, bytes, cache](const Piece &piece) {
    Value size = piece.reads ? arith::SelectOp::create(e.builder, e.loc, piece.reads, e.i32(bytes), e.i32(0)) : Value();
    NVVM::CpAsyncOp::create(e.builder, e.loc, piece.to, piece.from, bytes, cache, size);
  };
}

struct ConvertCopyRows : OpConversionPattern<CopyRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(CopyRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    getCopies(e, op, adaptor.getTile()).gather(adaptor.getPlaces(), copyAsynchronously(e, op.getTile().getType(), op.getWidth()), op.getRare());
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertCopyBlock : OpConversionPattern<CopyBlockOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(CopyBlockOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    getCopies(e, op, adaptor.getTile()).copyBlock(op.getBegin(), op.getStride(), copyAsynchronously(e, op.getTile().getType(), op.getWidth()));
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertFetchAhead : OpConversionPattern<FetchAheadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FetchAheadOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    constexpr int64_t ofThread = 64; // bytes that one instruction brings
    Value begin = e.element(e.globalAddress(op.getSource()), adaptor.getBegin(), cast<MemRefType>(op.getSource().getType()).getElementType());
    int64_t pieces = (op.getBytes() + ofThread - 1) / ofThread;
    for (int64_t first = 0; first < pieces; first += e.getNumThreads()) {
      auto fetch = [&](Value piece) {
        e.inlineAsm(LLVM::LLVMVoidType::get(rewriter.getContext()), "prefetch.global.L2 [$0];", "l", e.offset(begin, e.mul(piece, ofThread)));
      };
      Value piece = e.add(e.thread(), first);
      if (first + e.getNumThreads() <= pieces) {
        fetch(piece);
        continue;
      }
      scf::IfOp::create(rewriter, e.loc, e.lt(piece, pieces), [&](OpBuilder &, Location) {
        fetch(piece);
        scf::YieldOp::create(rewriter, e.loc);
      });
    }
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
    auto convert = [&](const Piece &piece) {
      auto read = scf::IfOp::create(
          rewriter, e.loc, piece.reads,
          [&](OpBuilder &b, Location) {
            scf::YieldOp::create(b, e.loc, LLVM::LoadOp::create(b, e.loc, bytes, piece.from, /*alignment=*/width).getResult());
          },
          [&](OpBuilder &b, Location) { scf::YieldOp::create(b, e.loc, none); });
      Value values = arith::BitcastOp::create(rewriter, e.loc, VectorType::get({width}, narrow), read.getResult(0));
      Value converted = arith::ExtFOp::create(rewriter, e.loc, VectorType::get({width}, wide), values);
      LLVM::StoreOp::create(rewriter, e.loc, converted, piece.to, /*alignment=*/2 * width);
    };
    getCopies(e, op, adaptor.getTile()).gather(adaptor.getPlaces(), convert);
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

struct ConvertFill : OpConversionPattern<FillOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FillOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t size = op.getArray().getType().getShape().back(), threads = e.getNumThreads(), whole = size / threads * threads;
    auto getValue = [&](Value number) { return e.inlineBody(op.getBody(), number).front(); };
    auto store = [&](Value number, Value value) { LLVM::StoreOp::create(rewriter, e.loc, value, e.offset(adaptor.getArray(), e.mul(number, 4)), /*alignment=*/4); };
    // Where all threads have an entry nothing is asked, and what makes the entries, loads mostly, is under way together.
    SmallVector<std::pair<Value, Value>> entries;
    for (int64_t begin = 0; begin < whole; begin += threads) {
      Value number = e.add(e.thread(), begin);
      entries.emplace_back(number, getValue(number));
    }
    for (auto [number, value] : entries)
      store(number, value);
    if (whole < size) {
      Value number = e.add(e.thread(), whole);
      scf::IfOp::create(rewriter, e.loc, e.lt(number, size), [&](OpBuilder &, Location) {
        store(number, getValue(number));
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
    auto neighbours = dyn_cast<VectorType>(op.getType()); // begin at a multiple of their size
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address, neighbours ? 4 * neighbours.getNumElements() : 4);
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
    if (needsProxyFence(op))
      NVVM::FenceProxyOp::create(rewriter, op.getLoc(), NVVM::ProxyKind::async_shared,
                                 NVVM::SharedSpaceAttr::get(op.getContext(), NVVM::SharedSpace::shared_cta));
    rewriter.replaceOpWithNewOp<gpu::BarrierOp>(op);
    return success();
  }
};

} // namespace

void ssa_gpu::populateMemoryPatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertAlloc, ConvertSlot, ConvertColumns, ConvertFindRows, ConvertCopyRows, ConvertCopyBlock, ConvertFetchAhead, ConvertConvertRows, ConvertOrder,
               ConvertFill, ConvertLoadEntry, ConvertCommitCopies, ConvertWaitCopies>(converter, patterns.getContext());
}
