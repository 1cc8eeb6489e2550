// Attention by its operators, one after the other, for benchmarks that compare with it.
#ifndef ADDEND_BENCHMARKS_ONE_BY_ONE_H_
#define ADDEND_BENCHMARKS_ONE_BY_ONE_H_

#include "core/rules/fused.h"
#include "core/rules/registry.h"

// The default rules, but that none stands for all of attention, whether it is one operator or written out.
inline addend::Registry OneByOne() {
  const addend::Registry& registry = addend::Registry::Default();
  addend::Registry own = registry;
  for (const addend::Rewrite* rewrite : registry.AllRewrites()) {
    if (addend::FusedOf(rewrite) != nullptr) own.Register(addend::Rewrite{rewrite->name, rewrite->run});
  }
  for (const char* name : {"aten::softmax", "aten::_softmax"}) {
    own.Register(addend::Rule(*registry.Find(name, name)).InAttention(addend::AttentionStep::kNone));
  }
  return own;
}

#endif  // ADDEND_BENCHMARKS_ONE_BY_ONE_H_
