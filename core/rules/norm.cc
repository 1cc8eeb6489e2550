// Norms, distances, variances and a few products, written as the operators that they consist of.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/div.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/triu_indices.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/tracing_scope.h"
#include "core/rules/families.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The dimensions that a list names, not negative; all of them where it is empty.
std::vector<int64_t> DimsOf(const at::Tensor& x, std::vector<int64_t> dims) {
  if (dims.empty()) {
    dims.resize(x.dim());
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& d : dims) d = d < 0 ? d + x.dim() : d;
  if (x.dim() == 0) dims.clear();
  return dims;
}

at::Tensor Norm(const at::Tensor& x, double p, const std::vector<int64_t>& dims, bool keep) {
  if (p == 2 && !x.is_complex()) return x.square().sum(dims, keep).sqrt();
  const at::Tensor size = x.abs();
  if (p == 0) return size.sign().sum(dims, keep);
  if (p == 1) return size.sum(dims, keep);
  if (p == 2) return size.square().sum(dims, keep).sqrt();
  if (p == kInfinity) return at::amax(size, dims, keep);
  if (p == -kInfinity) return at::amin(size, dims, keep);
  return size.pow(p).sum(dims, keep).pow(1 / p);
}

// norm(self, p, [dim, keepdim,] [dtype]) and linalg_vector_norm(self, ord, dim, keepdim, dtype)
std::vector<at::Tensor> NormOf(const RewriteCall& call) {
  at::Tensor x = call.Tensor("self");
  const double p = call.Double(call.Has("ord") ? "ord" : "p", 2);
  if (!call.IsNone("dtype")) x = x.to(call.Given("dtype").toScalarType());
  return {Norm(x, p, DimsOf(x, call.Ints("dim")), call.Bool("keepdim", false))};
}

std::vector<at::Tensor> Distance(const RewriteCall& call) {
  const at::Tensor apart = call.Tensor("self") - call.Tensor("other");
  return {Norm(apart, call.Double("p", 2), DimsOf(apart, {}), false)};
}

// Between all pairs of rows of one matrix, each pair once.
std::vector<at::Tensor> PairDistances(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor pairs = at::triu_indices(x.size(0), x.size(0), 1, at::kLong, at::kStrided, x.device(), false);
  const at::Tensor apart = x.index_select(0, pairs.select(0, 0)) - x.index_select(0, pairs.select(0, 1));
  return {Norm(apart, call.Double("p", 2), {1}, false)};
}

// Between all rows of one matrix and all rows of another one.
std::vector<at::Tensor> CrossDistances(const RewriteCall& call, double p) {
  const at::Tensor apart = call.Tensor("x1").unsqueeze(-2) - call.Tensor("x2").unsqueeze(-3);
  return {Norm(apart, p, {apart.dim() - 1}, false)};
}

struct Moments {
  at::Tensor mean, variance;
};

// (self, dim, correction, keepdim)
Moments MomentsOf(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const std::vector<int64_t> dims = DimsOf(x, call.Ints("dim"));
  const bool keep = call.Bool("keepdim", false);
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(x.size(d));
  const at::Tensor centre = x.mean(dims, /*keepdim=*/true);
  const at::Tensor apart = x - centre;
  const at::Tensor square = (x.is_complex() ? apart.abs() : apart).square();
  Moments moments;
  moments.variance = square.sum(dims, keep).div(std::max(count - call.Double("correction", 1), 0.0));
  moments.mean = keep ? centre : x.mean(dims, false);
  return moments;
}

// Scales what is longer than `most` down to it, slice by slice: renorm(self, p, dim, maxnorm). LibTorch divides by the
// norm plus 1e-7, but only where it scales.
std::vector<at::Tensor> Renormalize(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const int64_t dim = (call.Int("dim", 0) + x.dim()) % x.dim();
  const double most = call.Double("maxnorm", 1);
  if (most == 0) return {x * 0};
  std::vector<int64_t> others;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const at::Tensor size = others.empty() ? x.abs() : Norm(x, call.Double("p", 2), others, true);
  const at::Tensor longer = size.clamp_min(most);
  return {x * (longer + (longer - most).sign() * 1e-7).reciprocal() * most};
}

