#include "core/audit/request.h"

#include <string>
#include <utility>

#include "core/audit/canonical_json.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/document/report_json.h"
#include "core/explain/baselines.h"
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

AttributeOptions OptionsOf(const Json& content) {
  AttributeOptions options;
  for (const auto& entry : content.at("policy").items()) {
    SetPolicyField(options.policy, entry.key(), entry.value().get<std::string>());
  }
  if (!content.at("at").is_null()) options.at = content["at"].get<std::string>();
  options.each_example = content.at("each_example").get<bool>();
  options.every_target = content.at("every_target").get<bool>();
  options.memory_bytes = content.at("memory").get<int64_t>();
  options.operators = content.value("operators", false);
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
  Json content = {
      {"at", OrNull(options.at)},    {"each_example", options.each_example}, {"every_target", options.every_target},
      {"inputs", std::move(inputs)}, {"memory", options.memory_bytes},       {"own_rules", request.own_rules},
      {"policy", std::move(policy)}, {"structured", request.structured},     {"targets", std::move(targets)}};
  // Attention that is written out is then linearized as it is written, which rounds otherwise.
  if (options.operators) content["operators"] = true;
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
