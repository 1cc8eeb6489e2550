// addend attribute --log and addend audit: what is recorded comes out again, and what is not as it was is named.
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class AuditTest : public ProgramTest {
 protected:
  // Records what `arguments` explain.
  void Record(const Arguments& arguments, const std::string& log = "log") const {
    const Result result = Run(Arguments{"attribute"} + arguments + Arguments{"--log", Path(log)});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(" written: " + Path(log)));
  }

  Json Verified(const Arguments& arguments, int code = 0, const std::string& log = "log") const {
    const Result result = Run(Arguments{"audit", "verify", Path(log)} + arguments + Arguments{"--json"});
    EXPECT_EQ(result.code, code) << result.err << result.out;
    return Json::parse(result.out);
  }

  std::vector<std::string> Lines(const std::string& log = "log") const {
    return absl::StrSplit(ReadFile(Path(log)), '\n', absl::SkipEmpty());
  }
};

const Arguments kTable = {"docs/examples/models/breast_cancer/model.pt", "--input",
                          "docs/examples/models/breast_cancer/heldout.safetensors"};
constexpr char kTableBaseline[] = "docs/examples/models/breast_cancer/baseline.npy";

TEST_F(AuditTest, WhatIsRecordedComesOutAgain) {
  for (const char* row : {"0", "17", "199"}) Record(kTable + Arguments{"--row", row, "--baseline", kTableBaseline});
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  const Json first = Json::parse(lines[0]);
  EXPECT_EQ(first["previous"], nullptr);
  EXPECT_EQ(first["model"]["sha256"], Sha256OfFile(ModelOf("breast_cancer")));
  EXPECT_EQ(Json::parse(lines[1])["previous"], first["hash"]);
  EXPECT_EQ(first["components"].size(), 30u);
  EXPECT_EQ(first["components"][0], "mean radius");
  const Json found = Verified({"--model", ModelOf("breast_cancer"), "--inputs", HeldoutOf("breast_cancer")});
  EXPECT_EQ(found["computed"]["same"], 3);
  EXPECT_EQ(found["verified"], true);
  // Without the inputs there is nothing to compute from, and no green light.
  const Json without = Verified({"--model", ModelOf("breast_cancer")}, 1);
  EXPECT_EQ(without["computed"]["not_computed"], 3);
  // Another model has no record here.
  const Json other = Verified({"--model", ModelOf("digits")}, 1);
  EXPECT_EQ(other["computed"]["other_models"], 3);
  EXPECT_EQ(other["computed"]["of"], 0);
}

TEST_F(AuditTest, InputsAreFoundInATable) {
  std::string table = "size";
  for (int k = 1; k < 30; ++k) absl::StrAppend(&table, ",column ", k);
  for (const char* size : {"small", "large"}) {
    absl::StrAppend(&table, "\n", size);
    for (int k = 1; k < 30; ++k) absl::StrAppend(&table, ",", k, ".", k);
  }
  std::ofstream(Path("rows.csv")) << table << "\n";
  std::ofstream(Path("mapping.json")) << R"({"size": {"small": 1, "large": 20}})";
  const Arguments mapped = {"--mapping", Path("mapping.json")};
  const Arguments model = {"--model", ModelOf("breast_cancer"), "--inputs", Path("rows.csv")};
  Record(Arguments{ModelOf("breast_cancer"), "--input", Path("rows.csv"), "--row", "1"} + mapped);
  EXPECT_EQ(Verified(model + mapped)["computed"]["same"], 1);
  const Result without = Run(Arguments{"audit", "verify", Path("log")} + model);
  EXPECT_NE(without.code, 0);
  EXPECT_THAT(without.err, HasSubstr("--mapping"));
}

