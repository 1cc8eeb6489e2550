// Order statistics along a line: which of n moving numbers holds which rank, and for how long.
#ifndef ADDEND_CORE_RULES_ORDER_H_
#define ADDEND_CORE_RULES_ORDER_H_

#include <cstdint>
#include <vector>

namespace addend {

// The share of t in 0..1 for which a candidate is the `rank`-th smallest (rank 0 is the smallest).
struct RankShare {
  int64_t rank;
  int64_t candidate;
  double share;
};

// Adds the shares of the ranks first..last-1 among the lines reference + t * (value - reference), sorted by candidate
// and rank. The shares of a rank sum to 1, and so do those of a candidate over all ranks. Lines that are the same share
// evenly. NaN is larger than all numbers, as LibTorch sorts it. Takes n^2 log n steps, n memory.
template <typename T>
void AddRankShares(const T* value, const T* reference, int64_t n, int64_t first, int64_t last,
                   std::vector<RankShare>* shares);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ORDER_H_
