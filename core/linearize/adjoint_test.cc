// The reverse sweep against the forward sweep, which shares no code with it but the maps: for any cotangent,
// <cotangent, component> is the same number whichever way it is found.
#include "core/linearize/adjoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "core/base/error_testing.h"
#include "core/base/policy_testing.h"
#include "core/linearize/segments.h"
#include "core/linearize/small_models.h"
#include "core/linearize/traced_testing.h"
#include "core/program/view.h"
#include "core/rules/kinds.h"
#include "core/rules/registry.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;
using Model = std::function<std::vector<Tensor>(const Tensor&)>;

// Probes of the operators' results on the way, beside those of the model's.
void AddInnerProbes(Traced& traced) {
  const std::vector<Call>& calls = traced.trace.calls;
  for (size_t c = 0; c + 1 < calls.size(); c += 2) {
    for (const Probe& probe : OutputsOf(traced.trace, static_cast<int64_t>(c))) {
      if (CarriesRows(probe.operand)) traced.probes.push_back(probe);
    }
  }
}

Tensor SeedFor(const Probe& probe, int64_t targets, uint64_t seed) {
  at::DimVector sizes = {targets};
  sizes.append(probe.operand.geometry.sizes.begin(), probe.operand.geometry.sizes.end());
  const at::ScalarType dtype = RowDtype(probe.operand.dtype);
  if (!at::isComplexType(dtype)) return Random(sizes, seed).to(dtype);
  return at::complex(Random(sizes, seed), Random(sizes, seed + 100)).to(dtype);
}

// Re <g, rows>, added up over the probes: g [targets, *S], rows [R, *S] -> [targets, R].
Tensor Weighted(const Tensor& g, const Tensor& rows) {
  const Tensor left = g.reshape({g.size(0), -1});
  const Tensor right = rows.reshape({rows.size(0), -1}).to(g.scalar_type());
  const Tensor product = at::matmul(left.conj(), right.t());
  return (product.is_complex() ? at::real(product) : product).to(at::kDouble);
}

double Apart(const Tensor& a, const Tensor& b, double scale) {
  if (a.numel() == 0) return 0;
  return (a - b).abs().max().item<double>() / std::max(scale, 1.0);
}

// Both ways from one run, for random cotangents of all probes.
void ExpectSameBothWays(const Traced& traced, const Policy& policy, int64_t targets, double tolerance,
                        const Registry& registry = Registry::Default()) {
  // Each linearization may replace references in its own copy.
  const auto copy = [&] { return std::make_shared<TracedRun>(traced.trace); };
  const Explained forward = LinearizeAndSweep(copy(), registry, policy, traced.probes, false);
  std::vector<Tensor> seeds;
  for (size_t p = 0; p < traced.probes.size(); ++p) seeds.push_back(SeedFor(traced.probes[p], targets, 50 + p));
  const Attributed backward = LinearizeAndTranspose(copy(), registry, policy, traced.probes, seeds);
  Tensor components = at::zeros({targets, traced.trace.numc}, at::kDouble);
  Tensor leftover = at::zeros({targets}, at::kDouble);
  Tensor reference = at::zeros({targets}, at::kDouble);
  Tensor value = at::zeros({targets}, at::kDouble);
  double scale = 0;
  for (size_t p = 0; p < seeds.size(); ++p) {
    const ProbeRows& rows = forward.sweep.probes[p];
    components += Weighted(seeds[p], rows.components);
    leftover += Weighted(seeds[p], rows.leftover.unsqueeze(0)).squeeze(1);
    reference += Weighted(seeds[p], rows.reference.unsqueeze(0)).squeeze(1);
    value += Weighted(seeds[p], rows.value.unsqueeze(0)).squeeze(1);
    scale = std::max(scale, rows.components.abs().sum(0).max().item<double>());
    scale = std::max(scale, rows.value.abs().max().item<double>());
  }
  const AdjointResult& adjoint = backward.adjoint;
  EXPECT_LE(Apart(adjoint.components, components, scale), tolerance);
  EXPECT_LE(Apart(adjoint.leftover, leftover, scale), tolerance);
  EXPECT_LE(Apart(adjoint.reference, reference, scale), tolerance);
  EXPECT_LE(Apart(adjoint.value, value, scale), tolerance);
  EXPECT_TRUE(adjoint.failures.empty());
  if (policy.check != Check::kOff) {
    EXPECT_LE(adjoint.recovery_error, adjoint.tolerance);
  }
  EXPECT_LE(Apart(adjoint.components.sum(1) + adjoint.leftover + adjoint.reference, adjoint.value, scale), tolerance);
  // The elements of the input, added up by component.
  for (size_t s = 0; s < adjoint.starts.size(); ++s) {
    const Start& start = traced.trace.starts[s];
    if (!start.labels.defined() || !adjoint.starts[s].defined()) continue;
    const Tensor flat = adjoint.starts[s].reshape({targets, -1}).to(at::kDouble);
    const Tensor taken = flat.masked_fill(start.labels.lt(0), 0);
    const Tensor added = at::zeros_like(components).index_add(1, start.labels.clamp_min(0), taken);
    if (adjoint.starts.size() == 1) {
      EXPECT_LE(Apart(added, adjoint.components, scale), tolerance);
    }
  }
}

