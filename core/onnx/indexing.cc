// Elements chosen and written by indices, masks and positions.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"
#include "third_party/torch/warnings.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using Sizes = std::vector<int64_t>;
using Indices = c10::List<c10::optional<Tensor>>;

// ------------------------------------------------------------------------------------------------------------- indices

// Indices as at::gather and at::scatter take them: negative ones count from the end, and those beyond are errors there.
Tensor CountedFromTheFront(const Tensor& indices, int64_t size) {
  const Tensor wide = InType(indices, at::kLong);
  return at::where(at::lt(wide, 0), at::add(wide, size), wide);
}

Tensor IndicesFromTheFront(const Context& context, size_t k, int64_t size) {
  const Tensor indices = context.Tensor(k);
  if (!context.Input(k).IsKnown()) return CountedFromTheFront(indices, size);
  const TracingPause pause;
  return CountedFromTheFront(indices, size);
}

// One tensor of indices at `axis`, as at::index takes it: negative ones count from the end.
Indices At(int64_t axis, const Tensor& indices) {
  Indices list;
  for (int64_t d = 0; d < axis; ++d) list.push_back(c10::nullopt);
  list.push_back(indices);
  return list;
}

// The columns of tuples in the last axis of `tuples`.
std::vector<Tensor> Columns(const Context& context, size_t k, int64_t most) {
  const Tensor tuples = InType(context.Tensor(k), at::kLong);
  if (tuples.dim() == 0) throw context.Invalid("the indices are a single number");
  if (tuples.size(-1) < 1 || tuples.size(-1) > most) {
    throw context.Invalid(absl::StrCat("indices of ", tuples.size(-1), " axes do not fit"));
  }
  return at::unbind(tuples, -1);
}

// Whether an index counts from the end. It is no part of the trace: a recording that meets one fails.
bool AnyNegative(const Tensor& indices) {
  const TracingPause pause;
  return indices.numel() > 0 && at::lt(indices, 0).any().item<bool>();
}

// ------------------------------------------------------------------------------------------------------------- reading

Results Gather(const Context& context) {
  const Tensor x = context.Tensor(0);
  const Tensor indices = context.Tensor(1);
  const int64_t axis = context.Axis(context.IntAttribute("axis", 0), x.dim());
  const auto number = indices.dim() == 0 ? context.Number(1) : c10::nullopt;
  if (number) return at::select(x, axis, number->toLong());
  // Rows of weights, chosen by ids: their baselines are known to embeddings.
  const bool is_weight = context.Input(0).descent == Descent::kConstants && c10::isFloatingType(x.scalar_type());
  const bool is_embedding = is_weight && axis == 0 && x.dim() == 2 && !context.Input(1).IsKnown();
  if (is_embedding && !AnyNegative(indices)) return at::embedding(x, InType(indices, at::kLong));
  return at::index(x, At(axis, InType(indices, at::kLong)));
}

Results GatherElements(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t axis = context.Axis(context.IntAttribute("axis", 0), x.dim());
  return at::gather(x, axis, IndicesFromTheFront(context, 1, x.size(axis)));
}

Results GatherND(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t num_batch = context.IntAttribute("batch_dims", 0);
  const int64_t rank = context.Rank(1);
  if (num_batch < 0 || num_batch >= x.dim() || num_batch >= rank) {
    throw context.Invalid(absl::StrCat("the input has no ", num_batch, " batch dimensions"));
  }
  Indices indices;
  for (int64_t d = 0; d < num_batch; ++d) {
    if (x.size(d) != context.Tensor(1).size(d)) throw context.Invalid("the batch dimensions differ");
    Sizes sizes(static_cast<size_t>(rank - 1), 1);
    sizes[static_cast<size_t>(d)] = x.size(d);
    indices.push_back(at::reshape(at::arange(x.size(d), context.Options(at::kLong)), sizes));
  }
  for (const Tensor& column : Columns(context, 1, x.dim() - num_batch)) indices.push_back(column);
  return at::index(x, indices);
}

