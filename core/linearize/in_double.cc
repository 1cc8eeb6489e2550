#include "core/linearize/in_double.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/linearize/rerun.h"
#include "core/linearize/view.h"

namespace addend {
namespace {

// What the run does not hold, or float64 cannot do.
struct Unavailable {};

class RunInDouble {
 public:
  explicit RunInDouble(const TracedRun& trace) : trace_(trace) {}

  void Make(const Call& recorded) {
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
    Write(call, Rerun(wide, wide.arguments, operands));
  }

  at::Tensor Read(const Operand& operand) const {
    if (operand.storage < 0) return {};
    if (at::isComplexType(operand.dtype) || operand.negated || trace_.Misses(operand)) throw Unavailable();
    const auto found = flat_.find({operand.storage, operand.version});
    if (found != flat_.end()) return Resolved(ViewOf(found->second, operand.geometry));
    const at::Tensor value = Resolved(trace_.Value(operand));
    return Continuous(operand.dtype) ? value.to(at::kDouble) : value;
  }

 private:
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
      flat_[{output.storage, output.version}] = std::move(flat);
    }
  }

  // The storage of an output as it was before the call, to be written.
  at::Tensor Before(const Call& call, const Operand& output) const {
    const StorageInfo& storage = trace_.program.storages[output.storage];
    const auto options = at::TensorOptions(at::kDouble).device(storage.device);
    if (CoversWhole(output, storage)) return at::empty({storage.numel}, options);
    for (const Operand& operand : call.operands) {
      if (operand.storage != output.storage || !operand.written) continue;
      const auto found = flat_.find({operand.storage, operand.version});
      if (found != flat_.end()) return found->second.clone();
      return trace_.At(operand).value.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    }
    return at::zeros({storage.numel}, options);
  }

  const TracedRun& trace_;
  absl::flat_hash_map<std::pair<int, int>, at::Tensor> flat_;  // by storage and version, [numel]
};

}  // namespace

at::Tensor ValueInDouble(const TracedRun& trace, const Probe& probe) {
  if (trace.dropped || trace.differentiable) return {};
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  try {
    RunInDouble run(trace);
    for (const Call& call : trace.program.calls) {
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
