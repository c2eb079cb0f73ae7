//===- Driver.cpp - The simulator as a CUDA driver ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Simulator/Driver.h"
#include "Program.h"
#include "TensorMap.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

using namespace mlir::ssa::sim;

namespace {
enum Result {
  Success = 0,
  InvalidValue = 1,
  InvalidDevice = 101,
  InvalidPTX = 218,
  NotFound = 500,
  LaunchFailed = 719,
  NotSupported = 801
};

struct Chip {
  const char *name;
  int major, minor, sharedBytes;
};
constexpr Chip chips[] = {{"sm_80", 8, 0, 166912},    {"sm_86", 8, 6, 101376},    {"sm_89", 8, 9, 101376},
                          {"sm_90", 9, 0, 232448},    {"sm_90a", 9, 0, 232448},   {"sm_100", 10, 0, 232448},
                          {"sm_100a", 10, 0, 232448}, {"sm_103", 10, 3, 232448},  {"sm_103a", 10, 3, 232448},
                          {"sm_110", 11, 0, 232448},  {"sm_110a", 11, 0, 232448}, {"sm_120", 12, 0, 101376},
                          {"sm_120a", 12, 0, 101376}};

struct LoadedModule;

struct LoadedFunction {
  LoadedModule *module;
  std::string name;
};

struct LoadedModule {
  std::unique_ptr<Module> code;
  std::map<std::string, LoadedFunction> functions;
};

using Clock = std::chrono::steady_clock;

struct State {
  std::mutex mutex;
  const Chip *chip = &chips[4];
  Memory memory;
  Settings settings;
  Statistics statistics;
  /// What went wrong last, for cuGetErrorString.
  std::string problem;
};
} // namespace

static State &state() {
  static State *only = new State(); // outlives everything that might call at the end
  return *only;
}

bool mlir::ssa::sim::setChip(std::string_view name) {
  for (const Chip &chip : chips)
    if (name == chip.name) {
      state().chip = &chip;
      return true;
    }
  return false;
}

Settings &mlir::ssa::sim::driverSettings() { return state().settings; }
const Statistics &mlir::ssa::sim::driverStatistics() { return state().statistics; }
void mlir::ssa::sim::nameMemory(uint64_t address, std::string name) {
  state().memory.setName(address, std::move(name));
}

