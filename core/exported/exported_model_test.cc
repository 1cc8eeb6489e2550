// Exported programs as models: every kind of node and every refusal, on programs made by hand.
#include "core/exported/exported_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/exported/program_testing.h"
#include "core/exported/steps.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"

namespace addend::exported {
namespace {

using at::Tensor;
using c10::IValue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor Row(std::vector<float> values) { return at::tensor(values); }

Tensor RunOne(const TestProgram& program, const std::vector<IValue>& inputs) {
  return RunModel(*program.Load(), inputs, "x").toTensor();
}

// A program of one input, x, of three numbers.
TestProgram Three() {
  TestProgram program;
  program.Input("x", at::kFloat, {Fixed(3)});
  return program;
}

Argument Int(int64_t value) { return Constant(value, "as_int"); }

// 2^63 and everything beyond it is no int64: what a processor makes of it is not what the program says.
TEST(Fitted, ANumberIsAnIntegerOnlyWhereOneHoldsIt) {
  const double limit = std::ldexp(1.0, 63);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Fitted(3.0, c10::IntType::get()).toInt(), 3);
  EXPECT_EQ(Fitted(-limit, c10::IntType::get()).toInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Fitted(limit / 2, c10::IntType::get()).toInt(), int64_t{1} << 62);
  for (const double number :
       {0.5, limit, std::nextafter(-limit, -infinity), 1e300, infinity, -infinity, std::nan("")}) {
    EXPECT_TRUE(Fitted(number, c10::IntType::get()).isDouble()) << number;
  }
}

TEST(ExportedModel, CallsOperatorsByName) {
  TestProgram program = Three();
  program.Parameter("layer.weight", "p_weight", at::full({3}, 2.0f));
  program.Node(Call("torch.ops.aten.mul.Tensor", {{"other", Value("p_weight")}, {"self", Value("x")}}, {Value("mul")}));
  program.Node(Call("torch.ops.aten.add.Tensor", {{"self", Value("mul")}, {"other", Constant(0.5)}}, {Value("add")}));
  program.Output(Value("add"));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({1, 2, 3})}), Row({2.5, 4.5, 6.5})));
  const auto model = program.Load();
  EXPECT_EQ(model->NamedTensors()[0].first, "layer.weight");
  EXPECT_THAT(model->BufferNames(), IsEmpty());
  EXPECT_THAT(model->InputNames(), ElementsAre("x"));
  EXPECT_THAT(model->ModulePaths(), ElementsAre("layer"));
}

TEST(ExportedModel, ParametersAskForGradientsAsTheirAuthorsDid) {
  TestProgram program = Three();
  program.Parameter("trained", "p_trained", at::ones({3}));
  program.Parameter("frozen", "p_frozen", at::ones({3}));
  program.Parameter("written", "p_written", at::ones({3}));
  program.Parameter("counts", "p_counts", at::ones({3}, at::kLong));
  for (const char* name : {"p_trained", "p_written", "p_counts"}) program->graph.tensors[name].requires_grad = true;
  program.Node(Call("torch.ops.aten.add_.Tensor", {{"self", Value("p_written")}, {"other", Value("x")}}, {Value("a")}));
  program.Node(Call("torch.ops.aten.mul.Tensor", {{"self", Value("a")}, {"other", Value("p_trained")}}, {Value("b")}));
  program.Output(Value("b"));
  const auto model = program.Load();
  std::map<std::string, bool> asks;
  for (const auto& [name, tensor] : model->NamedTensors()) asks[name] = tensor.requires_grad();
  EXPECT_EQ(asks,
            (std::map<std::string, bool>{{"counts", false}, {"frozen", false}, {"trained", true}, {"written", true}}));
  for (int k = 0; k < 2; ++k) {
    const Tensor result = RunModel(*model, {Row({1, 2, 3})}, "x").toTensor();
    EXPECT_TRUE(at::equal(result, Row({2, 3, 4})));
    EXPECT_FALSE(result.requires_grad());
  }
  EXPECT_FALSE((*program).state.at("trained").requires_grad());  // what the caller passed stays as it was
}

TEST(ExportedModel, GivesConstantsTheTypesThatOperatorsTake) {
  // A list where the file has none, an integer for a floating-point number, a list of numbers for one that is empty.
  TestProgram program = Three();
  program.Node(
      Call("torch.ops.aten.leaky_relu.default", {{"self", Value("x")}, {"negative_slope", Int(2)}}, {Value("a")}));
  program.Node(Call("torch.ops.aten.sum.dim_IntList", {{"self", Value("a")}, {"dim", Int(0)}}, {Value("b")}));
  program.Node(Call("torch.ops.aten.view.default", {{"self", Value("b")}, {"size", List({})}}, {Value("c")}));
  program.Output(Value("c"));
  EXPECT_EQ(RunOne(program, {Row({-1, 2, 3})}).item<float>(), 3.0f);
}

