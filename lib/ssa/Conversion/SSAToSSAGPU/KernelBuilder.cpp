//===- KernelBuilder.cpp - Kernels and their launches ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"
#include "ssa/Conversion/Passes.h"
#include "ssa_gpu/IR/SSAGPU.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

MemRefType ssa::getBufferType(ShapedType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

//===----------------------------------------------------------------------===//
// Emitter
//===----------------------------------------------------------------------===//

Value Emitter::index(int64_t c) { return arith::ConstantIndexOp::create(builder, loc, c); }
Value Emitter::i32(int64_t c) { return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), c); }
Value Emitter::f32(double c) { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(c))); }
Value Emitter::f64(double c) { return arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(c)); }
Value Emitter::bit(bool c) { return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(c)); }

Value Emitter::add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
Value Emitter::sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
Value Emitter::mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
Value Emitter::div(Value a, Value b) { return arith::DivUIOp::create(builder, loc, a, b); }
Value Emitter::rem(Value a, Value b) { return arith::RemUIOp::create(builder, loc, a, b); }
Value Emitter::min(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
Value Emitter::max(Value a, Value b) { return arith::MaxSIOp::create(builder, loc, a, b); }
Value Emitter::ceilDiv(Value a, Value b) { return arith::CeilDivSIOp::create(builder, loc, a, b); }

Value Emitter::split(Value &number, Value count) {
  auto cast = [&](Type type, Value v) -> Value { return arith::IndexCastUIOp::create(builder, loc, type, v); };
  Value dividend = cast(builder.getI32Type(), number), divisor = cast(builder.getI32Type(), count);
  number = cast(builder.getIndexType(), div(dividend, divisor));
  return cast(builder.getIndexType(), rem(dividend, divisor));
}

Value Emitter::fmul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
Value Emitter::fadd(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
Value Emitter::fsub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
Value Emitter::fdiv(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }

Value Emitter::select(Value c, Value a, Value b) { return arith::SelectOp::create(builder, loc, c, a, b); }
Value Emitter::both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
Value Emitter::either(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
Value Emitter::lt(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b); }
Value Emitter::le(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, a, b); }
Value Emitter::ge(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, a, b); }
Value Emitter::eq(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b); }
Value Emitter::ne(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, a, b); }

Value Emitter::ult(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b); }
Value Emitter::ule(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, a, b); }
Value Emitter::ugt(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, a, b); }
Value Emitter::uge(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, a, b); }
Value Emitter::umin(Value a, Value b) { return arith::MinUIOp::create(builder, loc, a, b); }
Value Emitter::umax(Value a, Value b) { return arith::MaxUIOp::create(builder, loc, a, b); }
Value Emitter::bitXor(Value a, Value b) { return arith::XOrIOp::create(builder, loc, a, b); }
Value Emitter::shiftLeft(Value a, Value b) { return arith::ShLIOp::create(builder, loc, a, b); }
Value Emitter::shiftRight(Value a, Value b) { return arith::ShRUIOp::create(builder, loc, a, b); }
Value Emitter::popCount(Value v) { return math::CtPopOp::create(builder, loc, v); }
Value Emitter::countLeadingZeros(Value v) { return math::CountLeadingZerosOp::create(builder, loc, v); }
Value Emitter::countTrailingZeros(Value v) { return math::CountTrailingZerosOp::create(builder, loc, v); }
Value Emitter::bitcast(Value v, Type type) { return arith::BitcastOp::create(builder, loc, type, v); }

Value Emitter::toIndex(Value v) { return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), v); }
Value Emitter::toI32(Value v) { return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), v); }

/// `type` with another element type.
static Type withElementType(Type type, Type elementType) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), elementType)) : elementType;
}

Value Emitter::extend(Value v) {
  if (getElementTypeOrSelf(v).isF32())
    return v;
  return arith::ExtFOp::create(builder, loc, withElementType(v.getType(), builder.getF32Type()), v);
}

