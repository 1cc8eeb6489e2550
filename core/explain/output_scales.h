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
// four dimensions or more, as images have, or the last dimension has one element, as that of a regression, it is
// everything behind the first dimension: all that is said of one example, be it a single number. Of one dimension all
// is a row, unless examples have targets of their own: then each number is one. The scale of a row is the largest
// finite magnitude in it. A row of zeros has that of the whole output. A region in one example, and a continuation,
// have the largest of the example. What a distribution over a row says changes with the differences of its numbers: its
// scale is how far they spread, and a probability's is 1 at most.

// The elements of an output by rows: [*S] -> [rows, n].
at::Tensor RowsOfOutput(const at::Tensor& output);

class OutputScales {
 public:
  // value: [*S], of any floating-point or complex dtype. `each_example`: the first dimension counts examples that have
  // targets of their own.
  explicit OutputScales(const at::Tensor& value, bool each_example = false);

  // The scale of the whole output; 0 if all of it is zero, or nothing is finite.
  double whole() const { return whole_; }
  double OfRow(size_t row) const { return rows_[row] > 0 ? rows_[row] : whole_; }
  // The largest finite magnitude of each row, as it is.
  const std::vector<double>& each() const { return rows_; }
  // The scale of a target: of an element, the largest of the rows that it is a number of. A sum has the sum of its
  // parts' scales. target: as FindElements gives it.
  double Of(const Target& target) const;
  // Whether an element is one of a row of zeros, whose scale is none of its own; so both of a difference.
  bool IsOfZeros(const Target& target) const;

 private:
  // The row of an element; -1: not known.
  int64_t RowOf(const std::vector<int64_t>& index) const;
  double OfIndex(const std::vector<int64_t>& index) const;
  // The largest of an example's rows; the whole output's where that is zero, or the example is not known.
  double OfExample(int64_t example) const;
  // The largest finite number of the row less the smallest.
  double SpreadAt(const std::vector<int64_t>& index) const;

  at::Tensor value_;
  std::vector<double> rows_;
  double whole_ = 0;
  at::DimVector sizes_;
  bool each_example_;
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_OUTPUT_SCALES_H_