TEST_F(AuditTest, EveryKindOfRequestComesOutAgain) {
  const std::string digits = SampleOf("digits");
  const std::string mean = Save("rows.safetensors", at::rand({5, 30}));
  const Arguments keep = {"--keep-inputs"};
  Record(Arguments{ModelOf("digits"), "--input", digits + ":dim=2,3", "--baseline", "blur", "--target", "8", "--target",
                   "8-3"} +
         keep);
  Record(Arguments{ModelOf("digits"), "--input", digits + ":dim=2,3", "--target", "log_probability:3", "--policy",
                   "preset=fast", "--policy", "segments=3", "--policy", "nonlinearity@aten::relu=scaling"} +
         keep);
  Record(Arguments{ModelOf("digits"), "--input", digits + ":dim=3", "--dtype", "float64", "--memory", "10MB"} + keep);
  Record(Arguments{ModelOf("language"), "--input", SampleOf("language") + ":labels=segments", "--baseline",
                   "token:mask_token", "--at", "logits"} +
         keep);
  Record(kTable + Arguments{"--row", "3", "--baseline", "mean:" + mean} + keep);
  Record(kTable + Arguments{"--row", "3", "--inside", "aten::relu:0:dim=1", "--baseline", "0.5"} + keep);
  // Parts that add up to the input.
  const at::Tensor parts = at::rand({3, 1, 30});
  TensorFile file;
  file.tensors.emplace_back("input", parts.sum(0));
  file.tensors.emplace_back("halves", parts);
  WriteTensorFile(Path("parts.safetensors"), file);
  Record(Arguments{ModelOf("breast_cancer"), "--input", Path("parts.safetensors") + ":parts=halves"} + keep);
  // The file that the baseline came from need not be there.
  std::filesystem::remove(mean);
  const Json found =
      Verified({"--model", ModelOf("digits"), "--model", ModelOf("language"), "--model", ModelOf("breast_cancer")});
  EXPECT_EQ(found["computed"]["same"], 7) << found["computed"].dump(1);
}

TEST_F(AuditTest, ReasonsAreRecordedAsTheyAreTold) {
  std::ofstream(Path("concepts")) << R"({"format": "addend.concepts", "version": 1, "concepts": [
      {"name": "Worst values", "components": ["worst *"]}]})";
  Record(kTable + Arguments{"--row", "2", "--target", "0", "--reasons", Path("concepts"), "--keep-inputs"});
  const Result told = Run(Arguments{"attribute"} + kTable +
                          Arguments{"--row", "2", "--target", "0", "--reasons", Path("concepts"), "--keep-inputs",
                                    "--json", "--log", Path("other")});
  ASSERT_EQ(told.code, 0) << told.err;
  const Json reasons = Json::parse(Lines()[0])["reasons"];
  EXPECT_EQ(reasons["format"], "addend.reasons");
  EXPECT_EQ(nlohmann::json(reasons), nlohmann::json(Json::parse(told.out)));
  EXPECT_EQ(Verified({"--model", ModelOf("breast_cancer")})["computed"]["same"], 1);
  const Result shown = Run({"audit", "show", Path("log"), "--record", "1"});
  ExpectNarrow(shown.out);
  EXPECT_THAT(shown.out,
              HasSubstr("\nReasons    malignant: " + reasons["decisions"][0]["reasons"][0]["text"].get<std::string>()));
}

