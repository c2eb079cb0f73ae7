//===- Geometry.h - Positions, masks and blocks -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The arithmetic of "Shapes and words" in one place: who may see what.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_IR_GEOMETRY_H
#define SSA_IR_GEOMETRY_H

#include "ssa/IR/SSA.h"
#include <algorithm>

namespace mlir::ssa {

inline int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Tokens [begin, end); empty when begin >= end.
struct TokenRange {
  int64_t begin = 0, end = 0;
  bool overlaps(TokenRange o) const { return std::max(begin, o.begin) < std::min(end, o.end); }
  bool contains(int64_t n) const { return begin <= n && n < end; }
};

/// The keys that a mask allows to one query: the two parts may overlap, either may be empty.
struct AllowedKeys {
  TokenRange sink, window;
  bool contains(int64_t n) const { return sink.contains(n) || window.contains(n); }
  bool overlaps(TokenRange r) const { return sink.overlaps(r) || window.overlaps(r); }
};

/// `queries` queries at the end of `tokens` tokens, and the mask between them (null: all is allowed).
struct Geometry {
  int64_t queries = 0, tokens = 0;
  MaskAttr mask;

  /// The position of query `m`, bottom-right aligned; negative when it sees nothing under a causal mask.
  int64_t position(int64_t m) const { return m + tokens - queries; }

  /// What the mask allows to the query at `position`.
  AllowedKeys allowed(int64_t position) const { return allowed(position, position); }

  /// What the mask allows to one or more of the queries at positions `first` .. `last`; what it allows to neighbours
  /// overlaps or touches, so this is no more complicated.
  AllowedKeys allowed(int64_t first, int64_t last) const;

  /// The tokens of block `j` that exist.
  TokenRange existing(BlocksAttr blocks, int64_t j) const {
    return {std::max<int64_t>(blocks.getBegin(j), 0), std::min(blocks.getEnd(j), tokens)};
  }

  /// `route`'s rule for a row of the queries at positions `first` .. `last`: the mask allows one of the block's tokens to one of
  /// them, and unless `partial` is wanted a causal mask does not put the block's unclipped end after the last.
  bool isVisible(BlocksAttr blocks, int64_t j, int64_t first, int64_t last, Visibility visible) const {
    if (mask && mask.getCausal() && visible == Visibility::complete && blocks.getEnd(j) - 1 > last)
      return false;
    return allowed(first, last).overlaps(existing(blocks, j));
  }
};

} // namespace mlir::ssa

#endif // SSA_IR_GEOMETRY_H
