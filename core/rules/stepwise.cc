// Functions with steps. Between its steps such a function is flat, or runs along one of its operands; what it jumps by
// belongs to no component and is left over.
#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/round.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <utility>

#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

void RegisterFlat(Registry& registry, const char* name) { registry.Register({name, Kind::kOpaque, Opaque}); }

at::Tensor FiniteOrZero(const at::Tensor& t) { return t.masked_fill(at::isfinite(t).logical_not_(), 0); }
double Largest(const at::Tensor& t) { return t.numel() == 0 ? 0 : FiniteOrZero(t).abs().max().item<double>(); }

// The mean derivative along the line, which sees no jumps: they are what the quadrature leaves over. Where the
// reference is not finite, what the coefficients make of the value is the reference instead (Note [Stand-ins]).
RuleResult AlongSlopes(const RuleCall& call, std::vector<Term> terms) {
  RuleResult result = Elementwise(call, Kind::kPath, std::move(terms));
  Rows moves;
  for (const int input : result.inputs) moves.push_back(FiniteOrZero(call.Move(input)).unsqueeze(0));
  const at::Tensor passed = result.map->Forward(moves)[0].select(0, 0);
  const RuleOutput& output = call.outputs[0];
  const at::Tensor counted = at::isfinite(output.value);
  const at::Tensor broken = counted.logical_and(at::isfinite(output.reference).logical_not_());
  at::Tensor reference = output.reference;
  if (broken.any().item<bool>()) result.stand_in = reference = at::where(broken, output.value - passed, reference);
  const double left = Largest((output.value - reference - passed).masked_fill_(counted.logical_not(), 0));
  const double scale = std::max({Largest(output.value), Largest(reference), Largest(passed)});
  result.exact = false;
  result.quadrature = std::max(output.value.scalar_type() == at::kDouble ? 1e-12 : 1e-6, scale > 0 ? left / scale : 0);
  return result;
}

// x - trunc(x)
RuleResult Fraction(const RuleCall& call) { return AlongSlopes(call, {{call.OperandAt(0), 1.0}}); }

// x - y * q, where q is the quotient rounded to a whole number: slope 1 in x and -q in y, with q in the middle of what
// it is at both ends, as in every product; q itself is opaque.
RuleResult Remainder(const RuleCall& call) {
  const int x = call.OperandAt(0);
  const int y = call.OperandAt(1);
  std::vector<Term> terms;
  if (x >= 0) terms.push_back({x, 1.0});
  if (y >= 0 && call.operands[y].decomposed) {
    const auto quotient = [&](bool at_value) {
      const at::Tensor& divisor = at_value ? call.operands[y].value : call.operands[y].reference;
      const at::Tensor& rest = at_value ? call.outputs[0].value : call.outputs[0].reference;
      const at::Tensor difference =
          x < 0 ? call.Double(0, 0) - rest : (at_value ? call.operands[x].value : call.operands[x].reference) - rest;
      return at::round(difference / divisor);
    };
    const at::Tensor at_value = quotient(true);
    const at::Tensor at_reference = quotient(false);
    const at::Tensor middle = at::where(at::isfinite(at_reference), (at_value + at_reference) / 2, at_value);
    terms.push_back({y, -FiniteOrZero(middle)});
  }
  RuleResult result = AlongSlopes(call, terms);
  if (y >= 0 && call.operands[y].decomposed) result.kind = Kind::kOpaque;  // no mean derivative any more
  return result;
}

// 0 or 1, and `values` where the input is 0. Which it is, is taken from the value and holds for every row.
RuleResult Heaviside(const RuleCall& call) {
  const at::Tensor chosen = call.Require(0).value.eq(0).to(call.outputs[0].value.scalar_type());
  RuleResult result = Elementwise(call, Kind::kOpaque, {{call.OperandAt(1), chosen}});
  result.exact = false;
  return result;
}

}  // namespace

void RegisterStepwise(Registry& registry) {
  RegisterFlat(registry, "aten::round");
  RegisterFlat(registry, "aten::floor");
  RegisterFlat(registry, "aten::ceil");
  RegisterFlat(registry, "aten::trunc");
  RegisterFlat(registry, "aten::sign");
  RegisterFlat(registry, "aten::sgn");
  RegisterFlat(registry, "aten::floor_divide");
  registry.Register({"aten::heaviside", Kind::kOpaque, Heaviside});
  registry.Register({"aten::frac", Kind::kPath, Fraction});
  registry.Register({"aten::remainder", Kind::kPath, Remainder});
  registry.Register({"aten::fmod", Kind::kPath, Remainder});
}

}  // namespace addend
