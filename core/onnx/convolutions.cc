// Convolutions, and what undoes the unfolding of windows.
#include <ATen/ATen.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/plain_convolution.h"
#include "core/onnx/windows.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results Conv(const Context& context) {
  return PlainConvolution(context, context.Tensor(0), context.Tensor(1), BiasOf(context, 2));
}

// ------------------------------------------------------------------------------------------------- transposed

// A transposed convolution: its result reaches over `full` elements, of which padding is cut off.
struct Transposed {
  PerDimension strides;
  PerDimension dilations;
  PerDimension before;
  PerDimension after;  // negative where the result is longer
  PerDimension output_padding;
};

// Divides the padding that a given size of the result asks for.
void DividePadding(const std::string& auto_pad, size_t k, int64_t full, int64_t wanted, Transposed* form) {
  const int64_t total = std::max<int64_t>(full - wanted, 0);
  form->before[k] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  form->after[k] = full - wanted - form->before[k];
}

// The sizes of the result that an attribute says; it may have those of batch and channels before them.
PerDimension OutputShape(const Context& context, size_t rank) {
  PerDimension sizes = context.IntsAttribute("output_shape");
  if (sizes.size() == rank + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (!sizes.empty() && sizes.size() != rank) {
    throw context.Invalid(absl::StrCat("the attribute output_shape has ", sizes.size(), " numbers, not ", rank));
  }
  return sizes;
}

Transposed TransposedOf(const Context& context, const PerDimension& sizes, const PerDimension& kernel) {
  const size_t rank = sizes.size();
  Transposed form;
  form.strides = PerDimensionAttribute(context, "strides", rank, 1);
  form.dilations = PerDimensionAttribute(context, "dilations", rank, 1);
  form.output_padding = PerDimensionAttribute(context, "output_padding", rank, 0);
  form.before.resize(rank);
  form.after.resize(rank);
  const std::string auto_pad = AutoPadOf(context);
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  PerDimension wanted = OutputShape(context, rank);
  const PerDimension pads = PerDimensionAttribute(context, "pads", 2 * rank, 0);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t full =
        form.strides[k] * (sizes[k] - 1) + form.output_padding[k] + form.dilations[k] * (kernel[k] - 1) + 1;
    if (!wanted.empty() || is_same) {
      DividePadding(auto_pad, k, full, wanted.empty() ? sizes[k] * form.strides[k] : wanted[k], &form);
    } else if (auto_pad == "NOTSET") {
      form.before[k] = pads[k];
      form.after[k] = pads[rank + k];
    }
  }
  return form;
}

// Whether LibTorch's operator takes it as it is.
bool IsPlain(const Transposed& form) {
  for (size_t k = 0; k < form.strides.size(); ++k) {
    const int64_t extra = form.output_padding[k];
    if (form.before[k] != form.after[k] || form.before[k] < 0 || extra < 0) return false;
    if (extra >= std::max(form.strides[k], form.dilations[k])) return false;
  }
  return true;
}

Results ConvTranspose(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Tensor weight = context.Tensor(1);
  const PerDimension sizes = SpatialSizes(context, x), kernel = KernelOf(context, weight);
  if (sizes.size() != kernel.size()) throw context.Invalid("the weight and the input differ in dimensions");
  Transposed form = TransposedOf(context, sizes, kernel);
  const int64_t groups = context.IntAttribute("group", 1);
  if (IsPlain(form)) {
    return at::convolution(x, weight, BiasOf(context, 2), form.strides, form.before, form.dilations,
                           /*transposed=*/true, form.output_padding, groups);
  }
  const PerDimension none(sizes.size(), 0);
  const Tensor full = at::convolution(x, weight, {}, form.strides, none, form.dilations,
                                      /*transposed=*/true, none, groups);
  for (size_t k = 0; k < sizes.size(); ++k) {
    form.before[k] = -form.before[k];
    form.after[k] = form.output_padding[k] - form.after[k];
  }
  const Tensor result = PadSpatial(full, form.before, form.after);
  if (!context.Has(2)) return result;
  PerDimension channels(sizes.size() + 1, 1);
  channels[0] = result.size(1);
  return at::add(result, at::reshape(context.Tensor(2), channels));
}

// ----------------------------------------------------------------------------------------------------- deformed

// The places of the windows' elements along dimension k, before they are moved: [kernel, outputs].
Tensor Places(const Windows& windows, size_t k, const Tensor& like) {
  const TracingPause pause;
  const auto steps = [](int64_t count, int64_t step) { return at::mul(at::arange(count, at::kDouble), step); };
  const Tensor starts = at::sub(steps(windows.outputs[k], windows.strides[k]), windows.before[k]);
  const Tensor offsets = steps(windows.kernel[k], windows.dilations[k]);
  return at::add(at::unsqueeze(offsets, 1), starts).to(like.options());
}

// Moves by places within `size` elements to the coordinates of grid_sampler: -1 and 1 are the outer edges.
Tensor Coordinates(const Tensor& moves, const Tensor& places, int64_t size) {
  const auto n = static_cast<double>(size);
  return at::add(at::mul(at::add(moves, places), 2 / n), 1 / n - 1);
}

