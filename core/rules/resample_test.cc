// Sampling where both the image and the grid move, judged by LibTorch's own sampler.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/rules/rule_testing.h"

namespace addend {
namespace {

constexpr int64_t kLinear = 0;
constexpr int64_t kNearest = 1;
constexpr int64_t kCubic = 2;

OperatorCall Sampling(int64_t interpolation, int64_t padding, bool align_corners, double scale = 1) {
  Draw draw(at::kDouble, 3);
  return OperatorCall("aten::grid_sampler_2d", {draw.Moving({2, 3, 4, 5}), draw.Moving({2, 3, 2, 2}, scale),
                                                interpolation, padding, align_corners});
}

TEST(GridSamplerTest, ImageAndGridTogetherLeaveNothingOver) {
  for (const int64_t interpolation : {kLinear, kCubic}) {
    for (const int64_t padding : {0, 1, 2}) {
      for (const bool align_corners : {false, true}) {
        SCOPED_TRACE(testing::Message() << interpolation << " " << padding << " " << align_corners);
        const RuleCall call = Sampling(interpolation, padding, align_corners).Describe(Faithful());
        const RuleResult rule = BuildRule(call);
        ASSERT_EQ(rule.inputs.size(), 2u);
        EXPECT_LE(RelativeBracket(call, rule), 1e-10);
      }
    }
  }
}

// Every formula of the rule's own sampler against LibTorch's: its path is exact only if both read the same, far outside
// of the image too.
TEST(GridSamplerTest, TheGridAloneLeavesNothingOverFarOutside) {
  for (const int64_t interpolation : {kLinear, kCubic}) {
    for (const int64_t padding : {0, 1, 2}) {
      for (const bool align_corners : {false, true}) {
        SCOPED_TRACE(testing::Message() << interpolation << " " << padding << " " << align_corners);
        const RuleCall call = Sampling(interpolation, padding, align_corners, 4).Describe(Faithful(), /*decomposed=*/2);
        const RuleResult rule = BuildRule(call);
        ASSERT_EQ(rule.inputs, std::vector<int>({1}));
        EXPECT_LE(RelativeBracket(call, rule), 1e-10);
      }
    }
  }
}

// Along a line, three coordinates make a polynomial of a higher degree than two do. Older LibTorchs refuse to sample
// volumes by cubics.
TEST(GridSamplerTest, VolumesLeaveNothingOverEither) {
  for (const int64_t interpolation : {kLinear, kCubic}) {
    for (const int64_t padding : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << interpolation << " " << padding);
      Draw draw(at::kDouble, 3);
      const OperatorCall sampling(
          "aten::grid_sampler_3d",
          {draw.Moving({2, 3, 3, 4, 5}), draw.Moving({2, 2, 3, 2, 3}, 2), interpolation, padding, false});
      std::optional<RuleCall> call;
      try {
        call = sampling.Describe(Faithful());
      } catch (const c10::Error& refused) {
        ASSERT_EQ(interpolation, kCubic) << refused.what_without_backtrace();
        continue;
      }
      EXPECT_LE(RelativeBracket(*call, BuildRule(*call)), 1e-10);
    }
  }
}

TEST(GridSamplerTest, NearestPassesNothingOfTheGrid) {
  const RuleCall both = Sampling(kNearest, 0, false).Describe(Faithful());
  const RuleResult rule = BuildRule(both);
  EXPECT_EQ(rule.inputs, std::vector<int>({0}));
  EXPECT_FALSE(rule.exact);
  const RuleCall grid = Sampling(kNearest, 0, false).Describe(Faithful(), /*decomposed=*/2);
  EXPECT_EQ(BuildRule(grid).kind, Kind::kOpaque);
}

}  // namespace
}  // namespace addend
