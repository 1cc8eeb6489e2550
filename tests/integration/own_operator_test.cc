// Operators of a user's own, without a rule, with one, and with the policies between; and that docs/extending.md shows
// what is run here.
#include "docs/examples/operators/own_operator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/program/random_testing.h"

namespace my_program {

// The forms that write, the form without derivative, and one with a side effect.
at::Tensor& SmoothAbsInPlace(at::Tensor& x, double width) { return x.copy_(SmoothAbs(x.clone(), width)); }
at::Tensor& SmoothAbsOut(const at::Tensor& x, double width, at::Tensor& out) {
  const at::Tensor result = SmoothAbs(x, width);
  out.resize_(result.sizes());
  return out.copy_(result);
}
// Computes on its own, so that no derivative is known.
at::Tensor Plain(const at::Tensor& x, double width) {
  const at::Tensor in = x.contiguous();
  const at::Tensor out = at::empty(x.sizes(), x.options());
  const double* from = in.data_ptr<double>();
  double* to = out.data_ptr<double>();
  for (int64_t i = 0; i < in.numel(); ++i) to[i] = std::sqrt(from[i] * from[i] + width * width) - width;
  return out;
}
at::Tensor Logged(const at::Tensor& x) { return x * 2; }
at::Tensor Drawn(const at::Tensor& x) { return x * at::rand_like(x); }

TORCH_LIBRARY_FRAGMENT(my_ops, m) {
  m.def("smooth_abs_(Tensor(a!) x, float width) -> Tensor(a!)");
  m.def("smooth_abs.out(Tensor x, float width, *, Tensor(a!) out) -> Tensor(a!)");
  m.def("plain(Tensor x, float width) -> Tensor");
  m.def("logged(Tensor x) -> Tensor");
  m.def("drawn(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(my_ops, CPU, m) {
  m.impl("smooth_abs_", SmoothAbsInPlace);
  m.impl("smooth_abs.out", SmoothAbsOut);
  m.impl("plain", Plain);
  m.impl("logged", Logged);
  m.impl("drawn", Drawn);
}
TORCH_LIBRARY_IMPL(my_ops, Autograd, m) {
  m.impl("smooth_abs_", SmoothAbsInPlace);
  m.impl("logged", Logged);
  m.impl("drawn", Drawn);
}

}  // namespace my_program

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

c10::OperatorHandle Find(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

Tensor Call(const char* name, const char* overload, std::vector<c10::IValue> stack) {
  Find(name, overload).callBoxed(stack);
  return stack[0].toTensor();
}

using Function = std::function<Tensor(const Tensor&)>;

// The ways to call the operator.
const std::vector<std::pair<std::string, Function>>& Forms() {
  static const auto& forms = *new std::vector<std::pair<std::string, Function>>{
      {"functional",
       [](const Tensor& x) {
         return Call("my_ops::smooth_abs", "", {x, 0.5});
       }},
      {"in-place",
       [](const Tensor& x) {
         return Call("my_ops::smooth_abs_", "", {x.clone(), 0.5});
       }},
      {"out",
       [](const Tensor& x) {
         return Call("my_ops::smooth_abs", "out", {x, 0.5, at::zeros_like(x)});
       }},
      {"out, resized",
       [](const Tensor& x) {
         return Call("my_ops::smooth_abs", "out", {x, 0.5, at::empty({0}, x.options())});
       }},
  };
  return forms;
}

Decomposition Decompose(const Function& run, const Registry* registry, MissingRule missing_rule) {
  Input input;
  input.value = Random({2, 3}, 1);
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(Random({2, 3}, 2));
  DecomposeOptions options;
  options.everything = true;
  options.registry = registry;
  options.policy.missing_rule = missing_rule;
  return TracedModel(FromFunction([&](const std::vector<Tensor>& in) { return run((in[0] * 2).tanh()) * 3; }))
      .Decompose({input}, options);
}

void ExpectBothTruths(const Decomposition& result, const Function& run, double leftover) {
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::allclose(parts.recovery(), result.outputs[0].value, 0, 1e-13));
  const Tensor reference = run((Random({2, 3}, 2) * 2).tanh()) * 3;
  EXPECT_TRUE(at::allclose(parts.reference(), reference, 0, 1e-14));
  EXPECT_LE(parts.leftover().abs().max().item<double>(), leftover);
  EXPECT_TRUE(result.report.failures.empty());
}

TEST(OwnOperatorTest, WithoutARuleItIsAnErrorThatNamesIt) {
  const auto message = [](const Function& form) {
    return MessageOf([&] { Decompose(form, nullptr, MissingRule::kError); });
  };
  EXPECT_EQ(
      message(Forms()[0].second),
      "no composition rule for my_ops::smooth_abs (op #2); see docs/extending.md, or choose policy "
      "missing_rule=path, which finds the parts by the operator's derivative, or missing_rule=absorb, which leaves "
      "over all that the operator gives");
  EXPECT_THAT(message(Forms()[1].second), HasSubstr("no composition rule for my_ops::smooth_abs_ "));
  EXPECT_THAT(message(Forms()[2].second), HasSubstr("no composition rule for my_ops::smooth_abs.out "));
}

TEST(OwnOperatorTest, ThePathRuleAndARuleOfItsOwnAgree) {
  const Registry registry = my_program::MyRules();
  const Decomposition expected = Decompose(Forms()[0].second, &registry, MissingRule::kError);
  for (const auto& form : Forms()) {
    SCOPED_TRACE(form.first);
    const Decomposition ruled = Decompose(form.second, &registry, MissingRule::kError);
    ExpectBothTruths(ruled, form.second, 1e-13);
    EXPECT_EQ(ruled.report.path_ruled, 0);
    const Decomposition path = Decompose(form.second, nullptr, MissingRule::kPath);
    ExpectBothTruths(path, form.second, 1e-11);
    EXPECT_EQ(path.report.path_ruled, 1);
    EXPECT_THAT(testing::PrintToString(path.report.notes), HasSubstr("no rule, linearized"));
    EXPECT_THAT(testing::PrintToString(path.report.notes), HasSubstr("my_ops::smooth_abs"));
    for (const Decomposition* one : {&ruled, &path}) {
      const Tensor& components = one->outputs[0].composition.components();
      EXPECT_TRUE(at::allclose(components, expected.outputs[0].composition.components(), 1e-10, 1e-11));
      EXPECT_GT(components.abs().max().item<double>(), 0.1);
    }
  }
}

// A kernel alone, which nothing can differentiate.
TEST(OwnOperatorTest, WithoutADerivativeAllOfItIsLeftOver) {
  const Function plain = [](const Tensor& x) { return Call("my_ops::plain", "", {x, 0.5}); };
  for (const MissingRule missing_rule : {MissingRule::kPath, MissingRule::kAbsorb}) {
    const Decomposition result = Decompose(plain, nullptr, missing_rule);
    ExpectBothTruths(result, plain, 10);
    EXPECT_EQ(result.outputs[0].composition.components().abs().max().item<double>(), 0);
    EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("my_ops::plain"));
  }
  Registry registry = Registry::Default();
  registry.Register({"my_ops::plain", Kind::kPointwise, [](const RuleCall& call) {
                       // Its derivative is known, if not to LibTorch: x / sqrt(x^2 + w^2).
                       const RuleOperand& x = call.Require("x");
                       const double w = call.Double("width", 0);
                       const Tensor slope =
                           SecantSlope(x.value, x.reference, call.outputs[0].value, call.outputs[0].reference,
                                       Curve::kSmooth, [w](const Tensor& at) { return at / (at * at + w * w).sqrt(); });
                       return Elementwise(call, Kind::kPointwise, {{0, slope}});
                     }});
  const Decomposition ruled = Decompose(plain, &registry, MissingRule::kError);
  ExpectBothTruths(ruled, plain, 1e-13);
  EXPECT_GT(ruled.outputs[0].composition.components().abs().max().item<double>(), 0.1);
}

