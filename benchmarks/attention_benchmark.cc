// Cost of attention as one operator: its map from rows to rows, transposed and forward, over a plain run of the
// operator; and a whole attribution through it, with the rule and with the rewrite that the rule stands in for.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/one_by_one.h"
#include "benchmarks/spent.h"
#include "core/explain/attribute.h"
#include "core/model/model.h"
#include "core/rules/registry.h"

namespace {

using at::Tensor;

constexpr int64_t kHeads = 4;
constexpr int64_t kWidth = 64;

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The operator of this LibTorch; newer versions have it under the plain name.
Tensor Attend(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  static const c10::OperatorHandle op = [] {
    const auto newer = c10::Dispatcher::singleton().findSchema({"aten::scaled_dot_product_attention", ""});
    return newer ? *newer : c10::Dispatcher::singleton().findSchemaOrThrow("aten::_scaled_dot_product_attention", "");
  }();
  std::vector<c10::IValue> stack = {query, key, value};
  for (size_t a = 3; a < op.schema().arguments().size(); ++a) {
    const c10::Argument& argument = op.schema().arguments()[a];
    stack.push_back(argument.name() == "is_causal" ? c10::IValue(causal) : argument.default_value().value());
  }
  op.callBoxed(stack);
  return stack[0].toTensor();
}

// A call of the newer form, whose second end lies `reach` away.
addend::RuleCall CallOf(const std::vector<Tensor>& tensors, double reach, bool causal, const addend::Policy& policy) {
  static const c10::FunctionSchema schema = torch::jit::parseSchema(
      "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
      "dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> Tensor");
  addend::RuleCall call;
  call.name = "aten::scaled_dot_product_attention";
  call.schema = &schema;
  call.policy = &policy;
  call.arguments = {c10::IValue(), c10::IValue(), c10::IValue(), c10::IValue(), 0.0, causal, c10::IValue()};
  for (int k = 0; k < 3; ++k) {
    addend::RuleOperand operand;
    operand.value = tensors[k];
    operand.reference = tensors[k] + reach * torch::randn_like(tensors[k]);
    operand.decomposed = true;
    operand.argument = k;
    call.operands.push_back(operand);
  }
  call.outputs.push_back({tensors[2], tensors[2]});
  return call;
}

// Attention written out in other operators.
Tensor AttendByHand(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
  Tensor scores = at::matmul(query, key.transpose(-2, -1)) / std::sqrt(static_cast<double>(kWidth));
  if (causal) {
    const Tensor later = at::ones({query.size(-2), key.size(-2)}, at::kBool).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(scores.softmax(-1), value);
}

void Measure(benchmark::State& state, int64_t length, bool causal, double reach) {
  const c10::AutoGradMode no_grad(false);
  torch::manual_seed(0);
  std::vector<Tensor> tensors;
  for (int k = 0; k < 3; ++k) tensors.push_back(torch::randn({1, kHeads, length, kWidth}));
  addend::Policy policy;
  policy.preset = addend::Preset::kFaithful;
  const addend::Registry& registry = addend::Registry::Default();
  const std::string name = "aten::scaled_dot_product_attention";
  const addend::Rule& rule = registry.FindRewrite(name, name)->fused->rule;
  const addend::RuleCall call = CallOf(tensors, reach, causal, policy);
  const Tensor g = torch::randn_like(tensors[2]);
  addend::Rows moves;
  for (int k = 0; k < 3; ++k) moves.push_back(call.Move(k).unsqueeze(0));

  // A run through the whole library explains one number of one position in the middle.
  const auto model = addend::FromFunction(
      [causal](const std::vector<Tensor>& in) { return Attend(in[0], in[1], in[2], causal).sum({2}); });
  std::vector<addend::Input> inputs;
  for (int k = 0; k < 3; ++k) {
    addend::Input input;
    input.value = tensors[k];
    input.split = addend::Split::AlongDims({2});
    input.baseline = addend::Baseline::Of(call.operands[k].reference);
    inputs.push_back(input);
  }
  const auto by_hand = addend::FromFunction(
      [causal](const std::vector<Tensor>& in) { return AttendByHand(in[0], in[1], in[2], causal).sum({2}); });
  const addend::Registry one_by_one = OneByOne();
  addend::AttributeOptions options;
  options.policy = policy;
  options.targets[0].top1 = false;
  options.targets[0].index = {0, 0, 0};

  std::vector<double> plain, build, transpose, forward, attribute, expanded, plain_by_hand, whole, stepwise;
  const auto round = [&] {
    plain.push_back(Seconds([&] { benchmark::DoNotOptimize(Attend(tensors[0], tensors[1], tensors[2], causal)); }));
    addend::RuleResult built;
    build.push_back(Seconds([&] { built = rule.build(call); }));
    transpose.push_back(Seconds([&] { benchmark::DoNotOptimize(built.map->Transpose({g})); }));
    forward.push_back(Seconds([&] { benchmark::DoNotOptimize(built.map->Forward(moves)); }));
    options.registry = &registry;
    attribute.push_back(Seconds([&] { addend::Attribute(addend::TracedModel(model), inputs, options); }));
    plain_by_hand.push_back(
        Seconds([&] { benchmark::DoNotOptimize(AttendByHand(tensors[0], tensors[1], tensors[2], causal)); }));
    whole.push_back(Seconds([&] { addend::Attribute(addend::TracedModel(by_hand), inputs, options); }));
    options.registry = &one_by_one;
    expanded.push_back(Seconds([&] { addend::Attribute(addend::TracedModel(model), inputs, options); }));
    stepwise.push_back(Seconds([&] { addend::Attribute(addend::TracedModel(by_hand), inputs, options); }));
  };
  round();  // warms caches
  for (auto* times : {&plain, &build, &transpose, &forward, &attribute, &expanded, &plain_by_hand, &whole, &stepwise}) {
    times->clear();
  }
  for (auto _ : state) {
    round();
    state.SetIterationTime(transpose.back());
  }
  const double one = Median(plain);
  state.counters["plain_ms"] = 1e3 * one;
  state.counters["build"] = Median(build) / one;
  state.counters["transpose"] = Median(transpose) / one;
  state.counters["forward"] = Median(forward) / one;
  state.counters["attribute"] = Median(attribute) / one;
  state.counters["by_rewrite"] = Median(expanded) / one;
  state.counters["by_hand_ms"] = 1e3 * Median(plain_by_hand);
  state.counters["by_hand"] = Median(whole) / Median(plain_by_hand);
  state.counters["one_by_one"] = Median(stepwise) / Median(plain_by_hand);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("threads", std::to_string(at::get_num_threads()));
  for (const int64_t length : {512, 1024, 2048}) {
    for (const bool causal : {false, true}) {
      for (const double reach : {0.3, 1.0}) {
        const std::string name =
            std::string(causal ? "causal/" : "full/") + std::to_string(length) + (reach < 1 ? "/near" : "/far");
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { Measure(state, length, causal, reach); })
            ->UseManualTime()
            ->Iterations(5)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
