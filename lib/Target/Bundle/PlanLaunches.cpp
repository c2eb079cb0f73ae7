//===- PlanLaunches.cpp - Launches of host functions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "KernelAccess.h"
#include "PlanBuilder.h"
#include "ssa/Conversion/Passes.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The kernel is one that looks at the flag itself.
LogicalResult PlanBuilder::addDeviceCondition(gpu::LaunchFuncOp op, gpu::GPUFuncOp kernel, PlanLaunch &launch) {
  if (!deviceCondition)
    return success();
  WhenAttr when = WhenAttr::of(kernel);
  bool isGuarded = when && when.getIs() == deviceCondition->is && when.getArgument() < int64_t(op.getNumKernelOperands());
  Value flag = isGuarded ? op.getKernelOperand(when.getArgument()) : Value();
  if (!flag || !views.contains(flag) || views[flag].root != deviceCondition->buffer)
    return op.emitOpError("is in a branch whose condition is in the device's memory, but '") << launch.kernel << "' has no '" << WhenAttr::attrName()
           << "' that is about it";
  launch.when = deviceCondition;
  return success();
}

LogicalResult PlanBuilder::addShape(gpu::LaunchFuncOp op, gpu::GPUFuncOp kernel, PlanLaunch &launch) {
  Value grid[] = {op.getGridSizeX(), op.getGridSizeY(), op.getGridSizeZ()};
  Value block[] = {op.getBlockSizeX(), op.getBlockSizeY(), op.getBlockSizeZ()};
  for (unsigned i = 0; i < 3; ++i) {
    FailureOr<ValueNumber> blocks = getInteger(op, grid[i]);
    FailureOr<int64_t> threads = getConstant(op, block[i], "the size of a block");
    if (failed(blocks) || failed(threads))
      return failure();
    launch.grid[i] = *blocks;
    launch.block[i] = *threads;
  }
  if (launch.block[0] * launch.block[1] * launch.block[2] > 1024)
    return op.emitOpError("has blocks of ")
           << launch.block[0] * launch.block[1] * launch.block[2] << " threads, but 1024 are the most";
  for (std::optional<ArrayRef<int32_t>> size : {kernel.getKnownBlockSize()})
    if (size && !llvm::equal(*size, launch.block))
      return op.emitOpError("has blocks of ")
             << ArrayRef(launch.block) << " threads, but the kernel is made for " << *size;
  if (op.hasClusterSize())
    for (Value size : {op.getClusterSizeX(), op.getClusterSizeY(), op.getClusterSizeZ()}) {
      FailureOr<int64_t> blocks = getConstant(op, size, "the size of a cluster");
      if (failed(blocks))
        return failure();
      launch.cluster.push_back(*blocks);
    }
  if (op.hasClusterSize() && !target.hasClusters())
    return op.emitOpError("has clusters, which '") << target.getChip() << "' does not have";
  return success();
}

LogicalResult PlanBuilder::addSharedMemory(gpu::LaunchFuncOp op, gpu::GPUFuncOp kernel, PlanLaunch &launch) {
  launch.shared = values.constant(0);
  if (Value size = op.getDynamicSharedMemorySize()) {
    FailureOr<ValueNumber> bytes = getInteger(op, size);
    if (failed(bytes))
      return failure();
    launch.shared = *bytes;
  }
  int64_t bytes = values.getConstant(launch.shared).value_or(0) + getStaticSharedMemory(kernel);
  if (bytes > target.sharedMemoryBytes())
    return op.emitOpError("needs ") << bytes << " bytes of shared memory for '" << launch.kernel << "', but '"
                                    << target.getChip() << "' has " << target.sharedMemoryBytes();
  return success();
}

/// A buffer is passed as MLIR's kernels expect: two pointers, offset, sizes, strides.
LogicalResult PlanBuilder::addKernelArgument(gpu::LaunchFuncOp op, Value operand, PlanLaunch &launch) {
  Type type = operand.getType();
  auto integer = [&](ValueNumber v, StringRef dtype) { launch.arguments.push_back({dtype.str(), v, {}}); };
  if (isa<MemRefType>(type)) {
    FailureOr<View> view = getView(op, operand);
    if (failed(view))
      return failure();
    unsigned pointer = getPointer(*view);
    launch.arguments.push_back({"pointer", pointer, {}});
    launch.arguments.push_back({"pointer", pointer, {}});
    integer(view->offset, "i64");
    for (ValueNumber size : view->shape)
      integer(size, "i64");
    for (ValueNumber stride : view->strides)
      integer(stride, "i64");
    return success();
  }
  if (isa<nvgpu::TensorMapDescriptorType>(type)) {
    auto map = tensorMaps.find(operand);
    if (map == tensorMaps.end())
      return op.emitOpError("takes a tensor map that the host function does not make");
    launch.arguments.push_back({"tensormap", map->second, {}});
    return success();
  }
  StringRef dtype = type.isIndex() ? "i64" : getDTypeName(type);
  if (type.isIntOrIndex() && !dtype.empty()) {
    FailureOr<ValueNumber> v = getInteger(op, operand);
    if (failed(v))
      return failure();
    integer(*v, dtype);
    return success();
  }
  auto number = floats.find(operand);
  if (number == floats.end())
    return op.emitOpError("takes a value of type ")
           << type << " that is no buffer, integer, tensor map, constant or argument of type f32 or f64";
  launch.arguments.push_back({dtype.str(), 0, number->second});
  return success();
}

