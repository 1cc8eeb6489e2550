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

// A std::string of libstdc++ as it is returned: in memory that the caller provides, as a struct of more than 16 bytes is.
// The old one is its first member alone, and still returned so, because it has a destructor.
struct String {
  char* data;
  size_t size;
  char rest[16];
};

// What lies before the characters of an old string. Copies share it: `more_owners` counts them, and is negative where
// the only owner has given away a reference into the text.
struct OldHeader {
  size_t size;
  size_t capacity;
  int more_owners;  // the compiler pads it to a multiple of 8 bytes
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

// Each finds the version in a string, which is destroyed. Both kinds end with a zero.
static void TakeNew(void* library, const struct String* text, char* version, size_t size) {
  // Shorter texts are kept in the string itself, and no description.
  if (text->size < sizeof(text->rest)) return;
  addend_version_in(text->data, version, size);
  Delete(library, text->data);
}
static void TakeOld(void* library, const struct String* text, char* version, size_t size) {
  struct OldHeader* header = (struct OldHeader*)(void*)text->data - 1;
  // All empty texts are one, which is not of operator new.
  if (header->size == 0) return;
  addend_version_in(text->data, version, size);
  if (__atomic_fetch_sub(&header->more_owners, 1, __ATOMIC_ACQ_REL) <= 0) Delete(library, header);
}

// The description is at::show_config(), which is there in every version.
enum addend_cxx11_abi addend_version_of_loaded(const char* path, char* version, size_t size) {
  version[0] = 0;
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return ADDEND_UNKNOWN_ABI;
  enum addend_cxx11_abi abi = ADDEND_NEW_ABI;
  void* symbol = dlsym(library, ADDEND_NEW_SHOW_CONFIG);
  if (symbol == NULL) {
    abi = ADDEND_OLD_ABI;
    symbol = dlsym(library, ADDEND_OLD_SHOW_CONFIG);
  }
  if (symbol == NULL) {
    abi = ADDEND_UNKNOWN_ABI;
  } else {
    struct String (*show_config)(void) = NULL;
    memcpy(&show_config, &symbol, sizeof(symbol));
    const struct String text = show_config();
    (abi == ADDEND_NEW_ABI ? TakeNew : TakeOld)(library, &text, version, size);
  }
  dlclose(library);
  return abi;
}
