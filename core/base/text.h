// Text from models, files and callers, made safe for terminals and documents.
#ifndef ADDEND_CORE_BASE_TEXT_H_
#define ADDEND_CORE_BASE_TEXT_H_

#include <string>

namespace addend {

// Returns the text on one line of UTF-8 in which nothing moves the cursor, changes colours or turns the direction of
// writing. Line breaks and tabs become "\n", "\r" and "\t"; other control characters and bytes that are not UTF-8
// become "\x1b"; marks of direction and line separators become "\u202e". Everything else stays as it is, backslashes
// and quotes included.
std::string OneLine(const std::string& text);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_TEXT_H_
