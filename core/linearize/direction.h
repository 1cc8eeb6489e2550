// The direction of a sweep: rows of components go forward, or cotangents of what is asked for go backward.
//
// Note [Directions]
// A forward sweep costs a row for every component, a backward sweep a row for every number that is asked for. The
// contributions of 4096 components to 10 logits cost 10 rows backward. So where few numbers are asked for, the forward
// sweep carries a single component, the sum of all: it finds brackets and leftover and checks every operator as usual.
// The backward sweep then finds the contribution of each component, and these must add up to what the sum became. Both
// sweeps use the same table of coefficients, so the result is the same to rounding.
#ifndef ADDEND_CORE_LINEARIZE_DIRECTION_H_
#define ADDEND_CORE_LINEARIZE_DIRECTION_H_

#include <cstdint>
#include <string>

#include "core/linearize/chunks.h"
#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"

namespace addend {

enum class Direction {
  kAuto,      // backward where that saves much; forward in all cases where it would not do
  kForward,   // every component through every operator
  kBackward,  // an error where it cannot be done
};
// Reads a direction: "auto", "forward" or "backward". Throws InvalidArgument for any other text.
Direction ParseDirection(const std::string& text);
// The text of a direction, which ParseDirection() reads.
const char* DirectionText(Direction direction);

struct SweepOptions {
  Direction direction = Direction::kAuto;
  // `chunks.components` makes kAuto choose forward. `chunks.memory_bytes` also limits the cotangents of a backward
  // sweep.
  ChunkOptions chunks;
};

// Sweeps in either direction; SweepResult::backward says in which. All components go forward, even for kBackward, if
// autograd follows the run, if there is a tracing failure that the policy does not make an error, or if the components
// found backward do not add up to their sum. Throws what SweepInChunks throws and, for kBackward, FailedPrecondition
// with the operator's position if a policy choice depends on all components together.
SweepResult SweepEitherWay(const Linearization& linearization, const SweepOptions& options,
                           const Progress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_DIRECTION_H_
