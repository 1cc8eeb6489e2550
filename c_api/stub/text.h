// A text of limited length, built piece by piece.
#ifndef ADDEND_C_API_STUB_TEXT_H_
#define ADDEND_C_API_STUB_TEXT_H_

#include <stddef.h>

struct addend_text {
  size_t size;
  char data[8192];
};

// Appends as printf does; what does not fit is cut off.
__attribute__((format(printf, 2, 3))) void addend_text_add(struct addend_text* text, const char* format, ...);

#endif  // ADDEND_C_API_STUB_TEXT_H_
