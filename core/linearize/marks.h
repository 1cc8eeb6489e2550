// Policies and marks of each call: which choices hold for it, and which operators made its operands.
#ifndef ADDEND_CORE_LINEARIZE_MARKS_H_
#define ADDEND_CORE_LINEARIZE_MARKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/policy.h"
#include "core/program/traced_calls.h"
#include "core/rules/rule.h"
#include "core/run/traced_run.h"

namespace addend {

struct Probe;

// The policy with its overrides applied, call by call. Refers to the policy that it is made from.
class CallPolicies {
 public:
  CallPolicies(const TracedCalls& traced, const Policy& policy);
  const Policy& Of(size_t call) const { return own_.empty() ? *common_ : own_[call]; }
  bool differ() const { return !own_.empty(); }

 private:
  const Policy* common_;
  std::vector<Policy> own_;  // by call, where there are overrides
};

// The marks of provenance, see Note [Provenance] in core/rules/rule.h. The call that makes a marked tensor settles
// whether the tensor is frozen or comes before its content: an override for softmax holds for the results of softmax,
// wherever they are used.
class Marks {
 public:
  // `rules`: by call, null where there is none. `probes`: whose marks are asked for; see of_probes.
  Marks(const TracedRun& trace, const std::vector<const Rule*>& rules, const CallPolicies& policies,
        const std::vector<Probe>& probes);
  // Bits of Freeze that the operand of a call has and that are to be frozen.
  uint32_t Frozen(size_t call, size_t operand) const { return Of(call, operand).frozen; }
  // Bits of Freeze that the operand of a call has and that are content_first, and not frozen.
  uint32_t ContentFirst(size_t call, size_t operand) const { return Of(call, operand).content_first; }
  // Bits of ContentFirst that share by magnitude (Policy::by_magnitude).
  uint32_t ByMagnitude(size_t call, size_t operand) const { return Of(call, operand).by_magnitude; }
  // The marks of each probe's value.
  const std::vector<uint32_t>& of_probes() const { return of_probes_; }

 private:
  struct Mark {
    // `made` under the policy of the call that makes it.
    static Mark Of(uint32_t made, const Policy& policy);
    // Keeps the marks that two tensors have in common.
    Mark& operator&=(const Mark& other);
    Mark& operator|=(const Mark& other);

    uint32_t origin = 0;
    uint32_t frozen = 0;         // those of them that the policy of the call that made them freezes
    uint32_t content_first = 0;  // those that it does not freeze and for which content comes first
    uint32_t by_magnitude = 0;   // those of these that share by magnitude
  };
  Mark Of(size_t call, size_t operand) const;
  bool Overwrites(const c10::FunctionSchema& schema);
  void Follow(const TracedRun& trace, const Call& call, const Rule* rule, const Policy& policy,
              std::vector<Mark>& by_storage);

  std::vector<c10::SmallVector<Mark, 4>> by_call_;  // by call and operand
  absl::flat_hash_map<int, Operand> gate_of_;       // a storage that a gate was written to, and what it gates by
  std::vector<uint32_t> of_probes_;
  absl::flat_hash_map<const c10::FunctionSchema*, bool> overwrites_;  // what OperatorTraits say
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_MARKS_H_
