// Every operator of everyday_operators.txt, called eagerly: its signature is LibTorch's, the recovery is the operator
// on the recoveries, and where it is linear each component is the operator on that component.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/jit_type.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/eager/composition_ops.h"
#include "core/eager/differentiable.h"
#include "core/eager/eager.h"
#include "core/program/random_testing.h"

namespace addend {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;
using List = std::vector<Argument>;

constexpr int64_t kComponents = 3;

Tensor Uniform(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::rand(sizes, generator, at::TensorOptions().dtype(at::kDouble));
}

// Gives the operands of a case: compositions, or what tells the same without components.
class Operands {
 public:
  enum class Form {
    kComposition,
    kValue,      // the value of the composition, plain
    kComponent,  // one of its components, plain
    kZero,
  };
  explicit Operands(Form form, int64_t component = 0) : form_(form), component_(component) {}

  Argument operator()(at::IntArrayRef sizes, uint64_t seed) const { return Make(sizes, seed, Random(sizes, seed), 0); }
  // Value and reference between 0.5 and 2.
  Argument Positive(at::IntArrayRef sizes, uint64_t seed) const {
    return Make(sizes, seed, Uniform(sizes, seed) * 1.5 + 0.5, 1.25);
  }

 private:
  Argument Make(at::IntArrayRef sizes, uint64_t seed, const Tensor& value, double centre) const {
    Tensor reference = centre == 0 ? Random(sizes, seed + 100) : Uniform(sizes, seed + 100) * 1.5 + 0.5;
    const Tensor leftover = Random(sizes, seed + 200) * 0.05;
    Ints shape = {kComponents};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    Tensor components = Random(shape, seed + 300);
    components.select(0, kComponents - 1).copy_(value - reference - leftover - components.narrow(0, 0, 2).sum(0));
    const Composition composition(components, reference, leftover);
    switch (form_) {
      case Form::kComposition:
        return composition;
      case Form::kValue:
        return composition.recovery();
      case Form::kComponent:
        return composition.component(component_);
      case Form::kZero:
        return at::zeros_like(reference);
    }
    return std::nullopt;
  }

