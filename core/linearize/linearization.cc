#include "core/linearize/linearization.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/linearize/marks.h"
#include "core/linearize/references.h"
#include "core/linearize/rerun.h"
#include "core/linearize/row_sums.h"
#include "core/linearize/swamped.h"
#include "core/linearize/view.h"
#include "core/rules/fused.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"

namespace addend {
namespace {

// Rows of half types are float32; so are the values that coefficients come from. Rules get what lies in memory: no lazy
// conjugates.
at::Tensor Widen(const at::Tensor& tensor) {
  if (!tensor.defined() || !Continuous(tensor.scalar_type())) return tensor;
  return Resolved(tensor).to(RowDtype(tensor.scalar_type()));
}

RuleCall DescribeForRule(const TracedRun& trace, const Call& call, const Policy& policy, const Marks& marks) {
  RuleCall described;
  static_cast<CallArguments&>(described) = ArgumentsOf(call, call.arguments);
  described.policy = &policy;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const Operand& operand = call.operands[k];
    RuleOperand own;
    own.value = Widen(trace.Value(operand));
    own.decomposed = CarriesRows(operand);
    own.reference = own.decomposed ? Widen(trace.Reference(operand)) : own.value;
    own.marks = marks.Frozen(call.index, k);
    own.content_first = marks.ContentFirst(call.index, k);
    own.argument = operand.argument;
    own.written = operand.written;
    described.operands.push_back(std::move(own));
  }
  for (const Operand& output : call.outputs) {
    described.outputs.push_back({Widen(trace.Value(output)), Widen(trace.Reference(output))});
  }
  described.run = [&call](const std::vector<c10::IValue>& arguments, const std::vector<at::Tensor>& operands) {
    return Rerun(call, arguments, operands);
  };
  return described;
}

bool IsHalf(at::ScalarType dtype) {
  const at::ScalarType real = c10::toRealValueType(dtype);
  return real == at::kHalf || real == at::kBFloat16;
}

// Secants of half types would be made of rounding where the move is small: their ends are computed in float32.
void SharpenHalfOutputs(const Call& call, RuleCall& described) {
  if (call.outputs.size() != 1 || !IsHalf(call.outputs[0].dtype)) return;
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> references;
  for (const RuleOperand& operand : described.operands) {
    values.push_back(operand.value);
    references.push_back(operand.reference);
  }
  described.outputs[0] = {described.run(described.arguments, values)[0],
                          described.run(described.arguments, references)[0]};
}

// What rounding alone may leave of an output, relative to its largest value: a sum of K terms errs by eps sqrt(K) or
// so. The sizes of the operands tell K: a product of [M, K] and [K, N] has MK * KN / MN = K^2.
double RoundingOf(const RuleCall& call, const at::Tensor& output, at::ScalarType dtype) {
  double square = 1;
  for (const RuleOperand& operand : call.operands) {
    if (operand.value.defined() && Continuous(operand.value.scalar_type()))
      square *= std::max<double>(operand.value.numel(), 1);
  }
  square = std::max(square / std::max<double>(output.numel(), 1), 1.0);
  // What was in single precision is rounded as such, whatever the output is.
  double eps = EpsilonOf(output.scalar_type());
  for (const RuleOperand& operand : call.operands) {
    if (operand.decomposed) eps = std::max(eps, EpsilonOf(operand.value.scalar_type()));
  }
  // Half types hardly ever round more than their results.
  const at::ScalarType real = c10::toRealValueType(dtype);
  const double steps = real == at::kHalf ? 8 * 0x1p-10 : real == at::kBFloat16 ? 8 * 0x1p-7 : 32 * eps;
  return steps * std::sqrt(std::sqrt(square));
}

// Whether the map reads the rows of every decomposed operand.
bool ReadsAll(const RuleCall& call, const RuleResult& rule) {
  bool all_read = true;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RuleOperand& operand = call.operands[k];
    if (!operand.decomposed) continue;
    // What is overwritten counts as read: nothing of it is left in the output.
    const bool overwritten = operand.written && !rule.map;
    const bool read = std::find(rule.inputs.begin(), rule.inputs.end(), static_cast<int>(k)) != rule.inputs.end();
    all_read = all_read && (read || overwritten);
  }
  return all_read;
}

