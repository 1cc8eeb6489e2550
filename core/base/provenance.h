// The sources that a library or program was built from.
#ifndef ADDEND_CORE_BASE_PROVENANCE_H_
#define ADDEND_CORE_BASE_PROVENANCE_H_

#ifdef __cplusplus
extern "C" {
#endif

// Returns "commit 1a2b... of 2026-10-01T12:00:00Z, https://..." in a build with --config=stamp, as far as git knows it,
// and "not stamped" in every other build.
const char* addend_provenance(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ADDEND_CORE_BASE_PROVENANCE_H_
