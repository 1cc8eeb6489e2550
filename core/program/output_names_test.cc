#include "core/program/output_names.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::IsEmpty;

Tensor Zero() { return at::zeros({2}); }

c10::Dict<std::string, Tensor> DictOf(const std::vector<std::string>& keys) {
  c10::Dict<std::string, Tensor> dict;
  for (const std::string& key : keys) dict.insert(key, Zero());
  return dict;
}

c10::IValue TupleOf(std::vector<c10::IValue> elements) { return c10::ivalue::Tuple::create(std::move(elements)); }

TEST(OutputNamesTest, TensorsWithoutNamesAreNumbered) {
  EXPECT_THAT(OutputNames(c10::IValue(Zero())), ElementsAre("output"));
  EXPECT_THAT(OutputNames(TupleOf({Zero(), TupleOf({Zero(), 3.0}), std::vector<Tensor>{Zero(), Zero()}})),
              ElementsAre("output", "output.1", "output.2", "output.3"));
  const auto type =
      c10::TupleType::createNamed(c10::QualifiedName("Pair"), std::vector<std::string>{"left", "right"},
                                  std::vector<c10::TypePtr>{c10::TensorType::get(), c10::TensorType::get()});
  EXPECT_THAT(OutputNames(c10::IValue(c10::ivalue::Tuple::createNamed({Zero(), Zero()}, type))),
              ElementsAre("output", "output.1"));
  EXPECT_THAT(OutputNames(c10::IValue()), IsEmpty());
}

TEST(OutputNamesTest, DictionariesNameByPlace) {
  EXPECT_THAT(OutputNames(c10::IValue(DictOf({"logits", "aux"}))), ElementsAre("output.logits", "output.aux"));
  // A tensor beside a dictionary is named by its place, too, and an element without a tensor counts as a place.
  EXPECT_THAT(OutputNames(TupleOf({Zero(), c10::IValue(), DictOf({"past"})})),
              ElementsAre("output.0", "output.2.past"));
  c10::Dict<int64_t, Tensor> numbered;
  numbered.insert(4, Zero());
  EXPECT_THAT(OutputNames(c10::IValue(numbered)), ElementsAre("output.4"));
  // An undefined tensor is none.
  EXPECT_THAT(OutputNames(TupleOf({Tensor(), DictOf({"a"})})), ElementsAre("output.1.a"));
}

TEST(OutputNamesTest, NoTwoHaveOneName) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("a.b", Zero());
  dict.insert("a", DictOf({"b"}));
  EXPECT_THAT(OutputNames(c10::IValue(dict)), ElementsAre("output", "output.1"));
}

// A dictionary without tensors names none.
TEST(OutputNamesTest, OnlyWhatHoldsTensorsNames) {
  c10::Dict<std::string, int64_t> counts;
  counts.insert("steps", 3);
  EXPECT_THAT(OutputNames(TupleOf({Zero(), counts, Zero()})), ElementsAre("output", "output.1"));
}

TEST(NamedResultTest, KeepsTheNamesOfDictionaries) {
  const c10::IValue result = NamedResult({"output.logits", "output.past.0"}, {Zero(), Zero()});
  ASSERT_TRUE(result.isGenericDict());
  EXPECT_THAT(OutputNames(result), ElementsAre("output.logits", "output.past.0"));
  EXPECT_TRUE(NamedResult({"output.logits"}, {Zero()}).isGenericDict());
}

TEST(NamedResultTest, IsATupleOtherwise) {
  EXPECT_TRUE(NamedResult({"output"}, {Zero()}).isTensor());
  EXPECT_TRUE(NamedResult({"y"}, {Zero()}).isTensor());
  EXPECT_TRUE(NamedResult({"output", "output.1"}, {Zero(), Zero()}).isTuple());
  EXPECT_TRUE(NamedResult({"output.0", "output.1.0"}, {Zero(), Zero()}).isTuple());
  EXPECT_TRUE(NamedResult({"output.a", "b"}, {Zero(), Zero()}).isTuple());
  EXPECT_TRUE(NamedResult({"output.a", "output.a"}, {Zero(), Zero()}).isTuple());
}

}  // namespace
}  // namespace addend
