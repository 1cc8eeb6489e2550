#define _GNU_SOURCE
#include "c_api/stub/open.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "c_api/stub/elf_names.h"
#include "c_api/stub/implementation.h"
#include "c_api/stub/reasons.h"
#include "c_api/stub/refusal.h"

_Atomic(const struct addend_functions*) addend_opened_functions = NULL;

// LibTorch as some distributions build it brings UCX, which takes over the handlers of signals while it is loaded.
// Hosts live by theirs (a virtual machine turns a SIGSEGV into an exception): they are given back.
static void GiveBackSignalHandlers(void* library) {
  void* symbol = dlsym(library, "ucs_debug_disable_signals");
  void (*disable)(void) = NULL;
  memcpy(&disable, &symbol, sizeof(symbol));
  if (disable != NULL) disable();
}

static const struct addend_functions* OpenFile(struct addend_search* search, const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    addend_add_loader_failure(search, path, dlerror());
    return NULL;
  }
  GiveBackSignalHandlers(library);
  const struct addend_implementation* found = dlsym(library, "addend_implementation");
  if (found == NULL || strcmp(found->digest, ADDEND_FUNCTIONS_DIGEST) != 0) {
    addend_add_failure(search, path,
                       "it is of another build of Addend than libaddend.so.1; keep the files of one package together");
    return NULL;
  }
  return &found->functions;
}

static void FindLibTorch(struct addend_search* search) {
  search->version[0] = 0;
  search->abi = ADDEND_UNKNOWN_ABI;
  addend_find_loaded("libtorch_cpu", &search->cpu);
  addend_find_loaded("libc10", &search->c10);
  if (search->cpu.count != 1) return;
  search->abi = addend_version_of_loaded(search->cpu.paths[0], search->version, sizeof(search->version));
}

// "1.13.1" is of "1.13", and so is "1.13".
static bool IsOf(const char* version, const char* major_minor) {
  const size_t size = strlen(major_minor);
  return strncmp(version, major_minor, size) == 0 && (version[size] == 0 || version[size] == '.');
}

// Finds the implementation for the loaded LibTorch's version: the index, or the package's count where there is none.
static size_t FindVersion(const struct addend_search* search) {
  size_t k = 0;
  while (k < search->package.count && !IsOf(search->version, search->package.versions[k])) ++k;
  return k;
}

// The one that is tried where none is for the loaded version and the user allows it: the newest of those for an older
// LibTorch, or else the oldest. The package's order is newest first.
size_t addend_nearest_implementation(const struct addend_search* search) {
  size_t k = 0;
  while (k + 1 < search->package.count && strverscmp(search->package.versions[k], search->version) > 0) ++k;
  return k;
}

// Whether the loader would take the loaded library for what the implementation needs, and load no second one.
static bool Serves(const struct addend_loaded* loaded, const char* library, const char* implementation) {
  char name[256];
  if (loaded->count == 0 || !addend_elf_needed(implementation, library, name, sizeof(name))) return true;
  addend_elf_own_name(loaded->paths[0], name, sizeof(name));
  return addend_elf_needs(implementation, name);
}

// Whether an implementation calls functions of LibTorch by names that the loaded one does not have.
static bool HasOtherAbi(const struct addend_search* search, const char* implementation) {
  const enum addend_cxx11_abi abi = addend_implementation_abi(implementation);
  return search->abi != ADDEND_UNKNOWN_ABI && abi != ADDEND_UNKNOWN_ABI && abi != search->abi;
}

static void FolderOf(const char* file, char* folder) {
  strcpy(folder, file);
  char* slash = strrchr(folder, '/');
  if (slash != NULL) *slash = 0;
}

// Loads a library, if it is there; whoever needs it under its own name has it then.
static bool Load(struct addend_search* search, const char* folder, const char* name) {
  char path[PATH_MAX + 256];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  if (access(path, R_OK) != 0) return false;
  if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) addend_add_loader_failure(search, path, dlerror());
  return true;
}

// Finds "libc10.so.1.13.0" for "libc10" in a folder: the newest.
static bool FindVersioned(const char* folder, const char* library, char* name, size_t size) {
  name[0] = 0;
  DIR* opened = opendir(folder);
  if (opened == NULL) return false;
  char start[64];
  const int length = snprintf(start, sizeof(start), "%s.so.", library);
  const struct dirent* entry;
  while ((entry = readdir(opened)) != NULL) {
    if (strncmp(entry->d_name, start, (size_t)length) != 0 || strlen(entry->d_name) >= size) continue;
    if (name[0] == 0 || strverscmp(entry->d_name, name) > 0) strcpy(name, entry->d_name);
  }
  closedir(opened);
  return name[0] != 0;
}

// Loads a library of LibTorch under the name that an implementation needs, its plain one, or any with a version.
static bool LoadForAny(struct addend_search* search, const char* folder, const char* library) {
  char path[PATH_MAX], name[256];
  for (size_t k = 0; k < search->package.count; ++k) {
    addend_implementation_path(&search->package, k, path);
    if (addend_elf_needed(path, library, name, sizeof(name)) && Load(search, folder, name)) return true;
  }
  snprintf(name, sizeof(name), "%s.so", library);
  if (Load(search, folder, name)) return true;
  return FindVersioned(folder, library, name, sizeof(name)) && Load(search, folder, name);
}

