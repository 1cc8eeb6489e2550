#include "core/linearize/recovery_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/program/view.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Four rows of `size` under random signs, [4, *S]; zero where it is not finite.
at::Tensor UnderRandomSigns(const at::Tensor& size, std::mt19937& random) {
  std::vector<double> signs(4 * size.numel());
  for (double& sign : signs) sign = (random() & 1) != 0 ? 1 : -1;
  at::DimVector sizes = {4};
  sizes.append(size.sizes().begin(), size.sizes().end());
  const at::Tensor drawn = at::tensor(signs, size.options()).view(sizes);
  return (drawn * size).masked_fill_(at::isfinite(size).logical_not_(), 0);
}

double Over(double size, double scale) { return scale > 0 ? size / scale : size; }

// The worst recovery of all outputs stays, and the largest leftover.
void NoteRecovery(const Settled& settled, double scale, double tolerance, OperatorCheck& check) {
  if (!(settled.error / scale < check.recovery_error)) {
    check.recovery_error = settled.error / scale;
    check.tolerance = tolerance;
  }
  check.leftover = std::max(check.leftover, settled.leftover / scale);
}

}  // namespace

at::Tensor ReachOf(const TracedRun& trace, const Node& node, size_t output, bool with_reference) {
  if (!node.map) return {};
  std::mt19937 random(20260101);
  Rows probes;
  for (const int input : node.inputs) {
    const Operand& operand = trace.program.calls[node.call].operands[input];
    const at::ScalarType dtype = RowDtype(operand.dtype);
    at::Tensor size = InDtype(trace.Value(operand), dtype).abs();
    if (with_reference) size = size + InDtype(trace.Reference(operand), dtype).abs();
    const at::Tensor real = UnderRandomSigns(size, random);
    probes.push_back(at::isComplexType(dtype) ? at::complex(real, UnderRandomSigns(size, random)) : real);
  }
  const Rows reached = node.map->Forward(probes);
  if (output >= reached.size() || !reached[output].defined()) return {};
  return reached[output].abs().amax(0).mul_(4);
}

RecoveryCheck::RecoveryCheck(const Linearization& linearization, const RowTable& rows, const Rounding& rounding,
                             int64_t components)
    : linearization_(linearization),
      trace_(*linearization.trace),
      rows_(rows),
      rounding_(rounding),
      components_(components),
      errors_(trace_.program.storages.size(), 0) {}

bool RecoveryCheck::JudgeRecovery(const Operand& operand, const at::Tensor& rows, const at::Tensor& reference,
                                  const Settled& settled, OperatorCheck& check) const {
  return JudgeRecovery(operand, rows, reference, settled, {}, check);
}

bool RecoveryCheck::JudgeRecovery(const Operand& operand, const at::Tensor& rows, const at::Tensor& reference,
                                  const Settled& settled, const Allowance& allowance, OperatorCheck& check) const {
  const double scale = settled.value > 0 ? settled.value : 1;
  double tolerance = rounding_.Tolerance(operand, components_);
  bool ok = settled.error <= tolerance * settled.value;
  if (!ok) {
    // Components may be much larger than what they sum to: then rounding is measured against them.
    const double mass = std::max(LargestMass(rows, reference, settled.error / tolerance), allowance.reach);
    ok = settled.error <= tolerance * mass + allowance.inherited;
    tolerance = (tolerance * mass + allowance.inherited) / scale;
  }
  NoteRecovery(settled, scale, tolerance, check);
  return ok;
}

// It is asked for only where a check would fail.
double RecoveryCheck::Reach(const Node& node, size_t output) const {
  const at::Tensor reached = ReachOf(trace_, node, output, /*with_reference=*/true);
  if (!reached.defined() || reached.numel() == 0) return 0;
  const double largest = ReadNumber(reached.max());
  return std::max(std::isfinite(largest) ? largest : 0, node.inner_terms);
}

// See Note [Inherited errors]. 0: not known, or nothing.
double RecoveryCheck::Inherited(const Node& node, size_t output) const {
  if (!node.map || linearization_.policy.check != Check::kEveryOp || !failures.empty()) return 0;
  const Call& call = CallOf(node);
  const at::Tensor* factor = node.map->Scale();
  if (node.inputs.size() == 1 && (factor != nullptr || node.map->Identity())) {
    return errors_[call.operands[node.inputs[0]].storage] * (factor == nullptr ? 1 : LargestFinite(*factor));
  }
  double bound = 0;
  Rows missing;
  for (size_t j = 0; j < node.inputs.size(); ++j) {
    const Operand& operand = call.operands[node.inputs[j]];
    const at::Tensor own = Missing(call, operand);
    if (own.defined()) {
      missing.push_back(own);
      continue;
    }
    // The rows were added to in place and are gone: use the recovery error of their storage as a bound.
    if (j > 0 || !node.map->Accumulates()) return 0;
    bound = errors_[operand.storage];
    at::DimVector sizes = {1};
    sizes.append(operand.geometry.sizes.begin(), operand.geometry.sizes.end());
    missing.push_back(at::zeros(sizes, rows_.Options(operand).dtype(RowDtype(operand.dtype))));
  }
  const Rows passed = node.map->Forward(missing);
  const bool given = output < passed.size() && passed[output].defined();
  return bound + (given ? LargestFinite(passed[output]) : 0);
}

