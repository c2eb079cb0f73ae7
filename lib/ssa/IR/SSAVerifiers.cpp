//===- SSAVerifiers.cpp - What can never be right -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Labels such as `route_c1` are the rules of the op's description.
//
//===----------------------------------------------------------------------===//

#include "ssa/IR/Geometry.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

namespace {

/// An operand or result with its name, for checks and messages.
struct Named {
  StringRef name;
  ShapedType type;
  Named(StringRef name, Type type) : name(name), type(cast<ShapedType>(type)) {}
  int64_t dim(unsigned i) const { return type.getDimSize(i); }
  bool isDynamic(unsigned i) const { return type.isDynamicDim(i); }
};

class Verifier {
public:
  explicit Verifier(Operation *op) : op(op) {}
  operator LogicalResult() const { return result; }
  bool failed() const { return mlir::failed(result); }

  /// Emits an error unless `condition`; only the first one of an op is emitted.
  template <typename... Args>
  Verifier &check(bool condition, Args &&...message) {
    if (!condition && succeeded(result)) {
      InFlightDiagnostic diag = op->emitOpError();
      (void)(diag << ... << std::forward<Args>(message));
      result = diag;
    }
    return *this;
  }

  /// Dimension `i` of `a` is `size` (`why` says what that is).
  Verifier &dimIs(const Named &a, unsigned i, int64_t size, StringRef why) {
    if (a.isDynamic(i) || ShapedType::isDynamic(size))
      return *this;
    return check(a.dim(i) == size, "expected dimension ", i, " of '", a.name, "' to be ", size, ", ", why, ", but got ",
                 a.dim(i));
  }

  /// Dimension `i` of `a` is that of `b`.
  Verifier &sameDim(const Named &a, unsigned i, const Named &b, unsigned j) {
    if (a.isDynamic(i) || b.isDynamic(j))
      return *this;
    return check(a.dim(i) == b.dim(j), "expected dimension ", i, " of '", a.name, "' to be ", b.dim(j), ", dimension ", j,
                 " of '", b.name, "', but got ", a.dim(i));
  }
  Verifier &sameDims(const Named &a, const Named &b, ArrayRef<unsigned> dims) {
    for (unsigned i : dims)
      sameDim(a, i, b, i);
    return *this;
  }

  /// Heads, widths and head dims are part of the program: static, and at least one.
  Verifier &isStatic(const Named &a, unsigned i, StringRef what) {
    check(!a.isDynamic(i), "expected dimension ", i, " of '", a.name, "', ", what, ", to be static");
    return check(a.isDynamic(i) || a.dim(i) > 0, "expected dimension ", i, " of '", a.name, "', ", what,
                 ", to be at least 1, but got 0");
  }

  /// `many` heads are shared evenly among `few`.
  Verifier &heads(const Named &many, unsigned i, const Named &few, unsigned j) {
    if (many.isDynamic(i) || few.isDynamic(j) || few.dim(j) == 0)
      return *this;
    return check(many.dim(i) % few.dim(j) == 0, "expected the ", many.dim(i), " heads of '", many.name,
                 "' to be a multiple of the ", few.dim(j), " heads of '", few.name, "'");
  }

  /// A list per `queryBlock` queries of `queries` in all, or one that serves every query.
  Verifier &lists(const Named &a, int64_t rows, StringRef why) {
    if (a.isDynamic(2) || ShapedType::isDynamic(rows) || a.dim(2) == 1)
      return *this;
    return dimIs(a, 2, rows, why);
  }

  /// A finite number after rounding to f32.
  Verifier &finite(StringRef name, std::optional<APFloat> value) {
    if (!value)
      return *this;
    double number = value->convertToDouble();
    return check(std::isfinite(float(number)), "expected '", name, "' to be a finite f32, but got ", std::to_string(number));
  }

private:
  Operation *op;
  LogicalResult result = success();
};

/// `ceil(rows/block)`, dynamic if `rows` is.
int64_t ceilDivDim(int64_t rows, int64_t block) { return ShapedType::isDynamic(rows) ? rows : ceilDiv(rows, block); }

/// The number of blocks of a dimension of tokens, dynamic if it is.
int64_t numBlocksDim(BlocksAttr blocks, int64_t tokens) {
  return ShapedType::isDynamic(tokens) ? tokens : blocks.getNumBlocks(tokens);
}

/// The most entries of a list that a selector makes.
constexpr int64_t maxTopK = 4096;

/// The widest input of a router: a model's width.
constexpr int64_t maxProjectDim = 16384;

} // namespace

