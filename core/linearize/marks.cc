#include "core/linearize/marks.h"

#include <utility>

#include "core/linearize/linearization.h"
#include "core/run/role.h"

namespace addend {
namespace {

// Marks that depend on an operator's arguments, not on its name alone.
uint32_t MarkByArguments(const Rule& rule, const Call& call) {
  if (rule.mark_by == nullptr) return 0;
  std::vector<bool> decomposed;
  for (const Operand& operand : call.operands) decomposed.push_back(operand.decomposed);
  return rule.mark_by(ArgumentsOf(call, call.arguments), decomposed);
}

bool SameTensor(const Operand& a, const Operand& b) {
  return a.storage == b.storage && a.version == b.version && a.geometry == b.geometry;
}

}  // namespace

CallPolicies::CallPolicies(const TracedCalls& traced, const Policy& policy) : common_(&policy) {
  if (policy.overrides.empty()) return;
  for (const Call& call : traced.calls) {
    own_.push_back(policy.For(FullName(call.op.schema()), call.position.module_path));
  }
}

Marks::Marks(const TracedRun& trace, const std::vector<const Rule*>& rules, const CallPolicies& policies,
             const std::vector<Probe>& probes)
    : of_probes_(probes.size(), 0) {
  std::vector<Mark> by_storage(trace.storages.size());
  const auto take_probes = [&](int64_t call) {
    for (size_t p = 0; p < probes.size(); ++p) {
      if (probes[p].after_call == call && probes[p].operand.storage >= 0) {
        of_probes_[p] = by_storage[probes[p].operand.storage].origin;
      }
    }
  };
  const std::vector<Call>& calls = trace.calls;
  for (const Start& start : trace.starts) {
    by_storage[start.operand.storage] = Mark::Of(start.marks, calls.empty() ? Policy() : policies.Of(0));
  }
  take_probes(-1);
  for (size_t c = 0; c < calls.size(); ++c) {
    Follow(trace, calls[c], rules[c], policies.Of(c), by_storage);
    take_probes(static_cast<int64_t>(c));
  }
}

Marks::Mark Marks::Mark::Of(uint32_t made, const Policy& policy) {
  const uint32_t frozen = policy.FrozenKinds();
  const uint32_t content_first = made & policy.content_first & ~frozen;
  return {made, made & frozen, content_first, content_first & policy.by_magnitude};
}

Marks::Mark& Marks::Mark::operator&=(const Mark& other) {
  origin &= other.origin;
  frozen &= other.frozen;
  content_first &= other.content_first;
  by_magnitude &= other.by_magnitude;
  return *this;
}

Marks::Mark& Marks::Mark::operator|=(const Mark& other) {
  origin |= other.origin;
  frozen |= other.frozen;
  content_first |= other.content_first;
  by_magnitude |= other.by_magnitude;
  return *this;
}

Marks::Mark Marks::Of(size_t call, size_t operand) const {
  return operand < by_call_[call].size() ? by_call_[call][operand] : Mark();
}

bool Marks::Overwrites(const c10::FunctionSchema& schema) {
  const auto [it, is_new] = overwrites_.try_emplace(&schema, false);
  if (is_new) it->second = OperatorTraits(schema).overwrites;
  return it->second;
}

void Marks::Follow(const TracedRun& trace, const Call& call, const Rule* rule, const Policy& policy,
                   std::vector<Mark>& by_storage) {
  by_call_.emplace_back();
  if (!call.Traced()) return;
  Mark shared{~0u, ~0u, ~0u, ~0u};
  bool any = false;
  for (const Operand& operand : call.operands) {
    const Mark mark = operand.storage < 0 ? Mark() : by_storage[operand.storage];
    by_call_.back().push_back(mark);
    if (!operand.decomposed || (operand.written && Overwrites(call.op.schema()))) continue;
    any = true;
    shared &= mark;
  }
  if (call.is_view || rule == nullptr || call.outputs.empty()) return;
  uint32_t made = rule->mark | MarkByArguments(*rule, call);
  if (rule->gates && call.operands.size() == 2) {
    // silu, spelled out: a tensor times a gate that is computed from it.
    for (int k = 0; k < 2; ++k) {
      const auto gate = gate_of_.find(call.operands[k].storage);
      if (gate != gate_of_.end() && SameTensor(gate->second, call.operands[1 - k])) made |= kFreezeActivation;
    }
  }
  Mark result = Mark::Of(made, policy);
  if (rule->keeps_marks && any) result |= shared;
  const Operand& output = call.outputs[0];
  if (output.storage < 0) return;
  gate_of_.erase(output.storage);
  if ((rule->mark & kFreezeGate) != 0 && !output.written && !call.operands.empty()) {
    gate_of_.emplace(output.storage, call.operands[0]);
  }
  // A write into a part of a storage leaves the rest as it was.
  const bool part = output.written && !output.geometry.CoversWhole(trace.storages[output.storage].numel);
  if (part) {
    for (const Operand& operand : call.operands) {
      if (operand.storage == output.storage && operand.decomposed) result &= by_storage[output.storage];
    }
  }
  by_storage[output.storage] = result;
  for (size_t k = 1; k < call.outputs.size(); ++k) {
    if (call.outputs[k].storage < 0) continue;
    by_storage[call.outputs[k].storage] = k == 1 ? Mark::Of(rule->second_mark, policy) : Mark();
  }
}

}  // namespace addend
