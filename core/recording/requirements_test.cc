// All requirements that a run does not meet are told before it runs.
#include "core/recording/requirements.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "core/model/torchscript.h"
#include "core/program/program_file.h"
#include "core/program/replay.h"
#include "core/recording/record_program.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<Model> Script() {
  torch::jit::Module module("Network");
  module.register_parameter("weight", at::ones({3, 3}), false);
  module.define(R"(
def encode(self, x):
    return torch.matmul(x, self.weight)
def decode(self, y):
    return y.t()
def forward(self, x, mask):
    y = torch.dropout(self.encode(x), 0.5, True)
    if bool(mask.sum() > 100):
        y = torch.special_zeta(y, y) + torch.special_zeta(y.t(), y)
    return y * mask
)");
  const std::string path = testing::TempDir() + "/requirements.pt";
  module.save(path);
  return LoadTorchScript(path);
}

std::vector<std::string> Messages(const std::vector<UnmetRequirement>& unmet, RequirementKind kind) {
  std::vector<std::string> messages;
  for (const UnmetRequirement& requirement : unmet) {
    if (requirement.kind == kind) messages.push_back(requirement.message);
  }
  return messages;
}

TEST(UnmetRequirements, OfAScriptAreToldTogetherWithoutARun) {
  const auto unmet = UnmetRequirements(*Script(), {at::ones({3, 3}, at::kDouble)});
  EXPECT_THAT(Messages(unmet, RequirementKind::kInput),
              ElementsAre(HasSubstr("takes 2 inputs (x: Tensor, mask: Tensor), not 1"),
                          HasSubstr("input 0 is f64, the parameters are f32")));
  EXPECT_THAT(Messages(unmet, RequirementKind::kMode), ElementsAre(HasSubstr("aten::dropout runs in training mode")));
  // On the branch that these inputs would not take.
  EXPECT_THAT(Messages(unmet, RequirementKind::kOperator),
              ElementsAre(HasSubstr("aten::special_zeta has no rule (called in 2 places)")));
  EXPECT_EQ(unmet.back().position.op, "aten::special_zeta");
  EXPECT_TRUE(unmet.front().error);
}

TEST(UnmetRequirements, AreNoneWhereNothingIsMissing) {
  torch::jit::Module module("Network");
  module.define("def forward(self, x):\n    return torch.relu(x.view([-1]))[0:2] + 1\n");
  const std::string path = testing::TempDir() + "/nothing_missing.pt";
  module.save(path);
  EXPECT_THAT(UnmetRequirements(*LoadTorchScript(path), {at::ones({3})}), IsEmpty());
}

TEST(UnmetRequirements, OfAProgramAreThoseOfItsReplay) {
  const auto model = FromFunction(
      [](const std::vector<at::Tensor>& in) { return at::special_zeta(at::dropout(in[0], 0.5, true), in[1]); });
  const auto program = Record(*model, {at::ones({3, 3}), at::ones({3})}).program;
  const auto unmet = UnmetRequirements(*program, {at::ones({3, 2}), at::ones({3}, at::kDouble)});
  EXPECT_THAT(Messages(unmet, RequirementKind::kInput),
              ElementsAre(HasSubstr("input_0 is f32[3, 2], recorded was f32[3, 3]"), HasSubstr("input_1 is f64[3]")));
  EXPECT_THAT(Messages(unmet, RequirementKind::kMode), ElementsAre(HasSubstr("aten::dropout")));
  EXPECT_THAT(Messages(unmet, RequirementKind::kOperator), ElementsAre(HasSubstr("aten::special_zeta")));
  EXPECT_EQ(unmet.back().position.op_index, 1);
}

TEST(Methods, OfAModuleAreOneProgram) {
  const auto script = Script();
  const auto both = MethodsOf(*script, {"encode", "decode"});
  EXPECT_THAT(both->InputNames(), ElementsAre("encode.x", "decode.y"));
  const at::Tensor x = at::rand({2, 3});
  const at::Tensor y = at::rand({2, 4});
  const Recording recording = Record(*both, {x, y});
  const auto loaded =
      std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "program"));
  const auto results = Replay(loaded).Run({x, y}).output.toGenericDict();
  EXPECT_TRUE(at::equal(results.at("encode").toTensor(), x.matmul(at::ones({3, 3}))));
  EXPECT_TRUE(at::equal(results.at("decode").toTensor(), y.t()));
  // One alone gives what it gives.
  EXPECT_TRUE(at::equal(MethodsOf(*script, {"decode"})->Run({y}).toTensor(), y.t()));
  EXPECT_THROW(MethodsOf(*script, {"missing"}), Error);
}

}  // namespace
}  // namespace addend