// Slices where the condition holds, which may be shorter than the axis.
Results Compress(const Context& context) {
  const bool flat = !context.HasAttribute("axis");
  const Tensor x = flat ? at::reshape(context.Tensor(0), {-1}) : context.Tensor(0);
  const int64_t axis = flat ? 0 : context.Axis(context.IntAttribute("axis"), x.dim());
  const Tensor condition = context.Tensor(1);
  if (condition.dim() != 1) throw context.Invalid("the condition has not one dimension");
  const int64_t count = condition.size(0);
  const Tensor chosen = count < x.size(axis) ? at::slice(x, axis, 0, count) : x;
  return at::index(chosen, At(axis, InType(condition, at::kBool)));
}

Results NonZero(const Context& context) { return at::t(at::nonzero(context.Tensor(0))); }

// ------------------------------------------------------------------------------------------------------------- writing

// The name by which at::scatter_reduce knows a reduction.
std::string ReductionName(const Context& context, const std::string& reduction) {
  if (reduction == "mul") return "prod";
  if (reduction == "max") return "amax";
  if (reduction == "min") return "amin";
  throw context.Invalid("the reduction is none of none, add, mul, max and min");
}

Tensor Scattered(const Context& context, const Tensor& x, int64_t axis, const Tensor& indices, const Tensor& updates,
                 const std::string& reduction) {
  if (reduction == "none") return at::scatter(x, axis, indices, updates);
  if (reduction == "add") return at::scatter_add(x, axis, indices, updates);
  // LibTorch prints once that scatter_reduce may change; the library prints nothing.
  const WarningsTo nowhere([](const std::string&) {});
  return at::scatter_reduce(x, axis, indices, updates, ReductionName(context, reduction));
}

Results ScatterElements(const Context& context) {
  const Tensor x = context.Tensor(0), updates = context.Tensor(2);
  const int64_t axis = context.Axis(context.IntAttribute("axis", 0), x.dim());
  const Tensor indices = IndicesFromTheFront(context, 1, x.size(axis));
  if (indices.sizes() != updates.sizes()) throw context.Invalid("indices and updates differ in their sizes");
  return Scattered(context, x, axis, indices, updates, context.TextAttribute("reduction", "none"));
}

Results ScatterND(const Context& context) {
  const Tensor x = context.Tensor(0), updates = context.Tensor(2);
  const std::string reduction = context.TextAttribute("reduction", "none");
  Indices indices;
  for (const Tensor& column : Columns(context, 1, x.dim())) indices.push_back(column);
  const auto num_axes = static_cast<int64_t>(indices.size());
  Sizes expected = context.Tensor(1).sizes().slice(0, static_cast<size_t>(context.Rank(1) - 1)).vec();
  expected.insert(expected.end(), x.sizes().begin() + num_axes, x.sizes().end());
  if (updates.sizes() != expected) throw context.Invalid("the updates do not have the sizes that the indices say");
  if (reduction == "none" || reduction == "add") return at::index_put(x, indices, updates, reduction == "add");
  // Rows of a matrix, whose numbers are found by the same indices.
  int64_t num_rows = 1;
  for (int64_t d = 0; d < num_axes; ++d) num_rows *= x.size(d);
  const Tensor rows = at::reshape(at::arange(num_rows, context.Options(at::kLong)), x.sizes().slice(0, num_axes));
  const int64_t width = num_rows == 0 ? 0 : x.numel() / num_rows;
  const Tensor row = at::reshape(at::index(rows, indices), {-1, 1});
  const Tensor result = Scattered(context, at::reshape(x, {num_rows, width}), 0, row.expand({row.size(0), width}),
                                  at::reshape(updates, {row.size(0), width}), reduction);
  return at::reshape(result, x.sizes());
}

