// The laws that every rule obeys, judged case by case. A new rule needs a line in core/rules/cases: without one,
// EveryRuleHasACase fails.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "core/rules/cases/cases.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

// The mean of a few samples in each bin of each box, as torchvision documents it.
at::Tensor RoiAlign(const at::Tensor& input, const at::Tensor& rois, double scale, int64_t height, int64_t width,
                    int64_t ratio, bool aligned) {
  std::vector<at::Tensor> boxes;
  for (int64_t k = 0; k < rois.size(0); ++k) {
    const auto number = [&](int64_t column) { return rois[k][column].item<double>(); };
    at::Tensor box = input[static_cast<int64_t>(number(0))];
    for (const int64_t d : {int64_t{1}, int64_t{2}}) {  // along y, then along x
      const int64_t bins = d == 1 ? height : width;
      const double shift = aligned ? 0.5 : 0;
      const double first = number(d == 1 ? 2 : 1) * scale - shift;
      const double last = number(d == 1 ? 4 : 3) * scale - shift;
      const double length = aligned ? last - first : std::max(last - first, 1.0);
      const double size = static_cast<double>(box.size(d));
      const at::Tensor place =
          (at::arange(bins * ratio, input.options()) + 0.5) * (length / static_cast<double>(bins * ratio)) + first;
      const at::Tensor inside = place.ge(-1).logical_and(place.le(size));
      const at::Tensor at_most = place.clamp(0, size - 1);
      const at::Tensor low = at_most.floor();
      const at::Tensor high = (low + 1).clamp_max(size - 1);
      at::DimVector shape(3, 1);
      shape[d] = bins * ratio;
      const at::Tensor share = (at_most - low).view(shape);
      const at::Tensor read =
          box.index_select(d, low.to(at::kLong)) * (1 - share) + box.index_select(d, high.to(at::kLong)) * share;
      box = (read * inside.view(shape)).unflatten(d, at::IntArrayRef({bins, ratio})).mean(d + 1);
    }
    boxes.push_back(box);
  }
  return at::stack(boxes);
}

// Under torchvision's name, since nothing of torchvision is linked.
TORCH_LIBRARY_FRAGMENT(torchvision, library) {
  library.def(
      "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int "
      "sampling_ratio, bool aligned) -> Tensor",
      &RoiAlign);
}

TEST(RoiAlignTest, BoxesAreTheValuesForEveryRow) {
  Draw draw(at::kDouble);
  const at::Tensor boxes = at::stack({draw.Uniform({3}, 0, 0.9).floor(), draw.Uniform({3}, 0, 2),
                                      draw.Uniform({3}, 0, 2), draw.Uniform({3}, 3, 5), draw.Uniform({3}, 3, 5)},
                                     1);
  const OperatorCall op("torchvision::roi_align", {draw.Moving({1, 2, 5, 6}), GivenArgument(boxes + 0.25, boxes), 1.0,
                                                   int64_t{2}, int64_t{2}, int64_t{2}, false});
  const RuleCall both = op.Describe(Faithful());
  const RuleResult rule = BuildRule(both);
  EXPECT_EQ(rule.inputs, std::vector<int>({0}));
  EXPECT_FALSE(rule.exact);
  const at::Tensor moved = rule.map->Forward({both.Move(0).unsqueeze(0)})[0].select(0, 0);
  const at::Tensor resting = both.run(both.arguments, {both.operands[0].reference, both.operands[1].value})[0];
  EXPECT_LE(Difference(both.outputs[0].value - resting, moved), 1e-12);
  EXPECT_EQ(BuildRule(op.Describe(Faithful(), /*decomposed=*/2)).kind, Kind::kOpaque);
}

TEST(CasesTest, EveryRuleHasACase) {
  std::set<const Rule*> covered;
  for (const Case& c : Cases()) {
    const auto names = RuleNames(c.op);
    const Rule* rule = Registry::Default().Find(names.first, names.second);
    EXPECT_NE(rule, nullptr) << c.op;
    covered.insert(rule);
  }
  for (const Rule* rule : Registry::Default().All()) {
    // Results that depend on sizes only carry no rows, so that there is nothing to judge.
    if (rule->plain_output) continue;
    EXPECT_EQ(covered.count(rule), 1u) << rule->name << " has no case: add one in core/rules/cases";
  }
}

