//===- ScalarProgram.cpp - Scalar regions over many values ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Reference/ScalarProgram.h"
#include "Evaluation.h"
#include "Glue.h"
#include "ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/BitVector.h"
#include <array>

using namespace mlir;
using namespace mlir::ssa::reference;

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

static constexpr unsigned noSlot = ~0u;

struct ScalarProgram::Code {
  /// One op, or one result of an op: slots in, one slot out.
  struct Step {
    Operation *op;
    Kernel kernel;
    SmallVector<unsigned, 3> in, inBits;
    unsigned out, outBits;
    unsigned mask;
  };
  /// Where the cells of a slot are: a number among the arguments, the constants or the scratch arrays.
  struct Slot {
    enum Kind { Argument, Constant, Scratch } kind;
    unsigned number;
  };

  unsigned addConstant(Cell cell) {
    constants.emplace_back();
    constants.back().fill(cell);
    slots.push_back({Slot::Constant, static_cast<unsigned>(constants.size() - 1)});
    return slots.size() - 1;
  }

  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<std::array<Cell, maxLanes>> constants;
  unsigned numScratch = 0;
  llvm::BitVector usedArguments;
};

bool ScalarProgram::usesArgument(unsigned number) const {
  return number < code->usedArguments.size() && code->usedArguments[number];
}

LogicalResult ScalarProgram::run(int64_t lanes, ArrayRef<const Cell *> arguments, ArrayRef<Cell *> results,
                                 Failure &failure) const {
  SmallVector<Cell, 8 * maxLanes> scratch;
  scratch.resize_for_overwrite(code->numScratch * maxLanes);
  SmallVector<Cell *, 32> cells;
  for (const Code::Slot &slot : code->slots) {
    const Cell *start = scratch.data() + slot.number * maxLanes;
    if (slot.kind == Code::Slot::Argument)
      start = slot.number < arguments.size() ? arguments[slot.number] : nullptr;
    else if (slot.kind == Code::Slot::Constant)
      start = code->constants[slot.number].data();
    cells.push_back(const_cast<Cell *>(start));
  }
  SmallVector<const Cell *, 8> in;
  for (const Code::Step &step : code->steps) {
    in.clear();
    for (unsigned slot : step.in)
      in.push_back(cells[slot]);
    const Cell *mask = step.mask == noSlot ? nullptr : cells[step.mask];
    step.kernel({lanes, in, step.inBits, step.outBits, cells[step.out], mask, failure.error});
    if (!failure.error.empty()) {
      failure.where = step.op;
      return mlir::failure();
    }
  }
  // Copied last, so that a result may take the place of an argument; twice, so that two of them may swap places.
  SmallVector<Cell, 2 * maxLanes> copies;
  copies.resize_for_overwrite(resultSlots.size() > 1 ? resultSlots.size() * maxLanes : 0);
  for (auto [i, slot] : llvm::enumerate(resultSlots))
    std::copy_n(cells[slot], lanes, resultSlots.size() > 1 ? copies.data() + i * maxLanes : results[i]);
  for (size_t i = 0; i < copies.size() / maxLanes; ++i)
    std::copy_n(copies.data() + i * maxLanes, lanes, results[i]);
  return success();
}

//===----------------------------------------------------------------------===//
// Compiler
//===----------------------------------------------------------------------===//

class ScalarProgram::Compiler {
public:
  Compiler(Code &code, llvm::function_ref<Tensor(Value)> outside) : code(code), outside(outside) {}

  unsigned addArgument(unsigned number);
  void bind(Value value, unsigned slot) { slots[value] = slot; }
  LogicalResult compileBlock(Block &block, unsigned firstIndex, unsigned mask);
  LogicalResult compileTable(Operation *op, unsigned mask);
  FailureOr<SmallVector<unsigned>> slotsOf(Operation *op, ValueRange values);

