#include "core/run/repeated_run.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/operator_traits.h"
#include "core/program/recorder.h"
#include "core/program/structure.h"
#include "core/program/view.h"
#include "core/rules/id_flow.h"
#include "core/run/ids.h"
#include "core/run/role.h"
#include "core/run/storage_states.h"

namespace addend {
namespace {

[[noreturn]] void Refuse(const Call& call, const std::string& why) {
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat("the model cannot be planned: ", FullName(call.op.schema()), " ", why), call.position,
              "attribute it without a plan");
}

[[noreturn]] void GoesAnotherWay(const Call& call, const std::string& how) {
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat("the plan does not hold for this input: ", FullName(call.op.schema()), " ", how),
              call.position, "attribute it without the plan, or make a plan of such an input");
}

bool SameNumbers(const std::vector<c10::IValue>& a, const std::vector<c10::IValue>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SamePlain);
}

bool UpdatesStatistics(const OperatorTraits& traits, const Call& call) {
  const c10::ArrayRef<int16_t> updated = traits.StatisticsWritten(call.arguments);
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.storage >= 0 && std::count(updated.begin(), updated.end(), operand.argument) > 0;
  });
}

}  // namespace

class RepeatedRun::Memory {
 public:
  std::shared_ptr<TracedRun> trace;
  // Tensors by slot, each over the whole storage.
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> references;  // undefined: equal to the value
};

RepeatedRun::RepeatedRun(std::shared_ptr<const TracedRun> first, const Registry& registry,
                         std::vector<RepeatedInput> inputs, const StageProgress& progress)
    : first_(std::move(first)), inputs_(std::move(inputs)) {
  RequireRepeatable();
  for (size_t s = 0; s < first_->versions.size(); ++s) {
    for (size_t v = 0; v < first_->versions[s].size(); ++v) {
      slot_of_.emplace(VersionId(static_cast<int>(s), first_->versions[s][v].version), static_cast<int>(slots_.size()));
      slots_.push_back({static_cast<int>(s), static_cast<int>(v)});
    }
  }
  for (const RepeatedInput& input : inputs_) {
    int slot = -1;
    if (input.storage >= 0) {
      Operand operand;
      operand.storage = input.storage;
      slot = SlotOf(operand);
      slots_[slot].value_varies = true;
      slots_[slot].reference_varies = !input.same_reference;
    }
    input_slots_.push_back(slot);
  }
  for (const Call& call : first_->calls) AddStep(call, registry);
  AddComparisons();
  CompareWithFirst(progress);
}

RepeatedRun::~RepeatedRun() = default;

void RepeatedRun::RequireRepeatable() const {
  const TracedRun& trace = *first_;
  if (trace.memory_limit > 0 || trace.dropped) {
    throw FailedPrecondition("a plan keeps what it needs; it has no memory limit");
  }
  if (trace.differentiable) throw Internal("a run that autograd follows is not repeated");
  for (const Start& start : trace.starts) {
    if (start.inside) throw FailedPrecondition("a split that starts inside the model cannot be planned");
    if (start.parts.defined()) throw FailedPrecondition("inputs given as explicit parts cannot be planned");
  }
  // Ids that do not move now may move in another run.
  if (!trace.mixed_ids.empty()) {
    throw Error(absl::StatusCode::kFailedPrecondition,
                "the model cannot be planned: ids are used in a way in which no component follows",
                trace.mixed_ids[0].use, "attribute it without a plan");
  }
  absl::flat_hash_set<int> made;  // storages that an operator of the run gave, or that are inputs
  for (const RepeatedInput& input : inputs_) made.insert(input.storage);
  for (const Call& call : trace.calls) {
    const OperatorTraits traits(call.op.schema());
    if (call.draws) Refuse(call, "draws random numbers");
    if (UpdatesStatistics(traits, call)) Refuse(call, "updates running statistics; set the model to evaluation mode");
    if (call.Traced() && traits.SizesFromData(call.arguments)) Refuse(call, "gives a size that depends on elements");
    for (const Adoption& adoption : call.adoptions) {
      const auto& operands = adoption.whole->operands;
      if (std::any_of(operands.begin(), operands.end(), [](const Operand& operand) { return operand.written; })) {
        Refuse(*adoption.whole, "writes in place, and is computed by other operators");
      }
    }
    for (const Operand& operand : call.operands) {
      if (operand.written && operand.storage >= 0 && !made.contains(operand.storage)) {
        Refuse(call, "writes memory that was there before the run, so that the next run would find something else");
      }
    }
    for (const Operand& output : call.outputs) made.insert(output.storage);
    const bool ids = call.Traced() && !call.is_view && !GivesNumbers(call) && !call.outputs.empty();
    if (!ids || IdFlowOf(RuleName(call.op.schema().name())) != IdFlow::kMoves) continue;
    for (const Operand& operand : call.operands) {
      if (operand.labelled && !IsMoved(call.op.schema().arguments()[operand.argument].name())) {
        Refuse(call, "moves ids to places that depend on ids");
      }
    }
  }
}

