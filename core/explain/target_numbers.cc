#include "core/explain/target_numbers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/explain/notes.h"
#include "core/explain/output_scales.h"
#include "core/explain/report.h"
#include "core/linearize/settle.h"
#include "core/program/geometry.h"
#include "core/rules/for_loops.h"
#include "core/rules/rows.h"
#include "core/rules/softmax_path.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

using Quantity = Target::Quantity;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How many numbers of float64 are held at once, about.
constexpr int64_t kMost = int64_t{1} << 22;

// In float64, where the device knows that.
at::Tensor InDouble(const at::Tensor& tensor) {
  const at::Tensor own = tensor.detach();
  return (own.is_cpu() || own.is_cuda() ? own : own.to(at::kCPU)).to(at::kDouble);
}

template <typename Item, typename Read>
at::Tensor IndexOf(const std::vector<Item>& items, Read read, const at::Device& device) {
  std::vector<int64_t> index;
  index.reserve(items.size());
  for (const Item& item : items) index.push_back(read(item));
  return at::tensor(index, at::kLong).to(device);
}

int64_t LastOf(at::IntArrayRef sizes) { return sizes.empty() ? 1 : sizes.back(); }

// The index of leading dimensions that the number of a row tells, of a tensor as a matrix [rows, classes].
std::vector<int64_t> IndexOfRow(int64_t row, at::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.empty() ? 0 : sizes.size() - 1);
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = row % sizes[d];
    row /= sizes[d];
  }
  return index;
}

// Whether each row of [R, classes] is a distribution already, [R].
at::Tensor AreDistributions(const at::Tensor& rows) {
  const at::Tensor within = rows.ge(0).logical_and_(rows.le(1)).all(1);
  return within.logical_and_(SumOfEach(rows).sub_(1).abs_().to(within.device()).lt(1e-3));
}

// p log p, where a class that is not possible has none.
at::Tensor Surprise(const at::Tensor& log_p) { return (log_p.exp() * log_p).masked_fill_(log_p.eq(-kInfinity), 0); }

// The sums of rows times weights, both [R, classes] or weights [classes]. What has no weight may be infinite.
at::Tensor Weighted(const at::Tensor& rows, const at::Tensor& weights) {
  const at::Tensor finite = AllFinite(rows) ? rows : rows.masked_fill(weights.eq(0), 0);
  return weights.dim() == 1 ? ProductsOfEach(finite, weights) : SumOfEach(finite * weights);
}

// Summand of a target: an element, or a quantity of the distribution of one row.
struct Term {
  int64_t target = 0;
  Quantity quantity = Quantity::kElement;  // neither a continuation nor a sum
  int64_t row = 0;                         // of the tensor as a matrix [rows, classes]
  int64_t place = -1;                      // in the row; -1: of an entropy
  double sign = 1;
};

// Reads the targets of one tensor; see Note [Targets that are no elements].
class Reader {
 public:
  Reader(const at::Tensor& value, const at::Tensor& reference, const std::vector<Target>& targets)
      : value_(AtHand(value)), reference_(AtHand(reference)), targets_(targets), classes_(LastOf(value.sizes())) {
    found_.sizes = at::DimVector(value.sizes());
    found_.options = reference.options().dtype(RowDtype(value.scalar_type()));
  }

  TargetNumbers Read() {
    for (std::vector<double>* numbers : {&found_.values, &found_.references, &found_.brackets, &found_.terms}) {
      numbers->assign(targets_.size(), 0.0);
    }
    found_.of_probabilities.assign(targets_.size(), false);
    for (size_t t = 0; t < targets_.size(); ++t) AddTerms(targets_[t], static_cast<int64_t>(t));
    ReadElements();
    if (in_rows_.empty()) return std::move(found_);
    const int64_t at_once = std::max<int64_t>(1, kMost / classes_);
    for (size_t k = 0; k < in_rows_.size(); k += at_once) {
      const size_t end = std::min(in_rows_.size(), k + static_cast<size_t>(at_once));
      ReadRows({in_rows_.begin() + static_cast<int64_t>(k), in_rows_.begin() + static_cast<int64_t>(end)});
    }
    return std::move(found_);
  }

