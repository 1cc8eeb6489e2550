// ONNX models that are made ready and run: whatever a file asks for, each operator gives a result or one clear line,
// within limits of memory and of time.
//
// The first byte chooses as in onnx_fuzzer.cc. The models that are damaged have an operator or a few each, whose
// attributes and constants say how large, how far and how often: damage makes these hostile, and the structure too.
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/onnx/graph.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_testing.h"
#include "core/onnx/plan.h"
#include "core/onnx/run.h"
#include "core/onnx/to_tensor.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/onnx_damage.h"
#include "tests/fuzz/onnx_refusal.h"
#include "third_party/torch/warnings.h"

namespace addend::onnx {
namespace {

// ---------------------------------------------------------------------------------------------------- limits of a run

constexpr int64_t kMostTensorBytes = int64_t{32} << 20;
constexpr int64_t kMostFuzzedNodes = 300;
constexpr double kMostSeconds = 60;  // sanitizers and a busy machine are in it

std::atomic<int64_t> tensor_bytes{0};

// Gives the memory of tensors up to a limit, as a machine does that has no more.
class LimitedAllocator : public c10::Allocator {
 public:
  // One of these two is LibTorch's, by its version.
  c10::DataPtr allocate(size_t size) const { return Allocate(size); }
  c10::DataPtr allocate(size_t size) { return Allocate(size); }
  c10::DeleterFnPtr raw_deleter() const override { return Release; }
  void copy_data(void* to, const void* from, size_t size) const { std::memcpy(to, from, size); }

 private:
  static c10::DataPtr Allocate(size_t size) {
    void* memory = nullptr;
    if (size > 0) {
      TORCH_CHECK(size <= static_cast<size_t>(kMostTensorBytes - std::min(tensor_bytes.load(), kMostTensorBytes)),
                  "not enough memory: you tried to allocate ", size, " bytes.");
      TORCH_CHECK(posix_memalign(&memory, 64, size) == 0, "not enough memory");
      tensor_bytes += static_cast<int64_t>(malloc_usable_size(memory));
    }
    return {memory, memory, Release, c10::Device(c10::kCPU)};
  }
  static void Release(void* memory) {
    if (memory != nullptr) tensor_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
    std::free(memory);
  }
};

// ------------------------------------------------------------------------------------------------------------- models

using Attributes = std::vector<MessageWriter>;

std::vector<float> Ramp(size_t count) {
  std::vector<float> numbers(count);
  for (size_t k = 0; k < count; ++k) numbers[k] = 0.1F * static_cast<float>(k % 17) - 0.7F;
  return numbers;
}

MessageWriter Floats(const std::string& name, const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return FloatTensor(name, dims, Ramp(count));
}

MessageWriter Integers(const std::string& name, const std::vector<int64_t>& values) {
  return IntegerTensor(name, {static_cast<int64_t>(values.size())}, values);
}

MessageWriter TensorAttribute(const std::string& name, const MessageWriter& tensor) {
  return MessageWriter().Bytes(1, name).Message(5, tensor).Integer(20, 4);
}

constexpr int32_t kBool = 9;

MessageWriter Bytes8(const std::string& name, int32_t type, const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  std::vector<int64_t> values(count);
  for (size_t k = 0; k < count; ++k) values[k] = static_cast<int64_t>(k % (type == kBool ? 2 : 5));
  return TensorMessage(name, type, dims).PackedIntegers(5, values);
}

// A model of nodes that make y of x and of constants.
struct Seeds {
  std::vector<std::string> models;

  void Add(const std::vector<MessageWriter>& nodes, const std::vector<MessageWriter>& constants = {},
           const std::vector<int64_t>& dims = {1, 2, 6, 6}, int64_t opset = 21) {
    GraphParts parts;
    parts.nodes = nodes;
    parts.initializers = constants;
    parts.inputs = {ValueInfo("x", dims)};
    parts.outputs = {MessageWriter().Bytes(1, "y")};
    MessageWriter model;
    model.Integer(1, 8).Message(7, GraphMessage(parts)).Message(8, OperatorSet("", opset));
    models.push_back(model.Message(8, OperatorSet("com.microsoft", 1)).bytes());
  }

