// Runs `addend attribute`.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using AttributeTest = ProgramTest;

// One sweep back gives what the decomposition gives, for all targets that are asked for.
TEST_F(AttributeTest, GivesWhatDecomposeGives) {
  for (const Example& example : Examples()) {
    for (const std::string preset : {"preset=faithful", "preset=fast"}) {
      SCOPED_TRACE(example.name + " " + preset);
      const Arguments common = example.input + Arguments{"--policy", preset, "--dtype", "float64", "--json"};
      const Result forward = Run(Arguments{"decompose"} + common + Arguments{"--target", "1"});
      const Result back = Run(Arguments{"attribute"} + common + Arguments{"--target", "1", "--target", "1-0"});
      ASSERT_EQ(back.code, 0) << back.err;
      EXPECT_EQ(back.err, "");
      const Json whole = Json::parse(forward.out);
      const Json record = Json::parse(back.out);
      for (const char* same : {"components", "inputs", "policy", "model", "kind", "noun", "at"}) {
        EXPECT_EQ(record[same], whole[same]) << same;
      }
      ASSERT_EQ(record["targets"].size(), 2u);
      const Json& one = record["targets"][0];
      const Json& other = whole["targets"][0];
      EXPECT_EQ(one["name"], other["name"]);
      EXPECT_EQ(one["probability"], other["probability"]);
      const double scale = other["mass"];
      for (const char* number : {"value", "reference", "leftover", "recovery"}) {
        EXPECT_NEAR(one[number].get<double>(), other[number].get<double>(), 1e-10 * scale) << number;
      }
      ASSERT_EQ(one["contributions"].size(), example.parts);
      for (size_t k = 0; k < example.parts; ++k) {
        EXPECT_NEAR(one["contributions"][k].get<double>(), other["contributions"][k].get<double>(), 1e-10 * scale);
      }
      // The compared element is in the same row.
      Json index = other["index"];
      index.back() = 1;
      EXPECT_EQ(record["targets"][1]["index"], index);
      index.back() = 0;
      EXPECT_EQ(record["targets"][1]["subtract"], index);
      EXPECT_LT(RelativeError(record["targets"][1]), 1e-10);
      EXPECT_FALSE(record.contains("operators"));
    }
  }
}

// Examples are small: what is dropped under so low a limit is computed again.
TEST_F(AttributeTest, AMemoryLimitChangesNothing) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    const Arguments command = Arguments{"attribute"} + example.input + Arguments{"--nodes", "--json", "--target", "1"};
    const Json whole = Json::parse(Run(command).out);
    const Result within = Run(command + Arguments{"--memory", "20KB"});
    ASSERT_EQ(within.code, 0) << within.err;
    const Json limited = Json::parse(within.out);
    EXPECT_EQ(limited["targets"], whole["targets"]);
    EXPECT_EQ(limited["operators"], whole["operators"]);
  }
  ExpectError(Arguments{"attribute"} + Examples()[0].input +
                  Arguments{"--memory", "1MB", "--policy", "segments=8", "--target", "1"},
              "segments=1");
}

