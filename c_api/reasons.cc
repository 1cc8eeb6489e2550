// Reasons of decisions and interactions of groups, told in concepts.
#include "core/document/reasons.h"

#include "c_api/attribution.h"
#include "c_api/explanation.h"
#include "c_api/run.h"
#include "core/document/interactions_json.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {

struct ConceptsBody {
  Concepts concepts;
};

extern "C" {

ADDEND_API addend_status* addend_concepts_read(const char* json, addend_concepts** out_concepts) noexcept {
  return Guard([&] {
    const std::string text = Text(json, "json");
    RequireOut(out_concepts, "out_concepts");
    Give(out_concepts, ReadConcepts(text));
  });
}

ADDEND_API void addend_concepts_release(addend_concepts* concepts) noexcept { Release(concepts); }

ADDEND_API addend_status* addend_attribution_reasons(const addend_attribution* attribution,
                                                     const addend_concepts* concepts,
                                                     addend_string** out_json) noexcept {
  return Guard([&] {
    const AttributionBody& body = Get(attribution, "attribution");
    const Concepts& own = Get(concepts, "concepts").concepts;
    RequireOut(out_json, "out_json");
    const TracingPause pause;
    Give(out_json, Dump(ReasonsJson(FindReasons(body.attribution, body.asked.each_example, body.at, *body.run, own,
                                                ThisLibrary()))));
  });
}

ADDEND_API addend_status* addend_explanation_reasons(const addend_explanation* explanation,
                                                     const addend_concepts* concepts,
                                                     addend_string** out_json) noexcept {
  return Guard([&] {
    const ExplanationBody& body = Get(explanation, "explanation");
    const Concepts& own = Get(concepts, "concepts").concepts;
    RequireOut(out_json, "out_json");
    const TracingPause pause;
    Give(out_json, Dump(ReasonsJson(FindReasons(body.explanation, own, ThisLibrary()))));
  });
}

ADDEND_API addend_status* addend_reasons_html(const char* json, addend_string** out_html) noexcept {
  return Guard([&] {
    const std::string text = Text(json, "json");
    RequireOut(out_html, "out_html");
    Give(out_html, ReasonsHtml(text));
  });
}

ADDEND_API addend_status* addend_model_interactions(const addend_context* context, const addend_model* model,
                                                    const addend_request* request, const addend_concepts* concepts,
                                                    addend_string** out_json) noexcept {
  return Guard(DetailOf(context), [&] {
    const ModelRun run(context, model, request, out_json, "out_json");
    const Concepts each_component;
    const Concepts& described = concepts == nullptr ? each_component : Get(concepts, "concepts").concepts;
    const auto [traced, inputs, structure] = AskedOf(run.model, run.request);
    RequireOneBaseline(inputs);
    const AttributeOptions options = AttributeOptionsOf(run.context, run.request);
    const std::vector<Input> asked = InputsOf(inputs);
    const PreparedInputs prepared = Prepare(asked, traced->NamedTensors());
    // Names come from the inputs alone.
    const auto named = RecordOf(Report(), prepared.numc, inputs, {}, run.context.policy.preset, run.model.path);
    std::vector<std::string> names;
    for (const Component& component : named->components.list) names.push_back(component.name);
    const std::vector<BoundConcept> bound = BindConcepts(described, names);
    Interactions found = AttributeInteractions(TracedModel(traced), asked, GroupsOf(bound, names.size()), options);
    const auto record = RecordOf(std::move(found.attribution.report), prepared.numc, inputs, {},
                                 run.context.policy.preset, run.model.path);
    LogNotes(run.context, record->report);
    Give(out_json, Dump(InteractionsJson(found, bound, *record, options.at, ThisLibrary())));
  });
}

ADDEND_API addend_status* addend_interactions_html(const char* json, addend_string** out_html) noexcept {
  return Guard([&] {
    const std::string text = Text(json, "json");
    RequireOut(out_html, "out_html");
    Give(out_html, InteractionsHtml(text));
  });
}

}  // extern "C"

}  // namespace addend::c_api