TEST(ExportedModel, RefusesNumbersThatNoIntegerHolds) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.select.int", {{"self", Value("x")}, {"dim", Int(0)}, {"index", Constant(1e300)}},
                    {Value("select")}));
  program.Output(Value("select"));
  ExpectError(absl::StatusCode::kInvalidArgument, {"aten::select"}, [&] { RunOne(program, {Row({1, 2, 3})}); });
}

TEST(ExportedModel, ComputesNumbersFromSizes) {
  TestProgram program;
  program.Input("x", at::kFloat, {Symbolic("Symbol('s0', positive=True, integer=True)"), Fixed(2)});
  program->ranges["s0"] = {2, 64};
  program.Node(
      Call("torch.ops.aten.sym_size.int", {{"self", Value("x")}, {"dim", Int(0)}}, {Value("n", "as_sym_int")}));
  program.Node(Call("_operator.mul", {{"", Value("n", "as_sym_int")}, {"", Int(2)}}, {Value("m", "as_sym_int")}));
  program.Node(Call("torch.ops.aten.view.default", {{"self", Value("x")}, {"size", List({Value("m", "as_sym_int")})}},
                    {Value("view")}));
  program.Node(Call("torch.ops.aten.mul.Tensor", {{"self", Value("view")}, {"other", Value("m", "as_sym_int")}},
                    {Value("mul")}));
  program.Output(Value("mul"));
  EXPECT_TRUE(at::equal(RunOne(program, {at::ones({3, 2})}), at::full({6}, 6.0f)));
  EXPECT_EQ(RunOne(program, {at::ones({64, 2})}).numel(), 128);
  ExpectError(absl::StatusCode::kInvalidArgument, {"input x, dimension 0: 70", "exported for 2 to 64"}, [&] {
    RunOne(program, {at::ones({70, 2})});
  });
}

TEST(ExportedModel, RefusesInputsThatDoNotFit) {
  TestProgram program;
  program.Input("x", at::kFloat, {Symbolic("Symbol('s0')"), Fixed(2)});
  program.Input("y", at::kLong, {Symbolic("Symbol('s0')"), Symbolic("Add(Symbol('s0'), Integer(1))")});
  program->guards = {"L['y'].size()[1] < 9", "len(L) == 2"};
  program.Output(Value("x"));
  const auto model = program.Load();
  const auto why = [&](const std::vector<IValue>& inputs) { return MessageOf([&] { model->Run(inputs); }); };
  const auto ids = [](int64_t a, int64_t b) { return at::zeros({a, b}, at::kLong); };
  EXPECT_EQ(why({at::ones({3, 2}), ids(3, 4)}), "(no error)");
  EXPECT_THAT(why({at::ones({3, 5}), ids(3, 4)}),
              HasSubstr("input x, dimension 1: 5, the model was exported for 2 only"));
  EXPECT_THAT(why({at::ones({3, 2}), ids(5, 4)}),
              HasSubstr("dimension 0: 5, the model was exported for the same as input x, dimension 0, which is 3"));
  EXPECT_THAT(why({at::ones({3, 2}), ids(3, 3)}), HasSubstr("input y, dimension 1: 3, the model was exported for 4"));
  EXPECT_THAT(why({at::ones({3}), ids(3, 4)}), HasSubstr("has 1 dimensions, the model was exported for 2"));
  EXPECT_THAT(why({at::ones({3, 2}), at::ones({3, 4})}),
              HasSubstr("input y is float32, the model was exported for int64"));
  EXPECT_THAT(why({at::ones({3, 2})}), HasSubstr("takes 2 inputs (x, y), not 1"));
  EXPECT_THAT(why({at::ones({3, 2}), 3.0}), HasSubstr("input y is no tensor"));
  EXPECT_THAT(why({at::ones({8, 2}), ids(8, 9)}), HasSubstr("L['y'].size()[1] is 9"));
  EXPECT_THAT(model->Notes()[0], HasSubstr("not checked: len(L) == 2"));
}

