// Note [Adaptive nodes]
// The line from reference (t = 0) to value (t = 1) is cut where it has to be. On an interval the mean derivative is
// found by Gauss-Legendre nodes and sent the move; what that misses of f(t1) - f(t0) is exactly the error in the one
// direction that matters. It is judged element by element:
//   - at rounding: done;
//   - else the interval is halved. A smooth function is done soon, a kink halves its error every time, more or less;
//   - where the error stays what it is through several halvings the function jumps, and where both halves share it
//     alike, again and again, the operator itself is no more exact than that: it stays left over;
//   - where something is not finite, or grows beyond everything seen on the line, there is a pole: the element is
//     linearized at the value instead, and its reference is replaced; see core/linearize/stand_in.h.
#include "core/rules/path.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool CarriesRows(const at::Tensor& t) { return t.defined() && (t.is_floating_point() || t.is_complex()); }

// Complex numbers as pairs of real ones, in a last dimension of their own.
at::Tensor Real(const at::Tensor& t) { return t.is_complex() ? at::view_as_real(t.resolve_conj()) : t; }
at::Tensor FlatReal(const at::Tensor& t) { return Real(t).reshape({-1}); }

// Autograd refuses to save tensors that were made under inference mode.
at::Tensor Savable(const at::Tensor& t) { return t.defined() && t.is_inference() ? t.clone() : t; }

bool IsDouble(const at::Tensor& t) { return t.scalar_type() == at::kDouble || t.scalar_type() == at::kComplexDouble; }
double ToleranceOf(const at::Tensor& t) { return IsDouble(t) ? 1e-12 : 1e-6; }

bool Any(const at::Tensor& mask) { return mask.numel() > 0 && mask.any().item<bool>(); }
double Largest(const at::Tensor& t) { return t.numel() == 0 ? 0 : t.max().item<double>(); }
at::Tensor FiniteOrZero(const at::Tensor& t) { return t.masked_fill(at::isfinite(t).logical_not_(), 0); }
// NaN and infinity are larger than any error.
at::Tensor NanIsInfinite(const at::Tensor& error) { return error.masked_fill(error.ne(error), kInfinity); }

std::string NameOf(const RuleCall& call) {
  return call.overload.empty() ? call.name : absl::StrCat(call.name, ".", call.overload);
}

// Autograd's own functions that stand for a missing derivative.
bool Differentiable(const at::Tensor& output) {
  if (!output.requires_grad()) return false;
  return output.grad_fn() == nullptr || output.grad_fn()->name().find("NotImplemented") == std::string::npos;
}

// ----------------------------------------------------------------------------------------------- when to halve again

constexpr int kMostHalvings = 44;
constexpr int kHistory = 8;
constexpr double kSharedAlike = 4;  // so often in a row

// What is known of an interval, for each element.
struct Found {
  at::Tensor errors;  // [kHistory, elements]: its own and those of the intervals that it was cut from, newest first
  at::Tensor shared;  // how often in a row both halves had a like share of the error
  at::Tensor ends;    // the largest |f| at both ends
};

Found NothingFound(const at::Tensor& error, const at::Tensor& ends) {
  const at::Tensor before = at::full({kHistory - 1, error.numel()}, kInfinity, error.options());
  return {at::cat({error.unsqueeze(0), before}), at::zeros_like(error), ends};
}

struct Verdict {
  at::Tensor halve;
  at::Tensor pole;
};

// `peak`: the largest |f| that was seen on the whole line. `scale`: what the error is measured against.
Verdict Judge(const Found& found, const at::Tensor& peak, const at::Tensor& scale, double tolerance, bool last) {
  const at::Tensor error = found.errors.select(0, 0);
  const at::Tensor recent = found.errors.narrow(0, 0, kHistory / 2).amax(0);
  const at::Tensor earlier = found.errors.narrow(0, kHistory / 2, kHistory / 2).amax(0);
  const at::Tensor large = error.gt(scale * tolerance);
  const at::Tensor old = earlier.lt(kInfinity);
  const at::Tensor grows = old.logical_and(recent.gt(earlier * 2));
  const at::Tensor stays = old.logical_and(recent.gt(earlier * 0.6)).logical_and(grows.logical_not());
  at::Tensor pole = old.logical_and(recent.gt(earlier * 0.6)).logical_and_(found.ends.gt(peak * 4));
  pole.logical_or_(found.ends.gt(peak * 1e4));
  if (last) pole.logical_or_(grows);
  pole.logical_and_(large);
  at::Tensor halve = large.logical_and(stays.logical_not()).logical_and_(pole.logical_not());
  halve.logical_and_(found.shared.lt(kSharedAlike));
  if (last) halve.fill_(false);
  return {halve, pole.logical_or_(error.eq(kInfinity))};
}

