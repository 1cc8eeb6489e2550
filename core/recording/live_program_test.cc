// Live code, recorded while it runs: its program gives the same bits without it.
#include "core/recording/live_program.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/error_testing.h"
#include "core/intercept/thread_modes.h"
#include "core/linearize/small_models.h"
#include "core/model/script_testing.h"
#include "core/program/replay.h"

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// A tensor as another library would exchange it: the same memory, in a storage object of its own.
Tensor Exchanged(const Tensor& tensor) {
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), [](void*) {}, tensor.options());
}

std::vector<std::string> NamesOf(const RecordedProgram& program, ValueKind kind) {
  std::vector<std::string> names;
  for (const RecordedValue& value : program.values) {
    if (value.kind == kind) names.push_back(value.name);
  }
  return names;
}

// Branches on the data, writes through views, and reads what nobody named.
Tensor Work(const Tensor& x, const Tensor& weight) {
  Tensor y = x.matmul(weight);
  if (y.sum().gt(0).item<bool>()) {
    y.slice(1, 0, 2).mul_(2);
  } else {
    y.neg_();
  }
  y.select(0, 1).view({2, 3}).t().add_(at::ones({3, 2}, x.options()));
  return at::cat({y, Weight().slice(0, 0, 2)}, 0);
}

class LiveProgramTest : public testing::Test {
 protected:
  LiveProgramTest() : weight_(Random({6, 6}, 7).abs_()), x_(Random({2, 6}, 3).abs_()) { Weight(); }

  Recording Recorded() {
    LiveProgram live;
    live.AddInput("x", Exchanged(x_));
    live.NameTensor("layer.weight", Exchanged(weight_), true);
    const Tensor y = Work(x_, weight_);
    live.Stop();
    y.sum();  // nothing of this is recorded
    return live.Finish(Exchanged(y));
  }

  Tensor weight_;
  Tensor x_;
};

TEST_F(LiveProgramTest, ShowsEveryCallOnceItHasFinished) {
  std::vector<std::string> shown;
  LiveProgram live;
  live.ShowCode({}, [&](const std::string& lines) {
    shown.push_back(lines);
    x_.exp();  // nothing of this is recorded
  });
  const Tensor y = x_.sin();
  EXPECT_THAT(shown, ElementsAre(HasSubstr("# sin(")));
  const Tensor z = Work(x_, weight_);
  std::string all;
  for (const std::string& lines : shown) all += lines;
  EXPECT_EQ(all, CodeTrace(*live.Finish(z).program));
  CodeTraceOptions names;
  names.names = true;
  ExpectError(absl::StatusCode::kInvalidArgument, {"not known while a model runs"},
              [&] { LiveProgram().ShowCode(names, nullptr); });
}

TEST_F(LiveProgramTest, ReplaysBitForBit) {
  const Recording recording = Recorded();
  const RecordedProgram& program = *recording.program;
  EXPECT_THAT(NamesOf(program, ValueKind::kInput), ElementsAre("x"));
  EXPECT_THAT(NamesOf(program, ValueKind::kParameter), ElementsAre("layer.weight"));
  EXPECT_EQ(FullName(program.calls.back().op.schema()), "aten::cat");

  const Replay replay(recording.program);
  EXPECT_TRUE(Same(replay.Run({x_.clone()}).output.toTensor(), Work(x_, weight_)));
  const Tensor other = Random({2, 6}, 11).abs_();
  EXPECT_TRUE(Same(replay.Run({other.clone()}).output.toTensor(), Work(other, weight_)));
}

TEST_F(LiveProgramTest, StaysWhatItIsWhereTheModelChanges) {
  const Tensor expected = Work(x_, weight_);
  const Replay replay(Recorded().program);
  weight_.mul_(3);
  EXPECT_TRUE(Same(replay.Run({x_.clone()}).output.toTensor(), expected));
}

TEST_F(LiveProgramTest, StopsOnTheBranchNotTaken) {
  const Replay replay(Recorded().program);
  EXPECT_THAT(MessageOf([&] { replay.Run({x_.neg()}); }), HasSubstr("a guard does not hold"));
}

TEST_F(LiveProgramTest, KnowsPartsOfParametersAndInputsBehindAnOffset) {
  const Tensor block = Random({4, 6}, 5);
  const Tensor x = block.slice(0, 2, 4);
  const Tensor bias = weight_.select(0, 0);
  const auto work = [&](const Tensor& in) { return in.mul(2).add_(bias).mm(weight_.t()); };
  LiveProgram live;
  live.AddInput("x", Exchanged(x));
  live.NameTensor("weight", Exchanged(weight_), true);
  const Tensor y = work(x);
  const Recording recording = live.Finish(Exchanged(y));
  EXPECT_THAT(NamesOf(*recording.program, ValueKind::kParameter), ElementsAre("weight"));
  EXPECT_TRUE(NamesOf(*recording.program, ValueKind::kConstant).empty());
  const Tensor other = Random({2, 6}, 13);
  EXPECT_TRUE(Same(Replay(recording.program).Run({other}).output.toTensor(), work(other)));
}

