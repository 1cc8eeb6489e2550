#include "core/rules/path.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/intervals.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool CarriesRows(const at::Tensor& t) { return t.defined() && (t.is_floating_point() || t.is_complex()); }

// Complex numbers as pairs of real ones, in a last dimension of their own.
at::Tensor Real(const at::Tensor& t) { return t.is_complex() ? at::view_as_real(t.resolve_conj()) : t; }
at::Tensor FlatReal(const at::Tensor& t) { return Real(t).reshape({-1}); }

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
    const std::vector<at::Tensor> results = call_.run(call_.arguments, point);
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

  at::ScalarType Dtype(int output) const {
    const at::ScalarType dtype = call_.outputs[output].value.scalar_type();
    return dtype == at::kDouble || dtype == at::kComplexDouble ? at::kDouble : at::kFloat;
  }

  // How far apart two runs of one operator may lie, of its largest value: kernels of other layouts add in another
  // order, and values of half types were rounded after they were computed.
  static double Repeatable(at::ScalarType recorded) {
    if (recorded == at::kDouble || recorded == at::kComplexDouble) return 1e-6;
    return recorded == at::kFloat || recorded == at::kComplexFloat ? 1e-3 : 0.02;
  }

  // An operator that gives something else each time has no line to follow.
  void CheckRepeatable(const Evaluated& value) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const at::Tensor recorded = FlatReal(call_.outputs[outputs_[k]].value).to(value.f[k].scalar_type());
      const at::Tensor missed = (recorded - value.f[k]).abs().masked_fill_(recorded.eq(value.f[k]), 0);
      const double size = std::max(Largest(FiniteOrZero(recorded).abs()), Largest(FiniteOrZero(value.f[k]).abs()));
      if (Any(FiniteOrZero(missed).gt(size * Repeatable(call_.outputs[outputs_[k]].value.scalar_type())))) {
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
          Judge(interval.found[k], peaks_[k], scale, QuadratureTolerance(error), interval.halvings >= kMostHalvings);
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
      for (size_t k = 0; k < errors.size(); ++k) whole.found.push_back(Found::First(errors[k], EndsOf(whole, k)));
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
          const at::Tensor& own = errors[&half == &halves[0] ? 0 : 1][k];
          const at::Tensor least = at::minimum(errors[0][k], errors[1][k]);
          half.found.push_back(Found::OfHalf(parent.found[k], own, least, EndsOf(half, k)));
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
      if (any_broken) {
        reference = at::where(broken, recorded - passed, reference);
        result.stand_ins.resize(call_.outputs.size());
        result.stand_ins[outputs_[k]] = output.value.is_complex()
                                            ? at::view_as_complex(reference.view(Real(output.value).sizes()))
                                            : reference.view(output.value.sizes());
      }
      const at::Tensor rise =
          (recorded - reference).masked_fill_(recorded.eq(reference).logical_or_(counted_[k].logical_not()), 0);
      const double error = Largest((rise - passed).abs());
      const double scale = std::max(
          {Largest(FiniteOrZero(recorded).abs()), Largest(FiniteOrZero(reference).abs()), Largest(passed.abs())});
      result.quadrature =
          std::max({result.quadrature, QuadratureTolerance(recorded), scale > 0 ? error / scale : error});
    }
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
    at::DimVector sizes = WithRows(count, like.sizes());
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

}  // namespace

RuleResult PathThroughAutograd(const RuleCall& call) { return WholePath(call).Build(); }

}  // namespace addend
