#include "tools/addend/record.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/error.h"
#include "core/explain/report_json.h"
#include "core/explain/tensor_io.h"
#include "core/program/program.h"
#include "core/rules/rule.h"
#include "tools/addend/page_template.h"
#include "tools/addend/version.h"

namespace addend::cli {
namespace {

constexpr char kMarker[] = "__ADDEND_DATA__";

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json LibraryRecord() { return {{"version", TORCH_VERSION}, {"threads", at::get_num_threads()}}; }

Json ModelRecord(const LoadedRun& run) { return {{"path", run.model_path}, {"sha256", run.model_sha256}}; }

// The policy as used, but the preset as asked for (what it stood for is a key of its own) and with everything spelled
// out that is frozen.
Json PolicyRecord(const LoadedRun& run, const Report& report) {
  Policy policy = report.policy;
  policy.freeze = policy.FrozenKinds();
  policy.preset = run.policy.preset;
  Json record = Json::object();
  for (const auto& [key, value] : DescribePolicy(policy)) record[key] = value;
  return record;
}

Json InputsRecord(const LoadedRun& run) {
  Json records = Json::array();
  for (const LoadedInput& loaded : run.inputs) {
    const at::Tensor& value = loaded.input.value;
    records.push_back({{"name", loaded.name},
                       {"path", loaded.path},
                       {"sha256", loaded.sha256},
                       {"row", OrNull(run.row)},
                       {"dtype", DtypeName(value.scalar_type())},
                       {"shape", value.sizes().vec()},
                       {"split", loaded.split},
                       {"baseline", OrNull(loaded.baseline)},
                       {"baseline_given", loaded.baseline_given},
                       {"baseline_sha256", OrNull(loaded.baseline_sha256)}});
  }
  return records;
}

Json TargetRecord(const ExplainedTarget& target) {
  const Contributions& numbers = target.numbers;
  return {{"name", target.name},
          {"index", numbers.index},
          {"subtract", numbers.subtract.empty() ? Json(nullptr) : Json(numbers.subtract)},
          {"value", numbers.value},
          {"probability", OrNull(target.probability)},
          {"reference", numbers.reference},
          {"leftover", numbers.leftover},
          {"recovery", numbers.recovery},
          {"recovery_error", target.recovery_error()},
          {"tolerance", target.tolerance},
          {"conditioning", numbers.conditioning},
          {"mass", numbers.mass},
          {"contributions", numbers.contributions}};
}

Json NotedRecord(const Report& report, const std::vector<std::string>& further_notes) {
  Json record = ReportRecord(report);
  for (const std::string& note : further_notes) record["notes"].push_back(note);
  return record;
}

}  // namespace

Json ProgramRecord() {
  Json sha256 = nullptr;
  try {
    sha256 = Sha256OfFile("/proc/self/exe");
  } catch (const Error&) {
    // Not Linux, or /proc is not mounted.
  }
  return {{"version", kVersion}, {"sha256", std::move(sha256)}};
}

Json ExplanationRecord(const Explanation& explanation) {
  const Parts& parts = explanation.parts;
  Json record = {{"addend", ProgramRecord()},
                 {"libtorch", LibraryRecord()},
                 {"model", ModelRecord(explanation.run)},
                 {"preset", PresetName(explanation.report.policy.preset)},
                 {"policy", PolicyRecord(explanation.run, explanation.report)},
                 {"kind", parts.kind},
                 {"noun", parts.noun},
                 {"at", OrNull(explanation.at)},
                 {"inputs", InputsRecord(explanation.run)}};
  Json& components = record["components"] = Json::array();
  for (const Part& part : parts.parts) {
    components.push_back({{"name", part.name}, {"value", OrNull(part.value)}, {"baseline", OrNull(part.baseline)}});
  }
  record["image"] = nullptr;
  if (parts.kind == "image" && parts.image) {
    const Image& image = *parts.image;
    record["image"] = {{"height", image.height}, {"width", image.width},         {"channels", image.channels},
                       {"values", image.values}, {"value_min", image.value_min}, {"value_max", image.value_max}};
  }
  record["text"] = OrNull(parts.text);
  Json& targets = record["targets"] = Json::array();
  for (const ExplainedTarget& target : explanation.targets) targets.push_back(TargetRecord(target));
  record["report"] = NotedRecord(explanation.report, explanation.notes);
  return record;
}

Json CheckRecord(const LoadedRun& run, const Report& report, const std::vector<OperatorReport>& worst_first) {
  Json operators = Json::array();
  for (const OperatorReport& reported : worst_first) operators.push_back(OperatorRecord(reported));
  return {{"addend", ProgramRecord()},           {"libtorch", LibraryRecord()},
          {"model", ModelRecord(run)},           {"preset", PresetName(report.policy.preset)},
          {"policy", PolicyRecord(run, report)}, {"inputs", InputsRecord(run)},
          {"report", ReportRecord(report)},      {"operators", std::move(operators)}};
}

std::string Dump(const Json& record, int indent) {
  return record.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string MakePage(const Json& record) {
  // Outside of strings JSON has no '<'; inside of them it may not stand in a script element as it is.
  const std::string data = absl::StrReplaceAll(Dump(record), {{"<", "\\u003c"}});
  std::string page = kPageTemplate;
  const size_t marker = page.find(kMarker);
  if (marker == std::string::npos) throw Internal("the page has no place for its data");
  return page.replace(marker, sizeof(kMarker) - 1, data);
}

}  // namespace addend::cli