TEST_F(LiveProgramTest, TakesInputsThatAreWrittenAndReturned) {
  const Tensor x = x_.clone();
  LiveProgram live;
  live.AddInput("x", Exchanged(x));
  live.AddInput("untouched", Exchanged(weight_));
  x.add_(1);
  const Recording recording =
      live.Finish(c10::ivalue::Tuple::create({c10::IValue(Exchanged(x)), c10::IValue(Exchanged(weight_))}));
  const Tensor given = x_.clone();
  const auto replayed = Replay(recording.program).Run({given, weight_}).output;
  EXPECT_TRUE(Same(replayed.toTupleRef().elements()[0].toTensor(), x_ + 1));
  EXPECT_TRUE(Same(given, x_ + 1));
  EXPECT_TRUE(Same(replayed.toTupleRef().elements()[1].toTensor(), weight_));
}

TEST_F(LiveProgramTest, HasTheCallersModulesAndLines) {
  RecordOptions options;
  int asked = 0;
  options.frames = [&] {
    ++asked;
    SourceFrame frame;
    frame.file = "work.py";
    frame.line = asked;
    return std::vector<SourceFrame>{frame};
  };
  LiveProgram live(options);
  live.AddInput("x", x_);
  live.SetModule("layers.0");
  Tensor y = x_.sin();
  live.SetModule("layers.1");
  y = y.cos();
  const Recording recording = live.Finish(y);
  const RecordedProgram& program = *recording.program;
  EXPECT_EQ(PositionOf(program, 0).module_path, "layers.0");
  EXPECT_EQ(PositionOf(program, 1).module_path, "layers.1");
  EXPECT_EQ(PositionOf(program, 1).file, "work.py");
  EXPECT_EQ(PositionOf(program, 1).line, 2);
}

TEST_F(LiveProgramTest, RefusesWhatItCannotTellApart) {
  LiveProgram live;
  const Tensor y = x_.sin();
  EXPECT_THAT(MessageOf([&] { live.AddInput("x", Exchanged(x_)); }), HasSubstr("was used before"));
  live.AddInput("weight", Exchanged(weight_));
  EXPECT_THAT(MessageOf([&] { live.AddInput("again", Exchanged(weight_)); }), HasSubstr("shares the memory"));
  live.Stop();
  const Tensor later = y.clone();
  EXPECT_THAT(MessageOf([&] { live.Finish(Exchanged(later)); }), HasSubstr("no operator of the recording has met"));
  EXPECT_THAT(MessageOf([&] { live.Finish(y); }), HasSubstr("the recording has ended"));
}

TEST_F(LiveProgramTest, RefusesTransformedFunctions) {
  LiveProgram live;
  live.AddInput("x", Exchanged(x_));
  {
    const c10::impl::IncludeDispatchKeyGuard transform(kTransformKeys);
    EXPECT_THAT(MessageOf([&] { x_.mul(2); }), HasSubstr("function that torch.func or functorch transforms"));
  }
  ExpectError(absl::StatusCode::kUnimplemented, {"torch.func or functorch transforms"}, [&] { live.Finish(x_); });
}

TEST_F(LiveProgramTest, RefusesInputsOfOneStorage) {
  const Tensor block = Random({4, 6}, 5);
  const Tensor a = block.slice(0, 0, 2);
  const Tensor b = block.slice(0, 2, 4);
  LiveProgram live;
  live.AddInput("a", Exchanged(a));
  live.AddInput("b", Exchanged(b));
  EXPECT_THROW(a.add(b), Error);
  const Tensor c = a.add(b);  // the program goes on
  EXPECT_THAT(MessageOf([&] { live.Finish(c); }), HasSubstr("b lies in one storage with another input"));
}

TEST_F(LiveProgramTest, BelongsToItsThread) {
  auto live = std::make_unique<LiveProgram>();
  live->AddInput("x", x_);
  std::thread([&] {
    EXPECT_THAT(MessageOf([&] { live->Finish(x_); }), HasSubstr("begun on another thread"));
    live.reset();  // the scope on the other thread does nothing any more
  }).join();
  EXPECT_TRUE(Same(x_.add(0), x_));
}

}  // namespace
}  // namespace addend
