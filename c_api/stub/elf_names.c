#define _GNU_SOURCE
#include "c_api/stub/elf_names.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// This library's own header, which linkers name so.
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

struct Image {
  const char* data;
  size_t size;
};

// `size` bytes at `offset`; NULL where the file does not have them.
static const void* At(const struct Image* image, size_t offset, size_t size) {
  return offset <= image->size && size <= image->size - offset ? image->data + offset : NULL;
}

static const ElfW(Phdr) * Headers(const struct Image* image, size_t* count) {
  const ElfW(Ehdr)* head = At(image, 0, sizeof(*head));
  const unsigned char word = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  *count = 0;
  if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != word) return NULL;
  if (head->e_phentsize != sizeof(ElfW(Phdr))) return NULL;
  const ElfW(Phdr)* headers = At(image, head->e_phoff, head->e_phnum * sizeof(ElfW(Phdr)));
  if (headers != NULL) *count = head->e_phnum;
  return headers;
}

// Where in the file an address of the loaded library lies.
static size_t OffsetOf(const struct Image* image, size_t address) {
  size_t count = 0;
  const ElfW(Phdr)* headers = Headers(image, &count);
  for (size_t k = 0; k < count; ++k) {
    const size_t begin = headers[k].p_vaddr;
    if (headers[k].p_type == PT_LOAD && address >= begin && address - begin < headers[k].p_filesz) {
      return headers[k].p_offset + (address - begin);
    }
  }
  return image->size;
}

static const ElfW(Dyn) * Dynamic(const struct Image* image, size_t* count) {
  size_t num_headers = 0;
  const ElfW(Phdr)* headers = Headers(image, &num_headers);
  *count = 0;
  for (size_t k = 0; k < num_headers; ++k) {
    if (headers[k].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn)* entries = At(image, headers[k].p_offset, headers[k].p_filesz);
    if (entries != NULL) *count = headers[k].p_filesz / sizeof(ElfW(Dyn));
    return entries;
  }
  return NULL;
}

// Where in the file all names lie, one behind the other.
static size_t TextsOf(const struct Image* image, size_t* size) {
  size_t count = 0;
  const ElfW(Dyn)* entries = Dynamic(image, &count);
  size_t texts = image->size;
  *size = 0;
  for (size_t k = 0; k < count; ++k) {
    if (entries[k].d_tag == DT_STRTAB) texts = OffsetOf(image, entries[k].d_un.d_ptr);
    if (entries[k].d_tag == DT_STRSZ) *size = entries[k].d_un.d_val;
  }
  return texts;
}

static void VisitNames(const struct Image* image, addend_elf_visit visit, void* state) {
  size_t count = 0, size = 0;
  const ElfW(Dyn)* entries = Dynamic(image, &count);
  const size_t texts = TextsOf(image, &size);
  for (size_t k = 0; k < count; ++k) {
    if (entries[k].d_tag != DT_NEEDED && entries[k].d_tag != DT_SONAME) continue;
    const size_t at = texts + entries[k].d_un.d_val;
    if (at < texts || at >= image->size || memchr(image->data + at, 0, image->size - at) == NULL) continue;
    if (!visit(state, entries[k].d_tag == DT_SONAME, image->data + at)) return;
  }
}

// The file at `path` in memory, until Unmap; empty where it cannot be read.
static struct Image Map(const char* path) {
  struct Image image = {NULL, 0};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return image;
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    void* data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data != MAP_FAILED) image = (struct Image){data, (size_t)status.st_size};
  }
  close(file);
  return image;
}

static void Unmap(const struct Image* image) {
  if (image->data != NULL) munmap((void*)(uintptr_t)image->data, image->size);
}

void addend_elf_names(const char* path, addend_elf_visit visit, void* state) {
  const struct Image image = Map(path);
  VisitNames(&image, visit, state);
  Unmap(&image);
}

bool addend_elf_mentions(const char* path, const char* name) {
  const struct Image image = Map(path);
  size_t size = 0;
  const size_t at = TextsOf(&image, &size);
  const char* texts = At(&image, at, size);
  // With the zero at its end: the linker lets a name begin inside a longer one.
  const bool found = texts != NULL && memmem(texts, size, name, strlen(name) + 1) != NULL;
  Unmap(&image);
  return found;
}

struct Search {
  const char* start;  // NULL: the own name
  bool whole;
  char* name;
  size_t size;
  bool found;
};

static bool Compare(void* state, bool is_own, const char* name) {
  struct Search* search = state;
  if (is_own != (search->start == NULL)) return true;
  if (!is_own && strncmp(name, search->start, strlen(search->start)) != 0) return true;
  if (!is_own && search->whole && strcmp(name, search->start) != 0) return true;
  snprintf(search->name, search->size, "%s", name);
  search->found = true;
  return false;
}

bool addend_elf_needed(const char* path, const char* start, char* name, size_t size) {
  struct Search search = {start, false, name, size, false};
  addend_elf_names(path, Compare, &search);
  return search.found;
}

bool addend_elf_needs(const char* path, const char* name) {
  char unused[1];
  struct Search search = {name, true, unused, sizeof(unused), false};
  addend_elf_names(path, Compare, &search);
  return search.found;
}

void addend_elf_own_name(const char* path, char* name, size_t size) {
  const char* slash = strrchr(path, '/');
  snprintf(name, size, "%s", slash == NULL ? path : slash + 1);
  struct Search search = {NULL, false, name, size, false};
  addend_elf_names(path, Compare, &search);
}

bool addend_elf_is_foreign(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  // What is compared lies at the same places in files of 32 and of 64 bits.
  ElfW(Ehdr) head;
  const bool is_elf = read(file, &head, sizeof(head)) == sizeof(head) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0;
  close(file);
  return is_elf && (head.e_machine != __ehdr_start.e_machine ||
                    head.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS]);
}
