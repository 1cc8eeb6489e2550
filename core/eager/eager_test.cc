// Operators called by name on compositions: what is accepted, what is said about what is not, and that a chain of calls
// is the same as the same operators inside a traced model.
#include "core/eager/eager.h"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "core/base/error_testing.h"
#include "core/eager/composition_ops.h"
#include "core/explain/decompose.h"
#include "core/program/random_testing.h"

namespace addend {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;
using testing::AllOf;
using testing::HasSubstr;

// Components, reference and leftover, none of them zero.
Composition RandomComposition(at::IntArrayRef sizes, uint64_t seed, int64_t numc = 3,
                              at::ScalarType dtype = at::kDouble) {
  Ints shape = {numc};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return Composition(Random(shape, seed, dtype), Random(sizes, seed + 1, dtype), Random(sizes, seed + 2, dtype) * 0.1);
}

double MaxAbs(const Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }

void ExpectNear(const Tensor& a, const Tensor& b, double bound) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LE(MaxAbs(a - b), bound * std::max(1.0, MaxAbs(b)));
}

void ExpectSameParts(const Composition& a, const Composition& b, double bound) {
  ExpectNear(a.components(), b.components(), bound);
  ExpectNear(a.reference(), b.reference(), bound);
  ExpectNear(a.leftover(), b.leftover(), bound);
}

Policy Faithful() {
  Policy policy;
  policy.preset = Preset::kFaithful;
  return policy;
}

Policy Fast() {
  Policy policy;
  policy.preset = Preset::kFast;
  return policy;
}

// ---------------------------------------------------------------------------------------------------------- binding

TEST(CallTest, FindsTheOverloadByTheArguments) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Tensor t = Random({2, 3}, 9);
  const Composition sum = Call("aten::add", x, t);
  ExpectNear(sum.recovery(), x.recovery() + t, 1e-14);
  ExpectNear(Call("aten::add", x, 2).composition().recovery(), x.recovery() + 2, 1e-14);
  ExpectNear(Call("aten::add", x, t, Named("alpha", 0.5)).composition().recovery(), x.recovery() + 0.5 * t, 1e-14);
  ExpectNear(Call("aten::sum", x).composition().recovery(), x.recovery().sum(), 1e-13);
  ExpectNear(Call("aten::sum", x, Ints{1}).composition().recovery(), x.recovery().sum(1), 1e-13);
  ExpectNear(Call("aten::sum", x, 1, true).composition().recovery(), x.recovery().sum(1, true), 1e-13);
  ExpectNear(Call("aten::view", x, Ints{3, 2}).composition().recovery(), x.recovery().view({3, 2}), 0);
  EXPECT_EQ(Call("aten::to", x, at::kFloat).composition().dtype(), at::kFloat);
  // Its overload "padding" fits as well, but has a name of its own.
  const Tensor kernel = Random({1, 2, 2}, 10);
  ExpectNear(Call("aten::conv1d", x, kernel).composition().recovery(), at::conv1d(x.recovery(), kernel), 1e-14);
}

TEST(CallTest, ArgumentsByNameInAnyOrder) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Composition y = Call("aten::softmax.int", Named("dim", 1), Named("self", x));
  ExpectNear(y.recovery(), x.recovery().softmax(1), 1e-14);
  const Composition z = Call("aten::clamp", x, Named("max", 0.5));
  ExpectNear(z.recovery(), x.recovery().clamp(c10::nullopt, 0.5), 1e-14);
}

TEST(CallTest, ListsOfAnything) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Tensor t = Random({2, 3}, 9);
  const Composition y = Call("aten::cat", std::vector<Argument>{x, t, x}, 1);
  ExpectNear(y.recovery(), at::cat({x.recovery(), t, x.recovery()}, 1), 1e-14);
  ExpectNear(y.component(1), at::cat({x.component(1), at::zeros_like(t), x.component(1)}, 1), 1e-14);
  const Tensor index = at::tensor({1, 0}, at::kLong);
  const Composition z = Call("aten::index.Tensor", x, std::vector<Argument>{std::nullopt, index});
  ExpectNear(z.recovery(), x.recovery().index_select(1, index), 1e-14);
  EXPECT_EQ(Call("aten::split.Tensor", x, 2, 1).compositions().size(), 2u);
}

