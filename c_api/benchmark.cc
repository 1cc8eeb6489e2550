// Cost of the border: time of calls that do nothing else, and bytes copied for each tensor that is passed.
#include <benchmark/benchmark.h>

#include <vector>

#include "addend/addend.hpp"

namespace addend::api {
namespace {

constexpr int64_t kElements = 1 << 20;

void EmptyCall(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(addend_abi_version());
}
BENCHMARK(EmptyCall);

void EmptyCallWithAHandle(benchmark::State& state) {
  const Tensor tensor = Tensor::Copy<float>({1}, {1});
  for (auto _ : state) benchmark::DoNotOptimize(addend_tensor_num_dims(tensor.get()));
}
BENCHMARK(EmptyCallWithAHandle);

void MakeAndRelease(benchmark::State& state) {
  for (auto _ : state) {
    addend_request* request = nullptr;
    addend_status_release(addend_request_create(&request));
    addend_request_release(request);
  }
}
BENCHMARK(MakeAndRelease);

void FailAndRelease(benchmark::State& state) {
  for (auto _ : state) addend_status_release(addend_request_create(nullptr));
}
BENCHMARK(FailAndRelease);

// Bytes copied: those of the tensor, unless the handle shows the memory that was given.
void ReportCopies(benchmark::State& state, const void* given, const addend_tensor* tensor) {
  const bool shared = addend_tensor_data(tensor) == given;
  state.counters["bytes_copied_per_tensor"] = shared ? 0 : static_cast<double>(kElements * sizeof(float));
}

void Wrap(benchmark::State& state) {
  std::vector<float> numbers(kElements);
  const int64_t dims[] = {kElements};
  for (auto _ : state) {
    addend_tensor* tensor = nullptr;
    Check(addend_tensor_wrap(numbers.data(), kElements * sizeof(float), ADDEND_FLOAT32, dims, 1, nullptr, 0, nullptr,
                             nullptr, &tensor));
    ReportCopies(state, numbers.data(), tensor);
    addend_tensor_release(tensor);
  }
}
BENCHMARK(Wrap);

void DlpackThereAndBack(benchmark::State& state) {
  const Tensor tensor = Tensor::Copy(std::vector<float>(kElements), {kElements});
  for (auto _ : state) {
    void* managed = nullptr;
    int32_t is_versioned = 0;
    Check(addend_tensor_to_dlpack(tensor.get(), 1, &managed, &is_versioned));
    addend_tensor* back = nullptr;
    Check(addend_tensor_from_dlpack(managed, is_versioned, &back));
    ReportCopies(state, addend_tensor_data(tensor.get()), back);
    addend_tensor_release(back);
  }
}
BENCHMARK(DlpackThereAndBack);

void Copy(benchmark::State& state) {
  std::vector<float> numbers(kElements);
  const int64_t dims[] = {kElements};
  for (auto _ : state) {
    addend_tensor* tensor = nullptr;
    Check(addend_tensor_copy(numbers.data(), kElements * sizeof(float), ADDEND_FLOAT32, dims, 1, &tensor));
    ReportCopies(state, numbers.data(), tensor);
    addend_tensor_release(tensor);
  }
}
BENCHMARK(Copy);

void ReluOnAComposition(benchmark::State& state) {
  const Composition x = Composition::FromTensors(Tensor::Copy<float>({1, 2, 3, 4}, {2, 2}));
  for (auto _ : state) Call("aten::relu", Arguments().Add(x));
}
BENCHMARK(ReluOnAComposition);

}  // namespace
}  // namespace addend::api

BENCHMARK_MAIN();
