#include "core/run/traced_run.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/program/view.h"
#include "core/rules/bags.h"
#include "core/rules/id_flow.h"
#include "core/rules/kinds.h"
#include "core/run/fingerprint.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// The weights of what a bag adds up, one for each id; undefined where there are none.
at::Tensor WeightsOfIds(const TracedRun& trace, const Call& call) {
  const auto argument = call.op.schema().argumentIndexWithName("per_sample_weights");
  for (const Operand& operand : call.operands) {
    if (argument && operand.argument == *argument && operand.storage >= 0) return trace.Value(operand);
  }
  return {};
}

void RequireHeld(const Version& kept, const Operand& operand) {
  if (kept.value.defined()) return;
  throw Internal(absl::StrCat("version ", kept.version, " of storage ", operand.storage, " was dropped"));
}

// The operand with the labels of rows that begin in a call: the ids that it reads vectors by, or else its output.
const Operand& LabelledOf(const Call& call) {
  return IdReadingOf(call.op.schema(), call.arguments) == IdReading::kNone ? call.outputs[0] : call.operands[1];
}

}  // namespace

void Version::Drop(bool whole) {
  if (!value.defined()) return;
  value_is_finite = value_is_finite || AllFinite(value);
  // On the CPU the tracer has looked at it.
  if (reference.defined() && !reference.device().is_cpu()) reference_is_finite = AllFinite(reference);
  if (whole && fingerprint == 0) fingerprint = FingerprintOf(value, reference);
  value = at::Tensor();
  reference = at::Tensor();
}

void Version::SetValue(at::Tensor other) {
  value = std::move(other);
  value_is_finite = false;
  largest_value = -1;
}

void Version::SetReference(at::Tensor other) {
  reference = std::move(other);
  reference_is_finite = false;
  largest_reference = -1;
}

void Version::Forget() {
  reference_is_finite = value_is_finite = false;
  largest_value = largest_reference = -1;
}

void LookAtNumbers(TracedRun& trace) {
  if (!trace.HostWaits()) return;
  std::vector<at::Tensor> numbers;
  std::vector<std::function<void(double)>> take;
  const auto look = [&](const at::Tensor& tensor, double* largest, bool* finite) {
    numbers.push_back(MaxAbs(tensor));
    take.push_back([=](double found) {
      *finite = std::isfinite(found);
      *largest = *finite ? found : -1;
    });
  };
  for (std::vector<Version>& versions : trace.versions) {
    for (Version& kept : versions) {
      const at::Tensor& value = kept.value;
      // Numbers on the CPU are looked at where they are asked for; those without a reference have no rows.
      if (!value.defined() || !kept.reference.defined() || value.numel() == 0 || value.device().is_cpu()) continue;
      if (!value.is_floating_point() && !value.is_complex()) continue;
      look(value, &kept.largest_value, &kept.value_is_finite);
      if (kept.largest_reference < 0) look(kept.reference, &kept.largest_reference, &kept.reference_is_finite);
    }
  }
  const std::vector<double> found = ReadAll(numbers);
  for (size_t k = 0; k < found.size(); ++k) take[k](found[k]);
}

Policy AtPrecisionOf(const TracedRun& trace, Policy policy) {
  if (trace.precision && !policy.tolerance) policy.tolerance = ToleranceIn(*trace.precision);
  return policy;
}

const Version& TracedRun::At(const Operand& operand) const {
  for (const Version& kept : versions[operand.storage]) {
    if (kept.version == operand.version) return kept;
  }
  throw Internal(absl::StrCat("version ", operand.version, " of storage ", operand.storage, " was not kept"));
}

Version& VersionOf(TracedRun& trace, const Operand& operand) { return const_cast<Version&>(trace.At(operand)); }

at::Tensor TracedRun::Value(const Operand& operand) const {
  if (operand.storage < 0) return {};
  const Version& kept = At(operand);
  RequireHeld(kept, operand);
  return ViewOf(kept.value, operand);
}

