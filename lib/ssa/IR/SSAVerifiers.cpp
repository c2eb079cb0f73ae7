//===- SSAVerifiers.cpp - What can never be right -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Labels such as `route_c1` are the rules of the op's description, `ssa_c1` those of the dialect's.
//
//===----------------------------------------------------------------------===//

#include "Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::ssa;

/// The most entries of a list that a selector makes.
static constexpr int64_t maxTopK = 4096;

/// The widest input of a router: a model's width.
static constexpr int64_t maxProjectDim = 16384;

std::string ssa::OpTrait::describeUnknownAttribute(OperationName op, StringRef attribute) {
  StringRef closest;
  unsigned best = 3; // more edits than that are no slip of the keyboard
  for (StringAttr known : op.getAttributeNames())
    if (known != "operandSegmentSizes")
      if (unsigned distance = attribute.edit_distance(known, true, best); distance < best)
        best = distance, closest = known;
  std::string text = "has no attribute '" + attribute.str() + "'";
  return closest.empty() ? text : text + "; did you mean '" + closest.str() + "'?";
}

LogicalResult ssa::OpTrait::verifyStrictAttributes(Operation *op) { // ssa_c1
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (StringRef name = attr.getName(); !name.contains('.'))
      return op->emitOpError() << describeUnknownAttribute(op->getName(), name);
  return success();
}

/// A score region: one block, the fixed arguments, a yield at its end, and no side effects in between.
static LogicalResult verifyScoreRegion(Operation *op, Region &region, unsigned floats) {
  if (region.empty())
    return success();
  Block &block = region.front();
  auto isExpected = [&](BlockArgument a) {
    return a.getArgNumber() < floats ? a.getType().isF32() : a.getType().isSignlessInteger(32);
  };
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
  v.isStatic({input, 1}, "heads").isStatic({weight, 0}, "heads").isStatic({output, 1}, "heads");
  v.isStatic({input, 3}, "the head dim").isStatic({weight, 1}, "the head dim");
  v.isStatic({weight, 2}, "the rank").isStatic({output, 3}, "the rank");
  if (v.failed())
    return v;
  int64_t inputHeads = Dim(input, 1).size(), weightHeads = Dim(weight, 0).size();
  v.check(inputHeads == weightHeads || inputHeads == 1 || weightHeads == 1,
          "expected 'input' and 'weight' to have the same number of heads or one of them a single one, but got ",
          inputHeads, " and ", weightHeads);                  // project_c1
  v.equal({{input, 3}, {weight, 1}});                         // project_c2
  v.atMost({input, 3}, maxProjectDim, "the widest head dim"); // project_c3
  v.equal({{input, 0}, {output, 0}});                         // project_c4
  v.equal({{input, 2}, {output, 2}});
  v.equal({{weight, 2}, {output, 3}});
  v.is({output, 1}, std::max(inputHeads, weightHeads), "the greater number of heads");
  return v;
}

LogicalResult PoolOp::verify() {
  Named input("input", getInput().getType()), output("output", getType());
  std::optional<Named> scales = named("scales", getScales());
  Verifier v(*this);
  v.isStatic({input, 1}, "heads").isStatic({scales, 1}, "heads").isStatic({output, 1}, "heads");
  v.isStatic({input, 3}, "the head dim").isStatic({output, 3}, "the head dim");
  v.equal({{input, 0}, {scales, 0}, {output, 0}}); // pool_c1
  v.equal({{input, 1}, {scales, 1}, {output, 1}});
  Dim tokens = v.equal({{input, 2}, {scales, 2}});
  v.equal({{input, 3}, {output, 3}}); // pool_c2
  if (v.failed())
    return v;
  return v.is({output, 2}, numBlocksDim(getBlocks(), tokens.size()), "the number of blocks");
}