int RepeatedRun::SlotOf(const Operand& operand) {
  if (operand.storage < 0) return -1;
  const auto [it, is_new] = slot_of_.try_emplace(VersionIdOf(operand), static_cast<int>(slots_.size()));
  if (is_new) slots_.push_back({operand.storage, -1});
  return it->second;
}

// Finds where a call gets its operands. Returns whether what it gives on the baseline may be another each time.
bool RepeatedRun::Place(const Call& call, Placed& placed) {
  bool reference_varies = false;
  for (const Operand& operand : call.operands) {
    placed.slots.push_back(SlotOf(operand));
    if (placed.slots.back() < 0) continue;
    const Slot& slot = slots_[placed.slots.back()];
    if (!slot.value_varies && slot.kept < 0) Refuse(call, "computes with something that the run does not keep");
    reference_varies = reference_varies || (operand.on_baseline ? slot.reference_varies : slot.value_varies);
  }
  return reference_varies;
}

void RepeatedRun::AddStep(const Call& linearized, const Registry& registry) {
  const Call& call = linearized.AsMade();
  if (call.is_view) return;
  const Role role(registry, call.op);
  const bool varies = std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.storage >= 0 && slots_[SlotOf(operand)].value_varies;
  });
  if (!varies || role.sizes_only) return;
  Step step(call);
  step.is_guard = role.traits.reads_number;
  const bool reference_varies = Place(call, step);
  if (step.is_guard && call.outputs.empty() && reference_varies) {
    const auto guard = std::find_if(first_->guards.begin(), first_->guards.end(),
                                    [&](const Condition& condition) { return condition.call == call.index; });
    if (guard != first_->guards.end()) step.guard = static_cast<int>(guard - first_->guards.begin());
  }
  for (const Operand& output : call.outputs) {
    Result result;
    const bool alias = !output.written && std::any_of(call.operands.begin(), call.operands.end(),
                                                      [&](const Operand& o) { return o.storage == output.storage; });
    if (output.storage >= 0 && !alias) {
      result.slot = SlotOf(output);
      result.value = true;
      Slot& slot = slots_[result.slot];
      slot.value_varies = true;
      result.reference = reference_varies && (output.decomposed || output.labelled);
      slot.reference_varies = result.reference;
      step.on_reference = step.on_reference || result.reference;
    }
    step.outputs.push_back(result);
  }
  if (linearized.made != nullptr) {
    // Whether attention is taken as one operator depends on what its masks hide.
    for (const Operand& operand : linearized.operands) {
      if (operand.storage < 0 || operand.decomposed || !slots_[SlotOf(operand)].value_varies) continue;
      Refuse(call, "is the last of an attention whose mask is computed of the input");
    }
  }
  for (const Adoption& adoption : call.adoptions) {
    auto whole = std::make_shared<Placed>(*adoption.whole);
    if (Place(*adoption.whole, *whole) || step.on_reference) {
      Refuse(*adoption.whole, "is computed by other operators, on a reference that each row brings");
    }
    step.wholes.push_back(std::move(whole));
  }
  steps_.push_back(std::move(step));
}

std::vector<bool> RepeatedRun::SteadyCalls() const {
  std::vector<bool> steady;
  const auto stays = [&](const Operand& operand) {
    if (operand.storage < 0) return true;
    const auto found = slot_of_.find(VersionIdOf(operand));
    if (found == slot_of_.end()) return true;
    const Slot& slot = slots_[found->second];
    return !slot.reference_varies && (operand.decomposed || !slot.value_varies);
  };
  for (const Call& call : first_->calls) {
    steady.push_back(std::all_of(call.operands.begin(), call.operands.end(), stays) &&
                     std::all_of(call.outputs.begin(), call.outputs.end(), stays));
  }
  return steady;
}

void RepeatedRun::AddComparisons() {
  for (size_t k = 0; k < first_->conditions.size(); ++k) {
    const Call& call = first_->calls[first_->conditions[k].call];
    if (first_->baseline_conditions && !ReadsRows(call)) {
      Refuse(call, "computes from conditions alone, of which the reference has those of the baseline");
    }
    Comparison comparison;
    comparison.condition = k;
    for (const Operand& operand : call.operands) {
      if (operand.storage >= 0 && operand.labelled) comparison.operands.push_back(operand);
    }
    comparisons_.push_back(std::move(comparison));
  }
}

