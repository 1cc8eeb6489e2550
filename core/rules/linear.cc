// Matrix products: with a plain matrix the rows go through one GEMM, with two decomposed factors through two.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/base/views.h"
#include "core/intercept/tracing_scope.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/rewrite.h"
#include "core/rules/row_product.h"

namespace addend {
namespace {

at::Tensor Transposed(const at::Tensor& matrix) { return matrix.transpose(-2, -1); }

// One factor of a product: its rows where it moves, and the plain matrix that the other factor's rows meet.
struct Factor {
  int operand = -1;
  bool moves = false;
  bool vector = false;      // one-dimensional: a row on the left, a column on the right
  bool transposed = false;  // linear's weight
  at::Tensor meets;         // [*batch, M, K] or [*batch, K, N]
  // The rest 1 - s for each number of a coefficient that shares by magnitude (Note [Shares by magnitude] in kinds.h),
  // and the move of the other factor, which its rows meet times the rest, beside what they meet as they are. Else
  // undefined.
  at::Tensor rest;
  at::Tensor move_of_other;
};

at::Tensor AsMatrix(const at::Tensor& t, bool is_left, const Factor& factor) {
  if (factor.vector) return t.unsqueeze(is_left ? -2 : -1);
  return factor.transposed ? Transposed(t) : t;
}

at::Tensor DropVectorDims(at::Tensor product, const Factor& left, const Factor& right) {
  if (right.vector) product = product.squeeze(-1);
  if (left.vector) product = product.squeeze(right.vector ? -1 : -2);
  return product;
}

// Sets what both factors meet, as matrices, and the rest of a coefficient that shares by magnitude.
void SetMeetings(const MeetingPoints& points, const RuleOperand& a, const RuleOperand& b, Factor* left, Factor* right) {
  left->moves = points.first_moves;
  right->moves = points.second_moves;
  left->meets = AsMatrix(At(a, points.first), true, *left);
  right->meets = AsMatrix(At(b, points.second), false, *right);
  if (points.weights == nullptr) return;
  const bool left_leads = points.first == Point::kValue;
  const auto matrix = [&](const at::Tensor& t, bool is_left) { return AsMatrix(t, is_left, is_left ? *left : *right); };
  const RuleOperand& coefficient = left_leads ? a : b;
  const RuleOperand& content = left_leads ? b : a;
  const at::Tensor value = matrix(coefficient.value, left_leads);
  const at::Tensor reference = matrix(coefficient.reference, left_leads);
  const at::Tensor content_value = matrix(content.value, !left_leads);
  const at::Tensor content_reference = matrix(content.reference, !left_leads);
  // A number of the coefficient multiplies a row of a content on its right, a column of one on its left. [*, K]
  const auto size = [&](const at::Tensor& t) { return at::linalg_vector_norm(t, 2, {left_leads ? -1 : -2}); };
  const at::Tensor sizes = size(content_value);
  const at::Tensor sizes_at_reference = size(content_reference);
  const auto along = [](const at::Tensor& t, bool is_row) { return Unsqueezed(t, is_row ? t.dim() - 1 : t.dim()); };
  Factor& leader = left_leads ? *left : *right;
  Factor& follower = left_leads ? *right : *left;
  if (points.weights->opens == points.weights->closes) {
    // One share for a row of the content: it is met at one point.
    const at::Tensor rest =
        InDtype(RestOfContent(points.weights->opens, sizes, sizes_at_reference), value.scalar_type());
    leader.meets = at::lerp(value, reference, along(rest, left_leads));
    follower.meets = at::lerp(content_reference, content_value, along(rest, !left_leads));
    return;
  }
  leader.rest = InDtype(
      RestOfContent(*points.weights, along(sizes, left_leads), along(sizes_at_reference, left_leads), value, reference),
      value.scalar_type());
  leader.meets = at::lerp(value, reference, leader.rest);
  leader.move_of_other = content_value - content_reference;
}

// left x right + beta * addend, of which the addend may be missing.
struct MatrixProduct {
  Factor left;
  Factor right;
  bool addend_moves = false;
  double beta = 1;
  at::DimVector left_sizes;
  at::DimVector right_sizes;
  at::DimVector addend_sizes;
  at::DimVector output_sizes;

