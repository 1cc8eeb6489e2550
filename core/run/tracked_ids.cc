#include "core/run/tracked_ids.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/host_read.h"
#include "core/program/view.h"
#include "core/rules/id_flow.h"

namespace addend {
namespace {

constexpr char kHint[] = "choose policy conditions=value, or another baseline";

constexpr int kLongChain = 64;

bool Labelled(const Operand& operand) { return operand.storage >= 0 && operand.labelled; }

at::Tensor Everywhere(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::ones({}, options.dtype(at::kBool).requires_grad(false)).expand(sizes);
}

}  // namespace

bool TrackedIds::IsId(const Operand& operand) const {
  if (!Labelled(operand)) return false;
  const StorageState& state = states_->At(operand.storage);
  return state.labels.defined() && !state.condition && !state.unknown;
}

bool TrackedIds::ReadsIds(const Call& call) const {
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) { return IsId(operand); });
}

bool TrackedIds::ReadsSteps(const Call& call) const {
  bool some = false;
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0) continue;
    const StorageState& state = states_->At(operand.storage);
    if (operand.labelled && !state.step && !IsId(operand)) return false;
    some = some || (operand.labelled ? state.step : operand.decomposed && state.steps != nullptr);
  }
  return some;
}

bool TrackedIds::ReadsUnknown(const Call& call) const {
  return std::any_of(call.operands.begin(), call.operands.end(),
                     [&](const Operand& operand) { return Labelled(operand) && states_->At(operand.storage).unknown; });
}

void TrackedIds::RequireKnown(const Call& call) const {
  if (!ReadsUnknown(call)) return;
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat(FullName(call.op.schema()), " reads what ", OriginOf(call).op,
                           " gives with other sizes on the baseline, so the reference cannot have the baseline's "
                           "conditions"),
              call.position, kHint);
}

void TrackedIds::RequireSameSizes(const Call& call) const {
  const bool labelled = std::any_of(call.operands.begin(), call.operands.end(), Labelled);
  if (!labelled || !baseline_conditions_) return;
  throw Error(absl::StatusCode::kFailedPrecondition,
              absl::StrCat("what ", OriginOf(call).op, " gives on the baseline makes ", FullName(call.op.schema()),
                           " give other sizes there, so the reference cannot have the baseline's conditions"),
              call.position, kHint);
}

bool TrackedIds::StartsRows(const Role& role, const Call& call) const {
  bool ids = false;
  for (const Operand& operand : call.operands) {
    if (operand.decomposed || operand.written) return false;
    ids = ids || IsId(operand);
  }
  if (IdReadingOf(call.op.schema(), call.arguments) != IdReading::kNone) {
    return call.operands.size() > 1 && IsId(call.operands[1]);
  }
  return ids && role.flow == IdFlow::kElementwise;
}

bool TrackedIds::ReadsReference(const Role& role, const Call& call, const Operand& operand) const {
  if (operand.decomposed) return true;
  if (!Labelled(operand)) return false;
  return baseline_conditions_ || (IsId(operand) && StartsRows(role, call));
}

void TrackedIds::MarkOnBaseline(const Role& role, bool gives_numbers, Call& call) const {
  for (Operand& operand : call.operands) {
    operand.on_baseline = operand.storage >= 0 && (operand.written || ReadsReference(role, call, operand) ||
                                                   (!gives_numbers && operand.labelled));
  }
}

Position TrackedIds::OriginOf(const Call& call) const {
  for (const Operand& operand : call.operands) {
    if (Labelled(operand) && states_->At(operand.storage).origin) return *states_->At(operand.storage).origin;
  }
  return call.position;
}

// Mask of elements of an integer or boolean operand that differ on the baseline; undefined if there are none.
at::Tensor TrackedIds::MovesOf(const Operand& operand, const at::Tensor& value) const {
  if (!Labelled(operand)) return {};
  const StorageState& state = states_->At(operand.storage);
  if (state.unknown) return at::ones(value.sizes(), value.options().dtype(at::kBool));
  const at::Tensor moves = value.ne(ViewOf(state.reference, operand));
  return ReadFlag(moves.any()) ? moves : at::Tensor();
}

