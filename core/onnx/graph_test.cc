#include "core/onnx/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Reads a model from a copy of its bytes, which it keeps.
ModelProto Proto(const std::string& bytes) {
  const auto kept = std::make_shared<std::string>(bytes);
  weights::Bytes view;
  view.data = kept->data();
  view.size = kept->size();
  view.owner = kept;
  return ReadModelProto(std::move(view), "m.onnx");
}

std::string Refusal(const MessageWriter& model) {
  return MessageOf([&] { CheckModel(Proto(model.bytes())); });
}
std::string Refusal(const GraphParts& parts) { return Refusal(ModelMessage(GraphMessage(parts, "main"))); }

// A graph of nodes from x to y.
GraphParts Nodes(const std::vector<MessageWriter>& nodes) {
  GraphParts parts;
  parts.nodes = nodes;
  parts.inputs = {ValueInfo("x", {1})};
  parts.outputs = {ValueInfo("y", {1})};
  return parts;
}

// A node with two graphs, as If has them.
MessageWriter If(const GraphParts& then_branch, const GraphParts& else_branch,
                 const std::vector<std::string>& outputs) {
  return NodeMessage("If", {"x"}, outputs, "choice")
      .Message(5, GraphAttribute("then_branch", GraphMessage(then_branch, "then")))
      .Message(5, GraphAttribute("else_branch", GraphMessage(else_branch, "else")));
}

// A branch that makes `out` of `in` by one node.
GraphParts Branch(const std::string& in, const std::string& out) {
  GraphParts parts;
  parts.nodes = {NodeMessage("Relu", {in}, {out})};
  parts.outputs = {ValueInfo(out, {1})};
  return parts;
}

MessageWriter FunctionMessage(const std::string& name, const std::vector<MessageWriter>& nodes,
                              const std::string& domain = "mine") {
  MessageWriter function;
  function.Bytes(1, name).Bytes(10, domain).Bytes(4, "a").Bytes(5, "b");
  for (const MessageWriter& node : nodes) function.Message(7, node);
  function.Message(9, OperatorSet("", 18)).Message(9, OperatorSet("mine", 1));
  return function;
}

MessageWriter Call(const std::string& name, const std::string& in, const std::string& out) {
  return NodeMessage(name, {in}, {out}, "call " + name, "mine");
}

std::vector<std::string> NamesOf(const Body& body, const std::vector<int>& values) {
  std::vector<std::string> names;
  for (const int value : values) {
    names.emplace_back(value == kNoValue ? "-" : std::string(body.values[static_cast<size_t>(value)].name));
  }
  return names;
}

TEST(CheckModel, ResolvesNames) {
  const std::string bytes = SmallModel();
  const CheckedModel model = CheckModel(Proto(bytes));
  const Body& body = model.body;
  EXPECT_THAT(NamesOf(body, body.graph.inputs), ElementsAre("x"));
  EXPECT_THAT(NamesOf(body, body.graph.outputs), ElementsAre("y"));
  ASSERT_EQ(body.graph.operators.size(), 3U);
  const Operator& product = body.graph.operators[0];
  EXPECT_EQ(product.node->op_type, "MatMul");
  EXPECT_EQ(product.domain, "");
  EXPECT_EQ(product.version, 17);
  EXPECT_EQ(product.function, -1);
  EXPECT_THAT(NamesOf(body, product.inputs), ElementsAre("x", "w"));
  EXPECT_THAT(NamesOf(body, product.outputs), ElementsAre("/m/product"));
  ASSERT_EQ(body.graph.initializers.size(), 2U);
  EXPECT_EQ(body.graph.initializers[0].value, product.inputs[1]);
  EXPECT_EQ(body.graph.initializers[0].tensor->name, "w");
  // Values know what the file tells of them.
  const auto type = [&](int value) { return body.values[static_cast<size_t>(value)].type; };
  ASSERT_NE(type(body.graph.inputs[0]), nullptr);
  EXPECT_EQ(type(body.graph.inputs[0])->dims.size(), 2U);
  EXPECT_NE(type(body.graph.outputs[0]), nullptr);
  EXPECT_EQ(type(product.outputs[0]), nullptr);
  EXPECT_EQ(model.num_nodes, 3);
  EXPECT_THAT(model.notes, IsEmpty());
}

