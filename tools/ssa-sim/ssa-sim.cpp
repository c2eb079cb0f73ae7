//===- ssa-sim.cpp - Runs a PTX kernel on the CPU -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Simulator/Driver.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <unistd.h>

using namespace mlir::ssa::sim;

static const char helpText[] = R"(ssa-sim: run a kernel of a PTX module on the CPU, and check what it does

usage: ssa-sim FILE.ptx [--kernel=NAME] [--grid=X[,Y[,Z]]] [--block=X[,Y[,Z]]] [--cluster=X[,Y[,Z]]] [--shared=BYTES] [--arg=ARGUMENT].. [--print=NAME]..

  FILE.ptx          the module; '-' is standard input
  --kernel=NAME     the kernel; the only one if left out
  --grid, --block   blocks, and threads of a block; 1 if left out. A block size that the kernel requires is taken from it
  --cluster         blocks of a cluster; 1 if left out. A size that the kernel requires is taken from it
  --shared=BYTES    dynamic shared memory
  --arg=ARGUMENT    one for each parameter of the kernel, in order:
                      i32=5  i64=-1  f32=0.5           a number
                      NAME=TYPE[COUNT]                 device memory that nothing has written
                      NAME=TYPE[COUNT]:arange          0, 1, 2, ..
                      NAME=TYPE[COUNT]:1,2,3           these numbers, the last one repeated
                      NAME=TYPE[COUNT]:@FILE           the bytes of a file
                      map=NAME:32x100:8x64:128b        a tensor map of memory that was named before: rows x columns, box, swizzle (none, 32b, 64b, 128b)
                    TYPE is u8, u16, i32, u32, i64, f32 or f64
  --print=NAME      print the memory of that name afterwards
  --save=NAME=FILE  write its bytes to a file
  --list            print the kernels of the module and end
  --no-checks       execute only
  --threads=N       the most cores to use
  --limit=N         instructions that one block may execute
  --stats           print how many instructions were executed and how fast

Faults go to standard error, and the exit status is then 1. docs/simulator.md says what is checked.
)";

static int fail(const std::string &message) {
  std::cerr << "error: " << message << "\n";
  return 1;
}

namespace {
/// Device memory that the command line names.
struct Array {
  std::string type;
  int64_t count = 0, size = 0;
  uint64_t address = 0;
};

struct CommandLine {
  std::string file, kernel;
  std::vector<std::string> arguments, prints, saves;
  LaunchConfig config;
  Settings settings;
  bool isList = false, hasBlock = false, wantsStatistics = false;

  /// Empty, or what is wrong.
  std::string parse(int argc, char **argv);
};
} // namespace

static bool parseTriple(const std::string &text, std::array<uint32_t, 3> &result) {
  return std::sscanf(text.c_str(), "%u,%u,%u", &result[0], &result[1], &result[2]) >= 1;
}

std::string CommandLine::parse(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], value;
    if (argument.compare(0, 2, "--") != 0) {
      file = argument;
      continue;
    }
    size_t equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    bool isGood = true;
    if (name == "kernel")
      kernel = value;
    else if (name == "grid")
      isGood = parseTriple(value, config.grid);
    else if (name == "block")
      isGood = hasBlock = parseTriple(value, config.block);
    else if (name == "cluster")
      isGood = parseTriple(value, config.cluster);
    else if (name == "shared")
      config.dynamicSharedBytes = uint32_t(std::strtoul(value.c_str(), nullptr, 10));
    else if (name == "arg")
      arguments.push_back(value);
    else if (name == "print")
      prints.push_back(value);
    else if (name == "save")
      saves.push_back(value);
    else if (name == "threads")
      settings.numThreads = unsigned(std::strtoul(value.c_str(), nullptr, 10));
    else if (name == "limit")
      settings.maxInstructionsPerBlock = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "list")
      isList = true;
    else if (name == "no-checks")
      settings.checks = false;
    else if (name == "stats")
      wantsStatistics = true;
    else
      isGood = false;
    if (!isGood)
      return "'" + argument + "' is not known or has no valid value; see ssa-sim --help";
  }
  return file.empty() ? "there is no file to run; see ssa-sim --help" : "";
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

