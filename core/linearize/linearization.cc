#include "core/linearize/linearization.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/linearize/rerun.h"
#include "core/linearize/stand_in.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"

namespace addend {
namespace {

bool CarriesRows(const Operand& operand) {
  return operand.storage >= 0 && operand.decomposed && at::isFloatingType(operand.dtype);
}

// Rows of half types are float32; so are the values that coefficients come from.
at::Tensor Widen(const at::Tensor& tensor) {
  const bool half = tensor.defined() && (tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16);
  return half ? tensor.to(at::kFloat) : tensor;
}

double Eps(at::ScalarType dtype) {
  return dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// Provenance: from where the values of each operand of each call come (bits of Freeze), by call and operand.
class Marks {
 public:
  // `probes`: whose marks are asked for; see of_probes.
  Marks(const TracedRun& trace, const std::vector<const Rule*>& rules, const std::vector<Probe>& probes)
      : of_probes_(probes.size(), 0) {
    std::vector<uint32_t> by_storage(trace.program.storages.size(), 0);
    const auto take_probes = [&](int64_t call) {
      for (size_t p = 0; p < probes.size(); ++p) {
        if (probes[p].after_call == call && probes[p].operand.storage >= 0) {
          of_probes_[p] = by_storage[probes[p].operand.storage];
        }
      }
    };
    for (const Start& start : trace.starts) by_storage[start.operand.storage] = start.marks;
    take_probes(-1);
    for (size_t c = 0; c < trace.program.calls.size(); ++c) {
      Follow(trace.program.calls[c], rules[c], by_storage);
      take_probes(static_cast<int64_t>(c));
    }
  }
  uint32_t Of(size_t call, size_t operand) const { return operand < marks_[call].size() ? marks_[call][operand] : 0; }
  // By probe: the marks of its value.
  const std::vector<uint32_t>& of_probes() const { return of_probes_; }

 private:
  void Follow(const Call& call, const Rule* rule, std::vector<uint32_t>& by_storage) {
    marks_.emplace_back();
    if (!call.Traced()) return;
    uint32_t own = 0;
    int decomposed = 0;
    for (const Operand& operand : call.operands) {
      const uint32_t mark = operand.storage < 0 ? 0 : by_storage[operand.storage];
      marks_.back().push_back(mark);
      if (!operand.decomposed) continue;
      ++decomposed;
      own |= mark;
    }
    if (call.is_view || rule == nullptr) return;
    const uint32_t result = rule->mark | (rule->keeps_marks && decomposed == 1 ? own : 0);
    for (const Operand& output : call.outputs) {
      if (output.storage >= 0) by_storage[output.storage] = result;
    }
  }

  std::vector<c10::SmallVector<uint32_t, 4>> marks_;
  std::vector<uint32_t> of_probes_;
};

RuleCall DescribeForRule(const TracedRun& trace, const Call& call, const Policy& policy, const Marks& marks) {
  RuleCall described;
  described.name = RuleName(call.op.schema().name());
  described.overload = call.op.schema().overload_name();
  described.arguments = call.arguments;
  described.policy = &policy;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const Operand& operand = call.operands[k];
    RuleOperand own;
    own.value = Widen(trace.Value(operand));
    own.decomposed = CarriesRows(operand);
    own.reference = own.decomposed ? Widen(trace.Reference(operand)) : own.value;
    own.marks = marks.Of(call.index, k);
    own.argument = operand.argument;
    own.written = operand.written;
    described.operands.push_back(std::move(own));
  }
  for (const Operand& output : call.outputs) {
    described.outputs.push_back({Widen(trace.Value(output)), Widen(trace.Reference(output))});
  }
  described.run = [&call](const std::vector<at::Tensor>& operands) { return Rerun(call, operands); };
  described.run_with = [&call](const std::vector<c10::IValue>& arguments, const std::vector<at::Tensor>& operands) {
    return Rerun(call, arguments, operands);
  };
  return described;
}

// What rounding alone may leave of an output, relative to its largest value: a sum of K terms errs by eps sqrt(K) or
// so. The sizes of the operands tell K: a product of [M, K] and [K, N] has MK * KN / MN = K^2.
double RoundingOf(const RuleCall& call, const at::Tensor& output) {
  double square = 1;
  for (const RuleOperand& operand : call.operands) {
    if (operand.value.defined() && operand.value.is_floating_point())
      square *= std::max<double>(operand.value.numel(), 1);
  }
  square = std::max(square / std::max<double>(output.numel(), 1), 1.0);
  return 32 * Eps(output.scalar_type()) * std::sqrt(std::sqrt(square));
}

// Whether the rule accounts for everything, and how exactly. `adopted`: see Call.
void ClaimBracket(const RuleCall& call, const RuleResult& rule, double adopted, Node& node) {
  bool all_read = true;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RuleOperand& operand = call.operands[k];
    if (!operand.decomposed) continue;
    // What is overwritten counts as read: nothing of it is left in the output.
    const bool overwritten = operand.written && !rule.map;
    const bool read = std::find(rule.inputs.begin(), rule.inputs.end(), static_cast<int>(k)) != rule.inputs.end();
    all_read = all_read && (read || overwritten);
  }
  node.keeps_bracket = !rule.exact || !all_read;
  if (node.keeps_bracket && rule.quadrature == 0) return;
  if (adopted > 0) {
    node.keeps_bracket = true;
    if (!std::isfinite(adopted)) return;
  }
  for (const RuleOutput& output : call.outputs) {
    if (!output.value.defined() || !output.value.is_floating_point()) continue;
    node.bracket_bound = std::max(node.bracket_bound, RoundingOf(call, output.value) + 4 * rule.quadrature + adopted);
  }
}

bool IsBroken(const RuleOutput& output) {
  if (!output.value.defined() || !output.value.is_floating_point() || AllFinite(output.reference)) return false;
  return at::isfinite(output.reference).logical_not_().logical_and_(at::isfinite(output.value)).any().item<bool>();
}

bool HasBrokenReference(const RuleCall& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(), IsBroken);
}

