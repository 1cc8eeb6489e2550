#include "c_api/handle.h"

#include <array>

namespace addend::c_api {

HandleTableForEver handles;

std::atomic<int64_t>& LiveCount(int32_t kind) noexcept {
  static std::array<std::atomic<int64_t>, kNumCounts> counts{};
  return counts[kind];
}

extern "C" ADDEND_API int64_t addend_debug_live(int32_t kind) noexcept {
  if (kind < 0 || kind >= kNumKinds) return -1;
  if (kind != ADDEND_HANDLE_ANY) return LiveCount(kind).load();
  int64_t all = 0;
  for (int32_t k = ADDEND_HANDLE_ANY + 1; k < kNumKinds; ++k) all += LiveCount(k).load();
  return all;
}

}  // namespace addend::c_api
