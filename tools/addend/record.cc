#include "tools/addend/record.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/program/program.h"
#include "core/program/tensor_io.h"
#include "tools/addend/version.h"

namespace addend::cli {
namespace {

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json LibraryRecord() { return {{"version", TORCH_VERSION}, {"threads", at::get_num_threads()}}; }

Json ModelRecord(const LoadedRun& run) { return {{"path", run.model_path}, {"sha256", run.model_sha256}}; }

Json InputsRecord(const LoadedRun& run) {
  Json records = Json::array();
  for (const LoadedInput& loaded : run.inputs) {
    const at::Tensor& value = loaded.input.value;
    records.push_back({{"name", loaded.name},
                       {"path", loaded.inside() ? Json(nullptr) : Json(loaded.path)},
                       {"sha256", OrNull(loaded.sha256)},
                       {"row", loaded.inside() ? Json(nullptr) : OrNull(run.row)},
                       {"dtype", DtypeName(value.scalar_type())},
                       {"shape", value.sizes().vec()},
                       {"inside", loaded.inside()},
                       {"split", loaded.split},
                       {"baseline", OrNull(loaded.baseline)},
                       {"baseline_given", loaded.baseline_given},
                       {"baseline_sha256", OrNull(loaded.baseline_sha256)}});
  }
  return records;
}

Json TargetRecord(const ExplainedTarget& target) {
  return addend::TargetRecord(target.name, target.numbers, OrNull(target.probability), target.recovery_error(),
                              target.tolerance);
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
                 {"policy", PolicyRecord(explanation.report.policy, explanation.run.policy.preset)},
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
  if (explanation.operators_asked) {
    record["operators"] = RelevanceRecord(explanation.operators);
  }
  record["report"] = NotedRecord(explanation.report, explanation.notes);
  return record;
}

std::map<std::string, std::string> OriginOf(const Json& record, const Parts& parts) {
  Json names = Json::array();
  for (const Part& part : parts.parts) names.push_back(part.name);
  return {{"names", Dump(names)},
          {"model", Dump(record["model"])},
          {"inputs", Dump(record["inputs"])},
          {"preset", record["preset"].get<std::string>()},
          {"policy", Dump(record["policy"])},
          {"libtorch", Dump(record["libtorch"])},
          {"addend", Dump(record["addend"])}};
}

Json CheckRecord(const LoadedRun& run, const Report& report, const std::vector<OperatorReport>& worst_first) {
  Json operators = Json::array();
  for (const OperatorReport& reported : worst_first) operators.push_back(OperatorRecord(reported));
  return {{"addend", ProgramRecord()},
          {"libtorch", LibraryRecord()},
          {"model", ModelRecord(run)},
          {"preset", PresetName(report.policy.preset)},
          {"policy", PolicyRecord(report.policy, run.policy.preset)},
          {"inputs", InputsRecord(run)},
          {"report", ReportRecord(report)},
          {"operators", std::move(operators)}};
}

}  // namespace addend::cli
