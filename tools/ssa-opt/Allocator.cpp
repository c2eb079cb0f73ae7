//===- Allocator.cpp - Memory of small objects ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR and LLVM make half a million small objects to compile a pattern, most of which live shortly: a twentieth of all
// instructions were those of `malloc` and `free`. Here objects come from spans of memory, each for objects of one size,
// and one that is given back is the next that its thread hands out. Spans are kept until the process ends, which is soon.
//
//===----------------------------------------------------------------------===//

#include "llvm/Support/Compiler.h"
#include "llvm/Support/MemAlloc.h"
#include <atomic>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <utility>

#if !LLVM_ADDRESS_SANITIZER_BUILD && !LLVM_MEMORY_SANITIZER_BUILD && !LLVM_THREAD_SANITIZER_BUILD // these have their own

/// Larger objects are `malloc`'s. Sizes are multiples of `unit`, to which objects are aligned.
static constexpr size_t largest = 1024, unit = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
/// Addresses are reserved once; memory is there when it is written to.
static constexpr size_t spanBytes = size_t(64) << 10, regionBytes = size_t(16) << 30;

namespace {
struct Freed {
  Freed *next;
};

/// What a thread has of objects of one size.
struct Stock {
  Freed *freed;
  char *fresh, *end; // of a span
};
} // namespace

static thread_local Stock stocks[largest / unit + 1];
/// Null until the first object is made, and where addresses are limited: then all objects are `malloc`'s.
static char *region;
static std::atomic<size_t> numSpans;
static unsigned char unitsIn[regionBytes / spanBytes]; // of an object of each span

static char *reserve() {
  void *reserved = mmap(nullptr, regionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reserved == MAP_FAILED ? nullptr : static_cast<char *>(reserved);
}

/// An object of a new span.
static LLVM_ATTRIBUTE_NOINLINE void *takeSpan(Stock &stock, size_t units) {
  static char *reserved = region = reserve();
  size_t number = reserved ? numSpans.fetch_add(1, std::memory_order_relaxed) : 0;
  if (!reserved || number >= regionBytes / spanBytes)
    return llvm::safe_malloc(units * unit);
  unitsIn[number] = units;
  char *span = reserved + number * spanBytes;
  stock.fresh = span + units * unit;
  stock.end = span + spanBytes;
  return span;
}

void *operator new(size_t size) {
  if (LLVM_UNLIKELY(size > largest))
    return llvm::safe_malloc(size);
  size_t units = size ? (size + unit - 1) / unit : 1;
  Stock &stock = stocks[units];
  if (Freed *freed = stock.freed) {
    stock.freed = freed->next;
    return freed;
  }
  if (LLVM_UNLIKELY(size_t(stock.end - stock.fresh) < units * unit))
    return takeSpan(stock, units);
  return std::exchange(stock.fresh, stock.fresh + units * unit);
}

void operator delete(void *object) noexcept {
  size_t offset = static_cast<char *>(object) - region;
  if (LLVM_UNLIKELY(!region || offset >= regionBytes))
    return free(object);
  Stock &stock = stocks[unitsIn[offset / spanBytes]];
  stock.freed = new (object) Freed{stock.freed};
}

void operator delete(void *object, size_t) noexcept { operator delete(object); }

#endif
