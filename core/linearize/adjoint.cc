#include "core/linearize/adjoint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/real.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/linearize/backward_observers.h"
#include "core/linearize/cotangents.h"
#include "core/linearize/judge.h"
#include "core/linearize/label_sums.h"
#include "core/linearize/payments.h"
#include "core/linearize/rounding.h"
#include "core/linearize/sweep.h"
#include "core/linearize/target_products.h"
#include "core/program/view.h"
#include "core/rules/kinds.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

int64_t TargetsOf(const std::vector<at::Tensor>& seeds) {
  for (const at::Tensor& seed : seeds) {
    if (seed.defined() && seed.size(0) > 0) return seed.size(0);
  }
  throw Internal("there is no target");
}

at::TensorOptions OptionsOf(const std::vector<at::Tensor>& seeds) {
  at::TensorOptions options;
  for (const at::Tensor& seed : seeds) {
    if (seed.defined()) options = seed.options();
  }
  return options;
}

bool SomePayByShare(const Linearization& linearization) {
  return std::any_of(linearization.nodes.begin(), linearization.nodes.end(), PaysByShare);
}

// Sends the cotangents of all targets back through the nodes, last node first: what a call wrote is taken, transposed
// and added to what the call read. Where nodes pay by share of the sum (see payments.h), components go on otherwise
// than the leftover does, so that each target needs a cotangent for both: two blocks of rows.
class Adjoint {
 public:
  Adjoint(const Linearization& linearization, const std::vector<at::Tensor>& cotangents, const AdjointOptions& options,
          std::vector<BackwardObserver*> observers)
      : linearization_(linearization),
        trace_(*linearization.trace),
        policy_(linearization.policy),
        seeds_(cotangents),
        options_(options),
        observers_(std::move(observers)),
        products_(trace_, TargetsOf(cotangents), (SomePayByShare(linearization) ? 2 : 1) * TargetsOf(cotangents),
                  OptionsOf(cotangents)),
        cotangents_(trace_, products_.rows()),
        seeded_(seeds_.size(), false) {
    RequireLinear(linearization, kCannot, kHint);
    if (!products_.has_blocks()) return;
    if (options.nodes) {
      throw Unimplemented("the relevance of operators under the policy bias=sign_threshold; choose another bias");
    }
    sums_ = SumsBeforePayments(linearization);
  }

  AdjointResult Run() {
    result_.components = products_.Zeros(trace_.numc + trace_.ElementsRead());
    result_.leftover = products_.Zeros();
    for (size_t p = 0; p < seeds_.size() && !options_.components_only; ++p) ReadTarget(p);
    const auto calls = static_cast<int64_t>(trace_.calls.size());
    ForEachNodeBackward(linearization_, /*hold=*/!observers_.empty(), [&](const Node& node, int64_t n) {
      if (n < 0) RequireLinear(linearization_, node, kCannot, kHint);
      Seed(node.call);
      GoBack(node, n);
      if (options_.progress) Report(node, n, calls);
    });
    if (options_.progress && linearization_.stretches != nullptr) options_.progress(calls, calls);
    Seed(-1);
    for (const Start& start : trace_.starts) result_.starts.push_back(End(start));
    AddUp();
    return std::move(result_);
  }

  // The brackets that have a bound; their numbers are on the CPU.
  const std::vector<BoundedBracket>& bounded() const { return bounded_; }

 private:
  static constexpr char kCannot[] = "be transposed";
  static constexpr char kHint[] = "decompose forward, or choose another policy";

  // In nodes, or, where their number is not known, in calls.
  void Report(const Node& node, int64_t n, int64_t calls) const {
    const auto nodes = static_cast<int64_t>(linearization_.nodes.size());
    n < 0 ? options_.progress(calls - node.call, calls) : options_.progress(nodes - n, nodes);
  }

