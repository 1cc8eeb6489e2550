// From files to a program. Nothing in them is believed: whatever a replay relies on is checked here.
#include <ATen/ops/view_as_complex.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/program/operator_traits.h"
#include "core/program/program_file.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 64;  // of structures in structures
constexpr size_t kLongestVersion = 64;

class Decoder {
 public:
  Decoder(const EncodedProgram& encoded, const std::string& name)
      : name_(name), weights_(DecodeTensorFile(encoded.weights, absl::StrCat(name, " (weights)"))) {
    json_ = Json::parse(encoded.graph, nullptr, /*allow_exceptions=*/false);
    if (json_.is_discarded() || !json_.is_object()) Fail("", "is no JSON object (or is truncated)");
  }

  RecordedProgram Decode() {
    if (String(json_, "format", "the file") != "addend program") Fail("format", "is not \"addend program\"");
    const int64_t version = Integer(json_, "version", "the file", 0, std::numeric_limits<int32_t>::max());
    if (version != kProgramFileVersion) {
      Fail("version", absl::StrCat(version, " is not known; this library reads version ", kProgramFileVersion));
    }
    LibTorch();
    try {
      return Parts();
    } catch (const Error& e) {
      // Name the other version of LibTorch, which may be the cause: operators come, and take other arguments.
      const std::string other = OtherLibTorch(program_);
      if (other.empty()) throw;
      throw Error(e.code(), absl::StrCat(e.what(), "; ", other, ", so record the model with this one"));
    }
  }

 private:
  // Files that were written before the key was there are read too.
  void LibTorch() {
    if (!json_.contains("libtorch")) return;
    program_.libtorch = String(json_, "libtorch", "the file");
    const bool plain = std::all_of(program_.libtorch.begin(), program_.libtorch.end(),
                                   [](char c) { return absl::ascii_isalnum(c) || absl::StrContains(".+-_", c); });
    if (program_.libtorch.empty() || program_.libtorch.size() > kLongestVersion || !plain) {
      Fail("libtorch", "is no version");
    }
  }

  RecordedProgram Parts() {
    Only(json_, "the file",
         {"format", "version", "libtorch", "inputs", "output", "output_versions", "module_paths", "returns", "values",
          "storages", "calls", "guards", "places", "free", "sizes"});
    num_values_ = Size("values");
    num_storages_ = Size("storages");
    num_calls_ = Size("calls");
    for (const Json& path : Array(json_, "module_paths", "the file")) {
      program_.module_paths.push_back(Text(path, "module_paths"));
    }
    Places();
    Storages();
    Values();
    Weights();
    Calls();
    Guards();
    Inputs();
    Sizes();
    Returns();
    Order();
    return std::move(program_);
  }

  [[noreturn]] void Fail(const std::string& where, const std::string& what) const {
    throw InvalidArgument(absl::StrCat(name_, ": ", where, where.empty() ? "" : " ", what));
  }

  // ------------------------------------------------------------------------------------------ pieces of JSON

  const Json& Member(const Json& object, const char* key, const std::string& where) const {
    if (!object.is_object()) Fail(where, "is no object");
    const auto found = object.find(key);
    if (found == object.end()) Fail(where, absl::StrCat("has no \"", key, "\""));
    return *found;
  }
  // Refuses what it does not know: a later version may have meant something by it.
  void Only(const Json& object, const std::string& where, std::initializer_list<const char*> keys) const {
    for (const auto& item : object.items()) {
      const bool known = std::any_of(keys.begin(), keys.end(), [&](const char* key) { return item.key() == key; });
      if (!known) Fail(where, absl::StrCat("has an unknown \"", absl::Utf8SafeCEscape(item.key()), "\""));
    }
  }
  std::string Text(const Json& json, const std::string& where) const {
    if (!json.is_string()) Fail(where, "is no string");
    return json.get<std::string>();
  }
  std::string String(const Json& object, const char* key, const std::string& where) const {
    return Text(Member(object, key, where), absl::StrCat(where, ".", key));
  }
  int64_t Whole(const Json& json, const std::string& where, int64_t low, int64_t high) const {
    if (!json.is_number_integer()) Fail(where, "is no integer");
    const bool huge =
        json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const int64_t number = huge ? 0 : json.get<int64_t>();
    if (huge || number < low || number > high) Fail(where, absl::StrCat("is not between ", low, " and ", high));
    return number;
  }
  int64_t Integer(const Json& object, const char* key, const std::string& where, int64_t low, int64_t high) const {
    return Whole(Member(object, key, where), absl::StrCat(where, ".", key), low, high);
  }
  int Optional(const Json& object, const char* key, const std::string& where, int64_t high) const {
    return object.contains(key) ? static_cast<int>(Integer(object, key, where, 0, high)) : -1;
  }
  bool Flag(const Json& object, const char* key, const std::string& where) const {
    if (!object.contains(key)) return false;
    if (!object[key].is_boolean()) Fail(absl::StrCat(where, ".", key), "is neither true nor false");
    return object[key].get<bool>();
  }
  const Json& Array(const Json& object, const char* key, const std::string& where) const {
    const Json& array = Member(object, key, where);
    if (!array.is_array()) Fail(absl::StrCat(where, ".", key), "is no list");
    return array;
  }
  int64_t Size(const char* key) const { return static_cast<int64_t>(Array(json_, key, "the file").size()); }
  int64_t LastCall() const { return num_calls_ - 1; }

