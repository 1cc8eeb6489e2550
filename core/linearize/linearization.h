// A linearization: a trace with its coefficients under one policy, which is a linear map from the rows of the inputs to
// the rows of every tensor that is needed.
#ifndef ADDEND_CORE_LINEARIZE_LINEARIZATION_H_
#define ADDEND_CORE_LINEARIZE_LINEARIZATION_H_

#include <functional>
#include <memory>
#include <vector>

#include "core/base/policy.h"
#include "core/rules/registry.h"
#include "core/rules/rule.h"
#include "core/run/trace.h"

namespace addend {

// A tensor whose composition is asked for: an operand as it is right after a call (-1: before the first).
struct Probe {
  int64_t after_call = -1;
  Operand operand;
};

// One call that rows pass through. A node without map gives zero rows.
struct Node {
  int64_t call = 0;
  Kind kind = Kind::kLinear;
  std::vector<int> inputs;  // operands of the call, in the map's order
  std::shared_ptr<const LinearMap> map;
  JointFunction joint;  // in place of the map, where the policy's choice is not linear in the components
  // The constant that the operator adds to its first output and pays to components; undefined: there is none, or
  // nothing is paid.
  at::Tensor constant;
  Bias bias = Bias::kResidual;
  double bias_parameter = 0;
  bool starts = false;    // rows begin here: an embedding of labelled ids
  bool ruleless = false;  // the registry has no rule; Policy::missing_rule says what is done instead
  // Whether the bracket of each output, value - reference - L(move), goes to the leftover. Otherwise the rule claims
  // that the bracket is zero, and the sweep only checks it.
  bool keeps_bracket = false;
  // The bound of the bracket relative to the output's largest value, where the policy leaves nothing over; -1: no
  // bound.
  double bracket_bound = -1;
  double inner_terms = 0;   // as the rule says
  at::Tensor unread_terms;  // in its place, until somebody reads it: TakeTerms()
  // Only if memory is limited: values of the call were dropped that the node needs after all. The node is not complete.
  bool lacks_values = false;
  bool stand_in = false;  // the recorded reference of the output was not finite; see references.h
  // How many elements lose their decomposed part to rounding, and the magnitude that they lose it in; see swamped.h.
  int64_t swamped = 0;
  double swamped_in = 0;
};

// The life of a storage's rows: the nodes from the first that touches it to the last that reads it.
struct Life {
  int64_t first = -1;  // -1: before all nodes
  int64_t last = -2;   // the number of nodes: a probe reads it; -1: only a start touches it; -2: nothing does
};

class Stretches;

struct Linearization {
  // The run with the references that nodes were made from: as `recorded`, but for stand-ins and anchors.
  std::shared_ptr<const TracedRun> trace;
  // The run as the model made it. Maps may refer to its calls.
  std::shared_ptr<const TracedRun> recorded;
  Policy policy;            // resolved
  std::vector<Node> nodes;  // in the order of their calls
  std::vector<Life> lives;  // by storage
  std::vector<Probe> probes;
  std::vector<uint32_t> probe_marks;  // bits of Freeze: where each probe's value comes from
  // Operators whose reference was not finite and was replaced; see references.h.
  std::vector<int64_t> stand_ins;
  // Only if memory is limited: makes nodes while a sweep goes back. Those in `nodes` have no maps then.
  std::shared_ptr<Stretches> stretches;
};

// The call that wrote what a probe is.
int64_t MakerOf(const TracedRun& trace, const Probe& probe);

// Calls `visit` for each node with its number, the last first. `hold`: the values and references of its operands and
// outputs are there while it is visited, also where memory is limited. Numbers of nodes are not known there: they are
// -1.
void ForEachNodeBackward(const Linearization& linearization, bool hold,
                         const std::function<void(const Node& node, int64_t n)>& visit);
// All nodes; of a linearization with stretches those of the last sweep.
const std::vector<Node>& NodesOf(const Linearization& linearization);

// The rule of each call, or null.
std::vector<const Rule*> RulesOfCalls(const TracedRun& trace, const Registry& registry);

// The parts of a linearization that do not depend on values: which rule, which policy and which marks each call has,
// and which calls matter. Found once for runs that differ in their values only.
class Preparation {
 public:
  // `everything`: for all traced calls. The policy is copied; the registry must outlive the preparation.
  Preparation(const TracedRun& trace, const Registry& registry, const Policy& policy, std::vector<Probe> probes,
              bool everything);
  ~Preparation();
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  // Keeps nodes that are the same whatever the values are, as long as these are finite: of rules that read none of
  // them, such as a product with weights. steady: by call, whether what it reads beside decomposed tensors is the same
  // in all runs, and so is every reference. Call it once, before the preparation is shared.
  void KeepNodes(const Linearization& linearization, const std::vector<bool>& steady);

 private:
  friend Linearization Linearize(std::shared_ptr<const TracedRun> trace, const Preparation& preparation);
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Linearizes the calls that the probes depend on; rules are not asked about others. The trace stays as it is.
// `everything`: linearizes all traced calls. Throws Error with the operator's position if a rule cannot cover a call.
Linearization Linearize(std::shared_ptr<const TracedRun> trace, const Registry& registry, const Policy& policy,
                        std::vector<Probe> probes, bool everything);
// Linearizes a run that differs only in its values from the one that the preparation was made of.
Linearization Linearize(std::shared_ptr<const TracedRun> trace, const Preparation& preparation);

// Counts the nodes of a kind.
int64_t CountOf(const Linearization& linearization, Kind kind);

// Returns probes of all results of a call.
std::vector<Probe> OutputsOf(const TracedRun& trace, int64_t call);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_LINEARIZATION_H_