TEST(CallTest, IntegersAndBoolsStayPlain) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Results greater = Call("aten::gt", x, 0);
  EXPECT_FALSE(greater[0].is_composition());
  EXPECT_TRUE(greater.tensor().equal(x.recovery() > 0));
  const Results max = Call("aten::max", x, 1);
  ASSERT_EQ(max.size(), 2u);
  EXPECT_TRUE(max[0].is_composition());
  EXPECT_TRUE(max.tensor(1).equal(std::get<1>(x.recovery().max(1))));
  EXPECT_THAT(MessageOf([&] { greater.composition(); }), HasSubstr("integers and bools have no parts"));
  EXPECT_THAT(MessageOf([&] { static_cast<void>(Composition(max)); }), HasSubstr("there are 2 results"));
  EXPECT_THAT(MessageOf([&] { max.tensor(2); }), HasSubstr("result 2 is out of range: there are 2"));
}

TEST(CallTest, WithoutCompositionsTheOperatorJustRuns) {
  const Tensor t = Random({2, 3}, 9);
  const Results result = Call("aten::relu", t);
  EXPECT_FALSE(result[0].is_composition());
  EXPECT_TRUE(result.tensor().equal(t.relu()));
}

TORCH_LIBRARY(eager_test, library) {
  library.def("both(Tensor x) -> Tensor", [](const Tensor& x) { return x.relu(); });
  library.def("both.more(Tensor x, int times=2) -> Tensor", [](const Tensor& x, int64_t times) { return x * times; });
  library.def("named.a(Tensor x) -> Tensor", [](const Tensor& x) { return x.relu(); });
  library.def("named.b(Tensor x, int times=2) -> Tensor", [](const Tensor& x, int64_t times) { return x * times; });
}

// Overloads as aten::std and aten::std.correction are in newer versions of LibTorch.
TEST(CallTest, OfOverloadsThatFitAlikeTheOneWithThePlainNameIsCalled) {
  const Tensor t = Random({2, 3}, 9);
  EXPECT_TRUE(Call("eager_test::both", t).tensor().equal(t.relu()));
  EXPECT_THAT(MessageOf([&] { Call("eager_test::named", t); }),
              HasSubstr("fit several overloads of eager_test::named; name one of: eager_test::named.a, "
                        "eager_test::named.b"));
}

TEST(CallTest, SaysWhatIsWrong) {
  const Composition x = RandomComposition({2, 3}, 1);
  const auto message = [](const std::string& name, std::vector<Argument> arguments) {
    return MessageOf([&] { CallOperator(name, arguments); });
  };
  EXPECT_EQ(message("aten::ad", {x}), "there is no operator aten::ad");
  EXPECT_EQ(message("relu", {x}), "there is no operator relu; did you mean aten::relu?");
  EXPECT_THAT(message("aten::add.Foo", {x}), AllOf(HasSubstr("aten::add has no overload Foo; its overloads are: "),
                                                   HasSubstr("Scalar"), HasSubstr("Tensor")));
  EXPECT_THAT(message("aten::add.Tensor", {x, "y"}),
              AllOf(HasSubstr("aten::add.Tensor: argument \"other\" must be a composition or tensor, but is \"y\""),
                    HasSubstr("its schema is aten::add.Tensor(Tensor self")));
  EXPECT_THAT(message("aten::add.Tensor", {x}),
              HasSubstr("argument \"other\" is missing; it must be a composition or tensor"));
  EXPECT_THAT(message("aten::add.Tensor", {x, x, 2}), HasSubstr("takes 2 arguments without a name, but 3 are given"));
  EXPECT_THAT(message("aten::add.Tensor", {x, x, Named("beta", 2)}), HasSubstr("has no argument \"beta\""));
  EXPECT_THAT(message("aten::add.Tensor", {x, x, Named("other", x)}), HasSubstr("argument \"other\" is given twice"));
  EXPECT_THAT(message("aten::add.Tensor", {Named("self", x), x}),
              HasSubstr("an argument without a name follows one with a name"));
  EXPECT_THAT(message("aten::softmax.int", {x, 0.5}), HasSubstr("argument \"dim\" must be an integer, but is 0.5"));
  EXPECT_THAT(message("aten::permute", {x, std::vector<double>{0.5}}),
              HasSubstr("argument \"dims\" must be a list of integers"));
  EXPECT_THAT(message("aten::cat", {std::vector<Argument>{x, 2}, 0}),
              HasSubstr("argument \"tensors\" must be a list of compositions and tensors, but is [the composition "
                        "f64[2, 3] of 3, 2]"));
  EXPECT_THAT(message("aten::add", {x, "y"}),
              AllOf(HasSubstr("no overload of aten::add takes (the composition f64[2, 3] of 3, \"y\")"),
                    HasSubstr("Tensor: argument \"other\" must be a composition or tensor"),
                    HasSubstr("Scalar: argument \"other\" must be a number")));
  EXPECT_THAT(message("aten::mm", {x, x}),
              AllOf(HasSubstr("aten::mm refuses its arguments (the composition f64[2, 3] of 3, the composition f64[2, "
                              "3] of 3): "),
                    HasSubstr("mat1 and mat2 shapes cannot be multiplied")));
  EXPECT_THAT(message("aten::glu", {x, 1}), HasSubstr("aten::glu refuses its arguments"))
      << "an operator with a rewrite";
  EXPECT_THAT(message("aten::add", {x, RandomComposition({2, 3}, 5, 4)}),
              HasSubstr("argument \"other\" of aten::add.Tensor has 4 components, but argument \"self\" of "
                        "aten::add.Tensor has 3"));
  EXPECT_THAT(message("aten::cat", {std::vector<Argument>{x, RandomComposition({2, 3}, 5, 4)}, 0}),
              HasSubstr("argument \"tensors\"[1] of aten::cat has 4 components"));
  EXPECT_THAT(message("aten::add.out", {x, x, Named("out", at::zeros({2, 3}, at::kDouble))}),
              HasSubstr("writes into \"out\"; compositions are values: use the form of the operator that returns its "
                        "result"));
  Policy segments = Faithful();
  segments.segments = 4;
  EXPECT_THAT(MessageOf([&] { CallWith(segments, "aten::relu", x); }), HasSubstr("segments cut the line"));
}

