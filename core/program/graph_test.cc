#include "core/program/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/program/program_builder.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Argument = BuiltArgument;

// The names of nodes: tests read better than with numbers.
std::vector<std::string> Names(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (const int node : nodes) names.push_back(graph.nodes()[node].name);
  return names;
}

template <typename Action>
absl::StatusCode CodeOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return absl::StatusCode::kOk;
}

// "from -> to" for all edges into a node, with the kind where it is not kElements.
std::vector<std::string> EdgesInto(const Graph& graph, const std::string& name) {
  std::vector<std::string> edges;
  for (const int e : graph.Incoming(graph.Find(name))) {
    const GraphEdge& edge = graph.edges()[e];
    std::string text = graph.nodes()[edge.from].name;
    if (edge.kind == EdgeKind::kTensor) text += " (tensor)";
    edges.push_back(text);
  }
  return edges;
}

// Two inputs, a block with parameters, a call with two results, two outputs.
std::shared_ptr<const RecordedProgram> TwoHeads() {
  ProgramBuilder builder;
  builder.program().module_paths = {"", "body", "body.fc", "head"};
  const int x = builder.Add(ValueKind::kInput, "x", {2, 3});
  const int weight = builder.Add(ValueKind::kParameter, "body.fc.weight", {4, 3});
  const int bias = builder.Add(ValueKind::kParameter, "body.fc.bias", {4});
  const int mask = builder.Add(ValueKind::kInput, "mask", {2, 4});
  const int scale = builder.Add(ValueKind::kBuffer, "head.scale", {4});
  const int fc = builder.Module("body.fc");
  const int body = builder.Module("body");
  const int head = builder.Module("head");
  const int y = builder.Call("aten::linear", "",
                             {Argument::Tensor(x), Argument::Tensor(weight), Argument::Tensor(bias)}, {{2, 4}}, fc)[0];
  const int z = builder.Call("aten::mul", "Tensor", {Argument::Tensor(y), Argument::Tensor(mask)}, {{2, 4}}, body)[0];
  const auto best = builder.Call("aten::max", "dim", {Argument::Tensor(z), Argument::Plain(1)}, {{2}, {2}}, head);
  const int scaled =
      builder.Call("aten::mul", "Tensor", {Argument::Tensor(z), Argument::Tensor(scale)}, {{2, 4}}, head)[0];
  return builder.Finish({best[0], best[1], scaled});
}

TEST(Graph, NodesAreInTopologicalOrder) {
  const Graph graph(TwoHeads());
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes()) names.push_back(std::string(NodeKindName(node.kind)) + " " + node.name);
  EXPECT_THAT(names, ElementsAre("input x", "input mask", "parameter body.fc.weight", "parameter body.fc.bias",
                                 "buffer head.scale", "call linear_0", "call mul_1", "call max_2", "call mul_3",
                                 "output output[0]", "output output[1]", "output output[2]"));
  ASSERT_THAT(graph.edges(), testing::Not(IsEmpty()));
  for (const GraphEdge& edge : graph.edges()) EXPECT_LT(edge.from, edge.to);
  for (int e = 1; e < static_cast<int>(graph.edges().size()); ++e) {
    EXPECT_LE(graph.edges()[e - 1].to, graph.edges()[e].to);
  }
}

TEST(Graph, KnowsNeighboursAndEverythingBeyond) {
  const Graph graph(TwoHeads());
  const int mul = graph.Find("mul_1");
  EXPECT_THAT(Names(graph, graph.Parents(mul)), ElementsAre("mask", "linear_0"));
  EXPECT_THAT(Names(graph, graph.Children(mul)), ElementsAre("max_2", "mul_3"));
  EXPECT_THAT(Names(graph, graph.Ancestors(mul)),
              ElementsAre("x", "mask", "body.fc.weight", "body.fc.bias", "linear_0"));
  EXPECT_THAT(Names(graph, graph.Descendants(mul)),
              ElementsAre("max_2", "mul_3", "output[0]", "output[1]", "output[2]"));
  EXPECT_THAT(Names(graph, graph.Children(graph.Find("max_2"))), ElementsAre("output[0]", "output[1]"));
  EXPECT_THAT(graph.Parents(graph.Find("x")), IsEmpty());
  EXPECT_EQ(graph.Depth(graph.Find("x")), 0);
  EXPECT_EQ(graph.Depth(graph.Find("mul_1")), 2);
  EXPECT_EQ(graph.Depth(graph.Find("output[2]")), 4);
}

