#include "core/explain/attribute.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/base/tensor_text.h"
#include "core/explain/influence.h"
#include "core/explain/inside.h"
#include "core/explain/notes.h"
#include "core/explain/outcome.h"
#include "core/explain/output_scales.h"
#include "core/explain/probe.h"
#include "core/explain/shared_memory.h"
#include "core/explain/target_numbers.h"
#include "core/explain/verify.h"
#include "core/linearize/label_sums.h"
#include "core/linearize/many_targets.h"
#include "core/linearize/segments.h"
#include "core/linearize/stretches.h"
#include "core/program/traced_calls.h"
#include "core/program/view.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// The place of each target in the whole tensor.
std::vector<Target> FindTargets(const at::Tensor& value, const AttributeOptions& options) {
  std::vector<Target> found;
  if (options.targets.empty()) throw InvalidArgument("there is no target; give an element, or top1");
  if (!options.each_example) {
    if (options.every_target) throw InvalidArgument("every_target is for examples; ask for each_example too");
    for (const Target& target : options.targets) found.push_back(FindElements(value, target));
    return found;
  }
  const auto given = static_cast<int64_t>(options.targets.size());
  if (options.every_target) {
    for (const Target& target : options.targets) {
      std::vector<Target> of_each = FindElementsOfEach(value, {target});
      found.insert(found.end(), std::make_move_iterator(of_each.begin()), std::make_move_iterator(of_each.end()));
    }
    return found;
  }
  if (given != 1 && given != value.size(0)) {
    throw InvalidArgument(absl::StrCat("there are ", given, " targets for an output of shape ",
                                       ShapeText(value.sizes()), "; give one for each of its ", value.size(0),
                                       " rows, or one for all; with every_target each row has all of them"));
  }
  return FindElementsOfEach(value, options.targets);
}

void CheckExamples(const PreparedInputs& prepared, const at::Tensor& value) {
  for (size_t k = 0; k < prepared.inputs.size(); ++k) {
    const PreparedInput& input = prepared.inputs[k];
    if (input.kind == Split::Kind::kPlain) continue;
    if (input.parts.defined()) {
      throw InvalidArgument(absl::StrCat("input ", k,
                                         " is given as explicit parts, which belong to no example; ask for ",
                                         "each example's target by its whole index"));
    }
    if (input.labels_unclear) {
      throw InvalidArgument(absl::StrCat("the labels of input ", k, " fit the first dimensions of ",
                                         ShapeText(input.value.sizes()), ", which count examples, and the last ones; ",
                                         "give them as many dimensions as it has: [1, 3] in place of [3] for columns"));
    }
    if (value.dim() > 0 && input.value.dim() > 0 && input.value.size(0) == value.size(0)) continue;
    throw InvalidArgument(absl::StrCat("each example has a target, but input ", k, " of shape ",
                                       ShapeText(input.value.sizes()), " and the output of shape ",
                                       ShapeText(value.sizes()),
                                       " do not hold equally many examples in their first dimension"));
  }
}

// Contributions of each element and of each component to the targets.
struct Given {
  std::vector<at::Tensor> inputs;  // as of Attribution
  at::Tensor components;           // [targets, numc], float64
};

// Contributions of each id, and of each element that an id was read from, which a sweep back has behind those of the
// components: by input [rows, *S]; undefined for inputs that have none.
std::vector<at::Tensor> IdsOf(const PreparedInputs& asked, const at::Tensor& components) {
  std::vector<at::Tensor> all(asked.inputs.size());
  int64_t next = asked.numc;
  const auto take = [&](size_t k) {
    const at::Tensor& value = asked.inputs[k].value;
    at::DimVector sizes = {components.size(0)};
    sizes.append(value.sizes().begin(), value.sizes().end());
    all[k] = components.narrow(1, next, value.numel()).reshape(sizes);
    next += value.numel();
  };
  for (size_t k = 0; k < all.size(); ++k) {
    if (asked.inputs[k].ids && asked.inputs[k].kind != Split::Kind::kPlain) take(k);
  }
  for (size_t k = 0; k < all.size() && next < components.size(1); ++k) {
    if (ReadAsIds(asked.inputs[k])) take(k);
  }
  return all;
}

