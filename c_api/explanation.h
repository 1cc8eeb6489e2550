// Explanations as the sections that make them see them.
#ifndef ADDEND_C_API_EXPLANATION_H_
#define ADDEND_C_API_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/document/explanation.h"

namespace addend::c_api {

// An explanation of one number, with what its functions lend out.
struct ExplanationBody {
  explicit ExplanationBody(Explanation made);

  Explanation explanation;
  std::string target;  // "[0, 7]"
  std::vector<std::string> names;
  std::vector<int64_t> ranking;
};

// The writer that documents name.
const Writer& ThisLibrary();

}  // namespace addend::c_api

#endif  // ADDEND_C_API_EXPLANATION_H_
