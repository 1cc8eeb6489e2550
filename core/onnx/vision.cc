// Regions of images: pooled to a fixed size, or chosen among boxes that overlap.
//
// The place of a region is a condition, not a value: its numbers are read off the tensor, as sizes are.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// A region of an image, in its elements.
struct Region {
  int64_t image = 0;
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

// Bins that each region is divided into.
struct Bins {
  int64_t rows = 1;
  int64_t columns = 1;
};

// The elements that are read for one bin, and the factor of each.
using Reads = std::vector<std::pair<int64_t, double>>;

int64_t ImageOf(const Context& context, double number, const Tensor& x) {
  if (number >= 0 && number < static_cast<double>(x.size(0))) return static_cast<int64_t>(number);
  throw context.Invalid(absl::StrCat("a region lies in image ", number, " of ", x.size(0)));
}

void RequireImages(const Context& context, const Tensor& x) {
  if (x.dim() != 4) throw context.Invalid(absl::StrCat("the input has ", x.dim(), " dimensions, not 4"));
}

// The largest product of the elements and factors of each bin. `reads`: region by region, bin by bin.
Tensor LargestOf(const Tensor& x, const std::vector<Reads>& reads, int64_t regions, const Bins& bins) {
  size_t most = 1;
  for (const Reads& bin : reads) most = std::max(most, bin.size());
  std::vector<int64_t> places;
  std::vector<double> factors;
  for (const Reads& bin : reads) {
    for (size_t k = 0; k < most; ++k) {
      // A bin of fewer reads one again, which changes no maximum; one of none is zero.
      const std::pair<int64_t, double> read =
          bin.empty() ? std::make_pair<int64_t, double>(0, 0) : bin[k < bin.size() ? k : 0];
      places.push_back(read.first);
      factors.push_back(read.second);
    }
  }
  Tensor elements, weights;
  {
    const TracingPause pause;
    elements = at::tensor(places, at::kLong).to(x.device());
    weights = at::unsqueeze(at::tensor(factors, at::kDouble).to(x.options()), 1);
  }
  const int64_t channels = x.size(1);
  const Tensor rows = at::reshape(at::permute(x, {0, 2, 3, 1}), {x.size(0) * x.size(2) * x.size(3), channels});
  const Tensor values = at::mul(at::index_select(rows, 0, elements), weights);
  const Tensor largest =
      at::amax(at::reshape(values, {regions, bins.rows * bins.columns, static_cast<int64_t>(most), channels}), {2});
  return at::reshape(at::permute(largest, {0, 2, 1}), {regions, channels, bins.rows, bins.columns});
}

// ------------------------------------------------------------------------------------------------------ RoiAlign

// Two neighbours between which a place lies, and their weights: zero beyond the image.
struct Neighbours {
  int64_t low = 0;
  int64_t high = 0;
  double low_weight = 0;
  double high_weight = 0;
};

Neighbours NeighboursOf(double place, int64_t size) {
  Neighbours found;
  if (place < -1 || place > static_cast<double>(size)) return found;
  place = std::clamp(place, 0.0, static_cast<double>(size - 1));
  found.low = static_cast<int64_t>(place);
  found.high = std::min(found.low + 1, size - 1);
  found.high_weight = place - static_cast<double>(found.low);
  found.low_weight = 1 - found.high_weight;
  return found;
}

// How many places are read for each bin along one dimension.
int64_t SamplesFor(const Context& context, double extent, int64_t bins) {
  const int64_t ratio = context.IntAttribute("sampling_ratio", 0);
  return ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(extent / static_cast<double>(bins)));
}

// Place i of bin b.
double SampleAt(double start, double extent, int64_t bins, int64_t samples, int64_t b, int64_t i) {
  const double bin = extent / static_cast<double>(bins);
  return start + static_cast<double>(b) * bin + (static_cast<double>(i) + 0.5) * bin / static_cast<double>(samples);
}

