#include "core/exported/program.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/exported/archive_testing.h"

namespace addend::exported {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Program Read(const std::string& archive) { return ReadProgramBytes(archive.data(), archive.size(), "m.pt2"); }

Program Read(const ProgramParts& parts) { return Read(parts.Archive()); }

struct Refusal {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;
};

Refusal Refused(const std::string& archive) {
  try {
    Read(archive);
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), Not(HasSubstr("\n")));
    return {e.code(), e.what()};
  }
  return {};
}

// How a program is refused that was changed.
Refusal Refused(const std::function<void(ProgramParts&)>& change) {
  ProgramParts parts;
  change(parts);
  return Refused(parts.Archive());
}

void ExpectInvalid(const std::function<void(ProgramParts&)>& change, const std::string& what) {
  const Refusal refusal = Refused(change);
  EXPECT_EQ(refusal.code, absl::StatusCode::kInvalidArgument) << refusal.text;
  EXPECT_THAT(refusal.text, AllOf(HasSubstr("m.pt2"), HasSubstr(what)));
}

void ExpectUnimplemented(const std::function<void(ProgramParts&)>& change, const std::string& what) {
  const Refusal refusal = Refused(change);
  EXPECT_EQ(refusal.code, absl::StatusCode::kUnimplemented) << refusal.text;
  EXPECT_THAT(refusal.text, AllOf(HasSubstr("m.pt2"), HasSubstr(what)));
}

Json& Node(ProgramParts& parts, size_t k) { return parts.program["graph_module"]["graph"]["nodes"][k]; }
// The second argument of the first node.
Json& Other(ProgramParts& parts) { return Node(parts, 0)["inputs"][1]["arg"]; }
Json& Signature(ProgramParts& parts) { return parts.program["graph_module"]["signature"]; }
Json& Call(ProgramParts& parts) { return parts.program["graph_module"]["module_call_graph"][0]["signature"]; }
Json& Meta(ProgramParts& parts, const char* name) { return parts.weights["config"][name]["tensor_meta"]; }

// The second argument of the first node, read.
Argument ReadOther(const Json& argument) {
  ProgramParts parts;
  Other(parts) = argument;
  return Read(parts).graph.nodes[0].inputs[1].argument;
}

// ---------------------------------------------------------------------------------------------------- whole programs

TEST(Program, IsReadWhole) {
  const Program program = Read(ProgramParts());
  EXPECT_EQ(program.schema_major, 8);
  EXPECT_EQ(program.schema_minor, 20);
  EXPECT_EQ(program.torch_version, "2.14.1");
  ASSERT_EQ(program.graph.nodes.size(), 3U);
  const exported::Node& node = program.graph.nodes[0];
  EXPECT_EQ(node.target, "torch.ops.aten.mul.Tensor");
  EXPECT_EQ(node.name, "mul");
  EXPECT_EQ(node.inputs[1].name, "other");
  EXPECT_EQ(node.inputs[1].pass, NamedArgument::Pass::kPositional);
  EXPECT_EQ(node.inputs[1].argument.kind, Argument::Kind::kValue);
  EXPECT_EQ(node.inputs[1].argument.name, "p_w");
  EXPECT_EQ(node.metadata.at("stack_trace"), "File \"model.py\", line 3, in forward");
  ASSERT_EQ(program.inputs.size(), 3U);
  EXPECT_EQ(program.inputs[0].kind, InputSpec::Kind::kParameter);
  EXPECT_EQ(program.inputs[0].name, "w");
  EXPECT_EQ(program.inputs[1].kind, InputSpec::Kind::kBuffer);
  EXPECT_EQ(program.inputs[2].argument.name, "x");
  EXPECT_EQ(program.outputs[0].kind, OutputSpec::Kind::kUserOutput);
  EXPECT_EQ(program.in_spec.kind, TreeSpec::Kind::kTuple);
  EXPECT_EQ(program.in_spec.children[0].children[0].kind, TreeSpec::Kind::kLeaf);
  EXPECT_EQ(program.in_spec.children[1].kind, TreeSpec::Kind::kDict);
  EXPECT_EQ(program.out_spec.kind, TreeSpec::Kind::kLeaf);
  EXPECT_THAT(program.forward_arg_names, ElementsAre("x"));
  EXPECT_EQ(program.ranges.at("s0").max, 64);
  EXPECT_THAT(program.guards, ElementsAre("L['x'].size()[0] >= 1"));
  const TensorMeta& x = program.graph.tensors.at("x");
  EXPECT_EQ(x.sizes[0].expression, "Symbol('s0', integer=True)");
  EXPECT_EQ(x.sizes[0].value, 2);
  EXPECT_EQ(x.sizes[1].value, 3);
  EXPECT_TRUE(program.state.at("w").equal(at::tensor({1., -2., 3., -4., 5., -6.}, at::kFloat).view({2, 3})));
  EXPECT_TRUE(program.state.at("b").equal(at::tensor({10., 20., 30.}, at::kFloat)));
  EXPECT_TRUE(program.notes.empty());
}

TEST(Program, IsReadFromCompressedEntriesToo) {
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  for (ZipEntry& entry : entries) entry.deflated = true;
  EXPECT_TRUE(Read(WriteZip(entries)).state.at("b").equal(at::tensor({10., 20., 30.}, at::kFloat)));
}

TEST(Program, IsReadWithoutAFolderToo) {
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  for (ZipEntry& entry : entries) entry.name = entry.name.substr(2);
  EXPECT_EQ(Read(WriteZip(entries)).graph.nodes.size(), 3U);
}

