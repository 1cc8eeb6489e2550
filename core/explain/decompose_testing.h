// Functions as models, and inputs that tests split.
#ifndef ADDEND_CORE_EXPLAIN_DECOMPOSE_TESTING_H_
#define ADDEND_CORE_EXPLAIN_DECOMPOSE_TESTING_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/composition/composition.h"
#include "core/explain/decompose.h"
#include "core/explain/input.h"
#include "core/model/model.h"
#include "core/program/random_testing.h"

namespace addend {

// A function of one tensor; `named` is what it reads beside it.
inline TracedModel ModelOf(std::function<at::Tensor(const at::Tensor&)> function,
                           std::vector<std::pair<std::string, at::Tensor>> named = {}) {
  return TracedModel(
      FromFunction([function = std::move(function)](const std::vector<at::Tensor>& in) { return function(in[0]); },
                   std::move(named)));
}

inline Decomposition DecomposeFunction(std::function<at::Tensor(const at::Tensor&)> function, const Input& input,
                                       const DecomposeOptions& options = {}) {
  return ModelOf(std::move(function)).Decompose({input}, options);
}

inline Decomposition DecomposeFunction(std::function<at::Tensor(const std::vector<at::Tensor>&)> function,
                                       const std::vector<Input>& inputs, const DecomposeOptions& options = {}) {
  return TracedModel(FromFunction(std::move(function))).Decompose(inputs, options);
}

// One component for each index of `dims`.
inline Input SplitInput(const at::Tensor& value, std::vector<int64_t> dims, Baseline baseline = Baseline::Of(0.0)) {
  Input input;
  input.value = value;
  input.split = Split::AlongDims(std::move(dims));
  input.baseline = std::move(baseline);
  return input;
}

inline Input SplitInput(const at::Tensor& value, std::vector<int64_t> dims, const at::Tensor& baseline) {
  return SplitInput(value, std::move(dims), Baseline::Of(baseline));
}

// Two float64 inputs [5, 4]: one by labels, of which some count for nobody, and one by three parts with a leftover of
// their own.
inline std::vector<Input> LabelledAndParts() {
  Input labelled;
  labelled.value = Random({5, 4}, 3);
  labelled.split = Split::ByLabels(
      at::tensor({0, 0, -1, 3, 2, 1, 2, 2, -1, 3, 0, 1, 1, 1, 2, 3, 3, 0, -1, 2}, at::kLong).view({5, 4}));
  const Composition given =
      Composition::FromParts({Random({5, 4}, 4), Random({5, 4}, 5), Random({5, 4}, 6)}, Random({5, 4}, 7));
  Input parts;
  parts.value = given.recovery();
  parts.split = Split::Parts(given.components());
  return {labelled, parts};
}

// A model of them, in which both meet: [5, 5].
inline at::Tensor TanhTimesGelu(const std::vector<at::Tensor>& in) {
  return at::softmax(at::tanh(in[0]).matmul(at::gelu(in[1]).t()), 1);
}

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_DECOMPOSE_TESTING_H_