 private:
  void AddTerms(const Target& target, int64_t number) {
    switch (target.quantity) {
      case Quantity::kElement:
        AddElement(target.index, number, 1);
        if (!target.subtract.empty()) AddElement(target.subtract, number, -1);
        return;
      case Quantity::kContinuation: {
        const int64_t positions = value_.size(-2);
        // The position before an id predicts it.
        int64_t position = positions - static_cast<int64_t>(target.ids.size()) - 1;
        const int64_t first = RowOf(target.index) * positions;
        for (const int64_t id : target.ids) {
          in_rows_.push_back({number, Quantity::kLogProbability, first + position++, id});
        }
        return;
      }
      case Quantity::kSum:
        for (const Target& part : target.parts) AddTerms(part, number);
        return;
      case Quantity::kRegion:
        AddRegion(target.region, number);
        return;
      case Quantity::kEntropy:
        in_rows_.push_back({number, target.quantity, RowOf(target.index), -1});
        return;
      default:
        in_rows_.push_back({number, target.quantity, RowOfElement(target.index), target.index.back()});
    }
  }

  void AddElement(const std::vector<int64_t>& index, int64_t number, double sign) {
    found_.elements.push_back({number, RowOfElement(index), index.empty() ? 0 : index.back(), sign});
  }

  // Each element of a region, row by row.
  void AddRegion(const std::vector<Target::Span>& region, int64_t number) {
    std::vector<int64_t> index;
    for (const Target::Span& span : region) index.push_back(span.begin);
    for (;;) {
      AddElement(index, number, 1);
      size_t d = index.size();
      for (; d-- > 0;) {
        const Target::Span& span = region[d];
        const int64_t end = span.one ? span.begin + 1 : span.end.value_or(value_.size(static_cast<int64_t>(d)));
        if (++index[d] < end) break;
        index[d] = span.begin;
      }
      if (d == static_cast<size_t>(-1)) return;
    }
  }

  // The number of the row that an index of leading dimensions tells.
  int64_t RowOf(at::IntArrayRef index) const {
    int64_t row = 0;
    for (size_t d = 0; d < index.size(); ++d) row = row * value_.size(static_cast<int64_t>(d)) + index[d];
    return row;
  }
  int64_t RowOfElement(at::IntArrayRef index) const {
    return index.empty() ? 0 : RowOf(index.slice(0, index.size() - 1));
  }

  void ReadElements() {
    const std::vector<TargetNumbers::ElementWeight>& all = found_.elements;
    if (all.empty()) return;
    const auto place = [&](const TargetNumbers::ElementWeight& one) { return one.row * classes_ + one.place; };
    if (ForFlatLoops(value_, reference_)) {
      DispatchReal(value_.scalar_type(), [&](auto zero) {
        const auto* value = value_.data_ptr<decltype(zero)>();
        const auto* reference = reference_.data_ptr<decltype(zero)>();
        for (const TargetNumbers::ElementWeight& one : all) {
          found_.values[one.target] += one.number * static_cast<double>(value[place(one)]);
          found_.references[one.target] += one.number * static_cast<double>(reference[place(one)]);
        }
      });
      return;
    }
    const at::Tensor index = IndexOf(all, place, value_.device());
    const std::vector<double> values = Doubles(value_.detach().reshape({-1}).index_select(0, index));
    const std::vector<double> references = Doubles(reference_.detach().reshape({-1}).index_select(0, index));
    for (size_t k = 0; k < all.size(); ++k) {
      found_.values[all[k].target] += all[k].number * values[k];
      found_.references[all[k].target] += all[k].number * references[k];
    }
  }

  void ReadRows(const std::vector<Term>& terms) {
    const at::Tensor index = IndexOf(
        terms, [](const Term& term) { return term.row; }, value_.device());
    const auto rows = [&](const at::Tensor& tensor) {
      return InDouble(tensor.detach().reshape({-1, classes_}).index_select(0, index));
    };
    const at::Tensor value = rows(value_);
    const at::Tensor reference = rows(reference_);
    const at::Tensor exact = WeightsOf(terms, value, reference);
    const at::Tensor weights = exact.to(found_.options.dtype().toScalarType()).to(at::kDouble);
    const std::vector<double> values = NumbersOf(terms, value);
    const std::vector<double> references = NumbersOf(terms, reference);
    const std::vector<double> moved = Doubles(Weighted(value - reference, weights));
    const at::Tensor sizes = weights.abs();
    const std::vector<double> at_value = Doubles(Weighted(value.abs(), sizes));
    const std::vector<double> at_reference = Doubles(Weighted(reference.abs(), sizes));
    const std::vector<double> already = Doubles(AreDistributions(value));
    TargetNumbers::RowWeights own;
    own.weights = weights;
    for (size_t k = 0; k < terms.size(); ++k) {
      const int64_t t = terms[k].target;
      own.targets.push_back(t);
      own.rows.push_back(terms[k].row);
      found_.values[t] += values[k];
      found_.references[t] += references[k];
      found_.brackets[t] += values[k] - references[k] - moved[k];
      found_.terms[t] += at_value[k] + at_reference[k];
      if (classes_ > 1 && already[k] != 0) found_.of_probabilities[t] = true;
    }
    found_.rows.push_back(std::move(own));
  }

