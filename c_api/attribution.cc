// Attributions: numbers, and what each element of the inputs gave to them.
#include "c_api/attribution.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/explanation.h"
#include "c_api/give_text.h"
#include "c_api/run.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {

AttributeOptions AttributeOptionsOf(const ContextBody& context, const RequestBody& request) {
  AttributeOptions options;
  static_cast<RunOptions&>(options) = OptionsOf(context, request);
  if (!request.targets.empty()) options.targets = request.targets;
  return options;
}

AttributionBody AttributionOf(Attribution attribution, const AttributeOptions& asked, std::vector<RequestInput> inputs,
                              const ContextBody& context, const std::string& model_path) {
  AttributionBody made;
  made.attribution = std::move(attribution);
  made.at = asked.at.empty() && asked.outputs.empty() ? "" : made.attribution.name;
  made.asked = asked;
  // Who asks again asks for that tensor.
  made.asked.at = made.at;
  made.asked.outputs.clear();
  made.asked.progress = nullptr;
  made.asked.references = nullptr;
  made.asked.registry = nullptr;
  made.own_rules = asked.registry != nullptr;
  made.run = RecordOf(std::move(made.attribution.report), made.attribution.numc, std::move(inputs),
                      made.attribution.inside, context.policy.preset, model_path);
  LogNotes(context, made.run->report);
  return made;
}

Explanation AllOf(const AttributionBody& body) {
  Explanation explanation = Explain(body.attribution, body.asked.operators, body.at, body.run);
  for (size_t t = 0; t < body.spread.size(); ++t) explanation.targets[t].spread = body.spread[t];
  return explanation;
}

namespace {

Explanation OneOf(const AttributionBody& body, size_t target) {
  const Attribution& attribution = body.attribution;
  Explanation explanation;
  explanation.run = body.run;
  explanation.at = body.at;
  if (body.asked.each_example) {
    // All examples of the first target come first.
    const auto examples = static_cast<size_t>(attribution.value.size(0));
    explanation.example = BatchExample{target % examples, examples};
  }
  explanation.targets.push_back(
      DescribeTarget(attribution.value, body.at, body.run->classes, attribution.targets[target]));
  if (!body.spread.empty()) explanation.targets[0].spread = body.spread[target];
  return explanation;
}

// Baselines by input; empty if no input has several.
std::vector<SeveralBaselines> SeveralOf(const std::vector<RequestInput>& inputs) {
  std::vector<SeveralBaselines> several;
  bool any = false;
  for (const RequestInput& own : inputs) {
    several.push_back(own.several);
    any = any || own.several.given();
  }
  return any ? several : std::vector<SeveralBaselines>();
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_model_attribute(const addend_context* context, const addend_model* model,
                                                 const addend_request* request,
                                                 addend_attribution** out_attribution) noexcept {
  return Guard(DetailOf(context), [&] {
    const ModelRun run(context, model, request, out_attribution, "out_attribution");
    auto [traced, inputs, structure] = AskedOf(run.model, run.request);
    AttributeOptions options = AttributeOptionsOf(run.context, run.request);
    options.references = ReferencesFor(run.model, run.request);
    const std::vector<SeveralBaselines> several = SeveralOf(inputs);
    BaselinesAttribution found;
    if (several.empty()) {
      found.mean = Attribute(TracedModel(traced), InputsOf(inputs), options);
    } else {
      found = AttributeBaselines(TracedModel(traced), InputsOf(inputs), several, options);
    }
    KeepInputs([&model = traced] { return model->NamedTensors(); }, inputs);
    AttributionBody made = AttributionOf(std::move(found.mean), options, inputs, run.context, run.model.path);
    made.spread = std::move(found.spread);
    made.structured = structure != nullptr;
    made.source = run.model.source;
    if (!made.structured) made.input_names = run.model.input_names;
    Give(out_attribution, std::move(made));
  });
}

ADDEND_API size_t addend_attribution_num_targets(const addend_attribution* attribution) noexcept {
  const AttributionBody* body = Peek(attribution);
  return body == nullptr ? 0 : body->attribution.targets.size();
}

ADDEND_API addend_status* addend_attribution_explain(const addend_attribution* attribution, size_t target,
                                                     addend_explanation** out_explanation) noexcept {
  return Guard([&] {
    const AttributionBody& body = Get(attribution, "attribution");
    RequireOut(out_explanation, "out_explanation");
    if (target >= body.attribution.targets.size()) {
      throw Error(absl::StatusCode::kOutOfRange,
                  absl::StrCat("target is ", target, ", but there are ", body.attribution.targets.size()));
    }
    const TracingPause pause;
    Give(out_explanation, OneOf(body, target));
  });
}

ADDEND_API addend_status* addend_attribution_results(const addend_attribution* attribution,
                                                     addend_results** out_results) noexcept {
  return Guard([&] {
    const AttributionBody& body = Get(attribution, "attribution");
    RequireOut(out_results, "out_results");
    const TracingPause pause;
    ResultsBody results;
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      results.entries.push_back({name, std::nullopt, tensor.defined() ? tensor.detach() : tensor, std::nullopt});
    };
    add(body.attribution.name, body.attribution.value);
    for (size_t k = 0; k < body.attribution.inputs.size(); ++k) {
      add(body.run->inputs[k].name, body.attribution.inputs[k]);
    }
    results.run = body.run;
    Give(out_results, std::move(results));
  });
}

ADDEND_API addend_status* addend_attribution_json(const addend_attribution* attribution,
                                                  addend_string** out_json) noexcept {
  return GiveText(attribution, "attribution", out_json, "out_json",
                  [](const auto& own) { return Dump(ExplanationJson(AllOf(own), ThisLibrary())); });
}

ADDEND_API addend_status* addend_attribution_html(const addend_attribution* attribution,
                                                  addend_string** out_html) noexcept {
  return GiveText(attribution, "attribution", out_html, "out_html",
                  [](const auto& own) { return ExplanationHtml(AllOf(own), ThisLibrary()); });
}

ADDEND_API void addend_attribution_release(addend_attribution* attribution) noexcept { Release(attribution); }

}  // extern "C"

}  // namespace addend::c_api
