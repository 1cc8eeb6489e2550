// Normalization layers against the operators that they are made of, and the fused loop against its formula.
#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/rules/kernels.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

// (input - mean) * rsqrt(mean of squares + eps), each operator by its own path rule.
Tracked Normalized(const Tracked& input, double eps, const Policy& policy) {
  const auto through = [&](const char* op, const std::vector<TrackedArgument>& arguments) {
    return Through(op, arguments, policy);
  };
  const Tracked centred = through("aten::sub.Tensor", {input, through("aten::mean.dim", {input, Sizes{-1}, true})});
  const Tracked variance =
      through("aten::mean.dim", {through("aten::mul.Tensor", {centred, centred}), Sizes{-1}, true});
  const Tracked inverse = through("aten::rsqrt", {through("aten::add.Scalar", {variance, eps})});
  return through("aten::mul.Tensor", {centred, inverse});
}

Tracked Plain(const at::Tensor& t) { return {t, t, at::Tensor()}; }

TEST(LayerNormTest, IsCentreSquareMeanRsqrtAndProduct) {
  for (const Policy* policy : {&Faithful(), &ByHalf()}) {
    for (const double scale : {1.0, 1e-3, 100.0}) {
      Draw draw(at::kDouble, 1);
      const Tracked input = {draw.Normal({3, 4, 7}, scale), draw.Normal({3, 4, 7}, scale), draw.Normal({5, 3, 4, 7})};
      const at::Tensor weight = draw.Normal({7});
      const at::Tensor bias = draw.Normal({7});
      const Tracked scaled = Through("aten::mul.Tensor", {Normalized(input, 1e-5, *policy), Plain(weight)}, *policy);
      const Tracked expected = Through("aten::add.Tensor", {scaled, Plain(bias)}, *policy);
      const Tracked fused = Through("aten::layer_norm", {input, Sizes{7}, weight, bias, 1e-5}, *policy);
      EXPECT_LE(Difference(fused.value, expected.value), 1e-13);
      EXPECT_LE(Difference(fused.rows, expected.rows), 1e-12) << "scale " << scale;
    }
  }
}

// The normalizer moves while the content is the reference's, then the content moves at the normalizer's value.
TEST(LayerNormTest, ContentFirstIsItsFormula) {
  constexpr double kEps = 1e-5;
  Draw draw(at::kDouble, 15);
  const at::Tensor value = draw.Normal({5, 9});
  const at::Tensor rows = draw.Normal({4, 5, 9});
  const auto centred = [](const at::Tensor& t) { return t - t.mean(-1, true); };
  const auto variance = [&](const at::Tensor& t) { return centred(t).square().mean(-1, true) + kEps; };
  for (const double scale : {0.0, 1e-6, 1.0, 100.0}) {
    const at::Tensor reference = draw.Normal({5, 9}, scale);
    const Tracked fused = Through("aten::layer_norm", {Tracked{value, reference, rows}, Sizes{9}});
    const at::Tensor inverse = variance(value).rsqrt();
    const at::Tensor slope = (inverse - variance(reference).rsqrt()) / (variance(value) - variance(reference));
    const at::Tensor along = (centred(rows) * (centred(value) + centred(reference))).mean(-1, true);
    const at::Tensor expected = centred(rows) * inverse + centred(reference) * slope * along;
    EXPECT_LE(Difference(fused.rows, expected), 1e-11) << "scale " << scale;
  }
}

// From nothing, where 1 / std is 1 / sqrt(eps): content passes at the value's 1 / std and at nothing else.
TEST(LayerNormTest, FromNothingOnlyTheContentMoves) {
  Draw draw(at::kDouble, 16);
  const at::Tensor value = draw.Normal({3, 8});
  const at::Tensor rows = draw.Normal({4, 3, 8});
  const Tracked fused = Through("aten::layer_norm", {Tracked{value, at::zeros_like(value), rows}, Sizes{8}});
  const at::Tensor inverse = (value.var(-1, /*unbiased=*/false, /*keepdim=*/true) + 1e-5).rsqrt();
  EXPECT_LE(Difference(fused.rows, (rows - rows.mean(-1, true)) * inverse), 1e-13);
  // Nor is anything cancelled that is much larger than the output.
  const OperatorCall op("aten::layer_norm", {{value, at::zeros_like(value)}, Sizes{8}});
  EXPECT_LE(BuildRule(op.Describe(Faithful())).inner_terms * 10, BuildRule(op.Describe(ByHalf())).inner_terms);
}

