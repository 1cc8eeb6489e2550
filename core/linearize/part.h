// A part of a trace: some of its components. Rows do not depend on each other, so components may move in groups.
#ifndef ADDEND_CORE_LINEARIZE_PART_H_
#define ADDEND_CORE_LINEARIZE_PART_H_

#include <cstdint>
#include <memory>

#include "core/run/trace.h"

namespace addend {

// Returns the trace with the components first .. first + count only. `rest`: adds one more component, the sum of all
// others.
std::shared_ptr<TracedRun> PartOf(const TracedRun& trace, int64_t first, int64_t count, bool rest);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_PART_H_