/// What `within` says of the `rows` of `scores`, which stand for blocks of these sizes.
static void verifyWithin(Verifier &v, SelectionType type, const Named &scores, int64_t rows, int64_t queryBlock,
                         int64_t keyBlock) {
  Named within("within", type);
  v.check(type.getSorted(), "expected 'within' to be sorted; use 'ssa.sort'");
  v.equal({{scores, 1}, {within, 1}});
  v.check(type.getQueryBlock() % queryBlock == 0, "expected the 'query_block' of 'within' to be a multiple of ",
          queryBlock, ", that of 'scores', but got ", type.getQueryBlock());
  v.check(type.getKeyBlock() % keyBlock == 0, "expected the 'key_block' of 'within' to be a multiple of ", keyBlock,
          ", that of 'scores', but got ", type.getKeyBlock());
  if (v.failed())
    return;
  int64_t slots = type.getWidth() * (type.getKeyBlock() / keyBlock);
  v.check(slots <= maxSize, "expected a list of 'within' to hold at most ", maxSize, " blocks, but got ", slots);
  v.is({scores, 3}, slots, "the blocks of a list of 'within'");
  v.lists({within, 2}, ceilDivDim(rows, type.getQueryBlock() / queryBlock), "the lists for the rows of 'scores'");
}

namespace {
/// Operands and result of a `route`.
struct RouteValues {
  Named query, key, scores;
  std::optional<Named> keyMax, tokens, queries, weights, scales, within;
  explicit RouteValues(RouteOp op)
      : query("query", op.getQuery().getType()), key("key", op.getKey().getType()), scores("scores", op.getType()),
        keyMax(named("key_max", op.getKeyMax())), tokens(named("tokens", op.getTokens())),
        queries(named("queries", op.getQueries())), weights(named("weights", op.getWeights())),
        scales(named("scales", op.getScales())), within(named("within", op.getWithin())) {}
};
} // namespace

/// The heads and head dims of `route`.
static void verifyRouteHeads(Verifier &v, RouteOp op, const RouteValues &o) {
  v.isStatic({o.query, 1}, "heads").isStatic({o.key, 1}, "heads").isStatic({o.keyMax, 1}, "heads");
  v.isStatic({o.weights, 1}, "heads").isStatic({o.scales, 1}, "heads").isStatic({o.scores, 1}, "selection heads");
  v.isStatic({o.query, 3}, "the head dim").isStatic({o.key, 3}, "the head dim").isStatic({o.keyMax, 3}, "the head dim");
  v.heads({o.query, 1}, {o.key, 1});                  // route_c1
  v.equal({{o.query, 3}, {o.key, 3}, {o.keyMax, 3}}); // route_c2
  v.equal({{o.query, 1}, {o.weights, 1}});            // route_c4
  v.equal({{o.key, 1}, {o.keyMax, 1}, {o.scales, 1}});
  v.heads({o.query, 1}, {o.scores, 1}); // route_c8
  if (op.getReduce() == Reduction::none)
    v.is({o.scores, 1}, Dim(o.query, 1).size(), "the heads of 'query', as 'reduce' is none");
}

/// The other sizes of `route`.
static void verifyRouteSizes(Verifier &v, RouteOp op, const RouteValues &o) {
  v.equal({{o.query, 0},
           {o.key, 0},
           {o.keyMax, 0},
           {o.tokens, 0},
           {o.queries, 0},
           {o.weights, 0},
           {o.scales, 0},
           {o.within, 0},
           {o.scores, 0}});
  Dim rows = v.equal({{o.query, 2}, {o.weights, 2}, {o.scores, 2}});
  // Within a list the scores have a width of their own.
  Dim keys = v.equal({{o.key, 2}, {o.keyMax, 2}, {o.scales, 2}, o.within ? Dim() : Dim(o.scores, 3)});
  if (v.failed())
    return;
  BlocksAttr blocks = op.getBlocksOrTokens();
  int64_t queryBlock = op.getQueryBlock();
  if (o.queries) // route_c5
    v.is(rows, ceilDivDim(Dim(o.queries, 2).size(), queryBlock), "the query blocks of 'queries'");
  if (o.tokens) // route_c6
    v.atMost(keys, numBlocksDim(blocks, Dim(o.tokens, 2).size()), "the number of blocks of 'tokens'");
  if (!o.within || v.failed())
    return;
  v.check(blocks.isPartition(), "expected 'blocks' under 'within' not to overlap and to have no offset, but got ",
          blocks); // route_c9
  verifyWithin(v, op.getWithin().getType(), o.scores, rows.size(), queryBlock, blocks.getSize());
}