TEST(CheckModel, LeavesOutWhatIsOptional) {
  const CheckedModel model =
      CheckModel(Proto(ModelMessage(GraphMessage(Nodes({NodeMessage("Clip", {"x", "", "x"}, {"", "y"})}))).bytes()));
  const Operator& op = model.body.graph.operators[0];
  EXPECT_THAT(NamesOf(model.body, op.inputs), ElementsAre("x", "-", "x"));
  EXPECT_THAT(NamesOf(model.body, op.outputs), ElementsAre("-", "y"));
}

TEST(CheckModel, RefusesNamesThatAreGivenTwice) {
  const auto twice = HasSubstr("as a value of the same graph is; each name may be given once");
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Relu", {"x"}, {"y"}, "first"), NodeMessage("Abs", {"x"}, {"y"}, "second")})),
              HasSubstr("m.onnx: an output of node second (Abs) is named y, as a value of the same graph is"));
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Split", {"x"}, {"y", "y"})})), twice);
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Relu", {"x"}, {"x"})})), twice);
  GraphParts parts = SmallGraph();
  parts.initializers.push_back(parts.initializers[0]);
  EXPECT_THAT(Refusal(parts), HasSubstr("an initializer of the graph main is named w, as a value of the same graph"));
  parts = SmallGraph();
  parts.inputs.push_back(parts.inputs[0]);
  EXPECT_THAT(Refusal(parts), HasSubstr("an input of the graph main is named x, as a value of the same graph"));
  parts = SmallGraph();
  parts.nodes.push_back(NodeMessage("Relu", {"x"}, {"w"}));
  EXPECT_THAT(Refusal(parts), HasSubstr("an output of the node that makes w (Relu) is named w"));
}

TEST(CheckModel, RefusesNamesThatNothingMakes) {
  EXPECT_EQ(Refusal(Nodes({NodeMessage("Relu", {"q"}, {"y"}, "n")})),
            "m.onnx: node n (Relu) reads q, which nothing before it makes; the nodes of a graph stand in the order in "
            "which they run, and do not form cycles");
  // A cycle, and nodes in another order.
  const auto unmade = HasSubstr("which nothing before it makes");
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Relu", {"b"}, {"a"}), NodeMessage("Add", {"a", "x"}, {"b"}),
                             NodeMessage("Relu", {"x"}, {"y"})})),
              unmade);
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Relu", {"y"}, {"y"})})), unmade);
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Relu", {"a"}, {"y"}), NodeMessage("Relu", {"x"}, {"a"})})), unmade);
  EXPECT_EQ(Refusal(Nodes({NodeMessage("Relu", {"x"}, {"z"})})),
            "m.onnx: the output y of the graph main is made by no node");
}

TEST(CheckModel, RefusesValuesWithoutAName) {
  GraphParts parts = SmallGraph();
  parts.inputs.push_back(ValueInfo("", {1}));
  EXPECT_THAT(Refusal(parts), HasSubstr("an input of the graph main has no name"));
  parts = SmallGraph();
  parts.outputs.push_back(ValueInfo("", {1}));
  EXPECT_THAT(Refusal(parts), HasSubstr("an output of the graph main has no name"));
  parts = SmallGraph();
  parts.initializers.push_back(FloatTensor("", {1}, {1}));
  EXPECT_THAT(Refusal(parts), HasSubstr("an initializer of the graph main has no name"));
  parts = SmallGraph();
  parts.outputs.clear();
  EXPECT_THAT(Refusal(parts), HasSubstr("the model has no outputs"));
}

TEST(CheckModel, AnInitializerThatIsAnInputKeepsItsValue) {
  GraphParts parts = SmallGraph();
  parts.inputs.push_back(ValueInfo("w", {3, 2}));
  for (const int64_t ir_version : {3, 8}) {
    const CheckedModel model = CheckModel(Proto(ModelMessage(GraphMessage(parts), {}, ir_version).bytes()));
    EXPECT_THAT(NamesOf(model.body, model.body.graph.inputs), ElementsAre("x"));
    EXPECT_EQ(model.body.graph.initializers.size(), 2U);
    EXPECT_NE(model.body.values[static_cast<size_t>(model.body.graph.initializers[0].value)].type, nullptr);
    // Before version 4 every initializer had to be an input.
    if (ir_version < 4) {
      EXPECT_THAT(model.notes, IsEmpty());
    } else {
      EXPECT_THAT(model.notes, ElementsAre("the inputs w have values in the model's file, and keep them: they are no "
                                           "inputs here"));
    }
  }
  parts.inputs.push_back(ValueInfo("w", {3, 2}));
  EXPECT_THAT(Refusal(parts), HasSubstr("the graph main has the input w twice"));
}

