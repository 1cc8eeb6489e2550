// JSON as this library writes it, and the pages that show it.
#ifndef ADDEND_CORE_BASE_JSON_H_
#define ADDEND_CORE_BASE_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace addend {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// The text of a record: UTF-8 whatever the names hold (what is no UTF-8 becomes U+FFFD), numbers that are not finite
// as null. indent -1: one line.
std::string Dump(const Json& record, int indent = -1);
// `page`, a whole HTML document, with the record in place of its marker __ADDEND_DATA__, which stands in a script
// element of type application/json. No text in the record can end that element. Throws Internal without a marker.
std::string FillPage(const std::string& page, const Json& record);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_JSON_H_
