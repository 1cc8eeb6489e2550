#include "core/composition/composition.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace addend {
namespace {

std::string ShapeText(at::IntArrayRef shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// As Python names it, without "torch.".
std::string DtypeName(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default:
      return absl::AsciiStrToLower(at::toString(type));
  }
}

void RequireDefined(const std::string& what, const at::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument(absl::StrCat("an undefined tensor was given as ", what));
}

void RequireFloat(const std::string& what, const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type()) && !at::isComplexType(tensor.scalar_type())) {
    throw InvalidArgument(absl::StrCat(what, " has dtype ", DtypeName(tensor.scalar_type()),
                                       ", but a composition needs floating-point numbers; convert it first"));
  }
}

void RequireSameType(const std::string& what, const at::Tensor& tensor, const std::string& other_name,
                     const at::Tensor& other) {
  if (tensor.scalar_type() != other.scalar_type()) {
    throw InvalidArgument(absl::StrCat(what, " has dtype ", DtypeName(tensor.scalar_type()), ", but ", other_name,
                                       " has ", DtypeName(other.scalar_type())));
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

// The labels with a dimension of size 1 for each dimension of the value that they lack.
at::Tensor AlignLabels(const at::Tensor& value, const at::Tensor& labels) {
  std::vector<int64_t> shape = labels.sizes().vec();
  bool fits = labels.dim() <= value.dim();
  for (int64_t i = 0; fits && i < labels.dim(); ++i) fits = shape[i] == value.size(i) || shape[i] == 1;
  if (!fits) {
    throw InvalidArgument(absl::StrCat(
        "labels of shape ", ShapeText(labels.sizes()),
        " are neither of the shape of the value nor of its leading dimensions: ", ShapeText(value.sizes())));
  }
  shape.resize(static_cast<size_t>(value.dim()), 1);
  return labels.reshape(shape);
}

// Checks every label against numc, or finds the numc that they need.
int64_t CheckLabels(const at::Tensor& labels, int64_t numc) {
  if (numc < -1)
    throw InvalidArgument(absl::StrCat("numc is ", numc, "; it is -1 (as many as needed) or not negative"));
  const at::Tensor flat = labels.to(at::Device(at::kCPU), at::kLong).contiguous();
  const auto* data = static_cast<const int64_t*>(flat.data_ptr());
  int64_t largest = -1;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (data[i] < -1) throw InvalidArgument(absl::StrCat("label ", data[i], " is negative; -1 means no component"));
    if (numc >= 0 && data[i] >= numc) {
      throw InvalidArgument(absl::StrCat("label ", data[i], " is out of range for numc ", numc));
    }
    largest = std::max(largest, data[i]);
  }
  if (numc >= 0) return numc;
  if (largest == std::numeric_limits<int64_t>::max()) {
    throw InvalidArgument(absl::StrCat("label ", largest, " is too large"));
  }
  return largest + 1;
}

// -------------------------------------------------------------------------------------------------------- printing

// PyTorch's default print options.
constexpr int kPrecision = 4;
constexpr int64_t kThreshold = 1000;
constexpr int64_t kEdgeItems = 3;
constexpr int64_t kLineWidth = 80;
constexpr char kPrefix[] = "tensor(";

// The elements of one tensor as texts, in the order of memory.
struct Texts {
  std::vector<std::string> items;
  size_t width = 1;  // for which lines are broken; only what is zero or not finite may be longer
};

Texts FormatFloats(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  const auto* data = static_cast<const double*>(flat.data_ptr());
  const std::vector<double> values(data, data + flat.numel());

  // Zeros and what is not finite fit in anyhow: they decide neither the style nor the width.
  std::vector<double> decisive;
  std::copy_if(values.begin(), values.end(), std::back_inserter(decisive),
               [](double v) { return std::isfinite(v) && v != 0; });
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  bool whole = true;
  for (const double v : decisive) {
    smallest = std::min(smallest, std::abs(v));
    largest = std::max(largest, std::abs(v));
    whole = whole && v == std::ceil(v);
  }
  const bool scientific =
      !decisive.empty() && (largest / smallest > 1000 || largest > 1e8 || (!whole && smallest < 1e-4));

  // Abseil's, because the decimal point of printf depends on the locale of the process.
  const auto text = [&](double v) -> std::string {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    if (scientific) return absl::StrFormat("%.*e", kPrecision, v);
    return whole ? absl::StrFormat("%.0f.", v) : absl::StrFormat("%.*f", kPrecision, v);
  };
  Texts texts;
  for (const double v : decisive) texts.width = std::max(texts.width, text(v).size());
  for (const double v : values) texts.items.push_back(absl::StrFormat("%*s", static_cast<int>(texts.width), text(v)));
  return texts;
}

Texts FormatIntegers(const at::Tensor& tensor) {
  const bool is_bool = tensor.scalar_type() == at::kBool;
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  const auto* data = static_cast<const int64_t*>(flat.data_ptr());
  Texts texts;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    texts.items.push_back(!is_bool ? absl::StrCat(data[i]) : data[i] != 0 ? "True" : "False");
    texts.width = std::max(texts.width, texts.items.back().size());
  }
  for (std::string& text : texts.items) text.insert(0, texts.width - text.size(), ' ');
  return texts;
}

// Lays out the texts of the elements of one tensor.
class Layout {
 public:
  // `elided`: dimensions of which only the edges are left.
  Layout(at::IntArrayRef shape, std::vector<bool> elided, Texts texts)
      : shape_(shape), elided_(std::move(elided)), texts_(std::move(texts)) {}

  std::string Write(int64_t indent) {
    next_ = 0;
    return Write(0, indent);
  }