  double Number(const Json& json, const std::string& where) const {
    if (json.is_number()) return json.get<double>();
    if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (json == "inf") return std::numeric_limits<double>::infinity();
    if (json == "-inf") return -std::numeric_limits<double>::infinity();
    Fail(where, "is no number");
  }

  c10::IValue Plain(const Json& json, const std::string& where, int depth = 0) const {
    if (depth > kDeepest) Fail(where, "is nested too deeply");
    if (json.is_null()) return {};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) {
      return Whole(json, where, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    }
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    if (!json.is_object() || json.size() != 1) Fail(where, "is no value");
    const std::string kind = json.begin().key();
    const Json& content = json.begin().value();
    if (kind == "float") return Number(content, where);
    if (kind == "device") return Device(content, where);
    if (!content.is_array()) Fail(where, absl::StrCat("has an unknown \"", absl::Utf8SafeCEscape(kind), "\""));
    if (kind == "complex") {
      if (content.size() != 2) Fail(where, "is no complex number");
      return c10::complex<double>(Number(content[0], where), Number(content[1], where));
    }
    if (kind == "ints") return Integers(content, where, std::numeric_limits<int64_t>::min());
    if (kind == "bools") {
      c10::List<bool> list;
      for (const Json& element : content) {
        if (!element.is_boolean()) Fail(where, "is no list of bools");
        list.push_back(element.get<bool>());
      }
      return list;
    }
    if (kind == "floats") {
      c10::List<double> list;
      for (const Json& element : content) list.push_back(Number(element, where));
      return list;
    }
    if (kind == "strings") {
      c10::List<std::string> list;
      for (const Json& element : content) list.push_back(Text(element, where));
      return list;
    }
    if (kind == "tuple") {
      std::vector<c10::IValue> elements;
      for (const Json& element : content) elements.push_back(Plain(element, where, depth + 1));
      return c10::ivalue::Tuple::create(std::move(elements));
    }
    Fail(where, absl::StrCat("has an unknown \"", absl::Utf8SafeCEscape(kind), "\""));
  }

  std::vector<int64_t> Integers(const Json& array, const std::string& where, int64_t low) const {
    if (!array.is_array()) Fail(where, "is no list");
    std::vector<int64_t> integers;
    for (const Json& element : array) {
      integers.push_back(Whole(element, where, low, std::numeric_limits<int64_t>::max()));
    }
    return integers;
  }

  c10::Device Device(const Json& json, const std::string& where) const {
    const std::string text = Text(json, where);
    try {
      return c10::Device(text);
    } catch (const c10::Error&) {
      Fail(where, absl::StrCat("is no device: ", absl::Utf8SafeCEscape(text)));
    }
  }

  at::ScalarType Dtype(const Json& object, const std::string& where) const {
    const std::string name = String(object, "dtype", where);
    for (int t = 0; t < static_cast<int>(at::ScalarType::NumOptions); ++t) {
      const auto dtype = static_cast<at::ScalarType>(t);
      if (dtype != at::ScalarType::Undefined && !c10::isQIntType(dtype) && DtypeName(dtype) == name) return dtype;
    }
    Fail(where, absl::StrCat("has an unknown dtype ", absl::Utf8SafeCEscape(name)));
  }

