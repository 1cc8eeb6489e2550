#include "core/explain/outcome.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/notes.h"
#include "core/linearize/in_double.h"
#include "core/linearize/payments.h"
#include "core/linearize/recovery_check.h"
#include "core/linearize/row_sums.h"
#include "core/linearize/settle.h"
#include "core/linearize/view.h"

namespace addend {
namespace {

constexpr double kMuchLeftover = 0.2;

// What the parts of one tensor come to; sums of magnitudes over its elements.
struct Sizes {
  double components = 0;
  double leftover = 0;
  double reference = 0;
  double move = 0;
  double value = 0;

  double parts() const { return components + leftover; }
  double Conditioning() const { return ConditioningOf(parts(), reference, value, move); }
  // How much of the parts cancels in what they sum to.
  double Cancelling() const { return parts() == 0 ? 1 : parts() / move; }
  double LeftoverShare() const { return leftover == 0 ? 0 : leftover / move; }
  // What is as small as the rounding of the value was made of that, and has no meaning.
  bool AreRounding(bool single) const {
    const double eps = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    return parts() <= 64 * eps * value;
  }
};

std::string At(const Linearization& linearization, int64_t call) {
  const Position& position = linearization.trace->program.calls[call].position;
  const std::string where = position.Describe();
  return where.empty() ? position.op : absl::StrCat(position.op, " (", where, ")");
}

std::string Percent(double share) {
  return std::isfinite(share) ? absl::StrCat(TwoDigits(100 * share), " %") : "more than all";
}

// Where the terms grow that some numbers of a probe are summed from. cotangent: [1, *S].
Growth GrowthOf(const Linearization& linearization, size_t probe, const at::Tensor& cotangent) {
  if (std::any_of(linearization.nodes.begin(), linearization.nodes.end(), LooksAtAll)) return {};
  AdjointOptions options;
  options.components_only = true;
  options.growth = true;
  std::vector<at::Tensor> cotangents(linearization.probes.size());
  cotangents[probe] = cotangent;
  return SweepBackward(linearization, cotangents, options).growth;
}

// The magnitudes of an operand's reference over those of its value, all elements together; 0 where nothing is known.
double ReferenceOverValue(const TracedRun& trace, const Operand& operand) {
  if (!CarriesRows(operand) || trace.Misses(operand)) return 0;
  const auto sum = [](const at::Tensor& t) {
    const at::Tensor wide = Resolved(t).abs().to(at::kDouble);
    return wide.masked_fill(at::isfinite(wide).logical_not_(), 0).sum().item<double>();
  };
  const double value = sum(trace.Value(operand));
  return value > 0 ? sum(trace.Reference(operand)) / value : 0;
}

// Where the reference grows most against the value, on the way to a probe.
Growth GrowthOfReference(const Linearization& linearization, int64_t last) {
  const TracedRun& trace = *linearization.trace;
  Growth most;
  for (const Node& node : NodesOf(linearization)) {
    if (node.call > last) break;
    const Call& call = trace.program.calls[node.call];
    double before = 1;
    for (const int input : node.inputs) before = std::max(before, ReferenceOverValue(trace, call.operands[input]));
    for (const Operand& output : call.outputs) {
      const double factor = ReferenceOverValue(trace, output) / before;
      if (factor > most.factor) most = {node.call, factor};
    }
  }
  return most;
}

// What is known of one tensor or target when it is judged.
struct Judged {
  std::string name;
  Sizes sizes;
  Growth growth;
  int64_t call = 0;  // where it was computed
};

// "; they grew most, 20-fold, at aten::batch_norm (op #0)"; empty where that is not known.
std::string GrewMost(const Linearization& linearization, const Growth& growth, const char* who) {
  if (growth.call < 0) return "";
  return absl::StrCat(who, " grew most, ", TwoDigits(growth.factor), "-fold, at ", At(linearization, growth.call));
}

// What the caller can try; `single`: the parts are in single precision.
std::string Remedies(bool single, bool far) {
  const char* baseline =
      far ? "choose a baseline of the data (mean:FILE or median:FILE of a file of rows, or one of them)"
          : "choose another baseline, or cut the line (policy segments=8)";
  return single ? absl::StrCat("compute in float64 (policy compute_dtype=float64), or ", baseline) : baseline;
}

void NoteConditioning(const Linearization& linearization, const Judged& judged, bool single, Outcome& outcome) {
  const double cancelling = judged.sizes.Cancelling();
  const std::string size = std::isfinite(cancelling)
                               ? absl::StrCat("come to ", TwoDigits(cancelling), " times the difference")
                               : "do not vanish, as the difference does,";
  outcome.notes.push_back(absl::StrCat(
      "ill-conditioned: the parts of ", judged.name, " ", size,
      " between value and reference that they sum to, so that no single one means much",
      GrewMost(linearization, judged.growth, "; they"), ". To get others: ", Remedies(single, /*far=*/false)));
}

void NoteLeftover(const Policy& policy, const std::string& name, double share, Outcome& outcome) {
  outcome.notes.push_back(
      absl::StrCat("much is left over: ", Percent(share), " of the difference between value and reference of ", name,
                   " is in no component", policy.preset == Preset::kFast ? "; preset=faithful leaves less" : ""));
}

// How far a recovery is off, in the worst row of an output.
struct Gap {
  double size = 0;   // the largest difference
  double scale = 1;  // what it is measured by
  int64_t off = 0;   // how many rows are off by more than is to be told
  int64_t rows = 1;
  // How large the numbers are beside which the model itself rounds the worst row: what is as small as their rounding is
  // no failure.
  double terms = 0;

