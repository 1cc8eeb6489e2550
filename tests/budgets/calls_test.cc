// How many kernels a run launches on a device, for each operator that it recorded. On a GPU a launch takes about five
// microseconds, however little it computes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/plan.h"
#include "core/model/model.h"
#include "tests/budgets/networks.h"
#include "tests/far/device.h"

namespace addend {
namespace {

using Network = std::function<Tensor(const Tensor&)>;

double KernelsOf(const std::function<void()>& work) {
  const int64_t before = far::KernelsRun();
  work();
  return static_cast<double>(far::KernelsRun() - before);
}

struct Budget {
  double attribution;
  double row_of_a_plan;
  double decomposition;
};

// Checks the calls per operator of a run: views, which launch nothing, count as one as well.
void CheckBudget(const Network& network, const Budget& budget) {
  at::manual_seed(8);
  Input input;
  input.value = at::randn({1, 6, kWidth}).to(far::TheDevice());
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  const TracedModel model(FromFunction([network](const std::vector<Tensor>& in) { return network(in[0]); }));
  const auto operators = static_cast<double>(model.Decompose({input}).report.operators);
  const auto plan = AttributionPlan::Make(model.model(), {input}, {});
  plan->Attribute({input.value});
  const double plain = KernelsOf([&] { network(input.value); }) / operators;
  const double attribution = KernelsOf([&] { Attribute(model, {input}, {}); }) / operators;
  const double row = KernelsOf([&] { plan->Attribute({input.value}); }) / operators;
  const double decomposition = KernelsOf([&] { model.Decompose({input}); }) / operators;
  std::cout << "kernels by operator: model " << plain << ", attribution " << attribution << ", row of a plan " << row
            << ", decomposition " << decomposition << "\n";
  EXPECT_LE(attribution, budget.attribution);
  EXPECT_LE(row, budget.row_of_a_plan);
  EXPECT_LE(decomposition, budget.decomposition);
}

TEST(CallsTest, OfAnEncoder) { CheckBudget(Encoder(4, far::TheDevice()), {15, 8, 20}); }
// The next two have little but elementwise operators, whose secant slopes take ten to thirty calls each, and a maximum,
// which takes a hundred. What they need today is the bound.
TEST(CallsTest, OfConvolutions) { CheckBudget(Convolutions(4, far::TheDevice()), {24, 21, 42}); }
TEST(CallsTest, OfGates) { CheckBudget(Gates(4, far::TheDevice()), {26, 24, 39}); }

}  // namespace
}  // namespace addend