  ValueKind Kind(const Json& object, const std::string& where) const {
    const std::string name = String(object, "kind", where);
    for (const ValueKind kind : {ValueKind::kInput, ValueKind::kParameter, ValueKind::kBuffer, ValueKind::kConstant,
                                 ValueKind::kResult, ValueKind::kPart}) {
      if (ValueKindName(kind) == name) return kind;
    }
    Fail(where, absl::StrCat("has an unknown kind ", absl::Utf8SafeCEscape(name)));
  }

  Structure Decode(const Json& json, const std::string& where, int depth = 0) const {
    if (depth > kDeepest) Fail(where, "is nested too deeply");
    if (!json.is_object()) Fail(where, "is no object");
    Structure structure;
    if (json.contains("tensor")) {
      Only(json, where, {"tensor"});
      structure.kind = Structure::Kind::kTensor;
      structure.tensor = static_cast<int>(Integer(json, "tensor", where, -1, num_values_ - 1));
      return structure;
    }
    if (json.contains("plain")) {
      Only(json, where, {"plain"});
      structure.plain = Plain(json["plain"], where);
      return structure;
    }
    const char* key = json.contains("tuple") ? "tuple" : json.contains("list") ? "list" : "dict";
    Only(json, where, {key, "names", "keys", "type"});
    structure.kind = json.contains("tuple")  ? Structure::Kind::kTuple
                     : json.contains("list") ? Structure::Kind::kList
                                             : Structure::Kind::kDict;
    for (const Json& element : Array(json, key, where)) {
      structure.elements.push_back(Decode(element, where, depth + 1));
    }
    if (json.contains("type")) structure.type = String(json, "type", where);
    if (json.contains("names")) {
      for (const Json& field : Array(json, "names", where)) structure.names.push_back(Text(field, where));
      const absl::flat_hash_set<std::string> distinct(structure.names.begin(), structure.names.end());
      const bool fits =
          structure.names.size() == structure.elements.size() && distinct.size() == structure.names.size();
      if (!fits || structure.type.empty()) Fail(where, "has names that do not fit its elements");
    }
    if (structure.kind == Structure::Kind::kDict) {
      for (const Json& entry : Array(json, "keys", where)) structure.keys.push_back(Plain(entry, where));
      for (const c10::IValue& entry : structure.keys) {
        const bool key_type = entry.isString() || entry.isInt() || entry.isDouble() || entry.isBool();
        if (!key_type || entry.tagKind() != structure.keys[0].tagKind()) Fail(where, "has keys of different types");
      }
      if (structure.keys.size() != structure.elements.size()) Fail(where, "has not as many keys as elements");
    }
    return structure;
  }

  // ------------------------------------------------------------------------------------------------ sections

  void Places() {
    for (const Json& json : Array(json_, "places", "the file")) {
      const std::string where = absl::StrCat("places[", program_.places.size(), "]");
      CodePlace place;
      place.module_path = String(json, "module", where);
      for (const Json& entry : Array(json, "frames", where)) {
        constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
        SourceFrame frame;
        frame.file = String(entry, "file", where);
        frame.line = Integer(entry, "line", where, -1, kMost);
        frame.column = Integer(entry, "column", where, -1, kMost);
        frame.length = Integer(entry, "length", where, 0, kMost);
        frame.function = String(entry, "function", where);
        frame.text = String(entry, "text", where);
        place.frames.push_back(std::move(frame));
      }
      program_.places.push_back(std::move(place));
    }
  }

  void Storages() {
    for (const Json& json : Array(json_, "storages", "the file")) {
      const std::string where = absl::StrCat("storages[", program_.storages.size(), "]");
      RecordedStorage storage;
      storage.kind = Kind(json, where);
      Only(json, where, {"kind", "nbytes", "value", "writers", "filled", "weights", "dtype"});
      storage.nbytes = Integer(json, "nbytes", where, 0, std::numeric_limits<int64_t>::max());
      storage.value = static_cast<int>(Integer(json, "value", where, 0, num_values_ - 1));
      storage.filled = Optional(json, "filled", where, num_calls_);
      if (json.contains("writers")) {
        for (const int64_t writer : Integers(json["writers"], where, 0)) {
          const bool ascends = storage.writers.empty() || storage.writers.back() < writer;
          if (writer > LastCall() || !ascends) Fail(where, "has writers that are no calls in their order");
          storage.writers.push_back(static_cast<int>(writer));
        }
      }
      program_.storages.push_back(std::move(storage));
    }
  }

