#include "c_api/stub/kept.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct addend_kept {
  const struct addend_kept* next;
  char text[];
};

static const struct addend_kept* Newest(const struct addend_kept_texts* texts) {
  return __atomic_load_n(&texts->newest, __ATOMIC_ACQUIRE);
}

const char* addend_keep(struct addend_kept_texts* texts, const char* text) {
  for (const struct addend_kept* k = Newest(texts); k != NULL; k = k->next) {
    if (strcmp(k->text, text) == 0) return k->text;
  }
  struct addend_kept* made = malloc(sizeof(*made) + strlen(text) + 1);
  if (made == NULL) return NULL;
  strcpy(made->text, text);
  made->next = Newest(texts);
  while (!__atomic_compare_exchange_n(&texts->newest, &made->next, made, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return made->text;
}

int addend_is_kept(const struct addend_kept_texts* texts, const void* address) {
  for (const struct addend_kept* k = Newest(texts); k != NULL; k = k->next) {
    if (k->text == address) return 1;
  }
  return 0;
}
