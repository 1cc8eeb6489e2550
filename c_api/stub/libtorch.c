#define _GNU_SOURCE
#include "c_api/stub/libtorch.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct Search {
  const char* library;
  struct addend_loaded* loaded;
};

// "libc10.so", "libc10.so.1.13" and "libc10-4f3a.so" are libc10; "libc10_cuda.so" is not.
static bool IsCalled(const char* path, const char* library) {
  const char* slash = strrchr(path, '/');
  const char* name = slash == NULL ? path : slash + 1;
  const size_t size = strlen(library);
  return strncmp(name, library, size) == 0 && (name[size] == '.' || name[size] == '-');
}

static int Visit(struct dl_phdr_info* info, size_t size, void* state) {
  (void)size;
  const struct Search* search = state;
  struct addend_loaded* loaded = search->loaded;
  if (info->dlpi_name == NULL || !IsCalled(info->dlpi_name, search->library)) return 0;
  char path[PATH_MAX];
  if (realpath(info->dlpi_name, path) == NULL) {
    if (strlen(info->dlpi_name) >= sizeof(path)) return 0;
    strcpy(path, info->dlpi_name);
  }
  for (size_t k = 0; k < loaded->count; ++k) {
    if (strcmp(loaded->paths[k], path) == 0) return 0;
  }
  strcpy(loaded->paths[loaded->count++], path);
  return loaded->count == 2;
}

int addend_other_libtorch_is_allowed(void) {
  const char* said = secure_getenv(ADDEND_OTHER_VARIABLE);
  return said != NULL && strcmp(said, "1") == 0;
}

void addend_find_loaded(const char* library, struct addend_loaded* loaded) {
  struct Search search = {library, loaded};
  loaded->count = 0;
  dl_iterate_phdr(Visit, &search);
}

void addend_version_in(const char* configuration, char* version, size_t size) {
  static const char key[] = "TORCH_VERSION=";
  const char* found = strstr(configuration, key);
  const char* begin = found == NULL ? "" : found + strlen(key);
  size_t length = strcspn(begin, ", \n");
  if (length >= size) length = 0;
  memcpy(version, begin, length);
  version[length] = 0;
}

// A std::string of libstdc++ as it is returned: in memory that the caller provides, as a struct of this size is.
struct String {
  char* data;
  size_t size;
  char rest[16];
};

// Gives memory of operator new back, as the process has that operator: it may have another one than libstdc++.
static void Delete(void* library, void* memory) {
  static const char name[] = "_ZdlPv";
  void* symbol = dlsym(RTLD_DEFAULT, name);
  void (*operator_delete)(void*) = NULL;
  if (symbol == NULL) symbol = dlsym(library, name);
  if (symbol == NULL) return;
  memcpy(&operator_delete, &symbol, sizeof(symbol));
  operator_delete(memory);
}

// The description is at::show_config(), which is there in every version. LibTorch with the old strings of libstdc++
// has it under another name and does not tell.
void addend_version_of_loaded(const char* path, char* version, size_t size) {
  version[0] = 0;
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return;
  void* symbol = dlsym(library, "_ZN2at11show_configB5cxx11Ev");
  if (symbol != NULL) {
    struct String (*show_config)(void) = NULL;
    memcpy(&show_config, &symbol, sizeof(symbol));
    const struct String text = show_config();
    // Shorter texts are kept in the string itself.
    if (text.size >= sizeof(text.rest)) {
      addend_version_in(text.data, version, size);
      Delete(library, text.data);
    }
  }
  dlclose(library);
}

int addend_cxx11_abi_of_loaded(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return -1;
  const bool is_new = dlsym(library, "_ZN2at11show_configB5cxx11Ev") != NULL;
  const bool is_old = dlsym(library, "_ZN2at11show_configEv") != NULL;
  dlclose(library);
  return is_new == is_old ? -1 : is_new;
}
