// Sequences and optionals: lists of values on the host.
#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// The descent of a value's form, not of what it holds: how many elements it has, whether it is there.
Descent DescentOfForm(const Datum& datum) { return std::min(datum.descent, Descent::kSizes); }

// A position in a sequence of `size` elements, counted from its end where it is negative.
size_t Position(const Context& context, int64_t position, size_t size) {
  const auto count = static_cast<int64_t>(size);
  if (position < -count || position >= count) {
    throw context.Invalid(absl::StrCat("a sequence of ", size, " elements has none at position ", position));
  }
  return static_cast<size_t>(position < 0 ? position + count : position);
}

Results SequenceEmpty(const Context& /*context*/) { return Datum::Sequence({}); }

Results SequenceConstruct(const Context& context) {
  std::vector<Datum> elements;
  for (size_t k = 0; k < context.num_inputs(); ++k) elements.push_back(context.Input(k));
  return Datum::Sequence(std::move(elements));
}

Results SequenceInsert(const Context& context) {
  std::vector<Datum> elements = context.Sequence(0);
  const auto count = static_cast<int64_t>(elements.size());
  const int64_t position = context.Integer(2, count);
  // One behind the last is a place, too.
  const size_t place = position == count ? elements.size() : Position(context, position, elements.size());
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(place), context.Input(1));
  return Datum::Sequence(std::move(elements));
}

Results SequenceErase(const Context& context) {
  std::vector<Datum> elements = context.Sequence(0);
  const size_t place = Position(context, context.Integer(1, -1), elements.size());
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(place));
  return Datum::Sequence(std::move(elements));
}

Results SequenceAt(const Context& context) {
  const std::vector<Datum>& elements = context.Sequence(0);
  return elements[Position(context, context.Integer(1), elements.size())];
}

Results SequenceLength(const Context& context) {
  const auto count = static_cast<int64_t>(context.Sequence(0).size());
  const TracingPause pause;
  return Datum::Known(at::scalar_tensor(count, at::kLong), DescentOfForm(context.Input(0)));
}

// Lengths of parts of `size` elements each; the last may be shorter.
std::vector<int64_t> Chunks(const Context& context, int64_t length, int64_t size) {
  if (size < 1) throw context.Invalid(absl::StrCat("parts of ", size, " elements are asked for"));
  std::vector<int64_t> lengths(static_cast<size_t>(length / size), size);
  if (length % size != 0) lengths.push_back(length % size);
  return lengths;
}

// Parts of given lengths, or of the length that one number says, or rows.
Results SplitToSequence(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t axis = context.Axis(context.IntAttribute("axis", 0), x.dim());
  const bool is_list = context.Has(1) && context.Rank(1) > 0;
  const bool keeps = context.Has(1) || context.FlagAttribute("keepdims", true);
  const std::vector<int64_t> lengths =
      is_list ? context.Integers(1) : Chunks(context, x.size(axis), context.Integer(1, 1));
  const Descent descent = std::max(context.Input(0).descent, context.Input(1).descent);
  std::vector<Datum> elements;
  for (Tensor& part : at::split_with_sizes(x, lengths, axis)) {
    if (!keeps) part = at::squeeze(part, axis);
    elements.push_back(context.is_known() ? Datum::Known(part, descent) : Datum::Of(part, descent));
    elements.back().integers = context.Input(0).integers;
  }
  return Datum::Sequence(std::move(elements));
}

Tensor Joined(const Context& context, const std::vector<Tensor>& tensors) {
  const bool stacks = context.FlagAttribute("new_axis", false);
  const int64_t axis = context.Axis(context.IntAttribute("axis"), tensors[0].dim() + (stacks ? 1 : 0));
  return stacks ? at::stack(tensors, axis) : at::cat(tensors, axis);
}

// Elements side by side; known where all of them are.
Results ConcatFromSequence(const Context& context) {
  const std::vector<Datum>& elements = context.Sequence(0);
  if (elements.empty()) throw context.Invalid("the sequence is empty");
  const bool are_known =
      std::all_of(elements.begin(), elements.end(), [](const Datum& element) { return element.IsKnown(); });
  std::vector<Tensor> tensors;
  for (const Datum& element : elements) tensors.push_back(are_known ? element.known : context.TensorOf(element));
  Datum joined = Moved(are_known, context.Input(0).descent, [&] { return Joined(context, tensors); });
  joined.integers = IntegersOfAll(context, elements);
  return joined;
}

// An optional with a value is that value, one without is none.
Results Optional(const Context& context) { return context.Input(0); }

Results OptionalGetElement(const Context& context) {
  if (!context.Has(0)) throw context.Invalid("the optional has no value");
  return context.Input(0);
}

Results OptionalHasElement(const Context& context) {
  const TracingPause pause;
  return Datum::Known(at::scalar_tensor(context.Has(0), at::kBool), DescentOfForm(context.Input(0)));
}

}  // namespace

void RegisterSequences(OperatorTable& table) {
  table.Add("SequenceEmpty", 11, SequenceEmpty).Inputs(0).Attributes({"dtype"});
  table.Add("SequenceConstruct", 11, SequenceConstruct).InputsFrom(1);
  table.Add("SequenceInsert", 11, SequenceInsert).Inputs(2, 3);
  table.Add("SequenceErase", 11, SequenceErase).Inputs(1, 2);
  table.Add("SequenceAt", 11, SequenceAt).Inputs(2);
  table.Add("SequenceLength", 11, SequenceLength);
  table.Add("SplitToSequence", 11, SplitToSequence)
      .Inputs(1, 2)
      .Attributes({"axis", "keepdims"})
      .Known(KnownIf::kSizesConstant)
      .ReadsIntegers();
  table.Add("ConcatFromSequence", 11, ConcatFromSequence).Attributes({"axis", "new_axis"}).ReadsIntegers();
  table.Add("Optional", 15, Optional).Inputs(0, 1).Attributes({"type"});
  table.Add("OptionalGetElement", 15, OptionalGetElement);
  table.Add("OptionalHasElement", 15, OptionalHasElement).Inputs(0, 1);
}

}  // namespace addend::onnx
