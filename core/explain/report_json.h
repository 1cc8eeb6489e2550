// Reports as JSON, for records and pages.
#ifndef ADDEND_CORE_EXPLAIN_REPORT_JSON_H_
#define ADDEND_CORE_EXPLAIN_REPORT_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "core/explain/report.h"

namespace addend {

// Counts, errors and notes of a whole run; its checks are not in it. Keys stay in the order in which they are written.
nlohmann::ordered_json ReportRecord(const Report& report);
// One operator's check.
nlohmann::ordered_json OperatorRecord(const OperatorReport& reported);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_REPORT_JSON_H_
