// From a program to its files.
#include <ATen/ops/view_as_real.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/program/operator_traits.h"
#include "core/program/program_file.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinities.
Json Number(double number) {
  if (std::isfinite(number)) return number;
  if (std::isnan(number)) return "nan";
  return number > 0 ? "inf" : "-inf";
}

// Integers and floating-point numbers stay apart: one is written without, the other with a decimal point.
Json Plain(const c10::IValue& value) {
  if (value.isNone()) return nullptr;
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool();
  if (value.isString()) return value.toStringRef();
  if (value.isDouble()) {
    const Json number = Number(value.toDouble());
    return number.is_string() ? Json{{"float", number}} : number;
  }
  if (value.isComplexDouble()) {
    const c10::complex<double> z = value.toComplexDouble();
    return Json{{"complex", {Number(z.real()), Number(z.imag())}}};
  }
  if (value.isDevice()) return Json{{"device", value.toDevice().str()}};
  if (value.isIntList()) return Json{{"ints", value.toIntVector()}};
  if (value.isBoolList()) {
    Json list = Json::array();
    for (const bool element : value.toBoolList()) list.push_back(element);
    return Json{{"bools", std::move(list)}};
  }
  if (value.isDoubleList()) {
    Json list = Json::array();
    for (const double element : value.toDoubleVector()) list.push_back(Number(element));
    return Json{{"floats", std::move(list)}};
  }
  if (value.isTuple() || value.isList()) {
    Json list = Json::array();
    if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) list.push_back(Plain(element));
      return Json{{"tuple", std::move(list)}};
    }
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isString()) throw Unimplemented("a list of other things than numbers and strings cannot be saved");
      list.push_back(element.toStringRef());
    }
    return Json{{"strings", std::move(list)}};
  }
  throw Unimplemented(absl::StrCat("a ", value.tagKind(), " cannot be saved"));
}

Json Encode(const Structure& structure) {
  Json elements = Json::array();
  for (const Structure& element : structure.elements) elements.push_back(Encode(element));
  switch (structure.kind) {
    case Structure::Kind::kTensor:
      return Json{{"tensor", structure.tensor}};
    case Structure::Kind::kPlain:
      return Json{{"plain", Plain(structure.plain)}};
    case Structure::Kind::kTuple:
      return structure.names.empty() ? Json{{"tuple", elements}}
                                     : Json{{"tuple", elements}, {"names", structure.names}, {"type", structure.type}};
    case Structure::Kind::kList:
      return Json{{"list", elements}, {"type", structure.type}};
    case Structure::Kind::kDict: {
      Json keys = Json::array();
      for (const c10::IValue& key : structure.keys) keys.push_back(Plain(key));
      return Json{{"dict", elements}, {"keys", keys}, {"type", structure.type}};
    }
  }
  return nullptr;
}

Json Encode(const TensorUse& use) {
  if (use.value < 0) return Json{{"value", -1}};
  Json json{{"value", use.value}, {"version", use.version}};
  if (use.written) json["written"] = true;
  return json;
}

Json Encode(const RecordedCall& call) {
  const OperatorTraits traits(call.op.schema());
  Json arguments = Json::object();
  size_t next = 0;
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    Json uses = Json::array();
    for (; next < call.uses.size() && call.uses[next].argument == static_cast<int16_t>(a); ++next) {
      uses.push_back(Encode(call.uses[next]));
    }
    Json& argument = arguments[call.op.schema().arguments()[a].name()];
    if (traits.arguments[a] == ArgumentKind::kTensorList && (!uses.empty() || !call.arguments[a].isNone())) {
      argument = Json{{"tensors", std::move(uses)}};
      if (!call.arguments[a].isNone()) argument["present"] = call.arguments[a].toIntVector();
    } else if (!uses.empty()) {
      argument = Json{{"tensor", std::move(uses[0])}};
    } else {
      argument = Plain(call.arguments[a]);
    }
  }
  Json json{{"operator", call.op.schema().name()},
            {"overload", call.op.schema().overload_name()},
            {"arguments", std::move(arguments)},
            {"results", std::vector<int>(call.results.begin(), call.results.end())}};
  if (!call.result_sizes.empty()) {
    json["result_sizes"] = std::vector<int>(call.result_sizes.begin(), call.result_sizes.end());
  }
  if (!call.written.empty()) json["written"] = std::vector<int>(call.written.begin(), call.written.end());
  if (call.place >= 0) json["place"] = call.place;
  if (call.guard >= 0) json["guard"] = call.guard;
  if (call.is_view) json["view"] = true;
  if (call.random) json["random"] = true;
  if (call.grad_mode) json["grad"] = true;
  return json;
}

Json Encode(const RecordedValue& value) {
  Json json{{"name", value.name},
            {"kind", ValueKindName(value.kind)},
            {"storage", value.storage},
            {"version", value.version},
            {"dtype", DtypeName(value.dtype)},
            {"sizes", std::vector<int64_t>(value.geometry.sizes.begin(), value.geometry.sizes.end())},
            {"strides", std::vector<int64_t>(value.geometry.strides.begin(), value.geometry.strides.end())},
            {"offset", value.geometry.offset},
            {"device", value.device.str()}};
  if (value.conjugated) json["conjugated"] = true;
  if (value.negated) json["negated"] = true;
  if (value.wrapped_number) json["wrapped_number"] = true;
  if (value.requires_grad) json["requires_grad"] = true;
  if (value.call >= 0) {
    json["call"] = value.call;
    json["result"] = value.result;
  }
  return json;
}

