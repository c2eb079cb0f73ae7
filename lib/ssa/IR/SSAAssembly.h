//===- SSAAssembly.h - Directives of the assembly formats -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Included once, before the generated op definitions that call these.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_IR_SSAASSEMBLY_H
#define SSA_LIB_IR_SSAASSEMBLY_H

#include "ssa/IR/SSA.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::ssa {

//===----------------------------------------------------------------------===//
// Word: an enumerated value as a bare word
//===----------------------------------------------------------------------===//

template <typename AttrT>
ParseResult parseWord(OpAsmParser &parser, AttrT &attr) {
  using Enum = decltype(std::declval<AttrT>().getValue());
  SMLoc loc = parser.getCurrentLocation();
  StringRef text;
  if (succeeded(parser.parseOptionalKeyword(&text)))
    if (auto value = symbolizeEnum<Enum>(text))
      return attr = AttrT::get(parser.getContext(), *value), success();
  std::string words;
  for (uint32_t i = 0; !stringifyEnum(Enum(i)).empty(); ++i)
    words += (i == 0 ? "'" : ", '") + stringifyEnum(Enum(i)).str() + "'";
  InFlightDiagnostic diag = parser.emitError(loc, "expected one of ") << words;
  if (!text.empty())
    diag << ", but got '" << text << "'";
  return diag;
}

template <typename AttrT>
void printWord(OpAsmPrinter &printer, Operation *, AttrT attr) {
  printer << stringifyEnum(attr.getValue());
}

//===----------------------------------------------------------------------===//
// Clause: `keyword operand`, or nothing. A keyword without its operand is an error, which an optional group of ODS is
// not
//===----------------------------------------------------------------------===//

struct Clause {
  static constexpr StringLiteral of = "of", queries = "for", weights = "weights", scales = "scales", within = "within",
                                 at = "at", sinkLogits = "sink_logits";
};

inline ParseResult parseClause(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &operand,
                               StringRef keyword) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseOperand(operand.emplace());
}

inline ParseResult parseClause(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                               StringRef keyword) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseCommaSeparatedList([&] { return parser.parseOperand(operands.emplace_back()); });
}

inline void printClause(OpAsmPrinter &printer, Operation *, Value operand, StringRef keyword) {
  if (operand)
    printer << ' ' << keyword << ' ' << operand;
}

inline void printClause(OpAsmPrinter &printer, Operation *, OperandRange operands, StringRef keyword) {
  if (!operands.empty())
    printer << ' ' << keyword << ' ' << operands;
}

/// Another operand after a comma, if there is one.
inline ParseResult parseAnother(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &operand) {
  return failed(parser.parseOptionalComma()) ? ParseResult(success()) : parser.parseOperand(operand.emplace());
}

inline void printAnother(OpAsmPrinter &printer, Operation *, Value operand) {
  if (operand)
    printer << ", " << operand;
}

/// What may follow the operands of an op, for messages.
inline StringRef getClauses(StringRef op) {
  return llvm::StringSwitch<StringRef>(op)
      .Case("ssa.pool", "'scales', {..}")
      .Case("ssa.route", "'of', 'for', 'weights', 'scales', 'within', {..}, 'score'")
      .Case("ssa.topk", "'for', 'within', {..}")
      .Case("ssa.sparse_attend", "'of', 'at', {..}, 'score'")
      .Case("ssa.merge", "'sink_logits', {..}")
      .Default("{..}");
}

/// Where no clause can follow any more: a word there is misspelt or in the wrong place, or the types are missing.
inline ParseResult refuseClause(OpAsmParser &parser, StringRef op) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word)))
    return success();
  return parser.emitError(loc, "expected ':' or, in this order, ") << getClauses(op) << ", but got '" << word << "'";
}

//===----------------------------------------------------------------------===//
// Dict: like attr-dict, but enumerated values are bare words
//===----------------------------------------------------------------------===//

/// The op's own check of its attributes. ODS calls it for `attr-dict` but not for a custom directive over it, and an
/// attribute of the wrong kind would then be dropped without a word; so the directive is handed the check.
using AttributeCheck = LogicalResult (*)(OperationName, NamedAttrList &, llvm::function_ref<InFlightDiagnostic()>);

/// A dictionary entry whose value has a spelling of its own.
struct SpelledAttribute {
  StringLiteral key;
  StringLiteral spelling;
  Attribute (*find)(MLIRContext *, StringRef word);
  bool (*isKind)(Attribute);
};

template <typename AttrT>
Attribute findWord(MLIRContext *context, StringRef word) {
  auto value = symbolizeEnum<decltype(std::declval<AttrT>().getValue())>(word);
  return value ? AttrT::get(context, *value) : Attribute();
}
inline Attribute findNone(MLIRContext *, StringRef) { return {}; }

