// Compares the description of LibTorch with what LibTorch and the system say themselves.
#include "core/audit/libtorch_config.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace addend {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The rest of the line that begins with two spaces and a name.
std::string Line(const std::string& text, const std::string& name) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line.rfind(absl::StrCat("  ", name, ": "), 0) == 0) return line.substr(name.size() + 4);
  }
  return absl::StrCat("no line of ", name, " in ", text);
}

TEST(LibTorchConfigTest, FlagsOfCompilersAreLeftOut) {
  EXPECT_EQ(BuildLines("PyTorch built with:\n  - GCC 11.2\n  - OpenMP 201511 (a.k.a. OpenMP 4.5)\n"
                       "  - CPU capability usage: AVX2\n"
                       "  - Build settings: BLAS_INFO=mkl, CUDA_FLAGS= -gencode arch=compute_75,code=sm_75 -O2, "
                       "CXX_FLAGS= -O2 -DA=1, PERF_WITH_AVX=1, USE_CUDA=ON, \n\n"),
            "  built with: GCC 11.2; OpenMP 201511 (a.k.a. OpenMP 4.5)\n"
            "  settings: BLAS_INFO=mkl, PERF_WITH_AVX=1, USE_CUDA=ON");
  EXPECT_EQ(BuildLines("something else"), "  built with: not told\n  settings: not told");
}

// The system's own list of what is mapped, which knows nothing of how we look.
bool IsMapped(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.size() > file.size() && line.compare(line.size() - file.size(), file.size(), file) == 0) return true;
  }
  return false;
}

TEST(LibTorchConfigTest, TheFileIsTheOneThatIsMapped) {
  const std::string file = Line(LibTorchConfigText("0.99.0"), "library");
  EXPECT_THAT(file, HasSubstr("/libtorch_cpu.so"));
  EXPECT_TRUE(IsMapped(file)) << file;
}

TEST(LibTorchConfigTest, NumbersOfThreadsAreThoseOfNow) {
  at::set_num_threads(3);
  EXPECT_THAT(Line(LibTorchConfigText("0.99.0"), "threads"), StartsWith("3 for operators"));
  at::set_num_threads(1);
  const std::string threads = Line(LibTorchConfigText("0.99.0"), "threads");
  EXPECT_THAT(threads, StartsWith("1 for operators"));
  EXPECT_THAT(threads, HasSubstr("OMP_NUM_THREADS=1"));
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_THAT(Line(LibTorchConfigText("0.99.0"), "threads"), HasSubstr("OMP_NUM_THREADS is not set"));
}

TEST(LibTorchConfigTest, TheRestIsWhatLibTorchSays) {
  const std::string text = LibTorchConfigText("0.99.0");
  EXPECT_THAT(text, StartsWith("LibTorch 0.99.0\n"));
  EXPECT_THAT(at::show_config(), HasSubstr(absl::StrCat("CPU capability usage: ", Line(text, "processor"), "\n")));
  EXPECT_THAT(Line(text, "devices"), StartsWith("CPU; "));
  EXPECT_THAT(text, Not(HasSubstr("CXX_FLAGS")));
  EXPECT_NE(text.back(), '\n');
}

}  // namespace
}  // namespace addend