// Adds the weights of a region's bins along one dimension: [bins, size].
void AddAverages(const Context& context, double start, double extent, int64_t bins, int64_t size,
                 std::vector<double>* weights) {
  const int64_t samples = SamplesFor(context, extent, bins);
  for (int64_t b = 0; b < bins; ++b) {
    std::vector<double> row(static_cast<size_t>(size));
    for (int64_t i = 0; i < samples; ++i) {
      const Neighbours found = NeighboursOf(SampleAt(start, extent, bins, samples, b, i), size);
      row[static_cast<size_t>(found.low)] += found.low_weight / static_cast<double>(samples);
      row[static_cast<size_t>(found.high)] += found.high_weight / static_cast<double>(samples);
    }
    weights->insert(weights->end(), row.begin(), row.end());
  }
}

// Averages of places between elements are products with a matrix on either side.
Tensor AlignedAverages(const Context& context, const Tensor& x, const std::vector<Region>& regions, const Bins& bins) {
  const auto count = static_cast<int64_t>(regions.size());
  std::vector<double> up, across;
  std::vector<int64_t> images;
  for (const Region& region : regions) {
    AddAverages(context, region.top, region.height, bins.rows, x.size(2), &up);
    AddAverages(context, region.left, region.width, bins.columns, x.size(3), &across);
    images.push_back(region.image);
  }
  Tensor rows, columns, chosen;
  {
    const TracingPause pause;
    rows = at::reshape(at::tensor(up, at::kDouble), {count, 1, bins.rows, x.size(2)}).to(x.options());
    columns = at::reshape(at::tensor(across, at::kDouble), {count, 1, bins.columns, x.size(3)}).to(x.options());
    chosen = at::tensor(images, at::kLong).to(x.device());
  }
  return at::matmul(at::matmul(rows, at::index_select(x, 0, chosen)), at::transpose(columns, 2, 3));
}

// The largest of the weighted neighbours of all places of each bin.
Tensor AlignedMaxima(const Context& context, const Tensor& x, const std::vector<Region>& regions, const Bins& bins) {
  std::vector<Reads> reads;
  for (const Region& region : regions) {
    const int64_t down = SamplesFor(context, region.height, bins.rows);
    const int64_t across = SamplesFor(context, region.width, bins.columns);
    for (int64_t bin = 0; bin < bins.rows * bins.columns; ++bin) {
      Reads found;
      for (int64_t i = 0; i < down * across; ++i) {
        const Neighbours y = NeighboursOf(
            SampleAt(region.top, region.height, bins.rows, down, bin / bins.columns, i / across), x.size(2));
        const Neighbours z = NeighboursOf(
            SampleAt(region.left, region.width, bins.columns, across, bin % bins.columns, i % across), x.size(3));
        const int64_t low = (region.image * x.size(2) + y.low) * x.size(3);
        const int64_t high = (region.image * x.size(2) + y.high) * x.size(3);
        found.emplace_back(low + z.low, y.low_weight * z.low_weight);
        found.emplace_back(low + z.high, y.low_weight * z.high_weight);
        found.emplace_back(high + z.low, y.high_weight * z.low_weight);
        found.emplace_back(high + z.high, y.high_weight * z.high_weight);
      }
      reads.push_back(std::move(found));
    }
  }
  return LargestOf(x, reads, static_cast<int64_t>(regions.size()), bins);
}

