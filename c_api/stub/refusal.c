#include "c_api/stub/refusal.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// One message that was given. A process meets few, so that they are kept: a status that is released twice, or read
// after its release, is still what it was. The list only grows, at its beginning, so that nothing has to be locked.
struct Refusal {
  const struct Refusal* next;
  const char* message;
};

static _Atomic(const struct Refusal*) refusals = NULL;
static const struct Refusal out_of_memory = {NULL, "Addend could not be loaded, and memory has run out"};

static addend_status* StatusOf(const struct Refusal* refusal) { return (addend_status*)(uintptr_t)refusal; }

addend_status* addend_refusal(const char* message) {
  for (const struct Refusal* k = atomic_load(&refusals); k != NULL; k = k->next) {
    if (strcmp(k->message, message) == 0) return StatusOf(k);
  }
  struct Refusal* made = malloc(sizeof(*made) + strlen(message) + 1);
  if (made == NULL) return StatusOf(&out_of_memory);
  made->message = strcpy((char*)(made + 1), message);
  made->next = atomic_load(&refusals);
  while (!atomic_compare_exchange_weak(&refusals, &made->next, made)) {
  }
  return StatusOf(made);
}

const char* addend_refusal_message(const addend_status* status) {
  if (status == StatusOf(&out_of_memory)) return out_of_memory.message;
  for (const struct Refusal* k = atomic_load(&refusals); k != NULL; k = k->next) {
    if (status == StatusOf(k)) return k->message;
  }
  return NULL;
}