TEST(Program, OfBytesOwnsItsTensors) {
  auto archive = std::make_unique<std::string>(ProgramParts().Archive());
  const Program program = Read(*archive);
  std::fill(archive->begin(), archive->end(), '\0');
  archive.reset();
  EXPECT_EQ(program.state.at("b")[2].item<float>(), 30);
}

TEST(Program, OfAFileIsMappedCopyOnWrite) {
  const std::string path = ::testing::TempDir() + "/program.pt2";
  const std::string archive = ProgramParts().Archive();
  std::ofstream(path, std::ios::binary) << archive;
  EXPECT_TRUE(IsExportedProgram(path));
  {
    Program program = ReadProgram(path);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(program.state.at("w").data_ptr()) % 64, 0U);
    program.state.at("b").add_(1);
    EXPECT_EQ(program.state.at("b")[2].item<float>(), 31);
    // The mapping lives as long as a tensor does.
    const at::Tensor kept = program.state.at("b");
    program = Program();
    EXPECT_EQ(kept[0].item<float>(), 11);
  }
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), archive);
}

TEST(Program, IsLookedForInArchivesAlone) {
  const std::string path = ::testing::TempDir() + "/other.pt2";
  const auto is = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return IsExportedProgram(path);
  };
  EXPECT_FALSE(is("text"));
  EXPECT_FALSE(is(WriteZip({{"m/data.pkl", ""}, {"m/version", "3"}})));
  EXPECT_TRUE(is(WriteZip({{"serialized_exported_program.json", ""}, {"version", "8.2"}})));
  EXPECT_FALSE(IsExportedProgram("/no/such/file"));
  EXPECT_THROW(ReadProgram("/no/such/file"), Error);
}

