// Products of three tensors summed over some dimensions, which nn.functional.bilinear expands to.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// The rows of one factor at one node of the quadrature: they meet the two others.
struct Part {
  size_t input;  // which rows
  int operand;
  double weight;
  std::vector<c10::IValue> arguments;
  std::vector<at::Tensor> factors;
};

// The rows are one more dimension in front, which the factors that rest lack.
std::vector<c10::IValue> ArgumentsFor(const RuleCall& call, int moving) {
  const int64_t rank = call.operands[0].value.dim() + static_cast<int64_t>(call.Ints("expand1").size());
  std::vector<c10::IValue> arguments = call.arguments;
  const std::array<const char*, 4> lists = {"expand1", "expand2", "expand3", "sumdim"};
  for (int k = 0; k < 4; ++k) {
    std::vector<int64_t> dims = call.Ints(lists[k]);
    for (int64_t& d : dims) d = RowDim(d, rank);
    if (k < 3 && k != moving) dims.insert(dims.begin(), 0);
    arguments[call.At(lists[k])] = dims;
  }
  arguments[call.At("unroll_dim")] = RowDim(call.Int("unroll_dim", 1), rank);
  return arguments;
}

std::vector<Part> PartsOf(const RuleCall& call, const std::vector<int>& inputs) {
  const Quadrature rule = GaussLegendre(inputs.size() == 3 ? 2 : 1);
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t q = 0; q < rule.nodes.size(); ++q) {
      Part part{i, inputs[i], rule.weights[q], ArgumentsFor(call, inputs[i]), {}};
      for (int k = 0; k < 3; ++k) {
        const RuleOperand& factor = call.operands[k];
        const bool moves = factor.decomposed && k != part.operand;
        part.factors.push_back(moves ? factor.reference + rule.nodes[q] * call.Move(k) : factor.value);
      }
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

// _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim): `expand` lists the dimensions of the product
// that an operand lacks. By the path rule each factor meets the product of the two others along the line, a polynomial
// of at most the second degree, which one or two nodes integrate exactly.
RuleResult Trilinear(const RuleCall& call) {
  RuleResult result;
  for (int k = 0; k < 3; ++k) {
    if (call.operands[k].decomposed) result.inputs.push_back(k);
  }
  result.kind = result.inputs.size() > 1 ? Kind::kBilinear : Kind::kLinear;
  if (result.inputs.empty()) return result;
  const std::vector<Part> parts = PartsOf(call, result.inputs);
  result.map = MakeMap(call, result.inputs, [=, run = call.run](const Rows& rows) -> Rows {
    at::Tensor sum;
    for (const Part& part : parts) {
      std::vector<at::Tensor> factors = part.factors;
      factors[part.operand] = rows[part.input];
      const at::Tensor passed = run(part.arguments, factors)[0] * part.weight;
      sum = sum.defined() ? sum + passed : passed;
    }
    return {sum};
  });
  return result;
}

}  // namespace

void RegisterTrilinear(Registry& registry) { registry.Register({"aten::_trilinear", Kind::kBilinear, Trilinear}); }

}  // namespace addend
