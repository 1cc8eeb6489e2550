// Programs of whole models: record and replay agree bit for bit, from memory and from a file, in place and out of
// place; a branch not taken stops them; and plain LibTorch runs those that can be exported.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <set>

#include "core/base/error_testing.h"
#include "core/model/program_model.h"
#include "core/model/script_testing.h"
#include "core/program/program_dtype.h"
#include "core/program/program_file.h"
#include "core/program/random_testing.h"
#include "core/program/recorder.h"
#include "core/program/replay.h"
#include "core/recording/export_torchscript.h"
#include "core/recording/record_program.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

Tensor Drawn(at::IntArrayRef sizes, uint64_t seed) { return Random(sizes, seed, at::kFloat); }

struct Architecture {
  std::string name;
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<std::pair<std::string, Tensor>> buffers;
  std::string source;
  Tensor input;
  Tensor other;  // goes another way; undefined where there is one way only
};
void PrintTo(const Architecture& architecture, std::ostream* out) { *out << architecture.name; }

std::vector<Architecture> Architectures() {
  return {
      // A loop that the data end.
      {"early_exit",
       {{"weight", Drawn({4, 4}, 1)}},
       {},
       R"(
def forward(self, x):
    h = x
    steps = 0
    while bool(h.norm() > 1.0) and steps < 8:
        h = torch.tanh(torch.matmul(h, self.weight)) * 0.4
        steps += 1
    return h, steps
)",
       Drawn({2, 4}, 2) * 4,
       Drawn({2, 4}, 2) * 1e-3},
      // Keys are written into a cache that views read; results are gathered in a list.
      {"cached_attention",
       {{"key", Drawn({3, 3}, 3)}, {"query", Drawn({3, 3}, 4)}},
       {},
       R"(
def forward(self, x):
    cache = torch.zeros([x.size(0), x.size(1)])
    outs : List[Tensor] = []
    for t in range(x.size(0)):
        cache[t] = torch.matmul(x[t], self.key)
        keys = cache[:t + 1]
        weights = torch.softmax(torch.matmul(keys, torch.matmul(x[t], self.query)), 0)
        outs.append(torch.matmul(weights, keys))
    return torch.stack(outs)
)",
       Drawn({4, 3}, 5),
       {}},
      // Each row goes to the expert that its gate prefers.
      {"mixture_of_experts",
       {{"gate", Drawn({3, 2}, 6)}, {"experts", Drawn({2, 3, 3}, 7)}},
       {},
       R"(
def forward(self, x):
    best = torch.softmax(torch.matmul(x, self.gate), 1).argmax(1)
    y = torch.zeros_like(x)
    for e in range(self.experts.size(0)):
        rows = torch.nonzero(torch.eq(best, e)).squeeze(1)
        if rows.numel() > 0:
            y.index_add_(0, rows, torch.matmul(x.index_select(0, rows), self.experts[e]))
    return y
)",
       Drawn({5, 3}, 8),
       -Drawn({5, 3}, 8)},
      // Halves and channels of an image, written through views and put together otherwise.
      {"halves",
       {{"weight", Drawn({2, 2, 3, 3}, 9)}},
       {},
       R"(
def forward(self, x):
    y = torch.conv2d(x, self.weight, None, [1, 1], [1, 1])
    y[:, :, :, 0:2].mul_(0.5)
    y.relu_()
    parts = torch.split(y, 1, 1)
    z = torch.cat([parts[1], parts[0]], 1)
    z[:, 0] += x[:, 0]
    z.view([z.size(0), -1]).t()[0].fill_(1.0)
    return z.transpose(1, 2).contiguous(), (parts[0].sum(), y)
)",
       Drawn({2, 2, 4, 4}, 10),
       {}},
      // A running mean that each run changes, and a sign that chooses the branch.
      {"running_mean",
       {{"scale", Drawn({3}, 11)}},
       {{"state", at::zeros({3})}},
       R"(
def forward(self, x):
    self.state.mul_(0.9).add_(x.mean(0), alpha=0.1)
    if bool(x.sum() > 0):
        out = (x - self.state) * self.scale
    else:
        out = x + self.state
    return {"out": out, "state": self.state.clone()}
)",
       Drawn({4, 3}, 12).abs(),
       -Drawn({4, 3}, 12).abs()},
  };
}