TEST(ExportedModel, FindsASymbolInsideAnExpression) {
  TestProgram program;
  program.Input("x", at::kFloat, {Symbolic("Mul(Integer(2), Symbol('s0'))")});
  program.Input("y", at::kFloat, {Symbolic("Add(Symbol('s0'), Integer(-1))")});
  program->ranges["s0"] = {2, 5};
  program.Output(Value("x"));
  const auto model = program.Load();
  const auto why = [&](int64_t a, int64_t b) { return MessageOf([&] { model->Run({at::ones({a}), at::ones({b})}); }); };
  EXPECT_EQ(why(6, 2), "(no error)");
  EXPECT_THAT(why(6, 3), HasSubstr("input y, dimension 0: 3, the model was exported for 2"));
  EXPECT_THAT(why(7, 2), HasSubstr("input x, dimension 0: 7"));
  EXPECT_THAT(why(12, 5), HasSubstr("2 to 5"));
}

TEST(ExportedModel, TakesConstantInputsAsExported) {
  TestProgram program = Three();
  InputSpec power;
  power.kind = InputSpec::Kind::kConstantInput;
  power.name = "power";
  power.value = int64_t{2};
  power.argument = Value("power");
  program->inputs.push_back(power);
  program->graph.inputs.push_back(power.argument);
  program->forward_arg_names.push_back("power");
  program.Output(Value("x"));
  const auto model = program.Load();
  EXPECT_EQ(MessageOf([&] { model->Run({at::ones({3}), int64_t{2}}); }), "(no error)");
  EXPECT_EQ(MessageOf([&] { model->Run({at::ones({3})}); }), "(no error)");
  EXPECT_THAT(MessageOf([&] {
                model->Run({at::ones({3}), int64_t{3}});
              }),
              HasSubstr("input power is 3, the model was exported for 2 only"));
}

TEST(ExportedModel, NestsInputsAndOutputs) {
  TestProgram program;
  program.Input("a", at::kFloat, {Fixed(1)}).Input("b", at::kFloat, {Fixed(1)}).Input("c", at::kFloat, {Fixed(1)});
  program->forward_arg_names = {"pair", "scale"};
  TreeSpec pair = Tuple(2);
  pair.kind = TreeSpec::Kind::kDict;
  pair.keys = {"first", "second"};
  program->in_spec = Tuple(2);
  program->in_spec.children[0] = Tuple(1);
  program->in_spec.children[0].children[0] = pair;
  program->in_spec.children[1].kind = TreeSpec::Kind::kDict;
  program->in_spec.children[1].keys = {"scale"};
  program->in_spec.children[1].children.resize(1);
  program.Output(Value("a")).Output(Value("c")).Output(Constant(IValue())).Output(Value("b"));
  TreeSpec list = Tuple(2);
  list.kind = TreeSpec::Kind::kList;
  TreeSpec structure = Tuple(3);
  structure.kind = TreeSpec::Kind::kOther;
  structure.type = "some.Output";
  structure.keys = {"logits", "loss", "hidden"};
  structure.children[0] = list;
  program->out_spec = structure;
  const auto model = program.Load();
  EXPECT_THAT(model->InputNames(), ElementsAre("pair", "scale"));
  c10::Dict<std::string, Tensor> given;
  given.insert("second", at::full({1}, 2.0f));
  given.insert("first", at::full({1}, 1.0f));
  for (const std::vector<IValue>& inputs :
       {std::vector<IValue>{given, at::full({1}, 3.0f)},
        std::vector<IValue>{at::full({1}, 1.0f), at::full({1}, 2.0f), at::full({1}, 3.0f)}}) {
    const auto result = model->Run(inputs).toGenericDict();
    EXPECT_EQ(result.at("logits").toTensorVector()[1].item<float>(), 3);
    EXPECT_TRUE(result.at("loss").isNone());
    EXPECT_EQ(result.at("hidden").toTensor().item<float>(), 2);
  }
  c10::Dict<std::string, Tensor> other;
  other.insert("first", at::ones({1}));
  other.insert("third", at::ones({1}));
  EXPECT_THAT(MessageOf([&] { model->Run({other, at::ones({1})}); }), HasSubstr("pair['second'] is missing"));
  EXPECT_THAT(MessageOf([&] { model->Run({at::ones({1}), at::ones({1})}); }), HasSubstr("pair is no dictionary"));
}