// ---- small models

const std::vector<PolicyFields>& Policies() {
  static const auto& policies = *new std::vector<PolicyFields>{
      {},
      {{"preset", "fast"}},
      {{"segments", "3"}},
      {{"preset", "fast"}, {"segments", "2"}},
      {{"nonlinearity", "gradient"}},
      {{"nonlinearity", "scaling"}},
      {{"nonlinearity", "none"}},
      {{"anchor", "residual"}, {"preset", "fast"}},
      {{"bias", "sign_threshold(0.3)"}},
      {{"bias", "sign_threshold(0)"}, {"preset", "fast"}, {"segments", "2"}},
  };
  return policies;
}

class BothWays : public testing::TestWithParam<std::tuple<SmallModel, size_t>> {};

TEST_P(BothWays, GiveTheSameContributions) {
  const auto& [model, which] = GetParam();
  const Policy policy = PolicyOf(Policies()[which]);
  at::manual_seed(5);
  Traced traced = TraceOf([run = model.run](const Tensor& x) { return std::vector<Tensor>{run(x)}; }, Random({2, 6}, 1),
                          policy, 6, Columns(Random({2, 6}, 2)));
  for (const int64_t targets : {1, 3}) ExpectSameBothWays(traced, policy, targets, 1e-10);
  // A value of -inf on the way would need a weight of zero.
  if (model.name != "masked") {
    AddInnerProbes(traced);
    ExpectSameBothWays(traced, policy, 2, 1e-10);
  }
}

