// Request of an attribution as JSON: splits, baselines, targets and policy, without the model and the numbers of the
// inputs. Records of decisions and jobs hold it.
#ifndef ADDEND_CORE_AUDIT_REQUEST_H_
#define ADDEND_CORE_AUDIT_REQUEST_H_

#include <c10/core/Device.h>

#include <vector>

#include "core/base/json.h"
#include "core/explain/attribute.h"
#include "core/explain/input.h"

namespace addend {

struct AskedRequest {
  std::vector<Input> inputs;  // arguments, then what is split inside the model
  AttributeOptions options;
  bool own_rules = false;   // rules other than Addend's own: no JSON can hold them
  bool structured = false;  // arguments that are no tensors: no JSON can hold them yet
};

// Values of inputs are left out, and so are explicit parts; a word for a baseline that is read from a file becomes the
// numbers that it stands for, for which the input's value is needed.
Json RequestJson(const AskedRequest& request);

// The request again, on a device: its inputs have no values and, but for those inside the model, no names. `arguments`:
// by argument, an object whose "parts" are the explicit parts of that input, where it was split so; may be empty.
// Throws FailedPrecondition for what no JSON holds, and Json::exception for JSON that no RequestJson() wrote.
AskedRequest RequestOfJson(const Json& content, const Json& arguments, const c10::Device& device);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_REQUEST_H_