 private:
  std::string Write(size_t dim, int64_t indent) {
    if (dim == shape_.size()) return texts_.items[next_++];
    if (dim + 1 == shape_.size()) return WriteVector(dim, indent);
    std::vector<std::string> slices;
    for (int64_t i = 0; i < shape_[dim]; ++i) {
      if (elided_[dim] && i == kEdgeItems) slices.emplace_back("...");
      slices.push_back(Write(dim + 1, indent + 1));
    }
    // One empty line more for each dimension further out.
    const std::string separator = absl::StrCat(",", std::string(shape_.size() - 1 - dim, '\n'), Spaces(indent + 1));
    return absl::StrCat("[", absl::StrJoin(slices, separator), "]");
  }

  std::string WriteVector(size_t dim, int64_t indent) {
    std::vector<std::string> items;
    for (int64_t i = 0; i < shape_[dim]; ++i) {
      if (elided_[dim] && i == kEdgeItems) items.emplace_back(" ...");
      items.push_back(texts_.items[next_++]);
    }
    const auto item_width = static_cast<int64_t>(texts_.width) + 2;  // with comma and space
    // Negative where the nesting is deeper than a line is wide.
    const auto per_line = static_cast<size_t>(std::max<int64_t>(1, (kLineWidth - indent) / item_width));
    std::string out = "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) absl::StrAppend(&out, i % per_line == 0 ? absl::StrCat(",\n", Spaces(indent + 1)) : ", ");
      out += items[i];
    }
    return out + "]";
  }

  static std::string Spaces(int64_t count) { return std::string(static_cast<size_t>(count), ' '); }

  at::IntArrayRef shape_;
  std::vector<bool> elided_;
  Texts texts_;
  size_t next_ = 0;
};

std::string FormatElements(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return "[]";
  at::Tensor shown = tensor.detach();
  std::vector<bool> elided(static_cast<size_t>(tensor.dim()), false);
  if (tensor.numel() > kThreshold) {
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      const int64_t size = tensor.size(dim);
      if (size <= 2 * kEdgeItems) continue;
      elided[static_cast<size_t>(dim)] = true;
      const at::Tensor edge = at::arange(2 * kEdgeItems, at::TensorOptions().dtype(at::kLong).device(tensor.device()));
      shown = shown.index_select(dim, at::where(edge.lt(kEdgeItems), edge, edge.add(size - 2 * kEdgeItems)));
    }
  }
  shown = shown.cpu();
  Layout layout(shown.sizes(), std::move(elided),
                at::isFloatingType(shown.scalar_type()) ? FormatFloats(shown) : FormatIntegers(shown));
  return layout.Write(sizeof(kPrefix) - 1);
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
  std::vector<int64_t> sizes;
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
    sizes.push_back(value.size(positive));
    count *= sizes.back();
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

  // Numbers for the positions in the order of `dims`, moved to where these dimensions are in the value.
  std::vector<int64_t> order(wrapped.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return wrapped[a] < wrapped[b]; });
  std::vector<int64_t> label_shape(static_cast<size_t>(value.dim()), 1);
  for (const int64_t dim : wrapped) label_shape[static_cast<size_t>(dim)] = value.size(dim);
  const at::Tensor labels =
      at::arange(offset, offset + count, at::TensorOptions().dtype(at::kLong).device(value.device()))
          .reshape(sizes)
          .permute(order)
          .reshape(label_shape);
  return Composition(Scatter(Move(value, reference), labels, numc), reference.contiguous());
}

Composition Composition::FromLabels(const at::Tensor& value, const at::Tensor& labels, const at::Tensor& baseline,
                                    int64_t numc) {
  RequireDefined("value", value);
  RequireDefined("labels", labels);
  RequireFloat("the value", value);
  if (!at::isIntegralType(labels.scalar_type(), /*includeBool=*/false)) {
    throw InvalidArgument(
        absl::StrCat("labels have dtype ", DtypeName(labels.scalar_type()), "; they must be integers"));
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

std::string FormatTensor(const at::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument("an undefined tensor cannot be printed");
  const at::ScalarType type = tensor.scalar_type();
  if (tensor.layout() != at::kStrided ||
      !(at::isFloatingType(type) || at::isIntegralType(type, /*includeBool=*/true))) {
    throw InvalidArgument(absl::StrCat("a tensor that is not dense or of dtype ", DtypeName(type),
                                       " cannot be printed; convert it first"));
  }
  const std::string indent(sizeof(kPrefix) - 1, ' ');
  std::vector<std::string> suffixes;
  if (!tensor.device().is_cpu()) suffixes.push_back(absl::StrCat("device='", tensor.device().str(), "'"));
  const bool empty = tensor.numel() == 0;
  if (empty && tensor.dim() != 1) suffixes.push_back(absl::StrCat("size=(", absl::StrJoin(tensor.sizes(), ", "), ")"));
  // Elements tell an integer or a bool from a float, but there may be none.
  if (type != at::kFloat && (empty || (type != at::kLong && type != at::kBool))) {
    suffixes.push_back(absl::StrCat("dtype=torch.", DtypeName(type)));
  }

  std::string out = absl::StrCat(kPrefix, FormatElements(tensor));
  // As PyTorch counts, which is one or two more than the characters of the last line.
  const size_t line_end = out.rfind('\n');
  size_t line = line_end == std::string::npos ? out.size() + 2 : out.size() - line_end + 1;
  for (const std::string& suffix : suffixes) {
    if (line + suffix.size() + 2 > kLineWidth) {
      absl::StrAppend(&out, ",\n", indent, suffix);
      line = indent.size() + suffix.size();
    } else {
      absl::StrAppend(&out, ", ", suffix);
      line += suffix.size() + 2;
    }
  }
  return out + ")";
}

}  // namespace addend
