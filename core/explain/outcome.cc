#include "core/explain/outcome.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
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
#include "core/linearize/payments.h"
#include "core/linearize/row_sums.h"
#include "core/linearize/settle.h"
#include "core/linearize/view.h"

namespace addend {
namespace {

// From here on a sum is no explanation.
constexpr double kIllConditioned = 1e3;
constexpr double kMuchLeftover = 0.2;

constexpr char kRemedies[] = "compute in float64, choose another baseline, or cut the line (policy segments=8)";

// What the parts of one tensor come to; sums of magnitudes over its elements.
struct Sizes {
  double components = 0;
  double leftover = 0;
  double move = 0;
  double value = 0;

  double parts() const { return components + leftover; }
  double Conditioning() const { return parts() == 0 ? 1 : parts() / move; }
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

// What is known of one tensor or target when it is judged.
struct Judged {
  std::string name;
  double conditioning = 1;
  Growth growth;
  int64_t call = 0;  // where it was computed
};

void NoteConditioning(const Linearization& linearization, const Judged& judged, Outcome& outcome) {
  const std::string grew = judged.growth.call < 0 ? ""
                                                  : absl::StrCat("; they grew most, ", TwoDigits(judged.growth.factor),
                                                                 "-fold, at ", At(linearization, judged.growth.call));
  const std::string size = std::isfinite(judged.conditioning)
                               ? absl::StrCat("come to ", TwoDigits(judged.conditioning), " times the difference")
                               : "do not vanish, as the difference does,";
  outcome.notes.push_back(
      absl::StrCat("ill-conditioned: the parts of ", judged.name, " ", size,
                   " between value and reference that they sum to, so that no single one means much", grew,
                   ". To get others: ", kRemedies));
}

void NoteLeftover(const Policy& policy, const std::string& name, double share, Outcome& outcome) {
  const std::string much = std::isfinite(share) ? absl::StrCat(TwoDigits(100 * share), " %") : "more than all";
  outcome.notes.push_back(
      absl::StrCat("much is left over: ", much, " of the difference between value and reference of ", name,
                   " is in no component", policy.preset == Preset::kFast ? "; preset=faithful leaves less" : ""));
}

// Relative numbers: over the largest magnitude of the value. Returns whether the failure is to be absorbed.
bool FailRecovery(const Linearization& linearization, const Judged& judged, double error, double allowed,
                  Outcome& outcome) {
  const Policy& policy = linearization.policy;
  const int64_t call = judged.growth.call >= 0 ? judged.growth.call : judged.call;
  std::string what = absl::StrCat("the parts of ", judged.name, " differ from its value by ", TwoDigits(error),
                                  " of its largest, limit ", TwoDigits(allowed));
  if (judged.conditioning >= kIllConditioned) {
    absl::StrAppend(&what, ": they come to ", TwoDigits(judged.conditioning), " times what they sum to");
    if (judged.growth.call >= 0) {
      absl::StrAppend(&what, ", and grew most, ", TwoDigits(judged.growth.factor), "-fold, at ",
                      linearization.trace->program.calls[call].position.op);
    }
  }
  ThrowIfError(policy.on_failure, what, linearization.trace->program.calls[call].position, kRemedies);
  OperatorCheck check;
  check.call = call;
  for (const Node& node : linearization.nodes) {
    if (node.call == call) check.kind = node.kind;
  }
  check.recovery_error = error;
  check.tolerance = allowed;
  check.recovered = false;
  check.absorbed = policy.on_failure == OnFailure::kAbsorb;
  outcome.failures.push_back(Locate(*linearization.trace, check));
  if (policy.on_failure != OnFailure::kIgnore) {
    outcome.notes.push_back(
        absl::StrCat("tracing failure", check.absorbed ? ", absorbed into the leftover: " : ": ", what));
  }
  return check.absorbed;
}

// How large the numbers are that the model itself sums a probe from: what is one less one is made of rounding. And its
// `reference`, which is what it is; only a stand-in for it may be of any size.
double OwnTerms(const Linearization& linearization, const Probe& probe, double reference) {
  const bool own = linearization.stand_ins.empty() && linearization.policy.anchor == Anchor::kBaseline;
  double terms = own ? reference : 0;
  const int64_t last = MakerOf(*linearization.trace, probe);
  for (const Node& node : linearization.nodes) {
    if (node.call != last) continue;
    // A product of many has terms that no operand shows, as a determinant has.
    if (node.kind == Kind::kBilinear) terms = std::max(terms, node.inner_terms);
    if (node.kind != Kind::kLinear && node.kind != Kind::kAffine) continue;
    for (const int input : node.inputs) {
      const Operand& operand = linearization.trace->program.calls[last].operands[input];
      terms = std::max(terms, LargestFinite(linearization.trace->Value(operand)));
    }
  }
  return terms;
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
  sizes.move = sum(FiniteMove(rows.value.to(dtype), rows.reference.to(dtype)));
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
  judged.conditioning = sizes.Conditioning();
  if (sizes.AreRounding(single)) return judged;
  if (!(sizes.Conditioning() <= outcome.conditioning)) outcome.conditioning = sizes.Conditioning();
  if (!(sizes.LeftoverShare() <= outcome.leftover_share)) outcome.leftover_share = sizes.LeftoverShare();
  if (judged.conditioning >= kIllConditioned) judged.growth = GrowthOf(linearization, probe, cotangent());
  return judged;
}

}  // namespace

Outcome JudgeOutputs(const Linearization& linearization, const std::vector<std::string>& names, SweepResult& sweep) {
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = linearization.policy;
  Outcome outcome;
  Outcome worst_conditioned;
  Outcome most_left;
  for (size_t p = 0; p < sweep.probes.size(); ++p) {
    ProbeRows& rows = sweep.probes[p];
    if (!rows.decomposed || rows.value.numel() == 0 || linearization.trace->program.calls.empty()) continue;
    const at::ScalarType dtype = rows.components.scalar_type();
    const at::Tensor value = rows.value.detach().to(dtype);
    const at::Tensor unfit = at::isfinite(value).logical_not_();
    const at::Tensor infinite = unfit.any().item<bool>() ? unfit : at::Tensor();
    const double conditioning_before = outcome.conditioning;
    const double leftover_before = outcome.leftover_share;
    const Sizes sizes = SizesOf(rows, infinite);
    const Judged judged = Measure(
        linearization, names[p], sizes, rows.single, p, [&] { return WorstElement(rows, infinite); }, outcome);
    if (outcome.conditioning > conditioning_before && judged.conditioning >= kIllConditioned) {
      worst_conditioned.notes.clear();
      NoteConditioning(linearization, judged, worst_conditioned);
    }
    if (outcome.leftover_share > leftover_before && sizes.LeftoverShare() > kMuchLeftover) {
      most_left.notes.clear();
      NoteLeftover(policy, names[p], sizes.LeftoverShare(), most_left);
    }
    // What failed at an operator fails here too, and is known.
    if (policy.check == Check::kOff || (!sweep.failures.empty() && policy.on_failure != OnFailure::kAbsorb)) continue;
    at::Tensor missing = value - (rows.components.sum(0) + rows.leftover + rows.reference.to(dtype));
    if (infinite.defined()) missing = missing.masked_fill(infinite, 0);
    const double error = missing.abs().max().item<double>();
    const double scale = LargestFinite(value);
    const double terms = OwnTerms(linearization, linearization.probes[p], LargestFinite(rows.reference));
    const double allowed = OwnAllowance(rows.single, scale, terms, policy.tolerance);
    if (error <= allowed) continue;
    const double over = std::max(scale > 0 ? scale : terms, std::numeric_limits<double>::min());
    outcome.worst_error = std::max(outcome.worst_error, error / over);
    if (FailRecovery(linearization, judged, error / over, allowed / over, outcome)) {
      rows.leftover = rows.leftover + missing;
    }
  }
  for (Outcome* more : {&worst_conditioned, &most_left}) {
    outcome.notes.insert(outcome.notes.end(), more->notes.begin(), more->notes.end());
  }
  return outcome;
}

Outcome JudgeRecovery(const Linearization& linearization, const std::string& name, const at::Tensor& value,
                      const at::Tensor& cotangent, AdjointResult& result) {
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = linearization.policy;
  Outcome outcome;
  const Probe& probe = linearization.probes[0];
  if (!CarriesRows(probe.operand) || value.numel() == 0 || policy.check == Check::kOff) return outcome;
  if (!result.failures.empty() && policy.on_failure != OnFailure::kAbsorb) return outcome;
  const std::vector<double> components = Doubles(result.components.sum(1));
  const std::vector<double> leftover = Doubles(result.leftover);
  const std::vector<double> references = Doubles(result.reference);
  const std::vector<double> values = Doubles(result.value);
  const std::vector<double> weights = Doubles(MagnitudeOfEach(cotangent));
  const bool single = result.single[0];
  const double scale = LargestFinite(value);
  for (size_t t = 0; t < values.size(); ++t) {
    // JudgeTargets() says so of those rows alone.
    if (!std::isfinite(values[t])) continue;
    const double missing = values[t] - (components[t] + leftover[t] + references[t]);
    const double weight = std::max(weights[t], std::numeric_limits<double>::min());
    const double error = std::abs(missing) / weight;
    const double reference = std::abs(references[t]) / weight;
    const double terms = OwnTerms(linearization, probe, reference);
    const double allowed = OwnAllowance(single, scale, terms, policy.tolerance);
    if (error <= allowed) continue;
    Sizes sizes;
    const auto row = static_cast<int64_t>(t);
    sizes.components = result.components[row].abs().sum().item<double>();
    sizes.leftover = std::abs(leftover[t]);
    sizes.move = std::abs(values[t] - references[t]);
    sizes.value = std::abs(values[t]);
    Outcome own;
    const Judged judged = Measure(
        linearization, name, sizes, single, 0, [&] { return cotangent.narrow(0, row, 1); }, own);
    const double over = std::max(scale > 0 ? scale : terms, std::numeric_limits<double>::min());
    const double relative = error / over;
    if (!(relative <= outcome.worst_error)) outcome.worst_error = relative;
    // One is enough to say so; the others may have to be absorbed all the same.
    const bool first = outcome.failures.empty();
    Outcome more;
    if (FailRecovery(linearization, judged, relative, allowed / over, first ? outcome : more)) {
      result.leftover[row] += missing;
    }
  }
  return outcome;
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
    sizes.move += std::abs(target.value - target.reference);
    sizes.value += std::abs(target.value);
    if (target.mass > targets[worst].mass) worst = t;
  }
  const bool single = result.single[0];
  const int64_t row = std::min<int64_t>(static_cast<int64_t>(worst), cotangent.size(0) - 1);
  const Judged judged = Measure(
      linearization, name, sizes, single, 0, [&] { return cotangent.narrow(0, row, 1); }, outcome);
  if (sizes.AreRounding(single)) return;
  if (judged.conditioning >= kIllConditioned) NoteConditioning(linearization, judged, outcome);
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
