// Programs that hold for sizes that were never recorded, and the models for which none can be learned.
#include "core/recording/learn_sizes.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/program/program_file.h"
#include "core/program/random_testing.h"
#include "core/program/replay.h"

namespace addend {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Sizes are [batch, time, 4].
std::vector<c10::IValue> Example(int64_t batch, int64_t time) { return {Random({batch, time, 4}, batch * 10 + time)}; }

// Literals everywhere: views, positions, masks, expansions.
Tensor Sequence(const std::vector<Tensor>& in) {
  const Tensor& x = in[0];
  const int64_t batch = x.size(0);
  const int64_t time = x.size(1);
  const Tensor heads = x.view({batch, time, 2, 2}).transpose(1, 2);
  const Tensor scores = heads.matmul(heads.transpose(2, 3));
  const Tensor mask = at::ones({time, time}, at::kBool).triu(1);
  const Tensor mixed = at::softmax(scores.masked_fill(mask, -1e9), -1).matmul(heads);
  const Tensor back = mixed.transpose(1, 2).reshape({batch, time, 4});
  const Tensor position = at::arange(time, x.options()).view({1, time, 1}).expand({batch, time, 4});
  Tensor out = at::zeros({batch, 2 * time + 1, 4}, x.options());
  out.narrow(1, 1, time).copy_(back + position);
  out.narrow(1, time + 1, time).add_(x);
  return out;
}

TEST(LearnSizes, FollowsBatchAndTime) {
  const auto model = FromFunction(Sequence);
  const Recording recording = RecordSizes(*model, {Example(2, 5), Example(3, 5), Example(3, 7)});
  EXPECT_THAT(recording.program->free, SizeIs(2));
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
  for (const auto& program : {recording.program, loaded}) {
    for (const auto& [batch, time] : {std::pair<int64_t, int64_t>{2, 5}, {1, 1}, {4, 11}, {7, 2}}) {
      const auto inputs = Example(batch, time);
      const Tensor expected = Sequence({inputs[0].toTensor()});
      EXPECT_TRUE(at::equal(Replay(program).Run(inputs).output.toTensor(), expected)) << batch << ", " << time;
    }
  }
  EXPECT_THAT(MessageOf([&] { Replay(loaded).Run({Random({2, 5, 6}, 1)}); }), HasSubstr("recorded was f64[2, 5, 4]"));
  EXPECT_THAT(MessageOf([&] { Replay(loaded).Run({Random({2, 5}, 1)}); }), HasSubstr("recorded was f64[2, 5, 4]"));
}

std::string WhyNot(const Function& function, const std::vector<std::vector<c10::IValue>>& examples) {
  return MessageOf([&] { RecordSizes(*FromFunction(function), examples); });
}

TEST(LearnSizes, RefusesWhatIsNotLinear) {
  const auto squared = [](const std::vector<Tensor>& in) {
    return in[0].sum() + at::ones({in[0].size(1) * in[0].size(1)}, in[0].options()).sum();
  };
  const std::string message = WhyNot(squared, {Example(2, 5), Example(2, 7)});
  EXPECT_THAT(message, HasSubstr("aten::ones: the argument size is 25, 49, 64"));
  EXPECT_THAT(message, HasSubstr("op #"));
  const auto branch = [](const std::vector<Tensor>& in) { return in[0].size(1) > 6 ? in[0].exp() : in[0].sin(); };
  EXPECT_THAT(WhyNot(branch, {Example(2, 5), Example(2, 7)}), HasSubstr("the operator is aten::exp, not aten::sin"));
  const auto loop = [](const std::vector<Tensor>& in) {
    Tensor sum = in[0].select(1, 0);
    for (int64_t t = 1; t < in[0].size(1); ++t) sum = sum + in[0].select(1, t);
    return sum;
  };
  EXPECT_THAT(WhyNot(loop, {Example(2, 3), Example(2, 4)}), HasSubstr("other sizes cannot be learned"));
  const auto number = [](const std::vector<Tensor>& in) { return in[0] * in[0].max().item<double>(); };
  EXPECT_THAT(WhyNot(number, {Example(2, 3), Example(2, 4)}), HasSubstr("other sizes cannot be learned"));
}

// The model is left as its first run leaves it, also if no program is learned.
TEST(LearnSizes, LeavesTheModelAsItsFirstRunDoes) {
  for (const bool refused : {false, true}) {
    const Tensor count = at::zeros({1}, at::kDouble);
    const auto model = FromFunction(
        [&](const std::vector<Tensor>& in) {
          count.add_(1);
          const int64_t time = in[0].size(1);
          return in[0] * 2 + at::ones({refused ? time * time : time}, in[0].options()).sum() + count;
        },
        {{"count", count}}, {}, {"count"});
    const std::string message = MessageOf([&] { RecordSizes(*model, {Example(2, 5), Example(3, 5), Example(3, 7)}); });
    EXPECT_EQ(message == "(no error)", !refused) << message;
    EXPECT_EQ(count.item<double>(), 1);
  }
}

TEST(LearnSizes, AsksForExamplesThatTellDimensionsApart) {
  const auto both = [](const std::vector<Tensor>& in) { return in[0].reshape({in[0].size(0), in[0].size(1) * 4}); };
  EXPECT_EQ(WhyNot(both, {Example(2, 5), Example(3, 5), Example(2, 6)}), "(no error)");
  // Batch and time grow alike, apart from a constant: what is derived tells them apart, unless the model refuses it.
  EXPECT_EQ(WhyNot(both, {Example(2, 5), Example(3, 6), Example(4, 7)}), "(no error)");
  const auto alike = [&](const std::vector<Tensor>& in) {
    if (in[0].size(1) != in[0].size(0) + 3) throw InvalidArgument("three more");
    return both(in);
  };
  EXPECT_THAT(WhyNot(alike, {Example(2, 5), Example(3, 6), Example(4, 7)}), HasSubstr("tell them apart"));
  EXPECT_THAT(WhyNot(both, {Example(2, 5), Example(2, 5)}), HasSubstr("all have the same sizes"));
  EXPECT_THAT(WhyNot(both, {}), HasSubstr("takes an example"));
  EXPECT_EQ(WhyNot(both, {Example(2, 1), Example(2, 2)}), "(no error)");
  // A model that takes none that is larger than two, and does something else at one.
  const auto two_at_most = [](const std::vector<Tensor>& in) {
    if (in[0].size(1) > 2) throw InvalidArgument("too long");
    return in[0].size(1) == 1 ? in[0].sin() : in[0].exp();
  };
  EXPECT_THAT(WhyNot(two_at_most, {Example(2, 1), Example(2, 2)}),
              AllOf(HasSubstr("dimension 1 of input_0 comes in two sizes only"), HasSubstr("give a third example")));
}

// ------------------------------------------------------------------------------------------------- one example

// Compares replays of a program at sizes with the model itself: 'r'ight, '-' refused.
std::string Judged(const std::shared_ptr<const RecordedProgram>& program, const Function& function,
                   const std::vector<std::pair<int64_t, int64_t>>& sizes) {
  std::string judged;
  for (const auto& [batch, time] : sizes) {
    const auto inputs = Example(batch, time);
    const Tensor expected = function({inputs[0].toTensor()});
    const auto found = [&]() -> std::optional<Tensor> {
      try {
        return Replay(program).Run(inputs).output.toTensor();
      } catch (const Error&) {
        return std::nullopt;
      }
    }();
    EXPECT_TRUE(!found || at::equal(*found, expected)) << batch << ", " << time;
    judged += found ? 'r' : '-';
  }
  return judged;
}

TEST(LearnSizes, DerivesOthersFromOneExample) {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1}, {2, 5}, {3, 5}, {2, 10}, {9, 2}, {2, 11}, {10, 5}};
  const auto learned = [](const Function& function, const std::vector<c10::IValue>& example) {
    const auto program = RecordSizes(*FromFunction(function), {example}).program;
    return std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*program), "p"));
  };
  // Between the sizes that were tried: 1 to 9, and 1 to 10.
  EXPECT_EQ(Judged(learned(Sequence, Example(2, 5)), Sequence, sizes), "rrrrr--");
  // Products of two sizes.
  const Function flat = [](const std::vector<Tensor>& in) {
    return in[0].reshape({in[0].size(0) * in[0].size(1), 4}).sum(0) / (in[0].size(0) * in[0].size(1));
  };
  EXPECT_EQ(Judged(learned(flat, Example(2, 5)), flat, sizes), "rrrrr--");
  // A cut at size 5 holds from 5 on. A size squared follows no line, so that dimension stays; dimension 0 may vary.
  const Function cut = [](const std::vector<Tensor>& in) {
    return in[0].narrow(1, 0, std::min<int64_t>(in[0].size(1), 5));
  };
  EXPECT_EQ(Judged(learned(cut, Example(2, 5)), cut, sizes), "-rrr---");
  const Function squared = [](const std::vector<Tensor>& in) {
    return in[0].sum() + at::ones({in[0].size(1) * in[0].size(1)}, in[0].options()).sum() + in[0].size(0);
  };
  EXPECT_EQ(Judged(learned(squared, Example(2, 5)), squared, sizes), "-rr----");
  // One is another branch.
  const Function alone = [](const std::vector<Tensor>& in) { return in[0].size(0) == 1 ? in[0].sin() : in[0].exp(); };
  EXPECT_EQ(Judged(learned(alone, Example(2, 5)), alone, sizes), "-rrrr--");
  EXPECT_EQ(Judged(learned(alone, Example(1, 5)), alone, sizes), "r------");
}

