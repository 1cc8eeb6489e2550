#include "core/linearize/forward_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/linearize/payments.h"
#include "core/program/view.h"
#include "core/rules/joint.h"

namespace addend {

ForwardStep::ForwardStep(const Linearization& linearization, RowLayout layout,
                         const std::vector<at::Tensor>* sums_of_all, std::vector<at::Tensor>* sums_before,
                         RowTable* rows)
    : linearization_(linearization),
      trace_(*linearization.trace),
      layout_(layout),
      sums_of_all_(sums_of_all),
      sums_before_(sums_before),
      rows_(*rows) {}

at::Tensor ForwardStep::Move(const Operand& operand) const {
  const at::ScalarType dtype = RowDtype(operand.dtype);
  return MoveOf(InDtype(trace_.Value(operand), dtype), InDtype(trace_.Reference(operand), dtype));
}

void ForwardStep::Begin(const Start& start) {
  const Operand& operand = start.operand;
  at::Tensor rows = rows_.Zeros(operand);
  const at::Tensor move = Move(operand).flatten();
  if (start.parts.defined()) {
    Narrow(rows, 0, 0, layout_.components).copy_(start.parts);
    if (start.leftover.defined() && layout_.all) Select(rows, 0, layout_.leftover()).copy_(start.leftover);
  } else {
    const at::Tensor where = start.labels.to(move.device());
    const at::Tensor taken = where.ge(0);
    rows.scatter_(0, where.clamp_min(0).unsqueeze(0), (move * taken).unsqueeze(0));
  }
  if (layout_.all) Select(rows, 0, layout_.move()).copy_(move);
  rows_.PutFlat(operand.storage, rows);
}

bool ForwardStep::Apply(size_t n) {
  const Node& node = linearization_.nodes[n];
  const Call& call = CallOf(node);
  bool by_map = false;
  if (node.starts) {
    StartRows(call);
  } else if (HandsOn(node, call)) {
    const Operand& input = call.operands[node.inputs[0]];
    if (input.storage != call.outputs[0].storage) {
      rows_.View(input);  // makes zeros where there are none yet
      rows_.Share(input.storage, call.outputs[0].storage);
    }
  } else {
    by_map = true;
    if (!ApplyInPlace(node, call, n)) ApplyMap(node, call);
  }
  if (node.constant.defined()) PayConstant(node, n);
  return by_map;
}

// Ids become numbers: each moves in the component that its id belongs to, or in none.
void ForwardStep::StartRows(const Call& call) {
  const Operand& output = call.outputs[0];
  const RowStart start = trace_.StartOf(call);
  const bool vectors = start.labels.dim() < start.moves.dim();
  const at::Tensor labels = vectors ? start.labels.unsqueeze(-1).expand(start.moves.sizes()) : start.labels;
  const at::Tensor taken = labels.ge(0);
  at::DimVector sizes = {layout_.count()};
  sizes.append(start.moves.sizes().begin(), start.moves.sizes().end());
  at::Tensor rows = at::zeros(sizes, start.moves.options());
  rows.scatter_(0, labels.clamp_min(0).unsqueeze(0), (start.moves * taken).unsqueeze(0));
  if (layout_.all) Select(rows, 0, layout_.leftover()).copy_(start.moves.masked_fill(taken, 0));
  rows_.PutFlat(output.storage, rows_.Zeros(output));
  at::Tensor all = rows_.View(output);
  start.bags.defined() ? all.index_add_(1, start.bags, rows) : all.copy_(rows);
  if (layout_.all) Select(all, 0, layout_.move()).copy_(Move(output));
}

// Whether the only output has the rows of the only input: written in place, or as they lie in a storage of its own.
bool ForwardStep::HandsOn(const Node& node, const Call& call) const {
  if (!node.map || !node.map->Identity() || node.keeps_bracket || node.joint || node.constant.defined()) return false;
  if (call.outputs.size() != 1 || !CarriesRows(call.outputs[0])) return false;
  const Operand& input = call.operands[node.inputs[0]];
  const Operand& output = call.outputs[0];
  if (!SameRows(input, output)) return false;
  if (input.storage == output.storage) return true;
  return !output.written && StorageOf(input).numel == StorageOf(output).numel;
}

// Whether rows of the one, as they lie in its storage, can be rows of the other in a storage of the same size.
bool ForwardStep::SameRows(const Operand& input, const Operand& output) const {
  return input.geometry == output.geometry && input.conjugated == output.conjugated &&
         input.negated == output.negated && RowDtype(input.dtype) == RowDtype(output.dtype) &&
         RowDtype(StorageOf(input).dtype) == RowDtype(StorageOf(output).dtype);
}

// Elementwise nodes with one output need no new memory where their input is not read again. False: it could not be
// done.
bool ForwardStep::ApplyInPlace(const Node& node, const Call& call, size_t n) {
  if (!node.map || node.joint || node.inputs.empty() || call.outputs.size() != 1 || !CarriesRows(call.outputs[0])) {
    return false;
  }
  const Operand& input = call.operands[node.inputs[0]];
  const Operand& output = call.outputs[0];
  const bool same_place = input.SamePlace(output);
  if (same_place && node.map->Accumulates()) {
    Rows rest(node.inputs.size());
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      const Operand& other = call.operands[node.inputs[k]];
      rest[k] = other.storage == output.storage ? rows_.View(other).clone() : Resolved(rows_.View(other));
    }
    rows_.Own(output);
    at::Tensor target = rows_.View(output);
    node.map->AddTo(target, rest);
    return true;
  }
  const at::Tensor* scale = node.map->Scale();
  if (scale == nullptr) return false;
  if (same_place) {
    rows_.Own(output);
    rows_.View(output).mul_(*scale);
    return true;
  }
  const bool last = linearization_.lives[input.storage].last <= static_cast<int64_t>(n);
  if (!last || output.written || !SameRows(input, output) || !CoversWhole(output, StorageOf(output)) ||
      StorageOf(input).numel != StorageOf(output).numel) {
    return false;
  }
  rows_.Own(input);
  rows_.View(input).mul_(*scale);
  rows_.Share(input.storage, output.storage);
  rows_.Drop(input.storage);
  return true;
}