TEST(Graph, FindsByOperatorModuleKindAndName) {
  const Graph graph(TwoHeads());
  for (const char* name : {"mul", "aten::mul", "mul.Tensor", "aten::mul.Tensor"}) {
    EXPECT_THAT(Names(graph, graph.ByOperator(name)), ElementsAre("mul_1", "mul_3")) << name;
  }
  for (const char* name : {"mul_", "mul.Scalar", "m", ""}) EXPECT_THAT(graph.ByOperator(name), IsEmpty()) << name;

  EXPECT_THAT(Names(graph, graph.ByModule("body")), ElementsAre("body.fc.weight", "body.fc.bias", "linear_0", "mul_1"));
  EXPECT_THAT(Names(graph, graph.ByModule("body", /*nested=*/false)), ElementsAre("mul_1"));
  EXPECT_THAT(graph.ByModule("bod"), IsEmpty());
  EXPECT_EQ(graph.ByModule("").size(), 7u);
  EXPECT_THAT(graph.ByModule("", /*nested=*/false), IsEmpty());

  EXPECT_THAT(Names(graph, graph.ByKind(NodeKind::kBuffer)), ElementsAre("head.scale"));
  EXPECT_EQ(CodeOf([&] { graph.Find("nothing"); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf([&] { graph.Parents(12); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { graph.Arguments(-1); }), absl::StatusCode::kInvalidArgument);
}

TEST(Graph, AWriteThroughAViewIsSeenByEveryTensorOfTheStorage) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2, 3});
  const int y = builder.Call("aten::neg", "", {Argument::Tensor(x)}, {{2, 3}})[0];
  const int flat =
      builder.Call("aten::view", "", {Argument::Tensor(y), Argument::Plain(std::vector<int64_t>{6})}, {{6}})[0];
  builder.Call("aten::add_", "Tensor", {Argument::Tensor(flat), Argument::Tensor(flat)}, {{6}});
  builder.Call("aten::relu", "", {Argument::Tensor(y)}, {{2, 3}});
  builder.Call("aten::exp", "", {Argument::Tensor(flat)}, {{6}});
  const int other = builder.Call("aten::t", "", {Argument::Tensor(y)}, {{3, 2}})[0];
  const int last = builder.Call("aten::sin", "", {Argument::Tensor(other)}, {{3, 2}})[0];
  const Graph graph(builder.Finish({last, y}));

  EXPECT_THAT(EdgesInto(graph, "view_1"), ElementsAre("neg_0"));
  EXPECT_THAT(EdgesInto(graph, "add__2"), ElementsAre("view_1", "view_1"));
  EXPECT_THAT(EdgesInto(graph, "relu_3"), ElementsAre("add__2", "neg_0 (tensor)"));
  EXPECT_THAT(EdgesInto(graph, "exp_4"), ElementsAre("add__2", "view_1 (tensor)"));
  // A view that was taken after the write has the written elements by itself.
  EXPECT_THAT(EdgesInto(graph, "sin_6"), ElementsAre("t_5"));
  EXPECT_THAT(EdgesInto(graph, "output[1]"), ElementsAre("add__2", "neg_0 (tensor)"));
  EXPECT_THAT(Names(graph, graph.Parents(graph.Find("add__2"))), ElementsAre("view_1"));
}

TEST(Graph, AnInputThatIsOverwrittenIsReadFromTheWriter) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {3});
  builder.Call("aten::add_", "Tensor", {Argument::Tensor(x), Argument::Tensor(x)}, {{3}});
  // Elements of the input in a geometry that no call gave.
  builder.program().values.push_back(builder.program().values[x]);
  const int part = static_cast<int>(builder.program().values.size()) - 1;
  builder.program().values[part].name = "x.part";
  builder.program().values[part].kind = ValueKind::kPart;
  builder.program().values[part].version = 1;
  const int y = builder.Call("aten::exp", "", {Argument::Tensor(part)}, {{3}})[0];
  const int z = builder.Call("aten::sin", "", {Argument::Tensor(x)}, {{3}})[0];
  const Graph graph(builder.Finish({y, z}));
  EXPECT_THAT(EdgesInto(graph, "add__0"), ElementsAre("x", "x"));
  EXPECT_THAT(EdgesInto(graph, "exp_1"), ElementsAre("add__0", "x (tensor)"));
  EXPECT_THAT(EdgesInto(graph, "sin_2"), ElementsAre("add__0", "x (tensor)"));
  EXPECT_EQ(graph.nodes().size(), 6u);  // a part is no node
}

