#include "core/rules/element_map.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/for_loops.h"
#include "core/rules/gather_kernel.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

bool IsFloating(const at::Tensor& t) { return t.defined() && (t.is_floating_point() || t.is_complex()); }

// Elements counted through `operands`; those that are decomposed have a second number among the rows.
class Elements {
 public:
  Elements(const RuleCall& call, const std::vector<int>& operands) {
    for (const int k : operands) {
      const RuleOperand& operand = call.operands[k];
      const int64_t count = operand.value.numel();
      bounds_.push_back(all_);
      shifts_.push_back(operand.decomposed ? moving_ - all_ : kPlain);
      all_ += count;
      if (!operand.decomposed) continue;
      inputs_.push_back(k);
      sizes_.emplace_back(operand.value.sizes());
      counts_.push_back(count);
      moving_ += count;
    }
  }

  const std::vector<int>& inputs() const { return inputs_; }

  // Numbers among the rows; kNoElement for what does not move.
  at::Tensor AmongRows(const at::Tensor& numbers) const {
    if (shifts_.size() == 1 && shifts_[0] == 0) {
      const at::Tensor beyond = numbers.ge(all_);
      return MayHaveAny(beyond) ? numbers.masked_fill(beyond, kNoElement) : numbers;
    }
    at::Tensor result = at::full_like(numbers, kNoElement);
    for (size_t k = 0; k < bounds_.size(); ++k) {
      if (shifts_[k] == kPlain) continue;
      const int64_t end = k + 1 < bounds_.size() ? bounds_[k + 1] : all_;
      const at::Tensor own = numbers.ge(bounds_[k]).logical_and_(numbers.lt(end));
      result = at::where(own, numbers + shifts_[k], result);
    }
    return result;
  }

  at::Tensor Join(const Rows& rows) const {
    if (rows.size() == 1) return rows[0].reshape({rows[0].size(0), counts_[0]});
    std::vector<at::Tensor> flat;
    for (size_t k = 0; k < rows.size(); ++k) flat.push_back(rows[k].reshape({rows[k].size(0), counts_[k]}));
    return at::cat(flat, 1);
  }

  Rows Split(const at::Tensor& joined) const {
    Rows result;
    int64_t at = 0;
    for (size_t k = 0; k < sizes_.size(); ++k) {
      result.push_back(joined.narrow(0, at, counts_[k]).view(sizes_[k]));
      at += counts_[k];
    }
    return result;
  }

  int64_t moving() const { return moving_; }

 private:
  static constexpr int64_t kPlain = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> bounds_;
  std::vector<int64_t> shifts_;
  std::vector<int> inputs_;
  std::vector<at::DimVector> sizes_;
  std::vector<int64_t> counts_;
  int64_t all_ = 0;
  int64_t moving_ = 0;
};

// The floating-point outputs of a call, counted through.
class OutputElements {
 public:
  explicit OutputElements(const RuleCall& call) {
    for (const RuleOutput& output : call.outputs) {
      const bool own = IsFloating(output.value);
      floating_.push_back(own);
      sizes_.emplace_back(own ? output.value.sizes() : at::IntArrayRef());
      counts_.push_back(own ? output.value.numel() : 0);
      all_ += counts_.back();
      if (own && !options_set_) {
        options_ = output.value.options();
        options_set_ = true;
      }
    }
  }

  int64_t all() const { return all_; }
  const at::TensorOptions& options() const { return options_; }

  Rows Split(const at::Tensor& joined) const {
    Rows result;
    int64_t at = 0;
    for (size_t k = 0; k < sizes_.size(); ++k) {
      result.emplace_back();
      if (!floating_[k]) continue;
      const at::DimVector sizes = WithRows(joined.size(0), sizes_[k]);
      result.back() = floating_.size() == 1 ? joined.view(sizes) : joined.narrow(1, at, counts_[k]).reshape(sizes);
      at += counts_[k];
    }
    while (!result.empty() && !result.back().defined()) result.pop_back();
    return result;
  }

