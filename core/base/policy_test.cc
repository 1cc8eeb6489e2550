#include "core/base/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/policy_keys.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::Pair;

Policy With(const std::string& key, const std::string& value) {
  Policy policy;
  SetPolicyField(policy, key, value);
  return policy;
}

std::string Get(const Policy& policy, const std::string& key) {
  for (const auto& field : DescribePolicy(policy)) {
    if (field.first == key) return field.second;
  }
  return "(no such field)";
}

// The message of the InvalidArgument that setting a field throws; the policy must stay as it was.
std::string MessageOf(const std::string& key, const std::string& value) {
  Policy policy;
  policy.freeze = kFreezeGate;
  policy.tolerance = 0.5;
  const auto before = DescribePolicy(policy);
  try {
    SetPolicyField(policy, key, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DescribePolicy(policy), before);
    return error.what();
  }
  ADD_FAILURE() << key << "=" << value << " was accepted";
  return "";
}

TEST(PolicyTest, EveryKeyOfTheListIsAField) {
  const auto described = DescribePolicy(Policy());
  ASSERT_EQ(described.size(), PolicyKeys().size());
  for (size_t k = 0; k < described.size(); ++k) {
    const PolicyKey& key = PolicyKeys()[k];
    EXPECT_THAT(described[k], Pair(key.name, key.default_value));
    if (!key.unset.empty()) {
      EXPECT_EQ(Get(With(key.name, key.unset), key.name), key.unset);
    }
    // Enumerators are numbered as the values are: each reads back as itself.
    for (const PolicyValue& value : key.values) {
      const bool refused = key.name == "by_magnitude" && (value.name == "normalizer" || value.name == "denominator");
      if (refused) continue;
      EXPECT_EQ(Get(With(key.name, value.name), key.name), value.name);
    }
  }
}

TEST(PolicyTest, Defaults) {
  EXPECT_THAT(
      DescribePolicy(Policy()),
      ElementsAre(Pair("preset", "auto"), Pair("segments", "1"), Pair("nonlinearity", "path"), Pair("bias", "residual"),
                  Pair("freeze", "preset"), Pair("content_first", "attention+normalizer+denominator+gate"),
                  Pair("by_magnitude", "gate+activation"), Pair("conditions", "value"), Pair("compute_dtype", "model"),
                  Pair("anchor", "baseline"), Pair("missing_rule", "error"), Pair("on_failure", "error"),
                  Pair("check", "every_op"), Pair("tolerance", "dtype")));
}

TEST(PolicyTest, EveryChoiceOfEveryFieldRoundTrips) {
  const std::map<std::string, std::vector<std::string>> choices = {
      {"preset", {"auto", "faithful", "fast"}},
      {"segments", {"1", "4", "50"}},
      {"nonlinearity",
       {"path", "abs_affine", "hybrid_affine", "hybrid_affine(0.15)", "hybrid_affine(0)", "scaling", "gradient",
        "none"}},
      {"bias",
       {"residual", "abs", "hybrid", "hybrid(0.2)", "hybrid_threshold(1.5)", "sign", "sign(0.4)", "sign_threshold(0)",
        "norm", "norm(2)", "norm(inf)"}},
      {"anchor", {"baseline", "residual"}},
      {"freeze", {"preset", "none", "attention", "normalizer", "denominator", "gate", "activation", "attention+gate"}},
      {"content_first",
       {"none", "attention", "attention+normalizer+denominator", "gate", "attention+gate", "gate+activation"}},
      {"by_magnitude", {"none", "attention", "gate", "activation", "attention+gate"}},
      {"conditions", {"value", "baseline"}},
      {"compute_dtype", {"model", "float32", "float64"}},
      {"missing_rule", {"error", "path", "absorb"}},
      {"on_failure", {"error", "warn", "absorb", "ignore"}},
      {"check", {"every_op", "outputs", "off"}},
      {"tolerance", {"dtype", "0.001", "1e-12", "2"}},
  };
  ASSERT_EQ(choices.size(), DescribePolicy(Policy()).size()) << "a field is not tested";
  for (const auto& field : choices) {
    for (const std::string& value : field.second) {
      const Policy policy = With(field.first, value);
      EXPECT_EQ(Get(policy, field.first), value) << field.first;
      // The description as a whole makes the same policy, whatever it was before.
      Policy copy = With("tolerance", "3");
      copy.freeze = kFreezeNormalizer;
      for (const auto& entry : DescribePolicy(policy)) SetPolicyField(copy, entry.first, entry.second);
      EXPECT_EQ(DescribePolicy(copy), DescribePolicy(policy));
    }
  }
}

