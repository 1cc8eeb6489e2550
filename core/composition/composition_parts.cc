// Compositions taken apart, compared, moved and checked.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/composition/composition.h"

namespace addend {
namespace {

// The indices of components that integers or a mask tell, as int64 on the device of the components.
at::Tensor ComponentIndex(const Composition& composition, const at::Tensor& index) {
  if (!index.defined() || index.dim() > 1) throw InvalidArgument("components are told by a tensor of one dimension");
  at::Tensor which = index.reshape({-1}).to(composition.device());
  if (which.scalar_type() == at::kBool) {
    if (index.dim() != 1 || which.numel() != composition.numc()) {
      throw InvalidArgument(
          absl::StrCat("the mask has ", which.numel(), " elements for ", composition.numc(), " components"));
    }
    return which.nonzero().squeeze(1);
  }
  if (!at::isIntegralType(which.scalar_type(), /*includeBool=*/false)) {
    throw InvalidArgument("components are told by integers or bools");
  }
  which = which.to(at::kLong);
  if (which.numel() == 0) return which;
  const int64_t numc = composition.numc();
  const auto smallest = which.min().item<int64_t>();
  const auto largest = which.max().item<int64_t>();
  if (smallest < -numc || largest >= numc) {
    throw InvalidArgument(
        absl::StrCat("component ", largest >= numc ? largest : smallest, " is out of range: there are ", numc));
  }
  return at::where(which.lt(0), which.add(numc), which);
}

void RequireShape(const char* what, const at::Tensor& tensor, at::IntArrayRef shape) {
  if (!tensor.defined()) throw InvalidArgument(absl::StrCat("an undefined tensor was given as ", what));
  if (tensor.sizes() == shape) return;
  throw InvalidArgument(
      absl::StrCat(what, " has shape ", ShapeText(tensor.sizes()), ", but the composition has ", ShapeText(shape)));
}

}  // namespace

TensorOrComposition::TensorOrComposition(at::Tensor tensor) : tensor_(std::move(tensor)) {}

TensorOrComposition::TensorOrComposition(const Composition& composition)
    : composition_(std::make_shared<const Composition>(composition)) {}

at::Tensor TensorOrComposition::value() const {
  if (composition_ == nullptr && !tensor_.defined()) throw InvalidArgument("there is neither tensor nor composition");
  return composition_ != nullptr ? composition_->value() : tensor_;
}

// ---------------------------------------------------------------------------------------------------------- questions

at::Tensor Composition::residual() const { return reference_.add(leftover_); }

at::Tensor Composition::recovery() const { return components_.sum(at::IntArrayRef({0})).add(residual()); }

at::Tensor Composition::value() const { return origin_.value.defined() ? origin_.value : recovery(); }

// --------------------------------------------------------------------------------------------------------- components

at::Tensor Composition::component(int64_t index) const {
  if (index < 0 || index >= numc()) {
    throw InvalidArgument(absl::StrCat("component ", index, " is out of range: there are ", numc()));
  }
  return components_.select(0, index);
}

// With other parts: what the operator computed is the value no longer.
Composition Composition::Replace(const at::Tensor& components, const at::Tensor& reference,
                                 const at::Tensor& leftover) const {
  Origin origin;
  origin.marks = origin_.marks;
  origin.depth = origin_.depth;
  origin.single = origin_.single;
  return FromOperator(components, reference, leftover, std::move(origin));
}

Composition Composition::c_index_select(const at::Tensor& index, bool with_residual) const {
  const at::Tensor chosen = components_.index_select(0, ComponentIndex(*this, index));
  if (with_residual) return Replace(chosen, reference_, leftover_);
  return Replace(chosen, at::zeros_like(reference_), at::zeros_like(leftover_));
}

Composition Composition::c_slice(int64_t start, std::optional<int64_t> end, int64_t step, bool with_residual) const {
  if (step <= 0) throw InvalidArgument(absl::StrCat("step is ", step, "; it must be positive"));
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + numc() : at, 0, numc()); };
  const int64_t first = clamp(start);
  const int64_t last = std::max(first, clamp(end.value_or(numc())));
  const auto options = at::TensorOptions().dtype(at::kLong).device(device());
  return c_index_select(at::arange(first, last, step, options), with_residual);
}

