// Recurrent networks, rewritten into linear maps, sigmoid, tanh and products: LibTorch fuses them in other ways on
// every device and in every version, and each part has a closed form. Gates carry the mark of their sigmoid.
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>

#include <vector>

#include "core/rules/families.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;

struct LstmState {
  at::Tensor hidden;
  at::Tensor cell;
};

// One step. `gates`: input, forget, cell and output gate side by side, before their functions.
LstmState LstmStep(const at::Tensor& gates, const at::Tensor& cell) {
  const Tensors parts = gates.chunk(4, -1);
  const at::Tensor next = at::sigmoid(parts[1]) * cell + at::sigmoid(parts[0]) * at::tanh(parts[2]);
  return {at::sigmoid(parts[3]) * at::tanh(next), next};
}

// lstm_cell(input, hx[], w_ih, w_hh, b_ih, b_hh) -> (hidden, cell)
Tensors LstmCell(const RewriteCall& call) {
  const Tensors state = call.Tensors(1);
  const at::Tensor gates =
      at::linear(call.Tensor(0), call.Tensor(2), call.Tensor(4)) + at::linear(state[0], call.Tensor(3), call.Tensor(5));
  const LstmState next = LstmStep(gates, state[1]);
  return {next.hidden, next.cell};
}

}  // namespace

void RegisterRecurrent(Registry& registry) { registry.Register(Rewrite{"aten::lstm_cell", LstmCell}); }

}  // namespace addend
