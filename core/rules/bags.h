// Bags of ids, as embedding_bag reads them.
#ifndef ADDEND_CORE_RULES_BAGS_H_
#define ADDEND_CORE_RULES_BAGS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace addend {

enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// Returns the bag of each of `count` ids, int64 [count]: the last bag that begins at or before the id, -1 for none.
// `offsets`: where the `bags` bags begin.
at::Tensor BagsOf(const at::Tensor& offsets, int64_t count, int64_t bags);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_BAGS_H_
