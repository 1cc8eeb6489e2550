// Notes of a job's runs, counted over its rows as documents hold them.
#ifndef ADDEND_CORE_JOBS_JOB_NOTES_H_
#define ADDEND_CORE_JOBS_JOB_NOTES_H_

#include <cstdint>
#include <vector>

#include "core/base/json.h"
#include "core/explain/note_counts.h"
#include "core/explain/report.h"
#include "core/jobs/aggregates.h"
#include "core/jobs/job_plan.h"

namespace addend {

// Takes the notes of a run of `rows` rows, of which `row` is the first, and whether its reference is the model's own.
void AddNotesOf(const Report& report, int64_t row, int64_t rows, NoteCounts& notes);
// Adds what is told by all rows together: that rows have different references although they have one baseline. Rows
// that are asked about their own largest output are not compared, nor are those that also have inputs which are not
// split, since a reference depends on these.
void AddNotesOnReferences(const JobPlan& plan, const std::vector<Aggregates>& by_target, NoteCounts& notes);

// [{"note", "row", "rows", "warning"}]
Json NoteCountsJson(const NoteCounts& notes);
// Throws InvalidArgument for what no NoteCountsJson() wrote.
NoteCounts NoteCountsOfJson(const Json& json);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_JOB_NOTES_H_
