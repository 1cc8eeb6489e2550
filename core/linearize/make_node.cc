#include "core/linearize/make_node.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/linearize/swamped.h"
#include "core/program/invoke.h"
#include "core/program/view.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"
#include "core/run/role.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Stand-in for a value that was dropped because no rule reads it: NaN of its size, dtype and device, in the memory of
// one number.
at::Tensor Unknown(const TracedRun& trace, const Operand& operand) {
  const auto options = at::TensorOptions(RowDtype(operand.dtype)).device(trace.storages[operand.storage].device);
  return at::full({}, std::numeric_limits<double>::quiet_NaN(), options).expand(operand.geometry.sizes);
}

// Value and reference, as rules get them; at_least: see Widen.
RuleOutput EndsOf(const TracedRun& trace, const Operand& operand, at::ScalarType at_least = at::ScalarType::Undefined) {
  if (!trace.Misses(operand)) {
    const bool finite = operand.storage >= 0 && trace.At(operand).reference_is_finite;
    return {Widen(trace.Value(operand), at_least), Widen(trace.Reference(operand), at_least), finite};
  }
  const at::Tensor unknown = Unknown(trace, operand);
  return {unknown, unknown};
}

RuleCall DescribeForRule(const TracedRun& trace, const Call& call, const Policy& policy, const Marks& marks) {
  RuleCall described;
  static_cast<CallArguments&>(described) = ArgumentsOf(call, call.arguments);
  described.policy = &policy;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const Operand& operand = call.operands[k];
    RuleOperand own;
    own.decomposed = CarriesRows(operand);
    if (own.decomposed) {
      const RuleOutput ends = EndsOf(trace, operand, call.op.computed_in());
      own.value = ends.value;
      own.reference = ends.reference;
      own.finite = trace.At(operand).IsFinite();
    } else {
      own.value = own.reference = Widen(trace.Value(operand), call.op.computed_in());
    }
    own.marks = marks.Frozen(call.index, k);
    own.content_first = marks.ContentFirst(call.index, k);
    own.by_magnitude = marks.ByMagnitude(call.index, k);
    own.argument = operand.argument;
    own.written = operand.written;
    described.operands.push_back(std::move(own));
  }
  for (const Operand& output : call.outputs) described.outputs.push_back(EndsOf(trace, output));
  described.run = [&call](const std::vector<c10::IValue>& arguments, const std::vector<at::Tensor>& operands) {
    return Invoke(call, arguments, operands);
  };
  return described;
}

// The map of an operator that computes in a wider dtype than the rows of what it reads.
class WideningMap : public LinearMap {
 public:
  WideningMap(std::shared_ptr<const LinearMap> map, at::ScalarType dtype) : map_(std::move(map)), dtype_(dtype) {}

  Rows Forward(const Rows& rows) const override {
    Rows wide;
    for (const at::Tensor& own : rows) wide.push_back(Widen(own, dtype_));
    return map_->Forward(wide);
  }
  // Whoever adds up cotangents converts them.
  Rows Transpose(const Rows& cotangents) const override { return map_->Transpose(cotangents); }
  Rows TransposeRows(const Rows& cotangents) const override { return map_->TransposeRows(cotangents); }

 private:
  std::shared_ptr<const LinearMap> map_;
  at::ScalarType dtype_;
};

// Lets a node of an operator that computes in a wider dtype read rows of a narrower one.
void WidenRows(const Call& call, Node& node) {
  const at::ScalarType dtype = call.op.computed_in();
  const bool narrow = dtype == at::kDouble && std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
                        return RealDtype(RowDtype(call.operands[input].dtype)) != at::kDouble;
                      });
  if (!narrow) return;
  if (node.map) node.map = std::make_shared<WideningMap>(std::move(node.map), dtype);
  if (!node.joint) return;
  node.joint = [joint = std::move(node.joint), dtype](const Rows& rows) {
    Rows wide;
    for (const at::Tensor& own : rows) wide.push_back(Widen(own, dtype));
    return joint(wide);
  };
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

// The rounding error of an output, relative to its largest value: a sum of K terms errs by about eps sqrt(K). The sizes
// of the operands tell K: a product of [M, K] and [K, N] has MK * KN / MN = K^2.
double RoundingOf(const RuleCall& call, const at::Tensor& output, at::ScalarType dtype) {
  double square = 1;
  for (const RuleOperand& operand : call.operands) {
    if (operand.value.defined() && Continuous(operand.value.scalar_type()))
      square *= std::max<double>(operand.value.numel(), 1);
  }
  square = std::max(square / std::max<double>(output.numel(), 1), 1.0);
  // Operands in single precision carry its rounding, whatever the dtype of the output is.
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
    // An overwritten operand counts as read: nothing of it is left in the output.
    const bool overwritten = operand.written && !rule.map;
    const bool read = std::find(rule.inputs.begin(), rule.inputs.end(), static_cast<int>(k)) != rule.inputs.end();
    all_read = all_read && (read || overwritten);
  }
  return all_read;
}

