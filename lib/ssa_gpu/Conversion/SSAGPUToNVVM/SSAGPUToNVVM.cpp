//===- SSAGPUToNVVM.cpp - convert-ssa-gpu-to-nvvm -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "ssa_gpu/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Threading.h"

namespace mlir::ssa_gpu {
#define GEN_PASS_DEF_SSAGPUALLOCATEPASS
#define GEN_PASS_DEF_CONVERTSSAGPUTONVVMPASS
#include "ssa_gpu/Conversion/Passes.h.inc"
} // namespace mlir::ssa_gpu

using namespace mlir;
using namespace mlir::ssa_gpu;

//===----------------------------------------------------------------------===//
// ThreadEmitter
//===----------------------------------------------------------------------===//

ThreadEmitter::ThreadEmitter(OpBuilder &builder, Operation *op) : builder(builder), loc(op->getLoc()) {
  numThreads = op->getParentOfType<gpu::GPUFuncOp>().getKnownBlockSize().value_or(ArrayRef<int32_t>({128}))[0];
  for (Region *region = op->getParentRegion(); region; region = region->getParentRegion())
    if (auto roles = dyn_cast<RolesOp>(region->getParentOp())) {
      role = region->getRegionNumber();
      firstThread = roles.getFirstThread(*role);
      numThreads = roles.getThreads()[*role];
      numRoles = roles.getThreads().size();
    }
}

template <typename Op, typename... Arguments>
Value ThreadEmitter::once(std::pair<intptr_t, intptr_t> key, Arguments &&...arguments) {
  Value &value = built[{builder.getInsertionBlock(), TypeID::get<Op>(), key.first, key.second}];
  if (!value)
    value = Op::create(builder, loc, std::forward<Arguments>(arguments)...);
  return value;
}

template <typename Op>
Value ThreadEmitter::binary(Value a, Value b) {
  return once<Op>({intptr_t(a.getAsOpaquePointer()), intptr_t(b.getAsOpaquePointer())}, a, b);
}

Value ThreadEmitter::i32(int64_t c) { return once<arith::ConstantIntOp>({c, 0}, builder.getI32Type(), c); }
Value ThreadEmitter::add(Value a, Value b) { return binary<arith::AddIOp>(a, b); }
Value ThreadEmitter::sub(Value a, Value b) { return binary<arith::SubIOp>(a, b); }
Value ThreadEmitter::mul(Value a, int64_t b) { return binary<arith::MulIOp>(a, i32(b)); }
Value ThreadEmitter::div(Value a, int64_t b) { return binary<arith::DivUIOp>(a, i32(b)); }
Value ThreadEmitter::rem(Value a, int64_t b) { return binary<arith::RemUIOp>(a, i32(b)); }
Value ThreadEmitter::bitXor(Value a, Value b) { return binary<arith::XOrIOp>(a, b); }
Value ThreadEmitter::lt(Value a, int64_t b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, i32(b)); }

Value ThreadEmitter::thread() {
  Value id = once<gpu::ThreadIdOp>({0, 0}, gpu::Dimension::x);
  Value number = once<arith::IndexCastOp>({intptr_t(id.getAsOpaquePointer()), 0}, builder.getI32Type(), id);
  return firstThread ? sub(number, i32(firstThread)) : number;
}

Value ThreadEmitter::group(int64_t rows) { return div(warp(), rows / 16); }
Value ThreadEmitter::warpInGroup(int64_t rows) { return 2 * rows == numThreads ? warp() : rem(warp(), rows / 16); }
Value ThreadEmitter::row(unsigned half, int64_t rows) { return add(add(mul(warpInGroup(rows), 16), div(lane(), 4)), 8 * half); }
Value ThreadEmitter::column(int64_t j) { return add(mul(rem(lane(), 4), 2), 8 * j); }
Value ThreadEmitter::column(int64_t j, RankedTensorType tile) {
  int64_t groups = getGroups(tile), folds = getFolds(tile), rows = tile.getDimSize(0) * folds, share = tile.getDimSize(1) / groups;
  Value begin = groups == 1 ? column(j) : add(column(j), mul(group(rows), share));
  for (int64_t bit = 1; bit < folds / 2; bit *= 2)
    begin = add(begin, mul(rem(div(warpInGroup(rows), bit), 2), share /= 2));
  return begin;
}

