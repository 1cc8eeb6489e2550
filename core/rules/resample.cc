// Images of another size: padding, interpolation, sampling at given points. All are linear in the image.
#include <ATen/TensorOperators.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"
#include "core/rules/row_operator.h"

namespace addend {
namespace {

// Operators that take [batch, channels, *spatial], and some also [channels, *spatial], to which the rows are the batch.
RuleResult OnPlanes(const RuleCall& call, int64_t spatial) {
  RowAxis axis;
  axis.fold_batch = call.Require(0).value.dim() == spatial + 2;
  return LinearOperator(call, Kind::kLinear, axis);
}

// affine_grid_generator(theta, size, align_corners): linear in theta; the batch is also told in `size`.
RuleResult AffineGrid(const RuleCall& call) {
  const std::vector<int64_t> size = call.Ints(1);
  const bool align_corners = call.Bool(2, false);
  return LinearIn(call, Kind::kLinear, 0, [=](const at::Tensor& rows) {
    return FoldBatch(rows, [&](const at::Tensor& batch) {
      std::vector<int64_t> all = size;
      all[0] = batch.size(0);
      return at::affine_grid_generator(batch, all, align_corners);
    });
  });
}

// fold: columns of patches [batch, C * window, places] or [C * window, places]
RuleResult Fold(const RuleCall& call) {
  RowAxis axis;
  axis.fold_batch = call.Require(0).value.dim() == 3;
  return LinearOperator(call, Kind::kLinear, axis);
}

// ------------------------------------------------------------------------------------------------------------ sampling

// How grid_sampler_2d and grid_sampler_3d read a grid.
struct Sampler {
  enum Interpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
  enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
  int64_t interpolation = kLinear;
  int64_t padding = kZeros;
  bool align_corners = false;

  // From -1..1 to the elements of a dimension of that size.
  at::Tensor Position(const at::Tensor& x, int64_t size) const {
    return align_corners ? (x + 1) / 2 * static_cast<double>(size - 1) : ((x + 1) * static_cast<double>(size) - 1) / 2;
  }

  // Positions beyond the image: kept, moved to the border, or reflected at it.
  at::Tensor Padded(const at::Tensor& position, int64_t size) const {
    if (padding == kZeros) return position;
    const double last = static_cast<double>(size - 1);
    if (padding == kBorder) return position.clamp(0, last);
    const double low = align_corners ? 0 : -0.5;
    const double span = align_corners ? last : static_cast<double>(size);
    if (span == 0) return at::zeros_like(position);
    const at::Tensor distance = (position - low).abs();
    const at::Tensor flips = (distance / span).detach().floor();
    const at::Tensor rest = distance - flips * span;
    const at::Tensor even = at::remainder(flips, 2).eq(0);
    return (at::where(even, rest, span - rest) + low).clamp(0, last);
  }

