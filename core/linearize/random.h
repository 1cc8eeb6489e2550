// Which operators draw random numbers: a run on the baseline draws from the same state of the generator, and what they
// drew cannot be drawn again later.
#ifndef ADDEND_CORE_LINEARIZE_RANDOM_H_
#define ADDEND_CORE_LINEARIZE_RANDOM_H_

#include <string>

namespace addend {

// By the name of the rule: "aten::bernoulli" for bernoulli_ too.
bool DrawsRandomNumbers(const std::string& rule_name);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_RANDOM_H_