TEST(ExportedModel, StartsEachRunWithTheBuffersOfTheFile) {
  // One buffer is written in place, through a view; the other by a result of the graph.
  const auto make = [] {
    TestProgram program = Three();
    program.Buffer("seen", "b_seen", at::zeros({3}));
    program.Buffer("count", "b_count", at::zeros({}));
    program.Node(
        Call("torch.ops.aten.view.default", {{"self", Value("b_seen")}, {"size", List({Int(3)})}}, {Value("v")}));
    program.Node(Call("torch.ops.aten.add_.Tensor", {{"self", Value("v")}, {"other", Value("x")}}, {Value("add_")}));
    program.Node(Call("torch.ops.aten.add.Tensor", {{"self", Value("b_count")}, {"other", Int(1)}}, {Value("more")}));
    program.Node(
        Call("torch.ops.aten.mul.Tensor", {{"self", Value("b_seen")}, {"other", Value("more")}}, {Value("y")}));
    program.Output(Value("more"), OutputSpec::Kind::kBufferMutation, "count");
    program.Output(Value("y"));
    return program;
  };
  const auto model = make().Load();
  EXPECT_THAT(model->BufferNames(), ElementsAre("seen", "count"));
  const auto own = model->ForOneTrace();
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->ForOneTrace(), nullptr);
  for (int run = 0; run < 3; ++run) {
    EXPECT_TRUE(at::equal(model->Run({Row({1, 2, 3})}).toTensor(), Row({1, 2, 3})));
    EXPECT_EQ(model->NamedTensors()[1].second.item<float>(), 0);
    EXPECT_TRUE(at::equal(own->Run({Row({1, 2, 3})}).toTensor(), Row({1, 2, 3})));
    EXPECT_EQ(own->NamedTensors()[1].second.item<float>(), 1);
  }
  const auto copy = model->To(at::kCPU, at::kDouble);
  EXPECT_EQ(copy->NamedTensors()[0].second.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::equal(copy->Run({Row({1, 2, 3}).to(at::kDouble)}).toTensor(), Row({1, 2, 3}).to(at::kDouble)));
}

TEST(ExportedModel, WritesInputsAsTheModelDid) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.add.Tensor", {{"self", Value("x")}, {"other", Int(1)}}, {Value("more")}));
  program.Output(Value("more"), OutputSpec::Kind::kUserInputMutation, "x");
  program.Output(Value("more"));
  const Tensor x = Row({1, 2, 3});
  RunOne(program, {x});
  EXPECT_TRUE(at::equal(x, Row({2, 3, 4})));
}

TEST(ExportedModel, ConvertsWhatComputes) {
  TestProgram program = Three();
  program.Parameter("weight", "p", at::full({3}, 2.0f));
  program.Parameter("tied", "q", program->state["weight"].view({3}));
  program.Buffer("index", "i", at::tensor({2, 1, 0}, at::kLong));
  program.Node(
      Call("torch.ops.aten.index.Tensor", {{"self", Value("x")}, {"indices", List({Value("i")})}}, {Value("a")}));
  program.Node(Call("torch.ops.aten._to_copy.default",
                    {{"self", Value("a")}, {"dtype", Constant(static_cast<int64_t>(at::kFloat), "as_scalar_type")}},
                    {Value("b")}));
  program.Node(Call("torch.ops.aten.mul.Tensor", {{"self", Value("b")}, {"other", Value("p")}}, {Value("c")}));
  program.Output(Value("c"));
  ScriptOptions options;
  options.dtype = at::kDouble;
  const auto model = program.Load(options);
  const Tensor result = model->Run({Row({1, 2, 3}).to(at::kDouble)}).toTensor();
  EXPECT_EQ(result.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::equal(result, Row({6, 4, 2}).to(at::kDouble)));
  const auto named = model->NamedTensors();
  EXPECT_TRUE(named[0].second.is_alias_of(named[1].second));
  EXPECT_EQ(named[2].second.scalar_type(), at::kLong);
  EXPECT_EQ(program.Load()->NamedTensors()[0].second.scalar_type(), at::kFloat);
}

TEST(ExportedModel, MapsDevices) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.arange.default", {{"end", Int(3)}, {"device", Constant(c10::Device("cuda:0"))}},
                    {Value("arange")}));
  program.Node(Call("torch.ops.aten.add.Tensor", {{"self", Value("x")}, {"other", Value("arange")}}, {Value("add")}));
  program.Output(Value("add"));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({1, 1, 1})}), Row({1, 2, 3})));
}

TEST(ExportedModel, TakesListsApart) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.split.Tensor", {{"self", Value("x")}, {"split_size", Int(1)}},
                    {List({Value("a"), Value("", ""), Value("c")})}));
  program.Node(Call("torch.ops.aten.max.dim", {{"self", Value("x")}, {"dim", Int(0)}}, {Value("m"), Value("", "")}));
  program.Node(Call("torch.ops.aten.stack.default", {{"tensors", List({Value("a"), Value("c")})}}, {Value("s")}));
  program.Node(Call("torch.ops.aten.add.Tensor", {{"self", Value("s")}, {"other", Value("m")}}, {Value("y")}));
  program.Output(Value("y"));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({1, 2, 3})}).flatten(), Row({4, 6})));
}