// Twice the size of the example, or nine, is tried first: what is learned of nearer sizes does not reach beyond it.
TEST(LearnSizes, EndsBeforeASizeThatWasSeenToDoSomethingElse) {
  const Function by_constant = [](const std::vector<Tensor>& in) { return in[0] * (in[0].size(1) == 9 ? 2.0 : 1.0); };
  const Function by_half = [](const std::vector<Tensor>& in) {
    return in[0].narrow(1, 0, in[0].size(1) / 2 - (in[0].size(1) == 9 ? 1 : 0));
  };
  for (const Function& model : {by_constant, by_half}) {
    const auto program = RecordSizes(*FromFunction(model), {Example(2, 4)}).program;
    const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*program), "p"));
    for (const auto& one : {program, loaded}) {
      const std::string judged = Judged(one, model, {{2, 4}, {2, 5}, {2, 6}, {2, 9}, {2, 14}});
      EXPECT_EQ(judged, "rrr--");
      EXPECT_THAT(MessageOf([&] { Replay(one).Run(Example(2, 9)); }),
                  AllOf(HasSubstr("dimension 1 of "), HasSubstr(" is 9, but sizes from "),
                        HasSubstr("record with an example of this size too")));
    }
  }
}

TEST(LearnSizes, DerivesInputsThatChangeTogether) {
  const Function attend = [](const std::vector<Tensor>& in) { return in[0] + in[1].matmul(in[0]); };
  const auto inputs = [](int64_t time) {
    return std::vector<c10::IValue>{Random({2, time, 4}, time), Random({time, time}, time)};
  };
  const Replay replay(RecordSizes(*FromFunction(attend), {inputs(5)}).program);
  for (const int64_t time : {1, 3, 10}) {
    const auto given = inputs(time);
    const Tensor expected = attend({given[0].toTensor(), given[1].toTensor()});
    EXPECT_TRUE(at::equal(replay.Run(given).output.toTensor(), expected)) << time;
  }
  EXPECT_THAT(MessageOf([&] { replay.Run({Random({2, 5, 4}, 1), Random({5, 4}, 1)}); }), HasSubstr("as large as"));
}