// Where a newer version of LibTorch dropped more, its operators need a look at what replaced them.
TEST(CasesTest, FewOperatorsAreMissingInThisLibTorch) {
  const std::set<std::string> dropped = {"aten::cholesky", "aten::symeig"};
  // Those that came after the oldest LibTorch.
  const std::set<std::string> came = {"aten::_batch_norm_with_update",
                                      "aten::_lazy_clone",
                                      "aten::_native_batch_norm_legit",
                                      "aten::_native_batch_norm_legit.no_stats",
                                      "aten::_native_batch_norm_legit_no_training",
                                      "aten::_unsafe_index.Tensor",
                                      "aten::_unsafe_index_put",
                                      "aten::_upsample_lanczos2d_aa",
                                      "aten::linalg_matrix_sqrth",
                                      "aten::linalg_polar"};
  for (const Case& c : Cases()) EXPECT_TRUE(IsHere(c.op) || dropped.count(c.op) || came.count(c.op)) << c.op;
}

TEST(CasesTest, RulesThatCoverComplexTensorsHaveAComplexCase) {
  std::set<const Rule*> covered;
  std::set<const Rule*> missing;
  for (const Case& c : Cases()) {
    if (!IsHere(c.op)) {
      const auto names = RuleNames(c.op);
      missing.insert(Registry::Default().Find(names.first, names.second));
      continue;
    }
    Draw draw(at::kDouble);
    const RuleCall call = OperatorCall(c.op, c.arguments(draw)).Describe(Faithful());
    const auto complex = [](const auto& t) { return t.value.defined() && t.value.is_complex(); };
    if (std::any_of(call.operands.begin(), call.operands.end(), complex) ||
        std::any_of(call.outputs.begin(), call.outputs.end(), complex)) {
      covered.insert(&RuleOf(call));
    }
  }
  for (const Rule* rule : Registry::Default().All()) {
    if (missing.count(rule) != 0) continue;
    EXPECT_EQ(covered.count(rule), rule->complex ? 1u : 0u) << rule->name;
  }
}

TEST(CasesTest, PlainOutputsPassNothing) {
  int found = 0;
  for (const Rule* rule : Registry::Default().All()) {
    if (!rule->plain_output) continue;
    ++found;
    const RuleResult result = rule->build(RuleCall());
    EXPECT_EQ(result.map, nullptr) << rule->name;
    EXPECT_TRUE(result.inputs.empty()) << rule->name;
  }
  EXPECT_GT(found, 0);
}

// ---------------------------------------------------------------------------------------------------------- the laws

bool Single(const at::Tensor& t) { return t.scalar_type() == at::kFloat || t.scalar_type() == at::kComplexFloat; }

// What rounding leaves of a relation that holds exactly: the sums here have some hundred terms at most. float32 loses
// up to eps / 2e-3 = 6e-5 of a slope to cancellation just above the move at which the derivative replaces the secant,
// but that is a part of the move, not of the value.
double Rounding(const RuleCall& call) {
  bool single = false;
  for (const RuleOperand& operand : call.operands) single |= operand.decomposed && Single(operand.value);
  for (const RuleOutput& output : call.outputs) single |= Single(output.value);
  return single ? 2e-5 : 1e-10;
}

using Parameter = std::tuple<size_t, at::ScalarType>;

// Indices, so that each case draws the same numbers with every version of LibTorch.
std::vector<size_t> CasesHere() {
  std::vector<size_t> here;
  for (size_t index = 0; index < Cases().size(); ++index) {
    if (IsHere(Cases()[index].op)) here.push_back(index);
  }
  return here;
}

std::string NameOf(const testing::TestParamInfo<Parameter>& info) {
  const Case& c = Cases()[std::get<0>(info.param)];
  const std::string op = c.op;
  std::string name = op.substr(op.find("::") + 2) + (c.what[0] == '\0' ? "" : "_") + c.what;
  for (char& letter : name) letter = letter == '.' ? '_' : letter;
  return name + (std::get<1>(info.param) == at::kDouble ? "_f64" : "_f32");
}

