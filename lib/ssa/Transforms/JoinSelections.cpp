//===- JoinSelections.cpp - ssa-join-selections ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attention at several selections, each key once, as attention at one selection at a time. Selections that serve the same queries
// of the same heads by the same blocks are united. What is left differs, and is made disjoint: from each selection goes what
// those of larger blocks have already, and the parts are merged. So large blocks stay dense tiles, and a list that
// serves many queries stays one list.
//
//===----------------------------------------------------------------------===//

#include "ssa/Conversion/Passes.h"
#include "ssa/IR/Geometry.h"
#include "ssa/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <numeric>

namespace mlir::ssa {
#define GEN_PASS_DEF_SSAJOINSELECTIONSPASS
#include "ssa/Transforms/Passes.h.inc"
} // namespace mlir::ssa

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Whom lists serve: a list for every `queryBlock` queries of every selection head, or one for all queries.
struct Audience {
  int64_t heads, queryBlock;
  bool isOneList;

  static Audience of(SelectionType type) { return {type.getHeads(), type.getQueryBlock(), type.getDimSize(2) == 1}; }
  bool operator==(const Audience &o) const {
    return heads == o.heads && isOneList == o.isOneList && (isOneList || queryBlock == o.queryBlock);
  }
  /// Those whom one list of both serves.
  Audience operator&(const Audience &o) const {
    int64_t queries = isOneList ? o.queryBlock : o.isOneList ? queryBlock : std::gcd(queryBlock, o.queryBlock);
    return {std::lcm(heads, o.heads), queries, isOneList && o.isOneList};
  }
};

/// Rewrites one op.
class Joining {
public:
  explicit Joining(SparseAttendOp op) : op(op), b(op.getLoc(), op) {}

  LogicalResult run();
  int64_t numUnited = 0;

private:
  void requireSizes(Value selection);
  Value getIndices(Value selection);
  FailureOr<Value> makeLists(Value selection, const Audience &audience, int64_t keyBlock);
  Value unite(Value a, Value c);
  FailureOr<Value> exclude(Value selection, ArrayRef<Value> others);
  SparseAttendOp attend(Value selection, Type outputType);
  void attendParts(ArrayRef<Value> parts);

  Value index(int64_t c) { return arith::ConstantIndexOp::create(b, c); }
  Value i32(int64_t c) { return arith::ConstantIntOp::create(b, b.getI32Type(), c); }
  Value numLists(int64_t queryBlock) {
    return arith::CeilDivSIOp::create(b, tensor::DimOp::create(b, op.getQuery(), 2), index(queryBlock));
  }

  SparseAttendOp op;
  ImplicitLocOpBuilder b;
};

} // namespace

static SelectionType typeOf(Value selection) { return cast<SelectionType>(selection.getType()); }

/// Sizes that are only known in a run are required before lists are made of these: nothing is read past an end.
void Joining::requireSizes(Value selection) {
  SelectionType type = typeOf(selection);
  auto require = [&](Value condition, const Twine &message) {
    cf::AssertOp::create(b, condition, ("'" + op->getName().getStringRef() + "' " + message).str());
  };
  auto equal = [&](Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y); };
  if (type.isDynamicDim(0) || op.getQuery().getType().isDynamicDim(0))
    require(equal(tensor::DimOp::create(b, getIndices(selection), 0), tensor::DimOp::create(b, op.getQuery(), 0)),
            "expected dimension 0 of 'selections' to be dimension 0 of 'query'");
  if (type.getDimSize(2) == 1)
    return;
  Value lists = tensor::DimOp::create(b, getIndices(selection), 2);
  require(arith::OrIOp::create(b, equal(lists, index(1)), equal(lists, numLists(type.getQueryBlock()))),
          "expected dimension 2 of 'selections' to be 1 or the number of query blocks of 'query'");
}

/// The numbers as they stand: those below 0 are padding too.
Value Joining::getIndices(Value selection) {
  if (auto from = selection.getDefiningOp<FromIndicesOp>())
    return from.getIndices();
  return ToIndicesOp::create(b, typeOf(selection).getIndicesType(), selection);
}

