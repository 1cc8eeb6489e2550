// The library's one exception type, Error: a canonical status code, a message and, where an operator is to blame, the
// operator's position.
#ifndef ADDEND_CORE_BASE_ERROR_H_
#define ADDEND_CORE_BASE_ERROR_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace addend {

// The place in a model at which an operator was called. Fields that are not known are empty or -1.
struct Position {
  int64_t op_index = -1;                // index of the call in the recorded program
  std::string op;                       // "aten::linear"
  std::string module_path;              // "encoder.layers.3.linear1"
  std::string function;                 // "forward"
  std::string file;                     // source file as the model records it
  int64_t line = -1;                    // 1-based
  std::vector<std::string> parameters;  // names of the parameters that the call reads

  // "op #28, encoder.layers.3, model.py:24"; empty when nothing is known.
  std::string Describe() const;
};

// The exception of every layer of the C++ core, which the C ABI maps to a status. `what()` is one line: message,
// position, hint.
class Error : public std::runtime_error {
 public:
  Error(absl::StatusCode code, const std::string& message);
  // `hint`: what to do about the error; it stands after the position.
  Error(absl::StatusCode code, const std::string& message, Position position, const std::string& hint = "");

  absl::StatusCode code() const { return code_; }
  const Position& position() const { return position_; }

 private:
  absl::StatusCode code_;
  Position position_;
};

Error InvalidArgument(const std::string& message);
Error NotFound(const std::string& message);
Error Unimplemented(const std::string& message);
Error FailedPrecondition(const std::string& message);
Error Internal(const std::string& message);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_ERROR_H_
