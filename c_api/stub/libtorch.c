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

// A node of a std::map of libstdc++; behind it lie key and value, two strings.
struct Node {
  int colour;  // the compiler pads it to the size of a pointer
  struct Node* parent;
  struct Node* left;
  struct Node* right;
};

// The map itself: a comparison without members, which takes one byte all the same, and the header, whose parent is the
// root of the tree.
struct Map {
  char compare;
  struct Node header;
  size_t count;
};

// Both strings of libstdc++ begin with a pointer to the characters, behind which there is a zero. The old one has nothing
// else, the new one has a length and 16 bytes more.
static const char* Text(const struct Node* node, enum addend_cxx11_abi abi, int index) {
  const size_t size = abi == ADDEND_NEW_ABI ? sizeof(char*) + sizeof(size_t) + 16 : sizeof(char*);
  const char* text = NULL;
  memcpy(&text, (const char*)(node + 1) + (size_t)index * size, sizeof(text));
  return text;
}

// Finds the value of a key; NULL where there is none. std::less of strings compares as strcmp does.
static const char* Find(const struct Map* map, enum addend_cxx11_abi abi, const char* key) {
  const struct Node* node = map->header.parent;
  while (node != NULL) {
    const int order = strcmp(key, Text(node, abi, 0));
    if (order == 0) return Text(node, abi, 1);
    node = order < 0 ? node->left : node->right;
  }
  return NULL;
}

enum addend_cxx11_abi addend_version_of_loaded(const char* path, char* version, size_t size) {
  version[0] = 0;
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return ADDEND_UNKNOWN_ABI;
  enum addend_cxx11_abi abi = ADDEND_NEW_ABI;
  void* symbol = dlsym(library, ADDEND_NEW_BUILD_OPTIONS);
  if (symbol == NULL) {
    abi = ADDEND_OLD_ABI;
    symbol = dlsym(library, ADDEND_OLD_BUILD_OPTIONS);
  }
  if (symbol == NULL) {
    abi = ADDEND_UNKNOWN_ABI;
  } else {
    // A reference to a map that is never destroyed.
    const struct Map* (*build_options)(void) = NULL;
    memcpy(&build_options, &symbol, sizeof(symbol));
    const char* found = Find(build_options(), abi, "TORCH_VERSION");
    if (found != NULL && strlen(found) < size) strcpy(version, found);
  }
  dlclose(library);
  return abi;
}
