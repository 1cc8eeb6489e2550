// JSON of callers and files, which may hold anything.
#ifndef ADDEND_CORE_BASE_READ_JSON_H_
#define ADDEND_CORE_BASE_READ_JSON_H_

#include <optional>
#include <string>

#include "core/base/json.h"

namespace addend {

// How deep lists and objects may be nested: copies and writers of a value call themselves for each level, so that a
// deeper one could end the process.
inline constexpr int kMostNested = 64;

// The value of a text. Throws InvalidArgument, in which `name` stands for the text, for what is no JSON, for values
// that are nested more than kMostNested deep, and for texts of which the value would lose something: an object that has
// a key twice, and an integer with more digits than a number keeps.
Json ReadJson(const std::string& text, const std::string& name);

// The first key that some object of a text has twice, of which a value would keep one only; nullopt where none does.
std::optional<std::string> KeyTwice(const char* begin, const char* end);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_READ_JSON_H_
