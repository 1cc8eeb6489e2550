// Decomposes a model that was recorded in Python.
#include <addend/addend.hpp>
#include <cstdio>
#include <string>

namespace {

void Decompose(const std::string& folder) {
  const auto model = addend::api::Program::Load(folder + "/program").AsModel();
  const auto sample = addend::api::TensorFile::Read(folder + "/sample.safetensors");

  // One component for each word, explained against padding.
  addend::api::Request request;
  request.Input(sample.tensor("batch.input_ids"), "batch.input_ids").SplitAlong({1}).Baseline(0.0);
  request.Input(sample.tensor("batch.attention_mask"), "batch.attention_mask");

  const auto explanation = model.Decompose(request).Explain("top1");
  std::printf("output %s = %.4f\n", explanation.target().c_str(), explanation.value());
  for (const auto& word : explanation.Top(3)) std::printf("word %s: %+.4f\n", word.name.c_str(), word.value);
  std::printf("reference: %.4f\n", explanation.reference());
  std::printf("recovery: %.4f\n", explanation.recovery());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: decompose FOLDER\n");
    return 2;
  }
  try {
    Decompose(argv[1]);
  } catch (const addend::api::Error& error) {
    std::fprintf(stderr, "decompose: %s\n", error.what());
    return 1;
  }
  return 0;
}
