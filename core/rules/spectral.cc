// Fourier transforms, and what is peculiar to complex numbers.
//
// Note [Complex rows]
// Rows of a complex tensor are complex. Most maps are linear over the complex numbers and need nothing new: a product
// multiplies by complex coefficients, and a holomorphic function has the secant slope (f(x) - f(b)) / (x - b). What is
// not holomorphic (the magnitude, the phase, the conjugate) is a function of real and imaginary part: its map is linear
// over the real numbers only, of the form Re(conj(u) r) or the like, and this is all that an attribution needs.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/angle.h>
#include <ATen/ops/asinh.h>
#include <ATen/ops/atanh.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sinc.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/row_operator.h"

namespace addend {
namespace {

at::Tensor Zeroed(const at::Tensor& tensor, const at::Tensor& where) { return tensor.masked_fill(where, 0); }

// Re(conj(a) b), elementwise.
at::Tensor RealProduct(const at::Tensor& a, const at::Tensor& b) {
  return at::real(a) * at::real(b) + at::imag(a) * at::imag(b);
}

// The mean of z / |z| along the line from b to x, of which Re(conj(mean) r) is the path rule of |z|.
//
// Let the line have length L and direction e, let q be its distance from zero (with a sign) and s0, s1 the places of b
// and x on it, counted from the point nearest to zero. Then |z|^2 = s^2 + q^2, and over the length
//   integral of e (s + i q) / |z| ds = e (|x| - |b|) + i e q (asinh(s1 / |q|) - asinh(s0 / |q|)).
// The difference of asinh is 2 atanh(y), y = L / (|x| + |b|), and |x| - |b| = L (s0 + s1) / (|x| + |b|). Divided by L:
//   mean = (b + x + 2 i e q (atanh(y) / y - 1)) / (|x| + |b|),
// in which nothing cancels, however short the line is. Near y = 1 the line passes close to zero, and asinh is precise.
at::Tensor MeanDirection(const at::Tensor& b, const at::Tensor& x) {
  const at::Tensor move = x - b;
  const at::Tensor length = move.abs();
  const at::Tensor sum = x.abs() + b.abs();
  const at::Tensor still = length.eq(0);
  const at::Tensor e = Zeroed(move / length, still);
  const at::Tensor q = at::imag(b * e.conj());
  const at::Tensor y = Zeroed(length / sum, still);
  const at::Tensor far = at::atanh(y) / y;
  const at::Tensor distance = q.abs();
  const at::Tensor near = (at::asinh(RealProduct(e, x) / distance) - at::asinh(RealProduct(e, b) / distance)) / (2 * y);
  // On a line through zero the direction flips from one to its opposite; q log(q) vanishes.
  const at::Tensor through = distance.le(sum * 1e-30).logical_or(still);
  const at::Tensor turn = Zeroed(q * (at::where(y.gt(0.5), near, far) - 1), through);
  return Zeroed((b + x + at::complex(at::zeros_like(turn), 2 * turn) * e) / sum, sum.eq(0));
}

const RuleOperand& Moving(const RuleCall& call) {
  const RuleOperand& z = call.Require("self");
  if (!z.decomposed) throw Unimplemented(call.name + " covers a decomposed argument 0 only");
  return z;
}

RuleResult RealMap(const RuleCall& call, std::function<at::Tensor(const at::Tensor&)> forward) {
  RuleResult result;
  result.kind = Kind::kPointwise;
  result.inputs = {call.OperandAt("self")};
  result.map =
      MakeMap(call, result.inputs, [f = std::move(forward)](const Rows& rows) -> Rows { return {f(rows[0])}; });
  return result;
}

RuleResult Magnitude(const RuleCall& call) {
  const RuleOperand& z = Moving(call);
  at::Tensor mean = MeanDirection(z.reference, z.value);
  if (!AllFinite(mean)) mean = Zeroed(mean, at::isfinite(mean).logical_not_());
  return RealMap(call, [mean](const at::Tensor& rows) { return RealProduct(mean, rows); });
}

// The phase moves by Im(r / z) where z moves by r, and the mean of 1 / z along the line is log(x / b) / (x - b). The
// phase jumps by a full turn where the line crosses the negative real axis, and anyhow at zero: jumps are leftover. A
// line from zero is radial, so that the phase at the value alone says how rows turn it.
RuleResult Phase(const RuleCall& call) {
  const RuleOperand& z = Moving(call);
  const at::Tensor& x = z.value;
  const at::Tensor start = z.reference.eq(0);
  const at::Tensor b = at::where(start, x, z.reference);
  const at::Tensor move = x - b;
  const at::Tensor w = move / (x + b);
  const at::Tensor small = w.abs().lt(0.5);
  // log(x / b) = 2 atanh(w); where the line is short, atanh(w) / w is near one.
  const at::Tensor series = at::where(w.eq(0), at::ones_like(w), at::atanh(w) / w) * (2 / (x + b));
  at::Tensor mean = at::where(small, series, at::log(x / b) / move);
  mean = Zeroed(mean, at::isfinite(mean).logical_not_());
  const at::Tensor turned = at::imag(mean * call.Move(call.OperandAt("self")));
  const RuleOutput& output = call.outputs[0];
  RuleResult result = RealMap(call, [mean](const at::Tensor& rows) { return at::imag(mean * rows); });
  const at::Tensor jump = (output.value - output.reference - turned)
                              .abs()
                              .gt(1)
                              .logical_or_(start.logical_xor(x.eq(0)).logical_and_(output.value.ne(output.reference)));
  result.exact = !ReadFlag(jump.any());
  return result;
}

// z / |z| is a product of two functions of z, each by its own path rule. At zero it jumps from there to the direction
// of the other end, which is leftover; the map is that of the value alone.
RuleResult Direction(const RuleCall& call) {
  const RuleOperand& z = Moving(call);
  const at::Tensor& x = z.value;
  const at::Tensor start = z.reference.eq(0);
  const at::Tensor b = at::where(start, x, z.reference);
  const at::Tensor end = x.eq(0);
  const at::Tensor inverse_x = Zeroed(x.abs().reciprocal(), end);
  const at::Tensor inverse_b = Zeroed(b.abs().reciprocal(), end);
  const bool content_first = (call.policy->content_first & kFreezeNormalizer) != 0;
  const at::Tensor inverse = content_first ? inverse_x : (inverse_x + inverse_b) / 2;
  const at::Tensor slope = (content_first ? b : (x + b) / 2) * (inverse_x * inverse_b);
  const at::Tensor mean = MeanDirection(b, x);
  RuleResult result =
      RealMap(call, [=](const at::Tensor& rows) { return rows * inverse - slope * RealProduct(mean, rows); });
  result.kind = Kind::kRewrite;
  result.exact = !ReadFlag(start.logical_xor(end).any());
  return result;
}

RuleResult Conjugate(const RuleCall& call) {
  return LinearIn(call, Kind::kLinear, "self", [](const at::Tensor& rows) { return rows.conj().resolve_conj(); });
}

at::Tensor ImaginaryUnit(const RuleCall& call) {
  return at::scalar_tensor(c10::complex<double>(0, 1), call.outputs[0].value.options());
}

RuleResult MakeComplex(const RuleCall& call) {
  return Elementwise(call, Kind::kAffine,
                     {{call.OperandAt("real"), 1.0}, {call.OperandAt("imag"), ImaginaryUnit(call)}});
}

// abs * exp(i angle): a product, whose second factor has the secant slope i exp(i middle) sin(d / 2) / (d / 2).
RuleResult Polar(const RuleCall& call) {
  const RuleOperand& length = call.Require("abs");
  const RuleOperand& angle = call.Require("angle");
  const auto turn = [](const at::Tensor& t) { return at::polar(at::ones_like(t), t); };
  const at::Tensor factor = angle.decomposed ? (turn(angle.value) + turn(angle.reference)) / 2 : turn(angle.value);
  std::vector<Term> terms = {{call.OperandAt("abs"), factor}};
  if (angle.decomposed) {
    const at::Tensor move = call.Move(call.OperandAt("angle"));
    const at::Tensor slope = turn(angle.reference + move / 2) * at::sinc(move / (2 * M_PI)) * ImaginaryUnit(call);
    terms.push_back({call.OperandAt("angle"), slope * Middle(length)});
  }
  return Elementwise(call, Kind::kRewrite, std::move(terms));
}

RuleResult Transform(const RuleCall& call) { return LinearOperator(call, Kind::kLinear, {{"dim"}}); }

// A rule that real tensors have already, by which `complex` is taken for complex ones.
void ExtendToComplex(Registry& registry, const std::string& name, Rule fallback,
                     RuleResult (*complex)(const RuleCall&)) {
  const Rule* known = registry.Find(name, name);
  Rule rule = known != nullptr ? *known : std::move(fallback);
  rule.complex = true;
  rule.build = [real = rule.build, complex](const RuleCall& call) {
    return call.Require("self").value.is_complex() ? complex(call) : real(call);
  };
  registry.Register(rule);
}

}  // namespace

void RegisterSpectral(Registry& registry) {
  const auto add = [&](const char* name, Kind kind, RuleFunction build) {
    registry.Register(Rule{name, kind, std::move(build)}.CoversComplex());
  };
  for (const char* name : {"aten::_fft_r2c", "aten::_fft_c2r", "aten::_fft_c2c"}) add(name, Kind::kLinear, Transform);
  add("aten::complex", Kind::kAffine, MakeComplex);
  add("aten::polar", Kind::kRewrite, Polar);
  add("aten::_conj_physical", Kind::kLinear, Conjugate);
  add("aten::conj_physical", Kind::kLinear, Conjugate);
  ExtendToComplex(registry, "aten::abs", {}, Magnitude);
  ExtendToComplex(registry, "aten::angle", {"aten::angle", Kind::kOpaque, Opaque}, Phase);
  ExtendToComplex(registry, "aten::sgn", {"aten::sgn", Kind::kOpaque, Opaque}, Direction);
}

}  // namespace addend
