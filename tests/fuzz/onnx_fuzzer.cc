// ONNX models: whatever a file holds, it is read or refused with one clear line, and reading it takes no more memory
// than four times its size and 64 MiB.
//
// The first byte chooses. Odd: what follows is a file. Even: a file is made of a known model, and what follows says
// which of its fields become something hostile; lengths are made anew, so that damage reaches what is behind them.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/onnx/graph.h"
#include "core/onnx/model_proto.h"
#include "core/onnx/onnx_testing.h"
#include "core/onnx/tensor_data.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/memory.h"
#include "tests/fuzz/onnx_damage.h"
#include "tests/fuzz/onnx_refusal.h"

namespace addend::onnx {
namespace {

// ------------------------------------------------------------------------------------------------------- known models

constexpr int32_t kAllTypes = 28;

// Tensors of all types, in raw_data or typed fields.
std::vector<MessageWriter> AllTensors() {
  std::vector<MessageWriter> tensors;
  for (int32_t type = 1; type <= kAllTypes; ++type) {
    const std::string name = "t" + std::to_string(type);
    if (type != 8) {
      const auto size = static_cast<size_t>(4 * BitsOf(static_cast<DataType>(type)) / 8);
      tensors.push_back(TensorMessage(name, type, {2, 2}).Bytes(9, std::string(size, '\1')));
    }
  }
  tensors.push_back(TensorMessage("floats", 1, {2}).PackedFloats(4, {1, 2}));
  tensors.push_back(TensorMessage("apart", 1, {2}).Float(4, 1).Float(4, 2));
  tensors.push_back(TensorMessage("halves", 10, {3}).PackedIntegers(5, {0x3c00, 0, 0xbc00}));
  tensors.push_back(TensorMessage("fours", 22, {3}).PackedIntegers(5, {0x21, 3}));
  tensors.push_back(TensorMessage("sixes", 27, {5}).PackedIntegers(5, {1, 2, 3, 4, 5}));
  tensors.push_back(TensorMessage("integers", 7, {2}).Integer(7, 1).Integer(7, -1));
  tensors.push_back(TensorMessage("unsigned", 12, {2}).PackedIntegers(11, {1, 2}));
  tensors.push_back(TensorMessage("doubles", 11, {2}).PackedDoubles(10, {1, 2}));
  tensors.push_back(TensorMessage("strings", 8, {2}).Bytes(6, "a").Bytes(6, "b"));
  tensors.push_back(ExternalTensor("external", 1, {4}, {"location", "weights", "offset", "16", "length", "16"}));
  return tensors;
}

MessageWriter Branch(const std::string& in, const std::string& out) {
  GraphParts parts;
  parts.nodes = {NodeMessage("Relu", {in}, {out})};
  parts.outputs = {ValueInfo(out, {-1})};
  return GraphMessage(parts, "branch");
}

MessageWriter FunctionMessage(const std::string& name, const MessageWriter& node) {
  return MessageWriter()
      .Bytes(1, name)
      .Bytes(10, "mine")
      .Bytes(4, "a")
      .Bytes(5, "b")
      .Bytes(6, "alpha")
      .Message(11, IntAttribute("beta", 1))
      .Message(7, node)
      .Message(9, OperatorSet("", 18))
      .Message(9, OperatorSet("mine", 1));
}

std::string RichModel() {
  const MessageWriter type =
      MessageWriter().Message(4, MessageWriter().Message(1, MessageWriter().Message(1, MessageWriter().Integer(1, 1))));
  MessageWriter all = NodeMessage("All", {"x"}, {"all"}, "/m/all");
  all.Message(5, MessageWriter().Bytes(1, "f").Float(2, 1).Integer(20, 1));
  all.Message(5, MessageWriter().Bytes(1, "s").Bytes(4, "text").Integer(20, 3));
  all.Message(5, MessageWriter().Bytes(1, "t").Message(5, FloatTensor("", {1}, {1})).Integer(20, 4));
  all.Message(5, MessageWriter().Bytes(1, "fs").PackedFloats(7, {1, 2}).Integer(20, 6));
  all.Message(5, MessageWriter().Bytes(1, "is").PackedIntegers(8, {1, -2}).Integer(20, 7));
  all.Message(5, MessageWriter().Bytes(1, "ss").Bytes(9, "a").Bytes(9, "b").Integer(20, 8));
  all.Message(5, MessageWriter().Bytes(1, "ts").Message(10, FloatTensor("", {1}, {1})).Integer(20, 9));
  all.Message(5, MessageWriter().Bytes(1, "gs").Message(11, Branch("x", "inner")).Integer(20, 10));
  all.Message(5, MessageWriter().Bytes(1, "tp").Message(14, type).Integer(20, 13));
  all.Message(9, EntryMessage("namespace", "m"));
  GraphParts parts;
  parts.nodes = {all,
                 NodeMessage("If", {"x"}, {"y"}, "choice")
                     .Message(5, GraphAttribute("then_branch", Branch("x", "then")))
                     .Message(5, GraphAttribute("else_branch", Branch("all", "else"))),
                 NodeMessage("F", {"y"}, {"z"}, "call", "mine").Message(5, IntAttribute("alpha", 1))};
  parts.initializers = AllTensors();
  parts.inputs = {ValueInfo("x", {-1, 3}), ValueInfo("t1", {2, 2})};
  parts.outputs = {ValueInfo("z", {-1})};
  MessageWriter graph = GraphMessage(parts, "rich");
  graph.Message(13, ValueInfo("all", {1}));
  graph.Message(14, MessageWriter().Bytes(1, "x").Message(2, EntryMessage("SCALE_TENSOR", "t1")));
  const MessageWriter reference = MessageWriter().Bytes(1, "alpha").Bytes(21, "alpha").Integer(20, 2);
  MessageWriter model =
      ModelMessage(graph, {FunctionMessage("F", NodeMessage("G", {"a"}, {"b"}, "", "mine").Message(5, reference)),
                           FunctionMessage("G", NodeMessage("Relu", {"a"}, {"b"}))});
  model.Message(8, OperatorSet("mine", 1)).Message(14, EntryMessage("k", "v"));
  return model.bytes();
}

std::string Draw(Bytes& bytes) {
  static const auto& seeds = *new std::vector<std::string>{SmallModel(), RichModel(), RichModel()};
  return DrawModel(bytes, seeds);
}

// ------------------------------------------------------------------------------------------------------- what is read

// A folder with a file of weights in it, beside which models lie.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / ("onnx_fuzzer_" + std::to_string(::getpid()))).string()) {
    std::filesystem::create_directories(path_);
    std::ofstream(path_ + "/weights") << std::string(kWeights, 'w');
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string Model() const { return path_ + "/m.onnx"; }

