#include "core/exported/shims.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"

namespace addend::exported {
namespace {

using at::Tensor;
using c10::IValue;

// The arguments of a call, taken from the stack.
class Taken {
 public:
  Taken(Stack* stack, size_t count) : values_(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end()) {
    stack->resize(stack->size() - count);
  }

  const IValue& operator[](size_t k) const { return values_[k]; }
  const Tensor& TensorAt(size_t k) const { return values_[k].toTensor(); }
  // Undefined where it is None.
  Tensor OptionalTensor(size_t k) const { return values_[k].isTensor() ? values_[k].toTensor() : Tensor(); }
  c10::optional<Tensor> MaybeTensor(size_t k) const {
    return values_[k].isTensor() ? c10::optional<Tensor>(values_[k].toTensor()) : c10::nullopt;
  }
  bool Given(size_t k) const { return !values_[k].isNone(); }
  double Number(size_t k, double otherwise) const { return Given(k) ? values_[k].toDouble() : otherwise; }
  int64_t Int(size_t k) const { return values_[k].toInt(); }
  bool Bool(size_t k) const { return values_[k].toBool(); }
  std::vector<int64_t> Ints(size_t k) const { return values_[k].toIntVector(); }
  c10::optional<at::ScalarType> Dtype(size_t k) const {
    return Given(k) ? c10::optional<at::ScalarType>(static_cast<at::ScalarType>(Int(k))) : c10::nullopt;
  }

