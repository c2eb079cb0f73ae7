//===- Npy.cpp - NumPy's array files --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ssa/Reference/Npy.h"
#include "Evaluation.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ssa::reference;
namespace endian = llvm::support::endian;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

namespace {
struct Header {
  std::string descr;
  bool fortranOrder = false;
  SmallVector<int64_t> shape;
};

/// Reads the header, a Python dictionary of strings, booleans and a tuple of integers.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : text(text) {}

  llvm::Error parse(Header &header);

private:
  bool consume(char c) {
    text = text.ltrim();
    return text.consume_front(StringRef(&c, 1));
  }
  bool parseString(std::string &value);
  bool parseBool(bool &value);
  bool parseShape(SmallVectorImpl<int64_t> &shape);

  StringRef text;
};
} // namespace

bool HeaderParser::parseString(std::string &value) {
  text = text.ltrim();
  if (text.empty() || (text[0] != '\'' && text[0] != '"'))
    return false;
  size_t end = text.find(text[0], 1);
  if (end == StringRef::npos)
    return false;
  value = text.substr(1, end - 1).str();
  text = text.drop_front(end + 1);
  return true;
}

bool HeaderParser::parseBool(bool &value) {
  text = text.ltrim();
  value = text.starts_with("True");
  return text.consume_front("True") || text.consume_front("False");
}

bool HeaderParser::parseShape(SmallVectorImpl<int64_t> &shape) {
  if (!consume('('))
    return false;
  while (!consume(')')) {
    int64_t size;
    text = text.ltrim();
    if (text.consumeInteger(10, size) || size < 0)
      return false;
    shape.push_back(size);
    if (!consume(','))
      return consume(')');
  }
  return true;
}

llvm::Error HeaderParser::parse(Header &header) {
  llvm::Error bad = makeError("has a header that is no dictionary of 'descr', 'fortran_order' and 'shape'");
  bool hasDescr = false, hasOrder = false, hasShape = false, ok = consume('{');
  while (ok && !consume('}')) {
    std::string key;
    ok = parseString(key) && consume(':');
    if (ok && key == "descr" && !hasDescr)
      ok = hasDescr = parseString(header.descr);
    else if (ok && key == "fortran_order" && !hasOrder)
      ok = hasOrder = parseBool(header.fortranOrder);
    else if (ok && key == "shape" && !hasShape)
      ok = hasShape = parseShape(header.shape);
    else
      ok = false;
    if (ok && !consume(',')) {
      ok = consume('}');
      break;
    }
  }
  if (!ok || !hasDescr || !hasOrder || !hasShape || !text.trim().empty())
    return bad;
  llvm::consumeError(std::move(bad));
  return llvm::Error::success();
}

/// Splits a file into its header and the bytes of its elements.
static llvm::Expected<std::pair<Header, StringRef>> splitFile(StringRef file) {
  if (!file.consume_front("\x93NUMPY"))
    return makeError("is no .npy file: it does not begin with \\x93NUMPY");
  if (file.size() < 4)
    return makeError("ends within its header");
  unsigned major = static_cast<unsigned char>(file[0]), minor = static_cast<unsigned char>(file[1]);
  if (major < 1 || major > 3)
    return makeError("is of .npy format " + Twine(major) + "." + Twine(minor) + "; 1.0 to 3.0 can be read");
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (file.size() < 2 + lengthBytes)
    return makeError("ends within its header");
  size_t length = major == 1 ? endian::read16le(file.data() + 2) : endian::read32le(file.data() + 2);
  file = file.drop_front(2 + lengthBytes);
  if (file.size() < length)
    return makeError("ends within its header");
  Header header;
  if (llvm::Error error = HeaderParser(file.take_front(length)).parse(header))
    return std::move(error);
  return std::make_pair(std::move(header), file.drop_front(length));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {
/// How NumPy spells an element type, and how one element is read.
struct Format {
  StringLiteral descr;
  unsigned bytes;
  double (*readFloat)(const char *);
  int64_t (*readInt)(const char *);
};
} // namespace

static double readHalf(const char *data) {
  return llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, endian::read16le(data))).convertToDouble();
}

static const Format formats[] = {
    {"<f2", 2, readHalf, nullptr},
    {"<f4", 4, [](const char *p) -> double { return llvm::bit_cast<float>(endian::read32le(p)); }, nullptr},
    {"<f8", 8, [](const char *p) { return llvm::bit_cast<double>(endian::read64le(p)); }, nullptr},
    {"<i4", 4, nullptr, [](const char *p) -> int64_t { return static_cast<int32_t>(endian::read32le(p)); }},
    {"<i8", 8, nullptr, [](const char *p) { return static_cast<int64_t>(endian::read64le(p)); }},
    {"|i1", 1, nullptr, [](const char *p) -> int64_t { return static_cast<signed char>(*p); }},
    {"|u1", 1, nullptr, [](const char *p) -> int64_t { return static_cast<unsigned char>(*p); }},
    {"|b1", 1, nullptr, [](const char *p) -> int64_t { return *p != 0; }},
};

