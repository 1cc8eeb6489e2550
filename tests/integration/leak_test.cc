// Decomposes again and again: memory must not grow. Long, because growth shows only after many rounds.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

TEST(Leak, DecomposingDoesNotGrow) {
  const std::string folder = "docs/examples/models/digits/";
  const TensorFile held_out = ReadTensorFile(folder + "heldout.safetensors");
  const TracedModel model(LoadTorchScript(folder + "model.pt"));
  const auto rounds = [&](int n) {
    for (int k = 0; k < n; ++k) {
      Input input;
      input.value = held_out.Find("input")->narrow(0, k % held_out.Find("input")->size(0), 1);
      input.split = Split::AlongDims({2, 3});
      input.baseline = Baseline::Of(0.0);
      DecomposeOptions options;
      options.probes = {"hidden"};
      const Decomposition result = model.Decompose({input}, options);
      // Errors let go of everything too.
      input.split = Split::AlongDims({9});
      EXPECT_THROW(model.Decompose({input}), Error);
      options.probes = {"no such module"};
      input.split = Split::AlongDims({2, 3});
      EXPECT_THROW(model.Decompose({input}, options), Error);
    }
  };
  rounds(200);
  const double before = ResidentMegabytes();
  rounds(2000);
  // One leaked decomposition keeps about half a megabyte.
  EXPECT_LT(ResidentMegabytes() - before, 30);
}

}  // namespace
}  // namespace addend