/// The lists of a selection, as a tensor, one for each of `audience`, in blocks of `keyBlock`, which divides its own. A selection of one
/// list may keep that.
FailureOr<Value> Joining::makeLists(Value selection, const Audience &audience, int64_t keyBlock) {
  SelectionType type = typeOf(selection);
  int64_t parts = type.getKeyBlock() / keyBlock, heads = audience.heads / type.getHeads();
  bool hasOneList = type.getDimSize(2) == 1;
  Value indices = getIndices(selection);
  if (heads == 1 && parts == 1 && hasOneList == audience.isOneList && (hasOneList || !type.isDynamicDim(2)))
    return indices;
  if (type.getWidth() > maxSortedNumbers / parts)
    return op.emitOpError() << "has no kernel for selections whose blocks have " << keyBlock << " keys in common: a list of "
                            << type.getWidth() << " blocks of " << type.getKeyBlock() << " would have more than " << maxSortedNumbers
                            << " of them";
  SmallVector<int64_t> shape = {type.getDimSize(0), audience.heads, audience.isOneList ? 1 : ShapedType::kDynamic,
                                type.getWidth() * parts};
  SmallVector<Value> sizes;
  if (type.isDynamicDim(0))
    sizes.push_back(tensor::DimOp::create(b, indices, 0));
  if (!audience.isOneList)
    sizes.push_back(numLists(audience.queryBlock));
  // Which of the lists: known to be one, or one in this run, or one for each query block.
  Value rows = tensor::DimOp::create(b, indices, 2);
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rows, index(1));
  auto make = [&](OpBuilder &builder, Location loc, ValueRange at) {
    ImplicitLocOpBuilder b(loc, builder);
    auto div = [&](Value x, int64_t y) { return arith::DivUIOp::create(b, x, arith::ConstantIndexOp::create(b, y)).getResult(); };
    Value head = div(at[1], heads), zero = arith::ConstantIndexOp::create(b, 0);
    Value query = arith::MulIOp::create(b, at[2], arith::ConstantIndexOp::create(b, audience.queryBlock));
    Value row = hasOneList ? zero : arith::SelectOp::create(b, isOne, zero, div(query, type.getQueryBlock())).getResult();
    Value number = tensor::ExtractOp::create(b, indices, ValueRange{at[0], head, row, div(at[3], parts)});
    if (parts > 1) {
      auto i32 = [&](int64_t c) { return arith::ConstantIntOp::create(b, b.getI32Type(), c).getResult(); };
      // The product of a number past every end may not fit; compared without a sign, negative ones are past it too.
      Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, i32(std::numeric_limits<int32_t>::max() / parts));
      Value part = arith::IndexCastOp::create(
          b, b.getI32Type(), arith::RemUIOp::create(b, at[3], arith::ConstantIndexOp::create(b, parts)));
      Value first = arith::MulIOp::create(b, number, i32(parts));
      number = arith::SelectOp::create(b, fits, arith::AddIOp::create(b, first, part), i32(-1));
    }
    tensor::YieldOp::create(b, number);
  };
  return tensor::GenerateOp::create(b, RankedTensorType::get(shape, b.getI32Type()), sizes, make).getResult();
}

/// Null if no kernel sorts lists of both.
Value Joining::unite(Value a, Value c) {
  SelectionType type = typeOf(a);
  int64_t width = type.getWidth() + typeOf(c).getWidth();
  if (width > maxSortedNumbers)
    return nullptr;
  auto withAllLists = [&](Value selection) -> Value {
    Value lists = *makeLists(selection, Audience::of(type), type.getKeyBlock());
    auto listsType = cast<RankedTensorType>(lists.getType());
    if (listsType == typeOf(selection).getIndicesType() && !listsType.isDynamicDim(2))
      return selection;
    return FromIndicesOp::create(b, SelectionType::get(b.getContext(), listsType.getShape(), type.getKeyBlock(), type.getQueryBlock(), false),
                                 lists);
  };
  Value left = withAllLists(a), right = withAllLists(c);
  SmallVector<int64_t> shape(typeOf(left).getShape());
  if (ShapedType::isDynamic(shape[0]))
    shape[0] = typeOf(right).getDimSize(0);
  shape[3] = width;
  ++numUnited;
  return UnionOp::create(b, SelectionType::get(b.getContext(), shape, type.getKeyBlock(), type.getQueryBlock(), /*sorted=*/true), left, right);
}