Value ThreadEmitter::row(unsigned half, RankedTensorType tile) {
  int64_t rows = tile.getDimSize(0);
  if (int64_t folds = getFolds(tile); folds > 1)
    return add(mul(div(warpInGroup(rows * folds), folds / 2), 8), div(lane(), 4));
  if (!isRowwise(tile))
    return row(half, rows);
  return rows < numThreads ? rem(thread(), rows) : thread();
}
Value ThreadEmitter::columnOfThread(int64_t j, RankedTensorType tile) {
  int64_t groups = getGroups(tile);
  return groups == 1 ? i32(j) : add(mul(groupOfThread(tile), tile.getDimSize(1) / groups), j);
}

void ThreadEmitter::barrier() {
  if (!role) {
    gpu::BarrierOp::create(builder, loc);
    return;
  }
  // Barrier 0 is that of the block.
  NVVM::BarrierOp::create(builder, loc, TypeRange(), i32(*role + 1), i32(numThreads), NVVM::BarrierReductionAttr(), Value());
}

void ThreadEmitter::barrierOfGroup(int64_t rows) {
  // Behind those of the block and of roles.
  NVVM::BarrierOp::create(builder, loc, TypeRange(), add(group(rows), numRoles + 1), i32(2 * rows), NVVM::BarrierReductionAttr(), Value());
}

Value ThreadEmitter::inlineAsm(Type type, StringRef text, StringRef constraints, ValueRange operands) {
  auto call = LLVM::InlineAsmOp::create(builder, loc, type, operands, text, constraints, /*has_side_effects=*/true,
                                        /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                        LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
  return isa<LLVM::LLVMVoidType>(type) ? Value() : call.getResult(0);
}

Value ThreadEmitter::orderingAsm(StringRef text, StringRef constraints, ValueRange operands, Type type) {
  std::string all = (constraints + (constraints.empty() ? "" : ",") + "~{memory}").str();
  return inlineAsm(type ? type : LLVM::LLVMVoidType::get(builder.getContext()), text, all, operands);
}

/// The kind of register of a type.
static StringRef getConstraint(Type type) { return type.isF32() ? "f" : type.isInteger(64) ? "l" : type.isInteger(1) ? "b" : "r"; }

SmallVector<Value> ThreadEmitter::changeByAsm(StringRef text, ArrayRef<Value> values, ValueRange inputs) {
  SmallVector<std::string> constraints;
  for (Value v : values)
    constraints.push_back(("=&" + getConstraint(v.getType())).str());
  for (size_t i = 0; i < values.size(); ++i)
    constraints.push_back(std::to_string(i));
  for (Value v : inputs)
    constraints.push_back(getConstraint(v.getType()).str());
  SmallVector<Value> operands(values);
  llvm::append_range(operands, inputs);
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(ValueRange(values).getTypes()));
  Value registers = inlineAsm(type, text, llvm::join(constraints, ","), operands);
  SmallVector<Value> results;
  for (size_t i = 0; i < values.size(); ++i)
    results.push_back(LLVM::ExtractValueOp::create(builder, loc, registers, i));
  return results;
}

void ThreadEmitter::ifElected(llvm::function_ref<void()> body) {
  constexpr StringLiteral elect = "{\n\t.reg .pred elected;\n\telect.sync _|elected, 0xffffffff;\n\tselp.b32 $0, 1, 0, elected;\n\t}";
  auto ifTrue = [&](Value condition, llvm::function_ref<void()> then) {
    scf::IfOp::create(builder, loc, condition, [&](OpBuilder &, Location) {
      then();
      scf::YieldOp::create(builder, loc);
    });
  };
  auto ifLane = [&] {
    Value elected = inlineAsm(builder.getI32Type(), elect, "=r", {});
    ifTrue(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, elected, i32(0)), body);
  };
  if (numThreads == 32)
    ifLane();
  else
    ifTrue(lt(uniform(warp()), 1), ifLane);
}

