// Cost of contributions to one number, everything included: running and recording the model, the references, the
// coefficients and the sweep back; also with the references of a fixed baseline kept. Each round is one plain run and
// one attribution; medians are compared.
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "benchmarks/encoder_model.h"
#include "benchmarks/spent.h"
#include "core/explain/attribute.h"
#include "core/model/nn_module.h"
#include "core/run/reference_cache.h"

namespace {

using addend::benchmarks::Encoder;

// Two convolutions with normalization, and what went in.
struct Block : torch::nn::Module {
  Block(int64_t in, int64_t out, int64_t stride) {
    const auto conv = [](int64_t from, int64_t to, int64_t size, int64_t step) {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, size).stride(step).padding(size / 2).bias(false));
    };
    first = register_module("first", conv(in, out, 3, stride));
    second = register_module("second", conv(out, out, 3, 1));
    first_norm = register_module("first_norm", torch::nn::BatchNorm2d(out));
    second_norm = register_module("second_norm", torch::nn::BatchNorm2d(out));
    if (in != out) skip = register_module("skip", conv(in, out, 1, stride));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = first_norm->forward(first->forward(x)).relu_();
    const at::Tensor past = skip.is_empty() ? x : skip->forward(x);
    return second_norm->forward(second->forward(hidden)).add_(past).relu_();
  }
  torch::nn::Conv2d first = nullptr, second = nullptr, skip = nullptr;
  torch::nn::BatchNorm2d first_norm = nullptr, second_norm = nullptr;
};

// A residual network of nine convolutions with a maximum pooling in front; [1, 3, 64, 64].
struct Cnn : torch::nn::Module {
  Cnn() {
    stem = register_module("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 7).stride(2).padding(3)));
    blocks = register_module("blocks", torch::nn::Sequential(Block(32, 32, 1), Block(32, 64, 2), Block(64, 128, 2)));
    head = register_module("head", torch::nn::Linear(128, 10));
  }
  at::Tensor forward(const at::Tensor& image) {
    const at::Tensor pooled = at::max_pool2d(stem->forward(image).relu_(), {2, 2});
    return head->forward(at::adaptive_avg_pool2d(blocks->forward(pooled), {1, 1}).flatten(1));
  }
  torch::nn::Conv2d stem = nullptr;
  torch::nn::Sequential blocks;
  torch::nn::Linear head = nullptr;
};

// Laid out as ResNet-18; [1, 3, 96, 96].
struct ResNet18 : torch::nn::Module {
  ResNet18() {
    stem =
        register_module("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)));
    norm = register_module("norm", torch::nn::BatchNorm2d(64));
    blocks = register_module("blocks", torch::nn::Sequential(Block(64, 64, 1), Block(64, 64, 1), Block(64, 128, 2),
                                                             Block(128, 128, 1), Block(128, 256, 2), Block(256, 256, 1),
                                                             Block(256, 512, 2), Block(512, 512, 1)));
    head = register_module("head", torch::nn::Linear(512, 100));
  }
  at::Tensor forward(const at::Tensor& image) {
    const at::Tensor pooled = at::max_pool2d(norm->forward(stem->forward(image)).relu_(), {3, 3}, {2, 2}, {1, 1});
    return head->forward(at::adaptive_avg_pool2d(blocks->forward(pooled), {1, 1}).flatten(1));
  }
  torch::nn::Conv2d stem = nullptr;
  torch::nn::BatchNorm2d norm = nullptr;
  torch::nn::Sequential blocks;
  torch::nn::Linear head = nullptr;
};

// So small that what counts is the time for each operator; [1, 64].
struct Mlp : torch::nn::Module {
  Mlp() {
    layers = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(64, 256), torch::nn::ReLU(), torch::nn::Linear(256, 256),
                                        torch::nn::ReLU(), torch::nn::Linear(256, 10)));
  }
  at::Tensor forward(const at::Tensor& features) { return layers->forward(features); }
  torch::nn::Sequential layers;
};

// Hidden size 128; [steps, 1, 128].
struct Recurrent : torch::nn::Module {
  Recurrent() {
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(128, 128)));
    head = register_module("head", torch::nn::Linear(128, 10));
  }
  at::Tensor forward(const at::Tensor& steps) { return head->forward(std::get<0>(lstm->forward(steps)).select(0, -1)); }
  torch::nn::LSTM lstm = nullptr;
  torch::nn::Linear head = nullptr;
};

struct Setting {
  std::shared_ptr<addend::Model> model;
  std::function<at::Tensor()> plain;
  at::Tensor input;
  std::vector<int64_t> target;
};

template <typename Module>
Setting MakeSetting(const at::Tensor& input, std::vector<int64_t> target) {
  torch::manual_seed(0);
  const auto module = std::make_shared<Module>();
  module->eval();
  return {addend::FromModule(module), [module, input] { return module->forward(input); }, input, std::move(target)};
}

