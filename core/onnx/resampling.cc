// Resampling: resizing, and reading at the places of a grid.
//
// A resized dimension is a product with a matrix, which holds for each new place the weights of the old ones; so all
// modes are linear. Where the matrix has one 1 in each row, elements are selected. LibTorch's own operators are called
// for what its exporter writes them as: a recording then serves other sizes.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/windows.h"

namespace addend::onnx {
namespace {

using at::Tensor;

enum class Mode { kNearest, kLinear, kCubic };

// One dimension that is resized. Numbers are float32, as ONNX Runtime computes places: others would round otherwise.
struct Resized {
  int64_t axis = 0;
  int64_t old_size = 0;
  int64_t new_size = 0;
  float scale = 1;
  float roi_start = 0;
  float roi_end = 1;
};

struct Resampling {
  Mode mode = Mode::kNearest;
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";
  bool excludes_outside = false;
  bool is_antialiased = false;
  double cubic = -0.75;
  double outside = 0;  // the value beyond the input, for tf_crop_and_resize
  bool has_scales = false;
  std::vector<Resized> dimensions;
};

bool Crops(const Resampling& resampling) { return resampling.coordinates == "tf_crop_and_resize"; }

// The place in the old dimension that an element of the new one is read at.
float PlaceOf(const Context& context, const std::string& coordinates, const Resized& r, int64_t element) {
  const auto at = static_cast<float>(element);
  const auto old_size = static_cast<float>(r.old_size), new_size = static_cast<float>(r.new_size);
  if (coordinates == "asymmetric") return at / r.scale;
  if (coordinates == "half_pixel") return (at + 0.5F) / r.scale - 0.5F;
  if (coordinates == "pytorch_half_pixel") return r.new_size > 1 ? (at + 0.5F) / r.scale - 0.5F : 0.0F;
  if (coordinates == "align_corners") return r.new_size == 1 ? 0.0F : at * (old_size - 1) / (new_size - 1);
  if (coordinates == "tf_half_pixel_for_nn") return (at + 0.5F) / r.scale;
  if (coordinates == "half_pixel_symmetric") {
    const float offset = old_size / 2 * (1 - new_size / (r.scale * old_size));
    return offset + (at + 0.5F) / r.scale - 0.5F;
  }
  if (coordinates == "tf_crop_and_resize") {
    if (r.new_size == 1) return 0.5F * (r.roi_start + r.roi_end) * (old_size - 1);
    return r.roi_start * (old_size - 1) + at * (r.roi_end - r.roi_start) * (old_size - 1) / (new_size - 1);
  }
  throw context.Invalid(absl::StrCat("the attribute coordinate_transformation_mode is \"", coordinates, "\""));
}

// The element nearest to a place. Models before version 11 round down, or up where the result is smaller.
int64_t Nearest(const Context& context, const std::string& rounding, const Resized& r, float place) {
  const float below = std::floor(place);
  float chosen = below;
  if (rounding == "round_prefer_floor") {
    chosen = place - below <= 0.5F ? below : below + 1;
  } else if (rounding == "round_prefer_ceil") {
    chosen = place - below < 0.5F ? below : below + 1;
  } else if (rounding == "ceil" || (rounding == "simple" && r.scale < 1)) {
    chosen = std::ceil(place);
  } else if (rounding != "floor" && rounding != "simple") {
    throw context.Invalid(absl::StrCat("the attribute nearest_mode is \"", rounding, "\""));
  }
  return std::clamp<int64_t>(static_cast<int64_t>(chosen), 0, r.old_size - 1);
}

// The weight of an element at a distance.
double Weight(const Resampling& resampling, double distance) {
  const double x = std::abs(distance);
  if (resampling.mode == Mode::kLinear) return std::max(1 - x, 0.0);
  const double a = resampling.cubic;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * a * x - 4 * a : 0;
}

// The weights of all elements for a place. Elements beyond the ends are those at the ends, or are left out.
std::vector<double> Weights(const Resampling& resampling, const Resized& r, double place) {
  const double density = resampling.is_antialiased ? std::min<double>(r.scale, 1) : 1;
  const double reach = (resampling.mode == Mode::kLinear ? 1 : 2) / density;
  std::vector<double> row(static_cast<size_t>(r.old_size));
  double total = 0;
  const auto last = static_cast<int64_t>(std::floor(place + reach));
  for (auto i = static_cast<int64_t>(std::ceil(place - reach)); i <= last; ++i) {
    const bool is_outside = i < 0 || i >= r.old_size;
    if (is_outside && resampling.excludes_outside) continue;
    const double weight = Weight(resampling, (static_cast<double>(i) - place) * density);
    row[static_cast<size_t>(std::clamp<int64_t>(i, 0, r.old_size - 1))] += weight;
    total += weight;
  }
  if ((resampling.is_antialiased || resampling.excludes_outside) && total != 0) {
    for (double& weight : row) weight /= total;
  }
  return row;
}

bool IsOutside(const Resampling& resampling, const Resized& r, float place) {
  return Crops(resampling) && (place < 0 || place > static_cast<float>(r.old_size - 1));
}

// -------------------------------------------------------------------------------------------------- one dimension

Tensor Selected(const Context& context, const Tensor& x, const Resampling& resampling, const Resized& r) {
  const TracingPause pause;
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < r.new_size; ++i) {
    elements.push_back(Nearest(context, resampling.rounding, r, PlaceOf(context, resampling.coordinates, r, i)));
  }
  return at::tensor(elements, at::kLong).to(x.device());
}

// [new, old]
Tensor Matrix(const Context& context, const Tensor& x, const Resampling& resampling, const Resized& r) {
  const TracingPause pause;
  std::vector<double> numbers;
  numbers.reserve(static_cast<size_t>(r.new_size * r.old_size));
  for (int64_t i = 0; i < r.new_size; ++i) {
    const float place = PlaceOf(context, resampling.coordinates, r, i);
    std::vector<double> row(static_cast<size_t>(r.old_size));
    if (!IsOutside(resampling, r, place)) row = Weights(resampling, r, place);
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return at::reshape(at::tensor(numbers, at::kDouble), {r.new_size, r.old_size}).to(x.options());
}

Tensor ResizedAlong(const Context& context, const Tensor& x, const Resampling& resampling, const Resized& r) {
  if (resampling.mode == Mode::kNearest) return at::index_select(x, r.axis, Selected(context, x, resampling, r));
  const Tensor rows = at::movedim(x, r.axis, -1);
  return at::movedim(at::matmul(rows, at::t(Matrix(context, x, resampling, r))), -1, r.axis);
}

// 1 where an element is read within the input, with as many dimensions as the tensor.
Tensor Inside(const Context& context, const Tensor& x, const Resampling& resampling) {
  const TracingPause pause;
  Tensor inside = at::ones(std::vector<int64_t>(static_cast<size_t>(x.dim()), 1), at::kDouble);
  for (const Resized& r : resampling.dimensions) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < r.new_size; ++i) {
      numbers.push_back(IsOutside(resampling, r, PlaceOf(context, resampling.coordinates, r, i)) ? 0 : 1);
    }
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    shape[static_cast<size_t>(r.axis)] = r.new_size;
    inside = at::mul(inside, at::reshape(at::tensor(numbers, at::kDouble), shape));
  }
  return inside.to(x.options());
}

