// The numbers of targets, and what they weigh the elements of a tensor with.
#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/report.h"
#include "core/explain/target.h"
#include "core/linearize/row_sums.h"
#include "core/linearize/settle.h"
#include "core/program/geometry.h"
#include "core/rules/rows.h"
#include "core/rules/softmax_path.h"

namespace addend {
namespace {

using Quantity = Target::Quantity;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a target is a sum of: an element, or what the distribution of one row says.
struct Term {
  Quantity quantity = Quantity::kElement;  // neither a continuation nor a sum
  std::vector<int64_t> index;              // of the element, or of the row of an entropy
  double sign = 1;

  std::vector<int64_t> Row() const {
    std::vector<int64_t> row = index;
    if (quantity != Quantity::kEntropy) row.pop_back();
    return row;
  }
  int64_t Class() const { return quantity == Quantity::kEntropy ? -1 : index.back(); }
};

void AddTerms(const Target& target, at::IntArrayRef sizes, std::vector<Term>& terms) {
  switch (target.quantity) {
    case Quantity::kElement:
      terms.push_back({Quantity::kElement, target.index, 1});
      if (!target.subtract.empty()) terms.push_back({Quantity::kElement, target.subtract, -1});
      return;
    case Quantity::kContinuation: {
      // The position before an id predicts it.
      int64_t position = sizes[sizes.size() - 2] - static_cast<int64_t>(target.ids.size()) - 1;
      for (const int64_t id : target.ids) {
        std::vector<int64_t> index = target.index;
        index.insert(index.end(), {position++, id});
        terms.push_back({Quantity::kLogProbability, std::move(index), 1});
      }
      return;
    }
    case Quantity::kSum:
      for (const Target& part : target.parts) AddTerms(part, sizes, terms);
      return;
    default:
      terms.push_back({target.quantity, target.index, 1});
  }
}

std::vector<Term> TermsIn(const Target& target, const at::Tensor& tensor) {
  std::vector<Term> terms;
  AddTerms(target, tensor.sizes(), terms);
  return terms;
}

// In float64, where the device knows that.
at::Tensor InDouble(const at::Tensor& tensor) {
  const at::Tensor own = tensor.detach();
  return (own.is_cpu() || own.is_cuda() ? own : own.to(at::kCPU)).to(at::kDouble);
}

double Sum(const at::Tensor& tensor) { return SumOfEach(tensor.reshape({1, -1})).item<double>(); }

// p log p, where a class that is not possible has none.
at::Tensor Surprise(const at::Tensor& log_p) { return (log_p.exp() * log_p).masked_fill_(log_p.eq(-kInfinity), 0); }

double NumberOf(const Term& term, const at::Tensor& tensor) {
  if (term.quantity == Quantity::kElement) return ElementAt(tensor, term.index).item<double>();
  const at::Tensor log_p = at::log_softmax(InDouble(ElementAt(tensor, term.Row())), -1);
  if (term.quantity == Quantity::kEntropy) return 0 - Sum(Surprise(log_p));
  const double own = log_p[term.Class()].item<double>();
  return term.quantity == Quantity::kProbability ? std::exp(own) : own;
}

// The mean of a term's gradient on the line between two rows of finite scores.
at::Tensor MeanGradient(const Term& term, int64_t own_class, const at::Tensor& value, const at::Tensor& reference,
                        const std::string& name) {
  // A softmax ignores shifts.
  const at::Tensor begin = reference - reference.max();
  const at::Tensor move = value - value.max() - begin;
  const double half_range = (move.max() - move.min()).item<double>() / 2;
  const std::shared_ptr<const Quadrature> known = PathNodes(half_range, at::kDouble);
  if (known == nullptr) {
    throw Unimplemented(absl::StrCat(
        "target ", name, " reads logits that move farther from the reference to the value than can be followed, as ",
        "those do that are masked by a large number in one of them only; keep the value's masks (policy ",
        "conditions=value), and do not split them"));
  }
  const Quadrature& rule = *known;
  const auto nodes = static_cast<int64_t>(rule.nodes.size());
  const at::Tensor points = at::tensor(rule.nodes, at::kDouble).to(begin.device()).unsqueeze(1);
  const at::Tensor weights = at::tensor(rule.weights, at::kDouble).to(begin.device()).unsqueeze(1);
  at::Tensor mean = at::zeros(begin.sizes(), begin.options());
  // In pieces, so that the probabilities take a bounded amount of memory.
  constexpr int64_t kMost = int64_t{1} << 22;
  const int64_t at_once = std::max<int64_t>(1, kMost / begin.size(0));
  for (int64_t k = 0; k < nodes; k += at_once) {
    const int64_t count = std::min(at_once, nodes - k);
    const at::Tensor log_p = at::log_softmax(begin + points.narrow(0, k, count) * move, -1);
    const at::Tensor p = log_p.exp();
    at::Tensor weighted = p * weights.narrow(0, k, count);
    if (term.quantity == Quantity::kEntropy) {
      weighted = weighted * (log_p - (p * log_p).sum(1, /*keepdim=*/true));
    } else if (term.quantity == Quantity::kProbability) {
      const at::Tensor own = p.select(1, own_class).unsqueeze(1);
      weighted = weighted * own;
      mean.select(0, own_class).add_((own * weights.narrow(0, k, count)).sum());
    }
    mean.sub_(weighted.sum(0));
  }
  if (term.quantity == Quantity::kLogProbability) mean.select(0, own_class).add_(1);
  return mean;
}

// Of a whole row; classes that are masked in value and reference get nothing.
at::Tensor RowWeights(const Term& term, const at::Tensor& value, const at::Tensor& reference, const std::string& name) {
  const at::Tensor masked = value.eq(-kInfinity).logical_and_(reference.eq(-kInfinity));
  const at::Tensor kept = masked.logical_not();
  const at::Tensor known = at::isfinite(value).logical_and_(at::isfinite(reference));
  if (!kept.eq(known).all().item<bool>() || !kept.any().item<bool>()) {
    throw InvalidArgument(absl::StrCat(
        "target ", name, " reads logits at [", absl::StrJoin(term.Row(), ", "), "] that are NaN or infinite in the ",
        "value or in the reference; only classes that are masked by -inf in both may be (policy conditions=value ",
        "keeps the value's masks)"));
  }
  const bool all = kept.all().item<bool>();
  if (all) return MeanGradient(term, term.Class(), value, reference, name);
  at::Tensor weights = at::zeros(value.sizes(), value.options());
  int64_t own_class = term.Class();
  if (own_class >= 0) {
    if (masked[own_class].item<bool>()) {
      if (term.quantity == Quantity::kProbability) return weights;  // zero, whatever moves
      throw InvalidArgument(absl::StrCat("target ", name, " asks for the logarithm of a probability of zero: class ",
                                         own_class, " is masked by -inf"));
    }
    own_class = kept.narrow(0, 0, own_class).sum().item<int64_t>();
  }
  const at::Tensor places = kept.nonzero().squeeze(1);
  return weights.index_copy_(
      0, places, MeanGradient(term, own_class, value.index_select(0, places), reference.index_select(0, places), name));
}

// The sum of each row of [R, classes], weighted. What has no weight may be infinite.
at::Tensor Weighted(const at::Tensor& rows, const at::Tensor& weights) {
  const at::Tensor finite = AllFinite(rows) ? rows : rows.masked_fill(weights.eq(0), 0);
  return ProductsOfEach(finite, weights);
}

// What the target makes of rows [R, *S], without a bracket: [R].
at::Tensor Weigh(const std::vector<TargetWeight>& weights, const at::Tensor& rows) {
  at::Tensor sum;
  for (const TargetWeight& weight : weights) {
    at::Tensor own = rows;
    for (const int64_t i : weight.index) own = own.select(1, i);
    own = weight.row.defined() ? Weighted(InDouble(own), weight.row) : InDouble(own) * weight.number;
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

double WeighOne(const std::vector<TargetWeight>& weights, const at::Tensor& tensor) {
  return Weigh(weights, tensor.unsqueeze(0)).item<double>();
}

bool OnlyElements(const std::vector<TargetWeight>& weights) {
  return std::none_of(weights.begin(), weights.end(), [](const TargetWeight& w) { return w.row.defined(); });
}

void AddContinuations(const Target& target, std::vector<const Target*>& found) {
  if (target.quantity == Quantity::kContinuation) found.push_back(&target);
  for (const Target& part : target.parts) AddContinuations(part, found);
}

// Whether an input may hold the ids that a continuation is the end of, and whether it does.
enum class Ids { kNone, kOther, kSame };

Ids IdsOf(const at::Tensor& input, const at::Tensor& value, const Target& continuation) {
  const bool whole = input.defined() && at::isIntegralType(input.scalar_type(), /*includeBool=*/false);
  if (!whole || input.dim() == 0 || input.size(-1) != value.size(-2)) return Ids::kNone;
  at::Tensor own = input;
  if (own.numel() != value.size(-2)) {
    // Of one example.
    if (continuation.index.empty() || own.dim() != 2 || own.size(0) != value.size(0)) return Ids::kNone;
    own = own.select(0, continuation.index[0]);
  }
  own = own.reshape({-1}).to(at::kCPU, at::kLong).contiguous();
  const auto count = static_cast<int64_t>(continuation.ids.size());
  const int64_t* last = own.data_ptr<int64_t>() + own.numel() - count;
  return std::equal(continuation.ids.begin(), continuation.ids.end(), last) ? Ids::kSame : Ids::kOther;
}

}  // namespace

double NumberAt(const at::Tensor& tensor, const Target& target) {
  const c10::AutoGradMode no_grad(false);
  const std::vector<Term> terms = TermsIn(target, tensor);
  double number = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    const double own = terms[k].sign * NumberOf(terms[k], tensor);
    number = k == 0 ? own : number + own;
  }
  return number;
}

std::vector<TargetWeight> WeightsOf(const at::Tensor& value, const at::Tensor& reference, const Target& target) {
  const c10::AutoGradMode no_grad(false);
  std::vector<TargetWeight> weights;
  for (const Term& term : TermsIn(target, value)) {
    if (term.quantity == Quantity::kElement) {
      weights.push_back({term.index, term.sign, {}});
      continue;
    }
    const std::vector<int64_t> row = term.Row();
    const at::Tensor exact =
        RowWeights(term, InDouble(ElementAt(value, row)), InDouble(ElementAt(reference, row)), TargetText(target));
    weights.push_back({row, 1, exact.to(RowDtype(value.scalar_type())).to(at::kDouble)});
  }
  return weights;
}

void AddWeights(const std::vector<TargetWeight>& weights, const at::Tensor& cotangent) {
  for (const TargetWeight& weight : weights) {
    const at::Tensor own = ElementAt(cotangent, weight.index);
    if (weight.row.defined()) {
      own.add_(weight.row.to(own.device(), own.scalar_type()));
    } else {
      own.add_(weight.number);
    }
  }
}

double BracketOf(const std::vector<TargetWeight>& weights, const at::Tensor& value, const at::Tensor& reference,
                 const Target& target) {
  if (OnlyElements(weights)) return 0;
  const c10::AutoGradMode no_grad(false);
  double moved = 0;
  for (const TargetWeight& weight : weights) {
    const at::Tensor move = InDouble(ElementAt(value, weight.index)) - InDouble(ElementAt(reference, weight.index));
    moved += weight.row.defined() ? Weighted(move.unsqueeze(0), weight.row).item<double>()
                                  : weight.number * move.item<double>();
  }
  return NumberAt(value, target) - NumberAt(reference, target) - moved;
}

double TermsOf(const std::vector<TargetWeight>& weights, const at::Tensor& value, const at::Tensor& reference) {
  const c10::AutoGradMode no_grad(false);
  double terms = 0;
  for (const TargetWeight& weight : weights) {
    if (!weight.row.defined()) continue;
    for (const at::Tensor& end : {value, reference}) {
      const at::Tensor own = InDouble(ElementAt(end, weight.index)).abs().unsqueeze(0);
      terms += Weighted(own, weight.row.abs()).item<double>();
    }
  }
  return terms;
}

bool AreProbabilities(const at::Tensor& value, const std::vector<int64_t>& index) {
  if (value.dim() == 0 || value.size(-1) < 2) return false;
  const c10::AutoGradMode no_grad(false);
  const at::Tensor row = InDouble(ElementAt(value, {index.begin(), index.begin() + value.dim() - 1}));
  return row.ge(0).logical_and_(row.le(1)).all().item<bool>() && std::abs(Sum(row) - 1) < 1e-3;
}

std::vector<std::string> NotesOfTarget(const at::Tensor& value, const Target& target,
                                       const std::vector<at::Tensor>& inputs) {
  std::vector<std::string> notes;
  for (const Term& term : TermsIn(target, value)) {
    if (term.quantity == Quantity::kElement || !AreProbabilities(value, term.Row())) continue;
    notes.push_back(absl::StrCat("the numbers that target ", TargetText(target),
                                 " takes a softmax of are probabilities already; ",
                                 "at=logits asks for the scores that they were made from"));
    break;
  }
  std::vector<const Target*> continuations;
  AddContinuations(target, continuations);
  for (const Target* continuation : continuations) {
    Ids found = Ids::kNone;
    for (const at::Tensor& input : inputs) found = std::max(found, IdsOf(input, value, *continuation));
    if (found != Ids::kOther) continue;
    notes.push_back(absl::StrCat("no input ends with the ids of ", TargetText(*continuation),
                                 ", so that this is not the log-probability of what the model was given"));
  }
  return notes;
}

void AddUp(Contributions& contributions) {
  double sum = 0;
  double mass = 0;
  for (const double part : contributions.contributions) {
    sum += part;
    mass += std::abs(part);
  }
  contributions.recovery = sum + contributions.reference + contributions.leftover;
  mass += std::abs(contributions.leftover);
  contributions.conditioning = mass == 0 ? 1 : mass / std::abs(contributions.value - contributions.reference);
  contributions.mass = mass + std::abs(contributions.reference);
}

double RecoveryAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance) {
  const auto terms = static_cast<double>(std::max<size_t>(contributions.contributions.size(), 1)) *
                     static_cast<double>(std::max<int64_t>(operators, 1));
  const double relative = tolerance.value_or(8 * EpsilonOf(dtype) * std::sqrt(terms));
  const bool single = c10::toRealValueType(dtype) != at::kDouble;
  const double scale = std::max(contributions.scale, contributions.terms);
  const double own = OwnAllowance(single, scale, std::abs(contributions.reference), tolerance);
  return std::min(relative * (contributions.mass + std::abs(contributions.value) + contributions.terms), own);
}

Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target,
                         const Report* report) {
  Contributions result;
  result.target = FindElements(value, target);
  const at::Tensor reference = composition.reference();
  const std::vector<TargetWeight> weights = WeightsOf(value, reference, result.target);
  result.value = NumberAt(value, result.target);
  result.scale = LargestFinite(value);
  result.reference = NumberAt(reference, result.target);
  result.leftover = WeighOne(weights, composition.leftover()) + BracketOf(weights, value, reference, result.target);
  result.terms = TermsOf(weights, value, reference);
  const at::Tensor parts = Weigh(weights, composition.components()).to(at::kCPU).contiguous();
  result.contributions.assign(parts.data_ptr<double>(), parts.data_ptr<double>() + parts.numel());
  AddUp(result);
  const int64_t operators = report == nullptr ? composition.origin().depth : report->operators;
  result.tolerance = RecoveryAllowance(result, value.scalar_type(), operators,
                                       report == nullptr ? std::nullopt : report->policy.tolerance);
  return result;
}

}  // namespace addend