  Form form_;
  int64_t component_;
};

struct Case {
  std::string name;  // as in the list
  std::function<List(const Operands&)> arguments;
  bool affine = false;  // in all compositions together: f(component) - f(0) is the component of the result
};

Tensor Fixed(at::IntArrayRef sizes) { return Random(sizes, 77); }
Tensor Index(at::IntArrayRef list) { return at::tensor(list, at::kLong); }

std::vector<Case> Cases() {
  const Tensor mask = at::tensor({1, 0, 0, 0, 1, 1}, at::kByte).view({2, 3}).to(at::kBool);
  const auto one = [](std::vector<Argument> rest, at::IntArrayRef sizes = {2, 3}) {
    const Ints shape = sizes.vec();
    return [rest, shape](const Operands& x) {
      List list = {x(shape, 1)};
      list.insert(list.end(), rest.begin(), rest.end());
      return list;
    };
  };
  const auto positive = [](std::vector<Argument> rest) {
    return [rest](const Operands& x) {
      List list = {x.Positive({2, 3}, 1)};
      list.insert(list.end(), rest.begin(), rest.end());
      return list;
    };
  };
  const auto two = [](Ints a, Ints b, std::vector<Argument> rest = {}) {
    return [a, b, rest](const Operands& x) {
      List list = {x(a, 1), x(b, 5)};
      list.insert(list.end(), rest.begin(), rest.end());
      return list;
    };
  };
  return {
      {"aten::add.Tensor", two({2, 3}, {3}, {Named("alpha", 0.5)}), true},
      {"aten::add.Scalar", one({2}), true},
      {"aten::sub.Tensor", two({2, 3}, {3}), true},
      {"aten::sub.Scalar", one({2}), true},
      {"aten::rsub.Tensor", two({2, 3}, {2, 3}), true},
      {"aten::rsub.Scalar", one({2}), true},
      {"aten::mul.Tensor", two({2, 3}, {3})},
      {"aten::mul.Scalar", one({2}), true},
      {"aten::div.Tensor",
       [](const Operands& x) {
         return List{x({2, 3}, 1), x.Positive({3}, 4)};
       }},
      {"aten::div.Scalar", one({2}), true},
      {"aten::neg", one({}), true},
      {"aten::addcmul",
       [](const Operands& x) {
         return List{x({2, 3}, 1), x({2, 3}, 2), x({3}, 3)};
       }},
      {"aten::lerp.Scalar", two({2, 3}, {2, 3}, {0.3}), true},
      {"aten::lerp.Tensor", two({2, 3}, {2, 3}, {Fixed({2, 3})}), true},
      {"aten::square", one({})},
      {"aten::pow.Tensor_Scalar", one({3})},
      {"aten::pow.Tensor_Tensor", positive({Fixed({2, 3})})},
      {"aten::maximum", two({2, 3}, {2, 3})},
      {"aten::minimum", two({2, 3}, {2, 3})},
      {"aten::abs", one({})},
      {"aten::ceil", one({})},
      {"aten::clamp", one({-0.5, 0.7})},
      {"aten::clamp.Tensor", one({at::full({3}, -0.5, at::kDouble), at::full({3}, 0.7, at::kDouble)})},
      {"aten::clamp_max", one({0.3})},
      {"aten::clamp_min", one({0.3})},
      {"aten::cos", one({})},
      {"aten::elu", one({1.5})},
      {"aten::erf", one({})},
      {"aten::exp", one({})},
      {"aten::expm1", one({})},
      {"aten::floor", one({})},
      {"aten::gelu", one({Named("approximate", "tanh")})},
      {"aten::hardsigmoid", one({})},
      {"aten::hardswish", one({})},
      {"aten::hardtanh", one({-0.5, 0.5})},
      {"aten::leaky_relu", one({0.2})},
      {"aten::log", positive({})},
      {"aten::log1p", positive({})},
      {"aten::log_sigmoid", one({})},
      {"aten::mish", one({})},
      {"aten::reciprocal", positive({})},
      {"aten::relu", one({})},
      {"aten::relu6", one({})},
      {"aten::round", one({})},
      {"aten::rsqrt", positive({})},
      {"aten::selu", one({})},
      {"aten::sigmoid", one({})},
      {"aten::sign", one({})},
      {"aten::silu", one({})},
      {"aten::sin", one({})},
      {"aten::softplus", one({2, 20})},
      {"aten::sqrt", positive({})},
      {"aten::tanh", one({})},
      {"aten::trunc", one({})},
      {"aten::addmm",
       [](const Operands& x) {
         return List{x({4}, 1), x({2, 3}, 2), x({3, 4}, 3)};
       }},
      {"aten::baddbmm",
       [](const Operands& x) {
         return List{x({2, 2, 4}, 1), x({2, 2, 3}, 2), x({2, 3, 4}, 3)};
       }},
      {"aten::bmm", two({2, 2, 3}, {2, 3, 4})},
      {"aten::dot", two({4}, {4})},
      {"aten::einsum",
       [](const Operands& x) {
         return List{"bij,bjk->bk", List{x({2, 2, 3}, 1), x({2, 3, 4}, 5)}};
       }},
      {"aten::linear", one({Fixed({4, 3}), Fixed({4})}), true},
      {"aten::matmul", two({2, 2, 3}, {3, 4})},
      {"aten::mm", two({2, 3}, {3, 4})},
      {"aten::mv", two({2, 3}, {3})},
      {"aten::amax", one({Ints{1}})},
      {"aten::amin", one({Ints{1}, true})},
      {"aten::cumsum", one({1}), true},
      {"aten::max", one({})},
      {"aten::max.dim", one({1})},
      {"aten::max.other", two({2, 3}, {2, 3})},
      {"aten::mean", one({}), true},
      {"aten::mean.dim", one({Ints{0, 1}, true}), true},
      {"aten::min", one({})},
      {"aten::min.dim", one({0})},
      {"aten::min.other", two({2, 3}, {2, 3})},
      {"aten::std", one({})},
      {"aten::std.dim", one({Ints{1}, true})},
      {"aten::sum", one({}), true},
      {"aten::sum.dim_IntList", one({Ints{1}, true}), true},
      {"aten::var", one({})},
      {"aten::var.dim", one({Ints{1}, false})},
      {"aten::argmax", one({1})},
      {"aten::argmin", one({1})},
      {"aten::batch_norm",
       one({Fixed({3}), Fixed({3}), Fixed({3}), Fixed({3}).abs() + 0.5, false, 0.1, 1e-5, false}, {2, 3, 2}), true},
      {"aten::cosine_similarity", two({2, 4}, {2, 4}, {1, 1e-8})},
      {"aten::dropout", one({0.5, false}), true},
      {"aten::group_norm", one({2, Fixed({4}), Fixed({4}), 1e-5}, {2, 4, 3})},
      {"aten::layer_norm", one({Ints{3}, Fixed({3}), Fixed({3}), 1e-5})},
      {"aten::log_softmax.int", one({1})},
      {"aten::logsumexp", one({Ints{1}})},
      {"aten::softmax.int", one({1})},
      {"aten::adaptive_avg_pool2d", one({Ints{2, 2}}, {1, 2, 5, 4}), true},
      {"aten::avg_pool2d", one({Ints{2, 2}, Ints{1, 1}, Ints{1, 1}}, {1, 2, 5, 4}), true},
      {"aten::conv1d", one({Fixed({4, 2, 3}), Fixed({4}), Ints{1}, Ints{1}}, {2, 2, 5}), true},
      {"aten::conv2d", one({Fixed({4, 2, 3, 3}), Fixed({4}), 1, 1}, {2, 2, 5, 4}), true},
      {"aten::max_pool2d", one({Ints{2, 2}}, {1, 2, 4, 4})},
      {"aten::cat",
       [](const Operands& x) {
         return List{List{x({2, 3}, 1), Fixed({1, 3}), x({1, 3}, 4)}, 0};
       },
       true},
      {"aten::chunk", one({2, 1}), true},
      {"aten::diagonal", one({1}, {4, 4}), true},
      {"aten::expand", one({Ints{4, 2, 3}}), true},
      {"aten::expand_as", one({Fixed({4, 2, 3})}), true},
      {"aten::flatten.using_ints", one({1, 2}, {2, 3, 4}), true},
      {"aten::flip", one({Ints{1}}), true},
      {"aten::movedim.int", one({0, 2}, {2, 3, 4}), true},
      {"aten::narrow", one({1, 1, 2}), true},
      {"aten::pad", one({Ints{1, 2}, "constant", 0.5}), true},
      {"aten::permute", one({Ints{1, 0}}), true},
      {"aten::repeat", one({Ints{2, 1, 2}}), true},
      {"aten::reshape", one({Ints{3, -1}}), true},
      {"aten::reshape_as", one({Fixed({3, 2})}), true},
      {"aten::roll", one({Ints{1}, Ints{1}}), true},
      {"aten::select.int", one({1, -1}), true},
      {"aten::slice.Tensor", one({1, 0, 3, 2}), true},
      {"aten::split.Tensor", one({2, 1}), true},
      {"aten::split_with_sizes", one({Ints{1, 2}, 1}), true},
      {"aten::squeeze", one({}, {2, 1, 3}), true},
      {"aten::squeeze.dim", one({1}, {2, 1, 3}), true},
      {"aten::stack",
       [](const Operands& x) {
         return List{List{x({2, 3}, 1), x({2, 3}, 4)}, 1};
       },
       true},
      {"aten::t", one({}), true},
      {"aten::transpose.int", one({0, 1}), true},
      {"aten::tril", one({}, {3, 3}), true},
      {"aten::triu", one({1}, {3, 3}), true},
      {"aten::unbind.int", one({1}), true},
      {"aten::unfold", one({1, 2, 1}), true},
      {"aten::unsqueeze", one({1}), true},
      {"aten::view", one({Ints{6}}), true},
      {"aten::view_as", one({Fixed({3, 2})}), true},
      {"aten::diagonal_scatter", two({3, 3}, {3}), true},
      {"aten::gather", one({1, Index({2, 0, 1, 1}).view({2, 2})}), true},
      {"aten::index_add",
       [](const Operands& x) {
         return List{x({2, 3}, 1), 1, Index({2, 0}), x({2, 2}, 5)};
       },
       true},
      {"aten::index_copy",
       [](const Operands& x) {
         return List{x({2, 3}, 1), 1, Index({2, 0}), x({2, 2}, 5)};
       },
       true},
      {"aten::index_fill.int_Scalar", one({1, Index({0, 2}), 0.5}), true},
      {"aten::index_put",
       [](const Operands& x) {
         return List{x({4, 3}, 1), List{Index({3, 0})}, x({2, 3}, 5), true};
       },
       true},
      {"aten::index_select", one({1, Index({2, 2, 0})}), true},
      {"aten::masked_fill.Scalar", one({mask, 0.5}), true},
      {"aten::masked_fill.Tensor", one({mask, at::full({}, 0.5, at::kDouble)}), true},
      {"aten::masked_scatter",
       [mask](const Operands& x) {
         return List{x({2, 3}, 1), mask, x({6}, 5)};
       },
       true},
      {"aten::masked_select", one({mask}), true},
      {"aten::scatter.src",
       [](const Operands& x) {
         return List{x({2, 3}, 1), 1, Index({0, 2, 1, 0}).view({2, 2}), x({2, 2}, 5)};
       },
       true},
      {"aten::scatter.value", one({1, Index({0, 2, 1, 0}).view({2, 2}), 0.5}), true},
      {"aten::scatter.reduce",
       [](const Operands& x) {
         return List{x({2, 3}, 1), 1, Index({0, 2, 1, 0}).view({2, 2}), x({2, 2}, 5), Named("reduce", "add")};
       },
       true},
      {"aten::scatter_add",
       [](const Operands& x) {
         return List{x({2, 3}, 1), 1, Index({0, 2, 1, 0}).view({2, 2}), x({2, 2}, 5)};
       },
       true},
      {"aten::where.self",
       [mask](const Operands& x) {
         return List{mask, x({2, 3}, 1), x({3}, 5)};
       },
       true},
      {"aten::where.ScalarOther",
       [mask](const Operands& x) {
         return List{mask, x({2, 3}, 1), 0.5};
       },
       true},
      {"aten::where.ScalarSelf",
       [mask](const Operands& x) {
         return List{mask, 0.5, x({2, 3}, 1)};
       },
       true},
      {"aten::to.dtype", one({at::kFloat}), true},
      {"aten::type_as", one({Fixed({1}).to(at::kFloat)}), true},
  };
}

double MaxAbs(const Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>(); }

void ExpectNear(const Tensor& a, const Tensor& b, double bound) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_LE(MaxAbs(a - b), bound * std::max(1.0, MaxAbs(b)));
}