// prelu(self, weight), and _prelu_kernel, by which LibTorch 2 computes it: there the weight has the rank of self.
std::vector<at::Tensor> ParametricRelu(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  at::Tensor weight = call.Tensor("weight");
  if (call.name == "aten::prelu") {
    std::vector<int64_t> shape(std::max<int64_t>(x.dim(), 1), 1);
    if (x.dim() > 1) shape[1] = weight.numel();
    if (x.dim() == 0) shape.clear();
    weight = weight.reshape(shape);
  }
  const at::Tensor positive = at::relu(x);
  return {positive + weight * (x - positive)};
}

// A power of two near the larger side; 1 where that is neither so large that its square overflows nor so small that it
// vanishes. Undefined where it is 1 everywhere.
at::Tensor ScaleOf(const at::Tensor& x, const at::Tensor& y) {
  const TracingPause pause;
  const at::Tensor size = at::maximum(x.abs(), y.abs());
  constexpr double kFar = 0.4;  // of the exponents that the dtype has: at half of them squares leave it
  const int exponents = size.scalar_type() == at::kDouble ? 1022 : size.scalar_type() == at::kHalf ? 14 : 126;
  const at::Tensor exponent = size.log2().floor();
  const at::Tensor extreme = exponent.abs().gt(kFar * exponents).logical_and_(exponent.isfinite());
  if (!ReadFlag(extreme.any())) return {};
  return at::exp2(exponent.masked_fill(extreme.logical_not(), 0).clamp(-exponents, exponents));
}

// Infinite with an infinite side, even beside a NaN.
at::Tensor InfiniteSides(const at::Tensor& x, const at::Tensor& y) {
  const TracingPause pause;
  const at::Tensor infinite = x.isinf().logical_or(y.isinf());
  return ReadFlag(infinite.any()) ? infinite : at::Tensor();
}

at::Tensor Hypotenuse(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor scale = ScaleOf(x, y);
  const at::Tensor a = scale.defined() ? x / scale : x;
  const at::Tensor b = scale.defined() ? y / scale : y;
  const at::Tensor unit = (a.square() + b.square()).sqrt();
  const at::Tensor length = scale.defined() ? unit * scale : unit;
  const at::Tensor infinite = InfiniteSides(x, y);
  return infinite.defined() ? length.masked_fill(infinite, kInfinity) : length;
}

// _softmax_backward_data(grad_output, output, dim, input_dtype)
std::vector<at::Tensor> SoftmaxBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_output");
  const at::Tensor output = call.Tensor("output");
  const at::Tensor result = output * (grad - (grad * output).sum(call.Int("dim", -1), /*keepdim=*/true));
  // The gradient's dtype counts, but where a GPU computed the softmax of half precision in float.
  const auto dtype = static_cast<at::ScalarType>(call.Int("input_dtype", static_cast<int64_t>(result.scalar_type())));
  const bool narrow = dtype == at::kHalf && grad.scalar_type() == at::kFloat && grad.is_cuda();
  return {narrow ? result.to(dtype) : result};
}

// native_dropout_backward(grad_output, mask, scale)
std::vector<at::Tensor> DropoutBackward(const RewriteCall& call) {
  return {call.Tensor("grad_output") *
          (call.Tensor("mask").to(call.Tensor("grad_output").scalar_type()) * call.Double("scale", 1))};
}

}  // namespace

