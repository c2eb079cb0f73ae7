//===- ExplainJSON.cpp - Explanations for tools ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Explanation.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ssa;
using llvm::json::OStream;

static void writePrediction(OStream &json, const Prediction &prediction) {
  json.attribute("ms", prediction.seconds * 1e3);
  json.attribute("binds", prediction.binds);
  json.attributeObject("busy_ms", [&] {
    for (auto [name, seconds] : prediction.units.list())
      json.attribute(name, seconds * 1e3);
  });
}

static void writeOp(OStream &json, Operation *op) {
  json.attribute("op", op ? op->getName().getStringRef() : StringRef());
  if (unsigned line = op ? getSourceLine(op->getLoc()) : 0)
    json.attribute("line", line);
}

static void writeKernel(OStream &json, const ExplainedKernel &kernel) {
  json.object([&] {
    json.attribute("kernel", kernel.name);
    writeOp(json, kernel.op);
    json.attribute("runs", kernel.runs);
    json.attribute("blocks", kernel.blocks);
    json.attribute("threads", kernel.threads);
    json.attribute("shared_bytes", kernel.sharedBytes);
    json.attribute(kernel.spilledBytes ? "registers" : "registers_at_most", kernel.registers);
    if (kernel.spilledBytes)
      json.attribute("spilled_bytes", *kernel.spilledBytes);
    json.attribute("blocks_per_sm", kernel.blocksPerSM);
    json.attribute("bytes", kernel.bytes);
    if (kernel.leaves)
      json.attribute("leaves", true);
    writePrediction(json, kernel.prediction);
  });
}

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream os(text);
  attribute.print(os);
  return text;
}

static void writeSchedule(OStream &json, const RatedSchedule &rated) {
  json.attribute("schedule", print(rated.schedule));
  writePrediction(json, rated.prediction);
}

static void writeAgreement(OStream &json, const ExplainedAgreement &onDevice) {
  json.attribute("percent", onDevice.agreeing.getPercent());
  json.attributeObject("other", [&] { writeSchedule(json, onDevice.other); });
  json.attributeArray("times", [&] {
    for (const ExplainedAgreement::Times &t : onDevice.times)
      json.object([&] {
        json.attribute("agreement", t.agreement);
        json.attribute("ms", t.seconds * 1e3);
        json.attribute("agreeing_ms", t.agreeingSeconds * 1e3);
      });
  });
}

static void writeChoice(OStream &json, const ExplainedChoice &choice) {
  json.object([&] {
    writeOp(json, choice.op);
    json.attribute("key", getTuningKey(choice.op));
    json.attribute("source", choice.source);
    if (choice.dense)
      json.attribute("agreement", choice.agreement);
    json.attributeObject("chosen", [&] { writeSchedule(json, choice.chosen); });
    if (choice.onDevice)
      json.attributeObject("on_device", [&] { writeAgreement(json, *choice.onDevice); });
    if (int64_t columns = choice.chosen.schedule.getTensorColumns(choice.op))
      json.attribute("tensor_memory_columns", columns);
    if (double limit = choice.chosen.prediction.units.longest(); limit > 0)
      json.attributeObject("useful_tflops", [&] {
        json.attribute("predicted", choice.usefulFlop / choice.chosen.prediction.seconds / 1e12);
        json.attribute("at_most", choice.usefulFlop / limit / 1e12);
        json.attribute("by", choice.chosen.prediction.units.binding());
      });
    if (choice.dense)
      json.attribute("dense_ms", choice.dense->seconds * 1e3);
    if (choice.together > 0)
      json.attribute("together_ms", choice.together * 1e3);
    json.attributeArray("schedules", [&] {
      for (const RatedSchedule &rated : choice.rated)
        json.object([&] { writeSchedule(json, rated); });
    });
  });
}

