// Pools: averages, maxima and norms of windows or of all of a channel.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"
#include "core/onnx/windows.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr size_t kMostDimensions = 3;

std::vector<int64_t> SpatialDimensions(const Tensor& x) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max<int64_t>(x.dim() - 2, 0)));
  std::iota(dims.begin(), dims.end(), 2);
  return dims;
}

Results GlobalAveragePool(const Context& context) {
  const Tensor x = context.Tensor(0);
  return x.dim() < 3 ? x : at::mean(x, SpatialDimensions(x), /*keepdim=*/true);
}

Results GlobalMaxPool(const Context& context) {
  const Tensor x = context.Tensor(0);
  return x.dim() < 3 ? x : at::amax(x, SpatialDimensions(x), /*keepdim=*/true);
}

// The exponent of a norm, an integer from version 2 on.
double ExponentOf(const Context& context) {
  const double p =
      context.version() < 2 ? context.FloatAttribute("p", 2) : static_cast<double>(context.IntAttribute("p", 2));
  if (!(p > 0)) throw context.Invalid("the attribute p is not positive");
  return p;
}

Results GlobalLpPool(const Context& context) {
  const Tensor x = context.Tensor(0);
  return at::linalg_vector_norm(x, ExponentOf(context), SpatialDimensions(x), /*keepdim=*/true);
}

Windows PoolWindows(const Context& context, const Tensor& x) {
  const PerDimension sizes = SpatialSizes(context, x);
  if (sizes.size() > kMostDimensions) {
    throw context.Refused(absl::StrCat("pools over ", sizes.size(), " dimensions are not computed"));
  }
  Windows windows =
      WindowsOf(context, sizes, context.IntsAttribute("kernel_shape"), context.FlagAttribute("ceil_mode", false));
  for (size_t k = 0; k < windows.rank(); ++k) {
    if (windows.before[k] < 0 || windows.after[k] < 0)
      throw context.Invalid("a number of the attribute pads is negative");
  }
  return windows;
}

// Padding behind the last element of the last window; negative where no window reaches the last ones.
PerDimension EndsOf(const Windows& windows, const PerDimension& sizes) {
  PerDimension ends(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    ends[k] = (windows.outputs[k] - 1) * windows.strides[k] + windows.Span(k) - windows.before[k] - sizes[k];
  }
  return ends;
}

// Whether LibTorch's pools have these windows: as much padding on both sides, of at most half of the kernel.
bool IsPlain(const Windows& windows, const PerDimension& sizes, bool ceil) {
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (windows.before[k] != windows.after[k] || windows.before[k] > windows.kernel[k] / 2) return false;
    const int64_t room = sizes[k] + 2 * windows.before[k] - windows.Span(k);
    const int64_t stride = windows.strides[k];
    int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (count - 1) * stride >= sizes[k] + windows.before[k]) --count;
    if (count != windows.outputs[k]) return false;
  }
  return true;
}

// ----------------------------------------------------------------------------------------------------- averages

// Averages by LibTorch's pools, or sums with a divisor of one.
Tensor Averages(const Tensor& x, const Windows& windows, bool ceil, bool count_padding,
                c10::optional<int64_t> divisor = {}) {
  if (windows.rank() == 3) {
    return at::avg_pool3d(x, windows.kernel, windows.strides, windows.before, ceil, count_padding, divisor);
  }
  if (windows.rank() == 2) {
    return at::avg_pool2d(x, windows.kernel, windows.strides, windows.before, ceil, count_padding, divisor);
  }
  if (!divisor) return at::avg_pool1d(x, windows.kernel, windows.strides, windows.before, ceil, count_padding);
  return at::squeeze(at::avg_pool2d(at::unsqueeze(x, 2), {1, windows.kernel[0]}, {1, windows.strides[0]},
                                    {0, windows.before[0]}, ceil, count_padding, divisor),
                     2);
}