// --------------------------------------------------------------------------------------------------- in-place forms

TEST(InPlaceTest, TheVariableHoldsTheNewState) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Composition y = RandomComposition({2, 3}, 5);
  Composition z = x;
  const Composition result = Call("aten::add_", &z, y, Named("alpha", 2));
  ExpectNear(z.recovery(), x.recovery() + 2 * y.recovery(), 1e-14);
  ExpectNear(z.components(), x.components() + 2 * y.components(), 1e-14);
  ExpectSameParts(result, z, 0);
  EXPECT_FALSE(z.components().equal(x.components()));

  Composition twice = x;
  Call("aten::add_", &twice, twice);
  ExpectNear(twice.components(), 2 * x.components(), 1e-14);

  Composition turned = x;
  Call("aten::transpose_", &turned, 0, 1);
  ExpectNear(turned.components(), x.components().transpose(1, 2), 0);
}

TEST(InPlaceTest, KeepsTheDtypeAndRefusesToGrow) {
  Composition x = RandomComposition({3}, 1, 2, at::kFloat);
  Call("aten::mul_", &x, Random({3}, 4));
  EXPECT_EQ(x.dtype(), at::kFloat);
  EXPECT_THAT(MessageOf([&] { Call("aten::add_", &x, Random({2, 3}, 4)); }), HasSubstr("refuses its arguments"));
}

TEST(InPlaceTest, ConstantsBecomeComposed) {
  const Composition x = RandomComposition({2, 3}, 1);
  Composition zeros = Call("aten::zeros_like", x);
  EXPECT_TRUE(zeros.origin().plain);
  EXPECT_EQ(MaxAbs(zeros.components()), 0);
  Call("aten::add_", &zeros, x);
  ExpectNear(zeros.components(), x.components(), 1e-14);
  ExpectNear(zeros.recovery(), x.recovery(), 1e-14);
}

TEST(InPlaceTest, OnlyVariablesAreWritten) {
  const Composition x = RandomComposition({2, 3}, 1);
  EXPECT_THAT(MessageOf([&] { Call("aten::relu_", x); }),
              HasSubstr("aten::relu_ writes its argument \"self\": pass a pointer to the composition"));
  EXPECT_THAT(MessageOf([&] {
                Call("aten::add_", at::zeros({2, 3}, at::kDouble), x);
              }),
              HasSubstr("has no room for components"));
}

// -------------------------------------------------------------------------------- a chain of calls is a traced model

