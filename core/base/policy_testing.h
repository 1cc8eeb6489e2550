// Policies that tests ask for.
#ifndef ADDEND_CORE_BASE_POLICY_TESTING_H_
#define ADDEND_CORE_BASE_POLICY_TESTING_H_

#include <string>
#include <utility>
#include <vector>

#include "core/base/policy.h"

namespace addend {

// Keys and values as SetPolicyField takes them.
using PolicyFields = std::vector<std::pair<std::string, std::string>>;

// The faithful policy with these fields set, in their order.
inline Policy PolicyOf(const PolicyFields& fields) {
  Policy policy;
  policy.preset = Preset::kFaithful;
  for (const auto& [key, value] : fields) SetPolicyField(policy, key, value);
  return policy;
}

}  // namespace addend

#endif  // ADDEND_CORE_BASE_POLICY_TESTING_H_