// ------------------------------------------------------------------------------------------------ the whole Jacobian

// Backward passes that one call may take, and elements that its matrices may have.
constexpr int64_t kMostPasses = int64_t{1} << 17;
constexpr int64_t kMostElements = int64_t{1} << 22;

class WholePath {
 public:
  explicit WholePath(const RuleCall& call) : call_(call) {
    for (size_t k = 0; k < call.operands.size(); ++k) {
      if (call.operands[k].decomposed && CarriesRows(call.operands[k].value)) inputs_.push_back(static_cast<int>(k));
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (CarriesRows(call.outputs[k].value)) outputs_.push_back(static_cast<int>(k));
    }
  }

  RuleResult Build() {
    c10::InferenceMode no_inference(false);
    CheckSize();
    for (const int k : inputs_) moves_.push_back(FlatReal(call_.Move(k)));
    const Evaluated value = AtValue();
    CheckRepeatable(value);
    bool any = false;
    for (const Row& row : value.jacobian) {
      for (const at::Tensor& matrix : row) any = any || matrix.defined();
    }
    if (!any) return Opaque(call_);
    FindScales(value);
    try {
      Integrate(value);
    } catch (const c10::Error&) {
      // The operator refuses what lies on the line: a matrix that has no inverse, say.
      for (at::Tensor& broken : broken_) broken.fill_(true);
      for (Row& row : total_) std::fill(row.begin(), row.end(), at::Tensor());
    }
    return Finish(value);
  }

 private:
  using Row = std::vector<at::Tensor>;  // of one output: [its elements, the operand's elements]; undefined: zeros

  struct Evaluated {
    Rows f;                     // by output: its elements
    std::vector<Row> jacobian;  // by output and input
  };

  struct Interval {
    double from = 0, to = 1;
    int halvings = 0;
    Rows f_from, f_to;          // by output
    std::vector<Row> integral;  // of the derivative
    std::vector<Found> found;   // by output
    double worst = 0;           // the largest error over the scale
  };

  std::vector<at::Tensor> Point(double t) const {
    std::vector<at::Tensor> point;
    for (size_t k = 0; k < call_.operands.size(); ++k) {
      const RuleOperand& operand = call_.operands[k];
      at::Tensor own = operand.value;
      if (operand.decomposed && t < 1) own = t > 0 ? operand.reference + call_.Move(k) * t : operand.reference;
      point.push_back(Savable(own));
    }
    return point;
  }

  Evaluated Evaluate(double t, bool with_jacobian) const {
    c10::AutoGradMode grad(with_jacobian);
    std::vector<at::Tensor> point = Point(t);
    std::vector<at::Tensor> leaves;
    for (const int k : inputs_) {
      leaves.push_back(Real(point[k]).detach().clone(at::MemoryFormat::Contiguous).set_requires_grad(with_jacobian));
      point[k] = point[k].is_complex() ? at::view_as_complex(leaves.back()) : leaves.back();
    }
    const std::vector<at::Tensor> results = call_.run(point);
    Evaluated out;
    for (const int k : outputs_) {
      if (k >= static_cast<int>(results.size())) {
        throw Unimplemented(absl::StrCat("path rule of ", NameOf(call_), ": it does not return what it writes"));
      }
      if (results[k].sizes() != call_.outputs[k].value.sizes()) {
        throw Unimplemented(absl::StrCat("path rule of ", NameOf(call_), ": the size of the result depends on values"));
      }
      const at::Tensor flat = FlatReal(results[k]);
      out.f.push_back(flat.detach().to(Dtype(k)));
      out.jacobian.emplace_back(inputs_.size());
      if (with_jacobian && Differentiable(results[k])) out.jacobian.back() = Jacobian(flat, leaves);
    }
    return out;
  }

  Evaluated AtValue() const {
    try {
      return Evaluate(1, true);
    } catch (const c10::Error& e) {
      throw Unimplemented(
          absl::StrCat("path rule of ", NameOf(call_), ": not differentiable here: ", e.what_without_backtrace()));
    }
  }

