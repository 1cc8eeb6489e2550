// Models that pass through complex numbers: transforms, complex products, magnitudes, and every way in which LibTorch
// looks at a complex storage as real numbers, conjugates or negatives.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/program/random_testing.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

at::ScalarType ComplexOf(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kComplexDouble : at::kComplexFloat;
}

// A learned filter in the frequency domain.
Tensor Filter(const Tensor& x, at::IntArrayRef sizes) {
  return at::complex(Random(sizes, 21), Random(sizes, 22)).to(ComplexOf(x));
}

struct SmallModel {
  std::string name;
  std::function<Tensor(const Tensor&)> run;
  bool linear = false;  // but for a constant
};

void PrintTo(const SmallModel& model, std::ostream* out) { *out << model.name; }

constexpr bool kLinear = true;

// Every model takes a float [2, 6] and gives a tensor, some a complex one.
std::vector<SmallModel> SmallModels() {
  return {
      {"filter", [](const Tensor& x) { return at::fft_irfft(at::fft_rfft(x) * Filter(x, {4}), 6); }, kLinear},
      {"fft", [](const Tensor& x) { return at::fft_fft(x); }, kLinear},
      {"mixing", [](const Tensor& x) { return at::real(at::fft_fft2(x)).clone(); }, kLinear},
      {"mixing_view", [](const Tensor& x) { return at::real(at::fft_fft2(x)); }, kLinear},
      {"imaginary_part", [](const Tensor& x) { return at::imag(at::fft_fft(x)); }, kLinear},
      {"imaginary_part_of_a_conjugate", [](const Tensor& x) { return at::imag(at::fft_fft(x).conj()); }, kLinear},
      {"lazy_conjugate", [](const Tensor& x) { return at::fft_fft(x).conj(); }, kLinear},
      {"conjugate", [](const Tensor& x) { return at::fft_fft(x).conj().resolve_conj(); }, kLinear},
      {"conjugate_in_products",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         return at::matmul(z, z.mH()) + (z * z.conj()).sum() + z.conj().mT().mm(Filter(x, {2, 2})).mean();
       }},
      {"conjugate_in_place",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         z.conj_physical_();
         return z;
       },
       kLinear},
      {"hermitian", [](const Tensor& x) { return at::fft_hfft(at::fft_ihfft(x) * Filter(x, {4}), 6); }, kLinear},
      {"ifft_of_padded", [](const Tensor& x) { return at::fft_ifft(x, 9, 0, "ortho"); }, kLinear},
      {"shift",
       [](const Tensor& x) {
         return at::fft_ifftn(at::fft_fftshift(at::fft_fftn(x)) * Filter(x, {2, 6}));
       },
       kLinear},
      {"fft_of_a_conjugate", [](const Tensor& x) { return at::fft_fft(at::fft_fft(x).conj()); }, kLinear},
      {"pairs",
       [](const Tensor& x) {
         return at::view_as_complex(x.view({2, 3, 2})) * Filter(x, {3});
       },
       kLinear},
      {"pairs_of_an_odd_storage",
       [](const Tensor& x) {
         const Tensor y = at::cat({x.flatten(), x.sum().view({1})});
         at::view_as_complex(y.slice(0, 0, 12).view({6, 2})).mul_(Filter(x, {6}));
         return y;
       },
       kLinear},
      {"write_a_real_part",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         at::real(z).mul_(2);
         return z;
       },
       kLinear},
      {"write_an_imaginary_part",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         at::imag(z).copy_(x.flip({1}));
         return at::fft_ifft(z);
       },
       kLinear},
      {"write_through_negatives",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         at::imag(z.conj()).copy_(x);
         at::imag(z.conj()).select(1, 2).add_(x.select(1, 0));
         return z;
       },
       kLinear},
      {"write_through_a_conjugate",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         z.conj().mul_(Filter(x, {6}));
         z.conj().select(0, 1).copy_(Filter(x, {6}) * x[0]);
         return z;
       },
       kLinear},
      {"out_is_a_conjugate",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         const Tensor out = at::zeros({2, 6}, z.options());
         Tensor conjugate = out.conj();
         at::mul_out(conjugate, z, Filter(x, {6}));
         return out;
       },
       kLinear},
      {"write_pairs",
       [](const Tensor& x) {
         const Tensor z = at::fft_fft(x);
         const Tensor pairs = at::view_as_real(z);
         pairs.select(2, 0).add_(x, 3);
         pairs.select(2, 1).zero_();
         return at::view_as_real(z.mul_(Filter(x, {6}))).flip({2});
       },
       kLinear},
      {"into_a_complex_buffer",
       [](const Tensor& x) {
         const Tensor buffer = at::zeros({3, 6}, x.options().dtype(ComplexOf(x)));
         buffer.slice(0, 0, 2).copy_(x);
         at::imag(buffer).slice(0, 1, 3).add_(x);
         return buffer * Filter(x, {6});
       },
       kLinear},
      {"complex_and_cast", [](const Tensor& x) { return at::complex(x, x.flip({0})) + x.to(ComplexOf(x)); }, kLinear},
      {"joined_and_masked",
       [](const Tensor& x) {
         const Tensor z = at::fft_rfft(x);
         const Tensor mask = at::tensor({1, 0, 0, 1}, at::kLong).to(at::kBool);
         const Tensor both = at::cat({z, z.conj(), Filter(x, {1, 4})}).masked_fill(mask, 2);
         const Tensor index = at::tensor({4, 0, 1}, at::kLong);
         return at::where(mask, both, both * 3).index({index}) + both.index_select(0, index);
       },
       kLinear},
      {"windowed",
       [](const Tensor& x) {
         return at::stft(x.view({12}), 4, 2, 4, at::hann_window(4, x.options()), /*center=*/true, "constant",
                         /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
       },
       kLinear},
      {"rotated", [](const Tensor& x) { return at::polar(x.square() + 1, x.flip({1})); }},
      {"magnitude", [](const Tensor& x) { return at::fft_rfft(x).abs(); }},
      {"power", [](const Tensor& x) { return at::fft_rfft(x).abs().square().sum(1).log(); }},
      {"phase_of_the_right_half", [](const Tensor& x) { return at::angle(at::fft_rfft(x) + 30); }},
      {"direction", [](const Tensor& x) { return at::sgn(at::fft_rfft(x)); }},
      {"functions",
       [](const Tensor& x) {
         const Tensor z = at::fft_rfft(x) / 4;
         return (z.exp() + z.sin() * z.cos().conj()) / (z.square() + 20) + (z + 9).sqrt() + (z + 9).log().reciprocal();
       }},
      {"complex_layer",
       [](const Tensor& x) {
         const Tensor z = at::view_as_complex(x.view({2, 3, 2}));
         const Tensor hidden = at::tanh(at::matmul(z, Filter(x, {3, 3})) / 5);
         return at::real(at::bmm(hidden.unsqueeze(1), hidden.conj().unsqueeze(2))).squeeze(2);
       }},
  };
}

