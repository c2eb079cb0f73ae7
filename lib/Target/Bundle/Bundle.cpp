//===- Bundle.cpp - Compiles patterns to bundles --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Target/Bundle.h"
#include "ChipCompilation.h"
#include "ssa/Version.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

static void writePlans(llvm::json::OStream &json, ArrayRef<Plan> plans) {
  json.attributeArray("entries", [&] {
    for (const Plan &plan : plans)
      plan.print(json);
  });
}

static void writeTarget(llvm::json::OStream &json, const ChipCompilation &chip, bool withCode) {
  json.object([&] {
    json.attribute("chip", chip.target.getChip());
    if (withCode) {
      unsigned version = chip.target.ptxVersion();
      json.attribute("ptx_version", std::to_string(version / 10) + "." + std::to_string(version % 10));
      json.attribute("ptx", chip.code.ptx);
    }
    writePlans(json, chip.plans);
  });
}

/// Compiles for each chip and writes a bundle.
static LogicalResult compileBundle(ModuleOp module, ArrayRef<std::string> chips, const CompileOptions &options,
                                   llvm::raw_ostream &os, TimingScope &timing) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out, 2);
  bool hasFailed = false;
  json.object([&] {
    json.attribute("format", "ssa-bundle");
    json.attribute("version", 1);
    json.attribute("producer", "ssa " SSA_VERSION_STRING);
    json.attributeArray("targets", [&] {
      for (const std::string &name : chips) {
        OwningOpRef<ModuleOp> copy = module.clone();
        TimingScope scope = timing.nest(name);
        ChipCompilation chip(*copy, options, scope);
        if (failed(chip.decide(name)) || failed(chip.makeKernels()) || failed(chip.makePlans()) || failed(chip.makeCode())) {
          hasFailed = true;
          continue; // all chips get to say what they lack
        }
        writeTarget(json, chip, /*withCode=*/true);
      }
    });
  });
  if (hasFailed)
    return failure();
  os << text << "\n";
  return success();
}

LogicalResult ssa::compile(ModuleOp module, const CompileOptions &options, llvm::raw_ostream &os, TimingScope &timing) {
  std::vector<std::string> chips = options.chips;
  if (chips.empty())
    chips.push_back("");
  for (size_t i = 0; i < chips.size(); ++i)
    if (llvm::is_contained(ArrayRef(chips).take_front(i), chips[i]))
      return module.emitError("the chip '") << chips[i] << "' is named twice";
  if (options.emission == Emission::Bundle)
    return compileBundle(module, chips, options, os, timing);
  if (chips.size() > 1)
    return module.emitError("expected one chip, but got ") << chips.size() << "; only a bundle is for several";

  ChipCompilation chip(module, options, timing);
  if (failed(chip.decide(chips.front())) || failed(chip.makeKernels()))
    return failure();
  if (options.emission == Emission::MLIR) {
    module.print(os);
    return success();
  }
  // Plans are made even if they are not wanted: an error in one is an error of the module.
  if (failed(chip.makePlans()))
    return failure();
  if (options.emission == Emission::Plan) {
    llvm::json::OStream json(os, 2);
    writeTarget(json, chip, /*withCode=*/false);
    json.flush();
    os << "\n";
    return success();
  }
  if (failed(chip.makeCode()))
    return failure();
  if (options.emission == Emission::Cubin) {
    FailureOr<std::string> cubin = assemblePTX(module.getLoc(), chip.code.ptx, chip.target, timing);
    if (failed(cubin))
      return failure();
    os << *cubin;
    return success();
  }
  os << (options.emission == Emission::LLVM ? chip.code.llvm : chip.code.ptx);
  return success();
}
