// Options as a JSON object, for functions with many that few callers need.
#ifndef ADDEND_C_API_OPTIONS_H_
#define ADDEND_C_API_OPTIONS_H_

#include <string>
#include <vector>

#include "core/base/json.h"

namespace addend::c_api {

// Every function throws InvalidArgument that names the key.
class JsonOptions {
 public:
  // NULL: every option is left out.
  explicit JsonOptions(const char* options);

  // Reads an option; if it is left out, `value` stays as it is.
  void Read(const std::string& key, bool* value);
  void Read(const std::string& key, double* value);
  void Read(const std::string& key, std::string* value);
  void Read(const std::string& key, std::vector<std::string>* value);
  // Null where it is left out.
  Json Read(const std::string& key);
  // That there is no key which nobody has read.
  void RequireAllRead() const;

 private:
  Json options_;
  std::vector<std::string> read_;
};

}  // namespace addend::c_api

#endif  // ADDEND_C_API_OPTIONS_H_