// Contributions of each element of the inputs, from the rows in which a sweep back ended: by input [rows, *S];
// undefined for plain ones. `ids`: those of IdsOf().
std::vector<at::Tensor> ElementsOf(const RecordedRun& run, const AdjointResult& adjoint,
                                   const std::vector<at::Tensor>& ids) {
  const PreparedInputs& asked = run.inputs;
  std::vector<at::Tensor> all(asked.inputs.size());
  // Take the starts in the order of the declarations; undefined if no target depends on one.
  size_t next_start = 0;
  for (const size_t k : run.declared) {
    if (asked.inputs[k].kind == Split::Kind::kPlain || asked.inputs[k].ids) continue;
    all[k] = adjoint.starts[next_start++];
  }
  for (size_t k = 0; k < asked.inputs.size(); ++k) {
    const PreparedInput& input = asked.inputs[k];
    if (input.kind == Split::Kind::kPlain) continue;
    if (input.ids) {
      all[k] = ids[k];
      continue;
    }
    if (!all[k].defined()) {
      at::DimVector sizes = {adjoint.components.size(0)};
      sizes.append(input.value.sizes().begin(), input.value.sizes().end());
      all[k] = at::zeros(sizes, input.value.options().dtype(RealDtype(RowDtype(input.value.scalar_type()))));
    }
    if (ids[k].defined()) all[k] = all[k] + ids[k].to(all[k].options());
  }
  return all;
}

// Returns the contributions by element and by component. targets: their number. `together`: how many of them each row
// of the sweep stands for: all examples, or 1.
Given GivenTo(const RecordedRun& run, const AdjointResult& adjoint, int64_t targets, int64_t together,
              const AttributeOptions& options) {
  const PreparedInputs& asked = run.inputs;
  const int64_t rows = targets / together;
  const std::vector<at::Tensor> ids = IdsOf(asked, adjoint.components);
  Given given;
  given.inputs = ElementsOf(run, adjoint, ids);
  given.components = options.each_example
                         ? at::zeros({rows, together, asked.numc}, adjoint.components.options())
                         : adjoint.components.narrow(1, 0, asked.numc).unsqueeze(1).clone(at::MemoryFormat::Contiguous);
  for (size_t k = 0; k < asked.inputs.size(); ++k) {
    const PreparedInput& input = asked.inputs[k];
    if (input.kind == Split::Kind::kPlain) continue;
    at::Tensor& elements = given.inputs[k];
    // Components have what floats gave already, but not what was read from them.
    const at::Tensor& missing = options.each_example ? elements : ids[k];
    if (missing.defined()) {
      const int64_t blocks = options.each_example ? together : 1;
      AddByLabel(missing.reshape({rows, blocks, -1}), input.labels.reshape({blocks, -1}).to(missing.device()),
                 given.components);
    }
    if (options.each_example && !options.every_target) elements = elements.select(0, 0);
  }
  given.components = given.components.reshape({targets, asked.numc});
  return given;
}

// Sums up what was given to each target. leftover: by target, empty with each_example, where it is what is missing.
void ByTarget(const std::vector<Target>& targets, const TargetNumbers& numbers, const at::Tensor& components,
              const std::vector<double>& leftover, const OutputScales& scales, Attribution& result) {
  const at::Tensor all = components.to(at::kCPU).contiguous();
  const double* parts = all.data_ptr<double>();
  result.targets.reserve(targets.size());
  int64_t infinite = 0;
  for (size_t t = 0; t < targets.size(); ++t, parts += all.size(1)) {
    Contributions own;
    own.target = targets[t];
    own.contributions.assign(parts, parts + all.size(1));
    own.value = numbers.values[t];
    own.scale = scales.Of(targets[t]);
    own.reference = numbers.references[t];
    own.terms = numbers.terms[t];
    if (leftover.empty()) {
      double sum = 0;
      for (const double part : own.contributions) sum += part;
      own.leftover = own.value - own.reference - sum;
    } else {
      own.leftover = leftover[t] + numbers.brackets[t];
    }
    if (!std::isfinite(own.value) && std::isfinite(own.reference)) {
      // Move all of an infinite value to the leftover: finite parts cannot add up to it.
      std::fill(own.contributions.begin(), own.contributions.end(), 0.0);
      own.leftover = own.value;
      ++infinite;
    }
    AddUp(own);
    result.targets.push_back(std::move(own));
  }
  if (infinite == 0) return;
  result.report.notes.push_back(
      absl::StrCat(infinite == 1 ? "the explained number of " : absl::StrCat(infinite, " explained numbers of "),
                   result.name, infinite == 1 ? " is" : " are", WordsOf(NoteKind::kInfiniteValue).holds,
                   infinite == 1 ? "its reference is not; all of that is leftover"
                                 : "their references are not; all of that is leftover"));
}