  // The number of each term in its row, [terms, classes].
  static std::vector<double> NumbersOf(const std::vector<Term>& terms, const at::Tensor& rows) {
    const at::Tensor log_p = at::log_softmax(rows, -1);
    const auto place = [](const Term& term) { return std::max<int64_t>(term.place, 0); };
    std::vector<double> numbers = Doubles(log_p.gather(1, IndexOf(terms, place, rows.device()).unsqueeze(1)));
    std::vector<double> entropies;
    for (size_t k = 0; k < terms.size(); ++k) {
      if (terms[k].quantity == Quantity::kProbability) numbers[k] = std::exp(numbers[k]);
      if (terms[k].quantity != Quantity::kEntropy) continue;
      if (entropies.empty()) entropies = Doubles(SumOfEach(Surprise(log_p)));
      numbers[k] = 0 - entropies[k];
    }
    return numbers;
  }

  std::string NameOf(const Term& term) const { return TargetText(targets_[term.target]); }

  // "[0, 5]"
  std::string RowText(const Term& term) const {
    return absl::StrCat("[", absl::StrJoin(IndexOfRow(term.row, value_.sizes()), ", "), "]");
  }

  // Weights of whole rows; classes that are masked in value and reference get nothing.
  at::Tensor WeightsOf(const std::vector<Term>& terms, const at::Tensor& value, const at::Tensor& reference) const {
    if (AllFinite(value) && AllFinite(reference)) return MeanGradients(terms, value, reference);
    const at::Tensor kept = value.eq(-kInfinity).logical_and_(reference.eq(-kInfinity)).logical_not_();
    const at::Tensor known = at::isfinite(value).logical_and_(at::isfinite(reference));
    const std::vector<double> fits = Doubles(kept.eq(known).all(1).logical_and_(kept.any(1)));
    for (size_t k = 0; k < terms.size(); ++k) {
      if (fits[k] != 0) continue;
      throw InvalidArgument(absl::StrCat(
          "target ", NameOf(terms[k]), " reads logits at ", RowText(terms[k]), " that are NaN or infinite in the ",
          "value or in the reference; only classes that are masked by -inf in both may be (policy conditions=value ",
          "keeps the value's masks)"));
    }
    at::Tensor weights = at::zeros(value.sizes(), value.options());
    for (size_t k = 0; k < terms.size(); ++k) {
      const auto row = static_cast<int64_t>(k);
      weights.select(0, row).copy_(OfMasked(terms[k], kept[row], value[row], reference[row]));
    }
    return weights;
  }

  // Weights of a row of which only some classes are `kept`.
  at::Tensor OfMasked(Term term, const at::Tensor& kept, const at::Tensor& value, const at::Tensor& reference) const {
    at::Tensor weights = at::zeros(value.sizes(), value.options());
    if (term.place >= 0) {
      if (!kept[term.place].item<bool>()) {
        if (term.quantity == Quantity::kProbability) return weights;  // zero, whatever moves
        throw InvalidArgument(absl::StrCat("target ", NameOf(term),
                                           " asks for the logarithm of a probability of zero: class ", term.place,
                                           " is masked by -inf"));
      }
      term.place = kept.narrow(0, 0, term.place).sum().item<int64_t>();
    }
    const at::Tensor places = kept.nonzero().squeeze(1);
    const auto some = [&](const at::Tensor& row) { return row.index_select(0, places).unsqueeze(0); };
    return weights.index_copy_(0, places, MeanGradients({term}, some(value), some(reference))[0]);
  }

