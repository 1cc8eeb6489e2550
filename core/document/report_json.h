// Reports of runs as JSON documents, and the pieces that other documents have in common with them.
#ifndef ADDEND_CORE_DOCUMENT_REPORT_JSON_H_
#define ADDEND_CORE_DOCUMENT_REPORT_JSON_H_

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/policy.h"
#include "core/explain/attribute.h"
#include "core/explain/report.h"

namespace addend {

struct ExplainedRun;

// The program that writes a document.
struct Writer {
  std::string version;  // of Addend
  std::string sha256;   // of the program's file; empty: it is part of another program
  std::string libtorch;
};

// {"format": "addend.report", "version": 1, ...}: policy, counts, errors, notes, failures, and all checks, worst first.
// `asked`: the preset as asked for.
Json ReportJson(const Report& report, Preset asked);
// {"format": "addend.check", "version": 1, ...}: where a run comes from, its report, and `operators`, its checks.
Json CheckJson(const ExplainedRun& run, const std::vector<OperatorReport>& operators, const Writer& writer);

// Origin of a run: the keys "addend", "libtorch", "model", "preset", "policy" and "inputs".
Json OriginJson(const ExplainedRun& run, const Writer& writer);
// {"version", "sha256"} of the program.
Json WriterJson(const Writer& writer);
// Counts, errors and notes of a report, `notes` behind its own; its checks are not in it.
Json CountsJson(const Report& report, const std::vector<std::string>& notes = {});
// Relevance that passed through each operator, by target.
Json RelevanceJson(const std::vector<OperatorRelevance>& operators);

// Adds "warnings", those among the "notes" of a document, and "warning_kinds", what each of them is about.
void AddWarnings(Json& record);

// Null for what is not known.
Json OrNull(const std::string& text);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_REPORT_JSON_H_
