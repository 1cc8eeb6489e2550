// Every rewrite against its operator, through the whole library: the model keeps what the operator computes, the parts
// recover it, under `faithful` nothing is left over, and for small moves the parts are those of the operator's own
// differences. A new rewrite needs one case in Cases().
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/program/program.h"
#include "core/rules/registry.h"

namespace addend {
namespace {

using at::Tensor;
using c10::IValue;
using testing::HasSubstr;
using Arguments = std::vector<IValue>;

// Draws the arguments of a case: tensors that are split, and plain ones.
class Draw {
 public:
  Draw(at::ScalarType dtype, double reach) : dtype_(dtype), reach_(reach) {}

  Tensor Plain(at::IntArrayRef sizes, double scale = 1) { return (Normal(sizes) * scale).to(dtype_); }
  Tensor Positive(at::IntArrayRef sizes) { return (Normal(sizes).abs() + 0.5).to(dtype_); }
  // A tensor that moves: its reference is drawn as well, `reach` away.
  Tensor Moving(at::IntArrayRef sizes) {
    const Tensor value = Normal(sizes).to(dtype_);
    values.push_back(value);
    references.push_back((value + Normal(sizes) * reach_).to(dtype_));
    return value;
  }

  // The same between two numbers.
  Tensor MovingWithin(at::IntArrayRef sizes, double low, double high) {
    const Tensor place = Normal(sizes);
    const auto within = [&](const Tensor& t) { return (t.sigmoid() * (high - low) + low).to(dtype_); };
    values.push_back(within(place));
    references.push_back(within(place + Normal(sizes) * reach_));
    return values.back();
  }

  std::vector<Tensor> values;
  std::vector<Tensor> references;

 private:
  Tensor Normal(at::IntArrayRef sizes) { return at::randn(sizes, generator_, at::TensorOptions().dtype(at::kDouble)); }

