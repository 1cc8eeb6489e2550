#include "core/run/freed_memory.h"

#include <cstddef>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace addend {
namespace {

bool FreeLargeBlock() {
  constexpr size_t kLargest = size_t{32} << 20;
  constexpr size_t kBookkeeping = size_t{64} << 10;
  void* volatile block = std::malloc(kLargest - kBookkeeping);  // volatile: an unused block may be left out
  std::free(block);
  return true;
}

}  // namespace

void KeepFreedMemory() {
  static const bool done = FreeLargeBlock();
  static_cast<void>(done);
}

void FreedMemory::Add(int64_t bytes, int64_t limit) {
  constexpr int64_t kShare = 8;
  bytes_ += bytes;
  if (bytes_ < limit / kShare) return;
  bytes_ = 0;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace addend
