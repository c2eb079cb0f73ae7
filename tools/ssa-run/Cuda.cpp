//===- Cuda.cpp - Runs on an NVIDIA GPU -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Cuda.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Support/Timing.h"
#include "ssa/Runtime/Launcher.h"
#include "ssa/Target/Bundle.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::ssa::reference;
namespace runtime = mlir::ssa::runtime;
using llvm::Error;
using llvm::Expected;
using runtime::ArgumentValue;
using runtime::ArrayView;
using runtime::DType;

bool mlir::ssa::reference::isBundle(StringRef text) {
  text = text.ltrim();
  return text.starts_with("{") && !text.starts_with("{-#");
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Bits of a value of a format that is narrower than f32.
static uint16_t encodeNarrow(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue();
}

/// The values of all bit patterns of such a format.
static std::vector<double> makeTable(const llvm::fltSemantics &semantics) {
  unsigned width = llvm::APFloat::semanticsSizeInBits(semantics);
  std::vector<double> table(size_t(1) << width);
  for (size_t bits = 0; bits < table.size(); ++bits) {
    llvm::APFloat number(semantics, llvm::APInt(width, bits));
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    table[bits] = number.convertToDouble();
  }
  return table;
}

/// The elements as they lie in device memory.
static std::vector<char> encode(const Tensor &tensor, DType dtype) {
  int64_t size = runtime::getByteSize(dtype);
  std::vector<char> bytes(tensor.getNumElements() * size);
  auto store = [&](int64_t i, const auto &value) { std::memcpy(bytes.data() + i * size, &value, size); };
  bool isNarrow = tensor.isFloat() && size < 4;
  tensor.visit([&](auto elements) {
    for (auto [i, element] : llvm::enumerate(elements)) {
      if (isNarrow && dtype == DType::BF16)
        store(i, uint16_t(std::isnan(element) ? 0x7fc0 : llvm::bit_cast<uint32_t>(float(element)) >> 16));
      else if (isNarrow)
        store(i, encodeNarrow(element, cast<FloatType>(tensor.getElementType()).getFloatSemantics()));
      else if (tensor.isFloat())
        store(i, element);
      else
        store(i, int64_t(element)); // the low bytes
    }
  });
  return bytes;
}

static Tensor decode(ArrayRef<char> bytes, DType dtype, Type elementType, ArrayRef<int64_t> shape) {
  Tensor tensor(elementType, shape);
  int64_t size = runtime::getByteSize(dtype), count = tensor.getNumElements();
  bool isNarrow = tensor.isFloat() && size < 4;
  std::vector<double> table;
  if (isNarrow)
    table = makeTable(cast<FloatType>(elementType).getFloatSemantics());
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    if (isNarrow)
      tensor.setFloat(i, table[bits]);
    else if (dtype == DType::F32)
      tensor.setFloat(i, llvm::bit_cast<float>(uint32_t(bits)));
    else if (dtype == DType::F64)
      tensor.setFloat(i, llvm::bit_cast<double>(bits));
    else
      tensor.setInt(i, dtype == DType::I1 ? int64_t(bits) : llvm::SignExtend64(bits, 8 * size));
  }
  return tensor;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static Type getType(MLIRContext *context, DType dtype) {
  Builder builder(context);
  switch (dtype) {
  case DType::I1:
    return builder.getI1Type();
  case DType::I8:
    return builder.getI8Type();
  case DType::I16:
    return builder.getI16Type();
  case DType::I32:
    return builder.getI32Type();
  case DType::I64:
    return builder.getI64Type();
  case DType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::F32:
    return builder.getF32Type();
  case DType::F64:
    return builder.getF64Type();
  }
  llvm_unreachable("unknown dtype");
}

/// A function without a meaning, for its name and its types.
static void addSignature(OpBuilder &builder, const runtime::Plan &plan) {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> arguments, results;
  SmallVector<Location> locations;
  for (const runtime::Argument &argument : plan.arguments) {
    Type type = getType(context, argument.dtype);
    SmallVector<int64_t> shape;
    for (std::optional<int64_t> size : argument.shape)
      shape.push_back(size.value_or(ShapedType::kDynamic));
    arguments.push_back(argument.isScalar ? type : RankedTensorType::get(shape, type));
    locations.push_back(NameLoc::get(StringAttr::get(context, argument.name)));
  }
  for (const runtime::Result &result : plan.results) {
    SmallVector<int64_t> shape;
    for (runtime::ValueNumber number : result.shape) {
      const runtime::PlanValue &value = plan.values[number];
      shape.push_back(value.operation == runtime::Operation::Const ? value.constant : ShapedType::kDynamic);
    }
    results.push_back(RankedTensorType::get(shape, getType(context, result.dtype)));
  }
  auto function =
      func::FuncOp::create(builder, builder.getUnknownLoc(), plan.entry, builder.getFunctionType(arguments, results));
  function.getBody().emplaceBlock().addArguments(arguments, locations);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {
using Clock = std::chrono::steady_clock;

/// Device memory that is freed at the end.
class Memory {
public:
  explicit Memory(const runtime::Driver &driver) : driver(driver) {}
  Memory(const Memory &) = delete;
  ~Memory() {
    for (uint64_t pointer : pointers)
      driver.functions().memFree(pointer);
  }

  /// 0 for no bytes.
  Expected<uint64_t> allocate(int64_t bytes, const Twine &name) {
    uint64_t pointer = 0;
    if (!bytes)
      return pointer;
    if (Error error = driver.check(driver.functions().memAlloc(&pointer, bytes), "allocate " + Twine(bytes) + " bytes"))
      return error;
    driver.nameMemory(pointer, name);
    pointers.push_back(pointer);
    return pointer;
  }

private:
  const runtime::Driver &driver;
  std::vector<uint64_t> pointers;
};

class LoadedProgram : public CudaProgram {
public:
  static Expected<std::unique_ptr<LoadedProgram>> open(const DeviceChoice &choice, Finished finished);
  Error load(StringRef text, StringRef name);

  OwningOpRef<ModuleOp> makeSignatures(MLIRContext *context) const override;
  Expected<SmallVector<Tensor>> run(StringRef entry, ArrayRef<Tensor> arguments, TypeRange resultTypes) override;

  std::string getChip() const { return device->getBestChip(); }

  /// Tells how long `what` took, from `start` till now.
  void tell(StringRef what, Clock::time_point start) const {
    if (finished)
      finished(what, std::chrono::duration<double>(Clock::now() - start).count());
  }

private:
  Expected<std::vector<ArgumentValue>> copyIn(const runtime::Plan &plan, ArrayRef<Tensor> tensors, Memory &memory);
  Error launch(runtime::Call &call, uint64_t workspace);
  Expected<SmallVector<Tensor>> copyOut(const runtime::Call &call, TypeRange types);

  Finished finished;
  runtime::Bundle bundle;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Program> program;
};
} // namespace

Expected<std::unique_ptr<LoadedProgram>> LoadedProgram::open(const DeviceChoice &choice, Finished finished) {
  Expected<std::unique_ptr<runtime::Device>> device = choice.simulatedChip.empty()
                                                          ? runtime::Device::open(choice.number)
                                                          : runtime::Device::simulate(choice.simulatedChip);
  if (!device)
    return device.takeError();
  auto loaded = std::make_unique<LoadedProgram>();
  loaded->device = std::move(*device);
  loaded->finished = std::move(finished);
  return loaded;
}

Error LoadedProgram::load(StringRef text, StringRef name) {
  Clock::time_point start = Clock::now();
  Expected<runtime::Bundle> parsed = runtime::Bundle::parse(text, name);
  if (!parsed)
    return parsed.takeError();
  bundle = std::move(*parsed);
  Expected<std::unique_ptr<runtime::Program>> made = runtime::Program::load(*device, bundle, name);
  if (!made)
    return made.takeError();
  program = std::move(*made);
  tell("load", start);
  return Error::success();
}

OwningOpRef<ModuleOp> LoadedProgram::makeSignatures(MLIRContext *context) const {
  context->loadDialect<func::FuncDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  OpBuilder builder(module->getBodyRegion());
  for (const runtime::Plan &plan : program->getTarget().entries)
    addSignature(builder, plan);
  return module;
}

Expected<std::vector<ArgumentValue>> LoadedProgram::copyIn(const runtime::Plan &plan, ArrayRef<Tensor> tensors,
                                                           Memory &memory) {
  const runtime::Driver &driver = device->getDriver();
  std::vector<ArgumentValue> arguments;
  for (auto [argument, tensor] : llvm::zip(plan.arguments, tensors)) {
    if (argument.isScalar) {
      arguments.push_back(runtime::isInteger(argument.dtype) ? ArgumentValue::ofInteger(tensor.getInt(0))
                                                             : ArgumentValue::ofFloat(tensor.getFloat(0)));
      continue;
    }
    std::vector<char> bytes = encode(tensor, argument.dtype);
    Expected<uint64_t> pointer = memory.allocate(bytes.size(), "argument '" + argument.name + "'");
    if (!pointer)
      return pointer.takeError();
    if (!bytes.empty())
      if (Error error = driver.check(driver.functions().memcpyHtoD(*pointer, bytes.data(), bytes.size()),
                                     "copy argument '" + argument.name + "' to the device"))
        return error;
    arguments.push_back(ArrayView::contiguous(*pointer, argument.dtype, tensor.getShape()));
  }
  return arguments;
}

/// Launches and waits.
Error LoadedProgram::launch(runtime::Call &call, uint64_t workspace) {
  const runtime::Driver &driver = device->getDriver();
  const runtime::DriverFunctions &cuda = driver.functions();
  runtime::Event events[2] = {};
  llvm::scope_exit destroy([&] {
    for (runtime::Event event : events)
      if (event)
        cuda.eventDestroy(event);
  });
  for (runtime::Event &event : events)
    if (Error error = driver.check(cuda.eventCreate(&event, 0), "make an event"))
      return error;
  cuda.eventRecord(events[0], nullptr);
  if (Error error = program->launch(call, workspace, nullptr))
    return error;
  cuda.eventRecord(events[1], nullptr);
  if (Error error = driver.check(cuda.streamSynchronize(nullptr), "run on " + device->describe()))
    return call.fail(llvm::toString(std::move(error)));
  float milliseconds = 0;
  if (finished && !cuda.eventElapsedTime(&milliseconds, events[0], events[1]))
    finished("kernels", milliseconds / 1000);
  return Error::success();
}

Expected<SmallVector<Tensor>> LoadedProgram::copyOut(const runtime::Call &call, TypeRange types) {
  const runtime::Driver &driver = device->getDriver();
  SmallVector<Tensor> tensors;
  for (auto [array, type] : llvm::zip(call.results(), types)) {
    std::vector<char> bytes(array.getExtentInBytes());
    if (!bytes.empty())
      if (Error error = driver.check(driver.functions().memcpyDtoH(bytes.data(), array.pointer, bytes.size()),
                                     "copy a result from the device"))
        return error;
    tensors.push_back(decode(bytes, array.dtype, getElementTypeOrSelf(type), array.shape));
  }
  return tensors;
}

Expected<SmallVector<Tensor>> LoadedProgram::run(StringRef entry, ArrayRef<Tensor> tensors, TypeRange resultTypes) {
  const runtime::Plan *plan = program->getTarget().findEntry(entry);
  if (!plan)
    return runtime::makeError("the bundle has no function '" + entry + "'; it has those that are public");
  runtime::ContextScope scope(*device);
  if (Error error = scope.takeError())
    return error;
  Memory memory(device->getDriver());
  Clock::time_point start = Clock::now();
  Expected<std::vector<ArgumentValue>> arguments = copyIn(*plan, tensors, memory);
  if (!arguments)
    return arguments.takeError();
  tell("copy in", start);
  Expected<runtime::Call> call = runtime::Call::create(*plan, *arguments);
  if (!call)
    return call.takeError();
  std::vector<ArrayView> results(call->results().begin(), call->results().end());
  for (auto [array, result] : llvm::zip(results, plan->results)) {
    Expected<uint64_t> pointer =
        memory.allocate(result.isOwned ? array.getExtentInBytes() : 0, "result '" + result.name + "'");
    if (!pointer)
      return pointer.takeError();
    array.pointer = *pointer;
  }
  if (Error error = call->setResults(results))
    return error;
  Expected<uint64_t> workspace = memory.allocate(call->getWorkspaceBytes(), "the workspace");
  if (!workspace)
    return workspace.takeError();
  if (Error error = launch(*call, *workspace))
    return error;
  start = Clock::now();
  Expected<SmallVector<Tensor>> outputs = copyOut(*call, resultTypes);
  tell("copy out", start);
  return outputs;
}

Expected<std::unique_ptr<CudaProgram>> CudaProgram::loadBundle(const DeviceChoice &device, StringRef text,
                                                               StringRef name, Finished finished) {
  Expected<std::unique_ptr<LoadedProgram>> program = LoadedProgram::open(device, std::move(finished));
  if (!program)
    return program.takeError();
  if (Error error = (*program)->load(text, name))
    return error;
  return std::move(*program);
}

Expected<std::unique_ptr<CudaProgram>> CudaProgram::compile(const DeviceChoice &device, ModuleOp module, StringRef name,
                                                            Finished finished) {
  Expected<std::unique_ptr<LoadedProgram>> program = LoadedProgram::open(device, std::move(finished));
  if (!program)
    return program.takeError();
  Clock::time_point start = Clock::now();
  ssa::CompileOptions options;
  options.chips = {(*program)->getChip()};
  std::string text;
  llvm::raw_string_ostream os(text);
  DefaultTimingManager timing;
  TimingScope scope = timing.getRootScope();
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(ssa::compile(*copy, options, os, scope)))
    return runtime::makeError("");
  (*program)->tell("compile", start);
  if (Error error = (*program)->load(text, name))
    return error;
  return std::move(*program);
}
