#include "core/run/written_attention.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/host_read.h"
#include "core/intercept/operator.h"
#include "core/intercept/own_operators.h"
#include "core/program/view.h"
#include "core/rules/fused.h"
#include "core/rules/fused_attention.h"
#include "core/rules/rows.h"

namespace addend {
namespace {

// Distance below every score at which a weight is exactly zero: exp(-746) is zero in float64, exp(-104) in float32.
// Summands leave every row a score that they lower by 1000 at most.
constexpr double kFarBelow = 2000;

// A number among the arguments, whether it is given as such or as a tensor of one element.
std::optional<double> NumberOf(const c10::IValue& argument) {
  if (argument.isScalar() && !argument.toScalar().isComplex()) return argument.toScalar().to<double>();
  if (!argument.isTensor() || !argument.toTensor().defined() || argument.toTensor().numel() != 1) return std::nullopt;
  return argument.toTensor().is_complex() ? std::nullopt : std::make_optional(ReadNumber(argument.toTensor()));
}

// Swaps the last two dimensions of an operand, which has at least two.
Operand Transposed(Operand operand) {
  Geometry& geometry = operand.geometry;
  const size_t rank = geometry.sizes.size();
  std::swap(geometry.sizes[rank - 1], geometry.sizes[rank - 2]);
  std::swap(geometry.strides[rank - 1], geometry.strides[rank - 2]);
  return operand;
}

}  // namespace

void WrittenAttention::Begin() { on_ = AllowsFused(*policy_) && policy_->segments == 1; }

const WrittenAttention::Chain* WrittenAttention::Find(const Operand& operand) const {
  const auto found = chains_.find(operand.storage);
  if (found == chains_.end()) return nullptr;
  const Operand& last = found->second.last;
  return last.version == operand.version && last.SamePlace(operand) ? &found->second : nullptr;
}

bool WrittenAttention::IsFinite(const Operand& operand, const at::Tensor& value) const {
  return AllFinite(value) &&
         (!operand.decomposed || AllFinite(ViewOf(states_->At(operand.storage).reference, operand)));
}

// Nobody has written to it since.
bool WrittenAttention::IsNow(const Operand& operand) const {
  return operand.version + 1 == states_->Info(operand.storage).versions;
}

// True if an operand has the same numbers for every row, and on the baseline too.
bool WrittenAttention::IsPlain(const Operand& operand) const {
  return !operand.decomposed && !(operand.labelled && policy_->conditions == Conditions::kBaseline);
}

void WrittenAttention::AfterCall(CallAtHand& own) {
  const Call& call = own.call;
  if (!on_ || own.role.rule == nullptr || call.is_view || call.outputs.size() != 1 || call.resized_output) return;
  const Step step = own.role.rule->in_attention;
  if (step == Step::kNone || !CarriesRows(call.outputs[0])) return;
  if (step == Step::kProduct) {
    const Chain* chain = Find(call.operands[0]);
    if (chain != nullptr && chain->weights && Fits(own, *chain)) return Replace(own, *chain);
    return Start(own);
  }
  // A mask may stand before the scores in a sum, and the condition does in a choice.
  for (const Operand& operand : call.operands) {
    const Chain* found = Find(operand);
    if (found == nullptr || found->weights) continue;
    Chain chain = *found;
    if (!Extend(own, step, &chain)) return;
    chain.last = call.outputs[0];
    chains_[chain.last.storage] = std::move(chain);
    return;
  }
}

// Scores: the product of a query with a key.
void WrittenAttention::Start(const CallAtHand& own) {
  const Call& call = own.call;
  if (call.operands.size() != 2 || call.outputs[0].written) return;
  const Operand& query = call.operands[0];
  const at::Tensor& q = own.arguments[0].toTensor();
  const at::Tensor k = own.arguments[1].toTensor();
  const bool fits = q.dim() >= 3 && k.dim() == q.dim() && q.numel() > 0 && k.numel() > 0 && q.device().is_cpu() &&
                    q.scalar_type() == k.scalar_type() &&
                    (q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble);
  if (!fits || !IsFinite(query, q) || !IsFinite(call.operands[1], k)) return;
  const Operand key = Transposed(call.operands[1]);
  Chain chain;
  chain.last = call.outputs[0];
  chain.query = query;
  chain.key = key;
  const auto norm = [&](const Operand& operand, const at::Tensor& value) {
    const double own_norm = LargestNorm(value);
    if (!operand.decomposed) return own_norm;
    return std::max(own_norm, LargestNorm(ViewOf(states_->At(operand.storage).reference, operand)));
  };
  chain.reach = norm(query, q) * norm(key, k.transpose(-2, -1));
  chains_[chain.last.storage] = std::move(chain);
}

bool WrittenAttention::Extend(const CallAtHand& own, Step step, Chain* chain) const {
  const Call& call = own.call;
  const Operand& output = call.outputs[0];
  // The scores lie as they did, and are of one dtype.
  if (output.dtype != chain->last.dtype || output.geometry.sizes != chain->last.geometry.sizes) return false;
  switch (step) {
    case Step::kMultiply:
    case Step::kDivide:
      return Rescale(own, step == Step::kDivide, chain);
    case Step::kAdd:
      for (size_t k = 0; k < call.operands.size(); ++k) {
        if (Find(call.operands[k]) == nullptr) return Shift(own, k, chain);
      }
      return false;
    case Step::kHide:
    case Step::kShow:
      return Hide(own, step, chain);
    case Step::kSoftmax: {
      const int64_t dim = own.arguments[1].toInt();
      const auto rank = static_cast<int64_t>(output.geometry.sizes.size());
      chain->weights = dim == -1 || dim == rank - 1;
      return chain->weights;
    }
    default:
      return false;
  }
}

// Before masks: behind them it would scale them too.
bool WrittenAttention::Rescale(const CallAtHand& own, bool divide, Chain* chain) const {
  if (own.arguments.size() != 2 || chain->summand.value.defined() || chain->shown.value.defined() ||
      chain->hidden.value.defined()) {
    return false;
  }
  const std::vector<Operand> operands(own.call.operands.begin(), own.call.operands.end());
  size_t scores = 0;
  if (operands.size() == 2) {
    scores = Find(operands[0]) != nullptr ? 0 : 1;
    if (!IsPlain(operands[1 - scores]) || (divide && scores != 0)) return false;
  }
  const std::optional<double> factor = NumberOf(own.arguments[1 - scores]);
  if (!factor || *factor == 0) return false;
  const double scale = divide ? 1 / *factor : *factor;
  chain->scale *= scale;
  chain->reach *= std::abs(scale);
  return true;
}

bool WrittenAttention::Shift(const CallAtHand& own, size_t mask, Chain* chain) const {
  const Operand& operand = own.call.operands[mask];
  const at::Tensor& value = own.arguments[operand.argument].toTensor();
  if (chain->summand.value.defined() || !IsPlain(operand) || NumberOf(own.arguments[2]) != 1.0) return false;
  if (value.scalar_type() != chain->last.dtype || value.dim() == 0 || !value.device().is_cpu()) return false;
  chain->summand = {operand, value};
  return true;
}

// masked_fill(scores, hidden, number) and where(shown, scores, number).
bool WrittenAttention::Hide(const CallAtHand& own, Step step, Chain* chain) const {
  const bool shows = step == Step::kShow;
  const size_t condition = shows ? 0 : 1;
  if (own.call.operands.size() < 2) return false;
  const Operand& scores = own.call.operands[1 - condition];
  if (Find(scores) == nullptr || scores.argument != static_cast<int>(1 - condition)) return false;
  Mask& mask = shows ? chain->shown : chain->hidden;
  const Operand& operand = own.call.operands[condition];
  const at::Tensor& value = own.arguments[condition].toTensor();
  if (mask.value.defined() || !IsPlain(operand) || value.scalar_type() != at::kBool || value.dim() == 0) return false;
  if (own.call.operands.size() > 2 && !IsPlain(own.call.operands[2])) return false;
  std::optional<double> fill = NumberOf(own.arguments[2]);
  if (!fill && own.arguments[2].isTensor() && own.arguments[2].toTensor().is_floating_point()) {
    fill = ReadNumber(own.arguments[2].toTensor().max());
  }
  if (!fill) return false;
  mask = {operand, value};
  chain->fill = std::max(chain->fill, *fill);
  return true;
}

// Whether the product of a chain's weights with a value is attention, to rounding.
bool WrittenAttention::Fits(const CallAtHand& own, const Chain& chain) const {
  const Call& call = own.call;
  if (call.operands.size() != 2 || call.outputs[0].written) return false;
  const Operand& value = call.operands[1];
  const at::Tensor& v = own.arguments[1].toTensor();
  at::IntArrayRef q = chain.query.geometry.sizes;
  if (v.scalar_type() != chain.last.dtype || !IsNow(chain.query) || !IsNow(chain.key)) return false;
  if (!AttentionShapesFit(q, chain.key.geometry.sizes, v.sizes()) || !IsFinite(value, v)) return false;
  // Scores of several queries that share a key lie behind one another.
  at::DimVector scores(q);
  scores.back() = v.size(-2);
  if (scores != chain.last.geometry.sizes) return false;
  const double shift = chain.summand.value.defined() ? ReadNumber(chain.summand.value.max()) : 0;
  if (!(chain.fill + std::max(shift, 0.0) < -(chain.reach + kFarBelow))) return false;
  return LeavesAllRows(chain.summand.value, chain.shown.value, chain.hidden.value, scores);
}

void WrittenAttention::Replace(CallAtHand& own, const Chain& chain) const {
  Call attention(*Operator::Find(kAttention, ""));
  const Call& made = own.call;
  attention.index = made.index;
  attention.program_call = made.program_call;
  attention.depth = made.depth;
  attention.outputs = made.outputs;
  attention.position = made.position;
  attention.arguments.resize(attention.op.schema().arguments().size());
  attention.arguments.back() = chain.scale;
  const auto read = [&](Operand operand) {
    operand.argument = static_cast<int16_t>(attention.operands.size());
    return operand;
  };
  for (const Operand& operand : {chain.query, chain.key, made.operands[1]}) attention.operands.push_back(read(operand));
  int16_t argument = 3;
  for (const Mask* mask : {&chain.summand, &chain.shown, &chain.hidden}) {
    if (mask->value.defined()) {
      attention.operands.push_back(mask->operand);
      attention.operands.back().argument = argument;
    }
    ++argument;
  }
  attention.made = std::make_shared<const Call>(made);
  own.call = std::move(attention);
}

}  // namespace addend
