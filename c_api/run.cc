#include "c_api/run.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/structure.h"
#include "core/base/clock.h"
#include "core/explain/baselines.h"
#include "core/explain/note_kinds.h"
#include "core/intercept/thread_modes.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/output_names.h"
#include "core/program/recorder.h"

namespace addend::c_api {

DecomposeOptions OptionsOf(const ContextBody& context, const RequestBody& request) {
  DecomposeOptions options;
  static_cast<RequestOptions&>(options) = request;
  options.policy = context.policy;
  options.registry = context.rules.get();
  options.probes = request.probes;
  options.outputs = request.outputs;
  const bool timed = request.timeout > 0;
  if (request.cancelled == nullptr && context.progress.function == nullptr && !timed) return options;
  options.progress = [cancelled = request.cancelled, progress = context.progress, timed, timeout = request.timeout,
                      begin = Clock::now()](const std::string& stage, int64_t done, int64_t total) {
    if (cancelled != nullptr && *cancelled) throw Error(absl::StatusCode::kCancelled, "the run was cancelled");
    if (timed && SecondsSince(begin) > timeout) {
      throw Error(absl::StatusCode::kCancelled,
                  absl::StrCat("the run took longer than its timeout of ", timeout, " s"));
    }
    if (progress.function == nullptr) return;
    // Operators that the callback calls are not the model's.
    const TracingPause pause;
    const int32_t answer = progress.function(progress.payload.get(), stage.c_str(), done, total);
    if (answer == 0) return;
    throw CallbackError(absl::StatusCode::kCancelled,
                        absl::StrCat("the progress callback returned ", answer, ", which ends the run"), answer);
  };
  return options;
}

std::shared_ptr<ReferenceCache> ReferencesFor(const ModelBody& model, const RequestBody& request) {
  return request.keep_references ? model.references : nullptr;
}

void RequireGoingOn(const RequestBody& request) {
  if (request.cancelled != nullptr && *request.cancelled) {
    throw Error(absl::StatusCode::kCancelled, "the run was cancelled");
  }
}

void RequireOneBaseline(const std::vector<RequestInput>& inputs) {
  for (const RequestInput& own : inputs) {
    if (!own.several.given()) continue;
    throw InvalidArgument(absl::StrCat(own.input.name,
                                       " has several baselines, which an attribution of a model takes, and "
                                       "no decomposition or live trace; give one"));
  }
}

void RequireOneExample(const RequestBody& request) {
  if (request.further.empty()) return;
  throw InvalidArgument(absl::StrCat("the request has ", request.further.size() + 1,
                                     " examples; only a recording and its check take more than one"));
}

void RequireReady(const RequestBody& request) {
  RequireLibTorch();
  RequireNoAutocast();
  RequireNoTrace();
  RequireGoingOn(request);
}

void RequireReadyForOne(const RequestBody& request) {
  RequireReady(request);
  RequireOneExample(request);
}

namespace {

const RequestBody& ReadyRequest(const addend_request* request, const void* out, const char* out_name,
                                ModelRun::Examples examples) {
  const RequestBody& asked = Get(request, "request");
  RequireOut(out, out_name);
  RequireReady(asked);
  if (examples == ModelRun::Examples::kOne) RequireOneExample(asked);
  SetCallbackNumber(0);
  return asked;
}

}  // namespace

ModelRun::ModelRun(const addend_context* of, const addend_model* asked, const addend_request* with, const void* out,
                   const char* out_name, Examples examples)
    : context(ContextOf(of)),
      model(Get(asked, "model")),
      request(ReadyRequest(with, out, out_name, examples)),
      warnings(context.log) {}

const Registry& RulesOf(const ContextBody& context) {
  return context.rules == nullptr ? Registry::Default() : *context.rules;
}

std::vector<RequestInput> Arrange(const std::vector<std::string>& names, const std::vector<RequestInput>& inputs) {
  std::vector<std::optional<RequestInput>> places(std::max(names.size(), inputs.size()));
  for (const RequestInput& input : inputs) {
    if (!input.named) continue;
    const auto found = std::find(names.begin(), names.end(), input.input.name);
    if (found == names.end()) {
      throw InvalidArgument(
          absl::StrCat("the model has no input ", input.input.name, "; it has ", absl::StrJoin(names, ", ")));
    }
    places[found - names.begin()] = input;
  }
  auto place = places.begin();
  for (const RequestInput& input : inputs) {
    if (input.named) continue;
    while (place->has_value()) ++place;
    *place = input;
  }
  std::vector<RequestInput> arranged;
  for (size_t k = 0; k < places.size(); ++k) {
    if (places[k]) {
      if (arranged.size() < k) {
        throw InvalidArgument(absl::StrCat("the request lacks the input ", names[arranged.size()],
                                           ", which comes before ", places[k]->input.name));
      }
      arranged.push_back(std::move(*places[k]));
    }
  }
  return arranged;
}

std::vector<Input> InputsOf(const std::vector<RequestInput>& inputs) {
  std::vector<Input> list;
  list.reserve(inputs.size());
  for (const RequestInput& own : inputs) list.push_back(own.input);
  return list;
}

AskedModel AskedOf(const ModelBody& model, const RequestBody& request) {
  AskedModel asked;
  const std::shared_ptr<const RequestStructure> structure = StructureOfExample(request);
  if (structure == nullptr) {
    asked.model = model.model;
    asked.inputs = Arrange(model.input_names, request.inputs);
  } else {
    OrderedStructure ordered = InOrderOfArguments(*structure, model.input_names, request.inputs.size());
    for (const int input : ordered.inputs) asked.inputs.push_back(request.inputs[input]);
    asked.model = OfTensors(model.model, ordered.structure, model.input_names);
    asked.structure = std::move(ordered.structure);
  }
  asked.inputs.insert(asked.inputs.end(), request.inside.begin(), request.inside.end());
  for (size_t k = 0; k < asked.inputs.size(); ++k) ReadBaselineFile(asked.inputs[k].input, k);
  return asked;
}

std::vector<at::Tensor> CopiesOf(const std::vector<RequestInput>& inputs) {
  std::vector<at::Tensor> values;
  for (const RequestInput& input : inputs) {
    if (input.input.inside.empty()) values.push_back(input.input.value.clone());
  }
  return values;
}

std::vector<std::vector<c10::IValue>> ExamplesOf(const std::vector<std::string>& names, const RequestBody& request) {
  std::vector<std::vector<c10::IValue>> examples;
  for (size_t k = 0; k <= request.further.size(); ++k) {
    const std::vector<RequestInput>& inputs = k == 0 ? request.inputs : request.further[k - 1];
    const auto structure = StructureOfExample(request, k);
    if (inputs.empty() && structure == nullptr && k > 0) {
      throw InvalidArgument("the last example of the request has no input");
    }
    if (structure != nullptr) {
      examples.push_back(PutTogether(*structure, names, CopiesOf(inputs)));
    } else {
      const std::vector<at::Tensor> values = CopiesOf(Arrange(names, inputs));
      examples.emplace_back(values.begin(), values.end());
    }
  }
  return examples;
}

void KeepInputs(const std::function<std::vector<std::pair<std::string, at::Tensor>>()>& held,
                std::vector<RequestInput>& inputs) {
  const TracingPause pause;
  const auto keep = [](at::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.detach().clone();
  };
  for (RequestInput& own : inputs) {
    Input& input = own.input;
    Baseline& baseline = input.baseline;
    if (absl::StartsWith(baseline.word, "buffer:") && input.inside.empty() && !baseline.tensor.defined()) {
      baseline.tensor = BaselineOfWord(baseline.word, input.value, held());
    }
    keep(input.value);
    keep(input.split.labels);
    keep(input.split.parts);
    keep(baseline.tensor);
  }
}

void KeepValues(const std::vector<at::Tensor>& values, std::vector<RequestInput>& inputs) {
  const TracingPause pause;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (values[k].defined()) inputs[k].input.value = values[k].detach().clone();
  }
}