  void Values() {
    absl::flat_hash_set<std::string> names;
    for (const Json& json : Array(json_, "values", "the file")) {
      const std::string where = absl::StrCat("values[", program_.values.size(), "]");
      RecordedValue value;
      value.name = String(json, "name", where);
      if (value.name.empty() || !names.insert(value.name).second) Fail(where, "has an empty name or another's");
      value.kind = Kind(json, where);
      Only(json, where,
           {"name", "kind", "storage", "version", "dtype", "sizes", "strides", "offset", "device", "conjugated",
            "negated", "wrapped_number", "requires_grad", "call", "result"});
      value.storage = static_cast<int>(Integer(json, "storage", where, 0, num_storages_ - 1));
      const auto versions = static_cast<int64_t>(program_.storages[value.storage].writers.size());
      value.version = static_cast<int>(Integer(json, "version", where, 0, versions));
      value.dtype = Dtype(json, where);
      const std::vector<int64_t> sizes = Integers(Member(json, "sizes", where), where, 0);
      const std::vector<int64_t> strides = Integers(Member(json, "strides", where), where, 0);
      if (sizes.size() != strides.size() || sizes.size() > 64) Fail(where, "has sizes and strides that do not fit");
      value.geometry.sizes = c10::DimVector(sizes.begin(), sizes.end());
      value.geometry.strides = c10::DimVector(strides.begin(), strides.end());
      value.geometry.offset = Integer(json, "offset", where, 0, std::numeric_limits<int64_t>::max());
      CheckExtent(value, where);
      value.device = Device(Member(json, "device", where), where);
      value.conjugated = Flag(json, "conjugated", where);
      value.negated = Flag(json, "negated", where);
      if (value.conjugated && !c10::isComplexType(value.dtype)) Fail(where, "is conjugated and not complex");
      value.wrapped_number = Flag(json, "wrapped_number", where);
      if (value.wrapped_number && !sizes.empty()) Fail(where, "is a wrapped number and has dimensions");
      value.requires_grad = Flag(json, "requires_grad", where);
      value.call = Optional(json, "call", where, LastCall());
      value.result = Optional(json, "result", where, std::numeric_limits<int32_t>::max());
      if ((value.kind == ValueKind::kResult) != (value.call >= 0)) Fail(where, "is a result without a call");
      program_.values.push_back(std::move(value));
    }
    for (size_t s = 0; s < program_.storages.size(); ++s) {
      if (program_.values[program_.storages[s].value].storage != static_cast<int>(s)) {
        Fail(absl::StrCat("storages[", s, "]"), "names a value of another storage");
      }
    }
  }

  // A value lies in its storage as it is at the end of the run: storages grow, they do not shrink.
  void CheckExtent(const RecordedValue& value, const std::string& where) const {
    const int64_t limit = program_.storages[value.storage].nbytes / static_cast<int64_t>(c10::elementSize(value.dtype));
    int64_t last = value.geometry.offset;
    int64_t numel = 1;
    for (size_t d = 0; d < value.geometry.sizes.size(); ++d) {
      const int64_t size = value.geometry.sizes[d];
      const int64_t stride = value.geometry.strides[d];
      // Expanded dimensions have no extent, but their product has to be a number.
      if (size > 0 && numel > std::numeric_limits<int64_t>::max() / size) Fail(where, "is too large for any memory");
      numel *= size;
      if (size > 1 && stride > (std::numeric_limits<int64_t>::max() - last) / (size - 1)) {
        Fail(where, "is too large for any memory");
      }
      if (size > 1) last += stride * (size - 1);
    }
    if (numel > 0 && last >= limit && value.kind != ValueKind::kResult) Fail(where, "reaches behind its storage");
  }