  at::Generator generator_ = at::detail::createCPUGenerator(20240611);
  at::ScalarType dtype_;
  double reach_;
};

struct Case {
  std::string op;  // "aten::lstm_cell" or "aten::lstm.input"
  std::string title;
  std::function<Arguments(Draw&)> arguments;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.op << " " << c.title; }

std::pair<std::string, std::string> Split2(const std::string& op) {
  const size_t dot = op.find('.');
  return dot == std::string::npos ? std::make_pair(op, std::string())
                                  : std::make_pair(op.substr(0, dot), op.substr(dot + 1));
}

// Every argument with the tensors of `from` replaced by those of `to`.
IValue Replace(const IValue& value, const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  const auto one = [&](const Tensor& t) {
    for (size_t k = 0; k < from.size(); ++k) {
      if (t.is_same(from[k])) return to[k];
    }
    return t;
  };
  if (value.isTensor()) return one(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<Tensor> list;
  for (const Tensor& t : value.toTensorVector()) list.push_back(one(t));
  return list;
}

// The operator of a case as a model: its split tensors are the inputs.
class OperatorModel : public Model {
 public:
  OperatorModel(const Case& c, Arguments arguments, std::vector<Tensor> moving)
      : op_(c10::Dispatcher::singleton().findSchemaOrThrow(Split2(c.op).first.c_str(), Split2(c.op).second.c_str())),
        arguments_(std::move(arguments)),
        moving_(std::move(moving)) {
    // What the case does not give has the schema's default.
    const auto& all = op_.schema().arguments();
    for (size_t a = arguments_.size(); a < all.size(); ++a) arguments_.push_back(all[a].default_value().value());
  }

  IValue Run(const std::vector<IValue>& inputs) override {
    std::vector<Tensor> tensors;
    for (const IValue& input : inputs) tensors.push_back(input.toTensor());
    std::vector<IValue> stack;
    for (const IValue& argument : arguments_) stack.push_back(Replace(argument, moving_, tensors));
    op_.callBoxed(stack);
    return c10::ivalue::Tuple::create(std::move(stack));
  }

  // The floating-point results on other tensors.
  std::vector<Tensor> Results(const std::vector<Tensor>& inputs) {
    std::vector<Tensor> results;
    const IValue all = Run({inputs.begin(), inputs.end()});
    for (const IValue& value : all.toTupleRef().elements()) {
      const auto add = [&](const Tensor& t) {
        if (t.defined() && t.is_floating_point()) results.push_back(t);
      };
      if (value.isTensor()) add(value.toTensor());
      if (value.isTensorList()) {
        for (const Tensor& t : value.toTensorVector()) add(t);
      }
    }
    return results;
  }

 private:
  c10::OperatorHandle op_;
  Arguments arguments_;
  std::vector<Tensor> moving_;
};

// clang-format off
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"aten::lstm_cell", "biases", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), c10::List<Tensor>({d.Moving({3, 5}), d.Moving({3, 5})}), d.Plain({20, 4}),
                 d.Plain({20, 5}), d.Plain({20}), d.Plain({20})}; }},
      {"aten::lstm_cell", "no_biases", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), c10::List<Tensor>({d.Plain({3, 5}), d.Plain({3, 5})}), d.Plain({20, 4}),
                 d.Plain({20, 5})}; }},
      {"aten::norm.Scalar", "length", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), 2.0}; }},
      {"aten::norm.ScalarOpt_dim", "power", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), 1.5, std::vector<int64_t>{-1}, true}; }},
      {"aten::norm.ScalarOpt_dim", "largest", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4, 2}), INFINITY, std::vector<int64_t>{0, 2}, false}; }},
      {"aten::norm.ScalarOpt_dim", "no_power", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), IValue(), std::vector<int64_t>{1}, false}; }},
      {"aten::norm.ScalarOpt_dtype", "dtype", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), 3.0, static_cast<int64_t>(at::kDouble)}; }},
      {"aten::linalg_vector_norm", "everything", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }},
      {"aten::linalg_vector_norm", "sum", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), 1.0, std::vector<int64_t>{0}, true}; }},
      {"aten::linalg_vector_norm", "smallest", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), -INFINITY, std::vector<int64_t>{1}}; }},
      {"aten::linalg_vector_norm", "count", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), 0.0}; }},
      {"aten::dist", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4}), 3.0}; }},
      {"aten::_pdist_forward", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), 2.0}; }},
      {"aten::_cdist_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4, 3}), d.Moving({2, 5, 3}), 1.5, IValue()}; }},
      {"aten::_euclidean_dist", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), d.Moving({5, 3})}; }},
      {"aten::renorm", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), 2.0, int64_t{1}, 0.5}; }},
      {"aten::var.correction", "dims", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4, 2}), std::vector<int64_t>{0, -1}, int64_t{1}, true}; }},
      {"aten::var.correction", "everything", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), IValue(), int64_t{0}}; }},
      {"aten::std.correction", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), std::vector<int64_t>{1}, int64_t{2}}; }},
      {"aten::var_mean.correction", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), std::vector<int64_t>{1}, int64_t{1}, true}; }},
      {"aten::std_mean.correction", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), std::vector<int64_t>{0}, int64_t{1}}; }},
      {"aten::hypot", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4})}; }},
      {"aten::addcdiv", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({4}), d.MovingWithin({3, 1}, 1, 2), 0.7}; }},
      {"aten::prelu", "channels", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2}), d.Moving({3})}; }},
      {"aten::prelu", "one_weight", [](Draw& d) -> Arguments { return {d.Moving({5}), d.Moving({1})}; }},
      {"aten::glu", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), int64_t{1}}; }},
      {"aten::aminmax", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{1}, true}; }},
      {"aten::mse_loss", "mean", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::mse_loss", "each", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4}), int64_t{0}}; }},
      {"aten::smooth_l1_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{2}, 0.7}; }},
      {"aten::huber_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{0}, 1.3}; }},
      {"aten::soft_margin_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::binary_cross_entropy", "", [](Draw& d) -> Arguments {
         return {d.MovingWithin({3, 4}, 0, 1), d.MovingWithin({3, 4}, 0, 1), d.Moving({4}), int64_t{1}}; }},
      {"aten::binary_cross_entropy_with_logits", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.MovingWithin({3, 4}, 0, 1), d.Moving({3, 1}), d.Moving({4}), int64_t{2}}; }},
      {"aten::nll_loss_forward", "weighted", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), at::tensor({2, 0, 1, 0}, at::kLong), d.MovingWithin({3}, 0.5, 2), int64_t{1},
                 int64_t{1}}; }},
      {"aten::nll_loss_forward", "one", [](Draw& d) -> Arguments {
         return {d.Moving({3}), at::tensor(2, at::kLong), IValue(), int64_t{2}, int64_t{-100}}; }},
      {"aten::nll_loss2d_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2, 2}), at::tensor({0, 1, 2, 1, 0, 0, 2, 1}, at::kLong).view({2, 2, 2}),
                 d.Positive({3}), int64_t{1}, int64_t{0}}; }},
      {"aten::multi_margin_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), at::tensor({2, 0, 1, 0}, at::kLong), int64_t{1}, 0.8, d.Positive({3}),
                 int64_t{1}}; }},
      {"aten::multi_margin_loss", "squares_of_one", [](Draw& d) -> Arguments {
         return {d.Moving({3}), at::tensor({1}, at::kLong), int64_t{2}, 1.0, IValue(), int64_t{0}}; }},
      {"aten::multilabel_margin_loss_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4}), at::tensor({3, 0, -1, 1, 2, -1, -1, -1}, at::kLong).view({2, 4}), int64_t{1}}; }},
      {"aten::multilabel_margin_loss_forward", "one", [](Draw& d) -> Arguments {
         return {d.Moving({4}), at::tensor({1, 2, -1, 0}, at::kLong), int64_t{0}}; }},
  };
  return cases;
}
// clang-format on

