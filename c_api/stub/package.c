#define _GNU_SOURCE
#include "c_api/stub/package.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_api/stub/elf_names.h"

static const char kStart[] = "libaddend_torch";
static const char kEnd[] = ".so";

// "1.13" of "libaddend_torch1.13.so".
static int VersionOf(const char* name, char* version, size_t size) {
  const size_t start = strlen(kStart);
  if (strncmp(name, kStart, start) != 0) return 0;
  const char* begin = name + start;
  const size_t length = strspn(begin, "0123456789.");
  // The point before "so" is of the end.
  if (length < 2 || length > size || strcmp(begin + length - 1, kEnd) != 0) return 0;
  memcpy(version, begin, length - 1);
  version[length - 1] = 0;
  return 1;
}

static int NewestFirst(const void* left, const void* right) { return strverscmp(right, left); }

static void Search(struct addend_package* package) {
  package->count = 0;
  DIR* folder = opendir(package->folder);
  if (folder == NULL) return;
  const struct dirent* entry;
  while (package->count < ADDEND_MAX_IMPLEMENTATIONS && (entry = readdir(folder)) != NULL) {
    char* version = package->versions[package->count];
    if (VersionOf(entry->d_name, version, sizeof(package->versions[0]))) ++package->count;
  }
  closedir(folder);
  qsort(package->versions, package->count, sizeof(package->versions[0]), NewestFirst);
}

static void SetFolder(struct addend_package* package, const char* file) {
  const char* slash = strrchr(file, '/');
  const size_t length = slash == NULL ? 0 : (size_t)(slash - file);
  if (length == 0 || length >= sizeof(package->folder)) {
    strcpy(package->folder, slash == file ? "/" : ".");
    return;
  }
  memcpy(package->folder, file, length);
  package->folder[length] = 0;
}

void addend_find_package(struct addend_package* package) {
  package->count = 0;
  strcpy(package->folder, ".");
  Dl_info self;
  if (dladdr(kStart, &self) == 0 || self.dli_fname == NULL) return;
  SetFolder(package, self.dli_fname);
  Search(package);
  char real[PATH_MAX];
  if (package->count != 0 || realpath(self.dli_fname, real) == NULL) return;
  SetFolder(package, real);
  Search(package);
}

const char* addend_implementation_path(const struct addend_package* package, size_t index, char* path) {
  snprintf(path, PATH_MAX, "%.*s/%s%s%s", PATH_MAX - 64, package->folder, kStart, package->versions[index], kEnd);
  return path;
}

enum addend_cxx11_abi addend_implementation_abi(const char* path) {
  if (addend_elf_mentions(path, ADDEND_NEW_BUILD_OPTIONS)) return ADDEND_NEW_ABI;
  return addend_elf_mentions(path, ADDEND_OLD_BUILD_OPTIONS) ? ADDEND_OLD_ABI : ADDEND_UNKNOWN_ABI;
}

void addend_text_add_versions(struct addend_text* text, const struct addend_package* package) {
  for (size_t k = 0; k < package->count; ++k) {
    addend_text_add(text, "%s%s", k == 0 ? "" : k + 1 == package->count ? " and " : ", ", package->versions[k]);
  }
}
