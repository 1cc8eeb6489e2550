// Many targets are swept back some at a time: the cotangents of all of them at once would leave the caches of a
// processor, and each large block of memory comes from the system page by page. Ten targets of 8,192 rows took ten
// times as long together as one after the other.
#ifndef ADDEND_CORE_LINEARIZE_MANY_TARGETS_H_
#define ADDEND_CORE_LINEARIZE_MANY_TARGETS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/linearize/adjoint.h"
#include "core/linearize/linearization.h"

namespace addend {

// SweepBackward, as many targets at a time as keep the cotangents of every tensor within 4 MiB, at least one. All at
// once where a linearization is made again for each sweep (Linearization::stretches), or the options ask about
// operators. A product of matrices may round otherwise with other targets beside it.
AdjointResult SweepTargets(const Linearization& linearization, const std::vector<at::Tensor>& cotangents,
                           const AdjointOptions& options);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_MANY_TARGETS_H_