struct Weights {
  Tensor in = Random({16, 8}, 21) * 0.4;
  Tensor in_bias = Random({16}, 22) * 0.3;
  Tensor query = Random({16, 16}, 23) * 0.3;
  Tensor key = Random({16, 16}, 24) * 0.3;
  Tensor value = Random({16, 16}, 25) * 0.3;
  Tensor scale = Random({16}, 26);
  Tensor shift = Random({16}, 27) * 0.3;
  Tensor gate = Random({16, 16}, 28) * 0.3;
  Tensor out = Random({4, 16}, 29) * 0.3;
  Tensor mask = at::ones({5, 5}, at::kBool).triu(1);
};

Tensor InModel(const Tensor& x, const Weights& w) {
  Tensor h = at::gelu(at::linear(x, w.in, w.in_bias));
  const Tensor q = h.matmul(w.query);
  const Tensor k = h.matmul(w.key);
  const Tensor v = h.matmul(w.value);
  const Tensor scores =
      q.matmul(k.transpose(1, 2)).div(4).masked_fill(w.mask, -std::numeric_limits<double>::infinity());
  const Tensor attended = scores.softmax(-1).matmul(v);
  h = h.add(attended);
  // A normalization written by hand: freezing has to know the normalizer across calls.
  const Tensor centred = h.sub(h.mean({-1}, true));
  h = centred.mul(centred.square().mean({-1}, true).add(1e-5).rsqrt()).mul(w.scale).add(w.shift);
  h = at::sigmoid(h.matmul(w.gate)).mul(h);
  h.relu_();
  return at::layer_norm(h, {16}, w.scale, w.shift).matmul(w.out.t()).amax({1});
}

Composition Eagerly(const Composition& x, const Weights& w, const CallOptions& o) {
  Composition h = x.linear(w.in, w.in_bias, o).gelu("none", o);
  const Composition q = h.matmul(w.query, o);
  const Composition k = h.matmul(w.key, o);
  const Composition v = h.matmul(w.value, o);
  const Composition scores =
      q.matmul(k.transpose(1, 2, o), o).div(4, o).masked_fill(w.mask, -std::numeric_limits<double>::infinity(), o);
  const Composition attended = scores.softmax(-1, o).matmul(v, o);
  h = h.add(attended, 1, o);
  const Composition centred = h.sub(h.mean({-1}, true, o), 1, o);
  h = centred.mul(centred.square(o).mean({-1}, true, o).add(1e-5, 1, o).rsqrt(o), o).mul(w.scale, o).add(w.shift, 1, o);
  h = h.matmul(w.gate, o).sigmoid(o).mul(h, o);
  h.relu_(o);
  return h.layer_norm({16}, w.scale, w.shift, 1e-5, o).matmul(w.out.t(), o).amax({1}, false, o);
}

class ChainTest : public testing::TestWithParam<std::string> {};

