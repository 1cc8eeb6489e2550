#include "core/exported/archive_testing.h"

#include <zlib.h>

#include <cstring>

#include "core/exported/archive.h"

namespace addend::exported {
namespace {

void Put(std::string& bytes, uint64_t number, int count) {
  for (int k = 0; k < count; ++k) bytes += static_cast<char>(k < 8 ? number >> (8 * k) : 0);
}

std::string Deflate(const std::string& content) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(&packed[0]);
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Json Tensor(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }

Json Meta(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  Json meta = {{"dtype", 7},
               {"sizes", Json::array()},
               {"requires_grad", false},
               {"device", {{"type", "cpu"}, {"index", nullptr}}},
               {"strides", Json::array()},
               {"storage_offset", {{"as_int", 0}}},
               {"layout", 7}};
  for (const int64_t size : sizes) meta["sizes"].push_back({{"as_int", size}});
  for (const int64_t stride : strides) meta["strides"].push_back({{"as_int", stride}});
  return meta;
}

Json Node(const std::string& target, const Json& inputs, const std::string& output) {
  return {{"target", target},
          {"inputs", inputs},
          {"outputs", {Tensor(output)}},
          {"metadata", {{"stack_trace", "File \"model.py\", line 3, in forward"}}},
          {"is_hop_single_tensor_return", nullptr},
          {"name", output}};
}

Json Input(const std::string& name, const Json& argument) { return {{"name", name}, {"arg", argument}, {"kind", 1}}; }

std::string Floats(const std::vector<float>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}

}  // namespace

std::string WriteZip(const std::vector<ZipEntry>& entries, const ZipOptions& options) {
  std::string bytes = options.before;
  std::string directory;
  const uint64_t start = options.before.size();
  for (const ZipEntry& entry : entries) {
    const std::string packed = entry.deflated ? Deflate(entry.content) : entry.content;
    const uint64_t size = entry.claimed >= 0 ? static_cast<uint64_t>(entry.claimed) : entry.content.size();
    const uint64_t compressed = entry.deflated || entry.claimed < 0 ? packed.size() : size;
    auto checksum = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), static_cast<uInt>(entry.content.size())));
    if (entry.wrong_checksum) checksum ^= 1;
    if (entry.no_checksum) checksum = 0;
    const int method = entry.method >= 0 ? entry.method : entry.deflated ? 8 : 0;
    const uint64_t place = bytes.size() - start;
    const auto header = [&](std::string& out, bool central) {
      std::string extra;
      if (options.zip64) {
        Put(extra, 1, 2);
        Put(extra, central ? 24 : 16, 2);
        Put(extra, size, 8);
        Put(extra, compressed, 8);
        if (central) Put(extra, place, 8);
      }
      if (!central) {
        const uint64_t begin = out.size() + 30 + entry.name.size() + extra.size() + 4;
        const uint64_t pad = (entry.alignment - begin % entry.alignment) % entry.alignment;
        Put(extra, 0x4246, 2);
        Put(extra, pad, 2);
        extra.append(pad, 'Z');
      }
      Put(out, central ? 0x02014b50 : 0x04034b50, 4);
      if (central) Put(out, 45, 2);
      Put(out, options.zip64 ? 45 : 20, 2);
      Put(out, entry.flags, 2);
      Put(out, static_cast<uint64_t>(method), 2);
      Put(out, 0, 4);  // time and date
      Put(out, checksum, 4);
      Put(out, options.zip64 ? 0xffffffff : compressed, 4);
      Put(out, options.zip64 ? 0xffffffff : size, 4);
      Put(out, entry.name.size(), 2);
      Put(out, extra.size(), 2);
      if (central) {
        Put(out, 0, 10);  // comment, disk, attributes
        Put(out, options.zip64 ? 0xffffffff : place, 4);
      }
      out += entry.name + extra;
    };
    header(bytes, false);
    bytes += packed;
    header(directory, true);
  }
  const uint64_t place = bytes.size() - start;
  bytes += directory;
  if (options.zip64) {
    const uint64_t end = bytes.size() - start;
    Put(bytes, 0x06064b50, 4);
    Put(bytes, 44, 8);
    Put(bytes, 45, 2);
    Put(bytes, 45, 2);
    Put(bytes, 0, 8);  // disks
    Put(bytes, entries.size(), 8);
    Put(bytes, entries.size(), 8);
    Put(bytes, directory.size(), 8);
    Put(bytes, place, 8);
    Put(bytes, 0x07064b50, 4);
    Put(bytes, 0, 4);
    Put(bytes, end, 8);
    Put(bytes, 1, 4);
  }
  Put(bytes, 0x06054b50, 4);
  Put(bytes, 0, 4);  // disks
  Put(bytes, options.zip64 ? 0xffff : entries.size(), 2);
  Put(bytes, options.zip64 ? 0xffff : entries.size(), 2);
  Put(bytes, options.zip64 ? 0xffffffff : directory.size(), 4);
  Put(bytes, options.zip64 ? 0xffffffff : place, 4);
  Put(bytes, 0, 2);
  return bytes;
}

