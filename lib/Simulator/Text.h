//===- Text.h - PTX as statements -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_TEXT_H
#define SSA_LIB_SIMULATOR_TEXT_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlir::ssa::sim {

struct Token {
  enum Kind : uint8_t { Name, Directive, Integer, Float32, Float64, String, Punctuation, End } kind = End;
  std::string_view text;
  /// The integer, or the bits of the float.
  int64_t value = 0;
  unsigned line = 0;

  bool is(char c) const { return kind == Punctuation && text[0] == c; }
};

/// Splits text into tokens; comments are gone. False, and `error` says where, on what is no PTX.
bool tokenize(std::string_view text, std::vector<Token> &tokens, std::string &error);

/// What an instruction works on, as it is written.
struct Operand {
  enum Kind : uint8_t {
    Name,    // a register, a label, a variable with a displacement in `value`
    Integer, // value
    Float32, // bits in value
    Float64,
    Address, // [name + value], or [value]; further elements of tensor coordinates in `elements`
    Vector,  // {elements}
    Sink     // _
  } kind = Sink;
  std::string_view name;
  int64_t value = 0;
  /// `!p`.
  bool isNegated = false;
  /// The second of `d|p`.
  std::string_view second;
  std::vector<Operand> elements;
};

struct Statement {
  std::string_view mnemonic;
  std::string_view guard;
  bool isGuardNegated = false;
  std::vector<Operand> operands;
  unsigned line = 0;
};

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_TEXT_H
