#include "core/composition/shapley.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace addend {
namespace {

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

at::Tensor Random(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); }

Composition RandomComposition(int64_t numc, at::IntArrayRef sizes, bool leftover = false) {
  at::DimVector all = {numc};
  all.append(sizes.begin(), sizes.end());
  return Composition(Random(all), Random(sizes), leftover ? Random(sizes) : at::Tensor());
}

// The definition: the mean, over all orders, of what each component changes when it joins.
at::Tensor ByPermutations(const Function& f, const std::vector<Composition>& inputs) {
  const int64_t n = inputs[0].numc();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::vector<at::Tensor> sums(n);
  double count = 0;
  do {
    std::vector<at::Tensor> points;
    for (const Composition& input : inputs) points.push_back(input.residual().clone());
    at::Tensor before = f(points).clone();
    for (const int64_t i : order) {
      for (size_t k = 0; k < inputs.size(); ++k) points[k] = points[k] + inputs[k].component(i);
      const at::Tensor after = f(points).clone();
      sums[i] = sums[i].defined() ? sums[i] + (after - before) : after - before;
      before = after;
    }
    ++count;
  } while (std::next_permutation(order.begin(), order.end()));
  return at::stack(sums) / count;
}

TEST(ShapleyTest, IsTheMeanOverAllOrders) {
  at::manual_seed(1);
  const std::vector<std::pair<Function, std::vector<Composition>>> cases = {
      {[](const auto& x) { return at::relu(x[0]); }, {RandomComposition(4, {3, 2})}},
      {[](const auto& x) { return at::softmax(x[0], -1); }, {RandomComposition(5, {2, 3})}},
      {[](const auto& x) { return at::layer_norm(x[0], {3}); }, {RandomComposition(4, {2, 3})}},
      {[](const auto& x) { return at::matmul(x[0], x[1]); },
       {RandomComposition(4, {2, 3}), RandomComposition(4, {3, 2})}},
      {[](const auto& x) { return x[0].max(); }, {RandomComposition(4, {6}, true)}},
      {[](const auto& x) { return at::sigmoid(x[0]); }, {RandomComposition(1, {6})}},
  };
  for (const auto& [f, inputs] : cases) {
    const Composition result = Shapley(f, inputs);
    EXPECT_LT((result.components() - ByPermutations(f, inputs)).abs().max().item<double>(), 1e-12);
  }
}

TEST(ShapleyTest, SumsToTheDifferenceThatComponentsMake) {
  at::manual_seed(2);
  const Composition x = RandomComposition(6, {4, 3}, /*leftover=*/true);
  const auto f = [](const std::vector<at::Tensor>& t) { return at::gelu(t[0]) * at::tanh(t[0].sum()); };
  const Composition result = Shapley(f, {x});
  EXPECT_TRUE(at::equal(result.reference(), f({x.reference()})));
  EXPECT_TRUE(at::allclose(result.residual(), f({x.residual()}), 0, 1e-13));
  EXPECT_TRUE(at::allclose(result.recovery(), f({x.recovery()}), 0, 1e-12));
}

TEST(ShapleyTest, IsAdditiveInTheFunctionAndExactForLinearOnes) {
  at::manual_seed(3);
  const Composition x = RandomComposition(5, {4});
  const auto f = [](const std::vector<at::Tensor>& t) { return at::exp(t[0]); };
  const auto g = [](const std::vector<at::Tensor>& t) { return at::cumsum(t[0], 0).sin(); };
  const Composition both = Shapley([&](const auto& t) { return 2 * f(t) - 3 * g(t); }, {x});
  const at::Tensor apart = 2 * Shapley(f, {x}).components() - 3 * Shapley(g, {x}).components();
  EXPECT_LT((both.components() - apart).abs().max().item<double>(), 1e-12);

  const at::Tensor weight = Random({4, 3});
  const Composition linear = Shapley([&](const auto& t) { return at::matmul(t[0], weight) + 1; }, {x});
  EXPECT_LT((linear.components() - at::matmul(x.components(), weight)).abs().max().item<double>(), 1e-13);
}

TEST(ShapleyTest, TreatsEqualComponentsAlikeAndGivesNothingToThoseThatDoNothing) {
  at::manual_seed(4);
  const at::Tensor c = Random({4});
  const Composition x = Composition::FromParts({c, at::zeros({4}, at::kDouble), c, Random({4})}, Random({4}));
  const Composition result = Shapley([](const auto& t) { return at::relu(t[0]).prod(); }, {x});
  EXPECT_NEAR(result.component(0).item<double>(), result.component(2).item<double>(), 1e-13);
  EXPECT_NEAR(result.component(1).item<double>(), 0, 1e-13);
}

TEST(ShapleyTest, CallsTheFunctionOncePerSet) {
  int calls = 0;
  const Composition x = RandomComposition(10, {2});
  Shapley(
      [&](const std::vector<at::Tensor>& t) {
        ++calls;
        return t[0].relu_();  // in place: it is given tensors of its own
      },
      {x});
  EXPECT_EQ(calls, 1 << 10);
}

TEST(ShapleyTest, RefusesWhatItCannotDo) {
  const auto f = [](const std::vector<at::Tensor>& t) { return t[0]; };
  const auto refused = [&](const Function& function, const std::vector<Composition>& inputs) {
    try {
      Shapley(function, inputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
      return std::string(error.what());
    }
    ADD_FAILURE();
    return std::string();
  };
  EXPECT_EQ(refused(f, {RandomComposition(17, {1})}),
            "exact Shapley values of 17 components would take 2^17 evaluations; 16 components are the most");
  EXPECT_EQ(refused(f, {RandomComposition(2, {1}), RandomComposition(3, {1})}),
            "compositions of 2 and of 3 components share no component axis");
  EXPECT_EQ(refused(f, {}), "Shapley values need a composition to begin with");
  EXPECT_EQ(refused([](const auto& t) { return t[0].gt(0); }, {RandomComposition(2, {1})}),
            "Shapley values: the function gives no floating-point tensor");
  EXPECT_EQ(refused([](const auto& t) { return t[0].masked_select(t[0].gt(0)); },
                    {Composition::FromParts({at::ones({2}), -at::ones({2})}, at::zeros({2}))}),
            "Shapley values: the function gives another shape for another set of components");
}

}  // namespace
}  // namespace addend