class LawTest : public testing::TestWithParam<Parameter> {
 protected:
  const Case& TheCase() const { return Cases()[std::get<0>(GetParam())]; }
  OperatorCall Call() const {
    Draw draw(std::get<1>(GetParam()), 1000 + std::get<0>(GetParam()));
    return OperatorCall(TheCase().op, TheCase().arguments(draw));
  }
  Draw Drawer() const { return Draw(std::get<1>(GetParam()), 7); }

  // Difference between what rows and cotangents of size one give.
  template <typename T>
  static double Apart(const T& a, const T& b) {
    return Difference(a, b, 1);
  }

  // What autograd can judge: it knows the statistics of a norm as numbers only, and it differentiates outputs that stay
  // infinite, through which rules pass nothing.
  static Rows Judged(const RuleCall& call, Rows cotangents) {
    for (size_t k = 1; k < cotangents.size(); ++k) cotangents[k] = at::Tensor();
    const RuleOutput& output = call.outputs[0];
    cotangents[0].masked_fill_(output.value.isinf().logical_and(output.value.eq(output.reference)), 0);
    return cotangents;
  }

  // For every choice of operands that are decomposed and both presets.
  void ForEach(const OperatorCall& op, const std::function<void(const RuleCall&, const RuleResult&)>& judge,
               bool faithful_only = false) const {
    ASSERT_GT(op.movable(), 0);
    for (uint32_t decomposed = 1; decomposed < (1u << op.movable()); ++decomposed) {
      for (const Policy* policy : {&Faithful(), &Fast()}) {
        if (faithful_only && policy == &Fast()) continue;
        SCOPED_TRACE(testing::Message() << "decomposed operands " << decomposed << ", preset "
                                        << PresetName(policy->preset));
        const RuleCall call = op.Describe(*policy, decomposed);
        judge(call, BuildRule(call));
      }
    }
  }
};

TEST_P(LawTest, RowsMoveLinearlyAndAlone) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    for (const int input : rule.inputs) EXPECT_TRUE(call.operands[input].decomposed);
    if (!rule.map) return;
    Draw draw = Drawer();
    const int64_t count = 5;
    const Rows r = RandomRows(draw, call, rule, count);
    const Rows s = RandomRows(draw, call, rule, count);
    Rows mixed;
    Rows untouched;
    Rows transposed_strides;
    for (size_t k = 0; k < r.size(); ++k) {
      mixed.push_back(2.5 * r[k] - 0.75 * s[k]);
      untouched.push_back(r[k].clone());
      transposed_strides.push_back(r[k].transpose(0, -1).contiguous().transpose(0, -1));
    }
    const Rows of_r = rule.map->Forward(r);
    const Rows of_s = rule.map->Forward(s);
    ASSERT_GE(of_r.size(), 1u);
    ASSERT_LE(of_r.size(), call.outputs.size());
    for (size_t k = 0; k < r.size(); ++k) EXPECT_TRUE(r[k].equal(untouched[k])) << "Forward writes into its rows";
    Rows sum;
    for (size_t k = 0; k < of_r.size(); ++k) {
      Sizes sizes(call.outputs[k].value.sizes().begin(), call.outputs[k].value.sizes().end());
      sizes.insert(sizes.begin(), count);
      EXPECT_EQ(of_r[k].sizes(), at::IntArrayRef(sizes));
      sum.push_back(2.5 * of_r[k] - 0.75 * of_s[k]);
    }
    EXPECT_LE(Apart(rule.map->Forward(mixed), sum), Rounding(call));
    EXPECT_LE(Apart(rule.map->Forward(transposed_strides), of_r), Rounding(call)) << "rows of unusual strides";
    for (const int64_t i : {int64_t{0}, count - 1}) {
      Rows one;
      for (const at::Tensor& rows : r) one.push_back(rows.narrow(0, i, 1));
      const Rows of_one = rule.map->Forward(one);
      ASSERT_EQ(of_one.size(), of_r.size());
      for (size_t k = 0; k < of_r.size(); ++k) {
        EXPECT_LE(Apart(of_one[k], of_r[k].narrow(0, i, 1)), Rounding(call)) << "row " << i << " alone";
      }
    }
  });
}

