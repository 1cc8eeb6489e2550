#include "core/rules/rule_testing.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "core/intercept/operator.h"

namespace addend {
namespace {

std::optional<Operator> FindByFullName(const std::string& op) {
  const size_t dot = op.find('.');
  return Operator::Find(op.substr(0, dot), dot == std::string::npos ? "" : op.substr(dot + 1));
}

const Rule* FindRule(const RuleCall& call) {
  return Registry::Default().Find(call.name, call.overload.empty() ? call.name : call.name + "." + call.overload);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsFloating(const at::Tensor& t) { return t.defined() && (t.is_floating_point() || t.is_complex()); }

at::Tensor Widen(const at::Tensor& t) {
  const bool half = t.defined() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16);
  return half ? t.to(at::kFloat) : t;
}

// The tensors of an argument or a result, in order.
void Collect(const c10::IValue& value, std::vector<at::Tensor>* tensors) {
  if (value.isTensor()) {
    tensors->push_back(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) Collect(element, tensors);
  }
}

std::vector<at::Tensor> TensorsOf(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  Collect(value, &tensors);
  return tensors;
}

// Replaces the tensors of an argument.
c10::IValue WithTensors(const c10::IValue& value, const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return value;
  if (value.isTensor()) return tensors[0];
  if (value.isTensorList()) return c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(tensors));
  std::vector<c10::IValue> parts;
  size_t next = 0;
  for (const c10::IValue& element : value.toListRef()) {
    parts.push_back(element.isTensor() ? c10::IValue(tensors[next++]) : element);
  }
  return OptionalListOf(parts);
}

// The part of an argument that a recorded call keeps beside its tensors.
c10::IValue WithoutTensors(const c10::IValue& value) {
  if (value.isTensor() || value.isTensorList()) return {};
  if (!value.isList() || TensorsOf(value).empty()) return value;
  std::vector<int64_t> present;
  for (const c10::IValue& element : value.toListRef()) present.push_back(element.isTensor() ? 1 : 0);
  return present;
}

// Stores the elements in the opposite order of dimensions and with gaps.
at::Tensor WithOtherStrides(const at::Tensor& t) {
  if (!t.defined() || t.dim() == 0) return t;
  Sizes reversed;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    reversed.push_back(d);
  }
  const at::Tensor backwards = t.permute(reversed);
  Sizes wide(backwards.sizes().begin(), backwards.sizes().end());
  wide.push_back(2);
  const at::Tensor gaps = at::zeros(wide, t.options());
  gaps.select(-1, 1).copy_(backwards);
  return gaps.select(-1, 1).permute(reversed);
}

// In double precision, complex where it is complex.
at::Tensor Wide(const at::Tensor& t) { return t.to(t.is_complex() ? at::kComplexDouble : at::kDouble); }

// Normal numbers of a dtype, real or complex.
at::Tensor NormalOf(Draw& draw, const Sizes& sizes, at::ScalarType dtype) {
  return at::isComplexType(dtype) ? draw.Complex(sizes).to(dtype) : draw.Normal(sizes).to(dtype);
}

double MaxAbs(const at::Tensor& t) { return t.numel() == 0 ? 0 : t.abs().max().item<double>(); }

}  // namespace

// ---------------------------------------------------------------------------------------------------------- operands

GivenArgument ListOf(const std::vector<GivenArgument>& parts) {
  c10::List<at::Tensor> value;
  c10::List<at::Tensor> reference;
  for (const GivenArgument& part : parts) {
    value.push_back(part.value.toTensor());
    reference.push_back(part.reference.toTensor());
  }
  return {value, reference};
}

c10::IValue OptionalListOf(const std::vector<c10::IValue>& parts) {
  c10::impl::GenericList list(c10::OptionalType::create(c10::TensorType::get()));
  for (const c10::IValue& part : parts) list.push_back(part);
  return list;
}

double Draw::Unit() { return (static_cast<double>(engine_() >> 11) + 0.5) / 9007199254740992.0; }

at::Tensor Draw::Uniform(const Sizes& sizes, double low, double high) {
  const at::Tensor drawn = at::empty(sizes, at::kDouble);
  double* data = drawn.data_ptr<double>();
  for (int64_t i = 0; i < drawn.numel(); ++i) data[i] = low + (high - low) * Unit();
  return drawn.to(dtype_);
}

