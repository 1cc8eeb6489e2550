#include "core/program/call_arguments.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/tensor_text.h"
#include "core/base/text.h"

namespace addend {
namespace {

using Meaning = CallArgument::Meaning;

bool IsTensorType(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return true;
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::ListType:
      return IsTensorType(type->containedTypes()[0]);
    default:
      return false;
  }
}

bool IsListType(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::OptionalType) return IsListType(type->containedTypes()[0]);
  return type->kind() == c10::TypeKind::ListType;
}

// Dtypes and the like are integers to the dispatcher; the schema still knows what it was written with.
Meaning MeaningOf(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return MeaningOf(type->containedTypes()[0]);
    case c10::TypeKind::ScalarTypeType:
      return Meaning::kDtype;
    case c10::TypeKind::LayoutType:
      return Meaning::kLayout;
    case c10::TypeKind::MemoryFormatType:
      return Meaning::kMemoryFormat;
    default:
      return Meaning::kNumber;
  }
}

// Python's word for a number that stands for something; empty where there is none.
std::string Word(int64_t number, Meaning meaning) {
  if (meaning == Meaning::kDtype) return DtypeWord(static_cast<at::ScalarType>(number));
  if (meaning == Meaning::kLayout) return number == static_cast<int64_t>(c10::Layout::Strided) ? "strided" : "";
  if (meaning == Meaning::kMemoryFormat) {
    switch (static_cast<c10::MemoryFormat>(number)) {
      case c10::MemoryFormat::Contiguous:
        return "contiguous_format";
      case c10::MemoryFormat::Preserve:
        return "preserve_format";
      case c10::MemoryFormat::ChannelsLast:
        return "channels_last";
      case c10::MemoryFormat::ChannelsLast3d:
        return "channels_last_3d";
      default:
        return "";
    }
  }
  return "";
}

// repr() of a number: the fewest digits that give it back; exponents below 1e-4 and from 1e16 on.
std::string NumberText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text;  // "-1.25e-05"
  for (int digits = 0; digits <= 16; ++digits) {
    text = absl::StrFormat("%.*e", digits, number);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == number) break;
  }
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  const std::string sign = text[0] == '-' ? "-" : "";
  std::string digits = text.substr(sign.size(), e - sign.size());
  if (exponent < -4 || exponent >= 16) return absl::StrFormat("%s%se%+03d", sign, digits, exponent);
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  if (exponent < 0) return absl::StrCat(sign, "0.", std::string(-exponent - 1, '0'), digits);
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole + 1) digits.append(whole + 1 - digits.size(), '0');
  return absl::StrCat(sign, digits.substr(0, whole), ".", digits.substr(whole));
}

std::string ComplexText(const c10::complex<double>& number) {
  // Python leaves out what follows the point where there is nothing: (1+2j).
  const auto part = [](double x) {
    const std::string text = NumberText(x);
    return text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0 ? text.substr(0, text.size() - 2) : text;
  };
  const std::string imaginary = part(number.imag());
  return absl::StrCat("(", part(number.real()), imaginary[0] == '-' ? "" : "+", imaginary, "j)");
}

Json NullUnless(bool known, int64_t number) { return known ? Json(number) : Json(nullptr); }

Json Integers(c10::ArrayRef<int64_t> numbers) { return std::vector<int64_t>(numbers.begin(), numbers.end()); }

}  // namespace

std::vector<CallArgument> ArgumentsOf(const RecordedCall& call) {
  std::vector<CallArgument> list;
  const auto& arguments = call.op.schema().arguments();
  size_t next = 0;
  for (size_t a = 0; a < arguments.size(); ++a) {
    CallArgument argument;
    argument.name = arguments[a].name();
    argument.is_tensor = IsTensorType(arguments[a].type());
    argument.is_list = IsListType(arguments[a].type());
    argument.keyword_only = arguments[a].kwarg_only();
    argument.meaning = MeaningOf(arguments[a].real_type());
    if (a < call.arguments.size()) argument.value = call.arguments[a];
    for (; next < call.uses.size() && call.uses[next].argument == static_cast<int16_t>(a); ++next) {
      argument.uses.push_back(call.uses[next]);
    }
    const auto& otherwise = arguments[a].default_value();
    argument.is_default = otherwise && argument.uses.empty() && SamePlain(argument.value, *otherwise);
    if (argument.is_tensor) {
      if (argument.is_list && argument.value.isIntList()) {
        // Mark which tensors of a list of optional tensors are there.
        std::vector<TensorUse> all;
        size_t given = 0;
        for (const int64_t present : argument.value.toIntVector()) {
          const bool there = present != 0 && given < argument.uses.size();
          all.push_back(there ? argument.uses[given++] : TensorUse{static_cast<int16_t>(a), -1, 0, false});
        }
        argument.uses = std::move(all);
      }
      argument.value = c10::IValue();
    }
    list.push_back(std::move(argument));
  }
  return list;
}

