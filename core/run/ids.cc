#include "core/run/ids.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "core/base/host_read.h"
#include "core/intercept/replace_tensors.h"

namespace addend {
namespace {

constexpr int64_t kNone = -1;   // depends on no component
constexpr int64_t kMixed = -2;  // depends on several, or on what no component has

// Numbers that fill in, as arguments of operators that move elements.
bool FillsIn(const c10::Argument& argument) { return argument.name() == "value"; }

// The operator itself moves labels. They are counted from 1 while it does, so that the zeros with which some operators
// fill in are no label.
IdLabels Moved(const Operator& op, const std::vector<c10::IValue>& arguments, const std::vector<IdOperand>& operands) {
  const auto& schema = op.schema().arguments();
  const IdLabels ended = {{}, true};
  Stack stack;
  size_t k = 0;
  bool places_move = false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const bool moved = IsMoved(schema[a].name());
    // Sums of labels are none.
    const std::string& name = schema[a].name();
    if ((name == "accumulate" && arguments[a].toBool()) || (name == "reduce" && !arguments[a].isNone())) return ended;
    if (FillsIn(schema[a]) && arguments[a].isScalar()) {
      stack.emplace_back(c10::Scalar(0));
      continue;
    }
    stack.push_back(ReplaceTensors(arguments[a], [&](const at::Tensor& tensor) {
      const IdOperand& operand = operands[k++];
      if (!tensor.defined()) return tensor;
      if (schema[a].is_out()) return at::empty({0}, tensor.options().dtype(at::kLong));
      if (!moved) {
        places_move = places_move || operand.moves.defined();
        return tensor;
      }
      if (operand.labels.defined()) return (operand.labels + 1).contiguous();
      return at::zeros(tensor.sizes(), tensor.options().dtype(at::kLong));
    }));
  }
  if (places_move) return ended;
  op.Run(&stack);
  if (stack.empty() || !stack[0].isTensor()) return {};
  const at::Tensor labels = stack[0].toTensor() - 1;
  const bool mixed = std::any_of(operands.begin(), operands.end(), [](const IdOperand& operand) {
    if (!operand.moves.defined()) return false;
    return !operand.labels.defined() || ReadFlag(operand.labels.lt(0).logical_and_(operand.moves).any());
  });
  return {ReadFlag(labels.ge(0).any()) ? labels : at::Tensor(), mixed};
}

// The labels of an operand, kMixed where an element without one moves; undefined: none has one, and nothing moves.
at::Tensor KnownLabels(const IdOperand& operand) {
  at::Tensor own = operand.labels;
  if (!operand.moves.defined()) return own;
  if (!own.defined()) own = at::full_like(operand.moves, kNone, at::TensorOptions().dtype(at::kLong));
  return own.masked_fill(own.lt(0).logical_and_(operand.moves), kMixed);
}

IdLabels Combined(const std::vector<IdOperand>& operands, at::IntArrayRef sizes, bool vectors) {
  at::Tensor all;
  for (const IdOperand& operand : operands) {
    at::Tensor own = KnownLabels(operand);
    if (!own.defined()) continue;
    if (vectors) own = own.unsqueeze(-1);
    if (!at::is_expandable_to(own.sizes(), sizes)) return {{}, true};
    own = own.expand(sizes);
    all = all.defined() ? at::where(all.eq(kNone), own, at::where(own.eq(kNone).logical_or(own.eq(all)), all, kMixed))
                        : own;
  }
  if (!all.defined()) return {};
  const bool mixed = ReadFlag(all.eq(kMixed).any());
  const bool any = ReadFlag(all.ge(0).any());
  return {any ? all.clamp_min(kNone) : at::Tensor(), mixed};
}

// Labels of a look-up of bins; ended if its boundaries have labels or move on the baseline.
IdLabels LookedUp(const Operator& op, const std::vector<c10::IValue>& arguments, const std::vector<IdOperand>& operands,
                  at::IntArrayRef sizes) {
  const auto& schema = op.schema().arguments();
  std::vector<IdOperand> values;
  size_t k = 0;
  for (size_t a = 0; a < arguments.size() && a < schema.size(); ++a) {
    if (!arguments[a].isTensor() || k >= operands.size()) continue;
    const IdOperand& operand = operands[k++];
    if (schema[a].name() == "self") {
      values.push_back(operand);
    } else if (operand.labels.defined() || operand.moves.defined()) {
      return {{}, true};
    }
  }
  return Combined(values, sizes, /*vectors=*/false);
}

// `dim` of a call, as a list: of all dimensions where it names none.
std::vector<int64_t> DimsOf(const Operator& op, const std::vector<c10::IValue>& arguments) {
  const auto index = op.schema().argumentIndexWithName("dim");
  if (!index || static_cast<size_t>(*index) >= arguments.size()) return {};
  const c10::IValue& dim = arguments[*index];
  return dim.isInt() ? std::vector<int64_t>{dim.toInt()} : dim.isIntList() ? dim.toIntVector() : std::vector<int64_t>();
}

// The label that all elements have which a result is made of.
IdLabels Reduced(const Operator& op, const std::vector<c10::IValue>& arguments, const IdOperand& operand,
                 at::IntArrayRef sizes) {
  if (!operand.labels.defined()) return {{}, operand.moves.defined()};
  const at::Tensor own = KnownLabels(operand);
  if (own.numel() == 0) return {};
  const std::vector<int64_t> dims = DimsOf(op, arguments);
  const at::Tensor largest = own.amax(dims, /*keepdim=*/false);
  const at::Tensor least = own.masked_fill(own.eq(kNone), std::numeric_limits<int64_t>::max()).amin(dims, false);
  const at::Tensor one = at::where(largest.eq(kNone).logical_or(least.eq(largest)), largest, kMixed);
  const bool mixed = ReadFlag(one.eq(kMixed).any());
  if (one.numel() != c10::multiply_integers(sizes)) return {{}, true};
  if (!ReadFlag(one.ge(0).any())) return {{}, mixed};
  return {one.clamp_min(kNone).reshape(sizes), mixed};
}

}  // namespace

bool IsMoved(const std::string& argument) {
  static const auto& names =
      *new absl::flat_hash_set<std::string>{"self", "input", "tensors", "src", "source", "value", "values", "other"};
  return names.contains(argument);
}

IdLabels CarryLabels(IdFlow flow, const Operator& op, const std::vector<c10::IValue>& arguments,
                     const std::vector<IdOperand>& operands, at::IntArrayRef sizes) {
  switch (flow) {
    case IdFlow::kMoves:
      return Moved(op, arguments, operands);
    case IdFlow::kElementwise:
    case IdFlow::kOneHot:
      return Combined(operands, sizes, flow == IdFlow::kOneHot);
    case IdFlow::kLooksUp:
      return LookedUp(op, arguments, operands, sizes);
    case IdFlow::kReduces:
      if (!operands.empty()) return Reduced(op, arguments, operands[0], sizes);
      break;
    case IdFlow::kEnds:
      break;
  }
  const bool any = std::any_of(operands.begin(), operands.end(), [](const IdOperand& o) { return o.labels.defined(); });
  return {{}, any};
}

}  // namespace addend
