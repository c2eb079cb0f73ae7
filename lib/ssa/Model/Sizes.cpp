//===- Sizes.cpp - Sizes of values under assumptions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "ssa/IR/Geometry.h"
#include "ssa/Model/Model.h"

using namespace mlir;
using namespace mlir::ssa;

FailureOr<Assumptions> Assumptions::parse(StringRef sizes, double agreement, llvm::function_ref<InFlightDiagnostic()> emitError) {
  Assumptions result;
  constexpr int64_t most = int64_t(1) << 31; // kernels number tokens by i32
  if (agreement > 1 || std::isnan(agreement))
    return emitError() << "expected 'agreement' to be a share in 0 .. 1, but got " << agreement;
  result.agreement = agreement;
  SmallVector<StringRef> items;
  sizes.split(items, ',', -1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, text] = item.contains('=') ? item.split('=') : std::pair<StringRef, StringRef>("tokens", item);
    name = name.trim().ltrim('%');
    int64_t number;
    if (name.empty() || text.trim().getAsInteger(10, number) || number < 1 || number >= most)
      return emitError() << "expected 'sizes' to be like '131072' or 'tokens=131072,queries=16,NAME=1024', of numbers in 1 .. 2147483647, but got '"
                         << item << "'";
    if (name == "tokens")
      result.tokens = number;
    else if (name == "queries")
      result.queries = number;
    else if (name == "batch")
      result.batch = number;
    else
      result.rows[name] = number;
  }
  return result;
}

StringRef ssa::getSourceName(BlockArgument argument) {
  if (auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "ssa.name"))
      return name.getValue();
  auto name = dyn_cast<NameLoc>(argument.getLoc());
  return name ? name.getName().getValue().ltrim('%') : StringRef();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {
/// What the rows of a tensor are, and its columns where these are blocks.
struct Role {
  enum Kind { Queries, Tokens, Blocks, Lists };
  Role(Kind kind = Tokens, BlocksAttr blocks = {}) : kind(kind), blocks(blocks) {}
  Role(int64_t queryBlock, std::optional<int64_t> columnBlock) : kind(Lists), queryBlock(queryBlock), columnBlock(columnBlock) {}

  Kind kind;
  BlocksAttr blocks;                  // of Blocks
  int64_t queryBlock = 1;             // of Lists
  std::optional<int64_t> columnBlock; // of scores
};
} // namespace

static std::optional<Role> findRole(Value v, unsigned depth);

/// The role of what goes into `op` where its result has one: what is pooled to blocks is tokens.
static std::optional<Role> findRoleBefore(Operation *op, unsigned depth) {
  std::optional<Role> role = findRole(op->getResult(0), depth + 1);
  if (role && isa<PoolOp>(op) && role->kind == Role::Blocks)
    role->kind = Role::Tokens;
  return role;
}

static std::optional<Role> findRole(OpOperand &use, unsigned depth) {
  auto isIn = [&](OperandRange range) { return llvm::is_contained(llvm::map_range(range, [](Value v) { return v; }), use.get()); };
  auto rows = [&](BlocksAttr blocks) { return blocks && !blocks.isTokens() ? Role(Role::Blocks, blocks) : Role(); };
  Operation *user = use.getOwner();
  if (auto op = dyn_cast<SparseAttendOp>(user))
    return use.get() == op.getQuery() ? Role(Role::Queries) : use.get() == op.getTokens() ? Role() : rows(op.getBlocksOrTokens());
  if (auto op = dyn_cast<RouteOp>(user)) {
    if (isIn(op->getOperands().take_front(1)) || use.get() == op.getWeights() || use.get() == op.getQueries())
      return Role(Role::Queries);
    return use.get() == op.getTokens() ? Role() : rows(op.getBlocks().value_or(BlocksAttr()));
  }
  if (isa<MixOp, MergeOp>(user))
    return Role(Role::Queries);
  if (auto op = dyn_cast<FromIndicesOp>(user))
    return Role(op.getType().getQueryBlock(), std::nullopt);
  if (auto op = dyn_cast<TopKOp>(user); op && use.get() == op.getScores())
    return Role(op.getType().getQueryBlock(), op.getType().getKeyBlock());
  if (auto op = dyn_cast<RebinOp>(user); op && use.get() == op.getInput()) {
    std::optional<Role> after = findRole(op->getResult(0), depth + 1);
    return Role(after ? after->queryBlock : 1, op.getFrom().getStride());
  }
  if (isa<PoolOp, ProjectOp, tensor::ExtractSliceOp, tensor::CastOp>(user))
    return findRoleBefore(user, depth);
  return std::nullopt;
}