  // The mean of each term's gradient on the line between two rows of finite scores, [terms, classes].
  at::Tensor MeanGradients(const std::vector<Term>& terms, const at::Tensor& value, const at::Tensor& reference) const {
    // A softmax ignores shifts.
    const at::Tensor begin = reference - reference.amax(1, /*keepdim=*/true);
    const at::Tensor move = value - value.amax(1, /*keepdim=*/true) - begin;
    const std::vector<double> half_ranges = Doubles((move.amax(1) - move.amin(1)) / 2);
    // Rows that take the same nodes are averaged together.
    std::vector<std::shared_ptr<const Quadrature>> rules;
    std::vector<std::vector<int64_t>> groups;
    for (size_t k = 0; k < terms.size(); ++k) {
      std::shared_ptr<const Quadrature> rule = PathNodes(half_ranges[k], at::kDouble);
      if (rule == nullptr) rule = FarNodesOf(begin[static_cast<int64_t>(k)], move[static_cast<int64_t>(k)]);
      if (rule == nullptr) {
        throw Unimplemented(absl::StrCat(
            "target ", NameOf(terms[k]), " reads logits that move farther from the reference to the value than can be ",
            "followed, as those do that are masked by a large number in one of them only; keep the value's masks ",
            "(policy conditions=value), and do not split them"));
      }
      const size_t group = std::find(rules.begin(), rules.end(), rule) - rules.begin();
      if (group == rules.size()) {
        rules.push_back(std::move(rule));
        groups.emplace_back();
      }
      groups[group].push_back(static_cast<int64_t>(k));
    }
    if (groups.size() == 1) return MeanGradients(terms, *rules[0], begin, move);
    at::Tensor means = at::zeros(begin.sizes(), begin.options());
    for (size_t g = 0; g < groups.size(); ++g) {
      const at::Tensor index = at::tensor(groups[g], at::kLong).to(begin.device());
      std::vector<Term> own;
      for (const int64_t k : groups[g]) own.push_back(terms[k]);
      means.index_copy_(0, index,
                        MeanGradients(own, *rules[g], begin.index_select(0, index), move.index_select(0, index)));
    }
    return means;
  }

  // The mean gradients of terms that take the same nodes. begin, move: [terms, classes].
  static at::Tensor MeanGradients(const std::vector<Term>& terms, const Quadrature& rule, const at::Tensor& begin,
                                  const at::Tensor& move) {
    // How much of its own class, of the entropy, and of its own probability each term's gradient has.
    std::vector<double> logarithms, probabilities, entropies;
    for (const Term& term : terms) {
      logarithms.push_back(term.quantity == Quantity::kLogProbability);
      probabilities.push_back(term.quantity == Quantity::kProbability);
      entropies.push_back(term.quantity == Quantity::kEntropy);
    }
    const auto any = [](const std::vector<double>& flags) { return std::count(flags.begin(), flags.end(), 1.0) > 0; };
    const auto flags = [&](const std::vector<double>& of) { return at::tensor(of, begin.options()).unsqueeze(1); };
    const auto place = [](const Term& term) { return std::max<int64_t>(term.place, 0); };
    const at::Tensor own_class = IndexOf(terms, place, begin.device()).unsqueeze(1);
    const auto nodes = static_cast<int64_t>(rule.nodes.size());
    const auto column = [&](const std::vector<double>& numbers) {
      return at::tensor(numbers, begin.options()).view({-1, 1, 1});
    };
    const at::Tensor points = column(rule.nodes);
    const at::Tensor weights = column(rule.weights);
    at::Tensor mean = at::zeros(begin.sizes(), begin.options());
    // In pieces, so that the probabilities take a bounded amount of memory.
    const int64_t at_once = std::max<int64_t>(1, kMost / std::max<int64_t>(begin.numel(), 1));
    for (int64_t k = 0; k < nodes; k += at_once) {
      const int64_t count = std::min(at_once, nodes - k);
      const at::Tensor log_p =
          at::log_softmax(begin + points.narrow(0, k, count) * move, -1);  // [nodes, terms, classes]
      const at::Tensor p = log_p.exp();
      const at::Tensor weighted = p * weights.narrow(0, k, count);
      at::Tensor lost = at::zeros(begin.sizes(), begin.options());
      if (any(logarithms)) lost = lost + weighted.sum(0) * flags(logarithms);
      if (any(entropies)) {
        lost = lost + (weighted * (log_p - (p * log_p).sum(2, /*keepdim=*/true))).sum(0) * flags(entropies);
      }
      if (any(probabilities)) {
        const at::Tensor own = p.gather(2, own_class.unsqueeze(0).expand({count, begin.size(0), 1}));
        lost = lost + (weighted * own).sum(0) * flags(probabilities);
        mean.scatter_add_(1, own_class, (own * weights.narrow(0, k, count)).sum(0) * flags(probabilities));
      }
      mean.sub_(lost);
    }
    if (any(logarithms)) mean.scatter_add_(1, own_class, flags(logarithms));
    return mean;
  }

