// Guards of a recording are numbers and sizes that elements of an input or random draws tell, and nothing else. A
// program without such a guard is exported and gives what the model gives for another input; a program with one stops.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>

#include "core/base/error_testing.h"
#include "core/model/script_testing.h"
#include "core/program/program_file.h"
#include "core/program/random_testing.h"
#include "core/program/replay.h"
#include "core/recording/export_torchscript.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/record_program.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;
using Inputs = std::vector<c10::IValue>;

Tensor Drawn(at::IntArrayRef sizes, uint64_t seed) { return Random(sizes, seed, at::kFloat); }

struct Construct {
  std::string name;
  std::string source;
  Inputs input;
  Inputs other;  // for which the model gives something else, or goes another way
};
void PrintTo(const Construct& construct, std::ostream* out) { *out << construct.name; }

Inputs Copies(const Inputs& inputs) {
  Inputs copies;
  for (const c10::IValue& input : inputs) copies.emplace_back(input.toTensor().clone());
  return copies;
}

std::shared_ptr<Model> Scripted(const Construct& construct) {
  torch::jit::Module module("Network");
  module.register_parameter("weight", Drawn({4}, 7), false);
  module.define(construct.source);
  const std::string path = testing::TempDir() + "/" + construct.name + ".pt";
  module.save(path);
  return LoadTorchScript(path);
}

// ---------------------------------------------------------------------------------------------- what is no guard

Inputs Rows(uint64_t seed) { return {Drawn({3, 4}, seed)}; }
Inputs RowsAndClasses(uint64_t seed, std::vector<int64_t> classes) {
  return {Drawn({2, 4}, seed), at::tensor(classes)};
}

std::vector<Construct> Unguarded() {
  return {{"comparison_of_constants", R"(
def forward(self, x):
    t = torch.linspace(0., 1., 4)
    if bool((t[1:] > t[:-1]).all()):
        return x * t
    return x
)",
           Rows(1), Rows(2)},
          {"classes_are_given", R"(
def forward(self, x, i):
    return x * torch.one_hot(i, 4)
)",
           RowsAndClasses(1, {1, 3}), RowsAndClasses(2, {0, 2})},
          {"number_of_a_parameter", R"(
def forward(self, x):
    scale = float(self.weight.abs().max().item())
    if scale > 0.0:
        x = x / scale
    return x + self.weight
)",
           Rows(1), Rows(2)},
          {"mask_of_constants", R"(
def forward(self, x):
    keep = torch.arange(4) % 2 == 0
    return x[:, keep].sum(1) + torch.masked_select(self.weight, keep).sum()
)",
           Rows(1), Rows(2)},
          {"rows_by_a_constant_mask", R"(
def forward(self, x):
    return torch.masked_select(x, torch.ones([3, 4]).tril() > 0)
)",
           Rows(1), Rows(2)},
          {"places_in_a_triangle", R"(
def forward(self, x):
    at = torch.ones([x.size(0), x.size(1)]).triu().nonzero()
    return x[at[:, 0], at[:, 1]]
)",
           Rows(1), Rows(2)},
          {"repeats_that_are_constants", R"(
def forward(self, x):
    return torch.repeat_interleave(x, torch.tensor([1, 0, 2]), 0)
)",
           Rows(1), Rows(2)},
          {"only_the_shape_is_read", R"(
def forward(self, x):
    ones = torch.ones([1]).expand_as(x).type_as(x) + torch.zeros_like(x)
    if bool(ones.sum() > 3.0):
        x = x * int(torch._shape_as_tensor(x)[1])
    return x * float(ones.mean().item())
)",
           Rows(1), Rows(2)},
          {"memory_without_input", R"(
def forward(self, x):
    m = torch.zeros([4])
    m[0:2].add_(2.0)
    m[3:].copy_(self.weight[1:2])
    return x * float(m.max().item())
)",
           Rows(1), Rows(2)},
          {"tensor_of_sizes", R"(
def forward(self, x):
    n = torch.tensor([x.size(0), x.size(1)])
    return x.reshape([int(n[0]) * int(n[1])]) * n.prod()
)",
           Rows(1), Rows(2)}};
}

