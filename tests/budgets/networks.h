// Networks whose cost is counted: in calls of LibTorch's operators, and in waits for a device.
#ifndef ADDEND_TESTS_BUDGETS_NETWORKS_H_
#define ADDEND_TESTS_BUDGETS_NETWORKS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace addend {

using at::Tensor;

constexpr int64_t kWidth = 16;
constexpr int64_t kHeads = 2;
constexpr int64_t kTokens = 6;

inline Tensor Weight(int64_t rows, int64_t columns) { return at::randn({rows, columns}) / 4; }

// A Transformer encoder of some layers, on the device.
class Encoder {
 public:
  explicit Encoder(int layers, at::Device device = at::kCPU) {
    at::manual_seed(7);
    const auto put = [&](const Tensor& tensor) { return tensor.to(device); };
    for (int k = 0; k < layers; ++k) {
      Layer layer;
      for (Tensor* square : {&layer.query, &layer.key, &layer.value, &layer.out}) *square = put(Weight(kWidth, kWidth));
      layer.wide = put(Weight(4 * kWidth, kWidth));
      layer.narrow = put(Weight(kWidth, 4 * kWidth));
      layer.scale = put(at::rand({kWidth}) + 0.5);
      layers_.push_back(layer);
    }
    classes_ = put(Weight(3, kWidth));
  }

  Tensor operator()(Tensor x) const {
    for (const Layer& layer : layers_) {
      const Tensor y = at::layer_norm(x, {kWidth}, layer.scale);
      const auto heads = [&](const Tensor& t) {
        return t.view({1, x.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
      };
      const Tensor q = heads(at::linear(y, layer.query));
      const Tensor k = heads(at::linear(y, layer.key));
      const Tensor v = heads(at::linear(y, layer.value));
      const Tensor weights = at::softmax(at::matmul(q, k.transpose(-2, -1)) / 3, -1);
      x = x + at::linear(at::matmul(weights, v).transpose(1, 2).reshape({1, x.size(1), kWidth}), layer.out);
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

// Convolutions and normalization by statistics, some times, with a maximum at first, as networks for pictures have; the
// input is [1, 6, 16] (batch, channels, places).
class Convolutions {
 public:
  explicit Convolutions(int layers, at::Device device = at::kCPU) {
    at::manual_seed(7);
    const auto put = [&](const Tensor& tensor) { return tensor.to(device); };
    for (int k = 0; k < layers; ++k) {
      layers_.push_back({put(at::randn({kTokens, kTokens, 3}) / 4), put(at::rand({kTokens}) + 0.5)});
    }
    classes_ = put(Weight(3, kTokens));
  }

  Tensor operator()(Tensor x) const {
    for (const Layer& layer : layers_) {
      const Tensor y = at::conv1d(x, layer.weight, {}, 1, 1);
      const Tensor z = at::batch_norm(y, layer.scale, {}, layer.scale, layer.scale, false, 0.1, 1e-5, false);
      x = x + at::relu(z);
      if (&layer == &layers_.front()) x = at::max_pool1d(x, {3}, {1}, {1});
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
  explicit Gates(int layers, at::Device device = at::kCPU) {
    at::manual_seed(7);
    const auto put = [&](const Tensor& tensor) { return tensor.to(device); };
    for (int k = 0; k < layers; ++k) {
      Layer layer;
      for (Tensor* square : {&layer.gate, &layer.up, &layer.down}) *square = put(Weight(kWidth, kWidth));
      layers_.push_back(layer);
    }
    classes_ = put(Weight(3, kWidth));
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

}  // namespace addend

#endif  // ADDEND_TESTS_BUDGETS_NETWORKS_H_
