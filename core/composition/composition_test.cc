#include "core/composition/composition.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/base/error.h"

namespace addend {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The message of the InvalidArgument that `call` throws.
std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

bool Same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.equal(b);
}

// Small integers as floats: every sum of them is exact.
at::Tensor Counting(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(1, count + 1, dtype).view(shape);
}

// ----------------------------------------------------------------------------------------------- constructors

TEST(CompositionTest, HoldsWhatItIsGiven) {
  const at::Tensor components = Counting({3, 2, 4});
  const at::Tensor reference = Counting({2, 4});
  const at::Tensor leftover = at::ones({2, 4});
  const Composition x(components, reference, leftover);
  EXPECT_EQ(x.numc(), 3);
  EXPECT_EQ(x.sizes(), at::IntArrayRef({2, 4}));
  EXPECT_TRUE(Same(x.components(), components));
  EXPECT_TRUE(Same(x.reference(), reference));
  EXPECT_TRUE(Same(x.leftover(), leftover));
  EXPECT_TRUE(Same(x.component(1), components[1]));
  EXPECT_TRUE(Same(x.residual(), reference.add(leftover)));
  EXPECT_TRUE(Same(x.recovery(), components[0].add(components[1]).add(components[2]).add(reference).add(leftover)));
}

TEST(CompositionTest, UndefinedLeftoverIsZeros) {
  const Composition x(Counting({2, 3}, at::kDouble), Counting({3}, at::kDouble));
  EXPECT_TRUE(Same(x.leftover(), at::zeros({3}, at::kDouble)));
  EXPECT_TRUE(Same(x.residual(), x.reference()));
}

TEST(CompositionTest, IsDetached) {
  const at::Tensor value = Counting({3}).requires_grad_(true);
  EXPECT_FALSE(Composition::FromParts({value.mul(2)}).components().requires_grad());
  EXPECT_FALSE(Composition::Diagonal(value, {0}).components().requires_grad());
  EXPECT_FALSE(Composition::Diagonal(value, {0}, value.mul(2)).reference().requires_grad());
}

TEST(CompositionTest, RefusesWhatDoesNotFit) {
  const at::Tensor components = at::zeros({2, 3});
  const at::Tensor row = at::zeros({3});
  const auto message = [](const at::Tensor& c, const at::Tensor& r, const at::Tensor& l = at::Tensor()) {
    return MessageOf([&] { Composition(c, r, l); });
  };
  EXPECT_EQ(message(at::Tensor(), row), "an undefined tensor was given as components");
  EXPECT_EQ(message(components, at::Tensor()), "an undefined tensor was given as reference");
  EXPECT_THAT(message(at::scalar_tensor(1), row), HasSubstr("the components have no dimension"));
  EXPECT_EQ(message(components, at::zeros({4})), "the reference has shape [4], but each component has [3]");
  EXPECT_EQ(message(components, row, at::zeros({1, 3})), "the leftover has shape [1, 3], but each component has [3]");
  EXPECT_EQ(message(components, row.to(at::kDouble)),
            "the reference has dtype float64, but the tensor of components has float32");
  EXPECT_EQ(message(components, row, row.to(at::kHalf)),
            "the leftover has dtype float16, but the tensor of components has float32");
  EXPECT_EQ(
      message(components.to(at::kLong), row.to(at::kLong)),
      "the tensor of components has dtype int64, but a composition needs floating-point numbers; convert it first");
  EXPECT_THAT(message(components.to(at::kBool), row), HasSubstr("has dtype bool"));
}

TEST(CompositionTest, ComponentIsRangeChecked) {
  const Composition x = Composition::Zeros({2}, 3, at::kFloat);
  EXPECT_EQ(MessageOf([&] { x.component(3); }), "component 3 is out of range: there are 3");
  EXPECT_EQ(MessageOf([&] { x.component(-1); }), "component -1 is out of range: there are 3");
}

