// Live tensors that are declared by their memory meet the tensors that operators compute with.
#include "core/explain/live.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/intercept/thread_modes.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;

// A tensor as another library would give it to us: its memory, in a storage object of its own.
Tensor Exchanged(const Tensor& tensor) {
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), [](void*) {}, tensor.options());
}

Input FromZero(const Tensor& live) {
  Input input;
  input.name = "x";
  input.value = Exchanged(live);
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  return input;
}

TEST(LiveTrace, MeetsAnInputInAnotherStorageObject) {
  const Tensor x = Random({2, 3}, 1);
  LiveTrace trace({FromZero(x)}, {}, DecomposeOptions());
  const Tensor y = x.t().mul(2);
  trace.AddOutput("y", Exchanged(y));
  const Decomposition decomposition = trace.Finish();
  const Composition& composition = decomposition.outputs[0].composition;
  ASSERT_EQ(composition.numc(), 3);
  EXPECT_TRUE(at::allclose(composition.components().sum(0), x.t() * 2));
}

TEST(LiveTrace, AnInputInsideALargerStorageIsRefused) {
  const Tensor block = Random({4, 3}, 1);
  const Tensor x = block.slice(0, 2, 4);
  LiveTrace trace({FromZero(x)}, {}, DecomposeOptions());
  EXPECT_THROW(x.mul(2), Error);
  const Tensor y = x.mul(2);  // the program goes on
  EXPECT_THAT(MessageOf([&] { trace.AddOutput("y", y); }),
              testing::HasSubstr("x has 48 bytes, but the storage that it lies in has 96"));
}

TEST(LiveTrace, AnInputThatNoOperatorMetIsAnOutput) {
  const Tensor x = Random({2, 3}, 1);
  LiveTrace trace({FromZero(x)}, {}, DecomposeOptions());
  trace.AddOutput("once", Exchanged(x));
  trace.AddOutput("twice", Exchanged(x));
  const Decomposition decomposition = trace.Finish();
  ASSERT_EQ(decomposition.outputs.size(), 2u);
  for (const auto& output : decomposition.outputs) {
    EXPECT_TRUE(at::equal(output.composition.components().sum(0), x)) << output.name;
  }
}

// The path of a module names what the module gave, also where a result has the same name behind "output.".
TEST(LiveTrace, AModuleComesBeforeTheBareNameOfAnOutput) {
  const Tensor x = Random({2, 3}, 1);
  const auto attribute = [&](const std::string& at, std::vector<std::string> outputs = {}) {
    AttributeOptions options;
    options.at = at;
    options.outputs = std::move(outputs);
    options.targets = {ParseTarget("0,0")};
    LiveTrace trace({FromZero(x)}, {}, options);
    trace.SetModule("encoder");
    const Tensor hidden = x.mul(2);
    trace.SetModule("");
    trace.AddOutput("output.encoder", hidden.add(1));
    trace.AddOutput("output.head", hidden.add(2));
    trace.AddOutput("output.logits", hidden.add(3));
    return trace.FinishAttribution().value;
  };
  EXPECT_TRUE(at::equal(attribute("encoder"), x * 2));
  EXPECT_TRUE(at::equal(attribute("output.encoder"), x * 2 + 1));
  EXPECT_TRUE(at::equal(attribute("head"), x * 2 + 2));
  EXPECT_TRUE(at::equal(attribute("logits"), x * 2 + 3));
  EXPECT_TRUE(at::equal(attribute("encoder", {"output.head"}), x * 2));
  const std::string none = " is none of the outputs that the request names (output.head)";
  for (const std::string at : {"output.logits", "logits"}) {
    EXPECT_THAT(MessageOf([&] { attribute(at, {"output.head"}); }), testing::HasSubstr(at + none));
  }
}

// The input is met there for the first time, by its memory.
TEST(LiveTrace, AnInputThatATransformedFunctionReadsIsRefused) {
  const Tensor x = Random({2, 3}, 1);
  LiveTrace trace({FromZero(x)}, {}, DecomposeOptions());
  {
    const c10::impl::IncludeDispatchKeyGuard transform(kTransformKeys);
    EXPECT_THAT(MessageOf([&] { x.mul(2); }),
                testing::HasSubstr("aten::mul.Scalar reads decomposed tensors inside "
                                   "of a function that torch.func or functorch transforms"));
  }
  const Tensor y = x.mul(2);  // the program goes on
  EXPECT_THAT(MessageOf([&] { trace.AddOutput("y", y); }), testing::HasSubstr("torch.func or functorch transforms"));
}

TEST(LiveTrace, ATensorWithoutMemoryIsNoOutput) {
  const Tensor x = Random({2, 3}, 1);
  LiveTrace trace({FromZero(x)}, {}, DecomposeOptions());
  const Tensor y = x.mul(2);
  const Tensor without =
      at::detail::make_tensor<c10::TensorImpl>(c10::DispatchKeySet(c10::DispatchKey::CPU), y.dtype(), y.device());
  without.unsafeGetTensorImpl()->set_sizes_contiguous({2, 3});
  ASSERT_FALSE(without.has_storage());
  EXPECT_THAT(MessageOf([&] { trace.AddOutput("y", without); }), testing::HasSubstr("y is not dense"));
}

TEST(LiveTrace, InputsOverlap) {
  const Tensor x = Random({2, 3}, 1);
  EXPECT_THAT(MessageOf([&] {
                LiveTrace({FromZero(x), FromZero(x)}, {}, DecomposeOptions());
              }),
              testing::HasSubstr("x shares the memory of another input"));
}

}  // namespace
}  // namespace addend