  at::Tensor Join(const Rows& cotangents) const {
    std::vector<at::Tensor> flat;
    for (size_t k = 0; k < sizes_.size(); ++k) {
      if (!floating_[k]) continue;
      const bool given = k < cotangents.size() && cotangents[k].defined();
      flat.push_back(given ? cotangents[k].reshape({counts_[k]}) : at::zeros({counts_[k]}, options_));
    }
    return flat.size() == 1 ? flat[0] : at::cat(flat, 0);
  }

 private:
  std::vector<bool> floating_;
  std::vector<at::DimVector> sizes_;
  std::vector<int64_t> counts_;
  at::TensorOptions options_;
  bool options_set_ = false;
  int64_t all_ = 0;
};

// The elements `index` [E] of rows [R, N], with zeros where nothing is meant. Not a product with the mask: an element
// that is not meant may be infinite.
at::Tensor Take(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& nothing) {
  if (rows.size(1) == 0) return at::zeros({rows.size(0), index.size(0)}, rows.options());
  const at::Tensor taken = at::gather(rows, 1, index.unsqueeze(0).expand({rows.size(0), index.size(0)}));
  return nothing.defined() ? taken.masked_fill(nothing, 0) : taken;
}

// Adds the values [E] into `count` elements.
at::Tensor AddInto(int64_t count, const at::Tensor& index, const at::Tensor& values) {
  return at::zeros({count}, values.options()).scatter_add_(0, index, values);
}

// An empty mask is left out.
at::Tensor MaskOf(const at::Tensor& numbers) {
  const at::Tensor nothing = numbers.lt(0);
  return MayHaveAny(nothing) ? nothing : at::Tensor();
}

// Output o is the sum over j of weight[o, j] times element numbers[o, j] of a row.
class Gather {
 public:
  // numbers [outputs, width] among the rows, weight the same or undefined; `elements`: of a row.
  Gather(at::Tensor numbers, at::Tensor weight, int64_t elements)
      : numbers_(numbers.contiguous()), weight_(std::move(weight)), elements_(elements) {
    if (weight_.defined()) weight_ = weight_.contiguous();
    if (!numbers_.device().is_cpu()) own_ = Indexes();
  }

  // [R, elements] -> [R, outputs]
  at::Tensor Forward(const at::Tensor& rows) const {
    if (HasLoops(rows)) {
      return DispatchReal(rows.scalar_type(), [&](auto zero) { return LoopForward<decltype(zero)>(rows); });
    }
    const Index index = own_.place.defined() ? own_ : Indexes();
    at::Tensor taken = Take(rows, index.place, index.nothing);
    if (weight_.defined()) taken = taken * weight_.reshape({-1});
    return width() == 1 ? taken : taken.view({taken.size(0), outputs(), width()}).sum(-1);
  }

  // [outputs] -> [elements]
  at::Tensor Transpose(at::Tensor g) const {
    if (HasLoops(g)) {
      return DispatchReal(g.scalar_type(), [&](auto zero) { return LoopTranspose<decltype(zero)>(g); });
    }
    const Index index = own_.place.defined() ? own_ : Indexes();
    if (width() != 1) g = g.unsqueeze(1).expand({g.size(0), width()}).reshape({-1});
    if (weight_.defined()) g = g * weight_.reshape({-1});
    if (index.nothing.defined()) g = g.masked_fill(index.nothing, 0);
    return elements_ == 0 ? at::zeros({0}, g.options()) : AddInto(elements_, index.place, g);
  }

 private:
  struct Index {
    at::Tensor place;    // [outputs * width], 0 where nothing is meant
    at::Tensor nothing;  // where that is; undefined: nowhere
  };

  int64_t outputs() const { return numbers_.size(0); }
  int64_t width() const { return numbers_.size(1); }

  Index Indexes() const {
    const at::Tensor numbers = numbers_.reshape({-1});
    return {numbers.clamp_min(0), MaskOf(numbers)};
  }

