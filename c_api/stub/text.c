#include "c_api/stub/text.h"

#include <stdarg.h>
#include <stdio.h>

void addend_text_add(struct addend_text* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t room = sizeof(text->data) - text->size;
  const int written = vsnprintf(text->data + text->size, room, format, arguments);
  va_end(arguments);
  if (written > 0) text->size += (size_t)written < room ? (size_t)written : room - 1;
}