/// An argument, and what its numbers select if it is a list.
static void writeArgument(OStream &json, BlockArgument argument, AssumedSizes &sizes) {
  json.object([&] {
    json.attribute("name", getSourceName(argument));
    json.attribute("type", [&] {
      std::string text;
      llvm::raw_string_ostream os(text);
      argument.getType().print(os);
      return text;
    }());
    auto type = dyn_cast<ShapedType>(argument.getType());
    if (!type)
      return;
    json.attributeArray("shape", [&] {
      for (int64_t i = 0; i < type.getRank(); ++i)
        json.value(sizes.get(argument, i));
    });
    SmallVector<Value> lists;
    if (isa<SelectionType>(argument.getType()))
      lists.push_back(argument);
    for (Operation *user : argument.getUsers())
      if (auto op = dyn_cast<FromIndicesOp>(user))
        lists.push_back(op.getSelection());
    if (!lists.empty())
      json.attributeObject("list", [&] {
        auto selection = cast<SelectionType>(lists.front().getType());
        json.attribute("key_block", selection.getKeyBlock());
        json.attribute("query_block", selection.getQueryBlock());
      });
  });
}

static void writeGather(OStream &json, const ExplainedGather &gather) {
  json.object([&] {
    writeOp(json, gather.op);
    json.attribute("kept_bytes", gather.keptBytes);
    json.attribute("source_bytes", gather.sourceBytes);
  });
}

template <typename List, typename Write>
static void writeList(OStream &json, StringRef name, const List &list, Write write) {
  json.attributeArray(name, [&] {
    for (const auto &element : list)
      write(json, element);
  });
}

static void writeEntry(OStream &json, const ExplainedEntry &entry, const Assumptions &assumptions) {
  json.object([&] {
    func::FuncOp pattern = entry.pattern;
    json.attribute("entry", pattern.getName());
    AssumedSizes sizes(assumptions);
    writeList(json, "arguments", pattern.getArguments(), [&](OStream &os, BlockArgument argument) { writeArgument(os, argument, sizes); });
    double total = 0;
    for (const ExplainedKernel &kernel : entry.kernels)
      total += kernel.prediction.seconds;
    json.attribute("ms", total * 1e3);
    writeList(json, "kernels", entry.kernels, writeKernel);
    json.attribute("launches_for_other_sizes", entry.skipped);
    writeList(json, "choices", entry.choices, writeChoice);
    writeList(json, "fusions", entry.fusions, [](OStream &os, const ExplainedFusion &fusion) {
      os.object([&] {
        writeOp(os, fusion.op);
        os.attributeObject("into", [&] { writeOp(os, fusion.into); });
        os.attribute("part", fusion.part);
        os.attribute("condition", fusion.condition);
        os.attribute("saved_bytes", fusion.savedBytes);
      });
    });
    json.attributeObject("fused", [&] {
      for (auto &[name, count] : entry.fused)
        json.attribute(name, count);
    });
    json.attributeObject("memory", [&] {
      json.attribute("argument_bytes", entry.argumentBytes);
      json.attribute("result_bytes", entry.resultBytes);
      json.attribute("workspace_bytes", entry.workspaceBytes);
      writeList(json, "gathers", entry.gathers, writeGather);
    });
    writeList(json, "refusals", entry.refusals, [](OStream &os, const std::string &text) { os.value(text); });
  });
}

void Explanation::printJSON(llvm::raw_ostream &os) const {
  OStream json(os, 2);
  const ChipRates &rates = ChipRates::of(target);
  TargetAttr chip = target;
  json.object([&] {
    json.attribute("format", "ssa-explanation");
    json.attribute("version", 1);
    json.attribute("chip", chip.getChip());
    json.attribute("product", rates.product);
    json.attribute("measured", rates.isMeasured);
    json.attributeObject("assumed", [&] {
      json.attribute("tokens", assumptions.tokens);
      json.attribute("queries", assumptions.getQueries());
      json.attribute("batch", assumptions.batch);
      if (assumptions.agreement >= 0)
        json.attribute("agreement", assumptions.agreement);
    });
    writeList(json, "entries", entries, [&](OStream &out, const ExplainedEntry &entry) { writeEntry(out, entry, assumptions); });
    writeList(json, "remarks", remarks, [](OStream &out, const ExplainedRemark &remark) {
      out.object([&] {
        out.attribute("line", remark.line);
        out.attribute("text", remark.text);
      });
    });
  });
  json.flush();
  os << "\n";
}