// Tensors of 1.5 MiB for each target, of which not all are swept together: each is as if it were alone.
TEST(ManyTargets, AreThoseOfEachAlone) {
  constexpr int64_t kTargets = 23;
  for (const size_t which : {0, 1, 3, 7, 8}) {
    SCOPED_TRACE(which);
    const Policy policy = PolicyOf(Policies()[which]);
    const Tensor weight = Random({6, 1 << 15}, 3);
    const Traced traced = TraceOf(
        [&](const Tensor& x) {
          const Tensor wide = at::gelu(at::linear(x, weight.t(), weight[0]));
          return std::vector<Tensor>{at::softmax(wide.narrow(1, 0, 40), 1), x.sigmoid()};
        },
        Random({6, 6}, 1), policy, 6, Columns(Random({6, 6}, 2)));
    std::vector<Tensor> seeds;
    for (size_t p = 0; p < traced.probes.size(); ++p) seeds.push_back(SeedFor(traced.probes[p], kTargets, 70 + p));
    const auto attributed = [&](int64_t first, int64_t count, const StageProgress& progress = nullptr) {
      std::vector<Tensor> own;
      for (const Tensor& seed : seeds) own.push_back(seed.narrow(0, first, count));
      return LinearizeAndTranspose(std::make_shared<TracedRun>(traced.trace), Registry::Default(), policy,
                                   traced.probes, own, /*nodes=*/false, progress)
          .adjoint;
    };
    std::vector<std::pair<int64_t, int64_t>> steps;
    const AdjointResult all = attributed(0, kTargets, [&](const std::string& stage, int64_t done, int64_t total) {
      if (stage == "sweep") steps.emplace_back(done, total);
    });
    // Several sweeps count as one: 12, of 2 targets at most.
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back().first, steps.back().second);
    EXPECT_EQ(steps.back().second % 12, 0);
    for (size_t k = 1; k < steps.size(); ++k) EXPECT_EQ(steps[k].first, steps[k - 1].first + 1);
    ASSERT_EQ(all.components.sizes(), at::IntArrayRef({kTargets, 6}));
    for (int64_t t = 0; t < kTargets; ++t) {
      const AdjointResult one = attributed(t, 1);
      const double scale = one.mass.item<double>();
      for (const Tensor AdjointResult::*part :
           {&AdjointResult::components, &AdjointResult::terms, &AdjointResult::value, &AdjointResult::reference,
            &AdjointResult::leftover, &AdjointResult::mass}) {
        EXPECT_LE(Apart((all.*part).narrow(0, t, 1), one.*part, scale), 1e-12);
      }
      ASSERT_EQ(all.starts.size(), one.starts.size());
      EXPECT_LE(Apart(all.starts[0].narrow(0, t, 1), one.starts[0], scale), 1e-12);
    }
    EXPECT_LE(all.recovery_error, all.tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, BothWays,
                         testing::Combine(testing::ValuesIn(SmallModels()), testing::Range<size_t>(0, 10)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + std::to_string(std::get<1>(info.param));
                         });

// ---- geometry

struct Awkward {
  std::string name;
  std::function<Tensor(const Tensor&)> run;
  friend void PrintTo(const Awkward& one, std::ostream* out) { *out << one.name; }
};

class Geometries : public testing::TestWithParam<Awkward> {};

// Every element is read several times, or lies where no dense tensor has it.
TEST_P(Geometries, GiveTheSameContributions) {
  const Policy policy = PolicyOf({});
  const Traced traced = TraceOf([](const Tensor& x) { return std::vector<Tensor>{GetParam().run(x)}; },
                                Random({2, 6}, 3), policy, 6, Columns(Random({2, 6}, 4)));
  for (const int64_t targets : {1, 3}) ExpectSameBothWays(traced, policy, targets, 1e-10);
}

INSTANTIATE_TEST_SUITE_P(
    All, Geometries,
    testing::Values(Awkward{"expanded",
                            [](const Tensor& x) {
                              return x.unsqueeze(0).expand({3, 2, 6}).sin();
                            }},
                    Awkward{"expanded_output",
                            [](const Tensor& x) {
                              return x.exp().unsqueeze(1).expand({2, 4, 6});
                            }},
                    Awkward{"overlapping_windows", [](const Tensor& x) { return x.tanh().unfold(1, 3, 1).sigmoid(); }},
                    Awkward{"overlapping_output", [](const Tensor& x) { return x.tanh().unfold(1, 4, 2); }},
                    Awkward{"as_strided",
                            [](const Tensor& x) {
                              return x.clone().as_strided({3, 4}, {2, 1}, 1).square();
                            }},
                    Awkward{"windows_of_expanded",
                            [](const Tensor& x) {
                              return x.cos().unsqueeze(0).expand({2, 2, 6}).unfold(2, 2, 1).exp();
                            }},
                    Awkward{"window_written",
                            [](const Tensor& x) {
                              Tensor y = x.sin();
                              y.unfold(1, 2, 2).select(2, 0).mul_(x.slice(1, 0, 3));
                              return y.unfold(1, 3, 1).tanh();
                            }},
                    Awkward{"same_operand_twice", [](const Tensor& x) { return x * x + x.slice(1, 0, 1) * x; }},
                    Awkward{"one_storage_two_readers",
                            [](const Tensor& x) {
                              const Tensor y = x.mm(Weight());
                              return y.t().contiguous().t() + y.slice(1, 2, 3) + y.flip({1});
                            }},
                    Awkward{"rows_shared_then_written",
                            [](const Tensor& x) {
                              const Tensor y = x.tanh();
                              Tensor copy = y.clone();
                              copy.select(0, 0).mul_(y.select(0, 1));
                              return copy + y;
                            }},
                    Awkward{"swapped_in_place",
                            [](const Tensor& x) {
                              Tensor y = x.sin();
                              const Tensor first = y.select(0, 0).clone();
                              y.select(0, 0).copy_(y.select(0, 1));
                              y.select(0, 1).copy_(first);
                              return y * x;
                            }}),
    [](const auto& info) { return info.param.name; });

// ---- complex numbers and dtypes

class ComplexNumbers : public testing::TestWithParam<Awkward> {};

TEST_P(ComplexNumbers, GiveTheSameContributions) {
  const Policy policy = PolicyOf({});
  const Traced traced = TraceOf([](const Tensor& x) { return std::vector<Tensor>{GetParam().run(x)}; },
                                Random({2, 6}, 5), policy, 6, Columns(Random({2, 6}, 6)));
  for (const int64_t targets : {1, 3}) ExpectSameBothWays(traced, policy, targets, 1e-10);
}

INSTANTIATE_TEST_SUITE_P(
    All, ComplexNumbers,
    testing::Values(
        Awkward{"spectrum", [](const Tensor& x) { return at::fft_fft(x); }},
        Awkward{"magnitude", [](const Tensor& x) { return at::fft_fft(x).abs(); }},
        Awkward{"lazy_conjugate", [](const Tensor& x) { return at::real(at::fft_fft(x).conj() * at::fft_fft(x)); }},
        Awkward{"conjugate_output", [](const Tensor& x) { return at::fft_fft(x).conj(); }},
        Awkward{"lazy_negative", [](const Tensor& x) { return at::imag(at::fft_fft(x).conj()) * x; }},
        Awkward{"pairs", [](const Tensor& x) { return at::view_as_real(at::fft_fft(x)).select(2, 1).sin(); }},
        Awkward{"real_as_pairs",
                [](const Tensor& x) {
                  return at::view_as_complex(x.mul(2).view({2, 3, 2})).square().conj();
                }},
        Awkward{"written_through_pairs",
                [](const Tensor& x) {
                  Tensor z = at::fft_fft(x);
                  at::view_as_real(z).select(2, 1).mul_(x);
                  at::imag(z.conj()).add_(x);
                  return at::real(z * z);
                }},
        Awkward{"windows_of_pairs",
                [](const Tensor& x) { return at::view_as_real(at::fft_fft(x)).flatten(1).unfold(1, 4, 3).tanh(); }},
        Awkward{"round_trip", [](const Tensor& x) { return at::fft_irfft(at::fft_rfft(x) * at::fft_rfft(x), 6); }}),
    [](const auto& info) { return info.param.name; });

TEST(Dtypes, CastsAreTransposed) {
  const Policy policy = PolicyOf({});
  const Model model = [](const Tensor& x) { return std::vector<Tensor>{x.to(at::kFloat).tanh().to(at::kDouble) * x}; };
  const Traced traced = TraceOf(model, Random({2, 6}, 7), policy, 6, Columns(Random({2, 6}, 8)));
  ExpectSameBothWays(traced, policy, 2, 1e-6);
}

TEST(Dtypes, RowsOfHalfTypesAreSinglePrecision) {
  Policy policy = PolicyOf({{"tolerance", "0.05"}});
  const Tensor weight = Weight().to(at::kBFloat16);
  const Model model = [weight](const Tensor& x) { return std::vector<Tensor>{at::relu(x.mm(weight)) * x}; };
  const Traced traced =
      TraceOf(model, Random({2, 6}, 7).to(at::kBFloat16), policy, 6, Columns(Random({2, 6}, 8).to(at::kBFloat16)));
  ExpectSameBothWays(traced, policy, 2, 1e-5);
}

// ---- where rows begin

TEST(Starts, EmbeddingsOfLabelledIds) {
  const Tensor table = Random({10, 4}, 1);
  const Tensor ids = at::tensor({3, 1, 4, 1, 5, 9}, at::kLong).view({2, 3});
  const Tensor labels = at::tensor({0, 0, 1, 2, 2, -1}, at::kLong).view({2, 3});
  const Policy policy = PolicyOf({});
  const Model model = [table](const Tensor& t) {
    const Tensor flat = t.t().reshape({6}).clone();
    return std::vector<Tensor>{(at::embedding(table, flat).sum(0) + at::embedding(table * 2, t[0]).sum(0)).tanh()};
  };
  const Traced traced = TraceOf(model, ids, policy, 3, [&](Tracer& tracer, const Tensor& input) {
    tracer.AddIds(input, at::where(labels.lt(0), ids, at::zeros_like(ids)), labels);
  });
  for (const int64_t targets : {1, 3}) ExpectSameBothWays(traced, policy, targets, 1e-10);
}

TEST(Starts, PartsWithALeftoverOfTheirOwn) {
  const Tensor parts = Random({4, 2, 6}, 1);
  const Tensor leftover = Random({2, 6}, 2);
  const Tensor reference = Random({2, 6}, 3);
  const Tensor value = parts.sum(0) + leftover + reference;
  for (const char* preset : {"faithful", "fast"}) {
    const Policy policy = PolicyOf({{"preset", preset}});
    const Model model = [](const Tensor& x) {
      return std::vector<Tensor>{at::softmax(at::layer_norm(x.mm(Weight()), {6}), 1).mm(Weight())};
    };
    const Traced traced = TraceOf(model, value, policy, 4, [&](Tracer& tracer, const Tensor& input) {
      tracer.AddParts(input, reference.clone(), parts, leftover);
    });
    for (const int64_t targets : {1, 3}) ExpectSameBothWays(traced, policy, targets, 1e-10);
  }
}

TEST(Starts, ATargetMayBeTheInputItself) {
  const Policy policy = PolicyOf({});
  const Traced traced = TraceOf(
      [](const Tensor& x) {
        return std::vector<Tensor>{x, x.t(), at::ones({3}, at::kDouble)};
      },
      Random({2, 6}, 1), policy, 6, Columns(Random({2, 6}, 2)));
  ExpectSameBothWays(traced, policy, 2, 1e-12);
}

// ---- an oracle that knows nothing of rules

// Under `gradient` with everything elementwise the components are gradient times input, which autograd gives.
TEST(Adjoint, GradientPolicyIsGradientTimesMove) {
  const Policy policy = PolicyOf({{"nonlinearity", "gradient"}});
  const Tensor x = Random({2, 6}, 1);
  const Tensor b = Random({2, 6}, 2);
  const auto run = [](const Tensor& t) { return at::gelu(at::linear(at::tanh(at::linear(t, Weight())), Weight())); };
  const Traced traced = TraceOf([&](const Tensor& t) { return std::vector<Tensor>{run(t)}; }, x, policy, 6, Columns(b));
  const Tensor seeds = Random({3, 2, 6}, 9);
  const Attributed result = LinearizeAndTranspose(std::make_shared<TracedRun>(traced.trace), Registry::Default(),
                                                  policy, traced.probes, {seeds});
  for (int64_t t = 0; t < 3; ++t) {
    const Tensor leaf = x.clone().set_requires_grad(true);
    run(leaf).backward(seeds[t]);
    EXPECT_LE(Apart(result.adjoint.starts[0][t], leaf.grad() * (x - b), 1), 1e-12);
    EXPECT_LE(Apart(result.adjoint.components[t], (leaf.grad() * (x - b)).sum(0), 1), 1e-12);
  }
}

// ---- relevance of operators

// In a chain everything passes through every operator: what passes plus what later operators leave over is the whole.
TEST(Relevance, EveryOperatorOfAChainPassesTheWhole) {
  for (const char* preset : {"faithful", "fast"}) {
    const Policy policy = PolicyOf({{"preset", preset}});
    const Model chain = [](const Tensor& x) {
      return std::vector<Tensor>{at::layer_norm(at::gelu(at::layer_norm(x.mm(Weight()), {6})), {6}).cumsum(1)};
    };
    const Traced traced = TraceOf(chain, Random({2, 6}, 1), policy, 6, Columns(Random({2, 6}, 2)));
    const Attributed result = LinearizeAndTranspose(std::make_shared<TracedRun>(traced.trace), Registry::Default(),
                                                    policy, traced.probes, {Random({2, 2, 6}, 3)}, /*nodes=*/true);
    const AdjointResult& adjoint = result.adjoint;
    const Tensor whole = adjoint.value - adjoint.reference;
    ASSERT_EQ(adjoint.nodes.size(), 5u) << preset;
    Tensor left = at::zeros_like(whole);
    for (size_t k = adjoint.nodes.size(); k-- > 0;) {
      EXPECT_LE(Apart(adjoint.nodes[k].passed + left, whole, 1), 1e-10) << preset << " operator " << k;
      left += adjoint.nodes[k].leftover;
    }
    EXPECT_LE(Apart(left, adjoint.leftover, 1), 1e-12);
    EXPECT_EQ(left.abs().max().item<double>() > 1e-3, std::string(preset) == "fast");
  }
}

// ---- errors and checks

TEST(Adjoint, ChoicesThatLookAtAllComponentsHaveNone) {
  for (const auto& [key, value, op] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"nonlinearity", "abs_affine", "aten::tanh"},
           {"nonlinearity", "hybrid_affine(0.2)", "aten::tanh"},
           {"bias", "abs", "aten::linear"},
           {"bias", "norm", "aten::linear"}}) {
    const Policy policy = PolicyOf({{key, value}});
    const Traced traced =
        TraceOf([](const Tensor& x) { return std::vector<Tensor>{at::tanh(at::linear(x, Weight(), Weight()[0]))}; },
                Random({2, 6}, 1), policy, 6, Columns(Random({2, 6}, 2)));
    const std::string message = MessageOf([&] {
      LinearizeAndTranspose(std::make_shared<TracedRun>(traced.trace), Registry::Default(), policy, traced.probes,
                            {Random({1, 2, 6}, 3)});
    });
    EXPECT_THAT(message, HasSubstr(op));
    EXPECT_THAT(message, HasSubstr(key + "=" + value.substr(0, 3)));
    EXPECT_THAT(message, HasSubstr("decompose forward"));
  }
}

