// Traced runs of small models, for tests of what is made of them.
#ifndef ADDEND_CORE_LINEARIZE_TRACED_TESTING_H_
#define ADDEND_CORE_LINEARIZE_TRACED_TESTING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/policy.h"
#include "core/linearize/linearization.h"
#include "core/rules/registry.h"
#include "core/run/trace.h"

namespace addend {

// A traced run, the model's results, and a probe of each.
struct Traced {
  TracedRun trace;
  std::vector<at::Tensor> values;
  std::vector<Probe> probes;
};

// Runs the model without gradients on a copy of `value`. `begin` tells the tracer how the copy is split, into `numc`
// components.
Traced TraceOf(const std::function<std::vector<at::Tensor>(const at::Tensor&)>& model, const at::Tensor& value,
               const Policy& policy, int64_t numc, const std::function<void(Tracer&, const at::Tensor&)>& begin,
               const Registry& registry = Registry::Default());

// A `begin` for a matrix: one component for each of its columns.
std::function<void(Tracer&, const at::Tensor&)> Columns(const at::Tensor& baseline);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_TRACED_TESTING_H_
