// The records of a run for programs and auditors, and the page that shows one.
#ifndef ADDEND_TOOLS_ADDEND_RECORD_H_
#define ADDEND_TOOLS_ADDEND_RECORD_H_

#include <map>
#include <string>
#include <vector>

#include "core/explain/record.h"
#include "core/explain/report.h"
#include "tools/addend/explanation.h"

namespace addend::cli {

// What core/explain/page/README.md describes.
Json ExplanationRecord(const Explanation& explanation);
// Metadata for tensors that are written beside such a record: where they come from, and the names of the parts.
std::map<std::string, std::string> OriginOf(const Json& record, const Parts& parts);
// The record of `addend check`; `worst_first`: all checks in that order.
Json CheckRecord(const LoadedRun& run, const Report& report, const std::vector<OperatorReport>& worst_first);
// {"version", "sha256"} of this program.
Json ProgramRecord();

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_RECORD_H_
