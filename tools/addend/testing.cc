#include "tools/addend/testing.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/program/tensor_io.h"
#include "tools/addend/text.h"

namespace addend::cli {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ProgramTest::ProgramTest() {
  std::string pattern = testing::TempDir() + "/addend_XXXXXX";
  folder_ = mkdtemp(&pattern[0]);
  fs::create_directory(folder_ / "user");
}

ProgramTest::~ProgramTest() { fs::remove_all(folder_); }

std::string ProgramTest::Path(const std::string& name) const { return (folder_ / "user" / name).string(); }

std::string ProgramTest::Save(const std::string& name, const at::Tensor& tensor) const {
  WriteTensorFile(Path(name), {{{"input", tensor}}, {}});
  return Path(name);
}

Result ProgramTest::Run(const Arguments& arguments, const std::string& environment) const {
  std::string command = absl::StrCat("env ", environment, " ./", kProgram);
  for (const std::string& argument : arguments) {
    absl::StrAppend(&command, " '", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'");
  }
  const fs::path out = folder_ / "stdout";
  const fs::path err = folder_ / "stderr";
  absl::StrAppend(&command, " >'", out.string(), "' 2>'", err.string(), "' </dev/null");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out), ReadFile(err)};
}

void ProgramTest::ExpectError(const Arguments& arguments, const std::string& message) const {
  const std::set<fs::path> before = Files();
  const Result result = Run(arguments);
  const std::string command = testing::PrintToString(arguments);
  EXPECT_EQ(result.code, 2) << command << result.out;
  EXPECT_EQ(result.out, "") << command;
  EXPECT_THAT(result.err, AllOf(StartsWith("addend: "), HasSubstr(message), Not(HasSubstr("frame #")),
                                Not(HasSubstr("Exception raised"))))
      << command;
  ASSERT_FALSE(result.err.empty());
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "not one line: " << result.err;
  EXPECT_EQ(Files(), before) << command;
}

std::set<fs::path> ProgramTest::Files() const {
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "user")) files.insert(entry.path());
  return files;
}

std::string ModelOf(const std::string& name) { return absl::StrCat(kModels, name, "/model.pt"); }
std::string SampleOf(const std::string& name) { return absl::StrCat(kModels, name, "/sample.safetensors"); }
std::string HeldoutOf(const std::string& name) { return absl::StrCat(kModels, name, "/heldout.safetensors"); }

std::vector<Example> Examples() {
  return {
      {"breast_cancer",
       {ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--baseline",
        absl::StrCat(kModels, "breast_cancer/baseline.npy")},
       absl::StrCat(kModels, "breast_cancer/baseline.npy"),
       "table",
       30},
      {"digits", {ModelOf("digits"), "--input", SampleOf("digits"), "--baseline", "0"}, "0", "image", 64},
      {"language",
       {ModelOf("language"), "--input", SampleOf("language") + ":labels=segments", "--baseline", "token:mask_token"},
       "token 0 [mask]",
       "text",
       12},
      {"speaker",
       {ModelOf("speaker"), "--input", SampleOf("speaker") + ":labels=segments", "--baseline", "token:mask_token"},
       "token 0 [mask]",
       "text",
       11}};
}

const Arguments& Table() {
  static const auto& arguments =
      *new Arguments{"decompose", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer")};
  return arguments;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_TRUE(file) << path;
  return content.str();
}

double SumOf(const Json& numbers) {
  double sum = 0;
  for (const Json& number : numbers) sum += number.get<double>();
  return sum;
}

double RelativeError(const Json& target) {
  const double sum =
      SumOf(target["contributions"]) + target["reference"].get<double>() + target["leftover"].get<double>();
  return std::abs(sum - target["value"].get<double>()) / std::abs(target["value"].get<double>());
}

void ExpectNarrow(const std::string& text) {
  for (const auto line : absl::StrSplit(text, '\n')) {
    const std::string copy(line.data(), line.size());
    // Paths that may be copied stay whole.
    if (absl::StrContains(copy, " written: ")) continue;
    EXPECT_LE(cli::DisplayWidth(copy), 80) << copy;
    EXPECT_FALSE(absl::EndsWith(copy, " ")) << "\"" << copy << "\"";
  }
}

}  // namespace addend::cli
