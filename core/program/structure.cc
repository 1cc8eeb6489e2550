#include "core/program/structure.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace addend {
namespace {

bool IsPlain(const c10::IValue& value) {
  if (value.isNone() || value.isInt() || value.isDouble() || value.isBool() || value.isString()) return true;
  return value.isComplexDouble() || value.isDevice() || value.isIntList() || value.isDoubleList() || value.isBoolList();
}

std::string PlainTypeName(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return "Tensor";
    case c10::TypeKind::IntType:
      return "int";
    case c10::TypeKind::FloatType:
      return "float";
    case c10::TypeKind::BoolType:
      return "bool";
    case c10::TypeKind::StringType:
      return "str";
    default:
      return "";
  }
}

c10::TypePtr NamedPlainType(const std::string& name) {
  if (name == "Tensor") return c10::TensorType::get();
  if (name == "int") return c10::IntType::get();
  if (name == "float") return c10::FloatType::get();
  if (name == "bool") return c10::BoolType::get();
  if (name == "str") return c10::StringType::get();
  return c10::AnyType::get();
}

// Whether LibTorch can tell a value's type. It makes that of a tuple of its elements' types, and an undefined tensor
// has none.
bool HasType(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined();
  if (!value.isTuple()) return true;
  const auto& elements = value.toTupleRef().elements();
  return std::all_of(elements.begin(), elements.end(), HasType);
}

// The type of a value as containers declare it: of a tensor no more than that it is one, in tuples too.
c10::TypePtr DeclaredType(const c10::IValue& value) {
  if (value.isTensor()) return c10::TensorType::get();
  if (!value.isTuple()) return value.type();
  const c10::TupleTypePtr own = HasType(value) ? value.toTuple()->type() : nullptr;
  if (own != nullptr && own->schema() != nullptr) return own;
  std::vector<c10::TypePtr> types;
  for (const c10::IValue& element : value.toTupleRef().elements()) types.push_back(DeclaredType(element));
  return c10::TupleType::create(std::move(types));
}

// The type that all of some values have; where they differ whatever `otherwise` names.
template <typename Values>
c10::TypePtr CommonType(const Values& values, const std::string& otherwise) {
  c10::TypePtr common;
  bool none = false;
  for (const c10::IValue& value : values) {
    if (value.isNone()) {
      none = true;
      continue;
    }
    const c10::TypePtr type = DeclaredType(value);
    if (common == nullptr) common = type;
    if (*common != *type) return c10::AnyType::get();
  }
  if (common == nullptr) return NamedPlainType(otherwise);
  return none ? c10::TypePtr(c10::OptionalType::create(common)) : common;
}

std::string Text(const c10::IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string Quoted(const c10::IValue& key) {
  if (key.isString()) return absl::StrCat("\"", absl::Utf8SafeCEscape(key.toStringRef()), "\"");
  return Text(key);
}

const char* KindText(Structure::Kind kind) {
  switch (kind) {
    case Structure::Kind::kTensor:
      return "a tensor";
    case Structure::Kind::kPlain:
      return "a plain value";
    case Structure::Kind::kTuple:
      return "a tuple";
    case Structure::Kind::kList:
      return "a list";
    case Structure::Kind::kDict:
      return "a dictionary";
  }
  return "";
}

// -0.0 is not 0.0: a program may ask for the sign.
bool SameDouble(double a, double b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

Structure TakeApart(const c10::IValue& value, const std::string& what,
                    const std::function<int(const at::Tensor&)>& number) {
  Structure structure;
  if (value.isTensor()) {
    structure.kind = Structure::Kind::kTensor;
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined()) structure.tensor = number(tensor);
  } else if (IsPlain(value)) {
    structure.plain = value;
  } else if (value.isList()) {
    structure.kind = Structure::Kind::kList;
    structure.type = PlainTypeName(value.toList().elementType());
    for (const c10::IValue& element : value.toListRef()) structure.elements.push_back(TakeApart(element, what, number));
  } else if (value.isTuple()) {
    structure.kind = Structure::Kind::kTuple;
    const c10::TupleTypePtr type = HasType(value) ? value.toTuple()->type() : nullptr;
    if (type != nullptr && type->schema() != nullptr && type->name()) {
      structure.type = type->name()->qualifiedName();
      for (const c10::Argument& field : type->schema()->arguments()) structure.names.push_back(field.name());
    }
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      structure.elements.push_back(TakeApart(element, what, number));
    }
  } else if (value.isGenericDict()) {
    structure.kind = Structure::Kind::kDict;
    structure.type = PlainTypeName(value.toGenericDict().valueType());
    for (const auto& entry : value.toGenericDict()) {
      if (!entry.key().isString() && !entry.key().isInt() && !entry.key().isDouble() && !entry.key().isBool()) {
        throw Unimplemented(absl::StrCat(what, " has a dictionary whose keys are neither strings nor numbers"));
      }
      structure.keys.push_back(entry.key());
      structure.elements.push_back(TakeApart(entry.value(), what, number));
    }
  } else {
    throw Unimplemented(absl::StrCat(what, " is or holds a ", value.tagKind(),
                                     "; tensors, numbers, strings, tuples, lists and dictionaries can be recorded"));
  }
  return structure;
}

