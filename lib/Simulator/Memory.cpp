//===- Memory.cpp - Device memory -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace mlir::ssa::sim;

Memory::Memory() : data(std::make_unique<Contents>()) {}
Memory::~Memory() = default;

uint64_t Memory::allocate(int64_t bytes) {
  if (bytes <= 0)
    return 0;
  auto allocation = std::make_unique<Allocation>();
  constexpr uint64_t gap = uint64_t(1) << 26; // far enough for a wrong index to be told as what it is
  allocation->address = data->next;
  allocation->bytes = uint64_t(bytes);
  data->next = (data->next + uint64_t(bytes) + 2 * gap - 1) / gap * gap;
  allocation->name = "allocation " + std::to_string(data->counter++);
  allocation->data = std::unique_ptr<uint8_t[]>(new uint8_t[bytes]);
  allocation->defined = std::unique_ptr<uint8_t[]>(new uint8_t[bytes]());
  std::memset(allocation->data.get(), 0xa5, bytes);
  uint64_t address = allocation->address;
  data->allocations[address] = std::move(allocation);
  return address;
}

bool Memory::free(uint64_t address) { return data->allocations.erase(address); }

void Memory::setName(uint64_t address, std::string name) {
  if (Allocation *found = data->find(address))
    found->name = std::move(name);
}

bool Memory::contains(uint64_t address) const { return data->find(address); }

static Allocation *findRange(const Memory::Contents &data, uint64_t address, int64_t bytes) {
  Allocation *found = data.find(address);
  return found && bytes >= 0 && address - found->address + uint64_t(bytes) <= found->bytes ? found : nullptr;
}

bool Memory::write(uint64_t address, const void *from, int64_t bytes) {
  Allocation *found = findRange(*data, address, bytes);
  if (!found)
    return false;
  std::memcpy(found->data.get() + (address - found->address), from, bytes);
  std::memset(found->defined.get() + (address - found->address), 1, bytes);
  return true;
}

bool Memory::read(uint64_t address, void *to, int64_t bytes) const {
  Allocation *found = findRange(*data, address, bytes);
  if (!found)
    return false;
  std::memcpy(to, found->data.get() + (address - found->address), bytes);
  return true;
}

int64_t Memory::findUndefined(uint64_t address, int64_t bytes) const {
  Allocation *found = findRange(*data, address, bytes);
  if (!found)
    return 0;
  const uint8_t *defined = found->defined.get() + (address - found->address);
  const void *first = std::memchr(defined, 0, bytes);
  return first ? static_cast<const uint8_t *>(first) - defined : -1;
}
