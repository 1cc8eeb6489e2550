// The command line: what needs no model, and what no command takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;

using MainTest = ProgramTest;

TEST_F(MainTest, OpsListsRulesWithTheirKinds) {
  const Result result = Run({"ops"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, MatchesRegex("(.|\n)*\naten::linear +Affine\n(.|\n)*"));
  EXPECT_THAT(result.out, MatchesRegex("(.|\n)*\n[0-9]+ operators with a rule\n"));
  const Json record = Json::parse(Run({"ops", "--json"}).out);
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat("\n", record["operators"].size(), " operators ")));
}

TEST_F(MainTest, HelpFitsATerminalAndWarns) {
  // The first line, and what an issue reporter pastes.
  const std::string version = Run({"--version"}).out;
  EXPECT_THAT(version, MatchesRegex("addend [0-9.]+ \\(LibTorch [0-9.]+\\)\n  built from: (.|\n)*\n"));
  EXPECT_THAT(version, HasSubstr("\n  program: " + std::string(fs::canonical(kProgram)) + "\nLibTorch "));
  EXPECT_THAT(version, HasSubstr("\n  devices: CPU"));
  const std::string told = version.substr(version.find("\nLibTorch ") + 10);
  EXPECT_THAT(version, HasSubstr(" TORCH_VERSION=" + told.substr(0, told.find('\n')) + ","));
  for (const Arguments& arguments : {Arguments{"--help"},
                                     {"decompose", "--help"},
                                     {"attribute", "--help"},
                                     {"audit", "--help"},
                                     {"audit", "verify", "--help"},
                                     {"job", "--help"},
                                     {"job", "plan", "--help"},
                                     {"job", "run", "--help"},
                                     {"job", "status", "--help"},
                                     {"job", "merge", "--help"},
                                     {"check", "--help"},
                                     {"ops", "--help"}}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0);
    for (const auto line : absl::StrSplit(result.out, '\n'))
      EXPECT_LE(line.size(), 80) << std::string(line.data(), line.size());
    if (arguments[0] == "ops") continue;
    EXPECT_THAT(result.out, HasSubstr("A model is a program: load only what you trust."));
  }
}

TEST_F(MainTest, CommandLinesThatAreWrong) {
  ExpectError({}, "no command is given; run addend --help");
  ExpectError({"explain"}, "there is no command explain");
  ExpectError({"decompose"}, "MODEL is required; run addend decompose --help");
  ExpectError({"decompose", ModelOf("digits")}, "--input is required");
  ExpectError(Table() + Arguments{"--colour"}, "--colour");
  ExpectError(Table() + Arguments{"--top", "many"}, "--top");
  ExpectError(Table() + Arguments{"--top", "-1"}, "--top");
  ExpectError(Table() + Arguments{"--memory", "much"}, "--memory");
  ExpectError(Table() + Arguments{"--memory", "-5"}, "--memory");
  ExpectError(Table() + Arguments{"--dtype", "float16"}, "float16");
  ExpectError({"ops", "all"}, "run addend ops --help");
}

TEST_F(MainTest, PoliciesTargetsAndNamesThatDoNotExist) {
  ExpectError(Table() + Arguments{"--policy", "colour=red"}, "policy has no field colour; choose one of preset");
  ExpectError(Table() + Arguments{"--policy", "preset=best"}, "choose one of auto, faithful, fast");
  ExpectError(Table() + Arguments{"--policy", "fast"}, "not of the form field=value");
  ExpectError({"check", ModelOf("digits"), "--input", SampleOf("digits"), "--policy", "check=off"}, "every operator");
  ExpectError(Table() + Arguments{"--target", "unknown"}, "or a class: malignant, benign");
  ExpectError(Table() + Arguments{"--target", "2"}, "target 2 does not fit an output of shape [1, 2]");
  ExpectError(Table() + Arguments{"--at", "nowhere"}, "nothing inside the model is called nowhere");
  ExpectError(Table() + Arguments{"--at", "output.1"}, "the model has no output.1; it has 1 output");
  ExpectError(Table() + Arguments{"--names", "a,b,c"}, "--names gives 3 names, but the input is split into 30 parts");
  ExpectError(Table() + Arguments{"--names", Path("missing")}, "there is no file");
  ExpectError(Table() + Arguments{"--classes", "a,b,c"}, "--classes gives 3 names, but output has 2 elements");
}

TEST_F(MainTest, PathsThatCannotBeWritten) {
  for (const std::string option : {"--html", "--svg", "--out"}) {
    ExpectError(Table() + Arguments{option, Path("no/where")}, "there is no folder");
    ExpectError(Table() + Arguments{option, Path("")}, "it is a folder");
    ExpectError(Table() + Arguments{option, ""}, option);
    // A run that fails leaves alone what was there.
    const std::string kept = Path("kept");
    std::ofstream(kept) << "kept";
    ExpectError(Table() + Arguments{option, kept, "--target", "7"}, "does not fit");
    EXPECT_EQ(ReadFile(kept), "kept");
  }
  const std::string copy = Path("sample.safetensors");
  fs::copy_file(SampleOf("breast_cancer"), copy);
  ExpectError({"decompose", ModelOf("breast_cancer"), "--input", copy + ":dim=1", "--out", copy}, "it is read as well");
  ExpectError(Table() + Arguments{"--out", Path("same"), "--html", Path("same")}, "the same file");
  ExpectError(Table() + Arguments{"--svg", Path("same"), "--html", Path("same")}, "the same file");
}

}  // namespace
}  // namespace addend::cli
