//===- Parts.cpp - Kernels that are compiled at once ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// The kernels of a module, or none if they have more in common than shared memory of no size. Names of barriers are numbered within a module.
static SmallVector<gpu::GPUFuncOp> findKernels(gpu::GPUModuleOp module) {
  SmallVector<gpu::GPUFuncOp> kernels;
  for (Operation &op : *module.getBody()) {
    auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
    auto variable = dyn_cast<LLVM::GlobalOp>(op);
    if (kernel && kernel.isKernel())
      kernels.push_back(kernel);
    else if (!variable || variable.getLinkage() != LLVM::Linkage::External || variable.getValueOrNull() || !variable.getInitializerRegion().empty())
      return {};
  }
  bool hasBarriers = module.walk([](nvgpu::MBarrierCreateOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return hasBarriers ? SmallVector<gpu::GPUFuncOp>() : kernels;
}

/// The longest first: what comes last then keeps one thread from ending with the others only for a short time.
static void sortByLength(MutableArrayRef<gpu::GPUFuncOp> kernels) {
  DenseMap<Operation *, size_t> lengths;
  for (gpu::GPUFuncOp kernel : kernels)
    kernel->walk([&, &length = lengths[kernel]](Operation *) { ++length; });
  llvm::sort(kernels, [&](gpu::GPUFuncOp a, gpu::GPUFuncOp b) { return lengths.lookup(a) > lengths.lookup(b); });
}

SmallVector<std::string> ssa::splitKernels(gpu::GPUModuleOp module) {
  SmallVector<gpu::GPUFuncOp> kernels = findKernels(module);
  SmallVector<std::string> order;
  for (gpu::GPUFuncOp kernel : kernels)
    order.push_back(kernel.getName().str());
  MLIRContext *context = module.getContext();
  if (kernels.empty() || !context->isMultithreadingEnabled() || context->getNumThreads() == 1)
    return order;
  sortByLength(kernels);
  auto builder = OpBuilder::atBlockEnd(module->getBlock());
  for (gpu::GPUFuncOp kernel : llvm::drop_begin(kernels)) {
    auto part = gpu::GPUModuleOp::create(builder, module.getLoc(), kernel.getName());
    auto inside = OpBuilder::atBlockBegin(part.getBody());
    for (auto variable : module.getOps<LLVM::GlobalOp>())
      inside.clone(*variable);
    kernel->moveBefore(part.getBody(), part.getBody()->end());
  }
  return order;
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// Replaces the number behind every `prefix` by what `renumbered` makes of it.
static void renumber(std::string &kernel, StringRef prefix, llvm::function_ref<size_t(StringRef number)> renumbered) {
  std::string text;
  StringRef rest = kernel;
  while (true) {
    auto [before, after] = rest.split(prefix);
    text += before;
    if (before.size() == rest.size())
      break;
    StringRef number = after.take_while(llvm::isDigit);
    text += prefix;
    if (!number.empty())
      text += std::to_string(renumbered(number));
    rest = after.drop_front(number.size());
  }
  kernel = std::move(text);
}

/// Numbers that the backend gives within a module become those of a kernel: of the function, in names of labels and stack frames, and of labels within inline
/// assembly, which are counted.
static void renumber(std::string &kernel, size_t place) {
  for (StringRef prefix : {"$L__BB", "__local_depot"})
    renumber(kernel, prefix, [&](StringRef) { return place; });
  SmallVector<std::string> known;
  for (StringRef prefix : {" done", "\ndone"}) // where one is branched to, and where it stands
    renumber(kernel, prefix, [&](StringRef number) -> size_t {
      auto found = llvm::find(known, number);
      if (found == known.end())
        found = known.insert(found, number.str());
      return found - known.begin();
    });
}

/// One text of those of parts, the same whatever the parts were: a header, variables, kernels in order.
std::string ssa::mergePTX(ArrayRef<DeviceCode> parts, ArrayRef<std::string> order) {
  constexpr llvm::StringLiteral start = "\t// .globl\t", headerEnd = ".address_size 64\n", bodyEnd = "\n}\n";
  std::set<std::string> variables; // each line declares one; parts have some in common
  auto declare = [&](StringRef text) {
    SmallVector<StringRef> lines;
    text.split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (StringRef line : lines)
      if (line.starts_with("."))
        variables.insert(line.str());
  };
  llvm::StringMap<std::string> kernels;
  for (const DeviceCode &part : parts) {
    auto [head, body] = StringRef(part.ptx).split(headerEnd).second.split(start);
    declare(head);
    while (!body.empty()) {
      auto [kernel, rest] = body.split(start);
      StringRef name = kernel.take_until([](char c) { return c == ' ' || c == '\n'; });
      size_t first = kernel.find(".visible .entry"), end = kernel.rfind(bodyEnd) + bodyEnd.size();
      declare(kernel.take_front(first)); // variables stand before the first kernel that uses them
      declare(kernel.drop_front(end));
      kernels[name] = kernel.slice(first, end).str();
      body = rest;
    }
  }
  std::string merged = (StringRef(parts.front().ptx).split(headerEnd).first + headerEnd + "\n").str();
  for (const std::string &variable : variables)
    merged += variable + "\n";
  for (auto [i, name] : llvm::enumerate(order)) {
    renumber(kernels[name], i);
    merged += "\n// .globl " + name + "\n" + kernels[name];
  }
  return merged;
}