std::string RuleNameOf(const std::string& op) { return RuleName(Split2(op).first); }

// Whether this LibTorch has an operator of that name, with whatever overload where none is said.
bool Exists(const std::string& name) {
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    if (known.name == name || known.name + "." + known.overload_name == name) return true;
  }
  return false;
}

TEST(CasesTest, EveryRewriteHasACase) {
  std::set<const Rewrite*> covered;
  for (const Case& c : Cases()) covered.insert(Registry::Default().FindRewrite(RuleNameOf(c.op), c.op));
  EXPECT_EQ(covered.count(nullptr), 0u) << "a case for an operator without rewrite";
  for (const Rewrite* rewrite : Registry::Default().AllRewrites()) {
    // Operators of other LibTorch versions cannot be run here.
    if (!Exists(rewrite->name)) continue;
    EXPECT_EQ(covered.count(rewrite), 1u) << rewrite->name << " has no case: add one to Cases() in this file";
  }
}

class RewriteLaws : public testing::TestWithParam<Case> {
 protected:
  // `reach`: how far values lie from their references.
  void Prepare(at::ScalarType dtype, double reach) {
    draw_ = std::make_unique<Draw>(dtype, reach);
    const Arguments arguments = GetParam().arguments(*draw_);
    model_ = std::make_shared<OperatorModel>(GetParam(), arguments, draw_->values);
  }

  // One component for each position of each input's last dimension.
  Decomposition Decompose(const DecomposeOptions& options) {
    std::vector<Input> inputs;
    for (size_t k = 0; k < draw_->values.size(); ++k) {
      Input input;
      input.value = draw_->values[k];
      input.split = Split::AlongDims({-1});
      input.baseline = Baseline::Of(draw_->references[k]);
      inputs.push_back(std::move(input));
    }
    return Trace(model_).Decompose(inputs, options);
  }

  std::unique_ptr<Draw> draw_;
  std::shared_ptr<OperatorModel> model_;
};

