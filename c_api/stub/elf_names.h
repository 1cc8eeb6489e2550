// The names in a shared library's file, read without loading it: its own, those of the libraries that it needs, and
// those of symbols.
#ifndef ADDEND_C_API_STUB_ELF_NAMES_H_
#define ADDEND_C_API_STUB_ELF_NAMES_H_

#include <stdbool.h>
#include <stddef.h>

// Is given each name; false ends the reading.
typedef bool (*addend_elf_visit)(void* state, bool is_own, const char* name);

// Calls `visit` with each name. Does nothing for what is no shared library of this machine.
void addend_elf_names(const char* path, addend_elf_visit visit, void* state);

// Whether the library at `path` needs one called `name`.
bool addend_elf_needs(const char* path, const char* name);

// Writes the first name that begins with `start` of what the library at `path` needs; false where there is none.
bool addend_elf_needed(const char* path, const char* start, char* name, size_t size);

// Writes the name that the library at `path` has for others: that of its file, where it says none.
void addend_elf_own_name(const char* path, char* name, size_t size);

// Whether the library at `path` defines or needs a symbol called `name`.
bool addend_elf_mentions(const char* path, const char* name);

// Whether the file at `path` is for another processor than this library. The system's loader says of one that is there
// that it is not.
bool addend_elf_is_foreign(const char* path);

#endif  // ADDEND_C_API_STUB_ELF_NAMES_H_