TEST_P(LawTest, TransposeIsTheAdjoint) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 1);
    Rows cotangents = RandomCotangents(draw, call);
    const Rows forward = Pass(call, rule, rows, 1);
    const Rows back = rule.map->Transpose(cotangents);
    ASSERT_EQ(back.size(), rule.inputs.size());
    for (size_t k = 0; k < back.size(); ++k) {
      EXPECT_EQ(back[k].sizes(), call.operands[rule.inputs[k]].value.sizes());
    }
    Rows flat;
    for (const at::Tensor& output : forward) flat.push_back(output.defined() ? output.select(0, 0) : output);
    Rows row;
    for (const at::Tensor& input : rows) row.push_back(input.select(0, 0));
    const auto left = Inner(cotangents, flat);
    const auto right = Inner(back, row);
    EXPECT_LE(std::abs(left.first - right.first), Rounding(call) * (1 + left.second + right.second));
    // Cotangents of other strides, as they come out of views.
    for (at::Tensor& g : cotangents) {
      if (g.defined() && g.dim() > 1) g = g.transpose(0, -1).contiguous().transpose(0, -1);
    }
    EXPECT_LE(Apart(rule.map->Transpose(cotangents), back), Rounding(call)) << "cotangents of unusual strides";
  });
}

// Several cotangents at once are those one after the other, and apply and transpose agree on each of them with each
// row.
TEST_P(LawTest, TransposeRowsIsTheAdjointOfEachRow) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (!rule.map) return;
    Draw draw = Drawer();
    const int64_t count = 3;
    const Rows rows = RandomRows(draw, call, rule, count);
    const Rows forward = Pass(call, rule, rows, count);
    std::vector<Rows> each;
    for (int64_t i = 0; i < count; ++i) each.push_back(RandomCotangents(draw, call));
    Rows all;
    for (size_t k = 0; k < each[0].size(); ++k) {
      std::vector<at::Tensor> own;
      for (const Rows& one : each) own.push_back(one[k]);
      all.push_back(each[0][k].defined() ? at::stack(own) : at::Tensor());
    }
    const Rows back = rule.map->TransposeRows(all);
    ASSERT_EQ(back.size(), rule.inputs.size());
    for (size_t k = 0; k < back.size(); ++k) {
      Sizes sizes(call.operands[rule.inputs[k]].value.sizes().begin(),
                  call.operands[rule.inputs[k]].value.sizes().end());
      sizes.insert(sizes.begin(), count);
      EXPECT_EQ(back[k].sizes(), at::IntArrayRef(sizes));
    }
    for (int64_t i = 0; i < count; ++i) {
      Rows own;
      for (const at::Tensor& input : back) own.push_back(input.select(0, i));
      EXPECT_LE(Apart(own, rule.map->Transpose(each[i])), Rounding(call)) << "cotangent " << i;
      for (int64_t r = 0; r < count; ++r) {
        Rows applied;
        for (const at::Tensor& output : forward) applied.push_back(output.defined() ? output.select(0, r) : output);
        Rows row;
        for (const at::Tensor& input : rows) row.push_back(input.select(0, r));
        const auto left = Inner(each[i], applied);
        const auto right = Inner(own, row);
        EXPECT_LE(std::abs(left.first - right.first), Rounding(call) * (1 + left.second + right.second))
            << "cotangent " << i << ", row " << r;
      }
    }
  });
}

TEST_P(LawTest, NothingIsLeftOver) {
  ForEach(
      Call(),
      [&](const RuleCall& call, const RuleResult& rule) {
        if (rule.kind == Kind::kOpaque) {
          EXPECT_FALSE(rule.exact);
          return;
        }
        EXPECT_EQ(rule.exact, rule.kind != Kind::kPath);
        EXPECT_EQ(rule.quadrature > 0, rule.kind == Kind::kPath);
        EXPECT_LE(RelativeBracket(call, rule), Rounding(call) + 4 * rule.quadrature);
      },
      /*faithful_only=*/true);
}

// Where a rule still claims an empty bracket under the preset fast, it is empty.
TEST_P(LawTest, FastClaimsNothingFalse) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    size_t decomposed = 0;
    for (const RuleOperand& operand : call.operands) decomposed += operand.decomposed;
    if (rule.exact && rule.inputs.size() == decomposed) {
      EXPECT_LE(RelativeBracket(call, rule), Rounding(call));
    }
  });
}

