// Cost of operators that are called by name, one by one: on plain tensors and on compositions of four elements,
// beside the same operator called through LibTorch's dispatcher.
#include "core/eager/eager.h"

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include "core/composition/composition.h"

namespace {

using addend::Call;
using addend::Composition;

at::Tensor Numbers() { return at::arange(4, at::kFloat) - 1.5; }

Composition Parts(int64_t numc) { return Composition(at::randn({numc, 4}), Numbers(), at::zeros({4})); }

void LibTorchRelu(benchmark::State& state) {
  const at::Tensor x = Numbers();
  for (auto _ : state) benchmark::DoNotOptimize(at::relu(x));
}
BENCHMARK(LibTorchRelu);

void PlainRelu(benchmark::State& state) {
  const at::Tensor x = Numbers();
  for (auto _ : state) benchmark::DoNotOptimize(Call("aten::relu", x));
}
BENCHMARK(PlainRelu);

void PlainAdd(benchmark::State& state) {
  const at::Tensor x = Numbers();
  for (auto _ : state) benchmark::DoNotOptimize(Call("aten::add", x, x));
}
BENCHMARK(PlainAdd);

void ComposedRelu(benchmark::State& state) {
  const Composition x = Parts(4);
  for (auto _ : state) benchmark::DoNotOptimize(Call("aten::relu", x));
}
BENCHMARK(ComposedRelu);

void ComposedAdd(benchmark::State& state) {
  const Composition x = Parts(4);
  for (auto _ : state) benchmark::DoNotOptimize(Call("aten::add", x, x));
}
BENCHMARK(ComposedAdd);

void ComposedMultiply(benchmark::State& state) {
  const Composition x = Parts(4);
  for (auto _ : state) benchmark::DoNotOptimize(Call("aten::mul.Tensor", x, x));
}
BENCHMARK(ComposedMultiply);

}  // namespace

BENCHMARK_MAIN();