  Rows Forward(const Rows& rows) const {
    at::Tensor sum;
    size_t next = 0;
    if (left.moves) {
      const at::Tensor own = AsMatrix(rows[next++], true, left);
      at::Tensor product = RowsTimesPlain(own, right.meets);
      if (left.rest.defined()) {
        product = product + RowsTimesPlain(RightAlign(own, left.rest.dim()) * left.rest, left.move_of_other);
      }
      sum = DropVectorDims(product, left, right);
    }
    if (right.moves) {
      const at::Tensor own = AsMatrix(rows[next++], false, right);
      at::Tensor product = PlainTimesRows(left.meets, own);
      if (right.rest.defined()) {
        product = product + PlainTimesRows(right.move_of_other, RightAlign(own, right.rest.dim()) * right.rest);
      }
      product = DropVectorDims(product, left, right);
      sum = sum.defined() ? sum.add_(product) : product;
    }
    if (addend_moves) {
      const at::Tensor moved = RightAlign(rows[next], static_cast<int64_t>(output_sizes.size())) * beta;
      sum = sum.defined() ? sum + moved : moved.expand(WithRows(moved.size(0), output_sizes));
    }
    return {sum};
  }

  // Transposes the product of two matrices; vectors are not covered.
  Rows Transpose(const Rows& cotangents) const {
    const at::Tensor& g = cotangents[0];
    Rows out;
    if (left.moves) {
      // A target at one position leaves most of a cotangent zero: those rows are left out, as in Forward.
      const auto times = [&](const at::Tensor& matrix) {
        const at::Tensor plain = Transposed(matrix);
        return plain.dim() == 2 ? RowsTimesPlain(g.unsqueeze(0), plain).squeeze(0) : at::matmul(g, plain);
      };
      at::Tensor product = times(right.meets);
      if (left.rest.defined()) product = product + times(left.move_of_other) * left.rest;
      out.push_back(at::sum_to(product, left_sizes));
    }
    if (right.moves) {
      at::Tensor product = at::matmul(Transposed(left.meets), g);
      if (right.rest.defined()) product = product + at::matmul(Transposed(right.move_of_other), g) * right.rest;
      while (right.transposed && product.dim() > 2) product = product.sum(0);
      out.push_back(at::sum_to(right.transposed ? Transposed(product) : product, right_sizes));
    }
    if (addend_moves) out.push_back(at::sum_to(g * beta, addend_sizes));
    return out;
  }
};

// alpha * left x right + beta * addend; arguments by name, "" for no addend.
RuleResult Product(const RuleCall& call, std::string_view left_argument, std::string_view right_argument,
                   bool right_transposed, std::string_view addend_argument = "", double alpha = 1, double beta = 1) {
  MatrixProduct map;
  Factor& left = map.left;
  Factor& right = map.right;
  left.operand = call.OperandAt(left_argument);
  right.operand = call.OperandAt(right_argument);
  const RuleOperand& a = call.operands[left.operand];
  const RuleOperand& b = call.operands[right.operand];
  left.vector = a.value.dim() == 1;
  right.vector = b.value.dim() == 1;
  right.transposed = right_transposed;
  SetMeetings(PointsOf(*call.policy, a, b), a, b, &left, &right);
  if (alpha != 1) {
    for (at::Tensor* met : {&left.meets, &right.meets, &left.move_of_other, &right.move_of_other}) {
      if (met->defined()) *met = *met * alpha;
    }
  }

  RuleResult result;
  result.kind = a.decomposed && b.decomposed ? Kind::kBilinear : Kind::kLinear;
  if (left.moves) result.inputs.push_back(left.operand);
  if (right.moves) result.inputs.push_back(right.operand);
  const int addend = call.OperandAt(addend_argument);
  map.beta = beta;
  map.addend_moves = addend >= 0 && call.operands[addend].decomposed && beta != 0;
  if (!addend_argument.empty() && result.kind == Kind::kLinear) result.kind = Kind::kAffine;
  if (map.addend_moves) result.inputs.push_back(addend);
  if (addend >= 0 && !map.addend_moves && beta != 0) {
    result.constant = beta == 1 ? call.operands[addend].value : call.operands[addend].value * beta;
  }
  if (result.inputs.empty()) return result;

  map.output_sizes = at::DimVector(call.outputs[0].value.sizes());
  map.left_sizes = at::DimVector(a.value.sizes());
  map.right_sizes = at::DimVector(b.value.sizes());
  if (map.addend_moves) map.addend_sizes = at::DimVector(call.operands[addend].value.sizes());
  RowsFunction transpose;
  if (!left.vector && !right.vector) transpose = [map](const Rows& g) { return map.Transpose(g); };
  result.map = MakeMap(
      call, result.inputs, [map](const Rows& rows) { return map.Forward(rows); }, transpose);
  return result;
}

using OnRows = std::function<at::Tensor(const at::Tensor&)>;

// beta * self + alpha * a product of the two arguments behind it: `of_first` takes rows of the one to where they meet
// the other, `of_second` those of the other.
RuleResult AddedProduct(const RuleCall& call, const Meeting& meeting, const OnRows& of_first, const OnRows& of_second) {
  const int first = call.OperandAt(call.NameOf(1));
  const int second = call.OperandAt(call.NameOf(2));
  const int addend = call.OperandAt("self");
  const double beta = call.Double("beta", 1);
  const bool first_moves = meeting.first_moves;
  const bool second_moves = meeting.second_moves;
  const bool addend_moves = call.operands[addend].decomposed && beta != 0;
  RuleResult result;
  result.kind = call.operands[first].decomposed && call.operands[second].decomposed ? Kind::kBilinear : Kind::kAffine;
  if (first_moves) result.inputs.push_back(first);
  if (second_moves) result.inputs.push_back(second);
  if (addend_moves) result.inputs.push_back(addend);
  if (result.inputs.empty()) return result;
  const at::DimVector sizes(call.outputs[0].value.sizes());
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    at::Tensor sum = at::zeros(WithRows(rows[0].size(0), sizes), rows[0].options());
    size_t next = 0;
    if (first_moves) sum = sum + of_first(rows[next++]);
    if (second_moves) sum = sum + of_second(rows[next++]);
    if (addend_moves) sum = sum + RightAlign(rows[next], 2) * beta;
    return {sum};
  });
  return result;
}