// Whether an operand is NaN or infinite where its reference is not. Such an element has no parts, so that what the
// operator makes of it (1 / infinity is 0) is leftover.
bool ComesFromInfinity(const TracedRun& trace, const Call& recorded, const RuleCall& call) {
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RuleOperand& operand = call.operands[k];
    if (!operand.decomposed || operand.value.numel() == 0 || trace.ValueIsFinite(recorded.operands[k])) continue;
    const at::Tensor both_nan = at::isnan(operand.value).logical_and_(at::isnan(operand.reference));
    const at::Tensor same = operand.value.eq(operand.reference).logical_or_(both_nan);
    if (ReadFlag(at::isfinite(operand.value).logical_or_(same).logical_not_().any())) return true;
  }
  return false;
}

// Whether the rule accounts for everything, and how exactly.
void ClaimBracket(const TracedRun& trace, const Call& recorded, const RuleCall& call, const RuleResult& rule,
                  Node& node) {
  bool half = false;  // the value was rounded to fewer digits than rows have: that is leftover
  for (const Operand& output : recorded.outputs) half = half || (CarriesRows(output) && IsHalf(output.dtype));
  const bool all_read = ReadsAll(call, rule);
  const bool from_infinity = ComesFromInfinity(trace, recorded, call);
  node.keeps_bracket = !rule.exact || !all_read || half || from_infinity;
  if (from_infinity || ((!rule.exact || !all_read) && rule.quadrature == 0)) return;
  if (recorded.adopted > 0) {
    node.keeps_bracket = true;
    if (!std::isfinite(recorded.adopted)) return;
  }
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const at::Tensor& output = call.outputs[k].value;
    if (!output.defined() || !Continuous(output.scalar_type())) continue;
    // Composed rewrites report their own rounding, because it cannot be told from the sizes of the operands.
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
  if (output.finite || !output.value.defined() || !Continuous(output.value.scalar_type())) return false;
  if (AllFinite(output.reference)) return false;
  return ReadFlag(at::isfinite(output.reference).logical_not_().logical_and_(at::isfinite(output.value)).any());
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
    (*replaced)[k] = moved[k].defined() ? value - Select(moved[k], 0, 0) : value;
  }
  return result;
}

// The policy for a call's rule. What is frozen was settled where it was made (see Marks): where calls have policies of
// their own, products follow the marks of their factors.
Policy PolicyForRule(const TracedRun& trace, int64_t c, const Choices& choices) {
  Policy policy = choices.policies.Of(c);
  const Rule* rule = choices.rules[c];
  const bool multiplies =
      rule != nullptr && (rule->kind == Kind::kBilinear || rule->kind == Kind::kLinear || rule->kind == Kind::kAffine);
  if (!choices.policies.differ() || !multiplies) return policy;
  uint32_t frozen = policy.FrozenKinds();
  for (size_t k = 0; k < trace.calls[c].operands.size(); ++k) frozen |= choices.marks.Frozen(c, k);
  policy.freeze = frozen;
  return policy;
}

// The largest constant that can be shared out. A mask of the lowest number that there is would be infinite once
// rounding or a share above one made it larger, and so would squares of what anybody was paid.
double LargestShared(at::ScalarType dtype) {
  const bool single = EpsilonOf(dtype) > std::numeric_limits<double>::epsilon();
  const double largest = single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  return std::sqrt(largest) * 1e-6;
}

// The constant that an operator adds whatever its inputs are, if the policy pays it to components; else undefined.
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
    // Rounding is no constant.
    const at::Tensor noise = (reference.abs() + passed.abs()) * RoundingOf(call, reference, reference.scalar_type());
    constant = constant.masked_fill(constant.abs().le(noise), 0);
  }
  // Neither is a mask, infinite or nearly so: nobody can be paid one.
  constant = constant.masked_fill(constant.abs().le(LargestShared(reference.scalar_type())).logical_not(), 0);
  return constant / static_cast<double>(call.policy->segments);  // each piece of the line pays its share
}

bool MissesAny(const TracedRun& trace, const Call& call) {
  const auto missing = [&](const Operand& operand) { return trace.Misses(operand); };
  return std::any_of(call.operands.begin(), call.operands.end(), missing) ||
         std::any_of(call.outputs.begin(), call.outputs.end(), missing);
}

// See Note [Swamped elements].
void LoseSwamped(const TracedRun& trace, const Call& call, const RuleCall& described, const Rule& rule, Node& node) {
  if (trace.Misses(call.outputs[0])) {
    node.lacks_values = AddsMask(described, rule.addends);
    return;
  }
  const Swamped swamped = FindSwamped(call, described, rule.addends);
  node.keeps_bracket = node.keeps_bracket || swamped.rounds;
  if (!swamped.elements.defined()) return;
  node.map = MapWithout(std::move(node.map), swamped.elements);
  node.swamped = swamped.count;
  node.swamped_in = swamped.value;
}

}  // namespace