TEST_P(ChainTest, EqualsTheTracedModel) {
  const Weights weights;
  Policy policy;
  SetPolicyField(policy, "preset", GetParam());
  const Tensor value = Random({2, 5, 8}, 1);
  const Tensor baseline = Random({8}, 2) * 0.5;

  Input input;
  input.value = value;
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(baseline);
  DecomposeOptions options;
  options.policy = policy;
  const auto model = FromFunction([&](const std::vector<Tensor>& x) { return InModel(x[0], weights); });
  const Decomposed traced = TracedModel(model).Decompose({input}, options).outputs[0];

  const Composition eager = Eagerly(Composition::Diagonal(value, {1}, baseline), weights, policy);
  ExpectNear(eager.value(), traced.value, 1e-13);
  ExpectSameParts(eager, traced.composition, 1e-12);
  EXPECT_GT(MaxAbs(eager.components()), 1e-3);
  if (GetParam() == "fast") {
    EXPECT_GT(MaxAbs(eager.leftover()), 1e-3);
  }

  const Composition computed = Compute([&](const std::vector<Tensor>& x) { return InModel(x[0], weights); },
                                       {Composition::Diagonal(value, {1}, baseline)}, policy);
  ExpectSameParts(computed, traced.composition, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Presets, ChainTest, testing::Values("faithful", "fast"),
                         [](const auto& info) { return info.param; });

TEST(CarriedTest, MarksDecideWhatIsFrozen) {
  const Composition x = RandomComposition({2, 4, 4}, 1);
  const Composition v = RandomComposition({2, 4, 3}, 5);
  const Composition weights = CallWith(Fast(), "aten::softmax", x, -1);
  EXPECT_EQ(weights.origin().marks, kFreezeAttention);
  EXPECT_EQ(weights.transpose(1, 2).origin().marks, kFreezeAttention);
  EXPECT_EQ(v.sqrt().origin().marks, kFreezeNormalizer);
  const Composition attended = weights.matmul(v, Fast());
  EXPECT_EQ(attended.origin().marks, 0u);
  // Frozen weights: only the rows of v pass.
  ExpectNear(attended.components(), weights.value().matmul(v.components()), 1e-14);
  Origin unmarked = weights.origin();
  unmarked.marks = 0;
  const Composition anonymous =
      Composition::FromOperator(weights.components(), weights.reference(), weights.leftover(), unmarked);
  EXPECT_GT(MaxAbs(anonymous.matmul(v, Fast()).components() - attended.components()), 1e-3);
  EXPECT_EQ(weights.origin().depth, 1);
  EXPECT_EQ(attended.matmul(Random({3, 3}, 4)).origin().depth, 2);
}

TEST(CarriedTest, LeftoverGoesThrough) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Tensor w = Random({3, 4}, 7);
  const Composition y = x.matmul(w);
  ExpectNear(y.leftover(), x.leftover().matmul(w), 1e-14);
  ExpectNear(y.reference(), x.reference().matmul(w), 1e-14);
  ExpectNear(y.components(), x.components().matmul(w), 1e-14);
  // A step is shared by all that crosses it, of which the leftover is one.
  const Composition steps = x.floor();
  const Tensor height = x.recovery().floor() - x.reference().floor();
  EXPECT_GT(MaxAbs(height), 0);
  EXPECT_TRUE(steps.value().equal(x.recovery().floor()));
  ExpectNear(steps.leftover(), height * x.leftover() / (x.recovery() - x.reference()), 1e-14);
  // A step's gradient is zero, so that it passes nothing: all is leftover.
  Policy gradient = Faithful();
  gradient.nonlinearity = Nonlinearity::kGradient;
  const Composition flat = x.floor(gradient);
  EXPECT_EQ(MaxAbs(flat.components()), 0);
  ExpectNear(flat.leftover(), height, 1e-14);
}

TEST(CarriedTest, AnchorResidualFoldsTheLeftover) {
  const Composition x = RandomComposition({2, 3}, 1);
  Policy policy = Faithful();
  policy.anchor = Anchor::kResidual;
  const Composition y = x.tanh(policy);
  const Composition whole = Composition(x.components(), x.residual()).tanh(Faithful());
  ExpectSameParts(y, whole, 1e-14);
}

TEST(CarriedTest, HalfTypesComputeInTheirOwnDtype) {
  const Tensor value = Random({2, 5, 8}, 1).to(at::kBFloat16);
  const Tensor weight = (Random({8, 8}, 2) * 0.3).to(at::kBFloat16);
  const Composition x = Composition::Diagonal(value, {1});
  Policy policy;
  policy.check = Check::kOff;
  const Composition y = x.matmul(weight, policy).gelu("none", policy).matmul(weight, policy);
  EXPECT_EQ(y.dtype(), at::kBFloat16);
  EXPECT_EQ(y.parts_dtype(), at::kFloat);
  EXPECT_TRUE(y.value().equal(at::gelu(value.matmul(weight)).matmul(weight)));
}

TEST(CarriedTest, TracedOutputsGoOnEagerly) {
  const Tensor w = Random({3, 3}, 3);
  Input input;
  input.value = Random({2, 3}, 1);
  input.split = Split::AlongDims({1});
  const auto half = FromFunction([&](const std::vector<Tensor>& x) { return x[0].matmul(w).tanh(); });
  const auto whole = FromFunction([&](const std::vector<Tensor>& x) { return x[0].matmul(w).tanh().matmul(w).tanh(); });
  DecomposeOptions options;
  options.policy = Faithful();
  const Composition first = TracedModel(half).Decompose({input}, options).outputs[0].composition;
  ExpectSameParts(first.matmul(w, Faithful()).tanh(Faithful()),
                  TracedModel(whole).Decompose({input}, options).outputs[0].composition, 1e-13);
}

