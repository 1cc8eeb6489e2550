// The laws that every rule obeys, judged case by case. A new rule needs a line in core/rules/cases: without one,
// EveryRuleHasACase fails.
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "core/intercept/operator.h"
#include "core/program/call_text.h"
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

// Arguments and results of an overload. `names`: of the arguments that are not out=.
struct Signature {
  std::vector<std::string> names;
  std::set<std::string> optional;  // those that have a default
  std::set<std::string> words;     // those that are text, such as names of dimensions
  std::vector<std::string> results;
  bool out = false;
  bool tensors = false;
};

Signature SignatureOf(const c10::FunctionSchema& schema) {
  Signature own;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.is_out()) {
      own.out = true;
      continue;
    }
    own.names.push_back(argument.name());
    own.tensors = own.tensors || argument.type()->str().find("Tensor") != std::string::npos;
    if (argument.default_value().has_value()) own.optional.insert(argument.name());
    if (argument.type()->str().find("str") != std::string::npos) own.words.insert(argument.name());
  }
  for (const c10::Argument& result : schema.returns()) own.results.push_back(result.type()->str());
  return own;
}

// Whether a rule that is right for `judged` reads the same of `other`.
bool Alike(const Signature& other, const Signature& judged) {
  const std::set<std::string> theirs(judged.names.begin(), judged.names.end());
  const std::set<std::string> own(other.names.begin(), other.names.end());
  for (const std::string& name : own) {
    if (theirs.count(name) == 0 || other.words.count(name) != judged.words.count(name)) return false;
  }
  for (const std::string& name : theirs) {
    if (own.count(name) == 0 && judged.optional.count(name) == 0) return false;
  }
  return other.out || other.results == judged.results;
}

// Overloads whose other arguments say what a rule reads elsewhere. `full`: "aten::upsample_linear1d.vec".
bool SaysTheSame(const std::string& full) {
  const auto is = [&](const char* name) { return full.rfind(name, 0) == 0; };
  // Sizes, which are those of the operands and the result.
  if (full.find(".vec") != std::string::npos && (is("aten::upsample_") || is("aten::_upsample_"))) return true;
  // Tolerances of the singular values that count, and arguments of the library that computes.
  if (is("aten::linalg_pinv") || full == "aten::_convolution.deprecated") return true;
  // Draws from any range pass nothing.
  if (is("aten::random")) return true;
  // Bytes as another dtype: parts of another shape are refused, and others miss the value.
  return is("aten::view_copy.dtype");
}

// mm.dtype, which multiplies half types into float32, is for GPUs alone.
bool RunsOnCpu(const c10::FunctionSchema& schema) {
  const auto handle = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  return handle.has_value() && handle->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

// A rule without an overload in its name serves all of them, also those that mean something else: where(condition) is
// no choice between two tensors. Each has to be like one that a case calls.
TEST(CasesTest, ARuleThatServesAllOverloadsHasACaseOfEachKind) {
  std::map<std::string, std::vector<Signature>> judged;  // by rule
  const auto add = [&](const std::string& op) {
    if (!IsHere(op)) return;
    const auto names = RuleNames(op);
    const Rule* rule = Registry::Default().Find(names.first, names.second);
    const std::string name = op.substr(0, op.find('.'));
    const std::string overload = op.find('.') == std::string::npos ? "" : op.substr(op.find('.') + 1);
    for (const Operator& found : Operator::Overloads(name)) {
      if (rule != nullptr && found.schema().overload_name() == overload) {
        judged[rule->name].push_back(SignatureOf(found.schema()));
      }
    }
  };
  for (const Case& c : Cases()) add(c.op);
  int served = 0;
  for (const Rule* rule : Registry::Default().All()) {
    if (rule->plain_output || rule->name.find('.') != std::string::npos) continue;
    for (const std::string& name : {rule->name, rule->name + "_"}) {
      for (const Operator& op : Operator::Overloads(name)) {
        const std::string full = FullName(op.schema());
        const Signature own = SignatureOf(op.schema());
        // Such calls are taken apart, and their parts number the dimensions.
        if (own.words.count("dim") != 0 && op.composite()) continue;
        if (SaysTheSame(full) || !RunsOnCpu(op.schema())) continue;
        if (!own.tensors || Registry::Default().Find(rule->name, RuleNames(full).second) != rule) continue;
        const auto& known = judged[rule->name];
        ++served;
        EXPECT_TRUE(std::any_of(known.begin(), known.end(), [&](const Signature& s) { return Alike(own, s); }))
            << full << " has arguments or results that no case of " << rule->name << " has: " << op.schema();
      }
    }
  }
  EXPECT_GT(served, 500);
}

// A newer version of LibTorch that dropped more operators fails here: what replaced them needs a look.
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
                                      "aten::linalg_polar",
                                      "aten::squeeze_copy.dims"};
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