// Updates along an axis, which begin at another place in each element of the batch.
Results TensorScatter(const Context& context) {
  const Tensor past = context.Tensor(0), update = context.Tensor(1);
  const std::string mode = context.TextAttribute("mode", "linear");
  if (mode != "linear" && mode != "circular") throw context.Invalid("the mode is neither linear nor circular");
  const int64_t axis = context.Axis(context.IntAttribute("axis", -2), past.dim());
  if (axis == 0) throw context.Invalid("axis 0 is that of the batch, along which nothing is updated");
  Sizes sizes(static_cast<size_t>(past.dim()), 1);
  sizes[static_cast<size_t>(axis)] = update.size(axis);
  Tensor places = at::reshape(at::arange(update.size(axis), context.Options(at::kLong)), sizes);
  if (context.Has(2)) {
    Sizes batch(static_cast<size_t>(past.dim()), 1);
    batch[0] = past.size(0);
    places = at::add(places, at::reshape(InType(context.Tensor(2), at::kLong), batch));
  }
  if (mode == "circular") places = at::remainder(places, past.size(axis));
  return at::scatter(past, axis, places.expand(update.sizes()), update);
}

// ----------------------------------------------------------------------------------------------------- made of indices

// The number of classes, which may be of any type.
int64_t Depth(const Context& context) {
  const double depth = std::trunc(context.Real(1));
  if (!(depth >= 1 && depth < 0x1p31)) throw context.Invalid(absl::StrCat("the depth is ", depth));
  return static_cast<int64_t>(depth);
}

// Indices beyond the depth have no class; negative ones count from the end.
Results OneHot(const Context& context) {
  Tensor indices = context.Tensor(0);
  const int64_t depth = Depth(context);
  const int64_t rank = indices.dim() + 1;
  const int64_t axis = context.Axis(context.IntAttribute("axis", -1), rank);
  // Floating-point indices are cut to integers, which these types hold as well.
  indices =
      c10::isFloatingType(indices.scalar_type()) ? at::trunc(InType(indices, at::kDouble)) : InType(indices, at::kLong);
  indices = at::where(at::lt(indices, 0), at::add(indices, depth), indices);
  Sizes sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(axis)] = depth;
  const Tensor classes = at::reshape(at::arange(depth, context.Options(at::kLong)), sizes);
  const Tensor values = context.Tensor(2);
  if (values.dim() != 1 || values.size(0) != 2) throw context.Invalid("the values are not two, for off and on");
  return at::where(at::eq(at::unsqueeze(indices, axis), classes), at::select(values, 0, 1), at::select(values, 0, 0));
}

// Equal elements stay in their order.
Results TopK(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t count = context.version() < 10 ? context.IntAttribute("k") : context.Integer(1);
  const int64_t axis = context.Axis(context.IntAttribute("axis", -1), x.dim());
  if (count < 0 || count > x.size(axis)) {
    throw context.Invalid(absl::StrCat("the axis has ", x.size(axis), " elements, not ", count));
  }
  const auto [values, indices] = at::sort(x, /*stable=*/true, axis, context.FlagAttribute("largest", true));
  return {at::slice(values, axis, 0, count), at::slice(indices, axis, 0, count)};
}

// The place of the first extreme element, or of the last one.
template <typename Search>
Results Extreme(const Context& context, const Search& search) {
  const Tensor x = context.Tensor(0);
  const int64_t axis = context.Axis(context.IntAttribute("axis", 0), x.dim());
  const bool keeps = context.FlagAttribute("keepdims", true);
  if (!context.FlagAttribute("select_last_index", false)) return search(x, axis, keeps);
  return at::rsub(search(at::flip(x, axis), axis, keeps), x.size(axis) - 1);
}

Results ArgMax(const Context& context) {
  return Extreme(context, [](const Tensor& x, int64_t axis, bool keeps) { return at::argmax(x, axis, keeps); });
}

Results ArgMin(const Context& context) {
  return Extreme(context, [](const Tensor& x, int64_t axis, bool keeps) { return at::argmin(x, axis, keeps); });
}

Results Trilu(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t k = context.Integer(1, 0);
  return context.FlagAttribute("upper", true) ? at::triu(x, k) : at::tril(x, k);
}

Results EyeLike(const Context& context) {
  const Tensor x = context.Tensor(0);
  if (x.dim() != 2) throw context.Invalid(absl::StrCat("the input has ", x.dim(), " dimensions, not 2"));
  const at::ScalarType type = context.HasAttribute("dtype") ? context.TypeAttribute("dtype") : x.scalar_type();
  const int64_t k = context.IntAttribute("k", 0);
  const at::TensorOptions integers = context.Options(at::kLong);
  if (k == 0) return at::eye(x.size(0), x.size(1), context.Options(type));
  const Tensor rows = at::reshape(at::arange(k, k + x.size(0), integers), {-1, 1});
  return at::eq(rows, at::arange(x.size(1), integers)).to(type);
}