TEST(CarriedTest, MixedDtypesPromote) {
  const Composition x = RandomComposition({2, 3}, 1, 3, at::kFloat);
  const Composition y = RandomComposition({2, 3}, 4, 3, at::kDouble);
  Policy policy;
  policy.check = Check::kOff;
  const Composition z = x.mul(y, policy);
  EXPECT_EQ(z.dtype(), at::kDouble);
  ExpectNear(z.recovery(), x.recovery() * y.recovery(), 1e-6);
}

TEST(CarriedTest, WhatFloat32RoundedIsJudgedSoInFloat64) {
  // A cast does not take rounding away: judged by the digits of float64, recovery would be off behind it.
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Composition wide = RandomComposition({5}, seed, 3, at::kFloat).softmax(-1, Faithful()).to(at::kDouble);
    EXPECT_TRUE(wide.origin().single);
    const Composition twice = wide.mul(2.0, Faithful());
    EXPECT_TRUE(twice.origin().single);
    EXPECT_EQ(twice.dtype(), at::kDouble);
    ExpectNear(twice.recovery(), twice.value(), 1e-6);
  }
  EXPECT_FALSE(RandomComposition({5}, 1).mul(2.0, Faithful()).origin().single);
}

// -------------------------------------------------------------------------------------------- everything else

TEST(PolicyTest, RegistryAndPolicyAreThoseOfTheCall) {
  const Composition x = RandomComposition({2, 3}, 1);
  Registry registry = Registry::Default();
  registry.Register({"aten::relu", Kind::kOpaque, [](const RuleCall&) {
                       RuleResult result;
                       result.kind = Kind::kOpaque;
                       result.exact = false;
                       return result;
                     }});
  const Composition y = CallWith({Faithful(), &registry}, "aten::relu", x);
  EXPECT_EQ(MaxAbs(y.components()), 0);
  EXPECT_GT(MaxAbs(x.relu().components()), 0);
  const Results result = CallWith(Faithful(), "aten::relu", x);
  EXPECT_EQ(result.report().checks.size(), 1u);
  EXPECT_LT(result.report().worst_recovery_error, 1e-14);
}

TEST(PolicyTest, CompositeOperatorsExpand) {
  const Composition x = RandomComposition({2, 3, 4}, 1);
  const Results result = CallWith(Faithful(), "aten::cosine_similarity", x, Random({2, 3, 4}, 8), 2, 1e-8);
  ExpectNear(result.composition().recovery(), at::cosine_similarity(x.recovery(), Random({2, 3, 4}, 8), 2, 1e-8),
             1e-13);
}

TEST(IndexTest, AddressesDimensionsOfTheTensor) {
  using at::indexing::None;
  using at::indexing::Slice;
  const Composition x = RandomComposition({4, 5, 6}, 1);
  const auto both = [&](std::initializer_list<at::indexing::TensorIndex> indices) {
    const Composition y = x.index(indices);
    ExpectNear(y.recovery(), x.recovery().index(indices), 1e-14);
    std::vector<Tensor> rows;
    for (const Tensor& row : x.components().unbind()) rows.push_back(row.index(indices));
    ExpectNear(y.components(), at::stack(rows), 0);
    ExpectNear(y.leftover(), x.leftover().index(indices), 0);
  };
  both({0});
  both({Slice(1, None, 2), 2});
  both({"...", -1});
  both({None, Slice(), Slice(0, 2)});
  both({at::tensor({3, 0, 0}, at::kLong)});
  both({Slice(), at::tensor({1, 0, 1, 1, 0}, at::kByte).to(at::kBool)});
  both({at::tensor({1, 2}, at::kLong), at::tensor({0, 4}, at::kLong)});
}

