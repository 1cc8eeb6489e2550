// The rows of a data set, read by ranges: a job's workers never read all of it.
#ifndef ADDEND_CORE_JOBS_ROWS_H_
#define ADDEND_CORE_JOBS_ROWS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/program/tensor_io.h"

namespace addend {

// A row that has no attribution, and why.
struct RefusedRow {
  int64_t row = 0;  // in the data set, from 0
  std::string reason;
};

// A sentence about a row's numbers that goes with its attribution.
struct RowNote {
  int64_t row = 0;  // in the data set, from 0
  std::string note;
};

struct DataRows {
  int64_t first = 0;  // in the data set
  // Rows by input of the model: [count, *row]. Refused rows hold zeros.
  std::vector<at::Tensor> inputs;
  std::vector<RefusedRow> refused;  // by row, each at most once
  std::vector<RowNote> notes;       // by row
  // Texts by which rows are put together, by column that was asked for, then by row.
  std::vector<std::vector<std::string>> groups;
  std::string sha256;  // of the bytes that these rows were read from, as RowSource::Digest() gives it

  int64_t count() const { return inputs.empty() ? 0 : inputs.front().size(0); }
};

// A source of rows. Any number of threads may read at once.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual int64_t rows() const = 0;
  // The rows [first, first + count). Throws NotFound where a file is gone, and InvalidArgument for what is malformed; a
  // row that is no input of a model (a text where a number belongs) is refused by itself.
  virtual DataRows Read(int64_t first, int64_t count) const = 0;
  // SHA-256 of the bytes that those rows are read from: the same bytes give the same rows.
  virtual std::string Digest(int64_t first, int64_t count) const { return Read(first, count).sha256; }
  // JobPlan::data, from which the workers of a plan find these rows. shard_rows: how many each shard has.
  virtual Json Describe(const std::string& plan_path, int64_t shard_rows) const = 0;
};

// Rows that stand one behind the other in tensors of .npy or .safetensors files, one tensor for each input of a model:
// dimension 0 counts them. groups: tensors [rows] of integers or bools, whose numbers put rows together. Reads no more
// than the rows that are asked for. Throws NotFound, and InvalidArgument for files that are malformed, tensors without
// rows or with other numbers of rows than the first, and .npy files in Fortran order, whose rows do not stand together.
std::unique_ptr<RowSource> OpenTensorRows(const std::vector<TensorPlace>& places,
                                          const std::vector<TensorPlace>& groups = {});

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_ROWS_H_
