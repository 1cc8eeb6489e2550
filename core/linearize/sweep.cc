#include "core/linearize/sweep.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/linearize/part.h"
#include "core/linearize/settle.h"
#include "core/linearize/view.h"
#include "core/rules/joint.h"

namespace addend {
namespace {

// Note [The move row]
// Behind the rows of components and leftover there is one more: the move, value - reference, of the tensor itself. It
// goes through every map with the others, comes out as L(move), gives the bracket, and is then set to the output's own
// move. So a bracket costs one row more instead of a second run of every operator.
class Sweep {
 public:
  Sweep(const Linearization& linearization, const std::function<void(int64_t, int64_t)>& progress)
      : linearization_(linearization),
        trace_(*linearization.trace),
        policy_(linearization.policy),
        progress_(progress),
        num_rows_(trace_.numc + 2),
        terms_(trace_.numc),
        rows_(trace_.program.storages.size()),
        owners_(trace_.program.storages.size()),
        sums_(trace_.program.storages.size()),
        errors_(trace_.program.storages.size(), 0),
        depth_(trace_.program.storages.size(), 0),
        single_(trace_.program.storages.size(), false),
        last_use_(trace_.program.storages.size(), -1) {}

  // Also writes SumsBeforePayments.
  void Collect(std::vector<at::Tensor>* sums) { sums_before_ = sums; }
  // How many components there are in all, for tolerances.
  void JudgeAs(int64_t components) { terms_ = components; }
  // Rows are components only; see SweepComponents.
  void ComponentsOnly(const std::vector<at::Tensor>* sums) {
    sums_of_all_ = sums;
    num_rows_ = trace_.numc;
  }

  // Whether a check of outputs alone has failed, which says too little.
  bool suspect() const { return suspect_; }

  SweepResult Run() {
    result_.probes.resize(linearization_.probes.size());
    FindLastUses();
    for (const Start& start : trace_.starts) {
      if (last_use_[start.operand.storage] >= 0) Begin(start);
    }
    size_t next_probe_call = 0;
    TakeProbes(-1);
    const int64_t total = static_cast<int64_t>(linearization_.nodes.size());
    for (int64_t n = 0; n < total; ++n) {
      const Node& node = linearization_.nodes[n];
      // Probes of views lie between nodes.
      for (; static_cast<int64_t>(next_probe_call) < node.call; ++next_probe_call) TakeProbes(next_probe_call);
      const auto begin = std::chrono::steady_clock::now();
      Apply(node, n);
      if (node.constant.defined()) PayConstant(node);
      Finish(node, begin);
      for (; static_cast<int64_t>(next_probe_call) <= node.call; ++next_probe_call) TakeProbes(next_probe_call);
      Release(node, n);
      if (progress_) progress_(n + 1, total);
    }
    for (; next_probe_call < trace_.program.calls.size(); ++next_probe_call) TakeProbes(next_probe_call);
    return std::move(result_);
  }

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  const Call& CallOf(const Node& node) const { return trace_.program.calls[node.call]; }

  // The last node that reads or writes each storage; probed storages live to the end.
  void FindLastUses() {
    for (size_t n = 0; n < linearization_.nodes.size(); ++n) {
      const Node& node = linearization_.nodes[n];
      for (const int input : node.inputs) last_use_[CallOf(node).operands[input].storage] = static_cast<int64_t>(n);
      for (const Operand& output : CallOf(node).outputs) {
        if (CarriesRows(output)) last_use_[output.storage] = static_cast<int64_t>(n);
      }
    }
    for (const Probe& probe : linearization_.probes) {
      if (CarriesRows(probe.operand)) last_use_[probe.operand.storage] = kForever;
    }
  }

  at::Tensor NewRows(const Operand& operand) const {
    return at::zeros({num_rows_, StorageOf(operand).numel}, RowOptions(operand));
  }

  at::TensorOptions RowOptions(const Operand& operand) const {
    return trace_.At(operand).value.options().dtype(RowDtype(StorageOf(operand).dtype));
  }

  const StorageInfo& StorageOf(const Operand& operand) const { return trace_.program.storages[operand.storage]; }

