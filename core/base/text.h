// Text from models, files and callers, made safe for terminals and documents.
#ifndef ADDEND_CORE_BASE_TEXT_H_
#define ADDEND_CORE_BASE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace addend {

// How much of a text from elsewhere messages repeat, in bytes, and how long a whole message may be.
inline constexpr size_t kMostQuoted = 200;
inline constexpr size_t kMostMessage = 4096;

// Whether a character is a mark of direction, a separator of lines or a mark of byte order: nobody sees it, and it
// changes how what stands around it is read.
bool IsHidden(uint32_t code);

// Returns the text on one line of UTF-8 in which nothing moves the cursor, changes colours or turns the direction of
// writing. Line breaks and tabs become "\n", "\r" and "\t"; other control characters and bytes that are not UTF-8
// become "\x1b"; marks of direction and line separators become "\u202e". Everything else stays as it is, backslashes
// and quotes included.
std::string OneLine(const std::string& text);

// Returns at most `most` bytes of a text: its beginning and its end where it is longer, whole characters, with the
// number of bytes that are left out between them: "999 ... (49999760 bytes left out) ... 999".
std::string Shortened(const std::string& text, size_t most);
// Returns what messages say of a text from a file or a caller: on one line, and at most kMostQuoted bytes of it.
std::string Quoted(const std::string& text);
// Returns a word as a shell reads it again: in single quotes, where it holds more than letters, digits and some marks.
std::string ShellWord(const std::string& word);
// Returns what messages say of names, with commas between them: the first of a long list, and how many more there are.
std::string Listed(const std::vector<std::string>& names);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_TEXT_H_
