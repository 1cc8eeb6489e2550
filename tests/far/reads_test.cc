// How often the host waits for a device: the numbers that it reads in a run, however many operators that has.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/host_read.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/plan.h"
#include "core/model/model.h"
#include "tests/far/device.h"

namespace addend {
namespace {

using at::Tensor;

constexpr int64_t kWidth = 16;
constexpr int64_t kHeads = 2;
constexpr int64_t kTokens = 6;

Tensor Weight(int64_t rows, int64_t columns) { return at::randn({rows, columns}) / 4; }

Tensor Put(const Tensor& tensor) { return tensor.to(far::TheDevice()); }

// A Transformer encoder of some layers, on the device.
class Encoder {
 public:
  explicit Encoder(int layers) {
    at::manual_seed(7);
    for (int k = 0; k < layers; ++k) {
      Layer layer;
      for (Tensor* square : {&layer.query, &layer.key, &layer.value, &layer.out}) *square = Put(Weight(kWidth, kWidth));
      layer.wide = Put(Weight(4 * kWidth, kWidth));
      layer.narrow = Put(Weight(kWidth, 4 * kWidth));
      layer.scale = Put(at::rand({kWidth}) + 0.5);
      layers_.push_back(layer);
    }
    classes_ = Put(Weight(3, kWidth));
  }

  Tensor operator()(Tensor x) const {
    for (const Layer& layer : layers_) {
      const Tensor y = at::layer_norm(x, {kWidth}, layer.scale);
      const auto heads = [](const Tensor& t) { return t.view({1, kTokens, kHeads, kWidth / kHeads}).transpose(1, 2); };
      const Tensor q = heads(at::linear(y, layer.query));
      const Tensor k = heads(at::linear(y, layer.key));
      const Tensor v = heads(at::linear(y, layer.value));
      const Tensor weights = at::softmax(at::matmul(q, k.transpose(-2, -1)) / 3, -1);
      x = x + at::linear(at::matmul(weights, v).transpose(1, 2).reshape({1, kTokens, kWidth}), layer.out);
      x = x + at::linear(at::gelu(at::linear(at::layer_norm(x, {kWidth}, layer.scale), layer.wide)), layer.narrow);
    }
    return at::linear(x.mean(1), classes_);
  }

 private:
  struct Layer {
    Tensor query, key, value, out, wide, narrow, scale;
  };

  std::vector<Layer> layers_;
  Tensor classes_;
};

// Convolutions, normalization by statistics, and a maximum, some times; the input is [1, 6, 16] (batch, channels,
// places).
class Convolutions {
 public:
  explicit Convolutions(int layers) {
    at::manual_seed(7);
    for (int k = 0; k < layers; ++k) {
      layers_.push_back({Put(at::randn({kTokens, kTokens, 3}) / 4), Put(at::rand({kTokens}) + 0.5)});
    }
    classes_ = Put(Weight(3, kTokens));
  }

  Tensor operator()(Tensor x) const {
    for (const Layer& layer : layers_) {
      const Tensor y = at::conv1d(x, layer.weight, {}, 1, 1);
      const Tensor z = at::batch_norm(y, layer.scale, {}, layer.scale, layer.scale, false, 0.1, 1e-5, false);
      x = x + at::max_pool1d(at::relu(z), {3}, {1}, {1});
    }
    return at::linear(x.mean(2), classes_);
  }

 private:
  struct Layer {
    Tensor weight, scale;
  };
  std::vector<Layer> layers_;
  Tensor classes_;
};

// Gated units with a mean square for a norm, as large language models have, and a recurrence of gates.
class Gates {
 public:
  explicit Gates(int layers) {
    at::manual_seed(7);
    for (int k = 0; k < layers; ++k) {
      Layer layer;
      for (Tensor* square : {&layer.gate, &layer.up, &layer.down}) *square = Put(Weight(kWidth, kWidth));
      layers_.push_back(layer);
    }
    classes_ = Put(Weight(3, kWidth));
  }

  Tensor operator()(Tensor x) const {
    for (const Layer& layer : layers_) {
      const Tensor y = x * at::rsqrt(x.square().mean(-1, true) + 1e-5);
      const Tensor z = at::silu(at::linear(y, layer.gate)) * at::linear(y, layer.up);
      const Tensor keep = at::sigmoid(at::linear(y, layer.up));
      x = keep * x + (1 - keep) * at::tanh(at::linear(z, layer.down)) + x / (1 + x.abs());
    }
    return at::log_softmax(at::linear(x.mean(1), classes_), -1);
  }

