#include "core/eager/argument.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/program/traced_calls.h"

namespace addend {
namespace {

using Form = Argument::Form;

const c10::TypePtr& ElementType(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::ListType ? type->expectRef<c10::ListType>().getElementType()
                                                 : type->expectRef<c10::OptionalType>().getElementType();
}

bool IsInteger(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::IntType || type->kind() == c10::TypeKind::SymIntType;
}

bool HoldsInteger(const Argument& argument) {
  return argument.form() == Form::kConstant && argument.constant().isInt();
}

// Text for messages: what an argument of a type should be.
std::string TypeText(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return "a composition or tensor";
    case c10::TypeKind::NumberType:
      return "a number";
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return "an integer";
    case c10::TypeKind::FloatType:
      return "a floating-point number";
    case c10::TypeKind::BoolType:
      return "true or false";
    case c10::TypeKind::StringType:
      return "text";
    case c10::TypeKind::DeviceObjType:
      return "a device";
    case c10::TypeKind::OptionalType:
      return absl::StrCat(TypeText(ElementType(type)), " or None");
    case c10::TypeKind::ListType: {
      const c10::TypePtr& element = ElementType(type);
      if (IsInteger(element)) return "a list of integers";
      if (element->kind() == c10::TypeKind::FloatType) return "a list of floating-point numbers";
      if (element->kind() == c10::TypeKind::BoolType) return "a list of bools";
      if (element->kind() == c10::TypeKind::OptionalType) return "a list of compositions, tensors or None";
      return "a list of compositions and tensors";
    }
    default:
      return type->annotation_str();
  }
}

constexpr int kNoFit = -1;

// How an argument fits a type: 0 as it is, more the more it has to be converted, kNoFit not at all.
int Fit(const Argument& argument, const c10::TypePtr& type, const c10::Argument& declared) {
  const Form form = argument.form();
  const c10::IValue& constant = argument.constant();
  const bool is_tensor = form == Form::kTensor || form == Form::kComposition || form == Form::kVariable;
  const bool is_constant = form == Form::kConstant;
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return form == Form::kNone ? 0 : Fit(argument, ElementType(type), declared);
    case c10::TypeKind::TensorType:
      return is_tensor ? 0 : kNoFit;
    case c10::TypeKind::NumberType:
      if (!is_constant) return kNoFit;
      if (constant.isInt() || constant.isDouble() || constant.isComplexDouble()) return 0;
      return constant.isBool() ? 1 : kNoFit;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: {
      const bool enumeration = declared.real_type()->str().find("ScalarType") != std::string::npos ||
                               declared.real_type()->str().find("Layout") != std::string::npos ||
                               declared.real_type()->str().find("MemoryFormat") != std::string::npos;
      if (form == Form::kEnumeration) return enumeration ? 0 : 2;
      if (!is_constant || !constant.isInt()) return kNoFit;
      return enumeration ? 2 : 0;
    }
    case c10::TypeKind::FloatType:
      if (!is_constant) return kNoFit;
      return constant.isDouble() ? 0 : constant.isInt() ? 1 : kNoFit;
    case c10::TypeKind::BoolType:
      return is_constant && constant.isBool() ? 0 : kNoFit;
    case c10::TypeKind::StringType:
      return is_constant && constant.isString() ? 0 : kNoFit;
    case c10::TypeKind::DeviceObjType:
      return is_constant && (constant.isDevice() || constant.isString()) ? 0 : kNoFit;
    case c10::TypeKind::ListType: {
      const c10::TypePtr& element = ElementType(type);
      // An empty list fits every list: its element type is not known.
      if (form == Form::kList && argument.list().empty()) return 0;
      if (IsInteger(element)) {
        if (is_constant && constant.isIntList()) return 0;
        // int[2] takes one integer for both.
        return HoldsInteger(argument) && declared.N() ? 1 : kNoFit;
      }
      if (element->kind() == c10::TypeKind::FloatType) {
        if (!is_constant) return kNoFit;
        return constant.isDoubleList() ? 0 : constant.isIntList() ? 1 : kNoFit;
      }
      if (element->kind() == c10::TypeKind::BoolType) return is_constant && constant.isBoolList() ? 0 : kNoFit;
      if (form != Form::kList) return is_constant && constant.type()->isSubtypeOf(*type) ? 0 : kNoFit;
      int worst = 0;
      for (const Argument& item : argument.list()) {
        const int fit = Fit(item, element, declared);
        if (fit == kNoFit) return kNoFit;
        worst = std::max(worst, fit);
      }
      return worst;
    }
    default:
      // Generators, streams and their kind: as LibTorch passes them.
      return is_constant && constant.type()->isSubtypeOf(*type) ? 0 : kNoFit;
  }
}