  /// Fails at `op` unless cells can hold a `type`; `shaped` lets tensors stand for their elements.
  static LogicalResult checkType(Operation *op, Type type, bool shaped);

private:
  LogicalResult compileOp(Operation *op, unsigned firstIndex, unsigned mask);
  LogicalResult compileIf(scf::IfOp op, unsigned firstIndex, unsigned mask);
  LogicalResult compileExtract(tensor::ExtractOp op, unsigned mask);
  LogicalResult compileDim(tensor::DimOp op, unsigned mask);
  LogicalResult compileConstant(Operation *op, Attribute value);
  FailureOr<unsigned> slotOf(Operation *op, Value value);
  FailureOr<Tensor> tensorOf(Operation *op, Value value);
  unsigned addStep(Operation *op, Kernel kernel, ArrayRef<unsigned> in, ArrayRef<unsigned> inBits, unsigned outBits,
                   unsigned mask);

  Code &code;
  llvm::function_ref<Tensor(Value)> outside;
  DenseMap<Value, unsigned> slots;
};

unsigned ScalarProgram::Compiler::addArgument(unsigned number) {
  if (number >= code.usedArguments.size())
    code.usedArguments.resize(number + 1);
  code.slots.push_back({Code::Slot::Argument, number});
  return code.slots.size() - 1;
}

unsigned ScalarProgram::Compiler::addStep(Operation *op, Kernel kernel, ArrayRef<unsigned> in,
                                          ArrayRef<unsigned> inBits, unsigned outBits, unsigned mask) {
  code.slots.push_back({Code::Slot::Scratch, code.numScratch++});
  unsigned out = code.slots.size() - 1;
  code.steps.push_back(
      {op, std::move(kernel), SmallVector<unsigned, 3>(in), SmallVector<unsigned, 3>(inBits), out, outBits, mask});
  return out;
}

LogicalResult ScalarProgram::Compiler::checkType(Operation *op, Type type, bool shaped) {
  if (shaped)
    type = getElementTypeOrSelf(type);
  if (!isa<ShapedType>(type) && Tensor::isSupported(type))
    return success();
  return op->emitOpError("is not something the interpreter can evaluate on values of type ") << type;
}

FailureOr<unsigned> ScalarProgram::Compiler::slotOf(Operation *op, Value value) {
  auto known = slots.find(value);
  if (known != slots.end())
    return known->second;
  if (failed(checkType(op, value.getType(), /*shaped=*/false)))
    return failure();
  Tensor scalar = outside(value);
  if (!scalar)
    return op->emitOpError("reads a value that has not been computed");
  Cell cell;
  if (scalar.isFloat())
    cell.f = scalar.getFloat(0);
  else
    cell.i = scalar.getInt(0);
  return slots[value] = code.addConstant(cell);
}

FailureOr<SmallVector<unsigned>> ScalarProgram::Compiler::slotsOf(Operation *op, ValueRange values) {
  SmallVector<unsigned> result;
  for (Value value : values) {
    FailureOr<unsigned> slot = slotOf(op, value);
    if (failed(slot))
      return failure();
    const Code::Slot &place = code.slots[*slot];
    if (place.kind == Code::Slot::Argument)
      code.usedArguments.set(place.number);
    result.push_back(*slot);
  }
  return result;
}

FailureOr<Tensor> ScalarProgram::Compiler::tensorOf(Operation *op, Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return tensorFromAttribute(value.getDefiningOp(), constant);
  Tensor tensor = outside(value);
  if (!tensor)
    return op->emitOpError("reads a value that has not been computed");
  return tensor;
}

LogicalResult ScalarProgram::Compiler::compileBlock(Block &block, unsigned firstIndex, unsigned mask) {
  for (Operation &op : block.without_terminator())
    if (failed(compileOp(&op, firstIndex, mask)))
      return failure();
  return success();
}

