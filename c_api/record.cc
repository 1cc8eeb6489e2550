// What a run and an explanation are, as JSON.
#include "core/explain/record.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/explanation.h"
#include "core/base/tensor_text.h"

namespace addend::c_api {
namespace {

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

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
                       {"inside", !input.inside.empty()},
                       {"split", DescribeSplit(input.split)},
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
    // What is inside the model is no picture to look at.
    if (image != nullptr || !input.inside.empty()) return nullptr;
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
  return addend::TargetRecord(absl::StrCat(output, " ", explanation.target), numbers, nullptr,
                              numbers.recovery - numbers.value, explanation.tolerance);
}

// Of one or more targets of the same run.
Json ExplanationRecord(const std::vector<ExplanationBody>& targets) {
  const ExplanationBody& explanation = targets.at(0);
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
  record["targets"] = Json::array();
  for (const ExplanationBody& target : targets) record["targets"].push_back(TargetRecord(target));
  record["report"] = ReportRecord(run.report);
  return record;
}

}  // namespace

std::string ExplanationJson(const ExplanationBody& explanation) {
  return explanation.record.empty() ? Dump(ExplanationRecord({explanation})) : explanation.record;
}

std::string ExplanationPage(const ExplanationBody& explanation) {
  return MakePage(explanation.record.empty() ? ExplanationRecord({explanation}) : Json::parse(explanation.record));
}

std::string AttributionJson(const std::vector<ExplanationBody>& targets,
                            const std::vector<OperatorRelevance>* operators) {
  Json record = ExplanationRecord(targets);
  if (operators != nullptr) record["operators"] = RelevanceRecord(*operators);
  return Dump(record);
}

std::string AttributionPage(const std::vector<ExplanationBody>& targets) {
  return MakePage(ExplanationRecord(targets));
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