c10::IValue Convert(const Argument& argument, const c10::TypePtr& type, const c10::Argument& declared,
                    const std::function<at::Tensor(const Argument&)>& tensor_of) {
  const c10::IValue& constant = argument.constant();
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return argument.form() == Form::kNone ? c10::IValue() : Convert(argument, ElementType(type), declared, tensor_of);
    case c10::TypeKind::TensorType:
      return tensor_of(argument);
    case c10::TypeKind::NumberType:
      return constant.isBool() ? c10::IValue(static_cast<int64_t>(constant.toBool())) : constant;
    case c10::TypeKind::FloatType:
      return constant.isInt() ? c10::IValue(static_cast<double>(constant.toInt())) : constant;
    case c10::TypeKind::DeviceObjType:
      return constant.isString() ? c10::IValue(at::Device(constant.toStringRef())) : constant;
    case c10::TypeKind::ListType: {
      const c10::TypePtr& element = ElementType(type);
      if (HoldsInteger(argument)) {
        return std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(1, *declared.N())), constant.toInt());
      }
      if (element->kind() == c10::TypeKind::FloatType && constant.isIntList()) {
        const std::vector<int64_t> whole = constant.toIntVector();
        return std::vector<double>(whole.begin(), whole.end());
      }
      if (argument.form() != Form::kList) return constant;
      if (element->kind() == c10::TypeKind::TensorType) {
        c10::List<at::Tensor> list;
        for (const Argument& item : argument.list()) list.push_back(tensor_of(item));
        return list;
      }
      c10::impl::GenericList list(element);
      for (const Argument& item : argument.list()) list.push_back(Convert(item, element, declared, tensor_of));
      return list;
    }
    default:
      return constant;
  }
}

// The arguments by position in the schema; `why` is set, and false returned, where they do not fit. `cost` adds up how
// much has to be converted.
bool Match(const c10::FunctionSchema& schema, const std::vector<Argument>& arguments,
           std::vector<const Argument*>& bound, int& cost, std::string& why) {
  const std::vector<c10::Argument>& declared = schema.arguments();
  bound.assign(declared.size(), nullptr);
  cost = 0;
  size_t positional = 0;
  for (const c10::Argument& argument : declared) positional += argument.kwarg_only() ? 0 : 1;
  size_t next = 0;
  bool named = false;
  for (const Argument& argument : arguments) {
    size_t place = next;
    if (argument.name().empty()) {
      if (named) {
        why = "an argument without a name follows one with a name";
        return false;
      }
      if (next >= positional) {
        const auto given =
            std::count_if(arguments.begin(), arguments.end(), [](const Argument& a) { return a.name().empty(); });
        why = absl::StrCat("takes ", positional, positional == 1 ? " argument" : " arguments", " without a name, but ",
                           given, given == 1 ? " is" : " are", " given");
        return false;
      }
      ++next;
    } else {
      named = true;
      place = 0;
      while (place < declared.size() && declared[place].name() != argument.name()) ++place;
      if (place == declared.size()) {
        why = absl::StrCat("has no argument \"", argument.name(), "\"");
        return false;
      }
      if (bound[place] != nullptr) {
        why = absl::StrCat("argument \"", argument.name(), "\" is given twice");
        return false;
      }
    }
    if (declared[place].is_out()) {
      why = absl::StrCat("writes into \"", declared[place].name(),
                         "\"; compositions are values: use the form of the operator that returns its result");
      return false;
    }
    const int fit = Fit(argument, declared[place].type(), declared[place]);
    if (fit == kNoFit) {
      why = absl::StrCat("argument \"", declared[place].name(), "\" must be ", TypeText(declared[place].type()),
                         ", but is ", argument.Describe());
      return false;
    }
    cost += fit;
    bound[place] = &argument;
  }
  for (size_t a = 0; a < declared.size(); ++a) {
    if (bound[a] != nullptr || declared[a].default_value()) continue;
    if (declared[a].is_out()) {
      why = absl::StrCat("writes into \"", declared[a].name(),
                         "\"; compositions are values: use the form of the operator that returns its result");
      return false;
    }
    why = absl::StrCat("argument \"", declared[a].name(), "\" is missing; it must be ", TypeText(declared[a].type()));
    return false;
  }
  return true;
}

