//===- Decoder.cpp - From statements to instructions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include <algorithm>
#include <cstring>

using namespace mlir::ssa::sim;

Class mlir::ssa::sim::classOfType(std::string_view type) {
  static const std::unordered_map<std::string_view, Class> classes = {
      {"pred", Class::Predicate}, {"b16", Class::Half},   {"u16", Class::Half},   {"s16", Class::Half},
      {"f16", Class::Half},       {"bf16", Class::Half},  {"b32", Class::Word},   {"u32", Class::Word},
      {"s32", Class::Word},       {"f32", Class::Word},   {"f16x2", Class::Word}, {"bf16x2", Class::Word},
      {"b64", Class::Double},     {"u64", Class::Double}, {"s64", Class::Double}, {"f64", Class::Double}};
  auto found = classes.find(type);
  return found == classes.end() ? Class::None : found->second;
}

unsigned mlir::ssa::sim::bytesOfType(std::string_view type) {
  if (type == "b8" || type == "u8" || type == "s8")
    return 1;
  if (type == "b128")
    return 16;
  switch (classOfType(type)) {
  case Class::Half:
    return 2;
  case Class::Word:
    return 4;
  case Class::Double:
    return 8;
  default:
    return 0;
  }
}

const Tables &Tables::get() {
  static const Tables tables = [] {
    Tables result;
    addIntegerRows(result);
    addFloatRows(result);
    addPackedRows(result);
    addMoves(result);
    addConversions(result);
    addComparisons(result);
    addControl(result);
    addWarpOperations(result);
    addBarriers(result);
    addAccesses(result);
    addAsyncCopies(result);
    addMatrixOperations(result);
    addWarpgroupOperations(result);
    addTensorOperations(result);
    addClusterOperations(result);
    return result;
  }();
  return tables;
}

bool Decoder::fail(const std::string &message) {
  if (error.empty())
    error = "line " + std::to_string(statement ? statement->line : 0) + " '" +
            (statement ? module.describe(statement->line) : kernel.name) + "': " + message;
  return false;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool Decoder::declareRegisters(Class kind, std::string_view name, int64_t count, bool isRange) {
  for (int64_t i = 0; i < count; ++i) {
    std::string full(name);
    if (isRange)
      full += std::to_string(i);
    int32_t offset = int32_t(kernel.registerBytes);
    kernel.registerBytes += bytesOf(kind);
    std::string &stored = kernel.registerNames[offset];
    stored = std::move(full);
    scopes.back()[stored] = {kind, offset}; // nodes of the map stay where they are
  }
  return kernel.registerBytes < (1u << 28) || fail("a kernel has too many registers");
}

void Decoder::addLabel(std::string_view name) { labels[name] = uint32_t(kernel.code.size()); }

const Decoder::Register *Decoder::find(std::string_view name) {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto found = scope->find(name); found != scope->end())
      return &found->second;
  return nullptr;
}

Class Decoder::classOf(std::string_view name) const {
  const Register *found = const_cast<Decoder *>(this)->find(name);
  return found ? found->kind : Class::None;
}

