//===- Driver.cpp - Opens the CUDA driver ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Driver.h"
#include "ssa/Simulator/Driver.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/DynamicLibrary.h"
#include <cstdlib>
#include <mutex>

using namespace mlir::ssa::runtime;
using llvm::Twine;

llvm::Error Driver::check(int result, const Twine &what) const {
  if (!result)
    return llvm::Error::success();
  const char *name = nullptr, *text = nullptr;
  table.getErrorName(result, &name);
  table.getErrorString(result, &text);
  std::string number = std::to_string(result);
  return makeError("cannot " + what + ": " + (name ? name : "CUresult " + number) + (text ? " (" : "") +
                   (text ? text : "") + (text ? ")" : ""));
}

std::string Driver::getVersionText() const {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

llvm::Error Driver::open() {
  const char *override = std::getenv("SSA_LIBCUDA");
  const char *name = override && *override ? override : "libcuda.so.1";
  std::string reason;
  auto library = llvm::sys::DynamicLibrary::getPermanentLibrary(name, &reason);
  if (!library.isValid())
    return makeError(Twine(name) + " cannot be opened: " + reason +
                     "; running on a GPU needs the NVIDIA driver (SSA_LIBCUDA may name its library)");
  return findFunctions(name, [&](const char *symbol) { return library.getAddressOfSymbol(symbol); });
}

llvm::Error Driver::openSimulator(llvm::StringRef chip) {
  if (!sim::setChip(std::string_view(chip.data(), chip.size())))
    return makeError("the simulator knows no chip '" + chip + "'");
  simulatedChip = chip.str();
  return findFunctions("the simulator", [](const char *symbol) { return sim::findEntryPoint(symbol); });
}

void Driver::nameMemory(DevicePointer pointer, const Twine &name) const {
  if (!simulatedChip.empty())
    sim::nameMemory(pointer, name.str());
}

/// Fills the table of functions from a library.
llvm::Error Driver::findFunctions(llvm::StringRef name, llvm::function_ref<void *(const char *)> find) {
  struct Entry {
    const char *name;
    void **function;
    bool isOptional = false;
  };
#define ENTRY(symbol, member)                                                                                          \
  { symbol, reinterpret_cast<void **>(&table.member) }
  const Entry entries[] = {
      ENTRY("cuInit", init),
      ENTRY("cuDriverGetVersion", driverGetVersion),
      ENTRY("cuGetErrorName", getErrorName),
      ENTRY("cuGetErrorString", getErrorString),
      ENTRY("cuDeviceGetCount", deviceGetCount),
      ENTRY("cuDeviceGet", deviceGet),
      ENTRY("cuDeviceGetName", deviceGetName),
      ENTRY("cuDeviceGetAttribute", deviceGetAttribute),
      ENTRY("cuDevicePrimaryCtxRetain", primaryCtxRetain),
      ENTRY("cuDevicePrimaryCtxRelease_v2", primaryCtxRelease),
      ENTRY("cuCtxPushCurrent_v2", ctxPushCurrent),
      ENTRY("cuCtxPopCurrent_v2", ctxPopCurrent),
      ENTRY("cuModuleLoadDataEx", moduleLoadDataEx),
      ENTRY("cuModuleUnload", moduleUnload),
      ENTRY("cuModuleGetFunction", moduleGetFunction),
      ENTRY("cuFuncGetAttribute", funcGetAttribute),
      ENTRY("cuFuncSetAttribute", funcSetAttribute),
      ENTRY("cuMemAlloc_v2", memAlloc),
      ENTRY("cuMemFree_v2", memFree),
      ENTRY("cuMemcpyHtoD_v2", memcpyHtoD),
      ENTRY("cuMemcpyDtoH_v2", memcpyDtoH),
      ENTRY("cuPointerGetAttribute", pointerGetAttribute),
      ENTRY("cuStreamCreate", streamCreate),
      ENTRY("cuStreamDestroy_v2", streamDestroy),
      ENTRY("cuStreamSynchronize", streamSynchronize),
      ENTRY("cuStreamWaitEvent", streamWaitEvent),
      ENTRY("cuThreadExchangeStreamCaptureMode", threadExchangeStreamCaptureMode),
      ENTRY("cuEventCreate", eventCreate),
      ENTRY("cuEventDestroy_v2", eventDestroy),
      ENTRY("cuEventRecord", eventRecord),
      ENTRY("cuEventElapsedTime", eventElapsedTime),
      ENTRY("cuLaunchKernel", launchKernel),
      {"cuLaunchKernelEx", reinterpret_cast<void **>(&table.launchKernelEx), true},
      {"cuTensorMapEncodeTiled", reinterpret_cast<void **>(&table.tensorMapEncodeTiled), true},
  };
#undef ENTRY
  for (const Entry &entry : entries) {
    *entry.function = find(entry.name);
    if (!*entry.function && !entry.isOptional)
      return makeError(Twine(name) + " has no " + entry.name + "; update the NVIDIA driver");
  }
  return initialize();
}

llvm::Error Driver::initialize() {
  if (llvm::Error error = check(table.init(0), "initialize the CUDA driver"))
    return error;
  if (llvm::Error error = check(table.driverGetVersion(&version), "ask the CUDA driver for its version"))
    return error;
  return check(table.deviceGetCount(&numDevices), "count CUDA devices");
}

/// Opens the one driver of a kind, at the first call; `open` is a member of Driver and its arguments.
template <typename Open>
static llvm::Expected<const Driver &> openOnce(Driver &driver, std::string &error, std::once_flag &once, Open open) {
  std::call_once(once, [&] {
    if (llvm::Error failure = open(driver))
      error = llvm::toString(std::move(failure));
  });
  if (!error.empty())
    return makeError(error);
  return driver;
}

llvm::Expected<const Driver &> Driver::get() {
  static Driver driver;
  static std::string error;
  static std::once_flag once;
  return openOnce(driver, error, once, [](Driver &d) { return d.open(); });
}

llvm::Expected<const Driver &> Driver::simulate(llvm::StringRef chip) {
  static Driver driver;
  static std::string error;
  static std::once_flag once;
  return openOnce(driver, error, once, [&](Driver &d) { return d.openSimulator(chip); });
}
