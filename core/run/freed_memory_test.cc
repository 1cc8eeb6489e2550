#include "core/run/freed_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__GLIBC__)
#include <unistd.h>
#endif

namespace addend {
namespace {

TEST(FreedMemory, StaysWithTheProcess) {
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "another allocator";
#else
  constexpr size_t kBlock = size_t{1} << 20;
  constexpr ptrdiff_t kAll = 40 * static_cast<ptrdiff_t>(kBlock);
  KeepFreedMemory();
  const char* before = static_cast<char*>(sbrk(0));
  std::vector<void*> blocks;
  for (ptrdiff_t size = 0; size < kAll; size += kBlock) {
    blocks.push_back(std::malloc(kBlock));
    std::memset(blocks.back(), 1, kBlock);
  }
  // From the heap, not mapped one by one.
  EXPECT_GE(static_cast<char*>(sbrk(0)) - before, kAll);
  for (void* block : blocks) std::free(block);
  EXPECT_GE(static_cast<char*>(sbrk(0)) - before, kAll);
#endif
}

}  // namespace
}  // namespace addend
