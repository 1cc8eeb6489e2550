// Report of a merged job on its whole data set, as a document and as a page: the proof, which components matter and how
// they are spread, groups, the worst rows, and how far another job's rows have moved.
//
// Note [What a report holds]
// Everything is told from "merged.json", whose size does not grow with the rows; of the rows' file only the worst rows
// are read, by range. Numbers of a sample of rows are there to be drawn: they are rounded to kSampleDigits, and given
// for the kMostDetailed components with the largest mean magnitude, as means of groups are. Everything else is given
// for all components, and not rounded.
#ifndef ADDEND_CORE_JOBS_REPORT_H_
#define ADDEND_CORE_JOBS_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/document/report_json.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/merge.h"

namespace addend {

// A job that is merged.
struct ReportedJob {
  std::string plan_path;
  JobPlan plan;
  MergedJob merged;
};

// Reads a plan and what merging gave. Throws what LoadJobPlan() and ReadMergedJob() throw.
ReportedJob LoadReportedJob(const std::string& plan_path);

inline constexpr size_t kMostDetailed = 200;      // components
inline constexpr size_t kMostRefused = 100;       // rows that are listed
inline constexpr size_t kMostContributions = 30;  // of one of the worst rows
inline constexpr int kSampleDigits = 6;

// {"format": "addend.job_report", "version": 1, ...}. against: a job whose contributions are compared with these,
// component by component; null: none. Throws InvalidArgument where it has other components or other targets, and where
// names do not tell its components apart; FailedPrecondition where the rows' file holds other rows than the report is
// of; and what reading that file throws.
Json JobReportJson(const ReportedJob& job, const ReportedJob* against, const Writer& writer);

// A page that shows such a document. Throws InvalidArgument for another document.
std::string JobReportHtml(const Json& report);

// Days since 1970 began of an ISO 8601 date ("2024-05", "2024-05-17") with or without a time
// ("2024-05-17T08:30:00.5+02:00"), which is UTC if it names no offset; puts groups in order. Nothing for other texts.
std::optional<double> DaysOfDate(const std::string& text);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_REPORT_H_
