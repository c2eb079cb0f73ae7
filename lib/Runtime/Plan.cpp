//===- Plan.cpp - Reads the plans of bundles ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// python/ssa/_bundle.py reads the same, with the same messages.
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir::ssa::runtime;
using llvm::ArrayRef;

static bool isComparison(Operation operation) { return operation >= Operation::Eq && operation <= Operation::Ge; }

namespace {
/// Reads one plan. Members return false after they have reported what is wrong.
class PlanReader {
public:
  PlanReader(Plan &plan) : plan(plan) {}

  bool read(const llvm::json::Object &object, Path path);

private:
  bool readArgument(const Value &json, Argument &argument, Path path);
  bool readResult(const Value &json, Result &result, Path path);
  bool readValue(const Value &json, PlanValue &value, Path path);
  bool readCheck(const Value &json, Check &check, Path path);
  bool readBuffer(const Value &json, Buffer &buffer, Path path);
  bool readTensorMap(const Value &json, TensorMap &map, Path path);
  bool readRepeat(const Value &json, Repeat &repeat, Path path);
  bool readLaunch(const Value &json, Launch &launch, Path path);
  bool readKernelArgument(const Value &json, KernelArgument &argument, Path path);
  bool readFloat(const Value &json, KernelArgument &argument, Path path);
  bool checkResults(Path path);
  bool checkRepeat(unsigned number, Path path);
  bool checkRepeats(Path path);
  bool checkAllUses(Path path);
  void addValuesOf(unsigned buffer, llvm::SmallVectorImpl<ValueNumber> &used) const;
  bool checkUses(ArrayRef<ValueNumber> used, int launch, Path path);

  Plan &plan;
};
} // namespace

//===----------------------------------------------------------------------===//
// Parts of a plan
//===----------------------------------------------------------------------===//

bool PlanReader::readArgument(const Value &json, Argument &argument, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "name", argument.name, path))
    return false;
  argument.isScalar = object->get("scalar");
  if (argument.isScalar) {
    if (!readMember(*object, "scalar", argument.dtype, path))
      return false;
    bool isFloat = argument.dtype == DType::F32 || argument.dtype == DType::F64;
    return isInteger(argument.dtype) || isFloat || fail(path.field("scalar"), "unknown kind of scalar");
  }
  std::string access;
  if (!readMember(*object, "dtype", argument.dtype, path) ||
      !readMember(*object, "shape", argument.shape, path, readExtent) ||
      !readAlignment(*object, argument.alignment, path) || !readMember(*object, "access", access, path))
    return false;
  const Value *strides = getMember(*object, "strides", path);
  if (!strides)
    return false;
  argument.isContiguous = strides->getAsString() == StringRef("contiguous");
  if (!argument.isContiguous) {
    if (!readList(*strides, argument.strides, path.field("strides"), readExtent))
      return false;
    if (argument.strides.size() != argument.shape.size())
      return fail(path.field("strides"), "expected as many strides as sizes");
  }
  auto found = llvm::StringSwitch<std::optional<Access>>(access)
                   .Case("none", Access::None)
                   .Case("read", Access::Read)
                   .Case("write", Access::Write)
                   .Case("read_write", Access::ReadWrite)
                   .Default(std::nullopt);
  argument.access = found.value_or(Access::None);
  return found || fail(path.field("access"), "unknown access");
}

bool PlanReader::readValue(const Value &json, PlanValue &value, Path path) {
  const llvm::json::Array *array = json.getAsArray();
  if (!array || array->empty())
    return fail(path, "expected array");
  size_t position = plan.values.size() - 1, first = 1;
  std::string name;
  if (!readString((*array)[0], name, path.index(0)))
    return false;
  std::optional<Operation> operation = findOperation(name);
  if (name == "cmp") {
    if (array->size() < 2 || !readString((*array)[1], name, path.index(1)))
      return fail(path, "wrong number of operands");
    operation = findOperation(name);
    if (!operation || !isComparison(*operation))
      return fail(path.index(1), "unknown predicate");
    first = 2;
  } else if (!operation || isComparison(*operation)) {
    return fail(path.index(0), "unknown operation");
  }
  value.operation = *operation;
  bool isUnary = llvm::is_contained({Operation::Const, Operation::Scalar, Operation::Index}, *operation);
  size_t count = isUnary ? 1 : *operation == Operation::Select ? 3 : 2;
  if (array->size() != first + count)
    return fail(path, "wrong number of operands");
  if (*operation == Operation::Const)
    return fromJSON((*array)[1], value.constant, path.index(1));

  auto readOperand = [&](unsigned i, size_t bound) {
    return readNumber((*array)[first + i], value.operands[i], bound, path.index(first + i));
  };
  switch (*operation) {
  case Operation::Dim:
  case Operation::Stride: {
    if (!readOperand(0, plan.arguments.size()))
      return false;
    const Argument &argument = plan.arguments[value.operands[0]];
    return readOperand(1, argument.isScalar ? 0 : argument.shape.size());
  }
  case Operation::Scalar: {
    if (!readOperand(0, plan.arguments.size()))
      return false;
    const Argument &argument = plan.arguments[value.operands[0]];
    return (argument.isScalar && isInteger(argument.dtype)) || fail(path.index(1), "expected an integer argument");
  }
  case Operation::ResultStride: {
    if (position < plan.numInputs)
      return fail(path, "values before 'inputs' must not need results");
    return readOperand(0, plan.results.size()) && readOperand(1, plan.results[value.operands[0]].shape.size());
  }
  case Operation::Index:
    if (position < plan.numInputs)
      return fail(path, "values before 'inputs' must not need results");
    return readOperand(0, plan.repeats.size());
  default:
    for (unsigned i = 0; i < count; ++i)
      if (!readOperand(i, position))
        return false;
    return true;
  }
}

