#include "core/audit/request.h"

#include <map>
#include <string>
#include <utility>
#include <variant>

#include "core/audit/canonical_json.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/document/report_json.h"
#include "core/explain/baselines.h"
#include "core/explain/request.h"
#include "core/explain/target.h"

namespace addend {
namespace {

const char* SplitWord(Split::Kind kind) {
  switch (kind) {
    case Split::Kind::kPlain:
      return "plain";
    case Split::Kind::kDims:
      return "dims";
    case Split::Kind::kLabels:
      return "labels";
    default:
      return "parts";
  }
}

// A word that reads a file stands for the numbers that were read: the file may be another one later.
Json BaselineJson(const Input& input) {
  const Baseline& baseline = input.baseline;
  if (!baseline.given) return nullptr;
  if (baseline.tensor.defined()) return {{"tensor", TensorJson(baseline.tensor)}};
  if (!FileOfBaselineWord(baseline.word).empty()) {
    return {{"tensor", TensorJson(BaselineOfWord(baseline.word, input.value, {}))}};
  }
  if (!baseline.word.empty()) return {{"word", baseline.word}};
  return {{"number", RecordedNumber(baseline.number)}};
}

Json InputRequestJson(const Input& input) {
  const Split& split = input.split;
  const bool labels = split.kind == Split::Kind::kLabels;
  const bool dims = split.kind == Split::Kind::kDims;
  return {{"baseline", BaselineJson(input)},
          {"dims", dims ? Json(split.dims) : Json(nullptr)},
          {"first_component", input.first_component},
          {"inside", OrNull(input.inside)},
          {"labels", labels ? TensorJson(split.labels) : Json(nullptr)},
          {"split", SplitWord(split.kind)}};
}

Baseline BaselineOf(const Json& recorded, const c10::Device& device) {
  if (recorded.is_null()) return {};
  if (recorded.contains("word")) return Baseline::Named(recorded["word"].get<std::string>());
  if (recorded.contains("tensor")) return Baseline::Of(TensorOfJson(recorded["tensor"]).to(device));
  return Baseline::Of(NumberOf(recorded.at("number")));
}

Split SplitOf(const Json& recorded, const Json* argument, const c10::Device& device) {
  const std::string kind = recorded.at("split").get<std::string>();
  if (kind == "dims") return Split::AlongDims(recorded.at("dims").get<std::vector<int64_t>>());
  if (kind == "labels") return Split::ByLabels(TensorOfJson(recorded.at("labels")).to(device));
  if (kind == "plain") return Split::Plain();
  if (argument == nullptr || !argument->contains("parts")) {
    throw FailedPrecondition("its input was given in parts, which it does not hold");
  }
  return Split::Parts(TensorOfJson((*argument)["parts"]).to(device));
}

Json Encoded(const std::string& text) { return OrNull(text); }
Json Encoded(bool flag) { return flag; }
Json Encoded(int64_t bytes) { return bytes; }
Json Encoded(double seconds) { return RecordedNumber(seconds); }
Json Encoded(Direction direction) { return DirectionText(direction); }

void Decode(const Json& json, std::string* text) { *text = json.is_null() ? "" : json.get<std::string>(); }
void Decode(const Json& json, bool* flag) { *flag = json.get<bool>(); }
void Decode(const Json& json, int64_t* bytes) { *bytes = json.get<int64_t>(); }
void Decode(const Json& json, double* seconds) { *seconds = NumberOf(json); }
void Decode(const Json& json, Direction* direction) { *direction = ParseDirection(json.get<std::string>()); }

AttributeOptions OptionsOf(const Json& content) {
  AttributeOptions options;
  for (const auto& entry : content.at("policy").items()) {
    SetPolicyField(options.policy, entry.key(), entry.value().get<std::string>());
  }
  for (const RequestOption& option : RequestOptionTable()) {
    const bool recorded = option.record == RequestOption::Record::kAlways ||
                          (option.record == RequestOption::Record::kWhereSet && content.contains(option.key));
    if (!recorded) continue;
    std::visit([&](auto field) { Decode(content.at(option.key), &(options.*field)); }, option.field);
  }
  options.targets.clear();
  for (const Json& target : content.at("targets")) options.targets.push_back(ParseTarget(target.get<std::string>()));
  return options;
}

}  // namespace

Json RequestJson(const AskedRequest& request) {
  const AttributeOptions& options = request.options;
  Json policy = Json::object();
  for (const auto& [key, value] : DescribePolicy(options.policy)) policy[key] = value;
  Json targets = Json::array();
  for (const Target& target : options.targets) targets.push_back(TargetText(target));
  Json inputs = Json::array();
  for (const Input& input : request.inputs) inputs.push_back(InputRequestJson(input));
  // Plans of jobs are written in this order: by key, and what is there only where it is set behind it.
  std::map<std::string, Json> always = {{"inputs", std::move(inputs)},
                                        {"own_rules", request.own_rules},
                                        {"policy", std::move(policy)},
                                        {"structured", request.structured},
                                        {"targets", std::move(targets)}};
  std::map<std::string, Json> where_set;
  const RequestOptions defaults;
  for (const RequestOption& option : RequestOptionTable()) {
    if (option.record == RequestOption::Record::kNever) continue;
    std::visit(
        [&](auto field) {
          const bool is_always = option.record == RequestOption::Record::kAlways;
          if (!is_always && options.*field == defaults.*field) return;
          (is_always ? always : where_set)[option.key] = Encoded(options.*field);
        },
        option.field);
  }
  Json content = Json::object();
  for (const auto* part : {&always, &where_set}) {
    for (const auto& [key, value] : *part) content[key] = value;
  }
  return content;
}

AskedRequest RequestOfJson(const Json& content, const Json& arguments, const c10::Device& device) {
  if (content.at("own_rules").get<bool>()) throw FailedPrecondition("its rules were not Addend's own");
  if (content.at("structured").get<bool>()) {
    throw FailedPrecondition("its model took arguments that are no tensors");
  }
  AskedRequest request;
  request.options = OptionsOf(content);
  for (const Json& asked : content.at("inputs")) {
    const bool inside = !asked.at("inside").is_null();
    const size_t place = request.inputs.size();
    Input input;
    input.split = SplitOf(asked, inside || place >= arguments.size() ? nullptr : &arguments[place], device);
    input.baseline = BaselineOf(asked.at("baseline"), device);
    input.first_component = asked.at("first_component").get<int64_t>();
    if (inside) input.inside = input.name = asked["inside"].get<std::string>();
    request.inputs.push_back(std::move(input));
  }
  return request;
}

}  // namespace addend