// Expects what every program has to hold: `inputs` gives fresh copies.
void ExpectReplays(const Recording& recording, const c10::IValue& expected,
                   const std::function<std::vector<c10::IValue>()>& inputs, const std::string& name) {
  ExpectSame(recording.output, expected);
  const Replay replay(recording.program);
  ExpectSame(replay.Run(inputs()).output, expected);
  ReplayOptions out_of_place;
  out_of_place.out_of_place = true;
  ExpectSame(replay.Run(inputs(), out_of_place).output, expected);
  const std::string folder = testing::TempDir() + "/program_" + name;
  SaveProgram(*recording.program, folder);
  ExpectSame(Replay(std::make_shared<const RecordedProgram>(LoadProgram(folder))).Run(inputs()).output, expected);
}

bool Exportable(const RecordedProgram& program) {
  return std::all_of(program.guards.begin(), program.guards.end(),
                     [](const RecordedGuard& guard) { return guard.kind == GuardKind::kProperty; });
}

// Plain LibTorch, as it comes: twice, since it optimizes what has run before.
void ExpectExported(const RecordedProgram& program, const c10::IValue& expected,
                    const std::function<std::vector<c10::IValue>()>& inputs, const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name + ".pt";
  if (!Exportable(program)) {
    const std::string message = MessageOf([&] { ExportTorchScript(program, path); });
    EXPECT_THAT(message, HasSubstr("cannot export"));
    EXPECT_THAT(message, HasSubstr("(op #"));
    return;
  }
  ExportTorchScript(program, path);
  torch::jit::Module module = torch::jit::load(path);
  const at::NoGradGuard no_grad;
  for (int round = 0; round < 3; ++round) ExpectSame(module.forward(inputs()), expected);
  std::set<std::string> names;
  std::set<std::string> exported;
  for (const RecordedValue& value : program.values) {
    if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kBuffer) names.insert(value.name);
  }
  for (const auto& item : module.named_parameters()) exported.insert(item.name);
  for (const auto& item : module.named_buffers()) exported.insert(item.name);
  EXPECT_EQ(exported, names);
  std::set<std::string> modules;
  for (const auto& item : module.named_modules()) {
    if (!item.name.empty()) modules.insert(item.name);
  }
  EXPECT_EQ(modules, std::set<std::string>(program.module_paths.begin(), program.module_paths.end()));
}

class FiveArchitectures : public testing::TestWithParam<Architecture> {
 protected:
  FiveArchitectures() {
    torch::jit::Module module("Network");
    for (const auto& [name, tensor] : GetParam().parameters) module.register_parameter(name, tensor.clone(), false);
    for (const auto& [name, tensor] : GetParam().buffers) module.register_buffer(name, tensor.clone());
    module.define(GetParam().source);
    path_ = testing::TempDir() + "/" + GetParam().name + "_source.pt";
    module.save(path_);
  }
  // A model as it was made: some change what they hold.
  std::shared_ptr<Model> Fresh() const { return LoadTorchScript(path_); }

  std::string path_;
};

TEST_P(FiveArchitectures, ReplayAndExport) {
  const auto inputs = [&] { return std::vector<c10::IValue>{GetParam().input.clone()}; };
  const at::NoGradGuard no_grad;
  const c10::IValue expected = Fresh()->Run(inputs());
  const Recording recording = Record(*Fresh(), inputs());
  ExpectReplays(recording, expected, inputs, GetParam().name);
  EXPECT_EQ(Exportable(*recording.program), !GetParam().other.defined());
  ExpectExported(*recording.program, expected, inputs, GetParam().name);
}

class BranchingArchitectures : public FiveArchitectures {};

TEST_P(BranchingArchitectures, StopOnTheBranchNotTaken) {
  const at::NoGradGuard no_grad;
  const auto other = [&] { return std::vector<c10::IValue>{GetParam().other.clone()}; };
  const Recording recording = Record(*Fresh(), {GetParam().input.clone()});
  const std::string message = MessageOf([&] { Replay(recording.program).Run(other()); });
  EXPECT_THAT(message, HasSubstr("a guard does not hold"));
  EXPECT_THAT(message, HasSubstr("op #"));
  // Recorded on that branch it replays.
  ExpectReplays(Record(*Fresh(), other()), Fresh()->Run(other()), other, GetParam().name + "_other");
}

INSTANTIATE_TEST_SUITE_P(Scripts, FiveArchitectures, testing::ValuesIn(Architectures()),
                         [](const auto& info) { return info.param.name; });

std::vector<Architecture> Branching() {
  std::vector<Architecture> branching;
  for (const Architecture& architecture : Architectures()) {
    if (architecture.other.defined()) branching.push_back(architecture);
  }
  return branching;
}

