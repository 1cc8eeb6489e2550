// Options of an eager call, beside its arguments.
#ifndef ADDEND_CORE_COMPOSITION_CALL_OPTIONS_H_
#define ADDEND_CORE_COMPOSITION_CALL_OPTIONS_H_

#include <utility>

#include "core/base/policy.h"

namespace addend {

class Registry;

struct CallOptions {
  CallOptions() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a policy alone is all that most calls are told.
  CallOptions(Policy p, const Registry* r = nullptr) : policy(std::move(p)), registry(r) {}

  // The preset auto means faithful here: every composition brings a reference of its own.
  Policy policy;
  // Rules other than Addend's own; null: Registry::Default(). Must outlive the call.
  const Registry* registry = nullptr;
};

}  // namespace addend

#endif  // ADDEND_CORE_COMPOSITION_CALL_OPTIONS_H_
