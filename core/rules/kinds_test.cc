#include "core/rules/kinds.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Eps(at::ScalarType dtype) {
  return dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// ----------------------------------------------------------------------------------------------------------- helpers

TEST(RowsTest, RightAlignPutsDimensionsBehindTheRowAxis) {
  const at::Tensor rows = at::zeros({5, 3});
  EXPECT_EQ(RightAlign(rows, 1).sizes(), at::IntArrayRef({5, 3}));
  EXPECT_EQ(RightAlign(rows, 3).sizes(), at::IntArrayRef({5, 1, 1, 3}));
  EXPECT_EQ(RightAlign(at::zeros({5}), 2).sizes(), at::IntArrayRef({5, 1, 1}));
  EXPECT_EQ(RightAlign(at::zeros({5, 2, 3}), 1).sizes(), at::IntArrayRef({5, 2, 3}));
}

TEST(RowsTest, RowDimCountsFromTheRightEnd) {
  EXPECT_EQ(RowDim(0, 3), 1);
  EXPECT_EQ(RowDim(2, 3), 3);
  EXPECT_EQ(RowDim(-1, 3), 3);
  EXPECT_EQ(RowDim(-3, 3), 1);
}

TEST(RowsTest, FoldBatchGivesEveryRowItsOwnBatch) {
  const at::Tensor rows = at::arange(24, at::kDouble).view({2, 3, 4});
  const at::Tensor folded = FoldBatch(rows, [](const at::Tensor& batch) {
    EXPECT_EQ(batch.sizes(), at::IntArrayRef({6, 4}));
    return batch.sum(1, /*keepdim=*/true) * at::ones({1, 2}, at::kDouble);
  });
  EXPECT_EQ(folded.sizes(), at::IntArrayRef({2, 3, 2}));
  EXPECT_TRUE(folded.select(2, 1).equal(rows.sum(2)));
  const at::Tensor empty = FoldBatch(at::zeros({2, 0, 4}), [](const at::Tensor& batch) { return batch; });
  EXPECT_EQ(empty.sizes(), at::IntArrayRef({2, 0, 4}));
}

TEST(RowsTest, AllFiniteSeesEveryElement) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kComplexDouble}) {
    for (const int64_t n : {1, 15, 8192, 8193, 200000}) {
      // The largest numbers are finite, although their sum is not.
      const at::Tensor numbers = at::full({n}, std::numeric_limits<float>::max(), at::kDouble).to(dtype);
      EXPECT_TRUE(AllFinite(numbers));
      for (const int64_t k : {int64_t{0}, n / 2, n - 1}) {
        for (const double odd : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()}) {
          const at::Tensor other = numbers.clone();
          other[k] = odd;
          EXPECT_FALSE(AllFinite(other)) << n << " " << k;
          EXPECT_FALSE(AllFinite(at::stack({numbers, other}).t())) << n << " " << k;
        }
      }
    }
  }
  EXPECT_TRUE(AllFinite(at::empty({0, 3})));
}

TEST(RowsTest, MiddleOfPlainOperandsIsTheirValue) {
  RuleOperand operand;
  operand.value = at::tensor({1.0, -kInfinity}, at::kDouble);
  operand.reference = at::tensor({3.0, -kInfinity}, at::kDouble);
  EXPECT_TRUE(Middle(operand).equal(operand.value));
  operand.decomposed = true;
  EXPECT_TRUE(Middle(operand).equal(at::tensor({2.0, -kInfinity}, at::kDouble)));
}

RuleCall TwoOperands() {
  static const c10::FunctionSchema& schema =
      *new c10::FunctionSchema("test::call", "", {c10::Argument("self"), c10::Argument("other")}, {});
  RuleCall call;
  call.name = schema.name();
  call.schema = &schema;
  for (const Sizes& sizes : {Sizes{2}, Sizes{}}) {
    RuleOperand operand;
    operand.value = at::zeros(sizes, at::kDouble);
    operand.reference = operand.value;
    operand.decomposed = true;
    operand.argument = static_cast<int>(call.operands.size());
    call.operands.push_back(operand);
  }
  return call;
}

