#include "core/intercept/tracing_scope.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/intercept/thread_modes.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Writes down what it sees and runs it.
class Names : public CallHandler {
 public:
  void Handle(const Operator& op, Stack* stack) override {
    names.push_back(op.schema().name());
    op.Run(stack);
  }
  std::vector<std::string> names;
};

TEST(TracingScope, SeesCallsOfItsThreadWhileItIsOpen) {
  Names seen;
  const at::Tensor x = at::ones({2});
  at::Tensor y;
  {
    TracingScope scope(&seen);
    y = x + x;
    std::thread([&] { at::relu(x); }).join();
  }
  at::relu(x);
  EXPECT_THAT(seen.names, ElementsAre("aten::add"));
  EXPECT_TRUE(at::equal(y, at::full({2}, 2.0)));
}

TEST(TracingScope, SeesCompositeOperatorsWhole) {
  Names seen;
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor w = at::ones({4, 3});
  {
    TracingScope scope(&seen);
    at::linear(x, w);
  }
  EXPECT_THAT(seen.names, ElementsAre("aten::linear"));
}

TEST(TracingScope, ExpandBringsTheInnerOperatorsBack) {
  class Expanding : public Names {
   public:
    void Handle(const Operator& op, Stack* stack) override {
      names.push_back(op.schema().name());
      if (op.composite()) {
        op.Expand(stack);
      } else {
        op.Run(stack);
      }
    }
  } seen;
  const at::Tensor x = at::randn({2, 3});
  const at::Tensor w = at::randn({4, 3});
  at::Tensor y;
  {
    TracingScope scope(&seen);
    y = at::linear(x, w);
  }
  EXPECT_THAT(seen.names, testing::Contains("aten::t"));
  EXPECT_GT(seen.names.size(), 2u);
  EXPECT_TRUE(at::allclose(y, at::linear(x, w)));
}

TEST(TracingScope, WorksUnderNoGradAndInferenceMode) {
  Names seen;
  const at::Tensor x = at::ones({2});
  {
    TracingScope scope(&seen);
    at::NoGradGuard no_grad;
    at::relu(x);
    c10::InferenceMode inference;
    at::tanh(x);
  }
  EXPECT_THAT(seen.names, ElementsAre("aten::relu", "aten::tanh"));
}

TEST(TracingScope, ScopesNestAndPause) {
  Names outer;
  Names inner;
  const at::Tensor x = at::ones({2});
  {
    TracingScope first(&outer);
    {
      TracingScope second(&inner);
      at::relu(x);
      TracingPause pause;
      at::sin(x);
    }
    at::tanh(x);
  }
  EXPECT_THAT(outer.names, ElementsAre("aten::tanh"));
  EXPECT_THAT(inner.names, ElementsAre("aten::relu"));
}

TEST(TracingScope, APauseLeavesTransformedFunctions) {
  const at::Tensor x = at::ones({2});
  EXPECT_FALSE(UnderTransform());
  const c10::impl::IncludeDispatchKeyGuard transform(kTransformKeys);
  EXPECT_TRUE(UnderTransform());
  const TracingPause outer;
  EXPECT_TRUE(UnderTransform());
  EXPECT_TRUE(c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::FuncTorchDynamicLayerFrontMode));
  { const TracingPause inner; }
  EXPECT_TRUE(at::equal(x + x, at::full({2}, 2.0)));
}

TEST(TracingScope, AFunctionThatIsTransformedWithinAPauseStaysSo) {
  const TracingPause pause;
  const c10::impl::IncludeDispatchKeyGuard transform(kTransformKeys);
  EXPECT_FALSE(c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::FuncTorchDynamicLayerFrontMode));
}

TEST(TracingScope, ExceptionsCloseIt) {
  class Throwing : public CallHandler {
   public:
    void Handle(const Operator&, Stack*) override { throw InvalidArgument("stop"); }
  } handler;
  const at::Tensor x = at::ones({2});
  try {
    TracingScope scope(&handler);
    at::relu(x);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "stop");
  }
  Names seen;
  at::relu(x);
  EXPECT_THAT(seen.names, IsEmpty());
}

TEST(Operator, IsFoundByName) {
  const auto add = Operator::Find("aten::add", "Tensor");
  ASSERT_TRUE(add.has_value());
  Stack stack = {at::ones({2}), at::ones({2}), 3};
  add->Run(&stack);
  EXPECT_TRUE(at::equal(stack[0].toTensor(), at::full({2}, 4.0)));
  EXPECT_FALSE(Operator::Find("aten::no_such_operator", "").has_value());
}

TEST(TracingKey, HasAName) { EXPECT_FALSE(TracingKeyName().empty()); }

}  // namespace
}  // namespace addend
