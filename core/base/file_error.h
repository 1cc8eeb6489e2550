// Errors of the system about files.
#ifndef ADDEND_CORE_BASE_FILE_ERROR_H_
#define ADDEND_CORE_BASE_FILE_ERROR_H_

#include <string>

#include "core/base/error.h"

namespace addend {

// "cannot read model.pt2: Permission denied", for a number of errno: NotFound where there is no such file or folder,
// else InvalidArgument.
Error FileError(const char* verb, const std::string& path, int error);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_FILE_ERROR_H_
