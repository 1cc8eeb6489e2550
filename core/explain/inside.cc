#include "core/explain/inside.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/baselines.h"
#include "core/explain/notes.h"
#include "core/explain/probe.h"
#include "core/explain/same_run.h"
#include "core/explain/verify.h"
#include "core/program/random_state.h"

namespace addend {
namespace {

bool IsInside(const Input& input) { return !input.inside.empty(); }

// The place at which the tensor at a probe is made.
InsidePlace PlaceOf(const TracedRun& trace, const Probe& probe, const std::string& selector) {
  const std::optional<Giver> giver = GiverOf(trace, probe);
  if (!giver) throw InvalidArgument(absl::StrCat(selector, " is what the model is given; split that argument"));
  const Call& call = trace.calls[giver->call];
  return {call.program_call, FullName(call.op.schema()), static_cast<int>(giver->output)};
}

}  // namespace

bool HasInside(const std::vector<Input>& inputs) { return std::any_of(inputs.begin(), inputs.end(), IsInside); }

PreparedInputs ArgumentsOf(const std::vector<Input>& inputs) {
  PreparedInputs plain;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Input& input = inputs[k];
    const std::string name = InputName(input, k);
    if (IsInside(input)) {
      if (input.split.kind == Split::Kind::kDims || input.split.kind == Split::Kind::kLabels) continue;
      throw InvalidArgument(absl::StrCat(name, " is inside the model: it is split along dimensions or by labels"));
    }
    if (input.split.kind != Split::Kind::kPlain) {
      throw InvalidArgument(absl::StrCat(name, " is split, and so is ",
                                         std::find_if(inputs.begin(), inputs.end(), IsInside)->inside,
                                         " inside the model; where a split starts inside, the arguments are plain"));
    }
    if (plain.inputs.size() != k) throw InvalidArgument("arguments are listed before what is inside the model");
    if (!input.value.defined()) throw InvalidArgument(absl::StrCat(name, " is no tensor"));
    PreparedInput own;
    own.value = input.value.detach().clone(at::MemoryFormat::Contiguous);
    plain.inputs.push_back(std::move(own));
  }
  return plain;
}

PreparedInputs PlaceInside(const std::vector<Input>& inputs, const TracedRun& trace,
                           const std::vector<RecordedOutput>& outputs,
                           const std::vector<std::pair<std::string, at::Tensor>>& held) {
  std::vector<Input> all = inputs;
  std::vector<InsidePlace> places(inputs.size());
  std::vector<std::string> notes;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!IsInside(inputs[k])) continue;
    const RecordedOutput found = FindInner(outputs, outputs, trace, inputs[k].inside);
    const Probe& probe = found.probe;
    if (!found.note.empty()) notes.push_back(found.note);
    const ReadBeside beside = ReadBesideModule(trace, inputs[k].inside, probe);
    if (!beside.readers.empty()) notes.push_back(ReadInOtherWays(inputs[k].inside, beside.given, beside.readers));
    places[k] = PlaceOf(trace, probe, inputs[k].inside);
    const std::string& word = inputs[k].baseline.word;
    if (NeedsValue(word)) {
      throw InvalidArgument(absl::StrCat(inputs[k].inside, ": the baseline ", word, " is made of the value, which is ",
                                         "known only when the model runs; give a number, a tensor, mean:FILE, ",
                                         "median:FILE or buffer:NAME"));
    }
    // Stand in by zeros of the tensor's shape; the value is found when the model runs.
    all[k].value = at::zeros(probe.operand.geometry.sizes, at::TensorOptions().dtype(probe.operand.dtype));
    if (all[k].name.empty()) all[k].name = inputs[k].inside;
  }
  PreparedInputs prepared = Prepare(all, held);
  for (size_t k = 0; k < inputs.size(); ++k) prepared.inputs[k].inside = places[k];
  prepared.notes = std::move(notes);
  return prepared;
}

RecordedRun RecordFor(Model& model, const std::vector<Input>& inputs, const RunOptions& options, RunFor purpose) {
  if (!HasInside(inputs)) return RecordModel(model, Prepare(inputs, model.NamedTensors()), options, purpose);
  if (options.verify_reference) RefuseInside();
  RunOptions once = options;
  once.references = nullptr;
  once.progress = nullptr;
  const PreparedInputs arguments = ArgumentsOf(inputs);
  std::vector<at::Tensor> values;
  for (const PreparedInput& input : arguments.inputs) values.push_back(input.value);
  // The second run begins as the first one did, and what it leaves is what one run leaves.
  const std::shared_ptr<ModelState> before = model.KeepState();
  std::optional<RandomState> random(std::in_place, values);
  std::vector<std::pair<std::string, at::Tensor>> outputs;
  PreparedInputs placed;
  {
    const RecordedRun first = RecordModel(model, arguments, once);
    placed = PlaceInside(inputs, *first.trace, first.outputs, model.NamedTensors());
    for (const RecordedOutput& output : first.outputs) {
      outputs.emplace_back(output.name, output.value.detach().clone());
    }
  }
  before->Restore();
  random.reset();
  RecordedRun run = RecordModel(model, placed, options, purpose);
  std::vector<at::Tensor> again;
  for (const RecordedOutput& output : run.outputs) again.push_back(output.value);
  const std::string apart = FirstApart(outputs, again);
  if (apart.empty()) return run;
  const std::vector<c10::IValue> given(values.begin(), values.end());
  throw RunsApart(apart, WhereRunsPart(model, given));
}

std::vector<at::Tensor> InsideValues(const TracedRun& trace) {
  std::vector<at::Tensor> values;
  for (const Start& start : trace.starts) {
    if (start.inside) values.push_back(trace.Value(*start.inside).detach().clone(at::MemoryFormat::Contiguous));
  }
  return values;
}

}  // namespace addend
