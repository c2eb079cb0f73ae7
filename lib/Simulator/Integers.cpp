//===- Integers.cpp - Integer and logic instructions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace mlir::ssa::sim;

namespace {
using U16 = uint16_t;
using S16 = int16_t;
using U32 = uint32_t;
using S32 = int32_t;
using U64 = uint64_t;
using S64 = int64_t;
using U128 = unsigned __int128;
using S128 = __int128;

template <class T>
struct Twice;
template <>
struct Twice<U16> {
  using Type = U32;
};
template <>
struct Twice<S16> {
  using Type = S32;
};
template <>
struct Twice<U32> {
  using Type = U64;
};
template <>
struct Twice<S32> {
  using Type = S64;
};
template <>
struct Twice<U64> {
  using Type = U128;
};
template <>
struct Twice<S64> {
  using Type = S128;
};
} // namespace

/// A field of `length` bits from `start`, by PTX's rules for what lies outside.
template <class T>
static T extractField(T value, U32 start, U32 length) {
  using U = std::make_unsigned_t<T>;
  constexpr U32 width = sizeof(T) * 8;
  if (width == 32) { // the low bytes count
    start &= 0xff;
    length &= 0xff;
  }
  if (!length)
    return 0;
  U32 last = std::min(start + length - 1, width - 1);
  U sign = std::is_signed_v<T> ? U(value) >> last & 1 : 0;
  U field = start < width ? U(value) >> start : 0;
  U32 kept = start < width ? std::min(length, width - start) : 0;
  U mask = kept >= width ? ~U(0) : (U(1) << kept) - 1;
  field &= mask;
  return T(sign ? field | ~mask : field);
}

template <class T>
static T insertField(T field, T value, U32 start, U32 length) {
  constexpr U32 width = sizeof(T) * 8;
  start &= 0xff;
  length &= 0xff;
  if (!length || start >= width)
    return value;
  length = std::min(length, width - start);
  T mask = (length >= width ? ~T(0) : (T(1) << length) - 1) << start;
  return (value & ~mask) | (field << start & mask);
}

/// Arithmetic that signed and unsigned types share by name.
template <class T>
static void addTyped(Tables &tables, const std::string &type) {
  using U = std::make_unsigned_t<T>;
  using W = typename Twice<T>::Type;
  auto &rows = tables.rows;
  rows["add." + type] = lanewise([](U a, U b) { return U(a + b); });
  rows["sub." + type] = lanewise([](U a, U b) { return U(a - b); });
  rows["mul.lo." + type] = lanewise([](U a, U b) { return U(U64(a) * U64(b)); });
  rows["mul.hi." + type] = lanewise([](T a, T b) { return T(W(a) * W(b) >> (8 * sizeof(T))); });
  rows["mad.lo." + type] = lanewise([](U a, U b, U c) { return U(U64(a) * U64(b) + c); });
  rows["mad.hi." + type] = lanewise([](T a, T b, T c) { return T(U(W(a) * W(b) >> (8 * sizeof(T))) + U(c)); });
  // A division by zero has no defined result; hardware gives all ones, for the remainder too.
  rows["div." + type] = lanewise([](T a, T b) {
    return b == 0 ? T(-1) : b == T(-1) && std::is_signed_v<T> ? T(U(0) - U(a)) : T(a / b);
  });
  rows["rem." + type] = lanewise([](T a, T b) {
    return b == 0 ? T(-1) : b == T(-1) && std::is_signed_v<T> ? T(0) : T(a % b);
  });
  rows["min." + type] = lanewise([](T a, T b) { return a < b ? a : b; });
  rows["max." + type] = lanewise([](T a, T b) { return a > b ? a : b; });
  if constexpr (std::is_signed_v<T>) {
    rows["abs." + type] = lanewise([](T a) { return a < 0 ? T(U(0) - U(a)) : a; });
    rows["neg." + type] = lanewise([](U a) { return U(U(0) - a); });
  }
  rows["shr." + type] = lanewise([](T a, U32 n) {
    return n < 8 * sizeof(T) ? T(a >> n) : std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
  });
  if constexpr (sizeof(T) < 8) {
    rows["mul.wide." + type] = lanewise([](T a, T b) { return W(W(a) * W(b)); });
    rows["mad.wide." + type] = lanewise([](T a, T b, W c) {
      using V = std::make_unsigned_t<W>;
      return V(V(W(a) * W(b)) + V(c));
    });
  }
  if constexpr (sizeof(T) > 2)
    rows["bfe." + type] = lanewise([](T a, U32 start, U32 length) { return extractField<T>(a, start, length); });
  rows["sad." + type] = lanewise([](T a, T b, T c) { return T(U(c) + (a < b ? U(b) - U(a) : U(a) - U(b))); });
}

