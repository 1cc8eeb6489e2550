#include "core/load/load_model.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "core/model/torchscript.h"
#include "core/onnx/onnx_testing.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The bytes of an archive in which no entry has a checksum, as torch writes it where it is told to compute none.
std::string WithoutChecksums(std::string archive) {
  const std::pair<const char*, size_t> marks[] = {{"PK\x01\x02", 16}, {"PK\x03\x04", 14}, {"PK\x07\x08", 4}};
  for (const auto& [mark, place] : marks) {
    for (size_t at = archive.find(mark); at != std::string::npos; at = archive.find(mark, at + 4)) {
      archive.replace(at + place, 4, std::string(4, '\0'));
    }
  }
  return archive;
}

TEST(LoadModel, SaysWhereATorchScriptFileHasNoChecksums) {
  torch::jit::Module module("m");
  module.define("def forward(self, x):\n  return x * 2\n");
  std::ostringstream saved;
  module.save(saved);
  const std::string whole = saved.str();
  EXPECT_THAT(LoadModelBytes(whole.data(), whole.size(), "m.pt")->Notes(), IsEmpty());
  const std::string unchecked = WithoutChecksums(whole);
  const auto model = LoadModelBytes(unchecked.data(), unchecked.size(), "m.pt");
  EXPECT_THAT(model->Notes(), ElementsAre(HasSubstr("of the file have no checksum, so that damage there is not seen")));
  EXPECT_THAT(MethodsOf(*model, {"forward"})->Notes(), ElementsAre(HasSubstr("no checksum")));
  EXPECT_THAT(model->To(at::kCPU)->Notes(), ElementsAre(HasSubstr("no checksum")));
}

// y = x + w, of three numbers, with w in a file beside the model.
std::string WrittenOnnx(const std::string& name, const std::string& weights) {
  onnx::GraphParts parts;
  parts.nodes = {onnx::NodeMessage("Add", {"x", "w"}, {"y"})};
  parts.initializers = {onnx::ExternalTensor("w", 1, {3}, {"location", name + ".bin"})};
  parts.inputs = {onnx::ValueInfo("x", {3})};
  parts.outputs = {onnx::ValueInfo("y", {3})};
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << onnx::ModelMessage(onnx::GraphMessage(parts)).bytes();
  std::ofstream(path + ".bin") << weights;
  return path;
}

TEST(LoadModel, ReadsOnnxByContent) {
  const std::string weights(12, '\0');
  const std::string path = WrittenOnnx("anything.pt", weights);
  const at::Tensor x = at::ones({3});
  EXPECT_TRUE(at::equal(LoadModel(path)->Run({x}).toTensor(), x));
  EXPECT_THAT(FilesBeside(path), ElementsAre("anything.pt.bin"));
  const std::string small = onnx::SmallModel();
  const auto model = LoadModelBytes(small.data(), small.size(), "small.onnx");
  EXPECT_EQ(model->Run({at::ones({2, 3})}).toTensor().sizes(), at::IntArrayRef({2, 2}));
  EXPECT_EQ(model->To(at::kCPU, at::kDouble)->Run({at::ones({2, 3}, at::kDouble)}).toTensor().scalar_type(),
            at::kDouble);
}

}  // namespace
}  // namespace addend