TEST(LayerNormTest, SquareByPowIsTheSame) {
  Draw draw(at::kDouble, 2);
  const Tracked input = {draw.Normal({4, 6}), draw.Normal({4, 6}), draw.Normal({5, 4, 6})};
  const Tracked centred = Through("aten::sub.Tensor", {input, Through("aten::mean.dim", {input, Sizes{-1}, true})});
  const Tracked squares = Through("aten::pow.Tensor_Scalar", {centred, 2});
  const Tracked variance = Through("aten::mean.dim", {squares, Sizes{-1}, true});
  const Tracked inverse = Through("aten::rsqrt", {Through("aten::add.Scalar", {variance, 1e-5})});
  const Tracked expected = Through("aten::mul.Tensor", {centred, inverse});
  const Tracked fused = Through("aten::layer_norm", {input, Sizes{6}});
  EXPECT_LE(Difference(fused.rows, expected.rows), 1e-12);
}

// A reference whose groups are constant has no spread at all: its 1 / std is 1 / sqrt(eps) = 316, and by half the two
// terms of which the output is the difference are so much larger than it. Content first they are not.
TEST(LayerNormTest, ConstantReference) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 3);
    const OperatorCall op("aten::layer_norm", {{draw.Normal({3, 8}), at::ones({3, 8}, dtype)}, Sizes{8}});
    const double eps = dtype == at::kDouble ? 2.3e-16 : 1.2e-7;
    const RuleCall by_half = op.Describe(ByHalf());
    EXPECT_LE(RelativeBracket(by_half, BuildRule(by_half)), 316 * eps);
    const RuleCall call = op.Describe(Faithful());
    EXPECT_LE(RelativeBracket(call, BuildRule(call)), 4 * eps);
  }
}

// float32 coefficients on float64 rows go through the ATen form, float32 rows through the fused loop.
TEST(LayerNormTest, TheFusedLoopIsTheAtenForm) {
  for (const Policy* policy : {&Faithful(), &ByHalf(), &Fast()}) {
    Draw draw(at::kFloat, 4);
    const RuleCall call =
        OperatorCall("aten::layer_norm", {draw.Moving({5, 3, 33}), Sizes{3, 33}, draw.Normal({3, 33})})
            .Describe(*policy);
    const RuleResult rule = BuildRule(call);
    const at::Tensor rows = draw.Normal({6, 5, 3, 33});
    const at::Tensor aten = rule.map->Forward({rows.to(at::kDouble)})[0];
    EXPECT_EQ(aten.scalar_type(), at::kDouble);
    EXPECT_LE(Difference(rule.map->Forward({rows})[0], aten), 2e-6);
    const at::Tensor g = draw.Normal({5, 3, 33});
    EXPECT_LE(Difference(rule.map->Transpose({g})[0], rule.map->Transpose({g.to(at::kDouble)})[0]), 2e-6);
  }
}

// Calls that autograd must see are composed of operators: the same coefficients, and the same terms that cancel.
TEST(LayerNormTest, FusedCoefficientsAreThoseOfTheAtenForm) {
  for (const Policy* policy : {&Faithful(), &ByHalf(), &Fast()}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      for (const int64_t size : {1, 7, 64, 1000}) {
        SCOPED_TRACE(size);
        Draw draw(dtype, 14);
        RuleCall call =
            OperatorCall("aten::layer_norm",
                         {{draw.Normal({40, size}, 3), draw.Normal({40, size})}, Sizes{size}, draw.Normal({size})})
                .Describe(*policy);
        const RuleResult fused = BuildRule(call);
        call.operands[0].value = call.operands[0].value.detach().clone().set_requires_grad(true);
        const RuleResult aten = BuildRule(call);
        const at::Tensor rows = draw.Normal({3, 40, size});
        const double eps = dtype == at::kDouble ? 2.3e-16 : 1.2e-7;
        EXPECT_LE(Difference(fused.map->Forward({rows})[0], aten.map->Forward({rows})[0].detach(), 1), 300 * eps);
        EXPECT_NEAR(fused.inner_terms, aten.inner_terms, 300 * eps * aten.inner_terms);
      }
    }
  }
}

TEST(LayerNormTest, AFrozenNormalizerOnlyCentresAndScales) {
  Draw draw(at::kDouble, 5);
  const at::Tensor value = draw.Normal({4, 6});
  const at::Tensor weight = draw.Normal({6});
  const RuleCall call =
      OperatorCall("aten::layer_norm", {{value, draw.Normal({4, 6})}, Sizes{6}, weight, kNone, 1e-3}).Describe(Fast());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  const at::Tensor inverse = (value.var(-1, /*unbiased=*/false, /*keepdim=*/true) + 1e-3).rsqrt();
  const at::Tensor rows = draw.Normal({5, 4, 6});
  const at::Tensor expected = (rows - rows.mean(-1, true)) * inverse * weight;
  EXPECT_LE(Difference(rule.map->Forward({rows})[0], expected), 1e-13);
  Policy thawed = Fast();
  thawed.freeze = kFreezeNothing;
  RuleCall other = call;
  other.policy = &thawed;
  EXPECT_LE(RelativeBracket(other, BuildRule(other)), 1e-12);
  EXPECT_TRUE(BuildRule(other).exact);
}

