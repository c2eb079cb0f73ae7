//===- Bundle.h - Compiled patterns as launchers read them ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The structures mirror docs/bundle.md, which says what everything means. What `Bundle::parse` returns is consistent:
// every number that refers to something refers to something that exists and comes early enough.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_RUNTIME_BUNDLE_H
#define SSA_RUNTIME_BUNDLE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ssa::runtime {

enum class DType : uint8_t { I1, I8, I16, I32, I64, F8E4M3FN, F8E5M2, F16, BF16, F32, F64 };

llvm::StringRef getName(DType dtype);

/// Bytes of an element in memory.
int64_t getByteSize(DType dtype);

inline bool isInteger(DType dtype) { return dtype <= DType::I64; }

enum class Access : uint8_t { None, Read, Write, ReadWrite };

/// Numbers that must be met; nullopt where anything will do.
using Extents = llvm::SmallVector<std::optional<int64_t>, 5>;

/// A position in Plan::values.
using ValueNumber = unsigned;

struct Argument {
  std::string name;
  bool isScalar = false;
  DType dtype = DType::F32;
  // Of tensors only.
  Extents shape, strides;
  bool isContiguous = false;
  int64_t alignment = 1;
  Access access = Access::Read;
};

enum class Operation : uint8_t {
  Const,        // constant
  Dim,          // operands: argument, dimension
  Stride,       // operands: argument, dimension
  Scalar,       // operands: argument
  ResultStride, // operands: result, dimension
  Index,        // operands: repeat
  Add,          // this and all that follow: operands are values
  Sub,
  Mul,
  Div,
  Rem,
  FloorDiv,
  CeilDiv,
  Max,
  Min,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Select
};

/// As it stands in a bundle; comparisons by their predicate.
llvm::StringRef getName(Operation operation);

struct PlanValue {
  Operation operation = Operation::Const;
  int64_t constant = 0;
  std::array<unsigned, 3> operands = {0, 0, 0};
};

struct Check {
  enum Kind : uint8_t { Equal, AtMost, Holds } kind = Equal;
  ValueNumber left = 0, right = 0;
  std::string message;
};

struct Buffer {
  enum Kind : uint8_t { Argument, Result, Workspace, View } kind = Argument;
  /// The argument, the result, the value that is an offset in the workspace in bytes, or the buffer that is viewed.
  unsigned number = 0;
  /// Of views, a value: the distance in bytes.
  ValueNumber offset = 0;
  DType dtype = DType::F32;
  llvm::SmallVector<ValueNumber, 5> shape, strides;
};

struct Result {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<ValueNumber, 5> shape;
  bool isContiguous = false;
  int64_t alignment = 1;
  unsigned buffer = 0;
  /// False if it is (part of) an argument or an earlier result, and needs no memory of its own.
  bool isOwned = true;
};

struct KernelArgument {
  enum Kind : uint8_t { Pointer, Integer, Float, ScalarFloat, TensorMap } kind = Pointer;
  /// Of integers and floats.
  DType dtype = DType::I64;
  /// The buffer, the value, the scalar argument, or the tensor map.
  unsigned number = 0;
  /// Of `Float`.
  double constant = 0;
};

struct Launch {
  std::string kernel;
  std::array<ValueNumber, 3> grid;
  std::array<int64_t, 3> block, cluster = {1, 1, 1};
  bool hasCluster = false;
  bool isDependent = false; // the kernel waits by itself for those before it
  ValueNumber shared = 0;
  std::optional<ValueNumber> condition;
  std::vector<KernelArgument> arguments;
};

/// The enumerations of cuTensorMapEncodeTiled are kept as the driver's numbers.
struct TensorMap {
  unsigned buffer = 0;
  llvm::SmallVector<int64_t, 5> box;
  unsigned swizzle = 0, l2Promotion = 0, fill = 0, interleave = 0;
};

struct Repeat {
  ValueNumber count = 0;
  /// Half-open ranges of values and launches.
  std::array<unsigned, 2> values, launches;
  /// Up to this many runs that follow one another may be under way at a time.
  unsigned lanes = 1;
};

struct Plan {
  std::string entry;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  std::vector<PlanValue> values;
  unsigned numInputs = 0;
  std::vector<Check> checks;
  std::vector<Buffer> buffers;
  ValueNumber workspaceBytes = 0;
  int64_t workspaceAlignment = 256;
  std::vector<TensorMap> tensorMaps;
  std::vector<Repeat> repeats;
  std::vector<Launch> launches;
};

struct Target {
  std::string chip, ptxVersion, ptx;
  std::vector<Plan> entries;

  /// Null if there is none of that name.
  const Plan *findEntry(llvm::StringRef name) const;
};

struct Bundle {
  std::vector<Target> targets;

  /// Reads the text of a bundle; `name` is what messages call it, say the path of its file.
  static llvm::Expected<Bundle> parse(llvm::StringRef text, llvm::StringRef name);

  /// The target to run on a device of this compute capability, by the rules of docs/bundle.md. Null if none runs there.
  const Target *findTarget(int major, int minor) const;

  /// "sm_90a, sm_100".
  std::string listChips() const;
};

/// An error without a code.
llvm::Error makeError(const llvm::Twine &message);

} // namespace mlir::ssa::runtime

#endif // SSA_RUNTIME_BUNDLE_H
