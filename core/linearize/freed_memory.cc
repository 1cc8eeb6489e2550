#include "core/linearize/freed_memory.h"

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

void GiveBackFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace addend
