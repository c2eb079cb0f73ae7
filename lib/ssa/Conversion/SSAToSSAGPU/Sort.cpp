//===- Sort.cpp - sort, union, to_indices ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All numbers of a list, or of two, are sorted in shared memory as unsigned numbers, so that padding (which is
// negative) comes last; then numbers that differ from the one before are written one after another. Two lists that are
// sorted already are put there one behind the other, the second reversed: that is quickly sorted. Short lists share a
// block.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "ElementKernel.h"
#include "ssa/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ssa;

namespace {

/// Lists that go in: so many neighbours for each that comes out.
struct ListInput {
  Value buffer;
  SelectionType type;
  int64_t neighbours = 1;

  int64_t getNumbers() const { return neighbours * type.getWidth(); }
};

class SortKernel : public BlockKernel {
public:
  /// `width` is that of the output, the last argument.
  SortKernel(HostFunction &host, Operation *op, StringRef name, ArrayRef<ListInput> inputs, int64_t width, ValueRange arguments);

  void build(HostFunction &host, Value output);

private:
  void buildItem(Value item);
  Value loadNumber(const ListInput &input, Value list, ArrayRef<Value> where, Value i);
  void loadLists(Value row);
  void writeUnique(Value row, Value exists);
  Value at(Value place) { return toIndex(add(mul(team, i32(capacity)), place)); }
  SmallVector<Value> position(Value row);

  static constexpr int64_t threads = 256;
  ArrayRef<ListInput> inputs;
  int64_t width;    // of the output
  int64_t capacity; // numbers that are sorted, a power of two
  int64_t teamSize; // threads of one list
  bool isBitonic;   // the numbers rise, then fall
  Value numbers, sums;
  Value team, member; // which list of the block is the thread's, and its number among the list's threads
};

} // namespace

SortKernel::SortKernel(HostFunction &host, Operation *op, StringRef name, ArrayRef<ListInput> inputs, int64_t width, ValueRange arguments)
    : BlockKernel(host.builder, op, name, threads, arguments), inputs(inputs), width(width),
      isBitonic(llvm::all_of(inputs, [](const ListInput &input) { return input.type.getSorted() && input.neighbours == 1; })) {
  int64_t total = 0;
  for (const ListInput &input : inputs)
    total += input.getNumbers();
  capacity = std::max<int64_t>(llvm::PowerOf2Ceil(total), 2);
  teamSize = std::min(threads, capacity / 2);
}

/// Batch, head and list number of a row.
SmallVector<Value> SortKernel::position(Value row) {
  Value output = getArgument(inputs.size()), lists = dim(output, 2);
  Value list = split(row, lists), head = split(row, index(inputs[0].type.getHeads()));
  return {row, head, list};
}

/// Number `i` of those that one list comes from.
Value SortKernel::loadNumber(const ListInput &input, Value list, ArrayRef<Value> where, Value i) {
  if (input.neighbours == 1)
    return load(list, {where[0], where[1], where[2], i});
  // The last are fewer; one list may serve all.
  Value width = index(input.type.getWidth()), which = add(mul(where[2], index(input.neighbours)), div(i, width));
  Value exists = lt(which, dim(list, 2)), number = load(list, {where[0], where[1], select(exists, which, index(0)), rem(i, width)});
  return select(either(exists, eq(dim(list, 2), index(1))), number, i32(-1));
}

/// The first list rises from the front, the second from the end backwards; what is between is padding.
void SortKernel::loadLists(Value row) {
  SmallVector<Value> where = position(row);
  auto forEach = [&](int64_t begin, int64_t end, llvm::function_ref<void(Value)> body) {
    loop(toIndex(add(member, i32(begin))), index(end), index(teamSize), body);
  };
  int64_t first = inputs[0].getNumbers(), second = inputs.size() > 1 ? inputs[1].getNumbers() : 0;
  forEach(first, capacity - second, [&](Value i) { store(i32(-1), numbers, at(toI32(i))); });
  for (unsigned which = 0; which < inputs.size(); ++which) {
    const ListInput &input = inputs[which];
    Value list = getArgument(which);
    bool isReversed = which == 1;
    forEach(0, input.getNumbers(), [&](Value i) {
      Value n = loadNumber(input, list, where, i);
      Value place = isReversed ? sub(index(capacity - 1), i) : i;
      store(n, numbers, at(toI32(place)));
    });
  }
}

