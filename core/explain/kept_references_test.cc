// References that are kept from run to run: never another number than without, whatever changes between the runs, and
// nothing runs twice where nothing changes.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/linearize/small_models.h"
#include "core/run/reference_cache.h"

namespace addend {
namespace {

using at::Tensor;

Input InputOf(const Tensor& value, const Tensor& baseline) {
  Input input;
  input.value = value.clone();
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(baseline);
  return input;
}

void ExpectSame(const Decomposition& kept, const Decomposition& fresh) {
  ASSERT_EQ(kept.outputs.size(), fresh.outputs.size());
  for (size_t k = 0; k < kept.outputs.size(); ++k) {
    const Composition& a = kept.outputs[k].composition;
    const Composition& b = fresh.outputs[k].composition;
    EXPECT_TRUE(at::equal(kept.outputs[k].value, fresh.outputs[k].value));
    EXPECT_TRUE(at::equal(a.reference(), b.reference()));
    EXPECT_TRUE(at::equal(a.components(), b.components()));
    EXPECT_TRUE(at::equal(a.leftover(), b.leftover()));
  }
  EXPECT_EQ(kept.report.notes, fresh.report.notes);
}

// One model with a cache, and without.
class Twins {
 public:
  explicit Twins(std::function<Tensor(const Tensor&)> run)
      : model_(TracedModel(FromFunction([run](const std::vector<Tensor>& in) { return run(in[0]); }))) {
    kept_.references = std::make_shared<ReferenceCache>();
  }

  void Compare(const Tensor& value, const Tensor& baseline) {
    for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
      kept_.policy.preset = fresh_.policy.preset = preset;
      at::manual_seed(5);
      const Decomposition kept = model_.Decompose({InputOf(value, baseline)}, kept_);
      at::manual_seed(5);
      ExpectSame(kept, model_.Decompose({InputOf(value, baseline)}, fresh_));
    }
  }

  void SetConditions(Conditions conditions) { kept_.policy.conditions = fresh_.policy.conditions = conditions; }

  const TracedModel& model() const { return model_; }
  const DecomposeOptions& kept() const { return kept_; }