double Largest(const Tensor& t) { return t.numel() == 0 ? 0 : t.masked_fill(t.isinf(), 0).abs().max().item<double>(); }

// |a - b| where both are not the same infinity or NaN.
double Distance(const Tensor& a, const Tensor& b) {
  const Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  return a.numel() == 0 ? 0 : (a - b).masked_fill(same, 0).abs().max().item<double>();
}

TEST_P(RewriteLaws, NothingIsLeftOverAndTheModelKeepsTheOperatorsNumbers) {
  Prepare(at::kDouble, 1);
  DecomposeOptions options;
  options.policy.preset = Preset::kFaithful;
  options.everything = true;
  const Decomposition result = Decompose(options);
  EXPECT_TRUE(result.report.failures.empty());
  const std::vector<Tensor> values = model_->Results(draw_->values);
  const std::vector<Tensor> references = model_->Results(draw_->references);
  ASSERT_EQ(result.outputs.size(), values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const Composition& parts = result.outputs[k].composition;
    EXPECT_EQ(Distance(result.outputs[k].value, values[k]), 0) << k;
    EXPECT_EQ(Distance(parts.reference(), references[k]), 0) << k;
    EXPECT_EQ(result.outputs[k].value.strides(), values[k].strides());
    const double scale = std::max(Largest(values[k]), 1.0);
    EXPECT_LE(Distance(parts.recovery(), values[k]), 1e-12 * scale) << k;
    EXPECT_LE(Largest(parts.leftover()), 1e-10 * scale) << k;
    EXPECT_LE(Distance(parts.components().sum(0) + references[k], values[k]), 1e-10 * scale) << k;
  }
  EXPECT_EQ(result.report.operators_by_kind.count(KindName(Kind::kAbsorbed)), 0u);
}

TEST_P(RewriteLaws, FastRecovers) {
  Prepare(at::kDouble, 1);
  DecomposeOptions options;
  options.policy.preset = Preset::kFast;
  options.everything = true;
  const Decomposition result = Decompose(options);
  const std::vector<Tensor> values = model_->Results(draw_->values);
  const std::vector<Tensor> references = model_->Results(draw_->references);
  ASSERT_EQ(result.outputs.size(), values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const Composition& parts = result.outputs[k].composition;
    EXPECT_EQ(Distance(result.outputs[k].value, values[k]), 0) << k;
    EXPECT_EQ(Distance(parts.reference(), references[k]), 0) << k;
    EXPECT_LE(Distance(parts.recovery(), values[k]), 1e-12 * std::max(Largest(values[k]), 1.0)) << k;
  }
}

TEST_P(RewriteLaws, HoldInSinglePrecision) {
  Prepare(at::kFloat, 1);
  DecomposeOptions options;
  options.policy.preset = Preset::kFaithful;
  options.everything = true;
  const Decomposition result = Decompose(options);
  const std::vector<Tensor> values = model_->Results(draw_->values);
  for (size_t k = 0; k < values.size(); ++k) {
    const double scale = std::max(Largest(values[k]), 1.0);
    EXPECT_EQ(Distance(result.outputs[k].value, values[k]), 0) << k;
    EXPECT_LE(Distance(result.outputs[k].composition.recovery(), values[k]), 1e-4 * scale) << k;
    EXPECT_LE(Largest(result.outputs[k].composition.leftover()), 1e-3 * scale) << k;
  }
}

