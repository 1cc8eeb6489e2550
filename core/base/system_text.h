// The system that a process runs on, for those who read about its problems.
#ifndef ADDEND_CORE_BASE_SYSTEM_TEXT_H_
#define ADDEND_CORE_BASE_SYSTEM_TEXT_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Writes "Linux 6.1.0 x86_64, glibc 2.36" into `text` of `size` bytes; what does not fit is cut off.
void addend_system_text(char* text, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ADDEND_CORE_BASE_SYSTEM_TEXT_H_
