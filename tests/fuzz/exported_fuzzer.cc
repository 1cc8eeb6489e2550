// Exported programs: whatever an archive holds, it is read or refused with one clear line, and reading it takes no more
// memory than four times its size and 64 MiB.
//
// The first byte chooses. Odd: what follows is an archive. Even: an archive is made of known parts, and what follows
// says which of them become something hostile; checksums are made anew, so that damage reaches what is behind them.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/exported/archive_testing.h"
#include "core/exported/program.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/json_damage.h"
#include "tests/fuzz/memory.h"

namespace addend::exported {
namespace {

// ------------------------------------------------------------------------------------------------------- known parts

Json Tensor(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }

// One node that has an argument of each kind.
Json Everything() {
  const Json graph = {{"inputs", {Tensor("a")}},          {"outputs", {Tensor("a")}},
                      {"nodes", Json::array()},           {"tensor_values", Json::object()},
                      {"sym_int_values", Json::object()}, {"sym_bool_values", Json::object()},
                      {"is_single_tensor_return", true},  {"custom_obj_values", Json::object()}};
  const std::vector<Json> arguments = {
      {{"as_none", true}},
      {{"as_ints", {1, -2}}},
      {{"as_float", "Infinity"}},
      {{"as_floats", {0.5, 1e300}}},
      {{"as_bools", {true, false}}},
      {{"as_string", "text"}},
      {{"as_strings", {"a", "b"}}},
      {{"as_sym_int", {{"as_int", 3}}}},
      {{"as_sym_ints", {{{"as_int", 3}}, {{"as_int", 4}}}}},
      {{"as_sym_bool", {{"as_bool", true}}}},
      {{"as_sym_float", {{"as_float", 1.5}}}},
      {{"as_scalar_type", 7}},
      {{"as_memory_format", 1}},
      {{"as_layout", 7}},
      {{"as_device", {{"type", "cpu"}, {"index", nullptr}}}},
      {{"as_optional_tensors", {Tensor("x"), {{"as_none", true}}}}},
      {{"as_optional_tensor", Tensor("x")}},
      {{"as_nested_tensors", {{{{"name", "x"}}}, Json::array()}}},
      {{"as_complex", {{"real", 1}, {"imag", 2}}}},
      {{"as_int_lists", {{1, 2}, {3}}}},
      {{"as_float_lists", {{0.5}}}},
      {{"as_string_to_argument", {{"k", {{"as_int", 1}}}}}},
      {{"as_operator", "aten.add"}},
      {{"as_graph", {{"name", "body"}, {"graph", graph}}}},
  };
  Json node = {{"target", "torch.ops.higher_order.cond"},
               {"inputs", Json::array()},
               {"outputs", {Tensor("all"), {{"as_tensors", {{{"name", "left"}}, {{"name", "right"}}}}}}},
               {"metadata", {{"stack_trace", "File"}, {"nn_module_stack", "L__self__,,M"}}},
               {"is_hop_single_tensor_return", true},
               {"name", "all"}};
  for (const Json& argument : arguments) node["inputs"].push_back({{"name", ""}, {"arg", argument}, {"kind", 1}});
  return node;
}

std::string Container(const std::string& type, const Json& context, const std::string& children) {
  return "{\"type\": \"" + type + "\", \"context\": " + context.dump() + ", \"children_spec\": [" + children + "]}";
}

std::vector<std::vector<ZipEntry>> MakeSeeds() {
  ProgramParts rich;
  Json& module = rich.program["graph_module"];
  module["graph"]["nodes"].push_back(Everything());
  module["graph"]["sym_int_values"]["s"] = {{"as_expr", {{"expr_str", "Symbol('s0')"}, {"hint", {{"as_int", 2}}}}}};
  module["graph"]["outputs"] = {Tensor("relu"), Tensor("add"), Tensor("left"), Tensor("right"), Tensor("all")};
  module["signature"]["output_specs"] = {
      {{"buffer_mutation", {{"arg", {{"name", "relu"}}}, {"buffer_name", "b"}}}},
      {{"user_output", {{"arg", Tensor("add")}}}},
      {{"user_output", {{"arg", Tensor("left")}}}},
      {{"user_output", {{"arg", Tensor("right")}}}},
      {{"user_output", {{"arg", Tensor("all")}}}},
  };
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  module["treespec_namedtuple_fields"] = {{"my.Pair", {{"field_names", {"first"}}}}};
  module["module_call_graph"][0]["signature"]["out_spec"] =
      "[1, " +
      Container("my.Output", "[\"a\", \"b\", \"c\"]",
                Container("collections.namedtuple", "my.Pair", leaf) + ", " +
                    Container("builtins.dict", "[\"k\"]", leaf) + ", " +
                    Container("builtins.tuple", "null", leaf + ", " + leaf)) +
      "]";
  rich.weights["config"]["tied"] = rich.weights["config"]["w"];
  rich.constants["config"] = {{"c", rich.weights["config"]["b"]}};
  rich.constants["config"]["c"]["path_name"] = "tensor_0";
  std::vector<ZipEntry> new_entries = rich.Entries();
  new_entries.push_back({"m/data/constants/tensor_0", rich.buffer});

  ProgramParts plain;
  plain.program["graph_module"]["signature"]["input_specs"][1]["buffer"]["buffer_name"] = "w";
  const std::string saved = SavedArchive(SavedPickle(), plain.weight);
  const std::vector<ZipEntry> old_entries = {{"serialized_exported_program.json", plain.program.dump()},
                                             {"serialized_state_dict.pt", saved},
                                             {"serialized_constants.pt", ""},
                                             {"version", "8.2"}};
  std::vector<ZipEntry> middle = plain.Entries();
  middle.erase(middle.begin(), middle.begin() + 4);
  middle.push_back({"m/data/weights/model.pt", saved});
  middle.push_back({"m/data/constants/model.pt", SavedArchive("\x80\x02}.", "")});
  return {new_entries, old_entries, middle};
}

// --------------------------------------------------------------------------------------------------------- damage

// The byte that ends a way down: later than elsewhere, since these documents are deep.
constexpr uint8_t kDeepStop = 0xf8;

void DamageText(std::string& text, Bytes& bytes) {
  for (int k = 0; k == 0 || (k < 4 && bytes.Below(2) == 0); ++k) {
    if (text.empty()) return;
    const size_t where = (bytes.Below(65536)) % text.size();
    switch (bytes.Next() % 4) {
      case 0:
        text[where] = static_cast<char>(bytes.Next());
        break;
      case 1:
        text.insert(where, 1 + bytes.Below(4), static_cast<char>(bytes.Next()));
        break;
      case 2:
        text.erase(where, 1 + bytes.Below(8));
        break;
      default:
        text.resize(where);
        break;
    }
  }
}

// Further edits than those of every document.
void EditMore(Json& document, Json* entry, int edit, Bytes& bytes) {
  switch (edit) {
    case 0:
      *entry = std::numeric_limits<int64_t>::max() - bytes.Below(8);
      break;
    case 1:
      *entry = bytes.Next() % 40;  // of enumerations
      break;
    case 2:
      *entry = Json(*Choose(document, bytes, kDeepStop));
      break;
    case 3:
      if (entry->is_object() && !entry->empty()) {
        auto member = entry->begin();
        std::advance(member, bytes.Next() % entry->size());
        entry->erase(member);
      }
      break;
    case 4:
      if (entry->is_object()) (*entry)[bytes.Below(2) == 0 ? "new" : ""] = Json(*Choose(document, bytes, kDeepStop));
      break;
    default:
      if (entry->is_string()) {
        std::string text = entry->get<std::string>();
        DamageText(text, bytes);
        // A document may hold no other bytes.
        for (char& c : text) c = static_cast<char>(c & 0x7f);
        *entry = text;
      }
      break;
  }
}

void DamageDocument(Json& document, Bytes& bytes) {
  Json* entry = Choose(document, bytes, kDeepStop);
  const uint8_t edit = bytes.Next() % 24;
  if (edit < kNumEdits) return Edit(document, entry, edit, bytes, kDeepStop);
  EditMore(document, entry, edit - kNumEdits, bytes);
}

// Many times the same, which compresses well: what a reader makes of it must not grow without bound.
void Grow(Json& document, Bytes& bytes) {
  Json* entry = Choose(document, bytes, kDeepStop);
  const Json copy = *entry;
  if (copy.dump().size() > 200) return;
  Json many = Json::array();
  const size_t count = size_t{1} << (10 + bytes.Below(9));
  for (size_t k = 0; k < count; ++k) many.push_back(copy);
  *entry = many;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void DamageEntry(ZipEntry& entry, Bytes& bytes);

void DamageArchive(std::vector<ZipEntry>& entries, Bytes& bytes) {
  for (int k = 0; k == 0 || (k < 3 && bytes.Below(3) == 0); ++k) {
    size_t chosen = bytes.Below(entries.size());
    // Most of what can be said stands in documents and pickles.
    for (int again = 0; again < 3 && entries[chosen].content.size() < 64; ++again) chosen = bytes.Below(entries.size());
    ZipEntry& entry = entries[chosen];
    switch (bytes.Next() % 32) {
      case 0:
        entry.flags = static_cast<uint16_t>(bytes.Below(65536));
        break;
      case 1:
        entry.method = bytes.Next();
        break;
      case 2:
        entry.claimed = bytes.Word() >> bytes.Below(64);
        break;
      case 3:
        entry.wrong_checksum = true;
        break;
      case 4:
        entry.alignment = 1;
        break;
      case 5:
        entry.name = entries[bytes.Below(entries.size())].name;
        break;
      case 6:
        DamageText(entry.name, bytes);
        break;
      case 7:
        std::swap(entry.content, entries[bytes.Below(entries.size())].content);
        break;
      case 8:
        entry.content.clear();
        break;
      case 9:
        for (ZipEntry& each : entries) each.deflated = true;
        break;
      default:
        DamageEntry(entry, bytes);
        break;
    }
  }
}

void DamageEntry(ZipEntry& entry, Bytes& bytes) {
  if (EndsWith(entry.name, ".pt") && !entry.content.empty()) {
    try {
      std::vector<ZipEntry> inner = SplitZip(entry.content);
      DamageArchive(inner, bytes);
      entry.content = WriteZip(inner);
    } catch (const Error&) {
      DamageText(entry.content, bytes);  // an earlier damage left no archive
    }
    return;
  }
  if (EndsWith(entry.name, ".json") && bytes.Below(8) != 0) {
    Json document = Json::parse(entry.content, nullptr, /*allow_exceptions=*/false);
    if (document.is_discarded()) return;
    // An edit may copy the document into itself.
    for (int k = 0; k == 0 || (k < 6 && bytes.Below(2) == 0); ++k) DamageDocument(document, bytes);
    if (bytes.Below(64) == 63) {
      Grow(document, bytes);
      entry.deflated = true;
    }
    entry.content = document.dump();
    return;
  }
  DamageText(entry.content, bytes);
}

std::string Draw(Bytes& bytes) {
  if (bytes.Next() % 2 == 1) return bytes.Rest();
  static const auto& seeds = *new std::vector<std::vector<ZipEntry>>(MakeSeeds());
  std::vector<ZipEntry> entries = seeds[bytes.Below(seeds.size())];
  DamageArchive(entries, bytes);
  ZipOptions options;
  options.zip64 = bytes.Below(4) == 0;
  return WriteZip(entries, options);
}

// ------------------------------------------------------------------------------------------------------ what is read

// Touches every byte of every tensor; gives the bytes of their storages.
int64_t Touch(const Program& program) {
  std::set<const void*> storages;
  int64_t total = 0;
  for (const auto& entry : program.state) {
    const at::Tensor& tensor = entry.second;
    if (storages.insert(tensor.storage().unsafeGetStorageImpl()).second)
      total += static_cast<int64_t>(tensor.storage().nbytes());
    // A stride of 0 makes many elements of few bytes.
    if (tensor.numel() > 0 && tensor.numel() < 100000) tensor.contiguous();
  }
  return total;
}

// True when a program is refused as it should be.
bool Refused(const Error& e) {
  const std::string text = e.what();
  const bool clear = !text.empty() && text.find('\n') == std::string::npos && text.size() < 4000 &&
                     (e.code() == absl::StatusCode::kInvalidArgument || e.code() == absl::StatusCode::kUnimplemented);
  if (!clear) std::fprintf(stderr, "unclear: %s\n", text.c_str());
  return clear;
}

}  // namespace
}  // namespace addend::exported

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  addend::Bytes bytes(data, size);
  const std::string archive = addend::exported::Draw(bytes);
  const int64_t before = live_bytes;
  most_bytes = before;
  int64_t storages = 0;
  bool clear = true;
  try {
    const addend::exported::Program program =
        addend::exported::ReadProgramBytes(archive.data(), archive.size(), "bytes");
    storages = addend::exported::Touch(program);
  } catch (const addend::Error& e) {
    clear = addend::exported::Refused(e);
  }
  const int64_t taken = most_bytes - before + storages;
  const int64_t allowed = 4 * static_cast<int64_t>(archive.size()) + (int64_t{64} << 20);
  if (taken > allowed) {
    std::fprintf(stderr, "took %lld bytes for %zu\n", static_cast<long long>(taken), archive.size());
    return -1;
  }
  return clear ? 0 : -1;
}