at::Tensor Draw::Normal(const Sizes& sizes, double scale) {
  const at::Tensor drawn = at::empty(sizes, at::kDouble);
  double* data = drawn.data_ptr<double>();
  for (int64_t i = 0; i < drawn.numel(); ++i) {
    const double radius = std::sqrt(-2 * std::log(Unit()));
    data[i] = scale * radius * std::cos(2 * M_PI * Unit());
  }
  return drawn.to(dtype_);
}

at::Tensor Draw::Complex(const Sizes& sizes, double scale) {
  const at::Tensor real = Normal(sizes, scale);
  return at::complex(real, Normal(sizes, scale));
}

at::Tensor Draw::Integers(const Sizes& sizes, int64_t below) {
  const at::Tensor drawn = at::empty(sizes, at::kLong);
  int64_t* data = drawn.data_ptr<int64_t>();
  for (int64_t i = 0; i < drawn.numel(); ++i) data[i] = static_cast<int64_t>(Unit() * static_cast<double>(below));
  return drawn;
}

at::Tensor Draw::Booleans(const Sizes& sizes) { return Integers(sizes, 2).to(at::kBool); }

GivenArgument Draw::Moving(const Sizes& sizes, double scale) {
  const at::Tensor value = Normal(sizes, scale);
  return {value, Normal(sizes, scale)};
}

GivenArgument Draw::MovingComplex(const Sizes& sizes, double scale) {
  const at::Tensor value = Complex(sizes, scale);
  return {value, Complex(sizes, scale)};
}

GivenArgument Draw::MovingWithin(const Sizes& sizes, double low, double high) {
  const at::Tensor value = Uniform(sizes, low, high);
  return {value, Uniform(sizes, low, high)};
}

// ------------------------------------------------------------------------------------------------------------- calls

struct OperatorCall::State {
  explicit State(const Operator& called) : op(called) {}
  Operator op;
  std::vector<GivenArgument> arguments;

  bool Written(size_t argument) const {
    const c10::AliasInfo* alias = op.schema().arguments()[argument].alias_info();
    return alias != nullptr && alias->isWrite();
  }

  // Runs the operator on these operands, out of place. `given`: its other arguments, where they are not the own ones.
  std::vector<at::Tensor> Run(const std::vector<at::Tensor>& operands,
                              const std::vector<c10::IValue>* given = nullptr) const {
    Stack stack;
    size_t next = 0;
    for (size_t a = 0; a < arguments.size(); ++a) {
      std::vector<at::Tensor> own;
      for (size_t k = TensorsOf(arguments[a].value).size(); k > 0; --k) {
        own.push_back(Written(a) ? operands[next].clone() : operands[next]);
        ++next;
      }
      const bool replaced = given != nullptr && own.empty() && !(*given)[a].isNone();
      stack.push_back(replaced ? (*given)[a] : WithTensors(arguments[a].value, own));
    }
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    generator.set_current_seed(20240229);
    op.Run(&stack);
    std::vector<at::Tensor> results;
    for (const c10::IValue& result : stack) Collect(result, &results);
    return results;
  }
};

OperatorCall::OperatorCall(std::shared_ptr<const State> state) : state_(std::move(state)) {}
OperatorCall::~OperatorCall() = default;

bool IsHere(const std::string& op) { return FindByFullName(op).has_value(); }

OperatorCall::OperatorCall(const std::string& op, const std::vector<GivenArgument>& arguments) {
  const auto found = FindByFullName(op);
  if (!found) throw std::runtime_error("this LibTorch has no operator " + op);
  auto state = std::make_shared<State>(*found);
  state->arguments = arguments;
  const auto& schema = found->schema().arguments();
  for (size_t a = arguments.size(); a < schema.size(); ++a) {
    if (!schema[a].default_value()) throw std::runtime_error(op + " needs argument " + schema[a].name());
    state->arguments.emplace_back(*schema[a].default_value());
  }
  state_ = std::move(state);
}

int OperatorCall::movable() const {
  int count = 0;
  for (const GivenArgument& argument : state_->arguments) {
    const auto values = TensorsOf(argument.value);
    const auto references = TensorsOf(argument.reference);
    for (size_t k = 0; k < values.size(); ++k) count += IsFloating(values[k]) && !values[k].is_same(references[k]);
  }
  return count;
}

