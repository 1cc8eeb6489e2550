#include "core/linearize/judge.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/linearize/backward_observers.h"
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

// NaN is larger than anything.
double Larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

// Describes a recovery that is off. `parts`: "the parts of aten::mul differ from its value".
std::string OffBy(const std::string& parts, const OperatorCheck& check, const char* of = "it") {
  return absl::StrCat(parts, " by ", check.recovery_error, " of ", of, ", tolerance ", check.tolerance);
}

std::string NameOf(const Linearization& linearization, const OperatorCheck& check) {
  return check.call < 0 ? "the model" : FullName(linearization.trace->calls[check.call].op.schema());
}

// Appends a failed check to `failures`, or throws; see ThrowIfError. `off`: by how much recovery is off.
void Fail(const Linearization& linearization, const OperatorCheck& check, std::string off,
          std::vector<OperatorCheck>& failures) {
  // Report the bracket first: wrong coefficients may spoil the recovery too, a wrong application spoils nothing else.
  if (!check.bracket_holds) {
    off = absl::StrCat("the coefficients of ", NameOf(linearization, check), " leave a bracket of ", check.bracket,
                       " of its value, bound ", check.bracket_bound);
  }
  const bool known = check.call >= 0;
  ThrowIfError(linearization.policy.on_failure, off,
               known ? linearization.trace->calls[check.call].position : Position());
  failures.push_back(check);
}

// The worst recovery of all outputs stays, and the largest leftover.
void NoteRecovery(const Settled& settled, double scale, double tolerance, OperatorCheck& check) {
  if (!(settled.error / scale < check.recovery_error)) {
    check.recovery_error = settled.error / scale;
    check.tolerance = tolerance;
  }
  check.leftover = std::max(check.leftover, settled.leftover / scale);
}

// The largest |recovery - value| that rounding explains, over what the terms come to: the worst of all probes that a
// target asks for.
double RelativeTolerance(const Linearization& linearization, const Rounding& rounding,
                         const std::vector<at::Tensor>& cotangents) {
  int64_t depth = 1;
  bool single = false;
  for (size_t p = 0; p < cotangents.size(); ++p) {
    if (!cotangents[p].defined()) continue;
    const Operand& operand = linearization.probes[p].operand;
    depth = std::max(depth, rounding.Depth(operand));
    single = single || rounding.IsSingle(operand) || RealDtype(cotangents[p].scalar_type()) != at::kDouble;
  }
  return ToleranceFor(linearization.policy, single, linearization.trace->numc, depth);
}

// The check of a bracket that is larger than its rule claims at some target.
std::optional<OperatorCheck> TooLarge(const BoundedBracket& bracket) {
  const double* left = bracket.left.data_ptr<double>();
  const double* terms = bracket.terms.data_ptr<double>();
  OperatorCheck check;
  check.call = bracket.call;
  check.kind = bracket.kind;
  check.bracket_bound = bracket.bound;
  for (int64_t t = 0; t < bracket.left.numel(); ++t) {
    const double found = std::abs(left[t]);
    check.bracket_holds = check.bracket_holds && found <= terms[t] * bracket.bound;
    check.bracket = Larger(found / std::max(terms[t], std::numeric_limits<double>::min()), check.bracket);
  }
  return check.bracket_holds ? std::nullopt : std::make_optional(check);
}

void FailBackward(const Linearization& linearization, const OperatorCheck& check, AdjointResult& result) {
  const std::string off = OffBy("the parts of a target differ from its value", check);
  Fail(linearization, check,
       absl::StrCat(off, "; the transpose of ", NameOf(linearization, check), " fits its map worst"), result.failures);
}

}  // namespace