Composition Composition::c_masked_fill(const at::Tensor& mask, const at::Scalar& number) const {
  const bool by_component = mask.defined() && mask.dim() == 1 && mask.size(0) == numc();
  if (!mask.defined() || mask.scalar_type() != at::kBool || !(by_component || mask.sizes() == c_sizes())) {
    throw InvalidArgument(absl::StrCat("the mask must be bools of shape [", numc(), "] or ", ShapeText(c_sizes())));
  }
  at::Tensor spread = mask.to(device());
  if (mask.sizes() != c_sizes()) {
    at::DimVector shape(static_cast<size_t>(components_.dim()), 1);
    shape[0] = numc();
    spread = spread.view(shape);
  }
  return Replace(components_.masked_fill(spread, number), reference_, leftover_);
}

Composition& Composition::c_masked_fill_(const at::Tensor& mask, const at::Scalar& number) {
  return *this = c_masked_fill(mask, number);
}

Composition Composition::with_component(int64_t index, const at::Tensor& part) const {
  component(index);
  RequireShape("the component", part, sizes());
  const auto options = at::TensorOptions().dtype(at::kLong).device(device());
  return with_components(at::arange(index, index + 1, options), part.unsqueeze(0));
}

Composition Composition::with_components(const at::Tensor& index, const at::Tensor& parts) const {
  if (!parts.defined()) throw InvalidArgument("an undefined tensor was given as components");
  const at::Tensor which = ComponentIndex(*this, index);
  at::DimVector shape(c_sizes());
  shape[0] = which.numel();
  const bool fits = parts.dim() <= static_cast<int64_t>(shape.size()) &&
                    std::equal(parts.sizes().rbegin(), parts.sizes().rend(), shape.rbegin(),
                               [](int64_t own, int64_t wanted) { return own == wanted || own == 1; });
  if (!fits) {
    throw InvalidArgument(
        absl::StrCat("components of shape ", ShapeText(parts.sizes()), " do not broadcast to ", ShapeText(shape)));
  }
  return Replace(components_.index_copy(0, which, parts.to(components_.options()).expand(shape)), reference_,
                 leftover_);
}

Composition Composition::with_residual(const at::Tensor& residual) const {
  RequireShape("the residual", residual, sizes());
  return Replace(components_, residual.to(reference_.options()), at::zeros_like(leftover_));
}

Composition Composition::c_apply(const RowFunction& function) const {
  const at::Tensor reference = function(reference_.unsqueeze(0));
  const at::Tensor leftover = function(leftover_.unsqueeze(0));
  if (reference.dim() == 0 || reference.size(0) != 1 || leftover.sizes() != reference.sizes()) {
    throw InvalidArgument("a function of rows must give as many rows as it gets");
  }
  return Replace(function(components_), reference.squeeze(0), leftover.squeeze(0));
}

Composition Composition::c_map(const PartFunction& function) const {
  const at::Tensor reference = function(reference_);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& component : *this) parts.push_back(function(component));
  at::DimVector none = {0};
  none.append(reference.sizes().begin(), reference.sizes().end());
  return Replace(parts.empty() ? reference.new_empty(none) : at::stack(parts), reference, function(leftover_));
}

Composition c_cat(const std::vector<Composition>& compositions, bool sum_residual) {
  if (compositions.empty()) throw InvalidArgument("there is no composition to concatenate");
  const Composition& first = compositions[0];
  std::vector<at::Tensor> components;
  at::Tensor reference = first.reference();
  at::Tensor leftover = first.leftover();
  Origin origin = first.origin();
  for (size_t i = 0; i < compositions.size(); ++i) {
    const Composition& own = compositions[i];
    if (own.sizes() != first.sizes() || own.parts_dtype() != first.parts_dtype() || own.device() != first.device()) {
      throw InvalidArgument(absl::StrCat("composition ", i, " has not the shape, dtype and device of composition 0: ",
                                         ShapeText(own.sizes()), " and ", ShapeText(first.sizes())));
    }
    components.push_back(own.components());
    origin.marks &= own.origin().marks;
    origin.depth = std::max(origin.depth, own.origin().depth);
    origin.single = origin.single || own.origin().single;
    if (i == 0) continue;
    reference = reference.add(own.reference());
    leftover = leftover.add(own.leftover());
  }
  if (!sum_residual) {
    reference = at::zeros_like(reference);
    leftover = at::zeros_like(leftover);
  }
  origin.value = at::Tensor();
  origin.plain = false;
  return Composition::FromOperator(at::cat(components), reference, leftover, std::move(origin));
}

Composition c_stack(const std::vector<at::Tensor>& components) { return Composition::FromParts(components); }

// --------------------------------------------------------------------------------------- comparisons and conditions

