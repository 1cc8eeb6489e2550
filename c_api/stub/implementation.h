// Symbol that the stub finds in the file of an implementation.
#ifndef ADDEND_C_API_STUB_IMPLEMENTATION_H_
#define ADDEND_C_API_STUB_IMPLEMENTATION_H_

#include "c_api/stub/functions.h"

struct addend_implementation {
  // Digest of the table's declaration, so that both sides mean the same functions.
  const char* digest;
  struct addend_functions functions;
};

ADDEND_API extern const struct addend_implementation addend_implementation;

#endif  // ADDEND_C_API_STUB_IMPLEMENTATION_H_