std::shared_ptr<const ExplainedRun> RecordOf(Report report, int64_t numc, std::vector<RequestInput> inputs,
                                             const std::vector<at::Tensor>& inside, Preset asked,
                                             const std::string& model_path) {
  auto next = inside.begin();
  for (RequestInput& input : inputs) {
    if (!input.input.inside.empty()) input.input.value = *next++;
  }
  auto run = std::make_shared<ExplainedRun>();
  run->report = std::move(report);
  run->preset = asked;
  for (const RequestInput& input : inputs) {
    run->inputs.push_back(DescribeInput(input.input));
    run->inputs.back().names = input.names;
    if (input.several.given()) {
      ExplainedInput& own = run->inputs.back();
      own.baseline =
          input.several.word.empty() ? absl::StrCat(input.several.rows.size(0), " tensors") : input.several.word;
      own.baseline_given = true;
    }
  }
  run->components = NameComponents(run->inputs, numc);
  run->model_path = model_path;
  return run;
}

void AddWarnings(const std::vector<std::shared_ptr<const ExplainedRun>>& earlier, Report& report) {
  for (const auto& run : earlier) {
    for (std::string& warning : WarningsAmong(run->report.notes)) {
      if (std::find(report.notes.begin(), report.notes.end(), warning) != report.notes.end()) continue;
      report.notes.push_back(std::move(warning));
    }
  }
}

std::shared_ptr<const ExplainedRun> RunBehind(const std::vector<std::shared_ptr<const ExplainedRun>>& earlier) {
  auto run = std::make_shared<ExplainedRun>();
  AddWarnings(earlier, run->report);
  if (run->report.notes.empty()) return nullptr;
  run->preset = earlier[0]->preset;
  run->report.policy = earlier[0]->report.policy;
  run->report.operators = earlier[0]->report.operators;
  run->report.reference_reason = "components were taken from what a run gave, and not all that it says holds for them";
  return run;
}

ResultsBody ResultsOf(Decomposition decomposition, const std::vector<RequestInput>& inputs, Preset asked,
                      const std::string& model_path) {
  ResultsBody results;
  results.run =
      RecordOf(std::move(decomposition.report), decomposition.numc, inputs, decomposition.inside, asked, model_path);
  const auto add = [&results](Decomposed& one) {
    results.entries.push_back(
        {std::move(one.name), std::move(one.composition), at::Tensor(), std::nullopt, std::move(one.unreached)});
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
  return results;
}

std::vector<ResultEntry> OutputsOf(const c10::IValue& output) {
  const std::vector<std::string> names = OutputNames(output);
  std::vector<ResultEntry> entries;
  ForEachTensor(output, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    entries.push_back({names[entries.size()], std::nullopt, tensor.detach(), std::nullopt});
  });
  return entries;
}

}  // namespace addend::c_api