// Reads archives that torch 2.6 and 2.14 wrote. The first byte tells a fuzzer that an archive follows.
TEST(Program, OfPyTorchIsRead) {
  struct Written {
    const char* name;
    int64_t minor;
    const char* version;
    size_t tensors;
  };
  for (const Written& written :
       {Written{"2.6_half", 2, "2.6.0+debian", 3}, Written{"2.6_core", 2, "2.6.0+debian", 12},
        Written{"2.14_cond", 20, "2.14.1+debian", 0}, Written{"2.14_structure", 20, "2.14.1+debian", 12}}) {
    std::ifstream file(std::string("tests/fuzz/corpus/exported/") + written.name, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(bytes.empty()) << written.name;
    const Program program = Read(bytes.substr(1));
    EXPECT_EQ(program.schema_minor, written.minor) << written.name;
    EXPECT_EQ(program.torch_version, written.version);
    EXPECT_EQ(program.state.size(), written.tensors) << written.name;
    EXPECT_TRUE(program.notes.empty());
  }
}

TEST(Program, ThatUnpacksToMuchMoreIsRefused) {
  // A list of zeros is two bytes for each in JSON, hardly any when it is deflated, and a value of LibTorch when it is
  // read.
  std::string list = "[0";
  for (int k = 0; k < 4'000'000; ++k) list += ",0";
  ProgramParts parts;
  Other(parts) = {{"as_ints", "MARK"}};
  std::vector<ZipEntry> entries = parts.Entries();
  std::string& json = entries[4].content;
  json.replace(json.find("\"MARK\""), 6, list + "]");
  entries[4].deflated = true;
  const Refusal refusal = Refused(WriteZip(entries));
  EXPECT_EQ(refusal.code, absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refusal.text, HasSubstr("four times the file's"));
}

// ------------------------------------------------------------------------------------------------------ the archive

TEST(Program, NamesWhatTheArchiveLacks) {
  for (const char* missing : {"m/data/weights/weight_1", "m/data/weights/model_weights_config.json",
                              "m/data/constants/model_constants_config.json", "m/models/model.json"}) {
    std::vector<ZipEntry> entries = ProgramParts().Entries();
    entries.erase(std::remove_if(entries.begin(), entries.end(), [&](const ZipEntry& e) { return e.name == missing; }),
                  entries.end());
    const Refusal refusal = Refused(WriteZip(entries));
    EXPECT_EQ(refusal.code, absl::StatusCode::kInvalidArgument) << missing;
    EXPECT_THAT(refusal.text, HasSubstr("m.pt2: h")) << missing;
  }
}

TEST(Program, TakesTheModelThatIsCalledModelOrTheOnlyOne) {
  const ProgramParts parts;
  const auto entries = [&](const std::vector<std::string>& names) {
    std::vector<ZipEntry> all = parts.Entries();
    const std::string json = all[4].content;
    all.erase(all.begin() + 2, all.begin() + 5);
    for (const std::string& name : names) {
      all.push_back({"m/models/" + name + ".json", json});
      all.push_back({"m/data/weights/" + name + "_weights_config.json", parts.weights.dump()});
      all.push_back({"m/data/constants/" + name + "_constants_config.json", parts.constants.dump()});
    }
    return WriteZip(all);
  };
  EXPECT_EQ(Read(entries({"one"})).graph.nodes.size(), 3U);
  EXPECT_EQ(Read(entries({"first", "model"})).graph.nodes.size(), 3U);
  EXPECT_THAT(Refused(entries({"first", "second"})).text, HasSubstr("several models (first, second)"));
}

TEST(Program, RefusesCompiledCodeAloneAndNotesItBesides) {
  const Refusal refusal = Refused(
      WriteZip({{"m/data/aotinductor/model/a.so", ""}, {"m/archive_format", "pt2"}, {"m/archive_version", "0"}}));
  EXPECT_EQ(refusal.code, absl::StatusCode::kUnimplemented);
  EXPECT_THAT(refusal.text, HasSubstr("AOTInductor"));
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  entries.push_back({"m/data/aotinductor/model/a.so", ""});
  EXPECT_THAT(Read(WriteZip(entries)).notes, ElementsAre(HasSubstr("AOTInductor")));
}

TEST(Program, RefusesBigEndianTensorsAndOtherArchiveVersions) {
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  entries.back().content = "big";
  EXPECT_THAT(Refused(WriteZip(entries)).text, HasSubstr("not little-endian"));
  entries = ProgramParts().Entries();
  entries[6].content = "1";
  EXPECT_THAT(Refused(WriteZip(entries)).text, HasSubstr("archive_version: is not 0"));
}

TEST(Program, RefusesDamageOfWhatItReads) {
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  entries[4].wrong_checksum = true;
  EXPECT_THAT(Refused(WriteZip(entries)).text, HasSubstr("models/model.json: is damaged"));
  for (const size_t weight : {0, 1}) {
    entries = ProgramParts().Entries();
    entries[weight].wrong_checksum = true;
    EXPECT_THAT(Refused(WriteZip(entries)).text, HasSubstr("is damaged: its checksum differs")) << weight;
  }
}

TEST(Program, SaysWhereThereIsNoChecksum) {
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  entries[0].no_checksum = true;
  const std::string archive = WriteZip(entries);
  EXPECT_THAT(ReadProgramBytes(archive.data(), archive.size(), "a.pt2").notes,
              ElementsAre(HasSubstr("1 entry of the file has no checksum")));
}

// -------------------------------------------------------------------------------------------------------- the schema

TEST(Schema, MajorHasToBe8AndMinorMayBeAny) {
  for (const int major : {1, 7, 9}) {
    ExpectInvalid([&](ProgramParts& p) { p.program["schema_version"]["major"] = major; },
                  "is schema " + std::to_string(major) + ".20; only schema 8 is read");
  }
  // A later major is refused for that, whatever else is new in it.
  ExpectInvalid(
      [](ProgramParts& p) {
        p.program["schema_version"]["major"] = 9;
        p.program["aaa"] = 1;
      },
      "is schema 9.20");
  ExpectInvalid([](ProgramParts& p) { p.program["schema_version"] = 4; }, "is schema 4.0");
  ExpectInvalid([](ProgramParts& p) { p.program.erase("schema_version"); }, "has no \"schema_version\"");
  ProgramParts parts;
  parts.program["schema_version"]["minor"] = 999;
  EXPECT_EQ(Read(parts).schema_minor, 999);
}

TEST(Schema, UnknownFieldsMaySayNothing) {
  for (const Json& nothing : {Json(), Json(false), Json(0), Json(""), Json::array(), Json::object()}) {
    ProgramParts parts;
    parts.program["new"] = nothing;
    Node(parts, 0)["new"] = nothing;
    parts.weights["config"]["w"]["new"] = nothing;
    EXPECT_NO_THROW(Read(parts)) << nothing;
  }
  ExpectInvalid([](ProgramParts& p) { p.program["new"] = true; }, "models/model.json: /new (byte ");
  ExpectInvalid([](ProgramParts& p) { Node(p, 1)["new"] = 1; }, "/graph_module/graph/nodes/1/new (byte ");
  ExpectInvalid([](ProgramParts& p) { p.weights["config"]["w"]["new"] = 1; },
                "model_weights_config.json: /config/w/new (byte ");
}

TEST(Schema, UnknownAlternativesAreRefusedWithTheirPlace) {
  ExpectInvalid(
      [](ProgramParts& p) {
        Other(p) = {{"as_new", 1}};
      },
      "/graph_module/graph/nodes/0/inputs/1/arg/as_new (byte ");
  ExpectInvalid(
      [](ProgramParts& p) {
        Signature(p)["input_specs"][0] = {{"new", Json::object()}};
      },
      "/graph_module/signature/input_specs/0/new");
  ExpectInvalid(
      [](ProgramParts& p) {
        Signature(p)["output_specs"][0] = {{"new", Json::object()}};
      },
      "/graph_module/signature/output_specs/0/new");
  ExpectInvalid([](ProgramParts& p) { Other(p) = {{"as_int", 1}, {"as_bool", true}}; }, "exactly one key");
}

TEST(Schema, ArgumentsAreConstantsValuesAndLists) {
  EXPECT_TRUE(ReadOther({{"as_none", true}}).constant.isNone());
  EXPECT_EQ(ReadOther({{"as_int", -3}}).constant.toInt(), -3);
  EXPECT_EQ(ReadOther({{"as_float", 1}}).constant.toDouble(), 1);
  EXPECT_EQ(ReadOther({{"as_float", "-Infinity"}}).constant.toDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(ReadOther({{"as_floats", {1, "NaN"}}}).constant.toDoubleVector()[1]));
  EXPECT_TRUE(ReadOther({{"as_bool", true}}).constant.toBool());
  EXPECT_EQ(ReadOther({{"as_string", "gelu"}}).constant.toStringRef(), "gelu");
  EXPECT_THAT(ReadOther({{"as_ints", {1, 2}}}).constant.toIntVector(), ElementsAre(1, 2));
  EXPECT_TRUE(ReadOther({{"as_ints", Json::array()}}).constant.isIntList());
  EXPECT_TRUE(ReadOther({{"as_bools", {true}}}).constant.isBoolList());
  EXPECT_EQ(ReadOther({{"as_strings", {"a", "b"}}}).constant.toList().size(), 2U);
  const c10::complex<double> z =
      ReadOther({{"as_complex", {{"real", 1}, {"imag", "Infinity"}}}}).constant.toComplexDouble();
  EXPECT_EQ(z.real(), 1);
  EXPECT_TRUE(std::isinf(z.imag()));
  EXPECT_EQ(ReadOther({{"as_device", {{"type", "cuda"}, {"index", 1}}}}).constant.toDevice(), c10::Device("cuda:1"));
  EXPECT_EQ(ReadOther({{"as_device", {{"index", nullptr}, {"type", "cpu"}}}}).constant.toDevice(), c10::Device("cpu"));
  EXPECT_EQ(ReadOther({{"as_operator", "aten.add"}}).kind, Argument::Kind::kOperator);

  const Argument tensors = ReadOther({{"as_tensors", {{{"name", "x"}}, {{"name", "p_w"}}}}});
  EXPECT_EQ(tensors.kind, Argument::Kind::kList);
  EXPECT_EQ(tensors.elements[1].name, "p_w");
  const Argument optional =
      ReadOther({{"as_optional_tensors", {{{"as_tensor", {{"name", "x"}}}}, {{"as_none", true}}}}});
  EXPECT_EQ(optional.elements[0].kind, Argument::Kind::kValue);
  EXPECT_TRUE(optional.elements[1].constant.isNone());
  EXPECT_EQ(ReadOther({{"as_optional_tensor", {{"as_none", true}}}}).kind, Argument::Kind::kConstant);
  const Argument sizes = ReadOther({{"as_sym_ints", {{{"as_int", 2}}, {{"as_name", "x"}}}}});
  EXPECT_EQ(sizes.elements[0].constant.toInt(), 2);
  EXPECT_EQ(sizes.elements[1].name, "x");
  EXPECT_EQ(ReadOther({{"as_sym_bool", {{"as_bool", true}}}}).constant.toBool(), true);
  EXPECT_EQ(ReadOther({{"as_sym_float", {{"as_float", 0.5}}}}).constant.toDouble(), 0.5);
  EXPECT_EQ(ReadOther({{"as_nested_tensors", {{{{"name", "x"}}}, Json::array()}}}).elements[0].elements[0].name, "x");
  EXPECT_THAT(ReadOther({{"as_int_lists", {{1, 2}, {3}}}}).elements[1].constant.toIntVector(), ElementsAre(3));
  const Argument dict = ReadOther({{"as_string_to_argument", {{"k", {{"as_int", 1}}}}}});
  EXPECT_EQ(dict.kind, Argument::Kind::kDict);
  EXPECT_THAT(dict.keys, ElementsAre("k"));
}

TEST(Schema, NumbersOfEnumsAreTheSchemasOwn) {
  EXPECT_EQ(ReadOther({{"as_scalar_type", 12}}).constant.toInt(), static_cast<int64_t>(c10::ScalarType::Bool));
  EXPECT_EQ(ReadOther({{"as_scalar_type", 13}}).constant.toInt(), static_cast<int64_t>(c10::ScalarType::BFloat16));
  EXPECT_EQ(ReadOther({{"as_layout", 7}}).constant.toInt(), static_cast<int64_t>(c10::Layout::Strided));
  EXPECT_EQ(ReadOther({{"as_memory_format", 1}}).constant.toInt(), static_cast<int64_t>(c10::MemoryFormat::Contiguous));
  EXPECT_EQ(ReadOther({{"as_memory_format", 4}}).constant.toInt(), static_cast<int64_t>(c10::MemoryFormat::Preserve));
  for (const char* key : {"as_scalar_type", "as_layout", "as_memory_format"}) {
    for (const int number : {0, -1, 99}) {
      ExpectInvalid([&](ProgramParts& p) { Other(p) = {{key, number}}; }, "of the schema");
    }
  }
}

TEST(Schema, BareInfinitiesAreRead) {
  ProgramParts parts;
  Other(parts) = {{"as_float", "MARK"}};
  std::vector<ZipEntry> entries = parts.Entries();
  std::string& json = entries[4].content;
  json.replace(json.find("\"MARK\""), 6, "-Infinity");
  EXPECT_EQ(Read(WriteZip(entries)).graph.nodes[0].inputs[1].argument.constant.toDouble(),
            -std::numeric_limits<double>::infinity());
}

TEST(Schema, OldFilesDoNotSayHowArgumentsArePassed) {
  ProgramParts parts;
  for (Json& node : parts.program["graph_module"]["graph"]["nodes"]) {
    node.erase("name");
    node.erase("is_hop_single_tensor_return");
    for (Json& input : node["inputs"]) input.erase("kind");
  }
  parts.program.erase("guards_code");
  parts.program["torch_version"] = "<=2.4";
  const Program program = Read(parts);
  EXPECT_EQ(program.graph.nodes[0].inputs[0].pass, NamedArgument::Pass::kNotSaid);
  EXPECT_EQ(program.graph.nodes[0].name, "");
  EXPECT_EQ(program.torch_version, "");
}

TEST(Schema, GraphsWithinGraphsAreReadAndBounded) {
  ProgramParts parts;
  Json inner = {{"inputs", {{{"as_tensor", {{"name", "a"}}}}}},
                {"outputs", {{{"as_tensor", {{"name", "a"}}}}}},
                {"nodes", Json::array()},
                {"tensor_values", Json::object()},
                {"sym_int_values", Json::object()},
                {"sym_bool_values", Json::object()},
                {"is_single_tensor_return", true}};
  const Json argument = {{"as_graph", {{"name", "body"}, {"graph", inner}}}};
  const Argument read = ReadOther(argument);
  EXPECT_EQ(read.kind, Argument::Kind::kGraph);
  EXPECT_EQ(read.name, "body");
  EXPECT_TRUE(read.graph->is_single_tensor_return);
  // Names of the outer graph are no names of the inner one.
  ExpectInvalid(
      [&](ProgramParts& p) {
        Json other = argument;
        other["as_graph"]["graph"]["outputs"][0]["as_tensor"]["name"] = "x";
        Other(p) = other;
      },
      "uses x, which nothing before it makes");
  Json deep = argument;
  for (int k = 0; k < 100; ++k) {
    Json node = {{"target", "torch.ops.higher_order.cond"},
                 {"inputs", {{{"name", ""}, {"arg", deep}}}},
                 {"outputs", Json::array()},
                 {"metadata", Json::object()}};
    Json outer = inner;
    outer["nodes"].push_back(node);
    deep = {{"as_graph", {{"name", "body"}, {"graph", outer}}}};
  }
  ExpectInvalid([&](ProgramParts& p) { Other(p) = deep; }, "is nested more than 256 levels deep");
}

TEST(Schema, ValuesAreMadeBeforeTheyAreUsed) {
  ExpectInvalid(
      [](ProgramParts& p) {
        Other(p) = {{"as_tensor", {{"name", "add"}}}};
      },
      "node 0 (torch.ops.aten.mul.Tensor) uses add, which nothing before it makes");
  ExpectInvalid(
      [](ProgramParts& p) {
        p.program["graph_module"]["graph"]["outputs"][0]["as_tensor"]["name"] = "nothing";
        Signature(p)["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = "nothing";
      },
      "the output uses nothing, which");
}

TEST(Schema, TheSignatureFitsTheGraphTheStructuresAndTheTensors) {
  ExpectInvalid([](ProgramParts& p) { Signature(p)["input_specs"].erase(0); },
                "describes 2 inputs, and the graph has 3");
  ExpectInvalid([](ProgramParts& p) { Signature(p)["output_specs"] = Json::array(); }, "describes 0 outputs");
  ExpectInvalid([](ProgramParts& p) { std::swap(Signature(p)["input_specs"][0], Signature(p)["input_specs"][1]); },
                "input 0 is not the graph's");
  ExpectInvalid(
      [](ProgramParts& p) { Signature(p)["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = "mul"; },
      "output 0 is not the graph's");
  ExpectInvalid(
      [](ProgramParts& p) {
        Call(p)["in_spec"] = Call(p)["out_spec"];
        p.program["graph_module"]["graph"]["inputs"].erase(2);
        Signature(p)["input_specs"].erase(2);
        Other(p) = {{"as_int", 1}};
        Node(p, 0)["inputs"][0]["arg"] = {{"as_int", 1}};
      },
      "has 0 inputs that users give, and the structure of the arguments 1");
  ExpectInvalid([](ProgramParts& p) { Signature(p)["input_specs"][0]["parameter"]["parameter_name"] = "v"; },
                "takes the tensor v, which the archive does not hold");
  ExpectInvalid([](ProgramParts& p) { Signature(p)["input_specs"][0]["parameter"].erase("parameter_name"); },
                "has no \"parameter_name\"");
}

TEST(Schema, ConstantInputsKeepTheirValue) {
  ProgramParts parts;
  parts.program["graph_module"]["graph"]["inputs"].push_back({{"as_bool", true}});
  Signature(parts)["input_specs"].push_back({{"constant_input", {{"name", "flag"}, {"value", {{"as_bool", true}}}}}});
  Call(parts)["in_spec"] =
      R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
      R"({"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}])";
  const InputSpec spec = Read(parts).inputs[3];
  EXPECT_EQ(spec.kind, InputSpec::Kind::kConstantInput);
  EXPECT_EQ(spec.name, "flag");
  EXPECT_TRUE(spec.value.toBool());
}

TEST(Schema, MutationsNameWhatTheyWrite) {
  ProgramParts parts;
  parts.program["graph_module"]["graph"]["outputs"] = {{{"as_tensor", {{"name", "relu"}}}},
                                                       {{"as_tensor", {{"name", "add"}}}}};
  Signature(parts)["output_specs"] = {{{"buffer_mutation", {{"arg", {{"name", "relu"}}}, {"buffer_name", "b"}}}},
                                      {{"user_output", {{"arg", {{"as_tensor", {{"name", "add"}}}}}}}}};
  const Program program = Read(parts);
  EXPECT_EQ(program.outputs[0].kind, OutputSpec::Kind::kBufferMutation);
  EXPECT_EQ(program.outputs[0].name, "b");
}

TEST(Schema, RangesMayBeOpen) {
  ProgramParts parts;
  parts.program["range_constraints"] = {{"a", {{"min_val", nullptr}, {"max_val", 9223372036854775806}}},
                                        {"b", {{"min_val", "-Infinity"}, {"max_val", 7}}}};
  const Program program = Read(parts);
  EXPECT_EQ(program.ranges.at("a").min, std::nullopt);
  EXPECT_EQ(program.ranges.at("a").max, std::nullopt);
  EXPECT_EQ(program.ranges.at("b").max, 7);
}

TEST(Schema, WhatIsNotReadIsRefusedByName) {
  ExpectUnimplemented(
      [](ProgramParts& p) {
        Other(p) = {{"as_custom_obj", {{"name", "o"}, {"class_fqn", "my.Queue"}}}};
      },
      "custom object of class my.Queue");
  ExpectUnimplemented(
      [](ProgramParts& p) {
        p.program["graph_module"]["graph"]["custom_obj_values"] = {{"o", {{"name", "o"}, {"class_fqn", "my.Queue"}}}};
      },
      "custom object o");
  ExpectUnimplemented(
      [](ProgramParts& p) {
        Signature(p)["input_specs"][0] = {
            {"custom_obj", {{"arg", {{"name", "o"}, {"class_fqn", "my.Queue"}}}, {"custom_obj_name", "queue"}}}};
      },
      "custom object queue");
  ExpectUnimplemented(
      [](ProgramParts& p) { Node(p, 0)["target"] = "torch.ops.higher_order.triton_kernel_wrapper_functional"; },
      "Triton kernel");
}

// --------------------------------------------------------------------------------------------------------- structures

TreeSpec ReadOut(const std::string& spec) {
  ProgramParts parts;
  Call(parts)["out_spec"] = "[1, " + spec + "]";
  return Read(parts).out_spec;
}

std::string Container(const std::string& type, const Json& context, const std::string& children) {
  return "{\"type\": \"" + type + "\", \"context\": " + context.dump() + ", \"children_spec\": [" + children + "]}";
}

const char kLeaf[] = R"({"type": null, "context": null, "children_spec": []})";

TEST(TreeSpec, UnknownClassesAreNamedStructures) {
  const TreeSpec spec = ReadOut(Container("transformers.modeling_outputs.CausalLMOutput", "[\"logits\"]", kLeaf));
  EXPECT_EQ(spec.kind, TreeSpec::Kind::kOther);
  EXPECT_EQ(spec.type, "transformers.modeling_outputs.CausalLMOutput");
  ASSERT_EQ(spec.keys.size(), 1U);
  EXPECT_EQ(spec.keys[0].toStringRef(), "logits");
  // Dataclasses have as context the names of their fields, and of those that are None.
  EXPECT_EQ(ReadOut(Container("my.Data", "[[\"x\"], [\"y\"]]", kLeaf)).keys.at(0).toStringRef(), "x");
  for (const char* context : {"null", "3", "[1]", "[\"a\", \"b\"]", "no json", "{\"a\": 1}", ""}) {
    EXPECT_TRUE(ReadOut(Container("my.Data", context, kLeaf)).keys.empty()) << context;
  }
}

TEST(TreeSpec, BuiltInContainersAreKnown) {
  EXPECT_EQ(ReadOut(Container("builtins.list", "null", kLeaf)).kind, TreeSpec::Kind::kList);
  EXPECT_EQ(ReadOut(Container("collections.deque", "5", kLeaf)).kind, TreeSpec::Kind::kList);
  EXPECT_EQ(ReadOut(Container("collections.OrderedDict", "[3]", kLeaf)).keys.at(0).toInt(), 3);
  const TreeSpec spec = ReadOut(
      "{\"type\": \"collections.defaultdict\", \"context\": {\"default_factory_module\": \"builtins\", "
      "\"default_factory_name\": \"list\", \"dict_context\": [\"k\"]}, \"children_spec\": [" +
      std::string(kLeaf) + "]}");
  EXPECT_EQ(spec.kind, TreeSpec::Kind::kDict);
  EXPECT_EQ(spec.keys.at(0).toStringRef(), "k");
}

TEST(TreeSpec, NamedTuplesHaveTheirFields) {
  ProgramParts parts;
  parts.program["graph_module"]["treespec_namedtuple_fields"] = {{"my.Pair", {{"field_names", {"first"}}}}};
  Call(parts)["out_spec"] = "[1, " + Container("collections.namedtuple", "my.Pair", kLeaf) + "]";
  const TreeSpec spec = Read(parts).out_spec;
  EXPECT_EQ(spec.kind, TreeSpec::Kind::kNamedTuple);
  EXPECT_EQ(spec.type, "my.Pair");
  EXPECT_EQ(spec.keys.at(0).toStringRef(), "first");
}

TEST(TreeSpec, WhatIsMalformedIsRefused) {
  const auto refused = [](const std::string& spec) {
    return Refused([&](ProgramParts& parts) { Call(parts)["out_spec"] = spec; }).text;
  };
  EXPECT_THAT(refused("[2, " + std::string(kLeaf) + "]"), HasSubstr("protocol 2 is not known"));
  EXPECT_THAT(refused("[1]"), HasSubstr("a list of two"));
  EXPECT_THAT(refused("[1, {}]"), HasSubstr("children_spec"));
  EXPECT_THAT(refused("{"), HasSubstr("out_spec"));
  EXPECT_THAT(refused("[1, " + Container("builtins.dict", "[]", kLeaf) + "]"), HasSubstr("has keys"));
  EXPECT_THAT(refused("[1, " + Container("builtins.dict", "[null]", kLeaf) + "]"), HasSubstr("give it string keys"));
  std::string deep = kLeaf;
  for (int k = 0; k < 300; ++k) deep = Container("builtins.list", "null", deep);
  EXPECT_THAT(refused("[1, " + deep + "]"), HasSubstr("more than 256 levels"));
}

// ------------------------------------------------------------------------------------------------------------ tensors

TEST(Tensors, AreViewsOfTheirStorage) {
  ProgramParts parts;
  // w is the transpose of the storage's last four elements.
  Meta(parts, "w") = Meta(parts, "w");
  Meta(parts, "w")["sizes"] = {{{"as_int", 2}}, {{"as_int", 2}}};
  Meta(parts, "w")["strides"] = {{{"as_int", 1}}, {{"as_int", 2}}};
  Meta(parts, "w")["storage_offset"] = {{"as_int", 2}};
  const Program program = Read(parts);
  EXPECT_TRUE(program.state.at("w").equal(at::tensor({3., 5., -4., -6.}, at::kFloat).view({2, 2})));
}

TEST(Tensors, ThatAreTiedShareTheirStorage) {
  ProgramParts parts;
  parts.weights["config"]["tied"] = parts.weights["config"]["w"];
  const Program program = Read(parts);
  EXPECT_TRUE(program.state.at("w").is_alias_of(program.state.at("tied")));
  EXPECT_FALSE(program.state.at("w").is_alias_of(program.state.at("b")));
}

TEST(Tensors, LieWithinTheirStorage) {
  const auto change = [](const char* field, const Json& value) {
    return [=](ProgramParts& parts) { Meta(parts, "w")[field] = value; };
  };
  const auto two = [](int64_t a, int64_t b) { return Json({{{"as_int", a}}, {{"as_int", b}}}); };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ExpectInvalid(change("sizes", two(3, 3)),
                "w: shape [3, 3] with strides [3, 1] from element 0 takes 9 elements of 4 bytes");
  ExpectInvalid(change("strides", two(3, 2)), "takes 8 elements");
  ExpectInvalid(change("storage_offset", {{"as_int", 1}}), "takes 7 elements");
  ExpectInvalid(change("storage_offset", {{"as_int", -1}}), "before its storage");
  ExpectInvalid(change("storage_offset", {{"as_int", kMost}}), "too large");
  ExpectInvalid(change("sizes", two(-2, 3)), "negative size");
  ExpectInvalid(change("strides", two(-3, 1)), "negative stride");
  ExpectInvalid(change("strides", two(int64_t{1} << 40, 1)), "takes 1099511627779 elements");
  ExpectInvalid(change("strides", two(kMost, 1)), "too large");
  ExpectInvalid(change("strides", two(kMost, kMost)), "too large");
  ExpectInvalid(change("sizes", two(int64_t{1} << 32, int64_t{1} << 32)), "too large");
  ExpectInvalid(change("sizes", two(0, kMost)), "too large");
  ExpectInvalid(change("sizes", Json({{{"as_int", 2}}})), "has 1 sizes and 2 strides");
  ExpectInvalid(change("dtype", 8), "elements of 8 bytes");
  Json many = Json::array();
  for (int k = 0; k < 100; ++k) many.push_back({{"as_int", 1}});
  ExpectInvalid(
      [&](ProgramParts& parts) {
        Meta(parts, "w")["sizes"] = many;
        Meta(parts, "w")["strides"] = many;
      },
      "has 100 dimensions");
  ExpectInvalid(change("sizes", Json({{{"as_expr", {{"expr_str", "s0"}, {"hint", nullptr}}}}, {{"as_int", 3}}})),
                "symbolic size");
}

TEST(Tensors, MayBeEmpty) {
  ProgramParts parts;
  parts.weight = "";
  Meta(parts, "w")["sizes"] = {{{"as_int", 0}}, {{"as_int", 3}}};
  EXPECT_EQ(Read(parts).state.at("w").numel(), 0);
}

TEST(Tensors, OfTruthValuesHoldZerosAndOnes) {
  ProgramParts parts;
  Meta(parts, "w")["dtype"] = 12;
  parts.weight = std::string("\0\1\1\0\1\1", 6);
  EXPECT_EQ(Read(parts).state.at("w").sum().item<int64_t>(), 4);
  parts.weight[3] = 2;
  EXPECT_THAT(Refused(parts.Archive()).text, HasSubstr("truth value 2"));
}

TEST(Tensors, OfUnalignedEntriesAreCopied) {
  const std::string path = ::testing::TempDir() + "/unaligned.pt2";
  // Names of other lengths move what follows.
  for (const char* front : {"m/", "m/x", "m/xy", "m/xyz"}) {
    std::vector<ZipEntry> entries = ProgramParts().Entries();
    entries.insert(entries.begin(), {front, ""});
    for (ZipEntry& entry : entries) entry.alignment = 1;
    std::ofstream(path, std::ios::binary) << WriteZip(entries);
    const Program program = ReadProgram(path);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(program.state.at("w").data_ptr()) % 4, 0U);
    EXPECT_TRUE(program.state.at("b").equal(at::tensor({10., 20., 30.}, at::kFloat)));
  }
}