TEST(CheckModel, GraphsInsideReadValuesAroundThem) {
  GraphParts inner = Branch("outer", "y");
  GraphParts deep = Branch("x", "deep");
  inner.nodes.insert(inner.nodes.begin(), If(deep, deep, {"unused"}));
  const std::vector<MessageWriter> nodes = {NodeMessage("Abs", {"x"}, {"outer"}), If(inner, Branch("x", "y"), {"y"})};
  const CheckedModel model = CheckModel(Proto(ModelMessage(GraphMessage(Nodes(nodes))).bytes()));
  const Operator& choice = model.body.graph.operators[1];
  ASSERT_EQ(choice.graphs.size(), 2U);
  EXPECT_THAT(NamesOf(model.body, choice.graphs[0].captured), ElementsAre("x", "outer"));
  EXPECT_THAT(NamesOf(model.body, choice.graphs[1].captured), ElementsAre("x"));
  EXPECT_THAT(NamesOf(model.body, choice.graphs[0].outputs), ElementsAre("y"));
  // Branches have the same name for values of their own.
  EXPECT_NE(choice.graphs[0].outputs[0], choice.graphs[1].outputs[0]);
  EXPECT_NE(choice.graphs[0].outputs[0], choice.outputs[0]);
  EXPECT_THAT(model.body.graph.captured, IsEmpty());
  EXPECT_EQ(model.num_nodes, 7);
}

TEST(CheckModel, AGraphInsideMayGiveWhatIsAroundIt) {
  GraphParts none;
  none.outputs = {ValueInfo("x", {1})};
  const CheckedModel model = CheckModel(Proto(ModelMessage(GraphMessage(Nodes({If(none, none, {"y"})}))).bytes()));
  const Graph& branch = model.body.graph.operators[0].graphs[0];
  EXPECT_THAT(branch.outputs, model.body.graph.inputs);
  EXPECT_THAT(NamesOf(model.body, branch.captured), ElementsAre("x"));
}

TEST(CheckModel, RefusesNamesThatHideOthers) {
  const auto hides = HasSubstr("as a value of a graph around it is; each name may be given once");
  const GraphParts good = Branch("x", "a");
  EXPECT_THAT(Refusal(Nodes({If(Branch("x", "x"), good, {"y"})})), hides);
  GraphParts input = Branch("x", "a");
  input.inputs = {ValueInfo("x", {1})};
  EXPECT_THAT(Refusal(Nodes({If(input, good, {"y"})})), hides);
  GraphParts initializer = Branch("x", "a");
  initializer.initializers = {FloatTensor("x", {1}, {1})};
  EXPECT_THAT(Refusal(Nodes({If(initializer, good, {"y"})})), hides);
}

TEST(CheckModel, RefusesToReadIntoAGraphFromOutside) {
  EXPECT_THAT(
      Refusal(Nodes({If(Branch("x", "inside"), Branch("x", "b"), {"a"}), NodeMessage("Abs", {"inside"}, {"y"})})),
      HasSubstr("reads inside, which nothing before it makes"));
  // Outputs of the node itself are not there while its graphs run.
  EXPECT_THAT(Refusal(Nodes({If(Branch("y", "a"), Branch("x", "b"), {"y"})})),
              HasSubstr("reads y, which nothing before it makes"));
  // One branch does not see the other's values.
  EXPECT_THAT(Refusal(Nodes({If(Branch("x", "a"), Branch("a", "b"), {"y"})})), HasSubstr("reads a, which nothing"));
}

TEST(CheckModel, RefusesInputsOfInnerGraphsWithAnInitializer) {
  GraphParts branch = Branch("i", "a");
  branch.inputs = {ValueInfo("i", {1})};
  branch.initializers = {FloatTensor("i", {1}, {1})};
  EXPECT_THAT(Refusal(Nodes({If(branch, Branch("x", "b"), {"y"})})),
              HasSubstr("the input i of the graph then has an initializer"));
}