// Whether an operand is NaN or infinite where its reference is not. Such an element has no parts, so that what the
// operator makes of it (1 / infinity is 0) is leftover.
bool ComesFromInfinity(const RuleCall& call) {
  return std::any_of(call.operands.begin(), call.operands.end(), [](const RuleOperand& operand) {
    if (!operand.decomposed || operand.value.numel() == 0 || AllFinite(operand.value)) return false;
    const at::Tensor both_nan = at::isnan(operand.value).logical_and_(at::isnan(operand.reference));
    const at::Tensor same = operand.value.eq(operand.reference).logical_or_(both_nan);
    return at::isfinite(operand.value).logical_or_(same).logical_not_().any().item<bool>();
  });
}

// Whether the rule accounts for everything, and how exactly.
void ClaimBracket(const Call& recorded, const RuleCall& call, const RuleResult& rule, Node& node) {
  bool half = false;  // the value was rounded to fewer digits than rows have: that is leftover
  for (const Operand& output : recorded.outputs) half = half || (CarriesRows(output) && IsHalf(output.dtype));
  const bool all_read = ReadsAll(call, rule);
  const bool from_infinity = ComesFromInfinity(call);
  node.keeps_bracket = !rule.exact || !all_read || half || from_infinity;
  if (from_infinity || ((!rule.exact || !all_read) && rule.quadrature == 0)) return;
  if (recorded.adopted > 0) {
    node.keeps_bracket = true;
    if (!std::isfinite(recorded.adopted)) return;
  }
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const at::Tensor& output = call.outputs[k].value;
    if (!output.defined() || !Continuous(output.scalar_type())) continue;
    // Of what many steps are composed to, the rule says what rounding may come to: sizes tell nothing.
    const bool composed = rule.kind == Kind::kRewrite && rule.quadrature > 0 && !IsHalf(recorded.outputs[k].dtype);
    const double rounding = composed ? 0 : RoundingOf(call, output, recorded.outputs[k].dtype);
    // A tolerance that the user set for recovery holds for the bracket too.
    const double allowed = call.policy->tolerance.value_or(0);
    node.bracket_bound = std::max({node.bracket_bound, rounding + 4 * rule.quadrature + recorded.adopted, allowed});
  }
}

// Rules are for real numbers unless they say otherwise.
void RequireComplexRule(const Rule& rule, const Call& call) {
  const auto complex = [](const Operand& operand) { return operand.storage >= 0 && at::isComplexType(operand.dtype); };
  if (rule.complex || (std::none_of(call.operands.begin(), call.operands.end(), complex) &&
                       std::none_of(call.outputs.begin(), call.outputs.end(), complex))) {
    return;
  }
  throw Unimplemented(absl::StrCat("the rule of ", FullName(call.op.schema()), " covers real numbers only"));
}

bool IsBroken(const RuleOutput& output) {
  if (!output.value.defined() || !Continuous(output.value.scalar_type()) || AllFinite(output.reference)) return false;
  return at::isfinite(output.reference).logical_not_().logical_and_(at::isfinite(output.value)).any().item<bool>();
}

bool HasBrokenReference(const RuleCall& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), IsBroken);
}

// The rule where nothing moves, which is the derivative at the value, and the references that make it meet the value.
RuleResult LinearizeAtValue(const RuleFunction& build, const RuleCall& call, std::vector<at::Tensor>* replaced) {
  RuleCall at_rest = call;
  for (RuleOperand& operand : at_rest.operands) operand.reference = operand.value;
  for (RuleOutput& output : at_rest.outputs) output.reference = output.value;
  RuleResult result = build(at_rest);
  Rows moves;
  for (const int input : result.inputs) {
    const at::Tensor move = call.Move(input);
    moves.push_back(move.masked_fill(at::isfinite(move).logical_not_(), 0).unsqueeze(0));
  }
  Rows moved;
  if (result.map) moved = result.map->Forward(moves);
  moved.resize(call.outputs.size());
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const at::Tensor& value = call.outputs[k].value;
    if (!value.defined() || !Continuous(value.scalar_type())) continue;
    (*replaced)[k] = moved[k].defined() ? value - moved[k].select(0, 0) : value;
  }
  return result;
}

// What nodes are made from, beside the trace.
struct Choices {
  std::vector<const Rule*> rules;  // by call
  CallPolicies policies;
  Marks marks;
};

// The policy for a call's rule. What is frozen was settled where it was made (see Marks): where calls have policies of
// their own, products follow the marks of their factors.
Policy PolicyForRule(const TracedRun& trace, int64_t c, const Choices& choices) {
  Policy policy = choices.policies.Of(c);
  const Rule* rule = choices.rules[c];
  const bool multiplies =
      rule != nullptr && (rule->kind == Kind::kBilinear || rule->kind == Kind::kLinear || rule->kind == Kind::kAffine);
  if (!choices.policies.differ() || !multiplies) return policy;
  uint32_t frozen = policy.FrozenKinds();
  for (size_t k = 0; k < trace.program.calls[c].operands.size(); ++k) frozen |= choices.marks.Frozen(c, k);
  policy.freeze = frozen;
  return policy;
}