// The sum over the batch of batch1 x batch2: [B, N, M] and [B, M, P] are one product of [N, B * M] and [B * M, P].
RuleResult SumOfProducts(const RuleCall& call) {
  const double alpha = call.Double("alpha", 1);
  const auto wide = [](const at::Tensor& left) { return left.movedim(-3, -2).flatten(-2); };
  const auto high = [](const at::Tensor& right) { return right.flatten(-3, -2); };
  const Meeting meeting = Meet(*call.policy, call.Require("batch1"), call.Require("batch2"));
  const at::Tensor left = wide(meeting.first) * alpha;
  const at::Tensor right = high(meeting.second) * alpha;
  return AddedProduct(
      call, meeting, [=](const at::Tensor& rows) { return RowsTimesPlain(wide(rows), right); },
      [=](const at::Tensor& rows) { return PlainTimesRows(left, high(rows)); });
}

// vec1 vec2^T.
RuleResult AddOuter(const RuleCall& call) {
  const double alpha = call.Double("alpha", 1);
  const Meeting meeting = Meet(*call.policy, call.Require("vec1"), call.Require("vec2"));
  const at::Tensor column = meeting.first.unsqueeze(-1) * alpha;
  const at::Tensor row = meeting.second * alpha;
  return AddedProduct(
      call, meeting, [=](const at::Tensor& rows) { return rows.unsqueeze(-1) * row; },
      [=](const at::Tensor& rows) { return column * rows.unsqueeze(-2); });
}