TEST(Tensors, ThatArePickledOrSparseAreRefusedByName) {
  ExpectUnimplemented([](ProgramParts& p) { p.weights["config"]["w"]["use_pickle"] = true; },
                      "w is a tensor of a class of its own, pickled into weight_0");
  ExpectUnimplemented(
      [](ProgramParts& p) {
        p.constants["config"]["q"] = {
            {"path_name", "custom_obj_0"}, {"is_param", false}, {"use_pickle", true}, {"tensor_meta", nullptr}};
      },
      "q is a custom object (custom_obj_0)");
  ExpectUnimplemented([](ProgramParts& p) { Meta(p, "w")["layout"] = 1; }, "sparse tensors");
  ExpectInvalid(
      [](ProgramParts& p) {
        p.constants["config"]["w"] = p.weights["config"]["w"];
        p.constants["config"]["w"]["path_name"] = "../weights/weight_0";
      },
      "has no entry data/constants/../weights/weight_0");
  ExpectInvalid([](ProgramParts& p) { p.weights["config"]["w"].erase("tensor_meta"); }, "has no \"tensor_meta\"");
}

TEST(Tensors, OfOneNameTwiceAreRefused) {
  std::vector<ZipEntry> entries = ProgramParts().Entries();
  entries.push_back({"m/data/constants/weight_0", ProgramParts().weight});
  entries[3].content = Json({{"config", {{"w", ProgramParts().weights["config"]["w"]}}}}).dump();
  EXPECT_THAT(Refused(WriteZip(entries)).text, HasSubstr("another tensor of that name"));
}