TEST(MakeMapTest, TransposesByAutograd) {
  // Two inputs, three outputs: 3 a, a * n and nothing at all.
  const auto map = MakeMap(TwoOperands(), {0, 1}, [](const Rows& rows) -> Rows {
    return {rows[0] * 3, rows[0] * 2 + rows[1].unsqueeze(1), at::Tensor()};
  });
  c10::AutoGradMode no_grad(false);
  const at::Tensor g = at::tensor({1.0, 2.0}, at::kDouble);
  const at::Tensor h = at::tensor({10.0, 20.0}, at::kDouble);
  const Rows both = map->Transpose({g, h, at::Tensor()});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_TRUE(both[0].equal(g * 3 + h * 2));
  EXPECT_TRUE(both[1].equal(at::full({}, 30.0, at::kDouble)));
  EXPECT_EQ(both[1].dim(), 0);
  EXPECT_FALSE(both[0].requires_grad());
  // A cotangent that is not there counts as zero, and an input that plays no part gets zeros of its shape.
  const Rows first = map->Transpose({g, at::Tensor(), at::Tensor()});
  EXPECT_TRUE(first[0].equal(g * 3));
  EXPECT_TRUE(first[1].equal(at::zeros({}, at::kDouble)));
  const Rows nothing = map->Transpose({at::Tensor(), at::Tensor(), at::Tensor()});
  EXPECT_TRUE(nothing[0].equal(at::zeros({2}, at::kDouble)));
  EXPECT_FALSE(map->Forward({at::ones({4, 2}, at::kDouble), at::ones({4}, at::kDouble)})[0].requires_grad());
}

TEST(MakeMapTest, HasNoShortcuts) {
  const auto map = MakeMap(TwoOperands(), {0}, [](const Rows& rows) { return rows; });
  EXPECT_EQ(map->Scale(), nullptr);
  EXPECT_FALSE(map->Identity());
  EXPECT_FALSE(map->Accumulates());
  at::Tensor target = at::zeros({1, 2}, at::kDouble);
  EXPECT_THROW(map->AddTo(target, {target}), Error);
}

TEST(ElementwiseTest, DropsPlainTerms) {
  RuleCall call = TwoOperands();
  call.outputs.push_back({at::zeros({2}, at::kDouble), at::zeros({2}, at::kDouble)});
  call.operands[1].decomposed = false;
  const RuleResult one = Elementwise(call, Kind::kAffine, {{0, 1.0}, {1, 5.0}});
  EXPECT_EQ(one.inputs, std::vector<int>({0}));
  EXPECT_TRUE(one.map->Identity());
  call.operands[0].decomposed = false;
  const RuleResult none = Elementwise(call, Kind::kAffine, {{0, 1.0}, {1, 5.0}});
  EXPECT_TRUE(none.inputs.empty());
  EXPECT_EQ(none.map, nullptr);
}

TEST(LinearInTest, RefusesAPlainArgument) {
  RuleCall call = TwoOperands();
  call.operands[0].decomposed = false;
  EXPECT_THROW(LinearIn(call, Kind::kLinear, "self", [](const at::Tensor& rows) { return rows; }), Error);
  EXPECT_THROW(LinearIn(call, Kind::kLinear, "third", [](const at::Tensor& rows) { return rows; }), Error);
}

TEST(OpaqueTest, LeavesEverythingOver) {
  const RuleResult result = Opaque(TwoOperands());
  EXPECT_EQ(result.kind, Kind::kOpaque);
  EXPECT_EQ(result.map, nullptr);
  EXPECT_FALSE(result.exact);
}

// --------------------------------------------------------------------------------------------------------- pointwise

using Real = long double;

struct Smooth {
  const char* op;
  std::vector<GivenArgument> more;  // arguments behind the first
  std::function<Real(Real)> f;
  std::function<Real(Real)> derivative;
  bool power = false;    // bends on the scale of its argument, which is positive
  bool cancels = false;  // LibTorch forms f as a difference of terms as large as its argument and 1
};

Real Sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real Bell(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * static_cast<Real>(M_PIl)); }
Real Phi(Real x) { return std::erfc(-x / std::sqrt(Real(2))) / 2; }

