// Which number of an output is explained: an element, the largest one, or the difference of two.
#ifndef ADDEND_CORE_EXPLAIN_TARGET_H_
#define ADDEND_CORE_EXPLAIN_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/composition/composition.h"

namespace addend {

struct Report;

struct Target {
  // The largest element; of [1, positions, classes], what models of sequences give, that of the last position.
  bool top1 = true;
  std::vector<int64_t> index;     // else this element; negative numbers count from the end
  std::vector<int64_t> subtract;  // minus this one, where it is not empty
};

// "top1"; "2", "0,2" or "0,-1,2": an element; "2-7" or "0,2-0,7": the first minus the second. Throws InvalidArgument.
Target ParseTarget(const std::string& text);

// Which elements of a value a target is: `index` minus `subtract`, where that is not empty. Indices are complete.
struct TargetElements {
  std::vector<int64_t> index;
  std::vector<int64_t> subtract;
};

// An index may leave out leading dimensions of size 1. Throws InvalidArgument where it does not fit the value, where
// the largest element is asked for of a value that holds several rows, and where the value is complex or empty.
TargetElements FindElements(const at::Tensor& value, const Target& target);

// One element as a view without dimensions. index: complete.
at::Tensor ElementAt(at::Tensor tensor, const std::vector<int64_t>& index);
// The number that a target is in a tensor of the value's shape.
double NumberAt(const at::Tensor& tensor, const TargetElements& target);

// One number and its parts. contributions: [numc]; their sum plus reference and leftover is the recovery.
struct Contributions {
  std::vector<int64_t> index;  // of the element, or of the first of two
  std::vector<int64_t> subtract;
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double recovery = 0;
  double conditioning = 1;  // (sum |c| + |leftover|) / |value - reference|: 1 where nothing cancels
  double mass = 0;          // sum |c| + |leftover| + |reference|: what rounding is measured against
  double scale = 0;         // the largest magnitude of the value that the target is an element of
  double tolerance = 0;     // how far recovery and value may be apart by rounding; see RecoveryAllowance
  std::vector<double> contributions;
};

// Fills what follows from value, reference, leftover and contributions: recovery, conditioning and mass.
void AddUp(Contributions& contributions);

// How far recovery and value may be apart: what rounding in this dtype makes of terms as large as these on their way
// through `operators`, but no more than the value's own scale allows. `tolerance`: Policy::tolerance.
double RecoveryAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance);

// `report`: of the run that gave the composition; its operators and its policy tell what rounding may do. Null: the
// operators are those that the composition itself knows of. Throws what FindElements throws.
Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target,
                         const Report* report = nullptr);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_TARGET_H_
