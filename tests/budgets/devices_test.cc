// Answers on a device are those of the CPU, or of a first run, also where it would be wrong to look ahead or to
// remember.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/plan.h"
#include "core/model/model.h"
#include "tests/far/device.h"

namespace addend {
namespace {

using at::Tensor;
using Network = std::function<Tensor(const Tensor&)>;

TracedModel ModelOf(const Network& network) {
  return TracedModel(FromFunction([network](const std::vector<Tensor>& in) { return network(in[0]); }));
}

Input Of(const Tensor& value, const Baseline& baseline) {
  Input input;
  input.value = value;
  input.split = Split::AlongDims({1});
  input.baseline = baseline;
  return input;
}

void ExpectSame(const Attribution& device, const Attribution& cpu) {
  ASSERT_EQ(device.targets.size(), cpu.targets.size());
  for (size_t t = 0; t < cpu.targets.size(); ++t) {
    ASSERT_EQ(device.targets[t].contributions.size(), cpu.targets[t].contributions.size());
    for (size_t k = 0; k < cpu.targets[t].contributions.size(); ++k) {
      EXPECT_NEAR(device.targets[t].contributions[k], cpu.targets[t].contributions[k], 1e-5) << k;
    }
    EXPECT_NEAR(device.targets[t].leftover, cpu.targets[t].leftover, 1e-5);
    EXPECT_NEAR(device.targets[t].reference, cpu.targets[t].reference, 1e-5);
  }
}

void ExpectSameOnBoth(const Network& network, const Tensor& value, const Baseline& baseline,
                      const AttributeOptions& options = {}) {
  ExpectSame(Attribute(ModelOf(network), {Of(value.to(far::TheDevice()), baseline)}, options),
             Attribute(ModelOf(network), {Of(value, baseline)}, options));
}

// log gets a stand-in for its reference, and only then does log_softmax have finite scores.
TEST(DevicesTest, WhatIsBehindABrokenReferenceIsNotAskedAhead) {
  ExpectSameOnBoth([](const Tensor& x) { return at::log_softmax(at::log(x), -1); },
                   at::tensor({1.0F, 2.0F, 4.0F}).view({1, 3}), Baseline::Of(0.0));
}

// The first half of the line ends where exp is finite.
TEST(DevicesTest, ThePiecesOfALineAreSeenByThemselves) {
  AttributeOptions options;
  options.policy.segments = 2;
  const auto exp = [](const Tensor& x) { return at::exp(x); };
  const Tensor value = at::tensor({100.0F, 1.0F}).view({1, 2});
  DecomposeOptions decompose;
  decompose.policy.segments = 2;
  const auto notes = [&](const Tensor& x) {
    return ModelOf(exp).Decompose({Of(x, Baseline::Of(0.0))}, decompose).report.notes;
  };
  EXPECT_EQ(notes(value.to(far::TheDevice())), notes(value));
}

// The mean of the second picture is zero, where log has no reference.
TEST(DevicesTest, ARowOfAPlanRemembersNothingOfTheLast) {
  const Network network = [](const Tensor& x) { return at::log(x.abs()).sum(); };
  const auto picture = [](std::vector<float> numbers) {
    return at::tensor(at::ArrayRef<float>(numbers)).view({1, 1, 2, 2}).to(far::TheDevice());
  };
  const auto input = [](const Tensor& value) {
    Input own = Of(value, Baseline::Named("mean"));
    own.split = Split::AlongDims({2, 3});
    return own;
  };
  const Tensor first = picture({1, 2, 3, 4});
  const Tensor second = picture({1, -1, 2, -2});
  const auto plan = AttributionPlan::Make(ModelOf(network).model(), {input(first)}, {});
  for (const Tensor& row : {first, second, first}) {
    ExpectSame(plan->Attribute({row}), Attribute(ModelOf(network), {input(row)}, {}));
  }
}

}  // namespace
}  // namespace addend
