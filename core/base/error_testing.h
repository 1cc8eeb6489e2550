// For tests of errors.
#ifndef ADDEND_CORE_BASE_ERROR_TESTING_H_
#define ADDEND_CORE_BASE_ERROR_TESTING_H_

#include <string>

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

}  // namespace addend

#endif  // ADDEND_CORE_BASE_ERROR_TESTING_H_
