// What issue reporters paste: the stub's own part, which needs no LibTorch, and behind it that of the implementation.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "c_api/stub/kept.h"
#include "c_api/stub/libtorch.h"
#include "c_api/stub/open.h"
#include "c_api/stub/package.h"
#include "c_api/stub/reasons.h"
#include "c_api/stub/refusal.h"
#include "core/base/provenance.h"
#include "core/base/system_text.h"

struct Config {
  struct addend_package package;
  struct addend_loaded loaded;
  struct addend_text text;
};

// The file that something of it was loaded from, links resolved.
static void AddFile(struct addend_text* text, const char* name, const void* something) {
  Dl_info found;
  char path[PATH_MAX];
  const char* file = dladdr(something, &found) == 0 ? NULL : found.dli_fname;
  if (file != NULL && realpath(file, path) != NULL) file = path;
  addend_text_add(text, "  %s: %s", name, file == NULL ? "not known" : file);
}

static void AddRelease(struct addend_text* text) {
  char system[256];
  addend_system_text(system, sizeof(system));
  addend_text_add(text, "Addend %s\n  interface: ABI %d to %d\n  built from: %s\n  system: %s\n", addend_version(),
                  (int)addend_abi_min_version(), (int)addend_abi_version(), addend_provenance(), system);
  AddFile(text, "library", (const void*)addend_provenance);
}

static void AddPackage(struct Config* config) {
  struct addend_text* text = &config->text;
  addend_find_package(&config->package);
  addend_text_add(text, "\n  implementations: ");
  for (size_t k = 0; k < config->package.count; ++k) {
    addend_text_add(text, "%slibaddend_torch%s.so", k == 0 ? "" : ", ", config->package.versions[k]);
  }
  addend_text_add(text, "%s in %s", config->package.count == 0 ? "none" : "", config->package.folder);
  static const char* const variables[] = {ADDEND_PATH_VARIABLE, ADDEND_OTHER_VARIABLE};
  for (size_t k = 0; k < sizeof(variables) / sizeof(variables[0]); ++k) {
    const char* value = secure_getenv(variables[k]);
    if (value != NULL) addend_text_add(text, "\n  %s: %s", variables[k], value);
  }
}

static void AddRefusal(struct addend_text* text, const char* message) {
  addend_text_add(text, "\n  refused: %s", message);
}

static void AddOpened(struct addend_text* text, const struct addend_functions* opened) {
  addend_text_add(text, "\n");
  AddFile(text, "opened", opened);
  addend_text_add(text, ", for LibTorch %s", opened->addend_libtorch_version());
  // A second LibTorch may have come later.
  addend_status* status = opened->addend_check_libtorch();
  if (status == NULL) return;
  AddRefusal(text, opened->addend_status_message(status));
  opened->addend_status_release(status);
}

// What no implementation tells of. Of two there is no one version.
static void AddLoaded(struct Config* config) {
  struct addend_text* text = &config->text;
  struct addend_loaded* loaded = &config->loaded;
  addend_find_loaded("libtorch_cpu", loaded);
  if (loaded->count == 0) addend_find_loaded("libc10", loaded);
  if (loaded->count == 0) addend_text_add(text, "\nLibTorch is not loaded");
  for (size_t k = 0; k < loaded->count; ++k) {
    char version[32];
    const enum addend_cxx11_abi abi = addend_version_of_loaded(loaded->paths[k], version, sizeof(version));
    const char* told = version[0] == 0 ? "of a version that it does not tell" : version;
    addend_text_add(text, "\nLibTorch %s\n  library: %s", told, loaded->paths[k]);
    if (abi != ADDEND_UNKNOWN_ABI) addend_text_add(text, "\n  C++ ABI: _GLIBCXX_USE_CXX11_ABI=%d", (int)abi);
  }
}

ADDEND_API const char* addend_show_config(void) {
  static struct addend_kept_texts texts;
  static const char out_of_memory[] = "Addend " ADDEND_VERSION "\n  memory has run out";
  struct addend_opening opening = {addend_opened(), NULL};
  if (opening.functions == NULL) opening = addend_open();
  // Of 20 kB: threads of some hosts have small stacks.
  struct Config* config = calloc(1, sizeof(*config));
  if (config == NULL) return out_of_memory;
  AddRelease(&config->text);
  AddPackage(config);
  if (opening.functions != NULL) {
    AddOpened(&config->text, opening.functions);
    const char* libtorch = opening.functions->addend_show_config();
    if (libtorch != NULL) addend_text_add(&config->text, "\n%s", libtorch);
  } else {
    addend_text_add(&config->text, "\n  opened: none");
    AddRefusal(&config->text, addend_refusal_message(opening.refusal));
    AddLoaded(config);
  }
  const char* kept = addend_keep(&texts, config->text.data);
  free(config);
  return kept != NULL ? kept : out_of_memory;
}