template <class T>
static void append(std::vector<uint8_t> &bytes, T value) {
  while (bytes.size() % sizeof(T))
    bytes.push_back(0);
  const uint8_t *first = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

/// Stores the number that a text starts with; returns what follows it, the text itself if it is no number.
static const char *storeElement(std::vector<uint8_t> &bytes, const std::string &type, const char *text) {
  char *end = nullptr;
  if (type[0] == 'f') {
    double value = std::strtod(text, &end);
    type == "f32" ? append(bytes, float(value)) : append(bytes, value);
    return end;
  }
  uint64_t value = std::strtoull(text, &end, 0); // a sign is fine
  if (type == "u8")
    bytes.push_back(uint8_t(value));
  else if (type == "u16")
    append(bytes, uint16_t(value));
  else if (type == "i64")
    append(bytes, value);
  else
    append(bytes, uint32_t(value));
  return end;
}

static int64_t sizeOf(const std::string &type) {
  static const std::map<std::string, int64_t> sizes = {{"u8", 1},  {"u16", 2}, {"i32", 4}, {"u32", 4},
                                                       {"i64", 8}, {"f32", 4}, {"f64", 8}};
  auto found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

/// Adds a tensor map of two dimensions; empty, or what is wrong.
static std::string addMap(const std::string &text, const std::map<std::string, Array> &arrays,
                          std::vector<uint8_t> &parameters) {
  char name[64] = {}, swizzle[16] = {};
  unsigned rows, columns, box[2];
  if (std::sscanf(text.c_str(), "%63[^:]:%ux%u:%ux%u:%15s", name, &rows, &columns, &box[1], &box[0], swizzle) != 6 ||
      !arrays.count(name))
    return "'" + text + "' is no tensor map of an argument before it; see ssa-sim --help";
  const Array &array = arrays.at(name);
  static const std::map<std::string, int> swizzles = {{"none", 0}, {"32b", 1}, {"64b", 2}, {"128b", 3}};
  if (!swizzles.count(swizzle) || int64_t(rows) * columns > array.count)
    return "'" + text + "' does not fit its argument";
  static const std::map<int64_t, int> types = {{1, 0}, {2, 1}, {4, 2}, {8, 4}};
  uint64_t sizes[] = {columns, rows}, strides[] = {uint64_t(columns) * uint64_t(array.size)};
  uint32_t steps[] = {1, 1};
  using Encode = int(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                     const uint32_t *, int, int, int, int);
  auto encode = reinterpret_cast<Encode *>(findEntryPoint("cuTensorMapEncodeTiled"));
  size_t at = parameters.size();
  parameters.resize(at + 128);
  if (encode(parameters.data() + at, types.at(array.size), 2, reinterpret_cast<void *>(uintptr_t(array.address)), sizes,
             strides, box, steps, 0, swizzles.at(swizzle), 0, 0))
    return "'" + text + "' is no valid tensor map";
  return "";
}

/// Adds one argument to the parameter block; empty, or what is wrong.
static std::string addArgument(const std::string &text, Memory &memory, std::map<std::string, Array> &arrays,
                               std::vector<uint8_t> &parameters) {
  size_t equals = text.find('=');
  std::string name = text.substr(0, equals), value = equals == std::string::npos ? "" : text.substr(equals + 1);
  size_t open = value.find('['), close = value.find(']');
  if (name == "map")
    return addMap(value, arrays, parameters);
  if (open == std::string::npos) {
    if (equals == std::string::npos || !sizeOf(name))
      return "'" + text + "' is no argument; see ssa-sim --help";
    if (storeElement(parameters, name, value.c_str()) == value.c_str())
      return "'" + text + "' has no number";
    return "";
  }
  Array array;
  array.type = value.substr(0, open);
  array.size = sizeOf(array.type);
  array.count = std::strtoll(value.c_str() + open + 1, nullptr, 10);
  if (close == std::string::npos || !array.size || array.count < 0)
    return "'" + text + "' is no argument; see ssa-sim --help";
  array.address = memory.allocate(array.size * array.count);
  memory.setName(array.address, "argument '" + name + "'");
  append(parameters, array.address);
  arrays[name] = array;
  if (close + 1 == value.size() || !array.count)
    return "";
  std::string initial = value.substr(close + 2);
  std::vector<uint8_t> bytes;
  if (initial[0] == '@') {
    std::ifstream file(initial.substr(1), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    if (int64_t(bytes.size()) != array.size * array.count)
      return "'" + initial.substr(1) + "' must have " + std::to_string(array.size * array.count) + " bytes, but has " +
             std::to_string(bytes.size());
  }
  const char *next = initial.c_str();
  for (int64_t i = 0; initial[0] != '@' && i < array.count; ++i) {
    if (initial == "arange") {
      storeElement(bytes, array.type, std::to_string(i).c_str());
      continue;
    }
    const char *end = storeElement(bytes, array.type, next);
    if (end == next)
      return "'" + initial + "' is no list of numbers";
    next = *end == ',' ? end + 1 : next; // the last one again and again
  }
  memory.write(array.address, bytes.data(), int64_t(bytes.size()));
  return "";
}

static void printArray(const std::string &name, const Array &array, const Memory &memory) {
  std::vector<uint8_t> bytes(array.size * array.count);
  memory.read(array.address, bytes.data(), int64_t(bytes.size()));
  std::cout << name << ":";
  for (int64_t i = 0; i < array.count; ++i) {
    const uint8_t *at = bytes.data() + i * array.size;
    if (memory.findUndefined(array.address + i * array.size, array.size) >= 0) {
      std::cout << " -";
      continue;
    }
    auto as = [&](auto sample) {
      std::memcpy(&sample, at, sizeof(sample));
      return sample;
    };
    if (array.type == "f32")
      std::cout << " " << as(float());
    else if (array.type == "f64")
      std::cout << " " << as(double());
    else if (array.type == "u8")
      std::cout << " " << unsigned(*at);
    else if (array.type == "u16")
      std::cout << " " << as(uint16_t());
    else if (array.type == "i64")
      std::cout << " " << as(int64_t());
    else if (array.type == "i32")
      std::cout << " " << as(int32_t());
    else
      std::cout << " " << as(uint32_t());
  }
  std::cout << "\n";
}

//===----------------------------------------------------------------------===//
// Main
//===----------------------------------------------------------------------===//

static int run(CommandLine &line, const Module &module) {
  std::vector<std::string> kernels = module.getKernelNames();
  if (line.kernel.empty() && kernels.size() != 1)
    return fail("the module has " + std::to_string(kernels.size()) + " kernels; choose one with --kernel");
  line.config.kernel = line.kernel.empty() ? kernels.front() : line.kernel;
  if (!module.hasKernel(line.config.kernel))
    return fail("the module has no kernel '" + line.config.kernel + "'");
  if (!line.hasBlock)
    line.config.block = module.getRequiredBlock(line.config.kernel);
  Memory memory;
  std::map<std::string, Array> arrays;
  std::vector<uint32_t> offsets = module.getParameterOffsets(line.config.kernel);
  for (const std::string &argument : line.arguments) {
    size_t number = size_t(&argument - line.arguments.data());
    if (number < offsets.size())
      line.config.parameters.resize(offsets[number]);
    if (std::string problem = addArgument(argument, memory, arrays, line.config.parameters); !problem.empty())
      return fail(problem);
  }
  if (isatty(STDERR_FILENO))
    line.settings.progress = [](const std::string &kernel, uint64_t done, uint64_t total) {
      std::cerr << "\r" << kernel << ": " << done << " of " << total << " blocks ";
    };
  Statistics statistics;
  std::vector<Fault> faults = launch(module, memory, line.config, line.settings, &statistics);
  for (const Fault &fault : faults)
    std::cerr << fault.format() << "\n";
  if (!faults.empty())
    std::cerr << "error: " << faults.size() << (faults.size() == 1 ? " fault\n" : " faults\n");
  for (const std::string &name : line.prints) {
    auto found = arrays.find(name);
    if (found == arrays.end())
      return fail("there is no argument '" + name + "' to print");
    printArray(name, found->second, memory);
  }
  for (const std::string &save : line.saves) {
    size_t equals = save.find('=');
    auto found = arrays.find(save.substr(0, equals));
    if (equals == std::string::npos || found == arrays.end())
      return fail("--save=" + save + " names no argument");
    std::vector<char> bytes(found->second.size * found->second.count);
    memory.read(found->second.address, bytes.data(), int64_t(bytes.size()));
    std::ofstream file(save.substr(equals + 1), std::ios::binary);
    if (!file.write(bytes.data(), std::streamsize(bytes.size())))
      return fail("cannot write '" + save.substr(equals + 1) + "'");
  }
  if (line.wantsStatistics)
    std::printf("%llu blocks, %llu warp instructions, %llu thread instructions, %.3f s, %.1f million thread "
                "instructions a second of a core\n",
                (unsigned long long)statistics.blocks, (unsigned long long)statistics.warpInstructions,
                (unsigned long long)statistics.threadInstructions, statistics.seconds,
                double(statistics.threadInstructions) / 1e6 / (statistics.seconds > 0 ? statistics.seconds : 1));
  return faults.empty() ? 0 : 1;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--help") || !std::strcmp(argv[i], "-h")) {
      std::cout << helpText;
      return 0;
    }
  CommandLine line;
  if (std::string problem = line.parse(argc, argv); !problem.empty())
    return fail(problem);
  std::string text;
  if (line.file == "-")
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  else {
    std::ifstream file(line.file, std::ios::binary);
    if (!file)
      return fail("cannot read '" + line.file + "'");
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::string error;
  std::unique_ptr<Module> module = Module::parse(text, error);
  if (!module)
    return fail("'" + line.file + "': " + error);
  if (!line.isList)
    return run(line, *module);
  for (const std::string &name : module->getKernelNames())
    std::cout << name << "\n";
  return 0;
}
