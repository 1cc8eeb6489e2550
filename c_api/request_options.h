// Options of requests, by key and value.
#ifndef ADDEND_C_API_REQUEST_OPTIONS_H_
#define ADDEND_C_API_REQUEST_OPTIONS_H_

#include <string>

#include "c_api/bodies.h"

namespace addend::c_api {

// Sets an option as addend_request_set_option() says. Throws InvalidArgument for unknown keys and for values that are
// none of the option.
void SetRequestOption(RequestBody& request, const std::string& key, const std::string& value);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_REQUEST_OPTIONS_H_
