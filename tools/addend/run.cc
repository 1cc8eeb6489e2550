#include "tools/addend/run.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/inside.h"
#include "core/program/random_state.h"
#include "tools/addend/progress.h"

namespace addend::cli {
namespace {

// Hint for a model that fails on numbers of another format than its own; empty if that is not the reason.
std::string DtypeHint(const LoadedRun& run) {
  for (const auto& [name, tensor] : run.model->NamedTensors()) {
    if (!tensor.defined() || !at::isFloatingType(tensor.scalar_type())) continue;
    for (const LoadedInput& loaded : run.inputs) {
      if (loaded.inside()) continue;
      const at::ScalarType dtype = loaded.input.value.scalar_type();
      if (loaded.ids() || dtype == tensor.scalar_type()) continue;
      return absl::StrCat("; the model's numbers are ", DtypeName(tensor.scalar_type()), " and those of ", loaded.path,
                          " are ", DtypeName(dtype), ", --dtype float32 makes them the same");
    }
  }
  return "";
}

template <typename Function>
auto WithHints(const LoadedRun& run, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    const std::string hint = error.code() == absl::StatusCode::kInvalidArgument ? DtypeHint(run) : "";
    if (hint.empty()) throw;
    throw InvalidArgument(error.what() + hint);
  }
}

bool AllZero(const Decomposed& one) { return !one.composition.components().any().item<bool>(); }

// Integers are ids of tokens. Where a model computes with them instead, nothing is attributed.
void CheckIds(const LoadedRun& run, bool nothing_attributed, const Report& report) {
  const auto ids = std::find_if(run.inputs.begin(), run.inputs.end(),
                                [](const LoadedInput& loaded) { return !loaded.plain() && loaded.ids(); });
  if (ids == run.inputs.end() || report.unattributed == 0 || !nothing_attributed) return;
  throw InvalidArgument(absl::StrCat(ids->path, " holds integers (", DtypeName(ids->input.value.scalar_type()),
                                     "), which count as ids of tokens, but the model computes with them; store them as "
                                     "floating-point numbers"));
}

void AddNotes(const LoadedRun& run, Report& report) {
  for (std::string& note : run.Notes()) report.notes.push_back(std::move(note));
}

}  // namespace

void FindInside(LoadedRun& run) {
  if (run.inputs.empty() || !run.inputs.back().inside()) return;
  DecomposeOptions options;
  options.policy = run.policy;
  const std::shared_ptr<ModelState> before = run.model->KeepState();
  const RandomState drawn(run.Values());
  const PreparedInputs found =
      WithHints(run, [&] { return RecordFor(*run.model, run.Inputs(), options, RunFor::kForward).inputs; });
  before->Restore();
  for (size_t k = 0; k < run.inputs.size(); ++k) {
    if (run.inputs[k].inside()) run.inputs[k].input.value = found.inputs[k].value;
  }
}

void RequireOneBaseline(const LoadedRun& run) {
  if (run.Several().empty()) return;
  throw InvalidArgument("several baselines are for addend attribute, which gives means over them; give one");
}

Decomposition Decompose(const LoadedRun& run, DecomposeOptions options) {
  RequireOneBaseline(run);
  Progress progress;
  options.progress = [&](const std::string& stage, int64_t done, int64_t total) { progress.Show(stage, done, total); };
  Decomposition decomposition = WithHints(run, [&] { return TracedModel(run.model).Decompose(run.Inputs(), options); });
  const auto& outputs = decomposition.outputs;
  CheckIds(run, std::all_of(outputs.begin(), outputs.end(), AllZero), decomposition.report);
  AddNotes(run, decomposition.report);
  return decomposition;
}

BaselinesAttribution Attribute(const LoadedRun& run, AttributeOptions options) {
  Progress progress;
  options.progress = [&](const std::string& stage, int64_t done, int64_t total) { progress.Show(stage, done, total); };
  BaselinesAttribution found = WithHints(run, [&] {
    const std::vector<SeveralBaselines> several = run.Several();
    if (!several.empty()) return AttributeBaselines(TracedModel(run.model), run.Inputs(), several, options);
    BaselinesAttribution one;
    one.mean = addend::Attribute(TracedModel(run.model), run.Inputs(), options);
    return one;
  });
  Attribution& attribution = found.mean;
  bool nothing = true;
  for (const Contributions& target : attribution.targets) {
    for (const double part : target.contributions) nothing = nothing && part == 0;
  }
  CheckIds(run, nothing, attribution.report);
  AddNotes(run, attribution.report);
  return found;
}

Interactions FindInteractions(const LoadedRun& run, const std::vector<int64_t>& groups, AttributeOptions options) {
  RequireOneBaseline(run);
  Interactions found =
      WithHints(run, [&] { return AttributeInteractions(TracedModel(run.model), run.Inputs(), groups, options); });
  bool nothing = true;
  for (const double part : found.contributions) nothing = nothing && part == 0;
  CheckIds(run, nothing, found.attribution.report);
  AddNotes(run, found.attribution.report);
  return found;
}

c10::IValue RunPlain(const LoadedRun& run) {
  return WithHints(run, [&] { return TracedModel(run.model).Run(run.Values()); });
}

}  // namespace addend::cli