  // The rows of a tensor: [R, *sizes]. May be lazily conjugated or negated; writes land where they belong.
  at::Tensor RowsOf(const Operand& operand) {
    at::Tensor& flat = rows_[operand.storage];
    if (!flat.defined()) {
      flat = NewRows(operand);
      owners_[operand.storage] = std::make_shared<char>();
    }
    const at::Tensor view = RowsViewOf(flat, operand);
    if (view.defined()) return view;
    flat = Paired(flat);
    owners_[operand.storage] = std::make_shared<char>();
    return RowsViewOf(flat, operand);
  }

  // Makes the rows of a storage this sweep's own before they are written.
  void Own(const Operand& operand) {
    at::Tensor& flat = rows_[operand.storage];
    if (!flat.defined()) {
      flat = NewRows(operand);
    } else if (owners_[operand.storage].use_count() > 1) {
      flat = flat.clone(at::MemoryFormat::Contiguous);
    } else {
      return;
    }
    owners_[operand.storage] = std::make_shared<char>();
  }

  // Where both have the same memory.
  void ShareOwner(int from, int to) {
    if (from < 0 || from == to || !rows_[from].defined() || !rows_[to].defined()) return;
    if (rows_[from].storage().unsafeGetStorageImpl() == rows_[to].storage().unsafeGetStorageImpl()) {
      owners_[to] = owners_[from];
    }
  }

  void Drop(int storage) {
    rows_[storage] = at::Tensor();
    sums_[storage] = at::Tensor();
    owners_[storage].reset();
  }

  // Rows of a storage that has none yet; `rows`: [R, *sizes].
  void Put(const Operand& operand, const at::Tensor& rows) {
    const StorageInfo& storage = StorageOf(operand);
    const int64_t numel = storage.numel;
    if (rows.is_complex() && !at::isComplexType(operand.dtype)) throw Internal("complex rows of a real tensor");
    if (CoversWhole(operand, storage)) {
      const at::Tensor flat = Resolved(rows).to(RowDtype(storage.dtype)).reshape({num_rows_, numel});
      rows_[operand.storage] = numel > 1 && flat.stride(1) != 1 ? flat.contiguous() : flat;
      owners_[operand.storage] = std::make_shared<char>();
      return;
    }
    rows_[operand.storage] = NewRows(operand);
    owners_[operand.storage] = std::make_shared<char>();
    RowsOf(operand).copy_(rows);
  }

  // Rows begin: with the parts that are given, or each element in the component of its label.
  void Begin(const Start& start) {
    const Operand& operand = start.operand;
    at::Tensor rows = NewRows(operand);
    const at::Tensor move = Move(operand).flatten();
    depth_[operand.storage] = start.depth;
    single_[operand.storage] = IsSingle(operand);
    if (start.parts.defined()) {
      rows.narrow(0, 0, trace_.numc).copy_(start.parts);
      if (start.leftover.defined() && HasAll()) rows.select(0, LeftoverRow()).copy_(start.leftover);
    } else {
      const at::Tensor where = start.labels.to(move.device());
      const at::Tensor taken = where.ge(0);
      rows.scatter_(0, where.clamp_min(0).unsqueeze(0), (move * taken).unsqueeze(0));
    }
    if (HasAll()) rows.select(0, MoveRow()).copy_(move);
    rows_[operand.storage] = rows;
    owners_[operand.storage] = std::make_shared<char>();
  }

  at::Tensor Move(const Operand& operand) const {
    const at::ScalarType dtype = RowDtype(operand.dtype);
    const at::Tensor value = trace_.Value(operand).to(dtype);
    const at::Tensor reference = trace_.Reference(operand).to(dtype);
    return MoveOf(value, reference);
  }