class ComplexModels : public testing::TestWithParam<SmallModel> {
 protected:
  static Tensor Run(const Tensor& x) { return GetParam().run(x.clone()); }
  static Decomposition Decompose(const Tensor& value, const Tensor& baseline, const DecomposeOptions& options) {
    Input input;
    input.value = value;
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(baseline);
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return GetParam().run(in[0]); }))
        .Decompose({input}, options);
  }
};

double Largest(const Tensor& t) { return t.abs().max().item<double>(); }

TEST_P(ComplexModels, BothTruthsHold) {
  const Tensor value = Random({2, 6}, 1);
  const Tensor baseline = Random({2, 6}, 2);
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    DecomposeOptions options;
    options.everything = true;
    options.policy.preset = preset;
    const Decomposition result = Decompose(value, baseline, options);
    const Composition& parts = result.outputs[0].composition;
    ASSERT_TRUE(at::equal(result.outputs[0].value, Run(value)));
    EXPECT_TRUE(at::equal(parts.reference(), Run(baseline)));
    EXPECT_EQ(parts.components().scalar_type(), Run(value).scalar_type());
    const double scale = std::max(Largest(result.outputs[0].value), 1.0);
    EXPECT_LE(Largest(parts.recovery() - result.outputs[0].value), 1e-12 * scale);
    if (preset == Preset::kFaithful) {
      EXPECT_LE(Largest(parts.leftover()), 1e-10 * scale);
    }
    EXPECT_TRUE(result.report.failures.empty());
  }
}