Value Emitter::round(Value v, Type elementType) {
  if (getElementTypeOrSelf(v) == elementType)
    return v;
  return arith::TruncFOp::create(builder, loc, withElementType(v.getType(), elementType), v);
}

Value Emitter::dim(Value memref, int64_t i) {
  auto type = cast<MemRefType>(memref.getType());
  return type.isDynamicDim(i) ? memref::DimOp::create(builder, loc, memref, i).getResult() : index(type.getDimSize(i));
}

Value Emitter::load(Value memref, ValueRange at) { return memref::LoadOp::create(builder, loc, memref, at); }
void Emitter::store(Value value, Value memref, ValueRange at) { memref::StoreOp::create(builder, loc, value, memref, at); }

/// The bytes of `width` elements of a buffer.
static llvm::Align getAccessAlign(Value memref, int64_t width) {
  int64_t bytes = width * cast<MemRefType>(memref.getType()).getElementTypeBitWidth() / 8;
  return llvm::Align(std::min<int64_t>(bytes & -bytes, 16));
}

static Value createLoad(Emitter &e, Value memref, ValueRange at, int64_t width, bool once) {
  auto type = VectorType::get({width}, cast<MemRefType>(memref.getType()).getElementType());
  return vector::LoadOp::create(e.builder, e.loc, type, memref, at, /*nontemporal=*/once, getAccessAlign(memref, width));
}

Value Emitter::loadVector(Value memref, ValueRange at, int64_t width) { return createLoad(*this, memref, at, width, /*once=*/false); }
Value Emitter::loadVectorOnce(Value memref, ValueRange at, int64_t width) { return createLoad(*this, memref, at, width, /*once=*/true); }

void Emitter::storeVector(Value vector, Value memref, ValueRange at) {
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  vector::StoreOp::create(builder, loc, vector, memref, at, /*nontemporal=*/false, getAccessAlign(memref, width));
}

Value Emitter::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(builder, loc, VectorType::get({width}, scalar.getType()), scalar);
}

Value Emitter::atomicAdd(Value value, Value memref, ValueRange at) {
  return memref::AtomicRMWOp::create(builder, loc, arith::AtomicRMWKind::addi, value, memref, at);
}

Value Emitter::atomicOr(Value value, Value memref, ValueRange at) {
  return memref::AtomicRMWOp::create(builder, loc, arith::AtomicRMWKind::ori, value, memref, at);
}

SmallVector<Value> Emitter::loop(Value begin, Value end, Value step, ValueRange inits,
                                 llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(builder, loc, begin, end, step, inits,
                                 [&](OpBuilder &, Location, Value i, ValueRange carried) {
                                   SmallVector<Value> results = body(i, carried);
                                   scf::YieldOp::create(builder, loc, results);
                                 });
  return loop.getResults();
}