TEST(Graph, ArgumentsHaveTheirNames) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {1, 3, 8, 8});
  const int w = builder.Add(ValueKind::kParameter, "conv.weight", {6, 3, 3, 3});
  const int y = builder.Call("aten::conv2d", "",
                             {Argument::Tensor(x), Argument::Tensor(w), Argument::Plain({}),
                              Argument::Plain(std::vector<int64_t>{2, 2}), Argument::Plain(std::vector<int64_t>{0, 0})},
                             {{1, 6, 3, 3}})[0];
  const Graph graph(builder.Finish({y}));
  const auto arguments = graph.Arguments(graph.Find("conv2d_0"));
  std::vector<std::string> names;
  for (const CallArgument& argument : arguments) names.push_back(argument.name);
  EXPECT_THAT(names, ElementsAre("input", "weight", "bias", "stride", "padding", "dilation", "groups"));
  EXPECT_TRUE(arguments[0].is_tensor);
  EXPECT_EQ(arguments[0].uses.at(0).value, x);
  EXPECT_EQ(arguments[1].uses.at(0).value, w);
  EXPECT_TRUE(arguments[2].is_tensor);
  EXPECT_THAT(arguments[2].uses, IsEmpty());
  EXPECT_FALSE(arguments[3].is_tensor);
  EXPECT_EQ(arguments[3].value.toIntVector(), (std::vector<int64_t>{2, 2}));
  EXPECT_FALSE(arguments[3].is_default);
  EXPECT_EQ(arguments[6].value.toInt(), 1);
  EXPECT_TRUE(arguments[6].is_default);
  EXPECT_THAT(graph.Arguments(graph.Find("x")), IsEmpty());
}

TEST(Graph, ListsOfOptionalTensorsKeepTheirGaps) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {4, 5});
  const int i = builder.Add(ValueKind::kInput, "i", {2}, at::kLong);
  BuiltArgument indices = Argument::Tensor(i);
  indices.plain = std::vector<int64_t>{0, 1};
  const int y = builder.Call("aten::index", "Tensor", {Argument::Tensor(x), indices}, {{4, 2}})[0];
  const Graph graph(builder.Finish({y}));
  const auto arguments = graph.Arguments(graph.Find("index_0"));
  ASSERT_EQ(arguments.at(1).uses.size(), 2u);
  EXPECT_TRUE(arguments[1].is_list);
  EXPECT_EQ(arguments[1].uses[0].value, -1);
  EXPECT_EQ(arguments[1].uses[1].value, i);
}

TEST(Graph, CallsWithoutResultsAreNamedByTheirOperator) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "item", {});
  builder.Call("aten::item", "", {Argument::Tensor(x)}, {});
  builder.Call("aten::item", "", {Argument::Tensor(x)}, {});
  const Graph graph(builder.Finish({x}));
  EXPECT_THAT(Names(graph, graph.ByKind(NodeKind::kCall)), ElementsAre("item_1", "item_2"));
  EXPECT_THAT(Names(graph, graph.Children(graph.Find("item"))), ElementsAre("item_1", "item_2", "output"));
}

TEST(Graph, OutputsAreNamedByTheirPlace) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  builder.program().output_versions = {0, 0};
  Structure tensor;
  tensor.kind = Structure::Kind::kTensor;
  tensor.tensor = x;
  Structure dict;
  dict.kind = Structure::Kind::kDict;
  dict.keys = {c10::IValue("logits"), c10::IValue("hidden")};
  dict.elements = {tensor, tensor};
  RecordedProgram program = builder.program();
  program.output = dict;
  const Graph graph(std::make_shared<const RecordedProgram>(program));
  EXPECT_THAT(Names(graph, graph.ByKind(NodeKind::kOutput)), ElementsAre("output[\"logits\"]", "output[\"hidden\"]"));
}

TEST(Graph, APlaceIsTold) {
  ProgramBuilder builder;
  const int x = builder.Add(ValueKind::kInput, "x", {2});
  CodePlace place{"act", {{"model.py", 7, 0, 0, "forward", "return relu(x)"}}};
  const int y = builder.Call("aten::relu", "", {Argument::Tensor(x)}, {{2}}, builder.Place(place))[0];
  const Graph graph(builder.Finish({y}));
  EXPECT_EQ(graph.PositionOf(graph.Find("relu_0")).line, 7);
  EXPECT_EQ(graph.PositionOf(graph.Find("relu_0")).op, "aten::relu");
  EXPECT_EQ(graph.PositionOf(graph.Find("x")).op, "");
  EXPECT_EQ(graph.nodes()[graph.Find("relu_0")].module, "act");
}

TEST(Graph, NeedsAProgram) {
  EXPECT_EQ(CodeOf([] { Graph graph(nullptr); }), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace addend
