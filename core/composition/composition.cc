#include "core/composition/composition.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/composition/format_tensor.h"
#include "core/composition/labels.h"

namespace addend {
namespace {

void RequireDefined(const std::string& what, const at::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument(absl::StrCat("an undefined tensor was given as ", what));
}

void RequireFloat(const std::string& what, const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type()) && !at::isComplexType(tensor.scalar_type())) {
    throw InvalidArgument(absl::StrCat(what, " has dtype ", DtypeWord(tensor.scalar_type()),
                                       ", but a composition needs floating-point numbers; convert it first"));
  }
}

void RequireSameType(const std::string& what, const at::Tensor& tensor, const std::string& other_name,
                     const at::Tensor& other) {
  if (tensor.scalar_type() != other.scalar_type()) {
    throw InvalidArgument(absl::StrCat(what, " has dtype ", DtypeWord(tensor.scalar_type()), ", but ", other_name,
                                       " has ", DtypeWord(other.scalar_type())));
  }
  if (tensor.device() != other.device()) {
    throw InvalidArgument(
        absl::StrCat(what, " is on ", tensor.device().str(), ", but ", other_name, " on ", other.device().str()));
  }
}

void RequireSameShape(const std::string& what, const at::Tensor& tensor, const std::string& other_name,
                      at::IntArrayRef other) {
  if (tensor.sizes() != other) {
    throw InvalidArgument(
        absl::StrCat(what, " has shape ", ShapeText(tensor.sizes()), ", but ", other_name, " has ", ShapeText(other)));
  }
}

// The baseline in the shape of the value.
at::Tensor ExpandBaseline(const at::Tensor& value, const at::Tensor& baseline) {
  if (!baseline.defined()) return at::zeros_like(value);
  RequireSameType("the baseline", baseline, "the value", value);
  if (!at::is_expandable_to(baseline.sizes(), value.sizes())) {
    throw InvalidArgument(absl::StrCat("the baseline of shape ", ShapeText(baseline.sizes()),
                                       " does not broadcast to the value of shape ", ShapeText(value.sizes())));
  }
  return baseline.expand(value.sizes());
}

// value - baseline; zero where both are equal, also where both are the same infinity.
at::Tensor Move(const at::Tensor& value, const at::Tensor& baseline) {
  return value.sub(baseline).masked_fill(value.eq(baseline), 0);
}

// Components in which each element of `move` is where its label says. Labels broadcast and are all in [0, numc).
at::Tensor Scatter(const at::Tensor& move, const at::Tensor& labels, int64_t numc) {
  std::vector<int64_t> shape = move.sizes().vec();
  shape.insert(shape.begin(), numc);
  at::Tensor components = at::zeros(shape, move.options());
  if (components.numel() == 0) return components;
  return components.scatter_(0, labels.expand(move.sizes()).unsqueeze(0), move.unsqueeze(0));
}

}  // namespace

void Composition::Set(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover) {
  RequireDefined("components", components);
  RequireDefined("reference", reference);
  if (components.dim() == 0) throw InvalidArgument("the components have no dimension; the first one counts them");
  RequireFloat("the tensor of components", components);
  RequireSameType("the reference", reference, "the tensor of components", components);
  RequireSameShape("the reference", reference, "each component", components.sizes().slice(1));
  components_ = components;
  reference_ = reference;
  if (!leftover.defined()) {
    leftover_ = at::zeros_like(reference_.detach());
    return;
  }
  RequireSameType("the leftover", leftover, "the tensor of components", components);
  RequireSameShape("the leftover", leftover, "each component", components.sizes().slice(1));
  leftover_ = leftover;
}

Composition::Composition(const at::Tensor& components, const at::Tensor& reference, const at::Tensor& leftover) {
  Set(components, reference, leftover);
  components_ = components_.detach();
  reference_ = reference_.detach();
  leftover_ = leftover_.detach();
}

Composition Composition::InGraph(const at::Tensor& components, const at::Tensor& reference,
                                 const at::Tensor& leftover) {
  Composition result;
  result.Set(components, reference, leftover);
  return result;
}

Composition Composition::FromOperator(const at::Tensor& components, const at::Tensor& reference,
                                      const at::Tensor& leftover, Origin origin) {
  Composition result = InGraph(components, reference, leftover);
  if (origin.value.defined()) {
    RequireFloat("the value", origin.value);
    RequireSameShape("the value", origin.value, "each component", components.sizes().slice(1));
  }
  result.origin_ = std::move(origin);
  return result;
}