LogicalResult RouteOp::verify() {
  RouteValues o(*this);
  int64_t queryBlock = getQueryBlock();
  Verifier v(*this);
  v.check(getBound() || !o.keyMax, "expected one operand after 'query'; two need 'bound'"); // route_c3
  v.check(!getBound() || o.keyMax, "expected two operands after 'query' with 'bound', the minima and the maxima");
  verifyRouteHeads(v, *this, o);
  v.check(queryBlock >= 1 && queryBlock <= maxSize, "expected 'query_block' to be in 1 .. ", maxSize, ", but got ",
          queryBlock); // route_c5
  v.check(queryBlock <= 1 || o.queries,
          "expected 'for' with the queries that the rows of 'query' stand for, as 'query_block' is ", queryBlock);
  v.check(o.tokens || getBlocksOrTokens().isTokens() || (!getMask() && getScore().empty()), // route_c6
          "expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are not single tokens");
  v.finite("scale", getScale()); // route_c7
  if (!v.failed())
    verifyRouteSizes(v, *this, o);
  return v.failed() ? LogicalResult(v) : verifyScoreRegion(*this, getScore(), 2); // route_c10
}

LogicalResult RebinOp::verify() {
  Named input("input", getInput().getType()), tokens("tokens", getTokens().getType()), output("output", getType());
  BlocksAttr from = getFrom(), to = getTo();
  int64_t stride = from.getStride(), queryBlock = getQueryBlock();
  Verifier v(*this);
  v.isStatic({input, 1}, "selection heads").isStatic({output, 1}, "selection heads");
  v.check(getKind() != Reduction::none, "expected 'sum' or 'max', but got 'none'");                          // rebin_c1
  v.check(from.getSize() % stride == 0, "expected the stride of 'from' to divide its size, but got ", from); // rebin_c2
  v.check(to.getSize() % stride == 0, "expected the stride of 'from', ", stride, ", to divide the size of 'to', ",
          to.getSize());
  v.check(to.isPartition(), "expected 'to' not to overlap and to have no offset, but got ", to);
  v.check(from.getOffset() == 0, "expected 'from' to have no offset, but got ", from);
  v.check(queryBlock >= 1 && queryBlock <= maxSize, "expected 'query_block' to be in 1 .. ", maxSize, ", but got ",
          queryBlock);                             // rebin_c3
  v.equal({{input, 0}, {tokens, 0}, {output, 0}}); // rebin_c5
  v.equal({{input, 1}, {output, 1}});              // rebin_c4
  if (v.failed())
    return v;
  int64_t numTokens = Dim(tokens, 2).size();
  v.is({output, 2}, ceilDivDim(Dim(input, 2).size(), queryBlock), "the query blocks of 'input'");
  v.is({output, 3}, numBlocksDim(to, numTokens), "the number of blocks of 'to'");
  v.atMost({input, 3}, numBlocksDim(from, numTokens), "the number of blocks of 'from'"); // rebin_c6
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
  if (v.failed() || (init == 0 && local == 0))
    return;
  // The queries of a block may stand in this many blocks before the last one's.
  int64_t spread = ceilDiv(sel.getQueryBlock() - 1, sel.getKeyBlock());
  // Each on its own first: both may be as large as 2^63 - 1.
  bool fits = init <= width && local <= width && init + local + spread <= width;
  if (spread == 0)
    v.check(fits, "expected 'init_blocks' + 'local_blocks' to be at most ", width,
            ", the width of the selection, but got ", init, " + ", local); // topk_c3
  else
    v.check(fits, "expected 'init_blocks' + 'local_blocks' + ceil((query_block-1)/key_block) to be at most ", width,
            ", the width of the selection, but got ", init, " + ", local, " + ", spread);
}

static void verifyTopP(Verifier &v, TopKOp op) {
  v.finite("top_p", op.getTopP()).finite("threshold", op.getThreshold()); // topk_c5
  if (op.getTopP() && !v.failed()) {
    auto p = float(op.getTopP()->convertToDouble());
    v.check(p >= 0 && p <= 1, "expected 'top_p' to be in 0 .. 1, but got ", Verifier::text(p));
  }
}