  // Brings the numbers of the targets to the CPU, by one read, and fills what the others are judged by.
  void AddUp() {
    for (at::Tensor* sum : {&result_.value, &result_.reference, &terms_at_starts_}) {
      if (!sum->defined()) *sum = products_.Zeros();
    }
    result_.given = SumOfEach(result_.components);
    at::Tensor parts = MagnitudeOfEach(result_.components);
    std::vector<at::Tensor*> all = {&parts,         &terms_at_starts_,  &result_.given,
                                    &result_.value, &result_.reference, &result_.leftover};
    for (BoundedBracket& one : bounded_) {
      all.push_back(&one.left);
      all.push_back(&one.terms);
    }
    std::vector<at::Tensor> rows;
    for (const at::Tensor* row : all) rows.push_back(*row);
    const std::vector<at::Tensor> read = ReadNumbers(at::stack(rows)).unbind();
    for (size_t k = 0; k < all.size(); ++k) *all[k] = read[k];
    result_.mass = parts + result_.leftover.abs() + result_.reference.abs();
    result_.terms = parts.maximum(terms_at_starts_);
  }

  static void AddTo(at::Tensor& sum, const at::Tensor& part) {
    if (sum.defined()) {
      sum += part;
    } else {
      sum = part;
    }
  }

  void ReadTarget(size_t p) {
    const at::Tensor& seed = seeds_[p];
    if (!seed.defined()) return;
    const Operand& operand = linearization_.probes[p].operand;
    const auto weighed = [&](const at::Tensor& numbers) {
      if (trace_.At(operand).IsFinite() || (numbers.device().is_cpu() && AllFinite(numbers))) {
        return ProductsOfEach(seed, numbers);
      }
      // Elements that no target asks for may be infinite.
      return SumOfEach(RealProduct(seed, numbers).masked_fill_(seed.eq(0), 0));
    };
    AddTo(result_.value, weighed(products_.Value(operand)));
    AddTo(result_.reference, weighed(products_.Reference(operand)));
  }

  // Adds the cotangents of the probes that are taken at `call` or later.
  void Seed(int64_t call) {
    for (size_t p = 0; p < seeds_.size(); ++p) {
      const Probe& probe = linearization_.probes[p];
      if (seeded_[p] || probe.after_call < call) continue;
      seeded_[p] = true;
      if (!seeds_[p].defined() || !CarriesRows(probe.operand)) continue;
      for (BackwardObserver* observer : observers_) observer->AfterSeed(products_, seeds_[p], probe.operand);
      cotangents_.Add(probe.operand, products_.has_blocks() ? at::cat({seeds_[p], seeds_[p]}, 0) : seeds_[p]);
    }
  }

  void GoBack(const Node& node, int64_t n) {
    const Call& call = products_.CallOf(node);
    Rows behind(call.outputs.size());
    bool any = false;
    // If several outputs share memory, only the last one written is left there: visit it first.
    for (size_t k = call.outputs.size(); k-- > 0;) {
      if (!CarriesRows(call.outputs[k])) continue;
      behind[k] = cotangents_.Take(call, call.outputs[k]);
      any = any || behind[k].defined();
    }
    if (!any) return;
    Rows back;
    at::Tensor left;
    if (node.starts) {
      EndRows(call, behind[0]);
      for (BackwardObserver* observer : observers_) observer->AfterStart(products_, {node, behind, back, left});
      return;
    }
    if (node.map) back = Transpose(*node.map, PaysByShare(node) ? BeforePayment(node, n, behind) : behind);
    for (size_t j = 0; j < back.size(); ++j) back[j] = OfParts(back[j], call.operands[node.inputs[j]]);
    if (node.keeps_bracket && !options_.components_only) {
      left = Leftover(node, behind, back);
      result_.leftover += left;
    }
    for (BackwardObserver* observer : observers_) observer->AfterNode(products_, {node, behind, back, left});
    for (size_t j = 0; j < back.size(); ++j) cotangents_.Add(call.operands[node.inputs[j]], back[j]);
  }

