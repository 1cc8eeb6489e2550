#include "core/explain/outcome.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/notes.h"
#include "core/explain/verify.h"
#include "core/linearize/in_double.h"
#include "core/linearize/judge.h"
#include "core/linearize/payments.h"
#include "core/linearize/settle.h"
#include "core/program/view.h"
#include "core/rules/rows.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Sums of magnitudes over the elements of one tensor, for each of its parts.
struct Sizes {
  double components = 0;
  double leftover = 0;
  double reference = 0;
  double move = 0;
  double value = 0;

  double parts() const { return components + leftover; }
  double Conditioning() const { return ConditioningOf(parts(), reference, value, move); }
  // How much of the parts cancels in what they sum to; infinite where that is no number.
  double Cancelling() const {
    const double ratio = parts() == 0 ? 1 : parts() / move;
    return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
  }
  double LeftoverShare() const { return leftover == 0 ? 0 : leftover / move; }
  // True if the parts are no larger than the rounding error of the value, so that they have no meaning.
  bool AreRounding(bool single) const { return parts() <= 64 * EpsilonOf(single ? at::kFloat : at::kDouble) * value; }
  // No single part means much.
  bool Cancel(bool single) const { return !AreRounding(single) && !(Cancelling() < kIllConditioned); }
};

std::string At(const Linearization& linearization, int64_t call) {
  const Position& position = linearization.trace->calls[call].position;
  const std::string where = position.Describe();
  return where.empty() ? position.op : absl::StrCat(position.op, " (", where, ")");
}

std::string Percent(double share) {
  return std::isfinite(share) ? absl::StrCat(TwoDigits(100 * share), " %") : "more than all";
}

// The call at which the terms grow most that some numbers of a probe are summed from. cotangent: [1, *S].
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

// The call at which the reference grows most against the value, on the way to a probe.
Growth GrowthOfReference(const Linearization& linearization, int64_t last) {
  const TracedRun& trace = *linearization.trace;
  Growth most;
  for (const Node& node : NodesOf(linearization)) {
    if (node.call > last) break;
    const Call& call = trace.calls[node.call];
    double before = 1;
    for (const int input : node.inputs) before = std::max(before, ReferenceOverValue(trace, call.operands[input]));
    for (const Operand& output : call.outputs) {
      const double factor = ReferenceOverValue(trace, output) / before;
      if (factor > most.factor) most = {node.call, factor};
    }
  }
  return most;
}

// Measures of one tensor or target, by which it is judged.
struct Judged {
  std::string name;
  Sizes sizes;
  int64_t call = 0;  // where it was computed
  Growth growth = {};
};

// "; they grew most, 20-fold, at aten::batch_norm (op #0)"; empty where that is not known.
std::string GrewMost(const Linearization& linearization, const Growth& growth, const char* who) {
  if (growth.call < 0) return "";
  return absl::StrCat(who, " grew most, ", TwoDigits(growth.factor), "-fold, at ", At(linearization, growth.call));
}

// Advice to the caller; `single`: the parts are in single precision.
std::string Remedies(bool single, bool far) {
  const char* baseline =
      far ? "choose a baseline of the data (mean:FILE or median:FILE of a file of rows, or one of them)"
          : "choose another baseline, or cut the line (policy segments=8)";
  return single ? absl::StrCat("compute in float64 (policy compute_dtype=float64), or ", baseline) : baseline;
}

std::string NoteOnConditioning(const Linearization& linearization, const Judged& judged, bool single) {
  const double cancelling = judged.sizes.Cancelling();
  const std::string size = std::isfinite(cancelling)
                               ? absl::StrCat("come to ", TwoDigits(cancelling), " times the difference")
                               : "do not vanish, as the difference does,";
  return absl::StrCat(WordsOf(NoteKind::kIllConditioned).begins, "the parts of ", judged.name, " ", size,
                      " between value and reference that they sum to, so that no single one means much",
                      GrewMost(linearization, judged.growth, "; they"),
                      ". To get others: ", Remedies(single, /*far=*/false));
}

std::string NoteOnLeftover(const Policy& policy, const std::string& name, double share) {
  return absl::StrCat(WordsOf(NoteKind::kMuchLeftOver).begins, Percent(share),
                      " of the difference between value and reference of ", name, " is in no component",
                      policy.preset == Preset::kFast ? "; preset=faithful leaves less" : "");
}