RuleCall OperatorCall::Describe(const Policy& policy, uint32_t decomposed) const {
  const c10::FunctionSchema& schema = state_->op.schema();
  RuleCall call;
  call.name = RuleNames(schema.name()).first;
  call.overload = schema.overload_name();
  call.schema = &schema;
  call.policy = &policy;
  int movable = 0;
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> references;
  for (size_t a = 0; a < state_->arguments.size(); ++a) {
    call.arguments.push_back(WithoutTensors(state_->arguments[a].value));
    const auto at_value = TensorsOf(state_->arguments[a].value);
    const auto at_reference = TensorsOf(state_->arguments[a].reference);
    for (size_t k = 0; k < at_value.size(); ++k) {
      const bool moves = IsFloating(at_value[k]) && !at_value[k].is_same(at_reference[k]);
      RuleOperand operand;
      operand.decomposed = moves && ((decomposed >> movable) & 1u) != 0;
      movable += moves;
      values.push_back(at_value[k]);
      references.push_back(operand.decomposed ? at_reference[k] : at_value[k]);
      operand.value = Widen(values.back());
      operand.reference = Widen(references.back());
      operand.argument = static_cast<int>(a);
      operand.written = state_->Written(a);
      call.operands.push_back(std::move(operand));
    }
  }
  const auto outputs = state_->Run(values);
  const auto reference_outputs = state_->Run(references);
  for (size_t k = 0; k < outputs.size(); ++k) call.outputs.push_back({Widen(outputs[k]), Widen(reference_outputs[k])});
  call.run = [state = state_](const std::vector<c10::IValue>& arguments, const std::vector<at::Tensor>& operands) {
    return state->Run(operands, &arguments);
  };
  return call;
}

OperatorCall OperatorCall::Strided() const {
  auto state = std::make_shared<State>(*state_);
  for (GivenArgument& argument : state->arguments) {
    const auto values = TensorsOf(argument.value);
    const auto references = TensorsOf(argument.reference);
    std::vector<at::Tensor> strided_values;
    std::vector<at::Tensor> strided_references;
    for (size_t k = 0; k < values.size(); ++k) {
      strided_values.push_back(WithOtherStrides(values[k]));
      const bool same = values[k].is_same(references[k]);
      strided_references.push_back(same ? strided_values.back() : WithOtherStrides(references[k]));
    }
    argument.value = WithTensors(argument.value, strided_values);
    argument.reference = WithTensors(argument.reference, strided_references);
  }
  return OperatorCall(state);
}

OperatorCall OperatorCall::AtRest() const {
  auto state = std::make_shared<State>(*state_);
  for (GivenArgument& argument : state->arguments) {
    const auto values = TensorsOf(argument.value);
    const auto references = TensorsOf(argument.reference);
    std::vector<at::Tensor> copies;
    for (size_t k = 0; k < values.size(); ++k) {
      copies.push_back(values[k].is_same(references[k]) ? values[k] : values[k].clone());
    }
    argument.reference = WithTensors(argument.reference, copies);
  }
  return OperatorCall(state);
}

const Policy& Faithful() {
  static const Policy& policy = *new Policy(Policy().Resolved(/*baseline_given=*/true));
  return policy;
}

const Policy& Fast() {
  static const Policy& policy = *new Policy(Policy().Resolved(/*baseline_given=*/false));
  return policy;
}

const Policy& ByHalf() {
  static const Policy& policy = *[] {
    auto* by_half = new Policy(Faithful());
    by_half->content_first = kFreezeNothing;
    return by_half;
  }();
  return policy;
}

std::pair<std::string, std::string> RuleNames(const std::string& op) {
  const size_t dot = op.find('.');
  std::string name = op.substr(0, dot);
  if (name.back() == '_') name.pop_back();
  return {name, dot == std::string::npos ? name : name + op.substr(dot)};
}

const Rule& RuleOf(const RuleCall& call) {
  const Rule* rule = FindRule(call);
  if (rule == nullptr) throw std::runtime_error("no rule for " + call.name + "." + call.overload);
  return *rule;
}

RuleResult BuildRule(const RuleCall& call) {
  c10::AutoGradMode no_grad(false);  // as the linearizer does
  const Rule& rule = RuleOf(call);
  const auto complex = [](const auto& t) { return t.value.defined() && t.value.is_complex(); };
  if (!rule.complex && (std::any_of(call.operands.begin(), call.operands.end(), complex) ||
                        std::any_of(call.outputs.begin(), call.outputs.end(), complex))) {
    throw std::runtime_error(rule.name + " does not say that it covers complex tensors");
  }
  return rule.build(call);
}

// ---------------------------------------------------------------------------------------------------------- judgment

