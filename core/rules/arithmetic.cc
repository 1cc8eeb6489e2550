// Sums, products and quotients, and the writes that put them into place.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <optional>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/joint.h"
#include "core/rules/kinds.h"
#include "core/rules/steps.h"

namespace addend {
namespace {

// The number that a product or a quotient has in place of its second tensor, which may be complex. `inverse`: one over
// it.
Coefficient OtherNumber(const RuleCall& call, bool inverse = false) {
  const c10::IValue& given = call.Given("other");
  if (!given.isScalar() || !given.toScalar().isComplex()) {
    const double number = call.Double("other", 1);
    return inverse ? 1 / number : number;
  }
  const at::Tensor number = at::scalar_tensor(given.toScalar(), call.outputs[0].value.options());
  return inverse ? number.reciprocal() : number;
}

RuleResult Sum(const RuleCall& call, double sign_self, double sign_other) {
  const double alpha = call.Double("alpha", 1);
  // rsub is other - alpha * self; add and sub are self + alpha * other.
  const double self = sign_self < 0 ? -alpha : 1;
  const double other = sign_self < 0 ? 1 : sign_other * alpha;
  std::vector<Term> terms;
  if (call.OperandAt("self") >= 0) terms.push_back({call.OperandAt("self"), self});
  if (call.OperandAt("other") >= 0) terms.push_back({call.OperandAt("other"), other});
  return Elementwise(call, Kind::kAffine, std::move(terms));
}

// scale * x * y.
std::vector<Term> ProductTerms(const RuleCall& call, int x, int y, double scale) {
  const Meeting meeting = MeetByElement(*call.policy, call.operands[x], call.operands[y]);
  const auto scaled = [&](const at::Tensor& t) { return scale == 1 ? t : t * scale; };
  std::vector<Term> terms;
  if (meeting.first_moves) terms.push_back({x, scaled(meeting.second)});
  if (meeting.second_moves) terms.push_back({y, scaled(meeting.first)});
  return terms;
}

RuleResult Multiply(const RuleCall& call) {
  const int a = call.OperandAt("self");
  const int b = call.OperandAt("other");
  if (b < 0) return Elementwise(call, Kind::kLinear, {{a, OtherNumber(call)}});
  const RuleOperand& x = call.operands[a];
  const RuleOperand& y = call.operands[b];
  if (!x.decomposed || !y.decomposed) {
    return Elementwise(call, Kind::kLinear, {{a, y.value}, {b, x.value}});
  }
  return Elementwise(call, Kind::kBilinear, ProductTerms(call, a, b, 1));
}

// a / d under another choice than path: the product of a with 1 / d, which is the elementwise function that the policy
// speaks of. `inverse`: 1 / d, `anchor` its reference, `secant` its slope between both, `met` the numerator that the
// rows of 1 / d meet where content comes first, undefined where both move by half.
RuleResult DivideByPolicy(const RuleCall& call, int a, int d, const at::Tensor& inverse, const at::Tensor& anchor,
                          const at::Tensor& secant, const at::Tensor& met) {
  const Nonlinearity choice = call.policy->nonlinearity;
  at::Tensor slope = secant;
  if (choice == Nonlinearity::kScaling) slope = inverse * inverse;
  if (choice == Nonlinearity::kGradient) slope = -inverse * inverse;
  if (choice == Nonlinearity::kNone) slope = at::zeros_like(inverse);
  const bool along_secant = choice == Nonlinearity::kAbsAffine || choice == Nonlinearity::kHybridAffine;
  // Start from the reference of 1 / d with its leftover added if residuals are anchors: it joins that before the
  // product is taken.
  const at::Tensor start = !along_secant && call.policy->anchor == Anchor::kResidual
                               ? inverse - slope * call.Move(d).to(inverse.scalar_type())
                               : anchor;
  at::Tensor middle = met;
  if (a < 0) middle = at::full({}, call.Double("self", 1), inverse.options());
  if (!middle.defined()) middle = Middle(call.operands[a]);
  const at::Tensor factor = met.defined() ? inverse : (inverse + start) / 2;
  std::vector<Term> terms;
  if (a >= 0) terms.push_back({a, factor});
  terms.push_back({d, middle * slope});
  RuleResult result = Elementwise(call, Kind::kBilinear, std::move(terms));
  result.exact = along_secant;
  if (!along_secant) return result;
  const double share = call.policy->NonlinearityThreshold();
  const std::optional<double> threshold =
      choice == Nonlinearity::kAbsAffine ? std::nullopt : std::optional<double>(share);
  const at::DimVector sizes(call.outputs[0].value.sizes());
  const int64_t rank = static_cast<int64_t>(sizes.size());
  result.joint = [=](const Rows& rows) -> Rows {
    at::Tensor sum = RightAlign(SpreadByMagnitude(rows.back(), slope, threshold), rank) * middle;
    if (rows.size() > 1) sum = sum + RightAlign(rows[0], rank) * factor;
    at::DimVector all = {sum.size(0)};
    all.append(sizes.begin(), sizes.end());
    return {sum.expand(all)};
  };
  return result;
}

// The numbers that a rule of a / d is made of; tensors broadcast.
struct Quotient {
  at::Tensor inverse;            // 1 / d
  at::Tensor inverse_reference;  // 1 / its reference
  at::Tensor pole;               // where the quotient is linearized at the value (Note [Stand-ins]); undefined: nowhere