void ForwardStep::ApplyMap(const Node& node, const Call& call) {
  Rows inputs;
  for (const int input : node.inputs) inputs.push_back(Resolved(rows_.View(call.operands[input])));
  Rows outputs;
  if (node.joint) {
    outputs = node.joint(inputs);
  } else if (node.map) {
    outputs = node.map->Forward(inputs);
  }
  inputs.clear();
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Operand& output = call.outputs[k];
    if (!CarriesRows(output)) continue;
    const bool given = k < outputs.size() && outputs[k].defined();
    const bool fresh = !output.written || call.resized_output;
    if (fresh && given) {
      rows_.Put(output, outputs[k]);
      // A map may hand on rows as they are: then nobody has them alone.
      for (const int input : node.inputs) rows_.NoteSharing(call.operands[input].storage, output.storage);
      for (size_t earlier = 0; earlier < k; ++earlier) {
        rows_.NoteSharing(call.outputs[earlier].storage, output.storage);
      }
    } else if (fresh) {
      rows_.Drop(output.storage);
    } else {
      rows_.Own(output);
      at::Tensor target = rows_.View(output);
      given ? target.copy_(outputs[k]) : target.zero_();
    }
  }
}

// The policy's bias: components get shares of the constant, which the leftover gives.
void ForwardStep::PayConstant(const Node& node, size_t n) {
  const Operand& output = CallOf(node).outputs[0];
  if (!CarriesRows(output)) return;
  rows_.Own(output);
  at::Tensor rows = rows_.View(output);
  at::Tensor components = Narrow(rows, 0, 0, layout_.components);
  if (!layout_.all) {
    // See Note [Paid by share of the sum].
    components.mul_(PaymentOf(node, (*sums_of_all_)[n]).share + 1);
    return;
  }
  if (sums_before_ != nullptr) (*sums_before_)[n] = components.sum(0);
  // Autograd, where it follows, keeps what the shares are computed from: that must not be written.
  const at::Tensor paid = ConstantShares(trace_.differentiable ? components.clone() : components,
                                         node.constant.to(rows.scalar_type()), node.bias, node.bias_parameter);
  components.add_(paid);
  Select(rows, 0, layout_.leftover()).sub_(paid.sum(0));
}

void ForwardStep::Release(size_t n) {
  const auto drop_if_last = [&](int storage) {
    if (linearization_.lives[storage].last <= static_cast<int64_t>(n)) rows_.Drop(storage);
  };
  const Node& node = linearization_.nodes[n];
  for (const int input : node.inputs) drop_if_last(CallOf(node).operands[input].storage);
  for (const Operand& output : CallOf(node).outputs) {
    if (CarriesRows(output)) drop_if_last(output.storage);
  }
}

}  // namespace addend
