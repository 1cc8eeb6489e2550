// Components that move in chunks: the same compositions as in one sweep, within a budget of memory, and the same
// failures found.
#include "core/linearize/chunks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

void ExpectSame(const Composition& a, const Composition& b, const Tensor& value) {
  const double scale = std::max(value.abs().max().item<double>(), 1.0);
  ASSERT_EQ(a.components().sizes(), b.components().sizes());
  EXPECT_LE((a.components() - b.components()).abs().max().item<double>(), 1e-12 * scale);
  EXPECT_LE((a.leftover() - b.leftover()).abs().max().item<double>(), 1e-12 * scale);
  EXPECT_TRUE(at::equal(a.reference(), b.reference()));
}

class Chunks : public testing::TestWithParam<SmallModel> {
 protected:
  Decomposition Decompose(const DecomposeOptions& options) const {
    Input input;
    input.value = Random({2, 6}, 1);
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(Random({2, 6}, 2));
    at::manual_seed(5);
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return GetParam().run(in[0].clone()); }))
        .Decompose({input}, options);
  }
};

TEST_P(Chunks, GiveWhatOneSweepGives) {
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    for (const Bias bias : {Bias::kResidual, Bias::kSignThreshold}) {
      DecomposeOptions options;
      options.policy.preset = preset;
      options.policy.bias = bias;
      options.everything = true;
      const Decomposition whole = Decompose(options);
      for (const int64_t chunk : {1, 2, 4, 5, 6, 7}) {
        SCOPED_TRACE(chunk);
        options.chunk = chunk;
        const Decomposition result = Decompose(options);
        EXPECT_EQ(result.numc, 6);
        EXPECT_TRUE(result.report.failures.empty());
        ExpectSame(result.outputs[0].composition, whole.outputs[0].composition, whole.outputs[0].value);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, Chunks, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

TEST(ChunksOfInputs, LabelsThatCountForNobodyAndGivenParts) {
  DecomposeOptions options;
  options.probes = {"aten::gelu"};
  const Decomposition whole = DecomposeFunction(TanhTimesGelu, LabelledAndParts(), options);
  for (const int64_t chunk : {1, 2, 3}) {
    options.chunk = chunk;
    const Decomposition result = DecomposeFunction(TanhTimesGelu, LabelledAndParts(), options);
    ExpectSame(result.outputs[0].composition, whole.outputs[0].composition, whole.outputs[0].value);
    ExpectSame(result.probes[0].composition, whole.probes[0].composition, whole.probes[0].value);
  }
}

TEST(ChunksOfInputs, IdsOfAnEmbedding) {
  Input ids;
  ids.value = at::tensor({4, 1, 0, 3, 2, 2}, at::kLong);
  ids.split = Split::AlongDims({0});
  ids.baseline = Baseline::Of(0.0);
  const Tensor weight = Random({5, 3}, 8);
  const auto model = [&](const std::vector<Tensor>& in) { return at::embedding(weight, in[0]).cumsum(0).exp(); };
  DecomposeOptions options;
  const Decomposition whole = DecomposeFunction(model, {ids}, options);
  options.chunk = 4;
  const Decomposition result = DecomposeFunction(model, {ids}, options);
  ExpectSame(result.outputs[0].composition, whole.outputs[0].composition, whole.outputs[0].value);
}

TEST(ChunksOfInputs, SegmentsOfTheLine) {
  Input input;
  input.value = Random({3, 7}, 9);
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  const auto model = [](const std::vector<Tensor>& in) { return at::sigmoid(in[0]) * in[0].sum(1, true).exp(); };
  DecomposeOptions options;
  options.policy.segments = 3;
  const Decomposition whole = DecomposeFunction(model, {input}, options);
  options.chunk = 3;
  const Decomposition result = DecomposeFunction(model, {input}, options);
  ExpectSame(result.outputs[0].composition, whole.outputs[0].composition, whole.outputs[0].value);
}

// ---- memory

Input Wide() {
  Input input;
  input.value = Random({4, 64}, 10);
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  return input;
}

Tensor Hidden(const std::vector<Tensor>& in) {
  return at::matmul(at::relu(at::matmul(in[0], Random({64, 128}, 11))), Random({128, 3}, 12));
}

TEST(Memory, TheBudgetDecidesHowManyMoveAtOnce) {
  DecomposeOptions options;
  const Decomposition whole = DecomposeFunction(Hidden, {Wide()}, options);
  std::vector<int64_t> sweeps;
  for (const int64_t bytes : {int64_t{1} << 30, int64_t{400000}, int64_t{100000}}) {
    int64_t steps = 0;
    options.memory_bytes = bytes;
    options.progress = [&](const std::string& stage, int64_t, int64_t total) {
      if (stage == "sweep") steps = total;
    };
    const Decomposition result = DecomposeFunction(Hidden, {Wide()}, options);
    ExpectSame(result.outputs[0].composition, whole.outputs[0].composition, whole.outputs[0].value);
    sweeps.push_back(steps);
  }
  EXPECT_LT(sweeps[0], sweeps[1]);
  EXPECT_LT(sweeps[1], sweeps[2]);
}

TEST(Memory, TooLittleIsAnErrorThatSaysHowMuchIsNeeded) {
  DecomposeOptions options;
  options.memory_bytes = 1000;
  try {
    DecomposeFunction(Hidden, {Wide()}, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("64 components do not fit into 1000 bytes, even one by one: that takes "));
  }
  options.memory_bytes = -1;
  EXPECT_THROW(DecomposeFunction(Hidden, {Wide()}, options), Error);
}

// Choices that look at all components together cannot move in chunks, but work if one sweep fits.
TEST(Memory, ChoicesThatAreNotLinearNeedOneSweep) {
  DecomposeOptions options;
  options.policy.nonlinearity = Nonlinearity::kAbsAffine;
  options.memory_bytes = int64_t{1} << 30;
  EXPECT_NO_THROW(DecomposeFunction(Hidden, {Wide()}, options));
  options.chunk = 8;
  try {
    DecomposeFunction(Hidden, {Wide()}, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(e.what(), HasSubstr("aten::relu"));
    EXPECT_THAT(e.what(), HasSubstr("cannot move in chunks"));
  }
}

// ---- a map that is wrong for one component only is found, in whichever chunk that moves

class Crooked : public LinearMap {
 public:
  // Rows that are zero but for one element are those of single components.
  Rows Forward(const Rows& rows) const override {
    const Tensor single = rows[0].ne(0).flatten(1).sum(1).eq(1).view({-1, 1, 1});
    return {at::where(single, rows[0] * 1.01, rows[0])};
  }
  Rows Transpose(const Rows& cotangents) const override { return cotangents; }
};

TEST(ChunksFindFailures, OfLaterChunks) {
  Registry registry = Registry::Default();
  Rule rule{"aten::clone", Kind::kLinear, [](const RuleCall&) {
              RuleResult result;
              result.inputs = {0};
              result.map = std::make_shared<Crooked>();
              return result;
            }};
  registry.Register(rule);
  Input input;
  input.value = Random({1, 6}, 13);
  input.split = Split::ByLabels(at::tensor({0, 0, 1, 1, 2, 3}, at::kLong).view({1, 6}));
  DecomposeOptions options;
  options.registry = &registry;
  options.policy.preset = Preset::kFaithful;
  const auto model = [](const std::vector<Tensor>& in) { return in[0].clone(); };
  EXPECT_THROW(DecomposeFunction(model, {input}, options), Error);
  // Components 2 and 3 move in the second chunk; in the first one they are one row, of two elements.
  options.chunk = 2;
  try {
    DecomposeFunction(model, {input}, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(e.what(), HasSubstr("the chunks' components differ"));
  }
  options.policy.on_failure = OnFailure::kAbsorb;
  const Decomposition absorbed = DecomposeFunction(model, {input}, options);
  EXPECT_EQ(absorbed.report.failures.size(), 1u);
  EXPECT_LE((absorbed.outputs[0].composition.recovery() - absorbed.outputs[0].value).abs().max().item<double>(), 1e-14);
}

}  // namespace
}  // namespace addend
