#include "core/composition/shapley.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend {
namespace {

// s! (n - s - 1)! / n! for s = 0 .. n - 1.
std::vector<double> Weights(int64_t n) {
  std::vector<double> weights;
  double weight = 1.0 / static_cast<double>(n);
  for (int64_t s = 0; s < n; ++s) {
    weights.push_back(weight);
    weight *= static_cast<double>(s + 1) / static_cast<double>(n - s - 1);
  }
  return weights;
}

int64_t CountBits(uint32_t bits) {
  int64_t count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

int64_t CommonNumc(const std::vector<Composition>& inputs) {
  if (inputs.empty()) throw InvalidArgument("Shapley values need a composition to begin with");
  const int64_t numc = inputs[0].numc();
  for (const Composition& input : inputs) {
    if (input.numc() != numc) {
      throw InvalidArgument(
          absl::StrCat("compositions of ", numc, " and of ", input.numc(), " components share no component axis"));
    }
  }
  if (numc > kMostShapleyComponents) {
    throw InvalidArgument(absl::StrCat("exact Shapley values of ", numc, " components would take 2^", numc,
                                       " evaluations; ", kMostShapleyComponents, " components are the most"));
  }
  return numc;
}

}  // namespace

Composition Shapley(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& f,
                    const std::vector<Composition>& inputs) {
  const c10::AutoGradMode no_grad(false);
  const int64_t n = CommonNumc(inputs);
  at::DimVector sizes;
  const auto evaluate = [&](const std::vector<at::Tensor>& points, bool first) {
    // A function may hand back, or write, what it is given.
    std::vector<at::Tensor> own;
    for (const at::Tensor& point : points) own.push_back(point.clone());
    const at::Tensor value = f(own);
    if (!value.defined() || !value.is_floating_point()) {
      throw InvalidArgument("Shapley values: the function gives no floating-point tensor");
    }
    if (first) sizes = at::DimVector(value.sizes());
    if (value.sizes() != at::IntArrayRef(sizes)) {
      throw InvalidArgument("Shapley values: the function gives another shape for another set of components");
    }
    return value;
  };

  std::vector<at::Tensor> residuals;
  for (const Composition& input : inputs) residuals.push_back(input.residual());
  const at::Tensor at_residual = evaluate(residuals, true);

  const std::vector<double> weights = Weights(n);
  const auto wide = at_residual.options().dtype(at::kDouble);
  at::DimVector all_sizes = {n};
  all_sizes.append(sizes.begin(), sizes.end());
  at::DimVector spread(sizes.size() + 1, 1);
  spread[0] = n;
  at::Tensor shares = at::zeros(all_sizes, wide);
  for (uint32_t set = 0; n > 0 && set < (uint32_t{1} << n); ++set) {
    const int64_t size = CountBits(set);
    std::vector<double> present;
    std::vector<double> factors;
    for (int64_t i = 0; i < n; ++i) {
      const bool in = ((set >> i) & 1) != 0;
      present.push_back(in ? 1 : 0);
      factors.push_back(in ? weights[size - 1] : -weights[size]);
    }
    at::Tensor value = at_residual;
    if (set != 0) {
      std::vector<at::Tensor> points;
      for (size_t k = 0; k < inputs.size(); ++k) {
        const at::Tensor& parts = inputs[k].components();
        const at::Tensor sum = at::matmul(at::tensor(present, parts.options()), parts.reshape({n, -1}));
        points.push_back(residuals[k] + sum.view(residuals[k].sizes()));
      }
      value = evaluate(points, false);
    }
    shares.add_(value.to(at::kDouble) * at::tensor(factors, wide).view(spread));
  }

  std::vector<at::Tensor> references;
  bool left_over = false;
  for (const Composition& input : inputs) {
    references.push_back(input.reference());
    left_over = left_over || input.leftover().ne(0).any().item<bool>();
  }
  const at::Tensor reference = left_over ? evaluate(references, false) : at_residual;
  return Composition(shares.to(at_residual.scalar_type()), reference, at_residual - reference);
}

}  // namespace addend