TEST(CheckModel, ReadsOperatorSets) {
  MessageWriter model = ModelMessage(GraphMessage(Nodes({NodeMessage("Relu", {"x"}, {"y"}, "n", "ai.onnx")})));
  model.Message(8, OperatorSet("ai.onnx", 19)).Message(8, OperatorSet("ai.onnx.ml", 3));
  const CheckedModel read = CheckModel(Proto(model.bytes()));
  // The higher of two versions of one domain counts.
  EXPECT_EQ(read.body.graph.operators[0].version, 19);
  EXPECT_EQ(read.body.graph.operators[0].domain, "");
  EXPECT_EQ(Refusal(Nodes({NodeMessage("Gelu", {"x"}, {"y"}, "n", "com.microsoft")})),
            "m.onnx: node n (com.microsoft.Gelu) is an operator of the domain com.microsoft, which the model does not "
            "import");
  EXPECT_THAT(Refusal(ModelMessage(GraphMessage(SmallGraph())).Message(8, OperatorSet("x", -1))),
              HasSubstr("the model imports version -1 of the operators of x, which is none"));
}

TEST(CheckModel, ReadsVersionsThatItKnows) {
  const auto version = [](int64_t ir_version) {
    return Refusal(ModelMessage(GraphMessage(SmallGraph()), {}, ir_version));
  };
  EXPECT_EQ(version(3), "(no error)");
  EXPECT_THAT(version(2), HasSubstr("the file is of IR version 2; versions from 3 on (2017) are supported"));
  EXPECT_THAT(version(0), HasSubstr("the IR version is 0, which is none"));
  EXPECT_THAT(version(-5), HasSubstr("the IR version is -5, which is none"));
  const std::string newer = ModelMessage(GraphMessage(SmallGraph()), {}, 15).bytes();
  EXPECT_THAT(CheckModel(Proto(newer)).notes, ElementsAre(HasSubstr("is of IR version 15; the newest")));
  EXPECT_THAT(Refusal(MessageWriter().Integer(1, 8).Message(7, GraphMessage(SmallGraph()))),
              HasSubstr("the model imports no operator set"));
}

TEST(CheckModel, NotesWhatIsNotUsed) {
  const std::string bytes = ModelMessage(GraphMessage(SmallGraph())).Message(20, MessageWriter()).bytes();
  EXPECT_THAT(CheckModel(Proto(bytes)).notes,
              ElementsAre("the model's file also holds how it is trained, which is not used"));
}

// ---------------------------------------------------------------------------------------------------------- functions

TEST(CheckModel, ResolvesFunctions) {
  const MessageWriter inner = FunctionMessage("Inner", {NodeMessage("Relu", {"a"}, {"b"})});
  const MessageWriter outer = FunctionMessage("Outer", {Call("Inner", "a", "m"), Call("Inner", "m", "b")});
  const std::string bytes =
      ModelMessage(GraphMessage(Nodes({Call("Outer", "x", "m"), Call("Outer", "m", "y")})), {outer, inner}).bytes();
  const CheckedModel model = CheckModel(Proto(bytes));
  ASSERT_EQ(model.functions.size(), 2U);
  EXPECT_EQ(model.body.graph.operators[0].function, 0);
  EXPECT_EQ(model.body.graph.operators[0].version, 0);
  const Function& function = model.functions[0];
  EXPECT_EQ(function.proto->name, "Outer");
  EXPECT_THAT(NamesOf(function.body, function.body.graph.inputs), ElementsAre("a"));
  EXPECT_THAT(NamesOf(function.body, function.body.graph.outputs), ElementsAre("b"));
  EXPECT_EQ(function.body.graph.operators[0].function, 1);
  // The operator sets are the function's own.
  EXPECT_EQ(model.functions[1].body.graph.operators[0].version, 18);
  EXPECT_EQ(function.num_nodes, 2);
  EXPECT_EQ(function.depth, 2);
  EXPECT_EQ(model.num_nodes, 4);
}

