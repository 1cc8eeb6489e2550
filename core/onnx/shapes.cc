// Rearrangements of elements by sizes and axes: reshaping, joining, cutting, padding, repeating.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using Sizes = std::vector<int64_t>;

int64_t Product(const Sizes& sizes, size_t begin, size_t end) {
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(begin),
                         sizes.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1}, std::multiplies<>());
}

// Axes of an attribute, or of input `k` from some version on. `given`: whether there are any.
Sizes AxesOf(const Context& context, size_t k, int64_t rank, bool* given) {
  *given = context.HasAttribute("axes") || context.Has(k);
  return context.Axes(context.Has(k) ? context.Integers(k) : context.IntsAttribute("axes"), rank);
}

// ------------------------------------------------------------------------------------------------------------- sizes

Results Reshape(const Context& context) {
  const Tensor x = context.Tensor(0);
  Sizes sizes = context.version() < 5 ? context.IntsAttribute("shape") : context.Integers(1);
  if (!context.FlagAttribute("allowzero", false)) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 0) sizes[d] = x.size(context.Axis(static_cast<int64_t>(d), x.dim()));
    }
  }
  return at::reshape(x, sizes);
}

Results Flatten(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Sizes sizes = x.sizes().vec();
  const int64_t axis = context.IntAttribute("axis", 1);
  // The axis may be one behind the last.
  const auto middle = static_cast<size_t>(axis == x.dim() ? axis : context.Axis(axis, x.dim()));
  return at::reshape(x, {Product(sizes, 0, middle), Product(sizes, middle, sizes.size())});
}

Results Transpose(const Context& context) {
  const Tensor x = context.Tensor(0);
  Sizes order(static_cast<size_t>(x.dim()));
  std::iota(order.rbegin(), order.rend(), 0);
  return at::permute(x, context.IntsAttribute("perm", order));
}

Results Squeeze(const Context& context) {
  Tensor x = context.Tensor(0);
  bool given = false;
  Sizes axes = AxesOf(context, 1, x.dim(), &given);
  if (!given) return at::squeeze(x);
  std::sort(axes.rbegin(), axes.rend());
  for (const int64_t axis : axes) {
    if (x.size(axis) != 1) throw context.Invalid(absl::StrCat("axis ", axis, " has size ", x.size(axis), ", not 1"));
    x = at::squeeze(x, axis);
  }
  return x;
}

// The axes are those of the result.
Results Unsqueeze(const Context& context) {
  Tensor x = context.Tensor(0);
  Sizes axes = context.version() < 13 ? context.IntsAttribute("axes") : context.Integers(1);
  axes = context.Axes(axes, x.dim() + static_cast<int64_t>(axes.size()));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) throw context.Invalid("an axis is there twice");
  for (const int64_t axis : axes) x = at::unsqueeze(x, axis);
  return x;
}

// Sizes of 1 are those of the input.
Results Expand(const Context& context) {
  const Tensor x = context.Tensor(0);
  Sizes sizes = context.Integers(1);
  const auto rank = static_cast<size_t>(x.dim());
  if (sizes.size() < rank) sizes.insert(sizes.begin(), rank - sizes.size(), 1);
  for (size_t d = sizes.size() - rank; d < sizes.size(); ++d) {
    if (sizes[d] == 1) sizes[d] = -1;
  }
  return x.expand(sizes);
}

Results Tile(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Sizes repeats = context.Integers(1);
  if (static_cast<int64_t>(repeats.size()) != x.dim()) {
    throw context.Invalid(absl::StrCat(repeats.size(), " repeats for ", x.dim(), " dimensions"));
  }
  return x.repeat(repeats);
}

// ---------------------------------------------------------------------------------------------------- joining, cutting

Results Concat(const Context& context) {
  const std::vector<Tensor> tensors = context.Tensors();
  const int64_t rank = tensors.at(0).dim();
  // LibTorch leaves out empty tensors of one dimension.
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() != rank) throw context.Invalid("the operands have different numbers of dimensions");
  }
  const int64_t axis = context.version() < 4 ? context.IntAttribute("axis", 1) : context.IntAttribute("axis");
  return at::cat(tensors, context.Axis(axis, rank));
}

