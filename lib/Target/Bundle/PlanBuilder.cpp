//===- PlanBuilder.cpp - Integers and structure of host functions ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "ssa/Conversion/Passes.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa;

StringRef ssa::getDTypeName(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](IntegerType t) -> StringRef {
        switch (t.getWidth()) {
        case 1:
          return "i1";
        case 8:
          return "i8";
        case 16:
          return "i16";
        case 32:
          return "i32";
        case 64:
          return "i64";
        default:
          return "";
        }
      })
      .Case([](Float8E4M3FNType) { return "f8e4m3fn"; })
      .Case([](Float8E5M2Type) { return "f8e5m2"; })
      .Case([](Float16Type) { return "f16"; })
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float32Type) { return "f32"; })
      .Case([](Float64Type) { return "f64"; })
      .Default([](Type) { return ""; });
}

/// The name of an argument in the source, or of its position.
static std::string getArgumentName(func::FuncOp function, unsigned number) {
  if (auto name = function.getArgAttrOfType<StringAttr>(number, "ssa.name"))
    return name.getValue().str();
  if (auto name = dyn_cast<NameLoc>(function.getArgument(number).getLoc()))
    return name.getName().getValue().ltrim('%').str();
  return ("arg" + Twine(number)).str();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

LogicalResult PlanBuilder::addArgument(BlockArgument argument) {
  Type type = argument.getType();
  if (auto memref = dyn_cast<MemRefType>(type))
    return addBufferArgument(argument, memref);
  unsigned number = argument.getArgNumber();
  PlanArgument entry;
  entry.name = getArgumentName(function, number);
  entry.isScalar = true;
  entry.dtype = type.isIndex() ? "i64" : getDTypeName(type).str();
  if (isa<IntegerType, IndexType>(type) && !entry.dtype.empty())
    integers[argument] = values.leaf("scalar", number);
  else if (type.isF32() || type.isF64())
    floats[argument] = {0, number};
  else
    return function.emitOpError("argument ")
           << number << " ('" << entry.name << "') of type " << type
           << " cannot be given to a launcher: expected a memref, an integer, f32 or f64";
  plan.arguments.push_back(std::move(entry));
  return success();
}

LogicalResult PlanBuilder::addBufferArgument(BlockArgument argument, MemRefType type) {
  unsigned number = argument.getArgNumber();
  PlanArgument entry;
  entry.name = getArgumentName(function, number);
  entry.dtype = getDTypeName(type.getElementType()).str();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (entry.dtype.empty() || failed(type.getStridesAndOffset(strides, offset)) ||
      (offset != 0 && !ShapedType::isDynamic(offset)))
    return function.emitOpError("argument ")
           << number << " ('" << entry.name << "') of type " << type
           << " cannot be given to a launcher: expected elements of 1, 8, 16, 32 or 64 bits, "
              "strides, and no offset or any";
  auto toOptional = [](int64_t size) { return ShapedType::isDynamic(size) ? std::nullopt : std::optional(size); };
  entry.shape = llvm::map_to_vector(type.getShape(), toOptional);
  entry.isContiguous = type.getLayout().isIdentity();
  View view;
  view.root = plan.buffers.size();
  view.base = view.offset = values.constant(0);
  view.elementType = type.getElementType();
  for (int64_t i = 0; i < type.getRank(); ++i)
    view.shape.push_back(type.isDynamicDim(i) ? values.leaf("dim", {number, i}) : values.constant(type.getDimSize(i)));
  if (entry.isContiguous) {
    view.strides = getRowMajorStrides(view.shape);
  } else {
    entry.strides = llvm::map_to_vector(strides, toOptional);
    for (auto [i, stride] : llvm::enumerate(strides))
      view.strides.push_back(ShapedType::isDynamic(stride) ? values.leaf("stride", {number, int64_t(i)})
                                                           : values.constant(stride));
  }
  entry.alignment = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  if (auto alignment = function.getArgAttrOfType<IntegerAttr>(number, "ssa.alignment"))
    entry.alignment = std::max(entry.alignment, alignment.getInt());
  plan.buffers.push_back({"argument", number, 0, entry.dtype, view.shape, view.strides});
  views[argument] = std::move(view);
  plan.arguments.push_back(std::move(entry));
  return success();
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

LogicalResult PlanBuilder::refuse(Operation *op) {
  return op->emitOpError(
      "has no meaning for a launcher: host functions are made of integer arithmetic, views, allocations and launches");
}

FailureOr<ValueNumber> PlanBuilder::getInteger(Operation *user, Value v) {
  auto known = integers.find(v);
  if (known != integers.end())
    return known->second;
  user->emitOpError("reads a value that is no integer expression of sizes, strides and scalars");
  return failure();
}

FailureOr<ValueNumber> PlanBuilder::getInteger(Operation *user, OpFoldResult v) {
  if (auto attr = dyn_cast<Attribute>(v))
    return values.constant(cast<IntegerAttr>(attr).getInt());
  return getInteger(user, cast<Value>(v));
}

FailureOr<int64_t> PlanBuilder::getConstant(Operation *user, Value v, StringRef what) {
  FailureOr<ValueNumber> value = getInteger(user, v);
  if (failed(value))
    return failure();
  if (std::optional<int64_t> constant = values.getConstant(*value))
    return *constant;
  return user->emitOpError("expected ") << what << " to be constant";
}

LogicalResult PlanBuilder::set(Operation *op, ValueNumber v) {
  integers[op->getResult(0)] = v;
  return success();
}

LogicalResult PlanBuilder::visitConstant(Operation *op, Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    bool isTruth = integer.getType().isInteger(1);
    return set(op, values.constant(isTruth ? !integer.getValue().isZero() : integer.getValue().getSExtValue()));
  }
  auto number = dyn_cast<FloatAttr>(value);
  if (!number || !(number.getType().isF32() || number.getType().isF64()))
    return refuse(op);
  floats[op->getResult(0)] = {number.getValueAsDouble(), std::nullopt};
  return success();
}

// Unsigned forms are taken for signed ones: what they are used for is not negative.
static StringRef getBinaryOperation(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"arith.addi", "index.add"}, "add")
      .Cases({"arith.subi", "index.sub"}, "sub")
      .Cases({"arith.muli", "index.mul"}, "mul")
      .Cases({"arith.divsi", "arith.divui", "index.divs", "index.divu"}, "div")
      .Cases({"arith.remsi", "arith.remui", "index.rems", "index.remu"}, "rem")
      .Cases({"arith.floordivsi", "index.floordivs"}, "floordiv")
      .Cases({"arith.ceildivsi", "arith.ceildivui", "index.ceildivs", "index.ceildivu"}, "ceildiv")
      .Cases({"arith.maxsi", "arith.maxui", "index.maxs", "index.maxu"}, "max")
      .Cases({"arith.minsi", "arith.minui", "index.mins", "index.minu"}, "min")
      .Cases({"arith.andi", "index.and"}, "and")
      .Cases({"arith.ori", "index.or"}, "or")
      .Default("");
}

