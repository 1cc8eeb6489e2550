// Products of matrices, and determinants.
#include <ATen/ATen.h>

#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results MatMul(const Context& context) { return at::matmul(context.Tensor(0), context.Tensor(1)); }

// A factor as the type of the matrices has it.
at::Scalar Factor(const Context& context, const char* name, const Tensor& a) {
  const double factor = context.FloatAttribute(name, 1);
  if (c10::isFloatingType(a.scalar_type())) return factor;
  const auto whole = static_cast<int64_t>(factor);
  if (static_cast<double>(whole) != factor) throw context.Refused("integers are multiplied with a fraction");
  return whole;
}

// alpha * A * B + beta * C, with C broadcast to the product.
Results Gemm(const Context& context) {
  Tensor a = context.Tensor(0);
  Tensor b = context.Tensor(1);
  const Tensor c = context.OptionalTensor(2);
  if (a.dim() != 2 || b.dim() != 2) throw context.Invalid("an operand is no matrix");
  const at::Scalar alpha = Factor(context, "alpha", a), beta = Factor(context, "beta", a);
  const bool transposes = context.FlagAttribute("transB", false);
  if (context.FlagAttribute("transA", false)) a = at::t(a);
  if (transposes && c.defined() && c.dim() == 1 && c.size(0) == b.size(0) && alpha.toDouble() == 1 &&
      beta.toDouble() == 1 && c10::isFloatingType(a.scalar_type())) {
    return at::linear(a, b, c);
  }
  if (transposes) b = at::t(b);
  if (c.defined()) return at::addmm(c, a, b, beta, alpha);
  const Tensor product = at::mm(a, b);
  return alpha.toDouble() == 1 ? product : at::mul(product, alpha);
}

Results Einsum(const Context& context) { return at::einsum(context.TextAttribute("equation"), context.Tensors()); }

Results Det(const Context& context) { return at::linalg_det(context.Tensor(0)); }

}  // namespace

void RegisterMatrices(OperatorTable& table) {
  table.Add("MatMul", 1, MatMul).Inputs(2);
  table.Add("Gemm", 1, Gemm).Inputs(3).Attributes({"alpha", "beta", "broadcast", "transA", "transB"});
  table.Add("Gemm", 7, Gemm).Inputs(2, 3).Attributes({"alpha", "beta", "transA", "transB"});
  table.Add("Einsum", 12, Einsum).InputsFrom(1).Attributes({"equation"});
  table.Add("Det", 11, Det);
}

}  // namespace addend::onnx
