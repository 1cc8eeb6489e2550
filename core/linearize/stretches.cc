#include "core/linearize/stretches.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/program/view.h"
#include "core/rules/rows.h"
#include "core/run/evaluate.h"

namespace addend {
namespace {

// Runs again what makes these operands. Returns what was missing besides and is there now.
std::vector<Operand> MakeAgain(TracedRun& trace, const std::vector<Operand>& operands) {
  std::vector<Operand> made;
  for (const int64_t c : CallsThatMake(trace, operands)) {
    const Call& call = trace.calls[c];
    for (const Operand& output : call.outputs) {
      if (trace.Misses(output)) made.push_back(output);
    }
    Evaluate(trace, call);
  }
  return made;
}

// A copy of a node without its map: reports and notes ask for nothing more.
Node WithoutMap(const Node& node) {
  Node light = node;
  light.map = nullptr;
  light.joint = nullptr;
  light.constant = at::Tensor();
  return light;
}

}  // namespace

Stretches::Stretches(std::shared_ptr<TracedRun> trace, std::unique_ptr<const Policy> policy, Choices choices,
                     std::vector<bool> live, std::vector<Probe> probes)
    : trace_(std::move(trace)),
      policy_(std::move(policy)),
      choices_(std::move(choices)),
      live_(std::move(live)),
      probes_(std::move(probes)) {
  const auto want = [&](const Operand& operand) {
    if (CarriesRows(operand)) wanted_.emplace(operand.storage, operand.version);
  };
  for (size_t c = 0; c < live_.size(); ++c) {
    if (!live_[c]) continue;
    for (const Operand& operand : trace_->calls[c].operands) want(operand);
  }
  for (const Probe& probe : probes_) want(probe.operand);
  // Restore the operands of each probe's maker, which are read when the probe is judged.
  for (const Probe& probe : probes_) {
    if (trace_->calls.empty()) break;
    for (const Operand& operand : trace_->calls[MakerOf(*trace_, probe)].operands) {
      Restore(*trace_, operand);
    }
  }
}

Stretches::Range Stretches::RangeOf(size_t stretch) const {
  const std::vector<int64_t>& firsts = trace_->stretches;
  return {firsts[stretch], stretch + 1 < firsts.size() ? firsts[stretch + 1] : calls()};
}

void Stretches::ForEachNodeBackward(bool hold, const std::function<void(const Node&)>& visit) {
  const c10::AutoGradMode no_grad(false);
  nodes_.clear();
  NeededRows needed(*trace_, probes_, /*everything=*/false);
  for (size_t k = trace_->stretches.size(); k-- > 0;) {
    const Range range = RangeOf(k);
    GoBack(range, GoForward(range, hold), needed, visit);
    DropAll(range);
  }
  std::reverse(nodes_.begin(), nodes_.end());
}

bool Stretches::MayDrop(const Operand& operand) const {
  return CarriesRows(operand) && trace_->At(operand).made_by >= 0;
}

Stretches::Schedule Stretches::MakeSchedule(const Range& range, bool hold) const {
  Schedule schedule;
  schedule.runs.assign(range.last - range.first, false);
  absl::flat_hash_set<VersionId> needed;
  for (int64_t c = range.last; c-- > range.first;) {
    const Call& call = trace_->calls[c];
    if (call.is_view || !call.Traced()) continue;
    ValuesRead reads = {false, false};
    if (live_[c]) reads = hold ? ValuesRead() : ValuesReadBy(*trace_, c, choices_);
    bool runs = false;
    for (const Operand& output : call.outputs) {
      if (!CarriesRows(output)) continue;
      const VersionId version = VersionIdOf(output);
      runs = runs || (trace_->Misses(output) && (reads.outputs || needed.contains(version)));
      schedule.last_reader.try_emplace(version, c);
    }
    schedule.runs[c - range.first] = runs;
    const auto need = [&](const Operand& operand) {
      if (!CarriesRows(operand)) return;
      const VersionId version = VersionIdOf(operand);
      needed.insert(version);
      schedule.last_reader.try_emplace(version, c);
    };
    if (runs) std::for_each(call.AsMade().operands.begin(), call.AsMade().operands.end(), need);
    if (reads.operands) std::for_each(call.operands.begin(), call.operands.end(), need);
  }
  return schedule;
}

Stretches::Made Stretches::Make(int64_t c) const {
  Made made;
  const Call& call = trace_->calls[c];
  if (call.is_view || !call.Traced() || !CarriesAny(call.outputs)) return made;
  try {
    const EarlyNode look = LookEarly(*trace_, c, choices_, live_[c]);
    std::vector<at::Tensor> stand_ins;
    made.node = MakeNode(*trace_, c, choices_, look.early ? &stand_ins : nullptr, !look.early && look.finite);
    TakeTerms(*made.node);
    if (look.early && made.node->stand_in) throw NeedsWholeRun();
  } catch (const Error&) {
    // Nobody may need it.
    made.error = std::current_exception();
  }
  return made;
}

Stretches::Made Stretches::MakeWithValues(int64_t c) {
  const Call& call = trace_->calls[c];
  // Restore the operands of attention, which may have been made in an earlier stretch; see Note [Written-out
  // attention].
  if (call.made != nullptr) MakeAgain(*trace_, {call.operands.begin(), call.operands.end()});
  Made made = Make(c);
  if (!made.node || !made.node->lacks_values) return made;
  std::vector<Operand> lacking(call.operands.begin(), call.operands.end());
  lacking.insert(lacking.end(), call.outputs.begin(), call.outputs.end());
  MakeAgain(*trace_, lacking);
  return Make(c);
}

std::vector<Stretches::Made> Stretches::GoForward(const Range& range, bool hold) {
  std::vector<Made> all(range.last - range.first);
  const Schedule schedule = MakeSchedule(range, hold);
  absl::flat_hash_set<VersionId> held;  // asked for by the sweep
  for (int64_t c = range.first; c < range.last; ++c) {
    const Call& call = trace_->calls[c];
    const bool runs = schedule.runs[c - range.first];
    if (!live_[c] && !runs) continue;
    if (runs) Evaluate(*trace_, call);
    Made& made = all[c - range.first];
    if (live_[c]) made = MakeWithValues(c);
    if (hold) continue;
    if (made.node && made.node->keeps_bracket) {
      for (const Operand& output : call.outputs) {
        // An output that nobody reads has no cotangents.
        const VersionId version = VersionIdOf(output);
        if (wanted_.contains(version)) held.insert(version);
      }
      for (const int input : made.node->inputs) {
        held.emplace(call.operands[input].storage, call.operands[input].version);
      }
    }
    const auto drop = [&](const Operand& operand) {
      if (!MayDrop(operand) || held.contains(VersionIdOf(operand))) return;
      const auto last = schedule.last_reader.find(VersionIdOf(operand));
      if (last == schedule.last_reader.end() || last->second <= c) Drop(operand, /*at_any_rate=*/false);
    };
    for (const Operand& operand : call.operands) drop(operand);
    if (call.made != nullptr) {
      for (const Operand& operand : call.made->operands) drop(operand);
    }
    for (const Operand& output : call.outputs) drop(output);
  }
  return all;
}

void Stretches::GoBack(const Range& range, std::vector<Made> made, NeededRows& needed,
                       const std::function<void(const Node&)>& visit) {
  for (int64_t c = range.last; c-- > range.first;) {
    Made own = std::move(made[c - range.first]);
    if (!needed.OfCall(c)) continue;
    if (own.error) std::rethrow_exception(own.error);
    if (!own.node) throw Internal("a call that is needed has no node");
    visit(*own.node);
    needed.Add(*own.node);
    nodes_.push_back(WithoutMap(*own.node));
  }
}

void Stretches::Drop(const Operand& operand, bool at_any_rate) {
  Version& kept = VersionOf(*trace_, operand);
  if (!kept.value.defined()) return;
  kept.value_is_finite = kept.value_is_finite || AllFinite(kept.value);
  if (!kept.value_is_finite) {
    if (!at_any_rate) return;
    kept.reference_is_finite = kept.reference_is_finite || !kept.reference.defined() || AllFinite(kept.reference);
  }
  const int64_t bytes = 2 * static_cast<int64_t>(kept.value.nbytes());
  kept.Drop(/*whole=*/false);
  freed_.Add(bytes, trace_->memory_limit);
}

void Stretches::DropAll(const Range& range) {
  for (int64_t c = range.first; c < range.last; ++c) {
    for (const Operand& output : trace_->calls[c].outputs) {
      if (MayDrop(output) && trace_->At(output).made_by == c) Drop(output, /*at_any_rate=*/true);
    }
  }
}

Linearization LinearizeInStretches(std::shared_ptr<TracedRun> trace, const Registry& registry, const Policy& policy,
                                   std::vector<Probe> probes) {
  Linearization result;
  result.policy = policy;
  auto own_policy = std::make_unique<const Policy>(policy);
  Choices choices = MakeChoices(*trace, registry, *own_policy, probes);
  result.probe_marks = choices.marks.of_probes();
  std::vector<bool> live = FindLive(*trace, probes, /*everything=*/false);
  result.trace = trace;
  result.recorded = trace;
  result.probes = probes;
  result.stretches = std::make_shared<Stretches>(std::move(trace), std::move(own_policy), std::move(choices),
                                                 std::move(live), std::move(probes));
  return result;
}

void Restore(TracedRun& trace, const Operand& operand) {
  if (!CarriesRows(operand) || trace.stretches.empty()) return;
  const std::vector<Operand> made = MakeAgain(trace, {operand});
  VersionOf(trace, operand).made_by = -1;
  for (const Operand& output : made) {
    Version& kept = VersionOf(trace, output);
    if (kept.made_by >= 0) kept.Drop(/*whole=*/false);
  }
}

void RestoreAll(TracedRun& trace) {
  for (const Call& call : trace.calls) {
    const bool missing = std::any_of(call.outputs.begin(), call.outputs.end(),
                                     [&](const Operand& output) { return trace.Misses(output); });
    if (missing && !call.is_view && call.Traced()) Evaluate(trace, call);
  }
  trace.stretches.clear();
}

}  // namespace addend