static StringRef getPredicate(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return "eq";
  case arith::CmpIPredicate::ne:
    return "ne";
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return "slt";
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return "sle";
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return "sgt";
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return "sge";
  }
  llvm_unreachable("unknown predicate");
}

LogicalResult PlanBuilder::visitArithmetic(Operation *op) {
  SmallVector<ValueNumber> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<ValueNumber> v = getInteger(op, operand);
    if (failed(v))
      return failure();
    operands.push_back(*v);
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return set(op, values.compare(getPredicate(compare.getPredicate()), operands[0], operands[1]));
  if (isa<arith::SelectOp>(op))
    return set(op, values.select(operands[0], operands[1], operands[2]));
  bool isTruth = op->getResult(0).getType().isInteger(1);
  if (isa<arith::XOrIOp>(op) && isTruth)
    return set(op, values.compare("ne", operands[0], operands[1]));
  StringRef operation = getBinaryOperation(op->getName().getStringRef());
  bool isLogical = operation == "and" || operation == "or";
  if (operation.empty() || op->getNumOperands() != 2 || op->getNumResults() != 1 || isLogical != isTruth)
    return refuse(op);
  return set(op, values.binary(operation, operands[0], operands[1]));
}

/// Values are wide enough for every type; a launcher checks that kernel arguments fit.
LogicalResult PlanBuilder::visitCast(Operation *op) {
  FailureOr<ValueNumber> v = getInteger(op, op->getOperand(0));
  if (failed(v))
    return failure();
  bool isTruth = op->getOperand(0).getType().isInteger(1);
  if (op->getResult(0).getType().isInteger(1) && !isTruth)
    return refuse(op);
  if (isTruth && isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return set(op, values.binary("sub", values.constant(0), *v)); // the sign of `true` is set
  return set(op, *v);
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// What is allocated in one branch lies where the other one has its memory.
LogicalResult PlanBuilder::visitBranches(scf::IfOp op, llvm::function_ref<void(bool isThen)> enter) {
  ValueNumber before = plan.workspaceBytes, most = before;
  for (Region *region : {&op.getThenRegion(), &op.getElseRegion()}) {
    if (region->empty())
      continue;
    plan.workspaceBytes = before;
    enter(region == &op.getThenRegion());
    if (failed(visitBlock(region->front())))
      return failure();
    most = values.binary("max", most, plan.workspaceBytes);
  }
  plan.workspaceBytes = most;
  return success();
}

LogicalResult PlanBuilder::visitIf(scf::IfOp op) {
  if (op.getNumResults())
    return op.emitOpError("with results has no meaning for a launcher; use 'arith.select'");
  if (auto flag = op.getCondition().getDefiningOp<memref::LoadOp>())
    return visitIfOnDevice(op, flag);
  FailureOr<ValueNumber> v = getInteger(op, op.getCondition());
  if (failed(v))
    return failure();
  std::optional<ValueNumber> outer = condition;
  LogicalResult result = visitBranches(op, [&](bool isThen) {
    ValueNumber c = isThen ? *v : values.compare("eq", *v, values.constant(0));
    condition = outer ? values.binary("and", *outer, c) : c;
  });
  condition = outer;
  return result;
}

/// Launches of both branches are there; their kernels look at the flag.
LogicalResult PlanBuilder::visitIfOnDevice(scf::IfOp op, memref::LoadOp flag) {
  FailureOr<View> view = getView(flag, flag.getMemRef());
  if (failed(view))
    return failure();
  if (deviceCondition)
    return op.emitOpError("inside another whose condition is in the device's memory has no meaning for a launcher");
  LogicalResult result = visitBranches(op, [&](bool isThen) { deviceCondition = {view->root, isThen}; });
  deviceCondition = std::nullopt;
  return result;
}

LogicalResult PlanBuilder::visitFor(scf::ForOp op) {
  if (op.getNumResults())
    return op.emitOpError("that carries values has no meaning for a launcher");
  if (repeat)
    return op.emitOpError("inside another has no meaning for a launcher");
  FailureOr<ValueNumber> first = getInteger(op, op.getLowerBound()), end = getInteger(op, op.getUpperBound()),
                         step = getInteger(op, op.getStep());
  if (failed(first) || failed(end) || failed(step))
    return failure();
  repeat = plan.repeats.size();
  PlanRepeat entry;
  entry.count = values.binary("ceildiv", values.binary("sub", *end, *first), *step);
  entry.launches[0] = plan.launches.size();
  if (auto lanes = op->getAttrOfType<IntegerAttr>(lanesAttrName))
    entry.lanes = lanes.getInt();
  plan.repeats.push_back(entry);
  ValueNumber index = values.leaf("index", *repeat, PlanValue::firstRepeat + *repeat);
  integers[op.getInductionVar()] = values.binary("add", values.binary("mul", index, *step), *first);
  LogicalResult result = visitBlock(*op.getBody());
  plan.repeats[*repeat].launches[1] = plan.launches.size();
  repeat = std::nullopt;
  return result;
}

/// A check says what was compared, so that a launcher can print both sides.
LogicalResult PlanBuilder::visitAssert(Operation *op) {
  auto assertion = cast<cf::AssertOp>(op);
  FailureOr<ValueNumber> holds = getInteger(op, assertion.getArg());
  if (failed(holds))
    return failure();
  PlanCheck check{"holds", {*holds}, assertion.getMsg().str()};
  auto compare = assertion.getArg().getDefiningOp<arith::CmpIOp>();
  if (condition) {
    check.values = {values.select(*condition, *holds, values.constant(1))};
  } else if (compare) {
    ValueNumber x = integers.lookup(compare.getLhs()), y = integers.lookup(compare.getRhs());
    StringRef predicate = getPredicate(compare.getPredicate());
    if (predicate == "eq")
      check = {"equal", {x, y}, check.message};
    else if (predicate == "sle" || predicate == "sge")
      check = {"at_most", {predicate == "sle" ? x : y, predicate == "sle" ? y : x}, check.message};
  }
  for (ValueNumber v : check.values)
    if (values.getStage(v) != PlanValue::beforeResults)
      return op->emitOpError(
          "depends on the strides of a result or on the run of a loop: it cannot be checked before launches");
  if (values.getConstant(*holds) != 1)
    plan.checks.push_back(std::move(check));
  return success();
}

LogicalResult PlanBuilder::visitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult PlanBuilder::visit(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return visitConstant(op, constant.getValue());
  if (op->getName().getStringRef() == "index.constant")
    return visitConstant(op, op->getAttr("value"));
  if (isa<memref::MemRefDialect>(op->getDialect()) && !isa<memref::LoadOp>(op))
    return visitView(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
          [&](Operation *o) { return visitCast(o); })
      .Case([&](scf::IfOp o) { return visitIf(o); })
      .Case([&](scf::ForOp o) { return visitFor(o); })
      .Case([&](scf::YieldOp) { return success(); })
      .Case([&](memref::LoadOp o) { // may decide which kernels leave at once, and nothing else
        return llvm::all_of(o->getUsers(), [](Operation *user) { return isa<scf::IfOp>(user); }) ? success() : refuse(o);
      })
      .Case([&](cf::AssertOp o) { return visitAssert(o); })
      .Case([&](func::ReturnOp o) { return visitReturn(o); })
      .Case([&](gpu::LaunchFuncOp o) { return visitLaunch(o); })
      .Case([&](nvgpu::TmaCreateDescriptorOp o) { return visitTensorMap(o); })
      .Default([&](Operation *o) {
        StringRef dialect = o->getName().getDialectNamespace();
        bool isInteger = llvm::all_of(o->getOperandTypes(), [](Type t) { return t.isIntOrIndex(); });
        if ((dialect == "arith" || dialect == "index") && isInteger && o->getNumResults() == 1)
          return visitArithmetic(o);
        return refuse(o);
      });
}

LogicalResult PlanBuilder::visitReturn(func::ReturnOp op) {
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    FailureOr<View> view = getView(op, value);
    if (failed(view))
      return failure();
    const PlanBuffer &root = plan.buffers[view->root];
    if (root.kind == "workspace")
      return op.emitOpError("expected result ") << i << " to be a whole allocation, or an argument or a view of one";
    PlanResult &result = plan.results[i];
    result.buffer = getBuffer(*view);
    if (auto name = function.getResultAttrOfType<StringAttr>(i, "ssa.name"))
      result.name = name.getValue().str();
    else
      result.name = ("result" + Twine(i)).str();
    if (root.kind == "result" && root.number != i) // returned twice
      result.isContiguous = plan.results[root.number].isContiguous;
    result.dtype = getDTypeName(view->elementType).str();
    result.shape = view->shape;
    result.alignment =
        std::max<int64_t>(result.alignment, llvm::divideCeil(view->elementType.getIntOrFloatBitWidth(), 8));
  }
  return success();
}

/// The allocations behind results that are theirs alone.
static DenseMap<Value, unsigned> findResultAllocs(func::FuncOp function) {
  DenseMap<Value, unsigned> allocs;
  for (auto [i, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    Value source = value;
    while (auto cast = source.getDefiningOp<memref::CastOp>())
      source = cast.getSource();
    if (source.getDefiningOp<memref::AllocOp>())
      allocs.try_emplace(source, i);
  }
  return allocs;
}

FailureOr<Plan> PlanBuilder::build() {
  plan.entry = function.getName().str();
  if (!function.getBody().hasOneBlock()) {
    function.emitOpError("has branches, which have no meaning for a launcher");
    return failure();
  }
  for (Type type : function.getResultTypes())
    if (!isa<MemRefType>(type)) {
      function.emitOpError("returns ") << type << ", but launchers return buffers only";
      return failure();
    }
  for (BlockArgument argument : function.getArguments())
    if (failed(addArgument(argument)))
      return failure();
  plan.results.resize(function.getNumResults());
  plan.workspaceBytes = values.constant(0);
  resultOfAlloc = findResultAllocs(function);
  if (failed(visitBlock(function.getBody().front())))
    return failure();
  addDependencies();
  numberValues();
  return std::move(plan);
}
