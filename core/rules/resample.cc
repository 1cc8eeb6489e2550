// Images of another size: padding, interpolation, sampling at given points. All are linear in the image; sampling also
// follows the points. Operators of torchvision are known by their names alone: nothing of it is linked.
#include <ATen/TensorOperators.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/rewrite.h"
#include "core/rules/row_operator.h"

namespace addend {
namespace {

// Operators that take [batch, channels, *spatial], and some also [channels, *spatial], to which the rows are the batch.
RuleResult OnPlanes(const RuleCall& call, int64_t spatial) {
  RowAxis axis;
  axis.fold_batch = call.Require(call.First()).value.dim() == spatial + 2;
  return LinearOperator(call, Kind::kLinear, axis);
}

// affine_grid_generator(theta, size, align_corners): linear in theta; the batch is also told in `size`.
RuleResult AffineGrid(const RuleCall& call) {
  const std::vector<int64_t> size = call.Ints("size");
  const bool align_corners = call.Bool("align_corners", false);
  return LinearIn(call, Kind::kLinear, "theta", [=](const at::Tensor& rows) {
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
  axis.fold_batch = call.Require("self").value.dim() == 3;
  return LinearOperator(call, Kind::kLinear, axis);
}

// ------------------------------------------------------------------------------------------------------------ sampling

enum Interpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// Pieces of the line that one call may have.
constexpr int64_t kMostPieces = 4096;

// Bends of the lines of the grid's points: the interpolation is a polynomial between elements, and padding and
// reflection begin on elements or half way between two. Gives t in 0..1 for each point, sorted, with both ends: [N,
// *out, pieces + 1]; if a line bends less often than another its last ones are 1.
at::Tensor Bends(const RuleCall& call) {
  const RuleOperand& grid = call.Require("grid");
  const at::IntArrayRef image = call.Require("input").value.sizes();
  const int64_t spatial = grid.value.size(-1);
  const bool align_corners = call.Bool("align_corners", false);
  if (!AllFinite(grid.value) || !AllFinite(grid.reference)) {
    throw Unimplemented(call.name + " with a grid that is not finite");
  }
  const at::Tensor zero = at::zeros_like(grid.value.narrow(-1, 0, 1));
  std::vector<at::Tensor> bends = {zero, zero + 1};
  int64_t pieces = 1;
  for (int64_t d = 0; d < spatial; ++d) {
    // The first coordinate is that of the last dimension.
    const int64_t size = image[image.size() - 1 - d];
    const auto position = [&](const at::Tensor& t) {
      const at::Tensor x = t.narrow(-1, d, 1);
      return align_corners ? (x + 1) / 2 * static_cast<double>(size - 1)
                           : ((x + 1) * static_cast<double>(size) - 1) / 2;
    };
    const at::Tensor begin = position(grid.reference);
    const at::Tensor end = position(grid.value);
    at::Tensor low = at::minimum(begin, end);
    at::Tensor high = at::maximum(begin, end);
    if (call.Int("padding_mode", 0) != kReflection) {  // far outside nothing bends
      low = low.clamp(-3, static_cast<double>(size) + 3);
      high = high.clamp(-3, static_cast<double>(size) + 3);
    }
    const at::Tensor first = (low * 2).ceil();
    const double most = ReadNumber(((high * 2).floor() - first).max()) + 1;
    if (most <= 0) continue;
    pieces += static_cast<int64_t>(most);
    if (most > kMostPieces || pieces > kMostPieces) {
      throw Unimplemented(call.name + " with a grid that moves across thousands of elements");
    }
    const at::Tensor place = (first + at::arange(static_cast<int64_t>(most), first.options())) / 2;
    const at::Tensor t = (place - begin) / (end - begin);
    const at::Tensor none = place.gt(high).logical_or(end.eq(begin));
    bends.push_back(t.masked_fill(none, 1).clamp(0, 1));
  }
  return std::get<0>(at::cat(bends, -1).sort(-1));
}

// How the result of resting images follows each coordinate of the grid, by the path rule: [N, C, *out, coordinates].
// Exact: between two bends the derivative is a polynomial, which a few nodes integrate.
at::Tensor AlongTheGrid(const RuleCall& call, const at::Tensor& images) {
  c10::InferenceMode no_inference(false);
  const RuleOperand& grid = call.Require("grid");
  const int64_t spatial = grid.value.size(-1);
  const bool cubic = call.Int("interpolation_mode", 0) == kCubic;
  // Along a line the result is a polynomial of this degree, whose derivative n nodes integrate up to degree 2 n - 1.
  const int64_t degree = cubic ? 3 * spatial : spatial;
  const Quadrature rule = GaussLegendre(static_cast<int>((degree + 1) / 2));
  const at::Tensor bends = Bends(call);
  const at::Tensor move = call.Move(call.OperandAt("grid"));
  // Each plane is an image of its own, since every one has a derivative of its own.
  at::DimVector planes(images.sizes());
  planes[0] *= planes[1];
  planes[1] = 1;
  const at::Tensor apart = images.detach().clone().reshape(planes);
  at::DimVector by_plane(grid.value.sizes());
  by_plane.insert(by_plane.begin() + 1, images.size(1));
  at::DimVector folded(grid.value.sizes());
  folded[0] = planes[0];
  at::Tensor sum = at::zeros(by_plane, grid.value.options());
  for (int64_t piece = 0; piece + 1 < bends.size(-1); ++piece) {
    const at::Tensor from = bends.narrow(-1, piece, 1);
    const at::Tensor length = bends.narrow(-1, piece + 1, 1) - from;
    if (!ReadFlag(length.gt(0).any())) continue;
    for (size_t q = 0; q < rule.nodes.size(); ++q) {
      c10::AutoGradMode with_grad(true);
      const at::Tensor point = grid.reference + (from + length * rule.nodes[q]) * move;
      const at::Tensor leaf = point.detach().unsqueeze(1).expand(by_plane).reshape(folded).clone();
      leaf.set_requires_grad(true);
      const at::Tensor read = call.run(call.arguments, {apart, leaf})[0];
      const at::Tensor slope = torch::autograd::grad({read}, {leaf}, {at::ones_like(read)})[0];
      sum += slope.detach().view(by_plane) * (length * rule.weights[q]).unsqueeze(1);
    }
  }
  return sum;
}

// grid_sampler(input, grid, interpolation, padding, align_corners): linear in the input, whose rows are channels for
// the grid. Where the grid moves too, the input's rows are read at both ends of the grid's line, and the grid's move
// is followed in the middle of the input: together that is the whole move.
RuleResult Sample(const RuleCall& call) {
  const int input = call.OperandAt("input");
  const int grid = call.OperandAt("grid");
  const RuleOperand& image = call.operands[input];
  const RuleOperand& points = call.operands[grid];
  const bool image_moves = image.decomposed;
  const bool nearest = call.Int("interpolation_mode", 0) == kNearest;  // nothing of the grid passes
  if (nearest && !image_moves) return Opaque(call);
  const bool grid_moves = points.decomposed && !nearest;
  RuleResult result;
  result.kind = Kind::kLinear;
  if (points.decomposed) {
    result.kind = image_moves ? Kind::kRewrite : Kind::kPath;
    result.exact = image_moves && !nearest;
    const bool single = image.value.scalar_type() == at::kFloat;
    if (result.kind == Kind::kPath) result.quadrature = single ? 1e-6 : 1e-12;
  }
  const at::Tensor slopes = grid_moves ? AlongTheGrid(call, Middle(image)) : at::Tensor();
  if (image_moves) result.inputs.push_back(input);
  if (grid_moves) result.inputs.push_back(grid);
  std::vector<at::Tensor> ends = {points.value};
  if (points.decomposed) ends.push_back(points.reference);
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  result.map = MakeMap(call, result.inputs, [=, run = call.run, arguments = call.arguments](const Rows& rows) -> Rows {
    at::Tensor sum;
    if (image_moves) {
      const int64_t r = rows[0].size(0);
      at::DimVector folded = {output_sizes[0], r * output_sizes[1]};
      folded.append(rows[0].sizes().begin() + 3, rows[0].sizes().end());
      at::DimVector unfolded = {output_sizes[0], r, output_sizes[1]};
      unfolded.append(output_sizes.begin() + 2, output_sizes.end());
      const at::Tensor channels = rows[0].movedim(0, 1).reshape(folded);
      for (const at::Tensor& end : ends) {
        const at::Tensor read = run(arguments, {channels, end})[0].reshape(unfolded).movedim(1, 0);
        sum = sum.defined() ? sum + read : read;
      }
      if (ends.size() > 1) sum = sum / static_cast<double>(ends.size());
    }
    if (grid_moves) {
      const at::Tensor moved = (rows.back().unsqueeze(2) * slopes).sum(-1);
      sum = sum.defined() ? sum + moved : moved;
    }
    return {sum};
  });
  return result;
}

// ---------------------------------------------------------------------------------------------------------- detection

// roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned): linear in the images,
// whose rows are channels for the boxes. Boxes are the value's for every row, as indices are; what it makes of a
// resting image that they move is left over.
RuleResult ReadBoxes(const RuleCall& call) {
  const RuleOperand& boxes = call.Require("rois");
  if (!call.Require("input").decomposed) return Opaque(call);
  const auto read = [run = call.run, arguments = call.arguments, rois = boxes.value](const at::Tensor& rows) {
    const int64_t r = rows.size(0);
    const at::Tensor channels = run(arguments, {rows.movedim(0, 1).flatten(1, 2), rois})[0];
    at::DimVector apart = {channels.size(0), r, channels.size(1) / r};
    apart.append(channels.sizes().begin() + 2, channels.sizes().end());
    return channels.reshape(apart).movedim(1, 0);
  };
  RuleResult result = LinearIn(call, Kind::kLinear, "input", read);
  result.exact = !boxes.decomposed;
  return result;
}

// deform_conv2d(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
// offset_groups, use_mask): each tap of the kernel reads the image at a place of its own, which `offset` moves. That is
// sampling, a product with the mask and one with the weights. offset: [N, groups * taps * 2, height, width], of each
// tap y before x; mask: [N, groups * taps, height, width].
std::vector<at::Tensor> DeformableConvolution(const RewriteCall& call) {
  const at::Tensor input = call.Tensor("input");
  const at::Tensor weight = call.Tensor("weight");
  const at::Tensor offset = call.Tensor("offset");
  const int64_t n = input.size(0);
  const int64_t groups = call.Int("groups", 1);
  const int64_t offset_groups = call.Int("offset_groups", 1);
  const int64_t taps = weight.size(2) * weight.size(3);
  const int64_t height = offset.size(2);
  const int64_t width = offset.size(3);
  // Coordinates that the taps read without an offset, in elements of the image: [taps, height * width].
  const auto number = [&](int64_t count) { return at::arange(count, offset.options()); };
  const at::Tensor y =
      (number(weight.size(2)) * static_cast<double>(call.Int("dilation_h", 1))).view({-1, 1, 1, 1}) +
      (number(height) * static_cast<double>(call.Int("stride_h", 1)) - static_cast<double>(call.Int("pad_h", 0)))
          .view({1, 1, -1, 1});
  const at::Tensor x =
      (number(weight.size(3)) * static_cast<double>(call.Int("dilation_w", 1))).view({1, -1, 1, 1}) +
      (number(width) * static_cast<double>(call.Int("stride_w", 1)) - static_cast<double>(call.Int("pad_w", 0)))
          .view({1, 1, 1, -1});
  const at::IntArrayRef image = input.sizes();
  const at::DimVector places = {weight.size(2), weight.size(3), height, width};
  const at::Tensor moved = offset.reshape({n * offset_groups, taps, 2, height * width});
  // grid_sampler counts from -1 to 1, from border to border of the image.
  const auto coordinate = [&](int64_t which, const at::Tensor& rest, int64_t size) {
    const double step = 2.0 / static_cast<double>(size);
    return (moved.select(2, which) + rest.expand(places).reshape({taps, -1})) * step + (step / 2 - 1);
  };
  const at::Tensor grid = at::stack({coordinate(1, x, image[3]), coordinate(0, y, image[2])}, -1);
  const at::Tensor images = input.reshape({n * offset_groups, image[1] / offset_groups, image[2], image[3]});
  at::Tensor read = at::grid_sampler_2d(images, grid, Interpolation::kLinear, Padding::kZeros, /*align_corners=*/false);
  read = read.reshape({n, offset_groups, image[1] / offset_groups, taps, height * width});
  if (call.Bool("use_mask", true))
    read = read * call.Tensor("mask").reshape({n, offset_groups, 1, taps, height * width});
  const at::Tensor columns = read.reshape({n, groups, image[1] / groups * taps, height * width});
  const at::Tensor summed = at::matmul(weight.reshape({groups, weight.size(0) / groups, -1}), columns);
  return {summed.reshape({n, weight.size(0), height, width}) + call.Tensor("bias").view({1, -1, 1, 1})};
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
                                                       {"aten::_upsample_bicubic2d_aa", 2},
                                                       {"aten::_upsample_lanczos2d_aa", 2}}) {
    registry.Register({name, Kind::kLinear, [spatial = spatial](const RuleCall& c) { return OnPlanes(c, spatial); }});
  }
  for (const char* name : {"aten::grid_sampler_2d", "aten::grid_sampler_3d"}) {
    registry.Register({name, Kind::kLinear, Sample});
  }
  registry.Register({"aten::affine_grid_generator", Kind::kLinear, AffineGrid});
  registry.Register(Rule{"aten::col2im", Kind::kLinear, Fold}.CoversComplex());
  registry.Register({"torchvision::roi_align", Kind::kLinear, ReadBoxes});
  registry.Register(Rewrite{"torchvision::deform_conv2d", DeformableConvolution});
}

}  // namespace addend
