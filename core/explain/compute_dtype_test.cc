// Models computed in a wider dtype than their own: the same bits as the same model whose parameters were converted
// before.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose_testing.h"
#include "core/explain/live.h"

namespace addend {
namespace {

using at::Tensor;

struct Weights {
  Tensor table, norm, query, key, value, gate, up, down, bias, filter;

  Weights To(at::ScalarType dtype) const {
    Weights all = *this;
    for (Tensor* own : {&all.table, &all.norm, &all.query, &all.key, &all.value, &all.gate, &all.up, &all.down,
                        &all.bias, &all.filter}) {
      *own = own->to(dtype);
    }
    return all;
  }
};

Weights Drawn() {
  const auto draw = [](at::IntArrayRef sizes, uint64_t seed) {
    return Random(sizes, seed).to(at::kFloat) / std::sqrt(static_cast<double>(sizes.back()));
  };
  return {draw({11, 8}, 1), draw({8}, 2),     draw({8, 8}, 3),  draw({8, 8}, 4), draw({8, 8}, 5),
          draw({16, 8}, 6), draw({16, 8}, 7), draw({8, 16}, 8), draw({16}, 9),   draw({8, 8, 3}, 10)};
}

// A decoder as models in half types compute it: casts to float32 and back, masks and constants in the weights' dtype,
// writes into buffers of it, views of weights. `wide`: what float32 is in such a model, once it is converted.
Tensor Decoder(const Weights& w, Tensor h, at::ScalarType wide_dtype = at::kFloat) {
  const at::ScalarType dtype = w.query.scalar_type();
  const auto norm = [&](const Tensor& x) {
    const Tensor wide = x.to(wide_dtype);
    return w.norm * (wide * at::rsqrt(wide.pow(2).mean(-1, true) + 1e-6)).to(dtype);
  };
  const int64_t length = h.size(1);
  const Tensor hidden = at::full({length, length}, -1e4, at::TensorOptions(dtype)).triu(1);
  Tensor cache = at::zeros({1, length, 8}, at::TensorOptions(dtype));
  cache.copy_(at::matmul(norm(h), w.key.t()));
  const Tensor scores = at::matmul(at::linear(norm(h), w.query), cache.transpose(1, 2)) / std::sqrt(8.0) + hidden;
  h = h + at::matmul(at::softmax(scores, -1, wide_dtype).to(dtype), at::matmul(norm(h), w.value.t()));
  const Tensor x = norm(h);
  const Tensor inner = at::silu(at::linear(x, w.gate, w.bias)) * at::linear(x, w.up);
  h = h + at::matmul(inner, w.down.t());
  h = h + at::conv1d(h.transpose(1, 2), w.filter, {}, 1, 1).transpose(1, 2);
  return at::layer_norm(h, {8}, w.norm, w.norm).mean(1);
}

TracedModel OfIds(const Weights& w, at::ScalarType wide = at::kFloat) {
  return TracedModel(FromFunction(
      [w, wide](const std::vector<Tensor>& in) { return Decoder(w, at::embedding(w.table, in[0]), wide); }));
}

Input Ids() {
  const Tensor ids = at::tensor({3, 7, 1, 10, 4}, at::kLong).unsqueeze(0);
  Input input;
  input.value = ids;
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(at::zeros_like(ids));
  return input;
}

AttributeOptions Options(ComputeDtype dtype) {
  AttributeOptions options;
  options.policy.compute_dtype = dtype;
  Target target;
  target.top1 = false;
  target.index = {0, 2};
  options.targets = {target};
  return options;
}

void ExpectSame(const Attribution& a, const Attribution& b) {
  EXPECT_TRUE(at::equal(a.value, b.value));
  EXPECT_EQ(a.targets[0].contributions, b.targets[0].contributions);
  EXPECT_EQ(a.targets[0].value, b.targets[0].value);
  EXPECT_EQ(a.targets[0].reference, b.targets[0].reference);
  EXPECT_EQ(a.targets[0].leftover, b.targets[0].leftover);
}

class ComputeDtypeTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ComputeDtypeTest, HasTheBitsOfConvertedParameters) {
  const Weights half = Drawn().To(GetParam());
  const Attribution converted = Attribute(OfIds(half.To(at::kFloat)), {Ids()}, Options(ComputeDtype::kModel));
  for (const int64_t memory : {0, 1000}) {
    AttributeOptions options = Options(ComputeDtype::kFloat32);
    options.memory_bytes = memory;
    const Attribution found = Attribute(OfIds(half), {Ids()}, options);
    EXPECT_EQ(found.value.scalar_type(), at::kFloat);
    ExpectSame(found, converted);
    EXPECT_THAT(found.report.notes, testing::Contains(testing::HasSubstr("computed in float32")));
    EXPECT_THAT(found.report.notes, testing::Not(testing::Contains(testing::HasSubstr("round to a half type"))));
  }
  EXPECT_LE(std::abs(converted.targets[0].leftover),
            1e-5 * std::abs(converted.targets[0].value - converted.targets[0].reference));
}

TEST_P(ComputeDtypeTest, OfAnInputInAHalfType) {
  const Weights half = Drawn().To(GetParam());
  const Tensor x = Random({1, 5, 8}, 20).to(GetParam());
  const auto model = [](const Weights& w) {
    return TracedModel(FromFunction([w](const std::vector<Tensor>& in) { return Decoder(w, in[0]); }));
  };
  const auto input = [&](const Tensor& value) { return SplitInput(value, {1}, at::zeros_like(value)); };
  const Attribution converted =
      Attribute(model(half.To(at::kFloat)), {input(x.to(at::kFloat))}, Options(ComputeDtype::kModel));
  ExpectSame(Attribute(model(half), {input(x)}, Options(ComputeDtype::kFloat32)), converted);
}

TEST(ComputeDtype, TheModelsOwnIsTheDefault) {
  const Weights half = Drawn().To(at::kBFloat16);
  const Attribution found = Attribute(OfIds(half), {Ids()}, Options(AttributeOptions().policy.compute_dtype));
  EXPECT_EQ(found.value.scalar_type(), at::kBFloat16);
  const Tensor plain = Decoder(half, at::embedding(half.table, Ids().value));
  EXPECT_TRUE(at::equal(found.value, plain));
  EXPECT_THAT(found.report.notes, testing::Not(testing::Contains(testing::HasSubstr("computed in float32"))));
  EXPECT_THAT(found.report.notes, testing::Contains(testing::HasSubstr("round to a half type")));
}

TEST(ComputeDtype, KeptReferencesAreOfOneDtype) {
  const Weights half = Drawn().To(at::kBFloat16);
  const TracedModel model = OfIds(half);
  const Attribution own = Attribute(model, {Ids()}, Options(ComputeDtype::kModel));
  const Attribution wide = Attribute(OfIds(half), {Ids()}, Options(ComputeDtype::kFloat32));
  ExpectSame(Attribute(model, {Ids()}, Options(ComputeDtype::kFloat32)), wide);
  ExpectSame(Attribute(model, {Ids()}, Options(ComputeDtype::kFloat32)), wide);
  ExpectSame(Attribute(model, {Ids()}, Options(ComputeDtype::kModel)), own);
}

TEST(ComputeDtype, ChangesNothingInSinglePrecision) {
  const Weights w = Drawn();
  const Attribution own = Attribute(OfIds(w), {Ids()}, Options(ComputeDtype::kModel));
  const Attribution wide = Attribute(OfIds(w), {Ids()}, Options(ComputeDtype::kFloat32));
  ExpectSame(own, wide);
  EXPECT_EQ(own.report.notes, wide.report.notes);
}

class ComputeInDoubleTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ComputeInDoubleTest, HasTheBitsOfConvertedParameters) {
  const Weights own = Drawn().To(GetParam());
  const TracedModel wide = OfIds(own.To(at::kDouble), at::kDouble);
  const Attribution converted = Attribute(wide, {Ids()}, Options(ComputeDtype::kModel));
  for (const int64_t memory : {0, 1000}) {
    AttributeOptions options = Options(ComputeDtype::kFloat64);
    options.memory_bytes = memory;
    const Attribution found = Attribute(OfIds(own), {Ids()}, options);
    EXPECT_EQ(found.value.scalar_type(), at::kDouble);
    ExpectSame(found, converted);
    EXPECT_THAT(found.report.notes, testing::Contains(testing::HasSubstr("computed in float64")));
  }
}

