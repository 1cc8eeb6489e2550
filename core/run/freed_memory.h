// Keeps memory that one run freed in the process, for the next run.
#ifndef ADDEND_CORE_RUN_FREED_MEMORY_H_
#define ADDEND_CORE_RUN_FREED_MEMORY_H_

#include <cstdint>

namespace addend {

// Note [Freed memory]
// A run keeps every value and reference until its end and then frees all of them at once. glibc returns free memory at
// the top of its heap to the system beyond a threshold, and the next run fetches it again page by page: up to a third
// of an attribution's time, depending on the threshold. The threshold is twice the size of the largest block that was
// mapped by itself and freed (at most 32 MiB); it starts at 256 KiB. Freeing one block of nearly 32 MiB, of which no
// page was ever touched, raises the threshold to 64 MiB, where it is in every process that has freed a tensor of 32
// MiB. Thresholds that the user sets (mallopt, MALLOC_TRIM_THRESHOLD_ and the like) stay as they are; other allocators
// are not affected.
//
// Raises the threshold, once in a process. Call it before a run.
void KeepFreedMemory();

// Gives the process's free memory back to the system, page by page, where its allocator is glibc's: for runs whose
// memory is limited. It costs what fetching the pages again costs, so that it is done for many bytes at once.
class FreedMemory {
 public:
  // Counts bytes that were freed. Gives all free memory back once they come to a share of the limit.
  void Add(int64_t bytes, int64_t limit);

 private:
  int64_t bytes_ = 0;  // since the last time
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_FREED_MEMORY_H_