  // One backward pass for each element.
  Row Jacobian(const at::Tensor& flat, const std::vector<at::Tensor>& leaves) const {
    Row row(leaves.size());
    const at::Tensor seed = at::zeros_like(flat);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      seed.zero_();
      seed[i] = 1;
      const auto gradients =
          torch::autograd::grad({flat}, leaves, {seed}, /*retain_graph=*/true, false, /*allow_unused=*/true);
      for (size_t j = 0; j < gradients.size(); ++j) {
        if (!gradients[j].defined()) continue;
        if (!row[j].defined()) row[j] = at::zeros({flat.numel(), leaves[j].numel()}, flat.options());
        row[j].select(0, i).copy_(gradients[j].detach().reshape({-1}));
      }
    }
    return row;
  }

  at::ScalarType Dtype(int output) const { return IsDouble(call_.outputs[output].value) ? at::kDouble : at::kFloat; }

  // An operator that gives something else each time has no line to follow.
  void CheckRepeatable(const Evaluated& value) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const at::Tensor recorded = FlatReal(call_.outputs[outputs_[k]].value).to(value.f[k].scalar_type());
      const at::Tensor missed = (recorded - value.f[k]).abs().masked_fill_(recorded.eq(value.f[k]), 0);
      const double size = std::max(Largest(FiniteOrZero(recorded).abs()), Largest(FiniteOrZero(value.f[k]).abs()));
      // Values of half types were rounded after they were computed.
      if (Any(FiniteOrZero(missed).gt(size * 0.02))) {
        throw Unimplemented(absl::StrCat("path rule of ", NameOf(call_), ": called again, it gives something else"));
      }
    }
  }

  void CheckSize() const {
    int64_t in = 0;
    int64_t out = 0;
    for (const int k : inputs_) in += call_.operands[k].value.numel();
    for (const int k : outputs_) out += call_.outputs[k].value.numel();
    if (in * out > kMostElements) {
      throw Unimplemented(absl::StrCat("path rule of ", NameOf(call_), ": its derivative has ", in * out,
                                       " numbers, more than ", kMostElements));
    }
  }

  void FindScales(const Evaluated& value) {
    passes_ = 0;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const at::Tensor reference = FlatReal(call_.outputs[outputs_[k]].reference).to(value.f[k].scalar_type());
      const at::Tensor finite = at::isfinite(value.f[k]);
      at::Tensor size = at::maximum(FiniteOrZero(value.f[k]).abs(), FiniteOrZero(reference).abs());
      const at::Tensor passed = Passed(value.jacobian[k], value.f[k], true);
      scales_.push_back(std::max(Largest(size), Largest(FiniteOrZero(passed))));
      counted_.push_back(finite);
      broken_.push_back(at::isfinite(reference).logical_not_().logical_and_(finite));
      total_.emplace_back(inputs_.size());
      passes_ += value.f[k].numel();
    }
  }

  // A row of matrices times the moves, [elements]; `magnitudes`: the largest that it may reach.
  at::Tensor Passed(const Row& row, const at::Tensor& like, bool magnitudes = false) const {
    at::Tensor sum = at::zeros_like(like);
    for (size_t j = 0; j < row.size(); ++j) {
      if (!row[j].defined() || row[j].numel() == 0) continue;
      const at::Tensor move = FiniteOrZero(moves_[j]).to(like.scalar_type());
      sum += magnitudes ? at::mv(row[j].abs(), move.abs()) : at::mv(row[j], move);
    }
    return sum;
  }

  // Finds the integral of the derivative over an interval and the error of each element.
  Rows Measure(Interval& interval, int count) {
    const Quadrature nodes = GaussLegendre(count);
    interval.integral.assign(outputs_.size(), Row(inputs_.size()));
    for (int n = 0; n < count; ++n) {
      const Evaluated at_node = Evaluate(interval.from + (interval.to - interval.from) * nodes.nodes[n], true);
      spent_ += passes_;
      const double weight = nodes.weights[n] * (interval.to - interval.from);
      for (size_t k = 0; k < outputs_.size(); ++k) {
        broken_[k].logical_or_(at::isfinite(at_node.f[k]).logical_not_().logical_and_(counted_[k]));
        if (interval.halvings == 0) peaks_[k] = at::maximum(peaks_[k], FiniteOrZero(at_node.f[k]).abs());
        for (size_t j = 0; j < inputs_.size(); ++j) {
          const at::Tensor& matrix = at_node.jacobian[k][j];
          if (!matrix.defined()) continue;
          at::Tensor& sum = interval.integral[k][j];
          if (!sum.defined()) sum = at::zeros_like(matrix);
          sum.add_(matrix, weight);
        }
      }
    }
    Rows errors;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const at::Tensor uncounted = counted_[k].logical_not();
      const at::Tensor rise = (interval.f_to[k] - interval.f_from[k])
                                  .masked_fill_(interval.f_to[k].eq(interval.f_from[k]).logical_or_(uncounted), 0);
      const at::Tensor error = NanIsInfinite((rise - Passed(interval.integral[k], rise)).abs());
      broken_[k].logical_or_(error.eq(kInfinity).logical_and_(counted_[k]));
      errors.push_back(error.masked_fill(broken_[k].logical_or(uncounted), 0));
    }
    return errors;
  }

  at::Tensor EndsOf(const Interval& interval, size_t k) const {
    return at::maximum(FiniteOrZero(interval.f_from[k]).abs(), FiniteOrZero(interval.f_to[k]).abs());
  }

  // Whether halving the interval may help some element.
  bool Pending(Interval& interval) {
    bool pending = false;
    interval.worst = 0;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const at::Tensor error = interval.found[k].errors.select(0, 0);
      const at::Tensor scale = at::full({1}, scales_[k], error.options());
      const Verdict verdict =
          Judge(interval.found[k], peaks_[k], scale, ToleranceOf(error), interval.halvings >= kMostHalvings);
      broken_[k].logical_or_(verdict.pole.logical_and(counted_[k]));
      const at::Tensor halve = verdict.halve.logical_and(broken_[k].logical_not());
      if (!Any(halve)) continue;
      pending = true;
      interval.worst = std::max(interval.worst, Largest(error * halve) / scales_[k]);
    }
    return pending;
  }

  void Add(const Interval& interval) {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      for (size_t j = 0; j < inputs_.size(); ++j) {
        const at::Tensor& part = interval.integral[k][j];
        if (part.defined()) total_[k][j] = total_[k][j].defined() ? total_[k][j] + part : part;
      }
    }
  }

  // See Note [Adaptive nodes].
  void Integrate(const Evaluated& value) {
    std::vector<Interval> pending;
    Interval whole;
    whole.f_from = Evaluate(0, false).f;
    whole.f_to = value.f;
    for (size_t k = 0; k < outputs_.size(); ++k) peaks_.push_back(EndsOf(whole, k));
    // Most functions need no cut: they are tried with more nodes first.
    for (const int count : {4, 8, 16}) {
      const Rows errors = Measure(whole, count);
      whole.found.clear();
      for (size_t k = 0; k < errors.size(); ++k) whole.found.push_back(NothingFound(errors[k], EndsOf(whole, k)));
      if (!Pending(whole)) return Add(whole);
    }
    pending.push_back(std::move(whole));
    constexpr int kNodes = 8;
    while (!pending.empty()) {
      const auto worst = std::max_element(pending.begin(), pending.end(),
                                          [](const Interval& a, const Interval& b) { return a.worst < b.worst; });
      const Interval parent = std::move(*worst);
      pending.erase(worst);
      if (spent_ + 2 * kNodes * passes_ > std::max(kMostPasses, 64 * passes_)) {
        Add(parent);
        continue;
      }
      Interval halves[2];
      Rows errors[2];
      const double middle = parent.from + (parent.to - parent.from) / 2;
      const Rows f_middle = Evaluate(middle, false).f;
      for (int h = 0; h < 2; ++h) {
        halves[h].from = h == 0 ? parent.from : middle;
        halves[h].to = h == 0 ? middle : parent.to;
        halves[h].halvings = parent.halvings + 1;
        halves[h].f_from = h == 0 ? parent.f_from : f_middle;
        halves[h].f_to = h == 0 ? f_middle : parent.f_to;
        errors[h] = Measure(halves[h], kNodes);
      }
      for (Interval& half : halves) {
        for (size_t k = 0; k < outputs_.size(); ++k) {
          const Found& before = parent.found[k];
          const at::Tensor alike = at::minimum(errors[0][k], errors[1][k]).gt(before.errors.select(0, 0) * 0.2);
          const at::Tensor& own = errors[&half == &halves[0] ? 0 : 1][k];
          half.found.push_back({at::cat({own.unsqueeze(0), before.errors.narrow(0, 0, kHistory - 1)}),
                                (before.shared + 1) * alike, EndsOf(half, k)});
        }
        if (Pending(half)) {
          pending.push_back(std::move(half));
        } else {
          Add(half);
        }
      }
    }
  }

  RuleResult Finish(const Evaluated& value) {
    RuleResult result;
    result.kind = Kind::kPath;
    result.exact = false;
    bool bounded = true;
    bool elsewhere = false;  // another output is not finite at the reference
    for (size_t k = 0; k < outputs_.size(); ++k) {
      Row& row = total_[k];
      at::Tensor& broken = broken_[k];
      for (const at::Tensor& matrix : row) {
        if (matrix.defined() && matrix.numel() > 0) {
          broken.logical_or_(at::isfinite(matrix.sum(1)).logical_not_().logical_and_(counted_[k]));
        }
      }
      const bool any_broken = Any(broken);
      for (size_t j = 0; j < inputs_.size(); ++j) {
        const at::Tensor& tangent = value.jacobian[k][j];
        if (any_broken && tangent.defined()) {
          row[j] = row[j].defined() ? at::where(broken.unsqueeze(1), tangent, row[j]) : tangent * broken.unsqueeze(1);
        }
        // An infinite derivative times a row of zero is NaN, so nothing passes there.
        if (row[j].defined()) row[j] = FiniteOrZero(row[j]).masked_fill_(counted_[k].logical_not().unsqueeze(1), 0);
      }
      const RuleOutput& output = call_.outputs[outputs_[k]];
      const at::Tensor recorded = FlatReal(output.value).to(value.f[k].scalar_type());
      at::Tensor reference = FlatReal(output.reference).to(value.f[k].scalar_type());
      const at::Tensor passed = Passed(row, reference);
      if (any_broken && outputs_[k] == 0) {
        reference = at::where(broken, recorded - passed, reference);
        result.stand_in = output.value.is_complex() ? at::view_as_complex(reference.view(Real(output.value).sizes()))
                                                    : reference.view(output.value.sizes());
      } else if (any_broken) {
        bounded = false;
        elsewhere = elsewhere || Any(at::isfinite(reference).logical_not_().logical_and_(counted_[k]));
      }
      const at::Tensor rise =
          (recorded - reference).masked_fill_(recorded.eq(reference).logical_or_(counted_[k].logical_not()), 0);
      const double error = Largest((rise - passed).abs());
      const double scale = std::max(
          {Largest(FiniteOrZero(recorded).abs()), Largest(FiniteOrZero(reference).abs()), Largest(passed.abs())});
      result.quadrature = std::max({result.quadrature, ToleranceOf(recorded), scale > 0 ? error / scale : error});
    }
    if (!bounded) result.quadrature = 0;
    // Only the first output can have a stand-in of its own; see LinearizeAtValue in core/linearize.
    if (elsewhere) result.stand_in = at::Tensor();
    MakeRowsMap(result);
    return result;
  }

  // Forward is one product for each pair of output and operand, whatever the number of rows.
  void MakeRowsMap(RuleResult& result) const {
    std::vector<Row> matrices(call_.outputs.size(), Row(inputs_.size()));
    for (size_t k = 0; k < outputs_.size(); ++k) matrices[outputs_[k]] = total_[k];
    std::vector<at::Tensor> in;
    for (const int k : inputs_) in.push_back(Shape(call_.operands[k].value));
    std::vector<at::Tensor> out;
    for (const RuleOutput& output : call_.outputs) {
      out.push_back(CarriesRows(output.value) ? Shape(output.value) : at::Tensor());
    }
    result.inputs = inputs_;
    result.map = MakeMap(
        call_, inputs_,
        [matrices, out](const Rows& rows) -> Rows {
          const int64_t count = rows[0].size(0);
          Rows results(out.size());
          for (size_t k = 0; k < out.size(); ++k) {
            if (!out[k].defined()) continue;
            at::Tensor sum;
            for (size_t j = 0; j < rows.size(); ++j) {
              const at::Tensor& matrix = matrices[k][j];
              if (!matrix.defined()) continue;
              const at::Tensor part =
                  at::mm(Real(rows[j]).reshape({count, matrix.size(1)}).to(matrix.scalar_type()), matrix.t());
              sum = sum.defined() ? sum + part : part;
            }
            if (sum.defined()) results[k] = Shaped(sum, out[k], count);
          }
          return results;
        },
        [matrices, in](const Rows& cotangents) -> Rows {
          Rows results(in.size());
          for (size_t j = 0; j < in.size(); ++j) {
            at::Tensor sum;
            for (size_t k = 0; k < cotangents.size(); ++k) {
              const at::Tensor& matrix = matrices[k][j];
              if (!matrix.defined() || !cotangents[k].defined()) continue;
              const at::Tensor part = at::mm(FlatReal(cotangents[k]).unsqueeze(0).to(matrix.scalar_type()), matrix);
              sum = sum.defined() ? sum + part : part;
            }
            results[j] = sum.defined() ? Shaped(sum, in[j], 1).squeeze(0) : at::zeros(in[j].sizes(), in[j].options());
          }
          return results;
        });
  }

  // Sizes, dtype and device of a tensor without its memory.
  static at::Tensor Shape(const at::Tensor& t) { return at::zeros({}, t.options()).expand(t.sizes()); }
  // [count, elements] -> [count, *sizes]
  static at::Tensor Shaped(const at::Tensor& rows, const at::Tensor& like, int64_t count) {
    at::DimVector sizes;
    sizes.push_back(count);
    sizes.append(like.sizes().begin(), like.sizes().end());
    if (!like.is_complex()) return rows.to(like.scalar_type()).view(sizes);
    sizes.push_back(2);
    return at::view_as_complex(rows.view(sizes).contiguous()).to(like.scalar_type());
  }

  const RuleCall& call_;
  std::vector<int> inputs_;     // operands that are decomposed
  std::vector<int> outputs_;    // outputs that carry rows
  Rows moves_;                  // by input
  std::vector<double> scales_;  // by output: the largest number in sight
  Rows counted_;                // by output and element: the value is finite; others have no parts
  Rows peaks_;                  // by output and element: the largest magnitude seen on the line
  Rows broken_;                 // by output and element: linearized at the value
  std::vector<Row> total_;      // by output and input
  int64_t passes_ = 0;          // backward passes for one node
  int64_t spent_ = 0;
};

