// The LibTorch that a process has loaded, found without LibTorch.
#ifndef ADDEND_C_API_STUB_LIBTORCH_H_
#define ADDEND_C_API_STUB_LIBTORCH_H_

#include <limits.h>
#include <stddef.h>

// Advice for a process with two copies of LibTorch.
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

// The C++ ABI of LibTorch and of what is built for it, as _GLIBCXX_USE_CXX11_ABI says it: which strings its functions
// take and give. It is told by the name of caffe2::GetBuildOptions(), which gives a map of strings and is there in
// every version, as is what it tells: the version. at::show_config() tells both too; but it asks CUDA for devices on
// the way, and children that the process forks afterwards could not use them.
enum addend_cxx11_abi { ADDEND_OLD_ABI = 0, ADDEND_NEW_ABI = 1, ADDEND_UNKNOWN_ABI = -1 };
#define ADDEND_OLD_BUILD_OPTIONS "_ZN6caffe215GetBuildOptionsEv"
#define ADDEND_NEW_BUILD_OPTIONS "_ZN6caffe215GetBuildOptionsB5cxx11Ev"

// Asks the loaded libtorch_cpu at `path` for its version, "" where it does not tell, and finds its ABI.
enum addend_cxx11_abi addend_version_of_loaded(const char* path, char* version, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ADDEND_C_API_STUB_LIBTORCH_H_
