//===- Decoder.h - From statements to instructions --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_DECODER_H
#define SSA_LIB_SIMULATOR_DECODER_H

#include "Program.h"
#include "Text.h"

namespace mlir::ssa::sim {

/// What a register holds in each lane.
enum class Class : uint8_t { Predicate, Half, Word, Double, None };

constexpr unsigned bytesOf(Class kind) {
  return kind <= Class::Half   ? 64
         : kind == Class::Word ? 128
                               : 256; // a predicate fills its place for the sake of numbering
}

class Decoder;
using DecodeFunction = bool (*)(Decoder &);

/// A row of the instruction tables: one spelling, what it does, and what it takes.
struct Row {
  Handler run;
  Class result;
  std::vector<Class> arguments;
};

struct Tables {
  /// By the whole spelling.
  std::unordered_map<std::string, Row> rows;
  /// By the part before the first dot: instructions with many suffixes, which a function reads.
  std::unordered_map<std::string, DecodeFunction> families;

  static const Tables &get();
};

void addIntegerRows(Tables &tables);
void addFloatRows(Tables &tables);
void addPackedRows(Tables &tables);
void addMoves(Tables &tables);
void addConversions(Tables &tables);
void addComparisons(Tables &tables);
void addControl(Tables &tables);
void addWarpOperations(Tables &tables);
void addBarriers(Tables &tables);
void addAccesses(Tables &tables);
void addAsyncCopies(Tables &tables);
void addMatrixOperations(Tables &tables);
void addWarpgroupOperations(Tables &tables);
void addTensorOperations(Tables &tables);
void addClusterOperations(Tables &tables);

/// Decodes the statements of one kernel. Functions that return bool return false after `fail`.
class Decoder {
public:
  Decoder(Module::Contents &module, Kernel &kernel, std::string &error)
      : module(module), kernel(kernel), error(error) {}

  Module::Contents &module;
  Kernel &kernel;
  const Statement *statement = nullptr;
  /// The mnemonic, split at dots, without what `take` took.
  std::vector<std::string_view> parts;
  Instruction instruction;

  bool fail(const std::string &message);

  // Names.
  bool declareRegisters(Class kind, std::string_view name, int64_t count, bool isRange);
  void openScope() { scopes.emplace_back(); }
  void closeScope() { scopes.pop_back(); }
  void addLabel(std::string_view name);
  bool decode(const Statement &statement);
  /// Resolves labels, once all is decoded.
  bool finish();

  // For decode functions.
  size_t numOperands() const { return statement->operands.size(); }
  const Operand &operand(size_t number) const { return statement->operands[number]; }
  /// Removes a suffix; false if it is not there.
  bool take(std::string_view part);
  /// Removes the first of the suffixes that is there and returns its number; `otherwise` if none is.
  int takeOneOf(std::initializer_list<std::string_view> names, int otherwise = -1);
  bool expectOperands(size_t least, size_t most);
  /// An error if suffixes are left over.
  bool expectNoParts();
  /// The register or constant that an operand is. `kind` None takes any class and returns it.
  bool source(const Operand &operand, Class &kind, int32_t &offset);
  bool source(size_t number, Class kind, unsigned slot);
  bool destination(const Operand &operand, Class &kind, int32_t &offset);
  bool destination(size_t number, Class kind, unsigned slot);
  bool number(size_t operand, int64_t &value);
  /// Registers of a vector, or of a single register, appended to the lists of the kernel.
  bool vector(const Operand &operand, Class kind, bool isWritten, unsigned &count);
  /// [register + displacement] or [variable + displacement]: the base goes to the slot, the rest to `immediate`.
  bool address(size_t number, Space space, unsigned slot);
  /// [register + displacement] of tensor memory.
  bool tensorAddress(size_t number, unsigned slot, int64_t &displacement);
  /// All tcgen05 of a kernel are for the same number of blocks.
  bool takeGroup(int number);
  /// Records that an operand is read or written, for the checks on registers in flight.
  void touch(int32_t offset, bool isWritten);
  int32_t constant(Class kind, uint64_t value);
  Class classOf(std::string_view registerName) const;

private:
  struct Register {
    Class kind;
    int32_t offset;
  };
  const Register *find(std::string_view name);
  bool special(std::string_view name, Register &found);
  bool decodeRow(const Row &row);
  bool variable(std::string_view name, int64_t displacement, uint64_t &value, bool isGeneric);

  std::string &error;
  std::vector<std::unordered_map<std::string_view, Register>> scopes =
      std::vector<std::unordered_map<std::string_view, Register>>(1);
  std::unordered_map<std::string_view, uint32_t> labels;
  struct Branch {
    size_t instruction;
    std::string_view label;
  };
  std::vector<Branch> branches;
  std::map<std::pair<int, uint64_t>, int32_t> constantsSeen;
  std::map<std::string, Register> specialsSeen;
  std::vector<int32_t> written, read;

public:
  void addBranch(std::string_view label) { branches.push_back({kernel.code.size(), label}); }
};

/// barrier.cluster.
bool decodeClusterBarrier(Decoder &decoder);
/// cp.async.bulk, and cp.reduce.async.bulk.
bool decodeBulkCopy(Decoder &decoder, bool isReduction);
/// tcgen05.mma, cp, shift and commit.
bool decodeTensorWork(Decoder &decoder, std::string_view operation);

/// The class of a type's name: b32, u32, s32, f32, .. None if it is no type of a register.
Class classOfType(std::string_view type);
/// Bytes of a type in memory; 0 if it is none.
unsigned bytesOfType(std::string_view type);

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_DECODER_H