TEST_F(AuditTest, RecordedProgramsStandForTheirModel) {
  ASSERT_EQ(
      Run({"trace", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--save", Path("program")}).code,
      0);
  Record(Arguments{Path("program"), "--input", SampleOf("breast_cancer")});
  const Json record = Json::parse(Lines()[0]);
  // The digest is that of the output of sha256sum for both files.
  const std::string listed = absl::StrCat(Sha256OfFile(Path("program/program.json")), "  program.json\n",
                                          Sha256OfFile(Path("program/weights.safetensors")), "  weights.safetensors\n");
  std::ofstream(Path("listed")) << listed;
  EXPECT_EQ(record["model"]["sha256"], Sha256OfFile(Path("listed")));
  EXPECT_EQ(Verified({"--model", Path("program"), "--inputs", SampleOf("breast_cancer")})["computed"]["same"], 1);
}

TEST_F(AuditTest, DifferencesAreMeasuredAndTheirEnvironmentIsTold) {
  Record(kTable + Arguments{"--row", "5", "--keep-inputs"});
  const Json found = Verified({"--model", ModelOf("breast_cancer")});
  EXPECT_EQ(found["computed"]["records"][0]["largest_difference"], 0);
  EXPECT_TRUE(found["computed"]["records"][0]["differences"].empty());
  // With another number of threads the bits may be the same or not; that they are another number is said.
  const Result result = Run({"audit", "verify", Path("log"), "--model", ModelOf("breast_cancer"), "--json"},
                            "LC_ALL=C OMP_NUM_THREADS=3 MKL_NUM_THREADS=3");
  const Json threads = Json::parse(result.out)["computed"]["records"][0]["differences"];
  ASSERT_EQ(threads.size(), 1u) << result.out;
  EXPECT_THAT(threads[0].get<std::string>(), MatchesRegex("threads: [0-9]+ then, 3 now"));
}

TEST_F(AuditTest, ShowsAndVerifiesWithinATerminal) {
  for (int k = 0; k < 3; ++k) {
    Record(kTable + Arguments{"--row", absl::StrCat(k), "--target", "0", "--target", "1"});
  }
  const Result list = Run({"audit", "show", Path("log")});
  EXPECT_EQ(list.code, 0) << list.err;
  ExpectNarrow(list.out);
  EXPECT_THAT(list.out, HasSubstr("number  time (UTC)"));
  const Result last = Run({"audit", "show", Path("log"), "--last", "1"});
  EXPECT_THAT(last.out, Not(HasSubstr("\n     1  ")));
  EXPECT_THAT(last.out, HasSubstr("\n     3  "));
  const Result one = Run({"audit", "show", Path("log"), "--record", "2", "--top", "3"});
  ExpectNarrow(one.out);
  EXPECT_THAT(one.out, HasSubstr("27 other components"));
  EXPECT_EQ(Run({"audit", "show", Path("log"), "--record", "2", "--json"}).out, Lines()[1] + "\n");
  const std::string hash = Json::parse(Lines()[2])["hash"].get<std::string>();
  const Result verified = Run({"audit", "verify", Path("log"), "--expect", hash, "--model", ModelOf("breast_cancer"),
                               "--inputs", HeldoutOf("breast_cancer"), "--sample", "2", "--seed", "9"});
  EXPECT_EQ(verified.code, 0) << verified.out;
  // A path is as long as it is.
  ExpectNarrow(absl::StrReplaceAll(verified.out, {{Path("log"), "log"}}));
  EXPECT_THAT(verified.out, HasSubstr("drawn with seed 9: 2 with the"));
  EXPECT_THAT(verified.out, HasSubstr("whole: every bit is as it was written"));
}

TEST_F(AuditTest, ErrorsLoseNothing) {
  Record(kTable + Arguments{"--row", "1"});
  const std::string before = ReadFile(Path("log"));
  ExpectError({"audit"}, "run addend audit --help");
  ExpectError({"audit", "verify", Path("none")}, "cannot read");
  ExpectError({"audit", "show", Path("log"), "--record", "9"}, "has no whole record 9");
  ExpectError({"audit", "verify", Path("log"), "--sample", "3"}, "without a model");
  ExpectError({"audit", "verify", Path("log"), "--expect", "abc"}, "64 hexadecimal digits");
  ExpectError({"audit", "verify", Path("log"), "--model", Path("none")}, "none");
  ExpectError(Arguments{"attribute"} + kTable + Arguments{"--row", "1", "--keep-inputs"},
              "--keep-inputs needs a --log");
  ExpectError(Arguments{"attribute"} + kTable + Arguments{"--row", "999", "--log", Path("new")}, "--row 999");
  const std::string rows = Save("rows.safetensors", at::rand({3, 30}));
  ExpectError({"attribute", ModelOf("breast_cancer"), "--input", rows, "--row", "1", "--log", rows},
              "it is read as well");
  const std::string foreign = Save("foreign", at::rand({2}));
  const std::string content = ReadFile(foreign);
  ExpectError(Arguments{"attribute"} + kTable + Arguments{"--row", "1", "--log", foreign}, "no log of decisions");
  EXPECT_EQ(ReadFile(foreign), content);
  EXPECT_EQ(ReadFile(Path("log")), before);
  // A record that was cut off is told of.
  std::ofstream(Path("log"), std::ios::app) << before.substr(0, 100);
  const Result result = Run(Arguments{"attribute"} + kTable + Arguments{"--row", "1", "--log", Path("log")});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("100 bytes of a record that was never acknowledged"));
  EXPECT_THAT(Run({"audit", "verify", Path("log")}).out, HasSubstr("Set aside"));
}

}  // namespace
}  // namespace addend::cli
