//===- Matrix.h - Products of small matrices --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_MATRIX_H
#define SSA_LIB_SIMULATOR_MATRIX_H

#include "Numeric.h"

namespace mlir::ssa::sim {

/// Types of elements of factors.
enum class Element : uint8_t { F16, BF16, E4M3, E5M2, TF32, S8, U8, Unknown };

inline unsigned bitsOf(Element type) {
  return type == Element::TF32 ? 32 : type == Element::F16 || type == Element::BF16 ? 16 : 8;
}

inline float decodeElement(uint32_t bits, Element type) {
  switch (type) {
  case Element::F16:
    return fromF16(uint16_t(bits));
  case Element::BF16:
    return fromBF16(uint16_t(bits));
  case Element::E4M3:
    return float(decode(bits & 0xff, formatE4M3));
  case Element::E5M2:
    return float(decode(bits & 0xff, formatE5M2));
  case Element::TF32:
    return sim::bits<float>(bits & 0xffffe000);
  case Element::S8:
    return float(int8_t(bits));
  case Element::U8:
    return float(uint8_t(bits));
  case Element::Unknown:
    break;
  }
  return 0;
}

/// d[16][n] += a[16][k] * b[k][n], row-major: exact products, summed in f64 and rounded once.
void multiply(float *d, const float *a, const float *b, unsigned n, unsigned k);

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_MATRIX_H
