#include "core/load/load_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <utility>

#include "core/model/torchscript.h"

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

}  // namespace
}  // namespace addend
