// Sums in which what is decomposed is lost: a score beside a mask of the lowest number that there is.
//
// Note [Swamped elements]
// Masks are added: 0 where a key may be seen, -1e9 or the lowest finite number where not. In floating point the sum of
// such a mask and a score is the mask again, to the last bit, and so it is on the baseline: what the score was plays no
// part in what comes behind. Where a whole row is masked (the query of a padded position) a softmax sees equal numbers
// and no score moves, however much the rows of the score would. There the map gives nothing: what was carried there is
// leftover, and the leftover is what the stored value moved by, which is zero where rounding takes all. Where it takes
// some digits only (-1e4 in single precision), components go on and the leftover gets what rounding took.
//
// A masked element beside others that are seen matters to nobody, since its weight in any softmax is zero: there
// nothing is done, and nothing is told.
#ifndef ADDEND_CORE_LINEARIZE_SWAMPED_H_
#define ADDEND_CORE_LINEARIZE_SWAMPED_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "core/program/program.h"
#include "core/rules/rule.h"

namespace addend {

struct Swamped {
  at::Tensor elements;  // bool, of the output's shape: what is lost altogether; undefined: nothing
  int64_t count = 0;    // how many those are
  double value = 0;     // the largest magnitude in which they are lost
  bool rounds = false;  // some digits are lost somewhere: the bracket belongs into the leftover
};

// Of additions and subtractions, and of products added to a plain tensor (`addends` of the call's rule); of any other
// call nothing.
Swamped FindSwamped(const Call& call, const RuleCall& described, const Addends& addends);

// The map but for these elements of its first output, which get nothing.
std::shared_ptr<const LinearMap> MapWithout(std::shared_ptr<const LinearMap> map, const at::Tensor& elements);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SWAMPED_H_