void RegisterNorm(Registry& registry) {
  registry.Register(Rewrite{"aten::norm", NormOf});
  registry.Register(Rewrite{"aten::linalg_vector_norm", NormOf});
  registry.Register(Rewrite{"aten::dist", Distance});
  registry.Register(Rewrite{"aten::_pdist_forward", PairDistances});
  registry.Register(
      Rewrite{"aten::_cdist_forward", [](const RewriteCall& c) { return CrossDistances(c, c.Double("p", 2)); }});
  registry.Register(Rewrite{"aten::_euclidean_dist", [](const RewriteCall& c) { return CrossDistances(c, 2); }});
  registry.Register(Rewrite{"aten::renorm", Renormalize});

  using Tensors = std::vector<at::Tensor>;
  registry.Register(
      Rewrite{"aten::var.correction", [](const RewriteCall& c) -> Tensors { return {MomentsOf(c).variance}; }});
  registry.Register(
      Rewrite{"aten::std.correction", [](const RewriteCall& c) -> Tensors { return {MomentsOf(c).variance.sqrt()}; }});
  registry.Register(Rewrite{"aten::var_mean.correction", [](const RewriteCall& c) -> Tensors {
                              const Moments m = MomentsOf(c);
                              return {m.variance, m.mean};
                            }});
  registry.Register(Rewrite{"aten::std_mean.correction", [](const RewriteCall& c) -> Tensors {
                              const Moments m = MomentsOf(c);
                              return {m.variance.sqrt(), m.mean};
                            }});

  // LibTorch's out= form writes the sum unseen.
  registry.Register(Rewrite{"aten::nanmean", [](const RewriteCall& c) -> Tensors {
                              const at::Tensor x = c.Tensor("self");
                              const std::vector<int64_t> dims = DimsOf(x, c.Ints("dim"));
                              const bool keep = c.Bool("keepdim", false);
                              const at::Tensor nan = x.isnan();
                              at::Tensor sum = x.masked_fill(nan, 0).sum(dims, keep);
                              if (!c.IsNone("dtype")) sum = sum.to(c.Given("dtype").toScalarType());
                              return {sum / nan.logical_not().sum(dims, keep)};
                            }});
  registry.Register(Rewrite{"aten::hypot", [](const RewriteCall& c) -> Tensors {
                              return {Hypotenuse(c.Tensor("self"), c.Tensor("other"))};
                            }});
  registry.Register(Rewrite{"aten::addcdiv", [](const RewriteCall& c) -> Tensors {
                              return {at::add(c.Tensor("self"), at::div(c.Tensor("tensor1"), c.Tensor("tensor2")),
                                              c.Double("value", 1))};
                            }});
  for (const char* name : {"aten::prelu", "aten::_prelu_kernel"}) registry.Register(Rewrite{name, ParametricRelu});
  registry.Register(Rewrite{"aten::_softmax_backward_data", SoftmaxBackward});
  registry.Register(Rewrite{"aten::native_dropout_backward", DropoutBackward});
  // ldexp(self, other): self times 2 to the power of other
  registry.Register(Rewrite{"aten::ldexp", [](const RewriteCall& c) -> Tensors {
                              const at::Tensor x = c.Tensor("self");
                              const at::Tensor power = c.Tensor("other");
                              const bool wide = at::isFloatingType(power.scalar_type());
                              return {x * at::exp2(wide ? power : power.to(x.scalar_type()))};
                            }});
  registry.Register(Rewrite{"aten::glu", [](const RewriteCall& c) -> Tensors {
                              const at::Tensor x = c.Tensor("self");
                              const int64_t dim = (c.Int("dim", -1) + x.dim()) % x.dim();
                              const int64_t half = x.size(dim) / 2;
                              return {x.narrow(dim, 0, half) * at::sigmoid(x.narrow(dim, half, half))};
                            }});
  registry.Register(
      Rewrite{"aten::aminmax", [](const RewriteCall& c) -> Tensors {
                const at::Tensor x = c.Tensor("self");
                const std::vector<int64_t> dims = DimsOf(x, c.Ints("dim"));
                return {at::amin(x, dims, c.Bool("keepdim", false)), at::amax(x, dims, c.Bool("keepdim", false))};
              }});
}

}  // namespace addend