TEST(PolicyTest, TextSetsTheFieldThatItNames) {
  EXPECT_EQ(With("preset", "faithful").preset, Preset::kFaithful);
  EXPECT_EQ(With("preset", "fast").preset, Preset::kFast);
  EXPECT_EQ(With("missing_rule", "absorb").missing_rule, MissingRule::kAbsorb);
  EXPECT_EQ(With("missing_rule", "path").missing_rule, MissingRule::kPath);
  EXPECT_EQ(With("on_failure", "absorb").on_failure, OnFailure::kAbsorb);
  EXPECT_EQ(With("on_failure", "warn").on_failure, OnFailure::kWarn);
  EXPECT_EQ(With("on_failure", "ignore").on_failure, OnFailure::kIgnore);
  EXPECT_EQ(With("check", "outputs").check, Check::kOutputs);
  EXPECT_EQ(With("check", "off").check, Check::kOff);
}

TEST(PolicyTest, UnknownFieldListsTheFields) {
  EXPECT_EQ(
      MessageOf("presets", "fast"),
      "policy has no field presets; choose one of preset, segments, nonlinearity, bias, freeze, "
      "content_first, by_magnitude, conditions, compute_dtype, anchor, missing_rule, on_failure, check, tolerance");
  EXPECT_EQ(
      MessageOf("", ""),
      "policy has no field ; choose one of preset, segments, nonlinearity, bias, freeze, "
      "content_first, by_magnitude, conditions, compute_dtype, anchor, missing_rule, on_failure, check, tolerance");
}

TEST(PolicyTest, UnknownChoiceListsTheChoices) {
  EXPECT_EQ(MessageOf("preset", "slow"), "policy preset=slow is unknown; choose one of auto, faithful, fast");
  EXPECT_EQ(MessageOf("missing_rule", "warn"),
            "policy missing_rule=warn is unknown; choose one of error, path, absorb");
  EXPECT_EQ(MessageOf("on_failure", "path"),
            "policy on_failure=path is unknown; choose one of error, warn, absorb, ignore");
  EXPECT_EQ(MessageOf("check", "on"), "policy check=on is unknown; choose one of every_op, outputs, off");
  EXPECT_THAT(MessageOf("freeze", "softmax"),
              testing::AllOf(testing::StartsWith("policy freeze=softmax is unknown; choose one of "),
                             testing::HasSubstr("none, attention, normalizer, denominator, gate, activation")));
  // Choices are exact.
  MessageOf("preset", "Fast");
  MessageOf("preset", " fast");
  MessageOf("preset", "");
}

TEST(PolicyTest, FreezeCombinations) {
  EXPECT_EQ(With("freeze", "preset").freeze, std::nullopt);
  EXPECT_EQ(With("freeze", "none").freeze, kFreezeNothing);
  EXPECT_EQ(With("freeze", "attention+gate").freeze, kFreezeAttention | kFreezeGate);
  EXPECT_EQ(With("freeze", "gate,attention").freeze, kFreezeAttention | kFreezeGate);
  EXPECT_EQ(With("freeze", "gate+gate").freeze, kFreezeGate);
  EXPECT_EQ(With("freeze", "none+gate").freeze, kFreezeGate);
  // Written in one order, however it was given.
  EXPECT_EQ(Get(With("freeze", "activation,gate,denominator+normalizer+attention"), "freeze"),
            "attention+normalizer+denominator+gate+activation");
  EXPECT_THAT(MessageOf("freeze", "attention+"), testing::StartsWith("policy freeze= is unknown"));
  EXPECT_THAT(MessageOf("freeze", ""), testing::StartsWith("policy freeze= is unknown"));
  EXPECT_THAT(MessageOf("freeze", "attention+bias"), testing::StartsWith("policy freeze=bias is unknown"));
}

TEST(PolicyTest, ContentFirstAndConditions) {
  EXPECT_EQ(Policy().content_first, kFreezeAttention | kFreezeNormalizer | kFreezeDenominator | kFreezeGate);
  EXPECT_EQ(With("content_first", "none").content_first, kFreezeNothing);
  EXPECT_EQ(With("content_first", "gate,attention").content_first, kFreezeAttention | kFreezeGate);
  EXPECT_EQ(With("content_first@encoder", "none").For("aten::bmm", "encoder").content_first, kFreezeNothing);
  EXPECT_THAT(MessageOf("content_first", "half"), testing::StartsWith("policy content_first=half is unknown"));
  EXPECT_EQ(Policy().by_magnitude, kFreezeGate | kFreezeActivation);
  EXPECT_EQ(With("by_magnitude", "none").by_magnitude, kFreezeNothing);
  EXPECT_EQ(With("by_magnitude@encoder", "gate").For("aten::bmm", "encoder").by_magnitude, kFreezeGate);
  for (const char* kinds : {"normalizer", "attention+denominator"}) {
    EXPECT_EQ(MessageOf("by_magnitude", kinds),
              std::string("policy by_magnitude=") + kinds +
                  ": normalizers and denominators may have a reference of nothing, where no share keeps their content "
                  "finite; choose some of attention, gate, activation");
  }
  EXPECT_EQ(With("conditions", "baseline").conditions, Conditions::kBaseline);
  EXPECT_EQ(MessageOf("conditions@encoder", "baseline"),
            "policy conditions is the same for the whole model; preset, nonlinearity, bias, freeze, content_first, "
            "by_magnitude and missing_rule may be given for encoder");
}