// Transposes that do not fit the forward map, as a wrong coefficient in one of them would make it.
class WrongTranspose : public LinearMap {
 public:
  explicit WrongTranspose(std::shared_ptr<const LinearMap> inner) : inner_(std::move(inner)) {}
  Rows Forward(const Rows& rows) const override { return inner_->Forward(rows); }
  Rows Transpose(const Rows& cotangents) const override {
    Rows back = inner_->Transpose(cotangents);
    for (Tensor& t : back) t = t * 1.01;
    return back;
  }

 private:
  std::shared_ptr<const LinearMap> inner_;
};

Registry WithWrongTranspose(const std::string& name) {
  Registry registry = Registry::Default();
  Rule rule = *registry.Find(name, name);
  rule.build = [build = rule.build](const RuleCall& call) {
    RuleResult result = build(call);
    result.map = std::make_shared<WrongTranspose>(result.map);
    return result;
  };
  registry.Register(rule);
  return registry;
}

// Exact kinds, quadrature (whose bracket has a bound) and what is frozen (which leaves something over).
TEST(Adjoint, AWrongTransposeIsCaughtAndNamed) {
  for (const char* preset : {"faithful", "fast"}) {
    for (const std::string op : {"aten::linear", "aten::gelu", "aten::softmax", "aten::layer_norm", "aten::amax"}) {
      const Registry registry = WithWrongTranspose(op);
      Policy policy = PolicyOf({{"preset", preset}});
      const Model model = [](const Tensor& x) {
        const Tensor hidden = at::layer_norm(at::gelu(at::linear(x, Weight())), {6});
        return std::vector<Tensor>{at::amax(at::softmax(hidden, 1).mm(Weight()), {1})};
      };
      const Traced traced = TraceOf(model, Random({2, 6}, 1), policy, 6, Columns(Random({2, 6}, 2)), registry);
      const auto attribute = [&] {
        return LinearizeAndTranspose(std::make_shared<TracedRun>(traced.trace), registry, policy, traced.probes,
                                     {Random({1, 2}, 3)});
      };
      EXPECT_THAT(MessageOf(attribute), HasSubstr(op)) << preset;
      policy.on_failure = OnFailure::kWarn;
      EXPECT_EQ(attribute().adjoint.failures.size(), 1u) << preset << " " << op;
      policy.on_failure = OnFailure::kAbsorb;
      const Attributed absorbed = attribute();
      const AdjointResult& adjoint = absorbed.adjoint;
      EXPECT_LE(Apart(adjoint.components.sum(1) + adjoint.leftover + adjoint.reference, adjoint.value, 1), 1e-12);
      policy.check = Check::kOff;
      EXPECT_TRUE(attribute().adjoint.failures.empty());
    }
  }
}

