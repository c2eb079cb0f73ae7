//===- PlanWriter.cpp - Plans as JSON -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Target/Plan.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;
using llvm::json::OStream;

namespace {

/// One JSON value on one line.
class Line {
public:
  Line() : os(text), json(os) {}
  std::string take() { return std::move(text); }

private:
  std::string text;
  llvm::raw_string_ostream os;

public:
  OStream json;
};

} // namespace

template <typename List>
static void writeArray(OStream &json, const List &list) {
  json.array([&] {
    for (auto element : list)
      json.value(int64_t(element));
  });
}

template <typename List>
static void attributeArray(OStream &json, StringRef key, const List &list) {
  json.attributeBegin(key);
  writeArray(json, list);
  json.attributeEnd();
}

/// A list under `key`, one element a line.
template <typename List>
static void attributeLines(OStream &json, StringRef key, const List &list,
                           llvm::function_ref<void(OStream &, const typename List::value_type &)> write) {
  json.attributeArray(key, [&] {
    for (const auto &element : list) {
      Line line;
      write(line.json, element);
      json.rawValue(line.take());
    }
  });
}

static void writeExtents(OStream &json, StringRef key, ArrayRef<std::optional<int64_t>> extents) {
  json.attributeArray(key, [&] {
    for (std::optional<int64_t> extent : extents)
      json.value(extent ? llvm::json::Value(*extent) : llvm::json::Value(nullptr));
  });
}

static void write(OStream &json, const PlanArgument &argument) {
  json.object([&] {
    json.attribute("name", argument.name);
    if (argument.isScalar)
      return json.attribute("scalar", argument.dtype);
    json.attribute("dtype", argument.dtype);
    writeExtents(json, "shape", argument.shape);
    if (argument.isContiguous)
      json.attribute("strides", "contiguous");
    else
      writeExtents(json, "strides", argument.strides);
    json.attribute("alignment", argument.alignment);
    json.attribute("access", argument.isRead ? (argument.isWritten ? "read_write" : "read")
                                             : (argument.isWritten ? "write" : "none"));
  });
}

static void write(OStream &json, const PlanResult &result) {
  json.object([&] {
    json.attribute("name", result.name);
    json.attribute("dtype", result.dtype);
    attributeArray(json, "shape", result.shape);
    json.attribute("strides", result.isContiguous ? "contiguous" : "any");
    json.attribute("alignment", result.alignment);
    json.attribute("buffer", result.buffer);
  });
}

static void write(OStream &json, const PlanValue &value) {
  json.array([&] {
    json.value(value.operation);
    if (!value.predicate.empty())
      json.value(value.predicate);
    for (int64_t operand : value.operands)
      json.value(operand);
  });
}

static void write(OStream &json, const PlanCheck &check) {
  json.object([&] {
    if (check.values.size() == 1)
      json.attribute(check.kind, check.values.front());
    else
      attributeArray(json, check.kind, check.values);
    json.attribute("message", check.message);
  });
}

static void write(OStream &json, const PlanBuffer &buffer) {
  json.object([&] {
    json.attribute(buffer.kind, buffer.number);
    if (buffer.kind == "view")
      json.attribute("offset", buffer.offset);
    json.attribute("dtype", buffer.dtype);
    attributeArray(json, "shape", buffer.shape);
    attributeArray(json, "strides", buffer.strides);
  });
}

static void write(OStream &json, const PlanTensorMap &map) {
  json.object([&] {
    json.attribute("buffer", map.buffer);
    attributeArray(json, "box", map.box);
    json.attribute("swizzle", map.swizzle);
    json.attribute("l2_promotion", map.l2Promotion);
    json.attribute("fill", map.fill);
    json.attribute("interleave", map.interleave);
  });
}

static void write(OStream &json, const PlanRepeat &repeat) {
  json.object([&] {
    json.attribute("count", repeat.count);
    attributeArray(json, "values", repeat.values);
    attributeArray(json, "launches", repeat.launches);
    if (repeat.lanes > 1)
      json.attribute("lanes", repeat.lanes);
  });
}

static void writeFloat(OStream &json, const PlanFloat &number) {
  if (number.argument)
    json.object([&] { json.attribute("argument", *number.argument); });
  else if (std::isnan(number.constant))
    json.value("nan");
  else if (std::isinf(number.constant))
    json.value(number.constant > 0 ? "inf" : "-inf");
  else
    json.value(number.constant);
}

static void write(OStream &json, const PlanKernelArgument &argument) {
  json.array([&] {
    json.value(argument.kind);
    if (StringRef(argument.kind).starts_with("f"))
      writeFloat(json, argument.value);
    else
      json.value(argument.number);
  });
}

static void write(OStream &json, const PlanLaunch &launch) {
  json.object([&] {
    json.attribute("kernel", launch.kernel);
    attributeArray(json, "grid", launch.grid);
    attributeArray(json, "block", launch.block);
    json.attribute("shared", launch.shared);
    if (!launch.cluster.empty())
      attributeArray(json, "cluster", launch.cluster);
    if (launch.isDependent)
      json.attribute("dependent", true);
    json.attributeArray("arguments", [&] {
      for (const PlanKernelArgument &argument : launch.arguments)
        write(json, argument);
    });
    attributeArray(json, "after", launch.after);
    if (launch.condition)
      json.attribute("if", *launch.condition);
    if (launch.when)
      json.attributeObject("when", [&] {
        json.attribute("buffer", launch.when->buffer);
        json.attribute("is", launch.when->is);
      });
    attributeArray(json, "reads", launch.reads);
    attributeArray(json, "writes", launch.writes);
  });
}

void Plan::print(OStream &json) const {
  auto lines = [&](StringRef key, const auto &list) {
    using Element = typename std::decay_t<decltype(list)>::value_type;
    attributeLines(json, key, list, [](OStream &line, const Element &element) { write(line, element); });
  };
  json.object([&] {
    json.attribute("entry", entry);
    lines("arguments", arguments);
    lines("results", results);
    lines("values", values);
    json.attribute("inputs", inputs);
    lines("checks", checks);
    lines("buffers", buffers);
    Line scratch;
    scratch.json.object([&] {
      scratch.json.attribute("bytes", workspaceBytes);
      scratch.json.attribute("alignment", 256);
    });
    json.attributeBegin("workspace");
    json.rawValue(scratch.take());
    json.attributeEnd();
    if (!tensorMaps.empty())
      lines("tensormaps", tensorMaps);
    if (!repeats.empty())
      lines("repeats", repeats);
    lines("launches", launches);
  });
}