  void Apply(const Node& node, int64_t n) {
    const Call& call = CallOf(node);
    int64_t depth = 0;
    bool single = false;
    for (const int input : node.inputs) {
      depth = std::max(depth, depth_[call.operands[input].storage]);
      single = single || single_[call.operands[input].storage];
    }
    for (const Operand& output : call.outputs) {
      if (!CarriesRows(output)) continue;
      depth_[output.storage] = std::max(depth_[output.storage], depth + 1);
      single_[output.storage] = single_[output.storage] || single || IsSingle(output);
    }
    keeps_rows_ = false;
    if (node.starts) {
      StartRows(call);
      return;
    }
    keeps_rows_ = KeepsRows(node, call);
    if (keeps_rows_) return;
    for (const Operand& output : call.outputs) {
      if (CarriesRows(output)) sums_[output.storage] = at::Tensor();
    }
    if (!TryInPlace(node, call, n)) {
      Rows inputs;
      for (const int input : node.inputs) inputs.push_back(Resolved(RowsOf(call.operands[input])));
      Rows outputs;
      if (node.joint) {
        outputs = node.joint(inputs);
      } else if (node.map) {
        outputs = node.map->Forward(inputs);
      }
      inputs.clear();
      for (size_t k = 0; k < call.outputs.size(); ++k) {
        const Operand& output = call.outputs[k];
        if (!CarriesRows(output)) continue;
        const bool given = k < outputs.size() && outputs[k].defined();
        const bool fresh = !output.written || call.resized_output;
        if (fresh && given) {
          Put(output, outputs[k]);
          // A map may hand on rows as they are: then nobody owns them alone.
          for (const int input : node.inputs) ShareOwner(call.operands[input].storage, output.storage);
          for (size_t earlier = 0; earlier < k; ++earlier) ShareOwner(call.outputs[earlier].storage, output.storage);
        } else if (fresh) {
          Drop(output.storage);
        } else {
          Own(output);
          at::Tensor target = RowsOf(output);
          given ? target.copy_(outputs[k]) : target.zero_();
        }
      }
    }
  }

  // The policy's bias: components get shares of the constant, which the leftover gives.
  void PayConstant(const Node& node) {
    const Operand& output = CallOf(node).outputs[0];
    if (!CarriesRows(output)) return;
    Own(output);
    at::Tensor rows = RowsOf(output);
    at::Tensor components = rows.narrow(0, 0, trace_.numc);
    if (!HasAll()) {
      // See Note [Paid by share of the sum] in adjoint.cc.
      const at::Tensor& sum = (*sums_of_all_)[&node - linearization_.nodes.data()];
      const at::Tensor paid =
          ConstantShares(sum.unsqueeze(0), node.constant.to(sum.scalar_type()), node.bias, node.bias_parameter)
              .select(0, 0);
      components.mul_(QuotientOrZero(paid, sum) + 1);
      return;
    }
    if (sums_before_ != nullptr) (*sums_before_)[&node - linearization_.nodes.data()] = components.sum(0);
    // Autograd, where it follows, keeps what the shares are computed from: that must not be written.
    const at::Tensor paid = ConstantShares(trace_.differentiable ? components.clone() : components,
                                           node.constant.to(rows.scalar_type()), node.bias, node.bias_parameter);
    components.add_(paid);
    rows.select(0, LeftoverRow()).sub_(paid.sum(0));
  }

  // Ids become numbers: each moves in the component that its id belongs to, or in none.
  void StartRows(const Call& call) {
    const Operand& output = call.outputs[0];
    const RowStart start = trace_.StartOf(call);
    const bool vectors = start.labels.dim() < start.moves.dim();
    const at::Tensor labels = vectors ? start.labels.unsqueeze(-1).expand(start.moves.sizes()) : start.labels;
    const at::Tensor taken = labels.ge(0);
    at::DimVector sizes = {num_rows_};
    sizes.append(start.moves.sizes().begin(), start.moves.sizes().end());
    at::Tensor rows = at::zeros(sizes, start.moves.options());
    rows.scatter_(0, labels.clamp_min(0).unsqueeze(0), (start.moves * taken).unsqueeze(0));
    if (HasAll()) rows.select(0, LeftoverRow()).copy_(start.moves.masked_fill(taken, 0));
    rows_[output.storage] = NewRows(output);
    owners_[output.storage] = std::make_shared<char>();
    start.bags.defined() ? RowsOf(output).index_add_(1, start.bags, rows) : RowsOf(output).copy_(rows);
    if (HasAll()) RowsOf(output).select(0, MoveRow()).copy_(Move(output));
  }

