// Why no implementation can be opened, as one line: what is there, what would fit, and what to do.
#ifndef ADDEND_C_API_STUB_REASONS_H_
#define ADDEND_C_API_STUB_REASONS_H_

#include "c_api/stub/libtorch.h"
#include "c_api/stub/package.h"
#include "c_api/stub/text.h"

// The folder of LibTorch's libraries, for processes that have loaded none.
#define ADDEND_PATH_VARIABLE "ADDEND_LIBTORCH_PATH"

// Facts that an opening finds, and the reason why it fails.
struct addend_search {
  struct addend_package package;
  struct addend_loaded cpu;
  struct addend_loaded c10;
  char version[32];             // of the loaded LibTorch; "" where it does not tell
  enum addend_cxx11_abi abi;    // of the loaded LibTorch
  struct addend_text failures;  // of the system's loader
  struct addend_text reason;
};

// The index of the implementation that ADDEND_OTHER_VARIABLE lets try.
size_t addend_nearest_implementation(const struct addend_search* search);

// Notes that a file or folder could not be loaded.
void addend_add_failure(struct addend_search* search, const char* path, const char* what);

// Notes what the loader said of a library, an implementation or one of LibTorch's. Where an implementation lacks a
// symbol, the file itself is there, and LibTorch too.
void addend_add_loader_failure(struct addend_search* search, const char* library, const char* what);

// Each writes the reason: no implementation lies beside the stub,
void addend_say_nothing_there(struct addend_search* search);
// LibTorch is loaded twice,
void addend_say_loaded_twice(struct addend_search* search);
// the loaded version has no implementation,
void addend_say_nothing_serves(struct addend_search* search);
// the loader would load a second LibTorch for the implementation,
void addend_say_name_differs(struct addend_search* search, const char* implementation);
// the implementation was built for the other C++ ABI,
void addend_say_abi_differs(struct addend_search* search, const char* implementation);
// or the loader failed.
void addend_say_what_failed(struct addend_search* search);

#endif  // ADDEND_C_API_STUB_REASONS_H_
