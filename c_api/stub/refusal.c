#include "c_api/stub/refusal.h"

#include <stddef.h>

#include "c_api/stub/kept.h"

// A status is the address of its message, which is kept: a status that is released twice, or read after its release, is
// still what it was.
static struct addend_kept_texts messages;
static const char out_of_memory[] = "Addend could not be loaded, and memory has run out";

static addend_status* StatusOf(const char* message) { return (addend_status*)(uintptr_t)message; }

addend_status* addend_refusal(const char* message) {
  const char* kept = addend_keep(&messages, message);
  return StatusOf(kept != NULL ? kept : out_of_memory);
}

const char* addend_refusal_message(const addend_status* status) {
  const char* message = (const char*)status;
  return message == out_of_memory || addend_is_kept(&messages, message) ? message : NULL;
}