Value ThreadEmitter::computeHere(Value value) { return inlineAsm(value.getType(), "mov.b32 $0, $1;", "=r,r", value); }

Value ThreadEmitter::readLane(Value value, Value from) {
  if (!value.getType().isInteger(64))
    return gpu::ShuffleOp::create(builder, loc, value, from, i32(32), gpu::ShuffleMode::IDX).getShuffleResult();
  // LLVM would put the halves together by four instructions.
  constexpr StringLiteral text = "{\n\t.reg .b32 low, high;\n\tmov.b64 {low, high}, $1;\n\tshfl.sync.idx.b32 low, low, $2, 31, -1;\n\t"
                                 "shfl.sync.idx.b32 high, high, $2, 31, -1;\n\tmov.b64 $0, {low, high};\n\t}";
  return inlineAsm(value.getType(), text, "=l,l,r", {value, from});
}

Value ThreadEmitter::exchange(Value value, int64_t bits) {
  return gpu::ShuffleOp::create(builder, loc, value, i32(bits), i32(32), gpu::ShuffleMode::XOR).getShuffleResult();
}

/// Element `i` of a vector. What has been put together is not taken apart again: most tiles are used where they were made.
static Value extractValue(OpBuilder &builder, Location loc, Value vector, int64_t i) {
  if (!isa<ShapedType>(vector.getType())) // of a tile of which a thread has one value, through a loop
    return vector;
  if (auto cast = vector.getDefiningOp<UnrealizedConversionCastOp>())
    return cast.getInputs().size() == 1 ? extractValue(builder, loc, cast.getInputs().front(), i) : cast.getInputs()[i];
  if (auto made = vector.getDefiningOp<vector::FromElementsOp>())
    return made.getElements()[i];
  if (auto shuffle = vector.getDefiningOp<vector::ShuffleOp>()) {
    int64_t place = shuffle.getMask()[i], first = shuffle.getV1VectorType().getNumElements();
    return place < first ? extractValue(builder, loc, shuffle.getV1(), place) : extractValue(builder, loc, shuffle.getV2(), place - first);
  }
  return vector::ExtractOp::create(builder, loc, vector, i);
}

static SmallVector<Value> extractValues(OpBuilder &builder, Location loc, Value vector) {
  int64_t count = cast<VectorType>(vector.getType()).getNumElements();
  if (SplatElementsAttr splat; matchPattern(vector, m_Constant(&splat)))
    return SmallVector<Value>(count, arith::ConstantOp::create(builder, loc, splat.getSplatValue<TypedAttr>()));
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(extractValue(builder, loc, vector, i));
  return values;
}

Value ThreadEmitter::extract(Value vector, int64_t i) { return extractValue(builder, loc, vector, i); }
SmallVector<Value> ThreadEmitter::elements(Value vector) { return extractValues(builder, loc, vector); }
Value ThreadEmitter::insert(Value scalar, Value vector, int64_t i) { return vector::InsertOp::create(builder, loc, scalar, vector, i); }
Value ThreadEmitter::fromElements(ArrayRef<Value> elements) {
  auto type = VectorType::get({int64_t(elements.size())}, elements.front().getType());
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

Value ThreadEmitter::sharedAddress(int64_t bytes) {
  return offset(LLVM::AddressOfOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext(), 3), sharedMemoryName), bytes);
}

Value ThreadEmitter::offset(Value address, Value bytes) {
  return LLVM::GEPOp::create(builder, loc, address.getType(), builder.getI8Type(), address, LLVM::GEPArg(bytes));
}
Value ThreadEmitter::offset(Value address, int64_t bytes) {
  if (bytes == 0)
    return address;
  return LLVM::GEPOp::create(builder, loc, address.getType(), builder.getI8Type(), address, LLVM::GEPArg(int32_t(bytes)));
}

