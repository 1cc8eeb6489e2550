// Loops that LibTorch's own threads share: at::set_num_threads bounds them, and no other thread is started.
#ifndef ADDEND_CORE_BASE_IN_PARALLEL_H_
#define ADDEND_CORE_BASE_IN_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace addend {

// Calls work(first, last) for ranges that together are 0 ... count - 1, each number once, on the calling thread and on
// others of LibTorch; returns after the last. Each range has `piece` numbers, the last one fewer, and goes to the next
// thread that is free: small pieces balance work of different lengths. One range on the calling thread where LibTorch
// may use one thread only, or is inside such a loop already. What `work` throws is thrown here. The ranges tell nothing
// of order or thread, so `work` may depend on neither: its results then have the same bits on every number of threads.
void InParallel(int64_t count, int64_t piece, absl::FunctionRef<void(int64_t first, int64_t last)> work);

// Calls `work` for one equal piece on each thread; all at once on the calling thread unless `pays`: to start the others
// costs about as much as 10,000 additions.
template <typename Work>
void InParallelIf(bool pays, int64_t count, const Work& work);

// How long the pieces are that give each thread one: of `count` numbers.
int64_t EqualPiece(int64_t count);

template <typename Work>
void InParallelIf(bool pays, int64_t count, const Work& work) {
  pays ? InParallel(count, EqualPiece(count), work) : work(int64_t{0}, count);
}

}  // namespace addend

#endif  // ADDEND_CORE_BASE_IN_PARALLEL_H_
