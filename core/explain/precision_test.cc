// LibTorch's settings say what float32 is multiplied in, and reports repeat it.
#include "core/rules/precision.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/inside.h"
#include "core/explain/plan.h"
#include "core/model/model.h"

namespace addend {
namespace {

using at::Tensor;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const at::Device kCuda(at::kCUDA, 0);

// The word that LibTorch sets it by, which newer versions take alone.
const char* NameOf(at::Float32MatmulPrecision precision) {
  switch (precision) {
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
    default:
      return "highest";
  }
}

// Leaves LibTorch's settings as they were.
class PrecisionTest : public testing::Test {
 protected:
  ~PrecisionTest() override {
    at::globalContext().setAllowTF32CuDNN(convolutions_);
    at::globalContext().setFloat32MatmulPrecision(NameOf(matmul_));
  }

  static Input Row() {
    Input input;
    input.value = at::tensor({1.0F, 2.0F, 3.0F}).view({1, 3});
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(0.0);
    return input;
  }
  static TracedModel Layer() {
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return at::linear(in[0], at::ones({2, 3})); }));
  }

 private:
  const bool convolutions_ = at::globalContext().allowTF32CuDNN();
  const at::Float32MatmulPrecision matmul_ = at::globalContext().float32MatmulPrecision();
};

TEST_F(PrecisionTest, EachKindOfProductHasItsSetting) {
  at::globalContext().setAllowTF32CuDNN(true);
  at::globalContext().setFloat32MatmulPrecision("highest");
  EXPECT_EQ(PrecisionOf(Products::kConvolution, kCuda, at::kFloat), ReducedPrecision::kTf32);
  EXPECT_EQ(PrecisionOf(Products::kMatmul, kCuda, at::kFloat), std::nullopt);
  EXPECT_EQ(PrecisionOf(Products::kNone, kCuda, at::kFloat), std::nullopt);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setFloat32MatmulPrecision("high");
  EXPECT_EQ(PrecisionOf(Products::kConvolution, kCuda, at::kFloat), std::nullopt);
  EXPECT_EQ(PrecisionOf(Products::kMatmul, kCuda, at::kFloat), ReducedPrecision::kTf32);
}

TEST_F(PrecisionTest, TheVariableOfCudaComesFirst) {
  at::globalContext().setAllowTF32CuDNN(true);
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  EXPECT_EQ(PrecisionOf(Products::kConvolution, kCuda, at::kFloat), std::nullopt);
  setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  EXPECT_EQ(PrecisionOf(Products::kConvolution, kCuda, at::kFloat), ReducedPrecision::kTf32);
  unsetenv("NVIDIA_TF32_OVERRIDE");
}

TEST_F(PrecisionTest, OtherDtypesAreMultipliedAsTheyAre) {
  at::globalContext().setAllowTF32CuDNN(true);
  at::globalContext().setFloat32MatmulPrecision("medium");
  for (const at::ScalarType dtype : {at::kDouble, at::kHalf, at::kBFloat16, at::kLong}) {
    EXPECT_EQ(PrecisionOf(Products::kMatmul, kCuda, dtype), std::nullopt) << dtype;
    EXPECT_EQ(PrecisionOf(Products::kMatmul, at::kCPU, dtype), std::nullopt) << dtype;
  }
  EXPECT_EQ(PrecisionOf(Products::kMatmul, at::kCPU, at::kFloat), ReducedPrecision::kBfloat16);
  // A CPU has no TF32.
  at::globalContext().setFloat32MatmulPrecision("high");
  EXPECT_EQ(PrecisionOf(Products::kMatmul, at::kCPU, at::kFloat), std::nullopt);
}

TEST_F(PrecisionTest, EveryWayOfAskingSaysSo) {
  const auto note = Contains(HasSubstr("the model may multiply in bfloat16: parts agree to 1e-2"));
  EXPECT_THAT(Layer().Decompose({Row()}).report.notes, Not(note));
  at::globalContext().setFloat32MatmulPrecision("medium");
  EXPECT_THAT(Layer().Decompose({Row()}).report.notes, note);
  EXPECT_EQ(Layer().Decompose({Row()}).report.policy.tolerance, 1e-2);
  EXPECT_THAT(Attribute(Layer(), {Row()}, {}).report.notes, note);
  const auto plan = AttributionPlan::Make(Layer().model(), {Row()}, {});
  EXPECT_THAT(plan->Attribute({Row().value}).report.notes, note);
}

TEST_F(PrecisionTest, Tf32IsTold) {
  RecordedRun run = RecordFor(*Layer().model(), {Row()}, {}, RunFor::kBackward);
  run.trace->precision = ReducedPrecision::kTf32;
  run.policy = AtPrecisionOf(*run.trace, run.policy);
  EXPECT_EQ(run.policy.tolerance, 1e-3);
  EXPECT_THAT(AttributeRun(std::move(run), {}).report.notes,
              Contains(HasSubstr("the model multiplies in TF32: parts agree to 1e-3")));
}

TEST_F(PrecisionTest, AToleranceThatWasChosenStays) {
  at::globalContext().setFloat32MatmulPrecision("medium");
  AttributeOptions options;
  options.policy.tolerance = 1e-5;
  EXPECT_EQ(Attribute(Layer(), {Row()}, options).report.policy.tolerance, 1e-5);
}

TEST_F(PrecisionTest, NothingIsSaidOfAModelThatMultipliesNothing) {
  at::globalContext().setFloat32MatmulPrecision("medium");
  const TracedModel sum(FromFunction([](const std::vector<Tensor>& in) { return at::relu(in[0]).sum(1); }));
  EXPECT_THAT(Attribute(sum, {Row()}, {}).report.notes, Not(Contains(HasSubstr("multipl"))));
}

}  // namespace
}  // namespace addend
