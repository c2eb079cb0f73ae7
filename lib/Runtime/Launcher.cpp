//===- Launcher.cpp - Loads and launches ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// python/ssa/_device.py does the same, with the same messages.
//
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Launcher.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>

using namespace mlir::ssa::runtime;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<Device>> Device::open(int ordinal) {
  Expected<const Driver &> driver = Driver::get();
  if (!driver)
    return driver.takeError();
  if (ordinal < 0 || ordinal >= driver->getNumDevices())
    return makeError("there is no device " + Twine(ordinal) + "; the CUDA driver has " +
                     Twine(driver->getNumDevices()));
  return open(*driver, ordinal);
}

Expected<std::unique_ptr<Device>> Device::simulate(StringRef chip) {
  Expected<const Driver &> driver = Driver::simulate(chip);
  if (!driver)
    return driver.takeError();
  return open(*driver, 0);
}

Expected<std::unique_ptr<Device>> Device::open(const Driver &driver, int ordinal) {
  std::unique_ptr<Device> device(new Device(driver, ordinal));
  if (Error error = device->initialize())
    return error;
  return device;
}

Error Device::initialize() {
  const DriverFunctions &cuda = driver.functions();
  if (Error error = driver.check(cuda.deviceGet(&handle, ordinal), "get device " + Twine(ordinal)))
    return error;
  char text[256] = {};
  if (Error error = driver.check(cuda.deviceGetName(text, sizeof(text) - 1, handle), "get the name of a device"))
    return error;
  name = text;
  std::pair<int, int *> attributes[] = {{computeCapabilityMajor, &major},
                                        {computeCapabilityMinor, &minor},
                                        {sharedMemoryPerBlock, &defaultSharedBytes},
                                        {sharedMemoryPerBlockOptin, &maxSharedBytes}};
  for (auto [attribute, value] : attributes)
    if (Error error = driver.check(cuda.deviceGetAttribute(value, attribute, handle),
                                   "get attribute " + Twine(attribute) + " of " + describe()))
      return error;
  return driver.check(cuda.primaryCtxRetain(&context, handle), "make a context on " + describe());
}

Device::~Device() {
  if (!context)
    return;
  if (ContextScope scope(*this); Error error = scope.takeError())
    llvm::consumeError(std::move(error));
  else
    for (auto &[stream, others] : beside)
      for (Stream other : others)
        driver.functions().streamDestroy(other);
  driver.functions().primaryCtxRelease(handle);
}

Expected<std::vector<Stream>> Device::getStreamsBeside(Stream stream, unsigned count) const {
  std::lock_guard<std::mutex> lock(mutex);
  const DriverFunctions &cuda = driver.functions();
  std::vector<Stream> &streams = beside[stream];
  while (streams.size() < count) {
    constexpr unsigned nonBlocking = 1;
    int mode = 2; // as for loading
    Stream made = nullptr;
    cuda.threadExchangeStreamCaptureMode(&mode);
    int result = cuda.streamCreate(&made, nonBlocking);
    cuda.threadExchangeStreamCaptureMode(&mode);
    if (Error error = driver.check(result, "make a stream on " + describe()))
      return std::move(error);
    streams.push_back(made);
  }
  return std::vector<Stream>(streams.begin(), streams.begin() + count);
}

Error Device::waitFor(Stream stream, Stream producer, const Twine &whose) const {
  const DriverFunctions &cuda = driver.functions();
  constexpr unsigned disableTiming = 2;
  Event event = nullptr;
  if (Error error = driver.check(cuda.eventCreate(&event, disableTiming), "make an event"))
    return error;
  Error error = driver.check(cuda.eventRecord(event, producer), "record an event on " + whose);
  if (!error)
    error = driver.check(cuda.streamWaitEvent(stream, event, 0), "wait for " + whose);
  cuda.eventDestroy(event);
  return error;
}

std::string Device::getBestChip() const {
  StringRef simulated = driver.getSimulatedChip();
  return simulated.empty() ? getChip() + (major >= 9 ? "a" : "") : simulated.str();
}

const Target *Device::findTarget(const Bundle &bundle) const {
  for (const Target &target : bundle.targets)
    if (target.chip == driver.getSimulatedChip())
      return &target;
  return bundle.findTarget(major, minor);
}

std::string Device::describe() const { return "device " + std::to_string(ordinal) + " (" + name + ")"; }