c10::IValue PutTogether(const Structure& structure, const std::function<at::Tensor(int)>& tensor) {
  if (structure.kind == Structure::Kind::kPlain) return structure.plain;
  if (structure.kind == Structure::Kind::kTensor) {
    return structure.tensor < 0 ? at::Tensor() : tensor(structure.tensor);
  }
  std::vector<c10::IValue> elements;
  elements.reserve(structure.elements.size());
  for (const Structure& element : structure.elements) elements.push_back(PutTogether(element, tensor));
  if (structure.kind == Structure::Kind::kTuple) {
    if (structure.names.empty()) return c10::ivalue::Tuple::create(std::move(elements));
    std::vector<c10::TypePtr> types;
    for (const c10::IValue& element : elements) {
      types.push_back(element.isTensor() ? c10::TypePtr(c10::TensorType::get()) : element.type());
    }
    const auto type = c10::TupleType::createNamed(c10::QualifiedName(structure.type), structure.names, types);
    return c10::ivalue::Tuple::createNamed(std::move(elements), type);
  }
  const c10::TypePtr type = CommonType(elements, structure.type);
  if (structure.kind == Structure::Kind::kList) {
    // Lists of tensors and of numbers are told apart by their type alone.
    c10::impl::GenericList list(type);
    for (c10::IValue& element : elements) list.push_back(std::move(element));
    return list;
  }
  const c10::TypePtr key_type = CommonType(structure.keys, "str");
  c10::impl::GenericDict dict(key_type->kind() == c10::TypeKind::AnyType ? c10::StringType::get() : key_type, type);
  for (size_t k = 0; k < elements.size(); ++k) dict.insert_or_assign(structure.keys[k], std::move(elements[k]));
  return dict;
}

void ForEachNumber(const Structure& structure, const std::function<void(int)>& visit) {
  if (structure.kind == Structure::Kind::kTensor && structure.tensor >= 0) visit(structure.tensor);
  for (const Structure& element : structure.elements) ForEachNumber(element, visit);
}

