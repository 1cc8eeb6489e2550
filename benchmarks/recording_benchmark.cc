// Cost of recording a program for each operator, over the plain run, and cost of loading a program. Operators on
// tensors of few elements, whose own work is next to nothing; a recording is everything from the first declaration to
// the finished program.
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/program/program_file.h"
#include "core/program/replay.h"
#include "core/recording/record_program.h"

namespace {

constexpr int kCalls = 10000;

// Seconds by the clock and of this thread's processor: other work on the machine costs less of the latter.
struct Times {
  double clock = 0;
  double processor = 0;
};

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
Times Measure(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  const double processor = ProcessorSeconds();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          ProcessorSeconds() - processor};
}

// Nanoseconds for each of `calls`, the median of the rounds.
double MedianNs(const std::vector<Times>& rounds, double Times::*kind, size_t calls) {
  std::vector<double> values;
  for (const Times& round : rounds) values.push_back(round.*kind);
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return 1e9 * values[values.size() / 2] / static_cast<double>(calls);
}

// Every call gives a new tensor.
at::Tensor Additions(const at::Tensor& x) {
  at::Tensor y = x;
  for (int k = 0; k < kCalls; ++k) y = at::add(y, x);
  return y;
}

// Views, writes through them, and numbers among the arguments: five calls a round.
at::Tensor ViewsAndWrites(const at::Tensor& x) {
  at::Tensor y = x.clone();
  for (int k = 0; k < kCalls / 5; ++k) {
    y.slice(0, 0, 1).add_(1);
    y = at::add(y.unsqueeze(0).squeeze(0), x);
  }
  return y;
}

// A chain of additions inside the TorchScript interpreter, where source lines and modules are looked up.
class Script : public addend::Model {
 public:
  Script()
      : unit_(torch::jit::compile("def chain(a):\n  c = a\n  for i in range(" + std::to_string(kCalls) +
                                  "):\n    c = c + a\n  return c\n")) {}
  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
    return unit_->run_method("chain", inputs[0].toTensor());
  }

 private:
  std::shared_ptr<torch::jit::CompilationUnit> unit_;
};

std::shared_ptr<addend::Model> Of(at::Tensor (*function)(const at::Tensor&)) {
  return addend::FromFunction([function](const std::vector<at::Tensor>& inputs) { return function(inputs[0]); });
}

// A plain run and a recording by turns, so that a slower or faster moment of the machine meets both.
void BM_Recording(benchmark::State& state, const std::shared_ptr<addend::Model>& model) {
  c10::AutoGradMode no_grad(false);
  const at::Tensor x = torch::ones({2});
  std::vector<Times> plain;
  std::vector<Times> recorded;
  size_t calls = 0;
  const auto one_round = [&] {
    plain.push_back(Measure([&] { benchmark::DoNotOptimize(model->Run({x})); }));
    addend::Recording recording;
    recorded.push_back(Measure([&] { recording = addend::Record(*model, {x}); }));
    calls = recording.program->calls.size();
  };
  one_round();
  plain.clear();
  recorded.clear();
  for (auto _ : state) {
    one_round();
    state.SetIterationTime(recorded.back().clock);
  }
  state.counters["calls"] = static_cast<double>(calls);
  const double plain_ns = MedianNs(plain, &Times::clock, calls);
  const double plain_processor_ns = MedianNs(plain, &Times::processor, calls);
  state.counters["plain_ns"] = plain_ns;
  state.counters["added_ns"] = MedianNs(recorded, &Times::clock, calls) - plain_ns;
  state.counters["plain_processor_ns"] = plain_processor_ns;
  state.counters["added_processor_ns"] = MedianNs(recorded, &Times::processor, calls) - plain_processor_ns;
}
BENCHMARK_CAPTURE(BM_Recording, additions, Of(Additions))->UseManualTime()->Iterations(31);
BENCHMARK_CAPTURE(BM_Recording, views_and_writes, Of(ViewsAndWrites))->UseManualTime()->Iterations(31);
BENCHMARK_CAPTURE(BM_Recording, torchscript, std::make_shared<Script>())->UseManualTime()->Iterations(31);

void BM_Loading(benchmark::State& state) {
  const addend::EncodedProgram encoded =
      addend::EncodeProgram(*addend::Record(*Of(ViewsAndWrites), {torch::ones({2})}).program);
  for (auto _ : state) {
    benchmark::DoNotOptimize(addend::DecodeProgram(encoded, "program").calls.data());
  }
  state.counters["megabytes"] = 1e-6 * static_cast<double>(encoded.graph.size());
}
BENCHMARK(BM_Loading)->Unit(benchmark::kMillisecond)->Iterations(11);

void BM_Replay(benchmark::State& state) {
  c10::AutoGradMode no_grad(false);
  const at::Tensor x = torch::ones({2});
  const addend::Replay replay(addend::Record(*Of(ViewsAndWrites), {x}).program);
  std::vector<Times> plain;
  std::vector<Times> replayed;
  for (auto _ : state) {
    plain.push_back(Measure([&] { benchmark::DoNotOptimize(ViewsAndWrites(x)); }));
    replayed.push_back(Measure([&] { benchmark::DoNotOptimize(replay.Run({x})); }));
    state.SetIterationTime(replayed.back().clock);
  }
  state.counters["plain_ns"] = MedianNs(plain, &Times::clock, kCalls);
  state.counters["replay_ns"] = MedianNs(replayed, &Times::clock, kCalls);
}
BENCHMARK(BM_Replay)->UseManualTime()->Iterations(31);

}  // namespace

BENCHMARK_MAIN();