bool TrackedIds::SameOnBaseline(const CallAtHand& own) const {
  bool same = true;
  own.ForEachOperand(
      [&](const at::Tensor& tensor, const Operand& operand) { same = same && !MovesOf(operand, tensor).defined(); });
  return same;
}

// Labels and moves of an operand of integers or booleans, or of floats that are steps.
IdOperand TrackedIds::IdOf(const at::Tensor& tensor, const Operand& operand) const {
  IdOperand id;
  if (operand.storage < 0 || !(operand.labelled || operand.decomposed)) return id;
  const StorageState& state = states_->At(operand.storage);
  const at::Tensor labels = operand.labelled ? state.labels : state.steps ? state.steps->Labels() : at::Tensor();
  // A view of complex numbers as real ones counts its elements otherwise.
  if (labels.defined() && states_->Info(operand.storage).dtype == operand.dtype) {
    id.labels = ViewOf(labels, operand.geometry).to(tensor.device());
  }
  id.moves = operand.labelled ? MovesOf(operand, tensor) : tensor.ne(ViewOf(state.reference, operand));
  return id;
}

IdLabels TrackedIds::LabelsOf(const CallAtHand& own, at::IntArrayRef sizes) const {
  std::vector<IdOperand> operands;
  own.ForEachOperand(
      [&](const at::Tensor& tensor, const Operand& operand) { operands.push_back(IdOf(tensor, operand)); });
  IdLabels found = CarryLabels(own.role.flow, own.call.op, own.arguments, operands, sizes);
  found.moves = found.mixed && std::any_of(operands.begin(), operands.end(), [](const IdOperand& operand) {
                  return operand.moves.defined() && ReadFlag(operand.moves.any());
                });
  return found;
}

void TrackedIds::FollowSteps(const CallAtHand& own, const Operand& output) {
  StorageState& state = states_->Of(output.storage);
  const bool in_place = output.written && !own.call.resized_output;
  const std::shared_ptr<const Steps> before = in_place ? state.steps : nullptr;
  state.steps = nullptr;
  const IdFlow flow = own.role.StepFlow();
  if (flow != IdFlow::kMoves && flow != IdFlow::kElementwise) return;
  if (own.call.outputs.size() != 1 || states_->Info(output.storage).dtype != output.dtype) return;
  // Steps of each operand, or its labels and moves if it is an id.
  std::vector<std::pair<std::shared_ptr<const Steps>, IdOperand>> sources;
  int length = before ? before->length() : 0;
  bool follows = true;
  own.ForEachOperand([&](const at::Tensor& tensor, const Operand& operand) {
    auto& [steps, id] = sources.emplace_back();
    if (!follows || operand.storage < 0) return;
    if (operand.decomposed) {
      steps = operand.written && in_place ? before : states_->At(operand.storage).steps;
      follows = steps != nullptr && states_->Info(operand.storage).dtype == operand.dtype;
      if (follows) length = std::max(length, steps->length());
    } else if (operand.labelled) {
      // The reference has the value's condition, which is not what the model does on the baseline.
      id = IdOf(tensor, operand);
      follows = !id.moves.defined();
    }
    const bool moved = IsMoved(own.call.op.schema().arguments()[operand.argument].name());
    if (flow == IdFlow::kMoves && !moved && tensor.defined()) follows = false;
  });
  if (!follows) return;
  const at::IntArrayRef sizes = output.geometry.sizes;
  const auto find = [before, sources, flow, op = own.call.op, output, sizes = sizes.vec(),
                     numel = states_->Info(output.storage).numel, operands = own.call.operands,
                     // Only the sizes of what moves are asked for.
                     arguments = flow == IdFlow::kMoves ? own.Replaced([](const at::Tensor& tensor, const Operand&) {
                       return tensor.defined() ? at::empty({}, tensor.options()).expand(tensor.sizes()) : tensor;
                     })
                                                        : std::vector<c10::IValue>()] {
    // Use the device of the first operand that has steps.
    const auto first = std::find_if(sources.begin(), sources.end(), [](const auto& source) { return source.first; });
    const at::TensorOptions options = first == sources.end() ? at::kLong : first->first->Labels().options();
    std::vector<IdOperand> known;
    for (size_t k = 0; k < sources.size(); ++k) {
      const auto& [steps, id] = sources[k];
      if (!steps) {
        known.push_back(id);
        continue;
      }
      known.push_back({ViewOf(steps->Labels(), operands[k].geometry).to(options.device()),
                       Everywhere(operands[k].geometry.sizes, options)});
    }
    const at::Tensor labels = CarryLabels(flow, op, arguments, known, sizes).labels;
    at::Tensor flat = before ? before->Labels().clone() : at::full({numel}, -1, options);
    at::Tensor own_labels = ViewOf(flat, output.geometry);
    labels.defined() ? own_labels.copy_(labels) : own_labels.fill_(-1);
    return flat;
  };
  const auto steps = std::make_shared<const Steps>(find, length + 1);
  // A long chain would be followed, and freed, too deep at once.
  if (steps->length() % kLongChain == 0) steps->Labels();
  state.steps = steps;
}

