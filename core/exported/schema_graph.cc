#include "core/exported/schema_graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/refusals.h"
#include "core/exported/schema_enums.h"

namespace addend::exported {
namespace {

using weights::kMapNodeCost;

template <typename T>
void Push(JsonReader& json, std::vector<T>& vector, T element) {
  json.budget()->TakeElement(vector);
  vector.push_back(std::move(element));
}

// The value that an expression had at export. Those of truth values and floating-point numbers are of no use here.
std::optional<int64_t> ReadHint(JsonReader& json) {
  std::optional<int64_t> hint;
  if (json.Next() == JsonReader::Kind::kNull) {
    json.Null();
    return hint;
  }
  json.Union([&](const std::string& key) {
    if (key == "as_int") {
      hint = json.Integer();
    } else if (key == "as_bool") {
      json.Bool();
    } else if (key == "as_float") {
      json.Float();
    } else {
      json.Fail("is no hint that is known");
    }
  });
  return hint;
}

void ReadExpression(JsonReader& json, SymbolicInt& number) {
  json.Object([&](const std::string& key) {
    if (key == "expr_str") {
      number.expression = json.String();
    } else if (key == "hint") {
      number.value = ReadHint(json);
    } else {
      json.SkipUnknown(key);
    }
  });
  if (number.expression.empty()) json.Fail("has no \"expr_str\"");
}

SymbolicInt ReadSymbolicInt(JsonReader& json) {
  SymbolicInt number;
  json.Union([&](const std::string& key) {
    if (key == "as_int") {
      number.value = json.Integer();
    } else if (key == "as_expr") {
      ReadExpression(json, number);
    } else {
      json.Fail("is neither a number nor an expression");
    }
  });
  return number;
}

std::vector<SymbolicInt> ReadSymbolicInts(JsonReader& json) {
  std::vector<SymbolicInt> numbers;
  json.Array([&] { Push(json, numbers, ReadSymbolicInt(json)); });
  return numbers;
}

NamedArgument ReadNamedArgument(JsonReader& json) {
  NamedArgument argument;
  bool given = false;
  json.Object([&](const std::string& key) {
    if (key == "name") {
      argument.name = json.String();
    } else if (key == "arg") {
      argument.argument = ReadArgument(json);
      given = true;
    } else if (key == "kind") {
      if (json.Next() == JsonReader::Kind::kNull) return json.Null();
      const int64_t kind = json.Integer();
      if (kind < 0 || kind > 2) json.Fail(absl::StrCat(kind, " is no way of passing an argument that is known"));
      argument.pass = static_cast<NamedArgument::Pass>(kind);
    } else {
      json.SkipUnknown(key);
    }
  });
  if (!given) json.Fail("has no \"arg\"");
  return argument;
}

Node ReadNode(JsonReader& json) {
  Node node;
  json.Object([&](const std::string& key) {
    if (key == "target") {
      node.target = json.String();
    } else if (key == "inputs") {
      json.Array([&] { Push(json, node.inputs, ReadNamedArgument(json)); });
    } else if (key == "outputs") {
      json.Array([&] { Push(json, node.outputs, ReadArgument(json)); });
    } else if (key == "metadata") {
      json.Object([&](const std::string& name) {
        json.budget()->Take(kMapNodeCost + 2 * sizeof(std::string) + name.size());
        node.metadata[name] = json.String();
      });
    } else if (key == "is_hop_single_tensor_return") {
      if (json.Next() == JsonReader::Kind::kNull) return json.Null();
      node.is_single_tensor_return = json.Bool();
    } else if (key == "name") {
      if (json.Next() == JsonReader::Kind::kNull) return json.Null();
      node.name = json.String();
    } else {
      json.SkipUnknown(key);
    }
  });
  if (node.target.empty()) json.Fail("has no \"target\"");
  if (absl::StrContains(node.target, "triton_kernel_wrapper")) {
    throw Unimplemented(
        absl::StrCat(json.Place(), ": the program calls a Triton kernel (", Quoted(node.target),
                     "), of which the file holds no code that can run here; export the model without it"));
  }
  return node;
}

void RefuseCustomObjects(JsonReader& json) {
  json.Object([&](const std::string& name) {
    throw CustomObject(json.Place(), absl::StrCat("the program holds the custom object ", Quoted(name)));
  });
}

// ------------------------------------------------------------------------------------------- what a graph's names are

using Names = absl::flat_hash_set<absl::string_view>;

void Define(const Argument& argument, Names& names) {
  if (argument.kind == Argument::Kind::kValue) names.insert(argument.name);
  for (const Argument& element : argument.elements) Define(element, names);
}

// The first value that an argument uses and nobody made; null if there is none.
const Argument* Unmade(const Argument& argument, const Names& names) {
  if (argument.kind == Argument::Kind::kValue && !names.contains(argument.name)) return &argument;
  for (const Argument& element : argument.elements) {
    if (const Argument* found = Unmade(element, names)) return found;
  }
  return nullptr;
}

void CheckNames(JsonReader& json, const Graph& graph) {
  Names names;
  for (const Argument& input : graph.inputs) Define(input, names);
  const auto check = [&](const Argument& argument, const std::string& where) {
    if (const Argument* unmade = Unmade(argument, names)) {
      json.Fail(absl::StrCat(where, " uses ", Quoted(unmade->name), ", which nothing before it makes"));
    }
  };
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    const Node& node = graph.nodes[k];
    for (const NamedArgument& input : node.inputs) {
      check(input.argument, absl::StrCat("node ", k, " (", Quoted(node.target), ")"));
    }
    for (const Argument& output : node.outputs) Define(output, names);
  }
  for (const Argument& output : graph.outputs) check(output, "the output");
}

}  // namespace