// ------------------------------------------------------------------------------------------------ LibTorch's own

// Whether an own operator of LibTorch reads each element at the same place: they serve dimensions behind two.
bool IsLibTorchs(const Tensor& x, const Resampling& resampling) {
  const auto& dimensions = resampling.dimensions;
  if (x.dim() < 3 || x.dim() > 5 || x.numel() == 0 || !c10::isFloatingType(x.scalar_type())) return false;
  if (resampling.is_antialiased || resampling.excludes_outside || resampling.mode == Mode::kCubic) return false;
  for (const Resized& r : dimensions) {
    if (r.axis < 2 || r.new_size < 2) return false;
    if (resampling.mode == Mode::kLinear) {
      if (resampling.coordinates != "half_pixel" && resampling.coordinates != "pytorch_half_pixel" &&
          resampling.coordinates != "align_corners") {
        return false;
      }
      continue;
    }
    // A power of two rounds nowhere.
    if (resampling.coordinates != "asymmetric" || (resampling.rounding != "floor" && resampling.rounding != "simple")) {
      return false;
    }
    const int64_t factor = r.new_size / r.old_size;
    if (factor * r.old_size != r.new_size || (factor & (factor - 1)) != 0) return false;
    if (r.scale != static_cast<float>(factor)) return false;
  }
  return true;
}

