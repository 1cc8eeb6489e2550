// Text for terminals: how wide it is, how it is cut and aligned.
#ifndef ADDEND_TOOLS_ADDEND_TEXT_H_
#define ADDEND_TOOLS_ADDEND_TEXT_H_

#include <string>

#include "core/base/readable.h"

namespace addend::cli {

struct Terminal {
  int width = 80;
  bool utf8 = false;  // the locale says that UTF-8 can be shown
};

// Properties of standard output: the terminal's width within 60 to 100 columns, 80 if it is no terminal.
Terminal StdoutTerminal();

// One line that is safe to print: control characters become spaces, bytes that are no UTF-8 become '?', and marks that
// nobody sees, such as those that turn the direction of writing, become "\u202e".
std::string Clean(const std::string& text);
// Columns that a text takes, which need not be its bytes or its characters.
int DisplayWidth(const std::string& text);

// At most `width` columns; what is cut away at the end, or at the start, is marked.
std::string CutEnd(const std::string& text, int width, const Terminal& terminal);
std::string CutStart(const std::string& text, int width, const Terminal& terminal);
// Filled up with spaces behind or before the text.
std::string PadRight(const std::string& text, int width);
std::string PadLeft(const std::string& text, int width);
// Lines of at most `width` columns, broken at spaces; all but the first begin with `indent` spaces. Every line ends
// with "\n". Words that are longer than a line stay whole.
std::string Wrap(const std::string& text, int width, int indent = 0);
// A text, cleaned and wrapped behind `first`, its further lines indented by as much.
std::string Hanging(const std::string& first, const std::string& text, const Terminal& terminal);
}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_TEXT_H_