// Lengths of `count` parts that are alike. From version 18 on the last may be shorter.
Sizes LengthsOfParts(const Context& context, int64_t length, int64_t count) {
  if (count < 1) throw context.Invalid(absl::StrCat("it makes ", count, " parts"));
  const int64_t part = (length + count - 1) / count;
  const int64_t last = length - part * (count - 1);
  if (last < 0 || (context.version() < 18 && last != part)) {
    throw context.Invalid(absl::StrCat("a length of ", length, " makes no ", count, " parts"));
  }
  Sizes lengths(static_cast<size_t>(count), part);
  lengths.back() = last;
  return lengths;
}

Results Split(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t axis = context.Axis(context.IntAttribute("axis", 0), x.dim());
  Sizes lengths;
  if (context.Has(1)) {
    lengths = context.Integers(1);
  } else if (context.HasAttribute("split")) {
    lengths = context.IntsAttribute("split");
  } else {
    const bool is_told = context.version() >= 18;
    const auto outputs = static_cast<int64_t>(context.num_outputs());
    lengths = LengthsOfParts(context, x.size(axis), is_told ? context.IntAttribute("num_outputs") : outputs);
  }
  return at::split_with_sizes(x, lengths, axis);
}

// Part of an axis, backward for a negative step: a start before the first element is then the first. Writers say "from
// the first" and "to the last" by the least and the largest integer, with which LibTorch cannot reckon.
Tensor Cut(const Tensor& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = x.size(axis);
  if (size == 0) return x;
  if (step > 0) {
    return at::slice(x, axis, std::clamp(start, -size, size), std::clamp(end, -size, size), std::min(step, size));
  }
  const int64_t first = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size - 1);
  const int64_t beyond = std::clamp<int64_t>(end < 0 ? end + size : end, -1, size - 1);
  if (first <= beyond) return at::slice(x, axis, 0, 0);
  // A step beyond the size reaches the first element only; its negation does not overflow.
  const int64_t stride = -std::max(step, -size);
  const int64_t last = first - (first - beyond - 1) / stride * stride;
  return at::flip(at::slice(x, axis, last, first + 1, stride), axis);
}

Results Slice(const Context& context) {
  Tensor x = context.Tensor(0);
  const bool old = context.version() < 10;
  const Sizes starts = old ? context.IntsAttribute("starts") : context.Integers(1);
  const Sizes ends = old ? context.IntsAttribute("ends") : context.Integers(2);
  Sizes axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (context.Has(3)) axes = context.Integers(3);
  if (old) axes = context.IntsAttribute("axes", axes);
  const Sizes steps = context.Has(4) ? context.Integers(4) : Sizes(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    throw context.Invalid("starts, ends, axes and steps differ in their numbers");
  }
  axes = context.Axes(axes, x.dim());
  for (size_t k = 0; k < axes.size(); ++k) {
    if (steps[k] == 0) throw context.Invalid("a step is 0");
    x = Cut(x, axes[k], starts[k], ends[k], steps[k]);
  }
  return x;
}

// ------------------------------------------------------------------------------------------------------------- padding

// Elements before and behind each axis; negative ones are cut off.
struct Pads {
  Sizes before;
  Sizes behind;

  // The order that LibTorch has: the last axis first.
  Sizes FromTheLast() const {
    Sizes pads;
    for (size_t d = before.size(); d-- > 0;) {
      pads.push_back(before[d]);
      pads.push_back(behind[d]);
    }
    return pads;
  }
};

Pads PadsOf(const Context& context, int64_t rank) {
  const Sizes pads = context.version() < 11 ? context.IntsAttribute("pads") : context.Integers(1);
  Sizes axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (context.Has(3)) axes = context.Axes(context.Integers(3), rank);
  if (pads.size() != 2 * axes.size()) {
    throw context.Invalid(absl::StrCat(pads.size(), " pads for ", axes.size(), " axes"));
  }
  Pads all{Sizes(static_cast<size_t>(rank), 0), Sizes(static_cast<size_t>(rank), 0)};
  for (size_t k = 0; k < axes.size(); ++k) {
    all.before[static_cast<size_t>(axes[k])] = pads[k];
    all.behind[static_cast<size_t>(axes[k])] = pads[k + axes.size()];
  }
  return all;
}

Tensor PadByConstant(const Context& context, const Tensor& x, const Sizes& pads) {
  if (context.version() < 11) return at::constant_pad_nd(x, pads, context.FloatAttribute("value", 0));
  if (!context.Has(2)) return at::constant_pad_nd(x, pads, 0);
  if (const auto number = context.Number(2)) return at::constant_pad_nd(x, pads, *number);
  // The number is computed from an input: its components reach the margin.
  const Tensor inside = at::constant_pad_nd(at::ones_like(x, x.options().dtype(at::kBool)), pads, 0);
  return at::where(inside, at::constant_pad_nd(x, pads, 0), at::reshape(context.Tensor(2), Sizes()));
}