void Emitter::loop(Value begin, Value end, Value step, llvm::function_ref<void(Value)> body) {
  loop(begin, end, step, {}, [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

void Emitter::ifThen(Value condition, llvm::function_ref<void()> then) {
  scf::IfOp::create(builder, loc, condition, [&](OpBuilder &, Location) {
    then();
    scf::YieldOp::create(builder, loc);
  });
}

void Emitter::ifThenElse(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  auto build = [&](llvm::function_ref<void()> body) {
    return [&, body](OpBuilder &, Location) {
      body();
      scf::YieldOp::create(builder, loc);
    };
  };
  scf::IfOp::create(builder, loc, condition, build(then), build(otherwise));
}

SmallVector<Value> Emitter::loopWhile(ValueRange inits, llvm::function_ref<Value(ValueRange)> condition,
                                      llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  auto loop = scf::WhileOp::create(
      builder, loc, inits.getTypes(), inits,
      [&](OpBuilder &, Location, ValueRange carried) {
        scf::ConditionOp::create(builder, loc, condition(carried), carried);
      },
      [&](OpBuilder &, Location, ValueRange carried) { scf::YieldOp::create(builder, loc, body(carried)); });
  return loop.getResults();
}

SmallVector<Value> Emitter::repeatWhile(ValueRange inits, llvm::function_ref<std::pair<Value, SmallVector<Value>>(ValueRange)> body,
                                        llvm::function_ref<SmallVector<Value>(ValueRange)> between) {
  auto loop = scf::WhileOp::create(
      builder, loc, inits.getTypes(), inits,
      [&](OpBuilder &, Location, ValueRange carried) {
        auto [again, next] = body(carried);
        scf::ConditionOp::create(builder, loc, again, next);
      },
      [&](OpBuilder &, Location, ValueRange carried) { scf::YieldOp::create(builder, loc, between ? between(carried) : llvm::to_vector(carried)); });
  return loop.getResults();
}

SmallVector<Value> Emitter::ifElse(Value condition, TypeRange types, llvm::function_ref<SmallVector<Value>()> then,
                                   llvm::function_ref<SmallVector<Value>()> otherwise) {
  auto branch = scf::IfOp::create(
      builder, loc, condition, [&](OpBuilder &, Location) { scf::YieldOp::create(builder, loc, then()); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(builder, loc, otherwise()); });
  assert(TypeRange(branch.getResultTypes()) == types);
  return branch.getResults();
}

Value Emitter::ballot(Value condition) {
  return LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(), builder.getStringAttr("llvm.nvvm.vote.ballot.sync"),
                                       ValueRange{i32(-1), condition})
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// KernelBuilder
//===----------------------------------------------------------------------===//

/// The module of kernels of the module that `op` is in; made when there is none.
static gpu::GPUModuleOp getKernelModule(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    return kernels;
  OpBuilder builder(module.getBodyRegion());
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), builder.getUnitAttr());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
}

KernelBuilder::KernelBuilder(OpBuilder &host, Operation *op, StringRef name, int64_t threads, ValueRange arguments)
    : Emitter(device, op->getLoc()), device(op->getContext()), host(host), op(op), threads(threads),
      hostArguments(arguments) {
  gpu::GPUModuleOp kernels = getKernelModule(op);
  device.setInsertionPointToEnd(kernels.getBody());
  std::string unique = name.str();
  for (unsigned i = 1; kernels.lookupSymbol(unique); ++i)
    unique = (name + "_" + Twine(i)).str();
  auto type = FunctionType::get(op->getContext(), arguments.getTypes(), {});
  function = gpu::GPUFuncOp::create(device, loc, unique, type);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), device.getUnitAttr());
  function.setKnownBlockSizeAttr(device.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  device.setInsertionPointToStart(&function.getBody().front());
}

void KernelBuilder::setAligned(unsigned i, int64_t bytes) { function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), device.getI64IntegerAttr(bytes)); }

void KernelBuilder::setReadOnly(unsigned i, int64_t bytes) {
  setAligned(i, bytes);
  function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), device.getUnitAttr());
}

void KernelBuilder::setWriteOnly(unsigned i, int64_t bytes) {
  setAligned(i, bytes);
  function.setArgAttr(i, LLVM::LLVMDialect::getWriteOnlyAttrName(), device.getUnitAttr());
}

void KernelBuilder::setBlocksPerSM(int64_t blocks) {
  function->setAttr("nvvm.minctasm", device.getI32IntegerAttr(blocks)); // NVVM's header costs more than all others here
}

void KernelBuilder::setPairs() {
  function->setAttr(ssa_gpu::pairAttrName, device.getUnitAttr());
  blocksPerItem = 2;
}

Value KernelBuilder::rankInPair() { return rem(gpu::BlockIdOp::create(device, loc, gpu::Dimension::x), index(2)); }

Value KernelBuilder::threadId() { return gpu::ThreadIdOp::create(device, loc, gpu::Dimension::x); }

Value KernelBuilder::addItems(Value count, int64_t maxBlocks) {
  Emitter onHost(host, loc);
  blocks = onHost.min(count, onHost.index(maxBlocks / blocksPerItem));
  if (blocksPerItem > 1)
    blocks = onHost.mul(blocks, onHost.index(blocksPerItem));
  hostArguments.push_back(count);
  // Shared memory, if any, comes after the arguments.
  Value total = function.getBody().front().insertArgument(function.getNumArguments(), device.getIndexType(), loc);
  function.setFunctionType(FunctionType::get(op->getContext(), ValueRange(hostArguments).getTypes(), {}));
  return total;
}

