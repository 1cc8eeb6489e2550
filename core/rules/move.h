// The move of one number, for loops; MoveOf of rule.h is that of a tensor.
#ifndef ADDEND_CORE_RULES_MOVE_H_
#define ADDEND_CORE_RULES_MOVE_H_

#include "core/rules/kernels.h"

namespace addend {

// value - reference, zero where both are the same, infinities and NaN included. Without branches, which no vector has.
template <typename T>
ADDEND_ALWAYS_INLINE T MoveAt(T value, T reference) {
  const int same = (value == reference) | ((value != value) & (reference != reference));
  const T move = value - reference;
  return same != 0 ? T(0) : move;
}

}  // namespace addend

#endif  // ADDEND_CORE_RULES_MOVE_H_