const std::vector<Smooth>& SmoothFunctions() {
  static const auto& functions = *new std::vector<Smooth>{
      {"aten::exp", {}, [](Real x) { return std::exp(x); }, [](Real x) { return std::exp(x); }},
      {"aten::expm1", {}, [](Real x) { return std::expm1(x); }, [](Real x) { return std::exp(x); }},
      {"aten::tanh", {}, [](Real x) { return std::tanh(x); }, [](Real x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
      {"aten::sigmoid", {}, Sigmoid, [](Real x) { return Sigmoid(x) * Sigmoid(-x); }},
      {"aten::gelu", {}, [](Real x) { return x * Phi(x); }, [](Real x) { return Phi(x) + x * Bell(x); }, false, true},
      {"aten::silu",
       {},
       [](Real x) { return x * Sigmoid(x); },
       [](Real x) { return Sigmoid(x) * (1 + x * Sigmoid(-x)); }},
      {"aten::softplus", {}, [](Real x) { return std::log1p(std::exp(x)); }, Sigmoid},
      {"aten::log_sigmoid", {}, [](Real x) { return -std::log1p(std::exp(-x)); }, [](Real x) { return Sigmoid(-x); }},
      // Newer versions of LibTorch take it from 1.
      {"aten::erf",
       {},
       [](Real x) { return std::erf(x); },
       [](Real x) { return 2 / std::sqrt(static_cast<Real>(M_PIl)) * std::exp(-x * x); },
       false,
       true},
      {"aten::sin", {}, [](Real x) { return std::sin(x); }, [](Real x) { return std::cos(x); }},
      {"aten::cos", {}, [](Real x) { return std::cos(x); }, [](Real x) { return -std::sin(x); }},
      {"aten::atan", {}, [](Real x) { return std::atan(x); }, [](Real x) { return 1 / (1 + x * x); }},
      {"aten::sinh", {}, [](Real x) { return std::sinh(x); }, [](Real x) { return std::cosh(x); }},
      {"aten::cosh", {}, [](Real x) { return std::cosh(x); }, [](Real x) { return std::sinh(x); }},
      {"aten::celu",
       {},
       [](Real x) { return x > 0 ? x : std::expm1(x); },
       [](Real x) { return x > 0 ? Real(1) : std::exp(x); },
       false,
       true},
      {"aten::hardswish",
       {},
       [](Real x) { return x * std::min(std::max(x + 3, Real(0)), Real(6)) / 6; },
       [](Real x) { return x < -3  ? Real(0)
                           : x > 3 ? Real(1)
                                   : (2 * x + 3) / 6; }},
      {"aten::sqrt", {}, [](Real x) { return std::sqrt(x); }, [](Real x) { return 1 / (2 * std::sqrt(x)); }, true},
      {"aten::rsqrt",
       {},
       [](Real x) { return 1 / std::sqrt(x); },
       [](Real x) { return -1 / (2 * x * std::sqrt(x)); },
       true},
      {"aten::reciprocal", {}, [](Real x) { return 1 / x; }, [](Real x) { return -1 / (x * x); }, true},
      {"aten::log", {}, [](Real x) { return std::log(x); }, [](Real x) { return 1 / x; }, true},
      {"aten::log2", {}, [](Real x) { return std::log2(x); }, [](Real x) { return 1 / (x * std::log(Real(2))); }, true},
      {"aten::log10",
       {},
       [](Real x) { return std::log10(x); },
       [](Real x) { return 1 / (x * std::log(Real(10))); },
       true},
      {"aten::log1p", {}, [](Real x) { return std::log1p(x); }, [](Real x) { return 1 / (1 + x); }, true},
      {"aten::square", {}, [](Real x) { return x * x; }, [](Real x) { return 2 * x; }, true},
      {"aten::pow.Tensor_Scalar", {3}, [](Real x) { return x * x * x; }, [](Real x) { return 3 * x * x; }, true},
      {"aten::pow.Tensor_Scalar",
       {-0.5},
       [](Real x) { return 1 / std::sqrt(x); },
       [](Real x) { return -1 / (2 * x * std::sqrt(x)); },
       true},
  };
  return functions;
}

class SlopeTest : public testing::TestWithParam<std::tuple<size_t, at::ScalarType>> {};

// From moves of nothing over the limit at which the derivative replaces the secant (2e-3 or 2e-6) to moves of one, the
// slope is the mean derivative. The secant is worst just above the limit: there it loses eps |f| / limit, and an error
// of eps |x| in the argument of f counts as well (gelu forms x * (1 + erf)). No more may be lost anywhere.
TEST_P(SlopeTest, IsTheMeanDerivativeForEveryLengthOfTheMove) {
  const Smooth& function = SmoothFunctions()[std::get<0>(GetParam())];
  const at::ScalarType dtype = std::get<1>(GetParam());
  const double limit = dtype == at::kDouble ? 2e-6 : 2e-3;
  std::vector<double> starts = {-4, -1.3, -0.1, 0, 0.4, 1.7, 3.9};
  if (function.power) starts = {1e-6, 1e-3, 0.4, 1, 5, 1e4};
  std::vector<double> moves = {0, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-5, 1e-4, 1e-2, 0.1, 0.6};
  for (const double factor : {0.1, 0.5, 0.99, 1.0, 1.01, 2.0, 10.0}) moves.push_back(limit * factor);
  std::vector<double> values;
  std::vector<double> references;
  for (const double start : starts) {
    for (const double move : moves) {
      for (const double sign : {-1.0, 1.0}) {
        references.push_back(start);
        values.push_back(start + sign * move * (function.power ? start : 1));
      }
    }
  }
  const at::Tensor value = at::tensor(values, at::kDouble).to(dtype);
  const at::Tensor reference = at::tensor(references, at::kDouble).to(dtype);
  std::vector<GivenArgument> arguments = {{value, reference}};
  arguments.insert(arguments.end(), function.more.begin(), function.more.end());
  const RuleCall call = OperatorCall(function.op, arguments).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  const at::Tensor slope = rule.map->Forward({at::ones_like(value).unsqueeze(0)})[0].select(0, 0).to(at::kDouble);
  EXPECT_LE(RelativeBracket(call, rule), 2 * Eps(dtype));
  for (int64_t i = 0; i < slope.numel(); ++i) {
    const Real x = value[i].item<double>();
    const Real b = reference[i].item<double>();
    // Gauss points of order 6 in 64 pieces; for the longest moves the secant in long double, which corners do not
    // disturb.
    Real mean = 0;
    Real steepest = 0;
    for (int piece = 0; piece < 64; ++piece) {
      const Real aside = std::sqrt(Real(0.6)) / 2;
      const Real nodes[] = {Real(0.5) - aside, Real(0.5), Real(0.5) + aside};
      const Real weights[] = {5, 8, 5};
      for (int n = 0; n < 3; ++n) {
        const Real own = function.derivative(b + (piece + nodes[n]) / 64 * (x - b));
        mean += own * weights[n] / (18 * 64);
        steepest = std::max(steepest, std::abs(own));
      }
    }
    const Real scale = function.power ? b : 1;
    if (std::abs(x - b) > scale / 1000) mean = (function.f(x) - function.f(b)) / (x - b);
    const Real size = std::max(std::abs(function.f(x)), std::abs(function.f(b))) + std::abs(x) * steepest +
                      (function.cancels ? std::max(std::abs(x), Real(1)) : Real(0));
    const Real rounding = 4 * static_cast<Real>(Eps(dtype)) * size / (limit * scale);
    const Real bend = std::max(steepest, function.power ? Real(0) : Real(1)) * limit * limit / 8;
    EXPECT_NEAR(slope[i].item<double>(), static_cast<double>(mean), static_cast<double>(rounding + bend))
        << function.op << " from " << static_cast<double>(b) << " by " << static_cast<double>(x - b);
  }
}

INSTANTIATE_TEST_SUITE_P(Pointwise, SlopeTest,
                         testing::Combine(testing::Range<size_t>(0, SmoothFunctions().size()),
                                          testing::Values(at::kFloat, at::kDouble)),
                         [](const testing::TestParamInfo<std::tuple<size_t, at::ScalarType>>& info) {
                           std::string name = SmoothFunctions()[std::get<0>(info.param)].op;
                           name = name.substr(6, name.find('.') - 6) + "_" + std::to_string(std::get<0>(info.param));
                           return name + (std::get<1>(info.param) == at::kDouble ? "_f64" : "_f32");
                         });

// Corners: a function whose derivative jumps is given by the secant however short the move across the corner is.
struct Corner {
  const char* op;
  std::vector<GivenArgument> more;
  double at;           // the corner
  double left, right;  // slopes on both sides
};

const std::vector<Corner>& Corners() {
  static const auto& corners = *new std::vector<Corner>{
      {"aten::relu", {}, 0, 0, 1},
      {"aten::abs", {}, 0, -1, 1},
      {"aten::leaky_relu", {0.25}, 0, 0.25, 1},
      {"aten::clamp", {-0.5, 0.5}, 0.5, 1, 0},
      {"aten::clamp", {-0.5, 0.5}, -0.5, 0, 1},
      {"aten::clamp_min", {0.0}, 0, 0, 1},
      {"aten::clamp_max", {1.0}, 1, 1, 0},
      {"aten::hardtanh", {}, 1, 1, 0},
      {"aten::relu6", {}, 0, 0, 1},
      {"aten::hardsigmoid", {}, 3, 1.0 / 6, 0},
      {"aten::hardswish", {}, 3, 1.5, 1},
      {"aten::softshrink", {}, 0.5, 0, 1},
      {"aten::elu", {2.0}, 0, 2, 1},
      {"aten::elu", {1.0, 3.0, 0.5}, 0, 1.5, 3},
      {"aten::selu", {}, 0, 1.7580993408473768786, 1.0507009873554804934},
  };
  return corners;
}

TEST(CornerTest, TheSecantHoldsAcrossIt) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Corner& corner : Corners()) {
      for (const double step : {1e-1, 1e-2, 1e-3, 1e-4, 1e-6}) {
        if (dtype == at::kFloat && step < 1e-4 && corner.at != 0) continue;  // fewer than ten floats between both
        SCOPED_TRACE(testing::Message() << corner.op << " at " << corner.at << ", step " << step << ", " << dtype);
        const at::Tensor value = at::tensor({corner.at + step, corner.at - 2 * step}, at::kDouble).to(dtype);
        const at::Tensor reference = at::tensor({corner.at - 3 * step, corner.at + step}, at::kDouble).to(dtype);
        std::vector<GivenArgument> arguments = {{value, reference}};
        arguments.insert(arguments.end(), corner.more.begin(), corner.more.end());
        const RuleCall call = OperatorCall(corner.op, arguments).Describe(Faithful());
        const RuleResult rule = BuildRule(call);
        const at::Tensor slope = rule.map->Forward({at::ones({1, 2}, dtype)})[0].select(0, 0);
        // The functions bend by less than 2 on the scale of 1, and their values have an error of eps.
        const double tolerance = 4 * step + 8 * Eps(dtype) / step;
        EXPECT_NEAR(slope[0].item<double>(), (3 * corner.left + corner.right) / 4, tolerance);
        EXPECT_NEAR(slope[1].item<double>(), (2 * corner.left + corner.right) / 3, tolerance);
        EXPECT_LE(RelativeBracket(call, rule), 8 * Eps(dtype));
      }
    }
  }
}

