#include "core/run/rewriting.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/replace_tensors.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/view.h"
#include "core/rules/fused.h"
#include "core/rules/kinds.h"
#include "core/run/role.h"

namespace addend {
namespace {

RewriteCall DescribeForRewrite(const CallAtHand& own) { return {ArgumentsOf(own.call, own.arguments)}; }

// How far two ways to compute the same may lie apart, relative to the largest value.
double RewriteTolerance(at::ScalarType dtype) {
  switch (c10::toRealValueType(dtype)) {
    case at::kDouble:
      return 1e-11;
    case at::kHalf:
      return 1e-2;
    case at::kBFloat16:
      return 5e-2;
    default:
      return 1e-4;
  }
}

// The largest difference over the largest magnitude; infinite where one is finite or NaN and the other is not.
double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  if (!b.is_floating_point() && !b.is_complex()) return ReadEqual(a, b) ? 0 : std::numeric_limits<double>::infinity();
  const bool half = b.scalar_type() == at::kHalf || b.scalar_type() == at::kBFloat16;
  const at::Tensor x = half ? a.to(at::kFloat) : a;
  const at::Tensor y = half ? b.to(at::kFloat) : b;
  const at::Tensor finite = y.isfinite();
  const at::Tensor same = x.eq(y).logical_or_(x.isnan().logical_and_(y.isnan())).logical_or_(finite);
  if (!ReadFlag(same.all())) return std::numeric_limits<double>::infinity();
  const double largest = ReadNumber(y.abs().masked_fill_(finite.logical_not(), 0).max());
  const double difference = ReadNumber((x - y).abs().masked_fill_(finite.logical_not(), 0).max());
  return largest > 0 ? difference / largest : difference;
}

bool Writes(const Call& call, int storage) {
  return std::any_of(call.outputs.begin(), call.outputs.end(),
                     [&](const Operand& output) { return output.storage == storage; });
}

bool Reads(const Call& call, int storage) {
  const auto& operands = call.AsMade().operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return operand.storage == storage; });
}

}  // namespace

bool Rewriting::IsFused(const CallAtHand& own) const {
  const FusedRule* fused = FusedOf(own.role.rewrite);
  if (fused == nullptr || differentiable_ || !AllowsFused(*policy_)) return false;
  const TracingPause pause;
  std::vector<bool> moves(own.arguments.size(), false);
  for (const Operand& operand : own.call.operands) {
    // Conditions that are others on the baseline: the map would be made of the value's alone.
    if (operand.labelled && policy_->conditions == Conditions::kBaseline) return false;
    if (!operand.decomposed) continue;
    moves[operand.argument] = true;
    // Infinities pass each operator in a way of its own.
    if (!AllFinite(ViewOf(states_->At(operand.storage).reference, operand))) return false;
  }
  return fused->covers(DescribeForRewrite(own), moves);
}

std::vector<c10::IValue> Rewriting::RunItself(const CallAtHand& own) const {
  return reference_run_->RunAside(own, /*on_reference=*/false, own.role.rewrite->updates);
}

std::vector<c10::IValue> Rewriting::Run(CallAtHand& own, const std::vector<c10::IValue>& given) {
  const Expected expected = Expect(own, given);
  const size_t first = recorder_->traced().calls.size();
  std::vector<at::Tensor> results = own.role.rewrite->run(DescribeForRewrite(own));
  const Targets targets = TargetsOf(own);
  const size_t count = expected.values.size();
  if (results.size() != count || expected.references.size() != count ||
      (!targets.tensors.empty() && targets.tensors.size() != count)) {
    throw Internal(
        absl::StrCat("the rewrite of ", own.role.full_name, " gives ", results.size(), " tensors, not ", count));
  }
  for (size_t k = 0; k < count; ++k) {
    results[k] = ResultFor(own, k, results[k], expected.values[k], targets, first);
  }
  for (size_t k = 0; k < count; ++k) {
    const at::Tensor& value = expected.values[k];
    if (!value.defined() || !results[k].defined() || results[k].is_same(value)) continue;
    Adopt(own, k, results[k], value, expected.references[k], first, expected.known);
  }
  size_t next = 0;
  std::vector<c10::IValue> own_results;
  for (const c10::IValue& value : given) {
    own_results.push_back(ReplaceTensors(value, [&](const at::Tensor&) { return results[next++]; }));
  }
  return own_results;
}

Rewriting::Expected Rewriting::Expect(CallAtHand& own, const std::vector<c10::IValue>& given) {
  kept_->LookUpRewrite(own);
  Expected expected;
  expected.values = TensorsIn(given);
  expected.known = own.known != nullptr;
  expected.references =
      expected.known ? own.known->references
                     : TensorsIn(reference_run_->RunAside(own, /*on_reference=*/true, own.role.rewrite->updates));
  if (expected.references.empty()) expected.references.resize(expected.values.size());
  kept_->KeepRewrite(own, expected.references);
  return expected;
}

Rewriting::Targets Rewriting::TargetsOf(const CallAtHand& own) {
  Targets targets;
  for (size_t a = 0; a < own.arguments.size(); ++a) {
    const c10::Argument& argument = own.call.op.schema().arguments()[a];
    if (argument.alias_info() == nullptr || !argument.alias_info()->isWrite()) continue;
    targets.is_out |= argument.is_out();
    ForEachTensor(own.arguments[a], [&](const at::Tensor& tensor) { targets.tensors.push_back(tensor); });
  }
  return targets;
}

