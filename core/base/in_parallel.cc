#include "core/base/in_parallel.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace addend {
namespace {

int64_t Pieces(int64_t count, int64_t piece) { return (count + piece - 1) / piece; }

// Calls `work` so many times, each on another thread as far as there are so many. at::parallel_for would be compiled
// here, and then knows LibTorch's threads only with the compiler's OpenMP, beside which LibTorch may have brought
// another. Its library walks over tensors with the threads that it has: one element for each call.
void OnThreads(int64_t calls, absl::FunctionRef<void()> work) {
  std::vector<char> elements(calls);
  const at::Tensor tensor = at::from_blob(elements.data(), {calls}, at::kByte);
  at::TensorIterator walk = at::TensorIterator::borrowing_nullary_op(tensor);
  const auto loop = [&](char**, const int64_t*, int64_t columns, int64_t rows) {
    for (int64_t i = 0; i < columns * rows; ++i) work();
  };
  walk.for_each(at::TensorIterator::loop2d_t(loop), /*grain_size=*/1);
}

}  // namespace

int64_t EqualPiece(int64_t count) { return std::max<int64_t>(1, Pieces(count, at::get_num_threads())); }

void InParallel(int64_t count, int64_t piece, absl::FunctionRef<void(int64_t first, int64_t last)> work) {
  if (count == 0) return;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const int64_t calls = std::min(threads, Pieces(count, piece));
  if (calls <= 1) return work(0, count);
  std::atomic<int64_t> next{0};
  OnThreads(calls, [&] {
    while (true) {
      const int64_t first = next.fetch_add(piece);
      if (first >= count) return;
      work(first, std::min(count, first + piece));
    }
  });
}

}  // namespace addend
