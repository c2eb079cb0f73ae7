//===- Bundle.cpp - Bundles and the targets in them -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// python/ssa/_bundle.py reads the same, with the same messages.
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::ssa::runtime;

llvm::Error mlir::ssa::runtime::makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static constexpr std::pair<StringLiteral, int64_t> dtypes[] = {
    {"i1", 1},     {"i8", 1},  {"i16", 2},  {"i32", 4}, {"i64", 8}, {"f8e4m3fn", 1},
    {"f8e5m2", 1}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8},
};

StringRef mlir::ssa::runtime::getName(DType dtype) { return dtypes[unsigned(dtype)].first; }

int64_t mlir::ssa::runtime::getByteSize(DType dtype) { return dtypes[unsigned(dtype)].second; }

std::optional<DType> mlir::ssa::runtime::findDType(StringRef name) {
  for (auto [i, entry] : llvm::enumerate(dtypes))
    if (entry.first == name)
      return DType(i);
  return std::nullopt;
}

static constexpr StringLiteral operationNames[] = {
    "const", "dim", "stride", "scalar",   "result_stride", "index", "add", "sub",
    "mul",   "div", "rem",    "floordiv", "ceildiv",       "max",   "min", "eq",
    "ne",    "slt", "sle",    "sgt",      "sge",           "and",   "or",  "select",
};

StringRef mlir::ssa::runtime::getName(Operation operation) { return operationNames[unsigned(operation)]; }

std::optional<Operation> mlir::ssa::runtime::findOperation(StringRef name) {
  for (auto [i, known] : llvm::enumerate(operationNames))
    if (known == name)
      return Operation(i);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Bundles
//===----------------------------------------------------------------------===//

static bool readTarget(const Value &json, Target &target, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  return object && readMember(*object, "chip", target.chip, path) &&
         readMember(*object, "ptx_version", target.ptxVersion, path) && readMember(*object, "ptx", target.ptx, path) &&
         readMember(*object, "entries", target.entries, path, readPlan);
}

llvm::Expected<Bundle> Bundle::parse(StringRef text, StringRef name) {
  auto refuse = [&](const llvm::Twine &why) { return makeError("'" + name + "' is no bundle: " + why); };
  llvm::Expected<Value> json = llvm::json::parse(text);
  if (!json) {
    llvm::consumeError(json.takeError());
    return refuse("it is not JSON");
  }
  const llvm::json::Object *object = json->getAsObject();
  if (!object || object->getString("format") != StringRef("ssa-bundle"))
    return refuse("\"format\" is not \"ssa-bundle\"");
  std::optional<int64_t> version = object->getInteger("version");
  if (version != 1)
    return makeError("'" + name + "' is a bundle of version " +
                     (version ? llvm::Twine(*version) : llvm::Twine("unknown")) +
                     ", but this launcher reads version 1; update it");
  Bundle bundle;
  Path::Root root("bundle");
  if (!readMember(*object, "targets", bundle.targets, root, readTarget))
    return refuse(llvm::toString(root.getError()));
  if (bundle.targets.empty())
    return refuse("it has no targets");
  return bundle;
}

const Plan *Target::findEntry(StringRef name) const {
  auto it = llvm::find_if(entries, [&](const Plan &plan) { return plan.entry == name; });
  return it == entries.end() ? nullptr : &*it;
}

const Target *Bundle::findTarget(int major, int minor) const {
  // The better, the greater: exact ones, then those of the family, then all others, newer ones first.
  const Target *best = nullptr;
  std::pair<int, int> bestRank;
  for (const Target &target : targets) {
    StringRef chip = target.chip;
    int number;
    if (!chip.consume_front("sm_") || chip.consumeInteger(10, number))
      continue;
    int device = major * 10 + minor;
    int kind;
    if (chip == "a" && number == device)
      kind = 2;
    else if (chip == "f" && number / 10 == major && number <= device)
      kind = 1;
    else if (chip.empty() && number <= device)
      kind = 0;
    else
      continue;
    std::pair<int, int> rank(kind, number);
    if (!best || rank > bestRank) {
      best = &target;
      bestRank = rank;
    }
  }
  return best;
}

std::string Bundle::listChips() const {
  return llvm::join(llvm::map_range(targets, [](const Target &target) { return target.chip; }), ", ");
}