bool Decoder::special(std::string_view name, Register &found) {
  static const std::unordered_map<std::string_view, Special> names = {
      {"%tid.x", Special::TidX},
      {"%tid.y", Special::TidY},
      {"%tid.z", Special::TidZ},
      {"%ntid.x", Special::NtidX},
      {"%ntid.y", Special::NtidY},
      {"%ntid.z", Special::NtidZ},
      {"%ctaid.x", Special::CtaidX},
      {"%ctaid.y", Special::CtaidY},
      {"%ctaid.z", Special::CtaidZ},
      {"%nctaid.x", Special::NctaidX},
      {"%nctaid.y", Special::NctaidY},
      {"%nctaid.z", Special::NctaidZ},
      {"%laneid", Special::Lane},
      {"%warpid", Special::WarpId},
      {"%nwarpid", Special::NumWarps},
      {"%smid", Special::SmId},
      {"%nsmid", Special::NumSms},
      {"%lanemask_eq", Special::MaskEq},
      {"%lanemask_lt", Special::MaskLt},
      {"%lanemask_le", Special::MaskLe},
      {"%lanemask_gt", Special::MaskGt},
      {"%lanemask_ge", Special::MaskGe},
      {"%clock", Special::Clock},
      {"%clock64", Special::Clock64},
      {"%globaltimer", Special::GlobalTimer},
      {"%dynamic_smem_size", Special::DynamicSharedBytes},
      {"%total_smem_size", Special::TotalSharedBytes},
      {"%cluster_ctarank", Special::ClusterRank},
      {"%cluster_nctarank", Special::ClusterSize},
      {"%cluster_ctaid.x", Special::ClusterCtaidX},
      {"%cluster_ctaid.y", Special::ClusterCtaidY},
      {"%cluster_ctaid.z", Special::ClusterCtaidZ},
      {"%cluster_nctaid.x", Special::ClusterNctaidX},
      {"%cluster_nctaid.y", Special::ClusterNctaidY},
      {"%cluster_nctaid.z", Special::ClusterNctaidZ},
      {"%clusterid.x", Special::ClusterIdX},
      {"%clusterid.y", Special::ClusterIdY},
      {"%clusterid.z", Special::ClusterIdZ},
      {"%nclusterid.x", Special::NumClustersX},
      {"%nclusterid.y", Special::NumClustersY},
      {"%nclusterid.z", Special::NumClustersZ},
      {"%gridid", Special::GridId}};
  auto entry = names.find(name);
  if (entry == names.end())
    return false;
  auto [seen, isNew] = specialsSeen.try_emplace(std::string(name));
  if (isNew) {
    bool isWide = entry->second == Special::Clock64 || entry->second == Special::GlobalTimer;
    Class kind = isWide ? Class::Double : Class::Word;
    seen->second = {kind, int32_t(kernel.registerBytes)};
    kernel.registerBytes += bytesOf(kind);
    kernel.specials.push_back({entry->second, seen->second.offset, isWide});
  }
  found = seen->second;
  return true;
}

int32_t Decoder::constant(Class kind, uint64_t value) {
  value = kind == Class::Predicate ? (value ? ~0u : 0u)
          : kind == Class::Half    ? uint16_t(value)
          : kind == Class::Word    ? uint32_t(value)
                                   : value;
  auto [seen, isNew] = constantsSeen.try_emplace({int(kind), value}, 0);
  if (isNew) {
    size_t bytes = bytesOf(kind), element = kind == Class::Predicate ? 4 : bytes / numLanes; // a mask is repeated
    // Offsets count from the end of the table, so the table grows at its front: the last constant comes first.
    std::vector<uint8_t> lanes(bytes);
    for (size_t i = 0; i < bytes; i += element)
      std::memcpy(lanes.data() + i, &value, element);
    kernel.constants.insert(kernel.constants.end(), lanes.rbegin(), lanes.rend()); // reversed again by finish()
    seen->second = -int32_t(kernel.constants.size());
  }
  return seen->second;
}

bool Decoder::variable(std::string_view name, int64_t displacement, uint64_t &value, bool) {
  std::string key(name);
  if (auto found = kernel.sharedVariables.find(key); found != kernel.sharedVariables.end()) {
    value = found->second.offset + displacement;
    return true;
  }
  if (auto found = module.variables.find(key); found != module.variables.end()) {
    value = found->second.offset + displacement;
    return true;
  }
  for (const Parameter &parameter : kernel.parameters)
    if (parameter.name == name) {
      value = parameter.offset + displacement;
      return true;
    }
  return fail("'" + key + "' is neither a register nor a variable");
}