  void Weights() {
    size_t used = 0;
    const Json& storages = json_["storages"];
    for (size_t s = 0; s < program_.storages.size(); ++s) {
      RecordedStorage& storage = program_.storages[s];
      const std::string where = absl::StrCat("storages[", s, "]");
      if (!storages[s].contains("weights")) {
        const RecordedValue& first = program_.values[storage.value];
        const bool outside = storage.kind == ValueKind::kParameter || storage.kind == ValueKind::kBuffer ||
                             storage.kind == ValueKind::kConstant;
        if (outside && !first.device.is_meta()) Fail(where, "has no weights");
        continue;
      }
      const std::string name = String(storages[s], "weights", where);
      const at::Tensor* found = weights_.Find(name);
      if (found == nullptr)
        Fail(where, absl::StrCat("names weights that are not there: ", absl::Utf8SafeCEscape(name)));
      ++used;
      const at::ScalarType dtype = Dtype(storages[s], where);
      at::Tensor initial = found->flatten();
      if (c10::isComplexType(dtype)) {
        if (initial.scalar_type() != RealDtype(dtype) || initial.numel() % 2 != 0 || dtype == at::kComplexHalf) {
          Fail(where, "has weights of another dtype");
        }
        initial = at::view_as_complex(initial.view({-1, 2}));
      }
      if (initial.scalar_type() != dtype) Fail(where, "has weights of another dtype");
      // A resized storage is larger at the end than its weights were.
      if (static_cast<int64_t>(initial.nbytes()) > storage.nbytes ||
          (storage.writers.empty() && static_cast<int64_t>(initial.nbytes()) != storage.nbytes)) {
        Fail(where, absl::StrCat("has weights of ", initial.nbytes(), " bytes and a size of ", storage.nbytes));
      }
      const c10::Device device = program_.values[storage.value].device;
      if (device.is_meta()) Fail(where, "has weights on the meta device");
      if (!device.is_cpu()) {
        try {
          initial = initial.to(device);
        } catch (const std::exception&) {
          Fail(where, absl::StrCat("lies on ", device.str(), ", which is not there"));
        }
      }
      storage.initial = std::move(initial);
      storage.copied = true;
    }
    if (used != weights_.tensors.size()) Fail("", "has weights that the graph does not name");
  }

  TensorUse Use(const Json& json, const std::string& where, int16_t argument) const {
    TensorUse use;
    use.argument = argument;
    use.value = static_cast<int>(Integer(json, "value", where, -1, num_values_ - 1));
    Only(json, where, {"value", "version", "written"});
    if (use.value < 0) return use;
    const RecordedStorage& storage = program_.storages[program_.values[use.value].storage];
    use.version = static_cast<int>(Integer(json, "version", where, 0, static_cast<int64_t>(storage.writers.size())));
    use.written = Flag(json, "written", where);
    return use;
  }

  const Operator& Find(const Json& json, const std::string& where) {
    const std::string name = String(json, "operator", where);
    const std::string overload = String(json, "overload", where);
    const auto [found, is_new] = operators_.try_emplace({name, overload}, nullptr);
    if (is_new) {
      if (name == "aten::from_file") Fail(where, "reads another file; that is refused");
      const auto op = Operator::Find(name, overload);
      if (!op) {
        throw NotFound(absl::StrCat(name_, ": ", where, " calls ", absl::Utf8SafeCEscape(name),
                                    overload.empty() ? "" : ".", absl::Utf8SafeCEscape(overload),
                                    ", which this LibTorch does not have (or a library is not loaded)"));
      }
      found->second = std::make_unique<Known>(Known{*op, OperatorTraits(op->schema())});
    }
    return found->second->op;
  }