Rows RandomRows(Draw& draw, const RuleCall& call, const RuleResult& rule, int64_t count) {
  Rows rows;
  for (const int input : rule.inputs) {
    const at::Tensor& value = call.operands[input].value;
    Sizes sizes(value.sizes().begin(), value.sizes().end());
    sizes.insert(sizes.begin(), count);
    rows.push_back(NormalOf(draw, sizes, value.scalar_type()));
  }
  return rows;
}

Rows MoveRows(const RuleCall& call, const RuleResult& rule) {
  Rows rows;
  for (const int input : rule.inputs) rows.push_back(call.Move(input).unsqueeze(0));
  return rows;
}

Rows RandomCotangents(Draw& draw, const RuleCall& call) {
  Rows cotangents;
  for (const RuleOutput& output : call.outputs) {
    cotangents.emplace_back();
    if (!IsFloating(output.value)) continue;
    const at::IntArrayRef sizes = output.value.sizes();
    cotangents.back() = NormalOf(draw, Sizes(sizes.begin(), sizes.end()), output.value.scalar_type());
  }
  return cotangents;
}

Rows Pass(const RuleCall& call, const RuleResult& rule, const Rows& rows, int64_t count) {
  Rows passed;
  if (rule.map) passed = rule.map->Forward(rows);
  passed.resize(call.outputs.size());
  for (size_t k = 0; k < passed.size(); ++k) {
    const at::Tensor& value = call.outputs[k].value;
    if (!IsFloating(value) || passed[k].defined()) continue;
    Sizes sizes(value.sizes().begin(), value.sizes().end());
    sizes.insert(sizes.begin(), count);
    passed[k] = at::zeros(sizes, value.options());
  }
  return passed;
}

double Difference(const at::Tensor& a, const at::Tensor& b, double scale) {
  if (a.defined() != b.defined()) return kInfinity;
  if (!a.defined()) return 0;
  if (a.sizes() != b.sizes()) return kInfinity;
  if (a.numel() == 0) return 0;
  const at::Tensor x = Wide(a);
  const at::Tensor y = Wide(b);
  const double largest = std::max({scale, MaxAbs(x.masked_fill(x.isfinite().logical_not(), 0)),
                                   MaxAbs(y.masked_fill(y.isfinite().logical_not(), 0))});
  const double worst = MaxAbs((x - y).masked_fill(x.eq(y), 0));
  if (std::isnan(worst)) return kInfinity;
  return largest > 0 ? worst / largest : worst;
}

double Difference(const Rows& a, const Rows& b, double scale) {
  if (a.size() != b.size()) return kInfinity;
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) worst = std::max(worst, Difference(a[k], b[k], scale));
  return worst;
}

std::pair<double, double> Inner(const Rows& a, const Rows& b) {
  double sum = 0;
  double terms = 0;
  for (size_t k = 0; k < a.size() && k < b.size(); ++k) {
    if (!a[k].defined() || !b[k].defined()) continue;
    const at::Tensor product = Wide(a[k]).conj() * Wide(b[k]);
    sum += at::real(product.sum()).item<double>();
    terms += product.abs().sum().item<double>();
  }
  return {sum, terms};
}

double RelativeBracket(const RuleCall& call, const RuleResult& rule) {
  const Rows moves = MoveRows(call, rule);
  const Rows moved = Pass(call, rule, moves, 1);
  double worst = 0;
  double farthest = 0;
  for (const at::Tensor& move : moves) farthest = std::max(farthest, MaxAbs(move));
  const Rule* known = FindRule(call);  // tests build rules for operators that have none
  const int carried = known == nullptr ? -1 : known->carried;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (carried >= 0 && static_cast<int>(k) >= carried) break;
    if (!moved[k].defined() || moved[k].numel() == 0) continue;
    const at::Tensor value = Wide(call.outputs[k].value);
    const bool replaced = k < rule.stand_ins.size() && rule.stand_ins[k].defined();
    const at::Tensor reference = Wide(replaced ? rule.stand_ins[k] : call.outputs[k].reference);
    const at::Tensor passed = Wide(moved[k]).select(0, 0);
    const at::Tensor out = value.isinf().logical_and(value.eq(reference));
    const at::Tensor bracket = ((value - reference) - passed).masked_fill(out, 0);
    const double largest = std::max({farthest, MaxAbs(value.masked_fill(out, 0)), MaxAbs(reference.masked_fill(out, 0)),
                                     MaxAbs(passed.masked_fill(out, 0))});
    const double own = MaxAbs(bracket);
    if (std::isnan(own) || std::isinf(largest)) return kInfinity;
    worst = std::max(worst, largest > 0 ? own / largest : own);
  }
  return worst;
}

