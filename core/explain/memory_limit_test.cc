// Attributions within a limit of memory: the same bits as without one, and less that is kept.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/attribution_testing.h"
#include "core/explain/decompose_testing.h"
#include "core/explain/recorded_model.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;

constexpr int64_t kTiny = 256;  // a checkpoint wherever one can be

Attribution Within(const TracedModel& model, const std::vector<Input>& inputs, AttributeOptions options,
                   int64_t bytes) {
  options.memory_bytes = bytes;
  at::manual_seed(5);
  return Attribute(model, inputs, options);
}

void ExpectLimitChangesNothing(const TracedModel& model, const std::vector<Input>& inputs,
                               const AttributeOptions& options) {
  const Attribution whole = Within(model, inputs, options, 0);
  for (const int64_t bytes : {kTiny, int64_t{4096}, int64_t{1} << 20}) {
    SCOPED_TRACE(bytes);
    ExpectSameBits(Within(model, inputs, options, bytes), whole);
  }
}

class SmallModelsWithinALimit : public testing::TestWithParam<SmallModel> {};

TEST_P(SmallModelsWithinALimit, HaveTheSameBits) {
  const TracedModel model = ModelOf(GetParam().run);
  const Input input = SplitInput(Random({2, 6}, 1), {1}, Random({2, 6}, 2));
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    for (const bool operators : {false, true}) {
      AttributeOptions options;
      options.policy.preset = preset;
      options.operators = operators;
      Target first;
      first.top1 = false;
      at::manual_seed(5);
      first.index.assign(model.Decompose({input}).outputs[0].value.dim(), 0);
      options.targets = {first};
      ExpectLimitChangesNothing(model, {input}, options);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, SmallModelsWithinALimit, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

// Blocks with a norm, attention and a gate, and residual sums between them.
Tensor Block(const Tensor& x, const std::vector<Tensor>& w) {
  const Tensor normed = x * at::rsqrt(x.pow(2).mean(-1, true) + 1e-6);
  const Tensor q = at::matmul(normed, w[0]);
  const Tensor k = at::matmul(normed, w[1]);
  const Tensor v = at::matmul(normed, w[2]);
  const Tensor hidden = at::ones({x.size(-2), x.size(-2)}, at::kBool).triu(1);
  const Tensor scores = at::matmul(q, k.transpose(-2, -1)).masked_fill(hidden, -INFINITY);
  Tensor h = x + at::matmul(at::softmax(scores, -1), v);
  const Tensor inner = at::layer_norm(h, {x.size(-1)});
  h = h + at::matmul(at::silu(at::matmul(inner, w[3])) * at::matmul(inner, w[4]), w[5]);
  return h;
}

TracedModel Deep(int64_t layers) {
  constexpr int64_t kWidth = 12;
  std::vector<std::vector<Tensor>> weights(layers);
  for (int64_t layer = 0; layer < layers; ++layer) {
    const auto add = [&](int64_t rows, int64_t columns) {
      const Tensor weight = Random({rows, columns}, 100 + 10 * layer + static_cast<int64_t>(weights[layer].size()));
      weights[layer].push_back(weight / std::sqrt(static_cast<double>(rows)));
    };
    for (int k = 0; k < 3; ++k) add(kWidth, kWidth);
    for (int k = 0; k < 2; ++k) add(kWidth, 3 * kWidth);
    add(3 * kWidth, kWidth);
  }
  return ModelOf([weights](const Tensor& x) {
    Tensor h = x;
    for (const std::vector<Tensor>& own : weights) h = Block(h, own);
    return h.mean(-2);
  });
}

// Bytes of the values and references that move.
int64_t BytesKept(const TracedRun& trace, int64_t* dropped) {
  int64_t bytes = 0;
  *dropped = 0;
  for (const auto& versions : trace.versions) {
    for (const Version& kept : versions) {
      if (kept.reference.defined()) bytes += 2 * static_cast<int64_t>(kept.reference.nbytes());
      *dropped += !kept.value.defined();
    }
  }
  return bytes;
}

TEST(MemoryLimit, KeepsCheckpointsOfADeepModel) {
  const Tensor x = Random({1, 7, 12}, 1);
  const std::vector<Input> inputs = {SplitInput(x, {1}, at::zeros_like(x))};
  const TracedModel model = Deep(12);
  AttributeOptions options;
  const PreparedInputs prepared = Prepare(inputs, {});
  int64_t dropped = 0;
  const RecordedRun whole = RecordModel(*model.model(), prepared, options, RunFor::kBackward);
  const int64_t all = BytesKept(*whole.trace, &dropped);
  EXPECT_EQ(dropped, 0);
  EXPECT_TRUE(whole.trace->stretches.empty());
  options.memory_bytes = all / 3;
  const RecordedRun limited = RecordModel(*model.model(), prepared, options, RunFor::kBackward);
  EXPECT_LE(BytesKept(*limited.trace, &dropped), all / 2);
  EXPECT_GT(dropped, 100);
  EXPECT_GE(limited.trace->stretches.size(), 4u);
  options.memory_bytes = 0;
  ExpectLimitChangesNothing(model, inputs, options);
  options.operators = true;
  ExpectLimitChangesNothing(model, inputs, options);
}

TEST(MemoryLimit, ReachesTensorsInside) {
  const Tensor x = Random({1, 7, 12}, 1);
  AttributeOptions options;
  options.at = "#20";
  Target first;
  first.top1 = false;
  first.index = {0, 0, 0};
  options.targets = {first};
  ExpectLimitChangesNothing(Deep(6), {SplitInput(x, {1}, at::zeros_like(x))}, options);
}

// The reference of 1 / x lies beyond a pole: from its stand-in later references follow, so that the run is kept whole.
TEST(MemoryLimit, StandInsAreFound) {
  const Tensor x = Random({2, 6}, 1).abs() + 0.5;
  const auto run = [](const Tensor& t) {
    Tensor y = t * 2;
    // Statements of their own: what a step reads is gone before the next.
    y = y.tanh();
    y = y.reciprocal();
    y = y * 0.3;
    y = y.tanh();
    return y.sum(1).tanh();
  };
  const Input input = SplitInput(x, {1}, -x);
  AttributeOptions options;
  Target first;
  first.top1 = false;
  first.index = {0};
  options.targets = {first};
  const Attribution whole = Within(ModelOf(run), {input}, options, 0);
  EXPECT_GT(whole.report.stand_in_references, 0);
  ExpectLimitChangesNothing(ModelOf(run), {input}, options);
  const std::vector<std::string> notes = Within(ModelOf(run), {input}, options, kTiny).report.notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(),
                          [](const std::string& note) { return note.find("memory limit") != std::string::npos; }));
}