std::string PlainText(const c10::IValue& value, Meaning meaning) {
  if (value.isNone()) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isInt()) {
    const std::string word = Word(value.toInt(), meaning);
    return word.empty() ? absl::StrCat(value.toInt()) : absl::StrCat("torch.", word);
  }
  if (value.isDouble()) return NumberText(value.toDouble());
  if (value.isComplexDouble()) return ComplexText(value.toComplexDouble());
  if (value.isString()) return OneLine(value.toStringRef());
  if (value.isDevice()) return value.toDevice().str();
  std::vector<std::string> parts;
  if (value.isIntList()) {
    for (const int64_t element : value.toIntVector()) parts.push_back(PlainText(element, meaning));
  } else if (value.isDoubleList()) {
    for (const double element : value.toDoubleVector()) parts.push_back(NumberText(element));
  } else if (value.isBoolList()) {
    for (const bool element : value.toBoolList()) parts.push_back(PlainText(element));
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) parts.push_back(PlainText(element, meaning));
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) parts.push_back(PlainText(element, meaning));
    return absl::StrCat("(", absl::StrJoin(parts, ", "), ")");
  } else {
    std::ostringstream text;
    text << value;
    return OneLine(text.str());
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

Json PlainJson(const c10::IValue& value, Meaning meaning) {
  if (value.isNone()) return nullptr;
  if (value.isBool()) return value.toBool();
  if (value.isInt()) {
    const std::string word = Word(value.toInt(), meaning);
    return word.empty() ? Json(value.toInt()) : Json(word);
  }
  if (value.isDouble()) {
    return std::isfinite(value.toDouble()) ? Json(value.toDouble()) : Json(NumberText(value.toDouble()));
  }
  if (value.isString()) return value.toStringRef();
  Json list = Json::array();
  if (value.isIntList()) {
    for (const int64_t element : value.toIntVector()) list.push_back(PlainJson(element, meaning));
  } else if (value.isDoubleList()) {
    for (const double element : value.toDoubleVector()) list.push_back(PlainJson(element));
  } else if (value.isBoolList()) {
    for (const bool element : value.toBoolList()) list.push_back(element);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) list.push_back(PlainJson(element, meaning));
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) list.push_back(PlainJson(element, meaning));
  } else {
    return PlainText(value, meaning);
  }
  return list;
}

Json ValueJson(const RecordedValue& value, int version) {
  return {{"name", value.name},
          {"dtype", DtypeName(value.dtype)},
          {"shape", Integers(value.geometry.sizes)},
          {"strides", Integers(value.geometry.strides)},
          {"offset", value.geometry.offset},
          {"device", value.device.str()},
          {"storage", value.storage},
          {"version", version}};
}

Json ArgumentJson(const RecordedProgram& program, const CallArgument& argument) {
  Json record = {{"name", argument.name}};
  if (!argument.is_tensor) {
    record["default"] = argument.is_default;
    record["value"] = PlainJson(argument.value, argument.meaning);
    return record;
  }
  Json& tensors = record["tensors"] = Json::array();
  for (const TensorUse& use : argument.uses) {
    if (use.value < 0) {
      tensors.push_back(nullptr);
    } else {
      tensors.push_back(
          {{"value", program.values[use.value].name}, {"version", use.version}, {"written", use.written}});
    }
  }
  return record;
}

Json GuardJson(const RecordedProgram& program, const RecordedCall& call) {
  if (call.guard < 0) return nullptr;
  const RecordedGuard& guard = program.guards[call.guard];
  return {{"kind", GuardKindName(guard.kind)}, {"value", PlainJson(guard.value)}};
}

Json FramesJson(const CodePlace& place) {
  Json frames = Json::array();
  for (const SourceFrame& frame : place.frames) {
    frames.push_back({{"file", frame.file},
                      {"line", NullUnless(frame.line >= 0, frame.line)},
                      {"column", NullUnless(frame.column >= 0, frame.column)},
                      {"length", NullUnless(frame.column >= 0, frame.length)},
                      {"function", frame.function},
                      {"text", frame.text}});
  }
  return frames;
}

}  // namespace addend