// The difference that the parts of an operand leave to its value, [1, *S]; undefined if its rows are gone.
at::Tensor RecoveryCheck::Missing(const Call& call, const Operand& operand) const {
  const auto overwritten = [&](const Operand& other) { return other.written && other.storage == operand.storage; };
  if (!rows_.Has(operand.storage) || std::any_of(call.outputs.begin(), call.outputs.end(), overwritten)) return {};
  const at::Tensor rows = RowsViewOf(rows_.Flat(operand.storage), operand);
  if (!rows.defined()) return {};
  return MissingOf(Narrow(Resolved(rows), 0, 0, rows_.count() - 1), Resolved(trace_.Value(operand)),
                   Resolved(trace_.Reference(operand)))
      .unsqueeze(0);
}

bool RecoveryCheck::JudgeOutput(const Node& node, size_t k, const Settled& settled, const at::Tensor& rows,
                                const at::Tensor& reference, bool whole, OperatorCheck& check) {
  const Operand& output = CallOf(node).outputs[k];
  Allowance allowance;
  OperatorCheck own;
  double scale = std::max({settled.value, settled.reference, settled.passed});
  double bracket = 0;
  bool recovered = false;
  const auto judge = [&] {
    scale = std::max(scale, allowance.reach);
    bracket = Over(settled.bracket, scale);
    own = check;
    recovered = JudgeRecovery(output, rows, reference, settled, allowance, own);
  };
  const auto holds = [&] { return node.bracket_bound < 0 || bracket <= node.bracket_bound; };
  judge();
  // The cheapest reasons first.
  if (!recovered || !holds()) {
    allowance.reach = node.inner_terms;
    judge();
  }
  if (!recovered) {
    allowance.inherited = Inherited(node, k);
    judge();
  }
  if (!recovered || !holds()) {
    allowance.reach = Reach(node, k);
    judge();
  }
  check = own;
  check.recovered = check.recovered && recovered;
  check.bracket_holds = check.bracket_holds && holds();
  NoteOutput(output, settled, bracket, whole, check);
  return recovered && holds();
}

void RecoveryCheck::NoteOutput(const Operand& output, const Settled& settled, double bracket, bool whole,
                               OperatorCheck& check) {
  if (!(bracket <= check.bracket)) check.bracket = bracket;
  double& error = errors_[output.storage];
  error = whole ? settled.error : std::max(error, settled.error);
}

double RecoveryCheck::ToleranceOf(const Node& node, size_t k) const {
  return rounding_.Tolerance(CallOf(node).outputs[k], components_);
}

bool RecoveryCheck::JudgeByNumbers(const Node& node, size_t k, const Settled& settled, double tolerance, bool whole,
                                   OperatorCheck& check) {
  const double scale = settled.value > 0 ? settled.value : 1;
  const double bracket = Over(settled.bracket, std::max({settled.value, settled.reference, settled.passed}));
  if (!(settled.error <= tolerance * settled.value)) {
    // The mass is at hand, which JudgeRecovery() finds from the rows.
    const double mass = std::max(settled.mass, node.inner_terms);
    if (!(settled.error <= tolerance * mass)) return false;
    tolerance *= mass / scale;
  }
  if (node.bracket_bound >= 0 && !(bracket <= node.bracket_bound)) return false;
  NoteRecovery(settled, scale, tolerance, check);
  NoteOutput(CallOf(node).outputs[k], settled, bracket, whole, check);
  return true;
}

void RecoveryCheck::Finish(const OperatorCheck& check) {
  NoteWorst(check.recovery_error, worst_recovery_error);
  checks.push_back(check);
  if (check.ok()) return;
  const Call& call = trace_.program.calls[check.call];
  const std::string name = FullName(call.op.schema());
  // Report the bracket first: wrong coefficients may spoil the recovery too, a wrong application spoils nothing else.
  const std::string what = !check.bracket_holds
                               ? BracketTooLarge(name, check)
                               : absl::StrCat("the parts of ", name, " differ from its value by ", check.recovery_error,
                                              " of it, tolerance ", check.tolerance);
  NoteFailure(linearization_.policy.on_failure, check, what, call.position, failures);
}

void Absorb(at::Tensor components, at::Tensor leftover, const at::Tensor& value, const at::Tensor& reference,
            const Call& call) {
  const at::Tensor counted = at::isfinite(value);
  if (ReadFlag(at::isfinite(reference).logical_not_().logical_and_(counted).any())) {
    throw Error(absl::StatusCode::kFailedPrecondition,
                absl::StrCat("the failure of ", FullName(call.op.schema()),
                             " cannot be absorbed: its reference is not finite where its value is"),
                call.position, "choose another baseline");
  }
  const at::Tensor broken =
      at::isfinite(components).all(0).logical_and_(at::isfinite(leftover)).logical_not_().logical_and_(counted);
  components.masked_fill_(broken, 0);
  leftover.masked_fill_(broken, 0);
  const at::Tensor recovery = at::sum(components, {0}).add_(leftover).add_(reference);
  leftover.add_((value - recovery).masked_fill_(counted.logical_not(), 0));
}

}  // namespace addend