INSTANTIATE_TEST_SUITE_P(Scripts, BranchingArchitectures, testing::ValuesIn(Branching()),
                         [](const auto& info) { return info.param.name; });

using ConformanceModels = ScriptTest;

TEST_P(ConformanceModels, ReplayAndExport) {
  const at::NoGradGuard no_grad;
  const auto inputs = [&] { return Inputs(); };
  const c10::IValue expected = model_->Run(Inputs());
  const Recording recording = Record(*model_, Inputs());
  ExpectReplays(recording, expected, inputs, GetParam().model);
  EXPECT_EQ(Exportable(*recording.program), GetParam().model != "awkward") << "it alone branches on its input";
  ExpectExported(*recording.program, expected, inputs, GetParam().model);
}

INSTANTIATE_TEST_SUITE_P(Scripts, ConformanceModels, testing::ValuesIn(ScriptCases()),
                         [](const auto& info) { return info.param.model; });

class TrainedModels : public testing::TestWithParam<std::string> {};

TEST_P(TrainedModels, ReplayAndExport) {
  const at::NoGradGuard no_grad;
  const std::string folder = "docs/examples/models/" + GetParam() + "/";
  const auto model = LoadTorchScript(folder + "model.pt");
  Tensor row = ReadTensorFile(folder + "heldout.safetensors").Find("input")->narrow(0, 3, 1);
  if (row.is_floating_point()) row = row.to(at::kFloat);
  const auto inputs = [&] { return std::vector<c10::IValue>{row.clone()}; };
  const c10::IValue expected = model->Run(inputs());
  const Recording recording = Record(*model, inputs());
  ExpectReplays(recording, expected, inputs, GetParam());
  ASSERT_TRUE(Exportable(*recording.program));
  ExpectExported(*recording.program, expected, inputs, GetParam());
  // In double precision the program gives what the model gives there.
  ScriptOptions wide;
  wide.dtype = at::kDouble;
  const Tensor wide_row = row.is_floating_point() ? row.to(at::kDouble) : row;
  const auto converted = std::make_shared<const RecordedProgram>(InDtype(*recording.program, at::kDouble));
  const Tensor replayed = Replay(converted).Run({wide_row}).output.toTensor();
  EXPECT_EQ(replayed.scalar_type(), at::kDouble);
  EXPECT_TRUE(
      at::allclose(replayed, LoadTorchScript(folder + "model.pt", wide)->Run({wide_row}).toTensor(), 1e-12, 1e-12));
}

INSTANTIATE_TEST_SUITE_P(Scripts, TrainedModels, testing::Values("breast_cancer", "digits", "language", "speaker"),
                         [](const auto& info) { return info.param; });

TEST(ExportedProgram, KeepsNestedInputsAndSizesThatFollow) {
  torch::jit::Module module("Nested");
  module.define(R"(
def forward(self, pair: Tuple[Tensor, List[Tensor]], named: Dict[str, Tensor]):
    x, parts = pair
    x.add_(named["shift"])
    return [x.reshape([-1]), parts[0] * 2], {"sum": x.sum() + parts[1].sum()}
)");
  const std::string path = testing::TempDir() + "/nested_source.pt";
  module.save(path);
  const auto model = LoadTorchScript(path);
  const auto inputs = [] {
    c10::Dict<std::string, Tensor> named;
    named.insert("shift", at::ones({2, 1}));
    return std::vector<c10::IValue>{
        c10::ivalue::Tuple::create(
            {c10::IValue(Drawn({2, 3}, 1)), c10::IValue(c10::List<Tensor>({Drawn({2}, 2), Drawn({3}, 3)}))}),
        named};
  };
  const at::NoGradGuard no_grad;
  const c10::IValue expected = model->Run(inputs());
  const Recording recording = Record(*model, inputs());
  ExpectReplays(recording, expected, inputs, "nested_structures");
  ExpectExported(*recording.program, expected, inputs, "nested_structures");
}

TEST(ReplayedOutOfPlace, LeavesInputsAsTheyWere) {
  const auto model = FromFunction([](const std::vector<Tensor>& in) {
    in[0].t().add_(1);
    return in[0] * 2;
  });
  const Tensor x = Drawn({2, 3}, 1);
  const Recording recording = Record(*model, {x.clone()});
  ReplayOptions options;
  options.out_of_place = true;
  const Tensor given = x.clone();
  EXPECT_TRUE(Same(Replay(recording.program).Run({given}, options).output.toTensor(), (x + 1) * 2));
  EXPECT_TRUE(Same(given, x));
}

}  // namespace
}  // namespace addend
