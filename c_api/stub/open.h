// Opening the implementation that fits the LibTorch of this process.
#ifndef ADDEND_C_API_STUB_OPEN_H_
#define ADDEND_C_API_STUB_OPEN_H_

#include <stdatomic.h>
#include <stddef.h>

#include "c_api/stub/functions.h"

// Either the functions of an implementation, or the status that says why there is none.
struct addend_opening {
  const struct addend_functions* functions;
  addend_status* refusal;
};

extern _Atomic(const struct addend_functions*) addend_opened_functions;

// The functions of the implementation that is open; NULL before.
static inline const struct addend_functions* addend_opened(void) {
  return atomic_load_explicit(&addend_opened_functions, memory_order_acquire);
}

// Opens an implementation, or says why none can be opened; the next call tries again. Any number of threads may call it
// at once: all of them find the same, and nothing is locked, so that a process may fork meanwhile.
struct addend_opening addend_open(void);
// Opens like addend_open(), with LibTorch from a folder if the process has loaded none; NULL and "" name none.
struct addend_opening addend_open_from(const char* folder);

#endif  // ADDEND_C_API_STUB_OPEN_H_