// The sum of each window of a tensor that windows fill exactly.
Tensor Sums(const Tensor& x, const Windows& windows) {
  Windows inner = windows;
  inner.before.assign(windows.rank(), 0);
  if (!windows.IsDilated()) return Averages(x, inner, /*ceil=*/false, /*count_padding=*/true, 1);
  std::vector<int64_t> plane = {x.size(0) * x.size(1), 1}, sizes = {x.size(0), x.size(1)};
  plane.insert(plane.end(), x.sizes().begin() + 2, x.sizes().end());
  sizes.insert(sizes.end(), windows.outputs.begin(), windows.outputs.end());
  std::vector<int64_t> kernel = {1, 1};
  kernel.insert(kernel.end(), windows.kernel.begin(), windows.kernel.end());
  const Tensor sums = at::convolution(at::reshape(x, plane), at::ones(kernel, x.options()), {}, windows.strides,
                                      inner.before, windows.dilations, /*transposed=*/false, inner.before, 1);
  return at::reshape(sums, sizes);
}

// Averages of windows with any padding, which count in the padding or do not.
Tensor PaddedAverages(const Tensor& x, const PerDimension& sizes, const Windows& windows, bool count_padding) {
  const PerDimension ends = EndsOf(windows, sizes);
  const Tensor sums = Sums(PadSpatial(x, windows.before, ends), windows);
  bool all_count = true;
  PerDimension beyond(sizes.size());  // elements behind the padding
  for (size_t k = 0; k < sizes.size(); ++k) {
    beyond[k] = std::max<int64_t>(ends[k] - windows.after[k], 0);
    all_count = all_count && (count_padding ? beyond[k] == 0 : windows.before[k] == 0 && ends[k] <= 0);
  }
  if (all_count) {
    return at::div(
        sums, std::accumulate(windows.kernel.begin(), windows.kernel.end(), int64_t{1}, std::multiplies<int64_t>()));
  }
  Tensor counts = at::ones_like(at::slice(at::slice(x, 0, 0, 1), 1, 0, 1));
  if (count_padding) {
    PerDimension counted = ends;
    for (size_t k = 0; k < sizes.size(); ++k) counted[k] -= beyond[k];
    counts = PadSpatial(PadSpatial(counts, windows.before, counted, 1), PerDimension(sizes.size(), 0), beyond);
  } else {
    counts = PadSpatial(counts, windows.before, ends);
  }
  return at::div(sums, Sums(counts, windows));
}

Results AveragePool(const Context& context) {
  const Tensor x = context.Tensor(0);
  const PerDimension sizes = SpatialSizes(context, x);
  const Windows windows = PoolWindows(context, x);
  const bool ceil = context.FlagAttribute("ceil_mode", false) && AutoPadOf(context) == "NOTSET";
  const bool count_padding = context.FlagAttribute("count_include_pad", false);
  if (!windows.IsDilated() && IsPlain(windows, sizes, ceil)) return Averages(x, windows, ceil, count_padding);
  return PaddedAverages(x, sizes, windows, count_padding);
}

// The norm of each window, to which padding adds nothing.
Results LpPool(const Context& context) {
  const Tensor x = context.Tensor(0);
  const PerDimension sizes = SpatialSizes(context, x);
  const Windows windows = PoolWindows(context, x);
  const double p = ExponentOf(context);
  const bool is_even = std::fmod(p, 2) == 0;
  const Tensor powers = p == 1 ? at::abs(x) : at::pow(is_even ? x : at::abs(x), p);
  const Tensor sums = Sums(PadSpatial(powers, windows.before, EndsOf(windows, sizes)), windows);
  if (p == 1) return sums;
  return p == 2 ? at::sqrt(sums) : at::pow(sums, 1 / p);
}

// ------------------------------------------------------------------------------------------------------- maxima

struct Maxima {
  Tensor values;
  Tensor places;  // row by row within a channel
};

