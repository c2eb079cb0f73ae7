//===- StoreRows.cpp - Rows of tiles to memory, and back ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

/// Stores rows of an accumulator, rounded to the target's type; rows of other buffers may be added.
class RowStore {
public:
  /// A row that is added, times `factor`.
  struct Term {
    Value row, factor, counts; // address, of some row if this one is not written; f32; i1, null: always
    Type type;
    Value isRead = {}; // i1: where it is false nothing may be read; null: always
  };

  RowStore(ThreadEmitter &e, StoreRowsOp op, Value tile, ArrayRef<Term> terms)
      : e(e), tile(tile), layout(op.getTile().getType()), type(cast<MemRefType>(op.getTarget().getType()).getElementType()),
        columns(op.getColumns()), width(op.getWidth()), sourceWidth(op.getSourceWidth()), inQuads(op.getInQuads()), terms(terms) {}

  /// The row that this thread has as a whole.
  void storeWhole(Value row, Value isWritten) {
    int64_t bytes = type.getIntOrFloatBitWidth() / 8, atATime = std::min<int64_t>(width, 16 / bytes);
    int64_t pieces = std::min(columns, getValuesPerThread(layout)) / atATime;
    forEachPiece(pieces, atATime, /*mostLoads=*/4, [&](int64_t i) { return e.i32(i * atATime); }, [&](int64_t i, const Loaded &loaded) {
      ifTrue(isWritten, [&] {
        SmallVector<Value> values;
        for (int64_t j = i * atATime; j < (i + 1) * atATime; ++j)
          values.push_back(e.extract(tile, j));
        Value piece = round(addTerms(e.fromElements(values), loaded));
        LLVM::StoreOp::create(e.builder, e.loc, atATime == 1 ? e.extract(piece, 0) : piece, e.offset(row, i * atATime * bytes), atATime * bytes);
      });
    });
  }

  /// Row number `half` of this thread, which begins at address `row`; four lanes store it together.
  void store(unsigned half, Value row, Value isWritten) {
    int64_t blocks = getValuesPerThread(layout) / (2 * rowsOfThread());
    bool isWide = width == 8 && type.getIntOrFloatBitWidth() == 16 && blocks % 4 == 0;
    constexpr int64_t mostLoads = 4;
    if (isWide) // lanes exchange what they have also where a row is not written
      return forEachPiece(blocks / 4, 8, mostLoads, [&](int64_t i) { return columnOfBlock(4 * i); },
                          [&](int64_t i, const Loaded &loaded) { storeBlocks(4 * i, half, row, isWritten, loaded); });
    forEachPiece(blocks, 2, mostLoads, [&](int64_t i) { return e.column(i, layout); },
                 [&](int64_t i, const Loaded &loaded) { ifTrue(isWritten, [&] { storePair(i, half, row, loaded); }); });
  }

private:
  /// What is read of every term for a piece, as it lies in memory.
  using Loaded = SmallVector<SmallVector<Value>>;

  void ifTrue(Value condition, llvm::function_ref<void()> body) {
    scf::IfOp::create(e.builder, e.loc, condition, [&](OpBuilder &, Location) {
      body();
      scf::YieldOp::create(e.builder, e.loc);
    });
  }

  /// Pieces of `count` columns from `column` on. What is added to them is read for as many at a time as registers are for: waiting for each by itself
  /// would cost more than all else.
  void forEachPiece(int64_t pieces, int64_t count, int64_t mostLoads, llvm::function_ref<Value(int64_t piece)> column,
                    llvm::function_ref<void(int64_t piece, const Loaded &loaded)> store) {
    int64_t loads = 0;
    for (const Term &term : terms)
      loads += std::max<int64_t>(count * term.type.getIntOrFloatBitWidth() / 128, 1);
    int64_t together = loads ? std::max<int64_t>(mostLoads / loads, 1) : 1;
    for (int64_t first = 0; first < pieces; first += together) {
      SmallVector<Loaded> loaded;
      for (int64_t i = first, end = std::min(first + together, pieces); i < end; ++i)
        loaded.push_back(loadTerms(terms.empty() ? Value() : column(i), count));
      for (auto [i, of] : llvm::enumerate(loaded))
        store(first + i, of);
    }
  }