// Rounding is no failure, however much cancels on the way.
TEST(Adjoint, CancellationIsNoFailure) {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> models = {
      {"layer_norm_of_a_constant_baseline", [](const Tensor& x) { return at::layer_norm(x, {6}); }},
      {"mean_of_the_centred", [](const Tensor& x) { return (x - x.mean(1, true)).mean(1); }},
      {"softmax_sums_to_one", [](const Tensor& x) { return at::softmax(x, 1).sum(1) - 1; }},
      {"selu_of_little", [](const Tensor& x) { return at::selu(x * 1e-3); }},
      {"share_of_the_sum", [](const Tensor& x) { return x.abs() / x.abs().sum(1, true); }},
      {"large_and_back", [](const Tensor& x) { return (x + 1000) - 1000; }},
      {"root_of_relu", [](const Tensor& x) { return at::relu(x).sqrt(); }}};
  for (const auto& [name, run] : models) {
    const Policy policy = PolicyOf({});
    const Traced traced = TraceOf([run = run](const Tensor& x) { return std::vector<Tensor>{run(x)}; },
                                  Random({2, 6}, 1, at::kFloat), policy, 6, Columns(at::zeros({2, 6})));
    for (int64_t t = 0; t < 4; ++t) {
      Tensor seed = SeedFor(traced.probes[0], 1, 7 + t);
      if (t == 0) seed.fill_(1);
      EXPECT_EQ(MessageOf([&] {
                  LinearizeAndTranspose(std::make_shared<TracedRun>(traced.trace), Registry::Default(), policy,
                                        traced.probes, {seed});
                }),
                "(no error)")
          << name;
    }
  }
}

}  // namespace
}  // namespace addend