/// Every member of a team looks at a stretch of the numbers: first it counts those that differ from the one before,
/// then, once it knows how many there are before its own, it writes them.
void SortKernel::writeUnique(Value row, Value exists) {
  int64_t perMember = capacity / teamSize;
  Value begin = mul(member, i32(perMember));
  Value before = select(eq(member, i32(0)), i32(-1), load(numbers, at(max(sub(begin, i32(1)), i32(0)))));
  auto forEachUnique = [&](llvm::function_ref<void(Value number, Value rank)> body) {
    return loop(index(0), index(perMember), index(1), {before, i32(0)}, [&](Value i, ValueRange carried) {
      Value number = load(numbers, at(add(begin, toI32(i))));
      Value isNew = both(le(i32(0), number), ne(number, carried[0]));
      if (body)
        ifThen(isNew, [&] { body(number, carried[1]); });
      return SmallVector<Value>{number, add(carried[1], select(isNew, i32(1), i32(0)))};
    })[1];
  };
  Value count = forEachUnique(nullptr);
  Scan ranks = scan(count, sums, teamSize);
  Value output = getArgument(inputs.size());
  SmallVector<Value> where = position(row);
  ifThen(exists, [&] {
    forEachUnique([&](Value number, Value rank) {
      store(number, output, {where[0], where[1], where[2], toIndex(add(ranks.before, rank))});
    });
    loop(toIndex(add(ranks.total, member)), index(width), index(teamSize),
         [&](Value i) { store(i32(-1), output, {where[0], where[1], where[2], i}); });
  });
}

void SortKernel::buildItem(Value item) {
  Value output = getArgument(inputs.size());
  Value rows = mul(mul(dim(output, 0), dim(output, 1)), dim(output, 2));
  team = div(thread(), i32(teamSize));
  member = rem(thread(), i32(teamSize));
  Value row = add(mul(item, index(threads / teamSize)), toIndex(team)), exists = lt(row, rows);
  row = min(row, sub(rows, index(1)));
  barrier(); // the numbers of the item before have been read
  loadLists(row);
  sort(numbers, mul(team, i32(capacity)), capacity, member, teamSize, isBitonic);
  writeUnique(row, exists);
}

void SortKernel::build(HostFunction &host, Value output) {
  Emitter e(host.builder, loc);
  numbers = addShared(builder.getI32Type(), capacity * (threads / teamSize));
  sums = addShared(builder.getI32Type(), getNumWarps());
  Value rows = e.mul(e.mul(e.dim(output, 0), e.dim(output, 1)), e.dim(output, 2));
  forEachItem(e.ceilDiv(rows, e.index(threads / teamSize)), [&](Value item) { buildItem(item); });
  finish();
}

/// `sort` and `union`.
static LogicalResult joinLists(HostFunction &host, Operation *op, StringRef name) {
  SmallVector<ListInput> inputs;
  SmallVector<Value> arguments;
  int64_t total = 0;
  for (Value operand : op->getOperands()) {
    auto type = cast<SelectionType>(operand.getType());
    arguments.push_back(host.getBuffer(operand));
    inputs.push_back({arguments.back(), type});
    total += type.getWidth();
  }
  if (total > maxSortedNumbers)
    return op->emitOpError("has no kernel for lists of ")
           << total << " numbers: they are sorted in shared memory, which takes " << maxSortedNumbers;
  FailureOr<Value> output = host.allocateResult(op, 0);
  if (failed(output))
    return failure();
  if (inputs.size() == 2)
    for (unsigned i : {0, 2})
      host.requireSameDim(op, {"rhs", inputs[1].buffer}, {"lhs", inputs[0].buffer}, i);
  if (cast<ShapedType>(op->getResult(0).getType()).getDimSize(3) == 0)
    return success(); // nothing to write
  arguments.push_back(*output);
  SortKernel(host, op, name, inputs, cast<SelectionType>(op->getResult(0).getType()).getWidth(), arguments).build(host, *output);
  return success();
}

void ssa::buildUnionOfNeighbours(HostFunction &host, Operation *op, Value lists, SelectionType type, int64_t neighbours, Value output) {
  ListInput input{lists, type, neighbours};
  SortKernel(host, op, "ssa_union_of_neighbours", input, input.getNumbers(), {lists, output}).build(host, output);
}

LogicalResult ssa::convertSort(HostFunction &host, SortOp op) { return joinLists(host, op, "ssa_sort"); }
LogicalResult ssa::convertUnion(HostFunction &host, UnionOp op) { return joinLists(host, op, "ssa_union"); }

LogicalResult ssa::convertToIndices(HostFunction &host, ToIndicesOp op) {
  Value selection = host.getBuffer(op.getSelection());
  if (op.getSelection().getType().getSorted()) { // what makes these writes -1 where padding is
    host.setBuffer(op.getIndices(), selection);
    return success();
  }
  FailureOr<Value> indices = host.allocateResult(op, 0);
  if (failed(indices))
    return failure();
  ElementKernel k(host, op, "ssa_to_indices", {selection, *indices}, *indices);
  k.build([&](ArrayRef<Value> at) { k.store(k.max(k.load(k.getArgument(0), at), k.i32(-1)), k.getArgument(1), at); });
  return success();
}