  const at::Tensor value_;
  const at::Tensor reference_;
  const std::vector<Target>& targets_;
  const int64_t classes_;
  std::vector<Term> in_rows_;  // terms that are no elements
  TargetNumbers found_;
};

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
    // Take the ids of one example.
    if (continuation.index.empty() || own.dim() != 2 || own.size(0) != value.size(0)) return Ids::kNone;
    own = own.select(0, continuation.index[0]);
  }
  own = own.reshape({-1}).to(at::kCPU, at::kLong).contiguous();
  const auto count = static_cast<int64_t>(continuation.ids.size());
  const int64_t* last = own.data_ptr<int64_t>() + own.numel() - count;
  return std::equal(continuation.ids.begin(), continuation.ids.end(), last) ? Ids::kSame : Ids::kOther;
}

}  // namespace

TargetNumbers ReadTargets(const at::Tensor& value, const at::Tensor& reference, const std::vector<Target>& targets) {
  const c10::AutoGradMode no_grad(false);
  return Reader(value, reference, targets).Read();
}

at::Tensor TargetNumbers::Cotangent(int64_t together) const {
  const c10::AutoGradMode no_grad(false);
  at::DimVector whole = {static_cast<int64_t>(values.size()) / together};
  whole.append(sizes.begin(), sizes.end());
  const at::Tensor cotangent = at::zeros(whole, options);
  const int64_t classes = LastOf(sizes);
  const int64_t rows_of_each = cotangent.numel() / std::max<int64_t>(whole[0] * classes, 1);
  const auto row = [&](int64_t target, int64_t own) { return target / together * rows_of_each + own; };
  if (!elements.empty()) {
    const auto place = [&](const ElementWeight& one) { return row(one.target, one.row) * classes + one.place; };
    if (ForFlatLoops(cotangent)) {
      DispatchReal(cotangent.scalar_type(), [&](auto zero) {
        auto* weights = cotangent.data_ptr<decltype(zero)>();
        for (const ElementWeight& one : elements) weights[place(one)] += static_cast<decltype(zero)>(one.number);
      });
    } else {
      std::vector<double> numbers;
      numbers.reserve(elements.size());
      for (const ElementWeight& one : elements) numbers.push_back(one.number);
      cotangent.view({-1}).index_add_(0, IndexOf(elements, place, options.device()), at::tensor(numbers, options));
    }
  }
  for (const RowWeights& own : rows) {
    std::vector<int64_t> places;
    for (size_t k = 0; k < own.rows.size(); ++k) places.push_back(row(own.targets[k], own.rows[k]));
    cotangent.view({-1, classes})
        .index_add_(0, at::tensor(places, at::kLong).to(options.device()), own.weights.to(options));
  }
  return cotangent;
}

at::Tensor TargetNumbers::Weigh(const at::Tensor& all) const {
  const c10::AutoGradMode no_grad(false);
  // [R, classes]
  const auto row_of = [&](int64_t row) {
    at::Tensor own = all;
    for (const int64_t i : IndexOfRow(row, sizes)) own = own.select(1, i);
    return sizes.empty() ? own.unsqueeze(1) : own;
  };
  at::Tensor sum;
  // Weights may be at hand though the rows are not.
  const auto add = [&](const at::Tensor& own) { sum = sum.defined() ? sum + own.to(sum.device()) : own; };
  for (const ElementWeight& one : elements) add(InDouble(row_of(one.row).select(1, one.place)) * one.number);
  for (const RowWeights& own : rows) {
    for (size_t k = 0; k < own.rows.size(); ++k) {
      const at::Tensor weights = own.weights[static_cast<int64_t>(k)];
      add(Weighted(InDouble(row_of(own.rows[k])).to(weights.device()), weights));
    }
  }
  return sum;
}

bool AreProbabilities(const at::Tensor& value, const std::vector<int64_t>& index) {
  if (value.dim() == 0 || value.size(-1) < 2) return false;
  const c10::AutoGradMode no_grad(false);
  const at::Tensor row = InDouble(ElementAt(value, {index.begin(), index.begin() + value.dim() - 1}));
  return AreDistributions(row.unsqueeze(0)).item<bool>();
}