// Functions that bend much faster than on the scale of 1.
TEST(CornerTest, NothingIsLeftOverWhereAFunctionBendsFast) {
  struct Sharp {
    const char* op;
    std::vector<GivenArgument> more;
    double from, to;
  };
  const std::vector<Sharp> sharp = {
      {"aten::softplus", {1000.0}, -1e-3, 5e-4},    {"aten::softplus", {1e6}, -1e-6, 5e-7},
      {"aten::celu", {1e-3}, -1.5e-3, 1e-4},        {"aten::celu", {1e-6}, -1.5e-6, 1e-7},
      {"aten::log1p", {}, -0.99999, -0.9985},       {"aten::log1p", {}, -0.99999999, -0.9999985},
      {"aten::threshold", {0.0, 5.0}, -1e-4, 1e-4}, {"aten::threshold", {0.0, 5.0}, -1e-7, 1e-7},
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Sharp& s : sharp) {
      SCOPED_TRACE(testing::Message() << s.op << " from " << s.from << " to " << s.to << ", " << dtype);
      std::vector<GivenArgument> arguments = {{at::full({1}, s.to, dtype), at::full({1}, s.from, dtype)}};
      arguments.insert(arguments.end(), s.more.begin(), s.more.end());
      const RuleCall call = OperatorCall(s.op, arguments).Describe(Faithful());
      EXPECT_LE(RelativeBracket(call, BuildRule(call)), 8 * Eps(dtype));
    }
  }
}