LogicalResult ScalarProgram::Compiler::compileOp(Operation *op, unsigned firstIndex, unsigned mask) {
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant)))
    return compileConstant(op, constant);
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    slots[index] = addArgument(firstIndex + index.getDim());
    return success();
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return compileIf(branch, firstIndex, mask);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return compileExtract(extract, mask);
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return compileDim(dim, mask);
  for (Type type : llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
    if (failed(checkType(op, type, /*shaped=*/false)))
      return failure();
  return compileTable(op, mask);
}

LogicalResult ScalarProgram::Compiler::compileTable(Operation *op, unsigned mask) {
  auto truncate = dyn_cast<arith::TruncFOp>(op);
  if (truncate &&
      truncate.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) != arith::RoundingMode::to_nearest_even)
    return op->emitOpError("rounds in a way the interpreter does not know; it knows 'to_nearest_even'");
  FailureOr<SmallVector<unsigned>> in = slotsOf(op, op->getOperands());
  if (failed(in))
    return failure();
  SmallVector<unsigned> inBits = llvm::map_to_vector(op->getOperandTypes(), getCellBits);
  for (OpResult result : op->getResults()) {
    Kernel kernel = getScalarKernel(op, result.getResultNumber());
    if (!kernel)
      return emitNotEvaluated(op, "in a region of scalars");
    slots[result] = addStep(op, std::move(kernel), *in, inBits, getCellBits(result.getType()), mask);
  }
  return op->getNumResults() ? success() : emitNotEvaluated(op, "in a region of scalars");
}

LogicalResult ScalarProgram::Compiler::compileConstant(Operation *op, Attribute value) {
  // A tensor is read where `tensor.extract` finds it.
  if (isa<ElementsAttr>(value))
    return success();
  FailureOr<Tensor> scalar = tensorFromAttribute(op, value);
  if (failed(scalar))
    return failure();
  Cell cell;
  if (scalar->isFloat())
    cell.f = scalar->getFloat(0);
  else
    cell.i = scalar->getInt(0);
  slots[op->getResult(0)] = code.addConstant(cell);
  return success();
}

LogicalResult ScalarProgram::Compiler::compileIf(scf::IfOp op, unsigned firstIndex, unsigned mask) {
  FailureOr<SmallVector<unsigned>> condition = slotsOf(op, op.getCondition());
  if (failed(condition))
    return failure();
  Cell none;
  none.i = 0;
  unsigned zero = code.addConstant(none), outer = mask;
  if (outer == noSlot) {
    Cell all;
    all.i = 1;
    outer = code.addConstant(all);
  }
  SmallVector<unsigned> bits = {1, 64, 64};
  unsigned taken = addStep(op, getSelectKernel(), {condition->front(), outer, zero}, bits, 64, noSlot);
  unsigned others = addStep(op, getSelectKernel(), {condition->front(), zero, outer}, bits, 64, noSlot);
  if (failed(compileBlock(*op.thenBlock(), firstIndex, taken)) ||
      (op.elseBlock() && failed(compileBlock(*op.elseBlock(), firstIndex, others))))
    return failure();
  for (OpResult result : op->getResults()) {
    unsigned i = result.getResultNumber();
    FailureOr<SmallVector<unsigned>> sides = slotsOf(op, {op.thenYield().getOperand(i), op.elseYield().getOperand(i)});
    if (failed(sides))
      return failure();
    slots[result] = addStep(op, getSelectKernel(), {condition->front(), sides->front(), sides->back()}, bits, 64, mask);
  }
  return success();
}