std::string SchemaText(const c10::FunctionSchema& schema) {
  std::ostringstream out;
  out << schema;
  return out.str();
}

bool TakesDimensionNames(const c10::FunctionSchema& schema) {
  return absl::StrContains(schema.overload_name(), "dimname") || absl::StrContains(schema.overload_name(), "names");
}

std::string OverloadName(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? "the one without a name" : schema.overload_name();
}

}  // namespace

Argument::Argument(Composition* variable) : form_(Form::kVariable), variable_(variable) {
  if (variable == nullptr) throw InvalidArgument("a null pointer was given as an argument; None is std::nullopt");
}

Argument::Argument(const at::Tensor& tensor) {
  if (!tensor.defined()) return;  // LibTorch's own way to say None
  form_ = Form::kTensor;
  tensor_ = tensor;
}

Argument::Argument(const TensorOrComposition& either) {
  if (either.composition() != nullptr) {
    form_ = Form::kComposition;
    composition_ = either.composition();
  } else if (either.tensor().defined()) {
    form_ = Form::kTensor;
    tensor_ = either.tensor();
  }
}

Argument::Argument(const std::vector<bool>& list) : form_(Form::kConstant) {
  c10::List<bool> bools;
  for (const bool item : list) bools.push_back(item);
  constant_ = bools;
}

Argument::Argument(const c10::IValue& value) {
  if (value.isNone()) return;
  if (value.isTensor()) {
    *this = Argument(value.toTensor());
  } else if (value.isTensorList()) {
    *this = Argument(value.toTensorVector());
  } else if (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList()) {
    form_ = Form::kList;
    for (const c10::IValue& item : value.toListRef()) list_.emplace_back(item);
  } else {
    form_ = Form::kConstant;
    constant_ = value;
  }
}

std::string Argument::Describe() const {
  switch (form_) {
    case Form::kNone:
      return "None";
    case Form::kTensor:
      return absl::StrCat("the tensor ", TensorText(tensor_.scalar_type(), tensor_.sizes()));
    case Form::kComposition:
    case Form::kVariable:
      return absl::StrCat("the composition ", TensorText(composition()->dtype(), composition()->sizes()), " of ",
                          composition()->numc());
    case Form::kEnumeration:
      return "a dtype, layout or memory format";
    case Form::kConstant: {
      if (constant_.isString()) return absl::StrCat("\"", constant_.toStringRef(), "\"");
      if (constant_.isBool()) return constant_.toBool() ? "true" : "false";
      std::ostringstream out;
      out << constant_;
      return out.str();
    }
    case Form::kList: {
      std::vector<std::string> items;
      for (const Argument& item : list_) items.push_back(item.Describe());
      return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
    }
  }
  return "";
}

Argument Named(std::string name, Argument argument) {
  argument.name_ = std::move(name);
  return argument;
}