// Contiguous tensors go through loops, others through LibTorch's operators.
TEST(SecantSlopeTest, TheLoopsAreTheAtenForm) {
  struct Function {
    const char* name;
    Curve curve;
    double low;  // all points are above
    at::Tensor (*f)(const at::Tensor&);
    at::Tensor (*derivative)(const at::Tensor&);
  };
  const std::vector<Function> functions = {
      {"tanh", Curve::kSmooth, -4, [](const at::Tensor& x) { return x.tanh(); },
       [](const at::Tensor& x) { return 1 - x.tanh().square(); }},
      {"sqrt", Curve::kPower, 0.01, [](const at::Tensor& x) { return x.sqrt(); },
       [](const at::Tensor& x) { return 0.5 / x.sqrt(); }},
      {"relu", Curve::kUnitPieces, -4, [](const at::Tensor& x) { return x.clamp_min(0); },
       [](const at::Tensor& x) { return x.gt(0).to(x.scalar_type()); }},
      {"leaky", Curve::kPiecewiseLinear, -4, [](const at::Tensor& x) { return x.clamp_min(0) + x.clamp_max(0) * 0.3; },
       [](const at::Tensor& x) { return x.gt(0).to(x.scalar_type()) * 0.7 + 0.3; }},
      // It bends a thousand times as fast as its curve says.
      {"fast tanh", Curve::kSmooth, -4, [](const at::Tensor& x) { return (x * 1000).tanh(); },
       [](const at::Tensor& x) { return (1 - (x * 1000).tanh().square()) * 1000; }},
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Function& function : functions) {
      SCOPED_TRACE(function.name);
      Draw draw(dtype, 21);
      const at::Tensor reference = draw.Uniform({8, 500}, function.low, 4);
      // Moves of all sizes, none at all, and across a corner at 0.
      at::Tensor value =
          (reference + draw.Normal({8, 500}) *
                           at::tensor({1.0, 1e-1, 1e-3, 1e-4, 1e-6, 1e-9, 0.0, 1e-2}, reference.options()).unsqueeze(1))
              .clamp_min(function.low);
      value.select(0, 7).mul_(-1).clamp_min_(function.low);
      const auto slope = [&](const at::Tensor& x, const at::Tensor& b) {
        return SecantSlope(x, b, function.f(x), function.f(b), function.curve, function.derivative, /*pointwise=*/true);
      };
      const auto strided = [](const at::Tensor& t) { return t.t().contiguous().t(); };
      const at::Tensor aten = slope(strided(value), strided(reference));
      ASSERT_FALSE(strided(value).is_contiguous());
      EXPECT_LE(Difference(slope(value, reference), aten), 32 * Eps(dtype));
    }
  }
}