TEST(CompositionTest, EveryFloatTypeWorks) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    const at::Tensor value = Counting({2, 3}, dtype);
    const Composition x = Composition::Diagonal(value, {0}, at::ones({}, dtype));
    EXPECT_TRUE(Same(x.recovery(), value)) << at::toString(dtype);
  }
}

TEST(ZerosTest, IsZeroEverywhere) {
  const Composition x = Composition::Zeros({2, 3}, 4, at::kDouble);
  EXPECT_TRUE(Same(x.components(), at::zeros({4, 2, 3}, at::kDouble)));
  EXPECT_TRUE(Same(x.recovery(), at::zeros({2, 3}, at::kDouble)));
  EXPECT_EQ(Composition::Zeros({}, 1, at::kFloat).sizes().size(), 0u);
}

TEST(ZerosTest, MayHaveNoComponents) {
  const Composition x = Composition::Zeros({2}, 0, at::kFloat);
  EXPECT_EQ(x.numc(), 0);
  EXPECT_TRUE(Same(x.recovery(), at::zeros({2})));
  EXPECT_EQ(x.ToString(), "residual:\ntensor([0., 0.])");
}

TEST(ZerosTest, RefusesNonsense) {
  EXPECT_EQ(MessageOf([] { Composition::Zeros({2}, -1, at::kFloat); }), "numc is -1; it must not be negative");
  EXPECT_EQ(MessageOf([] { Composition::Zeros({2, -1}, 1, at::kFloat); }), "shape [2, -1] has a negative size");
  EXPECT_THAT(MessageOf([] { Composition::Zeros({2}, 1, at::kInt); }), HasSubstr("has dtype int32"));
}

TEST(FromPartsTest, PartsAndResidual) {
  const at::Tensor a = Counting({2, 2});
  const at::Tensor residual = at::full({2, 2}, 7);
  const Composition x = Composition::FromParts({a, a.mul(2)}, residual.to(at::kFloat));
  EXPECT_EQ(x.numc(), 2);
  EXPECT_TRUE(Same(x.component(1), a.mul(2)));
  EXPECT_TRUE(Same(x.reference(), at::full({2, 2}, 7.0)));
  EXPECT_TRUE(Same(x.leftover(), at::zeros({2, 2})));
  EXPECT_TRUE(Same(x.recovery(), a.mul(3).add(7)));
  EXPECT_TRUE(Same(Composition::FromParts({a, a}).recovery(), a.mul(2)));
}

TEST(FromPartsTest, NoPartsButAResidual) {
  const Composition x = Composition::FromParts({}, Counting({3}));
  EXPECT_EQ(x.numc(), 0);
  EXPECT_TRUE(Same(x.recovery(), Counting({3})));
}

TEST(FromPartsTest, RefusesWhatDoesNotFit) {
  const at::Tensor a = at::zeros({2});
  EXPECT_THAT(MessageOf([] { Composition::FromParts({}); }), HasSubstr("at least one part, or a residual"));
  EXPECT_EQ(MessageOf([&] {
              Composition::FromParts({a, at::zeros({3})});
            }),
            "part 1 has shape [3], but part 0 has [2]");
  EXPECT_EQ(MessageOf([&] {
              Composition::FromParts({a, a.to(at::kDouble)});
            }),
            "part 1 has dtype float64, but part 0 has float32");
  EXPECT_EQ(MessageOf([&] { Composition::FromParts({a, at::Tensor()}); }), "an undefined tensor was given as part 1");
  EXPECT_THAT(MessageOf([&] { Composition::FromParts({a.to(at::kInt)}); }), HasSubstr("part 0 has dtype int32"));
  EXPECT_EQ(MessageOf([&] {
              Composition::FromParts({a}, at::zeros({1, 2}));
            }),
            "the residual has shape [1, 2], but part 0 has [2]");
  EXPECT_THAT(MessageOf([&] { Composition::FromParts({}, a.to(at::kLong)); }),
              HasSubstr("the residual has dtype int64"));
}