bool PlanReader::readCheck(const Value &json, Check &check, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "message", check.message, path))
    return false;
  if (object->get("holds")) {
    check.kind = Check::Holds;
    return readMember(*object, "holds", check.left, plan.numInputs, path);
  }
  StringLiteral key = object->get("equal") ? StringLiteral("equal") : StringLiteral("at_most");
  check.kind = object->get("equal") ? Check::Equal : Check::AtMost;
  if (!object->get(key))
    return fail(path, "unknown check");
  llvm::SmallVector<unsigned, 2> pair;
  auto readOne = [&](const Value &json, unsigned &out, Path path) {
    return readNumber(json, out, plan.numInputs, path);
  };
  if (!readMember(*object, key, pair, path, readOne))
    return false;
  if (pair.size() != 2)
    return fail(path.field(key), "expected 2 elements");
  check.left = pair[0];
  check.right = pair[1];
  return true;
}

bool PlanReader::readBuffer(const Value &json, Buffer &buffer, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "dtype", buffer.dtype, path))
    return false;
  auto readOne = [&](const Value &json, unsigned &out, Path path) {
    return readNumber(json, out, plan.values.size(), path);
  };
  if (!readMember(*object, "shape", buffer.shape, path, readOne) ||
      !readMember(*object, "strides", buffer.strides, path, readOne))
    return false;
  if (buffer.shape.size() != buffer.strides.size())
    return fail(path.field("strides"), "expected as many strides as sizes");
  if (object->get("argument")) {
    buffer.kind = Buffer::Argument;
    if (!readMember(*object, "argument", buffer.number, plan.arguments.size(), path))
      return false;
    return !plan.arguments[buffer.number].isScalar || fail(path.field("argument"), "expected a tensor");
  }
  if (object->get("result")) {
    buffer.kind = Buffer::Result;
    return readMember(*object, "result", buffer.number, plan.results.size(), path);
  }
  if (object->get("workspace")) {
    buffer.kind = Buffer::Workspace;
    return readMember(*object, "workspace", buffer.number, plan.values.size(), path);
  }
  buffer.kind = Buffer::View;
  if (!object->get("view"))
    return fail(path, "unknown kind of buffer");
  if (!readMember(*object, "view", buffer.number, plan.buffers.size() - 1, path) ||
      !readMember(*object, "offset", buffer.offset, plan.values.size(), path))
    return false;
  return plan.buffers[buffer.number].kind != Buffer::View || fail(path.field("view"), "view of a view");
}

bool PlanReader::readResult(const Value &json, Result &result, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "name", result.name, path) || !readMember(*object, "dtype", result.dtype, path) ||
      !readAlignment(*object, result.alignment, path))
    return false;
  auto readOne = [&](const Value &json, unsigned &out, Path path) {
    return readNumber(json, out, plan.numInputs, path);
  };
  if (!readMember(*object, "shape", result.shape, path, readOne))
    return false;
  std::string strides;
  if (!readMember(*object, "strides", strides, path))
    return false;
  result.isContiguous = strides == "contiguous";
  if (!result.isContiguous && strides != "any")
    return fail(path.field("strides"), "expected 'any' or 'contiguous'");
  int64_t buffer; // checked once there are buffers
  const Value *member = getMember(*object, "buffer", path);
  if (!member || !readInteger(*member, buffer, 0, std::numeric_limits<int32_t>::max(), path.field("buffer")))
    return false;
  result.buffer = buffer;
  return true;
}

