// How ONNX models may be refused: in one line of moderate length, by the codes that such files get.
#ifndef ADDEND_TESTS_FUZZ_ONNX_REFUSAL_H_
#define ADDEND_TESTS_FUZZ_ONNX_REFUSAL_H_

#include <cstdio>
#include <string>

#include "core/base/error.h"

namespace addend::onnx {

// True when a model is refused as it should be; else the text goes to stderr.
inline bool IsClearRefusal(const Error& e) {
  const std::string text = e.what();
  const bool clear = !text.empty() && text.find('\n') == std::string::npos && text.size() < 4000 &&
                     (e.code() == absl::StatusCode::kInvalidArgument || e.code() == absl::StatusCode::kUnimplemented ||
                      e.code() == absl::StatusCode::kNotFound);
  if (!clear) std::fprintf(stderr, "unclear: %s\n", text.c_str());
  return clear;
}

}  // namespace addend::onnx

#endif  // ADDEND_TESTS_FUZZ_ONNX_REFUSAL_H_