  Loaded loadTerms(Value column, int64_t count) {
    OpBuilder &b = e.builder;
    Loaded loaded;
    for (const Term &term : terms) {
      int64_t bytes = term.type.getIntOrFloatBitWidth() / 8, atATime = std::min(count, sourceWidth);
      // Tiles may have more columns than there are.
      Value known = arith::SelectOp::create(b, e.loc, e.lt(column, columns), column, e.i32(0));
      Value address = addressOf(term.row, known, term.type);
      auto load = [&] {
        SmallVector<Value> values;
        for (int64_t i = 0; i < count; i += atATime)
          values.push_back(LLVM::LoadOp::create(b, e.loc, VectorType::get({atATime}, term.type), e.offset(address, i * bytes), atATime * bytes));
        return values;
      };
      loaded.push_back(term.isRead ? orZeros(arith::AndIOp::create(b, e.loc, term.isRead, e.lt(column, columns)), load) : load());
    }
    return loaded;
  }

  /// What `load` gives, where the condition holds.
  SmallVector<Value> orZeros(Value condition, llvm::function_ref<SmallVector<Value>()> load) {
    SmallVector<Value> loaded;
    auto branch = scf::IfOp::create(e.builder, e.loc, condition, [&](OpBuilder &, Location) {
      loaded = load();
      scf::YieldOp::create(e.builder, e.loc, loaded);
    }, [&](OpBuilder &b, Location) {
      scf::YieldOp::create(b, e.loc, llvm::map_to_vector(loaded, [&](Value v) -> Value { return arith::ConstantOp::create(b, e.loc, b.getZeroAttr(v.getType())); }));
    });
    return SmallVector<Value>(branch.getResults());
  }

  /// `values`, and what the terms have beside them.
  Value addTerms(Value values, const Loaded &loaded) {
    OpBuilder &b = e.builder;
    auto type = cast<VectorType>(values.getType());
    for (auto [term, vectors] : llvm::zip_equal(terms, loaded)) {
      SmallVector<Value> elements;
      for (Value vector : vectors) {
        auto ofVector = cast<VectorType>(vector.getType());
        if (!term.type.isF32())
          vector = arith::ExtFOp::create(b, e.loc, ofVector.clone(b.getF32Type()), vector);
        llvm::append_range(elements, e.elements(vector));
      }
      Value factors = vector::BroadcastOp::create(b, e.loc, type, term.factor);
      Value sum = math::FmaOp::create(b, e.loc, factors, e.fromElements(elements), values);
      values = term.counts ? arith::SelectOp::create(b, e.loc, term.counts, sum, values).getResult() : sum;
    }
    return values;
  }

  Value round(Value values) {
    return type.isF32() ? values : arith::TruncFOp::create(e.builder, e.loc, cast<VectorType>(values.getType()).clone(type), values).getResult();
  }

  /// The values of row `half` that a thread has of block `j`.
  Value getPair(int64_t j, unsigned half) { return e.fromElements({e.extract(tile, indexOf(j, half)), e.extract(tile, indexOf(j, half) + 1)}); }
  int64_t indexOf(int64_t j, unsigned half) { return 2 * (rowsOfThread() * j + half); }
  int64_t rowsOfThread() { return getFolds(layout) > 1 ? 1 : 2; }

  Value addressOf(Value row, Value column, Type type) { return LLVM::GEPOp::create(e.builder, e.loc, row.getType(), type, row, LLVM::GEPArg(column)); }

  /// True if all columns up to that of block `j` of every group are to be stored: the last group's bound those of all.
  bool areAllColumns(int64_t j) { return layout.getDimSize(1) - 8 / (2 * rowsOfThread()) * getValuesPerThread(layout) + 8 * j + 7 < columns; }

