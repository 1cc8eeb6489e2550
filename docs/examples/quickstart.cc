// Explains which digit a model sees in an image: the same program in five languages.
#include <addend/addend.hpp>
#include <cstdio>

namespace {

void Quickstart(const char* model_path, const char* sample_path) {
  const auto model = addend::api::Model::Load(model_path);
  const auto image = addend::api::TensorFile::Read(sample_path).tensor("input");

  // One component for each pixel, explained against an empty image.
  addend::api::Request request;
  request.Input(image).SplitAlong({2, 3}).Baseline(0.0);

  const auto explanation = model.Decompose(request).Explain("top1");
  std::printf("output %s = %.4f\n", explanation.target().c_str(), explanation.value());
  for (const auto& pixel : explanation.Top(3)) std::printf("pixel %s: %+.4f\n", pixel.name.c_str(), pixel.value);
  std::printf("leftover: %.1e\n", explanation.leftover());
  std::printf("recovery error: %.1e\n", explanation.recovery_error());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: quickstart MODEL SAMPLE\n");
    return 2;
  }
  try {
    Quickstart(argv[1], argv[2]);
  } catch (const addend::api::Error& error) {
    std::fprintf(stderr, "quickstart: %s\n", error.what());
    return 1;
  }
  return 0;
}
