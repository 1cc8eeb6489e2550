#include "core/linearize/linearization.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/own_operators.h"
#include "core/linearize/make_node.h"
#include "core/linearize/marks.h"
#include "core/linearize/references.h"
#include "core/linearize/stretches.h"
#include "core/program/view.h"
#include "core/rules/fused.h"
#include "core/rules/fused_attention.h"
#include "core/rules/kinds.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Nodes that had to be made in the order of the calls, because later references depend on them.
using EarlyNodes = absl::flat_hash_map<int64_t, Node>;
// Nodes that no value changes, by call.
using KeptNodes = absl::flat_hash_map<int64_t, Node>;

void Replace(const Call& call, const std::vector<at::Tensor>& stand_ins, References& references) {
  for (size_t k = 0; k < stand_ins.size(); ++k) {
    if (stand_ins[k].defined()) references.Replace(call, k, stand_ins[k]);
  }
}

// A call as it is seen before later references are used.
struct Early {
  EarlyNode look;
  Node node;  // if look.early
  std::vector<at::Tensor> stand_ins;
  std::exception_ptr error;  // of making it, which counts if the references are those that were looked at
};

Early LookAt(const TracedRun& trace, size_t c, const Choices& choices, bool live) {
  Early early;
  early.look = LookEarly(trace, static_cast<int64_t>(c), choices, live);
  if (early.look.early) early.node = MakeNode(trace, static_cast<int64_t>(c), choices, &early.stand_ins);
  return early;
}

// Finds, in the order of the calls, where a function is not finite on the reference alone or has a pole on the way from
// it; see Note [Stand-ins]. Returns the nodes that were made for that. `is_finite`: by call, set where the references
// of its outputs were seen to be finite.
EarlyNodes ReplaceBrokenReferences(References& references, const Choices& choices, const std::vector<bool>& live,
                                   std::vector<bool>& is_finite) {
  EarlyNodes nodes;
  const std::vector<Call>& calls = references.recorded()->calls;
  // All calls together, as long as no reference is replaced.
  std::vector<Early> ahead(calls.size());
  const TracedRun* as_recorded = references.trace().get();
  if (as_recorded->HostWaits()) {
    ReadTogether(calls.size(), [&](size_t c) {
      try {
        ahead[c] = LookAt(*as_recorded, c, choices, live[c]);
      } catch (const Error&) {
        ahead[c].error = std::current_exception();
      }
    });
  }
  for (size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    references.Evaluate(call, choices.rules[c]);
    const TracedRun& trace = *references.trace();
    Early early = trace.HostWaits() && &trace == as_recorded ? std::move(ahead[c]) : LookAt(trace, c, choices, live[c]);
    if (early.error) std::rethrow_exception(early.error);
    is_finite[c] = early.look.finite;
    if (!early.look.early) continue;
    if (!early.node.stand_in && !early.look.by_path) continue;
    Replace(call, early.stand_ins, references);
    TakeTerms(early.node);
    nodes.emplace(static_cast<int64_t>(c), std::move(early.node));
  }
  return nodes;
}

// Adds what a node leaves over to the references of its outputs; see Note [Residuals as anchors].
void AbsorbBracket(const Call& call, Node& node, References& references) {
  Rows moves;
  for (const int input : node.inputs) {
    const at::Tensor value = Widen(references.trace()->Value(call.operands[input]));
    const at::Tensor reference = Widen(references.trace()->Reference(call.operands[input]));
    moves.push_back(MoveOf(value, reference).unsqueeze(0));
  }
  Rows passed;
  if (node.map) passed = node.map->Forward(moves);
  bool rounded = false;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Operand& output = call.outputs[k];
    if (!CarriesRows(output)) continue;
    const at::Tensor value = Widen(references.trace()->Value(output));
    const bool moved = k < passed.size() && passed[k].defined();
    const at::Tensor rest = moved ? value - passed[k].select(0, 0) : value;
    // Keep the recorded reference of elements that are not finite: they cannot be split into parts.
    const at::Tensor reference = Widen(references.trace()->Reference(output));
    references.Replace(call, k, at::where(at::isfinite(rest), rest, reference));
    rounded = rounded || value.scalar_type() != output.dtype;
    node.bracket_bound = std::max(node.bracket_bound, 32 * EpsilonOf(value.scalar_type()));
  }
  // A half type cannot hold all of it: what rounding drops stays in the leftover.
  node.keeps_bracket = rounded;
  if (rounded) node.bracket_bound = -1;
}