static int fail(int result, std::string problem) {
  state().problem = std::move(problem);
  return result;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

static int init(unsigned) { return Success; }
static int driverGetVersion(int *version) {
  *version = 13010;
  return Success;
}
static int getErrorName(int error, const char **name) {
  static const std::map<int, const char *> names = {
      {InvalidValue, "CUDA_ERROR_INVALID_VALUE"}, {InvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {InvalidPTX, "CUDA_ERROR_INVALID_PTX"},     {NotFound, "CUDA_ERROR_NOT_FOUND"},
      {LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"}, {NotSupported, "CUDA_ERROR_NOT_SUPPORTED"}};
  auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? InvalidValue : Success;
}
static int getErrorString(int, const char **text) {
  static thread_local std::string copy;
  copy = state().problem;
  *text = copy.c_str();
  return Success;
}
static int deviceGetCount(int *count) {
  *count = 1;
  return Success;
}
static int deviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal ? InvalidDevice : Success;
}
static int deviceGetName(char *name, int length, int) {
  std::snprintf(name, size_t(length), "simulated %s", state().chip->name);
  return Success;
}
static int deviceGetAttribute(int *value, int attribute, int) {
  enum { sharedPerBlock = 8, numProcessors = 16, major = 75, minor = 76, sharedOptIn = 97 };
  const Chip &chip = *state().chip;
  *value = attribute == sharedPerBlock  ? 49152
           : attribute == numProcessors ? 132
           : attribute == major         ? chip.major
           : attribute == minor         ? chip.minor
           : attribute == sharedOptIn   ? chip.sharedBytes
                                        : 0;
  return Success;
}
static int primaryCtxRetain(void **context, int) {
  *context = &state();
  return Success;
}
static int primaryCtxRelease(int) { return Success; }
static int ctxPushCurrent(void *) { return Success; }
static int ctxGetCurrent(void **context) {
  *context = &state();
  return Success;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

static int moduleLoadDataEx(void **module, const void *image, unsigned numOptions, int *options, void **values) {
  enum { errorLog = 5, errorLogBytes = 6 };
  auto loaded = std::make_unique<LoadedModule>();
  std::string error;
  loaded->code = Module::parse(static_cast<const char *>(image), error);
  if (loaded->code) {
    *module = loaded.release();
    return Success;
  }
  char *log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == errorLog)
      log = static_cast<char *>(values[i]);
    if (options[i] == errorLogBytes)
      bytes = size_t(reinterpret_cast<uintptr_t>(values[i]));
  }
  if (log && bytes)
    std::snprintf(log, bytes, "%s", error.c_str());
  return fail(InvalidPTX, "the PTX is not valid or not known to the simulator");
}
static int moduleUnload(void *module) {
  delete static_cast<LoadedModule *>(module);
  return Success;
}
static int moduleGetFunction(void **function, void *module, const char *name) {
  auto *loaded = static_cast<LoadedModule *>(module);
  if (!loaded->code->hasKernel(name))
    return fail(NotFound, "named symbol not found");
  LoadedFunction &entry = loaded->functions[name];
  entry = {loaded, name};
  *function = &entry;
  return Success;
}
static int funcGetAttribute(int *value, int attribute, void *function) {
  enum { staticShared = 1 };
  auto *entry = static_cast<LoadedFunction *>(function);
  *value = attribute == staticShared ? int(entry->module->code->getStaticSharedBytes(entry->name)) : 0;
  return Success;
}
static int funcSetAttribute(void *, int, int) { return Success; }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static int memAlloc(uint64_t *pointer, size_t bytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  *pointer = state().memory.allocate(int64_t(bytes));
  return bytes ? Success : InvalidValue;
}
static int memFree(uint64_t pointer) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().memory.free(pointer) ? Success : fail(InvalidValue, "that is no device memory");
}
static int memAllocAsync(uint64_t *pointer, size_t bytes, void *) { return memAlloc(pointer, bytes); }
static int memFreeAsync(uint64_t pointer, void *) { return memFree(pointer); }
static int memcpyHtoD(uint64_t to, const void *from, size_t bytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().memory.write(to, from, int64_t(bytes)) ? Success : fail(InvalidValue, "that is no device memory");
}
/// Memory that nothing has written is no result.
static int memcpyDtoH(void *to, uint64_t from, size_t bytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().memory.read(from, to, int64_t(bytes)))
    return fail(InvalidValue, "that is no device memory");
  int64_t first = state().settings.checks ? state().memory.findUndefined(from, int64_t(bytes)) : -1;
  if (first < 0)
    return Success;
  return fail(LaunchFailed, "byte " + std::to_string(first) + " of " + std::to_string(bytes) + " was never written");
}
static int pointerGetAttribute(void *data, int attribute, uint64_t pointer) {
  enum { memoryType = 2, deviceOrdinal = 9, deviceMemory = 2 };
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().memory.contains(pointer))
    return InvalidValue;
  if (attribute == memoryType)
    *static_cast<unsigned *>(data) = deviceMemory;
  else if (attribute == deviceOrdinal)
    *static_cast<int *>(data) = 0;
  else
    return InvalidValue;
  return Success;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

static int streamCreate(void **stream, unsigned) {
  *stream = nullptr; // all that is launched has ended when the call returns
  return Success;
}
static int streamDestroy(void *) { return Success; }
static int streamSynchronize(void *) { return Success; }
static int streamWaitEvent(void *, void *, unsigned) { return Success; }
static int exchangeCaptureMode(int *) { return Success; }
static int eventCreate(void **event, unsigned) {
  *event = new Clock::time_point();
  return Success;
}
static int eventDestroy(void *event) {
  delete static_cast<Clock::time_point *>(event);
  return Success;
}
static int eventRecord(void *event, void *) {
  *static_cast<Clock::time_point *>(event) = Clock::now();
  return Success;
}
static int eventElapsedTime(float *milliseconds, void *start, void *end) {
  auto passed = *static_cast<Clock::time_point *>(end) - *static_cast<Clock::time_point *>(start);
  *milliseconds = std::chrono::duration<float, std::milli>(passed).count();
  return Success;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The parameter block, from pointers to the parameters or as it is.
static std::vector<uint8_t> gatherParameters(const Kernel &kernel, void **parameters, void **extra) {
  std::vector<uint8_t> block;
  if (parameters) {
    block.resize(kernel.parameterBytes);
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      std::memcpy(block.data() + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].bytes);
    return block;
  }
  const uint8_t *start = nullptr;
  size_t bytes = 0;
  for (; extra && *extra; extra += 2) {
    if (reinterpret_cast<uintptr_t>(extra[0]) == 1)
      start = static_cast<const uint8_t *>(extra[1]);
    else
      bytes = *static_cast<const size_t *>(extra[1]);
  }
  if (start)
    block.assign(start, start + bytes);
  return block;
}