  bool HasLoops(const at::Tensor& t) const {
    return ForLoops(t) && numbers_.device().is_cpu() &&
           (!weight_.defined() || (!IsFollowed(weight_) && weight_.scalar_type() == t.scalar_type()));
  }

  template <typename T>
  GatherView<T> View() const {
    return {numbers_.data_ptr<int64_t>(), weight_.defined() ? weight_.data_ptr<T>() : nullptr, outputs(), width(),
            elements_};
  }
  template <typename T>
  at::Tensor LoopForward(const at::Tensor& given) const {
    const at::Tensor rows = given.contiguous();
    at::Tensor output = at::empty({rows.size(0), outputs()}, rows.options());
    GatherRows(View<T>(), rows.data_ptr<T>(), rows.size(0), output.data_ptr<T>());
    return output;
  }
  template <typename T>
  at::Tensor LoopTranspose(const at::Tensor& given) const {
    const at::Tensor g = given.contiguous();
    at::Tensor output = at::empty({elements_}, g.options());
    ScatterCotangent(View<T>(), g.data_ptr<T>(), output.data_ptr<T>());
    return output;
  }

  at::Tensor numbers_, weight_;
  int64_t elements_;
  Index own_;  // made once where there are no loops
};

}  // namespace

at::Tensor ElementNumbers(const at::Tensor& like, int64_t first) {
  return at::arange(first, first + like.numel(), like.options().dtype(at::kLong)).view(like.sizes());
}

RuleResult WeightedGather(const RuleCall& call, Kind kind, const std::vector<int>& operands, const at::Tensor& source,
                          const at::Tensor& weight) {
  const Elements elements(call, operands);
  const OutputElements outputs(call);
  RuleResult result;
  result.kind = kind;
  result.inputs = elements.inputs();
  if (result.inputs.empty()) return result;
  const at::Tensor numbers = elements.AmongRows(source);
  const Gather gather(numbers, weight.defined() ? weight.to(outputs.options().dtype()) : weight, elements.moving());
  result.map = MakeMap(
      call, result.inputs, [=](const Rows& rows) -> Rows { return outputs.Split(gather.Forward(elements.Join(rows))); },
      [=](const Rows& cotangents) -> Rows { return elements.Split(gather.Transpose(outputs.Join(cotangents))); });
  return result;
}

RuleResult WeightedScatter(const RuleCall& call, Kind kind, const std::vector<int>& operands, const at::Tensor& source,
                           const at::Tensor& target, const at::Tensor& weight) {
  const Elements elements(call, operands);
  const OutputElements outputs(call);
  RuleResult result;
  result.kind = kind;
  result.inputs = elements.inputs();
  if (result.inputs.empty()) return result;
  const at::Tensor numbers = elements.AmongRows(source);
  const at::Tensor moving = numbers.ne(kNoElement);
  const at::Tensor index = numbers.masked_select(moving);
  const at::Tensor into = target.masked_select(moving);
  const at::Tensor factor =
      weight.defined() ? weight.to(outputs.options().dtype()).masked_select(moving) : at::Tensor();
  result.map = MakeMap(
      call, result.inputs,
      [=](const Rows& rows) -> Rows {
        at::Tensor taken = Take(elements.Join(rows), index, {});
        if (factor.defined()) taken = taken * factor;
        const at::Tensor zero = at::zeros({taken.size(0), outputs.all()}, taken.options());
        return outputs.Split(at::scatter_add(zero, 1, into.unsqueeze(0).expand(taken.sizes()), taken));
      },
      [=](const Rows& cotangents) -> Rows {
        at::Tensor g = at::gather(outputs.Join(cotangents), 0, into);
        if (factor.defined()) g = g * factor;
        return elements.Split(AddInto(elements.moving(), index, g));
      });
  return result;
}

