#include "core/explain/record.h"

#include <utility>

#include "core/explain/page_template.h"
#include "core/rules/rule.h"

namespace addend {

Json PolicyRecord(Policy policy, Preset asked) {
  policy.freeze = policy.FrozenKinds();
  policy.preset = asked;
  Json record = Json::object();
  for (const auto& [key, value] : DescribePolicy(policy)) record[key] = value;
  return record;
}

Json TargetRecord(const std::string& name, const Contributions& numbers, Json probability, double recovery_error,
                  double tolerance) {
  return {{"name", name},
          {"index", numbers.index},
          {"subtract", numbers.subtract.empty() ? Json(nullptr) : Json(numbers.subtract)},
          {"value", numbers.value},
          {"probability", std::move(probability)},
          {"reference", numbers.reference},
          {"leftover", numbers.leftover},
          {"recovery", numbers.recovery},
          {"recovery_error", recovery_error},
          {"tolerance", tolerance},
          {"conditioning", numbers.conditioning},
          {"mass", numbers.mass},
          {"contributions", numbers.contributions}};
}

Json ReportRecord(const Report& report) {
  return {{"operators", report.operators},
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
}

Json OperatorRecord(const OperatorReport& reported) {
  const OperatorCheck& check = reported.check;
  const Position& position = reported.position;
  return {{"index", check.call},
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
          {"parameters", position.parameters}};
}

Json RelevanceRecord(const std::vector<OperatorRelevance>& operators) {
  Json records = Json::array();
  for (const OperatorRelevance& one : operators) {
    const Position& position = one.position;
    records.push_back({{"index", position.op_index},
                       {"op", position.op},
                       {"output", one.output},
                       {"call", one.call},
                       {"program_call", one.program_call},
                       {"module", position.module_path.empty() ? Json(nullptr) : Json(position.module_path)},
                       {"passed", one.passed},
                       {"leftover", one.leftover}});
  }
  return records;
}

std::string MakePage(const Json& record) { return FillPage(kPageTemplate, record); }

}  // namespace addend