static int launch(LaunchConfig config, void *function, void **parameters, void **extra) {
  auto *entry = static_cast<LoadedFunction *>(function);
  std::lock_guard<std::mutex> lock(state().mutex);
  const Module &module = *entry->module->code;
  config.kernel = entry->name;
  config.parameters = gatherParameters(*module.contents().kernels.at(entry->name), parameters, extra);
  std::vector<Fault> faults = launch(module, state().memory, config, state().settings, &state().statistics);
  if (faults.empty())
    return Success;
  std::string text = std::to_string(faults.size()) + (faults.size() == 1 ? " fault" : " faults");
  constexpr size_t most = 8; // the rest mostly follows from these
  for (size_t i = 0; i < faults.size() && i < most; ++i)
    text += "\n  " + faults[i].format();
  if (faults.size() > most)
    text += "\n  and " + std::to_string(faults.size() - most) + " more";
  return fail(LaunchFailed, text);
}

static int launchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *, void **parameters,
                        void **extra) {
  LaunchConfig config;
  config.grid = {gridX, gridY, gridZ};
  config.block = {blockX, blockY, blockZ};
  config.dynamicSharedBytes = sharedBytes;
  return launch(std::move(config), function, parameters, extra);
}

namespace {
/// As cuLaunchKernelEx takes them.
struct Attribute {
  uint32_t id, pad, value[16];
};
struct Configuration {
  uint32_t grid[3], block[3], sharedBytes;
  void *stream;
  Attribute *attributes;
  uint32_t numAttributes;
};
} // namespace

static int launchKernelEx(const Configuration *given, void *function, void **parameters, void **extra) {
  enum { clusterDimension = 4 };
  LaunchConfig config;
  std::copy(given->grid, given->grid + 3, config.grid.begin());
  std::copy(given->block, given->block + 3, config.block.begin());
  config.dynamicSharedBytes = given->sharedBytes;
  for (uint32_t i = 0; i < given->numAttributes; ++i)
    if (given->attributes[i].id == clusterDimension)
      std::copy(given->attributes[i].value, given->attributes[i].value + 3, config.cluster.begin());
  return launch(std::move(config), function, parameters, extra);
}

/// cuTensorMapEncodeTiled. What the driver demands is demanded here too.
static int encodeTiled(void *out, int dtype, uint32_t rank, void *address, const uint64_t *sizes,
                       const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides, int interleave,
                       int swizzle, int, int fill) {
  static const uint8_t elementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (dtype < 0 || dtype > 12 || !rank || rank > 5 || interleave || swizzle < 0 || swizzle > 3)
    return fail(NotSupported, "the simulator has tensor maps of 1 to 5 dimensions without interleaving only");
  TensorMap map;
  map.address = uint64_t(reinterpret_cast<uintptr_t>(address));
  map.rank = uint8_t(rank);
  map.elementBytes = elementBytes[dtype];
  map.swizzle = uint8_t(swizzle);
  map.fillsNaN = uint8_t(fill);
  bool isGood = map.address % 16 == 0;
  for (uint32_t d = 0; d < rank; ++d) {
    isGood &= sizes[d] >= 1 && sizes[d] <= uint64_t(1) << 32 && box[d] >= 1 && box[d] <= 256 && elementStrides[d] == 1;
    map.sizes[d] = uint32_t(std::min<uint64_t>(sizes[d], UINT32_MAX));
    map.box[d] = uint16_t(box[d]);
    if (d + 1 < rank) {
      isGood &= strides[d] % 16 == 0 && strides[d] < uint64_t(1) << 40;
      map.strides[d] = strides[d];
    }
  }
  uint32_t rowBytes = uint32_t(map.box[0]) * map.elementBytes;
  isGood &= rowBytes % 16 == 0 && (!swizzle || rowBytes <= 16u << swizzle);
  std::memset(out, 0, 128);
  std::memcpy(out, &map, sizeof(map));
  return isGood ? Success : fail(InvalidValue, "sizes, strides, box or swizzle of the tensor map are not valid");
}