LogicalResult ScalarProgram::Compiler::compileExtract(tensor::ExtractOp op, unsigned mask) {
  FailureOr<Tensor> tensor = tensorOf(op, op.getTensor());
  FailureOr<SmallVector<unsigned>> in = slotsOf(op, op.getIndices());
  if (failed(tensor) || failed(in) || failed(checkType(op, op.getType(), /*shaped=*/false)))
    return failure();
  Kernel kernel = [tensor = *tensor](const Lanes &lanes) {
    SmallVector<int64_t> places(lanes.count, 0);
    for (auto [d, indices] : llvm::enumerate(lanes.in)) {
      int64_t size = tensor.getDim(d);
      for (int64_t n = 0; n < lanes.count; ++n) {
        int64_t index = indices[n].i;
        bool exists = index >= 0 && index < size;
        if (!exists && lanes.counts(n)) {
          lanes.error = "reads index " + std::to_string(index) + " of dimension " + std::to_string(d) +
                        ", but its tensor has shape " + shapeText(tensor.getShape());
          return;
        }
        // Once a lane is outside, it stays so.
        places[n] = !exists || places[n] < 0 ? -1 : places[n] * size + index;
      }
    }
    tensor.visit([&](auto elements) {
      for (int64_t n = 0; n < lanes.count; ++n)
        if constexpr (std::is_floating_point_v<std::decay_t<decltype(elements[0])>>)
          lanes.out[n].f = places[n] < 0 ? 0 : elements[places[n]];
        else
          lanes.out[n].i = places[n] < 0 ? 0 : elements[places[n]];
    });
  };
  SmallVector<unsigned> inBits(in->size(), 64);
  slots[op] = addStep(op, std::move(kernel), *in, inBits, getCellBits(op.getType()), mask);
  return success();
}

LogicalResult ScalarProgram::Compiler::compileDim(tensor::DimOp op, unsigned mask) {
  FailureOr<Tensor> tensor = tensorOf(op, op.getSource());
  FailureOr<SmallVector<unsigned>> in = slotsOf(op, op.getIndex());
  if (failed(tensor) || failed(in))
    return failure();
  Kernel kernel = [shape = SmallVector<int64_t>(tensor->getShape())](const Lanes &lanes) {
    for (int64_t n = 0; n < lanes.count; ++n) {
      int64_t index = lanes.in[0][n].i;
      bool exists = index >= 0 && index < static_cast<int64_t>(shape.size());
      if (!exists && lanes.counts(n)) {
        lanes.error = "asks for dimension " + std::to_string(index) + " of a tensor of shape " + shapeText(shape);
        return;
      }
      lanes.out[n].i = exists ? shape[index] : 0;
    }
  };
  slots[op] = addStep(op, std::move(kernel), *in, {64}, 64, mask);
  return success();
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

FailureOr<ScalarProgram> ScalarProgram::compile(Block &block, llvm::function_ref<Tensor(Value)> outside) {
  auto code = std::make_shared<Code>();
  Compiler compiler(*code, outside);
  Operation *parent = block.getParentOp();
  for (BlockArgument argument : block.getArguments()) {
    if (failed(Compiler::checkType(parent, argument.getType(), /*shaped=*/false)))
      return failure();
    compiler.bind(argument, compiler.addArgument(argument.getArgNumber()));
  }
  if (failed(compiler.compileBlock(block, block.getNumArguments(), noSlot)))
    return failure();
  Operation *terminator = block.getTerminator();
  FailureOr<SmallVector<unsigned>> results = compiler.slotsOf(terminator, terminator->getOperands());
  if (failed(results))
    return failure();
  ScalarProgram program;
  program.resultSlots = std::move(*results);
  program.code = std::move(code);
  return program;
}

FailureOr<ScalarProgram> ScalarProgram::compileOp(Operation *op) {
  auto code = std::make_shared<Code>();
  Compiler compiler(*code, [](Value) { return Tensor(); });
  for (Type type : llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
    if (failed(Compiler::checkType(op, type, /*shaped=*/true)))
      return failure();
  for (OpOperand &operand : op->getOpOperands())
    compiler.bind(operand.get(), compiler.addArgument(operand.getOperandNumber()));
  if (failed(compiler.compileTable(op, noSlot)))
    return failure();
  FailureOr<SmallVector<unsigned>> results = compiler.slotsOf(op, op->getResults());
  if (failed(results))
    return failure();
  ScalarProgram program;
  program.resultSlots = std::move(*results);
  program.code = std::move(code);
  return program;
}
