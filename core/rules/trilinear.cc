// Products of three tensors summed over some dimensions, which nn.functional.bilinear expands to.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

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

  // The rows are one more dimension in front, which the factors that rest lack.
  const int64_t rank = call.operands[0].value.dim() + static_cast<int64_t>(call.Ints("expand1").size());
  std::vector<c10::IValue> arguments = call.arguments;
  const std::array<int, 3> expand = {call.At("expand1"), call.At("expand2"), call.At("expand3")};
  for (const char* name : {"expand1", "expand2", "expand3", "sumdim"}) {
    std::vector<int64_t> dims = call.Ints(name);
    for (int64_t& d : dims) d = RowDim(d, rank);
    arguments[call.At(name)] = dims;
  }
  arguments[call.At("unroll_dim")] = RowDim(call.Int("unroll_dim", 1), rank);
  const auto arguments_for = [&](int moving) {
    std::vector<c10::IValue> own = arguments;
    for (int k = 0; k < 3; ++k) {
      if (k == moving) continue;
      std::vector<int64_t> dims = own[expand[k]].toIntVector();
      dims.insert(dims.begin(), 0);
      own[expand[k]] = dims;
    }
    return own;
  };

  const Quadrature rule = GaussLegendre(result.inputs.size() == 3 ? 2 : 1);
  struct Part {
    size_t input;  // which rows
    int operand;
    double weight;
    std::vector<c10::IValue> arguments;
    std::vector<at::Tensor> factors;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < result.inputs.size(); ++i) {
    for (size_t q = 0; q < rule.nodes.size(); ++q) {
      Part part{i, result.inputs[i], rule.weights[q], arguments_for(result.inputs[i]), {}};
      for (int k = 0; k < 3; ++k) {
        const RuleOperand& factor = call.operands[k];
        const bool moves = factor.decomposed && k != part.operand;
        part.factors.push_back(moves ? factor.reference + rule.nodes[q] * call.Move(k) : factor.value);
      }
      parts.push_back(std::move(part));
    }
  }
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