TEST(LayerNormTest, StatisticsOfTheNativeFormMoveAsTheirOperatorsDo) {
  Draw draw(at::kDouble, 6);
  const Tracked input = {draw.Normal({4, 6}), draw.Normal({4, 6}), draw.Normal({5, 4, 6})};
  const RuleCall call =
      OperatorCall("aten::native_layer_norm", {{input.value, input.reference}, Sizes{6}, kNone, kNone, 1e-5})
          .Describe(Faithful());
  const Rows rows = BuildRule(call).map->Forward({input.rows});
  ASSERT_EQ(rows.size(), 3u);
  const Tracked mean = Through("aten::mean.dim", {input, Sizes{-1}, true});
  const Tracked centred = Through("aten::sub.Tensor", {input, mean});
  const Tracked variance = Through("aten::mean.dim", {Through("aten::square", {centred}), Sizes{-1}, true});
  const Tracked inverse = Through("aten::rsqrt", {Through("aten::add.Scalar", {variance, 1e-5})});
  EXPECT_LE(Difference(rows[1], mean.rows), 1e-13);
  EXPECT_LE(Difference(rows[2], inverse.rows), 1e-12);
}

TEST(GroupNormTest, IsTheSameOverGroups) {
  Draw draw(at::kDouble, 7);
  const Tracked input = {draw.Normal({2, 6, 5}), draw.Normal({2, 6, 5}), draw.Normal({4, 2, 6, 5})};
  const at::Tensor weight = draw.Normal({6});
  const at::Tensor bias = draw.Normal({6});
  const Tracked grouped = {input.value.view({2, 3, 10}), input.reference.view({2, 3, 10}),
                           input.rows.view({4, 2, 3, 10})};
  const Tracked normalized = Normalized(grouped, 1e-2, Faithful());
  const at::Tensor expected = normalized.rows.view({4, 2, 6, 5}) * weight.view({6, 1});
  const Tracked fused = Through("aten::group_norm", {input, int64_t{3}, weight, bias, 1e-2});
  EXPECT_LE(Difference(fused.rows, expected), 1e-12);
  EXPECT_LE(Difference(fused.value, normalized.value.view({2, 6, 5}) * weight.view({6, 1}) + bias.view({6, 1})), 1e-13);
}

TEST(BatchNormTest, InEvaluationItIsAFixedScale) {
  Draw draw(at::kDouble, 8);
  const at::Tensor weight = draw.Normal({3});
  const at::Tensor variance = draw.Uniform({3}, 0.5, 2);
  const Tracked input = {draw.Normal({2, 3, 4}), draw.Normal({2, 3, 4}), draw.Normal({5, 2, 3, 4})};
  const Tracked out = Through("aten::batch_norm",
                              {input, weight, draw.Normal({3}), draw.Normal({3}), variance, false, 0.1, 1e-3, false});
  const at::Tensor scale = (weight / (variance + 1e-3).sqrt()).view({3, 1});
  EXPECT_LE(Difference(out.rows, input.rows * scale), 1e-14);
}

// LibTorch does not differentiate by running statistics, but they may carry rows: mean, variance, scale and shift are
// sums and products, each by its own rule.
TEST(BatchNormTest, EverythingMayMove) {
  Draw draw(at::kDouble, 11);
  const auto moving = [&](const Sizes& sizes) -> Tracked {
    Sizes rows = sizes;
    rows.insert(rows.begin(), 5);
    return {draw.Uniform(sizes, 0.5, 2), draw.Uniform(sizes, 0.5, 2), draw.Normal(rows)};
  };
  const Tracked x = moving({2, 3, 4});
  const std::vector<Tracked> own = {moving({3}), moving({3}), moving({3}),
                                    moving({3})};  // scale, shift, mean, variance
  std::vector<Tracked> columns;
  for (const Tracked& t : own) {
    columns.push_back({t.value.view({3, 1}), t.reference.view({3, 1}), t.rows.view({5, 3, 1})});
  }
  for (const Policy* policy : {&Faithful(), &ByHalf()}) {
    const auto times = [&](const Tracked& a, const Tracked& b) { return Through("aten::mul.Tensor", {a, b}, *policy); };
    const Tracked inverse = Through("aten::rsqrt", {Through("aten::add.Scalar", {columns[3], 1e-3})}, *policy);
    const Tracked centred = Through("aten::sub.Tensor", {x, columns[2]});
    const bool by_half = policy == &ByHalf();
    const Tracked scaled =
        by_half ? times(centred, times(inverse, columns[0])) : times(times(centred, inverse), columns[0]);
    const Tracked expected = Through("aten::add.Tensor", {scaled, columns[1]});
    const Tracked out =
        Through("aten::batch_norm", {x, own[0], own[1], own[2], own[3], false, 0.1, 1e-3, false}, *policy);
    EXPECT_LE(Difference(out.value, expected.value), 1e-13);
    EXPECT_LE(Difference(out.rows, expected.rows), 1e-12);
  }
}