static std::optional<Role> findRole(Value v, unsigned depth) {
  constexpr unsigned maxDepth = 8;
  std::optional<Role> found;
  if (depth < maxDepth)
    for (OpOperand &use : v.getUses()) {
      std::optional<Role> role = findRole(use, depth);
      if (role && role->kind != Role::Tokens)
        return role; // more particular than that it has tokens
      if (role)
        found = role;
    }
  return found;
}

int64_t ssa::getAssumedSize(BlockArgument argument, int64_t dim, const Assumptions &assumptions) {
  auto type = cast<ShapedType>(argument.getType());
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  constexpr int64_t batchDim = 0, rowDim = 2, columnDim = 3;
  if (dim == batchDim)
    return assumptions.batch;
  if (auto given = assumptions.rows.find(getSourceName(argument)); dim == rowDim && given != assumptions.rows.end())
    return given->second;
  Role role = findRole(argument, 0).value_or(Role());
  if (dim == columnDim && role.columnBlock)
    return ceilDiv(assumptions.tokens, *role.columnBlock);
  switch (role.kind) {
  case Role::Queries:
    return assumptions.getQueries();
  case Role::Tokens:
    return assumptions.tokens;
  case Role::Blocks:
    return role.blocks.getNumBlocks(assumptions.tokens);
  case Role::Lists:
    return ceilDiv(assumptions.getQueries(), role.queryBlock);
  }
  return assumptions.tokens;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

AssumedSizes::~AssumedSizes() {
  scratch.dropAllReferences();
  scratch.clear();
}

std::optional<int64_t> AssumedSizes::evaluate(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return constant;
  auto v = dyn_cast<Value>(value);
  return v ? evaluate(v) : std::nullopt;
}

/// By folding: the ops that sizes are made of fold where their operands are constants.
std::optional<int64_t> AssumedSizes::evaluate(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> index = evaluate(dim.getIndex());
    return index ? std::optional(get(dim.getSource(), *index)) : std::nullopt;
  }
  Builder builder(op->getContext());
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> number = operand.getType().isIntOrIndex() ? evaluate(operand) : std::nullopt;
    if (!number)
      return std::nullopt;
    operands.push_back(builder.getIntegerAttr(operand.getType(), *number));
  }
  SmallVector<OpFoldResult> results;
  if (!op->isRegistered() || op->getNumRegions() || failed(op->fold(operands, results)) || results.empty())
    return std::nullopt;
  return evaluate(results[cast<OpResult>(value).getResultNumber()]);
}

std::optional<int64_t> AssumedSizes::reify(OpResult result, int64_t dim) {
  auto interface = dyn_cast<ReifyRankedShapedTypeOpInterface>(result.getOwner());
  if (!interface)
    return std::nullopt;
  OpBuilder builder(result.getContext());
  builder.setInsertionPointToEnd(&scratch);
  ReifiedRankedShapedTypeDims shapes;
  if (failed(interface.reifyResultShapes(builder, shapes)) || shapes.size() <= result.getResultNumber())
    return std::nullopt;
  return evaluate(shapes[result.getResultNumber()][dim]);
}

int64_t AssumedSizes::get(Value v, int64_t dim) {
  auto type = cast<ShapedType>(v.getType());
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  auto [entry, isNew] = known.try_emplace({v, dim}, assumptions.tokens);
  if (!isNew)
    return entry->second;
  std::optional<int64_t> size;
  auto argument = dyn_cast<BlockArgument>(v);
  if (argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    size = getAssumedSize(argument, dim, assumptions);
  else if (auto result = dyn_cast<OpResult>(v))
    size = reify(result, dim);
  return known[{v, dim}] = size.value_or(dim == 0 ? assumptions.batch : assumptions.tokens);
}

int64_t AssumedSizes::getBytes(Value v) {
  auto type = cast<ShapedType>(v.getType());
  int64_t elements = 1;
  for (int64_t i = 0; i < type.getRank(); ++i)
    elements *= get(v, i);
  return elements * std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
}