LogicalResult TopKOp::verify() {
  SelectionType sel = getType();
  Named scores("scores", getScores().getType()), tokens("tokens", getTokens().getType()), selection("selection", sel);
  std::optional<Named> queries = named("queries", getQueries()), within = named("within", getWithin());
  Verifier v(*this);
  v.isStatic({scores, 1}, "selection heads");
  v.check(sel.getSorted(), "expected 'selection' to be sorted"); // topk_c6
  v.equal({{scores, 0}, {tokens, 0}, {queries, 0}, {within, 0}, {selection, 0}});
  v.equal({{scores, 1}, {selection, 1}});
  Dim rows = v.equal({{scores, 2}, {selection, 2}});
  v.check(sel.getWidth() <= maxTopK, "expected the width of 'selection' to be at most ", maxTopK, ", but got ",
          sel.getWidth());                     // topk_c4
  v.check(sel.getQueryBlock() == 1 || queries, // topk_c1
          "expected 'for' with the queries that the rows of 'scores' stand for, as 'query_block' is ",
          sel.getQueryBlock());
  verifyTopKForced(v, *this);
  verifyTopP(v, *this);
  if (v.failed())
    return v;
  if (queries)
    v.is(rows, ceilDivDim(Dim(queries, 2).size(), sel.getQueryBlock()), "the query blocks of 'queries'");
  if (within) // topk_c7
    verifyWithin(v, getWithin().getType(), scores, rows.size(), sel.getQueryBlock(), sel.getKeyBlock());
  else
    v.atMost({scores, 3}, ceilDivDim(Dim(tokens, 2).size(), sel.getKeyBlock()),
             "the number of blocks of 'tokens'"); // topk_c8
  return v;
}

/// `b` divides keys and queries as `a` does.
static void verifySameBlocks(Verifier &v, StringRef nameA, SelectionType a, StringRef nameB, SelectionType b) {
  v.check(a.getKeyBlock() == b.getKeyBlock(), "expected the 'key_block' of '", nameB, "' to be ", a.getKeyBlock(),
          ", that of '", nameA, "', but got ", b.getKeyBlock());
  v.check(a.getQueryBlock() == b.getQueryBlock(), "expected the 'query_block' of '", nameB, "' to be ",
          a.getQueryBlock(), ", that of '", nameA, "', but got ", b.getQueryBlock());
}

LogicalResult SortOp::verify() {
  SelectionType in = getInput().getType(), out = getType();
  Named input("input", in), output("output", out);
  Verifier v(*this);
  v.check(out.getSorted(), "expected 'output' to be sorted"); // sort_c1
  verifySameBlocks(v, "input", in, "output", out);            // sort_c2
  for (unsigned i : {0, 1, 2})
    v.equal({{input, i}, {output, i}});
  v.check(out.getWidth() >= in.getWidth(), "expected 'output' to be at least ", in.getWidth(),
          " wide, as 'input' is, but got ", out.getWidth()); // sort_c3
  return v;
}

LogicalResult UnionOp::verify() {
  SelectionType left = getLhs().getType(), right = getRhs().getType(), out = getType();
  Named lhs("lhs", left), rhs("rhs", right), output("output", out);
  Verifier v(*this);
  v.check(out.getSorted(), "expected 'output' to be sorted"); // union_c1
  verifySameBlocks(v, "lhs", left, "rhs", right);             // union_c2
  verifySameBlocks(v, "lhs", left, "output", out);
  for (unsigned i : {0, 1, 2})
    v.equal({{lhs, i}, {rhs, i}, {output, i}});
  int64_t needed = getLhs() == getRhs() ? left.getWidth() : left.getWidth() + right.getWidth();
  v.check(out.getWidth() >= needed, "expected 'output' to be at least ", needed,
          " wide, so that every union fits, but got ", out.getWidth()); // union_c3
  return v;
}

LogicalResult FromIndicesOp::verify() {
  Named indices("indices", getIndices().getType()), selection("selection", getType());
  Verifier v(*this);
  v.isStatic({indices, 1}, "selection heads").hasWidth({indices, 3}, "the width");
  for (unsigned i : {0, 1, 2, 3})
    v.equal({{indices, i}, {selection, i}}); // from_indices_c1
  return v.check(!getType().getSorted(), "expected 'selection' not to be sorted: nothing is known of the numbers; use "
                                         "'ssa.sort'"); // from_indices_c2
}