// A model that pads to a multiple of a window pads nothing at multiples: sizes in between are refused, unless they were
// shown to be the same, also by a program that was saved.
TEST(LearnSizes, HoldsForTheRemainderThatWasTried) {
  const auto padded = [](int64_t window) -> Function {
    return [window](const std::vector<Tensor>& in) {
      const int64_t time = in[0].size(1);
      const Tensor whole = at::constant_pad_nd(in[0], {0, 0, 0, (window - time % window) % window});
      return whole.unfold(1, window, window).mean(-1);
    };
  };
  struct Case {
    int64_t window;
    std::vector<int64_t> times;
  };
  for (const Case& own : std::vector<Case>{{2, {4, 6}}, {2, {4, 8}}, {4, {8, 12}}, {4, {8, 16, 24}}, {7, {14, 28}}}) {
    SCOPED_TRACE(testing::Message() << own.window << ", " << testing::PrintToString(own.times));
    std::vector<std::vector<c10::IValue>> examples;
    for (const int64_t time : own.times) examples.push_back(Example(2, time));
    const Function model = padded(own.window);
    const auto program = RecordSizes(*FromFunction(model), examples).program;
    EXPECT_EQ(program->free[0].step % own.window, 0);
    const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*program), "p"));
    for (const auto& one : {program, loaded}) {
      std::vector<std::pair<int64_t, int64_t>> sizes;
      for (int64_t time = 1; time < 2 * own.times.back(); ++time) sizes.emplace_back(2, time);
      const std::string judged = Judged(one, model, sizes);
      for (const int64_t time : own.times) EXPECT_EQ(judged[static_cast<size_t>(time - 1)], 'r');
    }
    const std::string message = MessageOf([&] { Replay(loaded).Run(Example(2, own.times[0] + 1)); });
    EXPECT_THAT(message, HasSubstr(absl::StrCat(", ", program->free[0].step, " apart, were tried")));
    EXPECT_THAT(message, HasSubstr("record with an example of this size too"));
  }
  // Neighbours show that nothing is special about multiples, also where the model does something else at one.
  const Function alone = [](const std::vector<Tensor>& in) { return in[0].size(1) == 1 ? in[0].sin() : Sequence(in); };
  const auto whole = RecordSizes(*FromFunction(alone), {Example(2, 4), Example(2, 8)}).program;
  EXPECT_EQ(whole->free[0].step, 1);
  EXPECT_EQ(Judged(whole, alone, {{2, 1}, {2, 2}, {2, 5}, {2, 7}, {2, 11}}), "-rrrr");
}

