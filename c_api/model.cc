// Models: what is done with them.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "c_api/options.h"
#include "c_api/program.h"
#include "c_api/run.h"
#include "core/audit/model_source.h"
#include "core/composition/shapley.h"
#include "core/explain/decompose.h"
#include "core/explain/same_run.h"
#include "core/intercept/tracing_scope.h"
#include "core/load/load_model.h"
#include "core/model/torchscript.h"
#include "core/program/random_state.h"
#include "core/program/recorder.h"
#include "core/recording/check_trace.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/record_program.h"
#include "core/recording/requirements.h"

namespace addend::c_api {
namespace {

ScriptOptions ScriptOptionsOf(int32_t dtype) {
  ScriptOptions options;
  if (dtype == 0) return options;
  options.dtype = DtypeOf(dtype);
  if (!at::isFloatingType(*options.dtype)) {
    throw InvalidArgument("dtype is no floating-point type, which parameters have");
  }
  return options;
}

ModelBody BodyFor(std::shared_ptr<Model> model, std::string path, ModelSource source) {
  ModelBody body;
  body.input_names = model->InputNames();
  body.model = std::move(model);
  body.path = std::move(path);
  body.source = std::make_shared<const ModelSource>(std::move(source));
  return body;
}

// That of its first parameter or buffer.
at::Device DeviceOf(const Model& model) {
  const auto named = model.NamedTensors();
  return named.empty() ? at::Device(at::kCPU) : named[0].second.device();
}

RecordOptions RecordOptionsOf(const ModelBody& model) {
  RecordOptions options;
  options.input_names = model.input_names;
  return options;
}

}  // namespace

CheckOptions CheckOptionsOf(const char* options) {
  CheckOptions checks;
  JsonOptions given(options);
  given.Read("tolerance", &checks.tolerance);
  given.Read("strict", &checks.strict);
  given.Read("out_of_place", &checks.out_of_place);
  given.RequireAllRead();
  return checks;
}

namespace {

at::Tensor FirstNumbers(const c10::IValue& result) {
  at::Tensor first;
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (!first.defined() && tensor.defined() && Continuous(tensor.scalar_type())) first = tensor;
  });
  if (!first.defined()) throw InvalidArgument("the model gives no floating-point or complex tensor");
  return first;
}

// Throws FailedPrecondition where a run with all components gives something else than the first run did: what the model
// keeps is not put back then; see Note [Two runs] in core/explain/same_run.h.
void RequireSameRun(Model& model, const at::Tensor& first, const at::Tensor& again,
                    const std::vector<at::Tensor>& values) {
  if (IsRounding(RelativeDifference(again, first), first)) return;
  std::vector<c10::IValue> arguments;
  for (const at::Tensor& value : values) arguments.emplace_back(value.clone());
  throw RunsApart("output", WhereRunsPart(model, arguments));
}

