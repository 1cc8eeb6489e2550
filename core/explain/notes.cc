#include "core/explain/notes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/intercept/own_operators.h"
#include "core/program/differentiation.h"
#include "core/program/traced_calls.h"
#include "core/program/view.h"
#include "core/rules/kinds.h"
#include "third_party/torch/version.h"

namespace addend {
namespace {

// A bracket that nobody has to be told of, relative to the operator's output.
constexpr double kNegligible = 1e-6;

// A sentence, and whether it is to be said.
struct Note {
  bool holds;
  std::string sentence;
};

// A sentence about calls, which is said where there are any.
Note About(const std::string& what, const std::vector<Position>& where, const char* then = "") {
  return {!where.empty(), where.empty() ? "" : absl::StrCat(what, FirstPositions(where), then)};
}

Note About(NoteKind kind, const std::vector<Position>& where, const char* then = "") {
  return About(WordsOf(kind).begins, where, then);
}

std::vector<Position> PositionsOf(const TracedRun& trace, const std::vector<int64_t>& calls) {
  std::vector<Position> positions;
  for (const int64_t c : calls) positions.push_back(PositionOf(trace, c));
  return positions;
}

template <typename Predicate>
std::vector<Position> NodesThat(const Linearization& linearization, const Predicate& predicate) {
  std::vector<Position> positions;
  for (const Node& node : linearization.nodes) {
    if (predicate(node)) positions.push_back(linearization.trace->calls[node.call].position);
  }
  return positions;
}

std::vector<Position> RandomCalls(const TracedRun& trace) {
  std::vector<Position> positions;
  for (const Call& call : trace.calls) {
    if (call.draws) positions.push_back(call.position);
  }
  return positions;
}

// Operators that read NaN or infinity which only the value has. What becomes of that is bracket, which is kept there
// and has no bound.
std::vector<Position> ReadersOfInfinity(const Linearization& linearization, const SweepResult& sweep) {
  const TracedRun& trace = *linearization.trace;
  return NodesThat(linearization, [&](const Node& node) {
    if (!node.keeps_bracket || node.bracket_bound >= 0) return false;
    const auto& operands = trace.calls[node.call].operands;
    const bool reads = std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      return CarriesRows(operand) && !trace.ValueIsFinite(operand) && trace.ReferenceIsFinite(operand);
    });
    const auto check = std::find_if(sweep.checks.begin(), sweep.checks.end(),
                                    [&](const OperatorCheck& own) { return own.call == node.call; });
    const bool negligible = check != sweep.checks.end() && check->bracket <= kNegligible;
    return reads && !negligible;
  });
}

bool HoldsHalfTypes(const TracedRun& trace) {
  return std::any_of(trace.storages.begin(), trace.storages.end(),
                     [](const StorageInfo& storage) { return IsHalf(storage.dtype); });
}

bool HoldsNarrowTypes(const TracedRun& trace) {
  return std::any_of(trace.storages.begin(), trace.storages.end(), [](const StorageInfo& storage) {
    return Continuous(storage.dtype) && RealDtype(storage.dtype) != at::kDouble;
  });
}