TEST(CheckModel, RefusesFunctionsThatCallThemselves) {
  const auto refused = HasSubstr("in which it runs; functions may not call themselves");
  const GraphParts main = Nodes({Call("F", "x", "y")});
  EXPECT_THAT(Refusal(ModelMessage(GraphMessage(main), {FunctionMessage("F", {Call("F", "a", "b")})})), refused);
  EXPECT_THAT(Refusal(ModelMessage(GraphMessage(main), {FunctionMessage("F", {Call("G", "a", "b")}),
                                                        FunctionMessage("G", {Call("F", "a", "b")})})),
              refused);
  // Also from a graph inside, and where nobody calls them.
  const MessageWriter choice =
      NodeMessage("If", {"a"}, {"b"}).Message(5, GraphAttribute("then_branch", GraphMessage([] {
                                                                  GraphParts parts;
                                                                  parts.nodes = {Call("F", "a", "c")};
                                                                  parts.outputs = {ValueInfo("c", {1})};
                                                                  return parts;
                                                                }())));
  EXPECT_THAT(Refusal(ModelMessage(GraphMessage(SmallGraph()), {FunctionMessage("F", {choice})})), refused);
}

// Functions F0, F1, ..., each of which calls the next `calls` times; the last holds one node.
std::vector<MessageWriter> Chain(int count, int calls) {
  std::vector<MessageWriter> functions;
  for (int k = 0; k + 1 < count; ++k) {
    std::vector<MessageWriter> nodes;
    std::string in = "a";
    for (int c = 0; c < calls; ++c) {
      const std::string out = c + 1 == calls ? "b" : "v" + std::to_string(c);
      nodes.push_back(Call("F" + std::to_string(k + 1), in, out));
      in = out;
    }
    functions.push_back(FunctionMessage("F" + std::to_string(k), nodes));
  }
  functions.push_back(FunctionMessage("F" + std::to_string(count - 1), {NodeMessage("Relu", {"a"}, {"b"})}));
  return functions;
}

TEST(CheckModel, BoundsWhatFunctionsExpandTo) {
  const MessageWriter main = GraphMessage(Nodes({Call("F0", "x", "y")}));
  const std::string ten = ModelMessage(main, Chain(7, 10)).bytes();
  EXPECT_EQ(CheckModel(Proto(ten)).num_nodes, 1000000);
  const auto refused = HasSubstr("more than 1000000 nodes with functions in place of their calls");
  EXPECT_THAT(Refusal(ModelMessage(main, Chain(8, 10))), refused);
  EXPECT_THAT(Refusal(ModelMessage(main, Chain(60, 10))), refused);
}

TEST(CheckModel, BoundsHowDeepFunctionsCall) {
  const MessageWriter main = GraphMessage(Nodes({Call("F0", "x", "y")}));
  const auto refused = HasSubstr("is in calls more than 64 functions deep");
  EXPECT_EQ(Refusal(ModelMessage(main, Chain(kDeepestCall, 1))), "(no error)");
  EXPECT_THAT(Refusal(ModelMessage(main, Chain(kDeepestCall + 1, 1))), refused);
  // Whichever is counted first.
  std::vector<MessageWriter> backward = Chain(kDeepestCall + 1, 1);
  std::reverse(backward.begin(), backward.end());
  EXPECT_THAT(Refusal(ModelMessage(main, backward)), refused);
  backward = Chain(5000, 1);
  std::reverse(backward.begin(), backward.end());
  EXPECT_THAT(Refusal(ModelMessage(main, backward)), refused);
}