/// The number of a word in a list of words that the driver numbers in this order.
static bool readWord(const llvm::json::Object &object, StringLiteral key, ArrayRef<StringLiteral> words, unsigned &out,
                     Path path) {
  std::string word;
  if (!readMember(object, key, word, path))
    return false;
  auto it = llvm::find(words, StringRef(word));
  out = it - words.begin();
  return it != words.end() || fail(path.field(key), "unknown word");
}

bool PlanReader::readTensorMap(const Value &json, TensorMap &map, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "buffer", map.buffer, plan.buffers.size(), path))
    return false;
  auto readOne = [](const Value &json, int64_t &out, Path path) { return readInteger(json, out, 1, 256, path); };
  if (!readMember(*object, "box", map.box, path, readOne))
    return false;
  if (map.box.empty() || map.box.size() > 5 || map.box.size() != plan.buffers[map.buffer].shape.size())
    return fail(path.field("box"), "expected one number for each of the 1 to 5 dimensions of the buffer");
  return readWord(*object, "swizzle", {"none", "32b", "64b", "128b"}, map.swizzle, path) &&
         readWord(*object, "l2_promotion", {"none", "64b", "128b", "256b"}, map.l2Promotion, path) &&
         readWord(*object, "fill", {"zero", "nan"}, map.fill, path) &&
         readWord(*object, "interleave", {"none", "16b", "32b"}, map.interleave, path);
}

static bool readRange(const llvm::json::Object &object, StringLiteral key, std::array<unsigned, 2> &out, size_t bound,
                      Path path) {
  llvm::SmallVector<unsigned, 2> range;
  auto readOne = [&](const Value &json, unsigned &out, Path path) { return readNumber(json, out, bound + 1, path); };
  if (!readMember(object, key, range, path, readOne))
    return false;
  if (range.size() != 2 || range[0] > range[1])
    return fail(path.field(key), "expected the bounds of a range");
  out = {range[0], range[1]};
  return true;
}

bool PlanReader::readRepeat(const Value &json, Repeat &repeat, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "count", repeat.count, plan.values.size(), path) ||
      !readRange(*object, "values", repeat.values, plan.values.size(), path) ||
      !readRange(*object, "launches", repeat.launches, plan.launches.size(), path))
    return false;
  if (!object->get("lanes"))
    return true;
  constexpr int64_t mostLanes = 16;
  int64_t lanes;
  if (!readInteger(*object->get("lanes"), lanes, 1, mostLanes, path.field("lanes")))
    return false;
  repeat.lanes = lanes;
  return true;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

bool PlanReader::readFloat(const Value &json, KernelArgument &argument, Path path) {
  argument.kind = KernelArgument::Float;
  if (const llvm::json::Object *object = json.getAsObject()) {
    argument.kind = KernelArgument::ScalarFloat;
    if (!readMember(*object, "argument", argument.number, plan.arguments.size(), path))
      return false;
    const Argument &scalar = plan.arguments[argument.number];
    return (scalar.isScalar && scalar.dtype == argument.dtype) || fail(path, "expected an argument of this kind");
  }
  std::optional<StringRef> word = json.getAsString();
  if (!word)
    return fromJSON(json, argument.constant, path);
  constexpr double inf = std::numeric_limits<double>::infinity();
  argument.constant = *word == "inf" ? inf : *word == "-inf" ? -inf : std::numeric_limits<double>::quiet_NaN();
  return llvm::is_contained({"inf", "-inf", "nan"}, *word) || fail(path, "expected number");
}

bool PlanReader::readKernelArgument(const Value &json, KernelArgument &argument, Path path) {
  const llvm::json::Array *array = json.getAsArray();
  if (!array || array->size() != 2)
    return fail(path, "expected a kind and a number");
  std::string kind;
  if (!readString((*array)[0], kind, path.index(0)))
    return false;
  const Value &second = (*array)[1];
  if (kind == "pointer")
    return readNumber(second, argument.number, plan.buffers.size(), path.index(1));
  if (kind == "tensormap") {
    argument.kind = KernelArgument::TensorMap;
    return readNumber(second, argument.number, plan.tensorMaps.size(), path.index(1));
  }
  std::optional<DType> dtype = findDType(kind);
  if (!dtype || !(isInteger(*dtype) || *dtype == DType::F32 || *dtype == DType::F64))
    return fail(path.index(0), "unknown kind of kernel argument");
  argument.dtype = *dtype;
  if (!isInteger(*dtype))
    return readFloat(second, argument, path.index(1));
  argument.kind = KernelArgument::Integer;
  return readNumber(second, argument.number, plan.values.size(), path.index(1));
}

