// Texts that are given away for ever. A process meets few different ones, so that they are kept: who has one need not
// release it, and may read it at any time.
#ifndef ADDEND_C_API_STUB_KEPT_H_
#define ADDEND_C_API_STUB_KEPT_H_

#ifdef __cplusplus
extern "C" {
#endif

struct addend_kept;

// A list of texts, NULL at first. It only grows, at its beginning, so that nothing has to be locked.
struct addend_kept_texts {
  const struct addend_kept* newest;
};

// Returns a copy of the text that is never released: the same one for the same text. NULL where memory has run out.
const char* addend_keep(struct addend_kept_texts* texts, const char* text);

// Returns 1 for an address that addend_keep gave for this list, and 0 for every other.
int addend_is_kept(const struct addend_kept_texts* texts, const void* address);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ADDEND_C_API_STUB_KEPT_H_
