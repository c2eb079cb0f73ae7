//===- ChangeTiles.cpp - Tiles that change in place ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is rarely done to a tile is one piece of inline assembly. To LLVM that is one instruction on all values of a thread; several for every value would be most
// of what it takes to compile attention.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

/// The text that changes the values of a thread, which are `$0` ... Inputs are appended to it as they are named.
class ChangeText {
public:
  explicit ChangeText(RankedTensorType tile) : numValues(getValuesPerThread(tile)), os(text) { os << "{\n"; }

  std::string operand(Value input) {
    inputs.push_back(input);
    return "$" + std::to_string(2 * numValues + inputs.size() - 1);
  }
  /// An operand for each row of a thread.
  SmallVector<std::string> operands(ArrayRef<Value> rows) { return llvm::map_to_vector(rows, [&](Value row) { return operand(row); }); }
  void line(const Twine &instruction) { os << "\t" << instruction << ";\n"; }
  void label(StringRef name) { os << name << ":\n"; }

  int64_t getNumValues() const { return numValues; }
  /// Which of the rows of a thread value `i` is in, and its column relative to the first of the thread.
  int64_t getRow(int64_t i) const { return i / 2 % 2; }
  int64_t getColumn(int64_t i) const { return i / 4 * 8 + i % 2; }

  Value apply(ThreadEmitter &e, Value tile) {
    os << "\t}";
    return e.fromElements(e.changeByAsm(text, e.elements(tile), inputs));
  }

private:
  int64_t numValues;
  SmallVector<Value> inputs;
  std::string text;
  llvm::raw_string_ostream os;
};

struct ConvertChangeRows : OpConversionPattern<ChangeRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ChangeRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    if (isRowwise(op.getTile().getType())) {
      rewriter.replaceOp(op, changeRow(e, op, adaptor));
      return success();
    }
    ChangeText text(op.getTile().getType());
    constexpr StringLiteral end = "done${:uid}"; // a number that no other piece has
    text.line("@" + text.operand(op.getUnless()) + " bra " + end);
    SmallVector<std::string> rows = text.operands(e.elements(adaptor.getRows()));
    StringRef instruction = op.getKind() == RowChange::scale ? "mul.rn.f32" : "sub.rn.f32";
    for (int64_t i = 0; i < text.getNumValues(); ++i)
      text.line(instruction + " $" + Twine(i) + ", $" + Twine(i) + ", " + rows[text.getRow(i)]);
    text.label(end);
    rewriter.replaceOp(op, text.apply(e, adaptor.getTile()));
    return success();
  }

private:
  /// Of rows in tensor memory a thread has so many values at once that one piece of assembly would spill them.
  static Value changeRow(ThreadEmitter &e, ChangeRowsOp op, OpAdaptor adaptor) {
    Value tile = adaptor.getTile();
    auto changed = scf::IfOp::create(e.builder, e.loc, tile.getType(), op.getUnless(), /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(e.builder);
    e.builder.setInsertionPointToStart(changed.thenBlock());
    scf::YieldOp::create(e.builder, e.loc, tile);
    e.builder.setInsertionPointToStart(changed.elseBlock());
    Value row = vector::BroadcastOp::create(e.builder, e.loc, tile.getType(), e.elements(adaptor.getRows()).front());
    Value made = op.getKind() == RowChange::scale ? arith::MulFOp::create(e.builder, e.loc, tile, row).getResult() : arith::SubFOp::create(e.builder, e.loc, tile, row).getResult();
    scf::YieldOp::create(e.builder, e.loc, made);
    return changed.getResult(0);
  }
};

struct ConvertHideColumns : OpConversionPattern<HideColumnsOp> {
  using OpConversionPattern::OpConversionPattern;
  using Bounds = SmallVector<SmallVector<std::string>>; // of each part and row

