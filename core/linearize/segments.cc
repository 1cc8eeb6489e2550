#include "core/linearize/segments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/clock.h"
#include "core/linearize/many_targets.h"
#include "core/linearize/references.h"
#include "core/linearize/stretches.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// The contents of every version of every storage at one point of the line, ordered as TracedRun::versions; undefined:
// equal to its value.
using Point = std::vector<std::vector<at::Tensor>>;

// Ids and what is plain are the same at every point.
bool Moves(const Version& kept) { return kept.reference.defined() && Continuous(kept.reference.scalar_type()); }

Point PointOf(const TracedRun& trace, bool at_value) {
  Point point(trace.versions.size());
  for (size_t s = 0; s < trace.versions.size(); ++s) {
    for (const Version& kept : trace.versions[s]) {
      point[s].push_back(Moves(kept) ? (at_value ? kept.value : kept.reference) : at::Tensor());
    }
  }
  return point;
}

at::Tensor Between(const at::Tensor& reference, const at::Tensor& value, double share) {
  // Equal elements stay as they are, infinite ones too.
  return at::where(value.eq(reference), value, reference + (value - reference) * share);
}

// The recorded operators on the point that lies at `share` of the line. `rules`: by call.
Point EvaluateBetween(const std::shared_ptr<const TracedRun>& recorded, const std::vector<const Rule*>& rules,
                      double share) {
  const TracedRun& trace = *recorded;
  References references(recorded);
  for (const Start& start : trace.starts) {
    references.ReplaceStart(start.operand, Between(trace.Reference(start.operand), trace.Value(start.operand), share));
  }
  for (size_t c = 0; c < rules.size(); ++c) {
    const Call& call = trace.calls[c];
    if (trace.StartsRows(call)) {
      references.Replace(call, 0, Between(trace.Reference(call.outputs[0]), trace.Value(call.outputs[0]), share));
    } else {
      references.Evaluate(call, rules[c]);
    }
  }
  return PointOf(*references.trace(), /*at_value=*/false);
}

// A run of its own from one point of the line to another.
std::shared_ptr<const TracedRun> Piece(const TracedRun& trace, const Point& from, const Point& to, double share) {
  auto piece = std::make_shared<TracedRun>(trace);
  piece->share = share;
  for (size_t s = 0; s < piece->versions.size(); ++s) {
    for (size_t v = 0; v < piece->versions[s].size(); ++v) {
      Version& kept = piece->versions[s][v];
      if (from[s][v].defined()) kept.SetReference(from[s][v]);
      if (to[s][v].defined()) kept.SetValue(to[s][v]);
    }
  }
  for (Start& start : piece->starts) {
    if (start.parts.defined()) start.parts = start.parts * share;
    if (start.leftover.defined()) start.leftover = start.leftover * share;
  }
  LookAtNumbers(*piece);
  return piece;
}

// The worst of two checks of one operator, number by number; NaN is worse than anything.
void Worsen(const OperatorCheck& other, OperatorCheck& check) {
  const auto worse = [](double a, double b) { return a >= b || std::isnan(a) ? a : b; };
  if (!(other.recovery_error <= check.recovery_error)) {
    check.recovery_error = other.recovery_error;
    check.tolerance = other.tolerance;
  }
  check.recovered = check.recovered && other.recovered;
  check.bracket = worse(check.bracket, other.bracket);
  check.bracket_bound = std::max(check.bracket_bound, other.bracket_bound);
  check.bracket_holds = check.bracket_holds && other.bracket_holds;
  check.leftover = worse(check.leftover, other.leftover);
  check.seconds += other.seconds;
}

void AddChecks(std::vector<OperatorCheck> others, std::vector<OperatorCheck>& checks) {
  absl::flat_hash_map<int64_t, size_t> known;
  for (size_t k = 0; k < checks.size(); ++k) known.emplace(checks[k].call, k);
  for (OperatorCheck& other : others) {
    const auto [it, is_new] = known.try_emplace(other.call, checks.size());
    if (is_new) {
      checks.push_back(std::move(other));
    } else {
      Worsen(other, checks[it->second]);
    }
  }
}

