//===- ExplainText.cpp - Explanations for people --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Explanation.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ssa;
using llvm::format;
using llvm::raw_ostream;

static std::string shorten(StringRef text, size_t width) { return text.size() <= width ? text.str() : (text.take_front(width - 2) + "..").str(); }

static std::string formatBytes(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  std::string text;
  llvm::raw_string_ostream(text) << format(unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

static std::string formatCount(int64_t number) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (number >= 10'000'000)
    os << format("%.1fM", double(number) / 1e6);
  else
    os << number;
  return text;
}

/// "ssa.pool :24".
static std::string nameOp(Operation *op) {
  if (!op)
    return "-";
  std::string name = op->getName().getStringRef().str();
  unsigned line = getSourceLine(op->getLoc());
  return line ? name + " :" + std::to_string(line) : name;
}

/// Text that is broken between words.
static void printParagraph(raw_ostream &os, StringRef text, unsigned indent) {
  constexpr unsigned width = 118;
  unsigned column = indent;
  os.indent(indent);
  SmallVector<StringRef> words;
  text.split(words, ' ');
  for (auto [i, word] : llvm::enumerate(words)) {
    if (i && column + 1 + word.size() > width) {
      os << "\n";
      os.indent(indent + 2);
      column = indent + 2;
    } else if (i) {
      os << " ";
      ++column;
    }
    os << word;
    column += word.size();
  }
  os << "\n";
}

static double getTotal(const ExplainedEntry &entry) {
  double total = 0;
  for (const ExplainedKernel &kernel : entry.kernels)
    total += kernel.prediction.seconds;
  return total;
}

static void printKernels(raw_ostream &os, const ExplainedEntry &entry) {
  os << "\n  Kernels, in the order of their launch\n";
  os << "    #  kernel                    for                     runs     blocks  threads  shared KiB  regs  per SM\n";
  for (auto [i, k] : llvm::enumerate(entry.kernels)) {
    std::string registers = std::to_string(k.registers);
    registers = k.spilledBytes ? registers + (*k.spilledBytes ? "!" : " ") : "<" + registers + " ";
    os << format("  %3d  %-24s  %-22s  %5lld  %9s  %7lld  %10.1f  %5s %6s\n", int(i + 1), shorten(k.name, 24).c_str(), shorten(nameOp(k.op), 22).c_str(),
                 (long long)k.runs, formatCount(k.blocks).c_str(), (long long)k.threads, k.sharedBytes / 1024.0, registers.c_str(),
                 (std::to_string(k.blocksPerSM) + (k.spilledBytes ? " " : "+")).c_str());
  }
  if (int64_t leaving = llvm::count_if(entry.kernels, [](const ExplainedKernel &k) { return k.leaves; }))
    os << "  " << leaving << " of these, whose time is bound by 'launch', are for lists that agree more or less than is assumed: they leave at once.\n";
  if (entry.skipped)
    os << "  " << entry.skipped << (entry.skipped == 1 ? " more is" : " more are") << " in the plan for other sizes.\n";
}

static void printTimes(raw_ostream &os, const ExplainedEntry &entry) {
  double total = getTotal(entry);
  os << "\n  Where the time goes: predicted ms, and ms that each unit is busy\n";
  os << "    #  kernel                          ms  share   binds      matrix    vector   special    shared        L2    memory\n";
  for (auto [i, k] : llvm::enumerate(entry.kernels)) {
    os << format("  %3d  %-24s  %8.3f  %4.0f %%   %-8s", int(i + 1), shorten(k.name, 24).c_str(), k.prediction.seconds * 1e3,
                 total > 0 ? 100 * k.prediction.seconds / total : 0.0, k.prediction.binds.str().c_str());
    for (auto [name, seconds] : k.prediction.units.list())
      seconds > 0 ? os << format("%10.3f", seconds * 1e3) : os << "         -";
    os << "\n";
  }
  os << format("       %-24s  %8.3f\n", "all, one after another", total * 1e3);
}

static void printSchedule(raw_ostream &os, const char *mark, const RatedSchedule &rated, double best) {
  ScheduleAttr s = rated.schedule;
  std::string tile = std::to_string(s.getTileRows()) + " x " + std::to_string(s.getTileKeys()), text = stringifyLoopOrder(s.getOrder()).str();
  if (s.getSplit() > 1)
    text += ", split " + std::to_string(s.getSplit());
  if (s.getPair())
    text += ", pairs";
  if (s.getPolynomials() > 0)
    text += ", polynomials " + std::to_string(s.getPolynomials());
  if (s.getPartials() != Partials::f32)
    text += ", partials " + stringifyPartials(s.getPartials()).str();
  os << format("    %s %-26s  %-9s  %9s  %6lld  %10.3f  %6.2f   %s\n", mark, text.c_str(), stringifyInstruction(s.getInstruction()).str().c_str(),
               tile.c_str(), (long long)s.getStages(), rated.prediction.seconds * 1e3, best > 0 ? rated.prediction.seconds / best : 0.0,
               rated.prediction.binds.str().c_str());
}

static StringRef describeSource(const ExplainedChoice &choice) {
  if (choice.source == "written")
    return "written in the pattern";
  if (choice.source == "shared")
    return "that of all parts which one kernel makes";
  if (choice.source == "tuning")
    return "from the tuning file";
  if (choice.source == "measured")
    return "measured to be best for such ops; the model knows none that is better by more than its error";
  return "the model's best: better than the measured one by more than the model's error";
}

static std::string describeChoice(const ExplainedChoice &choice) {
  if (!choice.onDevice)
    return describeSource(choice).str();
  std::string text;
  llvm::raw_string_ostream(text) << "the device chooses: schedule 2 where the next query's list has " << choice.onDevice->agreeing.getPercent()
                                 << " % of a list, too, else schedule 1";
  return text;
}

/// Both schedules, with a star at the one that is used for lists as they are assumed, and when which is the better.
static void printAgreement(raw_ostream &os, const ExplainedChoice &choice) {
  const ExplainedAgreement &onDevice = *choice.onDevice;
  double best = choice.chosen.prediction.seconds;
  printSchedule(os, onDevice.agree ? "1" : "*", onDevice.agree ? onDevice.other : choice.chosen, best);
  printSchedule(os, onDevice.agree ? "*" : "2", onDevice.agree ? choice.chosen : onDevice.other, best);
  os << "      lists agree in, %    schedule 1, ms    schedule 2, ms\n";
  for (const ExplainedAgreement::Times &t : onDevice.times)
    os << format("      %17.0f  %16.3f  %16.3f\n", t.agreement * 100, t.seconds * 1e3, t.agreeingSeconds * 1e3);
}

/// What was chosen, and the fastest of what else could have been.
static void printAlternatives(raw_ostream &os, const ExplainedChoice &choice, unsigned most) {
  double best = choice.chosen.prediction.seconds;
  printSchedule(os, "*", choice.chosen, best);
  unsigned count = 0;
  for (const RatedSchedule &rated : choice.rated)
    if (rated.schedule != choice.chosen.schedule && count++ < most)
      printSchedule(os, " ", rated, best);
}

static void printChoice(raw_ostream &os, const ExplainedChoice &choice) {
  constexpr unsigned shown = 4;
  os << "\n  " << nameOp(choice.op) << ": " << describeChoice(choice) << "\n";
  os << "      order                       instr.          tile  stages  predicted ms  ratio   binds\n";
  if (choice.onDevice)
    printAgreement(os, choice);
  else
    printAlternatives(os, choice, shown);
  const Prediction &chosen = choice.chosen.prediction;
  if (double limit = chosen.units.longest(); limit > 0)
    os << format("      Useful work: %.0f TFLOP/s, at most %.0f by %s.\n", choice.usefulFlop / chosen.seconds / 1e12, choice.usefulFlop / limit / 1e12,
                 chosen.units.binding().str().c_str());
  if (choice.together > 0)
    os << format("      Blocks that every list has are attended to apart; with the others it would be %.3f ms.\n", choice.together * 1e3);
  if (choice.rated.size() > shown + 1)
    os << "      " << choice.rated.size() << " schedules are legal.";
  if (int64_t columns = choice.chosen.schedule.getTensorColumns(choice.op))
    os << "      " << columns << " of 512 columns of tensor memory.";
  if (choice.dense)
    os << format("      Without lists: %.3f ms.", choice.dense->seconds * 1e3);
  if (choice.dense)
    os << format(" Lists of neighbours are taken to agree in %.0f %%.", choice.agreement * 100);
  os << "\n";
}

static void printMemory(raw_ostream &os, const ExplainedEntry &entry) {
  os << "\n  Memory: arguments " << formatBytes(entry.argumentBytes) << ", results " << formatBytes(entry.resultBytes) << ", workspace "
     << formatBytes(entry.workspaceBytes) << "\n";
  for (const ExplainedGather &gather : entry.gathers) {
    os << "    " << nameOp(gather.op) << " keeps " << formatBytes(gather.keptBytes) << " of " << formatBytes(gather.sourceBytes);
    if (gather.keptBytes < gather.sourceBytes)
      os << ": " << formatBytes(gather.sourceBytes - gather.keptBytes) << " saved (" << 100 * (gather.sourceBytes - gather.keptBytes) / gather.sourceBytes
         << " %)";
    os << "\n";
  }
}

static void printFusion(raw_ostream &os, const ExplainedEntry &entry) {
  if (!entry.fusions.empty())
    os << "\n  Kernels that do more than one op\n";
  for (const ExplainedFusion &fusion : entry.fusions) {
    os << "    ";
    if (!fusion.part.empty())
      os << "the " << fusion.part << " of ";
    os << nameOp(fusion.op) << (fusion.part.empty() ? " is done" : " are made") << " by the kernel of " << nameOp(fusion.into);
    os << (fusion.condition.empty() ? "" : ", " + fusion.condition) << ": " << formatBytes(fusion.savedBytes) << " less to move\n";
  }
  if (entry.fused.empty())
    return;
  os << "\n  Became part of other ops:";
  for (auto [i, fused] : llvm::enumerate(entry.fused))
    os << (i ? ", " : " ") << fused.second << " x " << fused.first;
  os << "\n";
}

void Explanation::printText(raw_ostream &os) const {
  const ChipRates &rates = ChipRates::of(target);
  TargetAttr chip = target;
  os << chip.getChip() << ", rates of " << rates.product << (rates.isMeasured ? " as measured" : " as published, not measured") << "; assumed: "
     << assumptions.tokens << " tokens, " << assumptions.getQueries() << " queries, batch " << assumptions.batch;
  if (assumptions.agreement < 0) // each op's lists have one of their own
    os << "\n";
  else
    os << format(", lists that agree in %.0f %%\n", assumptions.agreement * 100);
  for (const ExplainedEntry &entry : entries) {
    func::FuncOp pattern = entry.pattern;
    os << "\n@" << pattern.getName() << format(": %zu launches, %.3f ms predicted\n", entry.kernels.size(), getTotal(entry) * 1e3);
    for (const std::string &refusal : entry.refusals)
      printParagraph(os, "A launcher would refuse these sizes: " + refusal + ". Name them: --sizes=..,NAME=ROWS", 2);
    printKernels(os, entry);
    printTimes(os, entry);
    for (const ExplainedChoice &choice : entry.choices)
      printChoice(os, choice);
    printFusion(os, entry);
    printMemory(os, entry);
  }
  if (!remarks.empty())
    os << "\nRemarks\n";
  for (const ExplainedRemark &remark : remarks)
    printParagraph(os, (remark.line ? ":" + std::to_string(remark.line) + " " : std::string()) + remark.text, 2);
}