at::Tensor Widen(const at::Tensor& tensor, at::ScalarType at_least) {
  if (!tensor.defined() || !Continuous(tensor.scalar_type())) return tensor;
  const at::ScalarType dtype = RowDtype(tensor.scalar_type());
  const bool wide = RealDtype(dtype) != at::kDouble && at_least == at::kDouble;
  return InDtype(Resolved(tensor), wide ? (at::isComplexType(dtype) ? at::kComplexDouble : at::kDouble) : dtype);
}

Node MakeNode(const TracedRun& trace, int64_t c, const Choices& choices, std::vector<at::Tensor>* stand_ins,
              bool finite) {
  const Call& call = trace.calls[c];
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
  ClaimBracket(trace, call, described, built, node);
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
  node.unread_terms = built.unread_terms;
  if (rule != nullptr && node.map && !node.joint) LoseSwamped(trace, call, described, *rule, node);
  WidenRows(call, node);
  // A sweep reads what a bracket is made of.
  node.lacks_values = node.lacks_values || (node.keeps_bracket && MissesAny(trace, call));
  for (const at::Tensor& reference : replaced) node.stand_in = node.stand_in || reference.defined();
  if (stand_ins != nullptr) *stand_ins = std::move(replaced);
  return node;
}

void TakeTerms(Node& node) {
  const at::Tensor unread = std::move(node.unread_terms);
  node.unread_terms = at::Tensor();
  if (!unread.defined()) return;
  ReadLater(unread, [&node](double terms) { node.inner_terms = std::isfinite(terms) ? terms : 0; });
}

ValuesRead ValuesReadBy(const TracedRun& trace, int64_t c, const Choices& choices) {
  const Call& call = trace.calls[c];
  if (call.adopted != 0 || trace.StartsRows(call)) return {};
  const ValuesRead reads = ValuesReadBy(choices.rules[c], call);
  const bool known = std::all_of(call.outputs.begin(), call.outputs.end(), [&](const Operand& output) {
    return !CarriesRows(output) || (trace.At(output).reference_is_finite && !IsHalf(output.dtype));
  });
  const bool finite = reads.operands || std::none_of(call.operands.begin(), call.operands.end(), [&](const Operand& o) {
                        return trace.Misses(o) && !trace.At(o).value_is_finite;
                      });
  return known && finite ? reads : ValuesRead();
}

Choices MakeChoices(const TracedRun& trace, const Registry& registry, const Policy& policy,
                    const std::vector<Probe>& probes) {
  std::vector<const Rule*> rules = RulesOfCalls(trace, registry);
  const CallPolicies policies(trace, policy);
  Marks marks(trace, rules, policies, probes);
  return {std::move(rules), policies, std::move(marks)};
}

std::vector<bool> FindLive(const TracedRun& trace, const std::vector<Probe>& probes, bool everything) {
  const std::vector<Call>& calls = trace.calls;
  std::vector<bool> live(calls.size(), everything);
  if (everything) return live;
  std::vector<bool> needed(trace.storages.size(), false);
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

EarlyNode LookEarly(const TracedRun& trace, int64_t c, const Choices& choices, bool live) {
  EarlyNode own;
  const Call& call = trace.calls[c];
  const Rule* rule = choices.rules[c];
  if (call.is_view || !call.Traced() || call.outputs.empty()) return own;
  // A softmax has no poles.
  const bool may_break = rule != nullptr && rule->kind == Kind::kPath && rule->mark != kFreezeAttention;
  own.by_path =
      rule == nullptr ? choices.policies.Of(c).missing_rule == MissingRule::kPath : may_break || rule->has_poles;
  if (rule == nullptr && !own.by_path) return own;
  own.finite = std::all_of(call.outputs.begin(), call.outputs.end(), [&](const Operand& output) {
    return !CarriesRows(output) || trace.ReferenceIsFinite(output);
  });
  own.early = CarriesAny(call.outputs) && (!own.finite || (own.by_path && live));
  return own;
}

NeededRows::NeededRows(const TracedRun& trace, const std::vector<Probe>& probes, bool everything)
    : trace_(trace), probes_(probes), everything_(everything), needed_(trace.storages.size(), everything) {}

bool NeededRows::OfCall(int64_t c) {
  for (const Probe& probe : probes_) {
    if (probe.after_call == c && CarriesRows(probe.operand)) needed_[probe.operand.storage] = true;
  }
  const Call& call = trace_.calls[c];
  if (call.is_view || !call.Traced()) return false;
  return std::any_of(call.outputs.begin(), call.outputs.end(),
                     [&](const Operand& output) { return CarriesRows(output) && needed_[output.storage]; });
}

void NeededRows::Add(const Node& node) {
  const Call& call = trace_.calls[node.call];
  for (const Operand& output : call.outputs) {
    if (!CarriesRows(output)) continue;
    // Rows are born here unless the call writes into a storage that had some before.
    const bool had_rows = std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
      return operand.written && operand.storage == output.storage && operand.decomposed;
    });
    needed_[output.storage] = everything_ || had_rows;
  }
  for (const int input : node.inputs) needed_[call.operands[input].storage] = true;
}

}  // namespace addend
