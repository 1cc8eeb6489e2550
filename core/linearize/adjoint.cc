#include "core/linearize/adjoint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/linearize/settle.h"
#include "core/linearize/view.h"
#include "core/rules/joint.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// Whether two elements of a tensor may be one of its storage. Stricter than needed: some that answer yes do not.
bool MayOverlap(at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::SmallVector<std::pair<int64_t, int64_t>, 8> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

// Note [Paid by share of the sum]
// Bias::kSignThreshold pays component c of a node's output the share c / S of a constant, where S is the sum of all
// components, and takes it from the leftover. S does not depend on how the input is split: one forward sweep of one
// component finds it, and c + c / S * constant is linear in c. Components then go on otherwise than the leftover does,
// so that each target needs a cotangent for both: two blocks of rows, [components' ones, leftover's ones].
class Adjoint {
 public:
  // `measure`: also finds what rounding may do at every node; see Measure.
  Adjoint(const Linearization& linearization, const std::vector<at::Tensor>& cotangents, const AdjointOptions& options,
          bool measure)
      : linearization_(linearization),
        trace_(*linearization.trace),
        policy_(linearization.policy),
        seeds_(cotangents),
        options_(options),
        measure_(measure),
        cotangents_(trace_.program.storages.size()),
        owned_(trace_.program.storages.size(), false),
        depth_(trace_.program.storages.size(), 0),
        single_(trace_.program.storages.size(), false) {
    for (const at::Tensor& seed : seeds_) {
      if (!seed.defined()) continue;
      targets_ = seed.size(0);
      double_ = seed.options().dtype(at::kDouble);
    }
    if (targets_ == 0) throw Internal("there is no target");
    const bool pays = std::any_of(linearization.nodes.begin(), linearization.nodes.end(), PaysShares);
    if (pays) sums_ = SumsBeforePayments(linearization);
    count_ = pays ? 2 * targets_ : targets_;
    if (pays && options.nodes) {
      throw Unimplemented("the relevance of operators under the policy bias=sign_threshold; choose another bias");
    }
  }

  AdjointResult Run() {
    FollowDepth();
    result_.components = at::zeros({targets_, trace_.numc}, double_);
    terms_at_starts_ = Zeros();
    for (at::Tensor* sum : {&result_.value, &result_.reference, &result_.leftover}) *sum = Zeros();
    for (size_t p = 0; p < seeds_.size() && !options_.components_only; ++p) ReadTarget(p);
    const std::vector<Node>& nodes = linearization_.nodes;
    for (size_t n = nodes.size(); n-- > 0;) {
      Seed(nodes[n].call);
      GoBack(nodes[n]);
      if (options_.progress) options_.progress(nodes.size() - n, nodes.size());
    }
    Seed(-1);
    for (const Start& start : trace_.starts) result_.starts.push_back(End(start));
    std::reverse(result_.nodes.begin(), result_.nodes.end());
    const at::Tensor terms = result_.components.abs().sum(1);
    result_.mass = terms + result_.leftover.abs() + result_.reference.abs();
    result_.terms = terms.maximum(terms_at_starts_);
    return std::move(result_);
  }

  // The largest |recovery - value| that rounding explains, over what the terms come to.
  double RelativeTolerance() const {
    int64_t depth = 1;
    bool single = false;
    for (size_t p = 0; p < seeds_.size(); ++p) {
      if (!seeds_[p].defined()) continue;
      const Operand& operand = linearization_.probes[p].operand;
      single = single || RealDtype(seeds_[p].scalar_type()) != at::kDouble;
      if (operand.storage < 0) continue;
      depth = std::max(depth, depth_[operand.storage]);
      single = single || single_[operand.storage];
    }
    return policy_.tolerance.value_or(RecoveryTolerance(single, trace_.numc, depth));
  }

  // Where it measures: what the terms at any one node came to, [targets].
  const at::Tensor& largest_terms() const { return largest_terms_; }
  // Where it measures: the node whose two sides differ most for its terms, or none.
  const std::optional<OperatorCheck>& worst() const { return worst_; }
  // Nodes that leave over more than their rules claim.
  const std::vector<OperatorCheck>& suspects() const { return suspects_; }

 private:
  static bool PaysShares(const Node& node) {
    return node.constant.defined() && node.bias == Bias::kSignThreshold && !node.joint;
  }
  at::Tensor Zeros() const { return at::zeros({targets_}, double_); }
  // See Note [Paid by share of the sum].
  at::Tensor OfComponents(const at::Tensor& rows) const { return rows.narrow(0, 0, targets_); }
  at::Tensor OfLeftover(const at::Tensor& rows) const { return rows.narrow(0, count_ - targets_, targets_); }

  const Call& CallOf(const Node& node) const { return trace_.program.calls[node.call]; }
  const StorageInfo& StorageOf(const Operand& operand) const { return trace_.program.storages[operand.storage]; }

  // As the forward sweep counts.
  void FollowDepth() {
    for (const Start& start : trace_.starts) {
      depth_[start.operand.storage] = start.depth;
      single_[start.operand.storage] = RealDtype(start.operand.dtype) != at::kDouble;
    }
    for (const Node& node : linearization_.nodes) {
      int64_t depth = 0;
      bool single = false;
      for (const int input : node.inputs) {
        depth = std::max(depth, depth_[CallOf(node).operands[input].storage]);
        single = single || single_[CallOf(node).operands[input].storage];
      }
      for (const Operand& output : CallOf(node).outputs) {
        if (!CarriesRows(output)) continue;
        depth_[output.storage] = std::max(depth_[output.storage], depth + 1);
        single_[output.storage] = single_[output.storage] || single || RealDtype(output.dtype) != at::kDouble;
      }
    }
    for (const Probe& probe : linearization_.probes) {
      result_.depth.push_back(probe.operand.storage < 0 ? 0 : depth_[probe.operand.storage]);
    }
  }

  at::Tensor ValueOf(const Operand& operand) const {
    return Resolved(trace_.Value(operand)).to(RowDtype(operand.dtype));
  }
  at::Tensor ReferenceOf(const Operand& operand) const {
    return Resolved(trace_.Reference(operand)).to(RowDtype(operand.dtype));
  }

  at::Tensor MoveOfOperand(const Operand& operand) const { return FiniteMove(ValueOf(operand), ReferenceOf(operand)); }
  // What the move of an operand gives to each target.
  at::Tensor ProductsOf(const at::Tensor& cotangents, const Operand& operand) const {
    return ProductsWithMove(OfLeftover(cotangents), ValueOf(operand), ReferenceOf(operand));
  }

  void ReadTarget(size_t p) {
    const at::Tensor& seed = seeds_[p];
    if (!seed.defined()) return;
    const Operand& operand = linearization_.probes[p].operand;
    // Elements that no target asks for may be infinite.
    const at::Tensor unasked = seed.eq(0);
    result_.value += SumOfEach(RealProduct(seed, ValueOf(operand)).masked_fill_(unasked, 0));
    result_.reference += SumOfEach(RealProduct(seed, ReferenceOf(operand)).masked_fill_(unasked, 0));
  }

  // Adds the cotangents of the probes that are taken at `call` or later.
  void Seed(int64_t call) {
    if (seeded_.empty()) seeded_.resize(seeds_.size(), false);
    for (size_t p = 0; p < seeds_.size(); ++p) {
      const Probe& probe = linearization_.probes[p];
      if (seeded_[p] || probe.after_call < call) continue;
      seeded_[p] = true;
      if (!seeds_[p].defined() || !CarriesRows(probe.operand)) continue;
      if (options_.growth) terms_met_ += TermsOf(seeds_[p], probe.operand);
      Accumulate(probe.operand, count_ > targets_ ? at::cat({seeds_[p], seeds_[p]}, 0) : seeds_[p]);
    }
  }

  at::Tensor NewCotangents(const Operand& operand) const {
    const StorageInfo& storage = StorageOf(operand);
    return at::zeros({count_, storage.numel}, double_.dtype(RowDtype(storage.dtype)));
  }

  // The cotangents as an operand views them, [targets, *sizes], but for lazy conjugation and negation.
  at::Tensor ViewFor(const Operand& operand) {
    Operand plain = operand;
    plain.conjugated = plain.negated = false;
    at::Tensor& flat = cotangents_[operand.storage];
    const at::Tensor view = RowsViewOf(flat, plain);
    if (view.defined()) return view;
    flat = Paired(flat);
    owned_[operand.storage] = true;
    return RowsViewOf(flat, plain);
  }

  static at::Tensor Flipped(at::Tensor rows, const Operand& operand) {
    if (operand.conjugated) rows = rows.conj();
    if (operand.negated) rows = rows.neg();
    return Resolved(rows);
  }

  void Accumulate(const Operand& operand, const at::Tensor& given) {
    at::Tensor& flat = cotangents_[operand.storage];
    const StorageInfo& storage = StorageOf(operand);
    const int64_t numel = storage.numel;
    if (CoversWhole(operand, storage)) {
      at::Tensor own = Resolved(given).to(RowDtype(storage.dtype)).reshape({count_, numel});
      if (numel > 1 && own.stride(1) != 1) own = own.contiguous();
      if (!flat.defined()) {
        flat = own;
        owned_[operand.storage] = false;
      } else if (owned_[operand.storage]) {
        flat.add_(own);
      } else {
        flat = flat + own;
        owned_[operand.storage] = true;
      }
      return;
    }
    Own(operand);
    AddInto(operand, Flipped(given.to(RowDtype(operand.dtype)), operand));
  }

  // Makes the cotangents of a storage this sweep's own before they are written.
  void Own(const Operand& operand) {
    at::Tensor& flat = cotangents_[operand.storage];
    if (!flat.defined()) {
      flat = NewCotangents(operand);
    } else if (!owned_[operand.storage]) {
      flat = flat.clone(at::MemoryFormat::Contiguous);
    }
    owned_[operand.storage] = true;
  }

  // Elements that the operand sees several times get the sum.
  void AddInto(const Operand& operand, at::Tensor given) {
    Operand region = operand;
    for (size_t d = 0; d < region.geometry.sizes.size(); ++d) {
      if (region.geometry.strides[d] != 0 || region.geometry.sizes[d] <= 1) continue;
      given = given.sum(static_cast<int64_t>(d) + 1, /*keepdim=*/true);
      region.geometry.sizes[d] = 1;
    }
    if (!MayOverlap(region.geometry.sizes, region.geometry.strides)) {
      ViewFor(region).add_(given);
      return;
    }
    const at::ScalarType stored = StorageOf(operand).dtype;
    const bool pairs = at::isComplexType(stored) && !at::isComplexType(operand.dtype);
    const bool complex = !at::isComplexType(stored) && at::isComplexType(operand.dtype);
    Operand whole = region;
    const int64_t numel = StorageOf(operand).numel;
    whole.geometry = {{pairs ? 2 * numel : complex ? numel / 2 : numel}, {1}, 0};
    const at::Tensor all = ViewFor(whole);
    const at::Tensor numbers = at::arange(all.size(1), given.options().dtype(at::kLong));
    const at::Tensor index = ViewOf(numbers, region.geometry).reshape({-1});
    all.index_add_(1, index, given.reshape({count_, -1}));
  }

  // Takes the cotangent of what a call wrote; undefined where it is zero everywhere.
  at::Tensor Take(const Call& call, const Operand& output) {
    at::Tensor& flat = cotangents_[output.storage];
    if (!flat.defined()) return {};
    at::DimVector sizes = {count_};
    sizes.append(output.geometry.sizes.begin(), output.geometry.sizes.end());
    if (CoversWhole(output, StorageOf(output))) {
      const at::Tensor taken = flat.reshape(sizes);
      flat = at::Tensor();
      return taken;
    }
    const bool born_here = !output.written || call.resized_output;
    if (!born_here) Own(output);
    const at::Tensor region = ViewFor(output);
    const at::Tensor taken = Flipped(born_here ? region : region.clone(at::MemoryFormat::Contiguous), output);
    if (born_here) {
      flat = at::Tensor();
    } else {
      region.zero_();
    }
    return taken;
  }

  void RequireLinear(const Node& node) const {
    if (!node.joint && (!node.constant.defined() || PaysShares(node))) return;
    const Call& call = CallOf(node);
    const Policy own = policy_.For(FullName(call.op.schema()), call.position.module_path);
    throw Error(absl::StatusCode::kFailedPrecondition,
                absl::StrCat(FullName(call.op.schema()), " under the policy ", JointChoice(node, own),
                             " looks at all components together: there is no adjoint"),
                call.position, "decompose forward, or choose another policy");
  }

  void GoBack(const Node& node) {
    RequireLinear(node);
    const Call& call = CallOf(node);
    Rows behind(call.outputs.size());
    bool any = false;
    // The last of several outputs in one place is what was left there.
    for (size_t k = call.outputs.size(); k-- > 0;) {
      if (!CarriesRows(call.outputs[k])) continue;
      behind[k] = Take(call, call.outputs[k]);
      any = any || behind[k].defined();
    }
    if (!any) return;
    if (node.starts) {
      EndRows(call, behind[0]);
      if (options_.nodes) Report(node, behind, at::Tensor());
      return;
    }
    const Rows leftover_behind = behind;
    if (PaysShares(node)) TakePayment(node, behind[0]);
    Rows back;
    if (node.map) back = Transpose(*node.map, behind);
    for (size_t j = 0; j < back.size(); ++j) back[j] = OfParts(back[j], call.operands[node.inputs[j]]);
    behind = leftover_behind;
    const bool seeks_leftover = node.keeps_bracket && !options_.components_only;
    const at::Tensor left = seeks_leftover ? Leftover(node, behind, back) : at::Tensor();
    if (left.defined()) result_.leftover += left;
    if (options_.nodes) Report(node, behind, left);
    if (measure_) Measure(node, behind, back, left);
    if (options_.growth) FollowGrowth(node, behind, back);
    for (size_t j = 0; j < back.size(); ++j) Accumulate(call.operands[node.inputs[j]], back[j]);
  }

  // Turns the cotangents behind a payment into those before it.
  void TakePayment(const Node& node, at::Tensor& behind) {
    if (!behind.defined()) return;
    const at::Tensor& sum = sums_[&node - linearization_.nodes.data()];
    const at::Tensor paid =
        ConstantShares(sum.unsqueeze(0), node.constant.to(sum.scalar_type()), node.bias, node.bias_parameter)
            .select(0, 0);
    result_.leftover -= SumOfEach(RealProduct(OfLeftover(behind), paid));
    // A product with a number transposes to one with its conjugate.
    const at::Tensor share = QuotientOrZero(paid, sum);
    const at::Tensor passed = OfComponents(behind) * (share.is_complex() ? share.conj() + 1 : share + 1);
    behind = at::cat({passed, OfLeftover(behind)}, 0);
  }

  Rows Transpose(const LinearMap& map, const Rows& cotangents) const {
    if (count_ > 1) return map.TransposeRows(cotangents);
    Rows one;
    for (const at::Tensor& g : cotangents) one.push_back(g.defined() ? g.select(0, 0) : g);
    one = map.Transpose(one);
    for (at::Tensor& back : one) back = back.unsqueeze(0);
    return one;
  }

  // NaN and infinity have no parts: nothing comes back to such elements, whatever a map has made of them. (A row of
  // scores that are all infinitely low has probabilities of NaN, and so has the map's transpose there.)
  at::Tensor OfParts(const at::Tensor& back, const Operand& operand) const {
    if (!back.defined() || AllFinite(back)) return back;
    return back.masked_fill(at::isfinite(ValueOf(operand)).logical_not_(), 0);
  }

  // What the outputs' moves give, [targets].
  at::Tensor Passed(const Call& call, const Rows& behind) const {
    at::Tensor sum = Zeros();
    for (size_t k = 0; k < behind.size(); ++k) {
      if (behind[k].defined()) sum += ProductsOf(behind[k], call.outputs[k]);
    }
    return sum;
  }

  at::Tensor CameFrom(const Node& node, const Rows& back) const {
    at::Tensor sum = Zeros();
    for (size_t j = 0; j < back.size(); ++j) {
      sum += ProductsOf(back[j], CallOf(node).operands[node.inputs[j]]);
    }
    return sum;
  }

  // See Note [Brackets seen from a target]. [targets]
  at::Tensor Leftover(const Node& node, const Rows& behind, const Rows& back) {
    const Call& call = CallOf(node);
    if (node.bracket_bound >= 0 || !node.map) {
      const at::Tensor left = Passed(call, behind) - CameFrom(node, back);
      if (node.bracket_bound >= 0 && policy_.check != Check::kOff) CheckBound(node, behind, left);
      return left;
    }
    Rows moves;
    for (const int input : node.inputs) moves.push_back(MoveOfOperand(call.operands[input]).unsqueeze(0));
    const Rows moved = node.map->Forward(moves);
    at::Tensor left = Zeros();
    for (size_t k = 0; k < behind.size(); ++k) {
      if (!behind[k].defined()) continue;
      const Operand& output = call.outputs[k];
      left += ProductsOf(behind[k], output);
      if (k >= moved.size() || !moved[k].defined()) continue;
      at::Tensor passed = Resolved(moved[k]).select(0, 0);
      // Nothing can be missing where the value is not finite.
      const at::Tensor value = ValueOf(output);
      if (!AllFinite(value)) passed = passed.masked_fill(at::isfinite(value).logical_not_(), 0);
      left -= ProductsOfEach(OfLeftover(behind[k]), passed);
    }
    return left;
  }

  // What a bound on the bracket allows it to give.
  void CheckBound(const Node& node, const Rows& behind, const at::Tensor& left) {
    const Call& call = CallOf(node);
    at::Tensor terms = Zeros();
    for (size_t k = 0; k < behind.size(); ++k) {
      if (!behind[k].defined() || behind[k].numel() == 0) continue;
      terms += MagnitudeOfEach(OfLeftover(behind[k])) * std::max(LargestOf(call.outputs[k]), node.inner_terms);
    }
    const at::Tensor found = left.abs();
    if (found.le(terms * node.bracket_bound).all().item<bool>()) return;
    OperatorCheck check;
    check.call = node.call;
    check.kind = node.kind;
    check.bracket = (found / terms.clamp_min(std::numeric_limits<double>::min())).max().item<double>();
    check.bracket_bound = node.bracket_bound;
    check.bracket_holds = false;
    suspects_.push_back(check);
  }

  double LargestOf(const Operand& operand) const {
    return std::max(LargestFinite(ValueOf(operand)), LargestFinite(ReferenceOf(operand)));
  }

  void Report(const Node& node, const Rows& behind, const at::Tensor& left) {
    const Call& call = CallOf(node);
    bool first = true;
    std::vector<NodeRelevance> own;
    for (size_t k = 0; k < behind.size(); ++k) {
      if (!behind[k].defined()) continue;
      NodeRelevance relevance;
      relevance.call = node.call;
      relevance.output = static_cast<int>(k);
      relevance.passed = ProductsOf(behind[k], call.outputs[k]);
      relevance.leftover = first && left.defined() ? left : Zeros();
      first = false;
      own.push_back(std::move(relevance));
    }
    // The whole list is turned round at the end.
    for (auto one = own.rbegin(); one != own.rend(); ++one) result_.nodes.push_back(std::move(*one));
  }

  double TermsOf(const at::Tensor& cotangents, const Operand& operand) const {
    return MagnitudeOfEach(RealProduct(cotangents, MoveOfOperand(operand))).sum().item<double>();
  }

  // See Growth.
  void FollowGrowth(const Node& node, const Rows& behind, const Rows& back) {
    const Call& call = CallOf(node);
    const double before = terms_met_;
    for (size_t k = 0; k < behind.size(); ++k) {
      if (behind[k].defined()) terms_met_ -= TermsOf(behind[k], call.outputs[k]);
    }
    terms_met_ = std::max(terms_met_, 0.0);
    for (size_t j = 0; j < back.size(); ++j) terms_met_ += TermsOf(back[j], call.operands[node.inputs[j]]);
    const double factor = before > 0 ? terms_met_ / before : 1;
    if (factor > result_.growth.factor) result_.growth = {node.call, factor};
  }

  // Asked for only where recovery fails: how large the terms are on both sides of the node, and how far its sides are
  // apart for that. Values are rounded, so a cotangent times the rounding of what it meets is no failure.
  void Measure(const Node& node, const Rows& behind, const Rows& back, const at::Tensor& left) {
    const Call& call = CallOf(node);
    at::Tensor terms = Zeros();
    const auto add = [&](const at::Tensor& g, const Operand& operand) {
      const at::Tensor value = ValueOf(operand).abs();
      at::Tensor size = value + ReferenceOf(operand).abs() + node.inner_terms;
      size = size.masked_fill(at::isfinite(size).logical_not_(), 0);
      terms += SumOfEach(OfLeftover(g).abs() * size);
    };
    for (size_t k = 0; k < behind.size(); ++k) {
      if (behind[k].defined()) add(behind[k], call.outputs[k]);
    }
    for (size_t j = 0; j < back.size(); ++j) add(back[j], call.operands[node.inputs[j]]);
    largest_terms_ = largest_terms_.defined() ? largest_terms_.maximum(terms) : terms;
    at::Tensor apart = Passed(call, behind) - CameFrom(node, back);
    if (left.defined()) apart = apart - left;
    const double error = (apart.abs() / terms.clamp_min(std::numeric_limits<double>::min())).max().item<double>();
    if (worst_ && !std::isnan(error) && error <= worst_->recovery_error) return;
    if (worst_ && std::isnan(worst_->recovery_error) && !std::isnan(error)) return;
    worst_.emplace();
    worst_->call = node.call;
    worst_->kind = node.kind;
    worst_->recovery_error = error;
    worst_->tolerance = RelativeTolerance();
    worst_->recovered = false;
  }

  // ---- where rows begin

  at::Tensor End(const Start& start) {
    const at::Tensor& all = cotangents_[start.operand.storage];
    if (!all.defined()) return {};
    const at::Tensor g = OfComponents(all);
    const at::Tensor products = RealProduct(g, MoveOfOperand(start.operand).reshape({-1}));
    if (start.parts.defined()) {
      const at::Tensor parts = start.parts.to(g.scalar_type());
      const at::Tensor given = g.is_complex() ? at::real(at::matmul(g.conj(), parts.t())) : at::matmul(g, parts.t());
      result_.components += given.to(at::kDouble);
      if (start.leftover.defined()) {
        result_.leftover += SumOfEach(RealProduct(OfLeftover(all), start.leftover.to(g.scalar_type())));
      }
    } else {
      AddByLabel(products, start.labels);
    }
    if (start.inside) return RowsViewOf(products, *start.inside).contiguous();
    at::DimVector sizes = {targets_};
    sizes.append(start.operand.geometry.sizes.begin(), start.operand.geometry.sizes.end());
    return products.reshape(sizes);
  }

  // What moved in no component is leftover.
  void EndRows(const Call& call, const at::Tensor& g) {
    const RowStart start = trace_.StartOf(call);
    const at::Tensor here = start.bags.defined() ? g.index_select(1, start.bags) : g;
    const bool vectors = start.labels.dim() < start.moves.dim();
    const at::Tensor products = RealProduct(OfComponents(here), start.moves);
    AddByLabel((vectors ? products.sum(-1) : products).reshape({targets_, -1}), start.labels.reshape({-1}));
    const at::Tensor inside = start.labels.ge(0);
    if (options_.components_only || inside.all().item<bool>()) return;
    const at::Tensor outside = start.moves.masked_fill(vectors ? inside.unsqueeze(-1) : inside, 0);
    result_.leftover += SumOfEach(RealProduct(OfLeftover(here), outside));
  }

  // products: [targets, elements], labels: [elements].
  void AddByLabel(const at::Tensor& products, const at::Tensor& labels) {
    const at::Tensor own = labels.to(products.device());
    const at::Tensor outside = own.lt(0);
    const at::Tensor taken = products.to(at::kDouble).masked_fill(outside, 0);
    terms_at_starts_ += taken.abs().sum(1);
    result_.components.scatter_add_(1, own.clamp_min(0).unsqueeze(0).expand(taken.sizes()), taken);
  }

  const Linearization& linearization_;
  const TracedRun& trace_;
  const Policy& policy_;
  const std::vector<at::Tensor>& seeds_;
  const AdjointOptions& options_;
  const bool measure_;
  int64_t targets_ = 0;
  int64_t count_ = 0;             // rows of cotangents
  std::vector<at::Tensor> sums_;  // by node that pays shares: [*S]
  at::TensorOptions double_;
  std::vector<bool> seeded_;            // by probe
  std::vector<at::Tensor> cotangents_;  // by storage: [targets, numel]; undefined: zero
  std::vector<bool> owned_;             // by storage: nobody else has its cotangents
  std::vector<int64_t> depth_;          // by storage
  std::vector<bool> single_;            // by storage
  at::Tensor terms_at_starts_;          // [targets]: what the elements that rows begin with come to
  double terms_met_ = 0;                // see Growth
  at::Tensor largest_terms_;
  std::optional<OperatorCheck> worst_;
  std::vector<OperatorCheck> suspects_;
  AdjointResult result_;
};

// Judges recovery at every target. A failure is looked into by a second sweep, which names the operator.
class Judge {
 public:
  Judge(const Linearization& linearization, const std::vector<at::Tensor>& cotangents)
      : linearization_(linearization), cotangents_(cotangents) {}

  void Look(const Adjoint& sweep, AdjointResult& result) const {
    const Policy& policy = linearization_.policy;
    if (policy.check == Check::kOff) return;
    for (OperatorCheck suspect : sweep.suspects()) {
      suspect.absorbed = policy.on_failure == OnFailure::kAbsorb;  // a bracket that is kept is in the leftover already
      Fail(suspect, result);
    }
    const at::Tensor recovery = result.components.sum(1) + result.leftover + result.reference;
    // Like the forward sweep, nothing is said about values that are not finite.
    const at::Tensor counted = at::isfinite(result.value);
    const at::Tensor missing = (result.value - recovery).masked_fill(counted.logical_not(), 0);
    const at::Tensor scale = result.value.abs();
    const double relative = sweep.RelativeTolerance();
    const at::Tensor terms = result.mass.maximum(result.terms + result.reference.abs());
    at::Tensor allowed = at::where(counted, terms.maximum(scale), scale) * relative;
    const auto holds = [&] { return missing.abs().le(allowed).logical_or(counted.logical_not()); };
    std::optional<OperatorCheck> failure;
    if (!holds().all().item<bool>()) {
      // What components cancel to may be much smaller than what they were summed from on the way.
      const AdjointOptions no_options;
      Adjoint again(linearization_, cotangents_, no_options, /*measure=*/true);
      again.Run();
      if (again.largest_terms().defined()) allowed = allowed.maximum(again.largest_terms() * relative);
      if (!holds().all().item<bool>()) failure = again.worst().value_or(OperatorCheck());
    }
    const at::Tensor over = at::where(scale.gt(0), scale, at::ones_like(scale));
    const at::Tensor errors = missing.abs() / over;
    result.recovery_error = errors.numel() == 0 ? 0 : errors.max().item<double>();
    result.tolerance = errors.numel() == 0 ? 0 : (allowed / over).index({errors.argmax()}).item<double>();
    if (!failure) return;
    failure->recovery_error = result.recovery_error;
    failure->tolerance = result.tolerance;
    if (policy.on_failure == OnFailure::kAbsorb) {
      result.leftover = result.leftover + at::where(holds(), at::zeros_like(missing), missing);
      failure->absorbed = true;
    }
    Fail(*failure, result);
  }

 private:
  void Fail(const OperatorCheck& check, AdjointResult& result) const {
    if (linearization_.policy.on_failure != OnFailure::kError) {
      result.failures.push_back(check);
      return;
    }
    const std::vector<Call>& calls = linearization_.trace->program.calls;
    const bool known = check.call >= 0;
    const std::string name = known ? FullName(calls[check.call].op.schema()) : "the model";
    const std::string what =
        check.bracket_holds
            ? absl::StrCat("tracing failure: the parts of a target differ from its value by ", check.recovery_error,
                           " of it, tolerance ", check.tolerance, "; the transpose of ", name, " fits its map worst")
            : absl::StrCat("tracing failure: the coefficients of ", name, " leave a bracket of ", check.bracket,
                           " of its value, bound ", check.bracket_bound);
    throw Error(absl::StatusCode::kInternal, what, known ? calls[check.call].position : Position(),
                "policy on_failure=warn goes on and reports it, on_failure=absorb makes it leftover");
  }

  const Linearization& linearization_;
  const std::vector<at::Tensor>& cotangents_;
};

}  // namespace

AdjointResult SweepBackward(const Linearization& linearization, const std::vector<at::Tensor>& cotangents,
                            const AdjointOptions& options) {
  const c10::AutoGradMode no_grad(false);
  if (cotangents.size() != linearization.probes.size()) throw Internal("not one cotangent for each probe");
  Adjoint sweep(linearization, cotangents, options, /*measure=*/false);
  AdjointResult result = sweep.Run();
  if (!options.components_only) Judge(linearization, cotangents).Look(sweep, result);
  return result;
}

}  // namespace addend
