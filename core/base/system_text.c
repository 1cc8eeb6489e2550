#include "core/base/system_text.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

void addend_system_text(char* text, size_t size) {
  struct utsname system;
  // The name of the computer stays out: texts of this kind are published.
  const int known = uname(&system) == 0;
  char library[64] = "";
#ifdef _CS_GNU_LIBC_VERSION
  if (confstr(_CS_GNU_LIBC_VERSION, library, sizeof(library)) == 0) library[0] = 0;
#endif
  snprintf(text, size, "%s %s %s%s%s", known ? system.sysname : "unknown", known ? system.release : "",
           known ? system.machine : "", library[0] != 0 ? ", " : "", library);
}