// Adds a later piece to the sum of those before it.
void Add(SweepResult piece, SweepResult& sum) {
  for (size_t p = 0; p < sum.probes.size(); ++p) {
    ProbeRows& all = sum.probes[p];
    const ProbeRows& own = piece.probes[p];
    const at::ScalarType dtype = all.components.scalar_type();
    all.components = all.components + own.components;
    // A piece begins where the one before it ends, but for what became of its reference: a stand-in, or a residual.
    const at::Tensor begin = own.reference.to(dtype);
    const at::Tensor end = all.value.to(dtype);
    all.leftover = all.leftover + own.leftover + (begin - end).masked_fill(begin.eq(end), 0);
    all.value = own.value;
    all.finite = own.finite;
  }
  AddChecks(std::move(piece.checks), sum.checks);
  AddChecks(std::move(piece.failures), sum.failures);
  sum.backward = sum.backward && piece.backward;
  sum.turned = sum.turned || piece.turned;
  NoteWorst(piece.worst_recovery_error, sum.worst_recovery_error);
}

// Linearizes every piece of the line and gives it to `sweep` with a progress of its own. Fills the fields that both
// directions have in common.
void ForEachPiece(const std::shared_ptr<const TracedRun>& trace, const Registry& registry, const Policy& policy,
                  const Preparation& preparation, const StageProgress& progress,
                  const std::function<void(const Linearization&, int64_t piece, const Progress&)>& sweep, Pieces& all) {
  const int64_t pieces = std::max<int64_t>(policy.segments, 1);
  const auto report = [&](const char* stage, int64_t done, int64_t total) {
    if (progress) progress(stage, done, total);
  };
  const auto run = [&](const std::shared_ptr<const TracedRun>& piece, int64_t k) {
    auto start = Clock::now();
    report("linearize", k, pieces);
    Linearization linearization = Linearize(piece, preparation);
    all.linearize_seconds += SecondsSince(start);
    report("linearize", k + 1, pieces);
    start = Clock::now();
    sweep(linearization, k, [&](int64_t done, int64_t total) { report("sweep", k * total + done, pieces * total); });
    all.sweep_seconds += SecondsSince(start);
    if (k == 0) {
      all.linearization = std::move(linearization);
      return;
    }
    std::vector<int64_t>& stand_ins = all.linearization.stand_ins;
    for (const int64_t c : linearization.stand_ins) {
      if (std::find(stand_ins.begin(), stand_ins.end(), c) == stand_ins.end()) stand_ins.push_back(c);
    }
  };
  if (pieces == 1) {
    run(trace, 0);
    return;
  }
  const c10::AutoGradMode grad(trace->differentiable);
  const double share = 1.0 / static_cast<double>(pieces);
  const std::vector<const Rule*> rules = RulesOfCalls(*trace, registry);
  Point from = PointOf(*trace, /*at_value=*/false);
  for (int64_t k = 0; k < pieces; ++k) {
    Point to = k + 1 < pieces ? EvaluateBetween(trace, rules, static_cast<double>(k + 1) * share)
                              : PointOf(*trace, /*at_value=*/true);
    run(Piece(*trace, from, to, share), k);
    from = std::move(to);
  }
}

// Adds a later piece to the sum of those before it.
void Add(AdjointResult piece, AdjointResult& sum) {
  sum.components += piece.components;
  // Add the gap to the end of the piece before, as in the sweep above; it is zero unless the reference was replaced.
  sum.leftover += piece.leftover + (piece.reference - sum.value).masked_fill(piece.reference.eq(sum.value), 0);
  sum.value = piece.value;
  sum.given += piece.given;
  sum.mass = MagnitudeOfEach(sum.components).to(at::kCPU) + sum.leftover.abs() + sum.reference.abs();
  for (size_t s = 0; s < sum.starts.size(); ++s) {
    if (!piece.starts[s].defined()) continue;
    sum.starts[s] = sum.starts[s].defined() ? sum.starts[s] + piece.starts[s] : piece.starts[s];
  }
  absl::flat_hash_map<std::pair<int64_t, int>, size_t> known;
  for (size_t k = 0; k < sum.nodes.size(); ++k)
    known.emplace(std::make_pair(sum.nodes[k].call, sum.nodes[k].output), k);
  for (NodeRelevance& node : piece.nodes) {
    const auto [it, is_new] = known.try_emplace(std::make_pair(node.call, node.output), sum.nodes.size());
    if (is_new) {
      sum.nodes.push_back(std::move(node));
    } else {
      sum.nodes[it->second].passed += node.passed;
      sum.nodes[it->second].leftover += node.leftover;
    }
  }
  if (IsWorse(piece.recovery_error, sum.recovery_error)) {
    sum.recovery_error = piece.recovery_error;
    sum.tolerance = piece.tolerance;
  }
  AddChecks(std::move(piece.failures), sum.failures);
}