Json Encode(const CodePlace& place) {
  Json frames = Json::array();
  for (const SourceFrame& frame : place.frames) {
    frames.push_back({{"file", frame.file},
                      {"line", frame.line},
                      {"column", frame.column},
                      {"length", frame.length},
                      {"function", frame.function},
                      {"text", frame.text}});
  }
  return Json{{"module", place.module_path}, {"frames", std::move(frames)}};
}

Json Encode(const RecordedInput& input) { return Json{{"name", input.name}, {"structure", Encode(input.structure)}}; }

Json Encode(const RecordedGuard& guard) {
  return Json{{"kind", GuardKindName(guard.kind)}, {"call", guard.call}, {"value", Plain(guard.value)}};
}

Json Encode(const RecordedReturn& returned) {
  return Json{{"module", returned.module_path}, {"end", returned.end}, {"values", returned.values}};
}

Json Encode(const FreeDimension& dimension) {
  Json json{{"input", dimension.input}, {"dim", dimension.dim}, {"like", dimension.like}};
  if (dimension.Limited()) {
    json["least"] = dimension.least;
    json["most"] = dimension.most;
    if (dimension.step > 1) json["step"] = dimension.step;
  }
  return json;
}

Json Encode(const SizeRelation& relation) {
  Json json{{"element", relation.element},
            {"input", relation.input},
            {"dim", relation.dim},
            {"factor", relation.factor},
            {"offset", relation.offset}};
  if (relation.other_input >= 0) {
    json["other_input"] = relation.other_input;
    json["other_dim"] = relation.other_dim;
  }
  if (relation.divisor != 1) {
    json["divisor"] = relation.divisor;
    json["shift"] = relation.shift;
  }
  if (relation.call < 0) {
    json["storage"] = relation.storage;
  } else {
    json["call"] = relation.call;
    json["argument"] = relation.argument;
  }
  return json;
}

template <typename Element>
Json EncodeAll(const std::vector<Element>& elements) {
  Json array = Json::array();
  for (const Element& element : elements) array.push_back(Encode(element));
  return array;
}

// Encodes the storages. Their contents go to `weights`, under the name of the first value in each.
Json EncodeStorages(const RecordedProgram& program, TensorFile* weights) {
  Json storages = Json::array();
  for (const RecordedStorage& storage : program.storages) {
    Json entry{{"kind", ValueKindName(storage.kind)}, {"nbytes", storage.nbytes}, {"value", storage.value}};
    if (!storage.writers.empty()) entry["writers"] = storage.writers;
    if (storage.filled >= 0) entry["filled"] = storage.filled;
    if (storage.initial.defined()) {
      const std::string& name = program.values.at(storage.value).name;
      const at::Tensor initial = storage.initial.detach();
      entry["weights"] = name;
      entry["dtype"] = DtypeName(initial.scalar_type());
      const at::Tensor numbers = initial.is_complex() ? at::view_as_real(initial) : initial;
      weights->tensors.emplace_back(name, numbers.flatten().cpu());
    }
    storages.push_back(std::move(entry));
  }
  return storages;
}

// Errors tell the call.
Json EncodeCalls(const RecordedProgram& program) {
  Json calls = Json::array();
  for (size_t c = 0; c < program.calls.size(); ++c) {
    try {
      calls.push_back(Encode(program.calls[c]));
    } catch (const Error& e) {
      throw Error(e.code(), e.what(), PositionOf(program, static_cast<int>(c)));
    }
  }
  return calls;
}

}  // namespace

EncodedProgram EncodeProgram(const RecordedProgram& program) {
  TensorFile weights;
  Json json{{"format", "addend program"}, {"version", kProgramFileVersion}};
  if (!program.libtorch.empty()) json["libtorch"] = program.libtorch;
  json["inputs"] = EncodeAll(program.inputs);
  json["output"] = Encode(program.output);
  json["output_versions"] = program.output_versions;
  json["module_paths"] = program.module_paths;
  if (!program.returns.empty()) json["returns"] = EncodeAll(program.returns);
  json["values"] = EncodeAll(program.values);
  json["storages"] = EncodeStorages(program, &weights);
  json["calls"] = EncodeCalls(program);
  json["guards"] = EncodeAll(program.guards);
  json["places"] = EncodeAll(program.places);
  json["free"] = EncodeAll(program.free);
  json["sizes"] = EncodeAll(program.sizes);
  EncodedProgram encoded;
  try {
    encoded.graph = json.dump(1);
  } catch (const Json::exception&) {
    throw InvalidArgument("names, strings and source lines of a program must be UTF-8 to be saved");
  }
  encoded.weights = WithChecksums(EncodeSafetensors(weights), encoded.graph);
  return encoded;
}

}  // namespace addend