class EverydayTest : public testing::TestWithParam<Case> {};
class AffineTest : public testing::TestWithParam<Case> {};

TEST_P(EverydayTest, RecoveryIsTheOperatorOnRecoveries) {
  const Case& c = GetParam();
  const Results plain = CallOperator(c.name, c.arguments(Operands(Operands::Form::kValue)));
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    Policy policy;
    policy.preset = preset;
    const Results results = CallOperator(c.name, c.arguments(Operands(Operands::Form::kComposition)), policy);
    ASSERT_EQ(results.size(), plain.size());
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor expected = plain.tensor(k);
      EXPECT_EQ(results[k].is_composition(), expected.is_floating_point());
      if (!results[k].is_composition()) {
        EXPECT_TRUE(results.tensor(k).equal(expected));
        continue;
      }
      const Composition& y = results.composition(k);
      const double bound = expected.scalar_type() == at::kFloat ? 1e-5 : 1e-12;
      EXPECT_EQ(y.numc(), kComponents);
      ExpectNear(y.value(), expected, bound);
      ExpectNear(y.recovery(), expected, bound);
    }
  }
}

TEST_P(AffineTest, ActOnEachComponent) {
  const Case& c = GetParam();
  const Results results = CallOperator(c.name, c.arguments(Operands(Operands::Form::kComposition)));
  const Results zero = CallOperator(c.name, c.arguments(Operands(Operands::Form::kZero)));
  for (int64_t i = 0; i < kComponents; ++i) {
    const Results own = CallOperator(c.name, c.arguments(Operands(Operands::Form::kComponent, i)));
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor expected = own.tensor(k) - zero.tensor(k);
      ExpectNear(results.composition(k).component(i), expected, expected.scalar_type() == at::kFloat ? 1e-5 : 1e-12);
    }
  }
}