// How far a recovery is off, in the worst row of an output.
struct Gap {
  double size = 0;   // the largest difference
  double scale = 1;  // what it is measured by
  int64_t off = 0;   // how many rows are off by more than is to be told
  int64_t rows = 1;
  bool fails = false;

  double relative() const { return size / scale; }
  bool WorseThan(const Gap& other) const { return fails != other.fails ? fails : relative() > other.relative(); }
};

// How the recovery of numbers in one precision is judged.
struct Limits : RecoveryLimits {
  Limits(const Linearization& linearization, bool single)
      : RecoveryLimits(RecoveryLimitsOf(single, linearization.policy.tolerance)),
        eps(EpsilonOf(single ? at::kFloat : at::kDouble)) {}

  double eps;
};

// The worst of many gaps, and how many of them are to be told.
class WorstGap {
 public:
  WorstGap(const Limits& limits, size_t rows) : limits_(limits) { gap_.rows = static_cast<int64_t>(rows); }

  // Returns whether the gap of one row is the worst so far. `terms`: how large the numbers are beside which the model
  // itself rounds the row; asked for only where it may fail. A gap as small as their rounding is no failure.
  template <typename Terms>
  bool Meet(double size, double scale, const Terms& terms) {
    Gap own;
    own.size = size;
    own.scale = scale;
    if (!(own.relative() > limits_.told)) return false;
    ++gap_.off;
    own.fails = own.relative() > limits_.failed && own.size > 16 * limits_.eps * terms();
    if (!own.WorseThan(gap_)) return false;
    gap_.size = own.size;
    gap_.scale = own.scale;
    gap_.fails = own.fails;
    return true;
  }
  const Gap& gap() const { return gap_; }

 private:
  const Limits& limits_;
  Gap gap_;
};

// The sentence about a recovery that is off, but for what to do. linearization: null where nobody knows where numbers
// grew.
std::string DescribeGap(const Linearization* linearization, const Judged& judged, const Gap& gap, bool far) {
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
                    linearization == nullptr ? "" : GrewMost(*linearization, judged.growth, "; this"));
  }
  return what;
}