  // Turns the cotangents behind a payment into those before it.
  Rows BeforePayment(const Node& node, int64_t n, Rows behind) {
    if (!behind[0].defined()) return behind;
    const auto [paid, share] = PaymentOf(node, sums_[n]);
    const at::Tensor of_leftover = products_.OfLeftover(behind[0]);
    result_.leftover -= SumOfEach(RealProduct(of_leftover, paid));
    // A product with a number transposes to one with its conjugate.
    const at::Tensor factor = share.is_complex() ? share.conj() + 1 : share + 1;
    behind[0] = at::cat({products_.OfComponents(behind[0]) * factor, of_leftover}, 0);
    return behind;
  }

  Rows Transpose(const LinearMap& map, const Rows& cotangents) const {
    if (products_.rows() > 1) return map.TransposeRows(cotangents);
    Rows one;
    for (const at::Tensor& g : cotangents) one.push_back(g.defined() ? Select(g, 0, 0) : g);
    one = map.Transpose(one);
    for (at::Tensor& back : one) back = Unsqueezed(back, 0);
    return one;
  }

  // NaN and infinity have no parts: nothing comes back to such elements, whatever a map has made of them. (A row of
  // scores that are all infinitely low has probabilities of NaN, and so has the map's transpose there.)
  at::Tensor OfParts(const at::Tensor& back, const Operand& operand) const {
    if (!back.defined() || trace_.At(operand).value_is_finite || (back.device().is_cpu() && AllFinite(back)))
      return back;
    at::Tensor lost = at::isfinite(products_.Value(operand)).logical_not_();
    // A finite cotangent stays as it is, on each device.
    if (!back.device().is_cpu()) lost = lost.logical_and(at::isfinite(back).all().logical_not());
    return back.masked_fill(lost, 0);
  }

  // Zero where an operand's value is not finite.
  at::Tensor WhereFinite(const at::Tensor& numbers, const Operand& operand) const {
    if (trace_.At(operand).value_is_finite) return numbers;
    const at::Tensor value = products_.Value(operand);
    if (value.device().is_cpu() && AllFinite(value)) return numbers;
    return numbers.masked_fill(at::isfinite(value).logical_not_(), 0);
  }

  // See Note [Brackets seen from a target]. [targets]
  at::Tensor Leftover(const Node& node, const Rows& behind, const Rows& back) {
    if (node.bracket_bound >= 0 || !node.map) {
      const at::Tensor left = products_.OfOutputs(node, behind) - products_.OfInputs(node, back);
      if (node.bracket_bound >= 0 && policy_.check != Check::kOff) KeepBracket(node, behind, left);
      return left;
    }
    const Call& call = products_.CallOf(node);
    Rows moves;
    for (const int input : node.inputs) moves.push_back(Unsqueezed(products_.Move(call.operands[input]), 0));
    const Rows moved = node.map->Forward(moves);
    at::Tensor left = products_.Zeros();
    for (size_t k = 0; k < behind.size(); ++k) {
      if (!behind[k].defined()) continue;
      left += products_.OfMove(behind[k], call.outputs[k]);
      if (k >= moved.size() || !moved[k].defined()) continue;
      // Count elements with a non-finite value as zero: nothing can be missing from them.
      const at::Tensor passed = WhereFinite(Select(Resolved(moved[k]), 0, 0), call.outputs[k]);
      left -= ProductsOfEach(products_.OfLeftover(behind[k]), passed);
    }
    return left;
  }

  // Keeps what a bound on the bracket is judged by, at the end: nobody waits for numbers on the way.
  void KeepBracket(const Node& node, const Rows& behind, const at::Tensor& left) {
    const Call& call = products_.CallOf(node);
    at::Tensor terms;
    for (size_t k = 0; k < behind.size(); ++k) {
      if (!behind[k].defined() || behind[k].numel() == 0) continue;
      AddTo(terms, products_.LargestTerms(behind[k], call.outputs[k], node.inner_terms));
    }
    bounded_.push_back({node.call, node.kind, node.bracket_bound, left, terms.defined() ? terms : products_.Zeros()});
  }

  // ---- where rows begin