TEST_P(LawTest, ShortcutsAgreeWithForward) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 3);
    const at::Tensor forward = rule.map->Forward(rows)[0];
    if (rule.map->Scale() != nullptr) {
      EXPECT_EQ(rows.size(), 1u);
      EXPECT_EQ(
          call.outputs.size() > 1 && call.outputs[1].value.is_floating_point() && call.outputs[1].value.numel() > 0,
          false);
      EXPECT_LE(Apart(rows[0] * *rule.map->Scale(), forward), Rounding(call));
    }
    if (rule.map->Identity()) {
      EXPECT_EQ(rows.size(), 1u);
      EXPECT_EQ(Difference(rows[0], forward), 0);
    }
    if (rule.map->Accumulates()) {
      at::Tensor target = rows[0].clone();
      Rows rest = rows;
      rest[0] = at::Tensor();  // a sweep does not give the rows that it writes
      rule.map->AddTo(target, rest);
      EXPECT_LE(Apart(target, forward), Rounding(call));
    }
  });
}

// Linear and affine rules are the operator itself without its constant, applied to one row after the other.
TEST_P(LawTest, LinearKindsAreTheOperatorRowByRow) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    if (rule.kind != Kind::kLinear && rule.kind != Kind::kAffine) return;
    Draw draw = Drawer();
    const int64_t count = 3;
    const Rows rows = RandomRows(draw, call, rule, count);
    const Rows forward = Pass(call, rule, rows, count);
    const auto run = [&](int64_t row) {
      std::vector<at::Tensor> operands;
      for (const RuleOperand& operand : call.operands) {
        operands.push_back(operand.decomposed ? operand.value * 0 : operand.value);
      }
      // Copies, since as_strided counts from the start of the storage.
      for (size_t k = 0; row >= 0 && k < rows.size(); ++k) operands[rule.inputs[k]] = rows[k].select(0, row).clone();
      return call.run(call.arguments, operands);
    };
    const auto constant = run(-1);
    for (int64_t row = 0; row < count; ++row) {
      const auto expected = run(row);
      for (size_t k = 0; k < expected.size(); ++k) {
        if (!forward[k].defined()) continue;
        EXPECT_LE(Apart(forward[k].select(0, row), expected[k] - constant[k]), Rounding(call)) << "row " << row;
      }
    }
  });
}

TEST_P(LawTest, StridesOfOperandsDoNotMatter) {
  const OperatorCall op = Call();
  const std::string name = std::string(TheCase().op) + " " + TheCase().what;
  for (const char* libtorch_fails : {"aten::convolution no_batch", "aten::conv_tbc", "aten::fractional_max_pool2d",
                                     "aten::slow_conv_transpose2d one_image"}) {
    if (name.find(libtorch_fails) == 0) return;
  }
  if (name == "aten::native_group_norm ") return;  // LibTorch itself fails
  // These view only what has the strides for it, or are about strides.
  for (const char* about_strides : {"aten::_unsafe_view", "aten::view_copy", "aten::_reshape_alias_copy",
                                    "aten::as_strided_scatter", "aten::as_strided_copy"}) {
    if (name.find(about_strides) == 0) return;
  }
  const OperatorCall strided = op.Strided();
  ForEach(op, [&](const RuleCall& call, const RuleResult& rule) {
    uint32_t decomposed = 0;
    int movable = 0;
    const RuleCall all = op.Describe(*call.policy);
    for (size_t k = 0; k < all.operands.size(); ++k) {
      if (!all.operands[k].decomposed) continue;
      decomposed |= (call.operands[k].decomposed ? 1u : 0u) << movable++;
    }
    const RuleCall other_call = strided.Describe(*call.policy, decomposed);
    const RuleResult other = BuildRule(other_call);
    ASSERT_EQ(other.inputs, rule.inputs);
    ASSERT_EQ(other.map == nullptr, rule.map == nullptr);
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 4);
    EXPECT_LE(Apart(other.map->Forward(rows), rule.map->Forward(rows)), Rounding(call));
    const Rows cotangents = RandomCotangents(draw, call);
    EXPECT_LE(Apart(other.map->Transpose(cotangents), rule.map->Transpose(cotangents)), Rounding(call));
  });
}