  // Where the only output has the rows of the only input: written in place there is nothing to do, else both share
  // them.
  bool KeepsRows(const Node& node, const Call& call) {
    if (!node.map || !node.map->Identity() || node.keeps_bracket || node.joint || node.constant.defined()) return false;
    if (call.outputs.size() != 1 || !CarriesRows(call.outputs[0])) return false;
    const Operand& input = call.operands[node.inputs[0]];
    const Operand& output = call.outputs[0];
    if (!SameRows(input, output)) return false;
    if (input.storage == output.storage) return true;
    if (output.written ||
        trace_.program.storages[input.storage].numel != trace_.program.storages[output.storage].numel) {
      return false;
    }
    RowsOf(input);  // makes zeros where there are none yet
    rows_[output.storage] = rows_[input.storage];
    owners_[output.storage] = owners_[input.storage];
    sums_[output.storage] = sums_[input.storage];
    return true;
  }

  // Whether rows of the one, as they lie in its storage, can be rows of the other in a storage of the same size.
  bool SameRows(const Operand& input, const Operand& output) const {
    return input.geometry == output.geometry && input.conjugated == output.conjugated &&
           input.negated == output.negated && RowDtype(input.dtype) == RowDtype(output.dtype) &&
           RowDtype(StorageOf(input).dtype) == RowDtype(StorageOf(output).dtype);
  }

  // Elementwise nodes with one output need no new memory where their input is not read again.
  bool TryInPlace(const Node& node, const Call& call, int64_t n) {
    if (!node.map || node.joint || node.inputs.empty() || call.outputs.size() != 1 || !CarriesRows(call.outputs[0]))
      return false;
    const Operand& input = call.operands[node.inputs[0]];
    const Operand& output = call.outputs[0];
    const bool same_place = input.SamePlace(output);
    if (same_place && node.map->Accumulates()) {
      Rows rest(node.inputs.size());
      for (size_t k = 1; k < node.inputs.size(); ++k) {
        const Operand& other = call.operands[node.inputs[k]];
        rest[k] = other.storage == output.storage ? RowsOf(other).clone() : Resolved(RowsOf(other));
      }
      Own(output);
      at::Tensor target = RowsOf(output);
      node.map->AddTo(target, rest);
      return true;
    }
    const at::Tensor* scale = node.map->Scale();
    if (scale == nullptr) return false;
    if (same_place) {
      Own(output);
      RowsOf(output).mul_(*scale);
      return true;
    }
    const bool last = last_use_[input.storage] <= n;
    if (!last || output.written || !SameRows(input, output) || !CoversWhole(output, StorageOf(output)) ||
        StorageOf(input).numel != StorageOf(output).numel) {
      return false;
    }
    Own(input);
    RowsOf(input).mul_(*scale);
    rows_[output.storage] = rows_[input.storage];
    owners_[output.storage] = owners_[input.storage];
    Drop(input.storage);
    return true;
  }

  void Release(const Node& node, int64_t n) {
    const Call& call = CallOf(node);
    for (const int input : node.inputs) {
      const int storage = call.operands[input].storage;
      if (last_use_[storage] <= n) Drop(storage);
    }
    for (const Operand& output : call.outputs) {
      if (CarriesRows(output) && last_use_[output.storage] <= n) Drop(output.storage);
    }
  }

  // Whether there are rows of leftover and move.
  bool HasAll() const { return sums_of_all_ == nullptr; }
  int64_t LeftoverRow() const { return num_rows_ - 2; }
  int64_t MoveRow() const { return num_rows_ - 1; }

  static bool IsSingle(const Operand& operand) { return RealDtype(operand.dtype) != at::kDouble; }

  // The largest |recovery - value| that rounding explains, over the largest value.
  double RelativeTolerance(const Operand& operand) const {
    const bool single = single_[operand.storage] || IsSingle(operand);
    return policy_.tolerance.value_or(RecoveryTolerance(single, terms_, depth_[operand.storage]));
  }