class LinearComplexModels : public ComplexModels {};

// A linear model is its own oracle: each component is the model on that component alone, without the constant.
TEST_P(LinearComplexModels, GiveWhatTheModelGivesOnEachPart) {
  const Tensor value = Random({2, 6}, 3);
  const Tensor baseline = Random({2, 6}, 4);
  const Composition parts = Decompose(value, baseline, {}).outputs[0].composition;
  for (int64_t i = 0; i < 6; ++i) {
    const Tensor part = at::zeros_like(value);
    part.select(1, i).copy_((value - baseline).select(1, i));
    const Tensor expected = Run(part) - Run(at::zeros_like(value));
    EXPECT_TRUE(at::allclose(parts.component(i), expected, 1e-11, 1e-11)) << "component " << i;
  }
  EXPECT_GT(Largest(parts.components()), 0);
}

TEST_P(ComplexModels, SinglePrecisionPassesEveryCheck) {
  DecomposeOptions options;
  options.everything = true;
  const Tensor value = Random({2, 6}, 5, at::kFloat);
  for (const Tensor& baseline : {Random({2, 6}, 6, at::kFloat), at::zeros_like(value)}) {
    const Decomposition result = Decompose(value, baseline, options);
    const Composition& parts = result.outputs[0].composition;
    const double scale = std::max(Largest(result.outputs[0].value), 1.0);
    EXPECT_LE(Largest(parts.recovery() - result.outputs[0].value), 1e-4 * scale);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, ComplexModels, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

std::vector<SmallModel> LinearModels() {
  std::vector<SmallModel> linear;
  for (const SmallModel& model : SmallModels()) {
    if (model.linear) linear.push_back(model);
  }
  return linear;
}

INSTANTIATE_TEST_SUITE_P(Small, LinearComplexModels, testing::ValuesIn(LinearModels()),
                         [](const auto& info) { return info.param.name; });

// Magnitudes of a linear map: one function on the straight line, so that its path rule is what integrated gradients
// give, and autograd can be asked for those.
TEST(Complex, MagnitudesOfATransformAreIntegratedGradients) {
  const auto model = [](const Tensor& x) { return at::fft_rfft(x).abs(); };
  const Tensor value = Random({8}, 31);
  const Tensor baseline = Random({8}, 32);
  const Composition parts = DecomposeFunction(model, SplitInput(value, {0}, baseline)).outputs[0].composition;
  const int steps = 4000;
  Tensor integral = at::zeros({8, 5}, at::kDouble);
  for (int64_t k = 0; k < 5; ++k) {
    c10::AutoGradMode grad(true);
    const Tensor t = ((at::arange(steps, at::kDouble) + 0.5) / steps).unsqueeze(1);
    const Tensor line = (baseline + t * (value - baseline)).requires_grad_(true);
    const Tensor reached = model(line).select(1, k).sum();
    const Tensor gradient = torch::autograd::grad({reached}, {line})[0].mean(0);
    integral.select(1, k).copy_(gradient * (value - baseline));
  }
  // The first and the last bin are real numbers, and their magnitude has a corner where they change their sign.
  EXPECT_TRUE(at::allclose(parts.components(), integral, 0, 1e-3));
  EXPECT_TRUE(at::allclose(parts.components().slice(1, 1, 4), integral.slice(1, 1, 4), 1e-5, 1e-6));
}

TEST(Complex, ThePhaseIsLeftOverWhereItJumps) {
  // From -1 + i to -1 - i the line crosses the cut: the phase falls by 3 pi / 2,
  // of which the line itself makes + pi / 2.
  const auto model = [](const Tensor& x) { return at::angle(at::view_as_complex(x)); };
  Input input;
  input.value = at::tensor({-1.0, -1.0}, at::kDouble);
  input.split = Split::AlongDims({0});
  input.baseline = Baseline::Of(at::tensor({-1.0, 1.0}, at::kDouble));
  const Composition parts = DecomposeFunction(model, input).outputs[0].composition;
  EXPECT_NEAR(parts.component(0).item<double>(), 0, 1e-12);
  EXPECT_NEAR(parts.component(1).item<double>(), M_PI / 2, 1e-12);
  EXPECT_NEAR(parts.leftover().item<double>(), -2 * M_PI, 1e-12);
}

// A silent baseline: every bin starts at zero. The phase jumps there, and is leftover; rows turn it as at the value.
TEST(Complex, FromZeroTheMapIsThatOfTheValue) {
  const Tensor value = at::tensor({0.6, 0.8}, at::kDouble);
  for (const bool phase : {true, false}) {
    const auto model = [&](const Tensor& x) {
      const Tensor z = at::view_as_complex(x);
      return phase ? at::angle(z) : at::sgn(z);
    };
    const Composition parts =
        DecomposeFunction(model, SplitInput(value, {0}, at::zeros({2}, at::kDouble))).outputs[0].composition;
    const Tensor turn = at::tensor({-0.8 * 0.6, 0.6 * 0.8}, at::kDouble);
    const Tensor direction = at::complex(value[0], value[1]);
    const Tensor expected = phase ? turn : turn * direction * at::Scalar(c10::complex<double>(0, 1));
    EXPECT_TRUE(at::allclose(parts.components(), expected, 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(parts.leftover(), model(value), 1e-12, 1e-12));
  }
}

TEST(Complex, InputsMayBeComplex) {
  const Tensor value = at::complex(Random({4}, 41), Random({4}, 42));
  const Tensor weight = at::complex(Random({3, 4}, 43), Random({3, 4}, 44));
  const auto model = [&](const Tensor& z) { return weight.mv(z).add(Random({3}, 45)); };
  const Composition parts =
      DecomposeFunction(model, SplitInput(value, {0}, at::zeros_like(value))).outputs[0].composition;
  EXPECT_TRUE(at::allclose(parts.components(), (weight * value).t(), 1e-12, 1e-12));
  EXPECT_TRUE(at::equal(parts.reference(), model(at::zeros_like(value))));
  // The composition is the input of another model.
  const Composition again =
      DecomposeFunction([](const Tensor& z) { return at::view_as_real(z).sum(1); }, Input::Of(parts))
          .outputs[0]
          .composition;
  EXPECT_TRUE(at::allclose(again.components(), at::view_as_real(parts.components()).sum(2), 1e-12, 1e-12));
}

TEST(Complex, ProbesSeeViewsAsTheyAre) {
  const Tensor value = Random({4}, 51);
  DecomposeOptions options;
  const auto model = [](const Tensor& x) { return at::imag(at::fft_fft(x).conj()).neg(); };
  options.everything = true;
  const Decomposition result = DecomposeFunction(model, SplitInput(value, {0}, at::zeros({4}, at::kDouble)), options);
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.recovery(), at::imag(at::fft_fft(value)), 1e-12, 1e-12));
}

TEST(Complex, WhatIsNotCoveredIsRefused) {
  const Input input = SplitInput(Random({4}, 61), {0}, at::zeros({4}, at::kDouble));
  const auto message = [&](const std::function<Tensor(const Tensor&)>& model) {
    return MessageOf([&] { DecomposeFunction(model, input); });
  };
  EXPECT_THAT(message([](const Tensor& x) { return (x * 2).view(at::kLong).to(at::kDouble); }),
              HasSubstr("reads the bytes of a decomposed tensor as another dtype"));
  EXPECT_THAT(message([](const Tensor& x) { return at::atanh(at::fft_fft(x)); }), HasSubstr("aten::atanh"));
  EXPECT_THAT(message([](const Tensor& x) { return at::acos(at::fft_fft(x)); }), HasSubstr("aten::acos"));
}

}  // namespace
}  // namespace addend