// Positions along an axis of `size` that a padded axis is read from.
Tensor PaddedPositions(const Context& context, const std::string& mode, int64_t size, int64_t before, int64_t behind) {
  const Tensor positions = at::arange(-before, size + behind, context.Options(at::kLong));
  if (mode == "edge" || size == 1) return at::clamp(positions, 0, size - 1);
  if (mode == "wrap") return at::remainder(positions, size);
  if (mode != "reflect") throw context.Invalid("the mode is none of constant, reflect, edge and wrap");
  // Forth and back again without the two ends.
  const int64_t last = size - 1;
  return at::rsub(at::abs(at::sub(at::remainder(positions, 2 * last), last)), last);
}

Results Pad(const Context& context) {
  Tensor x = context.Tensor(0);
  const std::string mode = context.TextAttribute("mode", "constant");
  const Pads pads = PadsOf(context, x.dim());
  if (mode == "constant") return PadByConstant(context, x, pads.FromTheLast());
  for (int64_t d = 0; d < x.dim(); ++d) {
    const int64_t before = pads.before[static_cast<size_t>(d)], behind = pads.behind[static_cast<size_t>(d)];
    if (before < 0 || behind < 0) {
      const int64_t start = std::max<int64_t>(-before, 0), end = x.size(d) + std::min<int64_t>(behind, 0);
      if (start > end) throw context.Invalid(absl::StrCat("the pads cut off more than there is of axis ", d));
      x = at::slice(x, d, start, end);
    }
    if (before <= 0 && behind <= 0) continue;
    if (x.size(d) == 0) throw context.Invalid(absl::StrCat("axis ", d, " is empty: nothing is there to pad with"));
    x = at::index_select(
        x, d, PaddedPositions(context, mode, x.size(d), std::max<int64_t>(before, 0), std::max<int64_t>(behind, 0)));
  }
  return x;
}