Value ThreadEmitter::swizzled(Value address, int64_t rows, int64_t panel, Value row, Value piece) {
  Value exchanged = mul(bitXor(piece, rem(row, 8)), 16);
  return offset(offset(address, add(mul(row, 128), exchanged)), panel * rows * 128);
}

Value ThreadEmitter::flip(Value address, Value bits) {
  Type i64 = builder.getI64Type();
  Value number = LLVM::PtrToIntOp::create(builder, loc, i64, address), wide = arith::ExtUIOp::create(builder, loc, i64, bits);
  return LLVM::IntToPtrOp::create(builder, loc, address.getType(), bitXor(number, wide));
}

Value ThreadEmitter::globalAddress(Value memref) {
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
  return LLVM::IntToPtrOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext(), 1), number);
}

Value ThreadEmitter::element(Value address, Value elements, Type type) {
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), elements);
  return LLVM::GEPOp::create(builder, loc, address.getType(), type, address, LLVM::GEPArg(number));
}

void ThreadEmitter::keepRolled(Operation *loop) {
  MLIRContext *context = builder.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

SmallVector<Value> ThreadEmitter::inlineBody(Region &region, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  for (Operation &op : region.front().without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> results;
  for (Value v : region.front().getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(v));
  return results;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {

struct Allocate : ssa_gpu::impl::SSAGPUAllocatePassBase<Allocate> {
  void runOnOperation() override {
    llvm::StringMap<int64_t> bytes;
    getOperation().walk([&](gpu::GPUFuncOp kernel) { bytes[kernel.getName()] = allocate(kernel); });
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      int64_t size = bytes.lookup(launch.getKernelName());
      if (size == 0)
        return;
      OpBuilder builder(launch);
      launch.getDynamicSharedMemorySizeMutable().assign(
          arith::ConstantIntOp::create(builder, launch.getLoc(), builder.getI32Type(), size));
    });
  }

  /// Places all allocations of a kernel and gives the bytes that they take.
  static int64_t allocate(gpu::GPUFuncOp kernel) {
    int64_t end = 0;
    Builder builder(kernel.getContext());
    kernel.walk([&](AllocOp op) {
      SharedType type = op.getMemory().getType();
      end = llvm::alignTo(end, type.isTile() ? 1024 : 16);
      op.setOffsetAttr(builder.getI64IntegerAttr(end));
      end += type.getBytes();
    });
    kernel.walk([&](AllocTensorsOp op) { // an address
      end = llvm::alignTo(end, 16);
      op.setOffsetAttr(builder.getI64IntegerAttr(end));
      end += 16;
    });
    kernel.walk([&](AllocPipeOp op) {
      end = llvm::alignTo(end, 8);
      op.setOffsetAttr(builder.getI64IntegerAttr(end));
      end += op.getPipe().getType().getBytes();
    });
    return end;
  }
};

struct ConvertSSAGPUToNVVM : ssa_gpu::impl::ConvertSSAGPUToNVVMPassBase<ConvertSSAGPUToNVVM> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

/// The external array of no size that stands for dynamic shared memory: an internal one would get a size and an address of its own.
static void createSharedMemory(gpu::GPUModuleOp module) {
  if (module.lookupSymbol(sharedMemoryName))
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External, sharedMemoryName, Attribute(),
                         /*alignment=*/1024, /*addrSpace=*/3);
}

static VectorType getValues(RankedTensorType tile) {
  if (hasLayout<OperandAttr>(tile)) // several values in 32 bits
    return VectorType::get({getValuesPerThread(tile) * tile.getElementTypeBitWidth() / 32}, IntegerType::get(tile.getContext(), 32));
  return VectorType::get({getValuesPerThread(tile)}, tile.getElementType());
}

/// What `addConversions` leaves as it is. Asking a converter about the types of every op takes six times as long.
static bool isOfThread(Type type) { return !isa<SharedType, TensorMemoryType, PipeType>(type) && !isTile(type); }

static void addConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion([](RankedTensorType type) -> Type { return isTile(type) ? Type(getValues(type)) : type; });
  converter.addConversion([](SharedType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext(), 3); });
  converter.addConversion([](TensorMemoryType type) -> Type { return IntegerType::get(type.getContext(), 32); });
  converter.addConversion([](PipeType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext(), 3); });
  converter.addTargetMaterialization([](OpBuilder &builder, VectorType type, ValueRange values, Location loc) -> Value {
    return int64_t(values.size()) == type.getNumElements() ? vector::FromElementsOp::create(builder, loc, type, values) : Value();
  });
}

