#include "core/document/report_json.h"

#include <ATen/Parallel.h>

#include <utility>

#include "core/base/tensor_text.h"
#include "core/document/explanation.h"
#include "core/explain/notes.h"
#include "core/rules/rule.h"

namespace addend {
namespace {

// The policy that a run used. Operators that are called by name leave the preset open, which is faithful there.
Policy UsedPolicy(const Report& report) {
  return report.policy.preset == Preset::kAuto ? report.policy.Resolved(true) : report.policy;
}

// Every choice as text: the preset as asked for, and everything spelled out that is frozen.
Json PolicyJson(Policy policy, Preset asked) {
  policy.freeze = policy.FrozenKinds();
  policy.preset = asked;
  Json record = Json::object();
  for (const auto& [key, value] : DescribePolicy(policy)) record[key] = value;
  return record;
}

Json InputsJson(const std::vector<ExplainedInput>& inputs) {
  Json records = Json::array();
  for (const ExplainedInput& own : inputs) {
    const at::Tensor& value = own.input.value;
    records.push_back({{"name", own.name},
                       {"path", OrNull(own.path)},
                       {"sha256", OrNull(own.sha256)},
                       {"row", own.row ? Json(*own.row) : Json(nullptr)},
                       {"dtype", DtypeName(value.scalar_type())},
                       {"shape", value.sizes().vec()},
                       {"inside", !own.input.inside.empty()},
                       {"split", own.split},
                       {"baseline", OrNull(own.baseline)},
                       {"baseline_given", own.baseline_given},
                       {"baseline_sha256", OrNull(own.baseline_sha256)}});
  }
  return records;
}

Json OperatorsJson(const std::vector<OperatorReport>& operators) {
  Json records = Json::array();
  for (const OperatorReport& reported : operators) {
    const OperatorCheck& check = reported.check;
    const Position& position = reported.position;
    records.push_back({{"index", check.call},
                       {"operator", position.op},
                       {"call", reported.call},
                       {"program_call", reported.program_call},
                       {"kind", KindName(check.kind)},
                       {"ok", check.ok()},
                       {"absorbed", check.absorbed},
                       {"recovery_error", check.recovery_error},
                       {"tolerance", check.tolerance},
                       {"bracket", check.bracket},
                       {"bracket_bound", check.bracket_bound < 0 ? Json(nullptr) : Json(check.bracket_bound)},
                       {"leftover", check.leftover},
                       {"seconds", check.seconds},
                       {"module_path", position.module_path},
                       {"function", position.function},
                       {"file", position.file},
                       {"line", position.line < 0 ? Json(nullptr) : Json(position.line)},
                       {"parameters", position.parameters}});
  }
  return records;
}

}  // namespace

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json WriterJson(const Writer& writer) { return {{"version", writer.version}, {"sha256", OrNull(writer.sha256)}}; }

Json CountsJson(const Report& report, const std::vector<std::string>& notes) {
  Json record = {{"operators", report.operators},
                 {"nodes", report.nodes},
                 {"worst_recovery_error", report.worst_recovery_error},
                 {"worst_bracket", report.worst_bracket},
                 {"conditioning", report.conditioning},
                 {"leftover_share", report.leftover_share},
                 {"direction", report.backward ? "backward" : "forward"},
                 {"absorbed", report.absorbed},
                 {"path_ruled", report.path_ruled},
                 {"stand_in_references", report.stand_in_references},
                 {"unattributed", report.unattributed},
                 {"reference_is_model_on_baseline", report.reference_is_model_on_baseline},
                 {"reference_reason", report.reference_reason},
                 {"reference_error", report.reference_error ? Json(*report.reference_error) : Json(nullptr)},
                 {"failures", report.failures.size()},
                 {"absorbed_failures", report.absorbed_failures},
                 {"seconds", report.trace_seconds + report.linearize_seconds + report.sweep_seconds},
                 {"notes", report.notes},
                 {"operators_by_kind", report.operators_by_kind}};
  for (const std::string& note : notes) record["notes"].push_back(note);
  AddWarnings(record);
  return record;
}

void AddWarnings(Json& record) {
  const std::vector<std::string> warnings = WarningsAmong(record["notes"].get<std::vector<std::string>>());
  record["warnings"] = warnings;
  record["warning_kinds"] = KindNames(warnings);
}

Json RelevanceJson(const std::vector<OperatorRelevance>& operators) {
  Json records = Json::array();
  for (const OperatorRelevance& one : operators) {
    records.push_back({{"index", one.position.op_index},
                       {"operator", one.position.op},
                       {"output", one.output},
                       {"call", one.call},
                       {"program_call", one.program_call},
                       {"module_path", one.position.module_path},
                       {"passed", one.passed},
                       {"leftover", one.leftover}});
  }
  return records;
}

Json OriginJson(const ExplainedRun& run, const Writer& writer) {
  const Policy policy = UsedPolicy(run.report);
  return {{"addend", WriterJson(writer)},
          {"libtorch", {{"version", writer.libtorch}, {"threads", at::get_num_threads()}}},
          {"model", {{"path", OrNull(run.model_path)}, {"sha256", OrNull(run.model_sha256)}}},
          {"preset", PresetName(policy.preset)},
          {"policy", PolicyJson(policy, run.preset)},
          {"inputs", InputsJson(run.inputs)}};
}

Json CheckJson(const ExplainedRun& run, const std::vector<OperatorReport>& operators, const Writer& writer) {
  Json record = {{"format", "addend.check"}, {"version", 1}};
  record.update(OriginJson(run, writer));
  record["report"] = CountsJson(run.report);
  record["operators"] = OperatorsJson(operators);
  return record;
}

Json ReportJson(const Report& report, Preset asked) {
  const Policy policy = UsedPolicy(report);
  Json record = {{"format", "addend.report"},
                 {"version", 1},
                 {"preset", PresetName(policy.preset)},
                 {"policy", PolicyJson(policy, asked)}};
  record.update(CountsJson(report));
  record["trace_seconds"] = report.trace_seconds;
  record["linearize_seconds"] = report.linearize_seconds;
  record["sweep_seconds"] = report.sweep_seconds;
  record["tracing_failures"] = OperatorsJson(report.failures);
  record["checks"] = OperatorsJson(WorstFirst(report));
  return record;
}

}  // namespace addend