TEST_P(ComputeInDoubleTest, OfAnInputBothWays) {
  const Weights own = Drawn().To(GetParam());
  const Tensor x = Random({1, 5, 8}, 20).to(GetParam());
  const auto model = [](const Weights& w, at::ScalarType wide) {
    return TracedModel(FromFunction([w, wide](const std::vector<Tensor>& in) { return Decoder(w, in[0], wide); }));
  };
  const Tensor baseline = Random({1, 5, 8}, 21).to(GetParam());
  const auto input = [&](at::ScalarType dtype) { return SplitInput(x.to(dtype), {1}, baseline.to(dtype)); };
  const TracedModel converted = model(own.To(at::kDouble), at::kDouble);
  AttributeOptions options = Options(ComputeDtype::kFloat64);
  options.verify_reference = true;
  const Attribution found = Attribute(model(own, at::kFloat), {input(GetParam())}, options);
  ExpectSame(found, Attribute(converted, {input(at::kDouble)}, Options(ComputeDtype::kModel)));
  EXPECT_EQ(found.report.reference_is_model_on_baseline, "yes") << found.report.reference_reason;
  DecomposeOptions forward;
  forward.direction = Direction::kForward;
  forward.policy.compute_dtype = ComputeDtype::kFloat64;
  const Decomposition parts = model(own, at::kFloat).Decompose({input(GetParam())}, forward);
  const Tensor exact = Decoder(own.To(at::kDouble), x.to(at::kDouble), at::kDouble);
  EXPECT_TRUE(at::equal(parts.outputs[0].value, exact));
  const Composition& sum = parts.outputs[0].composition;
  EXPECT_LE((sum.recovery() - exact).abs().max().item<double>(), 1e-12);
}