void AddNotes(const std::vector<Target>& targets, const TargetNumbers& numbers, const PreparedInputs& prepared,
              Attribution& result) {
  std::vector<at::Tensor> inputs;
  for (const PreparedInput& input : prepared.inputs) inputs.push_back(input.value);
  for (std::string& note : NotesOfTargets(result.value, targets, numbers.of_probabilities, inputs)) {
    result.report.notes.push_back(std::move(note));
  }
  const auto lost = std::count_if(result.targets.begin(), result.targets.end(), [](const Contributions& target) {
    const auto finite = [](double number) { return std::isfinite(number); };
    return !std::all_of(target.contributions.begin(), target.contributions.end(), finite);
  });
  if (lost > 0) {
    const WordsOfNote& words = WordsOf(NoteKind::kInfiniteContributions);
    result.report.notes.push_back(absl::StrCat(words.begins, lost, lost == 1 ? " target" : " targets", " in ",
                                               result.name, words.holds, "; they are no shares of anything"));
  }
}

std::vector<OperatorRelevance> ByOperator(const TracedRun& trace, const AdjointResult& adjoint) {
  std::vector<OperatorRelevance> operators;
  for (const NodeRelevance& node : adjoint.nodes) {
    const Call& call = trace.calls[node.call];
    operators.push_back({call.position, DescribeCall(call), call.program_call, node.output, Doubles(node.passed),
                         Doubles(node.leftover)});
  }
  return operators;
}

}  // namespace

std::vector<std::vector<double>> PassedByCall(const Attribution& attribution, size_t num_calls) {
  std::vector<std::vector<double>> passed(attribution.operators.empty() ? 0 : attribution.operators[0].passed.size(),
                                          std::vector<double>(num_calls, std::nan("")));
  int64_t last = -1;
  for (const OperatorRelevance& one : attribution.operators) {
    if (one.program_call < 0 || one.program_call >= static_cast<int64_t>(num_calls)) {
      throw InvalidArgument(absl::StrCat("operator ", one.call, " is call ", one.program_call,
                                         " of the model, but the ", "program has ", num_calls,
                                         "; record the same model with the same inputs"));
    }
    // The outputs of one operator add up.
    const bool more = one.position.op_index == last;
    last = one.position.op_index;
    for (size_t t = 0; t < passed.size(); ++t) {
      double& own = passed[t][one.program_call];
      own = more ? own + one.passed[t] : one.passed[t];
    }
  }
  return passed;
}

RecordedOutput FindExplained(const std::vector<RecordedOutput>& outputs, TracedRun& trace,
                             const AttributeOptions& options) {
  std::vector<RecordedOutput> chosen = outputs;
  ChooseOutputs(options.outputs, chosen);
  if (options.at.empty()) return chosen[0];
  RecordedOutput found = FindAsked(chosen, outputs, trace, options.at);
  if (found.value.defined()) return found;
  RequireReached(trace, options.at, found.probe);
  Restore(trace, found.probe.operand);
  found.value = trace.Value(found.probe.operand);
  return found;
}

RunFor PurposeOf(const AttributeOptions& options) {
  return options.operators ? RunFor::kBackwardByOperator : RunFor::kBackward;
}