template <typename AttrT>
bool isKind(Attribute attr) {
  return isa<AttrT>(attr);
}

inline const SpelledAttribute spelledAttributes[] = {
    {"visible", "'complete' or 'partial'", findWord<VisibilityAttr>, isKind<VisibilityAttr>},
    {"normalize", "'none' or 'softmax'", findWord<NormalizationAttr>, isKind<NormalizationAttr>},
    {"reduce", "'none', 'sum' or 'max'", findWord<ReductionAttr>, isKind<ReductionAttr>},
    {"gate", "'sigmoid' or 'none'", findWord<GateAttr>, isKind<GateAttr>},
    {"mask", "'#ssa.mask<..>'", findNone, isKind<MaskAttr>},
    {"blocks", "'#ssa.blocks<..>'", findNone, isKind<BlocksAttr>},
    {"from", "'#ssa.blocks<..>'", findNone, isKind<BlocksAttr>},
    {"to", "'#ssa.blocks<..>'", findNone, isKind<BlocksAttr>},
};

/// An attribute without its type.
inline std::string getBareText(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  attr.print(stream, /*elideType=*/true);
  return text;
}

inline ParseResult parseDictValue(OpAsmParser &parser, StringRef key, Attribute &value) {
  SMLoc loc = parser.getCurrentLocation();
  const auto *spelled = llvm::find_if(spelledAttributes, [&](const SpelledAttribute &a) { return a.key == key; });
  if (spelled != std::end(spelledAttributes)) {
    StringRef word;
    if (succeeded(parser.parseOptionalKeyword(&word)))
      value = spelled->find(parser.getContext(), word);
    else if (parser.parseAttribute(value))
      return failure();
    if (value && spelled->isKind(value))
      return success();
    return parser.emitError(loc, "expected '") << key << "' to be " << spelled->spelling << ", but got '"
                                               << (value ? getBareText(value) : word.str()) << "'";
  }
  if (parser.parseAttribute(value))
    return failure();
  // 1 and 1.0 are the same number.
  if (auto integer = dyn_cast<IntegerAttr>(value); integer && integer.getType().isSignlessInteger(64))
    if (llvm::is_contained({"scale", "top_p", "threshold"}, key))
      value = FloatAttr::get(Float64Type::get(parser.getContext()), double(integer.getInt()));
  return success();
}

/// What the format of an op prints outside of the dictionary.
inline bool standsElsewhere(StringRef key) { return key == "operandSegmentSizes" || key == "kind" || key == "bound"; }

inline ParseResult parseDict(OpAsmParser &parser, NamedAttrList &attrs, StringRef opName, AttributeCheck check) {
  OperationName name(opName, parser.getContext());
  SMLoc begin = parser.getCurrentLocation();
  auto parseEntry = [&]() -> ParseResult {
    std::string key;
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeywordOrString(&key)))
      return parser.emitError(loc, "expected the name of an attribute");
    if (standsElsewhere(key))
      return parser.emitError(loc, "'") << key << "' does not stand in the dictionary";
    bool known = StringRef(key).contains('.') || llvm::is_contained(name.getAttributeNames(), key);
    if (!known)
      return parser.emitError(loc) << OpTrait::describeUnknownAttribute(name, key);
    Attribute value = UnitAttr::get(parser.getContext());
    bool hasValue = succeeded(parser.parseOptionalEqual());
    if (!hasValue && !StringRef(key).contains('.'))
      return parser.emitError(parser.getCurrentLocation(), "expected '=' after '") << key << "'";
    if (hasValue && parseDictValue(parser, key, value))
      return failure();
    if (attrs.get(key))
      return parser.emitError(loc, "'") << key << "' is given twice";
    attrs.append(key, value);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalBraces, parseEntry) ||
      failed(check(name, attrs, [&] { return parser.emitError(begin); })))
    return failure();
  bool mayScore = opName == RouteOp::getOperationName() || opName == SparseAttendOp::getOperationName();
  return mayScore ? ParseResult(success()) : refuseClause(parser, opName);
}

/// True if `value` is what the op takes when nothing is written.
inline bool isDefaultValue(StringRef key, Attribute value) {
  return llvm::TypeSwitch<Attribute, bool>(value)
      .Case([&](IntegerAttr a) {
        return (key == "query_block" && a.getInt() == 1) ||
               ((key == "init_blocks" || key == "local_blocks") && a.getInt() == 0);
      })
      .Case([&](VisibilityAttr a) { return key == "visible" && a.getValue() == Visibility::complete; })
      .Case([&](NormalizationAttr a) { return key == "normalize" && a.getValue() == Normalization::none; })
      .Case([&](ReductionAttr a) { return key == "reduce" && a.getValue() == Reduction::none; })
      .Case([&](GateAttr a) { return key == "gate" && a.getValue() == Gate::sigmoid; })
      .Default(false);
}