// ------------------------------------------------------------------------------------------------------- older
// archives

// An archive of torch 2.4 to 2.7, with what torch.save wrote.
std::vector<ZipEntry> OldEntries(const std::string& state) {
  ProgramParts parts;
  // Both tensors from one pickle would need a longer one.
  Signature(parts)["input_specs"][1]["buffer"]["buffer_name"] = "w";
  return {{"serialized_exported_program.json", parts.program.dump()},
          {"serialized_state_dict.pt", state},
          {"serialized_constants.pt", ""},
          {"version", "8.2"}};
}

std::string OldArchive(const std::string& pickle, const std::string& storage = ProgramParts().weight) {
  return WriteZip(OldEntries(SavedArchive(pickle, storage)));
}

TEST(OldPrograms, AreRead) {
  const Program program = Read(OldArchive(SavedPickle()));
  EXPECT_TRUE(program.state.at("w").equal(at::tensor({1., -2., 3., -4., 5., -6.}, at::kFloat).view({2, 3})));
}

TEST(OldPrograms, MayBeCompressed) {
  std::vector<ZipEntry> entries = OldEntries(SavedArchive(SavedPickle(), ProgramParts().weight));
  for (ZipEntry& entry : entries) entry.deflated = true;
  EXPECT_EQ(Read(WriteZip(entries)).state.at("w").numel(), 6);
}