Attribution AttributeRun(RecordedRun run, const AttributeOptions& options) {
  const auto start = Clock::now();
  if (options.progress) options.progress("trace", 1, 1);
  Attribution result;
  result.numc = run.inputs.numc;
  result.inside = InsideValues(*run.trace);
  const RecordedOutput explained = FindExplained(run.outputs, *run.trace, options);
  result.name = explained.name;
  result.value = explained.value;
  if (!CarriesRows(explained.probe.operand) && result.value.numel() > 0) ThrowUnreached(*run.trace, result.name);
  if (options.each_example) CheckExamples(run.inputs, result.value);
  const at::Tensor at_hand = AtHand(result.value);
  const std::vector<Target> targets = FindTargets(at_hand, options);
  result.report.trace_seconds = run.seconds + SecondsSince(start);

  // The reference of what is explained is known once the run is linearized: see Linearization::stand_ins and
  // Note [Residuals as anchors].
  at::Tensor reference;
  TargetNumbers numbers;
  at::Tensor cotangent;
  const auto count = static_cast<int64_t>(targets.size());
  const int64_t together = options.each_example ? result.value.size(0) : 1;
  const CotangentsFor cotangents = [&](const Linearization& first) -> std::vector<at::Tensor> {
    reference = first.trace->Reference(explained.probe.operand);
    numbers = ReadTargets(at_hand, reference, targets);
    cotangent = numbers.Cotangent(together);
    return {cotangent};
  };
  Attributed swept = LinearizeAndTranspose(run.trace, options.Rules(), run.policy, {explained.probe}, cotangents,
                                           options.operators, options.progress, run.prepared);
  AdjointResult& adjoint = swept.adjoint;
  result.report.linearize_seconds = swept.linearize_seconds;
  result.report.sweep_seconds = swept.sweep_seconds;
  // Judge recovery first: if failures are absorbed, this changes the leftover.
  const OutputScales scales(at_hand, options.each_example);
  AttributionJudge judge(swept.linearization, result.name, scales, cotangent, &adjoint);
  judge.JudgeRows(targets);

  Given given = GivenTo(run, adjoint, count, together, options);
  result.inputs = std::move(given.inputs);
  ByTarget(targets, numbers, given.components, options.each_example ? std::vector<double>() : Doubles(adjoint.leftover),
           scales, result);
  result.operators = ByOperator(*run.trace, adjoint);

  SweepResult judged;
  judged.failures = adjoint.failures;
  judged.worst_recovery_error = adjoint.recovery_error;
  FillReport(swept.linearization, judged, options.policy.preset == Preset::kAuto, result.report);
  at::ScalarType rounded = result.value.scalar_type();
  if (adjoint.single[0] && RealDtype(rounded) == at::kDouble) rounded = at::kFloat;
  for (Contributions& target : result.targets) {
    target.single = adjoint.single[0];
    target.rounding = RoundingAllowance(target, rounded, result.report.operators, run.policy.tolerance);
    target.tolerance = RecoveryAllowance(target, rounded, result.report.operators, run.policy.tolerance);
  }
  if (options.each_example && CarriesRows(explained.probe.operand)) {
    const SendBack send_back = [&](const at::Tensor& cotangents) {
      AdjointOptions components_only;
      components_only.components_only = true;
      const AdjointResult sent = SweepTargets(swept.linearization, {cotangents}, components_only);
      return ElementsOf(run, sent, IdsOf(run.inputs, sent.components));
    };
    std::string note = InfluenceOf(swept.linearization, result.targets, cotangent, adjoint, result.inputs, send_back,
                                   run.influence.get());
    // Contributions of one example to another are no rounding error: judge examples only if there are none.
    if (!note.empty()) {
      judge.outcome.notes.push_back(std::move(note));
    } else if (together > 1) {
      judge.JudgeExamples(result.targets);
    }
  }
  judge.WeighParts(result.targets, result.inputs);
  if (!explained.note.empty()) judge.outcome.notes.push_back(explained.note);
  SayFirst(judge.outcome, run.inputs, swept.linearization, result.report);
  if (run.trace->dropped && run.trace->stretches.empty()) {
    result.report.notes.push_back(
        NoteOf(NoteKind::kMemoryLimit, "an operator needs a stand-in for its reference, from which later ones follow"));
  }
  CompareReference(result.name, reference, explained.on_baseline, run.require_repeatable, result.report);
  AddNotes(targets, numbers, run.inputs, result);
  return result;
}

Attribution Attribute(const TracedModel& model, const std::vector<Input>& inputs, const AttributeOptions& options,
                      std::shared_ptr<KnownInfluence> influence) {
  const auto start = Clock::now();
  Model& own = *model.model();
  RecordedRun run = RecordFor(own, inputs, options, PurposeOf(options));
  run.seconds = SecondsSince(start);
  run.influence = std::move(influence);
  const std::vector<std::string> shared = NotesOnSharedMemory(inputs, run);
  Attribution attribution = AttributeRun(std::move(run), options);
  for (const std::string& note : shared) attribution.report.notes.push_back(note);
  AddModelNotes(own.Notes(), attribution.report);
  return attribution;
}

}  // namespace addend
