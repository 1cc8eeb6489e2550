// Compares the sum of components from separate sweeps, which check nothing, with a checked sweep of their sum.
#ifndef ADDEND_CORE_LINEARIZE_SUM_CHECK_H_
#define ADDEND_CORE_LINEARIZE_SUM_CHECK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "core/linearize/linearization.h"
#include "core/linearize/sweep.h"

namespace addend {

class SumCheck {
 public:
  // `first`: a sweep whose last component is the sum of all that are to be added. The linearization, of all components,
  // must outlive this.
  SumCheck(const Linearization& linearization, const SweepResult& first);

  // components: [n, *S] of a probe. `terms`: [*S], the magnitudes of what they were summed from; undefined: their own.
  void Add(size_t probe, const at::Tensor& components, const at::Tensor& terms = at::Tensor());

  // The gap between the components that were added and their sum, where the probe's value is finite.
  struct Gap {
    at::Tensor missing;  // [*S]: what they lack
    double error = 0;    // its largest magnitude
    double allowed = 0;  // what rounding may come to
    bool closed() const { return error <= allowed; }
  };
  Gap GapOf(size_t probe, const ProbeRows& rows) const;

 private:
  const Linearization& linearization_;
  // Tensors by probe, [*S].
  std::vector<at::Tensor> rest_;
  std::vector<at::Tensor> sums_;
  std::vector<at::Tensor> sizes_;   // magnitudes of everything
  std::vector<at::Tensor> errors_;  // of the first sweep's recovery
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SUM_CHECK_H_
