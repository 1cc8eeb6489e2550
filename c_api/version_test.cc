// Messages for a process that has loaded another LibTorch than the one that the library was built for.
#include "c_api/version.h"

#include <ATen/Version.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "c_api/testing.h"
#include "third_party/torch/version.h"

namespace addend::c_api {
namespace {

using testing::HasSubstr;

TEST(VersionTest, TheRunningLibTorchTellsWhatItsDescriptionSays) {
  EXPECT_THAT(at::show_config(), HasSubstr("TORCH_VERSION=" + RunningLibTorchVersion() + ","));
}

TEST(VersionTest, AnotherLibTorchIsNamed) {
  EXPECT_EQ(LibTorchProblem("1.13.1", "1.13.0", {"/usr/lib/libtorch_cpu.so.1.13"}, false), "");
  EXPECT_EQ(LibTorchProblem("1.13.1", "", {}, false), "");
  EXPECT_THAT(
      LibTorchProblem("1.13.1", "2.1.0", {"/opt/torch/lib/libtorch_cpu.so"}, false),
      HasSubstr("built for LibTorch 1.13.1, but the process has loaded 2.1.0 (/opt/torch/lib/libtorch_cpu.so)"));
  EXPECT_THAT(LibTorchProblem("1.13.1", "1.1.0", {}, false), HasSubstr("has loaded 1.1.0"));
  EXPECT_THAT(LibTorchProblem("1.13.1", "1.13.1", {"/a/libtorch_cpu.so", "/b/libtorch_cpu.so"}, false),
              HasSubstr("more than once (/a/libtorch_cpu.so, /b/libtorch_cpu.so)"));
}

TEST(VersionTest, AnotherLibTorchMayBeAllowedButNotTwo) {
  EXPECT_EQ(LibTorchProblem("1.13.1", "2.1.0", {"/opt/torch/lib/libtorch_cpu.so"}, true), "");
  EXPECT_THAT(LibTorchProblem("1.13.1", "1.13.1", {"/a/libtorch_cpu.so", "/b/libtorch_cpu.so"}, true),
              HasSubstr("more than once"));
}

TEST(VersionTest, MinorVersionsAreCompared) {
  EXPECT_TRUE(IsSameMinorVersion("2.7.1", "2.7.0+cpu"));
  EXPECT_TRUE(IsSameMinorVersion("2.7", "2.7.1"));
  EXPECT_FALSE(IsSameMinorVersion("2.1.0", "2.10.0"));
  EXPECT_EQ(RunningLibTorchVersion().substr(0, 2), std::string(addend_libtorch_version()).substr(0, 2));
}

TEST(VersionTest, ThisProcessIsFine) {
  api::ExpectOk(addend_check_libtorch());
  api::ExpectOk(addend_load_libtorch(nullptr));
  EXPECT_EQ(addend_libtorch_is_loaded(), 1);
  EXPECT_EQ(addend_abi_version(), ADDEND_ABI_VERSION);
  EXPECT_LE(addend_abi_min_version(), addend_abi_version());
  std::string release;
  std::ifstream("VERSION") >> release;
  EXPECT_EQ(addend_version(), release);
  // The functions give their own text, before which the stub puts its lines.
  EXPECT_THAT(addend_show_config(), testing::StartsWith("LibTorch "));
  EXPECT_EQ(addend_show_config(), addend_show_config());
  EXPECT_THAT(addend_libtorch_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace addend::c_api
