//===- Tuning.cpp - Files of what was measured ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Model/Tuning.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ssa;

/// A schedule from its text; null, with what the parser says, if it is none.
static ScheduleAttr parseSchedule(StringRef text, MLIRContext *context, std::string &problem) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    problem = diagnostic.str();
    return success();
  });
  Attribute attribute = parseAttribute(text, context);
  if (attribute && !isa<ScheduleAttr>(attribute))
    problem = "it is no '#ssa.schedule<..>'";
  return dyn_cast_if_present<ScheduleAttr>(attribute);
}

FailureOr<Tuning> Tuning::read(StringRef path, MLIRContext *context, llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto fail = [&]() { return emitError() << "tuning file '" << path << "' "; };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return fail() << "cannot be read: " << buffer.getError().message();
  llvm::Expected<llvm::json::Value> json = llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return fail() << "is not JSON: " << llvm::toString(json.takeError());
  const llvm::json::Object *root = json->getAsObject();
  if (!root || root->getString("format") != StringRef("ssa-tuning") || root->getInteger("version") != int64_t(1))
    return fail() << "is none: expected an object with 'format' \"ssa-tuning\" and 'version' 1";
  const llvm::json::Array *list = root->getArray("entries");
  if (!list)
    return fail() << "has no list 'entries'";
  Tuning tuning;
  for (auto [i, value] : llvm::enumerate(*list)) {
    const llvm::json::Object *entry = value.getAsObject();
    auto text = [&](StringRef name) { return entry ? entry->getString(name) : std::nullopt; };
    auto number = [&](StringRef name) { return entry ? entry->getNumber(name) : std::nullopt; };
    if (!text("chip") || !text("op") || !text("schedule") || !number("queries") || !number("tokens") || *number("queries") < 1 || *number("tokens") < 1)
      return fail() << "has an entry " << i << " that lacks one of 'chip', 'op', 'schedule' (text), 'queries', 'tokens' (numbers of at least 1)";
    std::string problem;
    ScheduleAttr schedule = parseSchedule(*text("schedule"), context, problem);
    if (!schedule)
      return fail() << "has an entry " << i << " whose 'schedule' is wrong: " << problem;
    tuning.entries.push_back({text("chip")->str(), text("op")->str(), *number("queries"), *number("tokens"), schedule});
  }
  return tuning;
}

ScheduleAttr Tuning::find(const AttendProblem &problem, TargetAttr target) const {
  std::string key = getTuningKey(problem.op);
  auto distance = [](double a, double b) { return std::abs(std::log2(a / std::max(b, 1.0))); };
  ScheduleAttr nearest;
  double least = 0;
  for (const Entry &entry : entries) {
    if (entry.chip != target.getChip() || entry.op != key)
      continue;
    double away = distance(entry.queries, problem.geometry.queries) + distance(entry.tokens, problem.geometry.tokens);
    if (!nearest || away < least) {
      nearest = entry.schedule;
      least = away;
    }
  }
  return nearest;
}