  at::Tensor End(const Start& start) {
    const at::Tensor& all = cotangents_.Flat(start.operand.storage);
    if (!all.defined()) return {};
    const at::Tensor g = products_.OfComponents(all);
    const at::Tensor products = RealProduct(g, products_.Move(start.operand).reshape({-1}));
    if (start.parts.defined()) {
      const at::Tensor parts = start.parts.to(g.scalar_type());
      const at::Tensor given = g.is_complex() ? at::real(at::matmul(g.conj(), parts.t())) : at::matmul(g, parts.t());
      result_.components += given.to(at::kDouble);
      if (start.leftover.defined()) {
        result_.leftover += SumOfEach(RealProduct(products_.OfLeftover(all), start.leftover.to(g.scalar_type())));
      }
    } else {
      AddLabelled(products, start.labels);
    }
    if (start.inside) return RowsViewOf(products, *start.inside).contiguous();
    at::DimVector sizes = {products_.targets()};
    sizes.append(start.operand.geometry.sizes.begin(), start.operand.geometry.sizes.end());
    return products.reshape(sizes);
  }

  // Ends rows at their start. Moves of elements without a label belong to no component and go to the leftover.
  void EndRows(const Call& call, const at::Tensor& g) {
    const RowStart start = trace_.StartOf(call);
    const at::Tensor here = start.bags.defined() ? g.index_select(1, start.bags) : g;
    const bool vectors = start.labels.dim() < start.moves.dim();
    const at::Tensor products = RealProduct(products_.OfComponents(here), start.moves);
    AddLabelled((vectors ? products.sum(-1) : products).reshape({products_.targets(), -1}), start.labels.reshape({-1}));
    const at::Tensor inside = start.labels.ge(0);
    if (options_.components_only || (inside.device().is_cpu() && ReadFlag(inside.all()))) return;
    const at::Tensor outside = RealProduct(products_.OfLeftover(here), start.moves);
    result_.leftover += SumOfEach(outside.masked_fill(vectors ? inside.unsqueeze(-1) : inside, 0));
  }

  // products: [targets, elements], labels: [elements].
  void AddLabelled(const at::Tensor& products, const at::Tensor& labels) {
    const at::Tensor own = labels.to(products.device()).unsqueeze(0);
    AddTo(terms_at_starts_, AddByLabel(products.unsqueeze(1), own, result_.components.unsqueeze(1)).select(1, 0));
  }

  const Linearization& linearization_;
  const TracedRun& trace_;
  const Policy& policy_;
  const std::vector<at::Tensor>& seeds_;
  const AdjointOptions& options_;
  const std::vector<BackwardObserver*> observers_;
  const TargetProducts products_;
  Cotangents cotangents_;
  std::vector<bool> seeded_;      // by probe
  std::vector<at::Tensor> sums_;  // by node that pays by share: [*S]
  at::Tensor terms_at_starts_;    // [targets]: what the elements that rows begin with come to
  std::vector<BoundedBracket> bounded_;
  AdjointResult result_;
};

}  // namespace

AdjointResult SweepBackward(const Linearization& linearization, const std::vector<at::Tensor>& cotangents,
                            const AdjointOptions& options) {
  const c10::AutoGradMode no_grad(false);
  if (cotangents.size() != linearization.probes.size()) throw Internal("not one cotangent for each probe");
  RelevanceObserver relevance;
  GrowthObserver growth;
  std::vector<BackwardObserver*> observers;
  if (options.nodes) observers.push_back(&relevance);
  if (options.growth) observers.push_back(&growth);
  Adjoint sweep(linearization, cotangents, options, observers);
  AdjointResult result = sweep.Run();
  result.nodes = relevance.Take();
  result.growth = growth.Find();
  Rounding rounding(linearization);
  rounding.FollowAll();
  for (const Probe& probe : linearization.probes) {
    result.depth.push_back(rounding.Depth(probe.operand));
    result.single.push_back(rounding.IsSingle(probe.operand));
  }
  if (options.components_only || linearization.policy.check == Check::kOff) return result;
  const auto sweep_again = [&](BackwardObserver* observer) {
    const AdjointOptions no_options;
    Adjoint(linearization, cotangents, no_options, {observer}).Run();
  };
  JudgeTargets(linearization, rounding, cotangents, sweep.bounded(), sweep_again, result);
  return result;
}

}  // namespace addend
