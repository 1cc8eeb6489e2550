// The records of runs for programs and browsers: JSON as page/README.md describes it, and the page that shows it.
#ifndef ADDEND_CORE_EXPLAIN_RECORD_H_
#define ADDEND_CORE_EXPLAIN_RECORD_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/policy.h"
#include "core/explain/report.h"
#include "core/explain/target.h"

namespace addend {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// Every choice as text: the preset as asked for, and everything spelled out that is frozen.
Json PolicyRecord(Policy policy, Preset asked);
// What one target is made of. `probability`: null where there is none.
Json TargetRecord(const std::string& name, const Contributions& numbers, Json probability, double recovery_error,
                  double tolerance);
// Counts, errors and notes of a whole run; its checks are not in it.
Json ReportRecord(const Report& report);
// One operator's check.
Json OperatorRecord(const OperatorReport& reported);

// The text of a record: UTF-8 whatever the names hold, numbers that are not finite as null. indent -1: one line.
std::string Dump(const Json& record, int indent = -1);
// The page, self-contained.
std::string MakePage(const Json& record);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_RECORD_H_
