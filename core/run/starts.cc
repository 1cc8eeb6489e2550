#include "core/run/starts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/view.h"

namespace addend {
namespace {

[[noreturn]] void RefuseInside(const std::string& why, const Position& position = {}) {
  throw Error(absl::StatusCode::kFailedPrecondition, absl::StrCat("a split cannot start inside the model: ", why),
              position);
}

}  // namespace

void Starts::AddFloatInput(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels,
                           const at::Tensor& read_labels) {
  const Operand operand = states_->Describe(value);
  StorageState& state = states_->Of(operand.storage);
  state.decomposed = true;
  state.reference = reference.flatten();
  state.steps = std::make_shared<const Steps>(read_labels.flatten());
  Start start;
  start.operand = operand;
  start.labels = labels.flatten();
  starts_.push_back(std::move(start));
  kept_->AddInput(operand);
  states_->Keep(operand, value);
}

void Starts::AddParts(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& parts,
                      const at::Tensor& leftover, uint32_t marks, int64_t depth, bool single) {
  const Operand operand = states_->Describe(value);
  StorageState& state = states_->Of(operand.storage);
  state.decomposed = true;
  state.reference = reference.flatten();
  Start start;
  start.operand = operand;
  start.parts = parts.reshape({parts.size(0), value.numel()});
  if (leftover.defined()) start.leftover = leftover.flatten();
  start.marks = marks;
  start.depth = depth;
  start.single = single;
  starts_.push_back(std::move(start));
  kept_->AddInput(operand);
  states_->Keep(operand, value);
}

void Starts::AddIds(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels) {
  const Operand operand = states_->Describe(value);
  StorageState& state = states_->Of(operand.storage);
  state.tracked = true;
  state.reference = reference.flatten();
  state.labels = labels.flatten();
  kept_->AddInput(operand);
}

void Starts::AddInside(const InsidePlace& place, const at::Tensor& reference, const at::Tensor& labels) {
  insides_.push_back({place, reference, labels, starts_.size(), false});
  starts_.emplace_back();
}

void Starts::BeginInside(const std::vector<at::Tensor>& tensors, Call& call) {
  for (Inside& inside : insides_) {
    if (inside.begun || inside.place.call != call.program_call) continue;
    if (call.Traced() || call.depth > 0) RefuseInside("the tensor depends on another split already", call.position);
    const size_t k = inside.place.output;
    if (FullName(call.op.schema()) != inside.place.op || k >= tensors.size() ||
        tensors[k].sizes() != inside.labels.sizes()) {
      RefuseInside("it called other operators when it ran again", call.position);
    }
    Begin(inside, tensors[k], call.outputs[k], call.position);
  }
}

void Starts::Begin(Inside& inside, const at::Tensor& tensor, Operand& output, const Position& position) {
  const StorageInfo& storage = states_->Info(output.storage);
  StorageState& state = states_->Of(output.storage);
  if (state.decomposed) RefuseInside("the tensor is in memory that another split is in", position);
  if (output.dtype != storage.dtype || output.conjugated || output.negated) {
    RefuseInside("the tensor is a view of numbers of another kind", position);
  }
  const TracingPause pause;
  const at::Tensor flat = Flat(tensor, storage, /*differentiable=*/false);
  const at::Tensor value = ViewOf(flat, output);
  const at::Tensor labels = inside.labels.to(value.device());
  state.reference = flat.clone();
  Start& start = starts_[inside.start];
  start.labels = at::full({storage.numel}, -1, labels.options());
  try {
    ViewOf(state.reference, output).copy_(at::where(labels.lt(0), value, inside.reference.to(value.device())));
    ViewOf(start.labels, output.geometry).copy_(labels);
  } catch (const c10::Error&) {
    RefuseInside("elements of the tensor share memory", position);
  }
  output.decomposed = true;
  start.inside = output;
  start.operand = output;
  start.operand.geometry = {{storage.numel}, {1}, 0};
  state.decomposed = true;
  states_->Keep(output, tensor);
  state.kept.back().reference = state.reference;
  inside.begun = true;
}

std::vector<Start> Starts::Take() {
  for (const Inside& inside : insides_) {
    if (inside.begun) continue;
    RefuseInside(absl::StrCat(inside.place.op, " (op #", inside.place.call, ") was not called when it ran again"));
  }
  return std::move(starts_);
}

}  // namespace addend