Tensor ResizedByLibTorch(const Tensor& x, const Resampling& resampling) {
  std::vector<int64_t> sizes = x.sizes().slice(2).vec();
  std::vector<c10::optional<double>> scales(sizes.size());
  if (resampling.has_scales) std::fill(scales.begin(), scales.end(), 1.0);
  for (const Resized& r : resampling.dimensions) {
    sizes[static_cast<size_t>(r.axis - 2)] = r.new_size;
    if (resampling.has_scales) scales[static_cast<size_t>(r.axis - 2)] = static_cast<double>(r.scale);
  }
  const bool aligns = resampling.coordinates == "align_corners";
  if (resampling.mode == Mode::kNearest) {
    if (sizes.size() == 1) return at::upsample_nearest1d(x, sizes, scales[0]);
    if (sizes.size() == 2) return at::upsample_nearest2d(x, sizes, scales[0], scales[1]);
    return at::upsample_nearest3d(x, sizes, scales[0], scales[1], scales[2]);
  }
  if (sizes.size() == 1) return at::upsample_linear1d(x, sizes, aligns, scales[0]);
  if (sizes.size() == 2) return at::upsample_bilinear2d(x, sizes, aligns, scales[0], scales[1]);
  return at::upsample_trilinear3d(x, sizes, aligns, scales[0], scales[1], scales[2]);
}

Tensor Resample(const Context& context, const Tensor& x, Resampling resampling) {
  auto& dimensions = resampling.dimensions;
  const bool crops = Crops(resampling);
  dimensions.erase(std::remove_if(dimensions.begin(), dimensions.end(),
                                  [&](const Resized& r) {
                                    return r.new_size == r.old_size && r.scale == 1 &&
                                           (!crops || (r.roi_start == 0 && r.roi_end == 1));
                                  }),
                   dimensions.end());
  if (dimensions.empty()) return x;
  for (const Resized& r : dimensions) {
    if (r.old_size == 0 && r.new_size > 0) throw context.Invalid("a dimension without elements is resized");
    if (!(r.scale > 0) && r.new_size > 0) throw context.Invalid("a dimension is resized by a number below zero");
  }
  if (resampling.mode != Mode::kNearest && !c10::isFloatingType(x.scalar_type())) {
    throw context.Refused("integers are interpolated, and rounded again; cast them to float before");
  }
  if (IsLibTorchs(x, resampling)) return ResizedByLibTorch(x, resampling);
  Tensor result = x;
  for (const Resized& r : dimensions) result = ResizedAlong(context, result, resampling, r);
  if (!crops) return result;
  const Tensor inside = Inside(context, x, resampling);
  if (resampling.mode == Mode::kNearest) result = at::mul(result, inside);
  if (resampling.outside == 0) return result;
  return at::add(result, at::mul(at::rsub(inside, 1), resampling.outside));
}

// ------------------------------------------------------------------------------------------------------ operators

Mode ModeOf(const Context& context) {
  const std::string text = context.TextAttribute("mode", "nearest");
  if (text == "nearest") return Mode::kNearest;
  if (text == "linear" || text == "bilinear") return Mode::kLinear;
  if (text == "cubic") return Mode::kCubic;
  throw context.Invalid(absl::StrCat("the attribute mode is \"", text, "\""));
}

// Adds a dimension by its scale: the new size is rounded down.
void AddScaled(const Tensor& x, int64_t axis, double scale, Resampling* resampling) {
  Resized r;
  r.axis = axis;
  r.old_size = x.size(axis);
  r.scale = static_cast<float>(scale);
  r.new_size = static_cast<int64_t>(std::floor(static_cast<float>(r.old_size) * r.scale));
  resampling->dimensions.push_back(r);
  resampling->has_scales = true;
}

void AddSized(const Tensor& x, int64_t axis, int64_t size, Resampling* resampling) {
  Resized r;
  r.axis = axis;
  r.old_size = x.size(axis);
  r.new_size = size;
  r.scale = static_cast<float>(size) / static_cast<float>(r.old_size);
  resampling->dimensions.push_back(r);
}