// An independent oracle: over a small move each component is the operator's own difference along that component's move
// through the middle, up to the third power of the move.
TEST_P(RewriteLaws, SmallMovesAreSharedAsTheOperatorsOwnDifferences) {
  Prepare(at::kDouble, 1e-4);
  DecomposeOptions options;
  options.policy.preset = Preset::kFaithful;
  const Decomposition result = Decompose(options);
  const size_t count = draw_->values.size();
  int64_t component = 0;
  for (size_t k = 0; k < count; ++k) {
    for (int64_t p = 0; p < draw_->values[k].size(-1); ++p, ++component) {
      std::vector<Tensor> above;
      std::vector<Tensor> below;
      for (size_t j = 0; j < count; ++j) {
        const Tensor& x = draw_->values[j];
        const Tensor& b = draw_->references[j];
        Tensor half = at::zeros_like(x);
        if (j == k) half.select(-1, p).copy_((x - b).select(-1, p) / 2);
        above.push_back((x + b) / 2 + half);
        below.push_back((x + b) / 2 - half);
      }
      const std::vector<Tensor> high = model_->Results(above);
      const std::vector<Tensor> low = model_->Results(below);
      for (size_t o = 0; o < high.size(); ++o) {
        const Tensor move = high[o] - low[o];
        const Tensor own = result.outputs[o].composition.components()[component];
        const double scale = Largest(result.outputs[o].composition.components());
        EXPECT_LE(Distance(own, move.masked_fill(move.isnan(), 0)), 1e-5 * scale + 1e-13)
            << "output " << o << ", component " << component;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RewriteLaws, testing::ValuesIn(Cases()), [](const auto& info) {
  std::string name = info.param.op.substr(info.param.op.find("::") + 2) + "_" + info.param.title;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

// ---- the mechanism, with rewrites of the test's own

Tensor Random(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(at::kDouble));
}

// input + value * t1 * t2, without the rule.
std::vector<Tensor> AddProduct(const RewriteCall& call) {
  return {call.Tensor(0) + call.Tensor(1) * call.Tensor(2) * call.Double(3, 1)};
}

class OwnRewrites : public testing::Test {
 protected:
  void Register(const std::string& name, RewriteFunction run) {
    registry_.Register(Rewrite{name, [this, run](const RewriteCall& call) {
                                 ++runs_;
                                 return run(call);
                               }});
  }

  // Faithful, with every law checked; returns the composition.
  Composition Check(const std::function<Tensor(const Tensor&)>& function) {
    const Tensor value = Random({2, 3}, 1);
    const Tensor baseline = Random({2, 3}, 2);
    const Decomposition result = Decompose(function, value, baseline);
    const Composition& parts = result.outputs[0].composition;
    EXPECT_TRUE(at::equal(result.outputs[0].value, function(value.clone())));
    EXPECT_TRUE(at::equal(parts.reference(), function(baseline.clone())));
    EXPECT_LE(Distance(parts.recovery(), result.outputs[0].value), 1e-12);
    EXPECT_LE(Largest(parts.leftover()), 1e-12);
    EXPECT_GT(Largest(parts.components()), 1e-3);
    return parts;
  }

  Decomposition Decompose(const std::function<Tensor(const Tensor&)>& function, const Tensor& value,
                          const Tensor& baseline) {
    Input input;
    input.value = value;
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(baseline);
    DecomposeOptions options;
    options.registry = &registry_;
    options.everything = true;
    return Trace(FromFunction([function](const std::vector<Tensor>& in) { return function(in[0]); }))
        .Decompose({input}, options);
  }

  template <typename Action>
  void ExpectError(absl::StatusCode code, const std::string& message, Action action) {
    try {
      action();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(message));
    }
  }

  Registry registry_ = Registry::Default();
  const Tensor weight_ = Random({2, 3}, 3);
  int runs_ = 0;
};

TEST_F(OwnRewrites, ServeFunctionalInPlaceAndOutForms) {
  Register("aten::addcmul", AddProduct);
  const Composition functional = Check([&](const Tensor& x) { return at::addcmul(x, x, weight_, 0.5).tanh(); });
  const Composition in_place = Check([&](const Tensor& x) { return (x * 1).addcmul_(x, weight_, 0.5).tanh(); });
  const Composition into = Check([&](const Tensor& x) {
    Tensor out = at::zeros_like(x);
    return at::addcmul_out(out, x, x, weight_, 0.5).tanh();
  });
  const Composition resized = Check([&](const Tensor& x) {
    Tensor out = at::empty({0}, x.options());
    at::addcmul_out(out, x, x, weight_, 0.5);
    return out.tanh();
  });
  EXPECT_EQ(runs_, 4);
  EXPECT_TRUE(at::allclose(functional.components(), in_place.components(), 0, 1e-14));
  EXPECT_TRUE(at::allclose(functional.components(), into.components(), 0, 1e-14));
  EXPECT_TRUE(at::allclose(functional.components(), resized.components(), 0, 1e-14));
}

TEST_F(OwnRewrites, WriteThroughViewsAndOverDecomposedTensors) {
  Register("aten::addcmul", AddProduct);
  Check([&](const Tensor& x) {
    Tensor y = at::ones({4, 3}, x.options());
    y.slice(0, 1, 3).addcmul_(x, weight_);
    return y.cumsum(0);
  });
  Check([&](const Tensor& x) {
    Tensor y = x * 2;
    Tensor before = y.exp();
    y.addcmul_(y, weight_);
    return before + y.select(1, 0).unsqueeze(1);
  });
}

TEST_F(OwnRewrites, AreNotRunWithoutDecomposedOperands) {
  Register("aten::addcmul", AddProduct);
  Check([&](const Tensor& x) { return x * at::addcmul(weight_, weight_, weight_); });
  EXPECT_EQ(runs_, 0);
}

TEST_F(OwnRewrites, KeepTheOperatorsNumbersAndLayout) {
  // Another order of summation and another layout.
  Register("aten::sin", [](const RewriteCall& call) -> std::vector<Tensor> {
    const Tensor x = call.Tensor(0).t().contiguous();
    return {((x * (1.0 / 3)).sinh() * (1 + 1e-13) + x.tanh() - (x * (1.0 / 3)).sinh() - x.tanh() + x.cos() - x.cos() +
             (x - 1.5707963267948966).cos())
                .t()};
  });
  Check([&](const Tensor& x) {
    const Tensor y = at::sin(x);
    return y.view({3, 2}) * 2;  // fails where the layout is another
  });
  EXPECT_EQ(runs_, 1);
}

TEST_F(OwnRewrites, MayReturnAnOperandOrWhatTheyReadAgain) {
  Register("aten::abs", [](const RewriteCall& call) -> std::vector<Tensor> { return {call.Tensor(0)}; });
  Check([&](const Tensor& x) {
    const Tensor y = at::exp(x);
    Tensor z = at::abs(y);
    z.mul_(2);  // not y
    return y + z;
  });
  Register("aten::aminmax", [](const RewriteCall& call) -> std::vector<Tensor> {
    const Tensor low = call.Tensor(0).amin({1}, true);
    return {low, call.Tensor(0).amax({1}, true) + low * 1 - low};
  });
  Check([&](const Tensor& x) {
    const auto both = at::aminmax(x, 1, true);
    return std::get<0>(both) * std::get<1>(both);
  });
  EXPECT_EQ(runs_, 2);
}

TEST_F(OwnRewrites, AreErrorsWhereTheyAreWrong) {
  const auto run = [&] {
    Decompose([&](const Tensor& x) { return at::addcmul(x, x, weight_); }, Random({2, 3}, 1), Random({2, 3}, 2));
  };
  Register("aten::addcmul", [](const RewriteCall& call) -> std::vector<Tensor> {
    return {call.Tensor(0) + call.Tensor(1) * call.Tensor(2) * 1.000001};
  });
  ExpectError(absl::StatusCode::kInternal, "the rewrite of aten::addcmul differs from the operator by ", run);
  Register("aten::addcmul", [](const RewriteCall& call) -> std::vector<Tensor> { return {call.Tensor(0)[0]}; });
  ExpectError(absl::StatusCode::kInternal, "the rewrite of aten::addcmul gives another shape", run);
  Register("aten::addcmul", [](const RewriteCall&) -> std::vector<Tensor> { return {}; });
  ExpectError(absl::StatusCode::kInternal, "the rewrite of aten::addcmul gives 0 tensors, not 1", run);
  Register("aten::addcmul",
           [](const RewriteCall& call) -> std::vector<Tensor> { return {call.Tensor(0).mm(call.Tensor(1))}; });
  ExpectError(absl::StatusCode::kInternal, "the rewrite of aten::addcmul fails: ", run);
  Register("aten::addcmul", [](const RewriteCall&) -> std::vector<Tensor> { throw Unimplemented("not on Mondays"); });
  ExpectError(absl::StatusCode::kUnimplemented, "not on Mondays (op #0", run);
  // What the rewrite calls needs a rule of its own.
  Register("aten::addcmul",
           [](const RewriteCall& call) -> std::vector<Tensor> { return {at::_pdist_forward(call.Tensor(0))}; });
  ExpectError(absl::StatusCode::kUnimplemented, "no composition rule for aten::_pdist_forward", run);
}

// A rewrite that takes a condition from the value has another reference: the operator's counts, and the rest is left
// over.
TEST_F(OwnRewrites, ConditionsFromTheValueAreLeftOver) {
  Register("aten::abs", [](const RewriteCall& call) -> std::vector<Tensor> {
    const Tensor& x = call.Tensor(0);
    return {at::where(x.gt(0), x, x * -1)};
  });
  const Tensor value = at::tensor({1.0, -2.0, 3.0}, at::kDouble).view({1, 3});
  const Tensor baseline = at::tensor({-1.5, -1.0, 1.0}, at::kDouble).view({1, 3});
  const Decomposition result = Decompose([](const Tensor& x) { return at::abs(x); }, value, baseline);
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::equal(parts.reference(), baseline.abs()));
  EXPECT_TRUE(at::allclose(parts.leftover(), at::tensor({-3.0, 0.0, 0.0}, at::kDouble).view({1, 3})));
  EXPECT_TRUE(at::allclose(parts.recovery(), value.abs()));
}

TEST_F(OwnRewrites, GoUnderAutogradAndInference) {
  Register("aten::addcmul", AddProduct);
  Check([&](const Tensor& x) {
    c10::InferenceMode inference;
    return at::addcmul(x, x, weight_).tanh();
  });
  Check([&](const Tensor& x) {
    at::AutoGradMode grad(true);
    const Tensor w = weight_.clone().requires_grad_();
    const Tensor y = at::addcmul(x, x, w).tanh();
    EXPECT_TRUE(y.requires_grad());
    return y.detach();
  });
  EXPECT_EQ(runs_, 2);
}

TEST_F(OwnRewrites, AddARuleOrARewriteNeverBoth) {
  registry_.Register(Rewrite{"aten::max.dim", AddProduct});
  EXPECT_EQ(registry_.Find("aten::max", "aten::max.dim"), nullptr);
  EXPECT_NE(registry_.FindRewrite("aten::max", "aten::max.dim"), nullptr);
  EXPECT_EQ(registry_.FindRewrite("aten::max", "aten::max"), nullptr);
  registry_.Register(Rule{"aten::max.dim", Kind::kSelection});
  EXPECT_EQ(registry_.FindRewrite("aten::max", "aten::max.dim"), nullptr);
  EXPECT_NE(registry_.Find("aten::max", "aten::max.dim"), nullptr);
  // In-place and out= forms of one overload.
  registry_.Register(Rewrite{"mine::foo.bar", AddProduct});
  EXPECT_NE(registry_.FindRewrite("mine::foo", "mine::foo_.bar"), nullptr);
  EXPECT_NE(registry_.FindRewrite("mine::foo", "mine::foo.bar_out"), nullptr);
  EXPECT_EQ(registry_.FindRewrite("mine::foo", "mine::foo.other"), nullptr);
}

}  // namespace
}  // namespace addend
