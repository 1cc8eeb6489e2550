#include "core/base/file_error.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace addend {

Error FileError(const char* verb, const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot ", verb, " ", path, ": ", std::generic_category().message(error));
  return error == ENOENT || error == ENOTDIR ? NotFound(message) : InvalidArgument(message);
}

}  // namespace addend