// Loads LibTorch from a folder; its version is known then. Each library comes before those that need it, which would
// otherwise let the system's loader find one.
static void LoadLibTorch(struct addend_search* search, const char* folder) {
  LoadForAny(search, folder, "libc10");
  if (!LoadForAny(search, folder, "libtorch_cpu")) addend_add_failure(search, folder, "there is no libtorch_cpu.so");
  FindLibTorch(search);
}

struct Siblings {
  struct addend_search* search;
  char folder[PATH_MAX];
};

// Whether a library of that name is loaded, from whatever folder: a second one must not be.
static bool IsLoaded(const char* name) {
  void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return false;
  dlclose(library);
  return true;
}

static bool LoadSibling(void* state, bool is_own, const char* name) {
  struct Siblings* siblings = state;
  const bool is_of_libtorch = strncmp(name, "libtorch", 8) == 0 || strncmp(name, "libc10", 6) == 0;
  if (!is_own && is_of_libtorch && !IsLoaded(name)) Load(siblings->search, siblings->folder, name);
  return true;
}

// The implementation needs more of LibTorch than libtorch_cpu: it comes from the folder of the loaded one.
static void LoadSiblings(struct addend_search* search, const char* implementation) {
  if (search->cpu.count == 0) return;
  struct Siblings siblings = {.search = search};
  FolderOf(search->cpu.paths[0], siblings.folder);
  addend_elf_names(implementation, LoadSibling, &siblings);
}

// Opens an implementation for the LibTorch that is loaded.
static const struct addend_functions* OpenForLoaded(struct addend_search* search) {
  char path[PATH_MAX], other[PATH_MAX] = "", other_abi[PATH_MAX] = "";
  size_t only = FindVersion(search);
  if (only == search->package.count && addend_other_libtorch_is_allowed()) only = addend_nearest_implementation(search);
  for (size_t k = 0; k < search->package.count; ++k) {
    if (search->version[0] != 0 && k != only) continue;
    addend_implementation_path(&search->package, k, path);
    if (HasOtherAbi(search, path)) {
      strcpy(other_abi, path);
      continue;
    }
    if (!Serves(&search->cpu, "libtorch_cpu", path) || !Serves(&search->c10, "libc10", path)) {
      strcpy(other, path);
      continue;
    }
    LoadSiblings(search, path);
    const struct addend_functions* functions = OpenFile(search, path);
    if (functions != NULL) return functions;
  }
  if (search->failures.size != 0) {
    addend_say_what_failed(search);
  } else if (other_abi[0] != 0) {
    addend_say_abi_differs(search, other_abi);
  } else if (other[0] != 0) {
    addend_say_name_differs(search, other);
  } else {
    addend_say_nothing_serves(search);
  }
  return NULL;
}

// Lets the system's loader find LibTorch for one of the implementations. Which of them fits is seen afterwards:
// official builds of LibTorch have the same file names in every version.
static const struct addend_functions* OpenAny(struct addend_search* search) {
  char path[PATH_MAX];
  for (size_t k = 0; k < search->package.count; ++k) {
    const struct addend_functions* functions = OpenFile(search, addend_implementation_path(&search->package, k, path));
    FindLibTorch(search);
    if (search->cpu.count != 0 || search->c10.count != 0) {
      if (functions != NULL) search->failures.size = 0;
      return OpenForLoaded(search);
    }
    if (functions != NULL) return functions;
  }
  addend_say_what_failed(search);
  return NULL;
}

static const struct addend_functions* Open(struct addend_search* search, const char* chosen) {
  addend_find_package(&search->package);
  if (search->package.count == 0) {
    addend_say_nothing_there(search);
    return NULL;
  }
  FindLibTorch(search);
  if (chosen == NULL || chosen[0] == 0) chosen = secure_getenv(ADDEND_PATH_VARIABLE);
  char folder[PATH_MAX];
  if (search->cpu.count == 0 && search->c10.count == 1) {
    FolderOf(search->c10.paths[0], folder);
    LoadLibTorch(search, folder);
  } else if (search->cpu.count == 0 && chosen != NULL && chosen[0] != 0) {
    LoadLibTorch(search, chosen);
    if (search->cpu.count == 0) {
      addend_say_what_failed(search);
      return NULL;
    }
  }
  if (search->cpu.count > 1 || search->c10.count > 1) {
    addend_say_loaded_twice(search);
    return NULL;
  }
  return search->cpu.count == 0 && search->c10.count == 0 ? OpenAny(search) : OpenForLoaded(search);
}

struct addend_opening addend_open(void) { return addend_open_from(NULL); }

struct addend_opening addend_open_from(const char* folder) {
  // Of 50 kB: threads of some hosts have small stacks.
  struct addend_search* search = calloc(1, sizeof(*search));
  if (search == NULL) return (struct addend_opening){NULL, addend_refusal("out of memory")};
  const struct addend_functions* functions = Open(search, folder);
  struct addend_opening opening = {functions, functions != NULL ? NULL : addend_refusal(search->reason.data)};
  free(search);
  if (functions != NULL) atomic_store_explicit(&addend_opened_functions, functions, memory_order_release);
  return opening;
}
