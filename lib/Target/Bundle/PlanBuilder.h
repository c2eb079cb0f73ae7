//===- PlanBuilder.h - From host functions to plans -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_TARGET_BUNDLE_PLANBUILDER_H
#define SSA_LIB_TARGET_BUNDLE_PLANBUILDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
#include "ssa/Target/Plan.h"

namespace mlir::ssa {

/// What a memref of a host function is: elements of the memory of an argument, a result or a workspace buffer. All but
/// `root` are value numbers.
struct View {
  unsigned root = 0;      // a buffer of the plan
  ValueNumber base = 0;   // bytes from the start of the root to what the pointer of the memref points at
  ValueNumber offset = 0; // elements from there
  Type elementType;
  SmallVector<ValueNumber> shape, strides;
};

/// Reads one host function op by op.
class PlanBuilder {
public:
  PlanBuilder(func::FuncOp function, TargetAttr target, SymbolTableCollection &symbols)
      : function(function), target(target), symbols(symbols) {}
  FailureOr<Plan> build();

private:
  // PlanBuilder.cpp: integers and structure.
  LogicalResult addArgument(BlockArgument argument);
  LogicalResult addBufferArgument(BlockArgument argument, MemRefType type);
  LogicalResult visit(Operation *op);
  LogicalResult visitBlock(Block &block);
  LogicalResult visitConstant(Operation *op, Attribute value);
  LogicalResult visitArithmetic(Operation *op);
  LogicalResult visitCast(Operation *op);
  LogicalResult visitIf(scf::IfOp op);
  LogicalResult visitIfOnDevice(scf::IfOp op, memref::LoadOp flag);
  LogicalResult visitBranches(scf::IfOp op, llvm::function_ref<void(bool isThen)> enter);
  LogicalResult visitFor(scf::ForOp op);
  LogicalResult visitAssert(Operation *op);
  LogicalResult visitReturn(func::ReturnOp op);
  FailureOr<ValueNumber> getInteger(Operation *user, Value v);
  FailureOr<int64_t> getConstant(Operation *user, Value v, StringRef what);
  FailureOr<ValueNumber> getInteger(Operation *user, OpFoldResult v);
  LogicalResult set(Operation *op, ValueNumber v);
  LogicalResult refuse(Operation *op);

  // PlanViews.cpp: memory.
  LogicalResult visitView(Operation *op);
  LogicalResult visitAlloc(memref::AllocOp op);
  LogicalResult visitSubView(memref::SubViewOp op);
  LogicalResult visitExpandShape(memref::ExpandShapeOp op);
  LogicalResult visitCollapseShape(memref::CollapseShapeOp op);
  LogicalResult visitMemRefCast(memref::CastOp op);
  LogicalResult visitReinterpretCast(memref::ReinterpretCastOp op);
  LogicalResult visitByteView(memref::ViewOp op);
  LogicalResult visitDim(memref::DimOp op);
  LogicalResult visitMetadata(memref::ExtractStridedMetadataOp op);
  FailureOr<View> getView(Operation *user, Value v);
  LogicalResult setView(Operation *op, View view);
  void requireAlignment(unsigned root, int64_t bytes);
  SmallVector<ValueNumber> getRowMajorStrides(ArrayRef<ValueNumber> shape);
  ValueNumber getByteSize(ArrayRef<ValueNumber> shape, Type elementType);
  unsigned addBuffer(PlanBuffer buffer);
  unsigned getBuffer(const View &view);
  unsigned getPointer(const View &view);

  // PlanLaunches.cpp: kernels, and completion.
  LogicalResult visitLaunch(gpu::LaunchFuncOp op);
  LogicalResult visitTensorMap(nvgpu::TmaCreateDescriptorOp op);
  LogicalResult addDeviceCondition(gpu::LaunchFuncOp op, gpu::GPUFuncOp kernel, PlanLaunch &launch);
  LogicalResult addShape(gpu::LaunchFuncOp op, gpu::GPUFuncOp kernel, PlanLaunch &launch);
  LogicalResult addSharedMemory(gpu::LaunchFuncOp op, gpu::GPUFuncOp kernel, PlanLaunch &launch);
  LogicalResult addKernelArgument(gpu::LaunchFuncOp op, Value operand, PlanLaunch &launch);
  void addAccess(gpu::GPUFuncOp kernel, unsigned number, unsigned root, PlanLaunch &launch);
  void addDependencies();
  void numberValues();

  func::FuncOp function;
  TargetAttr target;
  SymbolTableCollection &symbols;
  Plan plan;
  ValueTable values;
  DenseMap<Value, ValueNumber> integers;
  DenseMap<Value, PlanFloat> floats;
  DenseMap<Value, View> views;
  DenseMap<Value, unsigned> tensorMaps;
  DenseMap<Value, unsigned> resultOfAlloc;
  /// Buffers that tensor maps read, by the map's number.
  SmallVector<unsigned> tensorMapRoots;
  std::optional<ValueNumber> condition;     // of the code being visited
  std::optional<PlanWhen> deviceCondition; // the same, in the device's memory
  std::optional<unsigned> repeat;
};

/// The name of an element type in plans; empty if launchers do not know it.
StringRef getDTypeName(Type type);

} // namespace mlir::ssa

#endif // SSA_LIB_TARGET_BUNDLE_PLANBUILDER_H