LogicalResult ssa::OpTrait::verifyStrictAttributes(Operation *op) {
  for (NamedAttribute attr : op->getDiscardableAttrs()) {
    StringRef name = attr.getName();
    if (name.contains('.'))
      continue;
    InFlightDiagnostic diag = op->emitOpError() << "has no attribute '" << name << "'";
    StringRef closest;
    unsigned best = 3; // more edits than that are no slip of the keyboard
    for (StringAttr known : op->getName().getAttributeNames())
      if (known != "operandSegmentSizes")
        if (unsigned distance = name.edit_distance(known, true, best); distance < best)
          best = distance, closest = known;
    if (!closest.empty())
      diag << "; did you mean '" << closest << "'?";
    return diag;
  }
  return success();
}

/// A score region: one block, the fixed arguments, a yield at its end, and no side effects in between.
static LogicalResult verifyScoreRegion(Operation *op, Region &region, unsigned floats) {
  if (region.empty())
    return success();
  Block &block = region.front();
  auto isExpected = [&](BlockArgument a) { return a.getArgNumber() < floats ? a.getType().isF32() : a.getType().isInteger(32); };
  if (block.getNumArguments() != floats + 4 || !llvm::all_of(block.getArguments(), isExpected))
    return op->emitOpError() << "expected the score region to take "
                             << (floats == 2 ? "(f32, f32, i32, i32, i32, i32)" : "(f32, i32, i32, i32, i32)");
  if (block.empty() || !isa<YieldOp>(block.back()))
    return op->emitOpError() << "expected the score region to end with 'ssa.yield'";
  for (Operation &inner : block.without_terminator())
    if (!isMemoryEffectFree(&inner)) {
      InFlightDiagnostic diag = op->emitOpError() << "expected the score region to be free of side effects";
      diag.attachNote(inner.getLoc()) << "'" << inner.getName() << "' may have one";
      return diag;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

LogicalResult ProjectOp::verify() {
  Named input("input", getInput().getType()), weight("weight", getWeight().getType()), output("output", getType());
  Verifier v(*this);
  v.isStatic(input, 1, "heads").isStatic(input, 3, "the head dim").isStatic(weight, 0, "heads");
  v.isStatic(weight, 1, "the head dim").isStatic(weight, 2, "the rank");
  if (v.failed())
    return v;
  int64_t inputHeads = input.dim(1), weightHeads = weight.dim(0);
  v.check(inputHeads == weightHeads || inputHeads == 1 || weightHeads == 1, "expected 'input' and 'weight' to have the same number of "
          "heads or one of them a single one, but got ", inputHeads, " and ", weightHeads); // project_c1
  v.sameDim(weight, 1, input, 3);                                                           // project_c2
  v.check(input.dim(3) <= maxProjectDim, "expected dimension 3 of 'input' to be at most ", maxProjectDim, ", but got ",
          input.dim(3));                                                                    // project_i2
  v.sameDims(output, input, {0, 2});                                                        // project_c3
  v.isStatic(output, 1, "heads").isStatic(output, 3, "the rank");
  v.dimIs(output, 1, std::max(inputHeads, weightHeads), "the heads").sameDim(output, 3, weight, 2);
  return v;
}

LogicalResult PoolOp::verify() {
  Named input("input", getInput().getType()), output("output", getType());
  Verifier v(*this);
  v.isStatic(input, 1, "heads").isStatic(input, 3, "the head dim");
  if (getScales()) {
    Named scales("scales", getScales().getType());
    v.sameDims(scales, input, {0, 1, 2}); // pool_c1
  }
  v.isStatic(output, 1, "heads").isStatic(output, 3, "the head dim").sameDims(output, input, {0, 1, 3}); // pool_c2
  v.dimIs(output, 2, numBlocksDim(getBlocks(), input.dim(2)), "the number of blocks");
  return v;
}

/// `tokens` stands for `rows` summaries: there may be fewer rows than blocks, not more.
static void verifyRowsOfTokens(Verifier &v, const Named &rows, std::optional<Named> tokens, BlocksAttr blocks) {
  if (!tokens || rows.isDynamic(2) || tokens->isDynamic(2))
    return;
  int64_t most = blocks.getNumBlocks(tokens->dim(2));
  v.check(rows.dim(2) <= most, "expected dimension 2 of '", rows.name, "' to be at most ", most,
          ", the number of blocks of 'tokens', but got ", rows.dim(2));
}

static void verifyRouteWithin(Verifier &v, RouteOp op, const Named &scores) {
  SelectionType type = op.getWithin().getType();
  BlocksAttr blocks = op.getBlocksOrTokens();
  Named within("within", type);
  v.check(type.getSorted(), "expected 'within' to be sorted; use 'ssa.sort'"); // route_c9
  v.check(blocks.isPartition(), "expected 'blocks' under 'within' not to overlap and to have no offset, but got ", blocks);
  v.sameDim(within, 0, scores, 0).sameDim(within, 1, scores, 1);
  v.check(type.getQueryBlock() % op.getQueryBlock() == 0, "expected the 'query_block' of 'within' to be a multiple of ",
          op.getQueryBlock(), ", the op's, but got ", type.getQueryBlock());
  v.check(type.getKeyBlock() % blocks.getSize() == 0, "expected the 'key_block' of 'within' to be a multiple of ", blocks.getSize(),
          ", the size of 'blocks', but got ", type.getKeyBlock());
  if (v.failed())
    return;
  v.dimIs(scores, 3, type.getWidth() * (type.getKeyBlock() / blocks.getSize()), "the blocks of a list of 'within'");
  v.lists(within, ceilDivDim(scores.dim(2), type.getQueryBlock() / op.getQueryBlock()), "the lists for the rows of 'scores'");
}

/// `query` has a row per query block of `queries`.
static void verifyQueryBlock(Verifier &v, RouteOp op, const Named &query) {
  int64_t block = op.getQueryBlock();
  v.check(block >= 1, "expected 'query_block' to be at least 1, but got ", block); // route_c5
  v.check(block <= 1 || op.getQueries(), "expected 'for' with the queries that the rows of 'query' stand for, as 'query_block' is ",
          block);
  if (v.failed() || !op.getQueries())
    return;
  Named queries("queries", op.getQueries().getType());
  v.sameDim(queries, 0, query, 0).dimIs(query, 2, ceilDivDim(queries.dim(2), block), "the query blocks of 'queries'");
}

LogicalResult RouteOp::verify() {
  Named query("query", getQuery().getType()), key("key", getKey().getType()), scores("scores", getType());
  BlocksAttr blocks = getBlocksOrTokens();
  Verifier v(*this);
  v.isStatic(query, 1, "heads").isStatic(key, 1, "heads").isStatic(query, 3, "the head dim").isStatic(key, 3, "the head dim");
  v.isStatic(scores, 1, "selection heads");
  v.heads(query, 1, key, 1);             // route_c1
  v.sameDims(key, query, {0, 3});        // route_c2
  v.check(getBound() == bool(getKeyMax()), getBound() ? "expected two operands after 'query' with 'bound', the minima and the maxima"
                                                      : "expected one operand after 'query'; two need 'bound'"); // route_c3
  if (getKeyMax()) {
    Named keyMax("key_max", getKeyMax().getType());
    v.sameDims(keyMax, key, {0, 1, 2, 3}).isStatic(keyMax, 1, "heads").isStatic(keyMax, 3, "the head dim");
  }
  if (getWeights()) { // route_c4
    Named weights("weights", getWeights().getType());
    v.sameDims(weights, query, {0, 1, 2});
  }
  if (getScales()) {
    Named scales("scales", getScales().getType());
    v.sameDims(scales, key, {0, 1, 2});
  }
  verifyQueryBlock(v, *this, query);
  std::optional<Named> tokens;
  if (getTokens()) {
    tokens.emplace("tokens", getTokens().getType());
    v.sameDim(*tokens, 0, query, 0);
  }
  v.check(tokens || blocks.isTokens() || (!getMask() && getScore().empty()),
          "expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are not single tokens"); // route_c6
  verifyRowsOfTokens(v, key, tokens, blocks);
  v.finite("scale", getScale()); // route_c7
  v.sameDims(scores, query, {0, 2}).heads(query, 1, scores, 1); // route_c8
  if (getReduce() == Reduction::none)
    v.dimIs(scores, 1, query.dim(1), "the heads of 'query', as 'reduce' is none");
  if (v.failed())
    return v;
  if (getWithin())
    verifyRouteWithin(v, *this, scores);
  else
    v.sameDim(scores, 3, key, 2);
  return v.failed() ? LogicalResult(v) : verifyScoreRegion(*this, getScore(), 2); // route_c10
}

LogicalResult RebinOp::verify() {
  Named input("input", getInput().getType()), tokens("tokens", getTokens().getType()), output("output", getType());
  BlocksAttr from = getFrom(), to = getTo();
  int64_t stride = from.getStride();
  Verifier v(*this);
  v.isStatic(input, 1, "selection heads").isStatic(output, 1, "selection heads");
  v.check(getKind() != Reduction::none, "expected 'sum' or 'max', but got 'none'"); // rebin_c1
  v.check(from.getSize() % stride == 0, "expected the stride of 'from' to divide its size, but got ", from); // rebin_c2
  v.check(to.getSize() % stride == 0, "expected the stride of 'from', ", stride, ", to divide the size of 'to', ", to.getSize());
  v.check(to.isPartition(), "expected 'to' not to overlap and to have no offset, but got ", to);
  v.check(from.getOffset() == 0, "expected 'from' to have no offset, but got ", from);
  int64_t queryBlock = getQueryBlock();
  v.check(queryBlock >= 1, "expected 'query_block' to be at least 1, but got ", queryBlock); // rebin_c3
  if (v.failed())
    return v;
  v.sameDims(output, input, {0, 1}).sameDim(tokens, 0, input, 0); // rebin_c5
  v.dimIs(output, 2, ceilDivDim(input.dim(2), queryBlock), "the query blocks of 'input'"); // rebin_c4
  v.dimIs(output, 3, numBlocksDim(to, tokens.dim(2)), "the number of blocks of 'to'");
  if (!tokens.isDynamic(2))
    v.check(input.isDynamic(3) || input.dim(3) <= from.getNumBlocks(tokens.dim(2)), "expected dimension 3 of 'input' to be at most ",
            from.getNumBlocks(tokens.dim(2)), ", the number of blocks of 'from', but got ", input.dim(3));
  return v;
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

static void verifyTopKForced(Verifier &v, TopKOp op) {
  SelectionType sel = op.getType();
  int64_t init = op.getInitBlocks(), local = op.getLocalBlocks(), width = sel.getWidth();
  v.check(init >= 0, "expected 'init_blocks' to be at least 0, but got ", init); // topk_c2
  v.check(local >= 0, "expected 'local_blocks' to be at least 0, but got ", local);
  v.check(init <= width && local <= width, "expected 'init_blocks' + 'local_blocks' to be at most ", width,
          ", the width of the selection, but got ", init, " + ", local); // topk_c3, and no overflow below
  if (v.failed() || init + local == 0)
    return;
  // The queries of a block may stand in this many blocks before the last one's.
  int64_t spread = ceilDiv(sel.getQueryBlock() - 1, sel.getKeyBlock());
  if (spread == 0)
    v.check(init + local <= width, "expected 'init_blocks' + 'local_blocks' to be at most ", width,
            ", the width of the selection, but got ", init, " + ", local);
  else
    v.check(init + local + spread <= width, "expected 'init_blocks' + 'local_blocks' + ceil((query_block-1)/key_block) to be at most ",
            width, ", the width of the selection, but got ", init, " + ", local, " + ", spread);
}

static void verifyTopKWithin(Verifier &v, TopKOp op, const Named &scores, const Named &selection) {
  SelectionType type = op.getWithin().getType(), sel = op.getType();
  Named within("within", type);
  v.check(type.getSorted(), "expected 'within' to be sorted; use 'ssa.sort'"); // topk_c7
  v.sameDim(within, 0, scores, 0).sameDim(within, 1, scores, 1);
  v.check(type.getQueryBlock() % sel.getQueryBlock() == 0, "expected the 'query_block' of 'within' to be a multiple of ",
          sel.getQueryBlock(), ", the selection's, but got ", type.getQueryBlock());
  v.check(type.getKeyBlock() % sel.getKeyBlock() == 0, "expected the 'key_block' of 'within' to be a multiple of ", sel.getKeyBlock(),
          ", the selection's, but got ", type.getKeyBlock());
  if (v.failed())
    return;
  v.dimIs(scores, 3, type.getWidth() * (type.getKeyBlock() / sel.getKeyBlock()), "the blocks of a list of 'within'");
  v.lists(within, ceilDivDim(selection.dim(2), type.getQueryBlock() / sel.getQueryBlock()), "the lists for the rows of 'scores'");
}

LogicalResult TopKOp::verify() {
  SelectionType sel = getType();
  Named scores("scores", getScores().getType()), tokens("tokens", getTokens().getType()), selection("selection", sel);
  Verifier v(*this);
  v.isStatic(scores, 1, "selection heads");
  v.check(sel.getSorted(), "expected the selection to be sorted"); // topk_c6
  v.sameDims(selection, scores, {0, 1, 2}).sameDim(tokens, 0, scores, 0);
  v.check(sel.getWidth() <= maxTopK, "expected a width of the selection of at most ", maxTopK, ", but got ", sel.getWidth()); // topk_c4
  v.check(sel.getQueryBlock() == 1 || getQueries(), "expected 'for' with the queries that the rows of 'scores' stand for, as "
          "'query_block' is ", sel.getQueryBlock()); // topk_c1
  if (getQueries() && !v.failed()) {
    Named queries("queries", getQueries().getType());
    v.sameDim(queries, 0, scores, 0);
    v.dimIs(scores, 2, ceilDivDim(queries.dim(2), sel.getQueryBlock()), "the query blocks of 'queries'");
  }
  verifyTopKForced(v, *this);
  v.finite("top_p", getTopP()).finite("threshold", getThreshold()); // topk_c5
  if (getTopP()) {
    double p = getTopP()->convertToDouble();
    v.check(p >= 0 && p <= 1, "expected 'top_p' to be in 0 .. 1, but got ", std::to_string(p));
  }
  if (v.failed())
    return v;
  if (getWithin())
    verifyTopKWithin(v, *this, scores, selection);
  else if (!tokens.isDynamic(2) && !scores.isDynamic(3))
    v.check(scores.dim(3) <= ceilDiv(tokens.dim(2), sel.getKeyBlock()), "expected dimension 3 of 'scores' to be at most ",
            ceilDiv(tokens.dim(2), sel.getKeyBlock()), ", the number of blocks of 'tokens', but got ", scores.dim(3));
  return v;
}

/// `b` divides keys and queries as `a` does.
static void verifySameBlocks(Verifier &v, StringRef nameA, SelectionType a, StringRef nameB, SelectionType b) {
  v.check(a.getKeyBlock() == b.getKeyBlock(), "expected the 'key_block' of '", nameB, "' to be ", a.getKeyBlock(), ", that of '", nameA,
          "', but got ", b.getKeyBlock());
  v.check(a.getQueryBlock() == b.getQueryBlock(), "expected the 'query_block' of '", nameB, "' to be ", a.getQueryBlock(), ", that of '",
          nameA, "', but got ", b.getQueryBlock());
}

LogicalResult SortOp::verify() {
  SelectionType in = getInput().getType(), out = getType();
  Verifier v(*this);
  v.check(out.getSorted(), "expected 'output' to be sorted"); // sort_c1
  verifySameBlocks(v, "input", in, "output", out);            // sort_c2
  v.sameDims(Named("output", out), Named("input", in), {0, 1, 2});
  v.check(out.getWidth() >= in.getWidth(), "expected 'output' to be at least ", in.getWidth(), " wide, as 'input' is, but got ",
          out.getWidth()); // sort_c3
  return v;
}

LogicalResult UnionOp::verify() {
  SelectionType lhs = getLhs().getType(), rhs = getRhs().getType(), out = getType();
  Verifier v(*this);
  v.check(out.getSorted(), "expected 'output' to be sorted"); // union_c1
  verifySameBlocks(v, "lhs", lhs, "rhs", rhs);                // union_c2
  verifySameBlocks(v, "lhs", lhs, "output", out);
  v.sameDims(Named("rhs", rhs), Named("lhs", lhs), {0, 1, 2}).sameDims(Named("output", out), Named("lhs", lhs), {0, 1, 2});
  v.sameDims(Named("output", out), Named("rhs", rhs), {0, 1, 2});
  int64_t needed = getLhs() == getRhs() ? lhs.getWidth() : lhs.getWidth() + rhs.getWidth();
  v.check(out.getWidth() >= needed, "expected 'output' to be at least ", needed, " wide, so that every union fits, but got ",
          out.getWidth()); // union_c3
  return v;
}

LogicalResult FromIndicesOp::verify() {
  Named indices("indices", getIndices().getType()), selection("selection", getType());
  Verifier v(*this);
  v.check(!getType().getSorted(), "expected 'selection' not to be sorted: nothing is known of the numbers; use 'ssa.sort'"); // from_indices_c2
  v.isStatic(indices, 1, "selection heads").check(!indices.isDynamic(3), "expected dimension 3 of 'indices', the width, to be static");
  v.sameDims(selection, indices, {0, 1, 2, 3}); // from_indices_c1
  return v;
}

LogicalResult ToIndicesOp::verify() {
  Named indices("indices", getType()), selection("selection", getSelection().getType());
  Verifier v(*this);
  v.isStatic(indices, 1, "selection heads").check(!indices.isDynamic(3), "expected dimension 3 of 'indices', the width, to be static");
  v.sameDims(indices, selection, {0, 1, 2, 3}); // to_indices_c1
  return v;
}

LogicalResult GatherOp::verify() {
  SelectionType sel = getSelection().getType();
  Named input("input", getInput().getType()), selection("selection", sel), output("output", getType());
  Verifier v(*this);
  v.isStatic(input, 1, "heads").isStatic(input, 3, "the head dim").isStatic(output, 1, "heads").isStatic(output, 4, "the head dim");
  v.check(!output.isDynamic(3), "expected dimension 3 of 'output', the rows of a list, to be static");
  if (v.failed())
    return v;
  int64_t heads = input.dim(1), lists = sel.getHeads();
  v.check(heads % lists == 0 || lists % heads == 0, "expected the ", heads, " heads of 'input' and the ", lists,
          " selection heads to divide one another"); // gather_c1
  v.sameDim(selection, 0, input, 0);                 // gather_c2
  v.sameDim(output, 0, input, 0).dimIs(output, 1, std::max(heads, lists), "the greater number of heads"); // gather_c3
  v.sameDim(output, 2, selection, 2).dimIs(output, 3, sel.getWidth() * sel.getKeyBlock(), "the rows of a list").sameDim(output, 4, input, 3);
  v.check(output.type.getElementType() == input.type.getElementType(), "expected 'output' to have the element type of 'input', ",
          input.type.getElementType(), ", but got ", output.type.getElementType());
  return v;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static void verifyGathered(Verifier &v, SparseAttendOp op, const Named &query, const Named &key) {
  v.check(bool(op.getTokens()), "expected 'of' with the tokens that were gathered, as 'key' has rank 5"); // sparse_attend_c5
  v.check(op.getSelections().size() == 1, "expected one selection with gathered keys, but got ", op.getSelections().size());
  v.check(!key.isDynamic(3), "expected dimension 3 of 'key', the rows of a list, to be static");
  if (v.failed())
    return;
  SelectionType sel = cast<SelectionType>(op.getSelections().front().getType());
  Named selection("selections", sel);
  v.dimIs(key, 3, sel.getWidth() * sel.getKeyBlock(), "the rows of a list").sameDim(key, 2, selection, 2);
}

LogicalResult SparseAttendOp::verify() {
  Named query("query", getQuery().getType()), key("key", getKey().getType()), value("value", getValue().getType());
  Named output("output", getOutput().getType()), lse("lse", getLse().getType());
  Verifier v(*this);
  v.check(key.type.getRank() == value.type.getRank(), "expected 'value' to have the rank of 'key', ", key.type.getRank(), ", but got ",
          value.type.getRank());
  if (v.failed())
    return v;
  unsigned last = key.type.getRank() - 1;
  v.isStatic(query, 1, "heads").isStatic(query, 3, "the head dim").isStatic(key, 1, "heads").isStatic(value, 1, "heads");
  v.isStatic(key, last, "the head dim").isStatic(value, last, "the value dim");
  v.heads(query, 1, key, 1);                                    // sparse_attend_c1
  v.sameDim(key, 0, query, 0).sameDim(key, last, query, 3);     // sparse_attend_c2
  for (unsigned i = 0; i < last; ++i)
    v.sameDim(value, i, key, i);
  std::optional<Named> tokens;
  if (getTokens()) {
    tokens.emplace("tokens", getTokens().getType());
    v.sameDim(*tokens, 0, query, 0);
  }
  v.check(tokens || getBlocksOrTokens().isTokens(), "expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are "
          "not single tokens"); // sparse_attend_c4
  if (isGathered())
    verifyGathered(v, *this, query, key);
  else
    verifyRowsOfTokens(v, key, tokens, getBlocksOrTokens());
  for (Value s : getSelections()) { // sparse_attend_c3
    auto sel = cast<SelectionType>(s.getType());
    Named selection("selections", sel);
    v.heads(query, 1, selection, 1).sameDim(selection, 0, query, 0);
    v.lists(selection, ceilDivDim(query.dim(2), sel.getQueryBlock()), "the query blocks of 'query'");
  }
  v.finite("scale", getScale()); // sparse_attend_c6
  v.isStatic(output, 1, "heads").isStatic(output, 3, "the value dim").isStatic(lse, 1, "heads");
  v.sameDims(output, query, {0, 1, 2}).sameDim(output, 3, value, last).sameDims(lse, query, {0, 1, 2}); // sparse_attend_c7
  return v.failed() ? LogicalResult(v) : verifyScoreRegion(*this, getScore(), 1);                       // sparse_attend_c8
}

/// Pairs of rows like `output` and one f32 per row; `second` names the latter.
static void verifyPairs(Verifier &v, OperandRange parts, const Named &output, StringRef second) {
  v.check(!parts.empty() && parts.size() % 2 == 0, "expected pairs of an output and its ", second, ", at least one, but got ",
          parts.size(), " operands");
  for (size_t i = 0; i + 1 < parts.size() && !v.failed(); i += 2) {
    std::string name = "part " + std::to_string(i / 2);
    std::string secondName = (second + " of part " + Twine(i / 2)).str();
    Named rows(name, parts[i].getType()), perRow(secondName, parts[i + 1].getType());
    v.check(rows.type.getRank() == 4, "expected '", name, "' to have rank 4, but got ", rows.type.getRank());
    v.check(perRow.type.getRank() == 3 && perRow.type.getElementType().isF32(), "expected '", secondName,
            "' to be a 3D tensor of f32, but got ", perRow.type);
    if (v.failed())
      return;
    v.isStatic(rows, 1, "heads").isStatic(rows, 3, "the value dim").isStatic(perRow, 1, "heads");
    v.sameDims(rows, output, {0, 1, 2, 3}).sameDims(perRow, output, {0, 1, 2});
  }
}

LogicalResult MergeOp::verify() {
  Named output("output", getOutput().getType()), lse("lse", getLse().getType());
  Verifier v(*this);
  v.isStatic(output, 1, "heads").isStatic(output, 3, "the value dim").isStatic(lse, 1, "heads");
  verifyPairs(v, getParts(), output, "lse"); // merge_c1, merge_c2
  v.sameDims(lse, output, {0, 1, 2});
  if (getSinkLogits()) { // merge_c3
    Named sinks("sink_logits", getSinkLogits().getType());
    v.isStatic(sinks, 0, "heads").sameDim(sinks, 0, output, 1);
  }
  return v;
}

LogicalResult MixOp::verify() {
  Named output("output", getType());
  Verifier v(*this);
  v.isStatic(output, 1, "heads").isStatic(output, 3, "the value dim");
  verifyPairs(v, getParts(), output, "gate"); // mix_c1, mix_c2
  return v;
}