// --------------------------------------------------------------------------------------------------------- selection

// Who is largest, counted over a fine grid of the line; ties shared.
at::Tensor CountedShares(const at::Tensor& value, const at::Tensor& reference, int64_t points) {
  const at::Tensor move = (value - reference).masked_fill(value.eq(reference), 0);
  at::Tensor shares = at::zeros_like(value);
  for (int64_t i = 0; i < points; ++i) {
    const at::Tensor at_t = reference + move * ((i + 0.5) / points);
    const at::Tensor winners = at_t.eq(at_t.amax(-1, true)).to(at::kDouble);
    shares += winners / winners.sum(-1, true) / points;
  }
  return shares;
}

constexpr int64_t kGrid = 20001;
// Each end of an interval may fall between two points of the grid.
constexpr double kGridError = 2.0 / kGrid;

void ExpectShares(const at::Tensor& value, const at::Tensor& reference, double tolerance = kGridError) {
  const at::Tensor counted = CountedShares(value, reference, kGrid);
  for (const auto& compute : {EnvelopeShares, EnvelopeSharesOfPairs}) {
    const at::Tensor shares = compute(value, reference);
    EXPECT_EQ(shares.sizes(), value.sizes());
    EXPECT_LE((shares - counted).abs().max().item<double>(), tolerance) << shares << counted;
    EXPECT_GE(shares.min().item<double>(), 0);
    // The ends of neighbours are the same numbers: their differences add up to 1 but for the rounding of that sum.
    const double rounding = 2 * Eps(at::kDouble) * static_cast<double>(value.size(-1));
    EXPECT_LE((shares.sum(-1) - 1).abs().max().item<double>(), rounding);
  }
}

TEST(EnvelopeTest, MatchesCountedWinners) {
  Draw draw(at::kDouble, 5);
  for (const int64_t candidates : {1, 2, 3, 9, 40}) {
    ExpectShares(draw.Normal({10, candidates}), draw.Normal({10, candidates}));
  }
  ExpectShares(draw.Normal({2, 3, 4}), draw.Normal({2, 3, 4}));
  ExpectShares(draw.Normal({6}), draw.Normal({6}));
}

TEST(EnvelopeTest, TiesAreShared) {
  // Few different numbers: many lines coincide, start together, end together or meet three at a time.
  Draw draw(at::kDouble, 6);
  for (const int64_t levels : {2, 3, 4}) {
    const at::Tensor value = draw.Integers({60, 5}, levels).to(at::kDouble);
    const at::Tensor reference = draw.Integers({60, 5}, levels).to(at::kDouble);
    ExpectShares(value, reference);
  }
}

TEST(EnvelopeTest, KnownShares) {
  using Shares = std::array<at::Tensor, 2>;
  const auto shares = [](const std::vector<double>& value, const std::vector<double>& reference) -> Shares {
    const at::Tensor x = at::tensor(value, at::kDouble);
    const at::Tensor b = at::tensor(reference, at::kDouble);
    return {EnvelopeShares(x, b), EnvelopeSharesOfPairs(x, b)};
  };
  const auto expect = [&](const Shares& both, const std::vector<double>& expected) {
    for (const at::Tensor& got : both) {
      EXPECT_LE((got - at::tensor(expected, at::kDouble)).abs().max().item<double>(), 1e-15) << got;
    }
  };
  expect(shares({1, 0}, {0, 1}), {0.5, 0.5});  // they cross in the middle
  expect(shares({3, 0}, {0, 1}), {0.75, 0.25});
  expect(shares({1, 0}, {1, 0}), {1, 0});  // nothing moves
  expect(shares({2, 2, 2, 2}, {1, 1, 1, 1}), {0.25, 0.25, 0.25, 0.25});
  expect(shares({1, 1}, {0, 1}), {0, 1});                   // a tie at the very end only
  expect(shares({1, 0}, {0, 0}), {1, 0});                   // a tie at the start only
  expect(shares({1, 0, 1}, {0, 1, 0}), {0.25, 0.5, 0.25});  // two that are one line
  expect(shares({1, 0, 0.5}, {0, 1, 0.5}), {0.5, 0.5, 0});  // a third that touches the crossing
  expect(shares({5}, {-5}), {1});
}

