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
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::ssa {

//===----------------------------------------------------------------------===//
// Dict: like attr-dict, but enumerated values are bare words
//===----------------------------------------------------------------------===//

/// The op's own check of its attributes. ODS calls it for `attr-dict` but not for a custom directive over it, and an
/// attribute of the wrong kind would then be dropped without a word; so the directive is handed the check.
using AttributeCheck = LogicalResult (*)(OperationName, NamedAttrList &, llvm::function_ref<InFlightDiagnostic()>);

/// A dictionary entry whose values are words.
struct WordAttribute {
  StringLiteral key;
  StringLiteral values;
  Attribute (*parse)(MLIRContext *, StringRef word);
};

template <typename AttrT>
Attribute parseWord(MLIRContext *context, StringRef word) {
  auto value = symbolizeEnum<decltype(std::declval<AttrT>().getValue())>(word);
  return value ? AttrT::get(context, *value) : Attribute();
}

inline const WordAttribute wordAttributes[] = {
    {"visible", "'complete' or 'partial'", parseWord<VisibilityAttr>},
    {"normalize", "'none' or 'softmax'", parseWord<NormalizationAttr>},
    {"reduce", "'none', 'sum' or 'max'", parseWord<ReductionAttr>},
    {"gate", "'sigmoid' or 'none'", parseWord<GateAttr>},
};

inline ParseResult parseDictValue(OpAsmParser &parser, OperationName op, StringRef key, Attribute &value) {
  // A key of another op is left to the check that refuses it.
  const auto *word = llvm::find_if(wordAttributes, [&](const WordAttribute &w) { return w.key == key; });
  StringRef text;
  SMLoc loc = parser.getCurrentLocation();
  if (word != std::end(wordAttributes) && succeeded(parser.parseOptionalKeyword(&text))) {
    value = word->parse(parser.getContext(), text);
    if (!value)
      return parser.emitError(loc, "expected '") << key << "' to be " << word->values << ", but got '" << text << "'";
    return success();
  }
  if (parser.parseAttribute(value))
    return failure();
  // 1 and 1.0 are the same number.
  if (auto integer = dyn_cast<IntegerAttr>(value); integer && integer.getType().isInteger(64))
    if (llvm::is_contained({"scale", "top_p", "threshold"}, key))
      value = FloatAttr::get(Float64Type::get(parser.getContext()), double(integer.getInt()));
  return success();
}

inline ParseResult parseDict(OpAsmParser &parser, NamedAttrList &attrs, StringRef opName, AttributeCheck check) {
  OperationName name(opName, parser.getContext());
  SMLoc begin = parser.getCurrentLocation();
  if (failed(parser.parseOptionalLBrace()))
    return check(name, attrs, [&] { return parser.emitError(begin); });
  if (failed(parser.parseOptionalRBrace())) {
    do {
      std::string key;
      SMLoc loc = parser.getCurrentLocation();
      if (parser.parseKeywordOrString(&key))
        return failure();
      Attribute value = UnitAttr::get(parser.getContext());
      if (succeeded(parser.parseOptionalEqual()) && parseDictValue(parser, name, key, value))
        return failure();
      if (attrs.get(key))
        return parser.emitError(loc, "'") << key << "' is given twice";
      attrs.append(key, value);
    } while (succeeded(parser.parseOptionalComma()));
    if (parser.parseRBrace())
      return failure();
  }
  return check(name, attrs, [&] { return parser.emitError(begin); });
}

/// True if `value` is what the op takes when nothing is written.
inline bool isDefaultValue(StringRef key, Attribute value) {
  return llvm::TypeSwitch<Attribute, bool>(value)
      .Case([&](IntegerAttr a) {
        return (key == "query_block" && a.getInt() == 1) ||
               ((key == "init_blocks" || key == "local_blocks") && a.getInt() == 0);
      })
      .Case([](VisibilityAttr a) { return a.getValue() == Visibility::complete; })
      .Case([](NormalizationAttr a) { return a.getValue() == Normalization::none; })
      .Case([](ReductionAttr a) { return a.getValue() == Reduction::none; })
      .Case([](GateAttr a) { return a.getValue() == Gate::sigmoid; })
      .Default(false);
}

inline void printDictValue(OpAsmPrinter &printer, StringRef key, Attribute value) {
  bool takesWord = llvm::any_of(wordAttributes, [&](const WordAttribute &w) { return w.key == key; });
  llvm::TypeSwitch<Attribute>(value)
      .Case<VisibilityAttr, NormalizationAttr, ReductionAttr, GateAttr>([&](auto a) {
        if (takesWord)
          printer << stringifyEnum(a.getValue());
        else
          printer.printAttribute(a);
      })
      .Default([&](Attribute a) {
        // A bare number parses as i64 or f64, so these types need not be written.
        auto typed = dyn_cast<TypedAttr>(a);
        if (typed && (typed.getType().isInteger(64) || typed.getType().isF64()))
          printer.printAttributeWithoutType(a);
        else
          printer.printAttribute(a);
      });
}

inline void printDict(OpAsmPrinter &printer, Operation *op, DictionaryAttr attrs, StringRef, AttributeCheck) {
  SmallVector<NamedAttribute> shown;
  for (NamedAttribute attr : attrs) {
    StringRef key = attr.getName();
    bool elsewhere = key == "operandSegmentSizes" || key == "kind" || key == "bound"; // printed by the op's format
    if (!elsewhere && !isDefaultValue(key, attr.getValue()))
      shown.push_back(attr);
  }
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

inline ParseResult parseScore(OpAsmParser &parser, Region &region, unsigned floats) {
  if (failed(parser.parseOptionalKeyword("score")))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/false))
    return failure();
  SmallVector<Type> types = getScoreArgumentTypes(parser.getContext(), floats);
  if (arguments.size() != types.size())
    return parser.emitError(loc, "expected ")
           << types.size() << " arguments of the score region, " << (floats == 2 ? "(x, w, b, h, p, j)" : "(x, b, h, p, n)")
           << ", but got " << arguments.size();
  for (auto [argument, type] : llvm::zip(arguments, types))
    argument.type = type;
  return parser.parseRegion(region, arguments);
}

inline void printScore(OpAsmPrinter &printer, Operation *, Region &region, unsigned) {
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
