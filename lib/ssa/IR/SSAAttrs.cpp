//===- SSAAttrs.cpp - Attributes and types of the ssa dialect -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Verifier.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;
using namespace mlir::ssa;

#include "ssa/IR/SSAEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ssa/IR/SSAAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ssa/IR/SSATypes.cpp.inc"

void SSADialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ssa/IR/SSAAttrs.cpp.inc"
      >();
}

void SSADialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ssa/IR/SSATypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Parses `key` or `key = integer` and stores what it says, once per key.
namespace {
class ItemParser {
public:
  explicit ItemParser(AsmParser &parser) : parser(parser) {}
  void flag(StringRef key, bool &value) { flags.push_back({key, &value}); }
  void integer(StringRef key, int64_t &value) { integers.push_back({key, &value}); }

  ParseResult parseItem() {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeyword(&key)))
      return parser.emitError(loc, "expected ") << expected();
    if (!seen.insert(key).second)
      return parser.emitError(loc, "'") << key << "' is given twice";
    for (auto &[name, value] : flags)
      if (name == key)
        return *value = true, success();
    for (auto &[name, value] : integers)
      if (name == key)
        return failure(parser.parseEqual() || parser.parseInteger(*value));
    return parser.emitError(loc, "expected ") << expected() << ", but got '" << key << "'";
  }
  ParseResult parseTail() {
    while (succeeded(parser.parseOptionalComma()))
      if (parseItem())
        return failure();
    SMLoc loc = parser.getCurrentLocation();
    return succeeded(parser.parseOptionalGreater()) ? ParseResult(success())
                                                    : parser.emitError(loc, "expected ',' or '>'");
  }

private:
  std::string expected() const {
    SmallVector<StringRef> names;
    for (auto &[name, value] : flags)
      names.push_back(name);
    for (auto &[name, value] : integers)
      names.push_back(name);
    std::string text;
    for (auto [i, name] : llvm::enumerate(names))
      text += (i == 0 ? "'" : i + 1 == names.size() ? " or '" : ", '") + name.str() + "'";
    return text;
  }

  AsmParser &parser;
  SmallVector<std::pair<StringRef, bool *>> flags;
  SmallVector<std::pair<StringRef, int64_t *>> integers;
  llvm::SmallSet<StringRef, 4> seen;
};
} // namespace

//===----------------------------------------------------------------------===//
// BlocksAttr
//===----------------------------------------------------------------------===//

Attribute BlocksAttr::parse(AsmParser &parser, Type) {
  int64_t size = 0, stride = std::numeric_limits<int64_t>::min(), offset = 0;
  SMLoc loc = parser.getCurrentLocation();
  ItemParser items(parser);
  items.integer("stride", stride);
  items.integer("offset", offset);
  if (parser.parseLess() || parser.parseInteger(size) || items.parseTail())
    return {};
  if (stride == std::numeric_limits<int64_t>::min())
    stride = size;
  return parser.getChecked<BlocksAttr>(loc, parser.getContext(), size, stride, offset);
}

void BlocksAttr::print(AsmPrinter &printer) const {
  printer << '<' << getSize();
  if (getStride() != getSize())
    printer << ", stride = " << getStride();
  if (getOffset() != 0)
    printer << ", offset = " << getOffset();
  printer << '>';
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t size, int64_t stride,
                                 int64_t offset) {
  if (size < 1 || size > maxSize) // blocks_c1
    return emitError() << "expected the size of blocks to be in 1 .. " << maxSize << ", but got " << size;
  if (stride < 1 || stride > size) // blocks_c2
    return emitError() << "expected the stride of blocks to be in 1 .. " << size << ", their size, but got " << stride;
  if (offset > 0 || offset <= -size) // blocks_c3
    return emitError() << "expected the offset of blocks to be in " << 1 - size << " .. 0, but got " << offset;
  return success();
}

int64_t BlocksAttr::getNumBlocks(int64_t tokens) const {
  if (getStride() == getSize())
    return tokens == 0 ? 0 : ceilDiv(tokens - getOffset(), getSize());
  int64_t room = tokens - getOffset() - getSize();
  return room < 0 ? 0 : room / getStride() + 1;
}

//===----------------------------------------------------------------------===//
// MaskAttr
//===----------------------------------------------------------------------===//

Attribute MaskAttr::parse(AsmParser &parser, Type) {
  constexpr int64_t none = std::numeric_limits<int64_t>::min();
  bool causal = false;
  int64_t window = none, sink = none;
  SMLoc loc = parser.getCurrentLocation();
  ItemParser items(parser);
  items.flag("causal", causal);
  items.integer("window", window);
  items.integer("sink", sink);
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalGreater())) {
    parser.emitError(loc, "expected 'causal' or 'window' in a mask; without either leave 'mask' out");
    return {};
  }
  if (items.parseItem() || items.parseTail())
    return {};
  // 0 stands for none inside; written out it is a mistake.
  if (window == 0) {
    parser.emitError(loc, "expected 'window' to be in 1 .. ") << maxSize << ", but got 0";
    return {};
  }
  return parser.getChecked<MaskAttr>(loc, parser.getContext(), causal, window == none ? 0 : window,
                                     sink == none ? 0 : sink);
}

void MaskAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (getCausal())
    printer << "causal";
  if (getWindow())
    printer << (getCausal() ? ", " : "") << "window = " << getWindow();
  if (getSink())
    printer << ", sink = " << getSink();
  printer << '>';
}

LogicalResult MaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, bool causal, int64_t window,
                               int64_t sink) {
  if (window < 0 || window > maxSize) // mask_c1
    return emitError() << "expected 'window' to be in 1 .. " << maxSize << ", but got " << window;
  if (sink < 0 || sink > maxSize) // mask_c2
    return emitError() << "expected 'sink' to be in 0 .. " << maxSize << ", but got " << sink;
  if (sink > 0 && window == 0) // mask_c3
    return emitError() << "'sink' needs a 'window': without one all tokens are in sight";
  if (!causal && window == 0) // mask_c4
    return emitError() << "expected 'causal' or 'window' in a mask; without either leave 'mask' out";
  return success();
}

AllowedKeys Geometry::allowed(int64_t first, int64_t last) const {
  AllowedKeys keys;
  keys.window = {0, tokens};
  if (!mask)
    return keys;
  int64_t visibleEnd = mask.getCausal() ? std::clamp<int64_t>(last + 1, 0, tokens) : tokens;
  keys.window.end = visibleEnd;
  if (int64_t window = mask.getWindow()) {
    keys.window.begin = std::max<int64_t>(first - window + 1, 0);
    if (!mask.getCausal())
      keys.window.end = std::clamp<int64_t>(last + window, 0, tokens);
    keys.sink = {0, std::min(mask.getSink(), visibleEnd)};
  }
  return keys;
}

//===----------------------------------------------------------------------===//
// SelectionType
//===----------------------------------------------------------------------===//

Type SelectionType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  int64_t keyBlock = 1, queryBlock = 1;
  bool sorted = false;
  SMLoc loc = parser.getCurrentLocation();
  ItemParser items(parser);
  items.flag("sorted", sorted);
  items.integer("key_block", keyBlock);
  items.integer("query_block", queryBlock);
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/true, /*withTrailingX=*/false))
    return {};
  if (shape.empty()) {
    parser.emitError(loc, "expected the sizes of a selection, BxGxMqxK");
    return {};
  }
  if (items.parseTail())
    return {};
  return parser.getChecked<SelectionType>(loc, parser.getContext(), shape, keyBlock, queryBlock, sorted);
}

void SelectionType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << ", key_block = " << getKeyBlock();
  if (getQueryBlock() != 1)
    printer << ", query_block = " << getQueryBlock();
  if (getSorted())
    printer << ", sorted";
  printer << '>';
}

LogicalResult SelectionType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                    int64_t keyBlock, int64_t queryBlock, bool) {
  if (shape.size() != 4) // selection_c1
    return emitError() << "expected a selection of rank 4, BxGxMqxK, but got rank " << shape.size();
  for (int64_t dim : shape)
    if (!ShapedType::isDynamic(dim) && (dim < 0 || dim > maxSize)) // selection_c2
      return emitError() << "expected sizes of a selection in 0 .. " << maxSize << ", but got " << dim;
  if (ShapedType::isDynamic(shape[1]) || shape[1] == 0) // selection_c3
    return emitError() << "expected a static number of selection heads of at least 1 (dimension 1)";
  if (ShapedType::isDynamic(shape[3])) // selection_c4
    return emitError() << "expected a static width of lists (dimension 3)";
  if (keyBlock < 1 || keyBlock > maxSize) // selection_c5
    return emitError() << "expected 'key_block' to be in 1 .. " << maxSize << ", but got " << keyBlock;
  if (queryBlock < 1 || queryBlock > maxSize) // selection_c6
    return emitError() << "expected 'query_block' to be in 1 .. " << maxSize << ", but got " << queryBlock;
  return success();
}

Type SelectionType::getElementType() const { return IntegerType::get(getContext(), 32); }

ShapedType SelectionType::cloneWith(std::optional<ArrayRef<int64_t>> shape, Type elementType) const {
  // Another element type makes it the tensor that it is in memory.
  if (elementType != getElementType())
    return RankedTensorType::get(shape.value_or(getShape()), elementType);
  return get(getContext(), shape.value_or(getShape()), getKeyBlock(), getQueryBlock(), getSorted());
}

RankedTensorType SelectionType::getIndicesType() const { return RankedTensorType::get(getShape(), getElementType()); }
