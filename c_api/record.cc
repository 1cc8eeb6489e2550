// The records of runs for programs and browsers: JSON, and the page that shows it.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "c_api/explanation.h"
#include "c_api/page.h"
#include "core/explain/report_json.h"
#include "core/program/program.h"
#include "core/rules/rule.h"

namespace addend::c_api {
namespace {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

constexpr char kMarker[] = "__ADDEND_DATA__";

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// UTF-8 whatever the names hold.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The preset as asked for, and everything spelled out that is frozen.
Json PolicyRecord(Policy policy, Preset asked) {
  policy.freeze = policy.FrozenKinds();
  policy.preset = asked;
  Json record = Json::object();
  for (const auto& [key, value] : DescribePolicy(policy)) record[key] = value;
  return record;
}

std::string SplitText(const Split& split) {
  switch (split.kind) {
    case Split::Kind::kPlain:
      return "plain";
    case Split::Kind::kDims:
      return absl::StrCat("dim=", absl::StrJoin(split.dims, ","));
    case Split::Kind::kLabels:
      return "labels";
    case Split::Kind::kParts:
      return "parts";
  }
  return "";
}

Json InputsRecord(const std::vector<Input>& inputs) {
  Json records = Json::array();
  for (const Input& input : inputs) {
    const bool plain = input.split.kind == Split::Kind::kPlain;
    const Json baseline =
        plain ? Json(nullptr) : Json(input.baseline.tensor.defined() ? "tensor" : absl::StrCat(input.baseline.number));
    records.push_back({{"name", input.name},
                       {"path", nullptr},
                       {"sha256", nullptr},
                       {"row", nullptr},
                       {"dtype", DtypeName(input.value.scalar_type())},
                       {"shape", input.value.sizes().vec()},
                       {"split", SplitText(input.split)},
                       {"baseline", baseline},
                       {"baseline_given", input.baseline.given},
                       {"baseline_sha256", nullptr}});
  }
  return records;
}

// An image is one sample [1, channels, height, width] whose components are its pixels.
Json ImageRecord(const std::vector<Input>& inputs) {
  const Input* image = nullptr;
  for (const Input& input : inputs) {
    if (input.split.kind == Split::Kind::kPlain) continue;
    if (image != nullptr) return nullptr;
    image = &input;
  }
  if (image == nullptr || image->split.kind != Split::Kind::kDims || image->value.dim() != 4 ||
      image->value.size(0) != 1 || !at::isFloatingType(image->value.scalar_type()) ||
      image->split.dims != std::vector<int64_t>{2, 3}) {
    return nullptr;
  }
  const at::Tensor grey = image->value.detach().cpu().to(at::kDouble)[0].mean(0).contiguous();
  const std::vector<double> values(grey.data_ptr<double>(), grey.data_ptr<double>() + grey.numel());
  return {{"height", grey.size(0)},
          {"width", grey.size(1)},
          {"channels", image->value.size(1)},
          {"values", values},
          {"value_min", *std::min_element(values.begin(), values.end())},
          {"value_max", *std::max_element(values.begin(), values.end())}};
}

Json TargetRecord(const ExplanationBody& explanation) {
  const Contributions& numbers = explanation.numbers;
  const std::string output = explanation.at.empty() ? "output" : explanation.at;
  return {{"name", absl::StrCat(output, " ", explanation.target)},
          {"index", numbers.index},
          {"subtract", numbers.subtract.empty() ? Json(nullptr) : Json(numbers.subtract)},
          {"value", numbers.value},
          {"probability", nullptr},
          {"reference", numbers.reference},
          {"leftover", numbers.leftover},
          {"recovery", numbers.recovery},
          {"recovery_error", numbers.recovery - numbers.value},
          {"tolerance", explanation.tolerance},
          {"conditioning", numbers.conditioning},
          {"mass", numbers.mass},
          {"contributions", numbers.contributions}};
}

Json ExplanationRecord(const ExplanationBody& explanation) {
  static const auto& none = *new RunRecord();
  const RunRecord& run = explanation.run == nullptr ? none : *explanation.run;
  Policy policy = run.report.policy;
  if (policy.preset == Preset::kAuto) policy = policy.Resolved(true);
  Json record = {{"addend", {{"version", addend_version()}, {"sha256", nullptr}}},
                 {"libtorch", {{"version", addend_libtorch_version()}, {"threads", at::get_num_threads()}}},
                 {"model", {{"path", OrNull(run.model_path)}, {"sha256", nullptr}}},
                 {"preset", PresetName(policy.preset)},
                 {"policy", PolicyRecord(policy, run.preset)}};
  Json image = ImageRecord(run.inputs);
  record["kind"] = image.is_null() ? "list" : "image";
  record["noun"] = image.is_null() ? "component" : "pixel";
  record["at"] = OrNull(explanation.at);
  record["inputs"] = InputsRecord(run.inputs);
  Json& components = record["components"] = Json::array();
  for (const std::string& name : explanation.names) {
    components.push_back({{"name", name}, {"value", nullptr}, {"baseline", nullptr}});
  }
  record["image"] = std::move(image);
  record["text"] = nullptr;
  record["targets"] = Json::array({TargetRecord(explanation)});
  record["report"] = ReportRecord(run.report);
  return record;
}

}  // namespace

std::string ExplanationJson(const ExplanationBody& explanation) { return Dump(ExplanationRecord(explanation)); }

std::string ExplanationPage(const ExplanationBody& explanation) {
  // Outside of strings JSON has no '<'; inside of them it may not stand in a script element as it is.
  const std::string data = absl::StrReplaceAll(ExplanationJson(explanation), {{"<", "\\u003c"}});
  std::string page = kPage;
  const size_t marker = page.find(kMarker);
  if (marker == std::string::npos) throw Internal("the page has no place for its data");
  return page.replace(marker, sizeof(kMarker) - 1, data);
}

std::string ReportJson(const Report& report, Preset asked) {
  Policy policy = report.policy;
  if (policy.preset == Preset::kAuto) policy = policy.Resolved(true);
  Json record = {{"preset", PresetName(policy.preset)}, {"policy", PolicyRecord(policy, asked)}};
  record.update(ReportRecord(report));
  record["trace_seconds"] = report.trace_seconds;
  record["linearize_seconds"] = report.linearize_seconds;
  record["sweep_seconds"] = report.sweep_seconds;
  const auto list = [](const std::vector<OperatorReport>& operators) {
    Json records = Json::array();
    for (const OperatorReport& one : operators) records.push_back(OperatorRecord(one));
    return records;
  };
  record["tracing_failures"] = list(report.failures);
  record["checks"] = list(WorstFirst(report));
  return Dump(record);
}

}  // namespace addend::c_api