class NoGuard : public testing::TestWithParam<Construct> {};

TEST_P(NoGuard, IsTakenForOne) {
  const at::NoGradGuard no_grad;
  const auto model = Scripted(GetParam());
  const Recording recording = Record(*model, Copies(GetParam().input));
  for (const RecordedGuard& guard : recording.program->guards) EXPECT_EQ(guard.kind, GuardKind::kProperty);
  const std::string path = testing::TempDir() + "/" + GetParam().name + "_exported.pt";
  ExportTorchScript(*recording.program, path);
  torch::jit::Module exported = torch::jit::load(path);
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
  for (const Inputs& inputs : {GetParam().input, GetParam().other}) {
    const c10::IValue expected = model->Run(Copies(inputs));
    ExpectSame(Replay(recording.program).Run(Copies(inputs)).output, expected);
    ExpectSame(Replay(loaded).Run(Copies(inputs)).output, expected);
    ExpectSame(exported.forward(Copies(inputs)), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Constructs, NoGuard, testing::ValuesIn(Unguarded()),
                         [](const auto& info) { return info.param.name; });

// ------------------------------------------------------------------------------------------------- what is one

Inputs Ones() { return {at::ones({3, 4})}; }
Inputs Steps() { return {at::arange(12, at::kFloat).view({3, 4}) / 3}; }

std::vector<Construct> Guarded() {
  return {{"number_of_the_input", "def forward(self, x):\n    return x * float(x.max().item())\n", Ones(), Steps()},
          {"condition_on_the_input", R"(
def forward(self, x):
    if bool(x.sum() > 13.0):
        return x * 2
    return x * 3
)",
           Ones(), Steps()},
          {"classes_that_elements_tell", R"(
def forward(self, x):
    return torch.one_hot(x.to(4), -1)
)",
           Ones(), Steps()},
          {"mask_of_the_input", "def forward(self, x):\n    return x[x > 1.0]\n", Ones(), Steps()},
          {"places_of_the_input", "def forward(self, x):\n    return torch.nonzero(x)\n", Ones(), Steps()},
          {"repeats_of_the_input", R"(
def forward(self, x):
    return torch.repeat_interleave(torch.ones([3]), x[:, 1].to(4))
)",
           Ones(), Steps()},
          {"through_memory_that_was_plain", R"(
def forward(self, x):
    m = torch.zeros([4])
    m[1:3].copy_(x[2, 1:3])
    return x * float(m.max().item())
)",
           Ones(), Steps()},
          {"through_a_parameters_product", R"(
def forward(self, x):
    k = int((torch.ones([4]) * x[2]).argmax())
    return x * self.weight[k] * k
)",
           Ones(), Steps()},
          {"list_of_the_input", R"(
def forward(self, x):
    v : List[float] = x[2].tolist()
    return x * v[1]
)",
           Ones(), Steps()}};
}

class Guard : public testing::TestWithParam<Construct> {};

TEST_P(Guard, StopsReplaysAndExports) {
  const at::NoGradGuard no_grad;
  const auto model = Scripted(GetParam());
  const Recording recording = Record(*model, Copies(GetParam().input));
  ExpectSame(Replay(recording.program).Run(Copies(GetParam().input)).output, model->Run(Copies(GetParam().input)));
  EXPECT_THAT(MessageOf([&] { Replay(recording.program).Run(Copies(GetParam().other)); }),
              HasSubstr("a guard does not hold"));
  EXPECT_THAT(MessageOf([&] { ExportTorchScript(*recording.program, testing::TempDir() + "/refused.pt"); }),
              HasSubstr("depends on elements"));
  // From a file it is the same program.
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
  EXPECT_THAT(MessageOf([&] { Replay(loaded).Run(Copies(GetParam().other)); }), HasSubstr("a guard does not hold"));
}

INSTANTIATE_TEST_SUITE_P(Constructs, Guard, testing::ValuesIn(Guarded()),
                         [](const auto& info) { return info.param.name; });

