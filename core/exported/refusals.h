// Errors that several readers of exported programs throw.
#ifndef ADDEND_CORE_EXPORTED_REFUSALS_H_
#define ADDEND_CORE_EXPORTED_REFUSALS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend::exported {

// Refuses an object of a C++ or Python class. `place`: in the document. `what`: a clause that names the object.
inline Error CustomObject(const std::string& place, const std::string& what) {
  return Unimplemented(
      absl::StrCat(place, ": ", what, ", which only the library that made it can run; export the model without it"));
}

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_REFUSALS_H_