std::unique_ptr<RepeatedRun::Memory> RepeatedRun::NewMemory() const {
  auto memory = std::make_unique<Memory>();
  memory->trace = std::make_shared<TracedRun>(*first_);
  for (const Slot& slot : slots_) {
    const Version* kept = slot.kept < 0 ? nullptr : &first_->versions[slot.storage][slot.kept];
    memory->values.push_back(kept != nullptr ? kept->value : at::Tensor());
    memory->references.push_back(kept != nullptr ? kept->reference : at::Tensor());
    if (kept == nullptr) continue;
    Version& own = memory->trace->versions[slot.storage][slot.kept];
    own.Forget();
    if (slot.reference_varies) continue;
    own.reference_is_finite = kept->reference_is_finite;
    own.largest_reference = kept->largest_reference;
  }
  return memory;
}

// `numbers`: gets the results that are no tensors; null: not asked for.
std::vector<at::Tensor> RepeatedRun::Give(const Placed& placed, bool on_reference, Memory& memory,
                                          std::vector<c10::IValue>* numbers) const {
  const Call& call = *placed.call;
  Invoked invoked = Invoke(
      call, placed.recipe,
      [&](size_t k) -> const at::Tensor& {
        const int slot = placed.slots[k];
        const bool reference = on_reference && call.operands[k].on_baseline && memory.references[slot].defined();
        const at::Tensor& flat = reference ? memory.references[slot] : memory.values[slot];
        if (!flat.defined()) throw Internal("an operand of a repeated call was not kept");
        return flat;
      },
      numbers != nullptr);
  if (numbers != nullptr) *numbers = std::move(invoked.plain);
  return std::move(invoked.outputs);
}

// Puts the numbers of a rewritten operator in the place of those that the call gave.
void RepeatedRun::Adopt(const Step& step, const std::vector<at::Tensor>& given, Memory& memory) const {
  const Call& call = *step.call;
  for (size_t a = 0; a < step.wholes.size(); ++a) {
    const Adoption& adoption = call.adoptions[a];
    const std::vector<at::Tensor> own = Give(*step.wholes[a], /*on_reference=*/false, memory, nullptr);
    for (size_t k = 0; k < call.outputs.size() && k < given.size(); ++k) {
      if (call.outputs[k].storage != adoption.place.storage) continue;
      const StorageInfo& storage = first_->storages[adoption.place.storage];
      at::Tensor target = ViewOf(Flat(given[k], storage, /*differentiable=*/false), adoption.place);
      if (adoption.result >= own.size() || own[adoption.result].sizes() != target.sizes()) {
        GoesAnotherWay(*adoption.whole, "gives another layout");
      }
      target.copy_(own[adoption.result]);
      break;
    }
  }
}

void RepeatedRun::Keep(const Step& step, const std::vector<at::Tensor>& given, bool on_reference,
                       Memory& memory) const {
  const Call& call = *step.call;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Result& result = step.outputs[k];
    if (on_reference ? !result.reference : !result.value) continue;
    const Operand& output = call.outputs[k];
    if (k >= given.size() || !HasLayout(given[k], output)) GoesAnotherWay(call, "gives another layout");
    const Slot& slot = slots_[result.slot];
    const StorageInfo& storage = first_->storages[slot.storage];
    const at::Tensor flat = Flat(given[k], storage, /*differentiable=*/false);
    if (flat.numel() != storage.numel) GoesAnotherWay(call, "gives another layout");
    (on_reference ? memory.references : memory.values)[result.slot] = flat;
    if (slot.kept < 0) continue;
    Version& kept = memory.trace->versions[slot.storage][slot.kept];
    on_reference ? kept.SetReference(flat) : kept.SetValue(flat);
  }
}

// Makes one call and keeps what it gives. Returns the numbers that it gives the program.
std::vector<c10::IValue> RepeatedRun::RunStep(const Step& step, Memory& memory) const {
  std::vector<c10::IValue> numbers;
  const std::vector<at::Tensor> given = Give(step, /*on_reference=*/false, memory, step.is_guard ? &numbers : nullptr);
  if (!step.wholes.empty()) Adopt(step, given, memory);
  // Before the call's own results take the place of what it reads.
  std::vector<at::Tensor> references;
  if (step.on_reference) references = Give(step, /*on_reference=*/true, memory, nullptr);
  Keep(step, given, /*on_reference=*/false, memory);
  if (step.on_reference) Keep(step, references, /*on_reference=*/true, memory);
  return numbers;
}