// A number that rises with each call is on a line with sizes that do, and follows them not at all.
TEST(LearnSizes, RefusesCountersOfCalls) {
  int64_t calls = 0;
  const std::vector<Function> models = {
      [&](const std::vector<Tensor>& in) {
        return at::cat({in[0].sum().view({1}), at::ones({++calls}, at::kDouble)});
      },
      [&](const std::vector<Tensor>& in) { return in[0] * at::tensor({static_cast<double>(++calls)}, at::kDouble); },
      [&](const std::vector<Tensor>& in) { return in[0].narrow(0, 0, 1) * at::arange(++calls).sum() * in[0].size(0); },
  };
  for (const Function& model : models) {
    calls = 0;
    EXPECT_THAT(WhyNot(model, {Example(1, 4), Example(2, 4), Example(3, 4)}),
                HasSubstr("other sizes cannot be learned"));
    calls = 0;
    EXPECT_TRUE(RecordSizes(*FromFunction(model), {Example(1, 4)}).program->free.empty());
  }
  calls = 0;
  EXPECT_THAT(WhyNot(models[0], {Example(1, 4), Example(2, 4), Example(3, 4)}),
              HasSubstr("a model that counts its calls"));
}

TEST(LearnSizes, EndsWhereItIsCancelled) {
  int runs = 0;
  const auto model = FromFunction([&](const std::vector<Tensor>& in) {
    if (++runs > 3) throw Error(absl::StatusCode::kCancelled, "enough");
    return in[0] * 2;
  });
  EXPECT_THAT(MessageOf([&] { RecordSizes(*model, {Example(2, 5)}); }), HasSubstr("enough"));
  EXPECT_EQ(runs, 4);
}

TEST(LearnSizes, DimensionsThatWereAlwaysEqualStayEqual) {
  const auto model = FromFunction([](const std::vector<Tensor>& in) {
    return at::zeros({in[1].size(0)}, in[0].options()).sum() + in[0].sum() + in[1].sum();
  });
  const Recording recording = RecordSizes(*model, {{Random({3}, 1), Random({3}, 2)}, {Random({5}, 1), Random({5}, 2)}});
  const Replay replay(recording.program);
  EXPECT_EQ(MessageOf([&] { replay.Run({Random({8}, 1), Random({8}, 2)}); }), "(no error)");
  EXPECT_THAT(MessageOf([&] {
                replay.Run({Random({8}, 1), Random({9}, 2)});
              }),
              HasSubstr("dimension 0 of input_1 has to be as large as dimension 0 of input_0"));
}

// ------------------------------------------------------------------------- views at some sizes, copies at others