// linalg_cross(self, other, *, dim)
RuleResult Cross(const RuleCall& call) {
  const int a = call.OperandAt("self");
  const int b = call.OperandAt("other");
  const RuleOperand& x = call.operands[a];
  const RuleOperand& y = call.operands[b];
  const int64_t rank = call.outputs[0].value.dim();
  const int64_t dim = RowDim(call.Int("dim", -1), rank);
  const at::DimVector sizes(call.outputs[0].value.sizes());
  const Meeting meeting = Meet(*call.policy, x, y);
  const at::Tensor left = meeting.first.expand(sizes).unsqueeze(0);
  const at::Tensor right = meeting.second.expand(sizes).unsqueeze(0);
  RuleResult result;
  result.kind = x.decomposed && y.decomposed ? Kind::kBilinear : Kind::kLinear;
  if (meeting.first_moves) result.inputs.push_back(a);
  if (meeting.second_moves) result.inputs.push_back(b);
  result.map = MakeMap(call, result.inputs,
                       [=, a_moves = meeting.first_moves, b_moves = meeting.second_moves](const Rows& rows) -> Rows {
                         at::Tensor sum;
                         if (a_moves) sum = at::linalg_cross(RightAlign(rows[0], rank), right, dim);
                         if (b_moves) {
                           const at::Tensor own = at::linalg_cross(left, RightAlign(rows.back(), rank), dim);
                           sum = sum.defined() ? sum + own : own;
                         }
                         return {sum};
                       });
  return result;
}

RuleResult Trace(const RuleCall& call) {
  return LinearIn(call, Kind::kLinear, "self", [](const at::Tensor& rows) { return rows.diagonal(0, 1, 2).sum(-1); });
}

// tensordot(self, other, dims_self, dims_other): a matrix product of what is left and what is summed over. One of a
// pair of dimensions may have one element where the other has more: it is summed by itself first.
std::vector<at::Tensor> ContractedProduct(const RewriteCall& call) {
  at::Tensor a = call.Tensor("self");
  at::Tensor b = call.Tensor("other");
  std::vector<int64_t> over_a = call.Ints("dims_self");
  std::vector<int64_t> over_b = call.Ints("dims_other");
  int64_t summed = 1;
  for (size_t k = 0; k < over_a.size(); ++k) {
    over_a[k] = at::maybe_wrap_dim(over_a[k], a.dim());
    over_b[k] = at::maybe_wrap_dim(over_b[k], b.dim());
    if (a.size(over_a[k]) == 1) b = b.sum(over_b[k], /*keepdim=*/true);
    if (b.size(over_b[k]) == 1) a = a.sum(over_a[k], /*keepdim=*/true);
    summed *= a.size(over_a[k]);
  }
  at::DimVector sizes;
  const auto left = [&sizes](const at::Tensor& t, const std::vector<int64_t>& over) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (std::find(over.begin(), over.end(), d) != over.end()) continue;
      dims.push_back(d);
      sizes.push_back(t.size(d));
    }
    return dims;
  };
  std::vector<int64_t> order_a = left(a, over_a);
  order_a.insert(order_a.end(), over_a.begin(), over_a.end());
  const std::vector<int64_t> left_b = left(b, over_b);
  std::vector<int64_t> order_b = over_b;
  order_b.insert(order_b.end(), left_b.begin(), left_b.end());
  if (summed == 0) return {at::zeros(sizes, a.options())};
  const at::Tensor matrix_a = a.permute(order_a).reshape({a.numel() / summed, summed});
  const at::Tensor matrix_b = b.permute(order_b).reshape({summed, b.numel() / summed});
  return {at::mm(matrix_a, matrix_b).reshape(sizes)};
}