TEST(Guards, NumbersThatWereDrawnAreGuards) {
  const Construct drawing = {
      "drawn_number", "def forward(self, x):\n    return x * float(torch.rand([1]).item())\n", {}, {}};
  const Recording recording = Record(*Scripted(drawing), Ones());
  ASSERT_EQ(recording.program->guards.size(), 1u);
  EXPECT_EQ(recording.program->guards[0].kind, GuardKind::kNumber);
}

// ----------------------------------------------------------------------------------- files as torch.jit.trace writes
// them

// `constants` are the last inputs of `graph`, and become constants of it.
std::shared_ptr<Model> FromGraph(const std::string& name, const std::string& graph,
                                 const std::vector<Tensor>& constants = {}) {
  auto parsed = std::make_shared<torch::jit::Graph>();
  torch::jit::parseIR(graph, parsed.get());
  {
    const torch::jit::WithInsertPoint first(*parsed->nodes().begin());
    for (size_t k = constants.size(); k-- > 0;) {
      const size_t last = parsed->inputs().size() - 1;
      parsed->inputs()[last]->replaceAllUsesWith(parsed->insertConstant(constants[k]));
      parsed->eraseInput(last);
    }
  }
  torch::jit::Module module("Network");
  parsed->inputs()[0]->setType(module.type());
  const c10::QualifiedName forward(*module.type()->name(), "forward");
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(forward, parsed));
  const std::string path = testing::TempDir() + "/" + name + ".pt";
  module.save(path);
  return LoadTorchScript(path);
}

// b, t, d = x.size(); x.view(b, t, d // 2, 2).sum(-1)
constexpr char kSizesAsTensors[] = R"(
graph(%self, %x : Tensor, %two : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %pair : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %last : int = prim::Constant[value=-1]()
  %b : int = aten::size(%x, %zero)
  %bt : Tensor = prim::NumToTensor(%b)
  %bi : int = aten::Int(%bt)
  %t : int = aten::size(%x, %one)
  %tt : Tensor = prim::NumToTensor(%t)
  %ti : int = aten::Int(%tt)
  %d : int = aten::size(%x, %pair)
  %dt : Tensor = prim::NumToTensor(%d)
  %h : Tensor = aten::floor_divide(%dt, %two)
  %hi : int = aten::Int(%h)
  %sizes : int[] = prim::ListConstruct(%bi, %ti, %hi, %pair)
  %y : Tensor = aten::view(%x, %sizes)
  %dims : int[] = prim::ListConstruct(%last)
  %z : Tensor = aten::sum(%y, %dims, %no, %none)
  %scaled : Tensor = aten::mul(%z, %tt)
  return (%scaled))";

TEST(TracedFiles, SizesAsTensorsAreNoGuards) {
  const at::NoGradGuard no_grad;
  const auto model = FromGraph("sizes_as_tensors", kSizesAsTensors, {at::scalar_tensor(2, at::kLong)});
  const Recording recording = Record(*model, {Drawn({2, 3, 4}, 1)});
  const std::string path = testing::TempDir() + "/sizes_as_tensors_exported.pt";
  ExportTorchScript(*recording.program, path);
  const Tensor other = Drawn({2, 3, 4}, 2);
  ExpectSame(torch::jit::load(path).forward({other}), model->Run({other}));
}

TEST(TracedFiles, SizesAsTensorsFollowTheInput) {
  const at::NoGradGuard no_grad;
  const auto model = FromGraph("sizes_that_follow", kSizesAsTensors, {at::scalar_tensor(2, at::kLong)});
  const Recording recording =
      RecordSizes(*model, {{Drawn({2, 3, 4}, 1)}, {Drawn({5, 3, 4}, 2)}, {Drawn({5, 7, 4}, 3)}});
  EXPECT_EQ(recording.program->free.size(), 2u);
  const std::string path = testing::TempDir() + "/sizes_that_follow_exported.pt";
  ExportTorchScript(*recording.program, path);
  torch::jit::Module exported = torch::jit::load(path);
  const auto loaded = std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "p"));
  for (const auto& [batch, time] : {std::pair<int64_t, int64_t>{2, 3}, {1, 1}, {7, 5}}) {
    const Tensor x = Drawn({batch, time, 4}, 4);
    const c10::IValue expected = model->Run({x});
    ExpectSame(Replay(recording.program).Run({x}).output, expected);
    ExpectSame(Replay(loaded).Run({x}).output, expected);
    ExpectSame(exported.forward({x}), expected);
  }
}