TEST(PolicyTest, EveryFreezeMaskRoundTrips) {
  for (uint32_t bits = 0; bits < 16; ++bits) {
    Policy policy;
    policy.freeze = bits;
    EXPECT_EQ(With("freeze", Get(policy, "freeze")).freeze, bits);
  }
}

TEST(PolicyTest, Tolerance) {
  EXPECT_EQ(With("tolerance", "1e-3").tolerance, 1e-3);
  EXPECT_EQ(With("tolerance", "0.5").tolerance, 0.5);
  EXPECT_EQ(With("tolerance", "dtype").tolerance, std::nullopt);
  for (const char* value : {"nan", "-1", "0", "-0", "inf", "-inf", "1e999", "", "x", "1e-3x"}) {
    EXPECT_EQ(MessageOf("tolerance", value),
              std::string("policy tolerance=") + value + " is not a positive number (or dtype)");
  }
}

TEST(PolicyTest, FrozenKindsFollowThePresetUnlessGiven) {
  EXPECT_EQ(With("preset", "faithful").FrozenKinds(), kFreezeNothing);
  const Policy fast = With("preset", "fast");
  EXPECT_EQ(fast.FrozenKinds(), kFreezeAttention | kFreezeNormalizer | kFreezeDenominator);
  EXPECT_TRUE(fast.Freezes(kFreezeAttention));
  EXPECT_TRUE(fast.Freezes(kFreezeNormalizer));
  EXPECT_TRUE(fast.Freezes(kFreezeDenominator));
  EXPECT_FALSE(fast.Freezes(kFreezeGate));

  Policy given = fast;
  SetPolicyField(given, "freeze", "none");
  EXPECT_EQ(given.FrozenKinds(), kFreezeNothing);
  given = With("preset", "faithful");
  SetPolicyField(given, "freeze", "gate");
  EXPECT_TRUE(given.Freezes(kFreezeGate));
  EXPECT_FALSE(given.Freezes(kFreezeAttention));
}

TEST(PolicyTest, ResolvedReplacesAutoOnly) {
  EXPECT_EQ(Policy().Resolved(true).preset, Preset::kFaithful);
  EXPECT_EQ(Policy().Resolved(false).preset, Preset::kFast);
  for (const bool baseline_given : {false, true}) {
    EXPECT_EQ(With("preset", "fast").Resolved(baseline_given).preset, Preset::kFast);
    EXPECT_EQ(With("preset", "faithful").Resolved(baseline_given).preset, Preset::kFaithful);
  }
  Policy policy = With("tolerance", "0.25");
  policy.freeze = kFreezeGate;
  policy.missing_rule = MissingRule::kAbsorb;
  policy.on_failure = OnFailure::kIgnore;
  policy.check = Check::kOff;
  auto expected = DescribePolicy(policy);
  expected[0].second = "fast";
  EXPECT_EQ(DescribePolicy(policy.Resolved(false)), expected);
  EXPECT_EQ(policy.preset, Preset::kAuto) << "Resolved makes a copy";
}