  double relative() const { return size / scale; }
};

// The sentence about a recovery that is off, but for what to do.
std::string DescribeGap(const Linearization& linearization, const Judged& judged, const Gap& gap, bool far) {
  std::string what = absl::StrCat("the parts of ", judged.name, " differ from its value by ", Percent(gap.relative()),
                                  " of the largest in its row");
  if (gap.rows > 1) absl::StrAppend(&what, ", in ", gap.off, " of ", gap.rows, " rows");
  const Sizes& sizes = judged.sizes;
  const bool reference = sizes.reference > sizes.parts();
  const char* who = reference                           ? "the reference comes"
                    : sizes.leftover > sizes.components ? "the leftover comes"
                                                        : "the contributions come";
  const double most = std::max(sizes.reference, sizes.parts());
  const double least = far ? sizes.value : sizes.move;
  if (most > 10 * least) {
    absl::StrAppend(&what, ": ", who, " to ",
                    least > 0 ? absl::StrCat(TwoDigits(most / least), " times ") : std::string("much more than "),
                    far ? "the value" : "the difference between value and reference",
                    ", and digits are lost in rounding numbers of that size",
                    GrewMost(linearization, judged.growth, "; this"));
  }
  return what;
}

// The model's own rounding, where it is as large as what is told: "" or a sentence.
std::string OwnRounding(const Linearization& linearization, size_t probe, bool single) {
  if (!single) return "";
  const at::Tensor exact = ValueInDouble(*linearization.recorded, linearization.probes[probe]);
  if (!exact.defined()) return "";
  const at::Tensor value = Resolved(linearization.trace->Value(linearization.probes[probe].operand)).to(at::kDouble);
  const OutputScales scales(exact);
  const std::vector<double> off = OutputScales(RowsOfOutput(value - exact)).each();
  double worst = 0;
  for (size_t row = 0; row < off.size(); ++row) {
    if (scales.OfRow(row) > 0) worst = std::max(worst, off[row] / scales.OfRow(row));
  }
  if (worst <= RecoveryLimitsOf(single, {}).told) return "";
  return absl::StrCat(". The model's own value is rounding to that extent: it is ", Percent(worst),
                      " another when it is computed in float64");
}

// Tells a recovery that is off, and what Policy::on_failure does with a failure. Returns whether it is to be absorbed.
// `probe` and a cotangent [1, *S] say where growth is looked for.
bool TellGap(const Linearization& linearization, Judged judged, const Gap& gap, bool single, size_t probe,
             const std::function<at::Tensor()>& cotangent, Outcome& outcome) {
  const Policy& policy = linearization.policy;
  const RecoveryLimits limits = RecoveryLimitsOf(single, policy.tolerance);
  const double eps = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  if (!(gap.relative() > limits.told)) return false;
  NoteWorst(gap.relative(), outcome.worst_error);
  const bool fails = gap.relative() > limits.failed && gap.size > 16 * eps * gap.terms;
  const bool far = judged.sizes.value < judged.sizes.move;
  judged.growth = far ? GrowthOfReference(linearization, judged.call) : GrowthOf(linearization, probe, cotangent());
  const std::string what =
      absl::StrCat(DescribeGap(linearization, judged, gap, far), OwnRounding(linearization, probe, single));
  const std::string remedies = Remedies(single, far);
  if (!fails) {
    outcome.notes.push_back(absl::StrCat("recovery is off: ", what, ". What helps: ", remedies));
    return false;
  }
  const int64_t call = judged.growth.call >= 0 ? judged.growth.call : judged.call;
  ThrowIfError(policy.on_failure, what, linearization.trace->program.calls[call].position, remedies);
  OperatorCheck check;
  check.call = call;
  for (const Node& node : linearization.nodes) {
    if (node.call == call) check.kind = node.kind;
  }
  check.recovery_error = gap.relative();
  check.tolerance = limits.failed;
  check.recovered = false;
  check.absorbed = policy.on_failure == OnFailure::kAbsorb;
  outcome.failures.push_back(Locate(*linearization.trace, check));
  if (policy.on_failure != OnFailure::kIgnore) {
    outcome.notes.push_back(absl::StrCat("tracing failure", check.absorbed ? ", absorbed into the leftover: " : ": ",
                                         what, ". What helps: ", remedies));
  }
  return check.absorbed;
}

// How large the numbers are that the model itself sums a probe from, on the value: what is one less one is made of
// rounding. [*S] or a number for all; zero where the last operator sums nothing.
at::Tensor OwnTerms(const Linearization& linearization, const Probe& probe) {
  const at::Tensor value = linearization.trace->Value(probe.operand);
  at::Tensor terms = at::zeros({}, value.options().dtype(at::kDouble));
  const int64_t last = MakerOf(*linearization.trace, probe);
  for (const Node& node : linearization.nodes) {
    if (node.call != last) continue;
    // A product of many has terms that no operand shows, as a determinant has.
    if (node.kind == Kind::kBilinear) terms = at::maximum(terms, at::full_like(terms, node.inner_terms));
    if ((node.kind != Kind::kLinear && node.kind != Kind::kAffine) || !node.map) continue;
    const at::Tensor reached = ReachOf(*linearization.trace, node, 0, /*with_reference=*/false);
    if (reached.defined() && reached.sizes() == value.sizes()) terms = at::maximum(terms, reached.to(at::kDouble));
  }
  return terms;
}

// The worst row of what a recovery misses. missing: [*S], zero where the value is not finite.
Gap GapOf(const Linearization& linearization, const Probe& probe, const at::Tensor& missing, const at::Tensor& value,
          bool single) {
  const RecoveryLimits limits = RecoveryLimitsOf(single, linearization.policy.tolerance);
  const OutputScales scales(value);
  const std::vector<double> off = OutputScales(missing).each();
  Gap worst;
  worst.scale = 0;
  size_t row_of_worst = 0;
  for (size_t row = 0; row < off.size(); ++row) {
    if (off[row] == 0 || std::isnan(off[row])) continue;
    // Of zeros: the size of what they are made of.
    double scale = scales.OfRow(row);
    if (scale == 0) scale = std::max(LargestFinite(linearization.trace->Reference(probe.operand)), off[row]);
    worst.off += off[row] > limits.told * scale;
    if (worst.scale > 0 && off[row] / scale <= worst.relative()) continue;
    worst.size = off[row];
    worst.scale = scale;
    row_of_worst = row;
  }
  worst.rows = static_cast<int64_t>(off.size());
  if (worst.scale == 0) worst.scale = 1;
  if (worst.relative() > limits.failed) {
    const at::Tensor terms = OwnTerms(linearization, probe);
    const double own =
        terms.dim() == 0 && value.dim() > 0 ? terms.item<double>() : OutputScales(terms).each()[row_of_worst];
    worst.terms = std::max(own, scales.whole());
  }
  return worst;
}

Sizes SizesOf(const ProbeRows& rows, const at::Tensor& infinite) {
  const auto finite = [&](const at::Tensor& t) { return infinite.defined() ? t.masked_fill(infinite, 0) : t; };
  const auto sum = [](const at::Tensor& t) { return MagnitudeOfEach(t.unsqueeze(0)).item<double>(); };
  Sizes sizes;
  // One by one: they may be many.
  for (int64_t c = 0; c < rows.components.size(0); ++c) sizes.components += sum(finite(rows.components.select(0, c)));
  sizes.leftover = sum(finite(rows.leftover));
  const at::ScalarType dtype = rows.components.scalar_type();
  sizes.value = sum(finite(rows.value.to(dtype)));
  const at::Tensor reference = rows.reference.to(dtype);
  sizes.reference = sum(reference.masked_fill(at::isfinite(reference).logical_not_(), 0));
  sizes.move = sum(FiniteMove(rows.value.to(dtype), reference));
  return sizes;
}

// [1, *S], one at the element whose components are the largest.
at::Tensor WorstElement(const ProbeRows& rows, const at::Tensor& infinite) {
  at::Tensor size = at::zeros_like(rows.leftover.abs());
  for (int64_t c = 0; c < rows.components.size(0); ++c) size = size + rows.components.select(0, c).abs();
  if (infinite.defined()) size = size.masked_fill(infinite, 0);
  at::Tensor cotangent = at::zeros_like(rows.leftover, at::MemoryFormat::Contiguous);
  cotangent.view({-1}).select(0, size.reshape({-1}).argmax().item<int64_t>()).fill_(1);
  return cotangent.unsqueeze(0);
}

// Everything but recovery is found of a tensor; `probe` and a cotangent [1, *S] say where growth is looked for.
Judged Measure(const Linearization& linearization, const std::string& name, const Sizes& sizes, bool single,
               size_t probe, const std::function<at::Tensor()>& cotangent, Outcome& outcome) {
  Judged judged;
  judged.name = name;
  judged.call = MakerOf(*linearization.trace, linearization.probes[probe]);
  judged.sizes = sizes;
  if (sizes.AreRounding(single)) return judged;
  if (!(sizes.Conditioning() <= outcome.conditioning)) outcome.conditioning = sizes.Conditioning();
  if (!(sizes.LeftoverShare() <= outcome.leftover_share)) outcome.leftover_share = sizes.LeftoverShare();
  if (!(sizes.Cancelling() < kIllConditioned)) judged.growth = GrowthOf(linearization, probe, cotangent());
  return judged;
}

}  // namespace

Outcome JudgeOutputs(const Linearization& linearization, const std::vector<std::string>& names, SweepResult& sweep) {
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = linearization.policy;
  Outcome outcome;
  Outcome worst_conditioned;
  Outcome most_left;
  double most_cancelling = kIllConditioned;
  for (size_t p = 0; p < sweep.probes.size(); ++p) {
    ProbeRows& rows = sweep.probes[p];
    if (!rows.decomposed || rows.value.numel() == 0 || linearization.trace->program.calls.empty()) continue;
    const at::ScalarType dtype = rows.components.scalar_type();
    const at::Tensor value = rows.value.detach().to(dtype);
    const at::Tensor unfit = at::isfinite(value).logical_not_();
    const at::Tensor infinite = unfit.any().item<bool>() ? unfit : at::Tensor();
    const double leftover_before = outcome.leftover_share;
    const Sizes sizes = SizesOf(rows, infinite);
    const auto worst_element = [&] { return WorstElement(rows, infinite); };
    const Judged judged = Measure(linearization, names[p], sizes, rows.single, p, worst_element, outcome);
    if (!sizes.AreRounding(rows.single) && !(sizes.Cancelling() < most_cancelling)) {
      most_cancelling = sizes.Cancelling();
      worst_conditioned.notes.clear();
      NoteConditioning(linearization, judged, rows.single, worst_conditioned);
    }
    if (outcome.leftover_share > leftover_before && sizes.LeftoverShare() > kMuchLeftover) {
      most_left.notes.clear();
      NoteLeftover(policy, names[p], sizes.LeftoverShare(), most_left);
    }
    // What failed at an operator fails here too, and is known.
    if (policy.check == Check::kOff || (!sweep.failures.empty() && policy.on_failure != OnFailure::kAbsorb)) continue;
    at::Tensor missing = value - (rows.components.sum(0) + rows.leftover + rows.reference.to(dtype));
    if (infinite.defined()) missing = missing.masked_fill(infinite, 0);
    const Gap gap = GapOf(linearization, linearization.probes[p], missing, value, rows.single);
    if (TellGap(linearization, judged, gap, rows.single, p, worst_element, outcome)) {
      rows.leftover = rows.leftover + missing;
    }
  }
  for (Outcome* more : {&worst_conditioned, &most_left}) {
    outcome.notes.insert(outcome.notes.end(), more->notes.begin(), more->notes.end());
  }
  return outcome;
}

Outcome JudgeRecovery(const Linearization& linearization, const std::string& name, const std::vector<Target>& targets,
                      const OutputScales& scales, const at::Tensor& cotangent, AdjointResult& result) {
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = linearization.policy;
  Outcome outcome;
  const Probe& probe = linearization.probes[0];
  if (!CarriesRows(probe.operand) || scales.rows() == 0 || policy.check == Check::kOff) return outcome;
  if (!result.failures.empty() && policy.on_failure != OnFailure::kAbsorb) return outcome;
  const bool single = result.single[0];
  const RecoveryLimits limits = RecoveryLimitsOf(single, policy.tolerance);
  const std::vector<double> components = Doubles(result.components.sum(1));
  const std::vector<double> leftover = Doubles(result.leftover);
  const std::vector<double> references = Doubles(result.reference);
  const std::vector<double> values = Doubles(result.value);
  // How many targets a row of the sweep is the sum of.
  const double together = static_cast<double>(targets.size()) / static_cast<double>(std::max<size_t>(values.size(), 1));
  Gap worst;
  Judged of_worst;
  int64_t row_of_worst = -1;
  std::vector<double> absorbed(values.size(), 0);
  for (size_t t = 0; t < values.size(); ++t) {
    // JudgeTargets() says so of those rows alone.
    if (!std::isfinite(values[t])) continue;
    const double missing = values[t] - (components[t] + leftover[t] + references[t]);
    Gap gap;
    gap.size = std::abs(missing) / together;
    gap.scale = together > 1 ? scales.whole() : scales.Of(targets[t]);
    if (gap.scale == 0) gap.scale = std::max(std::abs(references[t]) / together, gap.size);
    if (!(gap.size > limits.told * gap.scale)) continue;
    ++worst.off;
    if (gap.relative() > limits.failed) absorbed[t] = missing;
    if (row_of_worst >= 0 && gap.relative() <= worst.relative()) continue;
    worst.size = gap.size;
    worst.scale = gap.scale;
    row_of_worst = static_cast<int64_t>(t);
    of_worst.sizes.components = result.components[row_of_worst].abs().sum().item<double>();
    of_worst.sizes.leftover = std::abs(leftover[t]);
    of_worst.sizes.reference = std::abs(references[t]);
    of_worst.sizes.move = std::abs(values[t] - references[t]);
    of_worst.sizes.value = std::abs(values[t]);
  }
  if (row_of_worst < 0) return outcome;
  worst.rows = static_cast<int64_t>(values.size());
  if (worst.relative() > limits.failed) {
    const at::Tensor terms = OwnTerms(linearization, probe);
    const at::Tensor weights = cotangent.select(0, row_of_worst).abs().to(at::kDouble);
    worst.terms = std::max(scales.whole(), (weights * terms).sum().item<double>() / together);
  }
  of_worst.name = targets.size() > 1 || together > 1 ? name : absl::StrCat(name, " at ", TargetText(targets[0]));
  of_worst.call = MakerOf(*linearization.trace, probe);
  const auto row = [&] { return cotangent.narrow(0, row_of_worst, 1); };
  const bool absorb = TellGap(linearization, of_worst, worst, single, 0, row, outcome);
  for (size_t t = 0; absorb && t < absorbed.size(); ++t) result.leftover[static_cast<int64_t>(t)] += absorbed[t];
  return outcome;
}

void JudgeExamples(const Linearization& linearization, const std::string& name,
                   const std::vector<Contributions>& targets, const OutputScales& scales, const at::Tensor& cotangent,
                   const AdjointResult& result, Outcome& outcome) {
  const c10::AutoGradMode no_grad(false);
  const std::vector<double> left = Doubles(result.leftover);
  const bool failed = !result.failures.empty() || !outcome.failures.empty();
  if (left.empty() || failed || linearization.policy.check == Check::kOff) return;
  const size_t together = targets.size() / left.size();
  const bool single = result.single[0];
  const RecoveryLimits limits = RecoveryLimitsOf(single, linearization.policy.tolerance);
  const double eps = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  Gap worst;
  size_t which = 0;
  for (size_t t = 0; t < targets.size(); ++t) {
    const Contributions& target = targets[t];
    const double scale = target.scale > 0 ? target.scale : std::abs(target.reference);
    if (!std::isfinite(target.value) || scale == 0) continue;
    const bool known = left[t / together] == 0 && target.target.quantity == Target::Quantity::kElement;
    // A guess is told, and fails nothing.
    const double missing = known ? std::abs(target.leftover) : std::min(4 * eps * target.mass, limits.failed * scale);
    if (!(missing > limits.told * scale)) continue;
    if (worst.off++ > 0 && missing / scale <= worst.relative()) continue;
    worst.size = missing;
    worst.scale = scale;
    which = t;
  }
  if (worst.off == 0) return;
  worst.rows = static_cast<int64_t>(targets.size());
  worst.terms = scales.whole();
  const Contributions& target = targets[which];
  Judged judged;
  judged.name = name;
  judged.call = MakerOf(*linearization.trace, linearization.probes[0]);
  judged.sizes = {0, std::abs(target.leftover), std::abs(target.reference), std::abs(target.value - target.reference),
                  std::abs(target.value)};
  for (const double part : target.contributions) judged.sizes.components += std::abs(part);
  const auto row = [&] { return cotangent.narrow(0, static_cast<int64_t>(which / together), 1); };
  TellGap(linearization, judged, worst, single, 0, row, outcome);
}

void JudgeTargets(const Linearization& linearization, const std::string& name,
                  const std::vector<Contributions>& targets, const at::Tensor& cotangent, const AdjointResult& result,
                  Outcome& outcome) {
  const c10::AutoGradMode no_grad(false);
  if (!CarriesRows(linearization.probes[0].operand)) return;
  Sizes sizes;
  size_t worst = 0;
  for (size_t t = 0; t < targets.size(); ++t) {
    const Contributions& target = targets[t];
    if (!std::isfinite(target.value)) continue;
    for (const double part : target.contributions) sizes.components += std::abs(part);
    sizes.leftover += std::abs(target.leftover);
    sizes.reference += std::abs(target.reference);
    sizes.move += std::abs(target.value - target.reference);
    sizes.value += std::abs(target.value);
    if (target.mass > targets[worst].mass) worst = t;
  }
  const bool single = result.single[0];
  const auto row = static_cast<int64_t>(worst) * cotangent.size(0) / static_cast<int64_t>(targets.size());
  const Judged judged = Measure(
      linearization, name, sizes, single, 0, [&] { return cotangent.narrow(0, row, 1); }, outcome);
  if (sizes.AreRounding(single)) return;
  if (!(sizes.Cancelling() < kIllConditioned)) NoteConditioning(linearization, judged, single, outcome);
  if (sizes.LeftoverShare() > kMuchLeftover) {
    NoteLeftover(linearization.policy, name, sizes.LeftoverShare(), outcome);
  }
}

void SayFirst(const Outcome& outcome, const PreparedInputs& prepared, const Linearization& linearization,
              Report& report) {
  report.conditioning = outcome.conditioning;
  report.leftover_share = outcome.leftover_share;
  NoteWorst(outcome.worst_error, report.worst_recovery_error);
  for (const OperatorReport& failure : outcome.failures) {
    report.failures.push_back(failure);
    report.absorbed_failures += failure.check.absorbed;
  }
  std::vector<std::string> notes = outcome.notes;
  if (!prepared.assumed.empty()) {
    notes.push_back(
        absl::StrCat("no baseline was given: ", absl::StrJoin(prepared.assumed, ", "),
                     ", which may mean something to the model; contributions are measured from there. Natural ones are "
                     "the token of the mask or the padding, mean:FILE of a file of rows, and blur or mean "
                     "of an image"));
  }
  for (const Node& node : linearization.nodes) {
    if (node.swamped == 0) continue;
    notes.push_back(absl::StrCat("in ", node.swamped, node.swamped == 1 ? " element" : " elements", " of ",
                                 At(linearization, node.call), " parts are lost in the rounding of a value of ",
                                 TwoDigits(node.swamped_in), "; what they carried is leftover"));
  }
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
}

}  // namespace addend