  // What a failing check is looked at again with; absolute.
  struct Allowance {
    double reach = 0;      // see Reach
    double inherited = 0;  // see Inherited
  };

  // Whether recovery holds, with what it was measured against.
  bool JudgeRecovery(const Operand& operand, const at::Tensor& rows, const at::Tensor& reference,
                     const Settled& settled, const Allowance& allowance, OperatorCheck& check) const {
    const double scale = settled.value > 0 ? settled.value : 1;
    double tolerance = RelativeTolerance(operand);
    bool ok = settled.error <= tolerance * settled.value;
    if (!ok) {
      // Components may be much larger than what they sum to: then rounding is measured against them.
      const double mass = std::max(LargestMass(rows, reference, settled.error / tolerance), allowance.reach);
      ok = settled.error <= tolerance * mass + allowance.inherited;
      tolerance = (tolerance * mass + allowance.inherited) / scale;
    }
    if (!(settled.error / scale < check.recovery_error)) {
      check.recovery_error = settled.error / scale;
      check.tolerance = tolerance;
    }
    check.leftover = std::max(check.leftover, settled.leftover / scale);
    return ok;
  }

  // How large the terms are that an output is summed from, whatever they cancel to: L of the operands' magnitudes under
  // random signs, a few times. Rounding errors are of this size; it is asked for only where a check would fail.
  double Reach(const Node& node, size_t output) const {
    if (!node.map) return 0;
    const Call& call = CallOf(node);
    std::mt19937 random(20260101);
    Rows probes;
    for (const int input : node.inputs) {
      const Operand& operand = call.operands[input];
      const at::ScalarType dtype = RowDtype(operand.dtype);
      const at::Tensor value = trace_.Value(operand).to(dtype);
      const at::Tensor size = value.abs() + trace_.Reference(operand).to(dtype).abs();
      const auto draw = [&] {
        std::vector<double> signs(4 * size.numel());
        for (double& sign : signs) sign = (random() & 1) != 0 ? 1 : -1;
        at::DimVector sizes = {4};
        sizes.append(size.sizes().begin(), size.sizes().end());
        const at::Tensor drawn = at::tensor(signs, size.options()).view(sizes);
        return (drawn * size).masked_fill_(at::isfinite(size).logical_not_(), 0);
      };
      const at::Tensor real = draw();
      probes.push_back(at::isComplexType(dtype) ? at::complex(real, draw()) : real);
    }
    const Rows reached = node.map->Forward(probes);
    if (output >= reached.size() || !reached[output].defined() || reached[output].numel() == 0) return 0;
    const double largest = reached[output].abs().max().item<double>();
    return std::max(std::isfinite(largest) ? 4 * largest : 0, node.inner_terms);
  }

  // Note [Inherited errors]
  // A layer norm on its way from zero has terms a hundred times as large as what they sum to, and may err by their
  // rounding. The next linear map makes the same error of a value of the same size, but its own terms are small. What
  // its operands' parts miss, sent through the map, is therefore no failure of the map: they have been judged before.
  // That holds while every operator is checked and none has failed. 0: not known, or nothing.
  double Inherited(const Node& node, size_t output) const {
    if (!node.map || policy_.check != Check::kEveryOp || !result_.failures.empty()) return 0;
    const Call& call = CallOf(node);
    const at::Tensor* factor = node.map->Scale();
    if (node.inputs.size() == 1 && (factor != nullptr || node.map->Identity())) {
      return errors_[call.operands[node.inputs[0]].storage] * (factor == nullptr ? 1 : LargestFinite(*factor));
    }
    double bound = 0;
    Rows missing;
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const Operand& operand = call.operands[node.inputs[j]];
      const at::Tensor own = Missing(call, operand);
      if (own.defined()) {
        missing.push_back(own);
        continue;
      }
      // Added to in place: of those rows no more is left than how far they were off.
      if (j > 0 || !node.map->Accumulates()) return 0;
      bound = errors_[operand.storage];
      at::DimVector sizes = {1};
      sizes.append(operand.geometry.sizes.begin(), operand.geometry.sizes.end());
      missing.push_back(at::zeros(sizes, RowOptions(operand).dtype(RowDtype(operand.dtype))));
    }
    const Rows passed = node.map->Forward(missing);
    const bool given = output < passed.size() && passed[output].defined();
    return bound + (given ? LargestFinite(passed[output]) : 0);
  }