TEST_F(AttributeTest, ShowsWhatPassesThroughOperators) {
  const Result result = Run(Arguments{"attribute"} + Examples()[1].input + Arguments{"--nodes", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  ASSERT_GT(record["operators"].size(), 3u);
  // The last operator of the model is a linear layer: all of the difference passes through it.
  const Json& last = record["operators"].back();
  const Json& target = record["targets"][0];
  EXPECT_EQ(last["operator"], "aten::linear");
  EXPECT_NEAR(last["passed"][0].get<double>(), target["value"].get<double>() - target["reference"].get<double>(),
              1e-5 * target["mass"].get<double>());
  const Result table = Run(Arguments{"attribute"} + Examples()[1].input + Arguments{"--nodes", "--top", "11"});
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, AllOf(HasSubstr("passes"), HasSubstr("leaves over"), HasSubstr("aten::linear"),
                               HasSubstr("--top shows more")));
}

TEST_F(AttributeTest, ShowsTheGraphWithWhatPassesThroughIt) {
  const std::string page = Path("graph.html");
  const Result result = Run(Arguments{"attribute"} + Examples()[1].input +
                            Arguments{"--target", "3", "--target", "5", "--graph", page, "--top", "3"});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Page written: "), Not(HasSubstr("passes"))));
  const std::string text = ReadFile(page);
  EXPECT_THAT(text, AllOf(HasSubstr("passed to 3"), HasSubstr("passed to 5"), HasSubstr("aten::linear")));
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--graph", ""}, "the path of a file");
}

TEST_F(AttributeTest, DrawsOneNumber) {
  const std::string path = Path("figure.svg");
  const Arguments command = Arguments{"attribute"} + Examples()[1].input + Arguments{"--svg", path};
  const Result result = Run(command + Arguments{"--target", "3", "--top", "2"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nPicture written: " + path));
  EXPECT_THAT(ReadFile(path), AllOf(HasSubstr("<title>Score for \u201c3\u201d</title>"), HasSubstr("others together"),
                                    HasSubstr("(64 pixels)"), HasSubstr("Note: preset auto: faithful")));
  ExpectError(command + Arguments{"--target", "3", "--target", "5"}, "--svg draws one number");
  ExpectError(command + Arguments{"--each-example"}, "--svg draws one number");
}

TEST_F(AttributeTest, WritesATensorForEachInput) {
  const std::string out = Path("out.safetensors");
  const Result result = Run(Arguments{"attribute"} + Examples()[1].input +
                            Arguments{"--target", "3", "--target", "5", "--target", "3-5", "--out", out});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\"3\""), HasSubstr("\"5\""), HasSubstr("3 minus 5")));
  const TensorFile file = ReadTensorFile(out);
  const at::Tensor contributions = *file.Find("contributions");
  const at::Tensor elements = *file.Find("input/elements");
  EXPECT_EQ(contributions.sizes(), at::IntArrayRef({3, 64}));
  EXPECT_EQ(elements.sizes(), at::IntArrayRef({3, 1, 1, 8, 8}));
  EXPECT_LE((elements.reshape({3, 64}) - contributions).abs().max().item<double>(), 1e-5);
  EXPECT_LE((contributions[0] - contributions[1] - contributions[2]).abs().max().item<double>(), 1e-4);
  const at::Tensor recovery = contributions.sum(1) + *file.Find("reference") + *file.Find("leftover");
  EXPECT_LE((recovery - *file.Find("value")).abs().max().item<double>(), 1e-4);
  EXPECT_EQ(Json::parse(file.metadata.at("targets")).size(), 3u);
}

TEST_F(AttributeTest, ExplainsWhatASoftmaxSays) {
  const Arguments common = Examples()[1].input + Arguments{"--json"};
  const Result forward = Run(Arguments{"decompose"} + common + Arguments{"--target", "log_probability:3"});
  const Result back =
      Run(Arguments{"attribute"} + common + Arguments{"--target", "log_probability:3", "--target", "entropy"});
  ASSERT_EQ(forward.code, 0) << forward.err;
  ASSERT_EQ(back.code, 0) << back.err;
  const Json whole = Json::parse(forward.out)["targets"][0];
  const Json targets = Json::parse(back.out)["targets"];
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_EQ(targets[0]["name"], whole["name"]);
  EXPECT_EQ(targets[1]["target"], "entropy:0");
  for (size_t i = 0; i < whole["contributions"].size(); ++i) {
    EXPECT_NEAR(targets[0]["contributions"][i].get<double>(), whole["contributions"][i].get<double>(), 1e-4);
  }
  for (const Json& target : targets) {
    EXPECT_LE(std::abs(target["recovery_error"].get<double>()), target["tolerance"].get<double>());
  }
}

TEST_F(AttributeTest, RefusesWhatHasNoAdjoint) {
  for (const char* choice : {"nonlinearity=abs_affine", "bias=abs"}) {
    ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--policy", choice},
                std::string(choice) + " looks at all components together");
  }
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--target", "0,99"}, "target 0,99 does not fit");
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--at", "nowhere"}, "called nowhere");
  ExpectError(Arguments{"attribute"} + Examples()[1].input + Arguments{"--top", "-1"}, "not negative");
}

}  // namespace
}  // namespace addend::cli