// The model's own rounding, where it is as large as what is told: "" or a sentence.
std::string OwnRounding(const Linearization& linearization, size_t probe, bool single) {
  // Only the first piece of a line that is cut is at hand, and it does not end at the value.
  if (!single || linearization.policy.segments > 1) return "";
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

// Tells a recovery that is off by more than is to be told, and what Policy::on_failure does with a failure. Returns
// whether it is to be absorbed. `probe` and a cotangent [1, *S] say where growth is looked for, unless `judged` knows
// it. `own_rounding`: whether the model's own rounding is told, for which the run is made again.
bool TellGap(const Linearization& linearization, Judged judged, const Gap& gap, bool single, size_t probe,
             const std::function<at::Tensor()>& cotangent, bool own_rounding, Outcome& outcome) {
  const Policy& policy = linearization.policy;
  NoteWorst(gap.relative(), outcome.worst_error);
  const bool far = judged.sizes.value < judged.sizes.move;
  if (far) {
    judged.growth = GrowthOfReference(linearization, judged.call);
  } else if (judged.growth.call < 0) {
    judged.growth = GrowthOf(linearization, probe, cotangent());
  }
  const std::string remedies = Remedies(single, far);
  const auto what = [&] {
    return absl::StrCat(DescribeGap(&linearization, judged, gap, far),
                        own_rounding ? OwnRounding(linearization, probe, single) : "");
  };
  if (!gap.fails) {
    outcome.notes.push_back(NoteOf(NoteKind::kRecoveryOff, absl::StrCat(what(), ". What helps: ", remedies)));
    return false;
  }
  const int64_t call = judged.growth.call >= 0 ? judged.growth.call : judged.call;
  if (policy.on_failure == OnFailure::kError) {
    ThrowIfError(policy.on_failure, what(), linearization.trace->calls[call].position, remedies);
  }
  OperatorCheck check;
  check.call = call;
  for (const Node& node : linearization.nodes) {
    if (node.call == call) check.kind = node.kind;
  }
  check.recovery_error = gap.relative();
  check.tolerance = Limits(linearization, single).failed;
  check.recovered = false;
  check.absorbed = policy.on_failure == OnFailure::kAbsorb;
  outcome.failures.push_back(Locate(*linearization.trace, check));
  if (policy.on_failure != OnFailure::kIgnore) {
    outcome.notes.push_back(absl::StrCat(WordsOf(NoteKind::kTracingFailure).begins,
                                         check.absorbed ? ", absorbed into the leftover: " : ": ", what(),
                                         ". What helps: ", remedies));
  }
  return check.absorbed;
}

// Magnitude of the terms that the first output of a node is summed from, on the value: [*S], or one number for all if
// only its operands are known.
at::Tensor TermsOf(const TracedRun& trace, const Node& node) {
  std::vector<at::Tensor> values;
  for (const int input : node.inputs) {
    const Operand& operand = trace.calls[node.call].operands[input];
    if (!trace.Misses(operand)) values.push_back(Resolved(trace.Value(operand)));
  }
  if (values.size() == node.inputs.size()) {
    const at::Tensor reached = ReachOf(trace, node, 0, /*with_reference=*/false);
    if (reached.defined()) return reached.to(at::kDouble);
  }
  double largest = 0;
  // A product is summed from products of its operands' numbers, so that the operands do not show how large its terms
  // are.
  if (node.kind != Kind::kBilinear) {
    for (const at::Tensor& value : values) largest = std::max(largest, LargestFinite(value));
  }
  return at::full({}, largest, at::TensorOptions(at::kDouble));
}

// Magnitude of the terms that the model itself sums a probe from, on the value: 1 - 1 is a difference of two equal
// numbers and holds only their rounding. [*S] or a number for all; zero if the last operator sums nothing.
at::Tensor OwnTerms(const Linearization& linearization, const Probe& probe) {
  const at::Tensor value = linearization.trace->Value(probe.operand);
  at::Tensor terms = at::zeros({}, value.options().dtype(at::kDouble));
  const int64_t last = MakerOf(*linearization.trace, probe);
  for (const Node& node : linearization.nodes) {
    if (node.call != last) continue;
    // A product of many has terms that no operand shows, as a determinant has.
    if (node.kind == Kind::kBilinear) terms = at::maximum(terms, at::full_like(terms, node.inner_terms));
    if (node.kind != Kind::kLinear && node.kind != Kind::kAffine && node.kind != Kind::kBilinear) continue;
    const at::Tensor own = TermsOf(*linearization.trace, node);
    // A view has other elements than the operator gave.
    const bool by_element = own.sizes() == value.sizes();
    terms = at::maximum(terms, by_element ? own.to(terms.device()) : at::full_like(terms, LargestFinite(own)));
  }
  // Each piece of the line rounds about as the first does, which is at hand.
  return terms * static_cast<double>(std::max<int64_t>(linearization.policy.segments, 1));
}

// OwnTerms() for each row of a probe. A row has at least the size of the whole probe, which `scales` knows.
std::vector<double> OwnTermsOfRows(const Linearization& linearization, const Probe& probe, const OutputScales& scales) {
  const at::Tensor terms = OwnTerms(linearization, probe);
  std::vector<double> rows = OutputScales(terms).each();
  rows.resize(scales.each().size(), rows[0]);
  for (double& row : rows) row = std::max(row, scales.whole());
  return rows;
}

// The magnitudes of the parts of each element, [*S].
at::Tensor MassOf(const ProbeRows& rows) {
  at::Tensor mass = rows.leftover.abs();
  for (int64_t c = 0; c < rows.components.size(0); ++c) mass = mass + rows.components.select(0, c).abs();
  return mass;
}

// The worst row of what a recovery misses. missing: [*S], zero where the value is not finite.
Gap GapOf(const Linearization& linearization, const Probe& probe, const ProbeRows& rows, const at::Tensor& missing,
          const at::Tensor& value) {
  const Limits limits(linearization, rows.single);
  const OutputScales scales(value);
  const std::vector<double> off = OutputScales(missing).each();
  std::vector<double> terms;  // of all rows, where one may fail
  double of_zeros = -1;       // the size of what cancels where all is zero; -1: nobody has asked
  WorstGap worst(limits, off.size());
  for (size_t row = 0; row < off.size(); ++row) {
    if (off[row] == 0) continue;
    double scale = scales.OfRow(row);
    if (scale == 0) {
      if (of_zeros < 0) of_zeros = std::max(LargestFinite(rows.reference), LargestFinite(MassOf(rows)));
      scale = std::max(of_zeros, off[row]);
    }
    worst.Meet(off[row], scale, [&] {
      if (terms.empty()) terms = OwnTermsOfRows(linearization, probe, scales);
      return terms[row];
    });
  }
  return worst.gap();
}

// The difference between a probe's value and the sum of its parts, [*S]: in their own dtype or in double precision,
// which are the two sums that readers make of them, whichever is larger.
at::Tensor MissingEitherWay(const ProbeRows& rows, const at::Tensor& value) {
  const at::ScalarType dtype = value.scalar_type();
  const at::Tensor missing = value - (rows.components.sum(0) + rows.leftover + rows.reference.to(dtype));
  const at::ScalarType wide = at::isComplexType(dtype) ? at::kComplexDouble : at::kDouble;
  if (dtype == wide) return missing;
  at::Tensor exact = value.to(wide) - rows.reference.to(wide) - rows.leftover.to(wide);
  // One by one: they may be many.
  for (int64_t c = 0; c < rows.components.size(0); ++c) exact -= rows.components.select(0, c).to(wide);
  return at::where(exact.abs() > missing.abs(), exact.to(dtype), missing);
}

Sizes SizesOf(const ProbeRows& rows, const at::Tensor& infinite) {
  const auto finite = [&](const at::Tensor& t) { return infinite.defined() ? t.masked_fill(infinite, 0) : t; };
  std::vector<at::Tensor> sums;
  const auto add = [&](const at::Tensor& t) { sums.push_back(MagnitudeOfEach(Unsqueezed(t, 0))); };
  const at::ScalarType dtype = rows.components.scalar_type();
  const at::Tensor value = InDtype(rows.value, dtype);
  const at::Tensor reference = InDtype(rows.reference, dtype);
  add(finite(rows.leftover));
  add(finite(value));
  add(FiniteOrZero(reference));
  add(FiniteMove(value, reference));
  // One by one: they may be many.
  for (int64_t c = 0; c < rows.components.size(0); ++c) add(finite(Select(rows.components, 0, c)));
  const std::vector<double> all = Doubles(at::cat(sums));
  Sizes sizes;
  sizes.leftover = all[0];
  sizes.value = all[1];
  sizes.reference = all[2];
  sizes.move = all[3];
  for (size_t k = 4; k < all.size(); ++k) sizes.components += all[k];
  return sizes;
}

void Add(const Contributions& target, Sizes& sizes) {
  for (const double part : target.contributions) sizes.components += std::abs(part);
  sizes.leftover += std::abs(target.leftover);
  sizes.reference += std::abs(target.reference);
  sizes.move += std::abs(target.value - target.reference);
  sizes.value += std::abs(target.value);
}

Sizes SizesOf(const Contributions& target) {
  Sizes sizes;
  Add(target, sizes);
  return sizes;
}

// The magnitudes of what single elements gave to targets whose value is finite. elements: as of Attribution::inputs.
double MagnitudeByElement(const std::vector<Contributions>& targets, const std::vector<at::Tensor>& elements) {
  const auto count = static_cast<int64_t>(targets.size());
  double sum = 0;
  for (const at::Tensor& given : elements) {
    if (!given.defined() || given.numel() == 0) continue;
    const std::vector<double> by_target = Doubles(MagnitudeOfEach(given.reshape({count, -1})));
    for (size_t t = 0; t < targets.size(); ++t) {
      if (std::isfinite(targets[t].value) && std::isfinite(by_target[t])) sum += by_target[t];
    }
  }
  return sum;
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

// Measures conditioning, leftover share and growth of a tensor; recovery is judged by the caller. `probe` and a
// cotangent [1, *S] say where growth is looked for.
Judged Measure(const Linearization& linearization, const std::string& name, const Sizes& sizes, bool single,
               size_t probe, const std::function<at::Tensor()>& cotangent, Outcome& outcome) {
  Judged judged = {name, sizes, MakerOf(*linearization.trace, linearization.probes[probe])};
  if (sizes.AreRounding(single)) return judged;
  if (!(sizes.Conditioning() <= outcome.conditioning)) outcome.conditioning = sizes.Conditioning();
  if (!(sizes.LeftoverShare() <= outcome.leftover_share)) outcome.leftover_share = sizes.LeftoverShare();
  if (sizes.Cancel(single)) judged.growth = GrowthOf(linearization, probe, cotangent());
  return judged;
}

}  // namespace

Outcome JudgeOutputs(const Linearization& linearization, const std::vector<std::string>& names, SweepResult& sweep) {
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = linearization.policy;
  // A probe whose recovery is off. It is told only once the worst is known, because the worst tells more.
  struct Off {
    size_t probe;
    Judged judged;
    Gap gap;
    at::Tensor missing;
    at::Tensor infinite;
  };
  std::vector<Off> told;
  const auto worse = [](const Off& a, const Off& b) { return b.gap.WorseThan(a.gap); };
  Outcome outcome;
  std::string worst_conditioned;
  std::string most_left;
  double most_cancelling = kIllConditioned;
  for (size_t p = 0; p < sweep.probes.size(); ++p) {
    const ProbeRows& rows = sweep.probes[p];
    if (!rows.decomposed || rows.value.numel() == 0 || linearization.trace->calls.empty()) continue;
    const at::ScalarType dtype = rows.components.scalar_type();
    const at::Tensor value = rows.value.detach().to(dtype);
    at::Tensor infinite;
    if (!rows.finite && !AllFinite(value)) infinite = at::isfinite(value).logical_not_();
    const double leftover_before = outcome.leftover_share;
    const Sizes sizes = SizesOf(rows, infinite);
    const Judged judged = Measure(
        linearization, names[p], sizes, rows.single, p, [&] { return WorstElement(rows, infinite); }, outcome);
    if (!sizes.AreRounding(rows.single) && !(sizes.Cancelling() < most_cancelling)) {
      most_cancelling = sizes.Cancelling();
      worst_conditioned = NoteOnConditioning(linearization, judged, rows.single);
    }
    if (outcome.leftover_share > leftover_before && sizes.LeftoverShare() > kMuchLeftover) {
      most_left = NoteOnLeftover(policy, names[p], sizes.LeftoverShare());
    }
    // A failure that an operator's check has reported is not reported again.
    if (policy.check == Check::kOff || (!sweep.failures.empty() && policy.on_failure != OnFailure::kAbsorb)) continue;
    at::Tensor missing = MissingEitherWay(rows, value);
    if (infinite.defined()) missing = missing.masked_fill(infinite, 0);
    const Gap gap = GapOf(linearization, linearization.probes[p], rows, missing, value);
    if (gap.relative() > Limits(linearization, rows.single).told) told.push_back({p, judged, gap, missing, infinite});
  }
  const auto worst = std::max_element(told.begin(), told.end(), worse);
  for (const Off& one : told) {
    ProbeRows& rows = sweep.probes[one.probe];
    // One that fails may be the last that is looked at.
    const bool last = one.gap.fails && policy.on_failure == OnFailure::kError;
    const auto worst_element = [&] { return WorstElement(rows, one.infinite); };
    if (TellGap(linearization, one.judged, one.gap, rows.single, one.probe, worst_element, last || &one == &*worst,
                outcome)) {
      rows.leftover = rows.leftover + one.missing;
    }
  }
  for (const std::string& note : {worst_conditioned, most_left}) {
    if (!note.empty()) outcome.notes.push_back(note);
  }
  return outcome;
}

AttributionJudge::AttributionJudge(const Linearization& linearization, const std::string& name,
                                   const OutputScales& scales, const at::Tensor& cotangent, AdjointResult* result)
    : linearization_(linearization),
      probe_(linearization.probes[0]),
      name_(name),
      scales_(scales),
      cotangent_(cotangent),
      result_(*result),
      single_(result->single[0]) {}

void AttributionJudge::JudgeRows(const std::vector<Target>& targets) {
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = linearization_.policy;
  if (!CarriesRows(probe_.operand) || policy.check == Check::kOff) return;
  if (!result_.failures.empty() && policy.on_failure != OnFailure::kAbsorb) return;
  const std::vector<TargetSums> rows = SumsOf(result_);
  // How many targets a row of the sweep is the sum of.
  const double together = static_cast<double>(targets.size()) / static_cast<double>(std::max<size_t>(rows.size(), 1));
  const Limits limits(linearization_, single_);
  WorstGap worst(limits, rows.size());
  int64_t which = -1;
  Sizes sizes;
  at::Tensor terms;  // of the value, where a row may fail
  std::vector<double> absorbed(rows.size(), 0);
  for (size_t t = 0; t < rows.size(); ++t) {
    const TargetSums& sums = rows[t];
    // WeighParts() says so of those rows alone.
    if (!sums.counted()) continue;
    const auto row = static_cast<int64_t>(t);
    const auto parts = [&] { return result_.components[row].abs().sum().item<double>(); };
    const double size = std::abs(sums.missing()) / together;
    double scale = together > 1 ? scales_.whole() : scales_.Of(targets[t]);
    if (scale == 0) {
      // A row of zeros has the size of what cancels in it.
      scale = std::max(std::abs(sums.reference), std::abs(sums.leftover) + parts()) / together;
      scale = std::max(scale, size);
    }
    const auto terms_of_row = [&] {
      absorbed[t] = sums.missing();
      if (!terms.defined()) terms = OwnTerms(linearization_, probe_);
      const at::Tensor weights = cotangent_.select(0, row).abs().to(at::kDouble);
      return std::max(scales_.whole(), (weights * terms).sum().item<double>() / together);
    };
    if (!worst.Meet(size, scale, terms_of_row)) continue;
    which = row;
    sizes = {parts(), std::abs(sums.leftover), std::abs(sums.reference), std::abs(sums.value - sums.reference),
             std::abs(sums.value)};
  }
  if (which < 0) return;
  const bool one = targets.size() <= 1 && together <= 1;
  const Judged judged = {one ? absl::StrCat(name_, " at ", TargetText(targets[0])) : name_, sizes,
                         MakerOf(*linearization_.trace, probe_)};
  const auto row = [&] { return cotangent_.narrow(0, which, 1); };
  const bool absorb = TellGap(linearization_, judged, worst.gap(), single_, 0, row, /*own_rounding=*/true, outcome);
  for (size_t t = 0; absorb && t < absorbed.size(); ++t) result_.leftover[static_cast<int64_t>(t)] += absorbed[t];
}

void AttributionJudge::JudgeExamples(const std::vector<Contributions>& targets) {
  const c10::AutoGradMode no_grad(false);
  const std::vector<double> left = Doubles(result_.leftover);
  const bool failed = !result_.failures.empty() || !outcome.failures.empty();
  if (left.empty() || failed || linearization_.policy.check == Check::kOff) return;
  const size_t together = targets.size() / left.size();
  const Limits limits(linearization_, single_);
  WorstGap worst(limits, targets.size());
  size_t which = 0;
  for (size_t t = 0; t < targets.size(); ++t) {
    const Contributions& target = targets[t];
    double scale = target.scale > 0 ? target.scale : target.mass;
    // Other examples are no scale of a row of zeros, which has the size of what cancels in it.
    if (scales_.IsOfZeros(target.target)) scale = std::min(scale, target.mass);
    if (!std::isfinite(target.value) || !(scale > 0)) continue;
    const bool known = left[t / together] == 0 && target.target.quantity == Target::Quantity::kElement;
    // A guess is told, and fails nothing.
    const double size =
        known ? std::abs(target.leftover) : std::min(4 * limits.eps * target.mass, 0.99 * limits.failed * scale);
    if (worst.Meet(size, scale, [&] { return scales_.whole(); })) which = t;
  }
  if (worst.gap().off == 0) return;
  const Judged judged = {name_, SizesOf(targets[which]), MakerOf(*linearization_.trace, probe_)};
  const auto row = [&] { return cotangent_.narrow(0, static_cast<int64_t>(which / together), 1); };
  // The model's own rounding is known where the recovery of all together was told.
  TellGap(linearization_, judged, worst.gap(), single_, 0, row, /*own_rounding=*/outcome.notes.empty(), outcome);
}

void AttributionJudge::WeighParts(const std::vector<Contributions>& targets, const std::vector<at::Tensor>& elements) {
  const c10::AutoGradMode no_grad(false);
  if (!CarriesRows(probe_.operand)) return;
  Sizes sizes;
  size_t worst = 0;
  for (size_t t = 0; t < targets.size(); ++t) {
    if (!std::isfinite(targets[t].value)) continue;
    Add(targets[t], sizes);
    if (targets[t].mass > targets[worst].mass) worst = t;
  }
  const auto row = [&] {
    return cotangent_.narrow(0, static_cast<int64_t>(worst) * cotangent_.size(0) / static_cast<int64_t>(targets.size()),
                             1);
  };
  const Judged judged = Measure(linearization_, name_, sizes, single_, 0, row, outcome);
  if (sizes.Cancel(single_)) {
    outcome.notes.push_back(NoteOnConditioning(linearization_, judged, single_));
  } else {
    Judged by_element = judged;
    // The note is known of single elements only, not of components.
    by_element.name += WordsOf(NoteKind::kIllConditionedElements).holds;
    by_element.sizes.components = MagnitudeByElement(targets, elements);
    if (by_element.sizes.Cancel(single_)) {
      by_element.growth = GrowthOf(linearization_, 0, row());
      outcome.notes.push_back(NoteOnConditioning(linearization_, by_element, single_));
    }
  }
  if (!sizes.AreRounding(single_) && sizes.LeftoverShare() > kMuchLeftover) {
    outcome.notes.push_back(NoteOnLeftover(linearization_.policy, name_, sizes.LeftoverShare()));
  }
}

std::vector<std::string> NotesOfRecovery(const std::string& at, const std::vector<Contributions>& targets,
                                         const Report* report) {
  const Policy policy = report == nullptr ? Policy() : report->policy;
  if (policy.check == Check::kOff) return {};
  if (report != nullptr && !report->failures.empty() && policy.on_failure != OnFailure::kAbsorb) return {};
  const std::string of_output = at.empty() ? "the parts of output" : absl::StrCat("the parts of ", at, " ");
  const auto known = [&](const Contributions& target) {
    if (report == nullptr || target.target.quantity != Target::Quantity::kElement) return false;
    return std::any_of(report->notes.begin(), report->notes.end(), [&](const std::string& note) {
      return SpoilsNumbers(note) && absl::StrContains(note, of_output);
    });
  };
  const Contributions* worst = nullptr;
  double most = 0;
  for (const Contributions& target : targets) {
    if (!std::isfinite(target.value) || known(target)) continue;
    const double off = std::abs(target.recovery - target.value);
    double scale = target.scale;
    if (scale == 0) scale = std::max(target.mass, off);
    const RecoveryLimits limits = RecoveryLimitsOf(target.single, policy.tolerance);
    const bool said =
        off > limits.told * scale && !(off > limits.failed * scale && policy.on_failure == OnFailure::kIgnore);
    if (!said || off / scale <= most) continue;
    most = off / scale;
    worst = &target;
  }
  if (worst == nullptr) return {};
  const Judged judged = {absl::StrCat(at.empty() ? "output" : at, " at ", TargetText(worst->target)), SizesOf(*worst)};
  Gap gap;
  gap.size = most;
  const bool far = judged.sizes.value < judged.sizes.move;
  return {absl::StrCat(WordsOf(NoteKind::kRecoveryOff).begins, DescribeGap(nullptr, judged, gap, far),
                       ". What helps: ", Remedies(worst->single, far))};
}

void SayFirst(const Outcome& outcome, const PreparedInputs& prepared, const Linearization& linearization,
              Report& report) {
  DoubtReference(prepared, report);
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
        absl::StrCat(WordsOf(NoteKind::kNoBaseline).begins, absl::StrJoin(prepared.assumed, ", "),
                     ", which may mean something to the model; contributions are measured from there. Natural ones are "
                     "the token of the mask or the padding, mean:FILE of a file of rows, and blur or mean "
                     "of an image"));
  }
  notes.insert(notes.end(), prepared.notes.begin(), prepared.notes.end());
  for (const Node& node : linearization.nodes) {
    if (node.swamped == 0) continue;
    const WordsOfNote& words = WordsOf(NoteKind::kSwamped);
    notes.push_back(absl::StrCat(words.begins, node.swamped, node.swamped == 1 ? " element" : " elements", " of ",
                                 At(linearization, node.call), words.holds, TwoDigits(node.swamped_in),
                                 "; what they carried is leftover"));
  }
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
}

}  // namespace addend
