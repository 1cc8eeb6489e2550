// Base of the program's tests. They run it as a user does, in a process of its own, and look at what it prints,
// what it writes, and how it fails.
#ifndef ADDEND_TOOLS_ADDEND_TESTING_H_
#define ADDEND_TOOLS_ADDEND_TESTING_H_

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace addend::cli {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Outcome of a run of the program.
struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

// A folder for each test.
class ProgramTest : public testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  // Path of a file in the test's folder.
  std::string Path(const std::string& name) const;
  // Writes the tensor there, under the name "input".
  std::string Save(const std::string& name, const at::Tensor& tensor) const;

  Result Run(const Arguments& arguments, const std::string& environment = "LC_ALL=C") const;

  // The run fails as bad input does: one clear line, exit code 2, and no file more than before.
  void ExpectError(const Arguments& arguments, const std::string& message) const;

 private:
  std::set<std::filesystem::path> Files() const;

  std::filesystem::path folder_;
};

// The program, and the example models: digits, breast_cancer, language, speaker.
constexpr char kProgram[] = "tools/addend/addend";
constexpr char kModels[] = "docs/examples/models/";

std::string ModelOf(const std::string& name);
std::string SampleOf(const std::string& name);
std::string HeldoutOf(const std::string& name);

// The commands of tools/quickstart.
struct Example {
  std::string name;
  Arguments input;
  std::string baseline;
  std::string kind;
  size_t parts;
};

// breast_cancer, digits, language, speaker.
std::vector<Example> Examples();

// Decomposes breast_cancer with nothing said but its input.
const Arguments& Table();

std::string ReadFile(const std::filesystem::path& path);

double SumOf(const Json& numbers);

// The relative distance between a target's value and its parts, added here.
double RelativeError(const Json& target);

// No line is wider than a terminal of 80 columns or ends with a space.
void ExpectNarrow(const std::string& text);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_TESTING_H_
