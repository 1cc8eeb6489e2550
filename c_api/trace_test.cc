// Models that the caller runs itself, operator by operator, while a trace is open.
#include <gmock/gmock.h>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Plain(const char* op, const Arguments& arguments) { return Call(op, arguments).tensor(); }

int32_t CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ADDEND_OK;
}

class TraceTest : public CApiTest {
 protected:
  Request Asked() const {
    Request request;
    request.Input(x_).SplitAlong({0}).Baseline(0.0);
    return request;
  }

  const Tensor x_ = Tensor::Copy<double>({1, -2, 3}, {3});
};

TEST_F(TraceTest, CallsOnPlainTensorsAreAModel) {
  TracingScope scope(Asked());
  const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
  // A branch on what was computed.
  const bool first_is_positive = doubled.To<double>()[0] > 0;
  scope.SetModule("head");
  const Tensor y = first_is_positive ? Plain("aten::relu", Arguments().Add(doubled)) : doubled;
  const Tensor sum = Plain("aten::sum", Arguments().Add(y));
  scope.AddOutput("y", y);
  scope.AddOutput("sum", sum);
  const Results results = scope.End();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.name(0), "y");
  ExpectNear(Numbers(results.composition(0).components()), {2, 0, 0, 0, 0, 0, 0, 0, 6}, 1e-12);
  ExpectNear(Numbers(results.composition(0).value()), {2, 0, 6}, 1e-12);
  ExpectNear(Numbers(results.composition(1).components()), {2, 0, 6}, 1e-12);
  EXPECT_THAT(results.ReportJson(), HasSubstr("\"head\""));
}

TEST_F(TraceTest, OperatorsThatWriteGiveTheNewState) {
  TracingScope scope(Asked());
  const Tensor doubled = Plain("aten::mul", Arguments().Add(x_).Add(2.0));
  const Tensor next = Plain("aten::mul_", Arguments().Add(doubled).Add(5.0));
  EXPECT_THAT(Numbers(doubled), ElementsAre(2, -4, 6));
  scope.AddOutput("next", next);
  scope.AddOutput("doubled", doubled);
  const Results results = scope.End();
  ExpectNear(Numbers(results.composition(0).components()), {10, 0, 0, 0, -20, 0, 0, 0, 30}, 1e-12);
  ExpectNear(Numbers(results.composition(1).components()), {2, 0, 0, 0, -4, 0, 0, 0, 6}, 1e-12);
}

TEST_F(TraceTest, CompositionsAndModelsAreForOtherThreads) {
  const Composition composed = Composition::Diagonal(x_, {0});
  TracingScope scope(Asked());
  addend_results* results = nullptr;
  const Arguments arguments = Arguments().Add(composed);
  const auto refused = Outcome(addend_call(nullptr, "aten::relu", arguments.get(), &results));
  EXPECT_EQ(refused.code, ADDEND_FAILED_PRECONDITION);
  EXPECT_THAT(refused.message, HasSubstr("this thread records a trace; end it first"));
  EXPECT_EQ(results, nullptr);
}

TEST_F(TraceTest, OutputsHaveToBeWhatOperatorsMet) {
  const Tensor other = Tensor::Copy<double>({4, 5}, {2});
  const Tensor integers = Tensor::Copy<int64_t>({4, 5}, {2});
  TracingScope scope(Asked());
  EXPECT_EQ(CodeOf([&] { scope.AddOutput("other", other); }), ADDEND_NOT_FOUND);
  EXPECT_EQ(CodeOf([&] { scope.AddOutput("integers", integers); }), ADDEND_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf([&] { scope.End(); }), ADDEND_INVALID_ARGUMENT) << "no output was named";
}

TEST_F(TraceTest, TheThreadIsFreeAfterwards) {
  {
    const TracingScope scope(Asked());
    EXPECT_EQ(CodeOf([&] { const TracingScope second(Asked()); }), ADDEND_FAILED_PRECONDITION);
  }
  const Composition y = Call("aten::relu", Arguments().Add(Composition::Diagonal(x_, {0}))).composition();
  ExpectNear(Numbers(y.components()), {1, 0, 0, 0, 0, 0, 0, 0, 3}, 1e-12);
}

}  // namespace
}  // namespace addend::api