  // The elements along one dimension that a point sees, and their weights.
  struct Tap {
    at::Tensor element;  // int64
    at::Tensor weight;
  };
  std::vector<Tap> Taps(const at::Tensor& x, int64_t size) const {
    at::Tensor position = Position(x, size);
    if (interpolation != kCubic) position = Padded(position, size);
    if (interpolation == kNearest) return {{position.round().to(at::kLong), at::ones_like(position)}};
    const at::Tensor whole = position.detach().floor();
    const at::Tensor part = position - whole;
    const at::Tensor first = whole.to(at::kLong);
    if (interpolation == kLinear) return {{first, 1 - part}, {first + 1, part}};
    constexpr double kA = -0.75;
    const auto near = [](const at::Tensor& d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
    const auto far = [](const at::Tensor& d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
    const auto element = [&](int64_t offset) {
      return Padded((whole + static_cast<double>(offset)), size).to(at::kLong);
    };
    return {{element(-1), far(part + 1)},
            {element(0), near(part)},
            {element(1), near(1 - part)},
            {element(2), far(2 - part)}};
  }

  // `images`: [planes * elements] of the sizes that lie behind; `plane`: where each point looks; `points`: its
  // coordinates, the last dimension's first.
  at::Tensor operator()(const at::Tensor& images, at::IntArrayRef sizes, const at::Tensor& plane,
                        const std::vector<at::Tensor>& points) const {
    std::vector<Tap> taps = {{plane, at::ones_like(points[0])}};
    for (size_t d = 0; d < sizes.size(); ++d) {
      const std::vector<Tap> own = Taps(points[sizes.size() - 1 - d], sizes[d]);
      std::vector<Tap> both;
      for (const Tap& before : taps) {
        for (const Tap& tap : own) {
          const at::Tensor inside = tap.element.ge(0).logical_and(tap.element.lt(sizes[d]));
          const at::Tensor element = before.element * sizes[d] + tap.element.clamp(0, sizes[d] - 1);
          both.push_back({element, before.weight * tap.weight.masked_fill(inside.logical_not(), 0)});
        }
      }
      taps = std::move(both);
    }
    at::Tensor sum;
    for (const Tap& tap : taps) {
      const at::Tensor seen = images.index_select(0, tap.element.reshape({-1})).view(tap.element.sizes()) * tap.weight;
      sum = sum.defined() ? sum + seen : seen;
    }
    return sum;
  }
};

// What points that move read in images that rest, by the path rule for each point: the map takes rows of the points'
// coordinates, [R, N, 1, *out] each.
RuleResult AlongTheGrid(const RuleCall& call, const Sampler& sampler, const at::Tensor& images) {
  const at::Tensor& output = call.outputs[0].value;
  const RuleOperand& grid = call.Require(1);
  const int64_t spatial = grid.value.size(-1);
  const at::DimVector sizes(images.sizes().slice(2));
  at::DimVector plane_sizes = {images.size(0), images.size(1)};
  plane_sizes.resize(output.dim(), 1);
  RuleCall points;
  points.name = call.name;
  points.overload = call.overload;
  points.policy = call.policy;
  RuleOperand plane;
  plane.value = at::arange(images.size(0) * images.size(1), output.options().dtype(at::kDouble)).view(plane_sizes);
  plane.reference = plane.value;
  plane.argument = 0;
  points.operands.push_back(plane);
  for (int64_t d = 0; d < spatial; ++d) {
    RuleOperand coordinate;
    coordinate.value = grid.value.select(-1, d).unsqueeze(1);
    coordinate.reference = grid.reference.select(-1, d).unsqueeze(1);
    coordinate.decomposed = true;
    coordinate.argument = static_cast<int>(d) + 1;
    points.operands.push_back(coordinate);
  }
  const at::Tensor flat = images.reshape({-1});
  points.run = [=](const std::vector<at::Tensor>& operands) -> std::vector<at::Tensor> {
    const std::vector<at::Tensor> coordinates(operands.begin() + 1, operands.end());
    return {sampler(flat, sizes, operands[0].to(at::kLong), coordinates)};
  };
  std::vector<at::Tensor> ends[2];
  for (const RuleOperand& operand : points.operands) {
    ends[0].push_back(operand.value.expand(output.sizes()));
    ends[1].push_back(operand.reference.expand(output.sizes()));
  }
  points.outputs.push_back({points.run(ends[0])[0], points.run(ends[1])[0]});
  return PathElementwise(points);
}

// grid_sampler(input, grid, interpolation, padding, align_corners): linear in the input, whose rows are channels for
// the grid. Where the grid moves too, the input's rows are read at both ends of the grid's line, and the grid's move
// is followed in the middle of the input: together that is the whole move.
RuleResult Sample(const RuleCall& call) {
  const int input = call.OperandAt(0);
  const int grid = call.OperandAt(1);
  const RuleOperand& image = call.operands[input];
  const RuleOperand& points = call.operands[grid];
  RuleResult result;
  result.kind = Kind::kLinear;
  std::shared_ptr<const LinearMap> along;
  if (points.decomposed) {
    Sampler sampler;
    sampler.interpolation = call.Int(2, 0);
    sampler.padding = call.Int(3, 0);
    sampler.align_corners = call.Bool(4, false);
    const RuleResult path = AlongTheGrid(call, sampler, Middle(image));
    if (path.kind == Kind::kPath) {
      result.kind = Kind::kPath;
      result.exact = path.exact;
      result.quadrature = path.quadrature;
      along = path.map;
    } else {
      result.exact = false;  // nearest: nothing passes
      if (!image.decomposed) return Opaque(call);
    }
  }
  const bool image_moves = image.decomposed;
  if (image_moves) result.inputs.push_back(input);
  if (along) result.inputs.push_back(grid);
  std::vector<at::Tensor> grids = {points.value};
  if (points.decomposed) grids.push_back(points.reference);
  const int64_t spatial = points.value.size(-1);
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  result.map = MakeMap(call, result.inputs, [=, run = call.run](const Rows& rows) -> Rows {
    const int64_t r = rows[0].size(0);
    at::Tensor sum;
    if (image_moves) {
      at::DimVector folded = {output_sizes[0], r * rows[0].size(2)};
      folded.append(rows[0].sizes().begin() + 3, rows[0].sizes().end());
      at::DimVector unfolded = {output_sizes[0], r, output_sizes[1]};
      unfolded.append(output_sizes.begin() + 2, output_sizes.end());
      const at::Tensor channels = rows[0].movedim(0, 1).reshape(folded);
      for (const at::Tensor& at_end : grids) {
        const at::Tensor read = run({channels, at_end})[0].reshape(unfolded).movedim(1, 0);
        sum = sum.defined() ? sum + read : read;
      }
      if (grids.size() > 1) sum = sum / static_cast<double>(grids.size());
    }
    if (along) {
      Rows coordinates;
      for (int64_t d = 0; d < spatial; ++d) coordinates.push_back(rows[image_moves ? 1 : 0].select(-1, d).unsqueeze(2));
      const at::Tensor moved = along->Forward(coordinates)[0];
      sum = sum.defined() ? sum + moved : moved;
    }
    return {sum};
  });
  return result;
}

}  // namespace

void RegisterResample(Registry& registry) {
  struct Name {
    const char* name;
    int64_t spatial;
  };
  for (const auto& [name, spatial] : std::vector<Name>{{"aten::reflection_pad1d", 1},
                                                       {"aten::reflection_pad2d", 2},
                                                       {"aten::reflection_pad3d", 3},
                                                       {"aten::replication_pad1d", 1},
                                                       {"aten::replication_pad2d", 2},
                                                       {"aten::replication_pad3d", 3},
                                                       {"aten::upsample_nearest1d", 1},
                                                       {"aten::upsample_nearest2d", 2},
                                                       {"aten::upsample_nearest3d", 3},
                                                       {"aten::_upsample_nearest_exact1d", 1},
                                                       {"aten::_upsample_nearest_exact2d", 2},
                                                       {"aten::_upsample_nearest_exact3d", 3},
                                                       {"aten::upsample_linear1d", 1},
                                                       {"aten::upsample_bilinear2d", 2},
                                                       {"aten::upsample_bicubic2d", 2},
                                                       {"aten::upsample_trilinear3d", 3},
                                                       {"aten::_upsample_bilinear2d_aa", 2},
                                                       {"aten::_upsample_bicubic2d_aa", 2}}) {
    registry.Register({name, Kind::kLinear, [spatial = spatial](const RuleCall& c) { return OnPlanes(c, spatial); }});
  }
  for (const char* name : {"aten::grid_sampler_2d", "aten::grid_sampler_3d"}) {
    registry.Register({name, Kind::kLinear, Sample});
  }
  registry.Register({"aten::affine_grid_generator", Kind::kLinear, AffineGrid});
  registry.Register({"aten::col2im", Kind::kLinear, Fold});
}

}  // namespace addend