static llvm::Expected<const Format *> findFormat(StringRef descr) {
  for (const Format &format : formats)
    if (format.descr == descr)
      return &format;
  std::string known;
  for (const Format &format : formats)
    known += (known.empty() ? "" : ", ") + format.descr.str();
  return makeError("has elements of type '" + descr + "'; these can be read: " + known);
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Integers that `type` holds; i1 is 0 or 1.
static bool fits(int64_t value, Type type) {
  if (type.isIndex())
    return true;
  unsigned width = type.getIntOrFloatBitWidth();
  return width == 1 ? value == 0 || value == 1 : llvm::isIntN(width, value);
}

static llvm::Error convertElements(const Format &format, StringRef data, Imported &result) {
  Type type = result.tensor.getElementType();
  int64_t count = result.tensor.getNumElements();
  if (format.readFloat) {
    Rounding rounding(type);
    for (int64_t i = 0; i < count; ++i) {
      double value = format.readFloat(data.data() + i * format.bytes);
      result.numOverflows += rounding.overflows(value);
      result.tensor.setFloat(i, value);
    }
    return llvm::Error::success();
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = format.readInt(data.data() + i * format.bytes);
    if (!fits(value, type))
      return makeError("has " + Twine(value) + " at element " + Twine(i) + ", which does not fit " + typeText(type));
    result.tensor.setInt(i, value);
  }
  return llvm::Error::success();
}

llvm::Expected<Imported> mlir::ssa::reference::readNpy(llvm::MemoryBufferRef file, Type elementType) {
  auto parts = splitFile(file.getBuffer());
  if (!parts)
    return parts.takeError();
  auto &[header, data] = *parts;
  llvm::Expected<const Format *> format = findFormat(header.descr);
  if (!format)
    return format.takeError();
  if (header.fortranOrder && header.shape.size() > 1)
    return makeError("is in Fortran order; save numpy.ascontiguousarray(a)");
  bool isFloat = (*format)->readFloat != nullptr;
  if (isFloat != isa<FloatType>(elementType))
    return makeError("has " + Twine(isFloat ? "floating point" : "integer") + " elements ('" + header.descr +
                     "'), but " + typeText(elementType) + " is expected");
  // Sizes whose product overflows need more bytes than any file has.
  int64_t bytes = Tensor::byteSize(IntegerType::get(elementType.getContext(), 64), header.shape);
  bytes = bytes == std::numeric_limits<int64_t>::max() ? bytes : bytes / 8 * (*format)->bytes;
  if (bytes != static_cast<int64_t>(data.size()))
    return makeError("has " + Twine(data.size()) + " bytes of elements, but its shape " + shapeText(header.shape) +
                     " of '" + header.descr + "' needs " + Twine(bytes));
  if (Tensor::byteSize(elementType, header.shape) > Tensor::memoryLimit())
    return makeError("has more elements than half of the memory holds");
  Imported result;
  result.tensor = Tensor(elementType, header.shape);
  if (llvm::Error error = convertElements(**format, data, result))
    return std::move(error);
  return result;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static StringRef getDescr(Type type) {
  if (isa<FloatType>(type))
    return type.isF64() ? "<f8" : "<f4";
  if (type.isInteger(1))
    return "|b1";
  return !type.isIndex() && type.getIntOrFloatBitWidth() <= 32 ? "<i4" : "<i8";
}

void mlir::ssa::reference::writeNpy(const Tensor &tensor, raw_ostream &os) {
  StringRef descr = getDescr(tensor.getElementType());
  std::string header = ("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (").str();
  for (int64_t size : tensor.getShape())
    header += std::to_string(size) + ", ";
  header += "), }";
  // The elements begin at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  os << "\x93NUMPY" << '\1' << '\0';
  endian::write<uint16_t>(os, header.size(), llvm::endianness::little);
  os << header;
  for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
    if (descr == "<f4")
      endian::write<float>(os, tensor.getFloat(i), llvm::endianness::little);
    else if (descr == "<f8")
      endian::write<double>(os, tensor.getFloat(i), llvm::endianness::little);
    else if (descr == "<i4")
      endian::write<int32_t>(os, tensor.getInt(i), llvm::endianness::little);
    else if (descr == "<i8")
      endian::write<int64_t>(os, tensor.getInt(i), llvm::endianness::little);
    else
      os << static_cast<char>(tensor.getInt(i));
  }
}