bool PlanReader::readLaunch(const Value &json, Launch &launch, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  if (!object || !readMember(*object, "kernel", launch.kernel, path))
    return false;
  auto readValueNumber = [&](const Value &json, unsigned &out, Path path) {
    return readNumber(json, out, plan.values.size(), path);
  };
  auto readExtent = [](const Value &json, int64_t &out, Path path) { return readInteger(json, out, 1, 1024, path); };
  auto readOne = [&](const Value &json, KernelArgument &out, Path path) { return readKernelArgument(json, out, path); };
  if (!readTriple(*object, "grid", launch.grid, path, readValueNumber) ||
      !readTriple(*object, "block", launch.block, path, readExtent) ||
      !readMember(*object, "shared", launch.shared, plan.values.size(), path) ||
      !readMember(*object, "arguments", launch.arguments, path, readOne))
    return false;
  launch.hasCluster = object->get("cluster");
  if (launch.hasCluster && !readTriple(*object, "cluster", launch.cluster, path, readExtent))
    return false;
  if (const Value *dependent = object->get("dependent")) {
    std::optional<bool> isDependent = dependent->getAsBoolean();
    if (!isDependent)
      return fail(path.field("dependent"), "expected boolean");
    launch.isDependent = *isDependent;
  }
  if (object->get("if")) {
    ValueNumber condition;
    if (!readMember(*object, "if", condition, plan.values.size(), path))
      return false;
    launch.condition = condition;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Checks the buffers of results and finds out which results have memory of their own.
bool PlanReader::checkResults(Path path) {
  Path results = path.field("results"), buffers = path.field("buffers"); // a path needs its parents to live
  for (auto [i, result] : llvm::enumerate(plan.results)) {
    Path parent = results.index(i), at = parent.field("buffer");
    if (result.buffer >= plan.buffers.size())
      return fail(at, "reference to what does not exist");
    const Buffer *buffer = &plan.buffers[result.buffer];
    result.isOwned = buffer->kind == Buffer::Result && buffer->number == i;
    if (buffer->kind == Buffer::View)
      buffer = &plan.buffers[buffer->number];
    bool isEarlier = buffer->kind == Buffer::Argument || (buffer->kind == Buffer::Result && buffer->number < i);
    if (!result.isOwned && !isEarlier)
      return fail(at, "expected memory of this result, an argument or an earlier result");
  }
  for (auto [i, buffer] : llvm::enumerate(plan.buffers))
    if (buffer.kind == Buffer::Result && !plan.results[buffer.number].isOwned)
      return fail(buffers.index(i), "this result has no memory of its own");
  return true;
}

/// The values that the address and the extents of a buffer need.
void PlanReader::addValuesOf(unsigned number, llvm::SmallVectorImpl<ValueNumber> &used) const {
  const Buffer *buffer = &plan.buffers[number];
  used.append(buffer->shape.begin(), buffer->shape.end());
  used.append(buffer->strides.begin(), buffer->strides.end());
  if (buffer->kind == Buffer::View) {
    used.push_back(buffer->offset);
    buffer = &plan.buffers[buffer->number];
  }
  if (buffer->kind == Buffer::Workspace)
    used.push_back(buffer->number);
}

/// Checks that launch `launch`, or what is outside of all launches if that is negative, may use these values.
bool PlanReader::checkUses(ArrayRef<ValueNumber> used, int launch, Path path) {
  for (const Repeat &repeat : plan.repeats) {
    bool isInside = launch >= int(repeat.launches[0]) && launch < int(repeat.launches[1]);
    for (ValueNumber number : used)
      if (number >= repeat.values[0] && number < repeat.values[1] && !isInside)
        return fail(path, "use of a value outside of its repeat");
  }
  return true;
}

/// Checks that values outside of a repeat do not depend on it.
bool PlanReader::checkRepeat(unsigned number, Path path) {
  const Repeat &repeat = plan.repeats[number];
  auto isInside = [&](unsigned n) { return n >= repeat.values[0] && n < repeat.values[1]; };
  for (unsigned n = 0; n < plan.values.size(); ++n) {
    const PlanValue &value = plan.values[n];
    bool usesRepeat = value.operation == Operation::Index && value.operands[0] == number;
    if (value.operation >= Operation::Add)
      for (unsigned k = 0; k < (value.operation == Operation::Select ? 3 : 2); ++k)
        usesRepeat |= isInside(value.operands[k]);
    if (usesRepeat && !isInside(n))
      return fail(path.index(n), "use of a value outside of its repeat");
  }
  return true;
}

bool PlanReader::checkRepeats(Path path) {
  Path repeats = path.field("repeats");
  for (unsigned i = 0; i < plan.repeats.size(); ++i) {
    const Repeat &repeat = plan.repeats[i];
    Path at = repeats.index(i);
    if (repeat.values[0] < plan.numInputs && repeat.values[0] != repeat.values[1])
      return fail(at, "values before 'inputs' must not repeat");
    for (const Repeat &other : ArrayRef(plan.repeats).take_front(i))
      for (auto range : {&Repeat::values, &Repeat::launches})
        if ((repeat.*range)[0] < (other.*range)[1] && (other.*range)[0] < (repeat.*range)[1])
          return fail(at, "ranges of repeats must not overlap");
    if (!checkUses(repeat.count, -1, at.field("count")) || !checkRepeat(i, path.field("values")))
      return false;
  }
  return true;
}

bool PlanReader::checkAllUses(Path path) {
  Path results = path.field("results"), launches = path.field("launches");
  if (!checkUses(plan.workspaceBytes, -1, path.field("workspace")))
    return false;
  for (auto [i, result] : llvm::enumerate(plan.results)) {
    llvm::SmallVector<ValueNumber> used;
    addValuesOf(result.buffer, used);
    if (!checkUses(used, -1, results.index(i)))
      return false;
  }
  for (auto [i, launch] : llvm::enumerate(plan.launches)) {
    llvm::SmallVector<ValueNumber> used(launch.grid.begin(), launch.grid.end());
    used.push_back(launch.shared);
    if (launch.condition)
      used.push_back(*launch.condition);
    for (const KernelArgument &argument : launch.arguments) {
      if (argument.kind == KernelArgument::Integer)
        used.push_back(argument.number);
      if (argument.kind == KernelArgument::Pointer)
        addValuesOf(argument.number, used);
      if (argument.kind == KernelArgument::TensorMap)
        addValuesOf(plan.tensorMaps[argument.number].buffer, used);
    }
    if (!checkUses(used, i, launches.index(i)))
      return false;
  }
  return true;
}

bool PlanReader::read(const llvm::json::Object &object, Path path) {
  // Elements are only known to be there once their list is complete; `inputs` and the lists that values refer to come
  // first.
  const Value *inputs = getMember(object, "inputs", path);
  const Value *values = getMember(object, "values", path);
  if (!inputs || !values)
    return false;
  size_t numValues = values->getAsArray() ? values->getAsArray()->size() : 0;
  if (!readNumber(*inputs, plan.numInputs, numValues + 1, path.field("inputs")))
    return false;
  if (const Value *repeats = object.get("repeats"))
    if (const llvm::json::Array *array = repeats->getAsArray())
      plan.repeats.resize(array->size()); // `index` names them
  auto member = [&](auto method) {
    return [this, method](const Value &json, auto &out, Path path) { return (this->*method)(json, out, path); };
  };
  if (!readMember(object, "entry", plan.entry, path) ||
      !readMember(object, "arguments", plan.arguments, path, member(&PlanReader::readArgument)) ||
      !readMember(object, "results", plan.results, path, member(&PlanReader::readResult)) ||
      !readMember(object, "values", plan.values, path, member(&PlanReader::readValue)) ||
      !readMember(object, "checks", plan.checks, path, member(&PlanReader::readCheck)) ||
      !readMember(object, "buffers", plan.buffers, path, member(&PlanReader::readBuffer)) ||
      !readMember(object, "tensormaps", plan.tensorMaps, path, member(&PlanReader::readTensorMap), true) ||
      !readMember(object, "launches", plan.launches, path, member(&PlanReader::readLaunch)))
    return false;
  plan.repeats.clear();
  if (!readMember(object, "repeats", plan.repeats, path, member(&PlanReader::readRepeat), true))
    return false;
  const Value *workspace = getMember(object, "workspace", path);
  const llvm::json::Object *block = workspace ? getObject(*workspace, path.field("workspace")) : nullptr;
  return block && readMember(*block, "bytes", plan.workspaceBytes, plan.values.size(), path.field("workspace")) &&
         readAlignment(*block, plan.workspaceAlignment, path.field("workspace")) && checkResults(path) &&
         checkRepeats(path) && checkAllUses(path);
}

bool mlir::ssa::runtime::readPlan(const Value &json, Plan &plan, Path path) {
  const llvm::json::Object *object = getObject(json, path);
  return object && PlanReader(plan).read(*object, path);
}