TEST(OldPrograms, OfTorch28KeepTheirTensorsInFolders) {
  ProgramParts parts;
  Signature(parts)["input_specs"][1]["buffer"]["buffer_name"] = "w";
  std::vector<ZipEntry> entries = parts.Entries();
  entries.erase(entries.begin(), entries.begin() + 4);
  entries.push_back({"m/data/weights/model.pt", SavedArchive(SavedPickle(), parts.weight)});
  entries.push_back({"m/data/constants/model.pt", SavedArchive("\x80\x02}q" + std::string(1, '\0') + ".", "")});
  EXPECT_EQ(Read(WriteZip(entries)).state.at("w").numel(), 6);
}

TEST(OldPrograms, OfTorch21AreRefused) {
  const Refusal refusal =
      Refused(WriteZip({{"serialized_exported_program.json", "{}"}, {"serialized_state_dict.json", ""}}));
  EXPECT_EQ(refusal.code, absl::StatusCode::kUnimplemented);
  EXPECT_THAT(refusal.text, HasSubstr("torch 2.1"));
}

TEST(OldPrograms, PickledClassesAreRefusedByName) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string pickle = SavedPickle();
    pickle.replace(pickle.find(from), from.size(), to);
    return Refused(OldArchive(pickle));
  };
  Refusal refusal = refused("torch._utils\n_rebuild_tensor_v2", "os\nsystem");
  EXPECT_EQ(refusal.code, absl::StatusCode::kUnimplemented);
  EXPECT_THAT(refusal.text,
              AllOf(HasSubstr("serialized_state_dict.pt: data.pkl: pickles os system"), HasSubstr("never run")));
  EXPECT_THAT(refused("torch\nFloatStorage", "my\nStorage").text, HasSubstr("pickles my Storage"));
  EXPECT_THAT(refused("collections\nOrderedDict\n)R", "collections\nOrderedDict\nNR").text,
              HasSubstr("calls what is no function"));
  EXPECT_EQ(refused("Rs.", "0s.").code, absl::StatusCode::kInvalidArgument);
  const std::string function = "\x80\x02}X\x01" + std::string(3, '\0') + "wc__builtin__\neval\ns.";
  EXPECT_THAT(Refused(OldArchive(function)).text, HasSubstr("pickles w, which is no tensor but __builtin__ eval"));
}

