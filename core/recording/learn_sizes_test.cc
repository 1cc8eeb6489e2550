// Programs that hold for sizes that were never recorded, and the models for which none can be learned.
#include "core/recording/learn_sizes.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/program/program_file.h"
#include "core/program/random_testing.h"
#include "core/program/replay.h"

namespace addend {
namespace {

using at::Tensor;
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
  EXPECT_THAT(message, HasSubstr("aten::ones: the argument size is 25, 49, 36"));
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

TEST(LearnSizes, AsksForExamplesThatTellDimensionsApart) {
  const auto both = [](const std::vector<Tensor>& in) { return in[0].reshape({in[0].size(0), in[0].size(1) * 4}); };
  EXPECT_EQ(WhyNot(both, {Example(2, 5), Example(3, 5), Example(2, 6)}), "(no error)");
  // Batch and time grow alike, apart from a constant.
  EXPECT_THAT(WhyNot(both, {Example(2, 5), Example(3, 6), Example(4, 7)}), HasSubstr("tell them apart"));
  EXPECT_THAT(WhyNot(both, {Example(2, 5), Example(2, 5)}), HasSubstr("all have the same sizes"));
  EXPECT_THAT(WhyNot(both, {Example(2, 5)}), HasSubstr("two examples or more"));
  EXPECT_THAT(WhyNot(both, {Example(2, 1), Example(2, 2)}), HasSubstr("give a third example"));
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

}  // namespace
}  // namespace addend
