// The example of docs/eager.md, with the tensors that it needs. A test runs it.
#include "core/eager/eager.h"

#include <ATen/ATen.h>

#include <cmath>
#include <iostream>

#include "core/eager/composition_ops.h"

using addend::Call;
using addend::Composition;

int main() {
  at::manual_seed(1);
  const at::Tensor tokens = at::randn({5, 8});
  const at::Tensor weight = at::randn({8, 8});
  const at::Tensor bias = at::randn({8});
  const at::Tensor future = at::ones({5, 5}, at::kBool).triu(1);

  // [docs/eager.md
  // One component for each of five tokens; the baseline is zero.
  Composition x = Composition::Diagonal(tokens, {0});

  Composition h = x.linear(weight, bias).gelu();
  Composition scores = h.matmul(h.transpose(0, 1)) / 4;
  Composition mixed = scores.masked_fill(future, -INFINITY).softmax(-1).matmul(h);
  Composition y = (h + mixed).layer_norm({8});

  // Any operator by its name, its arguments as in LibTorch's schema.
  Composition z = Call("aten::leaky_relu", y, addend::Named("negative_slope", 0.2));

  at::Tensor value = z.value();            // what the operators computed
  at::Tensor recovery = z.recovery();      // the sum of all parts: equal to it up to rounding
  at::Tensor of_token_2 = z.component(2);  // what the third token contributes
  // docs/eager.md]

  const at::Tensor a = at::gelu(at::linear(tokens, weight, bias));
  const at::Tensor s = a.matmul(a.t()).div(4).masked_fill(future, -INFINITY).softmax(-1);
  const at::Tensor expected = at::leaky_relu(at::layer_norm(a + s.matmul(a), {8}), 0.2);
  const bool right = value.equal(expected) && recovery.allclose(expected, 1e-4, 1e-4) &&
                     of_token_2.sizes() == expected.sizes() &&
                     // A causal mask: what comes later has no part in what comes before.
                     of_token_2.slice(0, 0, 2).abs().max().item<float>() == 0 &&
                     of_token_2.slice(0, 2).abs().max().item<float>() > 0.01;
  if (!right) std::cerr << "the example does not hold:\n" << value << "\n" << recovery << "\n" << of_token_2 << "\n";
  return right ? 0 : 1;
}
