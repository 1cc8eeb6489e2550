// Cost of reasons for the rows of a table: contributions of every column to one number of each row, or to ten, for
// models from a file and batches of several sizes, everything included. Each round is one plain run, one run of
// autograd's forward and backward, and one attribution; medians are compared.
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/script.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/spent.h"
#include "core/explain/attribute.h"
#include "core/explain/plan.h"
#include "core/model/model.h"
#include "core/run/reference_cache.h"

namespace {

struct Setting {
  std::string path;  // a TorchScript file
  std::function<std::vector<at::Tensor>(int64_t rows)> inputs;
  std::vector<std::vector<int64_t>> dims;  // by input: what is split
  bool images = false;                     // the baseline of all rows is black; else it is one of them
};

std::string SavedModel(const std::string& name, const std::string& code,
                       const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  torch::jit::Module module(name);
  for (const auto& [own, tensor] : parameters) module.register_parameter(own, tensor, /*is_buffer=*/false);
  module.define(code);
  const std::string path = std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") + "/addend_rows_" +
                           std::to_string(getpid()) + "_" + name + ".pt";
  module.save(path);
  return path;
}

at::Tensor Weight(at::IntArrayRef sizes) {
  int64_t fan_in = 1;
  for (size_t d = 1; d < sizes.size(); ++d) fan_in *= sizes[d];
  return torch::randn(sizes) / std::sqrt(static_cast<double>(fan_in));
}

// 64-256-256-10, [rows, 64].
Setting Mlp() {
  const std::string code = R"(
def forward(self, x):
    x = torch.relu(torch.linear(x, self.w1, self.b1))
    x = torch.relu(torch.linear(x, self.w2, self.b2))
    return torch.linear(x, self.w3, self.b3)
)";
  return {SavedModel("mlp", code,
                     {{"w1", Weight({256, 64})},
                      {"b1", torch::randn({256})},
                      {"w2", Weight({256, 256})},
                      {"b2", torch::randn({256})},
                      {"w3", Weight({10, 256})},
                      {"b3", torch::randn({10})}}),
          [](int64_t rows) {
            return std::vector<at::Tensor>{torch::randn({rows, 64})};
          },
          {{1}}};
}

// Two convolutions with normalization and pooling, as the digits of docs/examples; [rows, 1, 8, 8].
Setting Cnn() {
  const std::string code = R"(
def forward(self, x):
    x = torch.conv2d(x, self.w1, self.b1, [1, 1], [1, 1])
    x = torch.batch_norm(x, self.one16, self.b1, self.b1, self.one16, False, 0.1, 1e-5, False)
    x = torch.max_pool2d(torch.relu(x), [2, 2])
    x = torch.conv2d(x, self.w2, self.b2, [1, 1], [1, 1])
    x = torch.batch_norm(x, self.one32, self.b2, self.b2, self.one32, False, 0.1, 1e-5, False)
    x = torch.max_pool2d(torch.relu(x), [2, 2])
    return torch.linear(torch.flatten(x, 1), self.w3, self.b3)
)";
  return {SavedModel("cnn", code,
                     {{"w1", Weight({16, 1, 3, 3})},
                      {"b1", torch::rand({16})},
                      {"one16", torch::ones({16})},
                      {"w2", Weight({32, 16, 3, 3})},
                      {"b2", torch::rand({32})},
                      {"one32", torch::ones({32})},
                      {"w3", Weight({10, 128})},
                      {"b3", torch::randn({10})}}),
          [](int64_t rows) {
            return std::vector<at::Tensor>{torch::rand({rows, 1, 8, 8})};
          },
          {{2, 3}},
          /*images=*/true};
}

// A DeepFM: ids of eight categories and thirteen numbers; pairs of embeddings, and a network on all of them.
Setting DeepFm() {
  const std::string code = R"(
def forward(self, ids, numbers):
    vectors = torch.embedding(self.table, ids)
    scaled = numbers.unsqueeze(2) * self.scale
    fields = torch.cat([vectors, scaled], 1)
    total = fields.sum(1)
    pairs = 0.5 * (total * total - (fields * fields).sum(1)).sum(1, keepdim=True)
    x = torch.relu(torch.linear(torch.flatten(fields, 1), self.w1, self.b1))
    x = torch.relu(torch.linear(x, self.w2, self.b2))
    return torch.linear(x, self.w3, self.b3) + pairs
)";
  return {SavedModel("deepfm", code,
                     {{"table", torch::randn({4000, 16})},
                      {"scale", Weight({13, 16})},
                      {"w1", Weight({256, 336})},
                      {"b1", torch::randn({256})},
                      {"w2", Weight({128, 256})},
                      {"b2", torch::randn({128})},
                      {"w3", Weight({10, 128})},
                      {"b3", torch::randn({10})}}),
          [](int64_t rows) {
            return std::vector<at::Tensor>{torch::randint(0, 4000, {rows, 8}, torch::kLong), torch::randn({rows, 13})};
          },
          {{1}, {1}}};
}

// Request of a measurement: targets of each row, whose the baseline is, and how references and plans are used.
struct Asked {
  int64_t targets = 1;
  bool own_baselines = false;
  bool kept = false;  // references are kept from one batch to the next
  bool planned = false;
};

