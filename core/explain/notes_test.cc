#include "core/explain/notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace addend {
namespace {

TEST(NoteKindTest, EachIsKnownByItsWords) {
  std::set<std::string> names;
  for (size_t k = 0; k < NoteTable().size(); ++k) {
    const WordsOfNote& own = NoteTable()[k];
    EXPECT_EQ(static_cast<size_t>(own.kind), k) << own.name;
    EXPECT_TRUE(names.insert(own.name).second) << own.name;
    EXPECT_EQ(WordsOf(KindOf(absl::StrCat(own.begins, "one", own.holds, "two"))).name, std::string(own.name));
  }
  EXPECT_EQ(NoteTable().size(), static_cast<size_t>(NoteKind::kOther) + 1);
  EXPECT_EQ(KindOf("what nobody has thought of yet"), NoteKind::kOther);
  EXPECT_EQ(KindOf(NoteOf(NoteKind::kIllConditioned, "the parts of output come to 7 times the difference")),
            NoteKind::kIllConditioned);
}

// docs/results.md lists the kinds.
TEST(NoteKindTest, ThePageHasThem) {
  std::string table = "| kind | the note has | it is |\n|---|---|---|\n";
  for (const WordsOfNote& own : NoteTable()) {
    const std::string begins(absl::StripAsciiWhitespace(own.begins));
    const std::string holds(absl::StripAsciiWhitespace(own.holds));
    std::string words = begins;
    if (!holds.empty()) absl::StrAppend(&words, begins.empty() ? "... " : " ... ", holds);
    const char* weight = own.weight == NoteWeight::kRemark    ? "remark"
                         : own.weight == NoteWeight::kWarning ? "warning"
                                                              : "warning, first";
    absl::StrAppend(&table, "| `", own.name, "` | ", words.empty() ? "other words" : absl::StrCat("`", words, "`"),
                    " | ", weight, " |\n");
  }
  std::ifstream file("docs/results.md");
  ASSERT_TRUE(file);
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_THAT(page.str(), testing::HasSubstr(absl::StrCat("\n\n", table, "\n")));
}

TEST(NotesTest, AnotherLibTorchThanThatOfTheBuildIsAWarning) {
  const std::string note = NoteOnLibTorch("2.16.0", "2.15.1");
  EXPECT_EQ(
      note,
      "LibTorch 2.16.0 computes, and this library is for LibTorch 2.15.1: what the two make together was not tested");
  EXPECT_TRUE(IsWarning(note));
  EXPECT_NE(NoteOnLibTorch("2.1.0", "2.10.0"), "");
}

TEST(NotesTest, TheSameMinorVersionIsNone) {
  EXPECT_EQ(NoteOnLibTorch("2.15.0", "2.15.1"), "");
  EXPECT_EQ(NoteOnLibTorch("2.15.1+cu132", "2.15.1"), "");
  EXPECT_EQ(NoteOnLibTorch("", "2.15.1"), "");
}

}  // namespace
}  // namespace addend
