#include "c_api/stub/reasons.h"

#include <string.h>

#include "c_api/addend.h"
#include "c_api/stub/elf_names.h"

void addend_add_failure(struct addend_search* search, const char* path, const char* what) {
  addend_text_add(&search->failures, "%s%s: %s", search->failures.size == 0 ? "" : "; ", path, what);
}

static const char* AbiText(enum addend_cxx11_abi abi) {
  if (abi == ADDEND_OLD_ABI) return "the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0)";
  return abi == ADDEND_NEW_ABI ? "the new C++ ABI (_GLIBCXX_USE_CXX11_ABI=1)" : "a C++ ABI that it does not tell";
}

void addend_add_loader_failure(struct addend_search* search, const char* library, const char* what) {
  if (addend_elf_is_foreign(library)) {
    addend_add_failure(search, library, "it is for another processor; install the one for this machine");
    return;
  }
  addend_add_failure(search, library, what);
  const enum addend_cxx11_abi abi = addend_implementation_abi(library);
  if (strstr(what, "undefined symbol: ") == NULL || abi == ADDEND_UNKNOWN_ABI) return;
  addend_text_add(&search->failures,
                  ": it was built for a LibTorch with %s, and the one that was found is of another version or has %s",
                  AbiText(abi), AbiText(abi == ADDEND_OLD_ABI ? ADDEND_NEW_ABI : ADDEND_OLD_ABI));
}

static const char* LoadedPath(const struct addend_search* search) {
  return search->cpu.count != 0 ? search->cpu.paths[0] : search->c10.paths[0];
}

// "this process has loaded LibTorch 2.10.0 (/opt/torch/lib/libtorch_cpu.so)"
static void SayWhatIsLoaded(struct addend_search* search) {
  const char* version = search->version[0] == 0 ? "of a version that it does not tell" : search->version;
  addend_text_add(&search->reason, "this process has loaded LibTorch %s (%s)", version, LoadedPath(search));
}

void addend_say_nothing_serves(struct addend_search* search) {
  struct addend_text* reason = &search->reason;
  SayWhatIsLoaded(search);
  addend_text_add(reason, ", and Addend %s in %s serves LibTorch ", addend_version(), search->package.folder);
  addend_text_add_versions(reason, &search->package);
  addend_text_add(reason, "; install the Addend for the loaded LibTorch, or let the process load LibTorch ");
  addend_text_add_versions(reason, &search->package);
  if (search->version[0] == 0) return;
  addend_text_add(reason, ", or set " ADDEND_OTHER_VARIABLE "=1 to try the implementation for %s, which is not tested here",
                  search->package.versions[addend_nearest_implementation(search)]);
}

void addend_say_name_differs(struct addend_search* search, const char* implementation) {
  char name[256] = "libtorch_cpu";
  addend_elf_needed(implementation, "libtorch_cpu", name, sizeof(name));
  SayWhatIsLoaded(search);
  addend_text_add(
      &search->reason,
      ", which is not the %s that %s needs; a second LibTorch beside it would end the process. Let the process "
      "load that one, or build Addend with LIBTORCH_HOME set to the loaded one",
      name, implementation);
}

void addend_say_abi_differs(struct addend_search* search, const char* implementation) {
  SayWhatIsLoaded(search);
  addend_text_add(&search->reason,
                  " with %s, and %s was built for one with %s; let the process load such a LibTorch, or build Addend with "
                  "LIBTORCH_HOME set to the loaded one",
                  AbiText(search->abi), implementation, AbiText(addend_implementation_abi(implementation)));
}

// Finds "libabsl_hash.so.20220623" in "libaddend.so: libabsl_hash.so.20220623: cannot open shared object file": a library
// that is missing and not of LibTorch. The length of its name; 0 where there is none.
static int MissingBesideLibTorch(const char* failures, const char** name) {
  const char* end = strstr(failures, ": cannot open shared object file");
  if (end == NULL) return 0;
  *name = end;
  while (*name > failures && (*name)[-1] != ' ') --*name;
  if (strncmp(*name, "libtorch", 8) == 0 || strncmp(*name, "libc10", 6) == 0) return 0;
  return (int)(end - *name);
}

void addend_say_what_failed(struct addend_search* search) {
  const char* missing = NULL;
  const int length = MissingBesideLibTorch(search->failures.data, &missing);
  if (LoadedPath(search)[0] != 0) {
    SayWhatIsLoaded(search);
    addend_text_add(&search->reason, ", and Addend for it cannot be loaded");
  } else {
    addend_text_add(&search->reason, "%s cannot be loaded", length != 0 ? "Addend" : "LibTorch");
  }
  addend_text_add(&search->reason, " (%s); install ", search->failures.data);
  if (length != 0) {
    addend_text_add(&search->reason, "%.*s, which this machine lacks, and LibTorch ", length, missing);
    addend_text_add_versions(&search->reason, &search->package);
    return;
  }
  addend_text_add(&search->reason, "LibTorch ");
  addend_text_add_versions(&search->reason, &search->package);
  addend_text_add(&search->reason, ", or set %s to its folder of libraries", ADDEND_PATH_VARIABLE);
}

void addend_say_nothing_there(struct addend_search* search) {
  addend_text_add(
      &search->reason,
      "there is no libaddend_torch<version>.so in %s beside libaddend.so.1; install all files of the package",
      search->package.folder);
}

void addend_say_loaded_twice(struct addend_search* search) {
  const struct addend_loaded* twice = search->cpu.count > 1 ? &search->cpu : &search->c10;
  addend_text_add(&search->reason,
                  "this process has loaded LibTorch more than once (%s, %s); " ADDEND_LOAD_ONE_LIBTORCH,
                  twice->paths[0], twice->paths[1]);
}
