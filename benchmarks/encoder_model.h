// The Transformer that several benchmarks run.
#ifndef ADDEND_BENCHMARKS_ENCODER_MODEL_H_
#define ADDEND_BENCHMARKS_ENCODER_MODEL_H_

#include <torch/nn.h>

namespace addend::benchmarks {

constexpr int64_t kWidth = 256;

// 4 layers, 4 heads, feed-forward 1024; [tokens, batch, kWidth].
struct Encoder : torch::nn::Module {
  Encoder() {
    torch::nn::TransformerEncoderLayerOptions layer(kWidth, 4);
    layer.dim_feedforward(1024).dropout(0.1).activation(torch::kGELU);
    stack = register_module("stack", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, 4)));
  }
  at::Tensor forward(const at::Tensor& tokens) { return stack->forward(tokens); }
  torch::nn::TransformerEncoder stack = nullptr;
};

}  // namespace addend::benchmarks

#endif  // ADDEND_BENCHMARKS_ENCODER_MODEL_H_
