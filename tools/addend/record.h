// The records of a run for programs and auditors, and the page that shows one.
#ifndef ADDEND_TOOLS_ADDEND_RECORD_H_
#define ADDEND_TOOLS_ADDEND_RECORD_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/explain/report.h"
#include "tools/addend/explanation.h"

namespace addend::cli {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

// What page/README.md describes.
Json ExplanationRecord(const Explanation& explanation);
// The record of `addend check`; `worst_first`: all checks in that order.
Json CheckRecord(const LoadedRun& run, const Report& report, const std::vector<OperatorReport>& worst_first);
// {"version", "sha256"} of this program.
Json ProgramRecord();

// The text of a record: UTF-8 whatever the names hold, numbers that are not finite as null. indent -1: one line.
std::string Dump(const Json& record, int indent = -1);
// The page, self-contained.
std::string MakePage(const Json& record);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_RECORD_H_
