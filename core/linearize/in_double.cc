#include "core/linearize/in_double.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/invoke.h"
#include "core/program/view.h"

namespace addend {
namespace {

// Thrown if the run does not hold a value that is needed, or float64 cannot compute a call.
struct Unavailable {};

class RunInDouble {
 public:
  // Prepares to repeat the calls that lead to a probe.
  RunInDouble(const TracedRun& trace, const Probe& probe) : trace_(trace) {
    for (const Call& call : trace.calls) {
      if (call.index > probe.after_call) break;
      for (const Operand& operand : call.AsMade().operands) last_reader_[VersionIdOf(operand)] = call.index;
    }
    last_reader_[VersionIdOf(probe.operand)] = std::numeric_limits<int64_t>::max();
  }

  void Make(const Call& recorded) {
    MakeOne(recorded);
    const auto forget = [&](const Operand& operand) {
      const auto last = last_reader_.find(VersionIdOf(operand));
      if (last == last_reader_.end() || last->second <= recorded.index) flat_.erase(VersionIdOf(operand));
    };
    for (const Operand& operand : recorded.AsMade().operands) forget(operand);
    for (const Operand& output : recorded.AsMade().outputs) forget(output);
  }

  at::Tensor Read(const Operand& operand) const {
    if (operand.storage < 0) return {};
    if (at::isComplexType(operand.dtype) || operand.negated || trace_.Misses(operand)) throw Unavailable();
    const auto found = flat_.find(VersionIdOf(operand));
    if (found != flat_.end()) return Resolved(ViewOf(found->second, operand.geometry));
    const at::Tensor value = Resolved(trace_.Value(operand));
    return Continuous(operand.dtype) ? value.to(at::kDouble) : value;
  }

 private:
  void MakeOne(const Call& recorded) {
    const Call& call = recorded.AsMade();
    if (call.is_view || !call.Traced()) return;
    const bool numbers = std::any_of(call.outputs.begin(), call.outputs.end(), [](const Operand& output) {
      return output.storage >= 0 && Continuous(output.dtype);
    });
    if (!numbers) return;
    if (call.draws) throw Unavailable();
    std::vector<at::Tensor> operands;
    for (const Operand& operand : call.operands) operands.push_back(Read(operand));
    Call wide = call;
    wide.op = call.op.ComputedIn(at::kDouble);
    wide.op.AskForItsDtype(&wide.arguments);
    Write(call, Invoke(wide, wide.arguments, operands));
  }

  void Write(const Call& call, const std::vector<at::Tensor>& results) {
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const Operand& output = call.outputs[k];
      if (output.storage < 0 || !Continuous(output.dtype)) continue;
      if (at::isComplexType(output.dtype) || k >= results.size() || !results[k].defined() ||
          results[k].sizes() != at::IntArrayRef(output.geometry.sizes)) {
        throw Unavailable();
      }
      at::Tensor flat = Before(call, output);
      ViewOf(flat, output.geometry).copy_(results[k]);
      flat_[VersionIdOf(output)] = std::move(flat);
    }
  }

  // The storage of an output as it was before the call, to be written.
  at::Tensor Before(const Call& call, const Operand& output) const {
    const StorageInfo& storage = trace_.storages[output.storage];
    const auto options = at::TensorOptions(at::kDouble).device(storage.device);
    if (CoversWhole(output, storage)) return at::empty({storage.numel}, options);
    for (const Operand& operand : call.operands) {
      if (operand.storage != output.storage || !operand.written) continue;
      const auto found = flat_.find(VersionIdOf(operand));
      if (found != flat_.end()) return found->second.clone();
      return trace_.At(operand).value.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    }
    return at::zeros({storage.numel}, options);
  }

  const TracedRun& trace_;
  absl::flat_hash_map<VersionId, at::Tensor> flat_;      // [numel]; until their last reader
  absl::flat_hash_map<VersionId, int64_t> last_reader_;  // the number of the call; a probe reads last
};

}  // namespace

at::Tensor ValueInDouble(const TracedRun& trace, const Probe& probe) {
  if (trace.dropped || trace.differentiable) return {};
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  try {
    RunInDouble run(trace, probe);
    for (const Call& call : trace.calls) {
      if (call.index > probe.after_call) break;
      run.Make(call);
    }
    return run.Read(probe.operand).clone();
  } catch (const Unavailable&) {
    return {};
  } catch (const Error&) {
    return {};
  } catch (const c10::Error&) {
    return {};
  }
}

}  // namespace addend