  /// The pair of columns that a thread has of block `j`.
  void storePair(int64_t j, unsigned half, Value row, const Loaded &loaded) {
    OpBuilder &b = e.builder;
    Value column = e.column(j, layout);
    auto store = [&] {
      Value pair = round(addTerms(getPair(j, half), loaded)), address = addressOf(row, column, type);
      unsigned bytes = type.getIntOrFloatBitWidth() / 8;
      if (width % 2 == 0) {
        LLVM::StoreOp::create(b, e.loc, pair, address, 2 * bytes);
        return;
      }
      LLVM::StoreOp::create(b, e.loc, e.extract(pair, 0), address, bytes);
      ifTrue(e.lt(column, columns - 1), [&] { LLVM::StoreOp::create(b, e.loc, e.extract(pair, 1), e.offset(address, bytes), bytes); });
    };
    if (areAllColumns(j))
      store();
    else if (getGroups(layout) > 1 || getFolds(layout) > 1 || 8 * j < columns)
      ifTrue(e.lt(column, columns), store);
  }

  /// The first column of the block that this lane stores of blocks `j` .. `j`+3.
  Value columnOfBlock(int64_t j) {
    Value quad = e.rem(e.lane(), 4);
    return e.sub(e.add(e.column(j, layout), e.mul(quad, 8)), e.mul(quad, 2));
  }

  /// The four lanes of a row have an entry of each of four; they exchange them so that each has all of one. In one piece of assembly: LLVM would look for
  /// what is known of each selection's bits.
  void exchangeInQuad(SmallVector<Value> &entries) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "{\n\t.reg .pred high;\n\t.reg .b32 other;\n\t";
    for (int64_t bit : {1, 2}) {
      os << "and.b32 other, $8, " << bit << ";\n\tsetp.ne.b32 high, other, 0;\n\t";
      for (int64_t low = 0; low < 4; ++low) {
        if (low & bit)
          continue;
        int64_t up = low | bit;
        os << "selp.b32 other, $" << low << ", $" << up << ", high;\n\tshfl.sync.bfly.b32 other, other, " << bit << ", 31, -1;\n\t";
        os << "selp.b32 $" << low << ", other, $" << low << ", high;\n\tselp.b32 $" << up << ", $" << up << ", other, high;\n\t";
      }
    }
    os << "}";
    entries = e.changeByAsm(text, entries, e.rem(e.lane(), 4));
  }

  /// Blocks `j` .. `j`+3, of which lanes exchange their pairs, unless they may stay in quads: a lane stores a whole block, 16 bytes. What is added is added before it is rounded.
  void storeBlocks(int64_t j, unsigned half, Value row, Value isWritten, const Loaded &loaded) {
    OpBuilder &b = e.builder;
    auto exchange = [&](llvm::function_ref<Value(int64_t block)> entry) {
      SmallVector<Value> entries;
      for (int64_t i = 0; i < 4; ++i)
        entries.push_back(LLVM::BitcastOp::create(b, e.loc, b.getI32Type(), entry(j + i)));
      if (!inQuads)
        exchangeInQuad(entries);
      return entries;
    };
    SmallVector<Value> parts[2];
    if (terms.empty())
      parts[0] = exchange([&](int64_t block) { return round(getPair(block, half)); });
    else
      for (int64_t i = 0; i < 2; ++i)
        parts[i] = exchange([&](int64_t block) { return e.extract(tile, indexOf(block, half) + i); });
    Value column = columnOfBlock(j);
    auto store = [&] {
      Value piece = terms.empty() ? e.fromElements(parts[0]) : round(addTerms(interleave(parts[0], parts[1]), loaded));
      if (inQuads)
        return storeStreaming(piece, addressOf(row, column, type));
      LLVM::StoreOp::create(b, e.loc, piece, addressOf(row, column, type), /*alignment=*/16);
    };
    if (!areAllColumns(j + 3))
      isWritten = arith::AndIOp::create(b, e.loc, isWritten, e.lt(column, columns));
    ifTrue(isWritten, store);
  }

  /// Four words that are read once, and later: they are the first to leave the second-level cache.
  void storeStreaming(Value words, Value address) {
    SmallVector<Value> operands = {address};
    llvm::append_range(operands, e.elements(words));
    e.orderingAsm("st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r", operands);
  }

  /// Bits of floats that are in turn of both.
  Value interleave(ArrayRef<Value> even, ArrayRef<Value> odd) {
    SmallVector<Value> values;
    for (auto [x, y] : llvm::zip_equal(even, odd))
      for (Value bits : {x, y})
        values.push_back(LLVM::BitcastOp::create(e.builder, e.loc, e.builder.getF32Type(), bits));
    return e.fromElements(values);
  }

  ThreadEmitter &e;
  Value tile;
  RankedTensorType layout;
  Type type;
  int64_t columns, width, sourceWidth;
  bool inQuads;
  ArrayRef<Term> terms;
};