Composition ExactShapley(const ModelBody& model, const RequestBody& request) {
  const AskedModel asked = AskedOf(model, request);
  RequireOneBaseline(asked.inputs);
  const PreparedInputs prepared = Prepare(InputsOf(asked.inputs), asked.model->NamedTensors());
  if (prepared.numc > kMostShapleyComponents) {
    throw InvalidArgument(absl::StrCat("there are ", prepared.numc,
                                       " components, and exact Shapley values take at most ", kMostShapleyComponents));
  }
  std::vector<Composition> compositions;
  for (const PreparedInput& input : prepared.inputs) {
    if (input.kind == Split::Kind::kPlain) continue;
    if (input.parts.defined()) {
      compositions.emplace_back(input.parts, input.reference);
      continue;
    }
    // An id is present or it is the baseline's: the sum of one component and the reference, exactly so in float64.
    const auto numbers = [&](const at::Tensor& tensor) { return input.ids ? tensor.to(at::kDouble) : tensor; };
    compositions.push_back(
        Composition::FromLabels(numbers(input.value), input.labels, numbers(input.reference), prepared.numc));
  }
  const TracedModel traced(asked.model);
  // Every run begins as the first one did, and whoever draws next draws what follows one run.
  const std::vector<at::Tensor> of_inputs = ValuesOf(prepared);
  const std::shared_ptr<ModelState> before = asked.model->KeepState();
  std::optional<RandomState> drawn_after;  // it goes last, and restores what one run leaves
  RandomState drawn_before(of_inputs);
  const auto run = [&](const std::vector<at::Tensor>& given) {
    std::vector<at::Tensor> values;
    for (size_t k = 0; k < given.size(); ++k) {
      values.push_back(given[k].to(of_inputs[k].scalar_type(), /*non_blocking=*/false, /*copy=*/true));
    }
    return FirstNumbers(traced.Run(values));
  };
  const at::Tensor first = run(of_inputs).clone();
  const std::shared_ptr<ModelState> after = asked.model->KeepState();
  drawn_after.emplace(of_inputs);
  try {
    Composition found = Shapley(
        [&](const std::vector<at::Tensor>& coalition) {
          RequireGoingOn(request);
          before->Restore();
          drawn_before.Restore();
          std::vector<at::Tensor> values;
          auto next = coalition.begin();
          for (const PreparedInput& input : prepared.inputs) {
            values.push_back(input.kind == Split::Kind::kPlain ? input.value : *next++);
          }
          return run(values);
        },
        compositions);
    RequireSameRun(*asked.model, first, found.value(), of_inputs);
    after->Restore();
    return found;
  } catch (...) {
    after->Restore();
    throw;
  }
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_model_load(const char* path, int32_t dtype, addend_model** out_model) noexcept {
  return Guard([&] {
    const std::string name = Text(path, "path");
    RequireOut(out_model, "out_model");
    RequireLibTorch();
    const TracingPause pause;
    const ScriptOptions options = ScriptOptionsOf(dtype);
    ModelSource source;
    source.sha256 = LazyDigest::OfFile(name);
    source.dtype = options.dtype;
    Give(out_model, BodyFor(LoadModel(name, options), name, std::move(source)));
  });
}

ADDEND_API addend_status* addend_model_load_bytes(const void* data, size_t size, int32_t dtype,
                                                  addend_model** out_model) noexcept {
  return Guard([&] {
    RequireArray(data, size, "data");
    RequireOut(out_model, "out_model");
    RequireLibTorch();
    const TracingPause pause;
    const ScriptOptions options = ScriptOptionsOf(dtype);
    std::shared_ptr<Model> loaded = LoadModelBytes(data, size, "data", options);
    ModelSource source;
    source.sha256 = LazyDigest::OfBytes(data, size);
    source.dtype = options.dtype;
    Give(out_model, BodyFor(std::move(loaded), "", std::move(source)));
  });
}

ADDEND_API addend_status* addend_model_sha256(const char* path, addend_string** out_sha256) noexcept {
  return Guard([&] {
    const std::string name = Text(path, "path");
    RequireOut(out_sha256, "out_sha256");
    RequireLibTorch();
    Give(out_sha256, Sha256OfModel(name));
  });
}

ADDEND_API addend_status* addend_model_to(const addend_model* model, int32_t dtype, const char* device,
                                          addend_model** out_copy) noexcept {
  return Guard([&] {
    const ModelBody& body = Get(model, "model");
    RequireOut(out_copy, "out_copy");
    RequireLibTorch();
    const TracingPause pause;
    const ScriptOptions options = ScriptOptionsOf(dtype);
    const at::Device where = device == nullptr ? DeviceOf(*body.model) : at::Device(Text(device, "device"));
    ModelSource source = *body.source;
    if (options.dtype) source.dtype = options.dtype;
    Give(out_copy, BodyFor(body.model->To(where, options.dtype), body.path, std::move(source)));
  });
}

ADDEND_API addend_status* addend_model_methods(const addend_model* model, const char* methods,
                                               addend_model** out_model) noexcept {
  return Guard([&] {
    const ModelBody& body = Get(model, "model");
    const std::vector<std::string> names = absl::StrSplit(Text(methods, "methods"), ',');
    RequireOut(out_model, "out_model");
    const TracingPause pause;
    ModelSource source = *body.source;
    source.methods = names;
    Give(out_model, BodyFor(MethodsOf(*body.model, names), body.path, std::move(source)));
  });
}

ADDEND_API size_t addend_model_num_inputs(const addend_model* model) noexcept {
  const ModelBody* body = Peek(model);
  return body == nullptr ? 0 : body->input_names.size();
}

ADDEND_API const char* addend_model_input_name(const addend_model* model, size_t index) noexcept {
  const ModelBody* body = Peek(model);
  return body == nullptr || index >= body->input_names.size() ? nullptr : body->input_names[index].c_str();
}

ADDEND_API addend_status* addend_model_run(const addend_model* model, const addend_request* request,
                                           addend_results** out_results) noexcept {
  return Guard([&] {
    const ModelRun run(nullptr, model, request, out_results, "out_results");
    const AskedModel asked = AskedOf(run.model, run.request);
    Give(out_results, OutputsOf(TracedModel(asked.model).Run(CopiesOf(asked.inputs))), nullptr);
  });
}

ADDEND_API addend_status* addend_model_decompose(const addend_context* context, const addend_model* model,
                                                 const addend_request* request, addend_results** out_results) noexcept {
  return Guard(DetailOf(context), [&] {
    const ModelRun run(context, model, request, out_results, "out_results");
    auto [traced, inputs, structure] = AskedOf(run.model, run.request);
    RequireOneBaseline(inputs);
    DecomposeOptions options = OptionsOf(run.context, run.request);
    options.references = ReferencesFor(run.model, run.request);
    Decomposition decomposition = TracedModel(traced).Decompose(InputsOf(inputs), options);
    KeepInputs([&model = traced] { return model->NamedTensors(); }, inputs);
    ResultsBody results = ResultsOf(std::move(decomposition), inputs, run.context.policy.preset, run.model.path);
    LogNotes(run.context, results.run->report);
    Give(out_results, std::move(results));
  });
}

ADDEND_API addend_status* addend_model_forget_references(const addend_model* model) noexcept {
  return Guard([&] { Get(model, "model").references->Clear(); });
}

ADDEND_API addend_status* addend_model_shapley(const addend_model* model, const addend_request* request,
                                               addend_composition** out_composition) noexcept {
  return Guard([&] {
    const ModelRun run(nullptr, model, request, out_composition, "out_composition");
    Give(out_composition, ExactShapley(run.model, run.request));
  });
}

ADDEND_API addend_status* addend_model_record(const addend_model* model, const addend_request* request,
                                              addend_program** out_program) noexcept {
  return Guard([&] {
    const ModelRun run(nullptr, model, request, out_program, "out_program", ModelRun::Examples::kAny);
    Model& own = *run.model.model;
    const std::vector<std::vector<c10::IValue>> examples = ExamplesOf(run.model.input_names, run.request);
    const RecordOptions options = RecordOptionsOf(run.model);
    const bool learn = examples.size() > 1 || run.request.learn_sizes;
    const Recording recording = learn ? RecordSizes(own, examples, options) : Record(own, examples[0], options);
    Give(out_program, ProgramOf(recording.program, run.model.path));
  });
}

ADDEND_API addend_status* addend_model_check_trace(const addend_model* model, const addend_request* request,
                                                   const char* options, addend_string** out_json) noexcept {
  return Guard([&] {
    const ModelRun run(nullptr, model, request, out_json, "out_json", ModelRun::Examples::kAny);
    CheckOptions checks = CheckOptionsOf(options);
    checks.inputs = ExamplesOf(run.model.input_names, run.request);
    const std::vector<c10::IValue> first = checks.inputs[0];
    checks.inputs.erase(checks.inputs.begin());
    Give(out_json, Dump(FindingsRecord(CheckTrace(*run.model.model, first, checks, RecordOptionsOf(run.model)))));
  });
}

ADDEND_API addend_status* addend_model_requirements(const addend_context* context, const addend_model* model,
                                                    const addend_request* request, addend_string** out_json) noexcept {
  return Guard(DetailOf(context), [&] {
    const ContextBody& own = ContextOf(context);
    const ModelBody& body = Get(model, "model");
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_json, "out_json");
    RequireLibTorch();
    RequireOneExample(asked);
    const TracingPause pause;
    const Registry& rules = RulesOf(own);
    const std::vector<c10::IValue> inputs = ExamplesOf(body.input_names, asked)[0];
    Give(out_json, Dump(RequirementsRecord(body.program == nullptr ? UnmetRequirements(*body.model, inputs, rules)
                                                                   : UnmetRequirements(*body.program, inputs, rules))));
  });
}

ADDEND_API void addend_model_release(addend_model* model) noexcept { Release(model); }

}  // extern "C"

}  // namespace addend::c_api