  // What the parts of an operand miss, [1, *S]; undefined where its rows are gone.
  at::Tensor Missing(const Call& call, const Operand& operand) const {
    const auto overwritten = [&](const Operand& other) { return other.written && other.storage == operand.storage; };
    if (!rows_[operand.storage].defined() || std::any_of(call.outputs.begin(), call.outputs.end(), overwritten)) {
      return {};
    }
    const at::Tensor rows = RowsViewOf(rows_[operand.storage], operand);
    if (!rows.defined()) return {};
    return MissingOf(Resolved(rows).narrow(0, 0, num_rows_ - 1), Resolved(trace_.Value(operand)),
                     Resolved(trace_.Reference(operand)))
        .unsqueeze(0);
  }

  // One output of a node: its numbers go to `check`, the largest so far stay. False where it fails.
  bool JudgeOutput(const Node& node, size_t k, const Settled& settled, const at::Tensor& rows,
                   const at::Tensor& reference, OperatorCheck& check) const {
    const Operand& output = CallOf(node).outputs[k];
    const auto over = [](double size, double scale) { return scale > 0 ? size / scale : size; };
    double scale = std::max({settled.value, settled.reference, settled.passed});
    double bracket = over(settled.bracket, scale);
    OperatorCheck own = check;
    bool recovered = JudgeRecovery(output, rows, reference, settled, {}, own);
    const auto holds = [&] { return node.bracket_bound < 0 || bracket <= node.bracket_bound; };
    Allowance allowance;
    const auto judge_again = [&] {
      scale = std::max(scale, allowance.reach);
      bracket = over(settled.bracket, scale);
      own = check;
      recovered = JudgeRecovery(output, rows, reference, settled, allowance, own);
    };
    // The cheapest reasons first.
    if (!recovered || !holds()) {
      allowance.reach = node.inner_terms;
      judge_again();
    }
    if (!recovered) {
      allowance.inherited = Inherited(node, k);
      judge_again();
    }
    if (!recovered || !holds()) {
      allowance.reach = Reach(node, k);
      judge_again();
    }
    check = own;
    check.recovered = check.recovered && recovered;
    check.bracket_holds = check.bracket_holds && holds();
    if (!(bracket <= check.bracket)) check.bracket = bracket;
    return recovered && holds();
  }

  // Makes the recovery of an operand its value; see Note [Absorbing]. components: [numc, *S], leftover: [*S].
  static void Absorb(at::Tensor components, at::Tensor leftover, const at::Tensor& value, const at::Tensor& reference,
                     const Call& call) {
    const at::Tensor counted = at::isfinite(value);
    if (at::isfinite(reference).logical_not_().logical_and_(counted).any().item<bool>()) {
      throw Error(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat("the failure of ", FullName(call.op.schema()),
                               " cannot be absorbed: its reference is not finite where its value is"),
                  call.position, "choose another baseline");
    }
    const at::Tensor broken =
        at::isfinite(components).all(0).logical_and_(at::isfinite(leftover)).logical_not_().logical_and_(counted);
    components.masked_fill_(broken, 0);
    leftover.masked_fill_(broken, 0);
    const at::Tensor recovery = at::sum(components, {0}).add_(leftover).add_(reference);
    leftover.add_((value - recovery).masked_fill_(counted.logical_not(), 0));
  }