 private:
  struct Layer {
    Tensor gate, up, down;
  };
  std::vector<Layer> layers_;
  Tensor classes_;
};

class ReadsTest : public testing::Test {
 protected:
  void SetUp() override { far::SetModes("count"); }

  template <typename Network = Encoder>
  static TracedModel ModelOf(int layers) {
    const Network network(layers);
    return Trace(FromFunction([network](const std::vector<Tensor>& in) { return network(in[0]); }));
  }
  static Input Tokens() {
    at::manual_seed(8);
    Input input;
    input.value = at::randn({1, kTokens, kWidth}).to(far::TheDevice());
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(0.0);
    return input;
  }
  template <typename Work>
  static int64_t ReadsOf(const Work& work) {
    const int64_t before = addend_far_host_reads();
    work();
    return addend_far_host_reads() - before;
  }
};

constexpr int64_t kMost = 10;

// Each kind of target, on networks of one layer and of six.
TEST_F(ReadsTest, AnAttributionReadsAFewNumbers) {
  Target of_index;
  of_index.index = {0, 1};
  of_index.top1 = false;
  Target of_row = of_index;
  of_row.quantity = Target::Quantity::kLogProbability;
  for (const Target& target : {Target(), of_index, of_row}) {
    AttributeOptions options;
    options.targets = {target};
    for (const int layers : {1, 6}) {
      const TracedModel model = ModelOf(layers);
      EXPECT_LE(ReadsOf([&] { Attribute(model, {Tokens()}, options); }), kMost) << layers << " layers";
    }
  }
}

TEST_F(ReadsTest, SoDoOtherNetworks) {
  for (const int layers : {1, 6}) {
    for (const TracedModel& model : {ModelOf<Convolutions>(layers), ModelOf<Gates>(layers)}) {
      EXPECT_LE(ReadsOf([&] { Attribute(model, {Tokens()}, {}); }), kMost) << layers << " layers";
      EXPECT_LE(ReadsOf([&] { model.Decompose({Tokens()}); }), kMost) << layers << " layers";
    }
  }
}

TEST_F(ReadsTest, TheRelevanceOfOperatorsIsReadAtOnce) {
  AttributeOptions options;
  options.operators = true;
  EXPECT_LE(ReadsOf([&] { Attribute(ModelOf(6), {Tokens()}, options); }), kMost);
}

TEST_F(ReadsTest, ADecompositionReadsAFewNumbers) {
  for (const int layers : {1, 6}) {
    const TracedModel model = ModelOf(layers);
    EXPECT_LE(ReadsOf([&] { model.Decompose({Tokens()}); }), kMost) << layers << " layers";
  }
}

TEST_F(ReadsTest, APlanReadsAFewNumbers) {
  const auto plan = AttributionPlan::Make(ModelOf(6).model(), {Tokens()}, {});
  plan->Attribute({Tokens().value});
  EXPECT_LE(ReadsOf([&] { plan->Attribute({Tokens().value}); }), kMost);
}

// What is read together is what is read one after the other.
TEST_F(ReadsTest, ItemsGetTheirOwnNumbers) {
  const Tensor all = at::arange(12, at::kFloat).to(far::TheDevice());
  std::vector<double> sums(6, 0);
  const auto item = [&](size_t k) {
    double sum = 0;
    // As many numbers as the item's index says, the second depending on the first.
    for (size_t n = 0; n < k; ++n) sum += ReadNumber(all.narrow(0, static_cast<int64_t>(k + n), 1) + sum);
    const Tensor both = ReadNumbers(all.narrow(0, static_cast<int64_t>(k), 2));
    sums[k] = sum + both[1].item<double>();
  };
  const int64_t together = ReadsOf([&] { ReadTogether(sums.size(), item); });
  const std::vector<double> found = sums;
  const int64_t apart = ReadsOf([&] {
    for (size_t k = 0; k < sums.size(); ++k) item(k);
  });
  EXPECT_EQ(found, sums);
  EXPECT_EQ(together, 6);  // as many as the last item
  EXPECT_EQ(apart, 15 + 6);
}

TEST_F(ReadsTest, AnErrorOfAnItemEndsAll) {
  const Tensor number = at::ones({1}).to(far::TheDevice());
  int ended = 0;
  EXPECT_THROW(ReadTogether(3,
                            [&](size_t k) {
                              if (k == 1 && ReadFlag(number)) throw std::runtime_error("1");
                              ++ended;
                            }),
               std::runtime_error);
  EXPECT_EQ(ended, 2);
  // Nothing of it stays: numbers are read at once again.
  EXPECT_EQ(ReadNumber(number), 1);
}

}  // namespace
}  // namespace addend