  LogicalResult matchAndRewrite(HideColumnsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType type = op.getTile().getType();
    if (isRowwise(type)) {
      rewriter.replaceOp(op, hideInRow(e, type, adaptor));
      return success();
    }
    ChangeText text(type);
    std::string begin = text.operand(e.column(0, type));
    text.line(".reg .pred hidden");
    Bounds last = getBounds(e, text, begin, "last", adaptor.getLast()), first = getBounds(e, text, begin, "first", adaptor.getFirst()),
           below = getBounds(e, text, begin, "below", adaptor.getBelow());
    int64_t columnsOfPart = type.getDimSize(1) / last.size();
    for (int64_t i = 0; i < text.getNumValues(); ++i) {
      int64_t column = text.getColumn(i), row = text.getRow(i), part = getGroups(type) > 1 ? 0 : column / columnsOfPart;
      auto compare = [&](StringRef predicate, const Bounds &bounds, StringRef joinedBy) {
        if (!bounds.empty())
          text.line("setp." + predicate + joinedBy + ".s32 hidden, " + bounds[part][row] + ", " + Twine(column) + (joinedBy.empty() ? "" : ", hidden"));
      };
      compare("le", below, "");
      compare("gt", first, below.empty() ? "" : ".and");
      compare("lt", last, first.empty() ? "" : ".or");
      text.line("selp.f32 $" + Twine(i) + ", 0fFF800000, $" + Twine(i) + ", hidden");
    }
    rewriter.replaceOp(op, text.apply(e, adaptor.getTile()));
    return success();
  }

private:
  /// The same of a row in tensor memory, by vectors, for the reason that `changeRow` has.
  static Value hideInRow(ThreadEmitter &e, RankedTensorType type, OpAdaptor adaptor) {
    auto values = cast<VectorType>(adaptor.getTile().getType());
    int64_t count = values.getNumElements(), parts = adaptor.getLast().size(), columnsOfPart = type.getDimSize(1) / parts;
    auto numbers = VectorType::get({count}, e.builder.getI32Type());
    Value begin = e.columnOfThread(0, type);
    // Relative to the thread's first column, so that columns are constants.
    auto spread = [&](ValueRange bounds) -> Value {
      SmallVector<Value> ofColumns, relative;
      for (Value rows : bounds)
        relative.push_back(arith::SubIOp::create(e.builder, e.loc, e.elements(rows).front(), begin));
      if (parts == 1)
        return vector::BroadcastOp::create(e.builder, e.loc, numbers, relative.front());
      for (int64_t i = 0; i < count; ++i)
        ofColumns.push_back(relative[getGroups(type) > 1 ? 0 : i / columnsOfPart]);
      return e.fromElements(ofColumns);
    };
    Value columns = arith::ConstantOp::create(e.builder, e.loc, e.builder.getI32VectorAttr(llvm::to_vector(llvm::seq<int32_t>(0, count))));
    auto compare = [&](arith::CmpIPredicate predicate, ValueRange bounds) -> Value { return arith::CmpIOp::create(e.builder, e.loc, predicate, columns, spread(bounds)); };
    Value visible = compare(arith::CmpIPredicate::sle, adaptor.getLast());
    if (!adaptor.getFirst().empty()) {
      Value isNear = compare(arith::CmpIPredicate::sge, adaptor.getFirst());
      if (!adaptor.getBelow().empty())
        isNear = arith::OrIOp::create(e.builder, e.loc, isNear, compare(arith::CmpIPredicate::slt, adaptor.getBelow()));
      visible = arith::AndIOp::create(e.builder, e.loc, visible, isNear);
    }
    Value none = arith::ConstantOp::create(e.builder, e.loc, DenseElementsAttr::get(values, -std::numeric_limits<float>::infinity()));
    return arith::SelectOp::create(e.builder, e.loc, visible, adaptor.getTile(), none);
  }

  /// Bounds relative to the thread's first column: then columns are constants.
  static Bounds getBounds(ThreadEmitter &e, ChangeText &text, StringRef begin, StringRef name, ValueRange bounds) {
    Bounds parts;
    for (auto [i, rows] : llvm::enumerate(bounds)) {
      parts.emplace_back();
      for (auto [row, bound] : llvm::enumerate(text.operands(e.elements(rows)))) {
        std::string relative = (name + Twine(i) + "_" + Twine(row)).str();
        text.line(".reg .b32 " + relative);
        text.line("sub.s32 " + relative + ", " + bound + ", " + begin);
        parts.back().push_back(relative);
      }
    }
    return parts;
  }
};

} // namespace

void ssa_gpu::populateChangePatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertChangeRows, ConvertHideColumns>(converter, patterns.getContext());
}
