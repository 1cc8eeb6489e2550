// Functions in place of operators: they give what the operators give, and their layout where it matters.
#include "core/exported/shims.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/intercept/operator.h"

namespace addend::exported {
namespace {

using at::Tensor;
using c10::IValue;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Calls the function, and the operator too where this LibTorch has it with these arguments: both agree.
Stack CallShim(const std::string& name, const std::string& overload, const Stack& arguments) {
  const Shim* shim = FindShim(name, overload);
  if (shim == nullptr) throw Internal("no shim for " + name);
  EXPECT_EQ(shim->schema.arguments().size(), arguments.size()) << name;
  Stack stack = arguments;
  shim->function(&stack);
  EXPECT_EQ(stack.size(), shim->schema.returns().size()) << name;
  const auto op = Operator::Find(name, overload);
  const bool same = op && op->schema().arguments().size() == arguments.size();
  if (!same || stack.empty() || !stack[0].isTensor()) return stack;
  Stack expected = arguments;
  op->Call(&expected);
  for (size_t k = 0; k < stack.size(); ++k) {
    const Tensor a = stack[k].toTensor();
    const Tensor b = expected[k].toTensor();
    EXPECT_EQ(a.sizes(), b.sizes()) << name;
    // The elements are uninitialized.
    if (name == "aten::empty_permuted") continue;
    if (a.is_floating_point()) {
      EXPECT_TRUE(a.allclose(b, 1e-5, 1e-6, /*equal_nan=*/true)) << name;
    } else {
      EXPECT_TRUE(a.equal(b)) << name;
    }
  }
  return stack;
}

Tensor One(const std::string& name, const std::string& overload, const Stack& arguments) {
  return CallShim(name, overload, arguments).at(0).toTensor();
}

class Shims : public testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

Tensor Attend(const Tensor& q, const Tensor& k, const Tensor& v, const IValue& mask, bool causal, const IValue& scale,
              bool shared) {
  return One("aten::scaled_dot_product_attention", "", {q, k, v, mask, 0.0, causal, scale, shared});
}

TEST_F(Shims, Attention) {
  const Tensor q = at::randn({2, 4, 5, 8});
  const Tensor k = at::randn({2, 4, 5, 8});
  const Tensor v = at::randn({2, 4, 5, 8});
  const Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(8.0);
  const Tensor plain = Attend(q, k, v, IValue(), false, IValue(), false);
  EXPECT_TRUE(plain.allclose(at::matmul(scores.softmax(-1), v), 1e-5, 1e-6));
  // The heads of a position lie side by side, so that a view joins them.
  EXPECT_EQ(plain.transpose(1, 2).view({2, 5, 32}).size(2), 32);
  const Tensor causal = Attend(q, k, v, IValue(), true, IValue(), false);
  EXPECT_TRUE(causal.select(2, 0).allclose(v.select(2, 0), 1e-5, 1e-6)) << "the first position sees itself alone";
  Tensor mask = at::ones({5, 5}, at::kBool);
  mask.select(0, 3).fill_(false);
  const Tensor masked = Attend(q, k, v, mask, false, IValue(), false);
  EXPECT_TRUE(masked.select(2, 3).eq(0).all().item<bool>()) << "a row that sees nothing";
  EXPECT_TRUE(masked.select(2, 2).allclose(plain.select(2, 2), 1e-5, 1e-6));
  Tensor added = at::zeros({5, 5});
  added.select(0, 3).fill_(-kInfinity);
  EXPECT_TRUE(Attend(q, k, v, added, false, IValue(), false).allclose(masked, 1e-5, 1e-6));
  EXPECT_TRUE(Attend(q, k, v, IValue(), false, 0.0, false).select(2, 0).allclose(v.mean(2), 1e-5, 1e-6));
  const Tensor shared = Attend(q, k.slice(1, 0, 2), v.slice(1, 0, 2), IValue(), false, IValue(), true);
  const Tensor repeated = Attend(q, k.slice(1, 0, 2).repeat_interleave(2, 1), v.slice(1, 0, 2).repeat_interleave(2, 1),
                                 IValue(), false, IValue(), false);
  EXPECT_TRUE(shared.allclose(repeated, 1e-5, 1e-6));
  const Stack flash =
      CallShim("aten::_scaled_dot_product_flash_attention_for_cpu", "", {q, k, v, 0.0, false, IValue(), IValue()});
  EXPECT_TRUE(flash[0].toTensor().allclose(plain, 1e-5, 1e-6));
  EXPECT_TRUE(flash[1].toTensor().allclose(scores.logsumexp(-1), 1e-5, 1e-6));
  const Tensor rows = at::tensor({1.0f, 2.0f, -kInfinity, -kInfinity}).view({2, 2});
  const Tensor safe = One("aten::_safe_softmax", "", {rows, int64_t{-1}, IValue()});
  EXPECT_TRUE(safe.select(0, 1).eq(0).all().item<bool>());
  EXPECT_TRUE(safe.select(0, 0).allclose(rows.select(0, 0).softmax(-1)));
}

TEST_F(Shims, Norms) {
  const Tensor x = at::randn({3, 4});
  const Tensor weight = at::randn({4});
  const Tensor expected = x / (x.pow(2).mean(-1, true) + 1e-3).sqrt() * weight;
  EXPECT_TRUE(One("aten::rms_norm", "", {x, std::vector<int64_t>{4}, weight, 1e-3}).allclose(expected, 1e-5, 1e-6));
  const Tensor half = x.to(at::kBFloat16);
  const Tensor of_half = One("aten::rms_norm", "", {half, std::vector<int64_t>{4}, IValue(), 1e-3});
  EXPECT_EQ(of_half.scalar_type(), at::kBFloat16);
  // Without an epsilon, that of what is computed in. Up to 2.6, LibTorch took that of the input.
  Stack unsaid = {half, std::vector<int64_t>{4}, IValue(), IValue()};
  FindShim("aten::rms_norm", "")->function(&unsaid);
  const Tensor wide = half.to(at::kFloat);
  const double epsilon = std::numeric_limits<float>::epsilon();
  EXPECT_TRUE(unsaid[0].toTensor().equal((wide * (wide.pow(2).mean(-1, true) + epsilon).rsqrt()).to(at::kBFloat16)));
  CallShim("aten::_fused_rms_norm", "", {x, std::vector<int64_t>{4}, weight, 1e-3});
  const Tensor pixels = at::randn({2, 4, 3, 3});
  const Tensor bias = at::randn({4});
  const Tensor mean = at::randn({4});
  const Tensor variance = at::rand({4}) + 0.5;
  const Tensor still =
      One("aten::_native_batch_norm_legit_no_training", "", {pixels, weight, bias, mean, variance, 0.1, 1e-5});
  EXPECT_TRUE(still.allclose(at::batch_norm(pixels, weight, bias, mean, variance, false, 0.1, 1e-5, false)));
  const Stack moved = CallShim("aten::_native_batch_norm_legit_functional", "",
                               {pixels, weight, bias, mean, variance, true, 0.1, 1e-5});
  EXPECT_FALSE(moved[3].toTensor().equal(mean)) << "new statistics";
  const Stack updated =
      CallShim("aten::_batch_norm_with_update_functional", "", {pixels, weight, bias, mean, variance, 0.1, 1e-5});
  EXPECT_TRUE(updated[0].toTensor().equal(moved[0].toTensor()));
  for (const size_t k : {3, 4}) EXPECT_TRUE(updated[k + 1].toTensor().equal(moved[k].toTensor()));
  Tensor own = mean.clone();
  const Tensor old = mean.clone();
  Tensor own_variance = variance.clone();
  const Shim* writing = FindShim("aten::_native_batch_norm_legit", "");
  Stack stack = {pixels, weight, bias, own, own_variance, true, 0.1, 1e-5};
  writing->function(&stack);
  EXPECT_TRUE(own.allclose(moved[3].toTensor()));
  EXPECT_TRUE(mean.equal(old));
  EXPECT_TRUE(stack[0].toTensor().allclose(
      One("aten::_native_batch_norm_legit", "no_stats", {pixels, weight, bias, true, 0.1, 1e-5})));
}

TEST_F(Shims, Shapes) {
  const Tensor x = at::randn({1, 3, 1, 2});
  const Tensor squeezed = One("aten::squeeze", "dims", {x, std::vector<int64_t>{0, -2, 1}});
  EXPECT_EQ(squeezed.sizes(), at::IntArrayRef({3, 2}));
  EXPECT_TRUE(squeezed.is_alias_of(x));
  const Tensor empty = One("aten::empty_permuted", "",
                           {std::vector<int64_t>{2, 3, 4}, std::vector<int64_t>{0, 2, 1},
                            static_cast<int64_t>(at::kDouble), IValue(), IValue(), IValue()});
  EXPECT_EQ(empty.sizes(), at::IntArrayRef({2, 3, 4}));
  EXPECT_EQ(empty.strides(), at::IntArrayRef({12, 1, 3}));
  EXPECT_EQ(empty.scalar_type(), at::kDouble);
  const Tensor flags = at::tensor({1, 0, 0, 0}, at::kInt).view({2, 2}).to(at::kBool);
  EXPECT_TRUE(One("aten::any", "dims", {flags, std::vector<int64_t>{0, 1}, false}).item<bool>());
  EXPECT_FALSE(One("aten::all", "dims", {flags, IValue(), false}).item<bool>());
  EXPECT_EQ(One("aten::any", "dims", {flags, std::vector<int64_t>{-1}, true}).sizes(), at::IntArrayRef({2, 1}));
  // No dimension is none, and None is all; bytes stay bytes.
  EXPECT_TRUE(at::equal(One("aten::any", "dims", {flags, std::vector<int64_t>{}, false}), flags));
  EXPECT_TRUE(at::equal(One("aten::all", "dims", {x, std::vector<int64_t>{}, false}), x.ne(0)));
  EXPECT_EQ(One("aten::any", "dims", {flags.to(at::kByte), IValue(), false}).scalar_type(), at::kByte);
  EXPECT_EQ(One("aten::any", "dims", {flags.to(at::kByte), std::vector<int64_t>{}, false}).scalar_type(), at::kByte);
  const auto number = [&](const std::string& name, const std::string& overload, const Stack& arguments) {
    return CallShim(name, overload, arguments)[0].toInt();
  };
  EXPECT_EQ(number("aten::sym_size", "int", {x, int64_t{-1}}), 2);
  EXPECT_EQ(number("aten::sym_stride", "int", {x, int64_t{1}}), 2);
  EXPECT_EQ(number("aten::sym_numel", "", {x}), 6);
  EXPECT_EQ(number("aten::sym_storage_offset", "", {x}), 0);
}

TEST_F(Shims, GroupedProducts) {
  const Tensor x = at::randn({5, 3});
  const Tensor w = at::randn({3, 3, 2});
  const Tensor ends = at::tensor({2, 2, 4}, at::kInt);
  const Tensor y = One("transformers::grouped_mm_fallback", "", {x, w, ends});
  EXPECT_TRUE(y.slice(0, 0, 2).allclose(x.slice(0, 0, 2).mm(w[0]), 1e-5, 1e-6));
  EXPECT_TRUE(y.slice(0, 2, 4).allclose(x.slice(0, 2, 4).mm(w[2]), 1e-5, 1e-6));
  EXPECT_TRUE(y[4].eq(0).all().item<bool>());
}

TEST_F(Shims, Checks) {
  const auto why = [](const std::string& name, const std::string& overload, Stack arguments) {
    return MessageOf([&] { FindShim(name, overload)->function(&arguments); });
  };
  EXPECT_EQ(why("aten::_assert_scalar", "", {true, "holds"}), "(no error)");
  EXPECT_THAT(why("aten::_assert_scalar", "", {false, "is equal"}), HasSubstr("asserts: is equal"));
  EXPECT_THAT(why("aten::_assert_async", "msg", {at::zeros({}), "is one"}), HasSubstr("asserts: is one"));
  EXPECT_THAT(why("aten::_assert_async", "", {at::zeros({})}), HasSubstr("asserts"));
  EXPECT_EQ(why("aten::sym_constrain_range_for_size", "", {int64_t{3}, IValue(), int64_t{4}}), "(no error)");
  EXPECT_THAT(why("aten::sym_constrain_range_for_size", "", {int64_t{7}, int64_t{2}, int64_t{4}}),
              HasSubstr("is 7, the model was exported for 2 to 4"));
  EXPECT_THAT(why("aten::sym_constrain_range", "", {int64_t{1}, int64_t{2}, IValue()}), HasSubstr("2 or more"));
  EXPECT_EQ(FindShim("aten::relu", ""), nullptr);
}

}  // namespace
}  // namespace addend::exported
