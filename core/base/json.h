// JSON as this library writes it, and HTML pages that hold JSON.
#ifndef ADDEND_CORE_BASE_JSON_H_
#define ADDEND_CORE_BASE_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace addend {

// A JSON value whose keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

// Writes a record as text, always UTF-8: bytes that are not UTF-8 become U+FFFD, numbers that are not finite become
// null. indent -1: one line.
std::string Dump(const Json& record, int indent = -1);
// Returns `page`, a whole HTML document, with the record in place of the marker __ADDEND_DATA__, which stands in a
// script element of type application/json. No text in the record can end that element. Throws Internal if there is no
// marker.
std::string FillPage(const std::string& page, const Json& record);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_JSON_H_
