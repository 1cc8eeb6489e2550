// Bags of ids, as embedding_bag reads them.
#ifndef ADDEND_CORE_RULES_BAGS_H_
#define ADDEND_CORE_RULES_BAGS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace addend {

enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// The bag that each of `count` ids is in: the last one that begins at or before it, -1 for none. offsets: where bags
// begin, of which there are `bags`; int64 [count] is returned.
at::Tensor BagsOf(const at::Tensor& offsets, int64_t count, int64_t bags);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_BAGS_H_