Maxima MaximaOf(const Tensor& x, const Windows& windows, bool ceil) {
  Maxima maxima;
  if (windows.rank() == 3) {
    std::tie(maxima.values, maxima.places) =
        at::max_pool3d_with_indices(x, windows.kernel, windows.strides, windows.before, windows.dilations, ceil);
    return maxima;
  }
  if (windows.rank() == 2) {
    std::tie(maxima.values, maxima.places) =
        at::max_pool2d_with_indices(x, windows.kernel, windows.strides, windows.before, windows.dilations, ceil);
    return maxima;
  }
  std::tie(maxima.values, maxima.places) =
      at::max_pool2d_with_indices(at::unsqueeze(x, 2), {1, windows.kernel[0]}, {1, windows.strides[0]},
                                  {0, windows.before[0]}, {1, windows.dilations[0]}, ceil);
  maxima.values = at::squeeze(maxima.values, 2);
  maxima.places = at::squeeze(maxima.places, 2);
  return maxima;
}

// The elements of each window along dimension k, window by window. Padding is left out: an element of the window stands
// in its place, which changes no maximum.
std::vector<int64_t> ElementsOf(const Context& context, const Windows& windows, size_t k, int64_t size) {
  std::vector<int64_t> elements;
  for (int64_t o = 0; o < windows.outputs[k]; ++o) {
    const int64_t start = o * windows.strides[k] - windows.before[k];
    const int64_t skipped = start < 0 ? (-start + windows.dilations[k] - 1) / windows.dilations[k] : 0;
    const int64_t first = start + skipped * windows.dilations[k];
    if (skipped >= windows.kernel[k] || first >= size) throw context.Refused("a window lies in the padding alone");
    for (int64_t i = 0; i < windows.kernel[k]; ++i) {
      const int64_t place = start + i * windows.dilations[k];
      elements.push_back(place < 0 || place >= size ? first : place);
    }
  }
  return elements;
}

// The places within a channel, for places among the elements of windows.
Tensor PlacesFrom(const Tensor& places, const std::vector<Tensor>& elements, const PerDimension& sizes) {
  Tensor rest = places;
  std::vector<Tensor> along(sizes.size());
  for (size_t k = sizes.size(); k-- > 0;) {
    const int64_t count = elements[k].size(0);
    along[k] = at::take(elements[k], at::remainder(rest, count));
    rest = at::div(rest, count, "floor");
  }
  Tensor result = along[0];
  for (size_t k = 1; k < sizes.size(); ++k) result = at::add(at::mul(result, sizes[k]), along[k]);
  return result;
}

// Maxima of windows with any padding: their elements are gathered.
Maxima GatheredMaxima(const Context& context, const Tensor& x, const PerDimension& sizes, const Windows& windows) {
  Tensor gathered = x;
  std::vector<Tensor> elements;
  Windows apart = windows;
  for (size_t k = 0; k < sizes.size(); ++k) {
    elements.push_back([&] {
      const TracingPause pause;
      return at::tensor(ElementsOf(context, windows, k, sizes[k]), at::kLong).to(x.device());
    }());
    gathered = at::index_select(gathered, static_cast<int64_t>(k) + 2, elements.back());
    apart.before[k] = 0;
    apart.dilations[k] = 1;
    apart.strides[k] = windows.kernel[k];
  }
  Maxima maxima = MaximaOf(gathered, apart, /*ceil=*/false);
  if (context.Wants(1)) maxima.places = PlacesFrom(maxima.places, elements, sizes);
  return maxima;
}