Rows MeanGradient(const RuleCall& call, const std::vector<int>& inputs, const Rows& cotangents, int pieces,
                  bool smooth) {
  const double aside = std::sqrt(0.6) / 2;
  const std::vector<double> nodes =
      smooth ? std::vector<double>{0.5 - aside, 0.5, 0.5 + aside} : std::vector<double>{0.5};
  const std::vector<double> weights =
      smooth ? std::vector<double>{5.0 / 18, 8.0 / 18, 5.0 / 18} : std::vector<double>{1.0};
  c10::AutoGradMode grad(true);
  Rows mean;
  for (const int input : inputs) mean.push_back(at::zeros_like(call.operands[input].value));
  for (int piece = 0; piece < pieces; ++piece) {
    for (size_t n = 0; n < nodes.size(); ++n) {
      const double t = (piece + nodes[n]) / pieces;
      std::vector<at::Tensor> points;
      for (size_t k = 0; k < call.operands.size(); ++k) {
        const RuleOperand& operand = call.operands[k];
        points.push_back(operand.decomposed ? operand.reference + t * call.Move(static_cast<int>(k)) : operand.value);
      }
      std::vector<at::Tensor> leaves;
      for (const int input : inputs) {
        points[input] = points[input].detach().clone().set_requires_grad(true);
        leaves.push_back(points[input]);
      }
      const auto outputs = call.run(call.arguments, points);
      std::vector<at::Tensor> roots;
      std::vector<at::Tensor> seeds;
      for (size_t k = 0; k < outputs.size(); ++k) {
        if (!cotangents[k].defined() || !outputs[k].requires_grad()) continue;
        roots.push_back(outputs[k]);
        seeds.push_back(cotangents[k]);
      }
      if (roots.empty()) continue;
      const auto gradients =
          torch::autograd::grad(roots, leaves, seeds, {}, /*create_graph=*/false, /*allow_unused=*/true);
      for (size_t k = 0; k < gradients.size(); ++k) {
        if (gradients[k].defined()) mean[k] += gradients[k].detach() * (weights[n] / pieces);
      }
    }
  }
  return mean;
}

Tracked Through(const std::string& op, const std::vector<TrackedArgument>& arguments, const Policy& policy) {
  std::vector<GivenArgument> own;
  std::vector<at::Tensor> rows;
  std::vector<std::pair<uint32_t, uint32_t>> origins;
  for (const TrackedArgument& argument : arguments) {
    if (!argument.is_tracked) {
      own.emplace_back(argument.fixed);
    } else if (argument.tracked.rows.defined()) {
      own.emplace_back(argument.tracked.value, argument.tracked.reference);
      rows.push_back(argument.tracked.rows);
      origins.emplace_back(argument.tracked.content_first, argument.tracked.by_magnitude);
    } else {
      own.emplace_back(argument.tracked.value);
    }
  }
  RuleCall call = OperatorCall(op, own).Describe(policy);
  Tracked result{call.outputs[0].value, call.outputs[0].reference, at::Tensor()};
  if (rows.empty()) return result;
  uint32_t shared = ~0u;
  uint32_t shared_by_magnitude = ~0u;
  for (size_t k = 0, next = 0; k < call.operands.size(); ++k) {
    RuleOperand& operand = call.operands[k];
    if (!operand.decomposed) continue;
    std::tie(operand.content_first, operand.by_magnitude) = origins[next++];
    shared &= operand.content_first;
    shared_by_magnitude &= operand.by_magnitude;
  }
  result.content_first = RuleOf(call).mark & policy.content_first & ~policy.FrozenKinds();
  result.by_magnitude = result.content_first & policy.by_magnitude;
  if (RuleOf(call).keeps_marks) {
    result.content_first |= shared;
    result.by_magnitude |= shared_by_magnitude;
  }
  const RuleResult rule = BuildRule(call);
  Rows inputs;
  for (const int input : rule.inputs) {
    size_t before = 0;
    for (int k = 0; k < input; ++k) before += call.operands[k].decomposed;
    inputs.push_back(rows[before]);
  }
  result.rows = Pass(call, rule, inputs, rows[0].size(0))[0];
  return result;
}

}  // namespace addend
