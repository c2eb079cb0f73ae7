//===- Options.cpp - The command line of ssa-run --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>

using namespace mlir::ssa::reference;
using llvm::StringRef;
using llvm::Twine;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message + "; see ssa-run --help");
}

static void addList(llvm::SmallVectorImpl<std::string> &list, StringRef text) {
  for (StringRef part : llvm::split(text, ','))
    list.push_back(part.str());
}

/// Sets an option that takes a value; false if there is none of that name.
static llvm::Expected<bool> setOption(Options &options, StringRef name, StringRef value) {
  if (name == "in")
    addList(options.inputs, value);
  else if (name == "out")
    addList(options.outputs, value);
  else if (name == "entry")
    options.entry = value.ltrim('@').str();
  else if (name == "device")
    options.device = value.str();
  else if (name == "chip")
    options.chip = value.str();
  else if (name == "cores" && value.getAsInteger(10, options.numCores))
    return makeError("--cores takes a number, not '" + value + "'");
  else if (name == "progress-after" && value.getAsDouble(options.progressAfter))
    return makeError("--progress-after takes a number of seconds, not '" + value + "'");
  else
    return name == "cores" || name == "progress-after";
  return true;
}

llvm::Expected<Options> Options::parse(llvm::ArrayRef<const char *> arguments) {
  Options options;
  while (!arguments.empty()) {
    StringRef argument = arguments.front(), name = argument;
    arguments = arguments.drop_front();
    if (argument == "-" || !name.consume_front("-")) {
      if (!options.file.empty())
        return makeError("there are two files, '" + options.file + "' and '" + argument + "'");
      options.file = argument.str();
      continue;
    }
    name.consume_front("-");
    bool *flag = name == "print" ? &options.print : name == "time" ? &options.time : nullptr;
    if (name == "help" || name == "h")
      flag = &options.help;
    if (flag) {
      *flag = true;
      continue;
    }
    auto [key, value] = name.split('=');
    bool isSeparate = !name.contains('=') && !arguments.empty();
    llvm::Expected<bool> known = setOption(options, key, isSeparate ? StringRef(arguments.front()) : value);
    if (!known)
      return known.takeError();
    if (!*known)
      return makeError("there is no option '" + argument + "'");
    if (!name.contains('=') && !isSeparate)
      return makeError("'" + argument + "' needs a value");
    arguments = arguments.drop_front(isSeparate);
  }
  return options;
}
