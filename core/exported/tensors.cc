#include "core/exported/tensors.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/json_reader.h"
#include "core/exported/pickle.h"
#include "core/exported/refusals.h"
#include "core/exported/schema_graph.h"
#include "core/weights/storages.h"

namespace addend::exported {
namespace {

using weights::kTensorCost;
using weights::MakeStorage;
using weights::MakeTensor;
using weights::SharedStorage;
using weights::Strided;

// Entry of a config for one name.
struct Payload {
  std::string name;
  std::string entry;
  Strided strided;
};

std::vector<int64_t> Numbers(const std::vector<SymbolicInt>& symbolic, const JsonReader& json) {
  std::vector<int64_t> numbers;
  for (const SymbolicInt& number : symbolic) {
    if (!number.expression.empty()) json.Fail("has a symbolic size, which no stored tensor has");
    numbers.push_back(*number.value);
  }
  return numbers;
}

Payload ReadOne(JsonReader& json, const std::string& name, const std::string& folder) {
  Payload payload;
  payload.name = name;
  bool pickled = false;
  std::optional<TensorMeta> meta;
  std::string path;
  json.Object([&](const std::string& key) {
    if (key == "path_name") {
      path = json.String();
    } else if (key == "is_param") {
      json.Bool();
    } else if (key == "use_pickle") {
      pickled = json.Bool();
    } else if (key == "tensor_meta") {
      if (json.Next() == JsonReader::Kind::kNull) return json.Null();
      meta = ReadTensorMeta(json, /*strided=*/true);
    } else {
      json.SkipUnknown(key);
    }
  });
  if (absl::StartsWith(path, "custom_obj_") || absl::StartsWith(path, "opaque_obj_")) {
    throw CustomObject(json.Place(), absl::StrCat(Quoted(name), " is a custom object (", Quoted(path), ")"));
  }
  if (pickled) {
    throw Unimplemented(absl::StrCat(json.Place(), ": ", Quoted(name),
                                     " is a tensor of a class of its own, pickled into ", Quoted(path),
                                     "; pickled classes are never run: export the model with plain tensors"));
  }
  if (path.empty()) json.Fail("has no \"path_name\"");
  if (!meta) json.Fail("has no \"tensor_meta\"");
  payload.entry = folder + path;
  payload.strided.dtype = meta->dtype;
  payload.strided.sizes = Numbers(meta->sizes, json);
  payload.strided.strides = Numbers(meta->strides, json);
  payload.strided.offset = Numbers({meta->storage_offset}, json)[0];
  return payload;
}

}  // namespace

void ReadPayload(const Archive& archive, const std::string& config, const std::string& folder, MemoryBudget* budget,
                 State& state) {
  const Bytes text = archive.Read(config);
  JsonReader json(absl::string_view(text.data, text.size), archive.Place(config), budget);
  std::vector<Payload> payloads;
  bool found = false;
  json.Object([&](const std::string& key) {
    if (key != "config") return json.SkipUnknown(key);
    found = true;
    json.Object([&](const std::string& name) {
      budget->TakeElement(payloads);
      budget->Take(kTensorCost + 2 * name.size());
      payloads.push_back(ReadOne(json, name, folder));
    });
  });
  json.End();
  if (!found) json.Fail("has no \"config\"");

  std::map<std::string, size_t> alignments;  // of storages: that of their largest elements
  for (const Payload& payload : payloads) {
    size_t& alignment = alignments[payload.entry];
    alignment = std::max(alignment, c10::elementSize(payload.strided.dtype));
  }
  std::map<std::string, SharedStorage> storages;
  for (const Payload& payload : payloads) {
    auto storage = storages.find(payload.entry);
    if (storage == storages.end()) {
      const Bytes bytes = archive.Read(payload.entry);
      storage = storages.emplace(payload.entry, MakeStorage(bytes, alignments[payload.entry], budget)).first;
    }
    const std::string where = absl::StrCat(archive.Place(config), ": ", Quoted(payload.name));
    if (!state.emplace(payload.name, MakeTensor(storage->second, payload.strided, where)).second) {
      throw InvalidArgument(absl::StrCat(where, ": the program has another tensor of that name"));
    }
  }
}

void ReadSaved(const Archive& archive, const std::string& entry, MemoryBudget* budget, State& state) {
  const Bytes bytes = archive.Read(entry);
  if (bytes.size == 0) return;
  const Archive saved(bytes, archive.Place(entry), budget);
  for (auto& tensor : ReadPickledTensors(saved, budget)) {
    if (!state.emplace(tensor.first, std::move(tensor.second)).second) {
      throw InvalidArgument(
          absl::StrCat(saved.name(), ": ", Quoted(tensor.first), ": the program has another tensor of that name"));
    }
  }
}

}  // namespace addend::exported