// CUDA's kernel of max pooling's gradient asks each element which windows around it point at it, so that an index
// outside of its own window is lost there; the CPU's kernel adds wherever the index points.
TEST(CasesTest, IndicesOfMaxPoolingPointIntoTheirWindows) {
  int judged = 0;
  for (const Case& c : Cases()) {
    const std::string op = c.op;
    if (op.rfind("aten::max_pool", 0) != 0 || op.find("_with_indices_backward") == std::string::npos) continue;
    Draw draw(at::kDouble);
    const Arguments arguments = c.arguments(draw);
    const auto list = [&](size_t position) { return arguments[position].value.toIntVector(); };
    const std::vector<int64_t> kernel = list(2), stride = list(3), padding = list(4), dilation = list(5);
    const at::Tensor input = arguments[1].value.toTensor(), indices = arguments[7].value.toTensor();
    const int64_t spatial = static_cast<int64_t>(kernel.size());
    const at::Tensor flat = indices.flatten();
    for (int64_t k = 0; k < flat.numel(); ++k) {
      int64_t place = k, element = flat[k].item<int64_t>();
      for (int64_t d = spatial - 1; d >= 0; --d) {
        const int64_t begin = place % indices.size(d - spatial) * stride[d] - padding[d];
        const int64_t within = element % input.size(d - spatial) - begin;
        EXPECT_TRUE(within >= 0 && within < kernel[d] * dilation[d] && within % dilation[d] == 0)
            << op << "." << c.what << ": index " << flat[k].item<int64_t>() << " of window " << k;
        place /= indices.size(d - spatial);
        element /= input.size(d - spatial);
      }
      EXPECT_EQ(element, 0);
      ++judged;
    }
  }
  EXPECT_GT(judged, 10);
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

// Tolerance for rounding in a relation that holds exactly: the sums here have some hundred terms at most. float32 loses
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

// A case in one dtype, which the laws judge.
class Subject {
 public:
  Subject(size_t index, at::ScalarType dtype) : index_(index), dtype_(dtype) {}

  const Case& TheCase() const { return Cases()[index_]; }
  OperatorCall Call() const {
    Draw draw(dtype_, 1000 + index_);
    return OperatorCall(TheCase().op, TheCase().arguments(draw));
  }
  Draw Drawer() const { return Draw(dtype_, 7); }

  // Difference between what rows and cotangents of size one give.
  template <typename T>
  static double Apart(const T& a, const T& b) {
    return Difference(a, b, 1);
  }

  // Returns the cotangents that autograd can judge: it knows the statistics of a norm as numbers only, and it
  // differentiates outputs that stay infinite, through which rules pass nothing.
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

 private:
  size_t index_;
  at::ScalarType dtype_;
};

class LawTest : public testing::TestWithParam<Parameter>, public Subject {
 protected:
  LawTest() : Subject(std::get<0>(GetParam()), std::get<1>(GetParam())) {}
};

// A law that a case does not have to obey.
struct Exclusion {
  const char* law;
  const char* op;    // without an overload: all of them
  const char* what;  // nullptr: all cases of the operator
  const char* reason;
  // Only some versions of LibTorch fail here.
  bool by_libtorch = false;
};

constexpr char kStrides[] = "StridesOfOperandsDoNotMatter";
constexpr char kDerivative[] = "WithoutAMoveItIsTheDerivative";
constexpr char kMeanDerivative[] = "TheMapIsTheMeanDerivative";

std::vector<Exclusion> AllExclusions() {
  std::vector<Exclusion> all = {
      {kStrides, "aten::convolution", "no_batch", "LibTorch fails with such strides", true},
      {kStrides, "aten::conv_tbc", nullptr, "LibTorch fails with such strides", true},
      {kStrides, "aten::fractional_max_pool2d", nullptr, "LibTorch fails with such strides", true},
      {kStrides, "aten::fractional_max_pool3d", nullptr, "LibTorch fails with such strides", true},
      {kStrides, "aten::slow_conv_transpose2d", "one_image", "LibTorch fails with such strides", true},
      {kStrides, "aten::native_group_norm", "", "LibTorch fails with such strides", true},
      {kStrides, "aten::_unsafe_view", nullptr, "views only what has the strides for it"},
      {kStrides, "aten::_reshape_alias_copy", nullptr, "is about strides"},
      {kStrides, "aten::as_strided_scatter", nullptr, "is about strides"},
      {kStrides, "aten::as_strided_copy", nullptr, "is about strides"},
      // The mean along a line with a pole does not exist.
      {kMeanDerivative, nullptr, "across_zero", "a pole is on the line"},
  };
  // A step's mean derivative is its height, which autograd does not see.
  for (const char* op :
       {"aten::threshold_backward", "aten::leaky_relu_backward", "aten::hardtanh_backward",
        "aten::hardsigmoid_backward", "aten::hardswish_backward", "aten::softshrink_backward", "aten::elu_backward"}) {
    all.push_back({kMeanDerivative, op, nullptr, "its derivative has steps"});
  }
  // LibTorch 2.15 draws other numbers, of which none moves across a step.
  all.push_back({kMeanDerivative, "aten::hardshrink_backward", nullptr, "its derivative has steps", true});
  all.push_back({kMeanDerivative, "aten::rrelu_with_noise_backward", "", "its derivative has steps"});
  all.push_back({kMeanDerivative, "addend::tree_ensemble", nullptr, "it has steps; see trees_test.cc"});
  for (const char* op : {"aten::sign", "aten::sgn"}) all.push_back({kMeanDerivative, op, nullptr, "it has steps"});
  // At rest such a function has its mean slope; see Note [Steps at rest] in core/rules/steps.h.
  for (const char* law : {kDerivative, kMeanDerivative}) {
    for (const char* op : {"aten::round", "aten::floor", "aten::ceil", "aten::trunc", "aten::round.decimals",
                           "aten::floor_divide", "aten::div.Scalar_mode", "aten::heaviside"}) {
      all.push_back({law, op, nullptr, "it has steps"});
    }
    for (const char* name : {"", "floor", "trunc"}) {
      all.push_back({law, "aten::div.Tensor_mode", name, "it has steps"});
    }
  }
  // Cases that autograd cannot judge, at rest or along the line.
  const std::vector<Exclusion> derivatives = {
      {nullptr, "aten::scatter.reduce", nullptr, "LibTorch does not differentiate it"},
      {nullptr, "aten::scatter.value_reduce", nullptr, "LibTorch does not differentiate it"},
      {nullptr, "aten::narrow_copy", nullptr, "LibTorch does not differentiate it", true},
      {nullptr, "aten::nextafter", nullptr, "LibTorch does not differentiate it", true},
      {nullptr, "aten::channel_shuffle", nullptr, "LibTorch does not differentiate it", true},
      {nullptr, "aten::native_channel_shuffle", nullptr, "LibTorch does not differentiate it", true},
      {nullptr, "aten::detach_copy", nullptr, "LibTorch does not differentiate it", true},
      {nullptr, "aten::normal", nullptr, "LibTorch's derivative of a draw is zero; see embedding_test.cc"},
      {nullptr, "aten::_embedding_bag_forward_only", nullptr, "LibTorch does not differentiate it"},
      {nullptr, "aten::as_strided_scatter", nullptr, "LibTorch differentiates another function", true},
      {nullptr, nullptr, "larger_source", "scatter reads a part of the source, with which autograd fails", true},
      {nullptr, "aten::_ctc_loss", nullptr, "LibTorch's derivative is one through log_softmax; see special_test.cc"},
      {nullptr, nullptr, "bessel", "most LibTorchs do not differentiate it; see special_test.cc", true},
  };
  for (const char* law : {kDerivative, kMeanDerivative}) {
    for (Exclusion exclusion : derivatives) {
      exclusion.law = law;
      all.push_back(exclusion);
    }
  }
  all.push_back(
      {kDerivative, "aten::embedding_renorm", nullptr, "LibTorch does not differentiate it; see embedding_test.cc"});
  const char* triangle = "autograd has gradients for the triangle that is not read; see linalg_test.cc";
  all.push_back({kDerivative, "aten::cholesky_inverse", nullptr, triangle});
  all.push_back({kDerivative, "aten::cholesky_solve", nullptr, triangle});
  all.push_back({kDerivative, "aten::ormqr", nullptr, "LibTorch does not differentiate it", true});
  all.push_back({kDerivative, "aten::hardsigmoid_backward", nullptr, "LibTorch does not differentiate it", true});
  return all;
}

const std::vector<Exclusion>& Exclusions() {
  static const auto& all = *new std::vector<Exclusion>(AllExclusions());
  return all;
}

bool Matches(const Exclusion& exclusion, const Case& c) {
  const auto names = RuleNames(c.op);
  const bool op = exclusion.op == nullptr || names.first == exclusion.op || names.second == exclusion.op;
  return op && (exclusion.what == nullptr || std::string(exclusion.what) == c.what);
}

// Null where the case has to obey the law.
const Exclusion* Excluded(const char* law, const Case& c) {
  for (const Exclusion& exclusion : Exclusions()) {
    if (std::string(exclusion.law) == law && Matches(exclusion, c)) return &exclusion;
  }
  return nullptr;
}

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

// Brackets that a rule claims to be empty under the preset fast are empty.
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

// A dropped value, as a run within a memory limit describes it.
at::Tensor Unknown(const at::Tensor& tensor) {
  return at::full({}, std::numeric_limits<double>::quiet_NaN(), tensor.options()).expand(tensor.sizes());
}

TEST_P(LawTest, WhatItDoesNotReadChangesNothing) {
  ForEach(Call(), [&](const RuleCall& call, const RuleResult& rule) {
    const auto moves = [](const RuleOperand& operand) { return operand.decomposed; };
    const auto decomposed = static_cast<int>(std::count_if(call.operands.begin(), call.operands.end(), moves));
    const ValuesRead reads = RuleOf(call).Reads(decomposed);
    if (reads.operands && reads.outputs) return;
    RuleCall less = call;
    for (RuleOperand& operand : less.operands) {
      if (operand.decomposed && !reads.operands) operand.value = operand.reference = Unknown(operand.value);
    }
    for (RuleOutput& output : less.outputs) {
      const bool numbers = output.value.defined() && (output.value.is_floating_point() || output.value.is_complex());
      if (numbers && !reads.outputs) output.value = output.reference = Unknown(output.value);
    }
    const RuleResult other = BuildRule(less);
    EXPECT_EQ(other.exact, rule.exact);
    EXPECT_EQ(other.inner_terms, rule.inner_terms);
    ASSERT_EQ(other.inputs, rule.inputs);
    ASSERT_EQ(other.map == nullptr, rule.map == nullptr);
    if (!rule.map) return;
    Draw draw = Drawer();
    const Rows rows = RandomRows(draw, call, rule, 3);
    EXPECT_EQ(Apart(other.map->Forward(rows), rule.map->Forward(rows)), 0);
    const Rows cotangents = RandomCotangents(draw, call);
    EXPECT_EQ(Apart(other.map->Transpose(cotangents), rule.map->Transpose(cotangents)), 0);
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

void CheckStrides(const Subject& subject) {
  const OperatorCall op = subject.Call();
  const OperatorCall strided = op.Strided();
  subject.ForEach(op, [&](const RuleCall& call, const RuleResult& rule) {
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
    Draw draw = subject.Drawer();
    const Rows rows = RandomRows(draw, call, rule, 4);
    EXPECT_LE(Subject::Apart(other.map->Forward(rows), rule.map->Forward(rows)), Rounding(call));
    const Rows cotangents = RandomCotangents(draw, call);
    EXPECT_LE(Subject::Apart(other.map->Transpose(cotangents), rule.map->Transpose(cotangents)), Rounding(call));
  });
}

TEST_P(LawTest, StridesOfOperandsDoNotMatter) {
  if (const Exclusion* exclusion = Excluded(kStrides, TheCase())) GTEST_SKIP() << exclusion->reason;
  CheckStrides(*this);
}

TEST_P(LawTest, WithoutAMoveNothingIsLeftOver) {
  ForEach(
      Call().AtRest(),
      [&](const RuleCall& call, const RuleResult& rule) {
        // Zero, but that LAPACK may round the same numbers differently at another address: by a few units in the last
        // place, of which the bound is 17 in single precision.
        EXPECT_LE(RelativeBracket(call, rule), Rounding(call) / 10);
      },
      /*faithful_only=*/true);
}

// Checks that L is the operator's derivative if nothing moves.
void CheckDerivative(const Subject& subject) {
  subject.ForEach(
      subject.Call().AtRest(),
      [&](const RuleCall& call, const RuleResult& rule) {
        if (!rule.map || rule.kind == Kind::kOpaque) return;
        Draw draw = subject.Drawer();
        const Rows cotangents = Subject::Judged(call, RandomCotangents(draw, call));
        const Rows expected = MeanGradient(call, rule.inputs, cotangents, 1, false);
        EXPECT_LE(Subject::Apart(rule.map->Transpose(cotangents), expected), Rounding(call));
      },
      /*faithful_only=*/true);
}

TEST_P(LawTest, WithoutAMoveItIsTheDerivative) {
  if (const Exclusion* exclusion = Excluded(kDerivative, TheCase())) GTEST_SKIP() << exclusion->reason;
  CheckDerivative(*this);
}

// The sum of all cases in both dtypes takes seconds; the next law differentiates each operator hundreds of times.
INSTANTIATE_TEST_SUITE_P(Rules, LawTest,
                         testing::Combine(testing::ValuesIn(CasesHere()), testing::Values(at::kFloat, at::kDouble)),
                         NameOf);

class PathLawTest : public LawTest {};

// Whether the path rule of one operator gives the map: rewrites and quotients of two tensors that move are several
// operators, each by its own path rule.
bool IsOneOperator(const RuleCall& call, const RuleResult& rule) {
  if (!rule.map || rule.kind == Kind::kRewrite || rule.kind == Kind::kOpaque) return false;
  return call.name != "aten::div" || rule.inputs.size() == 1;
}

// One operator by the path rule: its transpose is the mean of autograd's gradients along the line.
void CheckMeanDerivative(const Subject& subject) {
  subject.ForEach(
      subject.Call(),
      [&](const RuleCall& call, const RuleResult& rule) {
        if (!IsOneOperator(call, rule)) return;
        const bool corners = subject.TheCase().corners;
        // Corners: every piece that holds one is wrong by at most its length, and there are a few of them per element.
        const int pieces = corners ? 2000 : 100;
        const double tolerance = corners ? 4.0 / pieces : Rounding(call) + 4 * rule.quadrature;
        Draw draw = subject.Drawer();
        const Rows cotangents = Subject::Judged(call, RandomCotangents(draw, call));
        const Rows expected = MeanGradient(call, rule.inputs, cotangents, pieces, !corners);
        EXPECT_LE(Subject::Apart(rule.map->Transpose(cotangents), expected), tolerance);
      },
      /*faithful_only=*/true);
}

TEST_P(PathLawTest, TheMapIsTheMeanDerivative) {
  if (const Exclusion* exclusion = Excluded(kMeanDerivative, TheCase())) GTEST_SKIP() << exclusion->reason;
  CheckMeanDerivative(*this);
}

INSTANTIATE_TEST_SUITE_P(Rules, PathLawTest,
                         testing::Combine(testing::ValuesIn(CasesHere()), testing::Values(at::kDouble)), NameOf);

// Whether a case breaks a law: the law fails, or LibTorch throws.
bool Breaks(void (*law)(const Subject&), const Subject& subject) {
  testing::TestPartResultArray failures;
  const testing::ScopedFakeTestPartResultReporter reporter(
      testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
  try {
    law(subject);
  } catch (const std::exception&) {
    return true;
  }
  return failures.size() > 0;
}

TEST(ExclusionsTest, EachIsOfACaseThatBreaksTheLaw) {
  for (const Exclusion& exclusion : Exclusions()) {
    SCOPED_TRACE(testing::Message() << exclusion.law << ", " << (exclusion.op == nullptr ? "all" : exclusion.op) << ": "
                                    << exclusion.reason);
    const std::string name = exclusion.law;
    const auto law = name == kStrides ? CheckStrides : name == kDerivative ? CheckDerivative : CheckMeanDerivative;
    bool any = false;
    bool here = false;
    bool breaks = false;
    for (size_t index = 0; index < Cases().size(); ++index) {
      if (!Matches(exclusion, Cases()[index])) continue;
      any = true;
      if (!IsHere(Cases()[index].op) || exclusion.by_libtorch) continue;
      here = true;
      breaks = breaks || Breaks(law, Subject(index, at::kDouble));
    }
    EXPECT_TRUE(any) << "there is no such case";
    EXPECT_TRUE(breaks || !here) << "no case breaks the law";
  }
}

}  // namespace
}  // namespace addend