TEST(CheckModel, RefusesFunctionsThatAreMalformed) {
  const GraphParts main = Nodes({Call("F", "x", "y")});
  const auto refuses = [&](const std::vector<MessageWriter>& functions, const std::string& part) {
    EXPECT_THAT(Refusal(ModelMessage(GraphMessage(main), functions)), HasSubstr(part));
  };
  const std::vector<MessageWriter> good = {NodeMessage("Relu", {"a"}, {"b"})};
  refuses({FunctionMessage("F", good), FunctionMessage("F", good)}, "the model has the function mine.F twice");
  refuses({FunctionMessage("F", good), FunctionMessage("Relu", good, "")},
          "the function Relu has the domain ai.onnx, whose operators a model cannot define");
  refuses({FunctionMessage("F", good), FunctionMessage("Relu", good, "ai.onnx.ml")}, "whose operators a model cannot");
  refuses({FunctionMessage("F", {NodeMessage("Relu", {"x"}, {"b"})})}, "reads x, which nothing before it makes");
  refuses({FunctionMessage("F", {})}, "the output b of the function F is made by no node");
  refuses({FunctionMessage("F", good).Bytes(4, "a")}, "an input of the function F is named a, as a value of the same");
  refuses({FunctionMessage("F", good).Bytes(6, "alpha").Bytes(6, "alpha")}, "declares the attribute alpha twice");
  refuses({FunctionMessage("F", {NodeMessage("Relu", {"a"}, {"b"}, "n", "elsewhere")})},
          "node n (elsewhere.Relu) is an operator of the domain elsewhere, which the function F does not import");
  refuses({}, "is an operator of the domain mine, which the model does not import");
  const MessageWriter many = NodeMessage("F", {"x", "x"}, {"y"}, "n", "mine");
  EXPECT_THAT(Refusal(ModelMessage(GraphMessage(Nodes({many})), {FunctionMessage("F", good)})),
              HasSubstr("node n (mine.F) has 2 inputs, and the function F has 1"));
  const MessageWriter overload = NodeMessage("F", {"x"}, {"y"}, "n", "mine").Bytes(8, "other");
  EXPECT_THAT(Refusal(ModelMessage(GraphMessage(Nodes({overload})), {FunctionMessage("F", good)})),
              HasSubstr("calls the overload other of a function, which the model does not hold"));
}

TEST(CheckModel, AttributesOfFunctionsAreReferredToWithinThem) {
  const MessageWriter reference = MessageWriter().Bytes(1, "alpha").Bytes(21, "slope").Integer(20, 1);
  const MessageWriter node = NodeMessage("LeakyRelu", {"a"}, {"b"}, "n").Message(5, reference);
  const MessageWriter main = GraphMessage(Nodes({Call("F", "x", "y")}));
  EXPECT_EQ(Refusal(ModelMessage(main, {FunctionMessage("F", {node}).Bytes(6, "slope")})), "(no error)");
  EXPECT_EQ(Refusal(ModelMessage(main, {FunctionMessage("F", {node}).Message(11, IntAttribute("slope", 1))})),
            "(no error)");
  EXPECT_THAT(Refusal(ModelMessage(main, {FunctionMessage("F", {node})})),
              HasSubstr("node n (LeakyRelu) refers to the attribute slope, which the function F does not declare"));
  EXPECT_THAT(Refusal(Nodes({NodeMessage("LeakyRelu", {"x"}, {"y"}, "n").Message(5, reference)})),
              HasSubstr("node n (LeakyRelu) has the attribute alpha refer to an attribute of a function"));
}

TEST(CheckModel, RefusesAttributesThatAreGivenTwice) {
  const MessageWriter node =
      NodeMessage("Softmax", {"x"}, {"y"}, "n").Message(5, IntAttribute("axis", 0)).Message(5, IntAttribute("axis", 1));
  EXPECT_THAT(Refusal(Nodes({node})), HasSubstr("node n (Softmax) has the attribute axis twice"));
}

TEST(CheckModel, ShowsNamesOnOneLineOfText) {
  EXPECT_THAT(Refusal(Nodes({NodeMessage("Re\nlu", {"q\x1b"}, {"y"}, "n\t")})),
              HasSubstr("node n\\t (Re\\nlu) reads q\\x1b, which nothing before it makes"));
}

TEST(CheckModel, SurvivesEveryValueOfEveryByte) {
  const std::string bytes =
      ModelMessage(GraphMessage(Nodes({If(Branch("x", "a"), Branch("x", "b"), {"m"}), Call("F0", "m", "y")})),
                   Chain(2, 1))
          .bytes();
  EXPECT_EQ(MessageOf([&] { CheckModel(Proto(bytes)); }), "(no error)");
  for (size_t k = 0; k < bytes.size(); ++k) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = bytes;
      damaged[k] = static_cast<char>(value);
      EXPECT_THAT(MessageOf([&] { CheckModel(Proto(damaged)); }), testing::Not(HasSubstr("\n")));
    }
  }
}

}  // namespace
}  // namespace addend::onnx