std::vector<c10::IValue> Batch(int64_t batch) { return {Random({batch, 6, 8}, batch)}; }

std::vector<std::vector<c10::IValue>> Batches(const std::vector<int64_t>& sizes) {
  std::vector<std::vector<c10::IValue>> examples;
  for (const int64_t size : sizes) examples.push_back(Batch(size));
  return examples;
}

// Heads become part of the batch: a view for a batch of one.
Tensor Merged(const Tensor& x) { return x.view({x.size(0), 6, 2, 4}).transpose(1, 2).reshape({x.size(0) * 2, 6, 4}); }

struct NamedFunction {
  const char* name;
  Function function;
};

const std::vector<NamedFunction>& ViewsAtBatchOne() {
  static const auto* const kFunctions = new std::vector<NamedFunction>{
      {"a number", [](const std::vector<Tensor>& in) { return Merged(in[0]) * 0.5; }},
      {"a tensor from outside",
       [](const std::vector<Tensor>& in) {
         return Merged(in[0]) + at::tensor({1., 2., 3., 4.}, at::kDouble);
       }},
      {"products",
       [](const std::vector<Tensor>& in) {
         const Tensor q = Merged(in[0]);
         return at::einsum("bid,bjd->bij", {q, q}) * 0.5;
       }},
      {"contiguous", [](const std::vector<Tensor>& in) { return in[0].transpose(0, 1).contiguous() * 0.5; }},
      {"contiguous, and what it was made of",
       [](const std::vector<Tensor>& in) {
         const Tensor turned = in[0].transpose(0, 1);
         const Tensor copied = turned.contiguous();
         return at::cat({turned.exp(), copied + turned}, 1) * 0.5;
       }},
      {"contiguous, which is given",
       [](const std::vector<Tensor>& in) {
         const Tensor turned = in[0].transpose(0, 1);
         const Tensor copied = turned.contiguous();
         return copied.size(0) > 1000 ? copied : turned;
       }},
      {"flatten",
       [](const std::vector<Tensor>& in) {
         return in[0].permute({0, 2, 1}).flatten(0, 1).softmax(-1) * 2;
       }},
      {"expand",
       [](const std::vector<Tensor>& in) {
         return in[0].sum(0, true).expand_as(in[0]).reshape({-1, 8}) * 2;
       }},
      {"channels last",
       [](const std::vector<Tensor>& in) {
         const Tensor image = in[0].unsqueeze(1).to(at::kDouble, false, false, at::MemoryFormat::ChannelsLast);
         return at::conv2d(image, at::ones({1, 1, 3, 3}, image.options())).contiguous() * 0.5;
       }},
      {"one channel of many, last",
       [](const std::vector<Tensor>& in) {
         const Tensor image = in[0].view({-1, 6, 2, 4}).permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
         return at::conv2d(image, at::ones({1, 6, 2, 2}, image.options()));
       }},
      {"written before",
       [](const std::vector<Tensor>& in) {
         const Tensor sum = in[0] + 1;
         sum.relu_();
         return Merged(sum) * 0.5;
       }},
      {"written behind",
       [](const std::vector<Tensor>& in) {
         const Tensor merged = Merged(in[0] + 1);
         merged.mul_(0.5).add_(merged);
         return merged.reshape({-1, 24});
       }},
  };
  return *kFunctions;
}

TEST(LearnSizes, LearnsWhereAViewIsACopyElsewhere) {
  for (const NamedFunction& model : ViewsAtBatchOne()) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 3}, {2, 3, 4}, {2, 1, 3}, {3, 4, 1}}) {
      SCOPED_TRACE(testing::Message() << model.name << ", examples of " << testing::PrintToString(sizes));
      const Recording recording = RecordSizes(*FromFunction(model.function), Batches(sizes));
      const auto loaded =
          std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
      for (const auto& program : {recording.program, loaded}) {
        const Replay replay(program);
        for (const int64_t batch : {1, 2, 5, 1, 7}) {
          for (const bool out_of_place : {false, true}) {
            ReplayOptions options;
            options.out_of_place = out_of_place;
            const Tensor found = replay.Run(Batch(batch), options).output.toTensor();
            const Tensor expected = model.function({Batch(batch)[0].toTensor()});
            EXPECT_TRUE(at::equal(found, expected)) << batch;
            EXPECT_EQ(found.strides(), expected.strides()) << batch;
          }
        }
      }
    }
  }
}