TEST(EnvelopeTest, PaddingNeverWins) {
  const at::Tensor value = at::tensor({-kInfinity, 1.0, 0.0, -kInfinity}, at::kDouble);
  const at::Tensor reference = at::tensor({-kInfinity, 0.0, 1.0, -kInfinity}, at::kDouble);
  const at::Tensor expected = at::tensor({0.0, 0.5, 0.5, 0.0}, at::kDouble);
  EXPECT_TRUE(EnvelopeShares(value, reference).equal(expected));
  Draw draw(at::kDouble, 7);
  const at::Tensor mask = draw.Booleans({30, 6});
  mask.select(1, 2).fill_(false);
  ExpectShares(draw.Normal({30, 6}).masked_fill(mask, -kInfinity), draw.Normal({30, 6}).masked_fill(mask, -kInfinity));
  // A window of padding alone: its shares are finite.
  const at::Tensor all = at::full({3}, -kInfinity, at::kDouble);
  EXPECT_TRUE(EnvelopeShares(all, all).isfinite().all().item<bool>());
}

// Purpose of the shares: weighted moves add up to the move of the maximum, also where lines nearly coincide.
TEST(EnvelopeTest, WeightedMovesAreTheMoveOfTheMaximum) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 8);
    for (const double apart : {1.0, 1e-3, 1e-6, 1e-9, 0.0}) {
      const at::Tensor value = draw.Normal({200, 1}) + draw.Normal({200, 7}) * apart;
      const at::Tensor reference = draw.Normal({200, 1}) + draw.Normal({200, 7}) * apart;
      const at::Tensor shares = EnvelopeShares(value, reference);
      const at::Tensor passed = (shares * (value - reference)).sum(-1);
      EXPECT_LE(Difference(passed, value.amax(-1) - reference.amax(-1)), 16 * Eps(dtype)) << apart;
      EXPECT_LE((shares.sum(-1) - 1).abs().max().item<double>(), 16 * Eps(dtype)) << apart;
    }
  }
}

TEST(EnvelopeTest, ManyCandidates) {
  Draw draw(at::kDouble, 10);
  ExpectShares(draw.Normal({4, 100}), draw.Normal({4, 100}));
  for (const int64_t levels : {1, 2, 3}) {  // ties without end
    ExpectShares(draw.Integers({8, 70}, levels).to(at::kDouble), draw.Integers({8, 70}, levels).to(at::kDouble));
  }
  const at::Tensor mask = draw.Booleans({4, 90});
  ExpectShares(draw.Normal({4, 90}).masked_fill(mask, -kInfinity), draw.Normal({4, 90}).masked_fill(mask, -kInfinity));
  // Padding behind few candidates changes nothing about them.
  const at::Tensor value = draw.Normal({20, 8});
  const at::Tensor reference = draw.Normal({20, 8});
  const at::Tensor padding = at::full({20, 80}, -kInfinity, at::kDouble);
  const at::Tensor padded = EnvelopeShares(at::cat({value, padding}, 1), at::cat({reference, padding}, 1));
  EXPECT_LE(Difference(padded.narrow(1, 0, 8), EnvelopeShares(value, reference)), 1e-14);
  const at::Tensor nothing = at::full({100}, -kInfinity, at::kDouble);
  EXPECT_LE(Difference(EnvelopeShares(nothing, nothing), at::full({100}, 0.01, at::kDouble)), 1e-15);
  const at::Tensor many = draw.Normal({100000});
  const at::Tensor before = draw.Normal({100000});
  const double passed = (EnvelopeShares(many, before) * (many - before)).sum().item<double>();
  EXPECT_NEAR(passed, (many.max() - before.max()).item<double>(), 1e-12);
}

TEST(EnvelopeTest, ManyRowsAreTakenInPieces) {
  Draw draw(at::kDouble, 9);
  // 50 candidates: 1677 rows a piece.
  const at::Tensor value = draw.Normal({4000, 50});
  const at::Tensor reference = draw.Normal({4000, 50});
  for (const auto& compute : {EnvelopeShares, EnvelopeSharesOfPairs}) {
    const at::Tensor shares = compute(value, reference);
    for (const int64_t row : {0, 1676, 1677, 3999}) {
      EXPECT_TRUE(shares[row].equal(compute(value[row], reference[row])));
    }
  }
}

TEST(EnvelopeTest, NanMakesTheSharesOfItsRowNan) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor value = at::tensor({kNan, 1.0, 2.0, 1.0, 2.0, 1.0}, dtype).view({3, 2});
    const at::Tensor reference = at::tensor({0.0, 0.0, 0.0, kNan, 0.0, 0.0}, dtype).view({3, 2});
    for (const auto& compute : {EnvelopeShares, EnvelopeSharesOfPairs}) {
      const at::Tensor shares = compute(value, reference);
      EXPECT_TRUE(shares.narrow(0, 0, 2).isnan().all().item<bool>()) << shares;
      EXPECT_TRUE(shares[2].equal(at::tensor({1.0, 0.0}, dtype))) << shares;
    }
  }
}

