//===- Parser.cpp - Reads a PTX module ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Directives, declarations and statements; Decoder.cpp turns statements into instructions.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

using namespace mlir::ssa::sim;

static uint64_t alignTo(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

namespace {
/// A part of a kernel's body, in order.
struct Item {
  enum Kind : uint8_t { Instruction, Label, Registers, OpenScope, CloseScope } kind;
  Statement statement;
  std::string_view name;
  Class registerClass = Class::None;
  int64_t count = 0; // of a range of registers; 0 for a single one
};

class Parser {
public:
  Parser(std::string_view text, Module::Contents &module, std::string &error)
      : text(text), module(module), error(error) {}
  bool run();

private:
  bool fail(const std::string &message) {
    if (error.empty())
      error = "line " + std::to_string(peek().line) + ": " + message;
    return false;
  }
  const Token &peek(size_t ahead = 0) const { return tokens[std::min(position + ahead, tokens.size() - 1)]; }
  Token take() { return tokens[position < tokens.size() - 1 ? position++ : position]; }
  bool takeIf(char c) {
    if (!peek().is(c))
      return false;
    ++position;
    return true;
  }
  bool expect(char c) {
    return takeIf(c) || fail(std::string("expected '") + c + "', but got '" + std::string(peek().text) + "'");
  }
  void skipStatement() {
    while (peek().kind != Token::End && !takeIf(';'))
      ++position;
  }
  bool integer(int64_t &value) {
    bool isNegative = takeIf('-');
    takeIf('+');
    if (peek().kind != Token::Integer)
      return fail("expected a number, but got '" + std::string(peek().text) + "'");
    value = take().value;
    value = isNegative ? -value : value;
    return true;
  }

  bool topLevel();
  bool variable(Kernel *kernel, bool isExternal);
  bool initializer(Variable &variable, unsigned elementBytes);
  bool entry();
  bool parameters(Kernel &kernel);
  bool tuning(Kernel &kernel);
  bool body(Kernel &kernel);
  bool bodyItem(Kernel &kernel, std::vector<Item> &items, unsigned &depth);
  bool registers(std::vector<Item> &items);
  bool instruction(std::vector<Item> &items);
  bool operand(Operand &operand);
  void placeShared(Kernel &kernel, size_t bodyBegin, size_t bodyEnd);
  bool decode(Kernel &kernel, const std::vector<Item> &items);

  std::string_view text;
  Module::Contents &module;
  std::string &error;
  std::vector<Token> tokens;
  size_t position = 0;
  std::map<std::string, Variable> sharedVariables, externals;
};
} // namespace

bool Parser::run() {
  for (size_t start = 0; start <= text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    module.lines.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  if (!tokenize(text, tokens, error))
    return false;
  while (peek().kind != Token::End)
    if (!topLevel())
      return false;
  return true;
}

bool Parser::topLevel() {
  if (peek().kind != Token::Directive)
    return fail("expected a directive, but got '" + std::string(peek().text) + "'");
  std::string_view directive = take().text;
  if (directive == ".version") { // 8.8 is a name or a float to the tokenizer
    unsigned line = peek().line;
    while (peek().kind != Token::End && peek().line == line)
      ++position;
    return true;
  }
  if (directive == ".target") {
    module.target = std::string(take().text);
    while (takeIf(','))
      ++position;
    return true;
  }
  if (directive == ".address_size") {
    int64_t bits;
    return integer(bits) && (bits == 64 || fail("addresses must be 64 bits wide"));
  }
  if (directive == ".visible" || directive == ".weak")
    return true;
  bool isExternal = directive == ".extern";
  if (isExternal)
    directive = take().text;
  if (directive == ".entry")
    return entry();
  if (directive == ".shared" || directive == ".global" || directive == ".const") {
    --position;
    return variable(nullptr, isExternal);
  }
  if (directive == ".pragma" || directive == ".file") {
    unsigned line = peek().line;
    while (peek().kind != Token::End && peek().line == line)
      ++position;
    return true;
  }
  if (directive == ".section") {
    while (peek().kind != Token::End && !takeIf('}'))
      ++position;
    return true;
  }
  if (directive == ".func" && isExternal) {
    skipStatement();
    return true;
  }
  --position;
  return fail("'" + std::string(directive) + "' is not known to the simulator");
}

bool Parser::initializer(Variable &variable, unsigned elementBytes) {
  variable.initial.assign(variable.bytes, 0);
  size_t offset = 0;
  bool isList = takeIf('{');
  while (!peek().is('}') && !peek().is(';')) {
    bool isNegative = takeIf('-');
    if (peek().kind != Token::Integer && peek().kind != Token::Float32 && peek().kind != Token::Float64)
      return fail("an initial value must be a number");
    int64_t value = take().value;
    value = isNegative ? -value : value;
    if (offset + elementBytes <= variable.initial.size())
      std::memcpy(variable.initial.data() + offset, &value, elementBytes);
    offset += elementBytes;
    takeIf(',');
  }
  return !isList || expect('}');
}

/// `.shared .align 16 .b8 name[1024] = {..};` of a kernel, or of the module if it is null.
bool Parser::variable(Kernel *kernel, bool isExternal) {
  std::string_view space = take().text;
  Variable result;
  result.space = space == ".shared"  ? Space::Shared
                 : space == ".local" ? Space::Local
                 : space == ".const" ? Space::Const
                                     : Space::Global;
  int64_t alignment = 0, vector = 1;
  unsigned elementBytes = 0;
  while (peek().kind == Token::Directive) {
    std::string_view word = take().text;
    if (word == ".align" && !integer(alignment))
      return false;
    if (word == ".v2" || word == ".v4")
      vector = word[2] - '0';
    if (unsigned bytes = bytesOfType(word.substr(1)))
      elementBytes = bytes;
  }
  if (!elementBytes)
    return fail("a variable needs a type");
  std::string name(take().text);
  int64_t count = 1;
  bool isUnsized = false;
  while (takeIf('[')) {
    int64_t size = 0;
    isUnsized |= peek().is(']');
    if (!isUnsized && !integer(size))
      return false;
    count *= size;
    if (!expect(']'))
      return false;
  }
  result.bytes = count * vector * elementBytes;
  result.alignment = std::max<int64_t>(alignment, elementBytes * vector);
  if (takeIf('=') && !initializer(result, elementBytes))
    return false;
  if (!expect(';'))
    return false;
  if (result.space == Space::Shared) {
    if (kernel) {
      result.offset = sharedBase + alignTo(kernel->sharedBytes, result.alignment);
      kernel->sharedBytes = result.offset + result.bytes - sharedBase;
      kernel->sharedVariables[name] = result;
    } else
      (isUnsized || isExternal ? externals : sharedVariables)[name] = result;
    return true;
  }
  if (result.space == Space::Local && kernel) {
    result.offset = alignTo(kernel->localBytes, result.alignment);
    kernel->localBytes = result.offset + result.bytes;
    kernel->sharedVariables[name] = result; // one table of all variables of the kernel
    return true;
  }
  if (result.space == Space::Const) {
    result.offset = alignTo(module.constantMemory.size(), result.alignment);
    module.constantMemory.resize(result.offset + result.bytes);
    if (!result.initial.empty())
      std::memcpy(module.constantMemory.data() + result.offset, result.initial.data(), result.bytes);
    module.variables[name] = result;
    return true;
  }
  return fail("variables in '" + std::string(space) + "' are not supported: pass memory as an argument");
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool Parser::parameters(Kernel &kernel) {
  if (!takeIf('('))
    return true;
  uint64_t end = 0;
  while (!peek().is(')')) {
    unsigned bytes = 0;
    uint64_t alignment = 0;
    bool isPointer = false;
    while (peek().kind == Token::Directive) {
      std::string_view word = take().text;
      isPointer |= word == ".ptr";
      if (word == ".align") {
        int64_t number = 0;
        if (!integer(number))
          return false;
        alignment = isPointer ? 0 : number; // that of a pointer is what it points to
      }
      if (unsigned size = bytesOfType(word.substr(1)))
        bytes = size;
    }
    if (!bytes)
      return fail("a parameter needs a type");
    Parameter parameter;
    parameter.name = std::string(take().text);
    parameter.alignment = alignment ? alignment : bytes;
    int64_t count = 1;
    if (takeIf('[') && (!integer(count) || !expect(']')))
      return false;
    parameter.bytes = bytes * count;
    parameter.offset = end = alignTo(end, parameter.alignment);
    end += parameter.bytes;
    kernel.parameters.push_back(parameter);
    if (!takeIf(',') && !peek().is(')'))
      return fail("expected ',' or ')' after a parameter");
  }
  kernel.parameterBytes = end;
  return expect(')');
}

/// What stands between the parameters and the body.
bool Parser::tuning(Kernel &kernel) {
  while (peek().kind == Token::Directive) {
    std::string_view word = take().text;
    std::array<uint32_t, 3> numbers = {1, 1, 1};
    for (unsigned i = 0; i < 3 && peek().kind == Token::Integer; ++i) {
      numbers[i] = take().value;
      if (!takeIf(','))
        break;
    }
    if (word == ".reqntid")
      kernel.requiredBlock = numbers;
    else if (word == ".maxntid")
      kernel.maxBlock = numbers;
    else if (word == ".reqnctapercluster")
      kernel.requiredCluster = numbers;
    else if (word == ".maxnreg")
      kernel.maxRegisters = numbers[0];
    else if (word == ".minnctapersm")
      kernel.minBlocks = numbers[0];
    else if (word == ".pragma")
      skipStatement();
    else if (word != ".maxclusterrank" && word != ".explicitcluster" && word != ".noreturn")
      return fail("'" + std::string(word) + "' is not known to the simulator");
  }
  return true;
}

bool Parser::entry() {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = std::string(take().text);
  if (!parameters(*kernel) || !tuning(*kernel) || !body(*kernel))
    return false;
  std::string name = kernel->name;
  module.kernels[name] = std::move(kernel);
  return true;
}

/// Gives addresses to shared variables of the module that the body names; those without a size follow all others. A variable of its own hides
/// one of the module.
void Parser::placeShared(Kernel &kernel, size_t bodyBegin, size_t bodyEnd) {
  std::set<std::string> used;
  for (size_t i = bodyBegin; i < bodyEnd; ++i)
    if (tokens[i].kind == Token::Name && tokens[i].text[0] != '%')
      used.insert(std::string(tokens[i].text));
  for (auto [name, variable] : sharedVariables)
    if (used.count(name) && !kernel.sharedVariables.count(name)) {
      variable.offset = sharedBase + alignTo(kernel.sharedBytes, variable.alignment);
      kernel.sharedBytes = variable.offset + variable.bytes - sharedBase;
      kernel.sharedVariables[name] = variable;
    }
  uint64_t alignment = 1;
  for (auto &[name, variable] : externals)
    if (used.count(name))
      alignment = std::max(alignment, variable.alignment);
  kernel.sharedBytes = alignTo(kernel.sharedBytes, alignment); // as the assembler counts them
  for (auto [name, variable] : externals)
    if (used.count(name)) {
      variable.offset = sharedBase + kernel.sharedBytes;
      kernel.sharedVariables[name] = variable;
    }
}

bool Parser::body(Kernel &kernel) {
  if (!expect('{'))
    return false;
  size_t begin = position;
  std::vector<Item> items;
  unsigned depth = 1;
  while (depth)
    if (!bodyItem(kernel, items, depth))
      return false;
  placeShared(kernel, begin, position);
  return decode(kernel, items);
}

bool Parser::bodyItem(Kernel &kernel, std::vector<Item> &items, unsigned &depth) {
  if (peek().kind == Token::End)
    return fail("the body of '" + kernel.name + "' has no end");
  if (peek().is('{') || peek().is('}')) {
    bool isOpen = take().is('{');
    depth += isOpen ? 1 : -1;
    items.emplace_back();
    items.back().kind = isOpen ? Item::OpenScope : Item::CloseScope;
    return true;
  }
  if (takeIf(';'))
    return true;
  if (peek().kind == Token::Directive) {
    std::string_view word = peek().text;
    if (word == ".reg") {
      ++position;
      return registers(items);
    }
    if (word == ".shared" || word == ".local")
      return variable(&kernel, false);
    if (word == ".pragma") {
      ++position;
      // "used_bytes_mask 0xfff": which bytes of the next load are used.
      std::string_view what = peek().text;
      if (size_t at = what.find("used_bytes_mask"); at != std::string_view::npos) {
        items.emplace_back();
        items.back().kind = Item::Instruction;
        items.back().statement.mnemonic = ".used_bytes_mask";
        items.back().count = int64_t(std::strtoull(std::string(what.substr(at + 16)).c_str(), nullptr, 0));
      }
      skipStatement();
      return true;
    }
    if (word == ".loc" || word == ".file") {
      unsigned line = peek().line;
      while (peek().kind != Token::End && peek().line == line)
        ++position;
      return true;
    }
    return fail("'" + std::string(word) + "' is not known to the simulator");
  }
  if (peek().kind == Token::Name && peek(1).is(':') && !peek(2).is(':')) {
    items.emplace_back();
    items.back().kind = Item::Label;
    items.back().name = take().text;
    return expect(':');
  }
  return instruction(items);
}

/// `.reg .b32 %r<10>;` or `.reg .pred p, q;`
bool Parser::registers(std::vector<Item> &items) {
  std::string_view type = take().text;
  Class kind = classOfType(type.substr(1));
  if (kind == Class::None)
    return fail("registers of type '" + std::string(type) + "' are not supported");
  do {
    items.emplace_back();
    Item &item = items.back();
    item.kind = Item::Registers;
    item.registerClass = kind;
    item.name = take().text;
    if (takeIf('<') && (!integer(item.count) || !expect('>')))
      return false;
  } while (takeIf(','));
  return expect(';');
}

bool Parser::operand(Operand &result) {
  if (takeIf('!')) {
    result.isNegated = true;
    return operand(result);
  }
  if (takeIf('{')) {
    result.kind = Operand::Vector;
    do {
      result.elements.emplace_back();
      if (!operand(result.elements.back()))
        return false;
    } while (takeIf(','));
    return expect('}');
  }
  if (takeIf('[')) {
    Operand base;
    if (!operand(base))
      return false;
    result = base;
    result.kind = Operand::Address;
    if (takeIf(',')) {
      result.elements.emplace_back();
      if (!operand(result.elements.back()))
        return false;
    }
    return expect(']');
  }
  const Token &token = peek();
  if (token.kind == Token::Name) {
    if (token.text == "_") {
      ++position;
      result.kind = Operand::Sink;
    } else {
      result.kind = Operand::Name;
      result.name = take().text;
    }
    if (peek().is('+') || (peek().is('-') && peek(1).kind == Token::Integer)) {
      takeIf('+');
      if (!integer(result.value))
        return false;
    }
    if (takeIf('|'))
      result.second = take().text;
    return true;
  }
  if (token.kind == Token::Float32 || token.kind == Token::Float64) {
    result.kind = token.kind == Token::Float32 ? Operand::Float32 : Operand::Float64;
    result.value = take().value;
    return true;
  }
  result.kind = Operand::Integer;
  return integer(result.value);
}

bool Parser::instruction(std::vector<Item> &items) {
  items.emplace_back();
  Item &item = items.back();
  item.kind = Item::Instruction;
  Statement &statement = item.statement;
  if (takeIf('@')) {
    statement.isGuardNegated = takeIf('!');
    statement.guard = take().text;
  }
  if (peek().kind != Token::Name)
    return fail("expected an instruction, but got '" + std::string(peek().text) + "'");
  statement.line = peek().line;
  statement.mnemonic = take().text;
  while (!peek().is(';')) {
    statement.operands.emplace_back();
    if (!operand(statement.operands.back()))
      return false;
    if (!takeIf(',') && !peek().is(';'))
      return fail("expected ',' or ';', but got '" + std::string(peek().text) + "'");
  }
  return expect(';');
}

bool Parser::decode(Kernel &kernel, const std::vector<Item> &items) {
  Decoder decoder(module, kernel, error);
  int64_t usedBytes = 0;
  for (const Item &item : items) {
    switch (item.kind) {
    case Item::Label:
      decoder.addLabel(item.name);
      break;
    case Item::OpenScope:
      decoder.openScope();
      break;
    case Item::CloseScope:
      if (&item != &items.back())
        decoder.closeScope();
      break;
    case Item::Registers:
      if (!decoder.declareRegisters(item.registerClass, item.name, std::max<int64_t>(item.count, 1), item.count > 0))
        return false;
      break;
    case Item::Instruction:
      if (item.statement.mnemonic[0] == '.') {
        usedBytes = item.count;
        break;
      }
      if (!decoder.decode(item.statement))
        return false;
      if (usedBytes)
        kernel.code.back().extra = uint32_t(usedBytes);
      usedBytes = 0;
      break;
    }
  }
  return decoder.finish();
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

std::string Module::Contents::describe(unsigned line) const {
  std::string result;
  for (; line >= 1 && line <= lines.size(); ++line) {
    for (char c : lines[line - 1])
      if (c != '\t' && c != '\r')
        result += c;
      else if (!result.empty() && result.back() != ' ')
        result += ' ';
    if (result.find(';') != std::string::npos)
      break;
    result += ' ';
  }
  result.erase(0, result.find_first_not_of(' '));
  result.erase(std::min(result.find(';'), result.size()));
  if (result.size() > 120)
    result = result.substr(0, 117) + "..";
  return result;
}

Module::~Module() = default;

std::unique_ptr<Module> Module::parse(std::string_view text, std::string &error) {
  std::unique_ptr<Module> module(new Module());
  module->data = std::make_unique<Contents>();
  error.clear();
  // Tokens refer to the text, which only has to live until all is decoded.
  if (!Parser(text, *module->data, error).run())
    return nullptr;
  return module;
}

std::vector<std::string> Module::getKernelNames() const {
  std::vector<std::string> names;
  for (const auto &[name, kernel] : data->kernels)
    names.push_back(name);
  return names;
}

bool Module::hasKernel(const std::string &name) const { return data->kernels.count(name); }

int64_t Module::getStaticSharedBytes(const std::string &kernel) const {
  auto found = data->kernels.find(kernel);
  return found == data->kernels.end() ? 0 : found->second->sharedBytes;
}

std::array<uint32_t, 3> Module::getRequiredBlock(const std::string &kernel) const {
  auto found = data->kernels.find(kernel);
  if (found == data->kernels.end() || !found->second->requiredBlock[0])
    return {1, 1, 1};
  return found->second->requiredBlock;
}

std::vector<uint32_t> Module::getParameterOffsets(const std::string &kernel) const {
  std::vector<uint32_t> offsets;
  if (auto found = data->kernels.find(kernel); found != data->kernels.end())
    for (const Parameter &parameter : found->second->parameters)
      offsets.push_back(parameter.offset);
  return offsets;
}