Error Device::checkMemory(const Twine &what, const ArrayView &array) const {
  enum { memoryType = 2, deviceOrdinal = 9, hostMemory = 1 };
  if (array.isEmpty())
    return Error::success();
  const DriverFunctions &cuda = driver.functions();
  unsigned type = 0;
  int owner = -1;
  if (cuda.pointerGetAttribute(&type, memoryType, array.pointer) || type == hostMemory ||
      cuda.pointerGetAttribute(&owner, deviceOrdinal, array.pointer))
    return makeError(what + " must be in memory of device " + Twine(ordinal) + ", but is in host memory");
  if (owner != ordinal)
    return makeError(what + " must be in memory of device " + Twine(ordinal) + ", but is on device " + Twine(owner));
  return Error::success();
}

ContextScope::ContextScope(const Device &device)
    : driver(device.getDriver()), error(driver.check(driver.functions().ctxPushCurrent(device.getContext()),
                                                     "make the context of " + device.describe() + " current")),
      isPushed(!error) {}

ContextScope::~ContextScope() {
  llvm::consumeError(std::move(error));
  Context context;
  if (isPushed)
    driver.functions().ctxPopCurrent(&context);
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// The version that the text of a PTX module states; `otherwise` if it states none.
static std::string findVersion(StringRef ptx, StringRef otherwise) {
  size_t start = ptx.find(".version ");
  if (start == StringRef::npos)
    return otherwise.str();
  return ptx.drop_front(start + 9).take_until([](char c) { return c == '\n' || c == '\r'; }).trim().str();
}

/// The first CUDA version whose driver reads PTX of a version; empty if that is not known here.
static StringRef findFirstDriver(StringRef ptxVersion) {
  return llvm::StringSwitch<StringRef>(ptxVersion)
      .Case("8.0", "12.0")
      .Case("8.1", "12.1")
      .Case("8.2", "12.2")
      .Case("8.3", "12.3")
      .Case("8.4", "12.4")
      .Case("8.5", "12.5")
      .Case("8.6", "12.7")
      .Case("8.7", "12.8")
      .Case("8.8", "12.9")
      .Case("9.0", "13.0")
      .Case("9.1", "13.1")
      .Default("");
}

Expected<std::unique_ptr<Program>> Program::load(const Device &device, const Bundle &bundle, StringRef name) {
  const Target *target = device.findTarget(bundle);
  if (!target)
    return makeError("'" + name + "' has code for " + bundle.listChips() + ", but " + device.describe() + " is " +
                     device.getChip() + "; compile it with --chip=" + device.getBestChip());
  std::unique_ptr<Program> program(new Program(device, *target));
  if (Error error = program->loadModule())
    return makeError("'" + name + "': " + llvm::toString(std::move(error)));
  return program;
}

Error Program::loadModule() {
  ContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  const Driver &driver = device.getDriver();
  const DriverFunctions &cuda = driver.functions();
  enum { errorLog = 5, errorLogBytes = 6 };
  std::vector<char> log(16384);
  int options[] = {errorLog, errorLogBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(uintptr_t(log.size() - 1))};
  // While another thread, or the stream of this call, captures a graph, loading is only allowed in this mode.
  int mode = 2;
  cuda.threadExchangeStreamCaptureMode(&mode);
  int result = cuda.moduleLoadDataEx(&module, target.ptx.c_str(), 2, options, values);
  cuda.threadExchangeStreamCaptureMode(&mode);
  if (!result)
    return Error::success();
  if (result == unsupportedPTXVersion) {
    std::string version = findVersion(target.ptx, target.ptxVersion);
    StringRef first = findFirstDriver(version);
    return makeError("the code for " + target.chip + " is PTX " + version + ", which the CUDA driver (version " +
                     driver.getVersionText() + ") does not read; update the NVIDIA driver" +
                     (first.empty() ? "" : " to one of CUDA " + first + " or later"));
  }
  Error error = driver.check(result, "load the code for " + target.chip + " on " + device.describe());
  StringRef text = StringRef(log.data()).trim();
  return text.empty() ? std::move(error) : makeError(llvm::toString(std::move(error)) + "\n" + text);
}

Program::~Program() {
  ContextScope scope(device);
  if (Error error = scope.takeError())
    llvm::consumeError(std::move(error));
  else if (module)
    device.getDriver().functions().moduleUnload(module);
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

/// Looks up the kernel, and has the driver allow what the launch needs. Under the mutex.
Expected<Program::Kernel *> Program::prepare(const ReadyLaunch &launch) {
  const Driver &driver = device.getDriver();
  const DriverFunctions &cuda = driver.functions();
  Kernel &kernel = kernels[launch.kernel];
  if (!kernel.function) {
    Function function;
    if (Error error = driver.check(cuda.moduleGetFunction(&function, module, launch.kernel.c_str()),
                                   "find kernel '" + launch.kernel + "' in the code for " + target.chip))
      return error;
    if (Error error = driver.check(cuda.funcGetAttribute(&kernel.staticBytes, staticSharedBytes, function),
                                   "get the shared memory of kernel '" + launch.kernel + "'"))
      return error;
    kernel.maxDynamicBytes = device.getDefaultSharedBytes() - kernel.staticBytes;
    kernel.function = function;
  }
  int64_t needed = launch.sharedBytes;
  if (needed > kernel.maxDynamicBytes) {
    if (needed + kernel.staticBytes > device.getMaxSharedBytes())
      return makeError("kernel '" + launch.kernel + "' needs " + Twine(needed + kernel.staticBytes) +
                       " bytes of shared memory for a block, but " + device.describe() + " has " +
                       Twine(device.getMaxSharedBytes()));
    if (Error error = driver.check(cuda.funcSetAttribute(kernel.function, maxDynamicSharedBytes, needed),
                                   "allow kernel '" + launch.kernel + "' " + Twine(needed) + " bytes of shared memory"))
      return error;
    kernel.maxDynamicBytes = needed;
  }
  if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 8 && !kernel.hasLargeClusters) {
    if (Error error = driver.check(cuda.funcSetAttribute(kernel.function, nonPortableClusterSizeAllowed, 1),
                                   "allow kernel '" + launch.kernel + "' clusters of more than 8 blocks"))
      return error;
    kernel.hasLargeClusters = true;
  }
  return &kernel;
}

/// The driver's number for elements of a type.
static int getTensorMapType(DType dtype) {
  switch (dtype) {
  case DType::I1:
  case DType::I8:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
    return 0;
  case DType::I16:
    return 1;
  case DType::I32:
    return 3;
  case DType::I64:
    return 5;
  case DType::F16:
    return 6;
  case DType::F32:
    return 7;
  case DType::F64:
    return 8;
  case DType::BF16:
    return 9;
  }
  llvm_unreachable("unknown dtype");
}

Error Program::encode(const ReadyLaunch::Map &map, const TensorMap &parameters, uint8_t *out) const {
  const Driver &driver = device.getDriver();
  auto encodeTiled = driver.functions().tensorMapEncodeTiled;
  if (!encodeTiled)
    return makeError("tensor maps need a CUDA driver of version 12.0 or later, but this one is " +
                     driver.getVersionText());
  // The driver counts dimensions from the innermost.
  llvm::SmallVector<uint64_t, 5> sizes, strides;
  llvm::SmallVector<uint32_t, 5> box, steps(map.array.shape.size(), 1);
  for (size_t d = map.array.shape.size(); d-- > 0;) {
    sizes.push_back(map.array.shape[d]);
    box.push_back(parameters.box[d]);
    if (d + 1 < map.array.shape.size())
      strides.push_back(map.array.strides[d] * getByteSize(map.array.dtype));
  }
  alignas(64) uint8_t encoded[128] = {};
  // The driver has no maps of nothing, and no kernel copies a box of one.
  if (llvm::is_contained(map.array.shape, 0)) {
    std::memcpy(out, encoded, sizeof(encoded));
    return Error::success();
  }
  int result =
      encodeTiled(encoded, getTensorMapType(map.array.dtype), sizes.size(), reinterpret_cast<void *>(map.array.pointer),
                  sizes.data(), strides.data(), box.data(), steps.data(), parameters.interleave, parameters.swizzle,
                  parameters.l2Promotion, parameters.fill);
  std::memcpy(out, encoded, sizeof(encoded));
  return driver.check(result, "encode tensor map " + Twine(map.number));
}

Error Program::launch(const ReadyLaunch &launch, Function function, Stream stream) const {
  const Driver &driver = device.getDriver();
  const DriverFunctions &cuda = driver.functions();
  // Where a tensor map lies in a kernel's parameters only the driver knows: it is aligned in the chip's memory, not to their start.
  llvm::SmallVector<void *> parameters;
  for (size_t offset : launch.offsets)
    parameters.push_back(const_cast<uint8_t *>(launch.parameters.data()) + offset);
  auto [gridX, gridY, gridZ] = launch.grid;
  auto [blockX, blockY, blockZ] = launch.block;
  int result;
  if (launch.hasCluster && !cuda.launchKernelEx)
    return makeError("clusters need a CUDA driver of version 11.8 or later, but this one is " +
                     driver.getVersionText());
  enum { clusterDimension = 4, programmaticSerialization = 6 };
  llvm::SmallVector<LaunchAttribute, 2> attributes;
  if (launch.hasCluster) {
    std::copy(launch.cluster.begin(), launch.cluster.end(), attributes.emplace_back(LaunchAttribute{clusterDimension}).value);
  }
  // Earlier drivers do not capture such launches into graphs.
  constexpr int firstVersion = 12030;
  if (launch.isDependent && cuda.launchKernelEx && driver.getVersion() >= firstVersion)
    attributes.emplace_back(LaunchAttribute{programmaticSerialization}).value[0] = 1;
  if (!attributes.empty()) {
    LaunchConfig config = {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, launch.sharedBytes, stream, attributes.data(), uint32_t(attributes.size())};
    result = cuda.launchKernelEx(&config, function, parameters.data(), nullptr);
  } else {
    result = cuda.launchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, launch.sharedBytes, stream,
                               parameters.data(), nullptr);
  }
  auto triple = [](const std::array<uint32_t, 3> &t) {
    return std::to_string(t[0]) + "x" + std::to_string(t[1]) + "x" + std::to_string(t[2]);
  };
  return driver.check(result, "launch kernel '" + launch.kernel + "' (grid " + triple(launch.grid) + ", block " +
                                  triple(launch.block) + ", " + Twine(launch.sharedBytes) + " bytes of shared memory)");
}