TEST(OwnOperatorTest, SideEffectsMayBeRefusedAndRandomOnesAre) {
  Registry registry = Registry::Default();
  Rule rule{"my_ops::logged", Kind::kLinear, [](const RuleCall& call) {
              return Elementwise(call, Kind::kLinear, {{0, 2.0}});
            }};
  const Function logged = [](const Tensor& x) { return Call("my_ops::logged", "", {x}); };
  registry.Register(rule);
  ExpectBothTruths(Decompose(logged, &registry, MissingRule::kError), logged, 1e-13);
  rule.precondition = [](const CallArguments&) {
    throw Unimplemented("my_ops::logged writes a log, and would write it twice");
  };
  registry.Register(rule);
  const std::string message = MessageOf([&] { Decompose(logged, &registry, MissingRule::kError); });
  EXPECT_THAT(message, HasSubstr("would write it twice (op #2"));
  const Function drawn = [](const Tensor& x) { return Call("my_ops::drawn", "", {x}); };
  EXPECT_THAT(MessageOf([&] { Decompose(drawn, nullptr, MissingRule::kPath); }),
              HasSubstr("path rule of my_ops::drawn: called again, it gives something else"));
}

// ------------------------------------------------------------------------------------------------------ documentation

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Text between "// [name]" and "// [end]".
std::string Marked(const std::string& text, const std::string& name) {
  const std::string begin = "// [" + name + "]\n";
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "no " + name;
  return text.substr(from + begin.size(), text.find("// [end]", from) - from - begin.size());
}

TEST(ExtendingTest, QuotesWhatThisTestRuns) {
  const std::string page = Read("docs/extending.md");
  const std::string header = Read("docs/examples/operators/own_operator.h");
  for (const char* part : {"operator", "rule"}) {
    EXPECT_THAT(page, HasSubstr("```cpp\n" + Marked(header, part) + "```")) << part;
  }
}

// "One line and one case": both are quoted as they stand in the library, where the laws run them.
TEST(ExtendingTest, QuotesALineAndACaseOfTheLibrary) {
  const std::string page = Read("docs/extending.md");
  const auto quoted = [&](const std::string& file) {
    const std::string begin = "n `" + file + "`:\n\n```cpp\n";
    const size_t from = page.find(begin);
    EXPECT_NE(from, std::string::npos) << file;
    if (from == std::string::npos) return std::string("nothing is quoted");
    const size_t start = from + begin.size();
    return page.substr(start, page.find("```", start) - start);
  };
  for (const char* file : {"core/rules/activation.cc", "core/rules/cases/activation.cc"}) {
    const std::string line = quoted(file);
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    EXPECT_THAT(line, HasSubstr("aten::softplus"));
    EXPECT_THAT(Read(file), HasSubstr(line)) << file;
  }
}

}  // namespace
}  // namespace addend
