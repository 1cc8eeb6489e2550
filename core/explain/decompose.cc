#include "core/explain/decompose.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/inside.h"
#include "core/explain/notes.h"
#include "core/explain/outcome.h"
#include "core/explain/probe.h"
#include "core/explain/shared_memory.h"
#include "core/explain/verify.h"
#include "core/linearize/linearization.h"
#include "core/linearize/segments.h"
#include "core/model/run_model.h"
#include "core/program/traced_calls.h"
#include "core/program/view.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// Mask of elements whose value is not finite but whose recovery differs from it; undefined if there are none.
at::Tensor InfiniteAlone(const ProbeRows& rows) {
  if (rows.finite || rows.value.numel() == 0 || AllFinite(rows.value)) return {};
  const at::Tensor value = rows.value.to(rows.components.scalar_type());
  const at::Tensor recovery = rows.components.sum(0) + rows.leftover + rows.reference.to(value.scalar_type());
  const at::Tensor same = recovery.eq(value).logical_or_(at::isnan(recovery).logical_and_(at::isnan(value)));
  const at::Tensor alone = at::isfinite(value).logical_or_(same).logical_not_();
  return alone.any().item<bool>() ? alone : at::Tensor();
}

// Adds the notes on one output or probe.
void NoteRows(const std::string& name, const ProbeRows& rows, std::vector<std::string>& notes) {
  if (InfiniteAlone(rows).defined()) {
    notes.push_back(absl::StrCat(name, " is", WordsOf(NoteKind::kInfiniteValue).holds,
                                 "its reference is not; all of that is leftover"));
  }
  if (rows.single && c10::toRealValueType(rows.value.scalar_type()) == at::kDouble) {
    notes.push_back(absl::StrCat(name, WordsOf(NoteKind::kThroughSingle).holds,
                                 "on its way; its parts add up to it as exactly as that rounds"));
  }
  if (!rows.decomposed) {
    notes.push_back(absl::StrCat(name, WordsOf(NoteKind::kUnreached).holds));
  }
}

}  // namespace

Composition MakeComposition(const ProbeRows& rows, uint32_t marks) {
  Origin origin;
  origin.value = rows.value;
  origin.marks = marks;
  origin.depth = rows.depth;
  origin.single = rows.single;
  origin.plain = !rows.decomposed;
  at::Tensor components = rows.components;
  at::Tensor leftover = rows.leftover;
  // Move all of an infinite element to the leftover: finite parts cannot add up to it.
  if (const at::Tensor alone = InfiniteAlone(rows); alone.defined()) {
    components = components.masked_fill(alone, 0);
    leftover = at::where(alone, rows.value.to(leftover.scalar_type()), leftover);
  }
  return Composition::FromOperator(std::move(components), rows.reference.to(rows.components.scalar_type()),
                                   std::move(leftover), std::move(origin));
}

Decomposition DecomposeRun(RecordedRun run, const DecomposeOptions& options) {
  const auto start = Clock::now();
  std::vector<std::string> names;
  std::vector<Probe> probes;
  std::vector<std::string> taken;  // notes on probes
  const std::vector<RecordedOutput> given = run.outputs;
  ChooseOutputs(options.outputs, run.outputs);
  for (const RecordedOutput& output : run.outputs) {
    names.push_back(output.name);
    probes.push_back(output.probe);
  }
  for (const std::string& asked : options.probes) {
    for (const std::string& selector : EachAsked(given, *run.trace, asked)) {
      names.push_back(selector);
      const RecordedOutput found = FindInner(run.outputs, given, *run.trace, selector);
      if (!found.note.empty()) taken.push_back(found.note);
      if (!found.value.defined()) RequireReached(*run.trace, selector, found.probe);
      probes.push_back(found.probe);
    }
  }
  Decomposition decomposition;
  Report& report = decomposition.report;
  decomposition.numc = run.inputs.numc;
  decomposition.plain = std::move(run.plain);
  decomposition.inside = InsideValues(*run.trace);
  report.trace_seconds = run.seconds + SecondsSince(start);
  if (options.progress) options.progress("trace", 1, 1);

  SweepOptions sweep_options{options.direction, {options.chunk, options.memory_bytes}};
  // `everything` looks at each component at every operator, which only a forward sweep does.
  if (options.everything && options.direction == Direction::kAuto) sweep_options.direction = Direction::kForward;
  Explained explained = LinearizeAndSweep(run.trace, options.Rules(), run.policy, std::move(probes), options.everything,
                                          options.progress, sweep_options);
  SweepResult& sweep = explained.sweep;
  Outcome outcome = JudgeOutputs(explained.linearization, names, sweep);
  outcome.notes.insert(outcome.notes.end(), taken.begin(), taken.end());
  report.linearize_seconds = explained.linearize_seconds;
  report.sweep_seconds = explained.sweep_seconds;
  // An empty tensor has no storage, so it cannot be matched to the inputs; count it as reached.
  bool reached = run.inputs.numc == 0;
  for (size_t p = 0; p < sweep.probes.size(); ++p) {
    const ProbeRows& rows = sweep.probes[p];
    const bool output = p < run.outputs.size();
    Decomposed one{names[p], output ? run.outputs[p].value : rows.value,
                   MakeComposition(rows, explained.linearization.probe_marks[p])};
    const bool missed = !rows.decomposed && rows.value.numel() > 0;
    if (missed && run.inputs.numc > 0) one.unreached = Unreached(*run.trace, names[p]);
    (output ? decomposition.outputs : decomposition.probes).push_back(std::move(one));
    NoteRows(names[p], rows, report.notes);
    reached = reached || !missed;
  }
  if (!reached) ThrowUnreached(*run.trace, run.outputs.size() == 1 ? names[0] : "any output");
  FillReport(explained.linearization, sweep, options.policy.preset == Preset::kAuto, report);
  SayFirst(outcome, run.inputs, explained.linearization, report);
  for (size_t p = 0; p < run.outputs.size(); ++p) {
    CompareReference(names[p], sweep.probes[p].reference, run.outputs[p].on_baseline, run.require_repeatable, report);
  }
  return decomposition;
}

TracedModel::TracedModel(std::shared_ptr<Model> model) : model_(std::move(model)) {
  if (model_ == nullptr) throw InvalidArgument("there is no model");
}

Decomposition TracedModel::Decompose(const std::vector<Input>& inputs, const DecomposeOptions& options) const {
  if (options.chunk < 0 || options.memory_bytes < 0) {
    throw InvalidArgument("chunk and memory_bytes count components and bytes; 0 leaves the choice open");
  }
  const auto start = Clock::now();
  RecordedRun run = RecordFor(*model_, inputs, options, RunFor::kForward);
  run.seconds = SecondsSince(start);
  const std::vector<std::string> shared = NotesOnSharedMemory(inputs, run);
  Decomposition decomposition = DecomposeRun(std::move(run), options);
  for (const std::string& note : shared) decomposition.report.notes.push_back(note);
  AddModelNotes(model_->Notes(), decomposition.report);
  return decomposition;
}

c10::IValue TracedModel::Run(const std::vector<at::Tensor>& inputs) const {
  std::vector<c10::IValue> arguments;
  std::vector<std::string> shapes;
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) throw InvalidArgument("an input is no tensor");
    arguments.emplace_back(input);
    shapes.push_back(TensorText(input));
  }
  return RunModel(*model_, arguments, absl::StrJoin(shapes, ", "));
}

}  // namespace addend
