// Plans: attributions made ready for many rows.
#include "c_api/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/attribution.h"
#include "c_api/run.h"
#include "c_api/structure.h"
#include "core/base/tensor_text.h"

namespace addend::c_api {
namespace {

// The values of a request in the order of the plan's inputs.
std::vector<at::Tensor> ValuesOf(const PlanBody& body, const RequestBody& request) {
  const std::shared_ptr<const RequestStructure> structure = StructureOfExample(request);
  const std::vector<RequestInput> inputs =
      structure == nullptr ? Arrange(body.input_names, request.inputs) : request.inputs;
  std::vector<at::Tensor> values;
  for (const RequestInput& input : inputs) values.push_back(input.input.value);
  if (structure == nullptr && body.structure == nullptr) return values;
  const RequestStructure alone = TensorsAlone(structure == nullptr ? values.size() : body.inputs.size());
  const RequestStructure& planned = body.structure == nullptr ? alone : *body.structure;
  const RequestStructure& given = structure == nullptr ? alone : *structure;
  std::vector<at::Tensor> placed;
  for (const int input : InPlacesOf(planned, given, values.size(), body.input_names)) placed.push_back(values[input]);
  return placed;
}

Attribution AttributionBy(const PlanBody& body, const RequestBody& request, const std::vector<at::Tensor>& values) {
  RequireReadyForOne(request);
  SetCallbackNumber(0);
  const WarningsToLog warnings(body.context.log);
  return body.plan->Attribute(values, OptionsOf(body.context, request).progress);
}

// Only the caller's own memory is written: a copy would be of no use to them, and results are there to be read.
void RequireLent(const addend_tensor* tensor, const char* name) {
  if (Get(tensor, name).lent) return;
  throw InvalidArgument(absl::StrCat(
      name,
      " is no memory of the caller's that may be written; it takes a tensor of addend_tensor_wrap, or one that "
      "came by DLPack and is not for reading only"));
}

// A tensor of the caller's that gets `count` numbers for each target.
double* Room(const addend_tensor* tensor, const char* name, size_t targets, size_t count) {
  const at::Tensor& room = TensorOf(tensor, name);
  const auto numel = static_cast<int64_t>(targets * count);
  if (!room.device().is_cpu() || room.scalar_type() != at::kDouble || !room.is_contiguous() || room.numel() != numel) {
    throw InvalidArgument(absl::StrCat(name, " is ", TensorText(room), "; it gets float64 numbers, ", targets,
                                       " times ", count, ", in a contiguous tensor on the CPU"));
  }
  return room.data_ptr<double>();
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_model_plan(const addend_context* context, const addend_model* model,
                                            const addend_request* request, addend_plan** out_plan) noexcept {
  return Guard(DetailOf(context), [&] {
    const ModelRun run(context, model, request, out_plan, "out_plan");
    auto [traced, inputs, structure] = AskedOf(run.model, run.request);
    RequireOneBaseline(inputs);
    const AttributeOptions options = AttributeOptionsOf(run.context, run.request);
    PlanBody made;
    KeepInputs([&model = traced] { return model->NamedTensors(); }, inputs);
    made.plan = AttributionPlan::Make(traced, InputsOf(inputs), options);
    made.asked = options;
    made.asked.progress = nullptr;
    made.inputs = std::move(inputs);
    made.context = run.context;
    made.model_path = run.model.path;
    made.source = run.model.source;
    made.structure = std::move(structure);
    made.input_names = run.model.input_names;
    Give(out_plan, std::move(made));
  });
}

ADDEND_API addend_status* addend_plan_attribute(const addend_plan* plan, const addend_request* request,
                                                addend_attribution** out_attribution) noexcept {
  return Guard([&] {
    const PlanBody& body = Get(plan, "plan");
    const RequestBody& asked = Get(request, "request");
    RequireOut(out_attribution, "out_attribution");
    const std::vector<at::Tensor> values = ValuesOf(body, asked);
    Attribution found = AttributionBy(body, asked, values);
    std::vector<RequestInput> inputs = body.inputs;
    KeepValues(values, inputs);
    AttributionBody made =
        AttributionOf(std::move(found), body.asked, std::move(inputs), body.context, body.model_path);
    made.structured = body.structure != nullptr;
    made.source = body.source;
    if (!made.structured) made.input_names = body.input_names;
    Give(out_attribution, std::move(made));
  });
}

ADDEND_API addend_status* addend_plan_attribute_into(const addend_plan* plan, const addend_request* request,
                                                     const addend_tensor* contributions,
                                                     const addend_tensor* sums) noexcept {
  return Guard([&] {
    const PlanBody& body = Get(plan, "plan");
    const RequestBody& asked = Get(request, "request");
    RequireLent(contributions, "contributions");
    if (sums != nullptr) RequireLent(sums, "sums");
    const Attribution found = AttributionBy(body, asked, ValuesOf(body, asked));
    if (!found.report.failures.empty()) {
      throw Internal("the parts of a target do not add up; addend_plan_attribute gives the report");
    }
    const size_t targets = found.targets.size();
    double* parts = Room(contributions, "contributions", targets, static_cast<size_t>(found.numc));
    double* sum = sums == nullptr ? nullptr : Room(sums, "sums", targets, 3);
    for (const Contributions& target : found.targets) {
      parts = std::copy(target.contributions.begin(), target.contributions.end(), parts);
      if (sum == nullptr) continue;
      *sum++ = target.value;
      *sum++ = target.reference;
      *sum++ = target.leftover;
    }
  });
}

ADDEND_API void addend_plan_release(addend_plan* plan) noexcept { Release(plan); }

}  // extern "C"

}  // namespace addend::c_api
