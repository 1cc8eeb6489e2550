// The frame of functions that give one text of a handle: JSON, a page, a picture.
#ifndef ADDEND_C_API_GIVE_TEXT_H_
#define ADDEND_C_API_GIVE_TEXT_H_

#include "c_api/bodies.h"
#include "c_api/guard.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {

// Gives what `make` makes of the handle's body. name, out_name: what the parameters are called.
template <typename Handle, typename Make>
addend_status* GiveText(const Handle* handle, const char* name, addend_string** out, const char* out_name,
                        const Make& make) noexcept {
  return Guard([&] {
    const auto& body = Get(handle, name);
    RequireOut(out, out_name);
    const TracingPause pause;
    Give(out, make(body));
  });
}

}  // namespace addend::c_api

#endif  // ADDEND_C_API_GIVE_TEXT_H_
