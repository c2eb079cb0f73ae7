//===- Driver.cpp - Opens the CUDA driver ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Driver.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/DynamicLibrary.h"
#include <cstdlib>

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
      ENTRY("cuStreamSynchronize", streamSynchronize),
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
    *entry.function = library.getAddressOfSymbol(entry.name);
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

llvm::Expected<const Driver &> Driver::get() {
  struct State {
    Driver driver;
    std::string error;
    State() {
      if (llvm::Error failure = driver.open())
        error = llvm::toString(std::move(failure));
    }
  };
  static const State state;
  if (!state.error.empty())
    return makeError(state.error);
  return state.driver;
}