SmallVector<Value> KernelBuilder::forEachItem(Value total, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Value first = gpu::BlockIdOp::create(device, loc, gpu::Dimension::x);
  Value step = gpu::GridDimOp::create(device, loc, gpu::Dimension::x);
  if (blocksPerItem > 1) {
    first = div(first, index(blocksPerItem));
    step = div(step, index(blocksPerItem));
  }
  return loop(first, total, step, inits, body);
}

Value KernelBuilder::backAndForth(Value number, Value total) {
  Value step = div(gpu::GridDimOp::create(device, loc, gpu::Dimension::x), index(blocksPerItem)), round = number;
  Value first = sub(number, split(round, step)), last = sub(min(add(first, step), total), index(1));
  return select(eq(rem(round, index(2)), index(0)), number, sub(add(first, last), number));
}

void KernelBuilder::forEachItem(Value count, llvm::function_ref<void(Value)> body) {
  forEachItem(addItems(count, maxGrid), {}, [&](Value item, ValueRange) {
    body(item);
    return SmallVector<Value>();
  });
}

void KernelBuilder::addRoles(ArrayRef<Role> roles) {
  SmallVector<int32_t> threads, registers;
  for (const Role &role : roles) {
    threads.push_back(role.threads);
    registers.push_back(role.registers);
  }
  auto op = ssa_gpu::RolesOp::create(device, loc, threads, registers);
  for (auto [role, region] : llvm::zip(roles, op.getPrograms())) {
    OpBuilder::InsertionGuard guard(device);
    device.setInsertionPointToStart(&region.front());
    role.program();
  }
}

/// The type of an array in shared memory.
static MemRefType getSharedType(int64_t count, Type elementType) {
  auto space = gpu::AddressSpaceAttr::get(elementType.getContext(), gpu::AddressSpace::Workgroup);
  return MemRefType::get({count}, elementType, MemRefLayoutAttrInterface(), space);
}

Value KernelBuilder::addShared(Type elementType, int64_t count) {
  constexpr int64_t alignment = 16;
  Value memory = function.addWorkgroupAttribution(getSharedType(count, elementType), loc);
  function.setWorkgroupAttributionAttr(function.getNumWorkgroupAttributions() - 1, LLVM::LLVMDialect::getAlignAttrName(),
                                       device.getI64IntegerAttr(alignment));
  return memory;
}

Value KernelBuilder::getDynamicShared(Type elementType, Value begin, Value count) {
  MemRefType bytes = getSharedType(ShapedType::kDynamic, device.getI8Type());
  Value memory = gpu::DynamicSharedMemoryOp::create(device, loc, bytes);
  return memref::ViewOp::create(device, loc, getSharedType(ShapedType::kDynamic, elementType), memory, begin, count);
}

void KernelBuilder::finish(int64_t sharedBytes) { finish(sharedBytes ? Emitter(host, loc).index(sharedBytes) : Value()); }

void KernelBuilder::finish(Value sharedBytes) {
  gpu::ReturnOp::create(device, loc);
  Emitter onHost(host, loc);
  Value one = onHost.index(1);
  auto launch = gpu::LaunchFuncOp::create(host, loc, function, gpu::KernelDim3{blocks, one, one},
                                          gpu::KernelDim3{onHost.index(threads), one, one},
                                          sharedBytes ? onHost.toI32(sharedBytes) : Value(), hostArguments, /*asyncTokenType=*/Type(),
                                          /*asyncDependencies=*/ValueRange(),
                                          blocksPerItem > 1 ? std::optional(gpu::KernelDim3{onHost.index(blocksPerItem), one, one}) : std::nullopt);
  if (Attribute origin = op->getAttr(originAttrName))
    launch->setAttr(originAttrName, origin);
}