TensorMeta ReadTensorMeta(JsonReader& json, bool strided) {
  TensorMeta meta;
  bool dtype = false;
  c10::Layout layout = c10::Layout::Strided;
  json.Object([&](const std::string& key) {
    if (key == "dtype") {
      meta.dtype = ReadDtype(json);
      dtype = true;
    } else if (key == "sizes") {
      meta.sizes = ReadSymbolicInts(json);
    } else if (key == "strides") {
      meta.strides = ReadSymbolicInts(json);
    } else if (key == "storage_offset") {
      meta.storage_offset = ReadSymbolicInt(json);
    } else if (key == "requires_grad") {
      meta.requires_grad = json.Bool();
    } else if (key == "device") {
      meta.device = ReadDevice(json);
    } else if (key == "layout") {
      layout = ReadLayout(json);
    } else {
      json.SkipUnknown(key);
    }
  });
  if (!dtype) json.Fail("has no \"dtype\"");
  if (strided && layout != c10::Layout::Strided) {
    throw Unimplemented(
        absl::StrCat(json.Place(), ": sparse tensors are not read from files; export the model with dense ones"));
  }
  return meta;
}

Graph ReadGraph(JsonReader& json) {
  Graph graph;
  json.Object([&](const std::string& key) {
    if (key == "inputs") {
      json.Array([&] { Push(json, graph.inputs, ReadArgument(json)); });
    } else if (key == "outputs") {
      json.Array([&] { Push(json, graph.outputs, ReadArgument(json)); });
    } else if (key == "nodes") {
      json.Array([&] { Push(json, graph.nodes, ReadNode(json)); });
    } else if (key == "tensor_values") {
      json.Object([&](const std::string& name) {
        json.budget()->Take(kMapNodeCost + sizeof(std::string) + sizeof(TensorMeta) + name.size());
        graph.tensors[name] = ReadTensorMeta(json, /*strided=*/false);
      });
    } else if (key == "sym_int_values") {
      json.Object([&](const std::string& name) {
        json.budget()->Take(kMapNodeCost + sizeof(std::string) + sizeof(SymbolicInt) + name.size());
        graph.symbolic_ints[name] = ReadSymbolicInt(json);
      });
    } else if (key == "sym_bool_values" || key == "sym_float_values") {
      json.Skip();
    } else if (key == "is_single_tensor_return") {
      graph.is_single_tensor_return = json.Bool();
    } else if (key == "custom_obj_values") {
      RefuseCustomObjects(json);
    } else {
      json.SkipUnknown(key);
    }
  });
  CheckNames(json, graph);
  return graph;
}

}  // namespace addend::exported
