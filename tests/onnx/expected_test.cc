// A suite of ONNX, which is not committed, held to the committed list of what does not pass.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/onnx/suite_runner.h"

namespace addend {
namespace {

TEST(Suite, EndsAsTheListSays) {
  const char* suite = std::getenv("ADDEND_ONNX_SUITE");
  ASSERT_NE(suite, nullptr) << "give the suite of ONNX 1.23.2, as a folder of folders KIND/NAME: "
                               "--test_env=ADDEND_ONNX_SUITE=FOLDER";
  SuiteOptions options;
  options.suite = suite;
  options.expected = "tests/onnx/expected/onnx-1.23.2.txt";
  options.quiet = true;
  std::ostringstream out;
  EXPECT_TRUE(RunSuite(options, out)) << out.str();
}

}  // namespace
}  // namespace addend
