//===- Launcher.h - Bundles on a device -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_RUNTIME_LAUNCHER_H
#define SSA_RUNTIME_LAUNCHER_H

#include "ssa/Runtime/Call.h"
#include "ssa/Runtime/Driver.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <mutex>

namespace mlir::ssa::runtime {

/// A GPU and its primary context, which is kept until the device is destroyed.
class Device {
public:
  static llvm::Expected<std::unique_ptr<Device>> open(int ordinal);

  /// The simulator of a chip, "sm_90a", as a device.
  static llvm::Expected<std::unique_ptr<Device>> simulate(llvm::StringRef chip);

  ~Device();
  Device(const Device &) = delete;

  const Driver &getDriver() const { return driver; }
  Context getContext() const { return context; }
  int getOrdinal() const { return ordinal; }
  int getMajor() const { return major; }
  int getMinor() const { return minor; }

  /// "device 0 (NVIDIA H200)".
  std::string describe() const;

  /// "sm_90".
  std::string getChip() const { return "sm_" + std::to_string(major * 10 + minor); }

  /// The chip to compile for: "sm_90a", with all that the device has, or the one that is simulated.
  std::string getBestChip() const;

  /// What of a bundle runs here. The simulator prefers code for just the chip that it simulates. Null if nothing does.
  const Target *findTarget(const Bundle &bundle) const;

  /// Bytes of shared memory that a block gets without being asked for, and at most.
  int getDefaultSharedBytes() const { return defaultSharedBytes; }
  int getMaxSharedBytes() const { return maxSharedBytes; }

  /// Streams for work beside that of a caller's stream, the same for all calls on it: one that captures a graph has those for itself. The
  /// context is current.
  llvm::Expected<std::vector<Stream>> getStreamsBeside(Stream stream, unsigned count) const;

  /// Has `stream` wait for what is queued on `producer`; the host waits for nothing. The context is current.
  llvm::Error waitFor(Stream stream, Stream producer, const llvm::Twine &whose) const;

  /// An error unless the array, if it has elements, starts in memory of this device. `what` is "argument 'q'".
  llvm::Error checkMemory(const llvm::Twine &what, const ArrayView &array) const;

private:
  explicit Device(const Driver &driver, int ordinal) : driver(driver), ordinal(ordinal) {}
  static llvm::Expected<std::unique_ptr<Device>> open(const Driver &driver, int ordinal);
  llvm::Error initialize();

  const Driver &driver;
  Context context = nullptr;
  std::string name;
  int ordinal, handle = 0, major = 0, minor = 0, defaultSharedBytes = 0, maxSharedBytes = 0;
  mutable std::mutex mutex; // of what follows
  mutable std::map<Stream, std::vector<Stream>> beside;
};

/// Makes the context of a device current in this thread, as long as it lives.
class ContextScope {
public:
  explicit ContextScope(const Device &device);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;

  /// Whether that went well; to be taken once.
  llvm::Error takeError() { return std::move(error); }

private:
  const Driver &driver;
  llvm::Error error;
  bool isPushed;
};

/// The target of a bundle that suits a device, loaded there. Safe to use from several threads; refers to the device and
/// the bundle.
class Program {
public:
  /// `name` is what messages call the bundle.
  static llvm::Expected<std::unique_ptr<Program>> load(const Device &device, const Bundle &bundle,
                                                       llvm::StringRef name);
  ~Program();
  Program(const Program &) = delete;

  const Target &getTarget() const { return target; }

  /// Queues a call, whose results have been set, on a stream. Waits for nothing, copies nothing, and may be captured in
  /// a graph. `workspace` is as many bytes as the call asks for, not used by anything else until the stream gets past
  /// this. Nothing is launched unless all of it can be, as far as can be known before.
  llvm::Error launch(Call &call, uint64_t workspace, Stream stream);

private:
  struct Kernel {
    Function function = nullptr;
    int staticBytes = 0, maxDynamicBytes = 0;
    bool hasLargeClusters = false;
  };

  Program(const Device &device, const Target &target) : device(device), target(target) {}
  llvm::Error loadModule();
  llvm::Expected<Kernel *> prepare(const ReadyLaunch &launch);
  llvm::Error encode(const ReadyLaunch::Map &map, const TensorMap &parameters, uint8_t *out) const;
  llvm::Error launch(const ReadyLaunch &launch, Function function, Stream stream) const;

  const Device &device;
  const Target &target;
  Module module = nullptr;
  std::mutex mutex; // of what follows
  llvm::StringMap<Kernel> kernels;
};

} // namespace mlir::ssa::runtime

#endif // SSA_RUNTIME_LAUNCHER_H