// Places that count from the first element of the tensor; with `columns`, the first spatial dimension runs fastest.
Tensor WholePlaces(const Tensor& places, const Tensor& x, const PerDimension& sizes, bool columns) {
  const int64_t plane = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>());
  Tensor within = places;
  if (columns) {
    Tensor rest = places;
    within = at::zeros_like(places);
    int64_t unit = plane;
    for (size_t k = sizes.size(); k-- > 0;) {
      unit /= std::max<int64_t>(sizes[k], 1);
      within = at::add(within, at::mul(at::remainder(rest, sizes[k]), unit));
      rest = at::div(rest, sizes[k], "floor");
    }
  }
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  const Tensor starts = at::mul(at::arange(x.size(0) * x.size(1), places.options()), plane);
  return at::add(within, at::reshape(starts, shape));
}

Results MaxPool(const Context& context) {
  const Tensor given = context.Tensor(0);
  const bool is_integer = !c10::isFloatingType(given.scalar_type());
  const Tensor x = is_integer ? given.to(at::kFloat) : given;  // of 8 bits
  const PerDimension sizes = SpatialSizes(context, x);
  const Windows windows = PoolWindows(context, x);
  const bool ceil = context.FlagAttribute("ceil_mode", false) && AutoPadOf(context) == "NOTSET";
  const Maxima maxima =
      IsPlain(windows, sizes, ceil) ? MaximaOf(x, windows, ceil) : GatheredMaxima(context, x, sizes, windows);
  const Tensor values = InType(maxima.values, given.scalar_type());
  if (!context.Wants(1)) return values;
  return {values, WholePlaces(maxima.places, x, sizes, context.FlagAttribute("storage_order", false))};
}

// Puts the elements where a pool took them from: places count from the first element of its input, whose sizes follow
// from the windows. A result that is to be larger has zeros behind it.
Results MaxUnpool(const Context& context) {
  const Tensor x = context.Tensor(0);
  const PerDimension sizes = SpatialSizes(context, x);
  const PerDimension kernel = PerDimensionAttribute(context, "kernel_shape", sizes.size(), 1);
  const PerDimension strides = PerDimensionAttribute(context, "strides", sizes.size(), 1);
  const PerDimension pads = PerDimensionAttribute(context, "pads", 2 * sizes.size(), 0);
  std::vector<int64_t> shape = {x.size(0), x.size(1)};
  int64_t count = x.size(0) * x.size(1);
  for (size_t k = 0; k < sizes.size(); ++k) {
    shape.push_back((sizes[k] - 1) * strides[k] - pads[k] - pads[sizes.size() + k] + kernel[k]);
    count *= shape.back();
  }
  const Tensor whole = at::scatter(at::zeros({count}, x.options()), 0, at::flatten(context.Tensor(1)), at::flatten(x));
  const Tensor result = at::reshape(whole, shape);
  if (!context.Has(2)) return result;
  std::vector<int64_t> wanted = context.Integers(2);
  if (wanted.size() != shape.size() || wanted[0] != shape[0] || wanted[1] != shape[1]) {
    throw context.Invalid("the sizes of the result do not fit the input");
  }
  PerDimension after(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    after[k] = wanted[k + 2] - shape[k + 2];
    if (after[k] < 0) throw context.Invalid("the result is smaller than what the windows cover");
  }
  return PadSpatial(result, PerDimension(sizes.size(), 0), after);
}

}  // namespace

void RegisterPools(OperatorTable& table) {
  table.Add("GlobalAveragePool", 1, GlobalAveragePool);
  table.Add("GlobalMaxPool", 1, GlobalMaxPool);
  table.Add("GlobalLpPool", 1, GlobalLpPool).Attributes({"p"});
  table.Add("AveragePool", 1, AveragePool)
      .Attributes({"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"});
  table.Add("LpPool", 1, LpPool)
      .Attributes({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"});
  table.Add("MaxPool", 1, MaxPool)
      .Attributes({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"});
  table.Add("MaxUnpool", 9, MaxUnpool).Inputs(2, 3).Attributes({"kernel_shape", "pads", "strides"});
  table.KeepIntegers({"GlobalMaxPool", "MaxPool"}, /*results=*/1);
}

}  // namespace addend::onnx
