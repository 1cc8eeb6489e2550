// Which number of an output is explained: an element, the largest one, or the difference of two.
#ifndef ADDEND_CORE_EXPLAIN_TARGET_H_
#define ADDEND_CORE_EXPLAIN_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/explain/composition.h"

namespace addend {

struct Target {
  bool top1 = true;               // the largest element
  std::vector<int64_t> index;     // else this element
  std::vector<int64_t> subtract;  // minus this one, where it is not empty
};

// "top1"; "2" or "0,2": an element; "2-7" or "0,2-0,7": the first minus the second. Throws InvalidArgument.
Target ParseTarget(const std::string& text);

// One number and its parts. contributions: [numc]; their sum plus reference and leftover is the recovery.
struct Contributions {
  std::vector<int64_t> index;  // of the element, or of the first of two
  std::vector<int64_t> subtract;
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double recovery = 0;
  double conditioning = 0;  // sum |c| / |sum c|: how much of the components cancels
  double mass = 0;          // sum |c| + |leftover| + |reference|: what rounding is measured against
  std::vector<double> contributions;
};

// An index may leave out leading dimensions of size 1. Throws InvalidArgument where it does not fit the shape.
Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_TARGET_H_