BoundCall Bind(const std::string& name, const std::vector<Argument>& arguments) {
  const size_t colon = name.find("::");
  const size_t dot = colon == std::string::npos ? std::string::npos : name.find('.', colon);
  const std::string base = name.substr(0, dot);
  if (dot != std::string::npos) {
    const std::string overload = name.substr(dot + 1);
    const auto op = Operator::Find(base, overload);
    if (!op) {
      std::vector<std::string> known;
      for (const Operator& other : Operator::Overloads(base)) known.push_back(OverloadName(other.schema()));
      if (known.empty()) throw NotFound(absl::StrCat("there is no operator ", base));
      std::sort(known.begin(), known.end());
      throw NotFound(
          absl::StrCat(base, " has no overload ", overload, "; its overloads are: ", absl::StrJoin(known, ", ")));
    }
    BoundCall bound{*op, {}};
    int cost = 0;
    std::string why;
    if (Match(op->schema(), arguments, bound.arguments, cost, why)) return bound;
    throw InvalidArgument(absl::StrCat(name, ": ", why, "; its schema is ", SchemaText(op->schema())));
  }

  const std::vector<Operator> overloads = Operator::Overloads(base);
  if (overloads.empty()) {
    throw NotFound(absl::StrCat("there is no operator ", base,
                                colon == std::string::npos ? absl::StrCat("; did you mean aten::", base, "?") : ""));
  }
  std::vector<BoundCall> best;
  int best_cost = 0;
  std::vector<std::string> reasons;
  for (const Operator& op : overloads) {
    BoundCall bound{op, {}};
    int cost = 0;
    std::string why;
    if (!Match(op.schema(), arguments, bound.arguments, cost, why)) {
      if (overloads.size() > 1) why = absl::StrCat(OverloadName(op.schema()), ": ", why);
      const bool secondary = TakesDimensionNames(op.schema()) || absl::StrContains(why, "compositions are values");
      if (!secondary || overloads.size() == 1) reasons.push_back(why);
      continue;
    }
    if (TakesDimensionNames(op.schema())) cost += 10;
    if (!best.empty() && cost > best_cost) continue;
    if (cost < best_cost) best.clear();
    best_cost = cost;
    best.push_back(std::move(bound));
  }
  if (best.size() == 1) return best[0];
  // Choose the one without an overload name if several fit alike: nothing else could be called to mean it. (Newer
  // versions of LibTorch have a std.correction, say, whose arguments are all optional.)
  for (const BoundCall& bound : best) {
    if (bound.op.schema().overload_name().empty()) return bound;
  }
  std::vector<std::string> given;
  for (const Argument& argument : arguments) {
    given.push_back(argument.name().empty() ? argument.Describe()
                                            : absl::StrCat(argument.name(), "=", argument.Describe()));
  }
  if (!best.empty()) {
    std::vector<std::string> names;
    for (const BoundCall& bound : best) names.push_back(FullName(bound.op.schema()));
    std::sort(names.begin(), names.end());
    throw InvalidArgument(absl::StrCat("the arguments (", absl::StrJoin(given, ", "), ") fit several overloads of ",
                                       base, "; name one of: ", absl::StrJoin(names, ", ")));
  }
  std::sort(reasons.begin(), reasons.end());
  throw InvalidArgument(absl::StrCat("no overload of ", base, " takes (", absl::StrJoin(given, ", "),
                                     "): ", absl::StrJoin(reasons, "; ")));
}

Stack MakeStack(const BoundCall& call, const std::function<at::Tensor(const Argument&)>& tensor_of) {
  Stack stack;
  const std::vector<c10::Argument>& declared = call.op.schema().arguments();
  for (size_t a = 0; a < declared.size(); ++a) {
    if (call.arguments[a] == nullptr) {
      stack.push_back(*declared[a].default_value());
    } else {
      stack.push_back(Convert(*call.arguments[a], declared[a].type(), declared[a], tensor_of));
    }
  }
  return stack;
}

}  // namespace addend
