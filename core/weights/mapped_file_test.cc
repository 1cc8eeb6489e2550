#include "core/weights/mapped_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/base/error.h"

namespace addend::weights {
namespace {

TEST(MapFile, WritesStayInThisProcess) {
  const std::string path = ::testing::TempDir() + "/mapped";
  std::ofstream(path) << "content";
  {
    const Bytes bytes = MapFile(path);
    bytes.data[0] = 'C';
    EXPECT_EQ(std::string(bytes.data, bytes.size), "Content");
  }
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "content");
}

TEST(MapFile, RefusesWhatIsNoFile) {
  const auto code = [](const std::string& path) {
    try {
      MapFile(path);
    } catch (const Error& e) {
      return e.code();
    }
    return absl::StatusCode::kOk;
  };
  EXPECT_EQ(code("/no/such/file"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(::testing::TempDir()), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("/dev/null"), absl::StatusCode::kInvalidArgument);
  const std::string empty = ::testing::TempDir() + "/empty";
  std::ofstream(empty).flush();
  EXPECT_EQ(code(empty), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace addend::weights