TEST(DiagonalTest, OneDimension) {
  const at::Tensor value = Counting({3, 2});
  const Composition x = Composition::Diagonal(value, {0});
  ASSERT_EQ(x.numc(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    at::Tensor expected = at::zeros({3, 2});
    expected[i] = value[i];
    EXPECT_TRUE(Same(x.component(i), expected)) << i;
  }
  EXPECT_TRUE(Same(x.reference(), at::zeros({3, 2})));
  EXPECT_TRUE(Same(x.recovery(), value));
}

TEST(DiagonalTest, SeveralDimensionsOfFour) {
  const at::Tensor value = Counting({2, 3, 4, 5});
  // In the given order, the last one fastest; -1 is dimension 3.
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{1, 3}, {3, 1}, {1, -1}, {2}, {0, 1, 2, 3}, {3, 0, 2}}) {
    const Composition x = Composition::Diagonal(value, dims);
    std::vector<int64_t> wrapped;
    int64_t count = 1;
    for (const int64_t dim : dims) {
      wrapped.push_back(dim < 0 ? dim + 4 : dim);
      count *= value.size(dim);
    }
    ASSERT_EQ(x.numc(), count);
    at::Tensor expected = at::zeros({count, 2, 3, 4, 5});
    for (int64_t a = 0; a < 2; ++a) {
      for (int64_t b = 0; b < 3; ++b) {
        for (int64_t c = 0; c < 4; ++c) {
          for (int64_t d = 0; d < 5; ++d) {
            const int64_t index[] = {a, b, c, d};
            int64_t component = 0;
            for (const int64_t dim : wrapped) component = component * value.size(dim) + index[dim];
            expected[component][a][b][c][d] = value[a][b][c][d];
          }
        }
      }
    }
    EXPECT_TRUE(Same(x.components(), expected));
    EXPECT_TRUE(Same(x.recovery(), value));
  }
}

TEST(DiagonalTest, WithoutDimensionsTheWholeIsOneComponent) {
  EXPECT_TRUE(Same(Composition::Diagonal(Counting({2, 3}), {}).component(0), Counting({2, 3})));
  EXPECT_TRUE(Same(Composition::Diagonal(at::scalar_tensor(3.0), {}).component(0), at::scalar_tensor(3.0)));
}

TEST(DiagonalTest, BaselineBroadcasts) {
  const at::Tensor value = Counting({2, 3});
  const at::Tensor baseline = at::tensor({1.f, 0.f, 2.f});
  const Composition x = Composition::Diagonal(value, {1}, baseline);
  EXPECT_TRUE(Same(x.reference(), baseline.expand({2, 3})));
  EXPECT_TRUE(x.reference().is_contiguous());
  EXPECT_TRUE(Same(x.components().sum(0), value.sub(baseline)));
  EXPECT_TRUE(Same(x.recovery(), value));
}

TEST(DiagonalTest, EqualInfinitiesDoNotMove) {
  const float inf = std::numeric_limits<float>::infinity();
  const at::Tensor value = at::tensor({-inf, 2.f});
  const Composition x = Composition::Diagonal(value, {0}, at::tensor({-inf, 0.f}));
  EXPECT_TRUE(Same(x.components(), at::tensor({0.f, 0.f, 0.f, 2.f}).view({2, 2})));
  EXPECT_TRUE(Same(x.recovery(), value));
}

TEST(DiagonalTest, OffsetAndNumc) {
  const at::Tensor value = Counting({2});
  EXPECT_TRUE(Same(Composition::Diagonal(value, {0}, at::Tensor(), 1).components(),
                   at::tensor({0.f, 0.f, 1.f, 0.f, 0.f, 2.f}).view({3, 2})));
  EXPECT_TRUE(Same(Composition::Diagonal(value, {0}, at::Tensor(), 1, 4).components(),
                   at::tensor({0.f, 0.f, 1.f, 0.f, 0.f, 2.f, 0.f, 0.f}).view({4, 2})));
}

