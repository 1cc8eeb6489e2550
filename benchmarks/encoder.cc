// Cost of a decomposition on a Transformer encoder stack: width 256, 4 layers, 4 heads, feed-forward 1024, 32 tokens,
// one component for each token. All figures come from one process; the ratios are what counts.
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "benchmarks/encoder_model.h"
#include "core/explain/decompose.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/nn_module.h"
#include "core/program/recorder.h"

namespace {

using addend::benchmarks::Classifier;
using addend::benchmarks::Encoder;
using addend::benchmarks::kWidth;

constexpr int64_t kTokens = 32;
constexpr int64_t kComponents = kTokens;

template <typename Network>
struct Setting {
  Setting() {
    torch::manual_seed(0);
    network = std::make_shared<Network>();
    network->eval();
    input = torch::randn({kTokens, 1, kWidth});
    batch = torch::randn({kTokens, kComponents + 1, kWidth});
  }
  std::shared_ptr<Network> network;
  at::Tensor input;  // [tokens, batch, width]
  at::Tensor batch;
};

template <typename Network>
Setting<Network>& TheSetting() {
  static Setting<Network>& setting = *new Setting<Network>;
  return setting;
}

template <typename Work>
double Seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <typename Network>
void Decompose(addend::Preset preset, addend::Check check) {
  Setting<Network>& setting = TheSetting<Network>();
  addend::Input input;
  input.value = setting.input;
  input.split = addend::Split::AlongDims({0});
  input.baseline = addend::Baseline::Of(0.0);
  addend::DecomposeOptions options;
  options.policy.preset = preset;
  options.policy.check = check;
  const addend::Decomposition result =
      addend::TracedModel(addend::FromModule(setting.network)).Decompose({input}, options);
  benchmark::DoNotOptimize(result.outputs[0].composition.components().data_ptr());
}

// One decomposition beside the plain forward and the forward of a batch of 33, interleaved so that a slower or faster
// moment of the machine meets all three.
template <typename Network>
void Compare(benchmark::State& state, addend::Preset preset, addend::Check check) {
  c10::AutoGradMode no_grad(false);
  Setting<Network>& setting = TheSetting<Network>();
  std::vector<double> plain;
  std::vector<double> batched;
  std::vector<double> decomposed;
  const auto one_round = [&] {
    plain.push_back(Seconds([&] { benchmark::DoNotOptimize(setting.network->forward(setting.input)); }));
    batched.push_back(Seconds([&] { benchmark::DoNotOptimize(setting.network->forward(setting.batch)); }));
    decomposed.push_back(Seconds([&] { Decompose<Network>(preset, check); }));
  };
  one_round();  // warms caches and thread pools
  plain.clear();
  batched.clear();
  decomposed.clear();
  for (auto _ : state) {
    one_round();
    state.SetIterationTime(decomposed.back());
  }
  state.counters["plain_ms"] = 1e3 * Median(plain);
  state.counters["batch33_ms"] = 1e3 * Median(batched);
  state.counters["decompose_ms"] = 1e3 * Median(decomposed);
  state.counters["over_plain"] = Median(decomposed) / Median(plain);
  state.counters["over_batch33"] = Median(decomposed) / Median(batched);
}
// Every token is asked for: components go forward.
void BM_Tokens(benchmark::State& state, addend::Preset preset, addend::Check check) {
  Compare<Encoder>(state, preset, check);
}
// Ten classes are asked for: components come back from them.
void BM_Classes(benchmark::State& state, addend::Preset preset, addend::Check check) {
  Compare<Classifier>(state, preset, check);
}
#define ADDEND_DECOMPOSE(benchmark, name, preset, check) \
  BENCHMARK_CAPTURE(benchmark, name, addend::Preset::preset, addend::Check::check)->UseManualTime()->Iterations(25)
ADDEND_DECOMPOSE(BM_Tokens, fast, kFast, kEveryOp);
ADDEND_DECOMPOSE(BM_Tokens, faithful, kFaithful, kEveryOp);
ADDEND_DECOMPOSE(BM_Tokens, fast_unchecked, kFast, kOutputs);
ADDEND_DECOMPOSE(BM_Tokens, faithful_unchecked, kFaithful, kOutputs);
ADDEND_DECOMPOSE(BM_Classes, fast, kFast, kEveryOp);
ADDEND_DECOMPOSE(BM_Classes, faithful, kFaithful, kEveryOp);

// Intercepts and does nothing else.
class PassThrough : public addend::CallHandler {
 public:
  void Handle(const addend::Operator& op, addend::Stack* stack) override {
    ++calls;
    op.Run(stack);
  }
  int64_t calls = 0;
};

// Writes down every call, as a tracer does, without references.
class WriteDown : public addend::CallHandler {
 public:
  void Handle(const addend::Operator& op, addend::Stack* stack) override {
    addend::Call call = recorder_.Begin(op, *stack);
    const std::vector<c10::IValue> arguments = recorder_.Place(*stack, call);
    op.Run(stack);
    recorder_.AddOutputs(arguments, addend::ResultsOf(op, *stack), call);
    recorder_.End(std::move(call));
  }