  // One node on x and the constants, in their order.
  void One(const std::string& op, const Attributes& attributes = {}, const std::vector<MessageWriter>& constants = {},
           const std::vector<int64_t>& dims = {1, 2, 6, 6}, int64_t opset = 21, const std::string& domain = "") {
    std::vector<std::string> inputs = {"x"};
    for (size_t k = 0; k < constants.size(); ++k) inputs.push_back(std::string(1, static_cast<char>('a' + k)));
    Add({With(NodeMessage(op, inputs, {"y"}, "n", domain), attributes)}, constants, dims, opset);
  }
};

Attributes Window() {
  return {IntsAttribute("kernel_shape", {3, 3}), IntsAttribute("pads", {1, 0, 0, 1}), IntsAttribute("strides", {2, 1}),
          IntsAttribute("dilations", {1, 2})};
}

void AddWindows(Seeds& seeds) {
  Attributes grouped = Window();
  grouped.push_back(IntAttribute("group", 2));
  seeds.One("Conv", Window(), {Floats("a", {3, 2, 3, 3}), Floats("b", {3})});
  seeds.One("Conv", grouped, {Floats("a", {4, 1, 3, 3})});
  seeds.One("Conv", {TextAttribute("auto_pad", "SAME_UPPER")}, {Floats("a", {3, 2, 3, 3})});
  seeds.One("ConvTranspose", Window(), {Floats("a", {2, 3, 3, 3})});
  seeds.One("ConvTranspose", {IntsAttribute("output_shape", {12, 12}), IntsAttribute("strides", {2, 2})},
            {Floats("a", {2, 3, 3, 3})});
  Attributes ceiled = Window();
  ceiled.push_back(IntAttribute("ceil_mode", 1));
  seeds.One("MaxPool", ceiled);
  seeds.One("AveragePool", {IntsAttribute("kernel_shape", {2, 3}), IntAttribute("count_include_pad", 1)});
  seeds.One("LpPool", {IntsAttribute("kernel_shape", {2, 2}), IntAttribute("p", 3)});
  seeds.One("GlobalMaxPool");
  seeds.One("LRN", {IntAttribute("size", 3), FloatAttribute("alpha", 0.1F)});
  seeds.One("Resize", {TextAttribute("mode", "cubic"), TextAttribute("coordinate_transformation_mode", "asymmetric")},
            {Floats("a", {0}), FloatTensor("b", {4}, {1, 1, 2, 0.5F})});
  seeds.One("Resize", {TextAttribute("mode", "linear"), IntAttribute("antialias", 1)},
            {Floats("a", {0}), Floats("b", {0}), Integers("c", {1, 2, 3, 9})});
  seeds.One("GridSample", {TextAttribute("mode", "linear")}, {Floats("a", {1, 3, 3, 2})});
  seeds.One("RoiAlign", {IntAttribute("output_height", 2), IntAttribute("sampling_ratio", 2)},
            {FloatTensor("a", {1, 4}, {0, 0, 3, 3}), Integers("b", {0})});
  seeds.One("DepthToSpace", {IntAttribute("blocksize", 1)});
  seeds.One("SpaceToDepth", {IntAttribute("blocksize", 2)});
  seeds.One("Col2Im", {}, {Integers("a", {5, 5}), Integers("b", {1, 5})}, {1, 5, 5});
  seeds.One("MaxUnpool", {IntsAttribute("kernel_shape", {2, 2}), IntsAttribute("strides", {2, 2})},
            {IntegerTensor("a", {1, 1, 1, 2}, {0, 3})}, {1, 1, 1, 2});
  seeds.One("DeformConv", {IntsAttribute("kernel_shape", {2, 2})},
            {Floats("a", {1, 2, 2, 2}), Floats("b", {1, 8, 5, 5})});
}

void AddShapes(Seeds& seeds) {
  seeds.One("Reshape", {IntAttribute("allowzero", 0)}, {Integers("a", {2, -1, 3})});
  seeds.One("Expand", {}, {Integers("a", {3, 1, 2, 1, 6})});
  seeds.One("Tile", {}, {Integers("a", {1, 2, 3, 1})});
  seeds.One("Slice", {},
            {Integers("a", {1, 5}), Integers("b", {9, -9}), Integers("c", {1, 2}), Integers("d", {1, -2})});
  seeds.One("Pad", {TextAttribute("mode", "reflect")}, {Integers("a", {0, 0, 1, 2, 0, 0, -1, 2})});
  seeds.One("Pad", {TextAttribute("mode", "wrap")},
            {Integers("a", {1, 2}), FloatTensor("b", {}, {0}), Integers("c", {3})});
  seeds.One("Transpose", {IntsAttribute("perm", {3, 0, 2, 1})});
  seeds.One("Squeeze", {}, {Integers("a", {0})});
  seeds.One("Unsqueeze", {}, {Integers("a", {0, 5})});
  seeds.One("Flatten", {IntAttribute("axis", 2)});
  seeds.One("Split", {IntAttribute("axis", 2)}, {Integers("a", {2, 4})});
  seeds.One("Concat", {IntAttribute("axis", 1)}, {Floats("a", {1, 3, 6, 6})});
  seeds.One("CenterCropPad", {IntsAttribute("axes", {2, 3})}, {Integers("a", {4, 9})});
  seeds.One("Trilu", {}, {IntegerTensor("a", {}, {1})});
  seeds.One("EyeLike", {IntAttribute("k", 1), IntAttribute("dtype", 11)}, {}, {3, 4});
  seeds.Add(
      {NodeMessage("Shape", {"x"}, {"s"}), NodeMessage("Gather", {"s", "two"}, {"n"}),
       NodeMessage("Range", {"zero", "n", "step"}, {"r"}),
       NodeMessage("Cast", {"r"}, {"f"}).Message(5, IntAttribute("to", 1)), NodeMessage("Add", {"x", "f"}, {"y"})},
      {IntegerTensor("two", {}, {2}), IntegerTensor("zero", {}, {0}), IntegerTensor("step", {}, {1})});
  seeds.Add(
      {NodeMessage("ConstantOfShape", {"sizes"}, {"c"}).Message(5, TensorAttribute("value", FloatTensor("", {1}, {2}))),
       NodeMessage("Add", {"x", "c"}, {"y"})},
      {Integers("sizes", {6, 6})});
  seeds.One("OneHot", {IntAttribute("axis", 1)}, {IntegerTensor("a", {}, {5}), FloatTensor("b", {2}, {0, 1})}, {4});
}

void AddIndexing(Seeds& seeds) {
  seeds.One("Gather", {IntAttribute("axis", 2)}, {IntegerTensor("a", {2, 2}, {0, 1, -1, 5})});
  seeds.One("GatherElements", {IntAttribute("axis", 1)}, {IntegerTensor("a", {1, 1, 1, 2}, {1, -2})});
  seeds.One("GatherND", {IntAttribute("batch_dims", 1)}, {IntegerTensor("a", {1, 2}, {1, 2})});
  for (const char* reduction : {"none", "mul", "max"}) {
    seeds.One("ScatterElements", {IntAttribute("axis", 3), TextAttribute("reduction", reduction)},
              {IntegerTensor("a", {1, 1, 1, 2}, {1, -2}), Floats("b", {1, 1, 1, 2})});
    seeds.One("ScatterND", {TextAttribute("reduction", reduction)},
              {IntegerTensor("a", {2, 2}, {0, 1, 0, 1}), Floats("b", {2, 6, 6})});
  }
  seeds.One("TopK", {IntAttribute("axis", 2), IntAttribute("largest", 0)}, {Integers("a", {2})});
  seeds.One("ArgMax", {IntAttribute("axis", 1), IntAttribute("select_last_index", 1)});
  seeds.One("Compress", {IntAttribute("axis", 1)}, {Bytes8("a", 9, {2})});
  seeds.One("NonZero");
  seeds.One("Unique", {IntAttribute("axis", 2)});
  seeds.One("ReverseSequence", {}, {Integers("a", {3, 1})}, {4, 2});
  seeds.One("CumSum", {IntAttribute("reverse", 1)}, {IntegerTensor("a", {}, {2})});
  seeds.One("NonMaxSuppression", {},
            {Floats("a", {1, 1, 4}), IntegerTensor("b", {1}, {3}), FloatTensor("c", {1}, {0.5F})}, {1, 4, 4});
  seeds.One("TensorScatter", {TextAttribute("mode", "circular")}, {Floats("a", {1, 2, 2, 6}), Integers("b", {3})},
            {1, 2, 6, 6}, 24);
}

void AddArithmetic(Seeds& seeds) {
  for (const char* op : {"Add", "Div", "Mod", "Pow", "Max", "Where"}) {
    if (std::string(op) == "Where") {
      seeds.Add({NodeMessage("Where", {"c", "x", "d"}, {"y"})}, {Bytes8("c", 9, {6}), Floats("d", {6})});
    } else {
      seeds.One(op, {}, {FloatTensor("a", {1}, {3})});
    }
  }
  // Integers, known and not.
  for (const char* op : {"Div", "Mod", "BitShift", "Pow"}) {
    const Attributes attributes =
        std::string(op) == "BitShift" ? Attributes{TextAttribute("direction", "LEFT")} : Attributes();
    const int64_t type = std::string(op) == "BitShift" ? 2 : 7;
    // Integers of 8 bits that are cast from an input stand for quantized numbers, which are not shifted.
    if (type != 2) {
      seeds.Add({NodeMessage("Cast", {"x"}, {"i"}).Message(5, IntAttribute("to", type)),
                 NodeMessage("Cast", {"k"}, {"j"}).Message(5, IntAttribute("to", type)),
                 With(NodeMessage(op, {"i", "j"}, {"q"}), attributes),
                 NodeMessage("Cast", {"q"}, {"y"}).Message(5, IntAttribute("to", 1))},
                {Integers("k", {1, 2, 3, 4, 5, 6})});
    }
    seeds.Add(
        {With(NodeMessage(op, {"k", "k"}, {"q"}), attributes),
         NodeMessage("Cast", {"q"}, {"f"}).Message(5, IntAttribute("to", 1)), NodeMessage("Add", {"x", "f"}, {"y"})},
        {Integers("k", {1, 2, 3, 4, 5, 6})});
  }
  seeds.One("Clip", {}, {FloatTensor("a", {}, {-1}), FloatTensor("b", {}, {1})});
  seeds.One("Gemm", {FloatAttribute("alpha", 2), IntAttribute("transB", 1)}, {Floats("a", {3, 6}), Floats("b", {3})},
            {4, 6});
  seeds.One("MatMul", {}, {Floats("a", {6, 3})});
  seeds.One("Einsum", {TextAttribute("equation", "...ij,jk->...ki")}, {Floats("a", {6, 3})});
  seeds.One("ReduceSum", {IntAttribute("keepdims", 0)}, {Integers("a", {1, -1})});
  seeds.One("ReduceLogSumExp", {IntAttribute("noop_with_empty_axes", 1)}, {Integers("a", {2})});
  seeds.One("Softmax", {IntAttribute("axis", 2)});
  seeds.One("LayerNormalization", {IntAttribute("axis", 2)}, {Floats("a", {6, 6}), Floats("b", {6, 6})});
  seeds.One("GroupNormalization", {IntAttribute("num_groups", 2)}, {Floats("a", {2}), Floats("b", {2})});
  seeds.One("BatchNormalization", {FloatAttribute("epsilon", 0.1F)},
            {Floats("a", {2}), Floats("b", {2}), Floats("c", {2}), FloatTensor("d", {2}, {1, 2})});
  seeds.One("InstanceNormalization", {}, {Floats("a", {2}), Floats("b", {2})});
  seeds.One("PRelu", {}, {Floats("a", {2, 1, 1})});
  seeds.One("DFT", {IntAttribute("onesided", 1)}, {IntegerTensor("a", {}, {7}), IntegerTensor("b", {}, {1})},
            {1, 8, 1});
  seeds.One("STFT", {}, {IntegerTensor("a", {}, {2}), Floats("b", {4})}, {1, 12, 1});
  seeds.Add({NodeMessage("HannWindow", {"n"}, {"w"}), NodeMessage("Add", {"x", "w"}, {"y"})},
            {IntegerTensor("n", {}, {6})});
  seeds.Add(
      {NodeMessage("MelWeightMatrix", {"m", "n", "r", "l", "h"}, {"w"}), NodeMessage("MatMul", {"x", "w"}, {"y"})},
      {IntegerTensor("m", {}, {3}), IntegerTensor("n", {}, {10}), IntegerTensor("r", {}, {8000}),
       FloatTensor("l", {}, {0}), FloatTensor("h", {}, {4000})});
  seeds.Add({With(NodeMessage("RandomNormalLike", {"x"}, {"r"}), {FloatAttribute("seed", 1)}),
             NodeMessage("Add", {"x", "r"}, {"y"})});
}

void AddNetworks(Seeds& seeds) {
  const std::vector<std::pair<const char*, int64_t>> nets = {{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}};
  for (const auto& [op, gates] : nets) {
    seeds.One(op, {IntAttribute("hidden_size", 2)}, {Floats("a", {1, gates * 2, 3}), Floats("b", {1, gates * 2, 2})},
              {4, 2, 3});
    seeds.One(op, {IntAttribute("hidden_size", 2), TextAttribute("direction", "bidirectional")},
              {Floats("a", {2, gates * 2, 3}), Floats("b", {2, gates * 2, 2}), Floats("c", {2, gates * 4}),
               TensorMessage("d", 6, {2}).PackedIntegers(5, {4, 2})},
              {4, 2, 3});
  }
  seeds.One("Attention",
            {IntAttribute("q_num_heads", 2), IntAttribute("kv_num_heads", 2), IntAttribute("is_causal", 1)},
            {Floats("a", {1, 4, 6}), Floats("b", {1, 4, 6})}, {1, 3, 6}, 23);
  seeds.One("RotaryEmbedding", {IntAttribute("num_heads", 2)}, {Floats("a", {1, 3, 2}), Floats("b", {1, 3, 2})},
            {1, 3, 8}, 23);
  seeds.One("MultiHeadAttention", {IntAttribute("num_heads", 2)}, {Floats("a", {1, 4, 6}), Floats("b", {1, 4, 6})},
            {1, 3, 6}, 21, "com.microsoft");
  seeds.One("SkipLayerNormalization", {FloatAttribute("epsilon", 0.1F)}, {Floats("a", {1, 3, 6}), Floats("b", {6})},
            {1, 3, 6}, 21, "com.microsoft");
  seeds.One("FusedMatMul", {IntAttribute("transB", 1), FloatAttribute("alpha", 0.5F)}, {Floats("a", {3, 6})}, {4, 6},
            21, "com.microsoft");
  // Quantized constants.
  seeds.Add({With(NodeMessage("DequantizeLinear", {"q", "s", "z"}, {"w"}), {IntAttribute("axis", 1)}),
             NodeMessage("MatMul", {"x", "w"}, {"y"})},
            {Bytes8("q", 3, {6, 3}), Floats("s", {3}), Bytes8("z", 3, {3})});
  seeds.Add({With(NodeMessage("DequantizeLinear", {"q", "s"}, {"w"}),
                  {IntAttribute("axis", 0), IntAttribute("block_size", 2)}),
             NodeMessage("MatMul", {"x", "w"}, {"y"})},
            {Bytes8("q", 3, {6, 3}), Floats("s", {3, 3})});
  seeds.Add({NodeMessage("QuantizeLinear", {"f", "s", "z"}, {"q"}),
             NodeMessage("DequantizeLinear", {"q", "s", "z"}, {"w"}), NodeMessage("Add", {"x", "w"}, {"y"})},
            {Floats("f", {6}), FloatTensor("s", {}, {0.1F}), TensorMessage("z", 22, {}).PackedIntegers(5, {1})});
  seeds.Add(
      {NodeMessage("MatMulInteger", {"p", "q"}, {"i"}),
       NodeMessage("Cast", {"i"}, {"w"}).Message(5, IntAttribute("to", 1)), NodeMessage("MatMul", {"x", "w"}, {"y"})},
      {Bytes8("p", 3, {6, 4}), Bytes8("q", 2, {4, 3})});
}

// Graphs inside of nodes, functions, sequences.
void AddControlFlow(Seeds& seeds) {
  GraphParts yes, no, turn, scan;
  yes.nodes = {NodeMessage("Mul", {"x", "w"}, {"t"})};
  yes.outputs = {ValueInfo("t", {-1})};
  no.nodes = {NodeMessage("Neg", {"x"}, {"e"})};
  no.outputs = {ValueInfo("e", {-1})};
  seeds.Add({With(NodeMessage("If", {"c"}, {"y"}),
                  {GraphAttribute("then_branch", GraphMessage(yes)), GraphAttribute("else_branch", GraphMessage(no))})},
            {Floats("w", {6}), Bytes8("c", 9, {1})});
  turn.nodes = {NodeMessage("Mul", {"state", "w"}, {"next"}), NodeMessage("Identity", {"next"}, {"row"}),
                NodeMessage("Identity", {"condition"}, {"goes_on"})};
  turn.inputs = {ValueInfo("k", {}), ValueInfo("condition", {}), ValueInfo("state", {-1})};
  turn.outputs = {ValueInfo("goes_on", {}), ValueInfo("next", {-1}), ValueInfo("row", {-1})};
  seeds.Add({With(NodeMessage("Loop", {"m", "", "x"}, {"last", "rows"}), {GraphAttribute("body", GraphMessage(turn))}),
             NodeMessage("ReduceSum", {"rows", "axes"}, {"y"})},
            {Floats("w", {6}), IntegerTensor("m", {}, {3}), Integers("axes", {0})});
  scan.nodes = {NodeMessage("Add", {"state", "row"}, {"next"}), NodeMessage("Relu", {"next"}, {"out"})};
  scan.inputs = {ValueInfo("state", {-1}), ValueInfo("row", {-1})};
  scan.outputs = {ValueInfo("next", {-1}), ValueInfo("out", {-1})};
  seeds.Add({With(NodeMessage("Scan", {"w", "x"}, {"last", "y"}),
                  {GraphAttribute("body", GraphMessage(scan)), IntAttribute("num_scan_inputs", 1),
                   IntsAttribute("scan_input_axes", {1}), IntsAttribute("scan_input_directions", {1})})},
            {Floats("w", {1, 6, 6})});
  seeds.Add({With(NodeMessage("SplitToSequence", {"x", "sizes"}, {"s"}), {IntAttribute("axis", 2)}),
             NodeMessage("SequenceInsert", {"s", "x", "at"}, {"t"}), NodeMessage("SequenceErase", {"t", "at"}, {"u"}),
             With(NodeMessage("ConcatFromSequence", {"u"}, {"y"}), {IntAttribute("axis", 2)})},
            {Integers("sizes", {2, 4}), IntegerTensor("at", {}, {1})});
  seeds.models.push_back(SmallModel());
}

const std::vector<std::string>& AllSeeds() {
  static const auto& models = *new std::vector<std::string>([] {
    Seeds seeds;
    AddWindows(seeds);
    AddShapes(seeds);
    AddIndexing(seeds);
    AddArithmetic(seeds);
    AddNetworks(seeds);
    AddControlFlow(seeds);
    return std::move(seeds.models);
  }());
  return models;
}

// ---------------------------------------------------------------------------------------------------------------- runs

// An input as its type says, with unknown sizes of three; undefined where that would be large, or is no tensor.
at::Tensor InputOf(const Value& value) {
  if (value.type == nullptr || value.type->kind != TypeProto::Kind::kTensor) return {};
  const auto type = ScalarTypeOf(value.type->data_type);
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (const Dimension& dimension : value.type->dims) {
    if (dimension.value > 64 || count > 4096) return {};
    sizes.push_back(dimension.value < 0 ? 3 : dimension.value);
    count *= std::max<int64_t>(sizes.back(), 1);
  }
  if (!type) return {};
  return at::sub(at::remainder(at::mul(at::arange(count, at::kDouble), 0.37), 4), 1.5)
      .slice(0, 0, c10::multiply_integers(sizes))
      .reshape(sizes)
      .to(*type);
}

void MakeAndRun(std::string& text) {
  weights::Bytes view;
  view.data = text.data();
  view.size = text.size();
  const auto plan = MakePlan(CheckModel(ReadModelProto(view, "m.onnx")), ExternalFiles());
  const Placement placement;
  std::vector<Datum> inputs;
  for (const int number : plan->body.body->graph.inputs) {
    const at::Tensor input = InputOf(plan->body.body->values[static_cast<size_t>(number)]);
    inputs.push_back(input.defined() ? Datum::Of(input, Descent::kContent) : Datum());
  }
  RunPlan(*plan, ConstantsOf(*plan, placement, /*copy=*/false), placement, std::move(inputs), kMostFuzzedNodes);
}

// True when a model gives results, or says clearly why not.
bool IsWell(std::string& text) {
  try {
    MakeAndRun(text);
  } catch (const Error& e) {
    return IsClearRefusal(e);
  }
  return true;
}

// Limits what runs may take. Ends the program where a model that nothing has damaged does not run: damage would then
// reach nothing.
void Begin() {
  c10::SetAllocator(c10::kCPU, new LimitedAllocator(), /*priority=*/1);
  bool all_run = true;
  for (std::string seed : AllSeeds()) {
    try {
      MakeAndRun(seed);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "a model that is not damaged: %s\n", e.what());
      all_run = false;
    }
  }
  if (!all_run) std::exit(1);
}

}  // namespace
}  // namespace addend::onnx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace addend::onnx;  // NOLINT
  const c10::AutoGradMode no_grad(false);
  const addend::WarningsTo nowhere([](const std::string&) {});
  static const bool has_begun = (Begin(), true);
  static_cast<void>(has_begun);
  addend::Bytes bytes(data, size);
  std::string text = DrawModel(bytes, AllSeeds());
  const auto start = std::chrono::steady_clock::now();
  const bool well = IsWell(text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (seconds > kMostSeconds) {
    std::fprintf(stderr, "took %.0f s\n", seconds);
    return -1;
  }
  return well ? 0 : -1;
}