TEST(EnvelopeTest, NoRowsNoShares) {
  EXPECT_EQ(EnvelopeShares(at::zeros({0, 3}), at::zeros({0, 3})).sizes(), at::IntArrayRef({0, 3}));
}

TEST(WinnerTest, TakesAll) {
  const at::Tensor value = at::tensor({1.0, 3.0, 2.0, 5.0, 5.0, 0.0}, at::kDouble).view({2, 3});
  const at::Tensor shares = WinnerShares(value);
  EXPECT_TRUE(shares.select(0, 0).equal(at::tensor({0.0, 1.0, 0.0}, at::kDouble)));
  EXPECT_EQ(shares.select(0, 1).sum().item<double>(), 1);  // one of both
  EXPECT_EQ(shares.select(0, 1).max().item<double>(), 1);
  EXPECT_EQ(shares[1][2].item<double>(), 0);
}

TEST(WinnerTest, FastSelectsTheWinnerOfTheValue) {
  Draw draw(at::kDouble, 10);
  const at::Tensor value = draw.Normal({4, 6});
  const RuleCall call = OperatorCall("aten::max.dim", {{value, draw.Normal({4, 6})}, int64_t{1}}).Describe(Fast());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  const at::Tensor rows = draw.Normal({3, 4, 6});
  const at::Tensor taken = rows.gather(2, call.outputs[1].value.view({1, 4, 1}).expand({3, 4, 1})).squeeze(2);
  EXPECT_EQ(Difference(rule.map->Forward({rows})[0], taken), 0);
}

TEST(WinnerTest, FastPoolsTheWinnersOfTheValue) {
  Draw draw(at::kDouble, 11);
  const at::Tensor value = draw.Normal({2, 3, 6, 5});
  const RuleCall call = OperatorCall("aten::max_pool2d_with_indices",
                                     {{value, draw.Normal({2, 3, 6, 5})}, Sizes{3, 2}, Sizes{2, 2}, Sizes{1, 1}})
                            .Describe(Fast());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  const at::Tensor rows = draw.Normal({4, 2, 3, 6, 5});
  const at::Tensor where = call.outputs[1].value.flatten(2).unsqueeze(0).expand({4, 2, 3, -1});
  const at::Tensor taken = rows.flatten(3).gather(3, where);
  EXPECT_EQ(Difference(rule.map->Forward({rows})[0].flatten(3), taken), 0);
}

// -------------------------------------------------------------------------------------------------------- quadrature

TEST(QuadratureTest, IntegratesPolynomialsExactly) {
  for (int count = 1; count <= 128; ++count) {
    const Quadrature rule = GaussLegendre(count);
    ASSERT_EQ(rule.nodes.size(), static_cast<size_t>(count));
    ASSERT_EQ(rule.weights.size(), static_cast<size_t>(count));
    for (int degree = 0; degree <= 2 * count - 1; ++degree) {
      Real sum = 0;
      for (int k = 0; k < count; ++k) sum += std::pow(static_cast<Real>(rule.nodes[k]), degree) * rule.weights[k];
      // Nodes are rounded to double: near 1 that moves t^degree by degree * eps, and the integral is 1 / (degree + 1).
      EXPECT_NEAR(static_cast<double>(sum), 1.0 / (degree + 1), 4e-15) << count << " nodes, degree " << degree;
    }
  }
}

TEST(QuadratureTest, IsNoBetterThanItMayBe) {
  for (const int count : {1, 2, 3, 4}) {
    const Quadrature rule = GaussLegendre(count);
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += std::pow(rule.nodes[k], 2 * count) * rule.weights[k];
    EXPECT_GT(std::abs(sum - 1.0 / (2 * count + 1)), 1e-6);
  }
}

TEST(QuadratureTest, NodesLieInsideAndWeightsArePositive) {
  for (int count = 1; count <= 128; ++count) {
    const Quadrature rule = GaussLegendre(count);
    for (int k = 0; k < count; ++k) {
      EXPECT_GT(rule.nodes[k], 0);
      EXPECT_LT(rule.nodes[k], 1);
      EXPECT_GT(rule.weights[k], 0);
      EXPECT_NEAR(rule.nodes[k] + rule.nodes[count - 1 - k], 1, 1e-15);
      EXPECT_NEAR(rule.weights[k], rule.weights[count - 1 - k], 1e-15);
      EXPECT_GT(rule.nodes[k], k == 0 ? 0 : rule.nodes[k - 1]);
    }
  }
}

}  // namespace
}  // namespace addend