// ------------------------------------------------------------------------------------------- higher-order operators

Graph Times(double factor) {
  return GraphOf({"t"},
                 {Call("torch.ops.aten.mul.Tensor", {{"self", Value("t")}, {"other", Constant(factor)}}, {Value("r")})},
                 {Value("r")});
}

TEST(ExportedModel, TakesABranch) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.sum.default", {{"self", Value("x")}}, {Value("sum")}));
  program.Node(Call("torch.ops.aten.gt.Scalar", {{"self", Value("sum")}, {"other", Int(0)}}, {Value("gt")}));
  program.Node(Call("torch.ops.higher_order.cond",
                    {{"", Value("gt")}, {"", Sub(Times(2))}, {"", Sub(Times(-3))}, {"", List({Value("x")})}},
                    {List({Value("y")})}));
  program.Output(Value("y"));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({1, 2, 3})}), Row({2, 4, 6})));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({-1, -2, -3})}), Row({3, 6, 9})));
}

TEST(ExportedModel, RunsALoop) {
  const Graph go_on = GraphOf(
      {"i", "y", "w"}, {Call("torch.ops.aten.lt.Scalar", {{"self", Value("i")}, {"other", Int(4)}}, {Value("lt")})},
      {Value("lt")});
  const Graph body =
      GraphOf({"i", "y", "w"},
              {Call("torch.ops.aten.add.Tensor", {{"self", Value("i")}, {"other", Int(1)}}, {Value("j")}),
               Call("torch.ops.aten.mul.Tensor", {{"self", Value("y")}, {"other", Value("w")}}, {Value("z")})},
              {Value("j"), Value("z")});
  TestProgram program = Three();
  program.Parameter("w", "p_w", at::full({}, 2.0f));
  program.Node(Call("torch.ops.aten.zeros.default", {{"size", List({})}}, {Value("zero")}));
  program.Node(
      Call("torch.ops.higher_order.while_loop",
           {{"", Sub(go_on)}, {"", Sub(body)}, {"", List({Value("zero"), Value("x")})}, {"", List({Value("p_w")})}},
           {Value("i"), Value("y")}));
  program.Output(Value("y"));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({1, 2, 3})}), Row({16, 32, 48})));
}

TEST(ExportedModel, MapsAndScansRows) {
  const Graph row = GraphOf(
      {"t", "y"}, {Call("torch.ops.aten.mul.Tensor", {{"self", Value("t")}, {"other", Value("y")}}, {Value("r")})},
      {Value("r")});
  const Graph step =
      GraphOf({"state", "t"},
              {Call("torch.ops.aten.add.Tensor", {{"self", Value("state")}, {"other", Value("t")}}, {Value("r")})},
              {Value("r"), Value("r")});
  TestProgram program = Three();
  program.Node(Call("torch.ops.higher_order.map_impl",
                    {{"", Sub(row)}, {"", List({Value("x")})}, {"", List({Value("x")})}}, {List({Value("m")})}));
  program.Node(Call("torch.ops.aten.zeros.default", {{"size", List({})}}, {Value("zero")}));
  program.Node(Call("torch.ops.higher_order.scan",
                    {{"", Sub(step)}, {"", List({Value("zero")})}, {"", List({Value("x")})}, {"", List({})}},
                    {Value("last"), Value("all")}));
  program.Node(Call("torch.ops.higher_order.scan",
                    {{"", Sub(step)},
                     {"", List({Value("zero")})},
                     {"", List({Value("x")})},
                     {"", Int(0)},
                     {"", Constant(true)},
                     {"", List({})}},
                    {Value("", ""), Value("back")}));
  program.Output(Value("m")).Output(Value("last")).Output(Value("all")).Output(Value("back"));
  const auto results = program.Load()->Run({Row({1, 2, 3})}).toTuple()->elements();
  EXPECT_TRUE(at::equal(results[0].toTensor(), at::outer(Row({1, 2, 3}), Row({1, 2, 3}))));
  EXPECT_EQ(results[1].toTensor().item<float>(), 6);
  EXPECT_TRUE(at::equal(results[2].toTensor(), Row({1, 3, 6})));
  EXPECT_TRUE(at::equal(results[3].toTensor(), Row({6, 5, 3})));
}

