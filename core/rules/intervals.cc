#include "core/rules/intervals.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/host_read.h"
#include "core/rules/path.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kHistory = 8;
constexpr double kSharedAlike = 4;  // so often in a row

}  // namespace

Found Found::First(const at::Tensor& error, const at::Tensor& ends) {
  const at::Tensor before = at::full({kHistory - 1, error.numel()}, kInfinity, error.options());
  return {at::cat({error.unsqueeze(0), before}), at::zeros_like(error), ends};
}

Found Found::OfHalf(const Found& before, const at::Tensor& error, const at::Tensor& least, const at::Tensor& ends) {
  const at::Tensor alike = least.gt(before.errors.select(0, 0) * 0.2);
  return {at::cat({error.unsqueeze(0), before.errors.narrow(0, 0, kHistory - 1)}), (before.shared + 1) * alike, ends};
}

Verdict Judge(const Found& found, const at::Tensor& peak, const at::Tensor& scale, double tolerance, bool last) {
  const at::Tensor error = found.errors.select(0, 0);
  const at::Tensor recent = found.errors.narrow(0, 0, kHistory / 2).amax(0);
  const at::Tensor earlier = found.errors.narrow(0, kHistory / 2, kHistory / 2).amax(0);
  const at::Tensor large = error.gt(scale * tolerance);
  const at::Tensor old = earlier.lt(kInfinity);
  const at::Tensor grows = old.logical_and(recent.gt(earlier * 2));
  const at::Tensor stays = old.logical_and(recent.gt(earlier * 0.6)).logical_and(grows.logical_not());
  at::Tensor pole = old.logical_and(recent.gt(earlier * 0.6)).logical_and_(found.ends.gt(peak * 4));
  pole.logical_or_(found.ends.gt(peak * 1e4));
  if (last) pole.logical_or_(grows);
  pole.logical_and_(large);
  at::Tensor halve = large.logical_and(stays.logical_not()).logical_and_(pole.logical_not());
  halve.logical_and_(found.shared.lt(kSharedAlike));
  if (last) halve.fill_(false);
  return {halve, pole.logical_or_(error.eq(kInfinity))};
}

double QuadratureTolerance(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble || t.scalar_type() == at::kComplexDouble ? 1e-12 : 1e-6;
}

bool Differentiable(const at::Tensor& output) {
  if (!output.requires_grad()) return false;
  return output.grad_fn() == nullptr || output.grad_fn()->name().find("NotImplemented") == std::string::npos;
}

std::string NameOf(const RuleCall& call) {
  return call.overload.empty() ? call.name : absl::StrCat(call.name, ".", call.overload);
}

at::Tensor Savable(const at::Tensor& t) { return t.defined() && t.is_inference() ? t.clone() : t; }

bool Any(const at::Tensor& mask) { return mask.numel() > 0 && ReadFlag(mask.any()); }
double Largest(const at::Tensor& t) { return t.numel() == 0 ? 0 : ReadNumber(t.max()); }
at::Tensor NanIsInfinite(const at::Tensor& error) { return error.masked_fill(error.ne(error), kInfinity); }

}  // namespace addend
