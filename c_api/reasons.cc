// Reasons of decisions, told in concepts.
#include "core/document/reasons.h"

#include "c_api/attribution.h"
#include "c_api/explanation.h"
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
    Give(out_json,
         Dump(ReasonsJson(FindReasons(body.attribution, body.each_example, body.at, *body.run, own, ThisLibrary()))));
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

}  // extern "C"

}  // namespace addend::c_api