bool RepeatedRun::SameOnReferences(const Step& step, Memory& memory) const {
  std::vector<c10::IValue> numbers;
  try {
    Give(step, /*on_reference=*/true, memory, &numbers);
  } catch (const c10::Error&) {
    return false;  // the baseline lies outside of its domain
  }
  return SameNumbers(numbers, step.numbers);
}

// Notes for each condition whether its operands are the same on the baseline.
void RepeatedRun::LookAtBaseline(Memory& memory) const {
  for (const Comparison& comparison : comparisons_) {
    bool same = true;
    for (const Operand& operand : comparison.operands) {
      same = same && ReadSameNumbers(memory.trace->Value(operand), memory.trace->Reference(operand));
    }
    memory.trace->conditions[comparison.condition].same = same;
  }
}

void RepeatedRun::RunSteps(Memory& memory, const StageProgress& progress) const {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  int64_t done = 0;
  for (const Step& step : steps_) {
    if (progress) progress("trace", done++, static_cast<int64_t>(steps_.size()));
    const std::vector<c10::IValue> numbers = RunStep(step, memory);
    if (!step.is_guard) continue;
    if (!SameNumbers(numbers, step.numbers)) GoesAnotherWay(*step.call, "gives the program another number");
    // Its operands may be written later.
    if (step.guard >= 0) memory.trace->guards[step.guard].same = SameOnReferences(step, memory);
  }
  LookAtBaseline(memory);
}

void RepeatedRun::CompareWithFirst(const StageProgress& progress) {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  std::unique_ptr<Memory> memory = NewMemory();
  int64_t done = 0;
  for (Step& step : steps_) {
    if (progress) progress("trace", done++, static_cast<int64_t>(steps_.size()));
    step.numbers = RunStep(step, *memory);
    if (step.guard >= 0 && SameOnReferences(step, *memory) != first_->guards[step.guard].same) {
      Refuse(*step.call, "gives the program a number, and what it gives on the baseline is not known");
    }
    for (const Result& result : step.outputs) {
      if (result.slot < 0 || slots_[result.slot].kept < 0) continue;
      const Version& kept = first_->versions[slots_[result.slot].storage][slots_[result.slot].kept];
      if (kept.value.defined() && !ReadSameNumbers(kept.value, memory->values[result.slot])) {
        Refuse(*step.call, "gives other numbers when it runs again");
      }
    }
  }
  LookAtBaseline(*memory);
  for (const Comparison& comparison : comparisons_) {
    const Condition& condition = first_->conditions[comparison.condition];
    if (memory->trace->conditions[comparison.condition].same == condition.same) continue;
    Refuse(first_->calls[condition.call], "reads conditions, and what they are on the baseline is not known");
  }
  free_.push_back(std::move(memory));
}

RepeatedRun::Repetition RepeatedRun::Run(const std::vector<at::Tensor>& values,
                                         const std::vector<at::Tensor>& references,
                                         const StageProgress& progress) const {
  std::unique_ptr<Memory> memory;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      memory = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (memory == nullptr) memory = NewMemory();
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const int slot = input_slots_[k];
    if (slot < 0 || !values[k].defined()) continue;
    const at::ScalarType dtype = first_->storages[slots_[slot].storage].dtype;  // see Note [Wide inputs]
    memory->values[slot] = values[k].flatten().to(dtype);
    if (references[k].defined()) memory->references[slot] = references[k].flatten().to(dtype);
    if (slots_[slot].kept < 0) continue;
    Version& kept = memory->trace->versions[slots_[slot].storage][slots_[slot].kept];
    kept.SetValue(memory->values[slot]);
    if (references[k].defined()) kept.SetReference(memory->references[slot]);
  }
  RunSteps(*memory, progress);
  LookAtNumbers(*memory->trace);
  return Repetition(this, std::move(memory));
}

RepeatedRun::Repetition::Repetition(const RepeatedRun* run, std::unique_ptr<Memory> memory)
    : run_(run), memory_(std::move(memory)) {}

RepeatedRun::Repetition::Repetition(Repetition&&) noexcept = default;

const std::shared_ptr<TracedRun>& RepeatedRun::Repetition::trace() const { return memory_->trace; }

RepeatedRun::Repetition::~Repetition() {
  if (memory_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(run_->mutex_);
  run_->free_.push_back(std::move(memory_));
}

}  // namespace addend