inline void printDictValue(OpAsmPrinter &printer, StringRef key, Attribute value) {
  bool takesWord = llvm::any_of(spelledAttributes, [&](const SpelledAttribute &a) { return a.key == key; });
  llvm::TypeSwitch<Attribute>(value)
      .Case<VisibilityAttr, NormalizationAttr, ReductionAttr, GateAttr>([&](auto a) {
        if (takesWord)
          printer << stringifyEnum(a.getValue());
        else
          printer.printAttribute(a);
      })
      .Case([&](TypedAttr a) {
        // A bare number parses as i64, with a point as f64, so these types need not be written. Some floats print as
        // bits.
        std::string text = getBareText(a);
        bool isBare = (isa<IntegerAttr>(a) && a.getType().isSignlessInteger(64)) ||
                      (isa<FloatAttr>(a) && a.getType().isF64() && StringRef(text).contains('.'));
        if (isBare)
          printer << text;
        else
          printer.printAttribute(a);
      })
      .Default([&](Attribute a) { printer.printAttribute(a); });
}

inline void printDict(OpAsmPrinter &printer, Operation *op, DictionaryAttr attrs, StringRef, AttributeCheck) {
  SmallVector<NamedAttribute> shown;
  for (NamedAttribute attr : attrs)
    if (!standsElsewhere(attr.getName()) && !isDefaultValue(attr.getName(), attr.getValue()))
      shown.push_back(attr);
  if (shown.empty())
    return;
  printer << " {";
  llvm::interleaveComma(shown, printer, [&](NamedAttribute attr) {
    printer.printKeywordOrString(attr.getName());
    if (isa<UnitAttr>(attr.getValue()))
      return;
    printer << " = ";
    printDictValue(printer, attr.getName(), attr.getValue());
  });
  printer << '}';
}

//===----------------------------------------------------------------------===//
// Score: a score region, `score (%x, ..) { .. }`
//===----------------------------------------------------------------------===//

/// `floats` f32 values and then four i32: the types are fixed, so they are not printed.
inline SmallVector<Type> getScoreArgumentTypes(MLIRContext *context, unsigned floats) {
  SmallVector<Type> types(floats, Float32Type::get(context));
  types.append(4, IntegerType::get(context, 32));
  return types;
}

inline ParseResult parseScore(OpAsmParser &parser, Region &region, StringRef opName, unsigned floats) {
  if (failed(parser.parseOptionalKeyword("score")))
    return refuseClause(parser, opName);
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc loc = parser.getCurrentLocation();
  auto parseArgument = [&]() -> ParseResult {
    if (parser.parseArgument(arguments.emplace_back()))
      return failure();
    SMLoc colon = parser.getCurrentLocation();
    return succeeded(parser.parseOptionalColon())
               ? parser.emitError(colon, "expected no types of arguments of the score region, as they are fixed")
               : ParseResult(success());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseArgument, " before the score region"))
    return failure();
  SmallVector<Type> types = getScoreArgumentTypes(parser.getContext(), floats);
  if (arguments.size() != types.size())
    return parser.emitError(loc, "expected ")
           << types.size() << " arguments of the score region, "
           << (floats == 2 ? "(x, w, b, h, p, j)" : "(x, b, h, p, n)") << ", but got " << arguments.size();
  for (auto [argument, type] : llvm::zip(arguments, types))
    argument.type = type;
  return parser.parseRegion(region, arguments);
}

inline void printScore(OpAsmPrinter &printer, Operation *, Region &region, StringRef, unsigned) {
  if (region.empty())
    return;
  printer << " score (";
  llvm::interleaveComma(region.getArguments(), printer,
                        [&](BlockArgument a) { printer.printRegionArgument(a, {}, /*omitType=*/true); });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

//===----------------------------------------------------------------------===//
// Pairs: `(%a, %b), (%c, %d)`, so that the order of operands is the order of the text
//===----------------------------------------------------------------------===//

inline ParseResult parsePairs(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &parts) {
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    OpAsmParser::UnresolvedOperand first, second;
    if (parser.parseLParen() || parser.parseOperand(first) || parser.parseComma() || parser.parseOperand(second) ||
        parser.parseRParen())
      return failure();
    parts.append({first, second});
    return success();
  });
}

inline void printPairs(OpAsmPrinter &printer, Operation *, OperandRange parts) {
  for (size_t i = 0; i + 1 < parts.size(); i += 2)
    printer << (i ? ", (" : "(") << parts[i] << ", " << parts[i + 1] << ')';
}

} // namespace mlir::ssa

#endif // SSA_LIB_IR_SSAASSEMBLY_H