void AddScales(const Context& context, const Tensor& x, const std::vector<int64_t>& axes,
               const std::vector<double>& scales, Resampling* resampling) {
  if (scales.size() != axes.size()) {
    throw context.Invalid(absl::StrCat(scales.size(), " scales are given for ", axes.size(), " dimensions"));
  }
  for (size_t k = 0; k < axes.size(); ++k) AddScaled(x, axes[k], scales[k], resampling);
}

// Takes one scale for all dimensions: that with which no size is larger than asked for, or none smaller.
void KeepRatio(const Context& context, const std::string& policy, Resampling* resampling) {
  auto& dimensions = resampling->dimensions;
  if (policy == "stretch" || dimensions.empty()) return;
  if (policy != "not_larger" && policy != "not_smaller") {
    throw context.Invalid(absl::StrCat("the attribute keep_aspect_ratio_policy is \"", policy, "\""));
  }
  const auto [least, most] = std::minmax_element(dimensions.begin(), dimensions.end(),
                                                 [](const Resized& a, const Resized& b) { return a.scale < b.scale; });
  const float scale = policy == "not_larger" ? least->scale : most->scale;
  for (Resized& r : dimensions) {
    r.scale = scale;
    r.new_size = static_cast<int64_t>(std::round(scale * static_cast<float>(r.old_size)));
  }
  resampling->has_scales = true;
}

void ReadRoi(const Context& context, Resampling* resampling) {
  auto& dimensions = resampling->dimensions;
  const std::vector<double> roi = context.Has(1) ? context.Reals(1) : std::vector<double>();
  if (roi.size() != 2 * dimensions.size()) {
    throw context.Invalid(
        absl::StrCat("the region has ", roi.size(), " numbers for ", dimensions.size(), " dimensions"));
  }
  for (size_t k = 0; k < dimensions.size(); ++k) {
    dimensions[k].roi_start = static_cast<float>(roi[k]);
    dimensions[k].roi_end = static_cast<float>(roi[dimensions.size() + k]);
  }
}

std::vector<int64_t> AllAxes(const Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t k = 0; k < x.dim(); ++k) axes.push_back(k);
  return axes;
}

Results Resize(const Context& context) {
  const Tensor x = context.Tensor(0);
  Resampling resampling;
  resampling.mode = ModeOf(context);
  resampling.coordinates = context.TextAttribute("coordinate_transformation_mode", "half_pixel");
  resampling.rounding = context.TextAttribute("nearest_mode", "round_prefer_floor");
  resampling.excludes_outside = context.FlagAttribute("exclude_outside", false);
  resampling.is_antialiased = context.FlagAttribute("antialias", false) && resampling.mode != Mode::kNearest;
  resampling.cubic = context.FloatAttribute("cubic_coeff_a", -0.75);
  resampling.outside = context.FloatAttribute("extrapolation_value", 0);
  const std::vector<int64_t> axes =
      context.HasAttribute("axes") ? context.Axes(context.IntsAttribute("axes"), x.dim()) : AllAxes(x);
  // Scales without elements are none: before version 13 they could not be left out.
  if (context.Has(2) && context.Tensor(2).numel() > 0) {
    AddScales(context, x, axes, context.Reals(2), &resampling);
  } else {
    const std::vector<int64_t> sizes = context.Integers(3);
    if (sizes.size() != axes.size()) {
      throw context.Invalid(absl::StrCat(sizes.size(), " sizes are given for ", axes.size(), " dimensions"));
    }
    for (size_t k = 0; k < axes.size(); ++k) AddSized(x, axes[k], sizes[k], &resampling);
    KeepRatio(context, context.TextAttribute("keep_aspect_ratio_policy", "stretch"), &resampling);
  }
  if (Crops(resampling)) ReadRoi(context, &resampling);
  return Resample(context, x, std::move(resampling));
}

// The operators before Resize of version 11.
Resampling Old(const Context& context) {
  Resampling resampling;
  resampling.mode = ModeOf(context);
  resampling.coordinates = "asymmetric";
  resampling.rounding = "simple";
  return resampling;
}

Results OldResize(const Context& context) {
  const Tensor x = context.Tensor(0);
  Resampling resampling = Old(context);
  const std::vector<double> scales = context.version() < 9 ? context.FloatsAttribute("scales") : context.Reals(1);
  AddScales(context, x, AllAxes(x), scales, &resampling);
  return Resample(context, x, std::move(resampling));
}