void Measure(benchmark::State& state, const Setting& setting, int64_t rows, const Asked& asked) {
  at::set_num_threads(1);
  torch::manual_seed(0);
  torch::jit::Module plain_model = torch::jit::load(setting.path);
  plain_model.eval();
  const std::vector<at::Tensor> baselines = setting.inputs(rows);
  addend::AttributeOptions options;
  options.each_example = true;
  options.every_target = asked.targets > 1;
  options.targets.clear();
  for (int64_t t = 0; t < asked.targets; ++t) options.targets.push_back(addend::ParseTarget(std::to_string(t)));
  if (asked.kept) options.references = std::make_shared<addend::ReferenceCache>();
  const addend::TracedModel model(addend::LoadTorchScript(setting.path));
  const auto inputs_of = [&](const std::vector<at::Tensor>& batch) {
    std::vector<addend::Input> inputs(batch.size());
    for (size_t k = 0; k < batch.size(); ++k) {
      inputs[k].value = batch[k];
      inputs[k].split = addend::Split::AlongDims(setting.dims[k]);
      inputs[k].baseline = asked.own_baselines ? addend::Baseline::Of(baselines[k])
                           : setting.images    ? addend::Baseline::Of(0.0)
                                               : addend::Baseline::Of(baselines[k].narrow(0, 0, 1));
    }
    return inputs;
  };
  std::shared_ptr<const addend::AttributionPlan> plan;
  if (asked.planned) plan = addend::AttributionPlan::Make(model.model(), inputs_of(setting.inputs(rows)), options);
  Spent plain, gradients, attributed;
  std::vector<double> traced, linearized, swept;
  double worst = 0;
  const auto one_round = [&] {
    const std::vector<at::Tensor> batch = setting.inputs(rows);
    const std::vector<c10::IValue> arguments(batch.begin(), batch.end());
    plain.Measure([&] {
      const c10::AutoGradMode no_grad(false);
      benchmark::DoNotOptimize(plain_model.forward(arguments));
    });
    gradients.Measure([&] {
      std::vector<c10::IValue> leaves;
      for (const at::Tensor& input : batch) {
        leaves.emplace_back(input.is_floating_point() ? input.detach().requires_grad_() : input);
      }
      plain_model.forward(leaves).toTensor().select(1, 0).sum().backward();
    });
    for (const at::Tensor& parameter : plain_model.parameters()) parameter.mutable_grad().reset();
    addend::Attribution result;
    attributed.Measure([&] {
      result = plan != nullptr ? plan->Attribute(batch) : addend::Attribute(model, inputs_of(batch), options);
    });
    for (const addend::Contributions& target : result.targets) {
      worst = std::max(worst, std::abs(target.recovery - target.value) / std::max(1.0, std::abs(target.value)));
      worst = std::max(worst, std::abs(target.leftover) / std::max(1.0, std::abs(target.value)));
    }
    traced.push_back(result.report.trace_seconds);
    linearized.push_back(result.report.linearize_seconds);
    swept.push_back(result.report.sweep_seconds);
  };
  for (int k = 0; k < 3; ++k) one_round();  // the interpreter optimizes in the first runs
  plain = gradients = attributed = Spent();
  for (auto* times : {&traced, &linearized, &swept}) times->clear();
  for (auto _ : state) {
    one_round();
    state.SetIterationTime(attributed.clock.back());
  }
  const double forward = Median(plain.clock);
  state.counters["ratio"] = Median(attributed.clock) / forward;
  state.counters["processor"] = Median(attributed.processor) / Median(plain.processor);
  state.counters["autograd"] = Median(gradients.clock) / forward;
  state.counters["plain_ms"] = 1e3 * forward;
  state.counters["us_per_row"] = 1e6 * Median(attributed.clock) / static_cast<double>(rows);
  std::sort(attributed.clock.begin(), attributed.clock.end());
  state.counters["p99"] = attributed.clock[attributed.clock.size() * 99 / 100] / Median(attributed.clock);
  state.counters["trace"] = Median(traced) / forward;
  state.counters["linearize"] = Median(linearized) / forward;
  state.counters["sweep"] = Median(swept) / forward;
  state.counters["worst"] = worst;
}

void RegisterAll(const std::vector<Setting>& settings, const std::vector<std::string>& names) {
  for (size_t k = 0; k < settings.size(); ++k) {
    for (const int64_t rows : {1, 128, 1024, 8192}) {
      const std::vector<std::pair<std::string, Asked>> all = {{"one_baseline", {1, false, false}},
                                                              {"kept", {1, false, true}},
                                                              {"planned", {1, false, false, true}},
                                                              {"own_baselines", {1, true, false}},
                                                              {"ten_targets", {10, false, false}}};
      for (const auto& [word, asked] : all) {
        benchmark::RegisterBenchmark((names[k] + "/" + std::to_string(rows) + "/" + word).c_str(),
                                     [&setting = settings[k], rows = rows, asked = asked](benchmark::State& state) {
                                       Measure(state, setting, rows, asked);
                                     })
            ->UseManualTime()
            ->Iterations(rows > 1024 ? 9
                         : rows == 1 ? 2000
                                     : 25)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  torch::manual_seed(0);
  const std::vector<Setting> settings = {Mlp(), Cnn(), DeepFm()};
  RegisterAll(settings, {"mlp", "cnn", "deepfm"});
  benchmark::RunSpecifiedBenchmarks();
  for (const Setting& setting : settings) unlink(setting.path.c_str());
  return 0;
}
