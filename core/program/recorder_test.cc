#include "core/program/recorder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

using testing::ElementsAre;

// Records every operator as it is called.
class Handler : public CallHandler {
 public:
  void Handle(const Operator& op, Stack* stack) override {
    Call call = recorder.Begin(op, *stack);
    const TracingPause pause;
    const std::vector<c10::IValue> arguments = recorder.Place(*stack, call);
    op.Run(stack);
    recorder.AddOutputs(arguments, ResultsOf(op, *stack), call);
    recorder.End(std::move(call));
  }

  Recorder recorder;
};

template <typename Run>
TracedCalls Record(Run run) {
  Handler handler;
  {
    TracingScope scope(&handler);
    run();
  }
  return std::move(handler.recorder.traced());
}

TEST(Recorder, DescribesCalls) {
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor w = at::ones({4, 3});
  const at::Tensor bias = at::ones({4});
  const TracedCalls traced = Record([&] {
    at::linear(x, w, bias);
    at::linear(x, w);
    at::cat({x, x}, 1);
    at::sum(x, {1}, true);
    x.index({at::tensor({0, 1}, at::kLong)});
  });
  std::vector<std::string> lines;
  for (const Call& call : traced.calls) lines.push_back(DescribeCall(call));
  EXPECT_THAT(lines, ElementsAre("linear(f32[2, 3], f32[4, 3], f32[4]) -> f32[2, 4]",
                                 "linear(f32[2, 3], f32[4, 3], None) -> f32[2, 4]",
                                 "cat([f32[2, 3], f32[2, 3]], 1) -> f32[2, 6]",
                                 "sum.dim_IntList(f32[2, 3], [1], True, None) -> f32[2, 1]", testing::_,
                                 "index.Tensor(f32[2, 3], [i64[2]]) -> f32[2, 3]"));
}

TEST(Recorder, ViewsShareAStorageAndKeepTheirGeometry) {
  const TracedCalls traced = Record([] {
    const at::Tensor x = at::zeros({2, 3});
    const at::Tensor y = x.t().slice(0, 1, 3);
    at::relu(y);
  });
  ASSERT_EQ(traced.calls.size(), 4u);
  EXPECT_FALSE(traced.calls[0].is_view);
  EXPECT_TRUE(traced.calls[1].is_view);
  EXPECT_TRUE(traced.calls[2].is_view);
  const Operand& y = traced.calls[3].operands[0];
  EXPECT_EQ(y.storage, traced.calls[0].outputs[0].storage);
  EXPECT_EQ(y.geometry.offset, 1);
  EXPECT_THAT(y.geometry.strides, ElementsAre(1, 3));
  EXPECT_THAT(y.geometry.sizes, ElementsAre(2, 2));
}

TEST(Recorder, WritesCountVersions) {
  const TracedCalls traced = Record([] {
    at::Tensor x = at::zeros({4});
    x.add_(1);
    x.slice(0, 0, 2).mul_(2);
    at::neg(x);
  });
  ASSERT_EQ(traced.calls.size(), 5u);
  const int storage = traced.calls[0].outputs[0].storage;
  EXPECT_EQ(traced.calls[1].operands[0].version, 0);
  EXPECT_EQ(traced.calls[1].outputs[0].version, 1);
  EXPECT_EQ(traced.calls[3].outputs[0].version, 2);
  EXPECT_EQ(traced.calls[4].operands[0].storage, storage);
  EXPECT_EQ(traced.calls[4].operands[0].version, 2);
  EXPECT_EQ(traced.storages[storage].versions, 3);
}

TEST(Recorder, OutArgumentsThatAreResizedAreKnown) {
  const TracedCalls traced = Record([] {
    at::Tensor out = at::empty({0});
    at::add_out(out, at::ones({3}), at::ones({3}));
    at::add_out(out, at::ones({3}), at::ones({3}));
  });
  std::vector<bool> resized;
  for (const Call& call : traced.calls) {
    if (call.op.schema().name() == "aten::add") resized.push_back(call.resized_output);
  }
  EXPECT_THAT(resized, ElementsAre(true, false));
}

// Allocators hand out a freed address again at once; the recorder must not take two storages for one.
TEST(Recorder, FreedStoragesAreNotConfused) {
  const TracedCalls traced = Record([] {
    for (int k = 0; k < 20; ++k) at::ones({1000}).add(1);
  });
  EXPECT_EQ(traced.storages.size(), 40u);
}

TEST(Recorder, InPlaceViewsWriteNothing) {
  const TracedCalls traced = Record([] {
    at::Tensor x = at::zeros({2, 3});
    x.t_();
    x.unsqueeze_(0);
  });
  EXPECT_EQ(traced.storages[0].versions, 1);
}

TEST(Recorder, TensorsThatAreSetToOtherMemoryAreReadThere) {
  const TracedCalls traced = Record([] {
    const at::Tensor x = at::ones({4});
    at::Tensor y = at::zeros({2});
    y.set_(x);
    at::neg(y);
  });
  const Call& first = traced.calls.front();
  const Call& last = traced.calls.back();
  EXPECT_EQ(last.operands[0].storage, first.outputs[0].storage);
  for (const StorageInfo& storage : traced.storages) EXPECT_EQ(storage.versions, 1);
}

TEST(Recorder, ListsWithoutTensorsAreLists) {
  const TracedCalls traced = Record([] { at::broadcast_tensors(std::vector<at::Tensor>{}); });
  ASSERT_EQ(traced.calls.size(), 1u);
  EXPECT_EQ(DescribeCall(traced.calls[0]), "broadcast_tensors([]) -> ()");
}

TEST(Recorder, NamesOfParametersTellModules) {
  Handler handler;
  const at::Tensor w = at::ones({3, 3});
  handler.recorder.NameStorage(w, "layers.0.fc.weight");
  {
    TracingScope scope(&handler);
    at::linear(at::ones({1, 3}), w);
  }
  const Position& position = handler.recorder.traced().calls.back().position;
  EXPECT_EQ(position.module_path, "layers.0.fc");
  EXPECT_THAT(position.parameters, ElementsAre("layers.0.fc.weight"));
}

TEST(RuleNames, DropTheInPlaceUnderscore) {
  EXPECT_EQ(RuleName("aten::add_"), "aten::add");
  EXPECT_EQ(RuleName("aten::add"), "aten::add");
  EXPECT_EQ(RuleName("aten::__iand__"), "aten::__iand__");
}

TEST(GeometryTest, CoversWholeOnlyFromStartToEnd) {
  Geometry geometry;
  geometry.sizes = {2, 3};
  geometry.strides = {3, 1};
  EXPECT_TRUE(geometry.CoversWhole(6));
  EXPECT_FALSE(geometry.CoversWhole(7));
  geometry.offset = 1;
  EXPECT_FALSE(geometry.CoversWhole(6));
  geometry.offset = 0;
  geometry.strides = {1, 2};
  EXPECT_FALSE(geometry.CoversWhole(6));
  geometry.sizes = {1, 6};
  geometry.strides = {77, 1};  // the stride of a dimension of size 1 means nothing
  EXPECT_TRUE(geometry.CoversWhole(6));
}

}  // namespace
}  // namespace addend
