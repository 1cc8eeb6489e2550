// Special functions, and elementwise functions of several tensors.
//
// Note [Steps]
// fmod, remainder, copysign, nextafter, frac and frexp are products and sums with something that is constant but for
// steps: a quotient without its fraction, a sign, a unit in the last place, an exponent. Between two steps they have a
// slope of their own, which the rows take, so a step is not shared as that of round is: it is left over. Where none
// lies between reference and value, nothing is.
#include <ATen/TensorOperators.h>
#include <ATen/ops/copysign.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/special_bessel_j0.h>
#include <ATen/ops/special_bessel_j1.h>
#include <ATen/ops/special_bessel_y0.h>
#include <ATen/ops/special_bessel_y1.h>
#include <ATen/ops/special_modified_bessel_i0.h>
#include <ATen/ops/special_modified_bessel_i1.h>
#include <ATen/ops/special_modified_bessel_k0.h>
#include <ATen/ops/special_modified_bessel_k1.h>
#include <ATen/ops/special_scaled_modified_bessel_k0.h>
#include <ATen/ops/special_scaled_modified_bessel_k1.h>
#include <ATen/ops/trunc.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"
#include "core/rules/row_operator.h"

namespace addend {
namespace {

// Decomposed, and read: what out= names is overwritten. In place, the first argument is written and read.
bool Moves(const RuleOperand& operand) { return operand.decomposed && !(operand.written && operand.argument > 0); }

// The elementwise function of the one decomposed operand among several.
RuleResult PointwiseInOne(const RuleCall& call, Curve curve) {
  RuleCall one = call;
  for (RuleOperand& operand : one.operands) operand.argument = Moves(operand) ? 0 : 1;
  return Pointwise(one, curve);
}

void Register(Registry& registry, const char* name, Curve curve, KnownDerivative known = nullptr) {
  registry.Register(Rule{name, Kind::kPointwise, [=](const RuleCall& call) { return Pointwise(call, curve, known); }});
}

// Bessel functions of orders 0 and 1, which LibTorch differentiates from 2.15 on. Formulas: DLMF 10.6.2,
// 10.6.3, 10.29.2 and 10.29.3. Functions J_1 and I_1 over x tend to 1/2 at zero.
at::Tensor OverX(const at::Tensor& y, const at::Tensor& x) {
  return at::where(x.eq(0), at::scalar_tensor(0.5, x.options()), y / x);
}
at::Tensor DerivativeOfJ0(const RuleCall&, const at::Tensor& x) { return -at::special_bessel_j1(x); }
at::Tensor DerivativeOfJ1(const RuleCall&, const at::Tensor& x) {
  return at::special_bessel_j0(x) - OverX(at::special_bessel_j1(x), x);
}
at::Tensor DerivativeOfY0(const RuleCall&, const at::Tensor& x) { return -at::special_bessel_y1(x); }
at::Tensor DerivativeOfY1(const RuleCall&, const at::Tensor& x) {
  return at::special_bessel_y0(x) - at::special_bessel_y1(x) / x;
}
at::Tensor DerivativeOfI0(const RuleCall&, const at::Tensor& x) { return at::special_modified_bessel_i1(x); }
at::Tensor DerivativeOfI1(const RuleCall&, const at::Tensor& x) {
  return at::special_modified_bessel_i0(x) - OverX(at::special_modified_bessel_i1(x), x);
}
at::Tensor DerivativeOfK0(const RuleCall&, const at::Tensor& x) { return -at::special_modified_bessel_k1(x); }
at::Tensor DerivativeOfK1(const RuleCall&, const at::Tensor& x) {
  return -at::special_modified_bessel_k0(x) - at::special_modified_bessel_k1(x) / x;
}
// e^x K_0(x) and e^x K_1(x)
at::Tensor DerivativeOfScaledK0(const RuleCall&, const at::Tensor& x) {
  return at::special_scaled_modified_bessel_k0(x) - at::special_scaled_modified_bessel_k1(x);
}
at::Tensor DerivativeOfScaledK1(const RuleCall&, const at::Tensor& x) {
  const at::Tensor k1 = at::special_scaled_modified_bessel_k1(x);
  return k1 - at::special_scaled_modified_bessel_k0(x) - k1 / x;
}

int CountDecomposed(const RuleCall& call) {
  int count = 0;
  for (const RuleOperand& operand : call.operands) count += Moves(operand) ? 1 : 0;
  return count;
}

// A tensor argument, or the number in its place.
struct Ends {
  int operand = -1;
  at::Tensor value;
  at::Tensor reference;
};

Ends EndsOf(const RuleCall& call, std::string_view argument) {
  const at::Tensor& output = call.outputs[0].value;
  Ends ends;
  ends.operand = call.OperandAt(argument);
  if (ends.operand < 0) {
    ends.value = ends.reference = at::scalar_tensor(call.Double(argument, 0), output.options());
  } else {
    ends.value = call.operands[ends.operand].value.to(output.scalar_type());
    ends.reference = call.operands[ends.operand].reference.to(output.scalar_type());
  }
  return ends;
}

struct Partial {
  int operand;
  at::Tensor mean;     // of the partial derivative, along the line
  at::Tensor tangent;  // the partial derivative at the value
};

// Elementwise with these coefficients; linearized at the value where the function is not finite at the reference.
RuleResult Combine(const RuleCall& call, std::vector<Partial> partials) {
  const RuleOutput& output = call.outputs[0];
  std::vector<Term> terms;
  const at::Tensor broken = at::isfinite(output.reference).logical_not_().logical_and_(at::isfinite(output.value));
  const bool some_broken = ReadFlag(broken.any());
  at::Tensor met = output.value;
  for (const Partial& partial : partials) {
    if (partial.operand < 0 || !call.operands[partial.operand].decomposed) continue;
    at::Tensor mean = FiniteOrZero(partial.mean);
    if (some_broken) {
      const at::Tensor tangent = FiniteOrZero(partial.tangent);
      mean = at::where(broken, tangent, mean);
      met = met - tangent * FiniteOrZero(call.Move(partial.operand));
    }
    terms.push_back({partial.operand, mean});
  }
  RuleResult result = Elementwise(call, Kind::kPointwise, std::move(terms));
  if (some_broken) result.stand_ins = {at::where(broken, met, output.reference)};
  return result;
}

// log(e^a + e^b) = b + softplus(a - b): along the line, the mean weight of a is the secant slope of softplus.
RuleResult LogAddExp(const RuleCall& call, double log_of_base) {
  const Ends a = EndsOf(call, "self");
  const Ends b = EndsOf(call, "other");
  const auto softplus = [](const at::Tensor& d) { return at::relu(d) + at::log1p(at::exp(-d.abs())); };
  const at::Tensor value = (a.value - b.value) * log_of_base;
  const at::Tensor reference = (a.reference - b.reference) * log_of_base;
  const at::Tensor share = SecantSlope(value, reference, softplus(value), softplus(reference), Curve::kSmooth,
                                       [](const at::Tensor& d) { return at::sigmoid(d); });
  const at::Tensor tangent = at::sigmoid(value);
  return Combine(call, {{a.operand, share, tangent}, {b.operand, 1 - share, 1 - tangent}});
}

// x log(y + shift). Along the line log has the mean of its antiderivative, and x / y, a quotient of two linear
// functions, a mean of its own.
RuleResult XLogY(const RuleCall& call, double shift) {
  if (CountDecomposed(call) == 1 && call.Decomposed("other")) return PointwiseInOne(call, Curve::kPower);
  const Ends x = EndsOf(call, "self");
  const Ends y = EndsOf(call, "other");
  const at::Tensor move_x = MoveOf(x.value, x.reference);
  const at::Tensor move_y = MoveOf(y.value, y.reference);
  const auto log = [&](const at::Tensor& t) { return shift == 0 ? at::log(t) : at::log1p(t); };
  const at::Tensor end = y.value + shift;
  const at::Tensor start = y.reference + shift;
  // (y log y - y) / move loses digits where the line is short for its distance from zero; there few nodes are exact.
  const auto antiderivative = [&](const at::Tensor& t, const at::Tensor& moved) {
    return (moved * log(t) - moved).masked_fill_(moved.eq(0), 0);
  };
  at::Tensor mean_log = (antiderivative(y.value, end) - antiderivative(y.reference, start)) / move_y;
  const at::Tensor ratio = move_x / move_y;
  const at::Tensor rest = x.reference - start * ratio;
  at::Tensor mean_quotient = ratio + (rest * (log(y.value) - log(y.reference)) / move_y).masked_fill_(rest.eq(0), 0);
  const at::Tensor short_line = move_y.abs().le((end + start).abs() * 0.5);
  if (ReadFlag(short_line.any())) {
    at::Tensor log_by_nodes = at::zeros_like(mean_log);
    at::Tensor quotient_by_nodes = at::zeros_like(mean_quotient);
    const Quadrature rule = GaussLegendre(16);
    for (size_t k = 0; k < rule.nodes.size(); ++k) {
      log_by_nodes += log(y.reference + move_y * rule.nodes[k]) * rule.weights[k];
      quotient_by_nodes += (x.reference + move_x * rule.nodes[k]) / (start + move_y * rule.nodes[k]) * rule.weights[k];
    }
    mean_log = at::where(short_line, log_by_nodes, mean_log);
    mean_quotient = at::where(short_line, quotient_by_nodes, mean_quotient);
  }
  return Combine(call, {{x.operand, mean_log, log(y.value)}, {y.operand, mean_quotient, x.value / end}});
}

// The second result is exp(-|x|), kept for the backward pass; it has no elements where that does not want it.
RuleResult LogSigmoid(const RuleCall& call) {
  RuleResult result = Pointwise(call, Curve::kSmooth);
  if (call.outputs[1].value.numel() == 0) return result;
  const RuleOperand& x = call.Require("self");
  const at::Tensor first = *result.map->Scale();
  const at::Tensor second =
      SecantSlope(x.value, x.reference, call.outputs[1].value, call.outputs[1].reference, Curve::kSmooth,
                  [](const at::Tensor& t) { return -t.sign() * at::exp(-t.abs()); });
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    return {rows[0] * first, rows[0] * second};
  });
  return result;
}