// The rule where nothing moves, which is the derivative at the value, and the references that make it meet the value.
RuleResult LinearizeAtValue(const Rule& rule, const RuleCall& call, std::vector<at::Tensor>* replaced) {
  RuleCall at_rest = call;
  for (RuleOperand& operand : at_rest.operands) operand.reference = operand.value;
  for (RuleOutput& output : at_rest.outputs) output.reference = output.value;
  RuleResult result = rule.build(at_rest);
  Rows moves;
  for (const int input : result.inputs) {
    const at::Tensor move = call.Move(input);
    moves.push_back(move.masked_fill(at::isfinite(move).logical_not_(), 0).unsqueeze(0));
  }
  Rows moved;
  if (result.map) moved = result.map->Forward(moves);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const at::Tensor& value = call.outputs[k].value;
    if (!value.defined() || !value.is_floating_point()) continue;
    const bool passes = k < moved.size() && moved[k].defined();
    (*replaced)[k] = passes ? value - moved[k].select(0, 0) : value;
  }
  return result;
}

Node MakeNode(const TracedRun& trace, int64_t c, const Rule* rule, const Policy& policy, const Marks& marks,
              std::vector<at::Tensor>* stand_ins = nullptr) {
  const Call& call = trace.program.calls[c];
  Node node;
  node.call = c;
  if (RuleName(call.op.schema().name()) == "aten::embedding" && call.operands[1].labelled &&
      !call.operands[0].decomposed) {
    node.kind = Kind::kStart;
    node.starts = true;
    return node;
  }
  RuleCall described = DescribeForRule(trace, call, policy, marks);
  RuleResult built;
  std::vector<at::Tensor> replaced(call.outputs.size());
  try {
    if (rule != nullptr) {
      built = rule->build(described);
    } else if (policy.missing_rule == MissingRule::kPath) {
      built = PathThroughAutograd(described);
    } else {
      built.kind = Kind::kAbsorbed;
      built.exact = false;
    }
    if (!replaced.empty()) replaced[0] = built.stand_in;
    for (size_t k = 0; k < built.more_stand_ins.size(); ++k) replaced[k + 1] = built.more_stand_ins[k];
    const bool stands_in =
        std::any_of(replaced.begin(), replaced.end(), [](const at::Tensor& t) { return t.defined(); });
    if (!stands_in && rule != nullptr && HasBrokenReference(described)) {
      built = LinearizeAtValue(*rule, described, &replaced);
    }
  } catch (const Error& e) {
    throw Error(e.code(), e.what(), call.position, "see docs/extending.md");
  } catch (const c10::Error& e) {
    throw Error(absl::StatusCode::kInternal,
                absl::StrCat("the rule of ", FullName(call.op.schema()), " fails: ", e.what_without_backtrace()),
                call.position);
  }
  ClaimBracket(described, built, call.adopted, node);
  node.kind = built.kind;
  node.inputs = std::move(built.inputs);
  node.map = std::move(built.map);
  node.inner_terms = built.inner_terms;
  for (const at::Tensor& reference : replaced) node.stand_in = node.stand_in || reference.defined();
  if (stand_ins != nullptr) *stand_ins = std::move(replaced);
  return node;
}