// An operator with a memory of its own.
Tensor Drift(const Tensor& x) {
  static std::atomic<int> calls = 0;
  return x * (1 + 1e-3 * ++calls);
}

// This operator tells whether its weight requires derivatives, in views of it too. LibTorch's linear chooses by that
// how it multiplies, and with MKL the last bits differ.
Tensor Weigh(const Tensor& x, const Tensor& weight) { return x * (weight.t().requires_grad() ? 3 : 2); }

TORCH_LIBRARY_FRAGMENT(memory_limit_test, library) {
  library.def("drift(Tensor x) -> Tensor");
  library.def("weigh(Tensor x, Tensor weight) -> Tensor");
}
TORCH_LIBRARY_IMPL(memory_limit_test, CPU, library) {
  library.impl("drift", &Drift);
  library.impl("weigh", &Weigh);
}

TEST(MemoryLimit, WhatRequiresGradDoesSoAgain) {
  const Tensor weight = Random({6}, 3).requires_grad_();
  const TracedModel model = ModelOf([&](const Tensor& t) {
    const at::NoGradGuard no_grad;
    const auto weigh = c10::Dispatcher::singleton().findSchemaOrThrow("memory_limit_test::weigh", "");
    Stack stack = {t.tanh(), weight};
    weigh.callBoxed(&stack);
    return (stack[0].toTensor().tanh() * 2 + t).tanh().sum();
  });
  const Input input = SplitInput(Random({2, 6}, 1), {1}, Random({2, 6}, 2));
  AttributeOptions options;
  options.policy.missing_rule = MissingRule::kAbsorb;
  ExpectLimitChangesNothing(model, {input}, options);
}

TEST(MemoryLimit, AnOperatorThatGivesOtherNumbersAgainIsAnError) {
  const TracedModel model = ModelOf([](const Tensor& t) {
    const auto drift = c10::Dispatcher::singleton().findSchemaOrThrow("memory_limit_test::drift", "");
    Stack stack = {t.tanh()};
    drift.callBoxed(&stack);
    Tensor y = stack[0].toTensor();
    stack.clear();
    y = y.tanh();
    y = y * 2;
    // The result does not come from it alone.
    return (y + t).tanh().sum();
  });
  const Input input = SplitInput(Random({2, 6}, 1), {1}, Random({2, 6}, 2));
  AttributeOptions options;
  options.policy.missing_rule = MissingRule::kAbsorb;
  Attribute(model, {input}, options);
  options.memory_bytes = kTiny;
  ExpectError(absl::StatusCode::kFailedPrecondition, {"drift", "other numbers", "without a memory limit"},
              [&] { Attribute(model, {input}, options); });
}

TEST(MemoryLimit, PoliciesThatNeedTheWholeRunAreRefused) {
  const Input input = SplitInput(Random({2, 6}, 1), {1}, Random({2, 6}, 2));
  const TracedModel model = ModelOf([](const Tensor& t) { return at::tanh(t).sum(); });
  AttributeOptions options;
  options.memory_bytes = kTiny;
  options.policy.segments = 4;
  const auto refused = [&](const std::string& part) {
    ExpectError(absl::StatusCode::kInvalidArgument, {part}, [&] { Attribute(model, {input}, options); });
  };
  refused("segments=1");
  options.policy = Policy();
  options.policy.anchor = Anchor::kResidual;
  refused("anchor=baseline");
  options.policy = Policy();
  options.memory_bytes = -1;
  refused("memory");
}

}  // namespace
}  // namespace addend
