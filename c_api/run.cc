#include "c_api/run.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/explanation.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {

DecomposeOptions OptionsOf(const ContextBody& context, const RequestBody& request) {
  DecomposeOptions options;
  options.policy = context.policy;
  options.registry = context.rules.get();
  options.probes = request.probes;
  options.everything = request.everything;
  if (request.cancelled == nullptr && context.progress.function == nullptr) return options;
  options.progress = [cancelled = request.cancelled, progress = context.progress](const std::string& stage,
                                                                                  int64_t done, int64_t total) {
    if (cancelled != nullptr && *cancelled) throw Error(absl::StatusCode::kCancelled, "the run was cancelled");
    if (progress.function == nullptr) return;
    // What the callback computes is not the model's.
    const TracingPause pause;
    const int32_t answer = progress.function(progress.payload.get(), stage.c_str(), done, total);
    if (answer == 0) return;
    throw CallbackError(absl::StatusCode::kCancelled,
                        absl::StrCat("the progress callback returned ", answer, ", which ends the run"), answer);
  };
  return options;
}

void RequireGoingOn(const RequestBody& request) {
  if (request.cancelled != nullptr && *request.cancelled) {
    throw Error(absl::StatusCode::kCancelled, "the run was cancelled");
  }
}

std::vector<Input> InputsOf(const std::vector<RequestInput>& inputs) {
  std::vector<Input> list;
  list.reserve(inputs.size());
  for (const RequestInput& own : inputs) list.push_back(own.input);
  return list;
}

ResultsBody ResultsOf(Decomposition decomposition, const std::vector<RequestInput>& inputs, Preset asked,
                      const std::string& model_path) {
  auto run = std::make_shared<RunRecord>();
  run->report = std::move(decomposition.report);
  run->preset = asked;
  run->names = ComponentNames(inputs, decomposition.numc);
  run->inputs = InputsOf(inputs);
  run->model_path = model_path;
  ResultsBody results;
  const auto add = [&results](Decomposed& one) {
    results.entries.push_back({std::move(one.name), std::move(one.composition), at::Tensor(), std::nullopt});
  };
  // In the order in which the model gives them.
  auto plain = decomposition.plain.begin();
  const auto add_plain = [&](size_t position) {
    for (; plain != decomposition.plain.end() && plain->position <= position; ++plain) {
      results.entries.push_back({std::move(plain->name), std::nullopt, std::move(plain->value), std::nullopt});
    }
  };
  for (Decomposed& one : decomposition.outputs) {
    add_plain(results.entries.size());
    add(one);
  }
  add_plain(std::numeric_limits<size_t>::max());
  for (Decomposed& one : decomposition.probes) add(one);
  results.run = std::move(run);
  return results;
}

}  // namespace addend::c_api