// Finds, in the order of the calls, where an operator is not finite on the reference alone;
// see Note [Stand-ins]. Returns the nodes of those calls, linearized at the value.
absl::flat_hash_map<int64_t, Node> ReplaceBrokenReferences(TracedRun& trace, const std::vector<const Rule*>& rules,
                                                           const Policy& policy, const Marks& marks) {
  absl::flat_hash_map<int64_t, Node> nodes;
  for (size_t c = 0; c < trace.program.calls.size(); ++c) {
    const Call& call = trace.program.calls[c];
    if (rules[c] == nullptr || call.is_view || call.outputs.empty()) continue;
    const bool finite = std::all_of(call.outputs.begin(), call.outputs.end(), [&](const Operand& output) {
      return !CarriesRows(output) || AllFinite(trace.Reference(output));
    });
    if (finite) continue;
    std::vector<at::Tensor> stand_ins;
    Node node = MakeNode(trace, static_cast<int64_t>(c), rules[c], policy, marks, &stand_ins);
    if (!node.stand_in) continue;
    for (size_t k = 0; k < stand_ins.size(); ++k) {
      if (stand_ins[k].defined()) ReplaceReference(trace, static_cast<int64_t>(c), k, stand_ins[k]);
    }
    nodes.emplace(static_cast<int64_t>(c), std::move(node));
  }
  return nodes;
}

}  // namespace

std::vector<Probe> OutputsOf(const TracedRun& trace, int64_t call) {
  std::vector<Probe> probes;
  for (const Operand& output : trace.program.calls[call].outputs) {
    if (output.storage >= 0 && at::isFloatingType(output.dtype)) probes.push_back({call, output});
  }
  return probes;
}

Linearization Linearize(std::shared_ptr<TracedRun> trace, const Registry& registry, const Policy& policy,
                        std::vector<Probe> probes, bool everything) {
  c10::AutoGradMode grad(trace->differentiable);
  const std::vector<Call>& calls = trace->program.calls;
  std::vector<const Rule*> rules(calls.size(), nullptr);
  for (size_t c = 0; c < calls.size(); ++c) {
    if (!calls[c].Traced()) continue;
    rules[c] = registry.Find(RuleName(calls[c].op.schema().name()), FullName(calls[c].op.schema()));
  }
  const Marks marks(*trace, rules, probes);

  Linearization result;
  result.trace = trace;
  result.policy = policy;
  result.probes = std::move(probes);
  result.probe_marks = marks.of_probes();

  const auto stand_in_nodes = ReplaceBrokenReferences(*trace, rules, policy, marks);

  // Backwards: a call is asked for its rule only when something later reads what it gives.
  std::vector<bool> needed(trace->program.storages.size(), everything);
  for (int64_t c = static_cast<int64_t>(calls.size()) - 1; c >= -1; --c) {
    for (const Probe& probe : result.probes) {
      if (probe.after_call == c && CarriesRows(probe.operand)) needed[probe.operand.storage] = true;
    }
    if (c < 0) break;
    const Call& call = calls[c];
    if (call.is_view || !call.Traced()) continue;
    bool live = false;
    for (const Operand& output : call.outputs) live = live || (CarriesRows(output) && needed[output.storage]);
    if (!live) continue;

    const auto known = stand_in_nodes.find(c);
    Node node = known != stand_in_nodes.end() ? known->second : MakeNode(*trace, c, rules[c], result.policy, marks);
    if (node.kind == Kind::kAbsorbed) ++result.absorbed;
    if (node.kind == Kind::kPath) ++result.path_ruled;
    if (node.stand_in) result.stand_ins.push_back(c);
    for (const Operand& output : call.outputs) {
      if (!CarriesRows(output)) continue;
      // Rows are born here unless the call writes into a storage that had some before.
      bool had_rows = false;
      for (const Operand& operand : call.operands) {
        had_rows = had_rows || (operand.written && operand.storage == output.storage && operand.decomposed);
      }
      needed[output.storage] = everything || had_rows;
    }
    for (const int input : node.inputs) needed[call.operands[input].storage] = true;
    result.nodes.push_back(std::move(node));
  }
  std::reverse(result.nodes.begin(), result.nodes.end());
  return result;
}

}  // namespace addend
