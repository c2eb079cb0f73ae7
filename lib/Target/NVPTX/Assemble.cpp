//===- Assemble.cpp - From PTX to machine code ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Support/Timing.h"
#include "ssa/Target/NVPTX.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;

/// The path of `ptxas`, or nothing.
static std::string findPtxas() {
  SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> folder = llvm::sys::Process::GetEnv(variable); folder && !folder->empty()) {
      SmallString<128> bin(*folder);
      llvm::sys::path::append(bin, "bin");
      folders.push_back(std::string(bin));
    }
  folders.push_back("/usr/local/cuda/bin");
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  SmallVector<StringRef> names(folders.begin(), folders.end());
  if (auto path = llvm::sys::findProgramByName("ptxas", names))
    return *path;
  return "";
}

static std::string readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

namespace {
/// A file that is gone when this is.
struct TemporaryFile {
  TemporaryFile(StringRef suffix) : error(llvm::sys::fs::createTemporaryFile("ssa", suffix, path)), remover(path) {}
  SmallString<128> path;
  std::error_code error;
  llvm::FileRemover remover;
};
} // namespace

namespace {
struct Assembled {
  std::string cubin, said;
};
} // namespace

static FailureOr<Assembled> runPtxas(Location loc, StringRef ptx, ssa::TargetAttr target, ArrayRef<StringRef> more, TimingScope &timing) {
  TimingScope scope = timing.nest("ptxas");
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return emitError(
        loc, "cannot make a cubin: there is no 'ptxas' in PATH, in CUDA_HOME or in /usr/local/cuda; install the "
             "CUDA toolkit, or emit 'ptx' or 'bundle', which the driver assembles");
  TemporaryFile input("ptx"), output("cubin"), messages("txt");
  for (const TemporaryFile *file : {&input, &output, &messages})
    if (file->error)
      return emitError(loc, "cannot make a temporary file: ") << file->error.message();
  std::error_code error;
  llvm::raw_fd_ostream os(input.path, error);
  os << ptx;
  os.close();
  if (error || os.has_error())
    return emitError(loc, "cannot write to '") << input.path << "'";

  std::string arch = ("-arch=" + target.getChip()).str();
  SmallVector<StringRef> arguments = {ptxas, arch, "-O3", "-o", output.path, input.path};
  llvm::append_range(arguments, more);
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(messages.path), StringRef(messages.path)};
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &problem);
  std::string said = StringRef(readFile(messages.path)).trim().str();
  if (status)
    return emitError(loc, "'ptxas' failed: ") << (said.empty() ? problem : said);
  return Assembled{readFile(output.path), said};
}

FailureOr<std::string> ssa::assemblePTX(Location loc, StringRef ptx, TargetAttr target, TimingScope &timing) {
  FailureOr<Assembled> assembled = runPtxas(loc, ptx, target, {}, timing);
  if (failed(assembled))
    return failure();
  if (!assembled->said.empty())
    emitWarning(loc, "'ptxas' says: ") << assembled->said;
  return assembled->cubin;
}

FailureOr<std::map<std::string, ssa::AssembledKernel>> ssa::describePTX(Location loc, StringRef ptx, TargetAttr target, TimingScope &timing) {
  FailureOr<Assembled> assembled = runPtxas(loc, ptx, target, {"-v"}, timing);
  if (failed(assembled))
    return failure();
  std::map<std::string, AssembledKernel> kernels;
  AssembledKernel *kernel = nullptr;
  SmallVector<StringRef> lines;
  StringRef(assembled->said).split(lines, '\n');
  // "Compiling entry function 'k' for", then "8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads" and "Used 40 registers".
  for (StringRef line : lines) {
    auto numberBefore = [&](StringRef words) {
      int64_t number = 0;
      StringRef before = line.split(words).first.rtrim();
      return before.size() < line.size() && !before.substr(before.find_last_not_of("0123456789") + 1).getAsInteger(10, number) ? number : 0;
    };
    if (line.contains("Compiling entry function"))
      kernel = &kernels[line.split('\'').second.split('\'').first.str()];
    else if (kernel && line.contains("spill stores"))
      kernel->spilledBytes = numberBefore("bytes spill stores") + numberBefore("bytes spill loads");
    else if (kernel && line.contains("Used "))
      kernel->registers = numberBefore("registers");
  }
  return kernels;
}