// A tensor in single precision that the model writes into stays one, and rounds what is written.
TEST(ComputeInDouble, WritesRoundAsInTheModel) {
  const TracedModel model(FromFunction([](const std::vector<Tensor>& in) {
    Tensor kept = in[1].clone();
    kept.select(0, 0).copy_(in[0].sum(0) * 3);
    return kept * 2 + in[0];
  }));
  const Tensor x = Random({3, 4}, 5, at::kFloat);
  DecomposeOptions options;
  options.policy.compute_dtype = ComputeDtype::kFloat64;
  options.policy.preset = Preset::kFaithful;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    options.direction = direction;
    const Decomposition parts =
        model.Decompose({SplitInput(x, {1}), Input::Plain(at::zeros({3, 4}, at::kFloat))}, options);
    const Composition& sum = parts.outputs[0].composition;
    EXPECT_LE((sum.recovery() - sum.value()).abs().max().item<double>(), 1e-6);
  }
}

AttributeOptions InDouble() {
  AttributeOptions options;
  options.policy.compute_dtype = ComputeDtype::kFloat64;
  options.policy.preset = Preset::kFaithful;
  options.targets = {ParseTarget("1,2")};
  return options;
}

DecomposeOptions PartsInDouble(Direction direction) {
  DecomposeOptions options;
  options.policy = InDouble().policy;
  options.direction = direction;
  return options;
}

double Apart(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// Operators see a wide copy of an input, so a model that writes its input writes that copy.
TEST(ComputeInDouble, AnOutputThatIsTheWrittenInputHasWhatWasWritten) {
  const TracedModel model(FromFunction([](const std::vector<Tensor>& in) {
    in[0].div_(3);
    return in[0];
  }));
  const Tensor x = Random({3, 4}, 5, at::kFloat);
  const Tensor exact = x.to(at::kDouble) / 3;
  const Decomposed output = model.Decompose({SplitInput(x, {1})}, PartsInDouble(Direction::kForward)).outputs[0];
  EXPECT_TRUE(at::equal(output.value, exact));
  EXPECT_LE(Apart(output.composition.recovery(), exact), 1e-12);
  const Attribution found = Attribute(model, {SplitInput(x, {1})}, InDouble());
  EXPECT_TRUE(at::equal(found.value, exact));
  EXPECT_NEAR(found.targets[0].recovery, exact[1][2].item<double>(), 1e-12);

  const Tensor live = x.clone();
  LiveTrace trace({SplitInput(live, {1})}, {}, InDouble());
  live.div_(3);
  trace.AddOutput("output", live);
  EXPECT_TRUE(at::equal(trace.FinishAttribution().value, exact));
}

// The plain model that a reference is verified by, and a plan compared with, is computed as the traced one is.
TEST(ComputeInDouble, ThePlainModelSeesTheSameInput) {
  const TracedModel model(FromFunction([](const std::vector<Tensor>& in) { return in[0].div_(3) + 1; }));
  const Input input = SplitInput(Random({3, 4}, 5, at::kFloat), {1}, Random({3, 4}, 6, at::kFloat));
  AttributeOptions options = InDouble();
  options.verify_reference = true;
  const Report report = Attribute(model, {input}, options).report;
  EXPECT_EQ(report.reference_is_model_on_baseline, "yes") << report.reference_reason;
  EXPECT_LE(report.reference_error.value(), 1e-15);
}

// The rounding of parts in single precision is no failure of the operators that compute in double precision.
TEST(ComputeInDouble, WhatGivenPartsMissIsLeftover) {
  const TracedModel model(FromFunction([](const std::vector<Tensor>& in) { return at::tanh(in[0]) * 3; }));
  const Tensor x = Random({3, 4}, 5, at::kFloat);
  Input input;
  input.value = x;
  input.split = Split::Parts(at::stack({x * 0.3, x * 0.3, x * 0.1}));
  const Tensor exact = at::tanh(x.to(at::kDouble)) * 3;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const Decomposition found = model.Decompose({input}, PartsInDouble(direction));
    EXPECT_TRUE(found.report.failures.empty());
    const Composition& parts = found.outputs[0].composition;
    EXPECT_LE(Apart(parts.recovery(), exact), 1e-12);
    EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-5);
  }
  const Attribution found = Attribute(model, {input}, InDouble());
  EXPECT_NEAR(found.targets[0].recovery, exact[1][2].item<double>(), 1e-12);
}

