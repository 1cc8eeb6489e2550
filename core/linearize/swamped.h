// Swamped elements: sums in which a decomposed number is lost to rounding, such as a score beside a mask of the lowest
// number that there is.
//
// Note [Swamped elements]
// Masks are added to scores: 0 where a key may be seen, -1e9 or the lowest finite number where not. In floating point
// the sum of such a mask and a score is the mask again, to the last bit, for the value and for the reference, so the
// score has no effect behind the sum. In a row that is masked as a whole (the query of a padded position) a softmax
// sees equal numbers, and no score moves, whatever the rows of the scores are. There the map gives nothing: the rows'
// content becomes leftover, which is what the stored value moved by, zero if rounding takes all digits. If rounding
// takes only some digits (-1e4 in single precision), components go on, and the leftover gets what rounding took.
//
// A masked element beside elements that are seen has no effect, since its weight in any softmax is zero: nothing is
// done there, and nothing is reported.
#ifndef ADDEND_CORE_LINEARIZE_SWAMPED_H_
#define ADDEND_CORE_LINEARIZE_SWAMPED_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "core/program/traced_calls.h"
#include "core/rules/rule.h"

namespace addend {

struct Swamped {
  at::Tensor elements;  // bool, of the output's shape: what is lost altogether; undefined: nothing
  int64_t count = 0;    // how many those are
  double value = 0;     // the largest magnitude in which they are lost
  bool rounds = false;  // some digits are lost somewhere: the bracket belongs into the leftover
};

// Finds swamped elements in additions, subtractions, and products added to a plain tensor (`addends` of the call's
// rule); returns nothing for any other call.
Swamped FindSwamped(const Call& call, const RuleCall& described, const Addends& addends);

// Whether a plain number of the size of a mask is among what a call adds up. Reads no value of what is decomposed.
bool AddsMask(const RuleCall& described, const Addends& addends);

// Returns the map with zero rows for these elements of its first output.
std::shared_ptr<const LinearMap> MapWithout(std::shared_ptr<const LinearMap> map, const at::Tensor& elements);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SWAMPED_H_