template <class U>
static void addBits(Tables &tables, const std::string &type) {
  auto &rows = tables.rows;
  rows["and." + type] = lanewise([](U a, U b) { return U(a & b); });
  rows["or." + type] = lanewise([](U a, U b) { return U(a | b); });
  rows["xor." + type] = lanewise([](U a, U b) { return U(a ^ b); });
  rows["not." + type] = lanewise([](U a) { return U(~a); });
  rows["cnot." + type] = lanewise([](U a) { return U(a == 0); });
  rows["shl." + type] = lanewise([](U a, U32 n) { return n < 8 * sizeof(U) ? U(a << n) : U(0); });
  rows["shr." + type] = lanewise([](U a, U32 n) { return n < 8 * sizeof(U) ? U(a >> n) : U(0); });
  if constexpr (sizeof(U) > 2) {
    rows["popc." + type] = lanewise([](U a) { return U32(__builtin_popcountll(a)); });
    rows["clz." + type] =
        lanewise([](U a) { return a ? U32(__builtin_clzll(a)) - U32(64 - 8 * sizeof(U)) : U32(8 * sizeof(U)); });
    rows["brev." + type] = lanewise([](U a) {
      U result = 0;
      for (unsigned i = 0; i < 8 * sizeof(U); ++i)
        result |= (a >> i & 1) << (8 * sizeof(U) - 1 - i);
      return result;
    });
    rows["bfi." + type] =
        lanewise([](U field, U value, U32 start, U32 length) { return insertField<U>(field, value, start, length); });
  }
}

template <class T>
static U32 findHighest(T value) {
  using U = std::make_unsigned_t<T>;
  U bits = std::is_signed_v<T> && value < 0 ? U(~value) : U(value);
  return bits ? U32(63 - __builtin_clzll(bits)) : ~0u;
}

/// Bytes of a pair of words by selector; the highest bit of a selector repeats the sign of its byte.
static U32 permute(U32 a, U32 b, U32 selector) {
  U64 pool = U64(b) << 32 | a;
  U32 result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    U32 nibble = selector >> (4 * i) & 15, byte = U32(pool >> (8 * (nibble & 7))) & 0xff;
    if (nibble & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// Any function of three bits, given as its table.
static U32 lookUp(U32 a, U32 b, U32 c, U32 table) {
  U32 result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

void mlir::ssa::sim::addIntegerRows(Tables &tables) {
  addTyped<U16>(tables, "u16");
  addTyped<S16>(tables, "s16");
  addTyped<U32>(tables, "u32");
  addTyped<S32>(tables, "s32");
  addTyped<U64>(tables, "u64");
  addTyped<S64>(tables, "s64");
  addBits<U16>(tables, "b16");
  addBits<U32>(tables, "b32");
  addBits<U64>(tables, "b64");
  auto &rows = tables.rows;
  rows["and.pred"] = lanewise([](bool a, bool b) { return a && b; });
  rows["or.pred"] = lanewise([](bool a, bool b) { return a || b; });
  rows["xor.pred"] = lanewise([](bool a, bool b) { return a != b; });
  rows["not.pred"] = lanewise([](bool a) { return !a; });
  rows["min.relu.s32"] = lanewise([](S32 a, S32 b) { return std::max(std::min(a, b), 0); });
  rows["max.relu.s32"] = lanewise([](S32 a, S32 b) { return std::max(std::max(a, b), 0); });
  rows["bfind.u32"] = lanewise([](U32 a) { return findHighest(a); });
  rows["bfind.s32"] = lanewise([](S32 a) { return findHighest(a); });
  rows["bfind.u64"] = lanewise([](U64 a) { return findHighest(a); });
  rows["bfind.s64"] = lanewise([](S64 a) { return findHighest(a); });
  rows["bfind.shiftamt.u32"] = lanewise([](U32 a) { return a ? U32(__builtin_clz(a)) : ~0u; });
  rows["prmt.b32"] = lanewise([](U32 a, U32 b, U32 selector) { return permute(a, b, selector); });
  rows["lop3.b32"] = lanewise([](U32 a, U32 b, U32 c, U32 table) { return lookUp(a, b, c, table); });
  rows["shf.l.wrap.b32"] = lanewise([](U32 a, U32 b, U32 n) { return U32((U64(b) << 32 | a) << (n & 31) >> 32); });
  rows["shf.r.wrap.b32"] = lanewise([](U32 a, U32 b, U32 n) { return U32((U64(b) << 32 | a) >> (n & 31)); });
  rows["shf.l.clamp.b32"] =
      lanewise([](U32 a, U32 b, U32 n) { return n >= 32 ? a : U32((U64(b) << 32 | a) << n >> 32); });
  rows["shf.r.clamp.b32"] = lanewise([](U32 a, U32 b, U32 n) { return U32((U64(b) << 32 | a) >> std::min(n, 32u)); });
  rows["fns.b32"] = lanewise([](U32 mask, U32 base, S32 offset) {
    S32 step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset;
    for (S32 at = base; at >= 0 && at < 32; at += step)
      if (mask >> at & 1 && (offset == 0 ? at == S32(base) : --left == 0))
        return U32(at);
      else if (offset == 0)
        break;
    return ~0u;
  });
}