at::Tensor TrackedIds::FlatLabels(const at::Tensor& labels, const Operand& operand) const {
  const at::TensorOptions options = labels.defined() ? labels.options() : at::TensorOptions(at::kLong);
  at::Tensor flat = at::full({states_->Info(operand.storage).numel}, -1, options);
  if (labels.defined()) ViewOf(flat, operand.geometry).copy_(labels);
  return flat;
}

// The labels of integers and booleans that a call gave; undefined: no element has one.
void TrackedIds::SetLabels(const Operand& output, const at::Tensor& labels) {
  StorageState& state = states_->Of(output.storage);
  if (!output.written || !state.labels.defined() || state.labels.numel() != states_->Info(output.storage).numel) {
    state.labels = labels.defined() ? FlatLabels(labels, output) : at::Tensor();
    return;
  }
  state.labels = state.labels.clone();  // what was kept has them too
  at::Tensor own = ViewOf(state.labels, output.geometry);
  labels.defined() ? own.copy_(labels) : own.fill_(-1);
}

void TrackedIds::Adopt(const Call& call, const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels,
                       Operand& output) {
  StorageState& state = states_->Of(output.storage);
  state.tracked = output.labelled = true;
  const bool in_place = output.written && !call.resized_output;
  if (!in_place) {
    state.unknown = !reference.defined() || reference.sizes() != value.sizes();
    if (state.unknown) {
      state.reference = states_->FlatCopy(output, value);
    } else {
      states_->SetReference(output, value, reference);
    }
    state.condition = false;
    state.origin.reset();
  }
  state.reference_shared = state.reference_known = false;
  for (const Operand& operand : call.operands) {
    if (operand.storage < 0 || !(operand.labelled || operand.decomposed)) continue;
    const StorageState& from = states_->At(operand.storage);
    state.condition = state.condition || from.condition;
    state.unknown = state.unknown || from.unknown;
    if (!state.origin && from.origin) state.origin = from.origin;
  }
  if (!state.origin) state.origin = call.position;
  SetLabels(output, labels);
}

void TrackedIds::AdoptAll(Call& call, const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& references,
                          const IdLabels& own) {
  const bool unknown = ReadsUnknown(call);
  const bool ids = ReadsIds(call);
  const bool steps = ReadsSteps(call);
  const bool derived = std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.decomposed || (Labelled(operand) && states_->At(operand.storage).origin);
  });
  for (size_t k = 0; k < tensors.size(); ++k) {
    Operand& output = call.outputs[k];
    if (output.storage < 0) continue;
    const bool labelled = k == 0 && own.labels.defined() && own.labels.sizes() == tensors[0].sizes();
    Adopt(call, tensors[k], k < references.size() ? references[k] : at::Tensor(), labelled ? own.labels : at::Tensor(),
          output);
    StorageState& state = states_->Of(output.storage);
    state.unknown = state.unknown || unknown;
    // A comparison gives a condition, not an id, even if it depends on one id alone; the id itself remains one. See
    // Note [Steps].
    const bool one = labelled && !own.mixed;
    const bool id = (ids || steps) && one && output.dtype != at::kBool;
    state.step = steps && one && output.dtype == at::kBool;
    state.condition = !id && (state.condition || output.dtype == at::kBool || (!labelled && !ids));
    // Ids that were read from floats have the operator that did so as their origin; ids that were given have none.
    if (id && ids && !derived) state.origin.reset();
    states_->Keep(output, tensors[k]);
  }
}

}  // namespace addend
