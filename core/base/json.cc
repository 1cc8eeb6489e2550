#include "core/base/json.h"

#include "absl/strings/str_replace.h"
#include "core/base/error.h"

namespace addend {
namespace {

constexpr char kMarker[] = "__ADDEND_DATA__";

}  // namespace

std::string Dump(const Json& record, int indent) {
  return record.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string FillPage(const std::string& page, const Json& record) {
  const size_t marker = page.find(kMarker);
  if (marker == std::string::npos) throw Internal("the page has no place for its data");
  // Outside of strings JSON has no '<'; inside of them it may not stand in a script element as it is.
  const std::string data = absl::StrReplaceAll(Dump(record), {{"<", "\\u003c"}});
  return std::string(page).replace(marker, sizeof(kMarker) - 1, data);
}

}  // namespace addend
