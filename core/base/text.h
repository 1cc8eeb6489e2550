// Text from models, files and callers on its way to a terminal or a document.
#ifndef ADDEND_CORE_BASE_TEXT_H_
#define ADDEND_CORE_BASE_TEXT_H_

#include <string>

namespace addend {

// The text on one line, as UTF-8 in which nothing moves the cursor, changes colours or turns the direction of writing:
// line breaks and tabs become "\n", "\r" and "\t", other control characters and bytes that are no UTF-8 "\x1b", marks
// of direction and line separators "\u202e". Everything else, backslashes and quotes included, stays as it is.
std::string OneLine(const std::string& text);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_TEXT_H_
