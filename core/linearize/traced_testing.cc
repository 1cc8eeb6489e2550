#include "core/linearize/traced_testing.h"

#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>

#include "core/intercept/tracing_scope.h"

namespace addend {

using at::Tensor;

Traced TraceOf(const std::function<std::vector<Tensor>(const Tensor&)>& model, const Tensor& value,
               const Policy& policy, int64_t numc, const std::function<void(Tracer&, const Tensor&)>& begin,
               const Registry& registry) {
  Tracer tracer(&registry, &policy, numc);
  const Tensor input = value.clone();
  begin(tracer, input);
  Traced traced;
  {
    const TracingScope scope(&tracer);
    const at::NoGradGuard no_grad;
    traced.values = model(input);
  }
  const int64_t last = static_cast<int64_t>(tracer.recorder().traced().calls.size()) - 1;
  for (const Tensor& output : traced.values) traced.probes.push_back({last, tracer.Output(output)});
  traced.trace = tracer.Finish();
  return traced;
}

std::function<void(Tracer&, const Tensor&)> Columns(const Tensor& baseline) {
  return [baseline](Tracer& tracer, const Tensor& input) {
    const Tensor labels = at::arange(input.size(1), at::kLong).expand(input.sizes()).contiguous();
    tracer.AddFloatInput(input, baseline.clone(), labels, labels);
  };
}

}  // namespace addend
