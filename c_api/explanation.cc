// Explanations: one number and what it is made of.
#include "c_api/explanation.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/json.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {
namespace {

std::string Shown(const std::vector<int64_t>& index) { return absl::StrCat("[", absl::StrJoin(index, ", "), "]"); }

// The position along some dimensions of the component with this number, the last dimension fastest.
std::string PositionName(const Input& input, int64_t component) {
  std::vector<int64_t> position(input.split.dims.size());
  for (size_t k = position.size(); k > 0; --k) {
    const int64_t dim = input.split.dims[k - 1];
    const int64_t size = input.value.size(dim);
    position[k - 1] = component % size;
    component /= size;
  }
  return Shown(position);
}

std::string DefaultName(int64_t component) { return absl::StrCat("component ", component); }

}  // namespace

std::vector<std::string> ComponentNames(const std::vector<RequestInput>& inputs, int64_t numc) {
  std::vector<std::string> names(numc);
  // Positions tell components apart in one input only.
  const auto along_dims = std::count_if(
      inputs.begin(), inputs.end(), [](const RequestInput& own) { return own.input.split.kind == Split::Kind::kDims; });
  int64_t next = 0;
  for (const RequestInput& own : inputs) {
    const int64_t count = NumComponents(own.input);
    const int64_t first = own.input.first_component >= 0 ? own.input.first_component : next;
    if (static_cast<int64_t>(own.names.size()) > count) {
      throw InvalidArgument(
          absl::StrCat(own.input.name, " has ", count, " components, but ", own.names.size(), " names"));
    }
    const std::string prefix = along_dims > 1 ? absl::StrCat(own.input.name, " ") : "";
    for (int64_t i = 0; i < count && first + i < numc; ++i) {
      std::string& name = names[first + i];
      if (!name.empty()) continue;
      if (i < static_cast<int64_t>(own.names.size())) {
        name = own.names[i];
      } else if (own.input.split.kind == Split::Kind::kDims) {
        name = prefix + PositionName(own.input, i);
      }
    }
    next = std::max(next, first + count);
  }
  for (int64_t i = 0; i < numc; ++i) {
    if (names[i].empty()) names[i] = DefaultName(i);
  }
  return names;
}

namespace {

// What follows from the numbers: the target as text and the ranking.
void Complete(ExplanationBody& body) {
  body.target = Shown(body.numbers.index);
  if (!body.numbers.subtract.empty()) absl::StrAppend(&body.target, " minus ", Shown(body.numbers.subtract));
  const std::vector<double>& contributions = body.numbers.contributions;
  body.ranking.resize(contributions.size());
  std::iota(body.ranking.begin(), body.ranking.end(), 0);
  std::stable_sort(body.ranking.begin(), body.ranking.end(),
                   [&](int64_t a, int64_t b) { return std::abs(contributions[a]) > std::abs(contributions[b]); });
}

// A number of a record; JSON has no other than finite ones.
double NumberIn(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

// `operators`: how many there were on the way to the value.
ExplanationBody Explain(Contributions numbers, at::ScalarType dtype, int64_t operators, const std::string& at,
                        std::shared_ptr<const RunRecord> run) {
  ExplanationBody body;
  body.numbers = std::move(numbers);
  body.at = at;
  const std::vector<double>& contributions = body.numbers.contributions;
  body.tolerance =
      RecoveryAllowance(body.numbers, dtype, operators, run == nullptr ? std::nullopt : run->report.policy.tolerance);
  if (run != nullptr && run->names.size() == contributions.size()) {
    body.names = run->names;
  } else {
    for (size_t i = 0; i < contributions.size(); ++i) body.names.push_back(DefaultName(static_cast<int64_t>(i)));
  }
  Complete(body);
  body.run = std::move(run);
  return body;
}

}  // namespace

ExplanationBody Explain(const Composition& composition, const std::string& target, const std::string& at,
                        std::shared_ptr<const RunRecord> run) {
  const TracingPause pause;
  const int64_t operators = run == nullptr ? composition.origin().depth : run->report.operators;
  return Explain(Contribute(composition.value(), composition, ParseTarget(target)), composition.dtype(), operators, at,
                 std::move(run));
}

ExplanationBody Explain(Contributions numbers, at::ScalarType dtype, const std::string& at,
                        std::shared_ptr<const RunRecord> run) {
  const int64_t operators = run->report.operators;
  return Explain(std::move(numbers), dtype, operators, at, std::move(run));
}

ExplanationBody ReadExplanation(const std::string& json) {
  const auto refused = [] { return InvalidArgument("json is no explanation as addend_explanation_json gives it"); };
  ExplanationBody body;
  try {
    const Json record = Json::parse(json);
    const Json& targets = record.at("targets");
    if (!targets.is_array() || targets.size() != 1) throw refused();
    const Json& target = targets[0];
    Contributions& numbers = body.numbers;
    numbers.index = target.at("index").get<std::vector<int64_t>>();
    if (!target.at("subtract").is_null()) numbers.subtract = target["subtract"].get<std::vector<int64_t>>();
    for (const Json& part : target.at("contributions")) numbers.contributions.push_back(NumberIn(part));
    numbers.value = NumberIn(target.at("value"));
    numbers.reference = NumberIn(target.at("reference"));
    numbers.leftover = NumberIn(target.at("leftover"));
    numbers.recovery = NumberIn(target.at("recovery"));
    numbers.conditioning = NumberIn(target.at("conditioning"));
    numbers.mass = NumberIn(target.at("mass"));
    body.tolerance = NumberIn(target.at("tolerance"));
    if (!record.at("at").is_null()) body.at = record["at"].get<std::string>();
    for (const Json& component : record.at("components")) body.names.push_back(component.at("name").get<std::string>());
  } catch (const Json::exception&) {
    throw refused();
  }
  if (body.names.size() != body.numbers.contributions.size()) throw refused();
  Complete(body);
  body.record = json;
  return body;
}

extern "C" {

ADDEND_API double addend_explanation_number(const addend_explanation* explanation, int32_t number) noexcept {
  const ExplanationBody* body = Peek(explanation);
  if (body == nullptr) return std::numeric_limits<double>::quiet_NaN();
  const Contributions& numbers = body->numbers;
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
      return numbers.recovery - numbers.value;
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
  return Peek(explanation)->numbers.contributions[component];
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
  return Guard([&] {
    const ExplanationBody& body = Get(explanation, "explanation");
    RequireOut(out_json, "out_json");
    const TracingPause pause;
    Give(out_json, ExplanationJson(body));
  });
}

ADDEND_API addend_status* addend_explanation_html(const addend_explanation* explanation,
                                                  addend_string** out_html) noexcept {
  return Guard([&] {
    const ExplanationBody& body = Get(explanation, "explanation");
    RequireOut(out_html, "out_html");
    const TracingPause pause;
    Give(out_html, ExplanationPage(body));
  });
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