at::Tensor Composition::eq(const TensorOrComposition& other) const { return value().eq(other.value()); }
at::Tensor Composition::ne(const TensorOrComposition& other) const { return value().ne(other.value()); }
at::Tensor Composition::lt(const TensorOrComposition& other) const { return value().lt(other.value()); }
at::Tensor Composition::le(const TensorOrComposition& other) const { return value().le(other.value()); }
at::Tensor Composition::gt(const TensorOrComposition& other) const { return value().gt(other.value()); }
at::Tensor Composition::ge(const TensorOrComposition& other) const { return value().ge(other.value()); }
at::Tensor Composition::isnan() const { return at::isnan(value()); }
at::Tensor Composition::isinf() const { return at::isinf(value()); }
at::Tensor Composition::isfinite() const { return at::isfinite(value()); }
bool Composition::any() const { return value().ne(0).any().item<bool>(); }
bool Composition::all() const { return value().ne(0).all().item<bool>(); }

// --------------------------------------------------------------------------------------------- memory and autograd

Composition Composition::Each(const std::function<at::Tensor(const at::Tensor&)>& function) const {
  Composition result = *this;
  result.components_ = function(components_);
  result.reference_ = function(reference_);
  result.leftover_ = function(leftover_);
  if (origin_.value.defined()) result.origin_.value = function(origin_.value);
  return result;
}

Composition Composition::to(at::Device device) const {
  return Each([&](const at::Tensor& part) { return part.to(device); });
}

Composition Composition::cpu() const { return to(at::Device(at::kCPU)); }

Composition Composition::cuda(int device_index) const {
  return to(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_index)));
}

Composition Composition::detach() const {
  return Each([](const at::Tensor& part) { return part.detach(); });
}

Composition Composition::clone() const {
  return Each([](const at::Tensor& part) { return part.clone(); });
}

Composition Composition::contiguous() const {
  return Each([](const at::Tensor& part) { return part.contiguous(); });
}

std::ostream& operator<<(std::ostream& out, const Composition& composition) { return out << composition.ToString(); }

// ------------------------------------------------------------------------------------------------------------ checking

RecoveryDifference CompareRecovery(const Composition& composition, const at::Tensor& expected) {
  RequireShape("the expectation", expected, composition.sizes());
  RecoveryDifference difference;
  if (expected.numel() == 0) return difference;
  const bool is_complex = composition.components().is_complex() || expected.is_complex();
  const at::Tensor recovery = composition.recovery().detach().to(is_complex ? at::kComplexDouble : at::kDouble);
  const at::Tensor wanted = expected.detach().to(recovery.options());
  const at::Tensor both = at::isfinite(recovery).logical_and(at::isfinite(wanted));
  const at::Tensor same = recovery.eq(wanted).logical_or(at::isnan(recovery).logical_and(at::isnan(wanted)));
  const at::Tensor error = (recovery - wanted).abs().masked_fill(both.logical_not(), 0);
  difference.largest = error.max().item<double>();
  difference.sum = error.sum().item<double>();
  const at::Tensor magnitude = wanted.abs();
  const double scale = magnitude.masked_fill(at::isfinite(magnitude).logical_not(), 0).max().item<double>();
  difference.relative = difference.largest / (scale > 0 ? scale : 1);
  difference.not_finite = both.logical_or(same).logical_not().sum().item<int64_t>();
  return difference;
}

void CheckRecovery(const Composition& composition, const at::Tensor& expected, const RecoveryBound& bound) {
  Composition own = composition;
  if (bound.without_components.defined()) own = own.c_masked_fill(bound.without_components, 0);
  at::Tensor wanted = expected;
  if (bound.without_elements.defined()) {
    RequireShape("the mask of elements", bound.without_elements, composition.sizes());
    RequireShape("the expectation", expected, composition.sizes());
    const at::Tensor recovery = own.recovery().to(expected.options());
    wanted = at::where(bound.without_elements.to(at::kBool).to(expected.device()), recovery, expected);
  }
  const RecoveryDifference difference = CompareRecovery(own, wanted);
  if (difference.not_finite > 0) {
    throw FailedPrecondition(
        absl::StrCat("the recovery is NaN or infinite where the expectation is not, or the other "
                     "way round, in ",
                     difference.not_finite, " elements"));
  }
  const double found = bound.sum ? difference.sum : difference.largest;
  if (found <= bound.bound) return;
  throw FailedPrecondition(absl::StrCat("the recovery differs from the expectation by ", found, " (",
                                        bound.sum ? "sum" : "largest error", "), bound ", bound.bound));
}

}  // namespace addend