  // Brackets into the leftover, moves into their row, and the check.
  void Finish(const Node& node, std::chrono::steady_clock::time_point begin) {
    if (!HasAll()) return;
    const Call& call = CallOf(node);
    const bool check_all = policy_.check == Check::kEveryOp;
    OperatorCheck check;
    check.call = node.call;
    check.kind = node.kind;
    check.bracket_bound = node.bracket_bound;
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const Operand& output = call.outputs[k];
      if (!CarriesRows(output)) continue;
      SettleOptions options;
      options.find_bracket = !node.starts && !keeps_rows_;
      options.keep_bracket = node.keeps_bracket;
      options.judge = check_all;
      if (!options.find_bracket && !options.judge) continue;
      if (options.find_bracket) Own(output);
      at::Tensor rows = RowsOf(output);
      const at::Tensor value = Resolved(trace_.Value(output)).to(rows.scalar_type());
      const at::Tensor reference = Resolved(trace_.Reference(output)).to(rows.scalar_type());
      const bool whole = CoversWhole(output, StorageOf(output));
      const Settled settled = Settle(rows, value, reference, options, whole ? &sums_[output.storage] : nullptr);
      if (!check_all) continue;
      double& error = errors_[output.storage];
      const bool holds = JudgeOutput(node, k, settled, rows, reference, check);
      error = whole ? settled.error : std::max(error, settled.error);
      if (holds) continue;
      if (policy_.on_failure != OnFailure::kAbsorb) continue;
      Own(output);
      rows = RowsOf(output);
      Absorb(rows.narrow(0, 0, trace_.numc), rows.select(0, LeftoverRow()), value, reference, call);
      sums_[output.storage] = at::Tensor();
      check.absorbed = true;
    }
    if (!check_all) return;
    check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    NoteWorst(check);
    if (!check.ok()) Fail(check);
    result_.checks.push_back(check);
  }

  // NaN is worse than any number and stays.
  void NoteWorst(const OperatorCheck& check) {
    double& worst = result_.worst_recovery_error;
    if (!std::isnan(worst) && !(check.recovery_error <= worst)) worst = check.recovery_error;
  }

  void Fail(const OperatorCheck& check) {
    const Call& call = trace_.program.calls[check.call];
    if (policy_.on_failure == OnFailure::kError) {
      // Wrong coefficients may spoil the recovery too; a wrong application spoils nothing else.
      const std::string what =
          !check.bracket_holds
              ? absl::StrCat("tracing failure: the coefficients of ", FullName(call.op.schema()),
                             " leave a bracket of ", check.bracket, " of its value, bound ", check.bracket_bound)
              : absl::StrCat("tracing failure: the parts of ", FullName(call.op.schema()), " differ from its value by ",
                             check.recovery_error, " of it, tolerance ", check.tolerance);
      throw Error(absl::StatusCode::kInternal, what, call.position,
                  "policy on_failure=warn goes on and reports it, on_failure=absorb makes it leftover");
    }
    result_.failures.push_back(check);
  }

  void TakeProbes(int64_t call) {
    for (size_t p = 0; p < linearization_.probes.size(); ++p) {
      const Probe& probe = linearization_.probes[p];
      if (probe.after_call != call) continue;
      ProbeRows& taken = result_.probes[p];
      taken.value = Resolved(trace_.Value(probe.operand));
      taken.reference = trace_.Reference(probe.operand).clone();  // the trace's own may be kept for later runs
      taken.decomposed = CarriesRows(probe.operand);
      if (probe.operand.storage >= 0) taken.depth = depth_[probe.operand.storage];
      taken.single = IsSingle(probe.operand) || (probe.operand.storage >= 0 && single_[probe.operand.storage]);
      if (!taken.decomposed) {
        at::DimVector sizes;
        sizes.push_back(trace_.numc);
        sizes.append(probe.operand.geometry.sizes.begin(), probe.operand.geometry.sizes.end());
        const auto options = taken.value.options().dtype(RowDtype(probe.operand.dtype));
        taken.components = at::zeros(sizes, options);
        taken.leftover = at::zeros(probe.operand.geometry.sizes, options);
        continue;
      }
      const at::Tensor rows = RowsOf(probe.operand);
      // A copy: later nodes may write the same storage.
      taken.components = rows.narrow(0, 0, trace_.numc).clone();
      if (!HasAll()) continue;
      taken.leftover = rows.select(0, LeftoverRow()).clone();
      if (policy_.check != Check::kOutputs || call < 0) continue;
      SettleOptions options;
      options.find_bracket = false;
      const at::Tensor value = taken.value.to(rows.scalar_type());
      const at::Tensor reference = taken.reference.to(rows.scalar_type());
      at::Tensor all = rows;
      const Settled settled = Settle(all, value, reference, options, nullptr);
      OperatorCheck check;
      check.call = call;
      check.recovered = JudgeRecovery(probe.operand, rows, reference, settled, {}, check);
      NoteWorst(check);
      suspect_ = suspect_ || !check.ok();
    }
  }