at::Tensor ReachOf(const TracedRun& trace, const Node& node, size_t output, bool with_reference) {
  if (!node.map) return {};
  std::mt19937 random(20260101);
  Rows probes;
  for (const int input : node.inputs) {
    const Operand& operand = trace.calls[node.call].operands[input];
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

ForwardJudge::ForwardJudge(const Linearization& linearization, const RowTable& rows, const Rounding& rounding,
                           int64_t components)
    : linearization_(linearization),
      trace_(*linearization.trace),
      rows_(rows),
      rounding_(rounding),
      components_(components),
      errors_(trace_.storages.size(), 0) {}

bool ForwardJudge::Recovers(const Operand& operand, const Settled& settled, const at::Tensor& rows,
                            const at::Tensor& reference, const Allowance& allowance, OperatorCheck& check) const {
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

bool ForwardJudge::JudgeProbe(const Probe& probe, const Settled& settled, const at::Tensor& rows,
                              const at::Tensor& reference) {
  OperatorCheck check;
  const bool recovered = Recovers(probe.operand, settled, rows, reference, {}, check);
  NoteWorst(check.recovery_error, worst_recovery_error);
  return recovered;
}

// The reach costs runs of maps, so that callers ask for it only where a check would fail.
double ForwardJudge::Reach(const Node& node, size_t output) const {
  const at::Tensor reached = ReachOf(trace_, node, output, /*with_reference=*/true);
  if (!reached.defined() || reached.numel() == 0) return 0;
  const double largest = ReadNumber(reached.max());
  return std::max(std::isfinite(largest) ? largest : 0, node.inner_terms);
}

// See Note [Inherited errors]. 0: not known, or nothing.
double ForwardJudge::Inherited(const Node& node, size_t output) const {
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
at::Tensor ForwardJudge::Missing(const Call& call, const Operand& operand) const {
  const auto overwritten = [&](const Operand& other) { return other.written && other.storage == operand.storage; };
  if (!rows_.Has(operand.storage) || std::any_of(call.outputs.begin(), call.outputs.end(), overwritten)) return {};
  const at::Tensor rows = RowsViewOf(rows_.Flat(operand.storage), operand);
  if (!rows.defined()) return {};
  return MissingOf(Narrow(Resolved(rows), 0, 0, rows_.count() - 1), Resolved(trace_.Value(operand)),
                   Resolved(trace_.Reference(operand)))
      .unsqueeze(0);
}

bool ForwardJudge::JudgeOutput(const Node& node, size_t k, const Settled& settled, const at::Tensor& rows,
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
    recovered = Recovers(output, settled, rows, reference, allowance, own);
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

void ForwardJudge::NoteOutput(const Operand& output, const Settled& settled, double bracket, bool whole,
                              OperatorCheck& check) {
  if (!(bracket <= check.bracket)) check.bracket = bracket;
  double& error = errors_[output.storage];
  error = whole ? settled.error : std::max(error, settled.error);
}

double ForwardJudge::ToleranceOf(const Node& node, size_t k) const {
  return rounding_.Tolerance(CallOf(node).outputs[k], components_);
}

bool ForwardJudge::JudgeByNumbers(const Node& node, size_t k, const Settled& settled, double tolerance, bool whole,
                                  OperatorCheck& check) {
  const double scale = settled.value > 0 ? settled.value : 1;
  const double bracket = Over(settled.bracket, std::max({settled.value, settled.reference, settled.passed}));
  if (!(settled.error <= tolerance * settled.value)) {
    // The mass is at hand, which Recovers() finds from the rows.
    const double mass = std::max(settled.mass, node.inner_terms);
    if (!(settled.error <= tolerance * mass)) return false;
    tolerance *= mass / scale;
  }
  if (node.bracket_bound >= 0 && !(bracket <= node.bracket_bound)) return false;
  NoteRecovery(settled, scale, tolerance, check);
  NoteOutput(CallOf(node).outputs[k], settled, bracket, whole, check);
  return true;
}

void ForwardJudge::Finish(const OperatorCheck& check) {
  NoteWorst(check.recovery_error, worst_recovery_error);
  checks.push_back(check);
  if (check.ok()) return;
  const std::string parts = absl::StrCat("the parts of ", NameOf(linearization_, check), " differ from its value");
  Fail(linearization_, check, OffBy(parts, check), failures);
}

std::vector<TargetSums> SumsOf(const AdjointResult& result) {
  const std::vector<double> all =
      Doubles(at::stack({result.value, result.reference, result.given, result.leftover, result.mass, result.terms}, 1));
  std::vector<TargetSums> sums;
  for (auto own = all.begin(); own != all.end(); own += 6) {
    sums.push_back({own[0], own[1], own[2], own[3], own[4], own[5]});
  }
  return sums;
}

void JudgeTargets(const Linearization& linearization, const Rounding& rounding,
                  const std::vector<at::Tensor>& cotangents, const std::vector<BoundedBracket>& brackets,
                  const std::function<void(BackwardObserver*)>& sweep_again, AdjointResult& result) {
  const bool absorbs = linearization.policy.on_failure == OnFailure::kAbsorb;
  for (const BoundedBracket& bracket : brackets) {
    std::optional<OperatorCheck> suspect = TooLarge(bracket);
    if (!suspect) continue;
    // A bracket that is kept is in the leftover already.
    suspect->absorbed = absorbs;
    FailBackward(linearization, *suspect, result);
  }
  const double relative = RelativeTolerance(linearization, rounding, cotangents);
  std::vector<TargetSums> targets = SumsOf(result);
  for (TargetSums& t : targets) {
    const double own = Larger(t.mass, t.terms + std::abs(t.reference));
    const double scale = std::abs(t.value);
    t.allowed = (t.counted() ? Larger(own, scale) : scale) * relative;
  }
  const auto all_hold = [&] {
    return std::all_of(targets.begin(), targets.end(), [](const TargetSums& t) { return t.holds(); });
  };
  std::optional<OperatorCheck> failure;
  if (!all_hold()) {
    // Targets may be much smaller than the terms that cancelled on the way to them: allow for the rounding of those.
    TermsObserver observer;
    sweep_again(&observer);
    if (observer.largest_terms().defined()) {
      const std::vector<double> largest = Doubles(observer.largest_terms());
      for (size_t t = 0; t < largest.size(); ++t)
        targets[t].allowed = Larger(targets[t].allowed, largest[t] * relative);
    }
    if (!all_hold()) failure = observer.worst().value_or(OperatorCheck());
  }
  for (const TargetSums& t : targets) {
    const double over = std::abs(t.value) > 0 ? std::abs(t.value) : 1;
    const double error = std::abs(t.missing()) / over;
    if (&t != &targets[0] && !IsWorse(error, result.recovery_error)) continue;
    result.recovery_error = error;
    result.tolerance = t.allowed / over;
  }
  if (!failure) return;
  failure->recovery_error = result.recovery_error;
  failure->tolerance = result.tolerance;
  failure->absorbed = absorbs;
  if (absorbs) {
    std::vector<double> leftover;
    for (const TargetSums& t : targets) leftover.push_back(t.holds() ? t.leftover : t.leftover + t.missing());
    result.leftover = OfDoubles(leftover, result.leftover.options());
  }
  FailBackward(linearization, *failure, result);
}

void JudgeChunks(const Linearization& linearization, const SumCheck& sum_check, SweepResult& result) {
  const Policy& policy = linearization.policy;
  if (policy.check == Check::kOff) return;
  for (size_t p = 0; p < result.probes.size(); ++p) {
    ProbeRows& rows = result.probes[p];
    const SumCheck::Gap gap = sum_check.GapOf(p, rows);
    if (gap.closed()) continue;
    const double scale = std::max(ReadNumber(rows.value.abs().max()), std::numeric_limits<double>::min());
    OperatorCheck check;
    check.call = std::max<int64_t>(linearization.probes[p].after_call, 0);
    check.recovery_error = gap.error / scale;
    check.tolerance = gap.allowed / scale;
    check.recovered = false;
    check.absorbed = policy.on_failure == OnFailure::kAbsorb;
    if (check.absorbed) rows.leftover = rows.leftover + gap.missing;
    const char* parts = "the chunks' components differ from the sweep of their sum";
    Fail(linearization, check, OffBy(parts, check, "the value"), result.failures);
  }
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