// Note [Residuals as anchors]
// With Anchor::kResidual the reference of a tensor is all that no component has: after each operator the bracket, which
// is found from the move as in a sweep, joins the reference, f(b) + [f(x) - f(b) - L(X)] = f(x) - L(X), and the later
// operators' references are computed from that. No component is needed for it, so it is done here, once, in the order
// of the calls; nothing is left over for a sweep to find. What a bias rule pays to components does depend on them: it
// stays in the leftover.
EarlyNodes AnchorAtResiduals(References& references, const Choices& choices, const std::vector<bool>& live) {
  EarlyNodes nodes;
  references.AbsorbStartLeftovers();
  const std::vector<Call>& calls = references.recorded()->calls;
  for (size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    if (!live[c] || call.is_view || !call.Traced() || !CarriesAny(call.outputs)) continue;
    references.Evaluate(call, choices.rules[c]);
    std::vector<at::Tensor> stand_ins;
    Node node = MakeNode(*references.trace(), static_cast<int64_t>(c), choices, &stand_ins);
    TakeTerms(node);
    Replace(call, stand_ins, references);
    if (node.keeps_bracket && !node.starts) AbsorbBracket(call, node, references);
    nodes.emplace(static_cast<int64_t>(c), std::move(node));
  }
  return nodes;
}

// Whether what a kept node's map is applied to is finite.
bool AllOperandsFinite(const TracedRun& trace, const Call& call) {
  return std::all_of(call.operands.begin(), call.operands.end(),
                     [&](const Operand& operand) { return !CarriesRows(operand) || trace.ValueIsFinite(operand); });
}

// A node, or the error of making it, which counts if the node is needed.
struct Made {
  std::optional<Node> node;
  std::exception_ptr error;
};

// Nodes of all calls that a probe may depend on, made together. `known`: the calls whose nodes there are.
std::vector<Made> MakeTogether(const TracedRun& trace, const Choices& choices, const std::vector<bool>& live,
                               const std::vector<bool>& is_finite, const std::function<bool(int64_t)>& known) {
  std::vector<Made> all(trace.calls.size());
  ReadTogether(all.size(), [&](size_t c) {
    const Call& call = trace.calls[c];
    const auto index = static_cast<int64_t>(c);
    if (!live[c] || call.is_view || !call.Traced() || !CarriesAny(call.outputs) || known(index)) return;
    all[c] = Made();
    try {
      all[c].node = MakeNode(trace, index, choices, nullptr, is_finite[c]);
      TakeTerms(*all[c].node);
    } catch (const Error&) {
      all[c].error = std::current_exception();
    }
  });
  return all;
}