std::vector<std::string> NotesOfTargets(const at::Tensor& value, const std::vector<Target>& targets,
                                        const std::vector<bool>& of_probabilities,
                                        const std::vector<at::Tensor>& inputs) {
  std::vector<std::string> notes;
  const auto others = [](int64_t count) {
    return count > 1 ? absl::StrCat(" (and ", count - 1, count > 2 ? " others)" : " other)") : "";
  };
  const int64_t already = std::count(of_probabilities.begin(), of_probabilities.end(), true);
  if (already > 0) {
    const size_t first = std::find(of_probabilities.begin(), of_probabilities.end(), true) - of_probabilities.begin();
    notes.push_back(absl::StrCat(WordsOf(NoteKind::kProbabilities).begins, TargetText(targets[first]), others(already),
                                 " takes a softmax of are probabilities already; ",
                                 "at=logits asks for the scores that they were made from"));
  }
  std::vector<const Target*> continuations;
  for (const Target& target : targets) AddContinuations(target, continuations);
  std::vector<const Target*> unlike;
  for (const Target* continuation : continuations) {
    Ids found = Ids::kNone;
    for (const at::Tensor& input : inputs) found = std::max(found, IdsOf(input, value, *continuation));
    if (found == Ids::kOther) unlike.push_back(continuation);
  }
  if (!unlike.empty()) {
    notes.push_back(absl::StrCat(WordsOf(NoteKind::kAnotherContinuation).begins, TargetText(*unlike[0]),
                                 others(static_cast<int64_t>(unlike.size())),
                                 ", so that this is not the log-probability of what the model was given"));
  }
  return notes;
}

std::vector<std::string> NotesOfTarget(const at::Tensor& value, const Target& target,
                                       const std::vector<at::Tensor>& inputs) {
  return NotesOfTargets(value, {target}, ReadTargets(value, value, {target}).of_probabilities, inputs);
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
  contributions.conditioning = ConditioningOf(mass, std::abs(contributions.reference), std::abs(contributions.value),
                                              std::abs(contributions.value - contributions.reference));
  contributions.mass = mass + std::abs(contributions.reference);
}

double ConditioningOf(double parts, double reference, double value, double move) {
  if (parts == 0) return 1;
  // A value of zero is no scale: only the move is.
  const double least = value > 0 ? std::min(value, move) : move;
  return std::max(parts, reference) / least;
}

double Cancelling(const Contributions& contributions) {
  const double parts = contributions.mass - std::abs(contributions.reference);
  return parts == 0 ? 1 : parts / std::abs(contributions.value - contributions.reference);
}

double RoundingAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance) {
  const auto components = static_cast<int64_t>(contributions.contributions.size());
  const double relative = tolerance.value_or(RecoveryTolerance(EpsilonOf(dtype), components, operators));
  return relative * (contributions.mass + std::abs(contributions.value) + contributions.terms);
}

double RecoveryAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance) {
  const double rounding = RoundingAllowance(contributions, dtype, operators, tolerance);
  if (contributions.scale == 0) return rounding;
  const bool single = c10::toRealValueType(dtype) != at::kDouble;
  return std::min(rounding, RecoveryLimitsOf(single, tolerance).told * contributions.scale);
}

Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target,
                         const Report* report) {
  Contributions result;
  result.target = FindElements(value, target);
  const TargetNumbers numbers = ReadTargets(value, composition.reference(), {result.target});
  result.value = numbers.values[0];
  result.scale = OutputScales(value).Of(result.target);
  result.reference = numbers.references[0];
  result.leftover = numbers.Weigh(composition.leftover().unsqueeze(0)).item<double>() + numbers.brackets[0];
  result.terms = numbers.terms[0];
  result.contributions = Doubles(numbers.Weigh(composition.components()));
  AddUp(result);
  const int64_t operators = report == nullptr ? composition.origin().depth : report->operators;
  const std::optional<double> tolerance = report == nullptr ? std::nullopt : report->policy.tolerance;
  at::ScalarType rounded = value.scalar_type();
  if (composition.origin().single && c10::toRealValueType(rounded) == at::kDouble) rounded = at::kFloat;
  result.single = c10::toRealValueType(rounded) != at::kDouble;
  result.rounding = RoundingAllowance(result, rounded, operators, tolerance);
  result.tolerance = RecoveryAllowance(result, rounded, operators, tolerance);
  return result;
}

}  // namespace addend