// What an operator adds whatever its inputs are, where the policy pays it to somebody.
at::Tensor ConstantOf(const RuleCall& call, const RuleResult& rule) {
  if (call.policy->bias == Bias::kResidual || call.outputs.empty() || !call.outputs[0].value.defined()) return {};
  const at::Tensor& reference = call.outputs[0].reference;
  at::Tensor constant = rule.constant;
  if (!constant.defined()) {
    if (rule.kind != Kind::kAffine || !rule.map || !rule.exact || !ReadsAll(call, rule)) return {};
    Rows references;
    for (const int input : rule.inputs) references.push_back(call.operands[input].reference.unsqueeze(0));
    const at::Tensor passed = rule.map->Forward(references)[0].select(0, 0);
    constant = reference - passed;
    // Rounding is no constant, and neither is an infinity: nobody can be paid one.
    const at::Tensor noise = (reference.abs() + passed.abs()) * RoundingOf(call, reference, reference.scalar_type());
    constant = constant.masked_fill(constant.abs().le(noise).logical_or(at::isfinite(constant).logical_not()), 0);
  }
  return constant / static_cast<double>(call.policy->segments);  // each piece of the line pays its share
}

// See Note [Swamped elements].
void LoseSwamped(const Call& call, const RuleCall& described, const Rule& rule, Node& node) {
  const Swamped swamped = FindSwamped(call, described, rule.addends);
  node.keeps_bracket = node.keeps_bracket || swamped.rounds;
  if (!swamped.elements.defined()) return;
  node.map = MapWithout(std::move(node.map), swamped.elements);
  node.swamped = swamped.count;
  node.swamped_in = swamped.value;
}

template <typename Operands>
bool CarriesAny(const Operands& operands) {
  return std::any_of(operands.begin(), operands.end(), CarriesRows);
}

// `finite`: the references of all outputs are known to be.
Node MakeNode(const TracedRun& trace, int64_t c, const Choices& choices, std::vector<at::Tensor>* stand_ins = nullptr,
              bool finite = false) {
  const Call& call = trace.program.calls[c];
  const Rule* rule = choices.rules[c];
  Node node;
  node.call = c;
  if (trace.StartsRows(call)) {
    node.kind = Kind::kStart;
    node.starts = true;
    return node;
  }
  if (!CarriesAny(call.operands)) {
    // Made of conditions that are others on the baseline: no component has any of it.
    node.kind = Kind::kStart;
    node.keeps_bracket = true;
    return node;
  }
  const Policy policy = PolicyForRule(trace, c, choices);
  RuleCall described = DescribeForRule(trace, call, policy, choices.marks);
  RuleResult built;
  std::vector<at::Tensor> replaced(call.outputs.size());
  try {
    if (rule != nullptr && rule->kind == Kind::kPointwise) SharpenHalfOutputs(call, described);
    RuleFunction build;
    if (rule != nullptr) {
      RequireComplexRule(*rule, call);
      build = rule->build;
    } else if (policy.missing_rule == MissingRule::kPath) {
      build = PathThroughAutograd;
    }
    if (build) {
      built = build(described);
    } else {
      built.kind = Kind::kAbsorbed;
      built.exact = false;
    }
    for (size_t k = 0; k < built.stand_ins.size(); ++k) replaced[k] = built.stand_ins[k];
    const bool stands_in =
        std::any_of(replaced.begin(), replaced.end(), [](const at::Tensor& t) { return t.defined(); });
    if (!stands_in && build && !finite && HasBrokenReference(described)) {
      built = LinearizeAtValue(build, described, &replaced);
    }
  } catch (const Error& e) {
    throw Error(e.code(), e.what(), call.position, "see docs/extending.md");
  } catch (const c10::Error& e) {
    throw Error(absl::StatusCode::kInternal,
                absl::StrCat("the rule of ", FullName(call.op.schema()), " fails: ", e.what_without_backtrace()),
                call.position);
  }
  ClaimBracket(call, described, built, node);
  if (trace.StepsOfConditions(call)) {
    node.keeps_bracket = true;
    node.bracket_bound = -1;
  }
  node.ruleless = rule == nullptr;
  node.constant = ConstantOf(described, built);
  node.bias = policy.bias;
  node.bias_parameter = policy.BiasParameter();
  node.kind = built.kind;
  node.inputs = std::move(built.inputs);
  node.map = std::move(built.map);
  node.joint = std::move(built.joint);
  node.inner_terms = built.inner_terms;
  if (rule != nullptr && node.map && !node.joint) LoseSwamped(call, described, *rule, node);
  for (const at::Tensor& reference : replaced) node.stand_in = node.stand_in || reference.defined();
  if (stand_ins != nullptr) *stand_ins = std::move(replaced);
  return node;
}