// Normalizing by the statistics of the batch is a layer norm of each channel.
TEST(BatchNormTest, InTrainingItNormalizesEachChannel) {
  Draw draw(at::kDouble, 10);
  const Tracked input = {draw.Normal({2, 3, 4}), draw.Normal({2, 3, 4}), draw.Normal({5, 2, 3, 4})};
  const at::Tensor weight = draw.Normal({3});
  const auto by_channel = [](const at::Tensor& t) { return t.transpose(-3, -2).reshape({-1, 3, 8}); };
  const Tracked channels = {by_channel(input.value).squeeze(0), by_channel(input.reference).squeeze(0),
                            by_channel(input.rows)};
  const Tracked normalized = Normalized(channels, 1e-3, Faithful());
  for (const char* name : {"aten::batch_norm", "aten::native_batch_norm"}) {
    std::vector<TrackedArgument> arguments = {input, weight, draw.Normal({3}), kNone, kNone, true, 0.1, 1e-3};
    if (std::string(name) == "aten::batch_norm") arguments.emplace_back(false);
    const Tracked out = Through(name, arguments);
    EXPECT_LE(Difference(by_channel(out.rows), normalized.rows * weight.view({3, 1})), 1e-12) << name;
  }
}

// ------------------------------------------------------------------------------------------------------- the fused
// loop

template <typename T>
class KernelTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelTest, Types);

// The formula of kernels.h, term by term in long double.
TYPED_TEST(KernelTest, ComputesItsFormula) {
  using T = TypeParam;
  const double eps = std::numeric_limits<T>::epsilon();
  // Sizes around the widths of vector registers, and one that several threads would share.
  for (const int64_t size : {1, 2, 3, 7, 8, 15, 16, 17, 64, 1000}) {
    const int64_t groups = 3;
    const int64_t rows = size == 1000 ? 40 : 2;
    std::mt19937_64 engine(static_cast<uint64_t>(size));
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto random = [&](int64_t n) {
      std::vector<T> v(n);
      for (T& x : v) x = static_cast<T>(uniform(engine));
      return v;
    };
    const auto input = random(rows * groups * size);
    const auto middle = random(groups * size);
    const auto met = random(groups * size);
    const auto inverse = random(groups);
    const auto bend = random(groups);
    const auto weight = random(size);
    for (const bool frozen : {false, true}) {
      for (const bool weighted : {false, true}) {
        for (const bool transposed : {false, true}) {
          const NormalizerView<T> view = {frozen ? nullptr : middle.data(),
                                          frozen ? nullptr : met.data(),
                                          inverse.data(),
                                          frozen ? nullptr : bend.data(),
                                          weighted ? weight.data() : nullptr,
                                          groups,
                                          size};
          std::vector<T> output(input.size(), T(-99));
          NormalizeRows<T>(input.data(), output.data(), rows, view, transposed);
          const std::vector<T>& read = transposed ? met : middle;
          const std::vector<T>& written = transposed ? middle : met;
          for (int64_t i = 0; i < rows * groups; ++i) {
            const int64_t g = i % groups;
            long double mean = 0;
            long double along = 0;
            const auto at = [&](int64_t j) -> long double {
              return static_cast<long double>(input[i * size + j]) * (weighted && transposed ? weight[j] : T(1));
            };
            for (int64_t j = 0; j < size; ++j) {
              mean += at(j) / size;
              along += at(j) * read[g * size + j] / size;
            }
            for (int64_t j = 0; j < size; ++j) {
              long double expected = inverse[g] * (at(j) - mean);
              if (!frozen) expected += bend[g] * along * written[g * size + j];
              if (weighted && !transposed) expected *= weight[j];
              ASSERT_NEAR(output[i * size + j], static_cast<double>(expected), 32 * eps)
                  << "size " << size << " row " << i << " element " << j << (frozen ? " frozen" : "")
                  << (weighted ? " weighted" : "") << (transposed ? " transposed" : "");
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(KernelTest, NoRowsAndNoGroups) {
  using T = TypeParam;
  const T one = 1;
  T untouched = 7;
  NormalizeRows<T>(&one, &untouched, 0, {nullptr, nullptr, &one, nullptr, nullptr, 1, 1}, false);
  NormalizeRows<T>(&one, &untouched, 3, {nullptr, nullptr, &one, nullptr, nullptr, 0, 1}, false);
  EXPECT_EQ(untouched, 7);
}

}  // namespace
}  // namespace addend
