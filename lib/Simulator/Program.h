//===- Program.h - Decoded PTX ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel is an array of instructions whose operands are byte offsets into the registers of a warp. A register holds
// the values of all 32 lanes side by side; a predicate is one mask of 32 bits. Constants and special registers look
// like registers: constants lie in a table of the kernel (negative offsets), special registers among the registers.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_PROGRAM_H
#define SSA_LIB_SIMULATOR_PROGRAM_H

#include "ssa/Simulator/Simulator.h"
#include <map>
#include <unordered_map>

namespace mlir::ssa::sim {

constexpr unsigned numLanes = 32;

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };

/// Generic addresses of shared and local memory and of parameters lie in windows that are no global memory.
constexpr uint64_t sharedWindow = uint64_t(0x7e) << 40, localWindow = uint64_t(0x7d) << 40,
                   paramWindow = uint64_t(0x7c) << 40, windowBytes = 1u << 29;
/// An address of shared::cluster: the number of the block in the cluster plus 1 stands above the address there; 0 is
/// the block itself.
constexpr unsigned rankShift = 24;
constexpr uint32_t rankMask = (1u << rankShift) - 1; // what is below
/// Where shared memory begins in its own window; below is what the system keeps for itself.
constexpr uint32_t sharedBase = 1024;

class Warp;
struct Instruction;
using Handler = void (*)(Warp &, const Instruction &);

constexpr int32_t noRegister = INT32_MIN;

/// How undefined values pass through an instruction, see Undefined.cpp.
enum class Flow : uint8_t { All, Halves, Select, And, Or, Load, Store, Shuffle, Product, Use };

struct Instruction {
  Handler run = nullptr;
  /// Destination first. What each is depends on the handler.
  std::array<int32_t, 6> operands = {noRegister, noRegister, noRegister, noRegister, noRegister, noRegister};
  int32_t guard = noRegister;
  bool isGuardNegated = false;
  /// Needs all lanes of its mask (operand `maskOperand`, or all live ones if that is -1) to come together.
  bool isCollective = false;
  /// Runs even if no lane does: control flow.
  bool isControl = false;
  /// Copies registers and does nothing else. The assembler gives both the same place where it can.
  bool isCopy = false;
  Flow flow = Flow::All;
  int8_t maskOperand = -1;
  Space space = Space::Generic;
  /// Of accesses and fences: an Order, and whether it reaches beyond the cluster.
  uint8_t order = 0;
  bool isWide = true;
  /// Bytes of an element and number of elements of memory accesses.
  uint8_t width = 0, count = 1;
  /// The displacement of an address, the target of a branch, or a plain number.
  int64_t immediate = 0;
  /// A second number and flags; their meaning belongs to the handler.
  uint32_t extra = 0, flags = 0;
  /// A range of Kernel::lists: vectors and fragments.
  uint32_t list = 0, listLength = 0;
  /// Ranges of Kernel::touched: registers that are written, and read.
  uint32_t writes = 0, reads = 0, touchedEnd = 0;
  uint32_t line = 0;
};

struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0, alignment = 1;
};

struct Variable {
  Space space = Space::Shared;
  uint64_t offset = 0, bytes = 0, alignment = 1;
  std::vector<uint8_t> initial;
};

/// A special register whose value differs between blocks or warps.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ, // in this order
  Lane,
  WarpId,
  NumWarps,
  SmId,
  NumSms,
  MaskEq,
  MaskLt,
  MaskLe,
  MaskGt,
  MaskGe,
  Clock,
  Clock64,
  GlobalTimer,
  DynamicSharedBytes,
  TotalSharedBytes,
  ClusterRank,
  ClusterSize,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NumClustersX,
  NumClustersY,
  NumClustersZ,
  GridId,
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<int32_t> lists, touched;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  /// Bytes of all registers of a warp, and the constants that negative offsets reach, from the end.
  uint32_t registerBytes = 0;
  std::vector<uint8_t> constants;
  struct SpecialRegister {
    Special kind;
    int32_t offset;
    bool isWide;
  };
  std::vector<SpecialRegister> specials;
  std::map<int32_t, std::string> registerNames;
  int64_t sharedBytes = 0; // without the dynamic part
  std::map<std::string, Variable> sharedVariables;
  int64_t localBytes = 0;
  std::array<uint32_t, 3> requiredBlock = {0, 0, 0}, maxBlock = {0, 0, 0}, requiredCluster = {0, 0, 0};
  uint32_t maxRegisters = 0, minBlocks = 1; // of the tuning directives; 0 if it says nothing

  /// Registers of a thread when a block of that many threads starts, as far as the directives say.
  uint32_t registersAtStart(unsigned numThreads) const;
  bool usesWgmma = false, usesMbarrier = false, usesTensorMemory = false, usesBulkStores = false;
  int tensorGroup = 0; // cta_group of its tcgen05, 0 for none
  /// Has instructions whose results land in registers later.
  bool hasAsyncResults() const { return usesWgmma || usesTensorMemory; }
};

struct Module::Contents {
  std::vector<std::string> lines; // of the text, for messages
  std::string target;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::map<std::string, Variable> variables; // global and constant
  int64_t constantBytes = 0;
  std::vector<uint8_t> constantMemory;

  /// The instruction at a line as one line of text.
  std::string describe(unsigned line) const;
};

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_PROGRAM_H
