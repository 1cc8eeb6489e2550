// How many contributions readers see who asked for no other number.
#ifndef ADDEND_CORE_DOCUMENT_SHOWN_AT_FIRST_H_
#define ADDEND_CORE_DOCUMENT_SHOWN_AT_FIRST_H_

#include <cstdint>

namespace addend {

// Rows of the command line's tables, and bars of a picture.
inline constexpr int64_t kShownAtFirst = 12;

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_SHOWN_AT_FIRST_H_