// Which choices were made for the caller, and operators that no rule covers or that failed.
std::vector<Note> NotesOnRules(const Linearization& linearization, const SweepResult& sweep, bool auto_preset) {
  const Policy& policy = linearization.policy;
  const auto absorbed = [](const Node& node) { return node.kind == Kind::kAbsorbed; };
  const auto by_derivative = [&](const Node& node) { return node.ruleless && !absorbed(node) && node.map; };
  const auto constant = [&](const Node& node) { return node.ruleless && !absorbed(node) && !node.map; };
  std::vector<int64_t> failed;
  bool absorbs = false;
  for (const OperatorCheck& failure : sweep.failures) {
    failed.push_back(failure.call);
    absorbs = absorbs || failure.absorbed;
  }
  const std::vector<Position> failures = PositionsOf(*linearization.trace, failed);
  const std::vector<Node>& nodes = NodesOf(linearization);
  const bool rounds_to_half = std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    const auto& outputs = linearization.trace->calls[node.call].outputs;
    return std::any_of(outputs.begin(), outputs.end(), [](const Operand& output) { return IsHalf(output.dtype); });
  });
  const bool tell = !absorbs && policy.on_failure != OnFailure::kIgnore;
  return {
      {auto_preset && policy.preset == Preset::kFast, NoteOf(NoteKind::kPreset, "fast, because no baseline was given")},
      {auto_preset && policy.preset != Preset::kFast,
       NoteOf(NoteKind::kPreset, "faithful, because a baseline was given")},
      {policy.compute_dtype == ComputeDtype::kFloat32 && HoldsHalfTypes(*linearization.trace),
       NoteOf(NoteKind::kComputedInFloat32,
              "from tensors of half types: the numbers are not those that the model gives in its own dtype")},
      {policy.compute_dtype == ComputeDtype::kFloat64 && HoldsNarrowTypes(*linearization.trace),
       NoteOf(NoteKind::kComputedInFloat64,
              "from tensors of narrower types: the numbers are those that the model gives in float64")},
      {policy.compute_dtype == ComputeDtype::kModel && rounds_to_half,
       NoteOf(NoteKind::kRoundsToHalf,
              ", and what that misses is leftover; compute_dtype=float32 explains the model without that rounding")},
      About(NoteKind::kNoRuleAbsorbed, NodesThat(linearization, absorbed)),
      {sweep.turned, NoteOf(NoteKind::kSentForward, ", so they were sent forward")},
      About(NoteKind::kNoRuleDerivative, NodesThat(linearization, by_derivative)),
      About(NoteKind::kNoRuleLeftOver, NodesThat(linearization, constant)),
      About(NoteOf(NoteKind::kTracingFailure, "s, absorbed into the leftover: "),
            absorbs ? failures : std::vector<Position>()),
      About(NoteOf(NoteKind::kTracingFailure, "s, from here on the parts do not add up: "),
            tell ? failures : std::vector<Position>()),
  };
}

// Notes on the numbers that the model makes of its inputs and that are plain to rules, and on what they mean for the
// reference.
std::vector<Note> NotesOnReference(const TracedRun& trace) {
  const Note random = About(NoteKind::kRandom, RandomCalls(trace), "; value and baseline see the same draws");
  const Note saved =
      About(NoteKind::kReadsSaved, trace.saved,
            "; on the baseline they may be others, and then the reference is wrong and so are the parts: "
            "compare it with what the model gives there (verify_reference), or split the input behind "
            "the gradient");
  if (trace.guards.empty() && trace.conditions.empty()) return {saved, random};
  const bool guards_differ = !OriginsOf(trace.guards, /*only_other=*/true).empty();
  const std::vector<Position> other_conditions = OriginsOf(trace.conditions, /*only_other=*/true);
  const std::string conditions = absl::StrCat(
      WordsOf(NoteKind::kConditions).begins,
      trace.baseline_conditions ? "the reference has those of the baseline, and the step between both is leftover"
                                : "they are the value's for the reference too",
      other_conditions.empty() ? absl::StrCat("; ", WordsOf(NoteKind::kConditionsSame).holds)
                               : "; on the baseline some are others: ");
  const std::string guards = absl::StrCat(
      WordsOf(NoteKind::kReadsNumbers).begins, ", and may branch on them; the reference is that of the branch taken",
      guards_differ ? std::string(": ") : absl::StrCat(", and ", WordsOf(NoteKind::kReadsNumbersSame).holds));
  return {
      saved,
      About(guards, OriginsOf(trace.guards, /*only_other=*/false)),
      random,
      About(conditions,
            other_conditions.empty() ? OriginsOf(trace.conditions, /*only_other=*/false) : other_conditions),
  };
}