 private:
  TracedModel model_;
  DecomposeOptions kept_;
  DecomposeOptions fresh_;
};

class KeptReferences : public testing::TestWithParam<SmallModel> {};

TEST_P(KeptReferences, ChangeNothing) {
  Twins twins(GetParam().run);
  const Tensor baseline = Random({2, 6}, 2);
  for (const uint64_t seed : {1, 3, 3}) twins.Compare(Random({2, 6}, seed), baseline);
  twins.Compare(Random({2, 6}, 3), Random({2, 6}, 4));
  twins.Compare(Random({2, 6}, 3), baseline);
}

INSTANTIATE_TEST_SUITE_P(Small, KeptReferences, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

TEST(KeptReferences, NoticeWritesToParameters) {
  const Tensor weight = Random({6, 6}, 7);
  Twins twins([&](const Tensor& x) { return at::tanh(at::linear(x, weight)); });
  const Tensor baseline = Random({2, 6}, 2);
  twins.Compare(Random({2, 6}, 1), baseline);
  weight.mul_(2);
  twins.Compare(Random({2, 6}, 1), baseline);
  weight.t().select(0, 1).fill_(3);
  twins.Compare(Random({2, 6}, 1), baseline);
}

TEST(KeptReferences, NoticeOtherParameters) {
  Tensor weight = Random({6, 6}, 7);
  Twins twins([&](const Tensor& x) { return at::tanh(at::linear(x, weight)); });
  twins.Compare(Random({2, 6}, 1), Random({2, 6}, 2));
  weight = Random({6, 6}, 8);
  twins.Compare(Random({2, 6}, 1), Random({2, 6}, 2));
}

// A buffer that counts its runs, one that the run writes first, and conditions that depend on the input.
TEST(KeptReferences, NoticeWhatEveryRunChanges) {
  const Tensor count = at::zeros({6}, at::kDouble);
  const Tensor scratch = at::zeros({2, 6}, at::kDouble);
  Twins twins([&](const Tensor& x) {
    const Tensor y = x * count;
    count.add_(1);
    scratch.copy_(at::cumsum(at::ones({2, 6}, at::kDouble), 1)).mul_(count);
    const Tensor mask = x.gt(0);
    return (y + scratch * x).masked_fill(mask, 2).sin();
  });
  const Tensor baseline = Random({2, 6}, 2);
  // Twins would count each other's runs, so the reference is worked out by hand.
  for (const uint64_t seed : {1, 3, 1}) {
    const Tensor value = Random({2, 6}, seed);
    const double runs = count[0].item<double>();
    const Decomposition result = twins.model().Decompose({InputOf(value, baseline)}, twins.kept());
    const Tensor steps = at::cumsum(at::ones({2, 6}, at::kDouble), 1) * (runs + 1);
    const Tensor expected = (baseline * runs + steps * baseline).masked_fill(value.gt(0), 2).sin();
    EXPECT_TRUE(at::allclose(result.outputs[0].composition.reference(), expected, 1e-14, 0));
    EXPECT_TRUE(at::allclose(result.outputs[0].composition.recovery(), result.outputs[0].value, 1e-10, 1e-12));
  }
}

TEST(KeptReferences, NoticeOtherShapesAndBranches) {
  Twins twins([](const Tensor& x) { return x.sum().item<double>() > 0 ? x.exp().mul_(2) : x.sin().add_(x); });
  for (const int64_t rows : {2, 3, 2}) {
    const Tensor value = Random({rows, 6}, 1).abs();
    twins.Compare(value, at::ones({rows, 6}, at::kDouble));
    twins.Compare(-value, at::ones({rows, 6}, at::kDouble));
  }
}

// Indices that an operator gives beside numbers, in memory of their own and in memory that the run had written before.
TEST(KeptReferences, KnowIndicesBesideNumbers) {
  const Tensor table = Random({6, 6}, 7);
  const auto looked_up = [&](const Tensor& x, const Tensor& best) { return at::embedding(table, best).sum(1) + x; };
  const std::function<Tensor(const Tensor&)> models[] = {
      [&](const Tensor& x) { return looked_up(x, std::get<1>(x.topk(2, 1))); },
      [&](const Tensor& x) {
        Tensor values = at::zeros({2, 2}, x.options());
        Tensor best = at::zeros({2, 2}, at::kLong);
        at::topk_out(values, best, x, 2, 1, true, true);
        return looked_up(x, best);
      },
  };
  for (const auto& model : models) {
    Twins twins(model);
    for (const Conditions conditions : {Conditions::kValue, Conditions::kBaseline}) {
      twins.SetConditions(conditions);
      for (const uint64_t seed : {1, 1, 3}) twins.Compare(Random({2, 6}, seed), Random({2, 6}, 2));
    }
  }
}

// Operators that are recorded as others, with what follows them.
TEST(KeptReferences, GoThroughRewrites) {
  Twins twins([](const Tensor& x) { return at::glu(at::cat({x, x / at::std(x, 1, true, true)}, 1), 1).mul_(2).exp(); });
  for (const uint64_t seed : {1, 3, 4}) twins.Compare(Random({2, 6}, seed), Random({2, 6}, 2));
}

TEST(KeptReferences, AreNotWhatACallerGetsToWrite) {
  Twins twins([](const Tensor& x) { return at::linear(x, Weight()).tanh(); });
  const Tensor baseline = Random({2, 6}, 2);
  for (int run = 0; run < 3; ++run) {
    const Decomposition result = twins.model().Decompose({InputOf(Random({2, 6}, 1), baseline)}, twins.kept());
    result.outputs[0].composition.reference().fill_(17);
  }
  twins.Compare(Random({2, 6}, 1), baseline);
}

// How often an operator is called on this thread while `work` runs; what is intercepted counts twice.
int CountRuns(const std::string& name, const std::function<void()>& work) {
  thread_local int count = 0;
  thread_local std::string counted;
  count = 0;
  counted = name;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        count += counted == function.name() ? 1 : 0;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return count;
}

TEST(KeptReferences, SpareTheRunOnTheBaseline) {
  const Tensor weight = Random({6, 6}, 7);
  const TracedModel model(FromFunction(
      [&](const std::vector<Tensor>& in) { return at::mm(at::mm(in[0], weight).tanh_().add_(1), weight); }));
  const Tensor baseline = Random({2, 6}, 2);
  AttributeOptions options;
  options.references = std::make_shared<ReferenceCache>();
  options.policy.preset = Preset::kFaithful;
  options.targets[0].top1 = false;
  options.targets[0].index = {0, 1};
  const auto runs = [&](uint64_t seed) {
    return CountRuns("aten::tanh_", [&] { Attribute(model, {InputOf(Random({2, 6}, seed), baseline)}, options); });
  };
  EXPECT_EQ(runs(1), 3);  // on the value, intercepted, and on the baseline
  EXPECT_EQ(runs(1), 2);
  EXPECT_EQ(runs(3), 2);
  options.references->Clear();
  EXPECT_EQ(runs(3), 3);
}

TEST(KeptReferences, MayBeSharedByThreads) {
  Twins twins([](const Tensor& x) { return at::linear(x, Weight()).relu_().mul_(2); });
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 25; ++k) {
        const Tensor baseline = Random({2, 6}, k % 2);
        const Decomposition result = twins.model().Decompose({InputOf(Random({2, 6}, t), baseline)}, twins.kept());
        const Tensor expected = at::linear(baseline, Weight()).relu().mul(2);
        wrong[t] += at::equal(result.outputs[0].composition.reference(), expected) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace addend
