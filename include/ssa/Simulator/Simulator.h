//===- Simulator.h - Runs PTX on the CPU ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A functional simulator of PTX kernels, which checks what hardware does not: docs/simulator.md says what. Plain C++
// without MLIR and LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_SIMULATOR_SIMULATOR_H
#define SSA_SIMULATOR_SIMULATOR_H

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlir::ssa::sim {

/// Something wrong with a kernel, seen while it ran.
struct Fault {
  /// Stable name of the kind: "out-of-bounds", "race", ..
  std::string kind;
  std::string message;
  std::string kernel;
  /// Line of the PTX text and what stands there.
  unsigned line = 0;
  std::string instruction;
  /// Where it was seen first, and how often this kind was seen at this line.
  uint64_t block = 0;
  unsigned thread = 0;
  uint64_t count = 1;

  /// "ssa_pool: line 41 'ld.global.b32 %r1, [%rd1]': race: .. (block 3, thread 17; seen 12 times)".
  std::string format() const;
};

/// A PTX module, parsed. Kernels are decoded once and can run on several threads.
class Module {
public:
  /// Null, and `error` is set ("line 12 'foo.b32 %r1': .."), if something is not valid or not known.
  static std::unique_ptr<Module> parse(std::string_view text, std::string &error);
  ~Module();

  std::vector<std::string> getKernelNames() const;
  bool hasKernel(const std::string &name) const;

  /// The size of block that the kernel wants; one thread if it takes any.
  std::array<uint32_t, 3> getRequiredBlock(const std::string &kernel) const;

  /// Where its parameters begin in the parameter block, in order.
  std::vector<uint32_t> getParameterOffsets(const std::string &kernel) const;

  /// Bytes of shared memory that the kernel declares.
  int64_t getStaticSharedBytes(const std::string &kernel) const;

  struct Contents;
  const Contents &contents() const { return *data; }

private:
  Module() = default;
  std::unique_ptr<Contents> data;
};

/// Device memory. Addresses are not those of the host and the same in every run.
class Memory {
public:
  Memory();
  ~Memory();

  /// 0 for 0 bytes. The contents are undefined: reading them is a fault until they have been written.
  uint64_t allocate(int64_t bytes);
  bool free(uint64_t address);

  /// What messages call the allocation, say "argument 'q'".
  void setName(uint64_t address, std::string name);

  /// False if that is no memory.
  bool write(uint64_t address, const void *from, int64_t bytes);
  bool read(uint64_t address, void *to, int64_t bytes) const;
  bool contains(uint64_t address) const;

  /// The first byte that nothing has written, counted from the address; -1 if there is none.
  int64_t findUndefined(uint64_t address, int64_t bytes) const;

  struct Contents;
  Contents &contents() const { return *data; }

private:
  std::unique_ptr<Contents> data;
};

struct LaunchConfig {
  std::string kernel;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  /// The parameter block, laid out as the kernel's parameters are.
  std::vector<uint8_t> parameters;
};

struct Settings {
  /// 0 for all cores.
  unsigned numThreads = 0;
  /// Off: only what the execution itself cannot do without.
  bool checks = true;
  /// Different faults after which a launch ends.
  unsigned maxFaults = 20;
  /// Instructions of warps that one block may execute, 0 for no limit.
  uint64_t maxInstructionsPerBlock = 0;
  /// Is told now and then how many blocks of how many are done.
  std::function<void(const std::string &kernel, uint64_t done, uint64_t total)> progress;
};

struct Statistics {
  uint64_t threadInstructions = 0, warpInstructions = 0, blocks = 0;
  double seconds = 0; // of processor time, all cores together
};

/// Runs a kernel. What could not be started is a fault too (kind "launch").
std::vector<Fault> launch(const Module &module, Memory &memory, const LaunchConfig &config, const Settings &settings,
                          Statistics *statistics = nullptr);

} // namespace mlir::ssa::sim

#endif // SSA_SIMULATOR_SIMULATOR_H
