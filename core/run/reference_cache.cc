#include "core/run/reference_cache.h"

#include <utility>

namespace addend {

std::shared_ptr<const RunReferences> ReferenceCache::Last() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_;
}

void ReferenceCache::Store(std::shared_ptr<const RunReferences> run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = std::move(run);
}

void ReferenceCache::Clear() { Store(nullptr); }

}  // namespace addend
