// Runs `addend trace`: code, graph, saved and exported programs, checks of recordings.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using TraceTest = ProgramTest;

// Writes in place, and takes another branch where its input's sum is not positive.
constexpr char kAwkward[] = "tests/conformance/models/awkward.pt";

TEST_F(TraceTest, ShowsOperatorsUnderSourceLines) {
  const Result result = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits")}, "LC_ALL=C.UTF-8");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("  # "));  // a source line ends with its place
  EXPECT_THAT(result.out, HasSubstr("in forward:\n"));
  EXPECT_THAT(result.out, HasSubstr("# conv2d(f32[1, 1, "));
  EXPECT_THAT(result.out, HasSubstr(" operators recorded\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b[")));
  // A module's name that means several tensors is told with the names of each.
  EXPECT_THAT(result.out, HasSubstr("\n# dropout gives several tensors; name one: dropout@0 (aten::dropout (op #10"));
  EXPECT_THAT(result.out, HasSubstr("), dropout@1 (aten::dropout"));
  const Result once = Run({"trace", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer")});
  EXPECT_THAT(once.out, Not(HasSubstr("gives several tensors")));
  const Result named = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--names", "--color"});
  EXPECT_THAT(named.out, HasSubstr("weight: f32["));
  EXPECT_THAT(named.out, HasSubstr("\x1b["));
  EXPECT_THAT(named.out, Not(HasSubstr("\u2502")));  // the C locale cannot show it
}

TEST_F(TraceTest, GivesTheGraphInThreeForms) {
  const Arguments base = {"trace", ModelOf("language"), "--input", SampleOf("language"), "--graph"};
  const Result json = Run(base + Arguments{"json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const Json graph = Json::parse(json.out);
  size_t calls = 0;
  for (const Json& node : graph["nodes"]) calls += node["kind"] == "call" ? 1 : 0;
  const Json code = Json::parse(Run({"trace", ModelOf("language"), "--input", SampleOf("language"), "--json"}).out);
  EXPECT_GT(calls, 10);
  EXPECT_EQ(calls, code["calls"].size());
  const Result dot = Run(base + Arguments{"dot"});
  EXPECT_THAT(dot.out, StartsWith("digraph"));
  const std::string page = Path("graph.html");
  const Result html = Run(base + Arguments{"html", "--out", page});
  ASSERT_EQ(html.code, 0) << html.err;
  EXPECT_THAT(html.out, HasSubstr("Written: " + page));
  EXPECT_THAT(ReadFile(page), HasSubstr("</html>"));
}

TEST_F(TraceTest, SavedProgramsAreModels) {
  const std::string folder = Path("program");
  const Arguments input = {"--input", SampleOf("digits") + ":dim=2,3", "--baseline", "0", "--json"};
  const Result saved = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--save", folder});
  ASSERT_EQ(saved.code, 0) << saved.err;
  const Result of_model = Run(Arguments{"decompose", ModelOf("digits")} + input);
  const Result of_program = Run(Arguments{"decompose", folder} + input);
  ASSERT_EQ(of_program.code, 0) << of_program.err;
  EXPECT_EQ(Json::parse(of_program.out)["targets"], Json::parse(of_model.out)["targets"]);
  // Its trace is that of the model, source lines included.
  const Result again = Run({"trace", folder, "--input", SampleOf("digits")});
  EXPECT_EQ(again.out + "Written: " + folder + "\n", saved.out);
  EXPECT_EQ(Run(Arguments{"attribute", folder} + input).code, 0);
  const Arguments wide = Arguments{"--dtype", "float64"} + input;
  const Json wide_program = Json::parse(Run(Arguments{"decompose", folder} + wide).out);
  const Json wide_model = Json::parse(Run(Arguments{"decompose", ModelOf("digits")} + wide).out);
  EXPECT_EQ(wide_program["targets"], wide_model["targets"]);
  std::ofstream(folder + "/program.json") << "{\"version\": 99}";
  ExpectError(Arguments{"decompose", folder} + input, "has no \"format\"");
}

TEST_F(TraceTest, ChecksTheRecording) {
  const Arguments check = {"trace", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--check"};
  const std::string other = Save("other.safetensors", at::ones({1, 30}));
  const Result good = Run(check + Arguments{"--with", other});
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_THAT(good.out, HasSubstr("operators checked, 0 found"));
  const Json record = Json::parse(Run(check + Arguments{"--json"}).out);
  EXPECT_EQ(record["ok"], true);
  ExpectError(Arguments{"trace", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--with", other},
              "--with is for --check");
  const auto table = [&](double number) {
    return Save(absl::StrCat("table", number, ".safetensors"), at::full({2, 6}, number));
  };
  const Result bad = Run({"trace", kAwkward, "--input", table(1), "--check", "--with", table(-1)});
  EXPECT_EQ(bad.code, 1) << bad.out << bad.err;
  EXPECT_THAT(bad.out, HasSubstr("error: "));
  EXPECT_THAT(bad.out, HasSubstr("further input 0)"));
  const std::string file = Path("findings.txt");
  const Result written = Run(check + Arguments{"--out-of-place", "--out", file});
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("Written: " + file));
  EXPECT_THAT(ReadFile(file), HasSubstr("0 found"));
}

TEST_F(TraceTest, ExportsForPlainLibTorch) {
  const std::string path = Path("exported.pt");
  const Result exported = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(exported.out, testing::EndsWith("\nWritten: " + path + "\n"));
  // Output for other programs holds no such line.
  const Result data = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path, "--json"});
  EXPECT_TRUE(Json::accept(data.out)) << data.out;
  const Result dot =
      Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path, "--graph", "dot"});
  EXPECT_THAT(dot.out, testing::Not(HasSubstr("Written")));
  const std::string graph = Path("graph.json");
  const Result both = Run(
      {"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--export", path, "--graph", "json", "--out", graph});
  EXPECT_EQ(both.out, "Written: " + path + "\nWritten: " + graph + "\n");
  // It is a model like the one that was recorded.
  const Arguments input = {"--input", SampleOf("digits") + ":dim=2,3", "--baseline", "0", "--json"};
  EXPECT_EQ(Json::parse(Run(Arguments{"decompose", path} + input).out)["targets"],
            Json::parse(Run(Arguments{"decompose", ModelOf("digits")} + input).out)["targets"]);
  const std::string table = Save("ones.safetensors", at::ones({2, 6}));
  ExpectError({"trace", kAwkward, "--input", table, "--export", path}, "cannot export");
}

