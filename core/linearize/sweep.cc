#include "core/linearize/sweep.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/linearize/forward_step.h"
#include "core/linearize/judge.h"
#include "core/linearize/part.h"
#include "core/linearize/rounding.h"
#include "core/linearize/row_table.h"
#include "core/linearize/settle.h"
#include "core/program/view.h"

namespace addend {
namespace {

// Contents of a sweep beside the components of its trace, and who asks for them.
struct SweepKind {
  int64_t components = 0;                                // of all sweeps that this is a part of; for tolerances
  const std::vector<at::Tensor>* sums_of_all = nullptr;  // set: components alone; see SweepComponents
  std::vector<at::Tensor>* sums_before = nullptr;        // set: gets SumsBeforePayments
  bool judges_late = false;                              // see Note [Late checks]
};

// Note [Late checks]
// On a GPU the numbers of a check are there only when all earlier work is done, and whoever reads them waits for that.
// There a sweep keeps them on the device and reads them all at its end. Hardly ever does a check need more than these
// numbers: if one does, the sweep is made once more, and judges each operator when it has run.
struct LateCheck {
  size_t node;
  size_t output;
  bool whole;
  double tolerance;
};

// Sends the rows of all inputs through the nodes, in their order: a step, the check, what is dropped.
class Sweep {
 public:
  Sweep(const Linearization& linearization, const SweepKind& kind, const Progress& progress)
      : linearization_(linearization),
        kind_(kind),
        trace_(*linearization.trace),
        layout_{trace_.numc, kind.sums_of_all == nullptr},
        progress_(progress),
        rows_(trace_, layout_.count()),
        step_(linearization, layout_, kind.sums_of_all, kind.sums_before, &rows_),
        rounding_(linearization),
        judge_(linearization, rows_, rounding_, kind.components) {}

  SweepResult Run() {
    result_.probes.resize(linearization_.probes.size());
    for (const Start& start : trace_.starts) {
      if (linearization_.lives[start.operand.storage].last < 0) continue;
      rounding_.Begin(start);
      step_.Begin(start);
    }
    TakeProbes(-1);
    int64_t call = 0;
    for (size_t n = 0; n < linearization_.nodes.size(); ++n) {
      const Node& node = linearization_.nodes[n];
      for (; call < node.call; ++call) TakeProbes(call);  // probes of views lie between nodes
      const auto begin = Clock::now();
      rounding_.Follow(node);
      const bool by_map = step_.Apply(n);
      if (layout_.all) SettleOutputs(n, by_map, begin);
      for (; call <= node.call; ++call) TakeProbes(call);
      step_.Release(n);
      if (progress_) progress_(static_cast<int64_t>(n) + 1, static_cast<int64_t>(linearization_.nodes.size()));
    }
    for (; call < static_cast<int64_t>(trace_.calls.size()); ++call) TakeProbes(call);
    if (kind_.judges_late) ReadLateChecks();
    result_.checks = std::move(judge_.checks);
    result_.failures = std::move(judge_.failures);
    result_.worst_recovery_error = judge_.worst_recovery_error;
    return std::move(result_);
  }

  // Whether a check of outputs alone has failed, which says neither why nor where.
  bool suspect() const { return suspect_; }
  // Whether a late check takes rows that are gone.
  bool undecided() const { return undecided_; }

 private:
  // Brackets go into the leftover and moves into their row; then recovery is judged.
  void SettleOutputs(size_t n, bool by_map, Clock::time_point begin) {
    const Node& node = linearization_.nodes[n];
    const Policy& policy = linearization_.policy;
    const Call& call = trace_.calls[node.call];
    OperatorCheck check;
    check.call = node.call;
    check.kind = node.kind;
    check.bracket_bound = node.bracket_bound;
    SettleOptions options;
    options.find_bracket = by_map;
    options.keep_bracket = node.keeps_bracket;
    options.judge = policy.check == Check::kEveryOp;
    options.mass = kind_.judges_late;
    if (!options.find_bracket && !options.judge) return;
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const Operand& output = call.outputs[k];
      if (!CarriesRows(output)) continue;
      if (options.find_bracket) rows_.Own(output);
      at::Tensor rows = rows_.View(output);
      const at::Tensor value = InDtype(Resolved(trace_.Value(output)), rows.scalar_type());
      const at::Tensor reference = InDtype(Resolved(trace_.Reference(output)), rows.scalar_type());
      const bool whole = CoversWhole(output, trace_.storages[output.storage]);
      at::Tensor* sum = whole ? &rows_.SumOf(output.storage) : nullptr;
      if (kind_.judges_late) {
        const Version& kept = trace_.At(output);
        if (whole && kept.IsFinite() && value.scalar_type() == kept.value.scalar_type()) {
          options.value = kept.largest_value;
          options.reference = kept.largest_reference;
        } else {
          options.value = options.reference = -1;
        }
        UnreadSettled unread = SettleUnread(rows, value, reference, options, sum);
        if (!options.judge) continue;
        late_.push_back({n, k, whole, judge_.ToleranceOf(node, k)});
        unread_.push_back(std::move(unread));
        continue;
      }
      const Settled settled = Settle(rows, value, reference, options, sum);
      if (!options.judge || judge_.JudgeOutput(node, k, settled, rows, reference, whole, check)) continue;
      if (policy.on_failure != OnFailure::kAbsorb) continue;
      rows_.Own(output);
      rows = rows_.View(output);
      Absorb(Narrow(rows, 0, 0, layout_.components), Select(rows, 0, layout_.leftover()), value, reference, call);
      check.absorbed = true;
    }
    if (!options.judge) return;
    check.seconds = SecondsSince(begin);
    if (kind_.judges_late) {
      late_checks_.push_back(check);
    } else {
      judge_.Finish(check);
    }
  }

