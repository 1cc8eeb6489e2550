#include "core/base/read_json.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend {

Json ReadJson(const std::string& text, const std::string& name) {
  bool deep = false;
  // Values are dropped from there on: what is nested a million deep takes no memory.
  const auto shallow = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMostNested;
    return !deep;
  };
  Json value;
  try {
    value = Json::parse(text, shallow);
  } catch (const Json::exception&) {
    throw InvalidArgument(absl::StrCat(name, " is no JSON"));
  }
  if (deep) throw InvalidArgument(absl::StrCat(name, " is nested more than ", kMostNested, " deep"));
  return value;
}

}  // namespace addend
