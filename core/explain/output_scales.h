// The scale by which the recovery of an output is judged: that of the numbers that people read beside it.
#ifndef ADDEND_CORE_EXPLAIN_OUTPUT_SCALES_H_
#define ADDEND_CORE_EXPLAIN_OUTPUT_SCALES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/explain/target.h"

namespace addend {

// Note [Rows of an output]
// A row of an output is what its last dimension runs over: the classes of an example or of a position. Where there are
// four dimensions or more, as images have, it is everything behind the first dimension, and where the last dimension
// has one element, or there is no other one, it is the whole output: numbers of their own are near zero by chance. The
// scale of a row is the largest finite magnitude in it. A row of zeros has that of the whole output.

// The elements of an output by rows: [*S] -> [rows, n].
at::Tensor RowsOfOutput(const at::Tensor& output);

class OutputScales {
 public:
  // value: [*S], of any floating-point or complex dtype.
  explicit OutputScales(const at::Tensor& value);

  // Of the whole output; 0 where all of it is zero, or nothing is finite.
  double whole() const { return whole_; }
  double OfRow(size_t row) const { return rows_[row] > 0 ? rows_[row] : whole_; }
  size_t rows() const { return rows_.size(); }
  // The largest finite magnitude of each row, as it is.
  const std::vector<double>& each() const { return rows_; }
  // The largest of the rows that a target is a number of. target: as FindElements gives it.
  double Of(const Target& target) const;

 private:
  double OfIndex(const std::vector<int64_t>& index) const;

  std::vector<double> rows_;
  double whole_ = 0;
  at::DimVector sizes_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_OUTPUT_SCALES_H_