  // Reads the numbers of all checks, in the order of the operators.
  void ReadLateChecks() {
    if (late_checks_.empty()) return;
    const std::vector<Settled> all = ReadSettled(unread_);
    auto settled = all.begin();
    auto late = late_.begin();
    for (OperatorCheck& check : late_checks_) {
      for (; late != late_.end() && linearization_.nodes[late->node].call <= check.call; ++late) {
        const Node& node = linearization_.nodes[late->node];
        if (!judge_.JudgeByNumbers(node, late->output, *settled++, late->tolerance, late->whole, check)) {
          undecided_ = true;
          return;
        }
      }
      judge_.Finish(check);
    }
  }

  // Probes that are taken right after a call.
  void TakeProbes(int64_t call) {
    for (size_t p = 0; p < linearization_.probes.size(); ++p) {
      if (linearization_.probes[p].after_call == call) TakeProbe(linearization_.probes[p], result_.probes[p]);
    }
  }

  void TakeProbe(const Probe& probe, ProbeRows& taken) {
    const Operand& operand = probe.operand;
    taken.value = Resolved(trace_.Value(operand));
    taken.reference = trace_.Reference(operand).clone();  // the trace's own may be kept for later runs
    taken.decomposed = CarriesRows(operand);
    taken.finite = operand.storage >= 0 && trace_.At(operand).value_is_finite;
    taken.depth = rounding_.Depth(operand);
    taken.single = rounding_.IsSingle(operand);
    if (!taken.decomposed) {
      at::DimVector sizes = {layout_.components};
      sizes.append(operand.geometry.sizes.begin(), operand.geometry.sizes.end());
      const auto options = taken.value.options().dtype(RowDtype(operand.dtype));
      taken.components = at::zeros(sizes, options);
      taken.leftover = at::zeros(operand.geometry.sizes, options);
      return;
    }
    const at::Tensor rows = rows_.View(operand);
    // A copy: later nodes may write the same storage.
    taken.components = rows.narrow(0, 0, layout_.components).clone();
    if (!layout_.all) return;
    taken.leftover = rows.select(0, layout_.leftover()).clone();
    if (linearization_.policy.check == Check::kOutputs && probe.after_call >= 0) SettleProbe(probe, rows, taken);
  }

  void SettleProbe(const Probe& probe, at::Tensor rows, const ProbeRows& taken) {
    SettleOptions options;
    options.find_bracket = false;
    const at::Tensor value = InDtype(taken.value, rows.scalar_type());
    const at::Tensor reference = InDtype(taken.reference, rows.scalar_type());
    const Settled settled = Settle(rows, value, reference, options, nullptr);
    if (!judge_.JudgeProbe(probe, settled, rows, reference)) suspect_ = true;
  }

  const Linearization& linearization_;
  const SweepKind kind_;
  const TracedRun& trace_;
  const RowLayout layout_;
  const Progress& progress_;
  RowTable rows_;
  ForwardStep step_;
  Rounding rounding_;
  ForwardJudge judge_;
  bool suspect_ = false;
  bool undecided_ = false;
  std::vector<LateCheck> late_;
  std::vector<UnreadSettled> unread_;  // one for each of them
  std::vector<OperatorCheck> late_checks_;
  SweepResult result_;
};

}  // namespace

SweepResult SweepForward(const Linearization& linearization, const Progress& progress) {
  return SweepPart(linearization, linearization.trace->numc, progress);
}

SweepResult SweepPart(const Linearization& linearization, int64_t components, const Progress& progress) {
  c10::AutoGradMode grad(linearization.trace->differentiable);
  SweepKind kind;
  kind.components = components;
  kind.judges_late = linearization.trace->HostWaits();
  {
    Sweep sweep(linearization, kind, progress);
    SweepResult result = sweep.Run();
    if (!sweep.suspect() && !sweep.undecided()) return result;
    kind.judges_late = false;
    if (!sweep.suspect()) return Sweep(linearization, kind, progress).Run();
  }
  // An output missed its tolerance. A second sweep checks every operator, to tell a wrong rule from rounding that was
  // handed on, and to find where it began.
  Linearization judged = linearization;
  judged.policy.check = Check::kEveryOp;
  return Sweep(judged, kind, progress).Run();
}

SweepResult SweepComponents(const Linearization& linearization, const std::vector<at::Tensor>& sums,
                            const Progress& progress) {
  c10::AutoGradMode grad(linearization.trace->differentiable);
  SweepKind kind;
  kind.components = linearization.trace->numc;
  kind.sums_of_all = &sums;
  return Sweep(linearization, kind, progress).Run();
}

std::vector<at::Tensor> SumsBeforePayments(const Linearization& linearization) {
  std::vector<at::Tensor> sums(linearization.nodes.size());
  const auto pays = [](const Node& node) { return node.constant.defined() && !node.joint; };
  if (std::none_of(linearization.nodes.begin(), linearization.nodes.end(), pays)) return sums;
  Linearization one = linearization;
  one.trace = PartOf(*linearization.trace, 0, 0, /*rest=*/true);
  one.policy.check = Check::kOff;
  SweepKind kind;
  kind.components = one.trace->numc;
  kind.sums_before = &sums;
  kind.judges_late = one.trace->HostWaits();
  Sweep(one, kind, Progress()).Run();
  return sums;
}

}  // namespace addend