LogicalResult ToIndicesOp::verify() {
  Named selection("selection", getSelection().getType()), indices("indices", getType());
  Verifier v(*this);
  v.isStatic({indices, 1}, "selection heads").hasWidth({indices, 3}, "the width");
  for (unsigned i : {0, 1, 2, 3})
    v.equal({{selection, i}, {indices, i}}); // to_indices_c1
  return v;
}

LogicalResult GatherOp::verify() {
  SelectionType sel = getSelection().getType();
  Named input("input", getInput().getType()), selection("selection", sel), output("output", getType());
  Verifier v(*this);
  v.isStatic({input, 1}, "heads").isStatic({output, 1}, "heads");
  v.isStatic({input, 3}, "the head dim").isStatic({output, 4}, "the head dim");
  v.hasWidth({output, 3}, "the rows of a list");
  if (v.failed())
    return v;
  int64_t heads = Dim(input, 1).size(), lists = sel.getHeads();
  v.check(heads % lists == 0 || lists % heads == 0, "expected the ", heads, " heads of 'input' and the ", lists,
          " selection heads to divide one another");                        // gather_c1
  v.equal({{input, 0}, {selection, 0}, {output, 0}});                       // gather_c2
  v.is({output, 1}, std::max(heads, lists), "the greater number of heads"); // gather_c3
  v.equal({{selection, 2}, {output, 2}});
  v.is({output, 3}, sel.getWidth() * sel.getKeyBlock(), "the rows of a list");
  v.equal({{input, 3}, {output, 4}});
  Type expected = input.type.getElementType(), got = output.type.getElementType();
  v.check(got == expected, "expected 'output' to have the element type of 'input', ", expected, ", but got ", got);
  return v;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Keys and values that were gathered; `rows` is how many lists of them there are.
static void verifyGathered(Verifier &v, SparseAttendOp op, const Named &key, Dim rows) {
  v.check(bool(op.getTokens()),
          "expected 'of' with the tokens that were gathered, as 'key' has rank 5"); // sparse_attend_c5
  v.check(op.getSelections().size() == 1, "expected one selection with gathered keys, but got ",
          op.getSelections().size());
  v.hasWidth({key, 3}, "the rows of a list");
  if (v.failed())
    return;
  auto sel = cast<SelectionType>(op.getSelections().front().getType());
  Named selection("selection 0", sel);
  v.is({key, 3}, sel.getWidth() * sel.getKeyBlock(), "the rows of a list");
  v.equal({rows, {selection, 2}});
}

/// The selections that are attended to; `rows` is the number of queries.
static void verifySelections(Verifier &v, SparseAttendOp op, const Named &query, Dim batches, Dim rows) {
  SmallVector<Named> names;
  names.reserve(op.getSelections().size()); // dimensions point into it
  for (auto [i, s] : llvm::enumerate(op.getSelections())) {
    auto sel = cast<SelectionType>(s.getType());
    const Named &selection = names.emplace_back("selection " + std::to_string(i), sel);
    v.heads({query, 1}, {selection, 1}); // sparse_attend_c3
    batches = v.equal({batches, {selection, 0}});
    v.lists({selection, 2}, ceilDivDim(rows.size(), sel.getQueryBlock()), "the query blocks of 'query'");
  }
}

LogicalResult SparseAttendOp::verify() {
  Named query("query", getQuery().getType()), key("key", getKey().getType()), value("value", getValue().getType());
  Named output("output", getOutput().getType()), lse("lse", getLse().getType());
  std::optional<Named> tokens = named("tokens", getTokens());
  unsigned last = key.type.getRank() - 1;
  Verifier v(*this);
  v.check(value.type.getRank() == last + 1, "expected 'value' to have the rank of 'key', ", last + 1, ", but got ",
          value.type.getRank()); // sparse_attend_c2
  if (v.failed())
    return v;
  v.isStatic({query, 1}, "heads").isStatic({key, 1}, "heads").isStatic({value, 1}, "heads");
  v.isStatic({output, 1}, "heads").isStatic({lse, 1}, "heads").isStatic({query, 3}, "the head dim");
  v.isStatic({key, last}, "the head dim")
      .isStatic({value, last}, "the value dim")
      .isStatic({output, 3}, "the value dim");
  v.heads({query, 1}, {key, 1}); // sparse_attend_c1
  v.equal({{query, 3}, {key, last}});
  v.equal({{key, 1}, {value, 1}});
  if (isGathered())
    v.equal({{key, 3}, {value, 3}});
  Dim keys = v.equal({{key, 2}, {value, 2}});
  Dim batches = v.equal({{query, 0}, {key, 0}, {value, 0}, {tokens, 0}, {output, 0}, {lse, 0}});
  v.equal({{query, 1}, {output, 1}, {lse, 1}}); // sparse_attend_c7
  v.equal({{value, last}, {output, 3}});
  Dim rows = v.equal({{query, 2}, {output, 2}, {lse, 2}});
  v.check(tokens || getBlocksOrTokens().isTokens(), // sparse_attend_c4
          "expected 'of' with the tokens that the rows of 'key' stand for, as 'blocks' are not single tokens");
  v.finite("scale", getScale()); // sparse_attend_c6
  if (v.failed())
    return v;
  if (isGathered())
    verifyGathered(v, *this, key, keys);
  else if (tokens)
    v.atMost(keys, numBlocksDim(getBlocksOrTokens(), Dim(tokens, 2).size()), "the number of blocks of 'tokens'");
  verifySelections(v, *this, query, batches, rows);
  return v.failed() ? LogicalResult(v) : verifyScoreRegion(*this, getScore(), 1); // sparse_attend_c8
}

/// Pairs of rows like `output` and one f32 per row, which `second` names; `lse` is another result of the latter kind.
static void verifyPairs(Verifier &v, OperandRange parts, const Named &output, const std::optional<Named> &lse,
                        StringRef second) {
  v.check(!parts.empty() && parts.size() % 2 == 0, "expected pairs of an output and its ", second,
          ", at least one, but got ", parts.size(), " operands");
  SmallVector<Named> values;
  values.reserve(parts.size()); // dimensions point into it
  SmallVector<Dim> dims[4];
  for (unsigned d : {0, 1, 2, 3})
    dims[d].push_back({output, d});
  for (unsigned d : {0, 1, 2})
    dims[d].push_back({lse, d});
  for (size_t i = 0; i + 1 < parts.size() && !v.failed(); i += 2) {
    std::string name = "part " + std::to_string(i / 2);
    const Named &rows = values.emplace_back(name, parts[i].getType());
    const Named &perRow = values.emplace_back(second.str() + " of " + name, parts[i + 1].getType());
    v.check(rows.type.getRank() == 4, "expected '", rows.name, "' to have rank 4, but got ", rows.type.getRank());
    v.check(perRow.type.getRank() == 3 && perRow.type.getElementType().isF32(), "expected '", perRow.name,
            "' to be a 3D tensor of f32, but got ", perRow.type);
    if (v.failed())
      return;
    v.isStatic({rows, 1}, "heads").isStatic({rows, 3}, "the value dim").isStatic({perRow, 1}, "heads");
    for (unsigned d : {0, 1, 2, 3})
      dims[d].push_back({rows, d});
    for (unsigned d : {0, 1, 2})
      dims[d].push_back({perRow, d});
  }
  for (ArrayRef<Dim> some : dims)
    v.equal(some);
}

LogicalResult MergeOp::verify() {
  Named output("output", getOutput().getType());
  std::optional<Named> lse = named("lse", getLse()), sinks = named("sink_logits", getSinkLogits());
  Verifier v(*this);
  v.isStatic({output, 1}, "heads").isStatic({output, 3}, "the value dim").isStatic({lse, 1}, "heads");
  verifyPairs(v, getParts(), output, lse, "lse"); // merge_c1, merge_c2
  v.isStatic({sinks, 0}, "heads");                // merge_c3
  v.equal({{output, 1}, {sinks, 0}});
  return v;
}

LogicalResult MixOp::verify() {
  Named output("output", getType());
  Verifier v(*this);
  v.isStatic({output, 1}, "heads").isStatic({output, 3}, "the value dim");
  verifyPairs(v, getParts(), output, std::nullopt, "gate"); // mix_c1, mix_c2
  return v;
}