namespace {
/// The streams of a call: the caller's, and those beside it for runs of a repeat that may be under way at a time.
class Lanes {
public:
  Lanes(const Device &device, Stream stream) : device(device), stream(stream) {}

  /// The stream of a lane, or the caller's, in which all before has ended where that is not said of lanes.
  Expected<Stream> enter(const ReadyLaunch::Lane &lane) {
    if (lane.repeat != repeat) {
      for (Stream other : others)
        if (Error error = device.waitFor(stream, other, "a lane"))
          return std::move(error);
      Expected<std::vector<Stream>> streams = device.getStreamsBeside(stream, lane.count - 1);
      if (!streams)
        return streams.takeError();
      others = std::move(*streams);
      for (Stream other : others)
        if (Error error = device.waitFor(other, stream, "the stream of a call"))
          return std::move(error);
      repeat = lane.repeat;
    }
    return lane.number ? others[lane.number - 1] : stream;
  }

private:
  const Device &device;
  Stream stream;
  int repeat = -1;
  std::vector<Stream> others;
};
} // namespace

Error Program::launch(Call &call, uint64_t workspace, Stream stream) {
  auto isHere = [&](const Twine &what, const ArrayView &array) { return device.checkMemory(what, array); };
  if (Error error = call.forEachArray(isHere))
    return call.fail(llvm::toString(std::move(error)));
  Expected<std::vector<ReadyLaunch>> launches = call.getLaunches(workspace);
  if (!launches)
    return launches.takeError();
  ContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  llvm::SmallVector<Function> functions;
  for (ReadyLaunch &ready : *launches) {
    std::lock_guard<std::mutex> lock(mutex);
    Expected<Kernel *> kernel = prepare(ready);
    if (!kernel)
      return call.fail(llvm::toString(kernel.takeError()));
    functions.push_back((*kernel)->function);
    for (const ReadyLaunch::Map &map : ready.maps)
      if (Error error = encode(map, call.getPlan().tensorMaps[map.number], ready.parameters.data() + map.offset))
        return call.fail(llvm::toString(std::move(error)));
  }
  Lanes lanes(device, stream);
  std::string problem;
  for (auto [ready, function] : llvm::zip(*launches, functions)) {
    Expected<Stream> lane = lanes.enter(ready.lane);
    if (!lane)
      return call.fail(llvm::toString(lane.takeError()));
    if (Error error = launch(ready, function, *lane)) {
      problem = llvm::toString(std::move(error));
      break;
    }
  }
  if (Expected<Stream> last = lanes.enter({}); !last)
    problem = llvm::toString(last.takeError());
  return problem.empty() ? Error::success() : call.fail(problem);
}
