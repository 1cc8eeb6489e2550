#include "core/onnx/external_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "core/base/error_testing.h"

namespace addend::onnx {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class ExternalFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "external_files";
    fs::remove_all(root_);
    fs::create_directories(Path("model/data"));
    Write("model/weights", "0123456789");
    Write("model/data/inner", "abc");
    Write("outside", "secret");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& name, const std::string& content) const { std::ofstream(Path(name)) << content; }

  // The content of the file at a location.
  std::string Read(const std::string& location) {
    ExternalFiles files(Path("model/m.onnx"));
    const weights::Bytes& bytes = files.Map(location, "m.onnx: the tensor w", &budget_);
    return std::string(bytes.data, bytes.size);
  }
  std::string Refusal(const std::string& location) {
    return MessageOf([&] { Read(location); });
  }

  std::string root_;
  weights::MemoryBudget budget_{"m.onnx", 100};
};

TEST_F(ExternalFilesTest, ReadsFilesBesideTheModelAndBelow) {
  EXPECT_EQ(Read("weights"), "0123456789");
  EXPECT_EQ(Read("./weights"), "0123456789");
  EXPECT_EQ(Read("data/inner"), "abc");
  EXPECT_EQ(Read(".//data/./inner"), "abc");
}

TEST_F(ExternalFilesTest, MapsAFileOnceAndKeepsTheOrder) {
  ExternalFiles files(Path("model/m.onnx"));
  const char* data = files.Map("weights", "w", &budget_).data;
  const uint64_t left = budget_.left();
  EXPECT_EQ(files.Map("./weights", "w", &budget_).data, data);
  EXPECT_EQ(budget_.left(), left);
  files.Map("data/inner", "w", &budget_);
  ASSERT_EQ(files.files().size(), 2U);
  EXPECT_EQ(files.files()[0].location, "weights");
  EXPECT_EQ(files.files()[1].location, "data/inner");
  EXPECT_NE(files.files()[0].bytes.file, nullptr);
}

TEST_F(ExternalFilesTest, CountsForTheBudget) {
  Write("model/large", std::string(1 << 20, 'x'));
  const uint64_t before = budget_.left();
  Read("large");
  EXPECT_GT(budget_.left(), before + (3 << 20));
}

TEST_F(ExternalFilesTest, RefusesPathsThatLeaveTheFolder) {
  const auto refused = HasSubstr("weights are read from the model's folder and below it only");
  for (const char* location : {"../outside", "data/../../outside", "data/..", "..", "a/../weights"}) {
    EXPECT_THAT(Refusal(location), HasSubstr("a path that leaves a folder")) << location;
    EXPECT_THAT(Refusal(location), refused) << location;
  }
  EXPECT_THAT(Refusal("/etc/passwd"), HasSubstr("m.onnx: the tensor w: its data are in /etc/passwd, an absolute path"));
  EXPECT_THAT(Refusal(Path("model/weights")), HasSubstr("an absolute path"));
  EXPECT_THAT(Refusal("."), HasSubstr("which is a folder"));
  EXPECT_THAT(Refusal("data/"), HasSubstr("which is a folder"));
  EXPECT_THAT(Refusal(std::string("weights\0x", 9)), HasSubstr("a path with a zero in it"));
  EXPECT_EQ(Refusal(""), "m.onnx: the tensor w: its external data have no location");
}

TEST_F(ExternalFilesTest, RefusesLinks) {
  fs::create_symlink("../outside", Path("model/link"));
  fs::create_symlink("weights", Path("model/inside"));
  fs::create_directory_symlink("..", Path("model/up"));
  fs::create_symlink("nowhere", Path("model/broken"));
  fs::create_hard_link(Path("outside"), Path("model/hard"));
  for (const char* location : {"link", "inside", "broken", "up/outside", "up/model/weights"}) {
    EXPECT_THAT(Refusal(location), HasSubstr("is a symbolic link, which could lead out of the model's folder"))
        << location;
  }
  EXPECT_THAT(Refusal("hard"), HasSubstr("which has 2 names (hard links)"));
}

TEST_F(ExternalFilesTest, RefusesWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(Path("model/pipe").c_str(), 0600), 0);
  Write("model/empty", "");
  EXPECT_THAT(Refusal("pipe"), HasSubstr("is no regular file"));
  EXPECT_THAT(Refusal("data"), HasSubstr("is no regular file"));
  EXPECT_THAT(Refusal("empty"), HasSubstr("the file is empty"));
  EXPECT_THAT(Refusal("weights/inner"), HasSubstr("cannot read weights/inner: Not a directory"));
  ExpectError(absl::StatusCode::kNotFound,
              {"m.onnx: the tensor w: cannot read missing: No such file", "external data lie beside the model's file"},
              [&] { Read("missing"); });
  EXPECT_THAT(Refusal("a\nb"), HasSubstr("cannot read a\\nb"));
}

TEST_F(ExternalFilesTest, AModelOfBytesHasNoFolder) {
  ExternalFiles files;
  ExpectError(absl::StatusCode::kFailedPrecondition, {"given as bytes has no folder; load it from its file"},
              [&] { files.Map("weights", "m.onnx: the tensor w", &budget_); });
}

TEST_F(ExternalFilesTest, TheFolderIsThatOfTheModelsPath) {
  const fs::path before = fs::current_path();
  fs::current_path(Path("model"));
  ExternalFiles files("m.onnx");
  EXPECT_EQ(files.Map("weights", "w", &budget_).size, 10U);
  fs::current_path(before);
  ExternalFiles missing(Path("nowhere/m.onnx"));
  EXPECT_THAT(MessageOf([&] { missing.Map("weights", "w", &budget_); }), HasSubstr("cannot open the folder"));
}

}  // namespace
}  // namespace addend::onnx
