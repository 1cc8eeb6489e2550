// Lists of the tests of a suite that do not pass, with the reasons: what a run of the suite is compared with.
//
//   # a comment
//   refused: elements of type float8e8m0        how the tests below end, and a part of what they say
//     node/test_a
//     node/test_b
//   failed: differs by up to
//     node/test_c
//
// A test that the list does not name has to pass. So a list tells of each test how it ends, and what newly passes is a
// difference too.
#ifndef ADDEND_TESTS_ONNX_EXPECTED_H_
#define ADDEND_TESTS_ONNX_EXPECTED_H_

#include <map>
#include <string>
#include <vector>

#include "tests/onnx/suite.h"

namespace addend {

class ExpectedOutcomes {
 public:
  // Reads a list. Throws InvalidArgument, with the line, for what is none: a test that is named twice, or before any
  // reason.
  static ExpectedOutcomes Read(const std::string& path);

  // Says how the outcome of a test differs from the list; empty where it does not.
  std::string DifferenceOf(const std::string& test, const Outcome& outcome) const;
  // The tests of the list that are none of these.
  std::vector<std::string> Missing(const std::vector<SuiteTest>& tests) const;

 private:
  struct Entry {
    Outcome::Kind kind = Outcome::Kind::kRefused;
    std::string reason;
  };
  std::map<std::string, Entry> entries_;  // by test
};

}  // namespace addend

#endif  // ADDEND_TESTS_ONNX_EXPECTED_H_