  void Calls() {
    for (const Json& json : Array(json_, "calls", "the file")) {
      const auto index = static_cast<int>(program_.calls.size());
      const std::string where = absl::StrCat("calls[", index, "]");
      RecordedCall call(Find(json, where));
      Only(json, where,
           {"operator", "overload", "arguments", "results", "result_sizes", "written", "place", "guard", "view",
            "random", "grad"});
      const c10::FunctionSchema& schema = call.op.schema();
      const OperatorTraits& traits = operators_[{schema.name(), schema.overload_name()}]->traits;
      const Json& arguments = Member(json, "arguments", where);
      if (!arguments.is_object()) Fail(where, "has arguments that are no object");
      size_t known = 0;
      for (size_t a = 0; a < schema.arguments().size(); ++a) {
        const c10::Argument& argument = schema.arguments()[a];
        const std::string at = absl::StrCat(where, ".", argument.name());
        if (!arguments.contains(argument.name())) {
          // Later versions of an operator may take more; what they take by default is what it did before.
          if (!argument.default_value()) Fail(at, "is missing");
          call.arguments.push_back(*argument.default_value());
          continue;
        }
        ++known;
        call.arguments.push_back(
            Argument(arguments[argument.name()], at, traits.arguments[a], static_cast<int16_t>(a), call));
      }
      if (known != arguments.size())
        Fail(where, absl::StrCat("has an argument that ", schema.name(), " does not take"));
      for (const Json& result : Array(json, "results", where)) {
        call.results.push_back(Made(result, where, index, -1));
      }
      if (json.contains("result_sizes")) {
        int64_t total = 0;
        for (const int64_t size : Integers(json["result_sizes"], where, 0)) {
          if (size > static_cast<int64_t>(call.results.size())) Fail(where, "has result_sizes that do not fit");
          total += size;
          call.result_sizes.push_back(static_cast<int>(size));
        }
        if (total != static_cast<int64_t>(call.results.size())) Fail(where, "has result_sizes that do not fit");
      }
      if (json.contains("written")) {
        for (const Json& value : Array(json, "written", where)) call.written.push_back(Made(value, where, index, 0));
      }
      const auto written =
          std::count_if(call.uses.begin(), call.uses.end(), [](const auto& use) { return use.written; });
      if (written != static_cast<std::ptrdiff_t>(call.written.size())) Fail(where, "has not a value for each write");
      call.place = Optional(json, "place", where, static_cast<int64_t>(program_.places.size()) - 1);
      call.guard = Optional(json, "guard", where, Size("guards") - 1);
      call.is_view = Flag(json, "view", where);
      call.random = Flag(json, "random", where);
      call.grad_mode = Flag(json, "grad", where);
      program_.calls.push_back(std::move(call));
    }
    for (size_t v = 0; v < program_.values.size(); ++v) {
      const RecordedValue& value = program_.values[v];
      if (value.call < 0) continue;
      const RecordedCall& call = program_.calls[value.call];
      const bool made =
          std::find(call.results.begin(), call.results.end(), static_cast<int>(v)) != call.results.end() ||
          std::find(call.written.begin(), call.written.end(), static_cast<int>(v)) != call.written.end();
      if (!made) Fail(absl::StrCat("values[", v, "]"), "names a call that does not give it");
    }
  }

  int Made(const Json& json, const std::string& where, int index, int64_t low) const {
    const auto value = static_cast<int>(Whole(json, where, low, num_values_ - 1));
    if (value >= 0 && program_.values[value].call != index) Fail(where, "gives a value of another call");
    return value;
  }

  c10::IValue Argument(const Json& json, const std::string& where, ArgumentKind kind, int16_t position,
                       RecordedCall& call) const {
    if (kind == ArgumentKind::kTensor && json.is_object() && json.contains("tensor")) {
      Only(json, where, {"tensor"});
      call.uses.push_back(Use(json["tensor"], where, position));
      return {};
    }
    if (kind != ArgumentKind::kTensorList || !json.is_object()) return Plain(json, where);
    Only(json, where, {"tensors", "present"});
    int64_t count = 0;
    for (const Json& use : Array(json, "tensors", where)) {
      call.uses.push_back(Use(use, where, position));
      ++count;
    }
    if (!json.contains("present")) return {};
    std::vector<int64_t> present = Integers(json["present"], where, 0);
    if (std::any_of(present.begin(), present.end(), [](int64_t p) { return p > 1; }) ||
        std::count(present.begin(), present.end(), 1) != count) {
      Fail(where, "has not as many tensors as are present");
    }
    return present;
  }