// Operators that LibTorch does not differentiate, or not as they are meant: it says that the derivative of a draw by
// the parameters of its distribution is zero. For normal and embedding_renorm see embedding_test.cc.
// A source from which scatter reads only a part makes autograd fail.
bool HasDerivative(const RuleCall& call, const Case& c) {
  static const auto& without = *new std::set<std::string>{"aten::scatter.reduce",
                                                          "aten::scatter.value_reduce",
                                                          "aten::narrow_copy",
                                                          "aten::nextafter",
                                                          "aten::channel_shuffle",
                                                          "aten::native_channel_shuffle",
                                                          "aten::detach_copy",
                                                          "aten::normal",
                                                          "aten::_embedding_bag_forward_only",
                                                          "aten::embedding_renorm",
                                                          "aten::as_strided_scatter"};
  if (std::string(c.what) == "larger_source") return false;
  return without.count(call.name) == 0 && without.count(call.name + "." + call.overload) == 0;
}

// Where nothing moves, L is the operator's derivative.
TEST_P(LawTest, WithoutAMoveItIsTheDerivative) {
  ForEach(
      Call().AtRest(),
      [&](const RuleCall& call, const RuleResult& rule) {
        // Zero, but that LAPACK may round the same numbers differently at another address: by a few units in the last
        // place, of which the bound is 17 in single precision.
        EXPECT_LE(RelativeBracket(call, rule), Rounding(call) / 10);
        if (!rule.map || rule.kind == Kind::kOpaque || !HasDerivative(call, TheCase())) return;
        if (call.name == "aten::_ctc_loss") return;  // LibTorch's derivative is one through log_softmax; special_test
        // Autograd has gradients for the triangle that these do not read; see linalg_test.cc.
        if (call.name == "aten::cholesky_inverse" || call.name == "aten::cholesky_solve") return;
        if (call.name == "aten::ormqr") return;  // LibTorch 1.13 does not differentiate it
        Draw draw = Drawer();
        const Rows cotangents = Judged(call, RandomCotangents(draw, call));
        EXPECT_LE(Apart(rule.map->Transpose(cotangents), MeanGradient(call, rule.inputs, cotangents, 1, false)),
                  Rounding(call));
      },
      /*faithful_only=*/true);
}

// The sum of all cases in both dtypes takes seconds; the next law differentiates each operator hundreds of times.
INSTANTIATE_TEST_SUITE_P(Rules, LawTest,
                         testing::Combine(testing::ValuesIn(CasesHere()), testing::Values(at::kFloat, at::kDouble)),
                         NameOf);

class PathLawTest : public LawTest {};

// One operator by the path rule: its transpose is the mean of autograd's gradients along the line. This holds for all
// kinds but Rewrite and division, which are several operators, each by its own path rule.
TEST_P(PathLawTest, TheMapIsTheMeanDerivative) {
  ForEach(
      Call(),
      [&](const RuleCall& call, const RuleResult& rule) {
        if (!rule.map || rule.kind == Kind::kRewrite || rule.kind == Kind::kOpaque || !HasDerivative(call, TheCase()))
          return;
        if (call.name == "aten::div" && rule.inputs.size() > 1) return;
        if (call.name == "aten::_ctc_loss")
          return;  // LibTorch's derivative is one through log_softmax; see special_test
        if (std::string(TheCase().what) == "across_zero") return;  // a pole on the line: the mean does not exist
        const bool corners = TheCase().corners;
        // Corners: every piece that holds one is wrong by at most its length, and there are a few of them per element.
        const int pieces = corners ? 2000 : 100;
        const double tolerance = corners ? 4.0 / pieces : Rounding(call) + 4 * rule.quadrature;
        Draw draw = Drawer();
        const Rows cotangents = Judged(call, RandomCotangents(draw, call));
        EXPECT_LE(Apart(rule.map->Transpose(cotangents), MeanGradient(call, rule.inputs, cotangents, pieces, !corners)),
                  tolerance);
      },
      /*faithful_only=*/true);
}

INSTANTIATE_TEST_SUITE_P(Rules, PathLawTest,
                         testing::Combine(testing::ValuesIn(CasesHere()), testing::Values(at::kDouble)), NameOf);

}  // namespace
}  // namespace addend
