// Computes with LibTorch, and explains what was computed: torch::jit loads and runs the model, and Addend records the very
// run. It ends with 1 where the parts do not add up to what the model gives without Addend.
#include <addend/addend.hpp>
#include <torch/script.h>

#include <algorithm>
#include <cstdio>
#include <exception>

namespace api = addend::api;

namespace {

// For Addend, on the same memory.
api::Tensor Shared(const at::Tensor& tensor) { return api::Tensor::FromLibTorch(&tensor); }

// The other way round.
at::Tensor Shared(const api::Tensor& tensor) { return *static_cast<at::Tensor*>(tensor.ToLibTorch().get()); }

bool Explain(const char* model_path, const char* sample_path) {
  // Throws, with the versions and files of both sides, where Addend has nothing for this program's LibTorch.
  api::CheckLibTorch();
  const c10::InferenceMode no_gradients;
  torch::jit::Module model = torch::jit::load(model_path);
  model.eval();
  const at::Tensor pixels = Shared(api::TensorFile::Read(sample_path).tensor("input"));
  const at::Tensor image = torch::zeros_like(pixels).add_(pixels);
  const at::Tensor expected = model.forward({image}).toTensor();

  // One component for each pixel, explained against an empty image. What the model does between here and End() is recorded.
  api::Request request;
  request.Input(Shared(image)).SplitAlong({2, 3}).Baseline(0.0);
  api::TracingScope scope(request);
  const at::Tensor output = model.forward({image}).toTensor();
  scope.AddOutput("output", Shared(output));
  const api::Results results = scope.End();

  const auto explanation = results.Explain("top1");
  std::printf("output %s = %.4f\n", explanation.target().c_str(), explanation.value());
  for (const auto& pixel : explanation.Top(3)) std::printf("pixel %s: %+.4f\n", pixel.name.c_str(), pixel.value);

  const auto composition = results.composition();
  const at::Tensor recovery = Shared(composition.components()).sum(0) + Shared(composition.reference()) +
                              Shared(composition.leftover());
  const double error = (recovery - expected).abs().max().item<double>();
  std::printf("LibTorch %s, recovery error of all %d outputs: %.1e\n", api::LibTorchVersion().c_str(),
              static_cast<int>(expected.numel()), error);
  return Shared(Shared(image)).data_ptr() == image.data_ptr() && output.equal(expected) &&
         error < 1e-4 * std::max(1.0, expected.abs().max().item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: explain MODEL SAMPLE\n");
    return 2;
  }
  try {
    if (Explain(argv[1], argv[2])) return 0;
    std::fprintf(stderr, "explain: the parts are not what the model computed\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "explain: %s\n", error.what());
  }
  return 1;
}