 private:
  addend::Recorder recorder_;
};

// The price of one recorded operator: adding tensors of one element, whose own work is next to nothing.
template <typename MakeHandler>
void MeasureOperator(benchmark::State& state, MakeHandler make) {
  c10::AutoGradMode no_grad(false);
  constexpr int kCalls = 2000;
  const at::Tensor a = torch::ones({1});
  const at::Tensor b = torch::ones({1});
  const auto calls = [&] {
    for (int k = 0; k < kCalls; ++k) benchmark::DoNotOptimize(at::add(a, b));
  };
  std::vector<double> plain;
  std::vector<double> seen;
  for (auto _ : state) {
    plain.push_back(Seconds(calls));
    auto handler = make();
    addend::TracingScope scope(handler.get());
    seen.push_back(Seconds(calls));
    state.SetIterationTime(seen.back());
  }
  state.counters["plain_ns"] = 1e9 * Median(plain) / kCalls;
  state.counters["added_ns"] = 1e9 * (Median(seen) - Median(plain)) / kCalls;
}
void BM_Interception(benchmark::State& state) {
  MeasureOperator(state, [] { return std::make_unique<PassThrough>(); });
}
void BM_InterceptionAndRecording(benchmark::State& state) {
  MeasureOperator(state, [] { return std::make_unique<WriteDown>(); });
}

// Measures recording inside the TorchScript interpreter, where each call's source position is looked up as well.
void BM_RecordingOfTorchScript(benchmark::State& state) {
  c10::AutoGradMode no_grad(false);
  constexpr int kCalls = 2000;
  const auto unit =
      torch::jit::compile("def chain(a, b):\n  c = a\n  for i in range(2000):\n    c = a + b\n  return c\n");
  torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
  const at::Tensor a = torch::ones({1});
  const auto run = [&] { benchmark::DoNotOptimize(unit->run_method("chain", a, a)); };
  run();
  std::vector<double> plain;
  std::vector<double> seen;
  for (auto _ : state) {
    plain.push_back(Seconds(run));
    WriteDown handler;
    addend::TracingScope scope(&handler);
    seen.push_back(Seconds(run));
    state.SetIterationTime(seen.back());
  }
  state.counters["plain_ns"] = 1e9 * Median(plain) / kCalls;
  state.counters["added_ns"] = 1e9 * (Median(seen) - Median(plain)) / kCalls;
}
BENCHMARK(BM_RecordingOfTorchScript)->UseManualTime()->Iterations(20);
BENCHMARK(BM_Interception)->UseManualTime()->Iterations(50);
BENCHMARK(BM_InterceptionAndRecording)->UseManualTime()->Iterations(50);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const char* blas = std::getenv("OPENBLAS_CORETYPE");
  benchmark::AddCustomContext("OPENBLAS_CORETYPE", blas != nullptr ? blas : "chosen by OpenBLAS");
  benchmark::AddCustomContext("threads", std::to_string(at::get_num_threads()));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
