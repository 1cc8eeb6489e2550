#include "core/rules/ends.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

double MaxAbs(const at::Tensor& t) { return t.numel() == 0 ? 0 : ReadNumber(t.abs().max()); }

// A mask [*batch] before an output [*batch, ...].
at::Tensor Spread(const at::Tensor& mask, const at::Tensor& output) {
  at::Tensor spread = mask;
  while (spread.dim() < output.dim()) spread = spread.unsqueeze(-1);
  return spread;
}

Rows Moved(const RuleCall& call, const RuleResult& result) {
  Rows moves;
  for (const int input : result.inputs) moves.push_back(call.Move(input).unsqueeze(0));
  return result.map->Forward(moves);
}

}  // namespace

void RequireReal(const RuleCall& call) {
  for (const RuleOutput& output : call.outputs) {
    if (output.value.defined() && output.value.is_complex()) throw Unimplemented(call.name + " of complex matrices");
  }
}

at::Tensor TransposeMatrix(const at::Tensor& matrix) { return matrix.transpose(-2, -1); }

Ends EndsOf(const RuleOperand& operand) { return {operand.value, operand.reference}; }
Ends EndsOf(const RuleOutput& output) { return {output.value, output.reference}; }

Ends Both(const Ends& ends, const std::function<at::Tensor(const at::Tensor&)>& f) {
  const at::Tensor value = f(ends.value);
  return {value, ends.reference.is_same(ends.value) ? value : f(ends.reference)};
}

at::Tensor MissingReference(const Ends& matrices) {
  if (matrices.reference.numel() == 0 || AllFinite(matrices.reference)) return {};
  const auto finite = [](const at::Tensor& t) { return at::isfinite(t).all(-1).all(-1); };
  const at::Tensor missing = finite(matrices.reference).logical_not_().logical_and_(finite(matrices.value));
  return ReadFlag(missing.any()) ? missing : at::Tensor();
}

at::Tensor Either(const at::Tensor& mask, const at::Tensor& other) {
  if (!mask.defined()) return other;
  return other.defined() ? mask.logical_or(other) : mask;
}

Ends ValueWhere(const at::Tensor& mask, const Ends& matrices) {
  if (!mask.defined()) return matrices;
  return {matrices.value, at::where(mask.unsqueeze(-1).unsqueeze(-1), matrices.value, matrices.reference)};
}

void MeetValue(const RuleCall& call, const at::Tensor& mask, RuleResult* result) {
  if (!mask.defined() || !result->map) return;
  const Rows moved = Moved(call, *result);
  result->stand_ins.resize(call.outputs.size());
  bool left_over = false;
  for (size_t k = 0; k < moved.size(); ++k) {
    const RuleOutput& output = call.outputs[k];
    if (!moved[k].defined() || output.value.numel() == 0) continue;
    if (AllFinite(output.reference)) {
      left_over = true;
      continue;
    }
    const at::Tensor met = output.value - moved[k].select(0, 0);
    result->stand_ins[k] = at::where(Spread(mask, output.value), met, output.reference);
  }
  if (left_over) KeepBracket(call, result);
}

void KeepBracket(const RuleCall& call, RuleResult* result) {
  Rows moved;
  if (result->map) moved = Moved(call, *result);
  moved.resize(call.outputs.size());
  double largest = 0;
  for (size_t k = 0; k < moved.size(); ++k) {
    const RuleOutput& output = call.outputs[k];
    if (!output.value.defined() || !output.value.is_floating_point()) continue;
    const at::Tensor stand_in = k < result->stand_ins.size() ? result->stand_ins[k] : at::Tensor();
    const at::Tensor bracket = output.value - (stand_in.defined() ? stand_in : output.reference);
    const double own = MaxAbs(moved[k].defined() ? bracket - moved[k].select(0, 0) : bracket);
    const double scale = MaxAbs(output.value);
    largest = std::max(largest, scale > 0 ? own / scale : own);
  }
  result->exact = false;
  result->quadrature = std::max(largest, std::numeric_limits<double>::epsilon());
}

at::Tensor Mirrored(const at::Tensor& matrix, bool upper) {
  return upper ? matrix.triu() + TransposeMatrix(matrix.triu(1)) : matrix.tril() + TransposeMatrix(matrix.tril(-1));
}

std::function<at::Tensor(const at::Tensor&)> SymmetricRows(const RuleOperand& operand, bool upper, bool halves) {
  const auto symmetric = [](const at::Tensor& matrix) {
    const double eps = matrix.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
    return MaxAbs(matrix - TransposeMatrix(matrix)) <= eps * MaxAbs(matrix);
  };
  if (symmetric(operand.value) && symmetric(operand.reference)) {
    return [halves](const at::Tensor& rows) { return halves ? (rows + TransposeMatrix(rows)) / 2 : rows; };
  }
  return [upper](const at::Tensor& rows) { return Mirrored(rows, upper); };
}

}  // namespace addend
