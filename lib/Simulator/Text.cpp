//===- Text.cpp - Splits PTX into tokens ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Text.h"
#include <cctype>
#include <cstdlib>
#include <cstring>

using namespace mlir::ssa::sim;

namespace {
class Lexer {
public:
  Lexer(std::string_view text, std::vector<Token> &tokens, std::string &error)
      : text(text), tokens(tokens), error(error) {}

  bool run() {
    while (skipBlanks())
      if (!next())
        return false;
    if (!error.empty())
      return false;
    add(Token::End, 0);
    return true;
  }

private:
  bool fail(const std::string &message) {
    error = "line " + std::to_string(line) + ": " + message;
    return false;
  }

  char at(size_t offset) const { return position + offset < text.size() ? text[position + offset] : '\0'; }

  /// False at the end.
  bool skipBlanks() {
    while (position < text.size()) {
      if (at(0) == '\n')
        ++line, ++position;
      else if (std::isspace(static_cast<unsigned char>(at(0))))
        ++position;
      else if (at(0) == '/' && at(1) == '/')
        position = std::min(text.find('\n', position), text.size());
      else if (at(0) == '/' && at(1) == '*') {
        size_t end = text.find("*/", position + 2);
        if (end == std::string_view::npos)
          return fail("this comment has no end");
        for (; position < end + 2; ++position)
          line += at(0) == '\n';
      } else
        return true;
    }
    return false;
  }

  void add(Token::Kind kind, size_t length, int64_t value = 0) {
    tokens.push_back({kind, text.substr(position, length), value, line});
    position += length;
  }

  static bool isNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

  /// The length of a name with its suffixes: `setp.ge.s32`, `%tid.x`, `cp.async.shared::cta`.
  size_t measureName(size_t length) const {
    while (isNameChar(at(length)) || (at(length) == '.' && isNameChar(at(length + 1))) ||
           (at(length) == ':' && at(length + 1) == ':'))
      length += at(length) == ':' ? 2 : 1;
    return length;
  }

  bool next() {
    char c = at(0);
    if (std::isdigit(static_cast<unsigned char>(c)))
      return number();
    if (c == '.' && isNameChar(at(1))) {
      add(Token::Directive, measureName(1));
      return true;
    }
    if (c == '%' || isNameChar(c)) {
      add(Token::Name, measureName(1));
      return true;
    }
    if (c == '"') {
      size_t end = text.find('"', position + 1);
      if (end == std::string_view::npos)
        return fail("this string has no end");
      add(Token::String, end + 1 - position);
      return true;
    }
    if (!std::strchr("()[]{};:,+-!@|<>=*", c))
      return fail(std::string("'") + c + "' has no meaning here");
    add(Token::Punctuation, 1);
    return true;
  }

  bool number() {
    std::string digits(text.substr(position, 40));
    char kind = at(0) == '0' ? char(std::tolower(at(1))) : '\0';
    if (kind == 'f' || kind == 'd') {
      size_t length = kind == 'f' ? 10 : 18;
      uint64_t bits = std::strtoull(digits.substr(2, length - 2).c_str(), nullptr, 16);
      add(kind == 'f' ? Token::Float32 : Token::Float64, length, int64_t(bits));
      return true;
    }
    char *end = nullptr;
    int64_t value = kind == 'b' ? int64_t(std::strtoull(digits.c_str() + 2, &end, 2))
                                : int64_t(std::strtoull(digits.c_str(), &end, 0));
    size_t length = end - digits.c_str();
    if (at(length) == '.' && std::isdigit(static_cast<unsigned char>(at(length + 1)))) {
      double number = std::strtod(digits.c_str(), &end);
      std::memcpy(&value, &number, sizeof(value));
      add(Token::Float64, end - digits.c_str(), value);
      return true;
    }
    length += at(length) == 'U';
    add(Token::Integer, length, value);
    return true;
  }

  std::string_view text;
  std::vector<Token> &tokens;
  std::string &error;
  size_t position = 0;
  unsigned line = 1;
};
} // namespace

bool mlir::ssa::sim::tokenize(std::string_view text, std::vector<Token> &tokens, std::string &error) {
  return Lexer(text, tokens, error).run();
}
