#include "core/linearize/sweep.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend {
namespace {

at::ScalarType RowDtype(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

bool CarriesRows(const Operand& operand) {
  return operand.storage >= 0 && operand.decomposed && at::isFloatingType(operand.dtype);
}

double MaxAbs(const at::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }

class Sweep {
 public:
  Sweep(const Linearization& linearization, const std::function<void(int64_t, int64_t)>& progress)
      : linearization_(linearization),
        trace_(*linearization.trace),
        policy_(linearization.policy),
        progress_(progress),
        num_rows_(trace_.numc + 1),
        rows_(trace_.program.storages.size()),
        depth_(trace_.program.storages.size(), 0),
        last_use_(trace_.program.storages.size(), -1) {}

  SweepResult Run() {
    result_.probes.resize(linearization_.probes.size());
    FindLastUses();
    for (const Start& start : trace_.starts) {
      if (last_use_[start.operand.storage] >= 0) Begin(start.operand, start.labels, start.parts);
    }
    size_t next_probe_call = 0;
    TakeProbes(-1);
    const int64_t total = static_cast<int64_t>(linearization_.nodes.size());
    for (int64_t n = 0; n < total; ++n) {
      const Node& node = linearization_.nodes[n];
      // Probes of views lie between nodes.
      for (; static_cast<int64_t>(next_probe_call) < node.call; ++next_probe_call) TakeProbes(next_probe_call);
      const auto begin = std::chrono::steady_clock::now();
      Apply(node, n);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (policy_.check == Check::kEveryOp) CheckNode(node, took.count());
      for (; static_cast<int64_t>(next_probe_call) <= node.call; ++next_probe_call) TakeProbes(next_probe_call);
      Release(node, n);
      if (progress_) progress_(n + 1, total);
    }
    for (; next_probe_call < trace_.program.calls.size(); ++next_probe_call) TakeProbes(next_probe_call);
    return std::move(result_);
  }

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  const Call& CallOf(const Node& node) const { return trace_.program.calls[node.call]; }

  // The last node that reads or writes each storage; probed storages live to the end.
  void FindLastUses() {
    for (size_t n = 0; n < linearization_.nodes.size(); ++n) {
      const Node& node = linearization_.nodes[n];
      for (const int input : node.inputs) last_use_[CallOf(node).operands[input].storage] = static_cast<int64_t>(n);
      for (const Operand& output : CallOf(node).outputs) {
        if (CarriesRows(output)) last_use_[output.storage] = static_cast<int64_t>(n);
      }
    }
    for (const Probe& probe : linearization_.probes) {
      if (CarriesRows(probe.operand)) last_use_[probe.operand.storage] = kForever;
    }
  }

  at::Tensor NewRows(const Operand& operand) const {
    return at::zeros({num_rows_, trace_.program.storages[operand.storage].numel}, RowOptions(operand));
  }

  at::TensorOptions RowOptions(const Operand& operand) const {
    return trace_.At(operand).value.options().dtype(RowDtype(operand.dtype));
  }

  // The rows of a tensor: [R, *sizes]. Note: the shadow may itself be a slice, so its own offset counts.
  at::Tensor RowsOf(const Operand& operand) {
    at::Tensor& flat = rows_[operand.storage];
    if (!flat.defined()) flat = NewRows(operand);
    at::DimVector sizes;
    at::DimVector strides;
    sizes.push_back(num_rows_);
    strides.push_back(flat.stride(0));
    sizes.append(operand.geometry.sizes.begin(), operand.geometry.sizes.end());
    strides.append(operand.geometry.strides.begin(), operand.geometry.strides.end());
    return at::as_strided(flat, sizes, strides, flat.storage_offset() + operand.geometry.offset);
  }

  // Makes the rows of a storage this sweep's own before they are written.
  void Own(const Operand& operand) {
    at::Tensor& flat = rows_[operand.storage];
    if (!flat.defined()) {
      flat = NewRows(operand);
    } else if (flat.use_count() > 1 || flat.storage().use_count() > 1) {
      flat = flat.clone(at::MemoryFormat::Contiguous);
    }
  }

  // Rows of a storage that has none yet; `rows`: [R, *sizes].
  void Put(const Operand& operand, const at::Tensor& rows) {
    const int64_t numel = trace_.program.storages[operand.storage].numel;
    if (operand.geometry.CoversWhole(numel)) {
      const at::Tensor flat = rows.reshape({num_rows_, numel});
      rows_[operand.storage] = numel > 1 && flat.stride(1) != 1 ? flat.contiguous() : flat;
      return;
    }
    rows_[operand.storage] = NewRows(operand);
    RowsOf(operand).copy_(rows);
  }

  // Rows begin: each element belongs to the component of its label.
  void Begin(const Operand& operand, const at::Tensor& labels, const at::Tensor& parts) {
    at::Tensor rows = NewRows(operand);
    if (parts.defined()) {
      rows.narrow(0, 0, trace_.numc).copy_(parts);
    } else {
      const at::Tensor move = Move(operand).flatten();
      const at::Tensor where = labels.to(move.device());
      const at::Tensor taken = where.ge(0);
      rows.scatter_(0, where.clamp_min(0).unsqueeze(0), (move * taken).unsqueeze(0));
    }
    rows_[operand.storage] = rows;
  }

  at::Tensor Move(const Operand& operand) const {
    const at::ScalarType dtype = RowDtype(operand.dtype);
    const at::Tensor value = trace_.Value(operand).to(dtype);
    const at::Tensor reference = trace_.Reference(operand).to(dtype);
    return (value - reference).masked_fill_(value.eq(reference), 0);
  }

  void Apply(const Node& node, int64_t n) {
    const Call& call = CallOf(node);
    int64_t depth = 0;
    for (const int input : node.inputs) depth = std::max(depth, depth_[call.operands[input].storage]);
    for (const Operand& output : call.outputs) {
      if (CarriesRows(output)) depth_[output.storage] = std::max(depth_[output.storage], depth + 1);
    }
    if (node.starts) {
      StartEmbedding(call);
      return;
    }
    if (!TryInPlace(node, call, n)) {
      Rows inputs;
      for (const int input : node.inputs) inputs.push_back(RowsOf(call.operands[input]));
      Rows outputs;
      if (node.map) outputs = node.map->Forward(inputs);
      inputs.clear();
      for (size_t k = 0; k < call.outputs.size(); ++k) {
        const Operand& output = call.outputs[k];
        if (!CarriesRows(output)) continue;
        const bool given = k < outputs.size() && outputs[k].defined();
        const bool fresh = !output.written || call.resized_output;
        if (fresh && given) {
          Put(output, outputs[k]);
        } else if (fresh) {
          rows_[output.storage] = NewRows(output);
        } else {
          Own(output);
          at::Tensor target = RowsOf(output);
          given ? target.copy_(outputs[k]) : target.zero_();
        }
      }
    }
    for (size_t k = 0; k < node.brackets.size(); ++k) {
      if (!node.brackets[k].defined()) continue;
      Own(call.outputs[k]);
      RowsOf(call.outputs[k]).select(0, num_rows_ - 1).add_(node.brackets[k]);
    }
  }

  void StartEmbedding(const Call& call) {
    const Operand& output = call.outputs[0];
    const at::Tensor move = Move(output);
    const at::Tensor labels = trace_.Labels(call.operands[1]).to(move.device());
    const at::Tensor spread = labels.unsqueeze(-1).expand(move.sizes());
    at::Tensor rows = NewRows(output);
    rows_[output.storage] = rows;
    RowsOf(output).scatter_(0, spread.clamp_min(0).unsqueeze(0), (move * spread.ge(0)).unsqueeze(0));
  }

  // Elementwise nodes with one output need no new memory where their input is not read again.
  bool TryInPlace(const Node& node, const Call& call, int64_t n) {
    if (!node.map || node.inputs.empty() || call.outputs.size() != 1 || !CarriesRows(call.outputs[0])) return false;
    const Operand& input = call.operands[node.inputs[0]];
    const Operand& output = call.outputs[0];
    const bool same_place = input.storage == output.storage && input.geometry == output.geometry;
    if (same_place && node.map->Accumulates()) {
      Rows rest(node.inputs.size());
      for (size_t k = 1; k < node.inputs.size(); ++k) {
        const Operand& other = call.operands[node.inputs[k]];
        rest[k] = other.storage == output.storage ? RowsOf(other).clone() : RowsOf(other);
      }
      Own(output);
      at::Tensor target = RowsOf(output);
      node.map->AddTo(target, rest);
      return true;
    }
    if (node.map->Identity() && !output.written && input.geometry == output.geometry &&
        trace_.program.storages[input.storage].numel == trace_.program.storages[output.storage].numel) {
      RowsOf(input);  // makes zeros where there are none yet
      rows_[output.storage] = rows_[input.storage];
      return true;
    }
    const at::Tensor* scale = node.map->Scale();
    if (scale == nullptr) return false;
    if (same_place) {
      Own(output);
      RowsOf(output).mul_(*scale);
      return true;
    }
    const bool last = last_use_[input.storage] <= n;
    const int64_t numel = trace_.program.storages[output.storage].numel;
    if (!last || output.written || !(input.geometry == output.geometry) || !output.geometry.CoversWhole(numel) ||
        trace_.program.storages[input.storage].numel != numel || RowDtype(input.dtype) != RowDtype(output.dtype)) {
      return false;
    }
    Own(input);
    RowsOf(input).mul_(*scale);
    rows_[output.storage] = std::move(rows_[input.storage]);
    rows_[input.storage] = at::Tensor();
    return true;
  }

  void Release(const Node& node, int64_t n) {
    const Call& call = CallOf(node);
    for (const int input : node.inputs) {
      const int storage = call.operands[input].storage;
      if (last_use_[storage] <= n) rows_[storage] = at::Tensor();
    }
    for (const Operand& output : call.outputs) {
      if (CarriesRows(output) && last_use_[output.storage] <= n) rows_[output.storage] = at::Tensor();
    }
  }

  struct Recovery {
    double error = 0;      // relative to the largest value
    double tolerance = 0;  // relative as well
    double leftover = 0;
    bool ok = true;
  };

  Recovery Judge(const Operand& operand, const at::Tensor& rows) {
    const at::Tensor value = trace_.Value(operand).to(rows.scalar_type());
    const at::Tensor reference = trace_.Reference(operand).to(rows.scalar_type());
    const double eps = operand.dtype == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                    : std::numeric_limits<float>::epsilon();
    const double relative =
        policy_.tolerance.value_or(8 * eps * std::sqrt(static_cast<double>(std::max<int64_t>(trace_.numc, 1)) *
                                                       static_cast<double>(std::max<int64_t>(depth_[operand.storage], 1))));
    Recovery recovery;
    if (value.numel() == 0) return recovery;
    const at::Tensor recovered = at::sum(rows, {0}).add_(reference);
    // The same infinity, or NaN on both sides, is recovered; NaN in the recovery alone is not.
    at::Tensor difference = (recovered - value).abs_();
    difference.masked_fill_(recovered.eq(value).logical_or_(recovered.isnan().logical_and_(value.isnan())), 0);
    const double error = difference.max().item<double>();
    const at::Tensor finite = value.masked_fill(value.isfinite().logical_not_(), 0);
    const double largest = MaxAbs(finite);
    recovery.error = largest > 0 ? error / largest : error;
    recovery.leftover = MaxAbs(rows.select(0, rows.size(0) - 1)) / (largest > 0 ? largest : 1);
    recovery.tolerance = relative;
    recovery.ok = error <= relative * largest;
    if (!recovery.ok) {
      // Components may be much larger than what they sum to: then rounding is measured against them.
      const at::Tensor mass = rows.abs().sum(0).add_(reference.abs());
      const double scale = mass.masked_fill_(mass.isfinite().logical_not_(), 0).max().item<double>();
      recovery.ok = error <= relative * scale;
      recovery.tolerance = relative * scale / (largest > 0 ? largest : 1);
    }
    return recovery;
  }

  void CheckNode(const Node& node, double seconds) {
    const Call& call = CallOf(node);
    OperatorCheck check;
    check.call = node.call;
    check.kind = node.kind;
    check.seconds = seconds;
    check.bracket = node.bracket;
    check.bracket_bound = node.bracket_bound;
    check.bracket_holds = node.bracket_bound < 0 || node.bracket <= node.bracket_bound;
    for (const Operand& output : call.outputs) {
      if (!CarriesRows(output)) continue;
      const Recovery recovery = Judge(output, RowsOf(output));
      if (recovery.error > check.recovery_error || !recovery.ok || std::isnan(recovery.error)) {
        check.recovery_error = recovery.error;
        check.tolerance = recovery.tolerance;
      } else if (check.tolerance == 0) {
        check.tolerance = recovery.tolerance;
      }
      check.recovered = check.recovered && recovery.ok;
      check.leftover = std::max(check.leftover, recovery.leftover);
    }
    if (!check.ok()) Fail(check);
    result_.checks.push_back(check);
  }

  void Fail(const OperatorCheck& check) {
    const Call& call = trace_.program.calls[check.call];
    if (policy_.on_failure == OnFailure::kError) {
      const std::string what =
          !check.recovered
              ? absl::StrCat("tracing failure: the parts of ", FullName(call.op.schema()), " differ from its value by ",
                             check.recovery_error, " of it, tolerance ", check.tolerance)
              : absl::StrCat("tracing failure: the coefficients of ", FullName(call.op.schema()), " leave a bracket of ",
                             check.bracket, " of its value, bound ", check.bracket_bound);
      throw Error(absl::StatusCode::kInternal, what, call.position,
                  "policy on_failure=warn goes on and reports it");
    }
    result_.failures.push_back(check);
  }

  void TakeProbes(int64_t call) {
    for (size_t p = 0; p < linearization_.probes.size(); ++p) {
      const Probe& probe = linearization_.probes[p];
      if (probe.after_call != call) continue;
      ProbeRows& taken = result_.probes[p];
      taken.value = trace_.Value(probe.operand);
      taken.reference = trace_.Reference(probe.operand);
      taken.decomposed = CarriesRows(probe.operand);
      if (!taken.decomposed) {
        at::DimVector sizes;
        sizes.push_back(trace_.numc);
        sizes.append(probe.operand.geometry.sizes.begin(), probe.operand.geometry.sizes.end());
        const auto options = taken.value.options().dtype(RowDtype(probe.operand.dtype));
        taken.components = at::zeros(sizes, options);
        taken.leftover = at::zeros(probe.operand.geometry.sizes, options);
        continue;
      }
      const at::Tensor rows = RowsOf(probe.operand);
      // A copy: later nodes may write the same storage.
      taken.components = rows.narrow(0, 0, trace_.numc).clone();
      taken.leftover = rows.select(0, num_rows_ - 1).clone();
      if (policy_.check == Check::kOff) continue;
      const Recovery recovery = Judge(probe.operand, rows);
      if (recovery.ok || policy_.check == Check::kEveryOp) continue;
      OperatorCheck check;
      check.call = call < 0 ? 0 : call;
      check.recovered = false;
      check.recovery_error = recovery.error;
      check.tolerance = recovery.tolerance;
      Fail(check);
    }
  }

  const Linearization& linearization_;
  const TracedRun& trace_;
  const Policy& policy_;
  const std::function<void(int64_t, int64_t)>& progress_;
  int64_t num_rows_;
  std::vector<at::Tensor> rows_;   // by storage: [R, numel]; undefined: all zero
  std::vector<int64_t> depth_;     // by storage: the longest chain of nodes that led to it
  std::vector<int64_t> last_use_;  // by storage: the last node that touches it
  SweepResult result_;
};

}  // namespace

SweepResult SweepForward(const Linearization& linearization, const std::function<void(int64_t, int64_t)>& progress) {
  c10::AutoGradMode no_grad(false);
  return Sweep(linearization, progress).Run();
}

}  // namespace addend
