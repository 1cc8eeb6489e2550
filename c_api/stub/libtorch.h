// The LibTorch that a process has loaded, found without LibTorch.
#ifndef ADDEND_C_API_STUB_LIBTORCH_H_
#define ADDEND_C_API_STUB_LIBTORCH_H_

#include <limits.h>
#include <stddef.h>

// What to do where a process has two.
#define ADDEND_LOAD_ONE_LIBTORCH "operators of the other copy cannot be seen, so load Addend with the one that it uses"

// "1" in the environment: a LibTorch is tried for which there is no implementation.
#define ADDEND_OTHER_VARIABLE "ADDEND_ALLOW_OTHER_LIBTORCH"

#ifdef __cplusplus
extern "C" {
#endif

// Whether the user allows that.
int addend_other_libtorch_is_allowed(void);

// Files that are loaded under the name of one library; no more than two are kept, since two are too many already.
struct addend_loaded {
  size_t count;
  char paths[2][PATH_MAX];  // links resolved
};

// Finds the files that this process has loaded as `library`: "libtorch_cpu" or "libc10".
void addend_find_loaded(const char* library, struct addend_loaded* loaded);

// Finds the version "1.13.1" in LibTorch's description of its build; "" where there is none.
void addend_version_in(const char* configuration, char* version, size_t size);

// Asks the loaded libtorch_cpu at `path` for its version; "" where it does not tell.
void addend_version_of_loaded(const char* path, char* version, size_t size);

// Finds which strings of libstdc++ the loaded libtorch_cpu at `path` has, as its _GLIBCXX_USE_CXX11_ABI: 1 or 0; -1
// where that cannot be seen.
int addend_cxx11_abi_of_loaded(const char* path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ADDEND_C_API_STUB_LIBTORCH_H_