TEST(ExportedModel, RunsRegions) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.higher_order.wrap_with_set_grad_enabled",
                    {{"", Constant(false)}, {"", Sub(Times(2))}, {"", Value("x")}}, {Value("a")}));
  program.Node(Call("torch.ops.higher_order.wrap_with_autocast",
                    {{"", Constant("cpu")},
                     {"", Constant(IValue())},
                     {"", Constant(false)},
                     {"", Constant(false)},
                     {"", Sub(Times(3))},
                     {"", Value("a")}},
                    {Value("b")}));
  program.Node(Call("torch.ops.higher_order.invoke_subgraph",
                    {{"", Sub(Times(5))}, {"", Constant("g")}, {"", Value("b")}}, {Value("c")}));
  program.Output(Value("c"));
  EXPECT_TRUE(at::equal(RunOne(program, {Row({1, 2, 3})}), Row({30, 60, 90})));
}

TEST(ExportedModel, CallsOperatorsWithEffectsAndWrites) {
  Argument check;
  check.kind = Argument::Kind::kOperator;
  check.name = "torch.ops.aten.neg.default";
  Argument write = check;
  write.name = "torch.ops.aten.mul_.Tensor";
  TestProgram program = Three();
  InputSpec token;
  token.kind = InputSpec::Kind::kToken;
  token.argument = Value("token");
  program->inputs.push_back(token);
  program->graph.inputs.push_back(token.argument);
  program.Node(Call("torch.ops.higher_order.with_effects", {{"", Value("token")}, {"", check}, {"", Value("x")}},
                    {Value("token_1"), Value("a")}));
  program.Node(Call("torch.ops.higher_order.auto_functionalized",
                    {{"", write}, {"self", Value("a")}, {"other", Constant(2.0)}}, {Value("", ""), Value("b")}));
  Given second = {
      {"", write}, {"other", Constant(3.0)}, {"_self_base_index", Int(0)}, {"_all_bases", List({Value("a")})}};
  program.Node(Call("torch.ops.higher_order.auto_functionalized_v2", second, {Value("", ""), Value("c")}));
  program.Output(Value("token_1"), OutputSpec::Kind::kToken);
  program.Output(Value("a")).Output(Value("b")).Output(Value("c"));
  const auto results = program.Load()->Run({Row({1, 2, 3})}).toTuple()->elements();
  EXPECT_TRUE(at::equal(results[0].toTensor(), Row({-1, -2, -3})));
  EXPECT_TRUE(at::equal(results[1].toTensor(), Row({-2, -4, -6})));
  EXPECT_TRUE(at::equal(results[2].toTensor(), Row({-3, -6, -9})));
}

// ------------------------------------------------------------------------------------------------ views and copies

// A view of what lies otherwise than the exporter thought.
TestProgram TransposedView(bool write) {
  TestProgram program;
  program.Input("x", at::kFloat, {Fixed(2), Fixed(3)});
  program.Node(Call("torch.ops.aten.clone.default", {{"self", Value("x")}}, {Value("c")}));
  program.Node(
      Call("torch.ops.aten.permute.default", {{"self", Value("c")}, {"dims", List({Int(1), Int(0)})}}, {Value("t")}));
  program.Node(Call("torch.ops.aten.view.default", {{"self", Value("t")}, {"size", List({Int(-1)})}}, {Value("v")}));
  if (write) program.Node(Call("torch.ops.aten.zero_.default", {{"self", Value("c")}}, {Value("z")}));
  program.Output(Value("v"));
  return program;
}

TEST(ExportedModel, CopiesWhereAViewCannotBe) {
  const Tensor x = at::arange(6, at::kFloat).view({2, 3});
  EXPECT_TRUE(at::equal(RunOne(TransposedView(false), {x}), x.t().reshape({6})));
  EXPECT_THAT(MessageOf([&] { RunOne(TransposedView(true), {x}); }), HasSubstr("the model fails at aten::view"));
}

// ---------------------------------------------------------------------------------------------------------- places