// start + weight * (end - start)
RuleResult Lerp(const RuleCall& call) {
  const Ends start = EndsOf(call, "self");
  const Ends end = EndsOf(call, "end");
  const Ends weight = EndsOf(call, "weight");
  RuleOperand factor;
  if (weight.operand >= 0) factor = call.operands[weight.operand];
  factor.value = weight.value;
  factor.reference = weight.reference;
  RuleOperand span;
  span.value = end.value - start.value;
  span.reference = end.reference - start.reference;
  span.decomposed = call.Decomposed("self") || call.Decomposed("end");
  const Meeting meeting = MeetByElement(*call.policy, factor, span);
  std::vector<Term> terms = {{start.operand, 1 - meeting.first}, {end.operand, meeting.first}};
  if (meeting.first_moves) terms.push_back({weight.operand, meeting.second});
  return Elementwise(call, Kind::kBilinear, std::move(terms));
}

// a - quotient * b, for fmod and remainder; see Note [Steps].
RuleResult Remainder(const RuleCall& call) {
  const Ends a = EndsOf(call, "self");
  const Ends b = EndsOf(call, "other");
  const RuleOutput& output = call.outputs[0];
  const at::Tensor quotient = FiniteOrZero(at::round((a.value - output.value) / b.value));
  const at::Tensor at_reference = FiniteOrZero(at::round((a.reference - output.reference) / b.reference));
  std::vector<Term> terms;
  if (a.operand >= 0) terms.push_back({a.operand, 1.0});
  if (b.operand >= 0) terms.push_back({b.operand, (quotient + at_reference) / -2});
  RuleResult result = Elementwise(call, Kind::kBilinear, std::move(terms));
  result.exact = ReadEqual(quotient, at_reference);
  return result;
}

