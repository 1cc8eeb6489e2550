// A trace with some of its components only: rows do not meet each other, so that components may move in groups.
#ifndef ADDEND_CORE_LINEARIZE_PART_H_
#define ADDEND_CORE_LINEARIZE_PART_H_

#include <cstdint>
#include <memory>

#include "core/linearize/trace.h"

namespace addend {

// The components first .. first + count of a trace. `rest`: the sum of all others is one more, behind them.
std::shared_ptr<TracedRun> PartOf(const TracedRun& trace, int64_t first, int64_t count, bool rest);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_PART_H_
