// The results of a shard's rows, as its file holds them.
#ifndef ADDEND_CORE_JOBS_SHARD_TABLE_H_
#define ADDEND_CORE_JOBS_SHARD_TABLE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/document/concepts.h"
#include "core/document/reasons.h"
#include "core/explain/attribute.h"
#include "core/jobs/job_notes.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/rows.h"

namespace addend {

// Table of rows, as .safetensors; N rows, T targets (no such dimension if T is 1), C components, at most M reasons:
//   "value", "reference", "leftover"   [N, T] float64; NaN in rows that are refused
//   "target"                           [N, T] int64: which element of a row's output it is, row by row; -1 where the
//                                      target is no single element, and in rows that are refused
//   "contributions"                    [N, T, C] float64
//   "reasons"                          [N, T, M] int64: which concept; -1: no further one
//   "reason_contributions"             [N, T, M] float64; 0 where there is no reason
//   "refused"                          [N] uint8
// and as metadata "names", "classes", "concepts", "targets" and "notes" (JSON lists; what runs said of the rows, as
// NoteCountsJson writes it). Nothing in it tells of shards, so that the rows of all of them together have the same
// bytes however they were cut. As CSV (RFC 4180, LF), one line for each row and target, behind a line of names: row,
// target, value, reference, leftover, the components by name, "reason 1", "reason 1 contribution", "reason 1 text" ...,
// refused (why, else empty).
class ShardTable {
 public:
  // Rows [first, first + count), nothing about them known. concepts: that reasons are told in; null: none are asked
  // for. Refers to the plan.
  ShardTable(const JobPlan& plan, int64_t first, int64_t count, const Concepts* concepts);

  // Takes row `row` of the data set: number `place` of `examples` that were attributed together. reasons: of the same;
  // null: none are asked for.
  void Take(int64_t row, const Attribution& attribution, int64_t place, int64_t examples, const Reasons* reasons);
  void Refuse(RefusedRow refused);

  const std::vector<RefusedRow>& refused() const { return refused_; }
  bool IsRefused(int64_t row) const { return is_refused_.at(static_cast<size_t>(row - first_)) != 0; }
  // The file's bytes. Equal results have equal bytes. CSV has no place for notes.
  std::string Encode(const NoteCounts& notes) const;

 private:
  std::string EncodeTensors(const NoteCounts& notes) const;
  std::string EncodeCsv() const;

  const JobPlan& plan_;
  int64_t first_;
  int64_t count_;
  int64_t targets_;
  int64_t components_;
  std::string at_;  // the tensor that is explained
  int64_t at_most_;
  std::vector<RefusedRow> refused_;
  std::vector<uint8_t> is_refused_;
  // Numbers of rows, by row, then by target.
  std::vector<double> value_;
  std::vector<double> reference_;
  std::vector<double> leftover_;
  std::vector<int64_t> target_;
  std::vector<std::string> target_names_;  // CSV
  std::vector<double> contributions_;
  std::vector<int64_t> reason_;
  std::vector<double> reason_contribution_;
  std::vector<std::string> reason_text_;  // CSV
  std::vector<std::string> concepts_;     // their names
};

// The columns of results as a table, in their order: of CSV, and of whatever reads results as one. at_most: how many
// reasons a row has.
std::vector<std::string> ColumnsOf(const JobPlan& plan, int64_t at_most);

// The ending of files of a format: "safetensors" or "csv". Throws InvalidArgument for another format.
std::string EndingOf(const std::string& format);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_SHARD_TABLE_H_