void Decoder::touch(int32_t offset, bool isWritten) {
  if (offset >= 0)
    (isWritten ? written : read).push_back(offset);
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

bool Decoder::take(std::string_view part) {
  auto found = std::find(parts.begin(), parts.end(), part);
  if (found == parts.end())
    return false;
  parts.erase(found);
  return true;
}

int Decoder::takeOneOf(std::initializer_list<std::string_view> names, int otherwise) {
  int number = 0;
  for (std::string_view name : names) {
    if (take(name))
      return number;
    ++number;
  }
  return otherwise;
}

bool Decoder::expectOperands(size_t least, size_t most) {
  if (numOperands() >= least && numOperands() <= most)
    return true;
  return fail("expected " + std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") +
              " operands, but got " + std::to_string(numOperands()));
}

bool Decoder::expectNoParts() {
  return parts.empty() || fail("'." + std::string(parts.front()) + "' is not known to the simulator here");
}

static const char *nameOf(Class kind) {
  static const char *names[] = {"predicate", "16-bit", "32-bit", "64-bit", "any"};
  return names[int(kind)];
}

bool Decoder::source(const Operand &operand, Class &kind, int32_t &offset) {
  if (operand.kind == Operand::Integer || operand.kind == Operand::Float32 || operand.kind == Operand::Float64) {
    if (kind == Class::None)
      kind = operand.kind == Operand::Float64 ? Class::Double : Class::Word;
    uint64_t bits = operand.value;
    if (operand.kind == Operand::Float64 && kind == Class::Word) {
      double wide;
      std::memcpy(&wide, &operand.value, sizeof(wide));
      float narrow = float(wide);
      bits = 0;
      std::memcpy(&bits, &narrow, sizeof(narrow));
    }
    offset = constant(kind, bits);
    return true;
  }
  if (operand.kind != Operand::Name)
    return fail("expected a register or a number as an operand");
  Register found;
  if (const Register *known = find(operand.name))
    found = *known;
  else if (operand.name[0] == '%' || operand.name == "WARP_SZ") {
    if (operand.name == "WARP_SZ") {
      kind = kind == Class::None ? Class::Word : kind;
      offset = constant(kind, numLanes);
      return true;
    }
    if (!special(operand.name, found))
      return fail("'" + std::string(operand.name) + "' is not known to the simulator");
  } else {
    uint64_t value = 0;
    if (!variable(operand.name, operand.value, value, false))
      return false;
    if (kind == Class::None)
      kind = Class::Double;
    offset = constant(kind, value);
    return true;
  }
  if (kind != Class::None && kind != found.kind)
    return fail(std::string("expected a ") + nameOf(kind) + " operand, but '" + std::string(operand.name) + "' is " +
                nameOf(found.kind));
  kind = found.kind;
  offset = found.offset;
  touch(offset, false);
  return true;
}

bool Decoder::source(size_t number, Class kind, unsigned slot) {
  return source(operand(number), kind, instruction.operands[slot]);
}

bool Decoder::destination(const Operand &operand, Class &kind, int32_t &offset) {
  if (operand.kind == Operand::Sink) {
    if (kind == Class::None)
      kind = Class::Word;
    auto [seen, isNew] = specialsSeen.try_emplace(std::string("_") + char('0' + int(kind)));
    if (isNew) { // a register that nobody reads
      seen->second = {kind, int32_t(kernel.registerBytes)};
      kernel.registerBytes += bytesOf(kind);
    }
    offset = seen->second.offset;
    return true;
  }
  const Register *found = operand.kind == Operand::Name ? find(operand.name) : nullptr;
  if (!found)
    return fail("expected a register to write to");
  if (kind != Class::None && kind != found->kind)
    return fail(std::string("expected a ") + nameOf(kind) + " register, but '" + std::string(operand.name) + "' is " +
                nameOf(found->kind));
  kind = found->kind;
  offset = found->offset;
  touch(offset, true);
  return true;
}

bool Decoder::destination(size_t number, Class kind, unsigned slot) {
  return destination(operand(number), kind, instruction.operands[slot]);
}

bool Decoder::number(size_t position, int64_t &value) {
  if (operand(position).kind != Operand::Integer)
    return fail("operand " + std::to_string(position) + " must be a number");
  value = operand(position).value;
  return true;
}

bool Decoder::vector(const Operand &operand, Class kind, bool isWritten, unsigned &count) {
  const Operand *elements = operand.kind == Operand::Vector ? operand.elements.data() : &operand;
  count = operand.kind == Operand::Vector ? operand.elements.size() : 1;
  for (unsigned i = 0; i < count; ++i) {
    Class elementKind = kind;
    int32_t offset;
    if (!(isWritten ? destination(elements[i], elementKind, offset) : source(elements[i], elementKind, offset)))
      return false;
    kernel.lists.push_back(offset);
  }
  return true;
}

bool Decoder::address(size_t number, Space, unsigned slot) {
  const Operand &where = operand(number);
  if (where.kind != Operand::Address)
    return fail("operand " + std::to_string(number) + " must be an address");
  if (where.name.empty()) {
    instruction.operands[slot] = constant(Class::Double, where.value);
    return true;
  }
  if (const Register *known = find(where.name)) {
    if (known->kind != Class::Double && known->kind != Class::Word)
      return fail("an address must be a 32-bit or 64-bit register");
    instruction.operands[slot] = known->offset;
    instruction.flags |= known->kind == Class::Word ? 1u << 31 : 0;
    instruction.immediate = where.value;
    touch(known->offset, false);
    return true;
  }
  uint64_t value = 0;
  if (!variable(where.name, where.value, value, false))
    return false;
  instruction.operands[slot] = constant(Class::Double, 0);
  instruction.immediate = value;
  return true;
}

bool Decoder::takeGroup(int number) {
  if (number < 1)
    return false;
  if (kernel.tensorGroup && kernel.tensorGroup != number)
    return fail("a kernel cannot use both cta_group::1 and cta_group::2");
  kernel.tensorGroup = number;
  return true;
}

bool Decoder::tensorAddress(size_t number, unsigned slot, int64_t &displacement) {
  const Operand &where = operand(number);
  if (where.kind != Operand::Address)
    return fail("operand " + std::to_string(number) + " must be an address of tensor memory");
  Operand base = where;
  base.kind = where.name.empty() ? Operand::Integer : Operand::Name;
  displacement = where.name.empty() ? 0 : where.value;
  Class kind = Class::Word;
  return source(base, kind, instruction.operands[slot]);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool Decoder::decodeRow(const Row &row) {
  bool hasResult = row.result != Class::None;
  size_t count = row.arguments.size() + hasResult;
  if (!expectOperands(count, count))
    return false;
  instruction.run = row.run;
  for (size_t i = 0; i < row.arguments.size(); ++i)
    if (!source(i + hasResult, row.arguments[i], i + 1))
      return false;
  return !hasResult || destination(0, row.result, 0);
}

/// How undefined values pass through an instruction, by its name.
static Flow flowOf(const std::string &mnemonic) {
  auto startsWith = [&](const char *text) { return mnemonic.compare(0, std::strlen(text), text) == 0; };
  auto contains = [&](const char *text) { return mnemonic.find(text) != std::string::npos; };
  if (startsWith("ld.") || startsWith("ldmatrix.") || startsWith("tcgen05.ld."))
    return Flow::Load;
  if (startsWith("st.") || startsWith("cp.async.c") || startsWith("tcgen05.st."))
    return Flow::Store;
  if (startsWith("selp."))
    return Flow::Select;
  if (mnemonic == "and.pred")
    return Flow::And;
  if (mnemonic == "or.pred")
    return Flow::Or;
  if (startsWith("shfl."))
    return Flow::Shuffle;
  if (startsWith("mma."))
    return Flow::Product;
  if (startsWith("mov.") || contains(".f32x2"))
    return Flow::Halves;
  for (const char *user : {"bra", "bar", "mbarrier.", "vote.", "match.", "redux.", "wgmma.", "stmatrix.", "atom.",
                           "red.", "cp.", "tcgen05."})
    if (startsWith(user))
      return Flow::Use;
  return Flow::All;
}

bool Decoder::decode(const Statement &given) {
  statement = &given;
  instruction = Instruction();
  instruction.line = given.line;
  instruction.flow = flowOf(std::string(given.mnemonic));
  instruction.list = kernel.lists.size();
  written.clear();
  read.clear();
  if (!given.guard.empty()) {
    const Register *guard = find(given.guard);
    if (!guard || guard->kind != Class::Predicate)
      return fail("'" + std::string(given.guard) + "' is no predicate");
    instruction.guard = guard->offset;
    instruction.isGuardNegated = given.isGuardNegated;
    touch(guard->offset, false);
  }
  const Tables &tables = Tables::get();
  std::string mnemonic(given.mnemonic);
  if (auto row = tables.rows.find(mnemonic); row != tables.rows.end()) {
    if (!decodeRow(row->second))
      return false;
  } else {
    parts.clear();
    std::string_view rest = given.mnemonic;
    while (true) {
      size_t dot = rest.find('.');
      parts.push_back(rest.substr(0, dot));
      if (dot == std::string_view::npos)
        break;
      rest = rest.substr(dot + 1);
    }
    auto family = tables.families.find(std::string(parts.front()));
    if (family == tables.families.end())
      return fail("the instruction '" + mnemonic + "' is not known to the simulator");
    parts.erase(parts.begin());
    if (!family->second(*this))
      return fail("the form '" + mnemonic + "' is not known to the simulator");
  }
  instruction.listLength = kernel.lists.size() - instruction.list;
  instruction.writes = kernel.touched.size();
  kernel.touched.insert(kernel.touched.end(), written.begin(), written.end());
  instruction.reads = kernel.touched.size();
  kernel.touched.insert(kernel.touched.end(), read.begin(), read.end());
  instruction.touchedEnd = kernel.touched.size();
  kernel.code.push_back(instruction);
  return true;
}

bool Decoder::finish() {
  statement = nullptr;
  for (const Branch &branch : branches) {
    auto found = labels.find(branch.label);
    if (found == labels.end())
      return fail("there is no label '" + std::string(branch.label) + "'");
    kernel.code[branch.instruction].immediate = found->second;
  }
  std::reverse(kernel.constants.begin(), kernel.constants.end());
  // Falling off the end is a return.
  static const Statement end = {"ret", {}, false, {}, 0};
  return decode(end);
}
