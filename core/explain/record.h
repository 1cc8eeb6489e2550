// The records of runs for programs and browsers: JSON as page/README.md describes it, and the page that shows it.
#ifndef ADDEND_CORE_EXPLAIN_RECORD_H_
#define ADDEND_CORE_EXPLAIN_RECORD_H_

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/policy.h"
#include "core/explain/attribute.h"
#include "core/explain/report.h"
#include "core/explain/target.h"

namespace addend {

// Every choice as text: the preset as asked for, and everything spelled out that is frozen.
Json PolicyRecord(Policy policy, Preset asked);
// What one target is made of. `probability`: null where there is none.
Json TargetRecord(const std::string& name, const Contributions& numbers, Json probability, double recovery_error,
                  double tolerance);
// Counts, errors and notes of a whole run; its checks are not in it.
Json ReportRecord(const Report& report);
// One operator's check.
Json OperatorRecord(const OperatorReport& reported);

// What passed through each operator, by target.
Json RelevanceRecord(const std::vector<OperatorRelevance>& operators);

// The page, self-contained.
std::string MakePage(const Json& record);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_RECORD_H_