  void Guards() {
    for (const Json& json : Array(json_, "guards", "the file")) {
      const auto index = static_cast<int>(program_.guards.size());
      const std::string where = absl::StrCat("guards[", index, "]");
      Only(json, where, {"kind", "call", "value"});
      RecordedGuard guard;
      const std::string kind = String(json, "kind", where);
      bool known = false;
      for (const GuardKind candidate : {GuardKind::kNumber, GuardKind::kShape, GuardKind::kProperty}) {
        if (kind != GuardKindName(candidate)) continue;
        guard.kind = candidate;
        known = true;
      }
      if (!known) Fail(where, absl::StrCat("has an unknown kind ", absl::Utf8SafeCEscape(kind)));
      guard.call = static_cast<int>(Integer(json, "call", where, 0, LastCall()));
      if (program_.calls[guard.call].guard != index) Fail(where, "is not the guard of its call");
      guard.value = Plain(Member(json, "value", where), where);
      const auto& schema = program_.calls[guard.call].op.schema();
      const OperatorTraits& traits = operators_[{schema.name(), schema.overload_name()}]->traits;
      const auto plain = std::count(traits.returns.begin(), traits.returns.end(), ArgumentKind::kPlain);
      if (guard.kind == GuardKind::kShape) {
        bool fits = guard.value.isTuple();
        if (fits) {
          for (const c10::IValue& sizes : guard.value.toTupleRef().elements()) fits &= sizes.isIntList();
        }
        if (!fits) Fail(where, "has a value that is no tuple of sizes");
      } else if (plain == 0 ||
                 (plain > 1 && (!guard.value.isTuple() ||
                                static_cast<std::ptrdiff_t>(guard.value.toTupleRef().elements().size()) != plain))) {
        Fail(where, "has not a value for each number that its call gives");
      }
      program_.guards.push_back(std::move(guard));
    }
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      const int guard = program_.calls[c].guard;
      if (guard >= 0 && program_.guards[guard].call != static_cast<int>(c)) {
        Fail(absl::StrCat("calls[", c, "]"), "has the guard of another call");
      }
    }
  }

  void Inputs() {
    for (const Json& json : Array(json_, "inputs", "the file")) {
      const std::string where = absl::StrCat("inputs[", program_.inputs.size(), "]");
      Only(json, where, {"name", "structure"});
      RecordedInput input;
      input.name = String(json, "name", where);
      input.structure = Decode(Member(json, "structure", where), where);
      ForEachNumber(input.structure, [&](int value) {
        const bool is_new = inputs_.insert(value).second;
        if (program_.values[value].kind != ValueKind::kInput || !is_new) Fail(where, "is no input, or another's");
      });
      program_.inputs.push_back(std::move(input));
    }
    for (size_t v = 0; v < program_.values.size(); ++v) {
      if (program_.values[v].kind == ValueKind::kInput && !inputs_.contains(static_cast<int>(v))) {
        Fail(absl::StrCat("values[", v, "]"), "is an input that nobody gives");
      }
    }
    program_.output = Decode(Member(json_, "output", "the file"), "output");
    const std::vector<int64_t> versions = Integers(Member(json_, "output_versions", "the file"), "output_versions", 0);
    ForEachNumber(program_.output, [&](int value) {
      const size_t k = program_.output_versions.size();
      if (k >= versions.size()) Fail("output_versions", "does not fit output");
      const int storage = value < 0 ? -1 : program_.values[value].storage;
      const auto written = storage < 0 ? size_t{0} : program_.storages[storage].writers.size();
      if (static_cast<size_t>(versions[k]) > written) Fail("output_versions", "counts more writes than there are");
      program_.output_versions.push_back(static_cast<int>(versions[k]));
    });
    if (program_.output_versions.size() != versions.size()) Fail("output_versions", "does not fit output");
  }

  // `prefix`: of the names of the two keys.
  void Dimension(const Json& json, const std::string& where, const std::string& prefix, int* input, int* dim) const {
    *input = static_cast<int>(Integer(json, (prefix + "input").c_str(), where, 0, num_values_ - 1));
    if (!inputs_.contains(*input)) Fail(where, "names no input");
    const auto rank = static_cast<int64_t>(program_.values[*input].geometry.sizes.size());
    *dim = static_cast<int>(Integer(json, (prefix + "dim").c_str(), where, 0, rank - 1));
  }

  void Sizes() {
    for (const Json& json : Array(json_, "free", "the file")) {
      FreeDimension dimension;
      Only(json, "free", {"input", "dim", "like", "least", "most", "step"});
      Dimension(json, "free", "", &dimension.input, &dimension.dim);
      const auto before = static_cast<int64_t>(program_.free.size()) - 1;
      dimension.like = static_cast<int>(Integer(json, "like", "free", -1, before));
      if (json.contains("least") || json.contains("most")) {
        dimension.least = Integer(json, "least", "free", 0, FreeDimension::kAnySize);
        dimension.most = Integer(json, "most", "free", dimension.least, FreeDimension::kAnySize);
        if (json.contains("step")) dimension.step = Integer(json, "step", "free", 1, FreeDimension::kAnySize);
      }
      program_.free.push_back(dimension);
    }
    for (const Json& json : Array(json_, "sizes", "the file")) {
      const std::string where = absl::StrCat("sizes[", program_.sizes.size(), "]");
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      SizeRelation relation;
      Only(json, where,
           {"call", "argument", "storage", "element", "input", "dim", "other_input", "other_dim", "factor", "offset",
            "divisor", "shift"});
      const bool constant = json.contains("storage");
      if (!constant) relation.call = static_cast<int>(Integer(json, "call", where, 0, LastCall()));
      if (!program_.sizes.empty() && program_.sizes.back().call > relation.call) Fail(where, "is out of order");
      relation.element = static_cast<int>(Integer(json, "element", where, constant ? 0 : -1, kMost));
      Dimension(json, where, "", &relation.input, &relation.dim);
      if (json.contains("other_input")) {
        Dimension(json, where, "other_", &relation.other_input, &relation.other_dim);
      }
      relation.factor = Integer(json, "factor", where, -kMost, kMost);
      relation.offset = Integer(json, "offset", where, -kMost, kMost);
      if (json.contains("divisor")) {
        relation.divisor = Integer(json, "divisor", where, 1, kMost);
        relation.shift = Integer(json, "shift", where, 0, relation.divisor - 1);
      }
      if (constant) {
        relation.storage = static_cast<int>(Integer(json, "storage", where, 0, num_storages_ - 1));
        const RecordedStorage& storage = program_.storages[relation.storage];
        const bool fits = storage.kind == ValueKind::kConstant && storage.initial.defined() &&
                          !storage.initial.is_meta() && relation.element < storage.initial.numel();
        if (!fits) Fail(where, "names no element of a constant");
        program_.sizes.push_back(relation);
        continue;
      }
      const RecordedCall& call = program_.calls[relation.call];
      const auto arguments = static_cast<int64_t>(call.arguments.size());
      relation.argument = static_cast<int16_t>(Integer(json, "argument", where, 0, arguments - 1));
      const c10::IValue& argument = call.arguments[relation.argument];
      const bool fits = relation.element < 0 ? argument.isInt()
                                             : argument.isIntList() &&
                                                   static_cast<size_t>(relation.element) < argument.toIntList().size();
      if (!fits) Fail(where, "names no integer");
      program_.sizes.push_back(relation);
    }
  }

  // Files have the key where the modules of the model were seen.
  void Returns() {
    if (!json_.contains("returns")) return;
    int64_t end = 0;
    for (const Json& json : Array(json_, "returns", "the file")) {
      const std::string where = absl::StrCat("returns[", program_.returns.size(), "]");
      Only(json, where, {"module", "end", "values"});
      RecordedReturn returned;
      returned.module_path = String(json, "module", where);
      end = Integer(json, "end", where, end, num_calls_);
      returned.end = static_cast<int>(end);
      for (const int64_t value : Integers(Member(json, "values", where), where, -1)) {
        if (value >= num_values_) Fail(where, "names no value");
        returned.values.push_back(static_cast<int>(value));
      }
      program_.returns.push_back(std::move(returned));
    }
  }

  // Every value is there before it is used.
  void Order() const {
    const auto check = [&](int value, int before, const std::string& where) {
      const RecordedValue& recorded = program_.values[value];
      const RecordedValue& first = program_.values[program_.storages[recorded.storage].value];
      if (recorded.call >= before || (recorded.kind == ValueKind::kPart && first.call >= before)) {
        Fail(where, absl::StrCat("uses ", absl::Utf8SafeCEscape(recorded.name), " before it is made"));
      }
    };
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      for (const TensorUse& use : program_.calls[c].uses) {
        if (use.value >= 0) check(use.value, static_cast<int>(c), absl::StrCat("calls[", c, "]"));
      }
    }
    for (const RecordedReturn& returned : program_.returns) {
      for (const int value : returned.values) {
        if (value >= 0) check(value, returned.end, "returns");
      }
    }
    ForEachNumber(program_.output, [&](int value) { check(value, static_cast<int>(num_calls_), "output"); });
  }

  struct Known {
    Operator op;
    OperatorTraits traits;
  };

  const std::string& name_;
  TensorFile weights_;
  Json json_;
  RecordedProgram program_;
  int64_t num_values_ = 0;
  int64_t num_storages_ = 0;
  int64_t num_calls_ = 0;
  absl::flat_hash_set<int> inputs_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::unique_ptr<Known>> operators_;
};

}  // namespace

RecordedProgram DecodeProgram(const EncodedProgram& encoded, const std::string& name) {
  return Decoder(encoded, name).Decode();
}

}  // namespace addend
