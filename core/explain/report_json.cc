#include "core/explain/report_json.h"

#include <nlohmann/json.hpp>

#include "core/rules/rule.h"

namespace addend {

using Json = nlohmann::ordered_json;

Json ReportRecord(const Report& report) {
  return {{"operators", report.operators},
          {"nodes", report.nodes},
          {"worst_recovery_error", report.worst_recovery_error},
          {"worst_bracket", report.worst_bracket},
          {"absorbed", report.absorbed},
          {"path_ruled", report.path_ruled},
          {"stand_in_references", report.stand_in_references},
          {"unattributed", report.unattributed},
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

}  // namespace addend