const Setting& EncoderSetting(int64_t tokens) {
  static Setting& short_one = *new Setting(MakeSetting<Encoder>(torch::randn({32, 1, 256}), {5, 0, 7}));
  static Setting& long_one = *new Setting(MakeSetting<Encoder>(torch::randn({128, 1, 256}), {5, 0, 7}));
  return tokens == 32 ? short_one : long_one;
}
const Setting& CnnSetting() {
  static Setting& setting = *new Setting(MakeSetting<Cnn>(torch::randn({1, 3, 64, 64}), {0, 3}));
  return setting;
}
const Setting& ResNetSetting() {
  static Setting& setting = *new Setting(MakeSetting<ResNet18>(torch::randn({1, 3, 96, 96}), {0, 3}));
  return setting;
}
const Setting& MlpSetting() {
  static Setting& setting = *new Setting(MakeSetting<Mlp>(torch::randn({1, 64}), {0, 3}));
  return setting;
}
const Setting& RecurrentSetting() {
  static Setting& setting = *new Setting(MakeSetting<Recurrent>(torch::randn({32, 1, 128}), {0, 3}));
  return setting;
}

// `kept`: the references of the baseline are kept from one attribution to the next, of another input each time.
void Measure(benchmark::State& state, const Setting& setting, addend::Preset preset, int64_t numc, bool kept) {
  c10::AutoGradMode no_grad(false);
  addend::Input input;
  input.value = setting.input;
  const at::Tensor numbers = torch::arange(setting.input.numel(), torch::kLong).remainder(numc);
  input.split = addend::Split::ByLabels(numbers.view(setting.input.sizes()));
  input.baseline = addend::Baseline::Of(0.0);
  addend::AttributeOptions options;
  options.policy.preset = preset;
  options.targets[0].top1 = false;
  options.targets[0].index = setting.target;
  if (kept) options.references = std::make_shared<addend::ReferenceCache>();
  const addend::TracedModel model(setting.model);
  Spent plain, attributed;
  std::vector<double> traced, linearized, swept;
  int64_t operators = 1;
  const auto one_round = [&] {
    plain.Measure([&] { benchmark::DoNotOptimize(setting.plain()); });
    if (kept) input.value = setting.input + 0.01 * torch::randn_like(setting.input);
    addend::Attribution result;
    attributed.Measure([&] { result = addend::Attribute(model, {input}, options); });
    traced.push_back(result.report.trace_seconds);
    linearized.push_back(result.report.linearize_seconds);
    swept.push_back(result.report.sweep_seconds);
    operators = std::max<int64_t>(result.report.operators, 1);
  };
  one_round();  // warms caches and thread pools
  plain = attributed = Spent();
  for (auto* times : {&traced, &linearized, &swept}) times->clear();
  for (auto _ : state) {
    one_round();
    state.SetIterationTime(attributed.clock.back());
  }
  const double forward = Median(plain.clock);
  state.counters["ratio_to_forward"] = Median(attributed.clock) / forward;
  state.counters["processor_ratio"] = Median(attributed.processor) / Median(plain.processor);
  state.counters["preset"] = preset == addend::Preset::kFaithful ? 1 : 0;
  state.counters["numc"] = static_cast<double>(numc);
  state.counters["kept"] = kept ? 1 : 0;
  state.counters["plain_ms"] = 1e3 * forward;
  state.counters["us_per_operator"] = 1e6 * Median(attributed.clock) / static_cast<double>(operators);
  state.counters["trace_ratio"] = Median(traced) / forward;
  state.counters["linearize_ratio"] = Median(linearized) / forward;
  state.counters["sweep_ratio"] = Median(swept) / forward;
}

void RegisterAll() {
  for (const addend::Preset preset : {addend::Preset::kFast, addend::Preset::kFaithful}) {
    for (const int64_t numc : {32, 512, 4096}) {
      const std::string behind = "/" + addend::PresetName(preset) + "/" + std::to_string(numc);
      const auto add = [&](const std::string& name, const std::function<const Setting&()>& setting) {
        for (const bool kept : {false, true}) {
          if (kept && numc != 512) continue;
          benchmark::RegisterBenchmark((name + behind + (kept ? "/kept" : "")).c_str(),
                                       [=](benchmark::State& state) { Measure(state, setting(), preset, numc, kept); })
              ->UseManualTime()
              ->Iterations(25)
              ->Unit(benchmark::kMillisecond);
        }
      };
      for (const int64_t tokens : {32, 128}) {
        add("encoder_" + std::to_string(tokens), [tokens]() -> const Setting& { return EncoderSetting(tokens); });
      }
      add("cnn", []() -> const Setting& { return CnnSetting(); });
      add("resnet18", []() -> const Setting& { return ResNetSetting(); });
      add("lstm", []() -> const Setting& { return RecurrentSetting(); });
      add("mlp", []() -> const Setting& { return MlpSetting(); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const char* blas = std::getenv("OPENBLAS_CORETYPE");
  benchmark::AddCustomContext("OPENBLAS_CORETYPE", blas != nullptr ? blas : "chosen by OpenBLAS");
  benchmark::AddCustomContext("threads", std::to_string(at::get_num_threads()));
  RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
