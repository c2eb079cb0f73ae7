//===- ChangeTiles.cpp - Tiles that change in place ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is rarely done to a tile is one piece of inline assembly. To LLVM that is one instruction on all values of a thread; several for every value would be most
// of what it takes to compile attention.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

/// The text that changes the values of a thread, which are `$0` ... Inputs are appended to it as they are named.
class ChangeText {
public:
  explicit ChangeText(RankedTensorType tile) : rowsOfThread(isRowwise(tile) ? 1 : 2), numValues(getValuesPerThread(tile)), os(text) { os << "{\n"; }

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
  int64_t getRow(int64_t i) const { return rowsOfThread == 1 ? 0 : i / 2 % 2; }
  int64_t getColumn(int64_t i) const { return rowsOfThread == 1 ? i : i / 4 * 8 + i % 2; }

  Value apply(ThreadEmitter &e, Value tile) {
    os << "\t}";
    return e.fromElements(e.changeByAsm(text, e.elements(tile), inputs));
  }

private:
  int64_t rowsOfThread, numValues;
  SmallVector<Value> inputs;
  std::string text;
  llvm::raw_string_ostream os;
};

struct ConvertChangeRows : OpConversionPattern<ChangeRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ChangeRowsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
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
};

struct ConvertHideColumns : OpConversionPattern<HideColumnsOp> {
  using OpConversionPattern::OpConversionPattern;
  using Bounds = SmallVector<SmallVector<std::string>>; // of each part and row

  LogicalResult matchAndRewrite(HideColumnsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    RankedTensorType type = op.getTile().getType();
    ChangeText text(type);
    std::string begin = text.operand(isRowwise(type) ? e.columnOfThread(0, type) : e.column(0, type));
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