std::vector<ZipEntry> SplitZip(const std::string& archive) {
  Bytes bytes;
  bytes.data = const_cast<char*>(archive.data());
  bytes.size = archive.size();
  MemoryBudget budget("archive", uint64_t{1} << 32);
  const Archive opened(bytes, "archive", &budget);
  std::vector<ZipEntry> entries;
  for (const std::string& name : opened.Names("")) {
    const Bytes content = opened.Read(name);
    entries.push_back({"root/" + name, std::string(content.data, content.size)});
  }
  return entries;
}

ProgramParts::ProgramParts() : weight(Floats({1, -2, 3, -4, 5, -6})), buffer(Floats({10, 20, 30})) {
  const Json symbol = {{"as_expr", {{"expr_str", "Symbol('s0', integer=True)"}, {"hint", {{"as_int", 2}}}}}};
  Json x = Meta({2, 3}, {3, 1});
  x["sizes"][0] = symbol;
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  program["graph_module"]["graph"] = {
      {"inputs", {Tensor("p_w"), Tensor("b_b"), Tensor("x")}},
      {"outputs", {Tensor("add")}},
      {"nodes",
       {Node("torch.ops.aten.mul.Tensor", {Input("self", Tensor("x")), Input("other", Tensor("p_w"))}, "mul"),
        Node("torch.ops.aten.relu.default", Json::array({Input("self", Tensor("mul"))}), "relu"),
        Node("torch.ops.aten.add.Tensor", {Input("self", Tensor("relu")), Input("other", Tensor("b_b"))}, "add")}},
      {"tensor_values",
       {{"p_w", Meta({2, 3}, {3, 1})}, {"b_b", Meta({3}, {1})}, {"x", x}, {"mul", x}, {"relu", x}, {"add", x}}},
      {"sym_int_values", Json::object()},
      {"sym_bool_values", Json::object()},
      {"is_single_tensor_return", false},
      {"custom_obj_values", Json::object()},
      {"sym_float_values", Json::object()}};
  program["graph_module"]["signature"] = {
      {"input_specs",
       {{{"parameter", {{"arg", {{"name", "p_w"}}}, {"parameter_name", "w"}}}},
        {{"buffer", {{"arg", {{"name", "b_b"}}}, {"buffer_name", "b"}, {"persistent", true}}}},
        {{"user_input", {{"arg", Tensor("x")}}}}}},
      {"output_specs", Json::array({{{"user_output", {{"arg", Tensor("add")}}}}})}};
  program["graph_module"]["module_call_graph"] = Json::array(
      {{{"fqn", ""},
        {"signature",
         {{"inputs", Json::array()},
          {"outputs", Json::array()},
          {"in_spec", R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
                      R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" +
                          leaf + R"(]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])"},
          {"out_spec", "[1, " + leaf + "]"},
          {"forward_arg_names", {"x"}}}}}});
  program["graph_module"]["metadata"] = Json::object();
  program["graph_module"]["treespec_namedtuple_fields"] = Json::object();
  program["opset_version"] = {{"aten", 10}};
  program["range_constraints"] = {{"s0", {{"min_val", 1}, {"max_val", 64}}}};
  program["schema_version"] = {{"major", 8}, {"minor", 20}};
  program["verifiers"] = {"TRAINING"};
  program["torch_version"] = "2.14.1";
  program["guards_code"] = {"L['x'].size()[0] >= 1"};
  weights["config"] = {
      {"w",
       {{"path_name", "weight_0"}, {"is_param", true}, {"use_pickle", false}, {"tensor_meta", Meta({2, 3}, {3, 1})}}},
      {"b", {{"path_name", "weight_1"}, {"is_param", false}, {"use_pickle", false}, {"tensor_meta", Meta({3}, {1})}}}};
  constants["config"] = Json::object();
}

std::vector<ZipEntry> ProgramParts::Entries() const {
  return {{"m/data/weights/weight_0", weight},
          {"m/data/weights/weight_1", buffer},
          {"m/data/weights/model_weights_config.json", weights.dump()},
          {"m/data/constants/model_constants_config.json", constants.dump()},
          {"m/models/model.json", program.dump()},
          {"m/archive_format", "pt2"},
          {"m/archive_version", "0"},
          {"m/.data/version", "6\n"},
          {"m/byteorder", "little"}};
}

std::string SavedPickle() {
  const auto text = [](const std::string& content) {
    std::string bytes = "X";
    Put(bytes, content.size(), 4);
    return bytes + content;
  };
  return "\x80\x02}q" + std::string(1, '\0') + text("w") + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\x06tQK" + std::string(1, '\0') +
         "K\x02K\x03\x86K\x03K\x01\x86\x89"
         "ccollections\nOrderedDict\n)RtRs.";
}

std::string SavedArchive(const std::string& pickle, const std::string& storage) {
  return WriteZip({{"archive/data.pkl", pickle},
                   {"archive/byteorder", "little"},
                   {"archive/data/0", storage},
                   {"archive/version", "3\n"},
                   {"archive/.data/serialization_id", "0"}});
}

}  // namespace addend::exported
