// Shapes and dtypes in words.
#include "core/base/tensor_text.h"

#include <gtest/gtest.h>

namespace addend {
namespace {

TEST(TensorText, NamesShapesAndDtypes) {
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(ShapeText({2, 3}), "[2, 3]");
  EXPECT_EQ(TensorText(at::kFloat, {2, 3}), "f32[2, 3]");
  EXPECT_EQ(DtypeName(at::kBFloat16), "bf16");
  EXPECT_EQ(DtypeWord(at::kBFloat16), "bfloat16");
  EXPECT_EQ(DtypeWord(at::kComplexHalf), "complex32");
  EXPECT_EQ(DtypeWord(at::kQInt8), "qint8");
}

}  // namespace
}  // namespace addend
