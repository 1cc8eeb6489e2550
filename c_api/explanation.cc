// Explanations: one number and what it is made of.
#include "c_api/explanation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "c_api/give_text.h"
#include "core/base/json.h"
#include "core/document/svg.h"

namespace addend::c_api {

ExplanationBody::ExplanationBody(Explanation made)
    : explanation(std::move(made)), target(DescribeElements(explanation.targets.at(0).numbers.target)) {
  const std::vector<double>& contributions = explanation.targets[0].numbers.contributions;
  for (size_t i = 0; i < contributions.size(); ++i) names.push_back(NameOf(explanation, static_cast<int64_t>(i)));
  ranking.resize(contributions.size());
  std::iota(ranking.begin(), ranking.end(), 0);
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](int64_t a, int64_t b) { return std::abs(contributions[a]) > std::abs(contributions[b]); });
}

const Writer& ThisLibrary() {
  static const auto& writer = *new Writer{addend_version(), "", addend_libtorch_version()};
  return writer;
}

namespace {

double SpreadAt(const addend_explanation* explanation, int64_t component,
                std::vector<double> BaselineSpread::*numbers) noexcept {
  const ExplanationBody* body = Peek(explanation);
  if (body == nullptr || !body->explanation.targets[0].spread) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double>& all = (*body->explanation.targets[0].spread).*numbers;
  const bool known = component >= 0 && component < static_cast<int64_t>(all.size());
  return known ? all[component] : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

extern "C" {

ADDEND_API double addend_explanation_number(const addend_explanation* explanation, int32_t number) noexcept {
  const ExplanationBody* body = Peek(explanation);
  if (body == nullptr) return std::numeric_limits<double>::quiet_NaN();
  const Contributions& numbers = body->explanation.targets[0].numbers;
  switch (number) {
    case ADDEND_NUMBER_VALUE:
      return numbers.value;
    case ADDEND_NUMBER_REFERENCE:
      return numbers.reference;
    case ADDEND_NUMBER_LEFTOVER:
      return numbers.leftover;
    case ADDEND_NUMBER_RECOVERY:
      return numbers.recovery;
    case ADDEND_NUMBER_RECOVERY_ERROR:
      return body->explanation.targets[0].recovery_error();
    case ADDEND_NUMBER_CONDITIONING:
      return numbers.conditioning;
    case ADDEND_NUMBER_MASS:
      return numbers.mass;
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

ADDEND_API const char* addend_explanation_target(const addend_explanation* explanation) noexcept {
  const ExplanationBody* body = Peek(explanation);
  return body == nullptr ? nullptr : body->target.c_str();
}

ADDEND_API int64_t addend_explanation_numc(const addend_explanation* explanation) noexcept {
  const ExplanationBody* body = Peek(explanation);
  return body == nullptr ? 0 : static_cast<int64_t>(body->names.size());
}

ADDEND_API double addend_explanation_contribution(const addend_explanation* explanation, int64_t component) noexcept {
  if (component < 0 || component >= addend_explanation_numc(explanation)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return Peek(explanation)->explanation.targets[0].numbers.contributions[component];
}

ADDEND_API int64_t addend_explanation_num_baselines(const addend_explanation* explanation) noexcept {
  const ExplanationBody* body = Peek(explanation);
  if (body == nullptr) return 0;
  const std::optional<BaselineSpread>& spread = body->explanation.targets[0].spread;
  return spread ? spread->count : 1;
}

ADDEND_API double addend_explanation_standard_error(const addend_explanation* explanation, int64_t component) noexcept {
  return SpreadAt(explanation, component, &BaselineSpread::standard_errors);
}

ADDEND_API double addend_explanation_same_sign(const addend_explanation* explanation, int64_t component) noexcept {
  return SpreadAt(explanation, component, &BaselineSpread::same_sign);
}

ADDEND_API const char* addend_explanation_name(const addend_explanation* explanation, int64_t component) noexcept {
  if (component < 0 || component >= addend_explanation_numc(explanation)) return nullptr;
  return Peek(explanation)->names[component].c_str();
}

ADDEND_API int64_t addend_explanation_ranked(const addend_explanation* explanation, int64_t rank) noexcept {
  if (rank < 0 || rank >= addend_explanation_numc(explanation)) return -1;
  return Peek(explanation)->ranking[rank];
}

ADDEND_API addend_status* addend_explanation_json(const addend_explanation* explanation,
                                                  addend_string** out_json) noexcept {
  return GiveText(explanation, "explanation", out_json, "out_json", [](const auto& own) {
    const std::string& stored = own.explanation.stored;
    return stored.empty() ? Dump(ExplanationJson(own.explanation, ThisLibrary())) : stored;
  });
}

ADDEND_API addend_status* addend_explanation_html(const addend_explanation* explanation,
                                                  addend_string** out_html) noexcept {
  return GiveText(explanation, "explanation", out_html, "out_html",
                  [](const auto& own) { return ExplanationHtml(own.explanation, ThisLibrary()); });
}

ADDEND_API addend_status* addend_explanation_svg(const addend_explanation* explanation,
                                                 addend_string** out_svg) noexcept {
  return GiveText(explanation, "explanation", out_svg, "out_svg",
                  [](const auto& own) { return ExplanationSvg(own.explanation); });
}

ADDEND_API addend_status* addend_explanation_read(const char* json, addend_explanation** out_explanation) noexcept {
  return Guard([&] {
    const std::string text = Text(json, "json");
    RequireOut(out_explanation, "out_explanation");
    Give(out_explanation, ReadExplanation(text));
  });
}

ADDEND_API void addend_explanation_release(addend_explanation* explanation) noexcept { Release(explanation); }

}  // extern "C"

}  // namespace addend::c_api