  at::Tensor AtValueWherePole(const at::Tensor& tangent, const at::Tensor& secant) const {
    return pole.defined() ? at::where(pole, tangent, secant) : secant;
  }
};

// Mask of elements with a pole on the line: the reference of d is zero, or has the other sign. `both`: a and d both
// move by half.
at::Tensor PolesOf(const RuleCall& call, int a, int d, const Quotient& q, bool both) {
  const RuleOperand& divisor = call.operands[d];
  // Compare the inverses of real numbers, because the product of two small divisors may be rounded to zero.
  const at::ScalarType dtype = q.inverse.scalar_type();
  const at::Tensor crosses = q.inverse.is_complex() ? PassesZero(divisor.reference.to(dtype), divisor.value.to(dtype))
                                                    : PassesZero(q.inverse_reference, q.inverse);
  const at::Tensor pole =
      q.inverse_reference.isfinite().logical_not_().logical_or_(crosses).logical_and_(q.inverse.isfinite());
  if (!both) return pole;
  // Treat it as a pole if both start from almost nothing (x over the norm of x, kept from zero by 1e-12): the terms of
  // a and of d are huge and cancel, and more than half of the digits would be gone.
  const bool is_double = dtype == at::kDouble || dtype == at::kComplexDouble;
  const double steep = is_double ? 1e8 : 1e4;
  const at::Tensor rises = q.inverse_reference.abs().gt(q.inverse.abs() * steep);
  if (!MayHaveAny(rises)) return pole;
  const RuleOperand& numerator = call.operands[a];
  const at::Tensor starts = (numerator.reference.abs() * steep).le(numerator.value.abs());
  return pole.logical_or(rises.logical_and(starts).logical_and_(q.inverse.isfinite()));
}

// Content first: (da - y' dd) / d with y' the reference of the quotient. The reference of d is under no other number,
// so that a pole on the line means nothing: all is finite where y' is.
RuleResult DivideContentFirst(const RuleCall& call, int a, int d, Quotient& q) {
  const RuleOperand& numerator = call.operands[a];
  if (call.policy->nonlinearity != Nonlinearity::kPath) {
    if (!AllFinite(q.inverse_reference))
      q.pole = q.inverse_reference.isfinite().logical_not_().logical_and_(q.inverse.isfinite());
    return DivideByPolicy(call, a, d, q.inverse, q.AtValueWherePole(q.inverse, q.inverse_reference),
                          -q.inverse * q.AtValueWherePole(q.inverse, q.inverse_reference),
                          q.AtValueWherePole(numerator.value, numerator.reference));
  }
  const at::Tensor reference = numerator.reference * q.inverse_reference;
  if (!AllFinite(reference)) q.pole = reference.isfinite().logical_not_().logical_and_(q.inverse.isfinite());
  const at::Tensor met = q.AtValueWherePole(numerator.value * q.inverse, reference);
  return Elementwise(call, Kind::kBilinear, {{a, q.inverse}, {d, -q.inverse * met}});
}

// The product of a with 1 / d, whose secant slope is -1 / (d * reference of d), by half; a may be plain or a number.
RuleResult DivideByHalf(const RuleCall& call, int a, int d, const Quotient& q) {
  const at::Tensor slope = -q.inverse * q.AtValueWherePole(q.inverse, q.inverse_reference);
  if (call.policy->nonlinearity != Nonlinearity::kPath) {
    return DivideByPolicy(call, a, d, q.inverse, q.AtValueWherePole(q.inverse, q.inverse_reference), slope, {});
  }
  if (a < 0) return Elementwise(call, Kind::kBilinear, {{d, slope * call.Double("self", 1)}});
  const RuleOperand& numerator = call.operands[a];
  const at::Tensor factor = q.AtValueWherePole(q.inverse, (q.inverse + q.inverse_reference) / 2);
  const at::Tensor middle = q.AtValueWherePole(numerator.value, Middle(numerator));
  return Elementwise(call, Kind::kBilinear, {{a, factor}, {d, middle * slope}});
}

// a / d is the product of a with 1 / d. A divisor is a coefficient wherever it comes from.
RuleResult DivideExactly(const RuleCall& call) {
  const int a = call.OperandAt("self");
  const int d = call.OperandAt("other");
  if (d < 0) return Elementwise(call, Kind::kLinear, {{a, OtherNumber(call, /*inverse=*/true)}});
  const RuleOperand& divisor = call.operands[d];
  // An integer divisor would be inverted in float32, whatever the output is.
  const at::ScalarType dtype = call.outputs[0].value.scalar_type();
  Quotient q;
  q.inverse = divisor.value.to(dtype).reciprocal();
  if (!divisor.decomposed) return Elementwise(call, Kind::kLinear, {{a, q.inverse}});
  q.inverse_reference = divisor.reference.to(dtype).reciprocal();
  const bool both = a >= 0 && call.operands[a].decomposed;
  const bool frozen = call.policy->Freezes(kFreezeDenominator) ||
                      (call.policy->Freezes(kFreezeNormalizer) && (divisor.marks & kFreezeNormalizer) != 0);
  const bool content_first =
      (call.policy->content_first & kFreezeDenominator) != 0 || (divisor.content_first & kFreezeNormalizer) != 0;
  RuleResult result;
  if (both && !frozen && content_first) {
    result = DivideContentFirst(call, a, d, q);
  } else {
    const at::Tensor pole = PolesOf(call, a, d, q, both && !frozen);
    if (ReadFlag(pole.any())) q.pole = pole;
    result = both && frozen ? Elementwise(call, Kind::kBilinear, {{a, q.inverse}}) : DivideByHalf(call, a, d, q);
  }
  if (q.pole.defined()) {
    Rows moves;
    for (const int input : result.inputs) moves.push_back(call.Move(input).unsqueeze(0));
    const RuleOutput& output = call.outputs[0];
    result.stand_ins = {at::where(q.pole, output.value - result.map->Forward(moves)[0].select(0, 0), output.reference)};
  }
  return result;
}

// A quotient that is rounded is that of a / d and then constant but for steps. Of other choices than path the quotient
// would leave something over, of which nobody knows how much of a step it is: then all of the step is left over.
RuleResult DivideInSteps(const RuleCall& call) {
  if (call.policy->nonlinearity != Nonlinearity::kPath) return Opaque(call);
  const RuleOutput& output = call.outputs[0];
  const auto quotient = [&](bool reference) {
    const auto of = [&](std::string_view argument, double number) {
      const int k = call.OperandAt(argument);
      if (k < 0) return at::full({}, number, output.value.options());
      return (reference ? call.operands[k].reference : call.operands[k].value).to(output.value.scalar_type());
    };
    return of("self", call.Double("self", 1)) / of("other", call.Double("other", 1));
  };
  RuleCall exactly = call;
  exactly.outputs[0].value = quotient(false);
  exactly.outputs[0].reference = quotient(true);
  RuleResult result = DivideExactly(exactly);
  if (result.map == nullptr || !AllFinite(exactly.outputs[0].reference) || !result.stand_ins.empty()) {
    return Opaque(call);
  }
  bool exact = true;
  const at::Tensor slope = SlopeOfSteps(exactly.outputs[0].value, exactly.outputs[0].reference,
                                        output.value - output.reference, /*at_rest=*/1, &exact);
  const std::shared_ptr<const LinearMap> divide = result.map;
  result.map = MakeMap(
      call, result.inputs, [=](const Rows& rows) -> Rows { return {divide->Forward(rows)[0] * slope}; },
      [=](const Rows& cotangents) { return divide->Transpose({cotangents[0] * slope}); });
  result.kind = Kind::kPointwise;
  result.exact = exact;
  return result;
}

RuleResult Divide(const RuleCall& call) {
  return call.IsNone("rounding_mode") ? DivideExactly(call) : DivideInSteps(call);
}

RuleResult Negate(const RuleCall& call) { return Elementwise(call, Kind::kLinear, {{call.OperandAt("self"), -1.0}}); }

// Passes the rows of copy_'s source. What copy_ and fill overwrite plays no part, and a fill by a plain number passes
// no rows.
RuleResult Copy(const RuleCall& call) { return Elementwise(call, Kind::kLinear, {{call.OperandAt("src"), 1.0}}); }

RuleResult Fill(const RuleCall& call) {
  if (call.Decomposed("value")) return Elementwise(call, Kind::kLinear, {{call.OperandAt("value"), 1.0}});
  RuleResult result;
  result.kind = Kind::kAffine;
  return result;
}

// input + value * t1 * t2: a sum and a product of two.
RuleResult AddProduct(const RuleCall& call) {
  const double scale = call.Double("value", 1);
  std::vector<Term> terms;
  if (call.OperandAt("self") >= 0) terms.push_back({call.OperandAt("self"), 1.0});
  for (Term& term : ProductTerms(call, call.OperandAt("tensor1"), call.OperandAt("tensor2"), scale))
    terms.push_back(std::move(term));
  return Elementwise(call, Kind::kBilinear, std::move(terms));
}

// Each operand where its mask is true. Not a product with the mask: what is not taken may be infinite or NaN.
RuleResult Choose(const RuleCall& call, const std::vector<std::pair<int, at::Tensor>>& choices) {
  RuleResult result;
  result.kind = Kind::kAffine;
  std::vector<at::Tensor> left_out;
  std::vector<at::DimVector> sizes;
  for (const auto& [operand, mask] : choices) {
    if (operand < 0 || !call.operands[operand].decomposed) continue;
    result.inputs.push_back(operand);
    left_out.push_back(mask.logical_not());
    sizes.emplace_back(call.operands[operand].value.sizes());
  }
  if (result.inputs.empty()) return result;
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  result.map = MakeMap(
      call, result.inputs,
      [=](const Rows& rows) -> Rows {
        at::DimVector all = WithRows(rows[0].size(0), output_sizes);
        at::Tensor sum;
        for (size_t k = 0; k < rows.size(); ++k) {
          const at::Tensor aligned = RightAlign(rows[k], static_cast<int64_t>(output_sizes.size())).expand(all);
          const at::Tensor taken = aligned.masked_fill(left_out[k], 0);
          sum = sum.defined() ? sum + taken : taken;
        }
        return {sum};
      },
      [=](const Rows& cotangents) -> Rows {
        Rows out;
        for (size_t k = 0; k < sizes.size(); ++k) {
          out.push_back(at::sum_to(cotangents[0].masked_fill(left_out[k], 0), sizes[k]));
        }
        return out;
      });
  return result;
}

// The condition is taken from the value and holds for every row.
RuleResult Where(const RuleCall& call) {
  const at::Tensor condition = call.Require("condition").value.to(at::kBool);
  return Choose(call, {{call.OperandAt("self"), condition}, {call.OperandAt("other"), condition.logical_not()}});
}

RuleResult MaskedFill(const RuleCall& call) {
  const at::Tensor mask = call.Require("mask").value.to(at::kBool);
  return Choose(call, {{call.OperandAt("self"), mask.logical_not()}, {call.OperandAt("value"), mask}});
}

// Marks a quotient of a plain numerator and a decomposed tensor.
uint32_t MarkOfQuotient(const CallArguments& /*call*/, const std::vector<bool>& decomposed) {
  return decomposed.size() == 2 && !decomposed[0] && decomposed[1] ? uint32_t{kFreezeDenominator} : 0;
}

// Factors of the arguments of add, sub and rsub(self, other, alpha).
double InAdd(const RuleCall& call, int argument) { return argument == 0 ? 1 : call.Double("alpha", 1); }
double InSub(const RuleCall& call, int argument) { return argument == 0 ? 1 : -call.Double("alpha", 1); }
double InRsub(const RuleCall& call, int argument) { return argument == 0 ? -call.Double("alpha", 1) : 1; }

}  // namespace

void RegisterArithmetic(Registry& registry) {
  registry.Register(Rule{"aten::add", Kind::kAffine, [](const RuleCall& c) { return Sum(c, 1, 1); }}
                        .Adds(2, InAdd)
                        .MadeOfSizes()
                        .InAttention(AttentionStep::kAdd)
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::sub", Kind::kAffine, [](const RuleCall& c) { return Sum(c, 1, -1); }}
                        .Adds(2, InSub)
                        .MadeOfSizes()
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::rsub", Kind::kAffine, [](const RuleCall& c) { return Sum(c, -1, 1); }}
                        .Adds(2, InRsub)
                        .MadeOfSizes()
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::mul", Kind::kBilinear, Multiply}
                        .Multiplies()
                        .Gates()
                        .InAttention(AttentionStep::kMultiply)
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::div", Kind::kBilinear, Divide}
                        .HasPoles()
                        .MarksBy(MarkOfQuotient)
                        .InAttention(AttentionStep::kDivide)
                        .KeepsMarks()
                        .CoversComplex());
  registry.Register(Rule{"aten::floor_divide", Kind::kPointwise, DivideInSteps});
  registry.Register(Rule{"aten::neg", Kind::kLinear, Negate}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::addcmul", Kind::kBilinear, AddProduct}.CoversComplex());
  registry.Register(Rule{"aten::copy", Kind::kLinear, Copy}.MadeOfSizes().KeepsMarks().CoversComplex());
  registry.Register(Rule{"aten::fill", Kind::kAffine, Fill}.CoversComplex());
  registry.Register(Rule{"aten::zero", Kind::kAffine, Fill}.CoversComplex());
  // Not of where(condition), which lists the places of what is true.
  for (const char* name : {"aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther"}) {
    registry.Register(
        Rule{name, Kind::kAffine, Where}.MadeOfSizes().InAttention(AttentionStep::kShow).KeepsMarks().CoversComplex());
  }
  registry.Register(Rule{"aten::masked_fill", Kind::kAffine, MaskedFill}
                        .MadeOfSizes()
                        .InAttention(AttentionStep::kHide)
                        .KeepsMarks()
                        .CoversComplex());
}

}  // namespace addend