void *mlir::ssa::sim::findEntryPoint(std::string_view name) {
  static const std::map<std::string_view, void *> entries = {
      {"cuInit", reinterpret_cast<void *>(init)},
      {"cuDriverGetVersion", reinterpret_cast<void *>(driverGetVersion)},
      {"cuGetErrorName", reinterpret_cast<void *>(getErrorName)},
      {"cuGetErrorString", reinterpret_cast<void *>(getErrorString)},
      {"cuDeviceGetCount", reinterpret_cast<void *>(deviceGetCount)},
      {"cuDeviceGet", reinterpret_cast<void *>(deviceGet)},
      {"cuDeviceGetName", reinterpret_cast<void *>(deviceGetName)},
      {"cuDeviceGetAttribute", reinterpret_cast<void *>(deviceGetAttribute)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(primaryCtxRetain)},
      {"cuDevicePrimaryCtxRelease_v2", reinterpret_cast<void *>(primaryCtxRelease)},
      {"cuCtxPushCurrent_v2", reinterpret_cast<void *>(ctxPushCurrent)},
      {"cuCtxPopCurrent_v2", reinterpret_cast<void *>(ctxGetCurrent)},
      {"cuCtxGetCurrent", reinterpret_cast<void *>(ctxGetCurrent)},
      {"cuModuleLoadDataEx", reinterpret_cast<void *>(moduleLoadDataEx)},
      {"cuModuleUnload", reinterpret_cast<void *>(moduleUnload)},
      {"cuModuleGetFunction", reinterpret_cast<void *>(moduleGetFunction)},
      {"cuFuncGetAttribute", reinterpret_cast<void *>(funcGetAttribute)},
      {"cuFuncSetAttribute", reinterpret_cast<void *>(funcSetAttribute)},
      {"cuMemAlloc_v2", reinterpret_cast<void *>(memAlloc)},
      {"cuMemFree_v2", reinterpret_cast<void *>(memFree)},
      {"cuMemAllocAsync", reinterpret_cast<void *>(memAllocAsync)},
      {"cuMemFreeAsync", reinterpret_cast<void *>(memFreeAsync)},
      {"cuMemcpyHtoD_v2", reinterpret_cast<void *>(memcpyHtoD)},
      {"cuMemcpyDtoH_v2", reinterpret_cast<void *>(memcpyDtoH)},
      {"cuPointerGetAttribute", reinterpret_cast<void *>(pointerGetAttribute)},
      {"cuStreamCreate", reinterpret_cast<void *>(streamCreate)},
      {"cuStreamDestroy_v2", reinterpret_cast<void *>(streamDestroy)},
      {"cuStreamSynchronize", reinterpret_cast<void *>(streamSynchronize)},
      {"cuStreamWaitEvent", reinterpret_cast<void *>(streamWaitEvent)},
      {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void *>(exchangeCaptureMode)},
      {"cuEventCreate", reinterpret_cast<void *>(eventCreate)},
      {"cuEventDestroy_v2", reinterpret_cast<void *>(eventDestroy)},
      {"cuEventRecord", reinterpret_cast<void *>(eventRecord)},
      {"cuEventElapsedTime", reinterpret_cast<void *>(eventElapsedTime)},
      {"cuLaunchKernel", reinterpret_cast<void *>(launchKernel)},
      {"cuLaunchKernelEx", reinterpret_cast<void *>(launchKernelEx)},
      {"cuTensorMapEncodeTiled", reinterpret_cast<void *>(encodeTiled)}};
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : found->second;
}