// Whether an override names a module of which the model knows no more than who reads its parameters.
bool OnlyByParameters(const TracedRun& trace, const PolicyOverride& entry) {
  if (absl::StrContains(entry.selector, "::") || !trace.returns.empty()) return false;
  return std::all_of(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
    return !entry.Selects(FullName(call.op.schema()), call.position.module_path) || !call.position.parameters.empty();
  });
}

// Selectors of overrides that no operator of the model answers to, or only some that should.
std::vector<Note> NotesOnSelectors(const TracedRun& trace, const Policy& policy) {
  std::vector<Note> notes;
  std::vector<std::string> told;
  for (const PolicyOverride& entry : policy.overrides) {
    const bool used = std::any_of(trace.calls.begin(), trace.calls.end(), [&](const Call& call) {
      return entry.Selects(FullName(call.op.schema()), call.position.module_path);
    });
    const bool known = std::find(told.begin(), told.end(), entry.selector) != told.end();
    if (known || (used && !OnlyByParameters(trace, entry))) continue;
    told.push_back(entry.selector);
    notes.push_back({!used, NoteOf(NoteKind::kUnknownSelector,
                                   absl::StrCat(entry.selector, ", but no module or operator of that name ran"))});
    notes.push_back(
        {used, NoteOf(NoteKind::kSelectorByParameters,
                      absl::StrCat(entry.selector, " runs; its policy is that of those which read its parameters"))});
  }
  return notes;
}

// See Note [Reduced precision] in core/rules/precision.h.
std::vector<Note> NotesOnPrecision(const TracedRun& trace) {
  return {{trace.precision == ReducedPrecision::kTf32,
           NoteOf(NoteKind::kTf32,
                  "parts agree to 1e-3 (torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32 turn "
                  "it off)")},
          {trace.precision == ReducedPrecision::kBfloat16,
           NoteOf(NoteKind::kBfloat16,
                  "parts agree to 1e-2 (torch.set_float32_matmul_precision(\"highest\") turns it off)")}};
}

// Elements of inputs that are in no component.
std::vector<Note> NotesOnInfiniteInputs(const TracedRun& trace) {
  std::vector<Note> notes;
  for (const Start& start : trace.starts) {
    const at::Tensor value = start.inside ? at::Tensor() : trace.Value(start.operand);
    if (!value.defined() || value.numel() == 0 || trace.ValueIsFinite(start.operand)) continue;
    const at::Tensor first = at::isfinite(value).logical_not_().nonzero().select(0, 0).to(at::kCPU).contiguous();
    const at::IntArrayRef place(first.data_ptr<int64_t>(), first.numel());
    notes.push_back({true, absl::StrCat(WordsOf(NoteKind::kInfiniteInput).begins, absl::StrJoin(place, ", "),
                                        "]; such elements are in no component, and the same in the reference")});
  }
  return notes;
}

}  // namespace

std::string NoteOf(NoteKind kind, const std::string& rest) { return absl::StrCat(WordsOf(kind).begins, rest); }

std::string TwoDigits(double number) {
  const double size = std::abs(number);
  if (!(size >= 99.5 && size < 1e6)) return absl::StrFormat("%.2g", number);
  const double unit = std::pow(10, std::floor(std::log10(size)) - 1);
  return absl::StrFormat("%.0f", std::round(number / unit) * unit);
}

std::vector<std::string> NotesOf(const Linearization& linearization, const SweepResult& sweep, bool auto_preset) {
  const TracedRun& trace = *linearization.trace;
  std::vector<std::string> notes;
  const auto add = [&](const std::vector<Note>& table) {
    for (const Note& note : table) {
      if (note.holds) notes.push_back(note.sentence);
    }
  };
  const std::string untested = NoteOnLibTorch(RunningLibTorchVersion(), LibTorchVersion());
  add({{!untested.empty(), untested}});
  add(NotesOnPrecision(trace));
  add(NotesOnRules(linearization, sweep, auto_preset));
  add(NotesOnReference(trace));
  add(NotesOnSelectors(trace, linearization.policy));
  add({About(NoteKind::kIdsNotFollowed, UnattributedOf(trace)),
       About(NoteKind::kStandIns, PositionsOf(trace, linearization.stand_ins))});
  add(NotesOnInfiniteInputs(trace));
  add({About(NoteOf(NoteKind::kReadsInfinity, "what it makes of that is leftover: "),
             ReadersOfInfinity(linearization, sweep))});
  return notes;
}

