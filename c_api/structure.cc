#include "c_api/structure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/json.h"
#include "core/program/structure.h"

namespace addend::c_api {
namespace {

// Deeper than any model takes, and far from the end of a stack.
constexpr int kDeepest = 64;

[[noreturn]] void Fail(const std::string& where, const std::string& what) {
  throw InvalidArgument(absl::StrCat("structure: ", where, " ", what));
}

// Parsing goes as deep as the text does, so that depth is looked at before it.
void RequireShallow(const std::string& json) {
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < json.size(); ++k) {
    const char c = json[k];
    if (quoted) {
      if (c == '\\') ++k;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      // Every structure in another is an object in a list or in an object.
      if (++depth > 2 * kDeepest) throw InvalidArgument("structure: it is nested too deeply");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

Structure PlainOf(c10::IValue value) {
  Structure structure;
  structure.plain = std::move(value);
  return structure;
}

// A number that JSON cannot write.
double SpecialNumber(const Json& given, const std::string& where) {
  const std::string name = given.is_string() ? given.get<std::string>() : "";
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  Fail(where, "is a \"float\"; give \"nan\", \"inf\" or \"-inf\", and other numbers as they are");
}

Structure StructureOf(const Json& given, const std::string& where);

std::vector<Structure> ElementsOf(const Json& given, const std::string& where) {
  if (!given.is_array()) Fail(where, "holds its elements in a JSON list");
  std::vector<Structure> elements;
  for (size_t k = 0; k < given.size(); ++k) {
    elements.push_back(StructureOf(given[k], absl::StrCat(where, "[", k, "]")));
  }
  return elements;
}

std::string TypeOf(const Json& given, const std::string& where) {
  if (!given.contains("type")) return "";
  const std::string type = given["type"].is_string() ? given["type"].get<std::string>() : "";
  for (const char* known : {"Tensor", "int", "float", "bool", "str"}) {
    if (type == known) return type;
  }
  Fail(where, "has another \"type\" than Tensor, int, float, bool or str");
}

Structure StructureOf(const Json& given, const std::string& where) {
  if (given.is_null()) return PlainOf(c10::IValue());
  if (given.is_boolean()) return PlainOf(given.get<bool>());
  if (given.is_string()) return PlainOf(given.get<std::string>());
  if (given.is_number_float()) return PlainOf(given.get<double>());
  if (given.is_number()) {
    if (given.is_number_unsigned() && given.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      Fail(where, "is a number that is too large");
    }
    return PlainOf(given.get<int64_t>());
  }
  constexpr char kForms[] =
      "is none of a plain value, {\"tensor\"}, {\"tuple\"}, {\"list\", \"type\"}, {\"dict\", \"type\"} and {\"float\"}";
  if (!given.is_object() || given.empty()) Fail(where, kForms);
  std::string form;  // the key that is not the type, in whatever order they come
  for (const auto& entry : given.items()) {
    if (form.empty() || form == "type") form = entry.key();
  }
  const bool typed = (form == "list" || form == "dict") && given.contains("type");
  if (given.size() != (typed ? 2u : 1u)) Fail(where, kForms);
  const Json& inner = given[form];
  Structure structure;
  if (form == "tensor") {
    if (!inner.is_number_integer() || inner.get<double>() < 0 || inner.get<double>() > 1e9) {
      Fail(where, "calls a tensor by something else than the number of an input");
    }
    structure.kind = Structure::Kind::kTensor;
    structure.tensor = inner.get<int>();
  } else if (form == "float") {
    structure.plain = SpecialNumber(inner, where);
  } else if (form == "tuple") {
    structure.kind = Structure::Kind::kTuple;
    structure.elements = ElementsOf(inner, where);
  } else if (form == "list") {
    structure.kind = Structure::Kind::kList;
    structure.elements = ElementsOf(inner, where);
    structure.type = TypeOf(given, where);
  } else if (form == "dict") {
    if (!inner.is_object()) Fail(where, "is a dictionary, which holds its elements in a JSON object");
    structure.kind = Structure::Kind::kDict;
    for (const auto& entry : inner.items()) {
      structure.keys.emplace_back(entry.key());
      structure.elements.push_back(StructureOf(entry.value(), absl::StrCat(where, ".", entry.key())));
    }
    structure.type = TypeOf(given, where);
  } else {
    Fail(where, kForms);
  }
  return structure;
}

void RequireEachInput(const RequestStructure& structure, size_t inputs) {
  std::vector<bool> used(inputs);
  for (const RequestArgument& argument : structure.arguments) {
    ForEachNumber(argument.structure, [&](int number) {
      if (static_cast<size_t>(number) >= inputs) {
        throw InvalidArgument(
            absl::StrCat("structure: there is no input ", number, "; the request has ", inputs, ", counted from 0"));
      }
      used[number] = true;
    });
  }
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused != used.end()) {
    throw InvalidArgument(absl::StrCat("structure: it leaves out input ", unused - used.begin()));
  }
}

// The arguments by their places among a model's, which are called `names`; null where there is none.
std::vector<const Structure*> PlacesOf(const RequestStructure& structure, const std::vector<std::string>& names) {
  // Without names of its own the model takes the order of the caller's.
  const bool placed = structure.named && !names.empty();
  std::vector<const Structure*> places(placed ? names.size() : structure.arguments.size());
  for (size_t k = 0; k < structure.arguments.size(); ++k) {
    const RequestArgument& argument = structure.arguments[k];
    size_t place = k;
    if (placed) {
      place = std::find(names.begin(), names.end(), argument.name) - names.begin();
      if (place == names.size()) {
        throw InvalidArgument(absl::StrCat("structure: the model has no argument ", argument.name, "; it has ",
                                           absl::StrJoin(names, ", ")));
      }
    }
    places[place] = &argument.structure;
  }
  return places;
}

// Fills in, by input of `planned`, which one of `given` is in its place.
void FindPlaces(const Structure& planned, const Structure& given, const std::string& where, std::vector<int>& places) {
  const bool same = planned.kind == given.kind && planned.elements.size() == given.elements.size() &&
                    (planned.kind != Structure::Kind::kPlain || SamePlain(planned.plain, given.plain));
  if (!same) {
    Fail(where, absl::StrCat("is ", DescribeStructure(given), "; the plan was made with ", DescribeStructure(planned)));
  }
  if (planned.kind == Structure::Kind::kTensor) {
    if (places.size() <= static_cast<size_t>(planned.tensor)) places.resize(planned.tensor + 1, -1);
    int& place = places[planned.tensor];
    if (place >= 0 && place != given.tensor) {
      Fail(where, "is another input than elsewhere; the plan was made with one input in both places");
    }
    place = given.tensor;
  }
  for (size_t k = 0; k < planned.elements.size(); ++k) {
    const bool keyed = planned.kind == Structure::Kind::kDict;
    // A model may go through a dictionary in the order of its keys.
    if (keyed && !SamePlain(planned.keys[k], given.keys[k])) {
      Fail(where, absl::StrCat("is ", DescribeStructure(given), "; the plan was made with ", DescribeStructure(planned),
                               ", with the keys in this order"));
    }
    FindPlaces(planned.elements[k], given.elements[k],
               keyed ? absl::StrCat(where, ".", planned.keys[k].toStringRef()) : absl::StrCat(where, "[", k, "]"),
               places);
  }
}

void Renumber(Structure& structure, const std::vector<int>& numbers) {
  if (structure.kind == Structure::Kind::kTensor && structure.tensor >= 0) structure.tensor = numbers[structure.tensor];
  for (Structure& element : structure.elements) Renumber(element, numbers);
}

class ModelOfTensors : public Model {
 public:
  ModelOfTensors(std::shared_ptr<Model> model, std::shared_ptr<const RequestStructure> structure,
                 std::vector<std::string> names)
      : model_(std::move(model)), structure_(std::move(structure)), names_(std::move(names)) {}

  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& input : inputs) tensors.push_back(input.toTensor());
    return model_->Run(PutTogether(*structure_, names_, tensors));
  }
  std::shared_ptr<Model> ForOneTrace() const override {
    std::shared_ptr<Model> own = model_->ForOneTrace();
    return own == nullptr ? nullptr : std::make_shared<ModelOfTensors>(std::move(own), structure_, names_);
  }
  void RequireUnchanged() const override { model_->RequireUnchanged(); }
  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override { return model_->NamedTensors(); }
  std::vector<std::string> BufferNames() const override { return model_->BufferNames(); }
  std::vector<std::string> ModulePaths() const override { return model_->ModulePaths(); }
  std::vector<std::string> Notes() const override { return model_->Notes(); }

