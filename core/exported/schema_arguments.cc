// The alternatives of an argument. Each is an object of one key, which says what the value is.
#include <c10/util/complex.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/refusals.h"
#include "core/exported/schema_enums.h"
#include "core/exported/schema_graph.h"

namespace addend::exported {
namespace {

using Kind = Argument::Kind;

constexpr uint64_t kListElementCost = 3 * sizeof(c10::IValue);  // of a list of LibTorch, while it grows
constexpr uint64_t kStringCost = 96;                            // of a string of LibTorch, without its characters

Argument Constant(const char* tag, c10::IValue value) {
  Argument argument;
  argument.tag = tag;
  argument.constant = std::move(value);
  return argument;
}

Argument Value(const char* tag, std::string name) {
  Argument argument;
  argument.kind = Kind::kValue;
  argument.tag = tag;
  argument.name = std::move(name);
  return argument;
}

template <typename Read>
Argument List(JsonReader& json, const char* tag, Read read) {
  Argument argument;
  argument.kind = Kind::kList;
  argument.tag = tag;
  json.Array([&] {
    json.budget()->TakeElement(argument.elements);
    argument.elements.push_back(read());
  });
  return argument;
}

template <typename T, typename Read>
c10::List<T> ConstantList(JsonReader& json, Read read) {
  c10::List<T> list;
  json.Array([&] {
    json.budget()->Take(kListElementCost);
    list.push_back(read());
  });
  return list;
}

c10::List<int64_t> Integers(JsonReader& json) {
  return ConstantList<int64_t>(json, [&] { return json.Integer(); });
}

c10::List<double> Floats(JsonReader& json) {
  return ConstantList<double>(json, [&] { return json.Float(); });
}

// A symbolic number by name, or a plain one.
template <typename Read>
Argument Symbolic(JsonReader& json, const char* tag, const std::string& plain, Read read) {
  Argument argument;
  json.Union([&](const std::string& key) {
    if (key == "as_name") {
      argument = Value(tag, json.String());
    } else if (key == plain) {
      argument = Constant(tag, read());
    } else {
      json.Fail("is no symbolic number that is known");
    }
  });
  return argument;
}

Argument SymbolicInteger(JsonReader& json) {
  return Symbolic(json, "as_sym_int", "as_int", [&] { return c10::IValue(json.Integer()); });
}

Argument SymbolicBool(JsonReader& json) {
  return Symbolic(json, "as_sym_bool", "as_bool", [&] { return c10::IValue(json.Bool()); });
}

Argument SymbolicFloat(JsonReader& json) {
  return Symbolic(json, "as_sym_float", "as_float", [&] { return c10::IValue(json.Float()); });
}

Argument None(JsonReader& json) {
  json.Bool();
  return Constant("as_none", c10::IValue());
}

Argument Tensor(JsonReader& json) { return ReadNamed(json, "as_tensor"); }

Argument OptionalTensor(JsonReader& json) {
  Argument argument;
  json.Union([&](const std::string& key) {
    if (key == "as_tensor") {
      argument = Tensor(json);
    } else if (key == "as_none") {
      argument = None(json);
    } else {
      json.Fail("is neither a tensor nor none");
    }
  });
  return argument;
}

Argument String(JsonReader& json, const char* tag) {
  json.budget()->Take(kStringCost);
  return Constant(tag, json.String());
}

Argument Complex(JsonReader& json) {
  double real = 0;
  double imaginary = 0;
  json.Object([&](const std::string& key) {
    if (key == "real") {
      real = json.Float();
    } else if (key == "imag") {
      imaginary = json.Float();
    } else {
      json.SkipUnknown(key);
    }
  });
  json.budget()->Take(kStringCost);
  return Constant("as_complex", c10::complex<double>(real, imaginary));
}

Argument GraphArgument(JsonReader& json) {
  Argument argument;
  argument.kind = Kind::kGraph;
  argument.tag = "as_graph";
  json.Object([&](const std::string& key) {
    if (key == "name") {
      argument.name = json.String();
    } else if (key == "graph") {
      json.budget()->Take(sizeof(Graph) + 64);
      argument.graph = std::make_shared<const Graph>(ReadGraph(json));
    } else {
      json.SkipUnknown(key);
    }
  });
  if (argument.graph == nullptr) json.Fail("has no \"graph\"");
  return argument;
}

Argument ArgumentByString(JsonReader& json) {
  Argument argument;
  argument.kind = Kind::kDict;
  argument.tag = "as_string_to_argument";
  json.Object([&](const std::string& key) {
    json.budget()->TakeElement(argument.keys);
    json.budget()->TakeElement(argument.elements);
    argument.keys.push_back(key);
    argument.elements.push_back(ReadArgument(json));
  });
  return argument;
}

[[noreturn]] void RefuseCustomObject(JsonReader& json) {
  std::string type;
  json.Object([&](const std::string& key) {
    if (key == "class_fqn") {
      type = json.String();
    } else {
      json.Skip();
    }
  });
  throw CustomObject(json.Place(), absl::StrCat("the program uses a custom object of class ", Quoted(type)));
}

Argument Alternative(JsonReader& json, const std::string& key) {
  if (key == "as_tensor") return Tensor(json);
  if (key == "as_tensors") return List(json, "as_tensors", [&] { return Tensor(json); });
  if (key == "as_none") return None(json);
  if (key == "as_int") return Constant("as_int", json.Integer());
  if (key == "as_ints") return Constant("as_ints", Integers(json));
  if (key == "as_float") return Constant("as_float", json.Float());
  if (key == "as_floats") return Constant("as_floats", Floats(json));
  if (key == "as_bool") return Constant("as_bool", json.Bool());
  if (key == "as_bools") return Constant("as_bools", ConstantList<bool>(json, [&] { return json.Bool(); }));
  if (key == "as_string") return String(json, "as_string");
  if (key == "as_strings") {
    return Constant("as_strings", ConstantList<std::string>(json, [&] {
                      json.budget()->Take(kStringCost);
                      return json.String();
                    }));
  }
  if (key == "as_sym_int") return SymbolicInteger(json);
  if (key == "as_sym_ints") return List(json, "as_sym_ints", [&] { return SymbolicInteger(json); });
  if (key == "as_sym_bool") return SymbolicBool(json);
  if (key == "as_sym_bools") return List(json, "as_sym_bools", [&] { return SymbolicBool(json); });
  if (key == "as_sym_float") return SymbolicFloat(json);
  if (key == "as_sym_floats") return List(json, "as_sym_floats", [&] { return SymbolicFloat(json); });
  if (key == "as_scalar_type") return Constant("as_scalar_type", static_cast<int64_t>(ReadDtype(json)));
  if (key == "as_layout") return Constant("as_layout", static_cast<int64_t>(ReadLayout(json)));
  if (key == "as_memory_format") return Constant("as_memory_format", static_cast<int64_t>(ReadMemoryFormat(json)));
  if (key == "as_device") return Constant("as_device", ReadDevice(json));
  if (key == "as_complex") return Complex(json);
  if (key == "as_optional_tensor") {
    Argument argument = OptionalTensor(json);
    argument.tag = "as_optional_tensor";
    return argument;
  }
  if (key == "as_optional_tensors") return List(json, "as_optional_tensors", [&] { return OptionalTensor(json); });
  if (key == "as_nested_tensors") {
    return List(json, "as_nested_tensors", [&] { return List(json, "as_tensors", [&] { return Tensor(json); }); });
  }
  if (key == "as_int_lists") return List(json, "as_int_lists", [&] { return Constant("as_ints", Integers(json)); });
  if (key == "as_float_lists") {
    return List(json, "as_float_lists", [&] { return Constant("as_floats", Floats(json)); });
  }
  if (key == "as_string_to_argument") return ArgumentByString(json);
  if (key == "as_graph") return GraphArgument(json);
  if (key == "as_operator") {
    Argument argument = Value("as_operator", json.String());
    argument.kind = Kind::kOperator;
    return argument;
  }
  if (key == "as_custom_obj") RefuseCustomObject(json);
  json.Fail(
      "is an argument of a kind that is not known to this version of Addend; update Addend, or export the model "
      "with an older torch");
}

}  // namespace

Argument ReadNamed(JsonReader& json, const char* tag) {
  Argument argument = Value(tag, "");
  bool named = false;
  json.Object([&](const std::string& key) {
    if (key == "name") {
      argument.name = json.String();
      named = true;
    } else {
      json.SkipUnknown(key);
    }
  });
  if (!named || argument.name.empty()) json.Fail("has no name");
  return argument;
}

Argument ReadArgument(JsonReader& json) {
  Argument argument;
  json.Union([&](const std::string& key) { argument = Alternative(json, key); });
  return argument;
}

}  // namespace addend::exported