// |a| times a sign; see Note [Steps].
RuleResult CopySign(const RuleCall& call) {
  const Ends a = EndsOf(call, "self");
  const Ends b = EndsOf(call, "other");
  const auto sign_of = [](const at::Tensor& t) { return at::copysign(at::scalar_tensor(1.0, t.options()), t); };
  const at::Tensor sign = sign_of(b.value);
  const at::Tensor at_reference = sign_of(b.reference);
  const at::Tensor slope = SecantSlope(a.value, a.reference, a.value.abs(), a.reference.abs(), Curve::kPiecewiseLinear,
                                       [](const at::Tensor& t) { return t.sgn(); });
  RuleResult result = Elementwise(call, Kind::kBilinear, {{a.operand, slope * (sign + at_reference) / 2}});
  result.exact = ReadEqual(sign, at_reference);
  return result;
}

// The next number beside x: x, but for one unit in its last place. Where that is more than rounding, next to zero, the
// unit is left over.
RuleResult NextAfter(const RuleCall& call) {
  const RuleOperand& x = call.Require("self");
  const RuleOutput& output = call.outputs[0];
  if (!Moves(x)) return Opaque(call);
  RuleResult result = Elementwise(call, Kind::kPointwise, {{call.OperandAt("self"), 1.0}});
  const at::Tensor missed = ((output.value - output.reference) - call.Move(call.OperandAt("self"))).abs();
  const double eps = output.value.scalar_type() == at::kDouble ? 2.3e-16 : 1.2e-7;
  result.exact = ReadFlag(missed.le((x.value.abs() + x.reference.abs()) * (2 * eps)).all());
  return result;
}