// --------------------------------------------------------------------------------------------------------------- Range

// The number of the elements from `start` on before `limit`.
int64_t RangeLength(const Context& context) {
  const double start = context.Real(0), limit = context.Real(1), delta = context.Real(2);
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (delta == 0 || !(count < 0x1p40)) throw context.Invalid("delta is 0, or the range has too many elements");
  return static_cast<int64_t>(count);
}

Results Range(const Context& context) {
  const at::ScalarType type = context.Tensor(0).scalar_type();
  const at::TensorOptions options = context.Options(type);
  const auto start = context.Number(0), limit = context.Number(1), delta = context.Number(2);
  const int64_t length = RangeLength(context);
  if (length == 0) return at::empty({0}, options);
  if (start && limit && delta) return at::arange(*start, *limit, *delta, options);
  // Numbers that are computed from an input: their components reach the result.
  const Tensor places = at::arange(length, context.Options(at::kLong));
  const Tensor steps =
      delta ? at::mul(places.to(type), *delta) : at::mul(places.to(type), at::reshape(context.Tensor(2), Sizes()));
  return start ? at::add(steps, *start) : at::add(steps, at::reshape(context.Tensor(0), Sizes()));
}

// -------------------------------------------------------------------------------------------------------------- Unique

// Groups of equal elements.
struct Groups {
  Tensor first;   // of each group, the place of its first element
  Tensor number;  // of each element, that of its group
};

// Groups of a vector, in ascending order. Numbers are compared, and no operator without a rule sees them.
Groups GroupsOf(const Tensor& vector) {
  const auto [sorted, order] = at::sort(vector, /*stable=*/true, 0, /*descending=*/false);
  const Tensor before = at::slice(sorted, 0, 0, -1), after = at::slice(sorted, 0, 1);
  Tensor differs = at::ne(before, after);
  // Not-a-numbers are last, and one group.
  if (c10::isFloatingType(vector.scalar_type())) {
    differs = at::logical_and(differs, at::logical_not(at::logical_and(at::isnan(before), at::isnan(after))));
  }
  const Tensor starts = at::constant_pad_nd(differs, {1, 0}, 1);
  const Tensor number = at::sub(at::cumsum(starts, 0, at::kLong), 1);
  return {at::index(order, At(0, starts)), at::scatter(at::zeros_like(order), 0, order, number)};
}

// Groups of the rows of a matrix: the elements' own groups are in the order of the elements.
Groups GroupsOfRows(const Tensor& matrix) {
  const Tensor numbers = at::reshape(GroupsOf(at::reshape(matrix, {-1})).number, matrix.sizes());
  return GroupsOf(std::get<1>(at::unique_dim(numbers, 0, /*sorted=*/true, /*return_inverse=*/true)));
}

// Groups in the order of their first elements.
Groups InOrderOfPlaces(const Groups& groups) {
  const auto [first, old] = at::sort(groups.first, 0, /*descending=*/false);
  const Tensor renamed = at::scatter(at::zeros_like(old), 0, old, at::arange(old.size(0), old.options()));
  return {first, at::index(renamed, At(0, groups.number))};
}

Results Unique(const Context& context) {
  const bool flat = !context.HasAttribute("axis");
  const Tensor x = flat ? at::reshape(context.Tensor(0), {-1}) : context.Tensor(0);
  const int64_t axis = flat ? 0 : context.Axis(context.IntAttribute("axis"), x.dim());
  if (x.numel() == 0) throw context.Refused("the input is empty");
  const Tensor rows = at::movedim(x, axis, 0);
  Groups groups = x.dim() == 1 ? GroupsOf(x) : GroupsOfRows(at::reshape(rows, {rows.size(0), -1}));
  if (!context.FlagAttribute("sorted", true)) groups = InOrderOfPlaces(groups);
  const Tensor zeros = at::zeros_like(groups.first);
  const Tensor counts = at::scatter_add(zeros, 0, groups.number, at::ones_like(groups.number));
  return {at::index_select(x, axis, groups.first), groups.first, groups.number, counts};
}