// Linearizes while it sweeps: the time of both counts as the sweep's.
Attributed TransposeInStretches(const std::shared_ptr<TracedRun>& trace, const Registry& registry, const Policy& policy,
                                const std::vector<Probe>& probes, const CotangentsFor& cotangents, bool nodes,
                                const StageProgress& progress) {
  const auto start = Clock::now();
  Attributed all;
  all.linearization = LinearizeInStretches(trace, registry, policy, probes);
  AdjointOptions options;
  options.nodes = nodes;
  if (progress) options.progress = [&](int64_t done, int64_t total) { progress("sweep", done, total); };
  all.adjoint = SweepBackward(all.linearization, cotangents(all.linearization), options);
  all.linearization.nodes = NodesOf(all.linearization);
  all.sweep_seconds = SecondsSince(start);
  return all;
}

}  // namespace

Explained LinearizeAndSweep(const std::shared_ptr<const TracedRun>& trace, const Registry& registry,
                            const Policy& policy, const std::vector<Probe>& probes, bool everything,
                            const StageProgress& progress, const SweepOptions& options) {
  Explained all;
  const auto sweep = [&](const Linearization& linearization, int64_t piece, const Progress& report) {
    SweepResult result = SweepEitherWay(linearization, options, report);
    if (piece > 0) return Add(std::move(result), all.sweep);
    all.sweep = std::move(result);
  };
  ForEachPiece(trace, registry, policy, Preparation(*trace, registry, policy, probes, everything), progress, sweep,
               all);
  return all;
}

Attributed LinearizeAndTranspose(const std::shared_ptr<TracedRun>& trace, const Registry& registry,
                                 const Policy& policy, const std::vector<Probe>& probes,
                                 const CotangentsFor& cotangents, bool nodes, const StageProgress& progress,
                                 std::shared_ptr<const Preparation> prepared) {
  if (!trace->stretches.empty()) {
    try {
      return TransposeInStretches(trace, registry, policy, probes, cotangents, nodes, progress);
    } catch (const Stretches::NeedsWholeRun&) {
      RestoreAll(*trace);
    }
  }
  Attributed all;
  std::vector<at::Tensor> seeds;
  const auto sweep = [&](const Linearization& linearization, int64_t piece, const Progress& report) {
    AdjointOptions options;
    options.nodes = nodes;
    options.progress = report;
    if (piece == 0) seeds = cotangents(linearization);
    AdjointResult result = SweepTargets(linearization, seeds, options);
    if (piece > 0) return Add(std::move(result), all.adjoint);
    all.adjoint = std::move(result);
  };
  if (prepared == nullptr) {
    prepared = std::make_shared<const Preparation>(*trace, registry, policy, probes, /*everything=*/false);
  }
  ForEachPiece(trace, registry, policy, *prepared, progress, sweep, all);
  return all;
}

Attributed LinearizeAndTranspose(const std::shared_ptr<TracedRun>& trace, const Registry& registry,
                                 const Policy& policy, const std::vector<Probe>& probes,
                                 const std::vector<at::Tensor>& cotangents, bool nodes, const StageProgress& progress) {
  const CotangentsFor known = [&](const Linearization&) { return cotangents; };
  return LinearizeAndTranspose(trace, registry, policy, probes, known, nodes, progress);
}

}  // namespace addend
