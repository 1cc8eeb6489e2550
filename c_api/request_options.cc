#include "c_api/request_options.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend::c_api {
namespace {

[[noreturn]] void Refuse(const std::string& key, const std::string& value, const char* expected) {
  throw InvalidArgument(absl::StrCat("the option ", key, " is \"", value, "\"; ", expected, " is expected"));
}

template <bool RequestBody::*field>
void Flag(RequestBody& request, const std::string& key, const std::string& value) {
  if (value != "true" && value != "false") Refuse(key, value, "true or false");
  request.*field = value == "true";
}

void At(RequestBody& request, const std::string& /*key*/, const std::string& value) { request.explained = value; }

void SetDirection(RequestBody& request, const std::string& /*key*/, const std::string& value) {
  request.direction = ParseDirection(value);
}

void Memory(RequestBody& request, const std::string& key, const std::string& value) {
  int64_t bytes = 0;
  if (!absl::SimpleAtoi(value, &bytes) || bytes < 0)
    Refuse(key, value, "a number of bytes that is whole and not negative");
  request.memory_bytes = bytes;
}

void Timeout(RequestBody& request, const std::string& key, const std::string& value) {
  double seconds = 0;
  if (!absl::SimpleAtod(value, &seconds) || !std::isfinite(seconds) || seconds < 0) {
    Refuse(key, value, "a number of seconds from 0 on");
  }
  request.timeout = seconds;
}

struct Option {
  const char* key;
  void (*set)(RequestBody& request, const std::string& key, const std::string& value);
};

constexpr Option kOptions[] = {
    {"at", At},
    {"direction", SetDirection},
    {"each_example", Flag<&RequestBody::each_example>},
    {"every_target", Flag<&RequestBody::every_target>},
    {"everything", Flag<&RequestBody::everything>},
    {"keep_references", Flag<&RequestBody::keep_references>},
    {"learn_sizes", Flag<&RequestBody::learn_sizes>},
    {"memory", Memory},
    {"operators", Flag<&RequestBody::operators>},
    {"timeout", Timeout},
    {"verify_reference", Flag<&RequestBody::verify_reference>},
};

}  // namespace

void SetRequestOption(RequestBody& request, const std::string& key, const std::string& value) {
  std::string known;
  for (const Option& option : kOptions) {
    if (key == option.key) return option.set(request, key, value);
    absl::StrAppend(&known, known.empty() ? "" : ", ", option.key);
  }
  throw InvalidArgument(absl::StrCat("a request has no option \"", key, "\"; its options are ", known));
}

}  // namespace addend::c_api
