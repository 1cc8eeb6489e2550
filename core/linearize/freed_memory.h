// What the C library does with memory that one run gave back, until the next one asks for it.
#ifndef ADDEND_CORE_LINEARIZE_FREED_MEMORY_H_
#define ADDEND_CORE_LINEARIZE_FREED_MEMORY_H_

namespace addend {

// Note [Freed memory]
// A run keeps every value and reference until its end and then gives all of it back at once. glibc hands what lies free
// at the top of its heap on to the system beyond a threshold, and the next run fetches it again page by page: up to a
// third of an attribution's time, as the threshold happens to stand. It is twice the size of the largest block that was
// mapped by itself and freed (at most 32 MiB), 256 KiB to begin with. Freeing one block of nearly that size, of which
// no page was ever touched, puts it where it is in every process that has freed a tensor of 32 MiB: 64 MiB. Who sets
// thresholds himself (mallopt, MALLOC_TRIM_THRESHOLD_ and its kind) keeps them, and other allocators know nothing of
// this.
//
// Does that, once in a process. Called before a run.
void KeepFreedMemory();

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_FREED_MEMORY_H_
