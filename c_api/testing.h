// Helpers of the tests of the C interface.
#ifndef ADDEND_C_API_TESTING_H_
#define ADDEND_C_API_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "addend/addend.hpp"
#include "addend/addend_ext.h"

namespace addend::api {

constexpr char kDigits[] = "docs/examples/models/digits/model.pt";
constexpr char kDigitsSample[] = "docs/examples/models/digits/sample.safetensors";

// Code and message of a status, which is released.
struct Outcome {
  explicit Outcome(addend_status* status) : code(addend_status_code(status)), message(addend_status_message(status)) {
    addend_status_release(status);
  }
  int32_t code;
  std::string message;
};

inline void ExpectOk(addend_status* status) {
  const Outcome outcome(status);
  EXPECT_EQ(outcome.code, ADDEND_OK) << outcome.message;
}

inline std::vector<double> Numbers(const Tensor& tensor) { return tensor.To<double>(); }

// The contributions by component.
inline std::vector<double> Parts(const Explanation& explanation) {
  std::vector<double> parts(explanation.numc());
  for (const auto& one : explanation.Top(explanation.numc())) parts[one.component] = one.value;
  return parts;
}

inline void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < actual.size(); ++k) EXPECT_NEAR(actual[k], expected[k], tolerance) << "at " << k;
}

// An image of a digit, to be split into its pixels and explained against an empty one.
inline Request DigitRequest() {
  Request request;
  request.Input(TensorFile::Read(kDigitsSample).tensor("input")).SplitAlong({2, 3}).Baseline(0.0);
  return request;
}

inline std::vector<int64_t> LiveCounts() {
  std::vector<int64_t> counts;
  for (int32_t kind = 0; addend_debug_live(kind) >= 0; ++kind) counts.push_back(addend_debug_live(kind));
  return counts;
}
// After each test, everything has been released.
class CApiTest : public testing::Test {
 protected:
  void SetUp() override { before_ = LiveCounts(); }
  void TearDown() override { EXPECT_EQ(LiveCounts(), before_); }

 private:
  std::vector<int64_t> before_;
};

}  // namespace addend::api

#endif  // ADDEND_C_API_TESTING_H_
