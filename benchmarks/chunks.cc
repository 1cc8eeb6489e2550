// Time and memory of components that move in chunks: an encoder of 128 tokens, or of 32.
//   chunks            time in chunks of 32, 16, 8 and 4 of 32 components, over one sweep
//   chunks MIB [N]    peak memory of one decomposition of N (4096) components within MIB mebibytes; 0: any amount
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <sys/resource.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "benchmarks/encoder_model.h"
#include "core/explain/decompose.h"
#include "core/model/nn_module.h"

namespace {

using addend::benchmarks::Encoder;

addend::Input SplitInto(const at::Tensor& value, int64_t numc) {
  addend::Input input;
  input.value = value;
  const at::Tensor numbers = at::arange(value.numel(), at::kLong);
  input.split = addend::Split::ByLabels((numbers * numc).div(value.numel(), "floor").view(value.sizes()));
  input.baseline = addend::Baseline::Of(0.0);
  return input;
}

double PeakMebibytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void Compare(const addend::TracedModel& model) {
  const std::vector<int64_t> chunks = {0, 16, 8, 4};
  const addend::Input input = SplitInto(at::randn({32, 1, 256}), 32);
  std::vector<std::vector<double>> totals(chunks.size());
  for (int round = 0; round < 10; ++round) {
    for (size_t k = 0; k < chunks.size(); ++k) {
      addend::DecomposeOptions options;
      options.policy.preset = addend::Preset::kFaithful;
      options.chunk = chunks[k];
      const double start = ProcessorSeconds();
      model.Decompose({input}, options);
      if (round > 0) totals[k].push_back(ProcessorSeconds() - start);  // the first one warms caches
    }
  }
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  for (size_t k = 0; k < chunks.size(); ++k) {
    std::printf("chunks of %2d: %.1f ms, %.2f of one sweep\n", static_cast<int>(chunks[k] == 0 ? 32 : chunks[k]),
                1e3 * median(totals[k]), median(totals[k]) / median(totals[0]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const c10::AutoGradMode no_grad(false);
  torch::manual_seed(0);
  const auto module = std::make_shared<Encoder>();
  module->eval();
  const addend::TracedModel model(addend::FromModule(module));
  if (argc < 2) {
    Compare(model);
    return 0;
  }
  const int64_t budget = std::atoll(argv[1]);
  const addend::Input input = SplitInto(at::randn({128, 1, 256}), argc > 2 ? std::atoll(argv[2]) : 4096);
  addend::DecomposeOptions options;
  options.policy.preset = addend::Preset::kFaithful;
  // Few components: the model, its recorded run, and all code that is used.
  model.Decompose({SplitInto(input.value, 8)}, options);
  const double before = PeakMebibytes();
  options.memory_bytes = budget << 20;
  const double start = ProcessorSeconds();
  const addend::Decomposition result = model.Decompose({input}, options);
  std::printf("%d components within %d MiB: %.0f MiB more than the %.0f MiB before, %.2f s of the processor\n",
              static_cast<int>(result.numc), static_cast<int>(budget), PeakMebibytes() - before, before,
              ProcessorSeconds() - start);
  return 0;
}
