//===- Driver.h - The CUDA driver -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_RUNTIME_DRIVER_H
#define SSA_RUNTIME_DRIVER_H

#include "ssa/Runtime/Bundle.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace mlir::ssa::runtime {

/// Handles of the driver; `Stream` is the caller's, null being the legacy default stream.
using Context = void *;
using Module = void *;
using Function = void *;
using Stream = void *;
using Event = void *;
using DevicePointer = uint64_t;

/// As cuLaunchKernelEx takes them.
struct LaunchAttribute {
  uint32_t id;
  uint32_t pad = 0;
  uint32_t value[16] = {};
};
struct LaunchConfig {
  uint32_t grid[3], block[3], sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  uint32_t numAttributes;
};

/// The entry points that are used here. They return a CUresult, 0 on success; Driver::check turns it into an error.
/// The last group is null where the driver is too old for it.
struct DriverFunctions {
  int (*init)(unsigned flags);
  int (*driverGetVersion)(int *version);
  int (*getErrorName)(int error, const char **name);
  int (*getErrorString)(int error, const char **text);
  int (*deviceGetCount)(int *count);
  int (*deviceGet)(int *device, int ordinal);
  int (*deviceGetName)(char *name, int length, int device);
  int (*deviceGetAttribute)(int *value, int attribute, int device);
  int (*primaryCtxRetain)(Context *context, int device);
  int (*primaryCtxRelease)(int device);
  int (*ctxPushCurrent)(Context context);
  int (*ctxPopCurrent)(Context *context);
  int (*moduleLoadDataEx)(Module *module, const void *image, unsigned numOptions, int *options, void **values);
  int (*moduleUnload)(Module module);
  int (*moduleGetFunction)(Function *function, Module module, const char *name);
  int (*funcGetAttribute)(int *value, int attribute, Function function);
  int (*funcSetAttribute)(Function function, int attribute, int value);
  int (*memAlloc)(DevicePointer *pointer, size_t bytes);
  int (*memFree)(DevicePointer pointer);
  int (*memcpyHtoD)(DevicePointer to, const void *from, size_t bytes);
  int (*memcpyDtoH)(void *to, DevicePointer from, size_t bytes);
  int (*pointerGetAttribute)(void *data, int attribute, DevicePointer pointer);
  int (*streamCreate)(Stream *stream, unsigned flags);
  int (*streamDestroy)(Stream stream);
  int (*streamSynchronize)(Stream stream);
  int (*streamWaitEvent)(Stream stream, Event event, unsigned flags);
  int (*threadExchangeStreamCaptureMode)(int *mode);
  int (*eventCreate)(Event *event, unsigned flags);
  int (*eventDestroy)(Event event);
  int (*eventRecord)(Event event, Stream stream);
  int (*eventElapsedTime)(float *milliseconds, Event start, Event end);
  int (*launchKernel)(Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters,
                      void **extra);

  int (*launchKernelEx)(const LaunchConfig *config, Function function, void **parameters, void **extra);
  int (*tensorMapEncodeTiled)(void *map, int dtype, uint32_t rank, void *address, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides,
                              int interleave, int swizzle, int l2Promotion, int fill);
};

/// The driver, opened and initialized, or the simulator in its place. Lives until the process ends.
class Driver {
public:
  /// The simulator of a chip, "sm_90a". The first call decides which, for all later ones too.
  static llvm::Expected<const Driver &> simulate(llvm::StringRef chip);

  /// The chip that is simulated; empty for GPUs.
  llvm::StringRef getSimulatedChip() const { return simulatedChip; }

  /// What messages of the simulator call an allocation; nothing happens on a GPU.
  void nameMemory(DevicePointer pointer, const llvm::Twine &name) const;

  /// Opens `libcuda.so.1`, or the library that the environment variable SSA_LIBCUDA names. The first call decides, for
  /// all later ones too; safe to call from several threads.
  static llvm::Expected<const Driver &> get();

  const DriverFunctions &functions() const { return table; }

  /// 12090 for CUDA 12.9.
  int getVersion() const { return version; }

  /// "12.9".
  std::string getVersionText() const;

  int getNumDevices() const { return numDevices; }

  /// An error "cannot `what`: CUDA_ERROR_.. (its meaning)" unless `result` is 0.
  llvm::Error check(int result, const llvm::Twine &what) const;

private:
  Driver() = default;
  llvm::Error open();
  llvm::Error openSimulator(llvm::StringRef chip);
  llvm::Error findFunctions(llvm::StringRef library, llvm::function_ref<void *(const char *)> find);
  llvm::Error initialize();

  DriverFunctions table = {};
  std::string simulatedChip;
  int version = 0, numDevices = 0;
};

/// Results of the driver that need words of their own.
enum DriverResult {
  invalidValue = 1,
  noBinaryForGPU = 209,
  unsupportedPTXVersion = 222,
  functionNotFound = 500,
};

enum DeviceAttribute {
  sharedMemoryPerBlock = 8,
  computeCapabilityMajor = 75,
  computeCapabilityMinor = 76,
  sharedMemoryPerBlockOptin = 97,
};

enum FunctionAttribute {
  staticSharedBytes = 1,
  maxDynamicSharedBytes = 8,
  nonPortableClusterSizeAllowed = 14,
};

} // namespace mlir::ssa::runtime

#endif // SSA_RUNTIME_DRIVER_H