// Backwards: a call is asked for its rule only when something later reads what it gives.
std::vector<Node> MakeNodes(const TracedRun& trace, const Choices& choices, const std::vector<Probe>& probes,
                            bool everything, const std::vector<bool>& may_matter, EarlyNodes made,
                            const KeptNodes& kept, const std::vector<bool>& is_finite) {
  std::vector<Node> nodes;
  NeededRows needed(trace, probes, everything);
  const auto is_kept = [&](int64_t c) { return kept.contains(c) && AllOperandsFinite(trace, trace.calls[c]); };
  std::vector<Made> together;
  if (trace.HostWaits()) {
    together =
        MakeTogether(trace, choices, may_matter, is_finite, [&](int64_t c) { return made.contains(c) || is_kept(c); });
  }
  for (int64_t c = static_cast<int64_t>(trace.calls.size()) - 1; c >= 0; --c) {
    if (!needed.OfCall(c)) continue;
    const auto known = made.find(c);
    if (known != made.end()) {
      nodes.push_back(std::move(known->second));
    } else if (!together.empty() && together[c].error) {
      std::rethrow_exception(together[c].error);
    } else if (!together.empty() && together[c].node) {
      nodes.push_back(*std::move(together[c].node));
    } else if (is_kept(c)) {
      nodes.push_back(kept.at(c));
    } else {
      nodes.push_back(MakeNode(trace, c, choices, nullptr, is_finite[c]));
      TakeTerms(nodes.back());
    }
    needed.Add(nodes.back());
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<Life> FindLives(const Linearization& linearization) {
  const TracedRun& trace = *linearization.trace;
  std::vector<Life> lives(trace.storages.size());
  const auto touch = [&](int storage, int64_t n) {
    Life& life = lives[storage];
    if (life.last < -1) life.first = n;
    life.last = std::max(life.last, n);
  };
  for (const Start& start : trace.starts) touch(start.operand.storage, -1);
  const int64_t count = static_cast<int64_t>(linearization.nodes.size());
  for (int64_t n = 0; n < count; ++n) {
    const Call& call = trace.calls[linearization.nodes[n].call];
    for (const int input : linearization.nodes[n].inputs) touch(call.operands[input].storage, n);
    for (const Operand& output : call.outputs) {
      if (CarriesRows(output)) touch(output.storage, n);
    }
  }
  for (const Probe& probe : linearization.probes) {
    if (CarriesRows(probe.operand)) touch(probe.operand.storage, count);
  }
  return lives;
}

}  // namespace

int64_t MakerOf(const TracedRun& trace, const Probe& probe) {
  const std::vector<Call>& calls = trace.calls;
  for (int64_t c = std::min<int64_t>(probe.after_call, static_cast<int64_t>(calls.size()) - 1); c > 0; --c) {
    for (const Operand& output : calls[c].outputs) {
      if (!calls[c].is_view && output.storage == probe.operand.storage) return c;
    }
  }
  return 0;
}

void ForEachNodeBackward(const Linearization& linearization, bool hold,
                         const std::function<void(const Node& node, int64_t n)>& visit) {
  if (linearization.stretches != nullptr) {
    linearization.stretches->ForEachNodeBackward(hold, [&](const Node& node) { visit(node, -1); });
    return;
  }
  for (int64_t n = static_cast<int64_t>(linearization.nodes.size()); n-- > 0;) visit(linearization.nodes[n], n);
}

const std::vector<Node>& NodesOf(const Linearization& linearization) {
  return linearization.stretches != nullptr ? linearization.stretches->nodes() : linearization.nodes;
}

int64_t CountOf(const Linearization& linearization, Kind kind) {
  return std::count_if(linearization.nodes.begin(), linearization.nodes.end(),
                       [&](const Node& node) { return node.kind == kind; });
}

std::vector<Probe> OutputsOf(const TracedRun& trace, int64_t call) {
  std::vector<Probe> probes;
  for (const Operand& output : trace.calls[call].outputs) {
    if (output.storage >= 0 && Continuous(output.dtype)) probes.push_back({call, output});
  }
  return probes;
}

std::vector<const Rule*> RulesOfCalls(const TracedRun& trace, const Registry& registry) {
  const std::vector<Call>& calls = trace.calls;
  std::vector<const Rule*> rules(calls.size(), nullptr);
  absl::flat_hash_map<const c10::FunctionSchema*, const Rule*> known;
  for (size_t c = 0; c < calls.size(); ++c) {
    if (!calls[c].Traced()) continue;
    if (calls[c].op.schema().name() == kAttention) {
      rules[c] = &AttentionRule();
      continue;
    }
    const c10::FunctionSchema& schema = calls[c].op.schema();
    const auto [it, is_new] = known.try_emplace(&schema, nullptr);
    if (is_new) it->second = RuleOrFused(registry, RuleName(schema.name()), FullName(schema));
    rules[c] = it->second;
  }
  return rules;
}

struct Preparation::Parts {
  Parts(const TracedRun& trace, const Registry& registry, const Policy& own_policy, std::vector<Probe> asked, bool all)
      : policy(own_policy),
        probes(std::move(asked)),
        everything(all),
        choices(MakeChoices(trace, registry, policy, probes)),
        may_matter(FindLive(trace, probes, everything)) {}

  const Policy policy;
  const std::vector<Probe> probes;
  const bool everything;
  const Choices choices;  // refer to the policy
  const std::vector<bool> may_matter;
  KeptNodes kept;
};

Preparation::Preparation(const TracedRun& trace, const Registry& registry, const Policy& policy,
                         std::vector<Probe> probes, bool everything)
    : parts_(std::make_unique<Parts>(trace, registry, policy, std::move(probes), everything)) {}

Preparation::~Preparation() = default;

void Preparation::KeepNodes(const Linearization& linearization, const std::vector<bool>& steady) {
  const TracedRun& trace = *linearization.trace;
  for (const Node& node : linearization.nodes) {
    const Call& call = trace.calls[node.call];
    const Rule* rule = parts_->choices.rules[node.call];
    const ValuesRead reads = ValuesReadBy(rule, call);
    // Keep no node whose addends, masks or payments depend on the values of the row.
    const bool same = rule != nullptr && rule->addends.count == 0 && !reads.operands && !reads.outputs && node.map &&
                      !node.joint && !node.starts && !node.keeps_bracket && !node.stand_in &&
                      !node.constant.defined() && call.made == nullptr && steady[node.call];
    if (same && AllOperandsFinite(trace, call)) parts_->kept.emplace(node.call, node);
  }
}

Linearization Linearize(std::shared_ptr<const TracedRun> trace, const Registry& registry, const Policy& policy,
                        std::vector<Probe> probes, bool everything) {
  const Preparation preparation(*trace, registry, policy, std::move(probes), everything);
  return Linearize(std::move(trace), preparation);
}

Linearization Linearize(std::shared_ptr<const TracedRun> trace, const Preparation& preparation) {
  c10::AutoGradMode grad(trace->differentiable);
  const Preparation::Parts& parts = *preparation.parts_;
  const Choices& choices = parts.choices;

  Linearization result;
  result.policy = parts.policy;
  result.probes = parts.probes;
  result.probe_marks = choices.marks.of_probes();

  std::vector<bool> is_finite(trace->calls.size(), false);
  References references(std::move(trace));
  EarlyNodes early = parts.policy.anchor == Anchor::kResidual
                         ? AnchorAtResiduals(references, choices, parts.may_matter)
                         : ReplaceBrokenReferences(references, choices, parts.may_matter, is_finite);
  result.trace = references.trace();
  result.recorded = references.recorded();
  // A stand-in is reported even if a later policy freezes the operator's result: its reference was replaced all the
  // same.
  for (const auto& [c, node] : early) {
    if (node.stand_in && parts.may_matter[c]) result.stand_ins.push_back(c);
  }
  std::sort(result.stand_ins.begin(), result.stand_ins.end());
  result.nodes = MakeNodes(*result.trace, choices, result.probes, parts.everything, parts.may_matter, std::move(early),
                           parts.kept, is_finite);
  result.lives = FindLives(result);
  return result;
}

}  // namespace addend