at::Tensor Rewriting::ResultFor(const CallAtHand& own, size_t k, const at::Tensor& result, const at::Tensor& value,
                                const Targets& targets, size_t first) const {
  const bool returns = targets.tensors.empty();
  if (!value.defined()) return returns ? value : targets.tensors[k];
  const bool by_operator = value.numel() == 0 || (!result.defined() && !Continuous(value.scalar_type()));
  if (by_operator && returns) return value;
  const at::Tensor& made = by_operator ? value : result;
  if (!made.defined() || made.scalar_type() != value.scalar_type() || made.sizes() != value.sizes()) {
    throw Internal(absl::StrCat("the rewrite of ", own.role.full_name, " gives another shape or dtype for result ", k));
  }
  if (!returns) {
    at::Tensor target = targets.tensors[k];
    targets.is_out ? at::copy_out(target, made, made) : target.copy_(made);
    return target;
  }
  if (made.strides() == value.strides() && IsLastWord(made, own.call, first)) return made;
  const at::Tensor copy = value.is_non_overlapping_and_dense()
                              ? at::empty_strided(value.sizes(), value.strides(), value.options())
                              : at::empty(value.sizes(), value.options());
  copy.copy_(made);
  return copy;
}

// Whether `result` is an output of one of the calls from `first` on, shares its storage with no operand of the
// operator, and is read by no later call of the rewrite. Then the operator's value may replace it.
bool Rewriting::IsLastWord(const at::Tensor& result, const Call& call, size_t first) const {
  const int storage = recorder_->FindStorage(result);
  if (storage < 0 || Reads(call, storage)) return false;
  const std::vector<Call>& calls = recorder_->traced().calls;
  for (size_t c = calls.size(); c-- > first;) {
    if (calls[c].is_view) continue;
    if (Writes(calls[c], storage)) return true;
    if (Reads(calls[c], storage)) return false;
  }
  return false;
}

// The last call from `first` on that wrote to a storage; null: none did.
Call* Rewriting::MakerOf(int storage, size_t first) {
  std::vector<Call>& calls = recorder_->traced().calls;
  for (size_t c = calls.size(); c-- > first;) {
    if (!calls[c].is_view && Writes(calls[c], storage)) return &calls[c];
  }
  return nullptr;
}

// Whether a result of the rewrite is the operator's in float64 on the CPU: then what both differ by is how exact the
// operator itself is, as of variances of numbers that are far from zero, or of a kernel for GPUs that computes in
// single precision.
bool Rewriting::AgreesInDouble(const CallAtHand& own, size_t k) {
  if (own.call.draws || !TargetsOf(own).tensors.empty()) return false;
  bool inexact = false;
  std::vector<c10::IValue> arguments = own.arguments;
  for (c10::IValue& argument : arguments) {
    argument = ReplaceTensors(argument, [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      inexact = inexact || !tensor.device().is_cpu();
      if (!Continuous(tensor.scalar_type())) return tensor.to(at::kCPU);
      inexact = inexact || c10::toRealValueType(tensor.scalar_type()) != at::kDouble;
      return tensor.to(at::kCPU, tensor.is_complex() ? at::kComplexDouble : at::kDouble, /*non_blocking=*/false,
                       /*copy=*/true);
    });
  }
  if (!inexact) return false;
  try {
    const std::vector<at::Tensor> rewritten = own.role.rewrite->run({ArgumentsOf(own.call, arguments)});
    Stack stack = arguments;
    own.call.op.Run(&stack);
    const at::Tensor expected = TensorsIn(stack).at(k);
    return RelativeDifference(rewritten.at(k), expected) <= RewriteTolerance(expected.scalar_type());
  } catch (const std::exception&) {
    return false;  // one that cannot compute in float64 says nothing
  }
}

// Puts the operator's own numbers in the place of those that its rewrite gave.
void Rewriting::Adopt(const CallAtHand& own, size_t k, const at::Tensor& result, const at::Tensor& value,
                      const at::Tensor& reference, size_t first, bool known) {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  const double tolerance = RewriteTolerance(value.scalar_type());
  const double difference = RelativeDifference(result, value);
  if (!(difference <= tolerance) && !AgreesInDouble(own, k)) {
    throw Error(absl::StatusCode::kInternal,
                absl::StrCat("the rewrite of ", own.role.full_name, " differs from the operator by ", difference,
                             " of its largest value, tolerance ", tolerance),
                own.call.position);
  }
  // Not known to autograd: what it saved of the result is the same but for rounding.
  result.variable_data().copy_(value);
  const Operand operand = states_->Describe(result);
  if (!operand.decomposed) return;
  StorageState& state = states_->Of(operand.storage);
  state.OwnReference();
  state.reference_known = state.reference_known && known;
  Version& kept = state.kept.back();
  kept.reference = state.reference;
  const at::Tensor rewritten = ViewOf(state.reference, operand);
  // A rewrite may take conditions from the value, as every program does. Then the reference is still the operator's,
  // and what that makes of a difference is leftover.
  const bool same = !reference.defined() || RelativeDifference(rewritten, reference) <= tolerance;
  if (reference.defined()) {
    rewritten.variable_data().copy_(reference);
    kept.Forget();
  }
  if (Call* maker = MakerOf(operand.storage, first)) {
    maker->adopted =
        std::max(maker->adopted, same ? 2 * std::max(tolerance, difference) : std::numeric_limits<double>::infinity());
    maker->adoptions.push_back({std::make_shared<const Call>(own.call), k, operand});
  }
}

}  // namespace addend
