#include "core/composition/format_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"

namespace addend {
namespace {

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

std::string FormatTensor(const at::Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgument("an undefined tensor cannot be printed");
  const at::ScalarType type = tensor.scalar_type();
  if (tensor.layout() != at::kStrided ||
      !(at::isFloatingType(type) || at::isIntegralType(type, /*includeBool=*/true))) {
    throw InvalidArgument(absl::StrCat("a tensor that is not dense or of dtype ", DtypeWord(type),
                                       " cannot be printed; convert it first"));
  }
  const std::string indent(sizeof(kPrefix) - 1, ' ');
  std::vector<std::string> suffixes;
  if (!tensor.device().is_cpu()) suffixes.push_back(absl::StrCat("device='", tensor.device().str(), "'"));
  const bool empty = tensor.numel() == 0;
  if (empty && tensor.dim() != 1) suffixes.push_back(absl::StrCat("size=(", absl::StrJoin(tensor.sizes(), ", "), ")"));
  // Elements tell an integer or a bool from a float, but there may be none.
  if (type != at::kFloat && (empty || (type != at::kLong && type != at::kBool))) {
    suffixes.push_back(absl::StrCat("dtype=torch.", DtypeWord(type)));
  }

  std::string out = absl::StrCat(kPrefix, FormatElements(tensor));
  // Count as PyTorch does, which is one or two more than the characters of the last line.
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