// The input at the moved elements of each window: [batch, channels, kernel, outputs].
Tensor Sampled(const Context& context, const Tensor& x, const Windows& windows, int64_t groups) {
  const int64_t batch = x.size(0), height = windows.kernel[0], width = windows.kernel[1];
  const int64_t rows = windows.outputs[0], columns = windows.outputs[1];
  const Tensor moves = at::reshape(context.Tensor(2), {batch * groups, height, width, 2, rows, columns});
  const Tensor up = at::reshape(Places(windows, 0, x), {height, 1, rows, 1});
  const Tensor across = at::reshape(Places(windows, 1, x), {width, 1, columns});
  const Tensor grid = at::stack(
      {Coordinates(at::select(moves, 3, 1), across, x.size(3)), Coordinates(at::select(moves, 3, 0), up, x.size(2))},
      -1);
  const Tensor planes = at::reshape(x, {batch * groups, x.size(1) / groups, x.size(2), x.size(3)});
  const int64_t lines = height * width * rows;
  Tensor sampled = at::grid_sampler(planes, at::reshape(grid, {batch * groups, lines, columns, 2}),
                                    /*interpolation_mode=*/0, /*padding_mode=*/0, /*align_corners=*/false);
  if (context.Has(4)) {
    sampled = at::mul(sampled, at::reshape(context.Tensor(4), {batch * groups, 1, lines, columns}));
  }
  return at::reshape(sampled, {batch, x.size(1), height * width, rows * columns});
}

// Windows whose elements are moved by offsets, between which the input is linear and zero around it.
Results DeformConv(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Tensor weight = context.Tensor(1);
  if (x.dim() != 4 || weight.dim() != 4) throw context.Refused("only images of two dimensions are convolved");
  const Windows windows = WindowsOf(context, SpatialSizes(context, x), KernelOf(context, weight));
  const int64_t groups = context.IntAttribute("group", 1), offset_groups = context.IntAttribute("offset_group", 1);
  if (groups < 1 || offset_groups < 1 || x.size(1) % groups != 0 || x.size(1) % offset_groups != 0) {
    throw context.Invalid("the channels do not divide into groups");
  }
  const Tensor sampled = Sampled(context, x, windows, offset_groups);
  const Tensor product =
      at::matmul(at::reshape(weight, {groups, weight.size(0) / groups, -1}),
                 at::reshape(sampled, {x.size(0), groups, x.size(1) / groups * sampled.size(2), sampled.size(3)}));
  const Tensor result = at::reshape(product, {x.size(0), weight.size(0), windows.outputs[0], windows.outputs[1]});
  if (!context.Has(3)) return result;
  return at::add(result, at::reshape(context.Tensor(3), {-1, 1, 1}));
}

// --------------------------------------------------------------------------------------------------------- fold

// The place in a padded image of each element of each window, window by window within an element: row by row.
std::vector<int64_t> FoldedPlaces(const Windows& windows, const PerDimension& sizes) {
  std::vector<int64_t> places = {0};
  const auto extend = [&](size_t k, int64_t count, int64_t step) {
    int64_t unit = step;
    for (size_t later = k + 1; later < sizes.size(); ++later) unit *= sizes[later];
    std::vector<int64_t> next;
    next.reserve(places.size() * static_cast<size_t>(count));
    for (const int64_t place : places) {
      for (int64_t i = 0; i < count; ++i) next.push_back(place + i * unit);
    }
    places = std::move(next);
  };
  for (size_t k = 0; k < sizes.size(); ++k) extend(k, windows.kernel[k], windows.dilations[k]);
  for (size_t k = 0; k < sizes.size(); ++k) extend(k, windows.outputs[k], windows.strides[k]);
  return places;
}

// x: [batch, channels, elements of windows, windows].
Tensor Folded(const Tensor& x, const Windows& windows, const PerDimension& sizes) {
  if (sizes.size() == 2) {
    return at::col2im(at::flatten(x, 1, 2), sizes, windows.kernel, windows.dilations, PerDimension{0, 0},
                      windows.strides);
  }
  const Tensor places = [&] {
    const TracingPause pause;
    return at::tensor(FoldedPlaces(windows, sizes), at::kLong).to(x.device());
  }();
  std::vector<int64_t> shape = {x.size(0), x.size(1)};
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const Tensor sums =
      at::index_add(at::zeros({x.size(0), x.size(1), count}, x.options()), 2, places, at::flatten(x, 2, 3));
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return at::reshape(sums, shape);
}

Results Col2Im(const Context& context) {
  const Tensor x = context.Tensor(0);
  PerDimension sizes = context.Integers(1);
  const Windows windows = WindowsOf(context, sizes, context.Integers(2));
  int64_t elements = 1, count = 1;
  PerDimension before(sizes.size()), after(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    elements *= windows.kernel[k];
    count *= windows.outputs[k];
    sizes[k] += windows.before[k] + windows.after[k];
    before[k] = -windows.before[k];
    after[k] = -windows.after[k];
  }
  if (x.dim() != 3 || x.size(1) % elements != 0 || x.size(2) != count) {
    throw context.Invalid(absl::StrCat("the input does not hold ", count, " windows of ", elements, " elements"));
  }
  const Tensor folded = Folded(at::reshape(x, {x.size(0), x.size(1) / elements, elements, count}), windows, sizes);
  return PadSpatial(folded, before, after);
}

}  // namespace

void RegisterConvolutions(OperatorTable& table) {
  table.Add("Conv", 1, Conv).Inputs(2, 3).Attributes(ConvolutionAttributes());
  table.Add("ConvTranspose", 1, ConvTranspose)
      .Inputs(2, 3)
      .Attributes(
          {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads", "strides"});
  table.Add("DeformConv", 19, DeformConv)
      .Inputs(3, 5)
      .Attributes({"dilations", "group", "kernel_shape", "offset_group", "pads", "strides"});
  table.Add("Col2Im", 18, Col2Im).Inputs(3).Attributes({"dilations", "pads", "strides"}).Known(KnownIf::kSizesConstant);
}

}  // namespace addend::onnx
