#include "core/rules/row_operator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/kinds.h"

namespace addend {

RuleResult LinearOperator(const RuleCall& call, Kind kind, const RowAxis& axis) {
  const int operand = call.OperandAt(call.First());
  std::vector<at::Tensor> operands;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    if (static_cast<int>(k) != operand && call.operands[k].decomposed && !call.operands[k].written) {
      throw Unimplemented(absl::StrCat(call.name, ".", call.overload, " with more than one decomposed argument"));
    }
    operands.push_back(call.operands[k].value);
  }
  if (call.outputs.size() != 1) throw Unimplemented(absl::StrCat(call.name, " with several results"));
  const int64_t rank = operand < 0 ? 0 : call.operands[operand].value.dim();
  std::vector<c10::IValue> arguments = call.arguments;
  for (const std::string& name : axis.dims) {
    c10::IValue& dims = arguments.at(call.At(name));
    if (dims.isInt()) {
      dims = RowDim(dims.toInt(), rank);
    } else if (dims.isIntList()) {
      std::vector<int64_t> moved;
      for (const int64_t d : dims.toIntVector()) moved.push_back(RowDim(d, rank));
      dims = moved;
    }
  }
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  const bool affine = kind == Kind::kAffine;
  const auto forward = [=, run = call.run, fold = axis.fold_batch](const at::Tensor& rows) {
    const auto one = [&](const at::Tensor& some) {
      std::vector<at::Tensor> inputs = operands;
      // A number has no dimension that could be counted; its rows get one.
      inputs[operand] = rank == 0 ? some.unsqueeze(1) : some;
      return run(arguments, inputs)[0];
    };
    const at::Tensor result = fold ? FoldBatch(rows, one) : one(rows);
    at::DimVector sizes = WithRows(rows.size(0), output_sizes);
    if (!affine) return result.reshape(sizes);
    const at::Tensor zero = at::zeros_like(rows.narrow(0, 0, 1));
    at::DimVector one_row = sizes;
    one_row[0] = 1;
    return (result.reshape(sizes) - (fold ? FoldBatch(zero, one) : one(zero)).reshape(one_row));
  };
  return LinearIn(call, kind, call.First(), forward);
}

}  // namespace addend