// The operator before version 7.
Results OldUpsample(const Context& context) {
  const Tensor x = context.Tensor(0);
  Resampling resampling = Old(context);
  AddScales(context, x, AllAxes(x),
            {1, 1, context.FloatAttribute("height_scale"), context.FloatAttribute("width_scale")}, &resampling);
  return Resample(context, x, std::move(resampling));
}

// ---------------------------------------------------------------------------------------------------------- grids

// The numbers that LibTorch has for modes and padding.
constexpr int64_t kNearestGrid = 1;
constexpr int64_t kCubicGrid = 2;
constexpr int64_t kReflectedGrid = 2;

int64_t GridMode(const Context& context) {
  const std::string text = context.TextAttribute("mode", context.version() < 20 ? "bilinear" : "linear");
  if (text == "linear" || text == "bilinear") return 0;
  if (text == "nearest") return kNearestGrid;
  if (text == "cubic" || text == "bicubic") return kCubicGrid;
  throw context.Invalid(absl::StrCat("the attribute mode is \"", text, "\""));
}

int64_t GridPadding(const Context& context) {
  const std::string text = context.TextAttribute("padding_mode", "zeros");
  if (text == "zeros") return 0;
  if (text == "border") return 1;
  if (text == "reflection") return kReflectedGrid;
  throw context.Invalid(absl::StrCat("the attribute padding_mode is \"", text, "\""));
}

// The grid with its places in the middle of the nearest elements: LibTorch's sampler of volumes may round halves away
// from zero, where ONNX rounds to even.
Tensor Snapped(const Tensor& x, const Tensor& grid, bool aligns) {
  std::vector<Tensor> places;
  for (int64_t k = 0; k < 3; ++k) {
    const auto size = static_cast<double>(x.size(4 - k));
    const double factor = aligns ? (size - 1) / 2 : size / 2;
    const double offset = (size - 1) / 2;
    const Tensor place = at::round(at::add(at::mul(at::select(grid, 4, k), factor), offset));
    places.push_back(factor == 0 ? at::zeros_like(place) : at::div(at::sub(place, offset), factor));
  }
  return at::stack(places, 4);
}

Results GridSample(const Context& context) {
  const Tensor x = context.Tensor(0);
  Tensor grid = context.Tensor(1);
  const int64_t mode = GridMode(context), padding = GridPadding(context);
  const bool aligns = context.FlagAttribute("align_corners", false);
  if ((x.dim() != 4 && x.dim() != 5) || (x.dim() == 5 && mode == kCubicGrid)) {
    throw context.Refused(absl::StrCat("LibTorch cannot sample over ", x.dim() - 2, " dimensions in this mode"));
  }
  if (x.dim() == 5 && mode == kNearestGrid) {
    // Reflection at the edges of elements turns even places into odd ones.
    if (padding == kReflectedGrid && !aligns)
      throw context.Refused("the nearest elements of a reflected volume are read");
    grid = Snapped(x, grid, aligns);
  }
  return at::grid_sampler(x, grid, mode, padding, aligns);
}

Results AffineGrid(const Context& context) {
  return at::affine_grid_generator(context.Tensor(0), context.Integers(1),
                                   context.FlagAttribute("align_corners", false));
}

}  // namespace

void RegisterResampling(OperatorTable& table) {
  table.Add("Upsample", 1, OldUpsample).Attributes({"height_scale", "mode", "width_scale"});
  table.Add("Upsample", 7, OldResize).Attributes({"mode", "scales"});
  table.Add("Upsample", 9, OldResize).Inputs(2).Attributes({"mode"}).Known(KnownIf::kSizesConstant).Until(9);
  table.Add("Resize", 10, OldResize).Inputs(2).Attributes({"mode"}).Known(KnownIf::kSizesConstant);
  table.Add("Resize", 11, Resize)
      .Inputs(2, 4)
      .Attributes({"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
                   "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode"})
      .Known(KnownIf::kSizesConstant);
  table.Add("GridSample", 16, GridSample).Inputs(2).Attributes({"align_corners", "mode", "padding_mode"});
  table.Add("AffineGrid", 20, AffineGrid).Inputs(2).Attributes({"align_corners"}).Known(KnownIf::kInputsConstant);
}

}  // namespace addend::onnx