RuleResult Fraction(const RuleCall& call) {
  const RuleOperand& x = call.Require("self");
  RuleResult result = Elementwise(call, Kind::kPointwise, {{call.OperandAt("self"), 1.0}});
  result.exact = ReadEqual(at::trunc(x.value), at::trunc(x.reference));
  return result;
}

// The mantissa is the number times a power of two; the exponent is plain.
RuleResult Mantissa(const RuleCall& call) {
  const RuleOperand& x = call.Require("self");
  // The exponent of this very value: the recorded one is that of the line's end; see Note [Segments].
  const at::Tensor exponent = call.run(call.arguments, {x.value})[1];
  const at::Tensor scale = at::exp2(exponent.neg().to(x.value.scalar_type()));
  RuleResult result = Elementwise(call, Kind::kPointwise, {{call.OperandAt("self"), scale}});
  result.exact = ReadEqual(x.reference * scale, call.outputs[0].reference);
  return result;
}

// Passes finite elements; the numbers that replace the others do not move.
RuleResult NanToNum(const RuleCall& call) {
  const RuleOperand& x = call.Require("self");
  const at::Tensor replaced = at::isfinite(x.value).logical_not_();
  const auto keep = [replaced](const at::Tensor& rows) { return rows.masked_fill(replaced, 0); };
  RuleResult result = LinearIn(call, Kind::kAffine, "self", keep, keep);
  result.exact = ReadEqual(replaced, at::isfinite(x.reference).logical_not_());
  return result;
}

// rrelu_with_noise(self, noise, lower, upper, training): a slope is drawn for each element that is not positive. The
// one drawn at the value holds for the line; where another was drawn at the reference, the difference is left over.
RuleResult RandomRelu(const RuleCall& call) {
  if (!call.Bool("training", false)) return Pointwise(call, Curve::kPiecewiseLinear);
  const RuleOperand& x = call.Require("self");
  const RuleOutput& output = call.outputs[0];
  const at::Tensor drawn = at::where(x.value.lt(0), output.value / x.value, output.reference / x.reference);
  const at::Tensor slope = at::where(x.value.lt(0).logical_or(x.reference.lt(0)), drawn, at::ones_like(drawn));
  const auto relu = [&](const at::Tensor& t) { return at::where(t.gt(0), t, t * slope); };
  const auto derivative = [&](const at::Tensor& t) { return at::where(t.gt(0), at::ones_like(t), slope); };
  RuleResult result = Elementwise(
      call, Kind::kPointwise,
      {{call.OperandAt("self"),
        SecantSlope(x.value, x.reference, relu(x.value), relu(x.reference), Curve::kPiecewiseLinear, derivative)}});
  const at::Tensor missed = (relu(x.reference) - output.reference).abs();
  result.exact = ReadFlag(missed.le(x.reference.abs() * 1e-5).all());
  return result;
}

// pow of two tensors or of a number and a tensor. Between two tensors that both move there is no closed form.
RuleResult Power(const RuleCall& call) {
  return CountDecomposed(call) == 1 ? PointwiseInOne(call, Curve::kPower) : PathElementwise(call);
}

RuleResult ArcTangent(const RuleCall& call) {
  return CountDecomposed(call) == 1 ? PointwiseInOne(call, Curve::kPower) : PathElementwise(call);
}

}  // namespace

