// Which way components are found: their rows go forward, or the cotangents of what is asked for come back.
//
// Note [Directions]
// Forward, a sweep costs a row for every component; backward, one for every number that is asked for. What 4096
// components give to 10 logits is 10 rows. So where few numbers are asked for, the forward sweep carries a single
// component, the sum of all: it finds brackets and leftover and checks every operator as it always does. What each
// component gives comes back from the numbers, and must add up to what that sum became. Both ways use the same table of
// coefficients, so the result is the same to rounding.
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
// "auto", "forward" or "backward". Throws InvalidArgument for another text.
Direction ParseDirection(const std::string& text);

struct SweepOptions {
  Direction direction = Direction::kAuto;
  // `chunks.components` makes kAuto choose forward. `chunks.memory_bytes` also limits the cotangents of a backward sweep.
  ChunkOptions chunks;
};

// SweepResult::backward says which way was taken. Throws what SweepInChunks throws and, for kBackward, also
// FailedPrecondition with the operator's position where the policy's choice looks at all components together. A tracing
// failure that the policy does not make an error, and components that come back otherwise than their sum went, send all
// components forward, even for kBackward; and so do runs that autograd follows.
SweepResult SweepEitherWay(const Linearization& linearization, const SweepOptions& options,
                           const Progress& progress = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_DIRECTION_H_
