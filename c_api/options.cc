#include "c_api/options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/guard.h"
#include "core/base/read_json.h"

namespace addend::c_api {
namespace {

[[noreturn]] void Refuse(const std::string& key, const char* wanted) {
  throw InvalidArgument(absl::StrCat("options: \"", key, "\" is ", wanted));
}

}  // namespace

JsonOptions::JsonOptions(const char* options) : options_(Json::object()) {
  if (options == nullptr) return;
  options_ = ReadJson(Text(options, "options"), "options");
  if (!options_.is_object()) throw InvalidArgument("options is no JSON object");
}

Json JsonOptions::Read(const std::string& key) {
  read_.push_back(key);
  const auto found = options_.find(key);
  return found == options_.end() ? Json(nullptr) : *found;
}

void JsonOptions::Read(const std::string& key, bool* value) {
  const Json given = Read(key);
  if (given.is_null()) return;
  if (!given.is_boolean()) Refuse(key, "true or false");
  *value = given.get<bool>();
}

void JsonOptions::Read(const std::string& key, double* value) {
  const Json given = Read(key);
  if (given.is_null()) return;
  if (!given.is_number() || given.get<double>() < 0) Refuse(key, "a number that is not negative");
  *value = given.get<double>();
}

void JsonOptions::Read(const std::string& key, std::string* value) {
  const Json given = Read(key);
  if (given.is_null()) return;
  if (!given.is_string()) Refuse(key, "a text");
  *value = given.get<std::string>();
}

void JsonOptions::Read(const std::string& key, std::vector<std::string>* value) {
  const Json given = Read(key);
  if (given.is_null()) return;
  const bool texts =
      given.is_array() && std::all_of(given.begin(), given.end(), [](const Json& one) { return one.is_string(); });
  if (!texts) Refuse(key, "a list of texts");
  *value = given.get<std::vector<std::string>>();
}

void JsonOptions::RequireAllRead() const {
  for (const auto& option : options_.items()) {
    if (std::find(read_.begin(), read_.end(), option.key()) != read_.end()) continue;
    throw InvalidArgument(
        absl::StrCat("options: there is no \"", option.key(), "\"; there are ", absl::StrJoin(read_, ", ")));
  }
}

}  // namespace addend::c_api
