// Rows of data sets that are no tensors: tables in CSV, and folders of images or of files with a tensor each.
#ifndef ADDEND_TOOLS_ADDEND_JOB_ROWS_H_
#define ADDEND_TOOLS_ADDEND_JOB_ROWS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/progress.h"
#include "core/jobs/job_plan.h"
#include "core/jobs/rows.h"
#include "tools/addend/commands.h"
#include "tools/addend/input_file.h"

namespace addend::cli {

// A data set whose plan is being made.
struct JobData {
  std::unique_ptr<RowSource> source;
  // First row [1, *row] by input of the model, as ReadInputFile() would give it of a file with this row alone.
  std::vector<TensorFile> first;
};
// Opens what --input names: one .csv file, one folder, or .npy and .safetensors files, one for each input of the model.
// groups: columns of the table, or names of tensors beside the first input, by which rows are put together. `stride`:
// rows of shards are multiples of it. Throws InvalidArgument for other files and for mixtures, and NotFound.
JobData OpenJobData(const RunArguments& arguments, const std::vector<std::string>& groups, int64_t stride,
                    const addend::Progress& progress);
// The rows of a plan, of every kind.
std::shared_ptr<const RowSource> OpenPlannedRows(const JobPlan& plan, const std::string& plan_path);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_JOB_ROWS_H_