// ------------------------------------------------------------------------------------------------------ gradients

// A number that depends on every part of every floating-point result.
Tensor Weigh(const Results& results) {
  Tensor total = at::zeros({}, at::kDouble);
  uint64_t seed = 500;
  for (const Result& result : results) {
    if (!result.is_composition()) continue;
    const Composition& y = result.composition();
    for (const Tensor& part : {y.components(), y.reference(), y.leftover()}) {
      total = total + (part.to(at::kDouble) * Random(part.sizes(), ++seed)).sum();
    }
  }
  return total;
}

// The parts of all compositions among the arguments, and the arguments with other parts.
void CollectParts(const List& arguments, std::vector<Tensor>& parts) {
  for (const Argument& argument : arguments) {
    CollectParts(argument.list(), parts);
    if (argument.composition() == nullptr) continue;
    const Composition& x = *argument.composition();
    parts.insert(parts.end(), {x.components(), x.reference(), x.leftover()});
  }
}

List ReplaceParts(const List& arguments, const std::vector<Tensor>& parts, size_t& next) {
  List replaced;
  for (const Argument& argument : arguments) {
    Argument own = argument;
    if (argument.form() == Argument::Form::kList) own = ReplaceParts(argument.list(), parts, next);
    if (argument.composition() != nullptr) {
      own = Composition::InGraph(parts[next], parts[next + 1], parts[next + 2]);
      next += 3;
    }
    replaced.push_back(argument.name().empty() ? own : Named(argument.name(), own));
  }
  return replaced;
}

