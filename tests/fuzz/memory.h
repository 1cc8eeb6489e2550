// Memory that a program takes, counted: for one source file of it, because it defines operator new and delete.
#ifndef ADDEND_TESTS_FUZZ_MEMORY_H_
#define ADDEND_TESTS_FUZZ_MEMORY_H_

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> most_bytes{0};

void* Allocate(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t most = most_bytes;
  while (most < now && !most_bytes.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void Release(void* memory) {
  if (memory != nullptr) live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, size_t) noexcept { Release(memory); }
void operator delete[](void* memory, size_t) noexcept { Release(memory); }

#endif  // ADDEND_TESTS_FUZZ_MEMORY_H_