TEST_F(TraceTest, TellsWhatIsMissing) {
  const Result fine = Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--require"});
  EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("Nothing is missing"));
  const std::string wrong = Save("wrong.safetensors", at::ones({2, 6}));
  const Result few = Run({"trace", "tests/conformance/models/mixed.pt", "--input", wrong, "--require", "--json"});
  EXPECT_EQ(few.code, 1) << few.out << few.err;
  EXPECT_EQ(Json::parse(few.out)["unmet"][0]["kind"], "input");
  const std::string folder = Path("required");
  ASSERT_EQ(Run({"trace", ModelOf("digits"), "--input", SampleOf("digits"), "--save", folder}).code, 0);
  const Result shape = Run({"trace", folder, "--input", wrong, "--require"});
  EXPECT_EQ(shape.code, 1) << shape.out << shape.err;
  EXPECT_THAT(shape.out, HasSubstr("recorded was"));
  ExpectError({"trace", ModelOf("digits"), "--input", wrong, "--require", "--check"}, "runs nothing");
  ExpectError({"trace", ModelOf("digits"), "--input", wrong, "--method", "missing"}, "has no method missing");
}

TEST_F(TraceTest, Refuses) {
  const Arguments base = {"trace", ModelOf("digits"), "--input", SampleOf("digits")};
  ExpectError(base + Arguments{"--graph", "html"}, "--out FILE");
  ExpectError(base + Arguments{"--graph", "json", "--json"}, "--graph json");
  ExpectError(base + Arguments{"--save", Save("file.safetensors", at::ones({1}))}, "is a file");
  ExpectError({"trace", ModelOf("digits"), "--input", SampleOf("digits") + ":dim=1"}, "nothing is split");
}

}  // namespace
}  // namespace addend::cli