Results CallOnParts(const Case& c, const std::vector<Tensor>& parts, const Policy& policy) {
  size_t next = 0;
  return CallOperator(c.name, ReplaceParts(c.arguments(Operands(Operands::Form::kComposition)), parts, next), policy);
}

// The rules that a case goes through.
std::set<std::string> RulesOf(const Case& c, const Policy& policy) {
  std::set<std::string> rules;
  const Results results = CallOperator(c.name, c.arguments(Operands(Operands::Form::kComposition)), policy);
  for (const OperatorReport& report : results.report().checks) rules.insert(report.position.op);
  return rules;
}

bool GradientsPass(const std::set<std::string>& rules) {
  const std::vector<std::string>& known = DifferentiableRules();
  return std::all_of(rules.begin(), rules.end(), [&](const std::string& rule) {
    const bool in_place = rule.back() == '_';
    return !in_place && std::find(known.begin(), known.end(), rule) != known.end();
  });
}

TEST_P(EverydayTest, GradientsAreThoseOfFiniteDifferencesOrRefused) {
  const Case& c = GetParam();
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    Policy policy;
    policy.preset = preset;
    std::vector<Tensor> parts;
    CollectParts(c.arguments(Operands(Operands::Form::kComposition)), parts);
    std::vector<Tensor> leaves;
    for (const Tensor& part : parts) leaves.push_back(part.detach().clone().requires_grad_(true));
    Tensor total;
    try {
      total = Weigh(CallOnParts(c, leaves, policy));
    } catch (const Error& e) {
      EXPECT_FALSE(GradientsPass(RulesOf(c, policy))) << e.what();
      continue;
    }
    if (!total.requires_grad()) continue;  // argmax and its kind
    EXPECT_TRUE(GradientsPass(RulesOf(c, policy)));
    total.backward();
    const bool single = CallOnParts(c, parts, policy)[0].tensor().scalar_type() == at::kFloat;
    for (size_t k = 0; k < parts.size(); ++k) {
      const Tensor direction = Random(parts[k].sizes(), 900 + k);
      const double step = single ? 1e-2 : 1e-5;
      const auto moved = [&](double by) {
        std::vector<Tensor> own = parts;
        own[k] = own[k] + direction * by;
        return Weigh(CallOnParts(c, own, policy)).item<double>();
      };
      const double expected = (moved(step) - moved(-step)) / (2 * step);
      const Tensor gradient = leaves[k].grad();
      const double found = gradient.defined() ? (gradient * direction).sum().item<double>() : 0;
      EXPECT_NEAR(found, expected, (single ? 1e-3 : 1e-6) * std::max(1.0, std::abs(expected))) << "part " << k;
    }
  }
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name.substr(6);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}