/// Through loops and branches a thread's values of a tile go one by one: LLVM takes vectors apart in the end, and it takes longer to. Rows in
/// tensor memory, of which two values are computed at once, stay vectors.
static void addCarriedConversions(TypeConverter &converter) {
  addConversions(converter);
  converter.addConversion([](RankedTensorType type, SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
    if (!isTile(type) || isRowwise(type))
      return std::nullopt;
    types.append(getValues(type).getNumElements(), getValues(type).getElementType());
    return success();
  });
  converter.addTargetMaterialization([](OpBuilder &builder, TypeRange, ValueRange inputs, Location loc) {
    bool isVector = inputs.size() == 1 && isa<VectorType>(inputs.front().getType());
    return isVector ? extractValues(builder, loc, inputs.front()) : SmallVector<Value>();
  });
}

void ConvertSSAGPUToNVVM::runOnOperation() {
  bool hasShared = false, hasTensors = false;
  getOperation().walk([&](Operation *op) {
    hasTensors |= isa<AllocTensorsOp>(op);
    hasShared |= isa<AllocOp, AllocPipeOp, AllocTensorsOp>(op);
  });
  if (everyLaneArrives && hasTensors) {
    getOperation().emitError("'every-lane-arrives' is for kernels without tensor memory, where the ends of products arrive as well; choose another chip");
    return signalPassFailure();
  }
  if (hasShared)
    createSharedMemory(getOperation());

  TypeConverter converter, carried;
  addConversions(converter);
  addCarriedConversions(carried);

  ConversionTarget target(getContext());
  target.addIllegalDialect<SSAGPUDialect>();
  // Roles stay until nothing inside asks any more which threads it is for.
  target.addLegalOp<RolesOp>();
  target.addDynamicallyLegalOp<YieldOp>([](YieldOp op) { return isa<RolesOp>(op->getParentOp()); });
  target.markUnknownOpDynamicallyLegal([](Operation *op) { return llvm::all_of(op->getOperandTypes(), isOfThread) && llvm::all_of(op->getResultTypes(), isOfThread); });
  RewritePatternSet patterns(&getContext());
  populateChangePatterns(converter, patterns);
  populateStorePatterns(converter, patterns);
  populateTilePatterns(converter, patterns);
  populateMemoryPatterns(converter, patterns);
  populateMmaPatterns(converter, patterns);
  populatePipePatterns(converter, patterns, everyLaneArrives);
  populateTensorMemoryPatterns(converter, patterns);
  scf::populateSCFStructuralTypeConversionsAndLegality(carried, patterns, target);
  ConversionConfig config; // as in `ssa-nvptx-convert`
  config.foldingMode = DialectConversionFoldingMode::Never;
  FrozenRewritePatternSet frozen(std::move(patterns));
  auto convert = [&](gpu::GPUFuncOp kernel) {
    if (failed(applyPartialConversion(kernel, target, frozen, config)))
      return failure();
    expandRoles(kernel);
    return success();
  };
  if (failed(failableParallelForEach(&getContext(), getOperation().getOps<gpu::GPUFuncOp>(), convert)))
    signalPassFailure();
}