TEST(PolicyTest, ChoicesWithNumbers) {
  EXPECT_EQ(With("nonlinearity", "hybrid_affine(0.25)").NonlinearityThreshold(), 0.25);
  EXPECT_EQ(With("nonlinearity", "hybrid_affine").NonlinearityThreshold(), 0.15);
  EXPECT_EQ(With("bias", "hybrid").BiasParameter(), 0.15);
  EXPECT_EQ(With("bias", "hybrid_threshold").BiasParameter(), 0.15);
  EXPECT_EQ(With("bias", "sign").BiasParameter(), 0.4);
  EXPECT_EQ(With("bias", "sign_threshold").BiasParameter(), 0.4);
  EXPECT_EQ(With("bias", "norm").BiasParameter(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(With("bias", "norm(2)").BiasParameter(), 2);
  // A choice without number has the default again.
  Policy policy = With("bias", "sign(0.1)");
  SetPolicyField(policy, "bias", "sign");
  EXPECT_EQ(policy.BiasParameter(), 0.4);

  EXPECT_EQ(MessageOf("nonlinearity", "scaling(1)"), "policy nonlinearity=scaling(1): scaling takes no number");
  EXPECT_EQ(MessageOf("nonlinearity", "hybrid_affine(-1)"),
            "policy nonlinearity=hybrid_affine(-1): the number is a threshold, 0 or more");
  EXPECT_EQ(MessageOf("nonlinearity", "hybrid_affine(x)"),
            "policy nonlinearity=hybrid_affine(x) is not of the form choice(number)");
  EXPECT_THAT(MessageOf("nonlinearity", "affine"),
              testing::HasSubstr("choose one of path, abs_affine, hybrid_affine, scaling, gradient, none"));
  EXPECT_EQ(MessageOf("bias", "abs(1)"), "policy bias=abs(1): abs takes no number");
  EXPECT_EQ(MessageOf("bias", "norm(0)"), "policy bias=norm(0): the number is the order of a norm, above 0");
  EXPECT_EQ(MessageOf("bias", "sign(nan)"), "policy bias=sign(nan): the number is a threshold, 0 or more");
  for (const char* value : {"0", "-3", "2.5", "", "x", "100001"}) {
    EXPECT_EQ(MessageOf("segments", value),
              std::string("policy segments=") + value + " is not a whole number from 1 to 100000");
  }
}

TEST(PolicyTest, OverridesRoundTripAndTheLastOneWins) {
  Policy policy = With("preset", "fast");
  SetPolicyField(policy, "freeze@aten::softmax", "gate,attention");
  SetPolicyField(policy, "nonlinearity@encoder.layers.3", "hybrid_affine(0.15)");
  SetPolicyField(policy, "preset@encoder", "faithful");
  SetPolicyField(policy, "nonlinearity@aten::relu", "none");
  Policy copy;
  for (const auto& entry : DescribePolicy(policy)) SetPolicyField(copy, entry.first, entry.second);
  EXPECT_EQ(DescribePolicy(copy), DescribePolicy(policy));
  EXPECT_EQ(Get(policy, "freeze@aten::softmax"), "attention+gate");

  EXPECT_EQ(policy.For("aten::gelu", "encoder.layers.30").nonlinearity, Nonlinearity::kPath);
  EXPECT_EQ(policy.For("aten::gelu", "encoder.layers.3").nonlinearity, Nonlinearity::kHybridAffine);
  EXPECT_EQ(policy.For("aten::gelu", "encoder.layers.3.linear1").nonlinearity, Nonlinearity::kHybridAffine);
  EXPECT_EQ(policy.For("aten::relu_", "encoder.layers.3").nonlinearity, Nonlinearity::kNone);
  EXPECT_EQ(policy.For("aten::gelu", "encoder.layers.3").preset, Preset::kFaithful);
  EXPECT_EQ(policy.For("aten::gelu", "decoder").preset, Preset::kFast);
  EXPECT_EQ(policy.For("aten::softmax.int", "decoder").FrozenKinds(), kFreezeAttention | kFreezeGate);
  EXPECT_TRUE(policy.For("aten::softmax.int", "encoder").overrides.empty());
}

TEST(PolicyTest, OverridesAreChecked) {
  EXPECT_EQ(MessageOf("segments@encoder", "4"),
            "policy segments is the same for the whole model; preset, nonlinearity, bias, freeze, content_first, "
            "by_magnitude and missing_rule may be given for encoder");
  EXPECT_EQ(MessageOf("bias@", "abs"), "policy bias@ names neither an operator nor a module behind the @");
  EXPECT_EQ(MessageOf("preset@encoder", "auto"), "policy preset@encoder=auto is unknown; choose one of faithful, fast");
  EXPECT_THAT(MessageOf("freeze@encoder", "softmax"), testing::StartsWith("policy freeze=softmax is unknown"));
  EXPECT_THAT(MessageOf("colour@encoder", "red"), testing::StartsWith("policy has no field colour"));
}

TEST(PolicyTest, SelectorsOfOperators) {
  const auto selects = [](const char* selector, const char* op) {
    return PolicyOverride{selector, "bias", "abs"}.Selects(op, "");
  };
  EXPECT_TRUE(selects("aten::max", "aten::max.dim"));
  EXPECT_TRUE(selects("aten::max.dim", "aten::max.dim"));
  EXPECT_FALSE(selects("aten::max.other", "aten::max.dim"));
  EXPECT_TRUE(selects("aten::add", "aten::add_.Tensor"));
  EXPECT_TRUE(selects("aten::add_", "aten::add_.Tensor"));
  EXPECT_FALSE(selects("aten::softmax", "aten::_softmax"));
  EXPECT_FALSE(selects("aten::ma", "aten::max"));
}

TEST(PolicyTest, PresetName) {
  EXPECT_EQ(PresetName(Preset::kAuto), "auto");
  EXPECT_EQ(PresetName(Preset::kFaithful), "faithful");
  EXPECT_EQ(PresetName(Preset::kFast), "fast");
}

}  // namespace
}  // namespace addend