TEST(DiagonalTest, EmptyValue) {
  const Composition x = Composition::Diagonal(at::zeros({0, 3}), {0});
  EXPECT_EQ(x.numc(), 0);
  EXPECT_EQ(x.recovery().sizes(), at::IntArrayRef({0, 3}));
  EXPECT_EQ(Composition::Diagonal(at::zeros({0, 3}), {1}).numc(), 3);
}

TEST(DiagonalTest, SaysWhatIsWrong) {
  const at::Tensor value = at::zeros({2, 3});
  const auto message = [&](const std::vector<int64_t>& dims, const at::Tensor& baseline = at::Tensor(),
                           int64_t offset = 0, int64_t numc = -1) {
    return MessageOf([&] { Composition::Diagonal(value, dims, baseline, offset, numc); });
  };
  EXPECT_EQ(message({2}), "dim 2 is out of range for a value of shape [2, 3]");
  EXPECT_EQ(message({0, -3}), "dim -3 is out of range for a value of shape [2, 3]");
  EXPECT_EQ(message({1, -1}), "dim -1 occurs twice in dims [1, -1]");
  EXPECT_EQ(message({0}, at::zeros({2})), "the baseline of shape [2] does not broadcast to the value of shape [2, 3]");
  EXPECT_EQ(message({0}, at::zeros({1, 2, 3})),
            "the baseline of shape [1, 2, 3] does not broadcast to the value of shape [2, 3]");
  EXPECT_EQ(message({0}, at::zeros({3}, at::kDouble)), "the baseline has dtype float64, but the value has float32");
  EXPECT_EQ(message({0}, at::Tensor(), -1), "offset is -1; it must not be negative");
  EXPECT_THAT(message({0}, at::Tensor(), std::numeric_limits<int64_t>::max()), HasSubstr("is too large"));
  EXPECT_EQ(message({1}, at::Tensor(), 1, 3), "numc 3 is too small for offset 1 and 3 positions along dims [1]");
  EXPECT_THAT(message({1}, at::Tensor(), 0, -2), HasSubstr("numc -2 is too small"));
  EXPECT_THAT(MessageOf([] { Composition::Diagonal(at::zeros({2}, at::kLong), {0}); }),
              HasSubstr("the value has dtype int64"));
  EXPECT_THAT(MessageOf([] { Composition::Diagonal(at::Tensor(), {0}); }), HasSubstr("undefined"));
}

TEST(FromLabelsTest, OfTheSameShape) {
  const at::Tensor value = at::tensor({1.f, 2.f, 3.f, 4.f});
  const Composition x = Composition::FromLabels(value, at::tensor({1, 0, 1, 3}), at::Tensor());
  EXPECT_TRUE(Same(x.components(), at::tensor({0.f, 2.f, 0.f, 0.f,  //
                                               1.f, 0.f, 3.f, 0.f,  //
                                               0.f, 0.f, 0.f, 0.f,  //
                                               0.f, 0.f, 0.f, 4.f})
                                       .view({4, 4})));
  EXPECT_TRUE(Same(x.recovery(), value));
}

TEST(FromLabelsTest, TrailingDimensionsShareALabel) {
  const at::Tensor value = Counting({2, 2, 3});
  const Composition x = Composition::FromLabels(value, at::tensor({0, 1, 1, 2}).view({2, 2}));
  ASSERT_EQ(x.numc(), 3);
  at::Tensor middle = at::zeros({2, 2, 3});
  middle[0][1] = value[0][1];
  middle[1][0] = value[1][0];
  EXPECT_TRUE(Same(x.component(1), middle));
  EXPECT_TRUE(Same(x.recovery(), value));
}

TEST(FromLabelsTest, SizeOneStandsForAll) {
  const at::Tensor value = Counting({2, 3});
  EXPECT_TRUE(Same(Composition::FromLabels(value, at::tensor({2, 1, 0}).view({1, 3})).component(2).select(1, 0),
                   value.select(1, 0)));
  EXPECT_TRUE(Same(Composition::FromLabels(value, at::zeros({}, at::kLong)).component(0), value));
}

