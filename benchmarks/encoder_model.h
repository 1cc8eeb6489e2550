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

// An Encoder with a classifier of ten classes behind the mean over the tokens; [batch, 10].
struct Classifier : torch::nn::Module {
  Classifier() {
    encoder = register_module("encoder", std::make_shared<Encoder>());
    head = register_module("head", torch::nn::Linear(kWidth, 10));
  }
  at::Tensor forward(const at::Tensor& tokens) { return head->forward(encoder->forward(tokens).mean(0)); }
  std::shared_ptr<Encoder> encoder;
  torch::nn::Linear head = nullptr;
};

}  // namespace addend::benchmarks

#endif  // ADDEND_BENCHMARKS_ENCODER_MODEL_H_
