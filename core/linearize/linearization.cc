#include "core/linearize/linearization.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

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

double MaxAbs(const at::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }

// Provenance: from where the values of each operand of each call come (bits of Freeze), by call and operand.
class Marks {
 public:
  Marks(const TracedRun& trace, const std::vector<const Rule*>& rules) {
    std::vector<uint32_t> by_storage(trace.program.storages.size(), 0);
    for (size_t c = 0; c < trace.program.calls.size(); ++c) {
      const Call& call = trace.program.calls[c];
      marks_.emplace_back();
      if (!call.Traced()) continue;
      uint32_t own = 0;
      int decomposed = 0;
      for (const Operand& operand : call.operands) {
        const uint32_t mark = operand.storage < 0 ? 0 : by_storage[operand.storage];
        marks_.back().push_back(mark);
        if (!operand.decomposed) continue;
        ++decomposed;
        own |= mark;
      }
      if (call.is_view || rules[c] == nullptr) continue;
      const uint32_t result = rules[c]->mark | (rules[c]->keeps_marks && decomposed == 1 ? own : 0);
      for (const Operand& output : call.outputs) {
        if (output.storage >= 0) by_storage[output.storage] = result;
      }
    }
  }
  uint32_t Of(size_t call, size_t operand) const { return operand < marks_[call].size() ? marks_[call][operand] : 0; }

 private:
  std::vector<c10::SmallVector<uint32_t, 4>> marks_;
};

// Runs the call's operator on other operands, out of place.
std::vector<at::Tensor> Rerun(const Call& call, const std::vector<at::Tensor>& operands) {
  Stack stack;
  size_t k = 0;
  const auto& arguments = call.op.schema().arguments();
  for (size_t a = 0; a < call.arguments.size(); ++a) {
    std::vector<at::Tensor> own;
    bool written = false;
    while (k < operands.size() && call.operands[k].argument == static_cast<int16_t>(a)) {
      written |= call.operands[k].written;
      own.push_back(operands[k++]);
    }
    if (arguments[a].is_out()) {
      own[0] = at::empty({0}, own[0].options());
    } else if (written) {
      for (at::Tensor& tensor : own) tensor = tensor.clone();
    }
    const c10::TypePtr type = arguments[a].type();
    const bool optional_list =
        type->kind() == c10::TypeKind::ListType && type->expect<c10::ListType>()->getElementType()->kind() ==
                                                       c10::TypeKind::OptionalType;
    if (optional_list && call.arguments[a].isIntList()) {
      c10::impl::GenericList list(type->expect<c10::ListType>()->getElementType());
      size_t next = 0;
      for (const int64_t present : call.arguments[a].toIntVector()) {
        list.push_back(present ? c10::IValue(own[next++]) : c10::IValue());
      }
      stack.emplace_back(list);
    } else if (type->kind() == c10::TypeKind::ListType && (!own.empty() || call.arguments[a].isNone())) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : own) list.push_back(tensor);
      stack.emplace_back(list);
    } else if (!own.empty()) {
      stack.emplace_back(own[0]);
    } else {
      stack.push_back(call.arguments[a]);
    }
  }
  call.op.Run(&stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) ForEachTensor(value, [&](const at::Tensor& t) { results.push_back(t); });
  return results;
}

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
  return described;
}

at::Tensor Difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).masked_fill_(a.eq(b), 0); }

// value - reference - L(move) of every output, and what to make of it.
void JudgeBracket(const RuleCall& call, const RuleResult& rule, const Policy& policy, const Call& recorded,
                  Node& node) {
  bool all_read = true;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RuleOperand& operand = call.operands[k];
    if (!operand.decomposed) continue;
    // What is overwritten counts as read: nothing of it is left in the output.
    const bool overwritten = operand.written && !rule.map;
    const bool read = std::find(rule.inputs.begin(), rule.inputs.end(), static_cast<int>(k)) != rule.inputs.end();
    all_read = all_read && (read || overwritten);
  }
  const bool claims_nothing_left = rule.exact && all_read;
  if (claims_nothing_left && policy.check != Check::kEveryOp) return;

  Rows moves;
  for (const int input : rule.inputs) moves.push_back(call.Move(input).unsqueeze(0));
  const Rows moved = rule.map ? rule.map->Forward(moves) : Rows();
  double input_scale = 0;
  for (const at::Tensor& move : moves) input_scale = std::max(input_scale, MaxAbs(move));
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    node.brackets.emplace_back();
    if (!CarriesRows(recorded.outputs[k])) continue;
    const at::Tensor& value = call.outputs[k].value;
    const at::Tensor reference = rule.stand_in.defined() && k == 0 ? rule.stand_in : call.outputs[k].reference;
    at::Tensor bracket = Difference(value, reference);
    double scale = std::max(MaxAbs(value), MaxAbs(reference));
    if (k < moved.size() && moved[k].defined()) {
      const at::Tensor passed = moved[k].select(0, 0);
      bracket = bracket - passed;
      scale = std::max(scale, MaxAbs(passed));
    }
    const double largest = MaxAbs(bracket);
    node.bracket = std::max(node.bracket, scale > 0 ? largest / scale : largest);
    if (std::isnan(largest)) node.bracket = std::numeric_limits<double>::quiet_NaN();
    if (claims_nothing_left || rule.quadrature > 0) {
      // Rounding: each output is a sum of about as many products as the call has inputs; its root is generous.
      int64_t terms = 1;
      for (const int input : rule.inputs) terms = std::max(terms, call.operands[input].value.numel());
      const double rounding = 64 * Eps(value.scalar_type()) * std::sqrt(static_cast<double>(std::min<int64_t>(terms, 1 << 16)));
      node.bracket_bound = std::max(node.bracket_bound, rounding + 4 * rule.quadrature);
    }
    if (!claims_nothing_left) node.brackets.back() = bracket;
  }
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
  c10::AutoGradMode no_grad(false);
  const std::vector<Call>& calls = trace->program.calls;
  std::vector<const Rule*> rules(calls.size(), nullptr);
  for (size_t c = 0; c < calls.size(); ++c) {
    if (!calls[c].Traced()) continue;
    rules[c] = registry.Find(RuleName(calls[c].op.schema().name()), FullName(calls[c].op.schema()));
  }
  const Marks marks(*trace, rules);

  Linearization result;
  result.trace = trace;
  result.policy = policy;
  result.probes = std::move(probes);

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

    Node node;
    node.call = c;
    const bool embedding = RuleName(call.op.schema().name()) == "aten::embedding";
    if (embedding && call.operands[1].labelled && !call.operands[0].decomposed) {
      node.kind = Kind::kStart;
      node.starts = true;
    } else {
      const RuleCall described = DescribeForRule(*trace, call, result.policy, marks);
      RuleResult rule;
      try {
        if (rules[c] != nullptr) {
          rule = rules[c]->build(described);
        } else {
          rule.kind = Kind::kAbsorbed;
          rule.exact = false;
          ++result.absorbed;
        }
        if (rule.kind == Kind::kPath) ++result.path_ruled;
        if (rule.stand_in.defined()) result.stand_ins.push_back(c);
        JudgeBracket(described, rule, result.policy, call, node);
      } catch (const Error& e) {
        throw Error(e.code(), e.what(), call.position, "see docs/extending.md");
      } catch (const c10::Error& e) {
        throw Error(absl::StatusCode::kInternal,
                    absl::StrCat("the rule of ", FullName(call.op.schema()), " fails: ", e.what_without_backtrace()),
                    call.position);
      }
      node.kind = rule.kind;
      node.inputs = std::move(rule.inputs);
      node.map = std::move(rule.map);
    }
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
