#include "core/linearize/small_models.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <limits>

namespace addend {

using at::Tensor;

void PrintTo(const SmallModel& model, std::ostream* out) { *out << model.name; }

const Tensor& Weight() {
  static const Tensor& weight = *new Tensor(Random({6, 6}, 11));
  return weight;
}

std::vector<SmallModel> SmallModels() {
  return {
      {"identity", [](const Tensor& x) { return x; }},
      {"view_of_input", [](const Tensor& x) { return x.t().slice(0, 1, 4); }},
      {"linear_relu", [](const Tensor& x) { return at::relu(at::linear(x, Weight())); }},
      {"in_place_relu", [](const Tensor& x) { return at::linear(x, Weight()).relu_().mul_(2).add_(1); }},
      {"in_place_on_itself",
       [](const Tensor& x) {
         Tensor y = x.mm(Weight());
         y.add_(y);
         return y.mul_(y);
       }},
      {"writes_its_input",
       [](const Tensor& x) {
         Tensor y = x;
         y.add_(1);
         return y.sin();
       }},
      {"write_through_view",
       [](const Tensor& x) {
         Tensor y = x.clone();
         y.select(1, 2).copy_(x.select(1, 0) * 3);
         return at::tanh(y);
       }},
      {"write_into_buffer",
       [](const Tensor& x) {
         Tensor buffer = at::ones({4, 6}, x.options());
         buffer.slice(0, 1, 3).copy_(x);
         buffer.select(0, 2).add_(x.select(0, 0), 0.5);
         return buffer.mm(Weight());
       }},
      {"out_argument",
       [](const Tensor& x) {
         Tensor out = at::zeros({2, 6}, x.options());
         at::mm_out(out, x, Weight());
         return out.exp();
       }},
      {"out_argument_resized",
       [](const Tensor& x) {
         Tensor out = at::empty({0}, x.options());
         at::mm_out(out, x, Weight());
         return out.exp();
       }},
      {"fill_part",
       [](const Tensor& x) {
         Tensor y = x * 2;
         y.select(1, 3).fill_(7);
         y.select(1, 4).zero_();
         return y.sum(1);
       }},
      {"overwritten_then_used",
       [](const Tensor& x) {
         Tensor y = x * 2;
         Tensor kept = y.sigmoid();
         y.zero_();
         return kept + y;
       }},
      {"transposed_layout", [](const Tensor& x) { return at::gelu(x.t()).t().matmul(Weight()); }},
      {"broadcast", [](const Tensor& x) { return x.unsqueeze(2) * x.unsqueeze(1) + x.sum(); }},
      {"chunks",
       [](const Tensor& x) {
         const auto parts = x.chunk(3, 1);
         return at::cat({parts[0] * parts[1], parts[2], at::ones({2, 1}, x.options())}, 1);
       }},
      {"stack_and_split",
       [](const Tensor& x) {
         const auto halves = at::stack({x, x.exp(), at::zeros_like(x)}, 1).unbind(1);
         return halves[1] / (halves[0].square() + 1);
       }},
      {"masked",
       [](const Tensor& x) {
         const Tensor mask = at::triu(at::ones({6, 6}, x.options().dtype(at::kBool)), 1);
         const Tensor scores = x.t().mm(x).masked_fill(mask, -std::numeric_limits<double>::infinity());
         return at::softmax(scores, -1).matmul(x.t());
       }},
      {"where_and_max",
       [](const Tensor& x) {
         return at::where(Weight().slice(0, 0, 2).gt(0), x * 2, x.tanh()).amax(1) + std::get<0>(x.max(1));
       }},
      {"branch_on_value", [](const Tensor& x) { return x.sum().item<double>() > 1e9 ? x : x.mul(3).cos(); }},
      {"hand_written_norm",
       [](const Tensor& x) {
         const Tensor centred = x - x.mean(1, true);
         return centred / (centred.square().mean(1, true) + 1e-5).sqrt();
       }},
      {"layer_norm_log_softmax",
       [](const Tensor& x) { return at::log_softmax(at::layer_norm(x, {6}, Weight()[0], Weight()[1]), 1); }},
      {"image",
       [](const Tensor& x) {
         const Tensor images = x.view({1, 2, 2, 3});
         const Tensor kernel = Weight().slice(0, 0, 2).slice(1, 0, 2).reshape({2, 2, 1, 1});
         return at::max_pool2d(at::conv2d(images, kernel, Weight()[0].slice(0, 0, 2)), {2, 2}, {1, 1});
       }},
      {"gather_index",
       [](const Tensor& x) {
         const Tensor order = at::arange(5, -1, -1, at::kLong).expand({2, 6});
         const Tensor rows = at::tensor({1, 0, 1}, at::kLong);
         return x.gather(1, order).index({rows}) + x.index_select(1, order[0]).index({rows});
       }},
      {"no_dependence_then_sum", [](const Tensor& x) { return at::ones_like(x) * 3 + 0 * x; }},
      {"under_no_grad_and_inference",
       [](const Tensor& x) {
         c10::InferenceMode inference;
         return at::linear(x, Weight()).relu_().tanh();
       }},
      {"with_gradients",
       [](const Tensor& x) {
         c10::AutoGradMode grad(true);
         return at::linear(x, Weight().clone().requires_grad_()).relu_().tanh();
       }},
      {"dropout_in_training", [](const Tensor& x) { return at::dropout(x.mm(Weight()), 0.5, true); }},
  };
}

}  // namespace addend