static void insertOnce(SmallVector<unsigned> &list, unsigned number) {
  if (!llvm::is_contained(list, number))
    list.push_back(number);
}

void PlanBuilder::addAccess(gpu::GPUFuncOp kernel, unsigned number, unsigned root, PlanLaunch &launch) {
  KernelAccess access = getKernelAccess(kernel, kernel.getArgument(number));
  if (access.isRead)
    insertOnce(launch.reads, root);
  if (access.isWritten)
    insertOnce(launch.writes, root);
  requireAlignment(root, access.alignment);
  const PlanBuffer &buffer = plan.buffers[root];
  if (buffer.kind != "argument")
    return;
  plan.arguments[buffer.number].isRead |= access.isRead;
  plan.arguments[buffer.number].isWritten |= access.isWritten;
}

LogicalResult PlanBuilder::visitLaunch(gpu::LaunchFuncOp op) {
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(op, op.getKernel());
  if (!kernel)
    return op.emitOpError("launches ") << op.getKernel() << ", which is no 'gpu.func'";
  if (!op.getAsyncDependencies().empty() || op.getAsyncToken() || op.getAsyncObject())
    return op.emitOpError(
        "that is asynchronous has no meaning for a launcher: it finds out itself what may run at the same time");
  if (op.getNumKernelOperands() != kernel.getNumArguments())
    return op.emitOpError("passes ") << op.getNumKernelOperands() << " arguments to a kernel of "
                                     << kernel.getNumArguments();
  PlanLaunch launch;
  launch.kernel = op.getKernelName().str();
  launch.condition = condition;
  launch.isDependent = op->hasAttr(dependentAttrName);
  if (auto origin = op->getAttrOfType<IntegerAttr>(originAttrName))
    launch.origin = origin.getInt();
  if (failed(addDeviceCondition(op, kernel, launch)) || failed(addShape(op, kernel, launch)) || failed(addSharedMemory(op, kernel, launch)))
    return failure();
  for (auto [i, operand] : llvm::enumerate(op.getKernelOperands())) {
    if (failed(addKernelArgument(op, operand, launch)))
      return failure();
    if (isa<MemRefType>(operand.getType()))
      addAccess(kernel, i, views[operand].root, launch);
    else if (isa<nvgpu::TensorMapDescriptorType>(operand.getType()))
      addAccess(kernel, i, tensorMapRoots[tensorMaps[operand]], launch);
  }
  plan.launches.push_back(std::move(launch));
  return success();
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// A word of an enumeration of NVGPU as plans have it.
static std::string simplify(StringRef word) {
  word.consume_front("swizzle_");
  word.consume_front("l2promo_");
  word.consume_front("interleave_");
  return word.str();
}

LogicalResult PlanBuilder::visitTensorMap(nvgpu::TmaCreateDescriptorOp op) {
  FailureOr<View> view = getView(op, op.getTensor());
  if (failed(view))
    return failure();
  if (!target.hasTMA())
    return op.emitOpError("makes a tensor map, which '") << target.getChip() << "' does not have";
  if (repeat)
    return op.emitOpError("in a loop has no meaning for a launcher: make it before");
  nvgpu::TensorMapDescriptorType type = op.getTensorMap().getType();
  PlanTensorMap map;
  if (op.getBoxDimensions().size() != view->shape.size() || view->shape.size() > 5)
    return op.emitOpError("has a box of rank ") << op.getBoxDimensions().size() << " for a buffer of rank "
                                                << view->shape.size() << "; both must be the same, at most 5";
  for (Value size : op.getBoxDimensions()) {
    FailureOr<int64_t> box = getConstant(op, size, "the size of a box");
    if (failed(box))
      return failure();
    if (*box < 1 || *box > 256)
      return op.emitOpError("has a box of size ") << *box << "; sizes are 1 .. 256";
    map.box.push_back(*box);
  }
  map.buffer = getBuffer(*view);
  map.swizzle = simplify(nvgpu::stringifyTensorMapSwizzleKind(type.getSwizzle()));
  map.l2Promotion = simplify(nvgpu::stringifyTensorMapL2PromoKind(type.getL2promo()));
  map.fill = nvgpu::stringifyTensorMapOOBKind(type.getOob()).str();
  map.interleave = simplify(nvgpu::stringifyTensorMapInterleaveKind(type.getInterleave()));
  requireAlignment(view->root, 16);
  tensorMaps[op.getTensorMap()] = plan.tensorMaps.size();
  tensorMapRoots.push_back(view->root);
  plan.tensorMaps.push_back(std::move(map));
  return success();
}

//===----------------------------------------------------------------------===//
// Completion
//===----------------------------------------------------------------------===//

static bool overlaps(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  return llvm::any_of(a, [&](unsigned number) { return llvm::is_contained(b, number); });
}

/// A launch waits for those before it that write what it reads or writes, or read what it writes; what these wait for
/// is not said again.
void PlanBuilder::addDependencies() {
  std::vector<llvm::SmallBitVector> before; // all that a launch comes after
  for (auto [i, launch] : llvm::enumerate(plan.launches)) {
    llvm::SmallBitVector done(plan.launches.size());
    for (unsigned j = i; j-- > 0;) {
      const PlanLaunch &earlier = plan.launches[j];
      bool conflicts = overlaps(earlier.writes, launch.reads) || overlaps(earlier.writes, launch.writes) ||
                       overlaps(earlier.reads, launch.writes);
      if (!conflicts || done[j])
        continue;
      launch.after.push_back(j);
      done.set(j);
      done |= before[j];
    }
    llvm::sort(launch.after);
    before.push_back(std::move(done));
  }
}

void Plan::forEachValue(llvm::function_ref<void(ValueNumber &)> visit) {
  auto all = [&](auto &list) {
    for (ValueNumber &v : list)
      visit(v);
  };
  for (PlanCheck &check : checks)
    all(check.values);
  for (PlanBuffer &buffer : buffers) {
    if (buffer.kind == "workspace")
      visit(buffer.number);
    if (buffer.kind == "view")
      visit(buffer.offset);
    all(buffer.shape);
    all(buffer.strides);
  }
  for (PlanResult &result : results)
    all(result.shape);
  visit(workspaceBytes);
  for (PlanRepeat &repeat : repeats)
    visit(repeat.count);
  for (PlanLaunch &launch : launches) {
    all(launch.grid);
    visit(launch.shared);
    if (launch.condition)
      visit(*launch.condition);
    for (PlanKernelArgument &argument : launch.arguments)
      if (StringRef(argument.kind).starts_with("i"))
        visit(argument.number);
  }
}

/// Leaves out values that nothing reads, and puts the others in the order in which they can be computed.
void PlanBuilder::numberValues() {
  std::vector<PlanValue> &all = values.get();
  llvm::SmallBitVector isUsed(all.size());
  plan.forEachValue([&](ValueNumber &v) { isUsed.set(v); });
  for (unsigned v = all.size(); v-- > 0;) // operands come before
    if (isUsed[v] && all[v].readsValues())
      for (int64_t operand : all[v].operands)
        isUsed.set(operand);
  std::vector<ValueNumber> numbers(all.size());
  unsigned stages = PlanValue::firstRepeat + plan.repeats.size();
  for (unsigned stage = 0; stage < stages; ++stage) {
    unsigned first = plan.values.size();
    for (unsigned v = 0; v < all.size(); ++v) {
      if (!isUsed[v] || all[v].stage != stage)
        continue;
      PlanValue value = all[v];
      if (value.readsValues())
        for (int64_t &operand : value.operands)
          operand = numbers[operand];
      numbers[v] = plan.values.size();
      plan.values.push_back(std::move(value));
    }
    if (stage == PlanValue::beforeResults)
      plan.inputs = plan.values.size();
    if (stage >= PlanValue::firstRepeat)
      plan.repeats[stage - PlanValue::firstRepeat].values = {first, unsigned(plan.values.size())};
  }
  plan.forEachValue([&](ValueNumber &v) { v = numbers[v]; });
}

FailureOr<std::vector<Plan>> ssa::buildPlans(ModuleOp module, TargetAttr target) {
  std::vector<Plan> plans;
  SymbolTableCollection symbols;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    FailureOr<Plan> plan = PlanBuilder(function, target, symbols).build();
    if (failed(plan))
      return failure();
    plans.push_back(std::move(*plan));
  }
  return std::move(plans);
}
