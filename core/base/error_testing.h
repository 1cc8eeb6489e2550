// Helpers for tests of errors.
#ifndef ADDEND_CORE_BASE_ERROR_TESTING_H_
#define ADDEND_CORE_BASE_ERROR_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"

namespace addend {

// The message of the Error that `action` throws; "(no error)" where it throws none.
template <typename Action>
std::string MessageOf(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

// Expects that `action` throws an Error with this code and with all these parts in its message.
template <typename Action>
void ExpectError(absl::StatusCode code, const std::vector<std::string>& parts, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

}  // namespace addend

#endif  // ADDEND_CORE_BASE_ERROR_TESTING_H_
