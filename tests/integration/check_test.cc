// The checks themselves are checked: a broken coefficient is caught by its bracket, a broken application by its
// recovery, and each is named with operator and source line.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/program/tensor_io.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

using testing::HasSubstr;

constexpr char kModel[] = "docs/examples/models/language/model.pt";
constexpr char kSample[] = "docs/examples/models/language/sample.safetensors";

Decomposition Decompose(const Registry& registry, OnFailure on_failure) {
  const TensorFile sample = ReadTensorFile(kSample);
  Input input;
  input.value = *sample.Find("input");
  input.split = Split::ByLabels(*sample.Find("segments"));
  input.baseline = Baseline::Token(0);
  DecomposeOptions options;
  options.registry = &registry;
  options.everything = true;
  options.policy.on_failure = on_failure;
  return TracedModel(LoadTorchScript(kModel)).Decompose({input}, options);
}

// The first line of the model's own source that holds `text`, as "language.py:75"; read from the file itself. For an
// operator inside one of LibTorch's modules that is the line which calls the module.
std::string LineOf(const std::string& text) {
  caffe2::serialize::PyTorchStreamReader reader{std::string(kModel)};
  for (const std::string& name : reader.getAllRecords()) {
    if (name.rfind("code/", 0) != 0 || name.size() < 12 || name.substr(name.size() - 12) != "/language.py") continue;
    const auto record = reader.getRecord(name);
    const std::string source(static_cast<const char*>(std::get<0>(record).get()), std::get<1>(record));
    int64_t line = 0;
    for (const auto piece : absl::StrSplit(source, '\n')) {
      ++line;
      if (std::string(piece.data(), piece.size()).find(text) != std::string::npos) {
        return absl::StrCat(name.substr(name.rfind('/') + 1), ":", line);
      }
    }
  }
  return "not found";
}

// A map that does what another does, but wrongly.
class Scaled : public LinearMap {
 public:
  Scaled(std::shared_ptr<const LinearMap> inner, double factor) : inner_(std::move(inner)), factor_(factor) {}
  Rows Forward(const Rows& rows) const override {
    Rows out = inner_->Forward(rows);
    for (at::Tensor& t : out) t = t * factor_;
    return out;
  }
  Rows Transpose(const Rows& cotangents) const override { return inner_->Transpose(cotangents); }

 private:
  std::shared_ptr<const LinearMap> inner_;
  double factor_;
};

// Sends the first component to zero and leaves all others, and the move, as they are.
class DropsFirstRow : public LinearMap {
 public:
  explicit DropsFirstRow(std::shared_ptr<const LinearMap> inner) : inner_(std::move(inner)) {}
  Rows Forward(const Rows& rows) const override {
    Rows out = inner_->Forward(rows);
    for (at::Tensor& t : out) {
      t = t.clone();
      t.select(0, 0).zero_();
    }
    return out;
  }
  Rows Transpose(const Rows& cotangents) const override { return inner_->Transpose(cotangents); }

 private:
  std::shared_ptr<const LinearMap> inner_;
};

Registry WithBroken(const std::string& name, std::function<void(RuleResult&)> damage) {
  Registry registry = Registry::Default();
  Rule rule = *registry.Find(name, name);
  const RuleFunction build = rule.build;
  rule.build = [build, damage](const RuleCall& call) {
    RuleResult result = build(call);
    damage(result);
    return result;
  };
  registry.Register(rule);
  return registry;
}

const OperatorReport& FirstFailure(const Decomposition& result) {
  for (const OperatorReport& entry : result.report.checks) {
    if (!entry.check.ok()) return entry;
  }
  throw std::runtime_error("nothing failed");
}

struct Broken {
  std::string rule;    // whose coefficient is broken
  std::string source;  // what the model's source calls it
  std::string op;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.rule; }

class BrokenOperator : public testing::TestWithParam<Broken> {
 protected:
  // Returns the check that fails first. It names the operator and the line of the model; so does the error, which
  // blames `part` of the operator.
  static OperatorCheck FirstFailureOf(const Registry& registry, const std::string& part) {
    const Decomposition result = Decompose(registry, OnFailure::kWarn);
    const OperatorReport& first = FirstFailure(result);
    EXPECT_EQ(first.position.op, GetParam().op);
    EXPECT_THAT(first.position.Describe(), HasSubstr(LineOf(GetParam().source)));
    const std::string message = MessageOf([&] { Decompose(registry, OnFailure::kError); });
    EXPECT_THAT(message, HasSubstr(part + " of " + GetParam().op));
    EXPECT_THAT(message, HasSubstr(LineOf(GetParam().source)));
    return first.check;
  }
};

// One percent off. What quadrature leaves over is kept, so there the recovery holds all the same: only the bracket
// tells.
TEST_P(BrokenOperator, WithWrongCoefficientsIsCaughtByItsBracketAndNamed) {
  const Registry registry =
      WithBroken(GetParam().rule, [](RuleResult& result) { result.map = std::make_shared<Scaled>(result.map, 1.01); });
  EXPECT_FALSE(FirstFailureOf(registry, "the coefficients").bracket_holds);
}

TEST_P(BrokenOperator, ThatLosesARowIsCaughtByItsRecoveryAndNamed) {
  const Registry registry =
      WithBroken(GetParam().rule, [](RuleResult& result) { result.map = std::make_shared<DropsFirstRow>(result.map); });
  const OperatorCheck check = FirstFailureOf(registry, "the parts");
  EXPECT_FALSE(check.recovered);
  EXPECT_TRUE(check.bracket_holds);  // the coefficients are right
}

INSTANTIATE_TEST_SUITE_P(All, BrokenOperator,
                         testing::Values(Broken{"aten::softmax", "torch.softmax", "aten::softmax"},
                                         Broken{"aten::gelu", "(activation).forward", "aten::gelu"},
                                         Broken{"aten::layer_norm", "(attention_norm).forward", "aten::layer_norm"},
                                         Broken{"aten::mean", "torch.mean", "aten::mean"}),
                         [](const auto& info) { return info.param.rule.substr(6); });

}  // namespace
}  // namespace addend
