// Characters of UTF-8.
#ifndef ADDEND_CORE_BASE_UTF8_H_
#define ADDEND_CORE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace addend {

// Reads the character at `at`, before `end`. Returns how many bytes it has, and its code point; 0 where there is none:
// bytes that are cut off, longer forms than need be, halves of surrogate pairs, and what is beyond Unicode.
size_t ReadUtf8(const char* at, const char* end, uint32_t* code);

// Whether a text has nothing but characters.
bool IsUtf8(const std::string& text);
// The text with U+FFFD in place of each byte that belongs to no character.
std::string ToUtf8(const std::string& text);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_UTF8_H_