TEST(OldPrograms, TensorsMayHaveAttributes) {
  const auto with_attributes = [](const std::string& type, const std::string& function) {
    std::string pickle = SavedPickle();
    const std::string plain = "ctorch._utils\n_rebuild_tensor_v2\n(";
    pickle.replace(pickle.find(plain), plain.size(),
                   "ctorch._tensor\n_rebuild_from_type_v2\n(c" + function + "\nc" + type + "\n(");
    // A dict with one attribute, which is true.
    pickle.replace(pickle.size() - 4, 4, "t}X\x04" + std::string(3, '\0') + "mark\x88stRs.");
    return OldArchive(pickle);
  };
  const std::string function = "torch._utils\n_rebuild_tensor_v2";
  EXPECT_EQ(Read(with_attributes("torch\nTensor", function)).state.at("w").numel(), 6);
  EXPECT_EQ(Read(with_attributes("torch.nn.parameter\nParameter", function)).state.at("w").numel(), 6);
  EXPECT_THAT(Refused(with_attributes("my\nTensor", function)).text, HasSubstr("pickles my Tensor"));
  EXPECT_THAT(Refused(with_attributes("torch\nTensor", "os\nsystem")).text, HasSubstr("pickles os system"));
  EXPECT_THAT(Refused(with_attributes("torch\nTensor", "torch._tensor\n_rebuild_from_type_v2")).text,
              HasSubstr("pickles torch._tensor _rebuild_from_type_v2"));
}

TEST(OldPrograms, PickledTensorsLieWithinTheirStorage) {
  EXPECT_THAT(Refused(OldArchive(SavedPickle(), ProgramParts().weight.substr(4))).text, HasSubstr("takes 6 elements"));
}

TEST(OldPrograms, EveryDamageOfAPickleIsRefusedOrRead) {
  const std::string pickle = SavedPickle();
  for (size_t k = 0; k < pickle.size(); ++k) {
    Refused(OldArchive(pickle.substr(0, k)));
    for (const int value : std::initializer_list<int>{0, 'R', 't', 's', '.', 0x86, 0xff}) {
      std::string damaged = pickle;
      damaged[k] = static_cast<char>(value);
      Refused(OldArchive(damaged));
    }
  }
}

TEST(OldPrograms, CyclesInAPickleAreNoHarm) {
  EXPECT_THAT(Refused(OldArchive("\x80\x02}q" + std::string(1, '\0') + "X\x01" + std::string(3, '\0') + "wh" +
                                 std::string(1, '\0') + "s."))
                  .text,
              HasSubstr("w, which is no tensor"));
}

}  // namespace
}  // namespace addend::exported