// A number that the model multiplied by lies in a traced file as a tensor of float64 without dimensions.
TEST(TracedFiles, NumbersTakeNoPartInPromotion) {
  const at::NoGradGuard no_grad;
  const std::string graph = R"(
graph(%self, %x : Tensor, %c : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::mul(%x, %c)
  %z : Tensor = aten::add(%y, %c, %one)
  %w : Tensor = aten::div(%x, %c)
  %v : Tensor = aten::sub(%w, %c, %one)
  %r : Tensor = aten::add(%z, %v, %one)
  return (%r))";
  const double number = -3.07;
  const auto model = FromGraph("number", graph, {at::scalar_tensor(number, at::kDouble)});
  const Tensor x = at::arange(4);
  const Tensor expected = (x * number + number) + (x / number - number);
  ASSERT_EQ(expected.scalar_type(), at::kFloat);
  EXPECT_TRUE(Same(model->Run({x}).toTensor(), expected));
  const Recording recording = Record(*model, {x});
  EXPECT_TRUE(Same(recording.output.toTensor(), expected));
  EXPECT_TRUE(Same(Replay(recording.program).Run({x}).output.toTensor(), expected));
}

// ------------------------------------------------------------------------------------------- tensors made on the way

// Makes a tensor of numbers like PyTorch: memory of an operator, filled without one, and detached in place.
Tensor MadeOfNumbers(const std::vector<float>& numbers) {
  const at::AutoDispatchBelowADInplaceOrView below;
  Tensor made = at::empty({static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), made.data_ptr<float>());
  made = at::lift_fresh(made);
  return made.detach_();
}

TEST(MadeOnTheWay, TensorsOfNumbersReplayAndExport) {
  const at::NoGradGuard no_grad;
  const auto function = [](const std::vector<Tensor>& in) {
    Tensor hidden = in[0] * MadeOfNumbers({2, 3, 4, 5});
    hidden.detach_();
    hidden.view({12}).add_(1);
    return hidden + MadeOfNumbers({-1});
  };
  const auto model = FromFunction(function);
  const Recording recording = Record(*model, {Drawn({3, 4}, 1)});
  const std::string path = testing::TempDir() + "/made_on_the_way.pt";
  ExportTorchScript(*recording.program, path);
  torch::jit::Module exported = torch::jit::load(path);
  for (const bool grad : {false, true}) {
    const c10::AutoGradMode mode(grad);
    const Tensor x = Drawn({3, 4}, 2);
    const Tensor expected = function({x});
    EXPECT_TRUE(Same(Replay(recording.program).Run({x}).output.toTensor(), expected));
    EXPECT_TRUE(Same(exported.forward({x}).toTensor(), expected));
  }
}

TEST(MadeOnTheWay, ConstantsFollowSizes) {
  const auto function = [](const std::vector<Tensor>& in) {
    return in[0] /
           MadeOfNumbers({static_cast<float>(in[0].size(0)), 2, static_cast<float>(2 * in[0].size(1) + 1)}).sum();
  };
  const Recording recording =
      RecordSizes(*FromFunction(function), {{Drawn({2, 3}, 1)}, {Drawn({5, 3}, 2)}, {Drawn({5, 7}, 3)}});
  const Tensor x = Drawn({9, 4}, 4);
  EXPECT_TRUE(Same(Replay(recording.program).Run({x}).output.toTensor(), function({x})));
  const auto squared = [](const std::vector<Tensor>& in) {
    return in[0] / MadeOfNumbers({static_cast<float>(in[0].size(0) * in[0].size(0))});
  };
  EXPECT_THAT(MessageOf([&] {
                RecordSizes(*FromFunction(squared), {{Drawn({2, 3}, 1)}, {Drawn({5, 3}, 2)}});
              }),
              HasSubstr("which follows no dimension of an input linearly"));
}

}  // namespace
}  // namespace addend
