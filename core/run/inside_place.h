// The place at which a split starts inside a model.
#ifndef ADDEND_CORE_RUN_INSIDE_PLACE_H_
#define ADDEND_CORE_RUN_INSIDE_PLACE_H_

#include <cstdint>
#include <string>

namespace addend {

// A tensor inside the model: a result of one of its calls.
struct InsidePlace {
  int64_t call = -1;  // Call::program_call; -1: none
  std::string op;     // the call's full name
  int output = 0;     // among the call's outputs
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_INSIDE_PLACE_H_
