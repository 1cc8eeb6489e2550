// The expectations are what PyTorch 1.13 prints (`repr` in Python), not what this library does.
#include "core/composition/format_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error_testing.h"

namespace addend {
namespace {

using testing::HasSubstr;

TEST(FormatTensorTest, Floats) {
  EXPECT_EQ(FormatTensor(at::tensor({0.0310f, -0.0436f, 1.25f, -2.5f}).view({2, 2})),
            "tensor([[ 0.0310, -0.0436],\n"
            "        [ 1.2500, -2.5000]])");
  EXPECT_EQ(FormatTensor(at::tensor({3.f}).squeeze()), "tensor(3.)");
  EXPECT_EQ(FormatTensor(at::tensor({1.f, -2.f, 0.f, 300.f})), "tensor([  1.,  -2.,   0., 300.])");
  EXPECT_EQ(FormatTensor(at::arange(8, at::kFloat).div(2).view({2, 2, 2})),
            "tensor([[[0.0000, 0.5000],\n"
            "         [1.0000, 1.5000]],\n"
            "\n"
            "        [[2.0000, 2.5000],\n"
            "         [3.0000, 3.5000]]])");
  EXPECT_EQ(FormatTensor(at::arange(6, at::kFloat).view({2, 3}).t()),
            "tensor([[0., 3.],\n"
            "        [1., 4.],\n"
            "        [2., 5.]])");
}

TEST(FormatTensorTest, Scientific) {
  EXPECT_EQ(FormatTensor(at::tensor({1e-6f, 1.5f, 0.f, -2e3f})),
            "tensor([ 1.0000e-06,  1.5000e+00,  0.0000e+00, -2.0000e+03])");
  EXPECT_EQ(FormatTensor(at::tensor({1e5f, 1.f})), "tensor([1.0000e+05, 1.0000e+00])");
}

TEST(FormatTensorTest, NotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FormatTensor(at::tensor({nan}).squeeze()), "tensor(nan)");
  EXPECT_EQ(FormatTensor(at::tensor({-nan})), "tensor([nan])");
  EXPECT_EQ(FormatTensor(at::tensor({nan, inf, -inf, 1.5f})), "tensor([   nan,    inf,   -inf, 1.5000])");
  EXPECT_EQ(FormatTensor(at::tensor({nan, -inf, 12.f})), "tensor([nan, -inf, 12.])");
  EXPECT_EQ(FormatTensor(at::tensor({inf, 1e9f})), "tensor([       inf, 1.0000e+09])");
}

TEST(FormatTensorTest, Dtypes) {
  EXPECT_EQ(FormatTensor(at::tensor({0.1, 0.2}, at::kDouble)), "tensor([0.1000, 0.2000], dtype=torch.float64)");
  EXPECT_EQ(FormatTensor(at::tensor({0.1f, -0.2f}).to(at::kHalf)), "tensor([ 0.1000, -0.2000], dtype=torch.float16)");
  EXPECT_EQ(FormatTensor(at::tensor({0.1f, -0.2f}).to(at::kBFloat16)),
            "tensor([ 0.1001, -0.2002], dtype=torch.bfloat16)");
  EXPECT_EQ(FormatTensor(at::tensor({1, -20, 300, 4}, at::kLong).view({2, 2})),
            "tensor([[  1, -20],\n"
            "        [300,   4]])");
  EXPECT_EQ(FormatTensor(at::tensor({1, 200}, at::kByte)), "tensor([  1, 200], dtype=torch.uint8)");
  EXPECT_EQ(FormatTensor(at::tensor({1, 0}).to(at::kBool)), "tensor([ True, False])");
  EXPECT_EQ(FormatTensor(at::arange(7, at::kDouble).div(3)),
            "tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000],\n"
            "       dtype=torch.float64)");
}

TEST(FormatTensorTest, Empty) {
  EXPECT_EQ(FormatTensor(at::zeros({0})), "tensor([])");
  EXPECT_EQ(FormatTensor(at::zeros({0, 3})), "tensor([], size=(0, 3))");
  EXPECT_EQ(FormatTensor(at::zeros({2, 0}, at::kLong)), "tensor([], size=(2, 0), dtype=torch.int64)");
}

TEST(FormatTensorTest, LongLinesBreak) {
  EXPECT_EQ(FormatTensor(at::arange(25, at::kFloat).div(4)),
            "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000,\n"
            "        2.2500, 2.5000, 2.7500, 3.0000, 3.2500, 3.5000, 3.7500, 4.0000, 4.2500,\n"
            "        4.5000, 4.7500, 5.0000, 5.2500, 5.5000, 5.7500, 6.0000])");
  // Zeros do not count for where a line breaks, though they are wider than the width that counts.
  EXPECT_EQ(FormatTensor(at::zeros({30})),
            "tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.,\n"
            "        0., 0., 0., 0., 0., 0.])");
}

TEST(FormatTensorTest, LargeTensorsAreSummarised) {
  EXPECT_EQ(FormatTensor(at::arange(1001, at::kLong)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  EXPECT_EQ(FormatTensor(at::arange(2000, at::kFloat).view({40, 50})),
            "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 4.7000e+01, 4.8000e+01,\n"
            "         4.9000e+01],\n"
            "        [5.0000e+01, 5.1000e+01, 5.2000e+01,  ..., 9.7000e+01, 9.8000e+01,\n"
            "         9.9000e+01],\n"
            "        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.4700e+02, 1.4800e+02,\n"
            "         1.4900e+02],\n"
            "        ...,\n"
            "        [1.8500e+03, 1.8510e+03, 1.8520e+03,  ..., 1.8970e+03, 1.8980e+03,\n"
            "         1.8990e+03],\n"
            "        [1.9000e+03, 1.9010e+03, 1.9020e+03,  ..., 1.9470e+03, 1.9480e+03,\n"
            "         1.9490e+03],\n"
            "        [1.9500e+03, 1.9510e+03, 1.9520e+03,  ..., 1.9970e+03, 1.9980e+03,\n"
            "         1.9990e+03]])");
  const std::string three = FormatTensor(at::arange(1120, at::kFloat).div(4).view({7, 2, 80}));
  EXPECT_THAT(three, AllOf(HasSubstr("tensor([[[0.0000e+00, 2.5000e-01, 5.0000e-01,  ..., 1.9250e+01,\n"
                                     "          1.9500e+01, 1.9750e+01],\n"
                                     "         [2.0000e+01, 2.0250e+01, 2.0500e+01,  ..., 3.9250e+01,\n"
                                     "          3.9500e+01, 3.9750e+01]],\n"
                                     "\n"
                                     "        [[4.0000e+01,"),
                           HasSubstr("          1.1950e+02, 1.1975e+02]],\n"
                                     "\n"
                                     "        ...,\n"
                                     "\n"
                                     "        [[1.6000e+02,")));
}

TEST(FormatTensorTest, AutogradIsNotMentioned) {
  EXPECT_EQ(FormatTensor(at::ones({1}).requires_grad_(true).mul(2)), "tensor([2.])");
}

TEST(FormatTensorTest, RefusesWhatItCannotPrint) {
  EXPECT_EQ(MessageOf([] { FormatTensor(at::Tensor()); }), "an undefined tensor cannot be printed");
  EXPECT_THAT(MessageOf([] { FormatTensor(at::complex(at::zeros({1}), at::zeros({1}))); }),
              HasSubstr("cannot be printed"));
  EXPECT_THAT(MessageOf([] { FormatTensor(at::ones({1}).to_sparse()); }), HasSubstr("not dense"));
}

}  // namespace
}  // namespace addend