std::vector<Case> AffineCases() {
  std::vector<Case> cases = Cases();
  cases.erase(std::remove_if(cases.begin(), cases.end(), [](const Case& c) { return !c.affine; }), cases.end());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Operators, EverydayTest, testing::ValuesIn(Cases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Operators, AffineTest, testing::ValuesIn(AffineCases()), CaseName);

// ------------------------------------------------------------------------------------------------------- the list

struct Line {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;  // type, name
  bool in_place;
};

std::vector<Line> ReadList() {
  std::ifstream file("core/composition/everyday_operators.txt");
  EXPECT_TRUE(file) << "the list is missing";
  std::vector<Line> lines;
  std::string text;
  while (std::getline(file, text)) {
    if (text.empty() || text[0] == '#') continue;
    Line line;
    const size_t open = text.find('(');
    line.name = text.substr(0, open);
    const std::string base = line.name.substr(0, line.name.find('.'));
    line.in_place = base.back() == '_';
    std::stringstream inner(text.substr(open + 1, text.find(") -> ") - open - 1));
    std::string piece;
    while (std::getline(inner, piece, ',')) {
      piece = piece.substr(piece.find_first_not_of(' '));
      if (piece == "*") continue;
      const size_t space = piece.find(' ');
      line.parameters.emplace_back(piece.substr(0, space), piece.substr(space + 1, piece.find('=') - space - 1));
    }
    lines.push_back(line);
  }
  return lines;
}

// "int[2]" -> "int[]"; what the list calls an int may be an optional or symbolic one, and so on.
std::string Plain(std::string type) {
  const size_t open = type.find('[');
  if (open != std::string::npos) type = type.substr(0, open) + "[]";
  return type;
}

TEST(ListTest, SignaturesAreLibTorchs) {
  const std::map<std::string, std::set<std::string>> same = {
      {"Tensor", {"Tensor", "Tensor?"}},
      {"Tensor?", {"Tensor?"}},
      {"Tensor[]", {"Tensor[]", "Tensor?[]"}},
      {"Scalar", {"Scalar", "Scalar?", "number", "number?"}},
      {"Scalar?", {"Scalar?", "number?"}},
      {"int", {"int", "SymInt", "int?"}},
      {"int?", {"int?", "SymInt?"}},
      {"int[]", {"int[]", "SymInt[]", "int[]?", "SymInt[]?"}},
      {"float", {"float"}},
      {"float?", {"float?"}},
      {"bool", {"bool"}},
      {"str", {"str"}},
      {"ScalarType", {"int", "ScalarType"}},
  };
  const std::vector<Line> lines = ReadList();
  EXPECT_GT(lines.size(), 150u);
  for (const Line& line : lines) {
    SCOPED_TRACE(line.name);
    const size_t dot = line.name.find('.');
    const auto op = Operator::Find(line.name.substr(0, dot), dot == std::string::npos ? "" : line.name.substr(dot + 1));
    ASSERT_TRUE(op);
    std::set<std::string> named;
    for (const auto& [type, name] : line.parameters) {
      const auto& declared = op->schema().arguments();
      const auto found = std::find_if(declared.begin(), declared.end(),
                                      [&, n = name](const c10::Argument& argument) { return argument.name() == n; });
      ASSERT_NE(found, declared.end()) << name;
      named.insert(name);
      const auto& accepted = same.at(Plain(type));
      const std::string own = found->type()->str();
      EXPECT_TRUE(accepted.count(Plain(own)) > 0 || accepted.count(Plain(found->type()->annotation_str())) > 0)
          << name << ": " << type << " and " << own;
    }
    for (const c10::Argument& argument : op->schema().arguments()) {
      EXPECT_TRUE(argument.default_value() || named.count(argument.name()) > 0) << argument.name() << " is left out";
    }
  }
}

TEST(ListTest, EveryEntryHasACase) {
  std::set<std::string> cases;
  for (const Case& c : Cases()) EXPECT_TRUE(cases.insert(c.name).second) << c.name << " occurs twice";
  for (const Line& line : ReadList()) {
    if (line.in_place) continue;
    EXPECT_EQ(cases.erase(line.name), 1u) << line.name << " has no case";
  }
  EXPECT_TRUE(cases.empty()) << *cases.begin() << " is not in the list";
}

TEST(ListTest, EveryDifferentiableRuleHasACase) {
  std::set<std::string> cases;
  for (const Case& c : Cases()) {
    const std::set<std::string> rules = RulesOf(c, {});
    for (const std::string& rule : rules) cases.insert(RuleName(rule));
  }
  for (const std::string& name : DifferentiableRules()) EXPECT_EQ(cases.count(name), 1u) << name;
}

// In-place methods are the functional ones and an assignment.
TEST(MethodsTest, InPlace) {
  const Composition x(Random({3, 2, 3}, 1), Random({2, 3}, 2), Random({2, 3}, 3) * 0.1);
  const Composition other(Random({3, 2, 3}, 4), Random({2, 3}, 5));
  const Composition positive = x.abs() + 1;
  const Tensor t = Random({2, 3}, 6);
  const Tensor mask = t > 0;
  std::set<std::string> done;
  const auto check = [&](const std::string& name, const Composition& start, auto in_place,
                         const Composition& expected) {
    SCOPED_TRACE(name);
    done.insert(name);
    Composition y = start;
    const Composition& returned = in_place(y);
    EXPECT_EQ(&returned, &y);
    ExpectNear(y.components(), expected.components(), 1e-13);
    ExpectNear(y.reference(), expected.reference(), 1e-13);
    ExpectNear(y.leftover(), expected.leftover(), 1e-13);
  };
  using C = Composition;
  check(
      "aten::add_.Tensor", x, [&](C& y) -> C& { return y.add_(other, 2); }, x.add(other, 2));
  check(
      "aten::add_.Scalar", x, [&](C& y) -> C& { return y.add_(2); }, x.add(2));
  check(
      "aten::sub_.Tensor", x, [&](C& y) -> C& { return y.sub_(t, 3); }, x.sub(t, 3));
  check(
      "aten::sub_.Scalar", x, [&](C& y) -> C& { return y.sub_(2); }, x.sub(2));
  check(
      "aten::mul_.Tensor", x, [&](C& y) -> C& { return y.mul_(other); }, x.mul(other));
  check(
      "aten::mul_.Scalar", x, [&](C& y) -> C& { return y.mul_(2); }, x.mul(2));
  check(
      "aten::div_.Tensor", x, [&](C& y) -> C& { return y.div_(t); }, x.div(t));
  check(
      "aten::div_.Scalar", x, [&](C& y) -> C& { return y.div_(2); }, x.div(2));
  check(
      "aten::neg_", x, [&](C& y) -> C& { return y.neg_(); }, x.neg());
  check(
      "aten::abs_", x, [&](C& y) -> C& { return y.abs_(); }, x.abs());
  check(
      "aten::clamp_", x, [&](C& y) -> C& { return y.clamp_(-0.5, 0.5); }, x.clamp(-0.5, 0.5));
  check(
      "aten::exp_", x, [&](C& y) -> C& { return y.exp_(); }, x.exp());
  check(
      "aten::leaky_relu_", x, [&](C& y) -> C& { return y.leaky_relu_(0.2); }, x.leaky_relu(0.2));
  check(
      "aten::relu_", x, [&](C& y) -> C& { return y.relu_(); }, x.relu());
  check(
      "aten::round_", x, [&](C& y) -> C& { return y.round_(); }, x.round());
  check(
      "aten::sigmoid_", x, [&](C& y) -> C& { return y.sigmoid_(); }, x.sigmoid());
  check(
      "aten::sqrt_", positive, [&](C& y) -> C& { return y.sqrt_(); }, positive.sqrt());
  check(
      "aten::tanh_", x, [&](C& y) -> C& { return y.tanh_(); }, x.tanh());
  check(
      "aten::squeeze_", x.unsqueeze(1), [&](C& y) -> C& { return y.squeeze_(); }, x);
  check(
      "aten::squeeze_.dim", x.unsqueeze(1), [&](C& y) -> C& { return y.squeeze_(1); }, x);
  check(
      "aten::unsqueeze_", x, [&](C& y) -> C& { return y.unsqueeze_(1); }, x.unsqueeze(1));
  check(
      "aten::transpose_", x, [&](C& y) -> C& { return y.transpose_(0, 1); }, x.transpose(0, 1));
  check(
      "aten::masked_fill_.Scalar", x, [&](C& y) -> C& { return y.masked_fill_(mask, 2); }, x.masked_fill(mask, 2));
  for (const Line& line : ReadList()) {
    if (!line.in_place) continue;
    EXPECT_EQ(done.count(line.name), 1u) << line.name;
  }
}

// Methods and functions say the same; signatures with lists, text, optionals and pairs are right.
TEST(MethodsTest, AndFunctions) {
  const Composition x(Random({3, 2, 4}, 1), Random({2, 4}, 2), Random({2, 4}, 3) * 0.1);
  const Tensor value = x.recovery();
  ExpectNear(softmax(x, -1).components(), x.softmax(-1).components(), 0);
  ExpectNear(cat({x, value, x}, 1).recovery(), at::cat({value, value, value}, 1), 1e-14);
  ExpectNear(stack({x, x}).components(), at::stack({x.components(), x.components()}, 1), 1e-14);
  ExpectNear(matmul(value.t(), x).components(), value.t().matmul(x.components()), 1e-13);
  ExpectNear(where(value > 0, x, 0).recovery(), at::where(value > 0, value, at::zeros_like(value)), 1e-14);
  ExpectNear(x.gelu("tanh").recovery(), at::gelu(value, "tanh"), 1e-14);
  ExpectNear(x.gelu().recovery(), at::gelu(value), 1e-14);
  ExpectNear(x.sum({0, 1}).recovery(), value.sum(), 1e-13);
  ExpectNear(x.mean(1, true).recovery(), value.mean(1, true), 1e-14);
  ExpectNear(x.clamp(std::nullopt, 0.5).recovery(), value.clamp_max(0.5), 1e-14);
  ExpectNear(x.slice(1, 1).recovery(), value.slice(1, 1), 0);
  ExpectNear(x.view({4, 2}).permute({1, 0}).recovery(), value.view({4, 2}).permute({1, 0}), 0);
  const auto [values, indices] = x.max(1);
  ExpectNear(values.recovery(), std::get<0>(value.max(1)), 1e-14);
  EXPECT_TRUE(indices.equal(std::get<1>(value.max(1))));
  EXPECT_TRUE(x.argmax(1).equal(value.argmax(1)));
  const std::vector<Composition> pieces = x.split(3, 1);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].sizes(), at::IntArrayRef({2, 1}));
  EXPECT_EQ(x.unbind(1).size(), 4u);
  ExpectNear(x.linear(Random({3, 4}, 9)).recovery(), at::linear(value, Random({3, 4}, 9)), 1e-13);
  Policy fast;
  fast.preset = Preset::kFast;
  ExpectNear(x.max(fast).recovery(), value.max(), 1e-14);
}

}  // namespace
}  // namespace addend