 private:
  std::vector<IValue> values_;
};

// ----------------------------------------------------------------------------------------------------- attention

const double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Attention {
  Tensor query, key, value, mask;
  double dropout = 0;
  bool causal = false;
  double scale = 0;
  bool shared_heads = false;
};

// Each head of `tensor` as often as several heads of the query share it.
Tensor ForEachHead(const Tensor& tensor, int64_t heads) {
  const int64_t own = tensor.size(-3);
  if (own == heads || own == 0) return tensor;
  std::vector<int64_t> sizes = tensor.sizes().vec();
  sizes.insert(sizes.end() - 2, heads / own);
  return tensor.unsqueeze(-3).expand(sizes).flatten(-4, -3);
}

Tensor Scores(const Attention& of) {
  const Tensor key = of.shared_heads ? ForEachHead(of.key, of.query.size(-3)) : of.key;
  Tensor scores = at::matmul(of.query, key.transpose(-2, -1)) * of.scale;
  if (of.causal) {
    const Tensor allowed = at::ones({of.query.size(-2), key.size(-2)}, of.query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(allowed.logical_not(), kMinusInfinity);
  }
  if (!of.mask.defined()) return scores;
  if (of.mask.scalar_type() == at::kBool) return scores.masked_fill(of.mask.logical_not(), kMinusInfinity);
  return scores + of.mask;
}

Tensor Attended(const Attention& of, const Tensor& scores) {
  Tensor weights = at::softmax(scores, -1);
  if (of.mask.defined()) {
    // A row that sees nothing attends to nothing.
    const Tensor hidden = of.mask.scalar_type() == at::kBool ? of.mask.logical_not() : of.mask.eq(kMinusInfinity);
    weights = weights.masked_fill(hidden.all(-1, /*keepdim=*/true), 0);
  }
  if (of.dropout > 0) weights = at::dropout(weights, of.dropout, /*train=*/true);
  const Tensor value = of.shared_heads ? ForEachHead(of.value, of.query.size(-3)) : of.value;
  const Tensor result = at::matmul(weights, value);
  if (result.dim() != 4) return result;
  // The kernels that exporters see lay the heads of a position side by side.
  return result.transpose(1, 2).contiguous().transpose(1, 2);
}

double ScaleOf(const Taken& taken, size_t k) {
  return taken.Number(k, 1 / std::sqrt(static_cast<double>(taken.TensorAt(0).size(-1))));
}

void ScaledDotProductAttention(Stack* stack) {
  const Taken taken(stack, 8);
  const Attention of{taken.TensorAt(0),  taken.TensorAt(1), taken.TensorAt(2), taken.OptionalTensor(3),
                     taken.Number(4, 0), taken.Bool(5),     ScaleOf(taken, 6), taken.Bool(7)};
  stack->emplace_back(Attended(of, Scores(of)));
}

void FlashAttentionForCpu(Stack* stack) {
  const Taken taken(stack, 7);
  const Attention of{taken.TensorAt(0),  taken.TensorAt(1), taken.TensorAt(2), taken.OptionalTensor(5),
                     taken.Number(3, 0), taken.Bool(4),     ScaleOf(taken, 6), false};
  const Tensor scores = Scores(of);
  stack->emplace_back(Attended(of, scores));
  stack->emplace_back(at::logsumexp(scores, -1));
}

void SafeSoftmax(Stack* stack) {
  const Taken taken(stack, 3);
  const Tensor& self = taken.TensorAt(0);
  const Tensor hidden = self.eq(kMinusInfinity).all(taken.Int(1), /*keepdim=*/true);
  stack->emplace_back(at::softmax(self, taken.Int(1), taken.Dtype(2)).masked_fill(hidden, 0));
}

// -------------------------------------------------------------------------------------------------------- norms

double Epsilon(at::ScalarType dtype) {
  return dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// The norm, and the factor of each row.
std::pair<Tensor, Tensor> RmsNormed(const Taken& taken) {
  const Tensor& input = taken.TensorAt(0);
  const bool narrow = input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16;
  const Tensor wide = narrow ? input.to(at::kFloat) : input;
  std::vector<int64_t> dims;
  for (size_t k = taken.Ints(1).size(); k > 0; --k) dims.push_back(-static_cast<int64_t>(k));
  const double eps = taken.Number(3, Epsilon(wide.scalar_type()));
  const Tensor factor = at::rsqrt(at::pow(wide, 2).mean(dims, /*keepdim=*/true) + eps);
  Tensor result = wide * factor;
  if (narrow) result = result.to(input.scalar_type());
  const Tensor weight = taken.OptionalTensor(2);
  return {weight.defined() ? result * weight : result, factor};
}

void RmsNorm(Stack* stack) {
  const Taken taken(stack, 4);
  stack->emplace_back(RmsNormed(taken).first);
}

void FusedRmsNorm(Stack* stack) {
  const Taken taken(stack, 4);
  auto [result, factor] = RmsNormed(taken);
  stack->emplace_back(std::move(result));
  stack->emplace_back(std::move(factor));
}

void PushThree(Stack* stack, const std::tuple<Tensor, Tensor, Tensor>& results) {
  stack->emplace_back(std::get<0>(results));
  stack->emplace_back(std::get<1>(results));
  stack->emplace_back(std::get<2>(results));
}

void BatchNorm(Stack* stack) {
  const Taken taken(stack, 8);
  PushThree(stack,
            at::native_batch_norm(taken.TensorAt(0), taken.MaybeTensor(1), taken.MaybeTensor(2), taken.MaybeTensor(3),
                                  taken.MaybeTensor(4), taken.Bool(5), taken.Number(6, 0), taken.Number(7, 0)));
}

void BatchNormWithoutTraining(Stack* stack) {
  const Taken taken(stack, 7);
  PushThree(stack,
            at::native_batch_norm(taken.TensorAt(0), taken.MaybeTensor(1), taken.MaybeTensor(2), taken.MaybeTensor(3),
                                  taken.MaybeTensor(4), /*training=*/false, taken.Number(5, 0), taken.Number(6, 0)));
}

void BatchNormWithoutStatistics(Stack* stack) {
  const Taken taken(stack, 6);
  PushThree(stack, at::native_batch_norm(taken.TensorAt(0), taken.MaybeTensor(1), taken.MaybeTensor(2), {}, {},
                                         taken.Bool(3), taken.Number(4, 0), taken.Number(5, 0)));
}

// Gives the new statistics instead of writing them. `reserve`: what a backward pass would want, before them.
void GiveStatistics(const Taken& taken, bool training, double momentum, double eps, const Tensor& reserve,
                    Stack* stack) {
  const Tensor mean = taken.TensorAt(3).clone();
  const Tensor variance = taken.TensorAt(4).clone();
  PushThree(stack, at::native_batch_norm(taken.TensorAt(0), taken.MaybeTensor(1), taken.MaybeTensor(2), mean, variance,
                                         training, momentum, eps));
  if (reserve.defined()) stack->emplace_back(reserve);
  stack->emplace_back(mean);
  stack->emplace_back(variance);
}

void FunctionalBatchNorm(Stack* stack) {
  const Taken taken(stack, 8);
  GiveStatistics(taken, taken.Bool(5), taken.Number(6, 0), taken.Number(7, 0), /*reserve=*/{}, stack);
}

void FunctionalBatchNormWithUpdate(Stack* stack) {
  const Taken taken(stack, 7);
  const Tensor reserve = at::empty({0}, taken.TensorAt(0).options().dtype(at::kByte));
  GiveStatistics(taken, /*training=*/true, taken.Number(5, 0), taken.Number(6, 0), reserve, stack);
}

// ------------------------------------------------------------------------------------------------------- shapes

// From the last dimension to the first, so that those to come keep their numbers.
std::vector<int64_t> Descending(std::vector<int64_t> dims, int64_t rank) {
  for (int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  std::sort(dims.rbegin(), dims.rend());
  return dims;
}

void SqueezeDims(Stack* stack) {
  const Taken taken(stack, 2);
  Tensor result = taken.TensorAt(0);
  const std::vector<int64_t> dims = Descending(taken.Ints(1), result.dim());
  if (dims.empty()) result = result.alias();
  for (const int64_t dim : dims) result = result.squeeze(dim);
  stack->emplace_back(std::move(result));
}

void EmptyPermuted(Stack* stack) {
  const Taken taken(stack, 6);
  const std::vector<int64_t> size = taken.Ints(0);
  const std::vector<int64_t> layout = taken.Ints(1);
  if (size.size() != layout.size()) throw InvalidArgument("empty_permuted has another number of sizes than dimensions");
  std::vector<int64_t> physical;
  std::vector<int64_t> back(layout.size());
  for (size_t k = 0; k < layout.size(); ++k) {
    physical.push_back(size.at(static_cast<size_t>(layout[k])));
    back[static_cast<size_t>(layout[k])] = static_cast<int64_t>(k);
  }
  at::TensorOptions options;
  if (taken.Given(2)) options = options.dtype(*taken.Dtype(2));
  if (taken.Given(4)) options = options.device(taken[4].toDevice());
  stack->emplace_back(at::empty(physical, options).permute(back));
}

// No dimensions are none; all of them are None.
template <Tensor (*Reduce)(const Tensor&, int64_t, bool)>
void OverDims(Stack* stack) {
  const Taken taken(stack, 3);
  Tensor result = taken.TensorAt(0);
  std::vector<int64_t> dims;
  if (taken.Given(1)) {
    dims = taken.Ints(1);
  } else {
    for (int64_t d = 0; d < result.dim(); ++d) dims.push_back(d);
  }
  // These operators give bytes for bytes.
  if (dims.empty()) result = result.ne(0).to(result.scalar_type() == at::kByte ? at::kByte : at::kBool);
  for (const int64_t dim : Descending(dims, result.dim())) result = Reduce(result, dim, taken.Bool(2));
  stack->emplace_back(std::move(result));
}

Tensor AnyOf(const Tensor& self, int64_t dim, bool keepdim) { return at::any(self, dim, keepdim); }
Tensor AllOf(const Tensor& self, int64_t dim, bool keepdim) { return at::all(self, dim, keepdim); }

void SymSize(Stack* stack) {
  const Taken taken(stack, 2);
  stack->emplace_back(taken.TensorAt(0).size(taken.Int(1)));
}

void SymSizes(Stack* stack) {
  const Taken taken(stack, 1);
  stack->emplace_back(taken.TensorAt(0).sizes().vec());
}

void SymStride(Stack* stack) {
  const Taken taken(stack, 2);
  stack->emplace_back(taken.TensorAt(0).stride(taken.Int(1)));
}

void SymStrides(Stack* stack) {
  const Taken taken(stack, 1);
  stack->emplace_back(taken.TensorAt(0).strides().vec());
}

void SymNumel(Stack* stack) {
  const Taken taken(stack, 1);
  stack->emplace_back(taken.TensorAt(0).numel());
}

void SymStorageOffset(Stack* stack) {
  const Taken taken(stack, 1);
  stack->emplace_back(taken.TensorAt(0).storage_offset());
}

void UnsafeIndex(Stack* stack) {
  const Taken taken(stack, 2);
  stack->emplace_back(at::index(taken.TensorAt(0), taken[1].to<c10::List<c10::optional<Tensor>>>()));
}

void UnsafeIndexPut(Stack* stack) {
  const Taken taken(stack, 4);
  stack->emplace_back(at::index_put(taken.TensorAt(0), taken[1].to<c10::List<c10::optional<Tensor>>>(),
                                    taken.TensorAt(2), taken.Bool(3)));
}

void PreluKernel(Stack* stack) {
  const Taken taken(stack, 2);
  const Tensor& self = taken.TensorAt(0);
  stack->emplace_back(at::where(self > 0, self, taken.TensorAt(1) * self));
}

// --------------------------------------------------------------------------------------------------- experts

// Rows of `input` times the matrix of their group; `ends`: of the groups, in rows. Rows behind the last end give zero.
Tensor GroupedProduct(const Tensor& input, const Tensor& weight, const Tensor& ends) {
  if (input.dim() == 3 && weight.dim() == 3) return at::bmm(input, weight);
  if (input.dim() != 2 || weight.dim() != 3 || !ends.defined()) {
    throw Unimplemented("grouped products are of a matrix and a matrix for each group");
  }
  std::vector<Tensor> products;
  int64_t begin = 0;
  for (int64_t group = 0; group < ends.numel(); ++group) {
    const auto end = ends.select(0, group).item().toLong();
    if (end > begin) products.push_back(at::mm(input.slice(0, begin, end), weight.select(0, group)));
    begin = std::max(begin, end);
  }
  if (begin < input.size(0)) products.push_back(input.new_zeros({input.size(0) - begin, weight.size(2)}));
  return products.empty() ? input.new_zeros({0, weight.size(2)}) : at::cat(products, 0);
}

void GroupedMmFallback(Stack* stack) {
  const Taken taken(stack, 3);
  stack->emplace_back(GroupedProduct(taken.TensorAt(0), taken.TensorAt(1), taken.TensorAt(2)));
}

void GroupedMm(Stack* stack) {
  const Taken taken(stack, 5);
  Tensor result = GroupedProduct(taken.TensorAt(0), taken.TensorAt(1), taken.OptionalTensor(2));
  if (taken.Given(3)) result = result + taken.TensorAt(3);
  if (taken.Given(4)) result = result.to(*taken.Dtype(4));
  stack->emplace_back(std::move(result));
}

// ----------------------------------------------------------------------------------------------------- checks

void RequireTrue(bool holds, const std::string& message) {
  if (!holds) throw InvalidArgument(absl::StrCat("the exported program asserts: ", message));
}

// Asserts nothing: sizes and strides at export are no conditions; the model's dtype and device may have been chosen.
void AssertTensorMetadata(Stack* stack) { const Taken taken(stack, 6); }

void AssertScalar(Stack* stack) {
  const Taken taken(stack, 2);
  RequireTrue(IsTrue(taken[0]), taken[1].toStringRef());
}

// The element leaves the tensor by an operator, which recordings guard.
void AssertTensor(Stack* stack) {
  const Taken taken(stack, 1);
  RequireTrue(at::is_nonzero(taken.TensorAt(0)), "a tensor is true");
}

void AssertTensorMessage(Stack* stack) {
  const Taken taken(stack, 2);
  RequireTrue(at::is_nonzero(taken.TensorAt(0)), taken[1].toStringRef());
}

void RequireRange(const Taken& taken, int64_t at_least) {
  if (!taken[0].isInt()) return;
  const int64_t size = taken.Int(0);
  const int64_t min = taken.Given(1) ? taken.Int(1) : at_least;
  const bool fits = size >= min && (!taken.Given(2) || size <= taken.Int(2));
  const std::string max = taken.Given(2) ? absl::StrCat(" to ", taken.Int(2)) : " or more";
  RequireTrue(fits, absl::StrCat("a number read from a tensor is ", size, ", the model was exported for ", min, max));
}

void ConstrainRange(Stack* stack) {
  const Taken taken(stack, 3);
  RequireRange(taken, std::numeric_limits<int64_t>::min());
}

void ConstrainRangeForSize(Stack* stack) {
  const Taken taken(stack, 3);
  RequireRange(taken, 0);
}

// ------------------------------------------------------------------------------------------------------ table

struct Line {
  const char* schema;
  BoxedFunction function;
  bool always = false;
};

constexpr bool kAlways = true;

const Line kLines[] = {
    {"aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
     "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     ScaledDotProductAttention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
     "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
     FlashAttentionForCpu},
    {"aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", SafeSoftmax},
    {"aten::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", RmsNorm},
    {"aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
     FusedRmsNorm},
    {"aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     BatchNorm},
    {"aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float "
     "momentum, float eps) -> (Tensor, Tensor, Tensor)",
     BatchNormWithoutStatistics},
    {"aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
     "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     BatchNormWithoutTraining},
    {"aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
     "Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     FunctionalBatchNorm, kAlways},
    {"aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
     "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
     FunctionalBatchNormWithUpdate, kAlways},
    {"aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", SqueezeDims},
    {"aten::empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     EmptyPermuted},
    {"aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", OverDims<AnyOf>},
    {"aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", OverDims<AllOf>},
    {"aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", UnsafeIndex},
    {"aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     UnsafeIndexPut},
    {"aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", PreluKernel},
    {"aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
     "Tensor",
     GroupedMm},
    // An operator of Hugging Face transformers, whose Python defines it; the calls inside would not be seen.
    {"transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", GroupedMmFallback,
     kAlways},
    {"aten::sym_size.int(Tensor self, int dim) -> int", SymSize, kAlways},
    {"aten::sym_size(Tensor self) -> int[]", SymSizes, kAlways},
    {"aten::sym_stride.int(Tensor self, int dim) -> int", SymStride, kAlways},
    {"aten::sym_stride(Tensor self) -> int[]", SymStrides, kAlways},
    {"aten::sym_numel(Tensor self) -> int", SymNumel, kAlways},
    {"aten::sym_storage_offset(Tensor self) -> int", SymStorageOffset, kAlways},
    {"aten::_assert_tensor_metadata(Tensor a, int[]? size=None, int[]? stride=None, ScalarType? dtype=None, *, Device? "
     "device=None, Layout? layout=None) -> ()",
     AssertTensorMetadata, kAlways},
    {"aten::_assert_scalar(Scalar self, str assert_msg) -> ()", AssertScalar, kAlways},
    {"aten::_assert_async(Tensor self) -> ()", AssertTensor, kAlways},
    {"aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", AssertTensorMessage, kAlways},
    {"aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", ConstrainRange, kAlways},
    {"aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", ConstrainRangeForSize,
     kAlways},
};

}  // namespace

const Shim* FindShim(const std::string& name, const std::string& overload) {
  static const auto& shims = *[] {
    auto* made = new absl::flat_hash_map<std::string, Shim>;
    for (const Line& line : kLines) {
      Shim shim{torch::jit::parseSchema(line.schema), line.function, line.always};
      const std::string key = absl::StrCat(shim.schema.name(), ".", shim.schema.overload_name());
      made->emplace(key, std::move(shim));
    }
    return made;
  }();
  const auto found = shims.find(absl::StrCat(name, ".", overload));
  return found == shims.end() ? nullptr : &found->second;
}

}  // namespace addend::exported
