// Which operators draw random numbers: a run on the baseline draws from the same state of the generator, and what they
// drew cannot be drawn again later.
#ifndef ADDEND_CORE_LINEARIZE_RANDOM_H_
#define ADDEND_CORE_LINEARIZE_RANDOM_H_

#include <string>

#include "core/program/program.h"

namespace addend {

// By the name of the rule: "aten::bernoulli" for bernoulli_ too.
bool DrawsRandomNumbers(const std::string& rule_name);
// Whether a recorded call drew some, also one that reads nothing decomposed: what LibTorch itself says of the operator
// counts too, but not where the call switches its noise off (dropout in evaluation).
bool DrewRandomNumbers(const Call& call);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_RANDOM_H_