bool SamePlain(const c10::IValue& a, const c10::IValue& b) {
  if (a.isDouble() && b.isDouble()) return SameDouble(a.toDouble(), b.toDouble());
  if (a.isComplexDouble() && b.isComplexDouble()) {
    const c10::complex<double> x = a.toComplexDouble();
    const c10::complex<double> y = b.toComplexDouble();
    return SameDouble(x.real(), y.real()) && SameDouble(x.imag(), y.imag());
  }
  if (a.tagKind() != b.tagKind()) return false;
  if (a.isDoubleList()) {
    const std::vector<double> x = a.toDoubleVector();
    const std::vector<double> y = b.toDoubleVector();
    if (x.size() != y.size()) return false;
    for (size_t k = 0; k < x.size(); ++k) {
      if (!SameDouble(x[k], y[k])) return false;
    }
    return true;
  }
  if (a.isIntList()) return a.toIntVector() == b.toIntVector();
  if (a.isBoolList()) {
    const c10::List<bool> x = a.toBoolList();
    const c10::List<bool> y = b.toBoolList();
    if (x.size() != y.size()) return false;
    for (size_t k = 0; k < x.size(); ++k) {
      if (x.get(k) != y.get(k)) return false;
    }
    return true;
  }
  if (a.isTuple()) {
    const auto& x = a.toTupleRef().elements();
    const auto& y = b.toTupleRef().elements();
    if (x.size() != y.size()) return false;
    for (size_t k = 0; k < x.size(); ++k) {
      if (!SamePlain(x[k], y[k])) return false;
    }
    return true;
  }
  if (a.isNone()) return true;
  if (a.isInt()) return a.toInt() == b.toInt();
  if (a.isBool()) return a.toBool() == b.toBool();
  if (a.isString()) return a.toStringRef() == b.toStringRef();
  if (a.isDevice()) return a.toDevice() == b.toDevice();
  if (a.isList()) {
    const auto x = a.toListRef();
    const auto y = b.toListRef();
    if (x.size() != y.size()) return false;
    for (size_t k = 0; k < x.size(); ++k) {
      if (!SamePlain(x[k], y[k])) return false;
    }
    return true;
  }
  return a.is(b);
}

std::string Difference(const Structure& expected, const Structure& found) {
  if (expected.kind != found.kind) return absl::StrCat(" is ", KindText(found.kind), ", not ", KindText(expected.kind));
  if (expected.kind == Structure::Kind::kTensor && (expected.tensor < 0) != (found.tensor < 0)) {
    return found.tensor < 0 ? " is an undefined tensor" : " is a tensor, not an undefined one";
  }
  if (expected.kind == Structure::Kind::kPlain && !SamePlain(expected.plain, found.plain)) {
    return absl::StrCat(" is ", absl::Utf8SafeCEscape(Text(found.plain)), ", not ",
                        absl::Utf8SafeCEscape(Text(expected.plain)));
  }
  if (expected.elements.size() != found.elements.size()) {
    return absl::StrCat(" has ", found.elements.size(), " elements, not ", expected.elements.size());
  }
  for (size_t k = 0; k < expected.elements.size(); ++k) {
    std::string at = absl::StrCat("[", k, "]");
    if (expected.kind == Structure::Kind::kDict) {
      if (!SamePlain(expected.keys[k], found.keys[k])) {
        return absl::StrCat(" has the key ", Quoted(found.keys[k]), ", not ", Quoted(expected.keys[k]));
      }
      at = absl::StrCat("[", Quoted(expected.keys[k]), "]");
    }
    const std::string inner = Difference(expected.elements[k], found.elements[k]);
    if (!inner.empty()) return at + inner;
  }
  return "";
}

std::string DescribeStructure(const Structure& structure) {
  std::vector<std::string> parts;
  for (size_t k = 0; k < structure.elements.size(); ++k) {
    std::string part = DescribeStructure(structure.elements[k]);
    if (structure.kind == Structure::Kind::kDict) part = absl::StrCat(Quoted(structure.keys[k]), ": ", part);
    if (k < structure.names.size()) part = absl::StrCat(structure.names[k], "=", part);
    parts.push_back(std::move(part));
  }
  switch (structure.kind) {
    case Structure::Kind::kTensor:
      return "Tensor";
    case Structure::Kind::kPlain:
      return structure.plain.isString() ? Quoted(structure.plain) : Text(structure.plain);
    case Structure::Kind::kTuple:
      return absl::StrCat("(", absl::StrJoin(parts, ", "), parts.size() == 1 ? ",)" : ")");
    case Structure::Kind::kList:
      return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
    case Structure::Kind::kDict:
      return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
  }
  return "";
}

}  // namespace addend