  const Linearization& linearization_;
  const TracedRun& trace_;
  const Policy& policy_;
  const std::function<void(int64_t, int64_t)>& progress_;
  int64_t num_rows_;
  int64_t terms_;
  std::vector<at::Tensor> rows_;  // by storage: [numc + 2, numel]; undefined: all zero
  // By storage: shared by those that have the same memory. (LibTorch's own counts do not tell: views keep their bases.)
  std::vector<std::shared_ptr<char>> owners_;
  std::vector<at::Tensor> sums_;   // by storage: components and leftover added up; undefined: not known
  std::vector<double> errors_;     // by storage: how far recovery was off where it was judged; see Inherited
  std::vector<int64_t> depth_;     // by storage: the longest chain of nodes that led to it
  std::vector<bool> single_;       // by storage: its rows were once in single precision, which a cast does not mend
  std::vector<int64_t> last_use_;  // by storage: the last node that touches it
  bool suspect_ = false;           // an output was judged by itself, and failed
  bool keeps_rows_ = false;        // the call at hand left all rows as they were
  std::vector<at::Tensor>* sums_before_ = nullptr;
  const std::vector<at::Tensor>* sums_of_all_ = nullptr;  // set where rows are components only
  SweepResult result_;
};

}  // namespace

SweepResult SweepForward(const Linearization& linearization, const std::function<void(int64_t, int64_t)>& progress) {
  return SweepPart(linearization, linearization.trace->numc, progress);
}

SweepResult SweepPart(const Linearization& linearization, int64_t components,
                      const std::function<void(int64_t, int64_t)>& progress) {
  c10::AutoGradMode grad(linearization.trace->differentiable);
  {
    Sweep sweep(linearization, progress);
    sweep.JudgeAs(components);
    SweepResult result = sweep.Run();
    if (!sweep.suspect()) return result;
  }
  // An output that is off does not tell whether an operator fails or rounding was handed on, nor where.
  Linearization judged = linearization;
  judged.policy.check = Check::kEveryOp;
  Sweep sweep(judged, progress);
  sweep.JudgeAs(components);
  return sweep.Run();
}

SweepResult SweepComponents(const Linearization& linearization, const std::vector<at::Tensor>& sums,
                            const std::function<void(int64_t, int64_t)>& progress) {
  c10::AutoGradMode grad(linearization.trace->differentiable);
  Sweep sweep(linearization, progress);
  sweep.ComponentsOnly(&sums);
  return sweep.Run();
}

std::string JointChoice(const Node& node, const Policy& policy) {
  const char* field = node.joint ? "nonlinearity" : "bias";
  for (const auto& [key, value] : DescribePolicy(policy)) {
    if (key == field) return absl::StrCat(key, "=", value);
  }
  return field;
}

std::vector<at::Tensor> SumsBeforePayments(const Linearization& linearization) {
  const auto pays = [](const Node& node) { return node.constant.defined() && !node.joint; };
  if (std::none_of(linearization.nodes.begin(), linearization.nodes.end(), pays)) {
    return std::vector<at::Tensor>(linearization.nodes.size());
  }
  Linearization one = linearization;
  one.trace = PartOf(*linearization.trace, 0, 0, /*rest=*/true);
  one.policy.check = Check::kOff;
  std::vector<at::Tensor> sums(one.nodes.size());
  const std::function<void(int64_t, int64_t)> no_progress;
  Sweep sweep(one, no_progress);
  sweep.Collect(&sums);
  sweep.Run();
  return sums;
}

}  // namespace addend