// _grouped_mm(self, mat2, offs, bias, out_dtype): one product for each group. Slices end where `offs` says: of the rows
// of a matrix that meets a batch, of the columns of one that a batch meets, or of what two matrices sum over. Two
// batches are multiplied matrix by matrix. Where LibTorch has no such operator, transformers brings one for rows.
std::vector<at::Tensor> GroupedProduct(const RewriteCall& call) {
  const at::Tensor a = call.Tensor(call.NameOf(0));
  const at::Tensor b = call.Tensor(call.NameOf(1));
  if (call.Tensor("bias").defined()) throw Unimplemented(call.name + " with a bias");
  const auto as_asked = [&](const at::Tensor& product) {
    return call.IsNone("out_dtype") ? product : product.to(call.Given("out_dtype").toScalarType());
  };
  if (a.dim() == 3 && b.dim() == 3) return {as_asked(at::bmm(a, b))};
  const bool cuts_rows = a.dim() == 2 && b.dim() == 3;
  const bool cuts_columns = a.dim() == 3 && b.dim() == 2;
  // Read the ends of the groups outside of the trace: they are as plain as an index.
  std::vector<int64_t> ends;
  {
    const TracingPause pause;
    const at::Tensor offsets = ReadNumbers(call.Tensor("offs")).to(at::kLong);
    ends.assign(offsets.data_ptr<int64_t>(), offsets.data_ptr<int64_t>() + offsets.numel());
  }
  const int64_t cut = cuts_rows ? a.size(0) : cuts_columns ? b.size(1) : a.size(1);
  if (ends.empty() || (ends.back() != cut && (cuts_rows || cuts_columns))) {
    throw Unimplemented(absl::StrCat(call.name, " whose groups end at ", ends.empty() ? 0 : ends.back(), " of ", cut,
                                     ": what is behind them is not written"));
  }
  std::vector<at::Tensor> products;
  int64_t begin = 0;
  for (size_t g = 0; g < ends.size(); ++g) {
    const int64_t length = ends[g] - begin;
    const int64_t group = static_cast<int64_t>(g);
    if (cuts_rows) {
      products.push_back(at::mm(a.narrow(0, begin, length), b.select(0, group)));
    } else if (cuts_columns) {
      products.push_back(at::mm(a.select(0, group), b.narrow(1, begin, length)));
    } else {
      products.push_back(at::mm(a.narrow(1, begin, length), b.narrow(0, begin, length)));
    }
    begin = ends[g];
  }
  if (cuts_rows) return {as_asked(at::cat(products, 0))};
  return {as_asked(cuts_columns ? at::cat(products, 1) : at::stack(products))};
}

// _weight_int8pack_mm(self, mat2, scales): a linear layer whose weights are integers, with a scale for each row of
// them.
std::vector<at::Tensor> ProductWithIntegers(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  return {at::matmul(x, call.Tensor("mat2").to(x.scalar_type()).t()) * call.Tensor("scales")};
}

}  // namespace

void RegisterLinear(Registry& registry) {
  registry.Register(
      Rule{"aten::linear", Kind::kAffine, [](const RuleCall& c) { return Product(c, "input", "weight", true, "bias"); }}
          .Multiplies()
          .By(Products::kMatmul)
          .CoversComplex());
  // Each of these names its factors otherwise.
  const auto product = [](const RuleCall& c) { return Product(c, c.NameOf(0), c.NameOf(1), false); };
  for (const char* name : {"aten::matmul", "aten::mm", "aten::bmm", "aten::mv"}) {
    registry.Register(Rule{name, Kind::kBilinear, product}
                          .Multiplies()
                          .By(Products::kMatmul)
                          .InAttention(AttentionStep::kProduct)
                          .CoversComplex());
  }
  // Not complex: a LibTorch whose BLAS returns complex numbers in another way than it expects gives zeros.
  for (const char* name : {"aten::dot", "aten::vdot"}) registry.Register({name, Kind::kBilinear, product});
  const auto sum = [](const RuleCall& c) {
    return Product(c, c.NameOf(1), c.NameOf(2), false, "self", c.Double("alpha", 1), c.Double("beta", 1));
  };
  const auto beta = [](const RuleCall& c, int /*argument*/) { return c.Double("beta", 1); };
  for (const char* name : {"aten::addmm", "aten::baddbmm"}) {
    registry.Register(Rule{name, Kind::kAffine, sum}.Adds(1, beta).Multiplies().By(Products::kMatmul).CoversComplex());
  }
  registry.Register(Rule{"aten::addmv", Kind::kAffine, sum}.By(Products::kMatmul).CoversComplex());
  registry.Register(Rewrite{"aten::tensordot", ContractedProduct});
  registry.Register(Rewrite{"aten::_grouped_mm", GroupedProduct});
  registry.Register(Rewrite{"transformers::grouped_mm_fallback", GroupedProduct});
  registry.Register(Rewrite{"aten::_weight_int8pack_mm", ProductWithIntegers});
  registry.Register(Rule{"aten::addbmm", Kind::kAffine, SumOfProducts}.By(Products::kMatmul));
  registry.Register({"aten::addr", Kind::kAffine, AddOuter});
  registry.Register({"aten::linalg_cross", Kind::kBilinear, Cross});
  registry.Register({"aten::trace", Kind::kLinear, Trace});
}

}  // namespace addend