namespace {

// The operands of a rearrangement with a number in place of each element that moves, counted through from 1 on, so that
// they can be told from their negatives.
struct NumberedOperands {
  std::vector<at::Tensor> plus;
  std::vector<at::Tensor> minus;  // the same with the negatives
  std::vector<int> moving;
  int64_t next = 1;  // behind the last number
};

NumberedOperands Numbered(const RuleCall& call) {
  NumberedOperands numbered;
  auto& [plus, minus, moving, next] = numbered;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RuleOperand& operand = call.operands[k];
    if (!IsFloating(operand.value)) {
      plus.push_back(operand.value);
      minus.push_back(operand.value);
      continue;
    }
    // Everything in double precision, which holds all numbers that can occur.
    const at::ScalarType wide = operand.value.is_complex() ? at::kComplexDouble : at::kDouble;
    if (!operand.decomposed) {
      plus.push_back(operand.value.to(wide));
      minus.push_back(plus.back());
      continue;
    }
    moving.push_back(static_cast<int>(k));
    // Keep the strides of the operand, which as_strided and its kind look at.
    plus.push_back(at::empty_like(operand.value, operand.value.options().dtype(wide)));
    plus.back().copy_(ElementNumbers(operand.value, next));
    minus.push_back(-plus.back());
    next += operand.value.numel();
  }
  return numbered;
}

// Which element each of the outputs' elements is, from 0 on; -1: none that moves.
at::Tensor SourcesOf(const RuleCall& call, const NumberedOperands& numbered) {
  const std::vector<at::Tensor> there = call.run(call.arguments, numbered.plus);
  const std::vector<at::Tensor> back = call.run(call.arguments, numbered.minus);
  std::vector<at::Tensor> sources;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (!IsFloating(call.outputs[k].value)) continue;
    const at::Tensor a = (there[k].is_complex() ? at::real(there[k]) : there[k]).reshape({-1});
    const at::Tensor b = (back[k].is_complex() ? at::real(back[k]) : back[k]).reshape({-1});
    const at::Tensor constant = a.eq(b).logical_or_(a.isnan());
    const at::Tensor element = a.eq(-b).logical_and_(a.ge(1)).logical_and_(a.lt(static_cast<double>(numbered.next)));
    const at::Tensor number = a.masked_fill(constant, 0).to(at::kLong);
    if (!ReadFlag(constant.logical_or(element.logical_and(number.eq(a))).all())) {
      throw Unimplemented(absl::StrCat(call.name, ".", call.overload, " computes where it should only rearrange"));
    }
    sources.push_back(number - 1);
  }
  return sources.size() == 1 ? sources[0] : at::cat(sources, 0);
}

}  // namespace

RuleResult Rearrangement(const RuleCall& call, Kind kind) {
  const NumberedOperands numbered = Numbered(call);
  const at::Tensor source = SourcesOf(call, numbered);
  // Leave out operands that are overwritten altogether, such as the buffer of an out= form: they are not read.
  std::vector<int> read;
  at::Tensor renumbered = at::full_like(source, kNoElement);
  int64_t first = 0;
  int64_t first_read = 0;
  for (const int k : numbered.moving) {
    const int64_t count = call.operands[k].value.numel();
    const at::Tensor own = source.ge(first).logical_and_(source.lt(first + count));
    if (!call.operands[k].written || ReadFlag(own.any())) {
      read.push_back(k);
      renumbered = at::where(own, source + (first_read - first), renumbered);
      first_read += count;
    }
    first += count;
  }
  return WeightedGather(call, kind, read, renumbered.unsqueeze(1));
}

void KeepShares(at::Tensor* source, at::Tensor* shares) {
  if (shares->numel() == 0) return;
  const int64_t most = std::max<int64_t>(ReadInteger(shares->ne(0).sum(-1).max()), 1);
  if (most == shares->size(-1)) return;
  const auto kept = at::topk(*shares, most, -1);
  *shares = std::get<0>(kept);
  *source = source->gather(-1, std::get<1>(kept));
}

}  // namespace addend
