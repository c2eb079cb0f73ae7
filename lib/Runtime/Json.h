//===- Json.h - Checked reading of JSON -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions that read return false after they have reported to the path what is wrong. A path needs its parents to
// live.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_RUNTIME_JSON_H
#define SSA_LIB_RUNTIME_JSON_H

#include "ssa/Runtime/Bundle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include <limits>

namespace mlir::ssa::runtime {

using llvm::StringLiteral;
using llvm::StringRef;
using llvm::json::Path;
using llvm::json::Value;

std::optional<DType> findDType(StringRef name);

/// The operation of this name; a comparison is found by its predicate.
std::optional<Operation> findOperation(StringRef name);

/// Reads a plan.
bool readPlan(const Value &json, Plan &plan, Path path);

inline bool fail(Path path, StringLiteral message) {
  path.report(message);
  return false;
}

/// The member of an object that must be there.
inline const Value *getMember(const llvm::json::Object &object, StringLiteral key, Path path) {
  const Value *member = object.get(key);
  if (!member)
    path.field(key).report("missing value");
  return member;
}

inline const llvm::json::Object *getObject(const Value &json, Path path) {
  if (!json.getAsObject())
    path.report("expected object");
  return json.getAsObject();
}

inline bool readString(const Value &json, std::string &out, Path path) { return fromJSON(json, out, path); }

/// An integer in [low, high].
inline bool readInteger(const Value &json, int64_t &out, int64_t low, int64_t high, Path path) {
  if (!fromJSON(json, out, path))
    return false;
  return (out >= low && out <= high) || fail(path, "number out of range");
}

/// A number below `bound` of something that the plan has that many of.
inline bool readNumber(const Value &json, unsigned &out, size_t bound, Path path) {
  int64_t number;
  if (!fromJSON(json, number, path))
    return false;
  out = number;
  return (number >= 0 && number < int64_t(bound)) || fail(path, "reference to what does not exist");
}

/// Reads all elements of an array with `readOne(json, out, path)`.
template <typename List, typename ReadOne>
bool readList(const Value &json, List &out, Path path, ReadOne readOne) {
  const llvm::json::Array *array = json.getAsArray();
  if (!array)
    return fail(path, "expected array");
  for (auto [i, element] : llvm::enumerate(*array)) {
    out.emplace_back();
    if (!readOne(element, out.back(), path.index(i)))
      return false;
  }
  return true;
}

/// A member that is an array. One that may be missing is read as an empty one.
template <typename List, typename ReadOne>
bool readMember(const llvm::json::Object &object, StringLiteral key, List &out, Path path, ReadOne readOne,
                bool isOptional = false) {
  if (isOptional && !object.get(key))
    return true;
  const Value *member = getMember(object, key, path);
  return member && readList(*member, out, path.field(key), readOne);
}

inline bool readMember(const llvm::json::Object &object, StringLiteral key, std::string &out, Path path) {
  const Value *member = getMember(object, key, path);
  return member && readString(*member, out, path.field(key));
}

inline bool readMember(const llvm::json::Object &object, StringLiteral key, unsigned &out, size_t bound, Path path) {
  const Value *member = getMember(object, key, path);
  return member && readNumber(*member, out, bound, path.field(key));
}

inline bool readMember(const llvm::json::Object &object, StringLiteral key, DType &out, Path path) {
  std::string name;
  if (!readMember(object, key, name, path))
    return false;
  std::optional<DType> dtype = findDType(name);
  if (dtype)
    out = *dtype;
  return dtype || fail(path.field(key), "unknown dtype");
}

/// Exactly three of what `readOne` reads.
template <typename T, typename ReadOne>
bool readTriple(const llvm::json::Object &object, StringLiteral key, std::array<T, 3> &out, Path path,
                ReadOne readOne) {
  llvm::SmallVector<T, 3> list;
  if (!readMember(object, key, list, path, readOne))
    return false;
  if (list.size() != 3)
    return fail(path.field(key), "expected 3 elements");
  std::copy(list.begin(), list.end(), out.begin());
  return true;
}

inline bool readAlignment(const llvm::json::Object &object, int64_t &out, Path path) {
  const Value *member = getMember(object, "alignment", path);
  if (!member || !readInteger(*member, out, 1, 1 << 20, path.field("alignment")))
    return false;
  return !(out & (out - 1)) || fail(path.field("alignment"), "expected a power of two");
}

/// An extent of at least 0, or null.
inline bool readExtent(const Value &json, std::optional<int64_t> &out, Path path) {
  if (json.getAsNull())
    return true;
  int64_t extent;
  if (!readInteger(json, extent, 0, std::numeric_limits<int64_t>::max(), path))
    return false;
  out = extent;
  return true;
}

} // namespace mlir::ssa::runtime

#endif // SSA_LIB_RUNTIME_JSON_H
