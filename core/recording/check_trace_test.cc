// Finds and names what a recording freezes, and reports nothing about a right recording.
#include "core/recording/check_trace.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<Model> Function(std::function<Tensor(const Tensor&)> function) {
  return FromFunction([function](const std::vector<Tensor>& in) { return function(in[0]); });
}

CheckReport Check(std::function<Tensor(const Tensor&)> function, const CheckOptions& options = {}) {
  return CheckTrace(*Function(std::move(function)), {Random({2, 6}, 1)}, options);
}

std::vector<Finding> OfKind(const CheckReport& report, FindingKind kind) {
  std::vector<Finding> found;
  for (const Finding& finding : report.findings) {
    if (finding.kind == kind) found.push_back(finding);
  }
  return found;
}

// All but the one that draws.
std::vector<SmallModel> DeterministicModels() {
  std::vector<SmallModel> models = SmallModels();
  models.erase(std::remove_if(models.begin(), models.end(),
                              [](const SmallModel& model) { return model.name == "dropout_in_training"; }),
               models.end());
  return models;
}

class Deterministic : public testing::TestWithParam<SmallModel> {};

TEST_P(Deterministic, SmallModelsPass) {
  Weight();
  CheckOptions options;
  // The branch that one of the models takes is far away; its number is not.
  if (GetParam().name != "branch_on_value") options.inputs = {{Random({2, 6}, 2)}, {Random({2, 6}, 3)}};
  const CheckReport report = Check(GetParam().run, options);
  EXPECT_TRUE(report.ok()) << (report.findings.empty() ? "" : report.findings[0].message);
  EXPECT_EQ(report.worst_error, 0);
}

INSTANTIATE_TEST_SUITE_P(Small, Deterministic, testing::ValuesIn(DeterministicModels()),
                         [](const auto& info) { return info.param.name; });

TEST(CheckTrace, NamesWhatDraws) {
  Weight();        // made before, not while it is recorded
  at::randn({3});  // the generator has a state that is not its first
  auto generator = at::globalContext().defaultGenerator(at::kCPU);
  const Tensor state = generator.get_state();
  // So many elements that no two runs drop the same: LibTorch begins with another seed each time.
  const CheckReport report = Check([](const Tensor& x) {
    return at::dropout(x.mm(Weight()).repeat({8, 8}), 0.5, true).relu();
  });
  EXPECT_TRUE(at::equal(generator.get_state(), state));
  ASSERT_THAT(OfKind(report, FindingKind::kRandom), SizeIs(1));
  EXPECT_EQ(OfKind(report, FindingKind::kRandom)[0].position.op, "aten::dropout");
  EXPECT_THAT(OfKind(report, FindingKind::kTraining), SizeIs(1));
  ASSERT_THAT(OfKind(report, FindingKind::kValue), SizeIs(1));
  EXPECT_THAT(OfKind(report, FindingKind::kValue)[0].message, HasSubstr("dropout is the first that differs"));
  EXPECT_EQ(OfKind(report, FindingKind::kValue)[0].position.op, "aten::dropout");
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.worst_error, 0);  // the replay draws as the model did
}

TEST(CheckTrace, NamesTheBranchNotTaken) {
  CheckOptions options;
  options.inputs = {{at::full({2, 6}, 5.0, at::kDouble)}, {at::full({2, 6}, -5.0, at::kDouble)}};
  const CheckReport report =
      CheckTrace(*Function([](const Tensor& x) { return at::is_nonzero(x.sum().gt(0)) ? x.exp() : x.neg(); }),
                 {at::ones({2, 6}, at::kDouble)}, options);
  ASSERT_THAT(OfKind(report, FindingKind::kGraph), SizeIs(1));
  EXPECT_EQ(OfKind(report, FindingKind::kGraph)[0].input_set, 1);
  EXPECT_EQ(OfKind(report, FindingKind::kGraph)[0].position.op_index, 3);
  EXPECT_THAT(OfKind(report, FindingKind::kGraph)[0].message, HasSubstr("the operator is aten::neg, not aten::exp"));
  ASSERT_THAT(OfKind(report, FindingKind::kGuard), SizeIs(1));
  EXPECT_THAT(OfKind(report, FindingKind::kGuard)[0].message, HasSubstr("a guard does not hold"));
}

// Filled through a raw pointer from the input: no operator says so, and one run alone cannot show it.
TEST(CheckTrace, FindsConstantsThatDependOnTheInput) {
  const auto hidden = [](const Tensor& x) {
    Tensor copy = at::empty({2}, at::kDouble);
    copy.data_ptr<double>()[0] = x.data_ptr<double>()[0];
    copy.data_ptr<double>()[1] = 1;
    return copy * 2;
  };
  EXPECT_TRUE(Check(hidden).ok());
  CheckOptions options;
  options.inputs = {{Random({2, 6}, 2)}};
  const CheckReport report = Check(hidden, options);
  ASSERT_THAT(OfKind(report, FindingKind::kConstant), SizeIs(1));
  EXPECT_THAT(OfKind(report, FindingKind::kConstant)[0].message, HasSubstr("depends on the input"));
  EXPECT_THAT(OfKind(report, FindingKind::kValue), SizeIs(1));
  EXPECT_FALSE(report.ok());
}

TEST(CheckTrace, FindsModelsWithAStateOfTheirOwn) {
  int calls = 0;
  const CheckReport counted = Check([&calls](const Tensor& x) { return x * (++calls); });
  ASSERT_THAT(OfKind(counted, FindingKind::kGraph), SizeIs(1));
  EXPECT_THAT(OfKind(counted, FindingKind::kGraph)[0].message, HasSubstr("the argument other is 2, not 1"));
  const Tensor mean = at::zeros({6}, at::kDouble);
  const Tensor var = at::ones({6}, at::kDouble);
  const auto model = FromFunction(
      [&](const std::vector<Tensor>& in) { return at::batch_norm(in[0], {}, {}, mean, var, true, 0.1, 1e-5, false); },
      {{"norm.running_mean", mean}, {"norm.running_var", var}}, {}, {"norm.running_mean", "norm.running_var"});
  const CheckReport training = CheckTrace(*model, {Random({2, 6}, 1)});
  ASSERT_THAT(OfKind(training, FindingKind::kState), SizeIs(2));
  EXPECT_THAT(OfKind(training, FindingKind::kState)[0].message, HasSubstr("buffer norm.running_mean"));
  EXPECT_THAT(OfKind(training, FindingKind::kTraining), SizeIs(1));
}

}  // namespace
}  // namespace addend