TEST(FromLabelsTest, UnlabelledElementsStayInTheReference) {
  const at::Tensor value = at::tensor({5.f, 6.f, 7.f});
  const Composition x = Composition::FromLabels(value, at::tensor({-1, 0, -1}), at::tensor({1.f}));
  EXPECT_TRUE(Same(x.reference(), at::tensor({5.f, 1.f, 7.f})));
  EXPECT_TRUE(Same(x.components(), at::tensor({0.f, 5.f, 0.f}).view({1, 3})));
  EXPECT_TRUE(Same(x.recovery(), value));

  const Composition none = Composition::FromLabels(value, at::tensor({-1, -1, -1}));
  EXPECT_EQ(none.numc(), 0);
  EXPECT_TRUE(Same(none.recovery(), value));
}

TEST(FromLabelsTest, NumcAndIntegerTypes) {
  const at::Tensor value = at::tensor({5.f, 6.f});
  for (const at::ScalarType dtype : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong}) {
    const Composition x = Composition::FromLabels(value, at::tensor({1, 0}).to(dtype), at::Tensor(), 5);
    EXPECT_EQ(x.numc(), 5);
    EXPECT_TRUE(Same(x.recovery(), value));
  }
}

TEST(FromLabelsTest, IsDiagonalWhereLabelsCount) {
  const at::Tensor value = at::rand({3, 4});
  const at::Tensor baseline = at::rand({3, 4});
  const Composition labels = Composition::FromLabels(value, at::arange(3, at::kLong), baseline);
  const Composition diagonal = Composition::Diagonal(value, {0}, baseline);
  EXPECT_TRUE(Same(labels.components(), diagonal.components()));
  EXPECT_TRUE(Same(labels.reference(), diagonal.reference()));
  EXPECT_TRUE(labels.recovery().allclose(value));
}

TEST(FromLabelsTest, SaysWhatIsWrong) {
  const at::Tensor value = at::zeros({2, 3});
  const auto message = [&](const at::Tensor& labels, int64_t numc = -1) {
    return MessageOf([&] { Composition::FromLabels(value, labels, at::Tensor(), numc); });
  };
  EXPECT_EQ(message(at::zeros({3}, at::kLong)),
            "labels of shape [3] are neither of the shape of the value nor of its leading dimensions: [2, 3]");
  EXPECT_THAT(message(at::zeros({2, 3, 1}, at::kLong)), HasSubstr("labels of shape [2, 3, 1] are neither"));
  EXPECT_EQ(message(at::zeros({2})), "labels have dtype float32; they must be integers");
  EXPECT_EQ(message(at::zeros({2}, at::kBool)), "labels have dtype bool; they must be integers");
  EXPECT_EQ(message(at::tensor({0, -2})), "label -2 is negative; -1 means no component");
  EXPECT_EQ(message(at::tensor({0, 4}), 4), "label 4 is out of range for numc 4");
  EXPECT_THAT(message(at::tensor({0, 1}), -2), HasSubstr("numc is -2"));
  EXPECT_THAT(message(at::full({2}, std::numeric_limits<int64_t>::max(), at::kLong)), HasSubstr("is too large"));
  EXPECT_THAT(message(at::Tensor()), HasSubstr("an undefined tensor was given as labels"));
  EXPECT_THAT(MessageOf([] {
                Composition::FromLabels(at::zeros({2}, at::kInt), at::tensor({0, 1}));
              }),
              HasSubstr("the value has dtype int32"));
}

// ---------------------------------------------------------------------------------------------------- printing

TEST(ToStringTest, ComponentsThenResidual) {
  const Composition x(at::tensor({1.f, 2.5f, -3.f, 4.f}).view({2, 2}), at::tensor({1.f, 2.f}),
                      at::tensor({0.25f, 0.f}));
  EXPECT_EQ(x.ToString(),
            "composition 0:\n"
            "tensor([1.0000, 2.5000])\n"
            "composition 1:\n"
            "tensor([-3.,  4.])\n"
            "residual:\n"
            "tensor([1.2500, 2.0000])");
}

}  // namespace
}  // namespace addend