// Nodes that had to be made in the order of the calls, because later references depend on them.
using EarlyNodes = absl::flat_hash_map<int64_t, Node>;

void Replace(const Call& call, const std::vector<at::Tensor>& stand_ins, References& references) {
  for (size_t k = 0; k < stand_ins.size(); ++k) {
    if (stand_ins[k].defined()) references.Replace(call, k, stand_ins[k]);
  }
}

// Finds, in the order of the calls, where a function is not finite on the reference alone or has a pole on the way from
// it; see Note [Stand-ins]. Returns the nodes that were made for that. `is_finite`: by call, set where the references
// of its outputs were seen to be finite.
EarlyNodes ReplaceBrokenReferences(References& references, const Choices& choices, const std::vector<bool>& live,
                                   std::vector<bool>& is_finite) {
  EarlyNodes nodes;
  const std::vector<Call>& calls = references.recorded()->program.calls;
  for (size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    const Rule* rule = choices.rules[c];
    references.Follow(call, rule);
    if (call.is_view || !call.Traced() || call.outputs.empty()) continue;
    // A softmax has no poles.
    const bool may_break = rule != nullptr && rule->kind == Kind::kPath && rule->mark != kFreezeAttention;
    const bool by_path =
        rule == nullptr ? choices.policies.Of(c).missing_rule == MissingRule::kPath : may_break || rule->has_poles;
    if (rule == nullptr && !by_path) continue;
    const bool finite = std::all_of(call.outputs.begin(), call.outputs.end(), [&](const Operand& output) {
      return !CarriesRows(output) || references.trace()->ReferenceIsFinite(output);
    });
    is_finite[c] = finite;
    if (!CarriesAny(call.outputs) || (finite && !(by_path && live[c]))) continue;
    std::vector<at::Tensor> stand_ins;
    Node node = MakeNode(*references.trace(), static_cast<int64_t>(c), choices, &stand_ins);
    if (!node.stand_in && !by_path) continue;
    Replace(call, stand_ins, references);
    nodes.emplace(static_cast<int64_t>(c), std::move(node));
  }
  return nodes;
}

// The calls that a probe may depend on, whatever rules read.
std::vector<bool> FindLive(const TracedRun& trace, const std::vector<Probe>& probes, bool everything) {
  const std::vector<Call>& calls = trace.program.calls;
  std::vector<bool> live(calls.size(), everything);
  if (everything) return live;
  std::vector<bool> needed(trace.program.storages.size(), false);
  for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= 0; --c) {
    for (const Probe& probe : probes) {
      if (probe.after_call == c && CarriesRows(probe.operand)) needed[probe.operand.storage] = true;
    }
    for (const Operand& output : calls[c].outputs) live[c] = live[c] || (CarriesRows(output) && needed[output.storage]);
    if (!live[c]) continue;
    for (const Operand& operand : calls[c].operands) {
      if (CarriesRows(operand)) needed[operand.storage] = true;
    }
  }
  return live;
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
    // What is infinite has no parts and stays as it was.
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
  const std::vector<Call>& calls = references.recorded()->program.calls;
  for (size_t c = 0; c < calls.size(); ++c) {
    const Call& call = calls[c];
    if (!live[c] || call.is_view || !call.Traced() || !CarriesAny(call.outputs)) continue;
    references.Follow(call, choices.rules[c]);
    std::vector<at::Tensor> stand_ins;
    Node node = MakeNode(*references.trace(), static_cast<int64_t>(c), choices, &stand_ins);
    Replace(call, stand_ins, references);
    if (node.keeps_bracket && !node.starts) AbsorbBracket(call, node, references);
    nodes.emplace(static_cast<int64_t>(c), std::move(node));
  }
  return nodes;
}