struct ConvertStoreRows : OpConversionPattern<StoreRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType tile = op.getTile().getType();
    auto getElementType = [](Value buffer) { return cast<MemRefType>(buffer.getType()).getElementType(); };
    for (unsigned half = 0; half < (isRowwise(tile) || getFolds(tile) > 1 ? 1 : 2); ++half) {
      SmallVector<Value> place = e.inlineBody(op.getBody(), e.row(half, tile));
      auto addressOf = [&](Value buffer, Value begin) { return e.element(e.globalAddress(buffer), begin, getElementType(buffer)); };
      SmallVector<RowStore::Term> terms;
      for (auto [i, source] : llvm::enumerate(op.getSources())) {
        Value factor = e.extract(adaptor.getFactors()[i], half), zero = arith::ConstantOp::create(rewriter, e.loc, rewriter.getF32FloatAttr(0));
        Value counts = op.getSkipZeros() ? arith::CmpFOp::create(rewriter, e.loc, arith::CmpFPredicate::UNE, factor, zero).getResult() : Value();
        Value isRead = counts ? arith::AndIOp::create(rewriter, e.loc, counts, place[1]).getResult() : place[1];
        // The first row is there if any is.
        Value first = arith::ConstantIndexOp::create(rewriter, e.loc, 0);
        Value begin = arith::SelectOp::create(rewriter, e.loc, isRead, place[2 + i], first);
        // What others write is not looked at, though it would not count.
        terms.push_back({addressOf(source, begin), factor, counts, getElementType(source), source == op.getTarget() ? isRead : Value()});
      }
      RowStore rows(e, op, adaptor.getTile(), terms);
      Value row = addressOf(op.getTarget(), place[0]);
      if (std::optional<int64_t> share = op.getShare())
        row = e.offset(row, e.mul(e.groupOfThread(tile), *share * (getElementType(op.getTarget()).getIntOrFloatBitWidth() / 8)));
      isRowwise(tile) ? rows.storeWhole(row, place[1]) : rows.store(half, row, place[1]);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Of every 32 columns the four lanes of a row have 16 bytes each.
struct ConvertLoadQuads : OpConversionPattern<LoadQuadsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(LoadQuadsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType tile = op.getRows().getType();
    int64_t rows = tile.getDimSize(0);
    constexpr int64_t width = 8, lanes = 4, panelColumns = 64;
    Type i32 = rewriter.getI32Type(), pair = VectorType::get({2}, tile.getElementType());
    SmallVector<Value> values(getValuesPerThread(tile));
    Value quad = e.rem(e.lane(), lanes);
    for (unsigned half : {0, 1})
      for (int64_t first = 0; first < tile.getDimSize(1); first += lanes * width) {
        Value address = e.swizzled(adaptor.getTile(), rows, first / panelColumns, e.row(half, rows), e.add(quad, first % panelColumns / width));
        Value words = LLVM::LoadOp::create(rewriter, e.loc, VectorType::get({lanes}, i32), address, /*alignment=*/16);
        for (int64_t i = 0; i < lanes; ++i) {
          Value word = arith::SelectOp::create(rewriter, e.loc, e.extract(adaptor.getCounts(), half), e.extract(words, i), e.i32(0));
          Value both = LLVM::BitcastOp::create(rewriter, e.loc, pair, word);
          for (int64_t j : {0, 1})
            values[first / 2 + 4 * i + 2 * half + j] = e.extract(both, j);
        }
      }
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

} // namespace

void ssa_gpu::populateStorePatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertStoreRows, ConvertLoadQuads>(converter, patterns.getContext());
}