// ------------------------------------------------------------------------------------------------ element by element

// Points that are evaluated at once, and in one round of halvings.
constexpr int64_t kPointsAtOnce = int64_t{1} << 18;
constexpr int64_t kMostPoints = int64_t{1} << 24;

class ElementwisePath {
 public:
  explicit ElementwisePath(const RuleCall& call)
      : call_(call), output_(call.outputs[0].value), tolerance_(ToleranceOf(output_)) {
    if (!output_.is_floating_point()) throw Unimplemented(absl::StrCat(NameOf(call), " with complex numbers"));
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const RuleOperand& operand = call.operands[k];
      // What an out= form writes is not read; its size is that of an earlier result, or none.
      const bool only_written = operand.written && operand.value.defined() && operand.value.sizes() != output_.sizes();
      const bool read = operand.value.defined() && !only_written;
      if (read && operand.decomposed && operand.value.is_floating_point()) inputs_.push_back(static_cast<int>(k));
      flat_.push_back(read ? Savable(Flat(operand.value)) : operand.value);
      references_.push_back(read && operand.decomposed ? Savable(Flat(operand.reference)) : flat_.back());
      moves_.push_back(read && operand.decomposed ? Flat(call.Move(static_cast<int>(k))) : at::Tensor());
      read_.push_back(read);
    }
  }

  RuleResult Build() {
    c10::InferenceMode no_inference(false);
    value_ = output_.reshape({-1});
    reference_ = call_.outputs[0].reference.reshape({-1});
    counted_ = at::isfinite(value_);
    broken_ = at::isfinite(reference_).logical_not_().logical_and_(counted_);
    peaks_ = at::zeros_like(value_);
    for (size_t j = 0; j < inputs_.size(); ++j) sums_.push_back(at::zeros_like(value_));
    const at::Tensor all = counted_.logical_and(broken_.logical_not()).nonzero().squeeze(1);
    differentiable_ = true;
    if (all.numel() > 0) Integrate(all);
    if (!differentiable_) return Opaque(call_);
    LinearizeBroken();
    return Finish();
  }

 private:
  // Intervals side by side, one entry for each: the element that it belongs to, its ends, what is known.
  struct Intervals {
    at::Tensor element, from, to;
    Found found;

    int64_t size() const { return element.numel(); }
    Intervals Where(const at::Tensor& mask) const {
      const at::Tensor at = mask.nonzero().squeeze(1);
      const auto some = [&](const at::Tensor& t) { return t.index_select(-1, at); };
      return {some(element), some(from), some(to), {some(found.errors), some(found.shared), some(found.ends)}};
    }
    Intervals Part(int64_t start, int64_t length) const {
      const auto part = [&](const at::Tensor& t) { return t.narrow(-1, start, length); };
      return {part(element), part(from), part(to), {part(found.errors), part(found.shared), part(found.ends)}};
    }
    static Intervals Join(const std::vector<Intervals>& all) {
      const auto join = [&](const auto& member) {
        std::vector<at::Tensor> parts;
        for (const Intervals& part : all) parts.push_back(member(part));
        return at::cat(parts, -1);
      };
      return {join([](const Intervals& i) { return i.element; }),
              join([](const Intervals& i) { return i.from; }),
              join([](const Intervals& i) { return i.to; }),
              {join([](const Intervals& i) { return i.found.errors; }),
               join([](const Intervals& i) { return i.found.shared; }),
               join([](const Intervals& i) { return i.found.ends; })}};
    }
    // Both halves of each, next to each other.
    Intervals Halves() const {
      const at::Tensor middle = (from + to) / 2;
      const auto beside = [](const at::Tensor& a, const at::Tensor& b) { return at::stack({a, b}, 1).reshape({-1}); };
      const at::Tensor errors = at::stack({found.errors, found.errors}, 2).reshape({kHistory, -1});
      return {beside(element, element),
              beside(from, middle),
              beside(middle, to),
              {errors, beside(found.shared, found.shared), beside(found.ends, found.ends)}};
    }
  };

  struct Evaluated {
    at::Tensor f;      // [points, intervals]
    Rows derivatives;  // by input: the same; undefined: zeros
  };

  at::Tensor Flat(const at::Tensor& t) const { return t.expand(output_.sizes()).reshape({-1}); }

  // The function at several points of the lines of some elements; t: [points, elements].
  Evaluated Evaluate(const at::Tensor& element, const at::Tensor& t) {
    c10::AutoGradMode grad(true);
    std::vector<at::Tensor> point = flat_;
    for (size_t k = 0; k < point.size(); ++k) {
      if (!read_[k]) continue;
      at::Tensor own = flat_[k].index_select(0, element).unsqueeze(0).expand(t.sizes());
      if (moves_[k].defined()) {
        const at::Tensor line =
            references_[k].index_select(0, element) + moves_[k].index_select(0, element) * t.to(own.scalar_type());
        own = at::where(t.eq(1), own, line);
      }
      point[k] = own.contiguous().detach();
    }
    std::vector<at::Tensor> leaves;
    for (const int k : inputs_) leaves.push_back(point[k].set_requires_grad(true));
    const at::Tensor y = call_.run(point)[0];
    if (y.sizes() != t.sizes()) {
      throw Unimplemented(absl::StrCat(NameOf(call_), " with these arguments is not elementwise"));
    }
    Evaluated out;
    out.f = y.detach().to(value_.scalar_type());
    out.derivatives.resize(inputs_.size());
    differentiable_ = Differentiable(y);
    if (!differentiable_) return out;
    const auto gradients =
        torch::autograd::grad({y}, leaves, {at::ones_like(y)}, {}, /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t j = 0; j < gradients.size(); ++j) {
      if (gradients[j].defined()) out.derivatives[j] = gradients[j].detach().to(value_.scalar_type());
    }
    return out;
  }

  // Every interval is measured with `count` nodes. Returns those that are to be halved; the others are added up.
  // `halved`: they are pairs of halves. `last`: none is halved again.
  Intervals Round(const Intervals& intervals, int count, bool halved, bool last) {
    std::vector<Intervals> pending;
    const int64_t length = std::max<int64_t>(1, kPointsAtOnce / (count + 2) / 2) * 2;
    for (int64_t start = 0; start < intervals.size(); start += length) {
      const int64_t rest = std::min(length, intervals.size() - start);
      pending.push_back(RoundOfPart(intervals.Part(start, rest), count, halved, last));
      if (!differentiable_) return intervals;
    }
    return Intervals::Join(pending);
  }

  Intervals RoundOfPart(Intervals own, int count, bool halved, bool last) {
    const Quadrature rule = GaussLegendre(count);
    std::vector<double> nodes = rule.nodes;
    nodes.push_back(0);
    nodes.push_back(1);
    const at::Tensor length = own.to - own.from;
    const at::Tensor t = own.from + length * at::tensor(nodes, own.from.options()).unsqueeze(1);
    t.select(0, count + 1).copy_(own.to);  // exactly
    const Evaluated at_nodes = Evaluate(own.element, t);
    if (!differentiable_) return own;
    const at::Tensor weights = at::tensor(rule.weights, value_.options()).unsqueeze(1);
    const at::Tensor scaled = length.to(value_.scalar_type());
    at::Tensor passed = at::zeros_like(scaled);
    at::Tensor reach = at::zeros_like(scaled);
    Rows integrals(inputs_.size());
    for (size_t j = 0; j < inputs_.size(); ++j) {
      if (!at_nodes.derivatives[j].defined()) continue;
      integrals[j] = (at_nodes.derivatives[j].narrow(0, 0, count) * weights).sum(0) * scaled;
      const at::Tensor move = moves_[inputs_[j]].index_select(0, own.element).to(value_.scalar_type());
      passed = passed + integrals[j] * move;
      reach = reach + (integrals[j] * move).abs();
    }
    const at::Tensor f_from = at_nodes.f.select(0, count);
    const at::Tensor f_to = at_nodes.f.select(0, count + 1);
    const at::Tensor rise = (f_to - f_from).masked_fill_(f_to.eq(f_from), 0);
    const at::Tensor error = NanIsInfinite((rise - passed).abs());
    const at::Tensor finite = FiniteOrZero(at_nodes.f).abs();
    const at::Tensor ends = at::maximum(finite.select(0, count), finite.select(0, count + 1));
    if (halved) {
      const at::Tensor before = own.found.errors.select(0, 0);
      const at::Tensor least = error.view({-1, 2}).amin(1, true).expand({error.numel() / 2, 2}).reshape({-1});
      own.found.shared = (own.found.shared + 1) * least.gt(before * 0.2);
      own.found.errors = at::cat({error.unsqueeze(0), own.found.errors.narrow(0, 0, kHistory - 1)});
      own.found.ends = ends;
    } else {
      own.found = NothingFound(error, ends);
      const at::Tensor seen = at::maximum(peaks_.index_select(0, own.element), finite.amax(0));
      peaks_.index_copy_(0, own.element, seen);
    }
    // Small elements are judged by their own size, though not below what the largest ones lose anyway.
    const at::Tensor size =
        value_.index_select(0, own.element).abs() + FiniteOrZero(f_from).abs() + FiniteOrZero(reach);
    largest_ = std::max(largest_, Largest(size));
    const Verdict verdict =
        Judge(own.found, peaks_.index_select(0, own.element), size + 1e-9 * largest_, tolerance_, last);
    const at::Tensor is_broken = verdict.pole.logical_or(at::isfinite(at_nodes.f).logical_not_().any(0));
    broken_.index_fill_(0, own.element.index_select(0, is_broken.nonzero().squeeze(1)), true);
    const at::Tensor settled = verdict.halve.logical_or(is_broken).logical_not_().nonzero().squeeze(1);
    for (size_t j = 0; j < inputs_.size(); ++j) {
      if (!integrals[j].defined()) continue;
      sums_[j].index_add_(0, own.element.index_select(0, settled), integrals[j].index_select(0, settled));
    }
    return own.Where(verdict.halve.logical_and(is_broken.logical_not()));
  }

  // See Note [Adaptive nodes].
  void Integrate(const at::Tensor& elements) {
    const at::Tensor from = at::zeros(elements.sizes(), value_.options().dtype(at::kDouble));
    const at::Tensor none = at::zeros(elements.sizes(), value_.options());
    Intervals intervals{elements, from, from + 1, NothingFound(none, none)};
    // Most functions need no cut: they are tried with more nodes first.
    for (const int count : {8, 20}) {
      intervals = Round(intervals, count, /*halved=*/false, /*last=*/false);
      if (!differentiable_ || intervals.size() == 0) return;
    }
    constexpr int kNodes = 12;
    int64_t points = 0;
    for (int halvings = 1; intervals.size() > 0; ++halvings) {
      const Intervals halves = intervals.Where(broken_.index_select(0, intervals.element).logical_not_()).Halves();
      if (halves.size() == 0) break;
      points += halves.size() * (kNodes + 2);
      intervals = Round(halves, kNodes, /*halved=*/true, halvings >= kMostHalvings || points > kMostPoints);
    }
  }

  void LinearizeBroken() {
    const at::Tensor elements = broken_.nonzero().squeeze(1);
    if (elements.numel() == 0) return;
    const at::Tensor t = at::full({1, elements.numel()}, 1.0, value_.options().dtype(at::kDouble));
    const Evaluated tangent = Evaluate(elements, t);
    for (size_t j = 0; j < inputs_.size(); ++j) {
      const at::Tensor slope = tangent.derivatives[j].defined() ? tangent.derivatives[j].select(0, 0)
                                                                : at::zeros({elements.numel()}, value_.options());
      sums_[j].index_copy_(0, elements, FiniteOrZero(slope));
    }
  }

  RuleResult Finish() {
    std::vector<Term> terms;
    at::Tensor passed = at::zeros_like(value_);
    for (size_t j = 0; j < inputs_.size(); ++j) {
      // An infinite derivative times a row of zero is NaN, so nothing passes there.
      sums_[j] = FiniteOrZero(sums_[j]).masked_fill_(counted_.logical_not(), 0);
      passed = passed + sums_[j] * FiniteOrZero(moves_[inputs_[j]]).to(value_.scalar_type());
      terms.push_back({inputs_[j], sums_[j].view(output_.sizes())});
    }
    RuleResult result = Elementwise(call_, Kind::kPath, std::move(terms));
    at::Tensor reference = reference_;
    if (Any(broken_)) {
      reference = at::where(broken_, value_ - passed, reference_);
      result.stand_in = reference.view(output_.sizes());
    }
    const at::Tensor rise =
        (value_ - reference).masked_fill_(value_.eq(reference).logical_or_(counted_.logical_not()), 0);
    const double error = Largest((rise - passed).abs());
    const double scale =
        std::max({Largest(FiniteOrZero(value_).abs()), Largest(FiniteOrZero(reference).abs()), Largest(passed.abs())});
    result.exact = false;
    result.quadrature = std::max(tolerance_, scale > 0 ? error / scale : error);
    return result;
  }

  const RuleCall& call_;
  const at::Tensor& output_;
  const double tolerance_;
  std::vector<int> inputs_;  // operands that are decomposed
  // By operand, expanded to the output and flattened; those that are not read stay as they are.
  std::vector<at::Tensor> flat_, references_, moves_;
  std::vector<bool> read_;
  at::Tensor value_, reference_;  // of the output, flattened
  at::Tensor counted_, broken_;   // by element: the value is finite; linearized at the value
  at::Tensor peaks_;              // by element: the largest magnitude seen on the line
  Rows sums_;                     // by input: the mean derivative of each element
  double largest_ = 0;
  bool differentiable_ = true;
};

}  // namespace

RuleResult PathThroughAutograd(const RuleCall& call) { return WholePath(call).Build(); }
RuleResult PathElementwise(const RuleCall& call) { return ElementwisePath(call).Build(); }

}  // namespace addend