// Backwards: a call is asked for its rule only when something later reads what it gives.
std::vector<Node> MakeNodes(const TracedRun& trace, const Choices& choices, const std::vector<Probe>& probes,
                            bool everything, EarlyNodes made, const std::vector<bool>& is_finite) {
  const std::vector<Call>& calls = trace.program.calls;
  std::vector<Node> nodes;
  std::vector<bool> needed(trace.program.storages.size(), everything);
  const auto is_needed = [&](const Operand& output) { return CarriesRows(output) && needed[output.storage]; };
  for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= 0; --c) {
    for (const Probe& probe : probes) {
      if (probe.after_call == c && CarriesRows(probe.operand)) needed[probe.operand.storage] = true;
    }
    const Call& call = calls[c];
    if (call.is_view || !call.Traced()) continue;
    if (std::none_of(call.outputs.begin(), call.outputs.end(), is_needed)) continue;
    const auto known = made.find(c);
    Node node = known != made.end() ? std::move(known->second) : MakeNode(trace, c, choices, nullptr, is_finite[c]);
    for (const Operand& output : call.outputs) {
      if (!CarriesRows(output)) continue;
      // Rows are born here unless the call writes into a storage that had some before.
      const bool had_rows = std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
        return operand.written && operand.storage == output.storage && operand.decomposed;
      });
      needed[output.storage] = everything || had_rows;
    }
    for (const int input : node.inputs) needed[call.operands[input].storage] = true;
    nodes.push_back(std::move(node));
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<Life> FindLives(const Linearization& linearization) {
  const TracedRun& trace = *linearization.trace;
  std::vector<Life> lives(trace.program.storages.size());
  const auto touch = [&](int storage, int64_t n) {
    Life& life = lives[storage];
    if (life.last < -1) life.first = n;
    life.last = std::max(life.last, n);
  };
  for (const Start& start : trace.starts) touch(start.operand.storage, -1);
  const int64_t count = static_cast<int64_t>(linearization.nodes.size());
  for (int64_t n = 0; n < count; ++n) {
    const Call& call = trace.program.calls[linearization.nodes[n].call];
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

int64_t CountOf(const Linearization& linearization, Kind kind) {
  return std::count_if(linearization.nodes.begin(), linearization.nodes.end(),
                       [&](const Node& node) { return node.kind == kind; });
}

std::vector<Probe> OutputsOf(const TracedRun& trace, int64_t call) {
  std::vector<Probe> probes;
  for (const Operand& output : trace.program.calls[call].outputs) {
    if (output.storage >= 0 && Continuous(output.dtype)) probes.push_back({call, output});
  }
  return probes;
}

std::vector<const Rule*> RulesOfCalls(const TracedRun& trace, const Registry& registry) {
  const std::vector<Call>& calls = trace.program.calls;
  std::vector<const Rule*> rules(calls.size(), nullptr);
  absl::flat_hash_map<const c10::FunctionSchema*, const Rule*> known;
  for (size_t c = 0; c < calls.size(); ++c) {
    if (!calls[c].Traced()) continue;
    const c10::FunctionSchema& schema = calls[c].op.schema();
    const auto [it, is_new] = known.try_emplace(&schema, nullptr);
    if (is_new) it->second = RuleOrFused(registry, RuleName(schema.name()), FullName(schema));
    rules[c] = it->second;
  }
  return rules;
}

Linearization Linearize(std::shared_ptr<const TracedRun> trace, const Registry& registry, const Policy& policy,
                        std::vector<Probe> probes, bool everything) {
  c10::AutoGradMode grad(trace->differentiable);
  std::vector<const Rule*> rules = RulesOfCalls(*trace, registry);
  const CallPolicies policies(trace->program, policy);
  Marks marks(*trace, rules, policies, probes);
  const Choices choices{std::move(rules), policies, std::move(marks)};

  Linearization result;
  result.policy = policy;
  result.probes = std::move(probes);
  result.probe_marks = choices.marks.of_probes();

  const std::vector<bool> may_matter = FindLive(*trace, result.probes, everything);
  std::vector<bool> is_finite(trace->program.calls.size(), false);
  References references(std::move(trace));
  EarlyNodes early = policy.anchor == Anchor::kResidual
                         ? AnchorAtResiduals(references, choices, may_matter)
                         : ReplaceBrokenReferences(references, choices, may_matter, is_finite);
  result.trace = references.trace();
  result.recorded = references.recorded();
  // A stand-in is reported even if a later policy freezes the operator's result: its reference was replaced all the
  // same.
  for (const auto& [c, node] : early) {
    if (node.stand_in && may_matter[c]) result.stand_ins.push_back(c);
  }
  std::sort(result.stand_ins.begin(), result.stand_ins.end());
  result.nodes = MakeNodes(*result.trace, choices, result.probes, everything, std::move(early), is_finite);
  result.lives = FindLives(result);
  return result;
}

}  // namespace addend