 private:
  std::shared_ptr<Model> model_;
  std::shared_ptr<const RequestStructure> structure_;
  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<const RequestStructure> ParseStructure(const std::string& json) {
  RequireShallow(json);
  const Json given = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!given.is_array() && !given.is_object()) {
    throw InvalidArgument("structure is neither a JSON list nor a JSON object of arguments");
  }
  auto structure = std::make_shared<RequestStructure>();
  structure->named = given.is_object();
  for (const auto& entry : given.items()) {
    RequestArgument argument;
    if (structure->named) argument.name = entry.key();
    argument.structure = StructureOf(entry.value(), absl::StrCat("argument ", entry.key()));
    structure->arguments.push_back(std::move(argument));
  }
  return structure;
}

std::shared_ptr<const RequestStructure> StructureOfExample(const RequestBody& request, size_t example) {
  return example < request.structures.size() ? request.structures[example] : nullptr;
}

std::vector<c10::IValue> PutTogether(const RequestStructure& structure, const std::vector<std::string>& names,
                                     const std::vector<at::Tensor>& inputs) {
  RequireEachInput(structure, inputs.size());
  const std::vector<const Structure*> places = PlacesOf(structure, names);
  std::vector<c10::IValue> arguments;
  for (size_t k = 0; k < places.size(); ++k) {
    if (places[k] == nullptr) continue;
    if (arguments.size() < k) {
      throw InvalidArgument(absl::StrCat("structure: it lacks the argument ", names[arguments.size()],
                                         ", which comes before ", names[k]));
    }
    arguments.push_back(addend::PutTogether(*places[k], [&](int number) { return inputs[number]; }));
  }
  return arguments;
}

OrderedStructure InOrderOfArguments(const RequestStructure& structure, const std::vector<std::string>& names,
                                    size_t inputs) {
  RequireEachInput(structure, inputs);
  OrderedStructure ordered;
  std::vector<int> numbers(inputs, -1);
  for (const Structure* place : PlacesOf(structure, names)) {
    if (place == nullptr) continue;
    ForEachNumber(*place, [&](int number) {
      if (numbers[number] >= 0) return;
      numbers[number] = static_cast<int>(ordered.inputs.size());
      ordered.inputs.push_back(number);
    });
  }
  auto own = std::make_shared<RequestStructure>(structure);
  for (RequestArgument& argument : own->arguments) Renumber(argument.structure, numbers);
  ordered.structure = std::move(own);
  return ordered;
}

RequestStructure TensorsAlone(size_t inputs) {
  RequestStructure structure;
  for (size_t k = 0; k < inputs; ++k) {
    RequestArgument argument;
    argument.structure.kind = Structure::Kind::kTensor;
    argument.structure.tensor = static_cast<int>(k);
    structure.arguments.push_back(std::move(argument));
  }
  return structure;
}

std::vector<int> InPlacesOf(const RequestStructure& planned, const RequestStructure& given, size_t inputs,
                            std::vector<std::string> names) {
  RequireEachInput(given, inputs);
  if (names.empty() && planned.named) {
    for (const RequestArgument& argument : planned.arguments) names.push_back(argument.name);
  }
  const auto name_of = [&](size_t place) {
    return absl::StrCat("argument ", place < names.size() ? names[place] : absl::StrCat(place));
  };
  std::vector<const Structure*> expected = PlacesOf(planned, names);
  std::vector<const Structure*> found = PlacesOf(given, names);
  expected.resize(std::max(expected.size(), found.size()));
  found.resize(expected.size());
  std::vector<int> places;
  for (size_t k = 0; k < expected.size(); ++k) {
    if (expected[k] == nullptr && found[k] == nullptr) continue;
    if (found[k] == nullptr) Fail(name_of(k), "is missing, which the plan was made with");
    if (expected[k] == nullptr) Fail(name_of(k), "is none that the plan was made with");
    FindPlaces(*expected[k], *found[k], name_of(k), places);
  }
  return places;
}

std::shared_ptr<Model> OfTensors(std::shared_ptr<Model> model, std::shared_ptr<const RequestStructure> structure,
                                 const std::vector<std::string>& names) {
  return std::make_shared<ModelOfTensors>(std::move(model), std::move(structure), names);
}

}  // namespace addend::c_api
