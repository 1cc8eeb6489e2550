// Models from TorchScript files.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/run.h"
#include "c_api/warnings.h"
#include "core/explain/decompose.h"
#include "core/explain/shapley.h"
#include "core/explain/torchscript.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/recorder.h"

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

ModelBody BodyFor(std::shared_ptr<Model> model, std::string path) {
  ModelBody body;
  body.input_names = InputNames(*model);
  body.model = std::move(model);
  body.path = std::move(path);
  return body;
}

// The inputs of a request in the order of the model's arguments: those with a name where it says, the others in the
// places that are left.
std::vector<RequestInput> Arrange(const ModelBody& model, const std::vector<RequestInput>& inputs) {
  const std::vector<std::string>& names = model.input_names;
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

std::vector<ResultEntry> Run(const ModelBody& model, const std::vector<RequestInput>& inputs) {
  std::vector<at::Tensor> values;
  // The model may write its inputs.
  for (const RequestInput& input : inputs) values.push_back(input.input.value.clone());
  std::vector<ResultEntry> entries;
  ForEachTensor(Trace(model.model).Run(values), [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const std::string name = entries.empty() ? "output" : absl::StrCat("output.", entries.size());
    entries.push_back({name, std::nullopt, tensor.detach(), std::nullopt});
  });
  return entries;
}

at::Tensor FirstNumbers(const c10::IValue& result) {
  at::Tensor first;
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (!first.defined() && tensor.defined() && Continuous(tensor.scalar_type())) first = tensor;
  });
  if (!first.defined()) throw InvalidArgument("the model gives no floating-point or complex tensor");
  return first;
}

Composition ExactShapley(const ModelBody& model, const RequestBody& request) {
  const PreparedInputs prepared = Prepare(InputsOf(Arrange(model, request.inputs)));
  if (prepared.numc > kMostShapleyComponents) {
    throw InvalidArgument(absl::StrCat("there are ", prepared.numc,
                                       " components, and exact Shapley values take at most ", kMostShapleyComponents));
  }
  std::vector<Composition> compositions;
  for (const PreparedInput& input : prepared.inputs) {
    if (input.kind == Split::Kind::kPlain) continue;
    if (input.ids)
      throw Unimplemented("exact Shapley values of ids, which are no numbers; split what they are embedded as");
    compositions.push_back(input.parts.defined()
                               ? Composition(input.parts, input.reference)
                               : Composition::FromLabels(input.value, input.labels, input.reference, prepared.numc));
  }
  const TracedModel traced = Trace(model.model);
  return Shapley(
      [&](const std::vector<at::Tensor>& coalition) {
        RequireGoingOn(request);
        std::vector<at::Tensor> values;
        auto next = coalition.begin();
        for (const PreparedInput& input : prepared.inputs) {
          values.push_back(input.kind == Split::Kind::kPlain ? input.value.clone() : (next++)->clone());
        }
        return FirstNumbers(traced.Run(values));
      },
      compositions);
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_model_load(const char* path, int32_t dtype, addend_model** out_model) noexcept {
  return Guard([&] {
    const std::string name = Text(path, "path");
    RequireOut(out_model, "out_model");
    RequireLibTorch();
    const TracingPause pause;
    Give(out_model, BodyFor(LoadTorchScript(name, ScriptOptionsOf(dtype)), name));
  });
}

ADDEND_API addend_status* addend_model_load_bytes(const void* data, size_t size, int32_t dtype,
                                                  addend_model** out_model) noexcept {
  return Guard([&] {
    RequireArray(data, size, "data");
    RequireOut(out_model, "out_model");
    RequireLibTorch();
    const TracingPause pause;
    Give(out_model, BodyFor(LoadTorchScriptBytes(data, size, "data", ScriptOptionsOf(dtype)), ""));
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
    const ModelBody& body = Get(model, "model");
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_results, "out_results");
    RequireLibTorch();
    RequireNoTrace();
    RequireGoingOn(asked);
    const WarningsToLog warnings(ContextOf(nullptr).log);
    Give(out_results, Run(body, Arrange(body, asked.inputs)), nullptr);
  });
}

ADDEND_API addend_status* addend_model_decompose(const addend_context* context, const addend_model* model,
                                                 const addend_request* request, addend_results** out_results) noexcept {
  return Guard(DetailOf(context), [&] {
    const ContextBody& own = ContextOf(context);
    const ModelBody& body = Get(model, "model");
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_results, "out_results");
    RequireLibTorch();
    RequireNoTrace();
    RequireGoingOn(asked);
    SetCallbackNumber(0);
    const WarningsToLog warnings(own.log);
    const std::vector<RequestInput> inputs = Arrange(body, asked.inputs);
    ResultsBody results = ResultsOf(Trace(body.model).Decompose(InputsOf(inputs), OptionsOf(own, asked)), inputs,
                                    own.policy.preset, body.path);
    LogNotes(own, results.run->report);
    Give(out_results, std::move(results));
  });
}

ADDEND_API addend_status* addend_model_shapley(const addend_model* model, const addend_request* request,
                                               addend_composition** out_composition) noexcept {
  return Guard([&] {
    const ModelBody& body = Get(model, "model");
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_composition, "out_composition");
    RequireLibTorch();
    RequireNoTrace();
    const WarningsToLog warnings(ContextOf(nullptr).log);
    Give(out_composition, ExactShapley(body, asked));
  });
}

ADDEND_API void addend_model_release(addend_model* model) noexcept { Release(model); }

}  // extern "C"

}  // namespace addend::c_api