Position PositionOf(const TracedRun& trace, int64_t call) {
  if (call >= 0) return trace.calls[call].position;
  Position model;
  model.op = "the model";
  return model;
}

std::string FirstPositions(const std::vector<Position>& positions) {
  std::vector<std::string> texts;
  for (size_t k = 0; k < positions.size() && k < 3; ++k) {
    const std::string place = positions[k].Describe();
    // Name the reader that our own operator stands for.
    const std::string& op = positions[k].op;
    const std::string reader = op == kElementsReadOutside ? "NumPy or Python, which reads the numbers" : op;
    texts.push_back(place.empty() ? reader : absl::StrCat(reader, " (", place, ")"));
  }
  if (positions.size() > 3) texts.push_back(absl::StrCat("and ", positions.size() - 3, " more"));
  return absl::StrJoin(texts, ", ");
}

std::string NoteOnLibTorch(const std::string& running, const std::string& built) {
  if (running.empty() || IsSameMinorVersion(running, built)) return "";
  const WordsOfNote& words = WordsOf(NoteKind::kUntestedLibTorch);
  return absl::StrCat(words.begins, running, words.holds, built, ": what the two make together was not tested");
}

std::string TakenFor(const std::string& selector, const Position& giver) {
  return absl::StrCat(WordsOf(NoteKind::kTakenFor).begins, selector, " returned; the result of ",
                      FirstPositions({giver}), " is taken for it");
}

std::string ReadInOtherWays(const std::string& selector, bool given, const std::vector<Position>& readers) {
  const std::string who = FirstPositions(readers);
  if (given) {
    return absl::StrCat(selector, WordsOf(NoteKind::kReturnsItsInput).holds, "the parts begin at all readers, ", who);
  }
  const WordsOfNote& words = WordsOf(NoteKind::kReadWithin);
  return absl::StrCat(words.begins, selector, words.holds, who);
}

std::vector<Position> OriginsOf(const std::vector<Condition>& conditions, bool only_other) {
  std::map<int64_t, Position> origins;
  for (const Condition& condition : conditions) {
    if (!only_other || !condition.same) origins.emplace(condition.origin.op_index, condition.origin);
  }
  std::vector<Position> positions;
  for (auto& [index, position] : origins) positions.push_back(std::move(position));
  return positions;
}

std::vector<Position> UnattributedOf(const TracedRun& trace) {
  std::vector<Position> positions;
  for (const MixedIds& mixed : trace.mixed_ids) {
    if (!mixed.same) positions.push_back(mixed.use);
  }
  return positions;
}

std::string Unreached(const TracedRun& trace, const std::string& name) {
  std::map<int64_t, Position> ends;
  for (const Condition& condition : trace.conditions) ends.emplace(condition.origin.op_index, condition.origin);
  for (const Condition& guard : trace.guards) ends.emplace(guard.origin.op_index, guard.origin);
  for (const MixedIds& mixed : trace.mixed_ids) ends.emplace(mixed.use.op_index, mixed.use);
  std::vector<Position> positions;
  for (auto& [index, position] : ends) positions.push_back(std::move(position));
  return absl::StrCat(
      "no component reaches ", name, ": ",
      positions.empty()
          ? "the model computes it without the split inputs, or outside LibTorch's dispatcher"
          : absl::StrCat("they end where the model makes conditions, indices or other integers of them, at ",
                         FirstPositions(positions)),
      "; see docs/concepts.md");
}

void ThrowUnreached(const TracedRun& trace, const std::string& name) {
  throw FailedPrecondition(Unreached(trace, name));
}

}  // namespace addend