/// What none of the others has; their blocks are no smaller.
FailureOr<Value> Joining::exclude(Value selection, ArrayRef<Value> others) {
  Audience audience = Audience::of(typeOf(selection));
  int64_t keyBlock = typeOf(selection).getKeyBlock();
  for (Value other : others) {
    audience = audience & Audience::of(typeOf(other));
    keyBlock = std::gcd(keyBlock, typeOf(other).getKeyBlock());
  }
  FailureOr<Value> lists = makeLists(selection, audience, keyBlock);
  if (failed(lists))
    return failure();
  for (Value other : others) {
    Audience theirs = {audience.heads, audience.queryBlock, typeOf(other).getDimSize(2) == 1};
    FailureOr<Value> known = makeLists(other, theirs, typeOf(other).getKeyBlock());
    if (failed(known))
      return failure();
    int64_t ratio = typeOf(other).getKeyBlock() / keyBlock;
    // Batch, head, list and number; the last loop goes over the other list.
    AffineMap own = AffineMap::getMultiDimMapWithTargets(5, {0, 1, 2, 3}, b.getContext());
    AffineMap their = AffineMap::getMultiDimMapWithTargets(5, {0, 1, 2, 4}, b.getContext());
    if (theirs.isOneList)
      their = AffineMap::get(5, 0, {their.getResult(0), their.getResult(1), b.getAffineConstantExpr(0), their.getResult(3)}, b.getContext());
    SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
    loops.back() = utils::IteratorType::reduction;
    auto body = [&](OpBuilder &builder, Location loc, ValueRange args) {
      ImplicitLocOpBuilder b(loc, builder);
      auto i32 = [&](int64_t c) { return arith::ConstantIntOp::create(b, b.getI32Type(), c).getResult(); };
      // What is padding may be taken for block 0 here, and becomes padding.
      Value block = ratio == 1 ? args[1] : arith::DivSIOp::create(b, args[1], i32(ratio)).getResult();
      Value isKnown = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, args[0]);
      linalg::YieldOp::create(b, arith::SelectOp::create(b, isKnown, i32(-1), args[1]).getResult());
    };
    lists = linalg::GenericOp::create(b, TypeRange(lists->getType()), ValueRange(*known), ValueRange(*lists),
                                      ArrayRef<AffineMap>{their, own}, loops, body)
                .getResult(0);
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(lists->getType()).getShape();
  return FromIndicesOp::create(b, SelectionType::get(b.getContext(), shape, keyBlock, audience.queryBlock, /*sorted=*/false), *lists)
      .getResult();
}

SparseAttendOp Joining::attend(Value selection, Type outputType) {
  auto part = cast<SparseAttendOp>(b.clone(*op));
  part.getSelectionsMutable().assign(selection);
  part.getOutput().setType(cast<RankedTensorType>(outputType));
  return part;
}

/// Partial outputs are f32: the result is rounded once.
void Joining::attendParts(ArrayRef<Value> parts) {
  if (parts.size() == 1) {
    op.getSelectionsMutable().assign(parts.front());
    return;
  }
  Type partial = op.getOutput().getType().clone(b.getF32Type());
  SmallVector<Value> states;
  for (Value part : parts)
    llvm::append_range(states, attend(part, partial)->getResults());
  auto merged = MergeOp::create(b, op.getOutput().getType(), op.getLse().getType(), states, /*sink_logits=*/Value());
  op.replaceAllUsesWith(merged->getResults());
  op.erase();
}

LogicalResult Joining::run() {
  SmallVector<Value> selections;
  for (Value s : op.getSelections())
    if (!llvm::is_contained(selections, s) && typeOf(s).getWidth() > 0)
      selections.push_back(s);
  if (selections.empty())
    selections.push_back(op.getSelections().front());
  if (selections.size() > 1)
    for (Value s : selections)
      requireSizes(s);
  // First those of large blocks, then those that serve most: what is taken from a list must not be finer than the list.
  auto order = [&](Value s) {
    SelectionType type = typeOf(s);
    return std::tuple(-type.getKeyBlock(), type.getDimSize(2) != 1, -type.getQueryBlock(), type.getHeads(), llvm::find(selections, s));
  };
  SmallVector<Value> ordered = selections;
  llvm::sort(ordered, [&](Value a, Value c) { return order(a) < order(c); });
  SmallVector<Value> united;
  for (Value s : ordered) {
    auto *same = llvm::find_if(united, [&](Value other) {
      return typeOf(other).getKeyBlock() == typeOf(s).getKeyBlock() && Audience::of(typeOf(other)) == Audience::of(typeOf(s));
    });
    Value both = same == united.end() ? Value() : unite(*same, s);
    if (both)
      *same = both;
    else
      united.push_back(s);
  }
  SmallVector<Value> parts;
  for (Value s : united) {
    FailureOr<Value> part = parts.empty() ? FailureOr<Value>(s) : exclude(s, parts);
    if (failed(part))
      return failure();
    parts.push_back(*part);
  }
  attendParts(parts);
  return success();
}

namespace {
struct JoinSelections : ssa::impl::SSAJoinSelectionsPassBase<JoinSelections> {
  void runOnOperation() override {
    SmallVector<SparseAttendOp> ops;
    getOperation()->walk([&](SparseAttendOp op) {
      if (op.getSelections().size() > 1)
        ops.push_back(op);
    });
    for (SparseAttendOp op : ops) {
      Joining joining(op);
      if (failed(joining.run()))
        return signalPassFailure();
      numUnited += joining.numUnited;
    }
  }
};
} // namespace