void RegisterSpecial(Registry& registry) {
  for (const char* name :
       {"aten::asinh", "aten::erfc", "aten::exp2", "aten::i0", "aten::special_i0e", "aten::special_i1",
        "aten::special_i1e", "aten::special_ndtr", "aten::special_log_ndtr", "aten::special_erfcx", "aten::sinc",
        "aten::tan", "aten::acos", "aten::asin", "aten::atanh", "aten::erfinv", "aten::special_ndtri", "aten::logit"}) {
    Register(registry, name, Curve::kSmooth);
  }
  for (const char* name : {"aten::acosh", "aten::special_entr"}) Register(registry, name, Curve::kPower);
  Register(registry, "aten::special_bessel_j0", Curve::kSmooth, DerivativeOfJ0);
  Register(registry, "aten::special_bessel_j1", Curve::kSmooth, DerivativeOfJ1);
  Register(registry, "aten::special_bessel_y0", Curve::kPower, DerivativeOfY0);
  Register(registry, "aten::special_bessel_y1", Curve::kPower, DerivativeOfY1);
  Register(registry, "aten::special_modified_bessel_i0", Curve::kSmooth, DerivativeOfI0);
  Register(registry, "aten::special_modified_bessel_i1", Curve::kSmooth, DerivativeOfI1);
  Register(registry, "aten::special_modified_bessel_k0", Curve::kPower, DerivativeOfK0);
  Register(registry, "aten::special_modified_bessel_k1", Curve::kPower, DerivativeOfK1);
  Register(registry, "aten::special_scaled_modified_bessel_k0", Curve::kPower, DerivativeOfScaledK0);
  Register(registry, "aten::special_scaled_modified_bessel_k1", Curve::kPower, DerivativeOfScaledK1);
  // At zero, and at every negative integer.
  for (const char* name : {"aten::digamma", "aten::lgamma", "aten::mvlgamma", "aten::polygamma"}) {
    registry.Register(
        Rule{name, Kind::kPointwise, [](const RuleCall& c) { return PointwiseInOne(c, Curve::kPower); }}.HasPoles());
  }
  registry.Register(Rule{"aten::log_sigmoid_forward", Kind::kPointwise, LogSigmoid});
  registry.Register(Rule{"aten::hardshrink", Kind::kPointwise,
                         [](const RuleCall& c) { return Pointwise(c, Curve::kPiecewiseLinear); }});
  for (const char* name : {"aten::deg2rad", "aten::rad2deg"}) {
    registry.Register(Rule{name, Kind::kLinear, [](const RuleCall& c) { return LinearOperator(c, Kind::kLinear); }});
  }

  registry.Register(Rule{"aten::logaddexp", Kind::kPointwise, [](const RuleCall& c) { return LogAddExp(c, 1); }});
  registry.Register(Rule{"aten::logaddexp2", Kind::kPointwise, [](const RuleCall& c) { return LogAddExp(c, M_LN2); }});
  registry.Register(Rule{"aten::xlogy", Kind::kPointwise, [](const RuleCall& c) { return XLogY(c, 0); }});
  registry.Register(Rule{"aten::special_xlog1py", Kind::kPointwise, [](const RuleCall& c) { return XLogY(c, 1); }});
  registry.Register(Rule{"aten::lerp", Kind::kBilinear, Lerp});
  registry.Register(Rule{"aten::pow.Tensor_Tensor", Kind::kPath, Power});
  registry.Register(Rule{"aten::atan2", Kind::kPath, ArcTangent});
  registry.Register(
      Rule{"aten::pow.Scalar", Kind::kPointwise, [](const RuleCall& c) { return PointwiseInOne(c, Curve::kSmooth); }});

  registry.Register(Rule{"aten::rrelu_with_noise", Kind::kPointwise, RandomRelu});
  registry.Register(Rule{"aten::fmod", Kind::kBilinear, Remainder});
  registry.Register(Rule{"aten::remainder", Kind::kBilinear, Remainder});
  registry.Register(Rule{"aten::copysign", Kind::kBilinear, CopySign});
  registry.Register(Rule{"aten::nextafter", Kind::kPointwise, NextAfter});
  registry.Register(Rule{"aten::frac", Kind::kPointwise, Fraction});
  registry.Register(Rule{"aten::frexp", Kind::kPointwise, Mantissa});
  registry.Register(Rule{"aten::nan_to_num", Kind::kAffine, NanToNum}.KeepsMarks());
}

}  // namespace addend