TEST(OperatorsTest, EitherSide) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Composition y = RandomComposition({2, 3}, 5);
  const Tensor t = Random({2, 3}, 9) + 4;
  const Tensor a = x.recovery();
  const Tensor b = y.recovery();
  ExpectNear((+x).recovery(), a, 0);
  ExpectNear((-x).recovery(), -a, 1e-14);
  ExpectNear((-x).components(), -x.components(), 0);
  ExpectNear((x + y).recovery(), a + b, 1e-14);
  ExpectNear((x + t).recovery(), a + t, 1e-14);
  ExpectNear((t + x).recovery(), t + a, 1e-14);
  ExpectNear((x + 2).recovery(), a + 2, 1e-14);
  ExpectNear((2.5 + x).recovery(), a + 2.5, 1e-14);
  ExpectNear((x - y).recovery(), a - b, 1e-14);
  ExpectNear((x - t).recovery(), a - t, 1e-14);
  ExpectNear((t - x).recovery(), t - a, 1e-14);
  ExpectNear((t - x).components(), -x.components(), 0);
  ExpectNear((x - 2).recovery(), a - 2, 1e-14);
  ExpectNear((2 - x).recovery(), 2 - a, 1e-14);
  ExpectNear((2 - x).components(), -x.components(), 0);
  ExpectNear((x * y).recovery(), a * b, 1e-13);
  ExpectNear((x * t).components(), x.components() * t, 1e-14);
  ExpectNear((t * x).components(), x.components() * t, 1e-14);
  ExpectNear((x * 3).components(), x.components() * 3, 1e-14);
  ExpectNear((3 * x).components(), x.components() * 3, 1e-14);
  const Composition d = x * 0.1 + 5;
  ExpectNear((y / d).recovery(), b / (a * 0.1 + 5), 1e-13);
  ExpectNear((x / t).components(), x.components() / t, 1e-14);
  ExpectNear((t / d).recovery(), t / (a * 0.1 + 5), 1e-13);
  ExpectNear((x / 4).components(), x.components() / 4, 1e-14);
  ExpectNear((2 / d).recovery(), 2 / (a * 0.1 + 5), 1e-13);
  EXPECT_GT(MaxAbs((2 / d).components()), 1e-3);
  Composition z = x;
  z += y;
  z -= t;
  z *= 2;
  z /= t;
  ExpectNear(z.recovery(), (a + b - t) * 2 / t, 1e-13);
}

TEST(OperatorsTest, ComparisonsReadValues) {
  const Composition x = RandomComposition({2, 3}, 1);
  const Composition y = RandomComposition({2, 3}, 5, 7);  // of another number of components: only values count
  const Tensor t = Random({2, 3}, 9);
  const Tensor a = x.recovery();
  EXPECT_TRUE((x > y).equal(a > y.recovery()));
  EXPECT_TRUE((x < t).equal(a < t));
  EXPECT_TRUE((t < x).equal(t < a));
  EXPECT_TRUE((t >= x).equal(t >= a));
  EXPECT_TRUE((x >= 0).equal(a >= 0));
  EXPECT_TRUE((0 >= x).equal(a <= 0));
  EXPECT_TRUE((0.5 < x).equal(a > 0.5));
  EXPECT_TRUE((x <= x).all().item<bool>());
  EXPECT_TRUE((x == x).all().item<bool>());
  EXPECT_FALSE((x != x).any().item<bool>());
  EXPECT_TRUE((t == x).equal(t == a));
  EXPECT_TRUE((1 != x).all().item<bool>());
}

TEST(RankTest, BroadcastingHappensBehindTheComponents) {
  // A batch of as many elements as there are components: aligned at the wrong side this would be silently wrong.
  const Composition x = RandomComposition({4}, 1, 3);
  const Composition y = RandomComposition({3, 4}, 5, 3);
  const Composition sum = x + y;
  for (int64_t i = 0; i < 3; ++i) ExpectNear(sum.component(i), x.component(i) + y.component(i), 1e-14);
  const Tensor batched = Random({3, 4, 2}, 8);
  const Composition product = y.matmul(batched);
  for (int64_t i = 0; i < 3; ++i) ExpectNear(product.component(i), y.component(i).matmul(batched), 1e-13);
  const Composition larger = x * Random({3, 2, 4}, 9);
  EXPECT_EQ(larger.components().sizes(), at::IntArrayRef({3, 3, 2, 4}));
}

TEST(GradientTest, PassesWhereAResultHasOtherStrides) {
  const at::Tensor parts = at::rand({2, 2, 3}, at::kDouble).requires_grad_(true);
  const at::Tensor residual = at::rand({2, 3}, at::kDouble);
  const Composition x = Composition::InGraph(parts, residual);
  const Composition y = Compute([](const std::vector<at::Tensor>& in) { return in[0].t().relu(); }, {x});
  ASSERT_TRUE(y.components().requires_grad());
  const at::Tensor weights = at::rand({2, 3, 2}, at::kDouble);
  (y.components() * weights).sum().backward();
  // All numbers are positive: what passes is only turned.
  EXPECT_LE((parts.grad() - weights.transpose(1, 2)).abs().max().item<double>(), 1e-12);
}

}  // namespace
}  // namespace addend