at::Tensor TracedRun::Reference(const Operand& operand) const {
  if (operand.storage < 0) return {};
  const Version& kept = At(operand);
  RequireHeld(kept, operand);
  return ViewOf(kept.reference.defined() ? kept.reference : kept.value, operand);
}

at::Tensor TracedRun::Labels(const Operand& operand) const {
  if (operand.storage < 0) return {};
  const Version& kept = At(operand);
  return kept.labels.defined() ? ViewOf(kept.labels, operand.geometry) : at::Tensor();
}

at::Tensor TracedRun::OnBaseline(const Operand& operand) const {
  return operand.on_baseline ? Reference(operand) : Value(operand);
}

bool TracedRun::StartsRows(const Call& call) const {
  return std::binary_search(row_starts.begin(), row_starts.end(), call.index);
}

RowStart TracedRun::StartOf(const Call& call) const {
  const Operand& output = call.outputs[0];
  const at::ScalarType dtype = RowDtype(output.dtype);
  const c10::FunctionSchema& schema = call.op.schema();
  const IdReading reading = IdReadingOf(schema, call.arguments);
  if (reading != IdReading::kSums) {
    const at::Tensor moves = MoveOf(InDtype(Value(output), dtype), InDtype(Reference(output), dtype));
    return {moves, Labels(LabelledOf(call)).to(moves.device()), {}};
  }
  const at::Tensor ids = Value(call.operands[1]).to(at::kLong);
  const int64_t rows = output.geometry.sizes[0];
  const at::Tensor bags = BagsOf(Value(call.operands[2]), ids.size(0), rows);
  const bool wide = call.op.computed_in() != at::ScalarType::Undefined;
  const at::Tensor table = wide ? Value(call.operands[0]).to(dtype) : Value(call.operands[0]);
  const at::Tensor weights = WeightsOfIds(*this, call);
  const auto terms = [&](const at::Tensor& own) {
    return TermsOfBags(schema, call.arguments, table, own, bags, rows, weights).to(dtype);
  };
  at::Tensor moves = terms(ids) - terms(Reference(call.operands[1]).to(at::kLong));
  if (share != 1) moves = moves * share;
  return {moves, Labels(LabelledOf(call)).to(moves.device()), bags.clamp_min(0)};
}

int64_t TracedRun::ElementsRead() const {
  const auto reads = [&](int64_t index) {
    const at::Tensor labels = Labels(LabelledOf(calls[index]));
    return labels.defined() && labels.numel() > 0 && ReadInteger(labels.max()) >= numc;
  };
  return elements > 0 && std::any_of(row_starts.begin(), row_starts.end(), reads) ? elements : 0;
}

bool TracedRun::StepsOfConditions(const Call& call) const {
  if (!baseline_conditions) return false;
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const Operand& operand) {
    return operand.storage >= 0 && operand.labelled && !ReadEqual(Value(operand), Reference(operand));
  });
}

bool TracedRun::Misses(const Operand& operand) const { return CarriesRows(operand) && !At(operand).value.defined(); }

bool TracedRun::ReferenceIsFinite(const Operand& operand) const {
  if (operand.storage < 0 || At(operand).reference_is_finite) return true;
  return At(operand).value.defined() && AllFinite(Reference(operand));
}

bool TracedRun::HostWaits() const {
  const auto elsewhere = [&](const Operand& operand) { return !storages[operand.storage].device.is_cpu(); };
  return !differentiable &&
         (std::any_of(starts.begin(), starts.end(), [&](const Start& start) { return elsewhere(start.operand); }) ||
          std::any_of(row_starts.begin(), row_starts.end(),
                      [&](int64_t call) { return elsewhere(calls[call].outputs[0]); }));
}

bool TracedRun::ValueIsFinite(const Operand& operand) const {
  if (operand.storage < 0 || At(operand).value_is_finite) return true;
  return At(operand).value.defined() && AllFinite(Value(operand));
}

}  // namespace addend