Composition Composition::Zeros(at::IntArrayRef shape, int64_t numc, const at::TensorOptions& options) {
  if (numc < 0) throw InvalidArgument(absl::StrCat("numc is ", numc, "; it must not be negative"));
  for (const int64_t size : shape) {
    if (size < 0) throw InvalidArgument(absl::StrCat("shape ", ShapeText(shape), " has a negative size"));
  }
  const at::Tensor reference = at::zeros(shape, options);
  RequireFloat("a composition of zeros", reference);
  std::vector<int64_t> components_shape = shape.vec();
  components_shape.insert(components_shape.begin(), numc);
  return Composition(at::zeros(components_shape, options), reference);
}

Composition Composition::ZerosLike(const Composition& other) {
  return Zeros(other.sizes(), other.numc(), other.components().options().requires_grad(false));
}

Composition Composition::FromParts(const std::vector<at::Tensor>& parts, const at::Tensor& residual) {
  if (parts.empty() && !residual.defined()) {
    throw InvalidArgument("a composition needs at least one part, or a residual that tells its shape");
  }
  const at::Tensor& model = parts.empty() ? residual : parts[0];
  const std::string model_name = parts.empty() ? "the residual" : "part 0";
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = absl::StrCat("part ", i);
    RequireDefined(name, parts[i]);
    RequireFloat(name, parts[i]);
    RequireSameType(name, parts[i], model_name, model);
    RequireSameShape(name, parts[i], model_name, model.sizes());
  }
  if (residual.defined()) {
    RequireFloat("the residual", residual);
    RequireSameType("the residual", residual, model_name, model);
    RequireSameShape("the residual", residual, model_name, model.sizes());
  }
  const at::Tensor reference = residual.defined() ? residual : at::zeros_like(model);
  if (!parts.empty()) return Composition(at::stack(parts), reference);
  std::vector<int64_t> shape = model.sizes().vec();
  shape.insert(shape.begin(), 0);
  return Composition(at::empty(shape, model.options()), reference);
}

Composition Composition::Diagonal(const at::Tensor& value, const std::vector<int64_t>& dims, const at::Tensor& baseline,
                                  int64_t offset, int64_t numc) {
  RequireDefined("value", value);
  RequireFloat("the value", value);
  const at::Tensor reference = ExpandBaseline(value, baseline);

  std::vector<int64_t> wrapped;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    const int64_t positive = dim < 0 ? dim + value.dim() : dim;
    if (positive < 0 || positive >= value.dim()) {
      throw InvalidArgument(
          absl::StrCat("dim ", dim, " is out of range for a value of shape ", ShapeText(value.sizes())));
    }
    if (std::find(wrapped.begin(), wrapped.end(), positive) != wrapped.end()) {
      throw InvalidArgument(absl::StrCat("dim ", dim, " occurs twice in dims ", ShapeText(dims)));
    }
    wrapped.push_back(positive);
    count *= value.size(positive);
  }
  if (offset < 0) throw InvalidArgument(absl::StrCat("offset is ", offset, "; it must not be negative"));
  if (offset > std::numeric_limits<int64_t>::max() - count) {
    throw InvalidArgument(absl::StrCat("offset ", offset, " is too large"));
  }
  if (numc == -1) numc = offset + count;
  if (numc < offset + count) {
    throw InvalidArgument(absl::StrCat("numc ", numc, " is too small for offset ", offset, " and ", count,
                                       " positions along dims ", ShapeText(dims)));
  }

  const at::Tensor labels = LabelsAlong(value, wrapped).add(offset);
  return Composition(Scatter(Move(value, reference), labels, numc), reference.contiguous());
}

Composition Composition::FromLabels(const at::Tensor& value, const at::Tensor& labels, const at::Tensor& baseline,
                                    int64_t numc) {
  RequireDefined("value", value);
  RequireDefined("labels", labels);
  RequireFloat("the value", value);
  if (!at::isIntegralType(labels.scalar_type(), /*includeBool=*/false)) {
    throw InvalidArgument(
        absl::StrCat("labels have dtype ", DtypeWord(labels.scalar_type()), "; they must be integers"));
  }
  const at::Tensor reference = ExpandBaseline(value, baseline);
  const at::Tensor aligned = AlignLabels(value, labels);
  numc = CheckLabels(labels, numc);
  const at::Tensor index = aligned.to(value.device(), at::kLong);
  const at::Tensor outside = index.lt(0);
  return Composition(Scatter(Move(value, reference).masked_fill(outside, 0), index.clamp_min(0), numc),
                     at::where(outside, value, reference));
}

std::string Composition::ToString() const {
  std::string out;
  for (int64_t i = 0; i < numc(); ++i) {
    absl::StrAppend(&out, "composition ", i, ":\n", FormatTensor(component(i)), "\n");
  }
  return absl::StrCat(out, "residual:\n", FormatTensor(residual()));
}

}  // namespace addend
