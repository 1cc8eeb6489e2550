// An operator of your own and its rule. docs/extending.md quotes the marked parts, and a test runs them.
#ifndef ADDEND_DOCS_EXAMPLES_OPERATORS_OWN_OPERATOR_H_
#define ADDEND_DOCS_EXAMPLES_OPERATORS_OWN_OPERATOR_H_

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/rules/kinds.h"
#include "core/rules/registry.h"

namespace my_program {

// [operator]
at::Tensor SmoothAbs(const at::Tensor& x, double width) { return (x * x + width * width).sqrt() - width; }

TORCH_LIBRARY(my_ops, m) { m.def("smooth_abs(Tensor x, float width) -> Tensor"); }
TORCH_LIBRARY_IMPL(my_ops, CPU, m) { m.impl("smooth_abs", SmoothAbs); }
TORCH_LIBRARY_IMPL(my_ops, Autograd, m) { m.impl("smooth_abs", SmoothAbs); }
// [end]

// [rule]
addend::Registry MyRules() {
  addend::Registry registry = addend::Registry::Default();
  registry.Register({"my_ops::smooth_abs", addend::Kind::kPointwise,
                     [](const addend::RuleCall& call) { return Pointwise(call, addend::Curve::kSmooth); }});
  return registry;
}
// [end]

}  // namespace my_program

#endif  // ADDEND_DOCS_EXAMPLES_OPERATORS_OWN_OPERATOR_H_
