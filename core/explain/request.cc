#include "core/explain/request.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend {
namespace {

// Reads the value of an option. Each returns nullptr, or what is expected where the text is no such value.
const char* Read(const std::string& text, bool* flag) {
  *flag = text == "true";
  return *flag || text == "false" ? nullptr : "true or false";
}

const char* Read(const std::string& text, int64_t* bytes) {
  return absl::SimpleAtoi(text, bytes) && *bytes >= 0 ? nullptr : "a number of bytes that is whole and not negative";
}

const char* Read(const std::string& text, double* seconds) {
  const bool number = absl::SimpleAtod(text, seconds) && std::isfinite(*seconds) && *seconds >= 0;
  return number ? nullptr : "a number of seconds from 0 on";
}

const char* Read(const std::string& text, std::string* own) {
  *own = text;
  return nullptr;
}

const char* Read(const std::string& text, Direction* direction) {
  *direction = ParseDirection(text);
  return nullptr;
}

}  // namespace

void SetRequestOption(RequestOptions& options, const std::string& key, const std::string& value) {
  std::string known;
  for (const RequestOption& option : RequestOptionTable()) {
    if (key == option.key) {
      return std::visit(
          [&](auto field) {
            auto read = options.*field;
            if (const char* expected = Read(value, &read)) {
              throw InvalidArgument(
                  absl::StrCat("the option ", key, " is \"", value, "\"; ", expected, " is expected"));
            }
            options.*field = read;
          },
          option.field);
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", option.key);
  }
  throw InvalidArgument(absl::StrCat("a request has no option \"", key, "\"; its options are ", known));
}

}  // namespace addend
