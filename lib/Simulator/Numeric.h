//===- Numeric.h - Formats and rounding -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_NUMERIC_H
#define SSA_LIB_SIMULATOR_NUMERIC_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace mlir::ssa::sim {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

template <class To, class From>
To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

/// A binary format of at most 16 bits.
struct Format {
  int exponentBits, mantissaBits;
  bool hasInfinity; // else the largest exponent is one more for numbers, and NaN all ones
  bool isCanonicalNaNPositive = true;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint32_t signBit() const { return 1u << (exponentBits + mantissaBits); }
  uint32_t infinity() const { return ((1u << exponentBits) - 1) << mantissaBits; }
  uint32_t nan() const { return signBit() - 1; }
  uint32_t largest() const { return hasInfinity ? infinity() - 1 : nan() - 1; }
};

constexpr Format formatF16 = {5, 10, true}, formatBF16 = {8, 7, true}, formatE4M3 = {4, 3, false},
                 formatE5M2 = {5, 2, true}, formatTF32 = {8, 10, true};

inline double decode(uint32_t value, const Format &format) {
  uint32_t magnitude = value & (format.signBit() - 1);
  bool isNegative = value & format.signBit();
  double result;
  if (format.hasInfinity ? magnitude > format.infinity() : magnitude == format.nan())
    result = std::nan("");
  else if (format.hasInfinity && magnitude == format.infinity())
    result = HUGE_VAL;
  else {
    int exponent = magnitude >> format.mantissaBits;
    uint32_t mantissa = magnitude & ((1u << format.mantissaBits) - 1);
    result = exponent ? std::ldexp(double(mantissa | 1u << format.mantissaBits),
                                   exponent - format.bias() - format.mantissaBits)
                      : std::ldexp(double(mantissa), 1 - format.bias() - format.mantissaBits);
  }
  return isNegative ? -result : result;
}

/// An integer nearest to a value that is a multiple of a power of two, by a rule of rounding. Exact.
inline double roundInteger(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value); // the host rounds to nearest even
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  case Rounding::NearestAway:
    return std::round(value);
  }
  return value;
}

/// Rounds a number to a format. With `saturates` what is too large becomes the largest number, else infinity (NaN where
/// there is none); rounding towards zero and the like stop at the largest number by themselves.
inline uint32_t encode(double value, const Format &format, Rounding rounding, bool saturates = false) {
  if (std::isnan(value))
    return format.nan();
  uint32_t sign = std::signbit(value) ? format.signBit() : 0;
  if (value == 0)
    return sign;
  bool staysFinite =
      rounding == Rounding::Zero || (rounding == Rounding::Down && !sign) || (rounding == Rounding::Up && sign);
  uint32_t overflow = sign | (saturates || (staysFinite && !std::isinf(value)) ? format.largest()
                              : format.hasInfinity                             ? format.infinity()
                                                                               : format.nan());
  if (std::isinf(value))
    return overflow;
  int exponent = std::ilogb(value);
  int least = 1 - format.bias();
  int scale = (exponent < least ? least : exponent) - format.mantissaBits;
  double mantissa = std::fabs(roundInteger(std::ldexp(value, -scale), rounding));
  // Carries reach the exponent by plain addition: the number is mantissa * 2^scale with the hidden bit in it.
  int64_t magnitude = int64_t(mantissa);
  if (exponent >= least)
    magnitude += int64_t(exponent - least) << format.mantissaBits;
  return magnitude > int64_t(format.largest()) ? overflow : sign | uint32_t(magnitude);
}

inline float fromBF16(uint16_t value) { return bits<float>(uint32_t(value) << 16); }
inline uint16_t toBF16(float value) {
  uint32_t b = bits<uint32_t>(value);
  if ((b & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
inline float fromF16(uint16_t value) { return float(decode(value, formatF16)); }
inline uint16_t toF16(float value) { return uint16_t(encode(value, formatF16, Rounding::Nearest)); }

/// NaN results of f32 instructions have these bits. Those of f64 are the host's: the payload of an operand, else
/// 0xfff8000000000000, as on a GPU.
inline float canonical(float value) {
  uint32_t b = bits<uint32_t>(value);
  return (b & 0x7fffffff) > 0x7f800000 ? bits<float>(0x7fffffffu) : value;
}
inline double canonical(double value) { return value; }

inline float flush(float value) {
  uint32_t b = bits<uint32_t>(value);
  return b & 0x7f800000 ? value : bits<float>(b & 0x80000000);
}
inline float saturate(float value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; } // NaN becomes 0

/// The sum of two numbers, moved a little towards what f64 could not hold: rounding it to a format of at most 51 bits
/// is then the same as rounding the exact sum.
inline double addWide(double a, double b) {
  double sum = a + b, part = sum - a, lost = (a - (sum - part)) + (b - part);
  if (lost == 0 || !std::isfinite(sum) || lost != lost)
    return sum;
  return std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}

/// Rounds to f32 by a rule.
inline float roundToFloat(double value, Rounding rounding) {
  float nearest = float(value);
  if (rounding == Rounding::Nearest || double(nearest) == value || value != value)
    return nearest;
  bool isAbove = double(nearest) > value;
  bool wantsBelow = rounding == Rounding::Down || (rounding == Rounding::Zero && value > 0);
  if (isAbove && wantsBelow)
    return std::nextafterf(nearest, -HUGE_VALF);
  if (!isAbove && !wantsBelow)
    return std::nextafterf(nearest, HUGE_VALF);
  return nearest;
}

/// What `min` and `max` give: of a number and NaN the number; -0 is less than +0.
template <class T>
T minimum(T a, T b) {
  if (a != a || b != b)
    return a == a ? a : canonical(b);
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T maximum(T a, T b) {
  if (a != a || b != b)
    return a == a ? a : canonical(b);
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
template <class T>
T minimumNaN(T a, T b) {
  return a != a || b != b ? canonical(T(NAN)) : minimum(a, b);
}
template <class T>
T maximumNaN(T a, T b) {
  return a != a || b != b ? canonical(T(NAN)) : maximum(a, b);
}

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_NUMERIC_H