  static constexpr size_t kWeights = 4096;

 private:
  std::string path_;
};

// Finds the elements of all tensors of a graph, also in graphs inside, and touches them.
void Touch(const GraphProto& graph, const ModelProto& model, ExternalFiles* files, std::vector<TensorData>* found);

void Touch(const TensorProto& tensor, const ModelProto& model, ExternalFiles* files, std::vector<TensorData>* found) {
  model.file->budget.Take(3 * sizeof(TensorData) + tensor.dims.size() * sizeof(int64_t));
  TensorData data = ReadTensorData(tensor, model, files);
  unsigned sum = 0;
  for (size_t k = 0; k < data.bytes.size; ++k) sum += static_cast<unsigned char>(data.bytes.data[k]);
  data.strings.ForEachBytes([&](absl::string_view text) { sum += static_cast<unsigned>(text.size()); });
  if (sum == 0xffffffff) std::abort();  // so that nothing is left out
  Unpacked(data, &model.file->budget);
  found->push_back(std::move(data));
}

void Touch(const std::vector<NodeProto>& nodes, const ModelProto& model, ExternalFiles* files,
           std::vector<TensorData>* found) {
  for (const NodeProto& node : nodes) {
    for (const AttributeProto& attribute : node.attributes) {
      if (attribute.type == AttributeType::kInts) attribute.list.Integers();
      if (attribute.type == AttributeType::kFloats) attribute.list.Floats();
      if (attribute.type == AttributeType::kStrings) attribute.list.Texts();
      for (const TensorProto& tensor : attribute.tensors()) Touch(tensor, model, files, found);
      for (const GraphProto& graph : attribute.graphs()) Touch(graph, model, files, found);
    }
  }
}

void Touch(const GraphProto& graph, const ModelProto& model, ExternalFiles* files, std::vector<TensorData>* found) {
  for (const TensorProto& tensor : graph.initializers) Touch(tensor, model, files, found);
  Touch(graph.nodes, model, files, found);
}

// Reads a model as far as it goes: its elements are found also where its graph is refused. True when all is well.
bool Read(std::string& text, const std::string& path) {
  weights::Bytes view;
  view.data = text.data();
  view.size = text.size();
  try {
    const ModelProto model = ReadModelProto(view, "m.onnx");
    ExternalFiles files(path);
    std::vector<TensorData> found;
    Touch(model.graph, model, &files, &found);
    for (const FunctionProto& function : model.functions) Touch(function.nodes, model, &files, &found);
  } catch (const Error& e) {
    if (!IsClearRefusal(e)) return false;
  }
  try {
    CheckModel(ReadModelProto(view, "m.onnx"));
  } catch (const Error& e) {
    return IsClearRefusal(e);
  }
  return true;
}

}  // namespace
}  // namespace addend::onnx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using addend::onnx::Folder;
  static const Folder folder;
  static const auto& path = *new std::string(folder.Model());
  addend::Bytes bytes(data, size);
  std::string text = addend::onnx::Draw(bytes);
  const int64_t before = live_bytes;
  most_bytes = before;
  const bool clear = addend::onnx::Read(text, path);
  const int64_t taken = most_bytes - before;
  const int64_t allowed = 4 * static_cast<int64_t>(text.size() + Folder::kWeights) + (int64_t{64} << 20);
  if (taken > allowed) {
    std::fprintf(stderr, "took %lld bytes for %zu\n", static_cast<long long>(taken), text.size());
    return -1;
  }
  return clear ? 0 : -1;
}