// The middle of the input, or the input in the middle of zeros.
Results CenterCropPad(const Context& context) {
  Tensor x = context.Tensor(0);
  Sizes axes(static_cast<size_t>(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  axes = context.Axes(context.IntsAttribute("axes", axes), x.dim());
  const Sizes sizes = context.Integers(1);
  if (sizes.size() != axes.size()) throw context.Invalid("there is not one size for each axis");
  Pads pads{Sizes(static_cast<size_t>(x.dim()), 0), Sizes(static_cast<size_t>(x.dim()), 0)};
  bool is_padded = false;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = axes[k], more = sizes[k] - x.size(axis);
    if (sizes[k] < 0) throw context.Invalid("a size is negative");
    if (more < 0) x = at::slice(x, axis, -more / 2, -more / 2 + sizes[k]);
    if (more <= 0) continue;
    is_padded = true;
    pads.before[static_cast<size_t>(axis)] = more / 2;
    pads.behind[static_cast<size_t>(axis)] = more - more / 2;
  }
  return is_padded ? at::constant_pad_nd(x, pads.FromTheLast(), 0) : x;
}

// -------------------------------------------------------------------------------------------------------------- blocks

// Whether depth stands before the place in a block (DCR), or behind it (CRD).
bool DepthIsFirst(const Context& context) {
  const std::string mode = context.TextAttribute("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw context.Invalid("the mode is neither DCR nor CRD");
  return mode == "DCR";
}

Tensor Image(const Context& context, int64_t* block) {
  *block = context.IntAttribute("blocksize");
  if (*block < 1) throw context.Invalid(absl::StrCat("the size of blocks is ", *block));
  const Tensor x = context.Tensor(0);
  if (x.dim() != 4) throw context.Invalid(absl::StrCat("the input has ", x.dim(), " dimensions, not 4"));
  return x;
}

Results DepthToSpace(const Context& context) {
  int64_t block = 0;
  const Tensor x = Image(context, &block);
  const int64_t n = x.size(0), depth = x.size(1) / (block * block), h = x.size(2), w = x.size(3);
  const bool first = DepthIsFirst(context);
  const Tensor parts = first ? at::permute(at::reshape(x, {n, block, block, depth, h, w}), {0, 3, 4, 1, 5, 2})
                             : at::permute(at::reshape(x, {n, depth, block, block, h, w}), {0, 1, 4, 2, 5, 3});
  return at::reshape(parts, {n, depth, h * block, w * block});
}

Results SpaceToDepth(const Context& context) {
  int64_t block = 0;
  const Tensor x = Image(context, &block);
  const int64_t n = x.size(0), depth = x.size(1), h = x.size(2) / block, w = x.size(3) / block;
  const Tensor parts = at::reshape(x, {n, depth, h, block, w, block});
  const Tensor ordered = at::permute(parts, DepthIsFirst(context) ? Sizes{0, 3, 5, 1, 2, 4} : Sizes{0, 1, 3, 5, 2, 4});
  return at::reshape(ordered, {n, depth * block * block, h, w});
}

// ---------------------------------------------------------------------------------------------------------------- bits

// The type of integers with a sign that has as many bits as one that is widened.
at::ScalarType SignedLike(DataType type) {
  if (type == DataType::kUint16) return at::kShort;
  return type == DataType::kUint32 ? at::kInt : at::kLong;
}

// The bits of each element as another type of as many bits. Compositions have no bits: a trace refuses decomposed ones.
Results BitCast(const Context& context) {
  const DataType from = context.Input(0).integers, to = context.NamedType("to");
  const Tensor x = IsWidened(from) ? InType(context.Tensor(0), SignedLike(from)) : context.Tensor(0);
  const at::ScalarType type = IsWidened(to) ? SignedLike(to) : context.TypeOf(to);
  if (c10::elementSize(type) != c10::elementSize(x.scalar_type())) {
    throw context.Invalid("the types have different numbers of bits");
  }
  const Tensor bits = x.scalar_type() == type ? x : x.view(type);
  return IsWidened(to) ? Results(AsUnsigned(context, bits, to)) : Results(bits);
}

void AddJoining(OperatorTable& table) {
  table.Add("Concat", 1, Concat).InputsFrom(1).Attributes({"axis"});
  table.Add("Split", 2, Split).Attributes({"axis", "split"});
  table.Add("Split", 13, Split).Inputs(1, 2).Attributes({"axis"}).Known(KnownIf::kSizesConstant);
  table.Add("Split", 18, Split).Inputs(1, 2).Attributes({"axis", "num_outputs"}).Known(KnownIf::kSizesConstant);
  table.Add("Slice", 1, Slice).Attributes({"axes", "ends", "starts"});
  table.Add("Slice", 10, Slice).Inputs(3, 5).Known(KnownIf::kSizesConstant);
}

}  // namespace

void RegisterShapes(OperatorTable& table) {
  table.Add("Reshape", 1, Reshape).Attributes({"shape", "consumed_inputs"});
  table.Add("Reshape", 5, Reshape).Inputs(2).Attributes({"allowzero"}).Known(KnownIf::kSizesConstant);
  table.Add("Flatten", 1, Flatten).Attributes({"axis"});
  table.Add("Transpose", 1, Transpose).Attributes({"perm"});
  table.Add("Squeeze", 1, Squeeze).Attributes({"axes"});
  table.Add("Squeeze", 13, Squeeze).Inputs(1, 2);
  table.Add("Unsqueeze", 1, Unsqueeze).Attributes({"axes"});
  table.Add("Unsqueeze", 13, Unsqueeze).Inputs(2);
  table.Add("Expand", 8, Expand).Inputs(2).Known(KnownIf::kInputsConstant);
  table.Add("Tile", 6, Tile).Inputs(2).Known(KnownIf::kInputsConstant);
  AddJoining(table);
  table.Add("Pad", 2, Pad).Attributes({"mode", "pads", "value"});
  table.Add("Pad", 11, Pad).Inputs(2, 3).Attributes({"mode"}).Known(KnownIf::kSizesConstant);
  table.Add("Pad", 18, Pad).Inputs(2, 4).Attributes({"mode"}).Known(KnownIf::kSizesConstant);
  table.Add("CenterCropPad", 18, CenterCropPad).Inputs(2).Attributes({"axes"}).Known(KnownIf::kSizesConstant);
  table.Add("DepthToSpace", 1, DepthToSpace).Attributes({"blocksize", "mode"});
  table.Add("SpaceToDepth", 1, SpaceToDepth).Attributes({"blocksize", "mode"});
  table.Add("BitCast", 26, BitCast).Attributes({"to"}).ReadsUnsigned();
  table.KeepIntegers({"Concat", "DepthToSpace", "Expand", "Flatten", "Pad", "Reshape", "Slice", "SpaceToDepth", "Split",
                      "Squeeze", "Tile", "Transpose", "Unsqueeze"});
}

}  // namespace addend::onnx