struct Write {
  std::string name;
  std::function<void(const Tensor& cache, const Tensor& rows)> into;
};
void PrintTo(const Write& write, std::ostream* out) { *out << write.name; }

class WritesIntoSinglePrecision : public testing::TestWithParam<Write> {};

// Operators that want both in one dtype write what is computed in double precision into a cache in single precision.
TEST_P(WritesIntoSinglePrecision, AreRounded) {
  const Tensor cache = at::zeros({3, 4}, at::kFloat);
  const TracedModel model(FromFunction([cache](const std::vector<Tensor>& in) {
    cache.zero_();
    GetParam().into(cache, in[0].narrow(0, 0, 2) / 3);
    return cache * 2 + in[0];
  }));
  const Tensor x = Random({3, 4}, 5, at::kFloat);
  const Tensor wide = x.to(at::kDouble);
  GetParam().into(cache, (wide.narrow(0, 0, 2) / 3).to(at::kFloat));
  const Tensor expected = cache.to(at::kDouble) * 2 + wide;
  const Decomposition found = model.Decompose({SplitInput(x, {1})}, PartsInDouble(Direction::kForward));
  EXPECT_EQ(cache.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(found.outputs[0].value, expected));
  const Composition& parts = found.outputs[0].composition;
  EXPECT_LE(Apart(parts.recovery(), expected), 1e-6);
  const Attribution backward = Attribute(model, {SplitInput(x, {1})}, InDouble());
  EXPECT_NEAR(backward.targets[0].recovery, expected[1][2].item<double>(), 1e-6);
}

Tensor FirstRows() { return at::arange(2, at::kLong); }

INSTANTIATE_TEST_SUITE_P(
    All, WritesIntoSinglePrecision,
    testing::Values(
        Write{"copy", [](const Tensor& cache, const Tensor& rows) { cache.narrow(0, 0, 2).copy_(rows); }},
        Write{"index_copy", [](const Tensor& cache, const Tensor& rows) { cache.index_copy_(0, FirstRows(), rows); }},
        Write{"index_add", [](const Tensor& cache, const Tensor& rows) { cache.index_add_(0, FirstRows(), rows); }},
        Write{"index_put", [](const Tensor& cache, const Tensor& rows) { cache.index_put_({FirstRows()}, rows); }},
        Write{"scatter",
              [](const Tensor& cache, const Tensor& rows) {
                cache.scatter_(0, FirstRows().unsqueeze(1).expand({2, 4}), rows);
              }},
        Write{"masked_scatter",
              [](const Tensor& cache, const Tensor& rows) {
                cache.masked_scatter_(at::arange(3, at::kLong).lt(2).unsqueeze(1).expand({3, 4}), rows);
              }}),
    [](const auto& info) { return info.param.name; });

// A view reads the bytes that are there as the dtype that is asked for.
TEST(ComputeInDouble, BytesAreReadAsTheyAre) {
  const Tensor numbers = Random({3, 4}, 6, at::kFloat);
  const Tensor bits = numbers.view(at::kInt);
  const TracedModel model(
      FromFunction([bits](const std::vector<Tensor>& in) { return in[0] * bits.view(at::kFloat); }));
  const Tensor x = Random({3, 4}, 5, at::kFloat);
  const Decomposed output = model.Decompose({SplitInput(x, {1})}, PartsInDouble(Direction::kForward)).outputs[0];
  EXPECT_TRUE(at::equal(output.value, x.to(at::kDouble) * numbers.to(at::kDouble)));
}

INSTANTIATE_TEST_SUITE_P(All, ComputeInDoubleTest, testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) {
                           return info.param == at::kFloat  ? "float32"
                                  : info.param == at::kHalf ? "float16"
                                                            : "bfloat16";
                         });

INSTANTIATE_TEST_SUITE_P(Half, ComputeDtypeTest, testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& info) { return info.param == at::kHalf ? "float16" : "bfloat16"; });

}  // namespace
}  // namespace addend
