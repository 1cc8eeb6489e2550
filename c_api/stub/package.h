// The package that the stub lies in: its folder and the implementations there.
#ifndef ADDEND_C_API_STUB_PACKAGE_H_
#define ADDEND_C_API_STUB_PACKAGE_H_

#include <limits.h>
#include <stddef.h>

#include "c_api/stub/libtorch.h"
#include "c_api/stub/text.h"

enum { ADDEND_MAX_IMPLEMENTATIONS = 16 };

struct addend_package {
  char folder[PATH_MAX];
  size_t count;
  // Versions of LibTorch, "1.13", the newest first.
  char versions[ADDEND_MAX_IMPLEMENTATIONS][16];
};

// Finds the files libaddend_torch<version>.so beside the stub, as it was loaded or, where a link led to it, as it lies.
void addend_find_package(struct addend_package* package);

// The file of an implementation, written into `path` of PATH_MAX bytes.
const char* addend_implementation_path(const struct addend_package* package, size_t index, char* path);

// The C++ ABI of the LibTorch that an implementation was built for. Its file is read, not loaded.
enum addend_cxx11_abi addend_implementation_abi(const char* path);

// Appends "1.13" or "2.14 and 1.13".
void addend_text_add_versions(struct addend_text* text, const struct addend_package* package);

#endif  // ADDEND_C_API_STUB_PACKAGE_H_
