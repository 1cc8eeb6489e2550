// The options of requests by their keys: for texts that set them, and for records that keep them.
#ifndef ADDEND_CORE_EXPLAIN_REQUEST_H_
#define ADDEND_CORE_EXPLAIN_REQUEST_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/explain/request_options.h"
#include "core/linearize/direction.h"

namespace addend {

struct RequestOption {
  using Field = std::variant<bool RequestOptions::*, int64_t RequestOptions::*, double RequestOptions::*,
                             std::string RequestOptions::*, Direction RequestOptions::*>;
  // Whether the record of a decision has the option: never, as the numbers do not depend on it; only where it is not
  // the default; always.
  enum class Record { kNever, kWhereSet, kAlways };

  const char* key;
  Field field;
  Record record;
};

// In the order of the list.
const std::vector<RequestOption>& RequestOptionTable();

// Sets an option as addend_request_set_option() says. Throws InvalidArgument for unknown keys and for values that are
// none of the option.
void SetRequestOption(RequestOptions& options, const std::string& key, const std::string& value);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_REQUEST_H_