TEST(ExportedModel, TellsModuleAndLine) {
  TestProgram program = Three();
  Node node = Call("torch.ops.aten.mm.default", {{"self", Value("x")}, {"mat2", Value("x")}}, {Value("mm")});
  node.metadata["nn_module_stack"] =
      "L__self__,,net.Net;L__self___layers,layers.0,torch.nn.modules.linear.Linear;"
      "getattr(L['self'].layers, '0'),layers.0.fc@1,torch.nn.modules.linear.Linear";
  node.metadata["stack_trace"] =
      "File \"/x/net.py\", line 7, in forward\n    return self.layers(x)\n"
      "  File \"/usr/lib/torch/nn/modules/linear.py\", line 9, in forward\n    return F.linear(x)\n";
  program.Node(node);
  program.Output(Value("mm"));
  const auto model = program.Load();
  EXPECT_THAT(model->ModulePaths(), ElementsAre("layers", "layers.0", "layers.0.fc"));
  try {
    model->Run({Row({1, 2, 3})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.position().module_path, "layers.0.fc");
    EXPECT_EQ(e.position().line, 7);
    EXPECT_EQ(e.position().op, "aten::mm");
    EXPECT_THAT(e.what(), HasSubstr("net.py:7"));
  }
}

// Collects the outputs of a model's modules as text: "act:0 = 4".
class Told : public CallHandler {
 public:
  void Handle(const Operator& op, Stack* stack) override { op.Run(stack); }
  void AddModuleOutput(const std::string& path, int64_t index, const Tensor& tensor) override {
    told.push_back(absl::StrCat(path, ":", index, " = ", tensor.defined() ? tensor[0].item<double>() : -1.0));
  }
  std::vector<std::string> told;
};

Node In(const std::vector<std::string>& modules, Node node) {
  std::string stack = "L__self__,,net.Net";
  // The newest exporters put the number of the call into the key.
  for (const std::string& module : modules) {
    absl::StrAppend(&stack, ";L__self__", module, ",", module.substr(0, module.find('@')), ",net.Module");
  }
  node.metadata["nn_module_stack"] = stack;
  return node;
}

std::vector<std::string> ToldBy(const TestProgram& program) {
  const auto model = program.Load();
  Told told;
  const TracingScope scope(&told);
  model->Run({Row({3, 2, 1})});
  return told.told;
}

Node Unary(const std::string& name, const std::string& from, const std::string& to) {
  return Call(absl::StrCat("torch.ops.aten.", name, ".default"), {{"self", Value(from)}}, {Value(to)});
}

// The only tensor of a call that others read is told twice, because nobody knows its number; what nobody knows at all
// is told once.
TEST(ExportedModel, TellsWhatCallsOfAModuleGave) {
  TestProgram program = Three();
  program.Node(In({"enc", "enc.act"}, Unary("neg", "x", "a")));
  program.Node(In({"enc"}, Unary("abs", "a", "b")));
  program.Node(In({"enc@1", "enc.act@1"}, Unary("neg", "b", "c")));
  program.Node(In({"enc@1"}, Unary("square", "c", "d")));
  program.Node(In({"head"}, Unary("neg", "d", "e")));
  program.Node(In({"lost@1"}, Unary("neg", "e", "f")));
  program.Output(Value("f"));
  EXPECT_THAT(ToldBy(program),
              ElementsAre("enc.act:0 = -3", "enc.act:1 = -3", "enc:0 = 3", "enc:1 = 3", "enc.act:0 = -3",
                          "enc.act:1 = -3", "enc:0 = 9", "enc:1 = 9", "head:0 = -9", "head:1 = -9", "lost:0 = -1"));
}

TEST(ExportedModel, TellsOnlyTheCallsOfModulesWithSeveralTensors) {
  TestProgram program = Three();
  program.Node(In({"enc"}, Unary("neg", "x", "a")));
  program.Node(In({"enc"}, Unary("abs", "a", "b")));
  program.Node(In({"enc@1"}, Unary("neg", "b", "c")));
  program.Node(Call("torch.ops.aten.mul.Tensor", {{"self", Value("c")}, {"other", Value("a")}}, {Value("d")}));
  program.Output(Value("d"));
  EXPECT_THAT(ToldBy(program), ElementsAre("enc:0 = -1", "enc:0 = -3", "enc:1 = -3"));
}

TEST(ExportedModel, TellsNothingWhereCallsAreNotNumbered) {
  TestProgram program = Three();
  program.Node(In({"enc"}, Unary("neg", "x", "a")));
  program.Node(In({"enc"}, Unary("abs", "a", "b")));
  program.Output(Value("b"));
  EXPECT_THAT(ToldBy(program), ElementsAre());
}

// --------------------------------------------------------------------------------------------------------- refusals

std::string WhyRefused(const Node& node) {
  TestProgram program = Three();
  program.Node(node);
  program.Output(Value("x"));
  return MessageOf([&] { program.Load(); });
}

TEST(ExportedModel, RefusesWhatItCannotRun) {
  const Given x = {{"self", Value("x")}};
  Node unknown = Call("torch.ops.mylib.fancy.default", x, {Value("fancy_1")});
  unknown.metadata["stack_trace"] = "File \"/x/net.py\", line 7, in forward\n    return fancy(x)";
  EXPECT_THAT(WhyRefused(unknown), AllOf(HasSubstr("torch.ops.mylib.fancy.default (node fancy_1)"),
                                         HasSubstr("net.py:7"), HasSubstr("load the library that defines it")));
  EXPECT_THAT(WhyRefused(Call("torch.ops.aten.no_such.default", x, {Value("y")})), HasSubstr("this LibTorch lacks"));
  EXPECT_THAT(WhyRefused(Call("torch.ops.aten.relu.default", {{"self", Value("x")}, {"novel", Int(3)}}, {Value("y")})),
              HasSubstr("whose argument novel this LibTorch lacks"));
  EXPECT_EQ(WhyRefused(Call("torch.ops.aten.relu.default", {{"self", Value("x")}, {"novel", Constant(IValue())}},
                            {Value("y")})),
            "(no error)");
  EXPECT_THAT(WhyRefused(Call("torch._functorch.predispatch._add_batch_dim", {{"", Value("x")}}, {Value("y")})),
              HasSubstr("run_decompositions()"));
  EXPECT_THAT(WhyRefused(Call("os.system", {{"", Constant("true")}}, {})), HasSubstr("os.system"));
  EXPECT_THAT(WhyRefused(Call("torch.ops.higher_order.triton_kernel_wrapper_mutation", {}, {})),
              HasSubstr("triton_kernel_wrapper_mutation"));
  EXPECT_THAT(WhyRefused(Call("torch.ops.higher_order.wrap_with_autocast",
                              {{"", Constant("cpu")},
                               {"", Constant(IValue())},
                               {"", Constant(true)},
                               {"", Constant(false)},
                               {"", Sub(Times(3))},
                               {"", Value("x")}},
                              {Value("b")})),
              HasSubstr("autocast"));
}

TEST(ExportedModel, RefusesMalformedGraphs) {
  EXPECT_THAT(WhyRefused(Call("torch.ops.aten.relu.default", {{"self", Value("nobody")}}, {Value("y")})),
              HasSubstr("reads nobody, which nothing before makes"));
  EXPECT_THAT(WhyRefused(Call("torch.ops.aten.relu.default", {}, {Value("y")})), HasSubstr("lacks the argument self"));
  EXPECT_THAT(
      WhyRefused(Call("torch.ops.aten.relu.default", {{"self", Value("x")}, {"self", Value("x")}}, {Value("y")})),
      HasSubstr("has self twice"));
  EXPECT_THAT(WhyRefused(Call("torch.ops.aten.relu.default", {{"", Value("x")}, {"", Value("x")}}, {Value("y")})),
              HasSubstr("too many arguments"));
  EXPECT_THAT(WhyRefused(Call("torch.ops.higher_order.cond", {{"", Value("x")}, {"", Value("x")}}, {Value("y")})),
              HasSubstr("has no graph as argument 1"));
  TestProgram gradients = Three();
  gradients.Output(Value("x"), OutputSpec::Kind::kGradientToParameter, "w");
  EXPECT_THAT(MessageOf([&] { gradients.Load(); }), HasSubstr("computes gradients"));
  TestProgram stateless = Three();
  stateless.Parameter("w", "p_w", at::ones({3})).Output(Value("x"));
  stateless->state.clear();
  EXPECT_THAT(MessageOf([&] { stateless.Load(); }), HasSubstr("has no data for w"));
}

TEST(ExportedModel, ChecksWhatTheProgramAsserts) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.sum.default", {{"self", Value("x")}}, {Value("sum")}));
  program.Node(Call("torch.ops.aten.item.default", {{"self", Value("sum")}}, {Value("u0", "as_sym_float")}));
  program.Node(Call("_operator.le", {{"", Value("u0", "as_sym_float")}, {"", Int(6)}}, {Value("le", "as_sym_bool")}));
  program.Node(Call("torch.ops.aten._assert_scalar.default",
                    {{"self", Value("le", "as_sym_bool")}, {"assert_msg", Constant("the sum is at most 6")}}, {}));
  program.Output(Value("x"));
  EXPECT_EQ(MessageOf([&] { RunOne(program, {Row({1, 2, 3})}); }), "(no error)");
  EXPECT_THAT(MessageOf([&] { RunOne(program, {Row({1, 2, 4})}); }), HasSubstr("asserts: the sum is at most 6"));
}

TEST(ExportedModel, NotesTraining) {
  TestProgram program = Three();
  program.Node(Call("torch.ops.aten.dropout.default",
                    {{"input", Value("x")}, {"p", Constant(0.0)}, {"train", Constant(true)}}, {Value("y")}));
  program.Output(Value("y"));
  EXPECT_THAT(program.Load()->Notes()[0], AllOf(HasSubstr("training mode"), HasSubstr("dropout(train=True)")));
}

}  // namespace
}  // namespace addend::exported