std::vector<Region> AlignedRegions(const Context& context, const Tensor& x) {
  const std::vector<double> numbers = context.Reals(1);
  const std::vector<int64_t> images = context.Integers(2);
  if (numbers.size() != 4 * images.size()) throw context.Invalid("a region has not 4 numbers and an image");
  const bool is_half =
      context.version() >= 16 && context.TextAttribute("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double scale = context.FloatAttribute("spatial_scale", 1), offset = is_half ? 0.5 : 0;
  std::vector<Region> regions;
  for (size_t k = 0; k < images.size(); ++k) {
    const double* number = numbers.data() + 4 * k;
    Region region;
    region.image = ImageOf(context, static_cast<double>(images[k]), x);
    region.left = number[0] * scale - offset;
    region.top = number[1] * scale - offset;
    region.width = number[2] * scale - offset - region.left;
    region.height = number[3] * scale - offset - region.top;
    if (!is_half) {
      region.width = std::max(region.width, 1.0);
      region.height = std::max(region.height, 1.0);
    }
    regions.push_back(region);
  }
  return regions;
}

Results RoiAlign(const Context& context) {
  const Tensor x = context.Tensor(0);
  RequireImages(context, x);
  const std::string mode = context.TextAttribute("mode", "avg");
  if (mode != "avg" && mode != "max") throw context.Invalid(absl::StrCat("the attribute mode is \"", mode, "\""));
  const Bins bins{context.IntAttribute("output_height", 1), context.IntAttribute("output_width", 1)};
  const std::vector<Region> regions = AlignedRegions(context, x);
  return mode == "avg" ? AlignedAverages(context, x, regions, bins) : AlignedMaxima(context, x, regions, bins);
}

// ---------------------------------------------------------------------------------------------------- MaxRoiPool

// The elements of bin b: from first to last, the latter excluded.
std::pair<int64_t, int64_t> BinOf(double start, double extent, int64_t bins, int64_t b, int64_t size) {
  const double bin = extent / static_cast<double>(bins);
  const double first = std::floor(static_cast<double>(b) * bin) + start;
  const double last = std::ceil(static_cast<double>(b + 1) * bin) + start;
  const auto most = static_cast<double>(size);
  return {static_cast<int64_t>(std::clamp(first, 0.0, most)), static_cast<int64_t>(std::clamp(last, 0.0, most))};
}

std::vector<Reads> PooledReads(const Tensor& x, const Region& region, const Bins& bins) {
  std::vector<Reads> reads;
  for (int64_t bin = 0; bin < bins.rows * bins.columns; ++bin) {
    const auto rows = BinOf(region.top, region.height, bins.rows, bin / bins.columns, x.size(2));
    const auto columns = BinOf(region.left, region.width, bins.columns, bin % bins.columns, x.size(3));
    Reads found;
    for (int64_t i = rows.first; i < rows.second; ++i) {
      for (int64_t j = columns.first; j < columns.second; ++j) {
        found.emplace_back((region.image * x.size(2) + i) * x.size(3) + j, 1);
      }
    }
    reads.push_back(std::move(found));
  }
  return reads;
}

Results MaxRoiPool(const Context& context) {
  const Tensor x = context.Tensor(0);
  RequireImages(context, x);
  const std::vector<int64_t> shape = context.IntsAttribute("pooled_shape");
  if (shape.size() != 2) throw context.Invalid("the attribute pooled_shape has not 2 numbers");
  const Bins bins{shape[0], shape[1]};
  const double scale = context.FloatAttribute("spatial_scale", 1);
  const std::vector<double> numbers = context.Reals(1);
  std::vector<Reads> reads;
  for (size_t k = 0; k + 4 < numbers.size(); k += 5) {
    const double* number = numbers.data() + k;
    Region region;
    region.image = ImageOf(context, number[0], x);
    region.left = std::round(number[1] * scale);
    region.top = std::round(number[2] * scale);
    region.width = std::max(std::round(number[3] * scale) - region.left + 1, 1.0);
    region.height = std::max(std::round(number[4] * scale) - region.top + 1, 1.0);
    for (Reads& bin : PooledReads(x, region, bins)) reads.push_back(std::move(bin));
  }
  return LargestOf(x, reads, static_cast<int64_t>(numbers.size() / 5), bins);
}

// ---------------------------------------------------------------------------------------------------------- boxes

// The most boxes of one class that are compared with each other.
constexpr int64_t kMostBoxes = 20000;

// The corners of boxes: each [4, boxes] as top, left, bottom, right.
Tensor CornersOf(const Tensor& boxes, bool are_centers) {
  const Tensor first = at::slice(boxes, 1, 0, 2), second = at::slice(boxes, 1, 2, 4);
  if (are_centers) {
    const Tensor half = at::div(second, 2);
    return at::t(at::cat({at::sub(first, half), at::add(first, half)}, 1));
  }
  return at::t(at::cat({at::minimum(first, second), at::maximum(first, second)}, 1));
}

// How much of the union of two boxes both cover: [boxes, boxes].
Tensor Overlaps(const Tensor& corners) {
  const auto corner = [&](int64_t k) { return at::select(corners, 0, k); };
  const auto extent = [&](int64_t k) {
    const Tensor least = at::maximum(at::unsqueeze(corner(k), 1), corner(k));
    const Tensor most = at::minimum(at::unsqueeze(corner(k + 2), 1), corner(k + 2));
    return at::clamp_min(at::sub(most, least), 0);
  };
  const Tensor areas = at::mul(at::sub(corner(2), corner(0)), at::sub(corner(3), corner(1)));
  const Tensor both = at::mul(extent(0), extent(1));
  return at::div(both, at::sub(at::add(at::unsqueeze(areas, 1), areas), both));
}

// Which of boxes in the order of their scores stay: those that no box before them that stays overlaps too much.
Tensor Staying(const Tensor& overlaps, double threshold) {
  const Tensor hides = at::tril(at::gt(overlaps, threshold), -1);
  Tensor stays = at::ones({overlaps.size(0)}, hides.options());
  // Turn k settles box k at least.
  while (true) {
    const Tensor next = at::logical_not(at::any(at::logical_and(hides, stays), 1));
    const bool is_settled = at::is_nonzero(at::all(at::eq(next, stays)));
    stays = next;
    if (is_settled) return stays;
  }
}

// The numbers of the boxes of one class that are chosen, the best first.
Tensor Chosen(const Context& context, const Tensor& boxes, const Tensor& scores, int64_t most) {
  Tensor numbers = at::arange(scores.size(0), scores.options().dtype(at::kLong));
  if (context.Has(4)) numbers = at::squeeze(at::nonzero(at::gt(scores, context.Real(4))), 1);
  if (numbers.size(0) > kMostBoxes) {
    throw context.Refused(absl::StrCat("more than ", kMostBoxes, " boxes of one class are compared"));
  }
  const Tensor order = std::get<1>(at::sort(at::index_select(scores, 0, numbers), /*stable=*/true, 0,
                                            /*descending=*/true));
  numbers = at::index_select(numbers, 0, order);
  const Tensor corners =
      CornersOf(at::index_select(boxes, 0, numbers), context.FlagAttribute("center_point_box", false));
  const Tensor stays = at::squeeze(at::nonzero(Staying(Overlaps(corners), context.Real(3, 0))), 1);
  return at::index_select(numbers, 0, at::slice(stays, 0, 0, most));
}

Results NonMaxSuppression(const Context& context) {
  const Tensor boxes = context.Tensor(0);
  const Tensor scores = context.Tensor(1);
  if (boxes.dim() != 3 || scores.dim() != 3 || boxes.size(2) != 4) {
    throw context.Invalid("boxes or scores do not have 3 dimensions, or boxes not 4 numbers");
  }
  const int64_t most = context.Integer(2, 0);
  const at::TensorOptions integers = boxes.options().dtype(at::kLong);
  std::vector<Tensor> rows;
  for (int64_t image = 0; image < scores.size(0) && most > 0; ++image) {
    for (int64_t category = 0; category < scores.size(1); ++category) {
      const Tensor numbers =
          Chosen(context, at::select(boxes, 0, image), at::select(at::select(scores, 0, image), 0, category), most);
      rows.push_back(at::stack({at::full_like(numbers, image), at::full_like(numbers, category), numbers}, 1));
    }
  }
  return rows.empty() ? at::zeros({0, 3}, integers) : at::cat(rows);
}

}  // namespace

void RegisterVision(OperatorTable& table) {
  table.Add("RoiAlign", 10, RoiAlign)
      .Inputs(3)
      .Attributes({"coordinate_transformation_mode", "mode", "output_height", "output_width", "sampling_ratio",
                   "spatial_scale"});
  table.Add("MaxRoiPool", 1, MaxRoiPool).Inputs(2).Attributes({"pooled_shape", "spatial_scale"});
  table.Add("NonMaxSuppression", 10, NonMaxSuppression).Inputs(2, 5).Attributes({"center_point_box"});
}

}  // namespace addend::onnx