TEST(LearnSizes, KeepsValuesThatAreOverwrittenAtOtherSizesOnly) {
  const auto model = FromFunction([](const std::vector<Tensor>& in) {
    const Tensor merged = Merged(in[0].mul(2));
    return merged.add_(1);
  });
  ReplayOptions options;
  options.values = {"mul"};
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 3}, {2, 3, 4}}) {
    const Replay replay(RecordSizes(*model, Batches(sizes)).program);
    for (const int64_t batch : {1, 3}) {
      const Tensor kept = replay.Run(Batch(batch), options).values[0].second;
      EXPECT_TRUE(at::equal(kept, Batch(batch)[0].toTensor() * 2)) << batch;
    }
  }
}

TEST(LearnSizes, RefusesWritesThatReachOtherTensorsAtSomeSizes) {
  const auto doubled = [](const std::vector<Tensor>& in) {
    const Tensor own = in[0] * 2;
    Merged(own).add_(1);
    return own * 3;
  };
  const std::string message = WhyNot(doubled, Batches({1, 2, 3}));
  EXPECT_THAT(message, HasSubstr("aten::mul.Scalar: the argument self is mul"));
  EXPECT_THAT(message, HasSubstr("a view of it at some sizes and a copy at others"));
  EXPECT_THAT(WhyNot(doubled, Batches({2, 1, 3})), HasSubstr("a view of it at some sizes and a copy at others"));
  const auto input = [](const std::vector<Tensor>& in) { return Merged(in[0]).add_(1); };
  EXPECT_THAT(WhyNot(input, Batches({1, 2, 3})), HasSubstr("at some sizes only is input_0 written"));
}

TEST(LearnSizes, NeverWritesWhatTheProgramHolds) {
  const Tensor start = Random({1, 6, 8}, 99);
  const Tensor before = start.clone();
  const auto model = FromFunction(
      [&](const std::vector<Tensor>& in) {
        return start.expand({in[0].size(0), 6, 8}).contiguous().add_(in[0]);
      },
      {{"start", start}});
  EXPECT_THAT(MessageOf([&] {
                RecordSizes(*model, Batches({1, 2, 3}));
              }),
              HasSubstr("at some sizes only is start written"));
  start.copy_(before);
  const Replay replay(RecordSizes(*model, Batches({2, 3, 4})).program);
  const Tensor expected = before.expand({5, 6, 8}) + Batch(5)[0].toTensor();
  EXPECT_THAT(MessageOf([&] { replay.Run(Batch(1)); }), HasSubstr("sizes from 2 to 9 were tried"));
  // A program without limits, as older versions saved them.
  RecordedProgram wide = *RecordSizes(*model, Batches({2, 3, 4})).program;
  for (FreeDimension& dimension : wide.free) dimension.least = 0;
  EXPECT_THAT(MessageOf([&] { Replay(std::make_shared<RecordedProgram>(wide)).Run(Batch(1)); }),
              HasSubstr("for inputs of these sizes it would write start"));
  EXPECT_TRUE(at::equal(replay.Run(Batch(5)).output.toTensor(), expected));
  EXPECT_TRUE(at::equal(start, before));
}

TEST(LearnSizes, BlamesTheConstantThatDependsOnTheInput) {
  const auto read = [](const std::vector<Tensor>& in) {
    Tensor outside = at::empty({1}, at::kDouble);
    *outside.data_ptr<double>() = *in[0].data_ptr<double>();
    return Merged(in[0]) * at::ones({4}, at::kDouble) + outside;
  };
  EXPECT_THAT(WhyNot(read, Batches({1, 2, 3})), HasSubstr("aten::add.Tensor: the constant empty depends on the input"));
  const auto list = [](const std::vector<Tensor>& in) {
    return Merged(in[0]).sum() + at::tensor(std::vector<double>(in[0].size(0), 1.), at::kDouble).sum();
  };
  const std::string message = WhyNot(list, Batches({1, 2, 3}));
  EXPECT_THAT(message, HasSubstr("has 1 elements in one example and 2 in another"));
}

}  // namespace
}  // namespace addend