// --------------------------------------------------------------------------------------------------- ReverseSequence

// The first elements of each sequence of a batch turned round.
Results ReverseSequence(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t batch = context.Axis(context.IntAttribute("batch_axis", 1), x.dim());
  const int64_t time = context.Axis(context.IntAttribute("time_axis", 0), x.dim());
  if (batch == time) throw context.Invalid("the axes of batch and time are one");
  const auto along = [&](int64_t axis, const Tensor& vector) {
    Sizes sizes(static_cast<size_t>(x.dim()), 1);
    sizes[static_cast<size_t>(axis)] = x.size(axis);
    return at::reshape(vector, sizes);
  };
  const Tensor lengths = along(batch, InType(context.Tensor(1), at::kLong));
  const Tensor places = along(time, at::arange(x.size(time), context.Options(at::kLong)));
  const Tensor read = at::where(at::lt(places, lengths), at::sub(at::sub(lengths, 1), places), places);
  return at::gather(x, time, read.expand(x.sizes()));
}

void AddChoices(OperatorTable& table) {
  table.Add("Gather", 1, Gather).Inputs(2).Attributes({"axis"});
  table.Add("GatherElements", 11, GatherElements).Inputs(2).Attributes({"axis"});
  table.Add("GatherND", 11, GatherND).Inputs(2).Attributes({"batch_dims"});
  table.Add("Compress", 9, Compress).Inputs(2).Attributes({"axis"}).Known(KnownIf::kSizesConstant);
  table.Add("NonZero", 9, NonZero).Known(KnownIf::kInputsConstant).ReadsUnsigned();
  table.Add("Scatter", 9, ScatterElements).Inputs(3).Attributes({"axis"});
  table.Add("ScatterElements", 11, ScatterElements).Inputs(3).Attributes({"axis"});
  table.Add("ScatterElements", 16, ScatterElements).Inputs(3).Attributes({"axis", "reduction"});
  table.Add("ScatterND", 11, ScatterND).Inputs(3);
  table.Add("ScatterND", 16, ScatterND).Inputs(3).Attributes({"reduction"});
  table.Add("TensorScatter", 24, TensorScatter).Inputs(2, 3).Attributes({"axis", "mode"});
}

}  // namespace

void RegisterIndexing(OperatorTable& table) {
  AddChoices(table);
  table.Add("OneHot", 9, OneHot).Inputs(3).Attributes({"axis"}).Known(KnownIf::kSizesConstant);
  table.Add("TopK", 1, TopK).Attributes({"axis", "k"});
  table.Add("TopK", 10, TopK).Inputs(2).Attributes({"axis"}).Known(KnownIf::kSizesConstant);
  table.Add("TopK", 11, TopK).Inputs(2).Attributes({"axis", "largest", "sorted"}).Known(KnownIf::kSizesConstant);
  table.Add("ArgMax", 1, ArgMax).Attributes({"axis", "keepdims", "select_last_index"});
  table.Add("ArgMin", 1, ArgMin).Attributes({"axis", "keepdims", "select_last_index"});
  table.Add("Trilu", 14, Trilu).Inputs(1, 2).Attributes({"upper"});
  table.Add("EyeLike", 9, EyeLike).Attributes({"dtype", "k"}).Known(KnownIf::kInputsConstant);
  table.Add("Range", 11, Range).Inputs(3).Attributes({"stash_type"}).Known(KnownIf::kInputsConstant);
  table.Add("Unique", 11, Unique).Attributes({"axis", "sorted"}).Known(KnownIf::kInputsConstant);
  table.Add("ReverseSequence", 10, ReverseSequence).Inputs(2).Attributes({"batch_axis", "time_axis"});
  table.KeepIntegers({"Compress", "Gather", "GatherElements", "GatherND", "ReverseSequence", "Trilu"});
  table.KeepIntegers({"TopK"}, /*results=*/1);
  table.KeepIntegers({"ArgMax", "ArgMin"}, /*results=*/0);
}

}  // namespace addend::onnx
