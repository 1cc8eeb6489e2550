// Nodes: what a call becomes under a policy, from its rule, its values and its references.
#ifndef ADDEND_CORE_LINEARIZE_MAKE_NODE_H_
#define ADDEND_CORE_LINEARIZE_MAKE_NODE_H_

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/linearize/linearization.h"
#include "core/linearize/marks.h"
#include "core/program/view.h"
#include "core/rules/rule.h"
#include "core/run/traced_run.h"

namespace addend {

// The rules, policies and marks that nodes are made from, beside the trace. Refers to the policy.
struct Choices {
  std::vector<const Rule*> rules;  // by call
  CallPolicies policies;
  Marks marks;
};

Choices MakeChoices(const TracedRun& trace, const Registry& registry, const Policy& policy,
                    const std::vector<Probe>& probes);

// The calls that a probe may depend on, whatever rules read.
std::vector<bool> FindLive(const TracedRun& trace, const std::vector<Probe>& probes, bool everything);

// A tensor in the dtype of its rows, as rules get it: half types as float32, and nothing conjugated lazily. `at_least`:
// the dtype that an operator computes in where it is not that of its arguments; Undefined: it is.
at::Tensor Widen(const at::Tensor& tensor, at::ScalarType at_least = at::ScalarType::Undefined);

template <typename Operands>
bool CarriesAny(const Operands& operands) {
  return std::any_of(operands.begin(), operands.end(), CarriesRows);
}

// The node of a call, of which an operand carries rows or rows begin in its output. `stand_ins`, where it is given: by
// output, the references that stand in for those that were not finite; see Note [Stand-ins] in references.h. `finite`:
// the references of all outputs are known to be. Values that it is not made of may have been dropped; the node says if
// they are needed after all. TakeTerms() remains to be called. Throws Error with the operator's position if a rule
// cannot cover the call.
Node MakeNode(const TracedRun& trace, int64_t c, const Choices& choices, std::vector<at::Tensor>* stand_ins = nullptr,
              bool finite = false);

// Reads a node's inner terms where that was left to the caller; see ReadLater() in core/base/host_read.h. The node
// stays where it is until then.
void TakeTerms(Node& node);

// The values that the node of a call is made of, as far as its rule tells, but all values where rows begin, where
// numbers were adopted, and where references or dropped operands are not known to be finite. Values that are not read
// may be missing from the trace when the node is made.
ValuesRead ValuesReadBy(const TracedRun& trace, int64_t c, const Choices& choices);

// Whether the node of a call is made before later references are used, which may depend on it: where a function is not
// finite on the reference, or may have a pole on the way from it. See Note [Stand-ins] in references.h.
struct EarlyNode {
  bool early = false;
  bool by_path = false;  // also where the reference is finite
  bool finite = false;   // the references of all outputs were seen to be
};
EarlyNode LookEarly(const TracedRun& trace, int64_t c, const Choices& choices, bool live);

// Going backward through the calls: whether anything later reads rows that a call gives.
class NeededRows {
 public:
  // All must outlive it. `everything`: all rows are needed.
  NeededRows(const TracedRun& trace, const std::vector<Probe>& probes, bool everything);
  // True if anything later reads rows of a call. Ask for the calls from last to first, and add the nodes of each.
  bool OfCall(int64_t c);
  void Add(const Node& node);

 private:
  const TracedRun& trace_;
  const std::vector<Probe>& probes_;
  bool everything_;
  std::vector<bool> needed_;  // by storage
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_MAKE_NODE_H_
