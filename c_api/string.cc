// Text that was computed.
#include "c_api/bodies.h"

namespace addend::c_api {

extern "C" {

ADDEND_API const char* addend_string_data(const addend_string* text) noexcept {
  const auto* body = Peek(text);
  return body == nullptr ? nullptr : body->text.c_str();
}

ADDEND_API size_t addend_string_size(const addend_string* text) noexcept {
  const auto* body = Peek(text);
  return body == nullptr ? 0 : body->text.size();
}

ADDEND_API void addend_string_release(addend_string* text) noexcept { Release(text); }

}  // extern "C"

}  // namespace addend::c_api
