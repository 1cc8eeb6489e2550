// Notes of jobs: however rows are cut, the same sentences with the same numbers of rows.
#include "core/jobs/job_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error_testing.h"

namespace addend {
namespace {

constexpr char kRemark[] = "preset auto: faithful, because a baseline was given";
constexpr char kYes[] = "yes";

// Report of the run of one row: a remark everywhere, a warning with its number in every third row.
Report ReportOf(int64_t row) {
  Report report;
  report.reference_is_model_on_baseline = kYes;
  report.notes = {kRemark};
  if (row % 3 == 1) report.notes.push_back(absl::StrCat("recovery is off: 0.0", row, " of the value"));
  return report;
}

NoteCounts NotesOfRows(int64_t begin, int64_t end) {
  NoteCounts notes;
  for (int64_t row = begin; row < end; ++row) AddNotesOf(ReportOf(row), row, 1, notes);
  return notes;
}

TEST(JobNotesTest, SentencesThatDifferInNumbersAreOneAndWarningsComeFirst) {
  const NoteCounts notes = NotesOfRows(0, 30);
  ASSERT_EQ(notes.list().size(), 2);
  EXPECT_TRUE(notes.list()[0].warning);
  EXPECT_EQ(notes.list()[0].note, "recovery is off: 0.01 of the value");
  EXPECT_EQ(notes.list()[0].first, 1);
  EXPECT_EQ(notes.list()[0].count, 10);
  EXPECT_FALSE(notes.list()[1].warning);
  EXPECT_EQ(notes.list()[1].count, 30);
}

TEST(JobNotesTest, NumbersAreNoWords) {
  NoteCounts notes;
  for (const char* times : {"6.7e+06", "8e+06", "980000"}) {
    notes.Add(absl::StrCat("ill-conditioned: the parts come to ", times, " times the move at layers.0 (op #3)"), 0, 1);
  }
  EXPECT_EQ(notes.list().size(), 1);
  notes.Add("ill-conditioned: the parts come to 7 times the move at layers.1 (op #3)", 0, 1);
  notes.Add("ill-conditioned: the parts come to 7 times the move at layers.0 (op #4)", 0, 1);
  EXPECT_EQ(notes.list().size(), 3);
}

TEST(JobNotesTest, CutsAndOrderChangeNothing) {
  const std::string whole = NoteCountsJson(NotesOfRows(0, 30)).dump();
  for (const int64_t cut : {1, 2, 7, 29}) {
    NoteCounts behind = NoteCountsOfJson(NoteCountsJson(NotesOfRows(cut, 30)));
    behind.Merge(NotesOfRows(0, cut));
    EXPECT_EQ(NoteCountsJson(behind).dump(), whole) << cut;
  }
}

TEST(JobNotesTest, TellsWhereTheReferenceIsNotTheModelsOwn) {
  Report report;
  report.reference_is_model_on_baseline = "no";
  report.reference_reason = "a branch was taken";
  NoteCounts notes;
  AddNotesOf(report, 4, 2, notes);
  report.reference_is_model_on_baseline = "unknown";
  AddNotesOf(report, 2, 1, notes);
  ASSERT_EQ(notes.list().size(), 2);
  EXPECT_EQ(notes.list()[0].note, "the reference may not be what the model gives for the baseline: a branch was taken");
  EXPECT_EQ(notes.list()[1].note, "the reference is not what the model gives for the baseline: a branch was taken");
  EXPECT_TRUE(notes.list()[0].warning && notes.list()[1].warning);
}

TEST(JobNotesTest, KeepsTheFirstOfManySentences) {
  NoteCounts notes;
  for (int64_t row = 0; row < 300; ++row) notes.Add(absl::StrCat("said by ", std::string(row, 'x')), row, 1);
  ASSERT_EQ(notes.list().size(), NoteCounts::kMost);
  EXPECT_EQ(notes.list().back().first, static_cast<int64_t>(NoteCounts::kMost) - 1);
}

class ReferencesTest : public testing::Test {
 protected:
  ReferencesTest() { plan_.request = {{"inputs", Json::array({{{"split", "dims"}}})}, {"targets", {"1"}}}; }

  // Notes on two rows with these references.
  NoteCounts Of(double first, double second) const {
    Aggregates aggregates(1, 0, 0);
    const double none = 0;
    for (const double reference : {first, second}) {
      RowNumbers row;
      row.value = 1;
      row.reference = reference;
      row.contributions = &none;
      aggregates.Add(row);
    }
    NoteCounts notes;
    AddNotesOnReferences(plan_, {aggregates}, notes);
    return notes;
  }

  JobPlan plan_;
};

TEST_F(ReferencesTest, OneBaselineWithTwoReferencesIsTold) {
  const NoteCounts notes = Of(0.25, 0.5);
  ASSERT_EQ(notes.list().size(), 1);
  EXPECT_THAT(notes.list()[0].note, testing::HasSubstr("reach from 0.25 to 0.5"));
  EXPECT_TRUE(notes.list()[0].warning);
  EXPECT_EQ(notes.list()[0].count, 2);
}

TEST_F(ReferencesTest, RoundingIsNone) { EXPECT_TRUE(Of(0.25, 0.250001).list().empty()); }

TEST_F(ReferencesTest, RowsThatAreAskedAboutOtherNumbersAreNotCompared) {
  for (const char* target : {"top1", "sum:top1+0"}) {
    plan_.request["targets"] = {target};
    EXPECT_TRUE(Of(0.25, 0.5).list().empty()) << target;
  }
}

TEST_F(ReferencesTest, RowsWithBaselinesOfTheirOwnAreNotCompared) {
  plan_.request["inputs"][0]["baseline"] = {{"word", "blur"}};
  EXPECT_TRUE(Of(0.25, 0.5).list().empty());
  plan_.request["inputs"][0]["baseline"] = {{"number", 0}};
  EXPECT_FALSE(Of(0.25, 0.5).list().empty());
}

TEST_F(ReferencesTest, RowsWithOtherPlainInputsAreNotCompared) {
  plan_.request["inputs"].push_back({{"split", "plain"}});
  EXPECT_TRUE(Of(0.25, 0.5).list().empty());
}

TEST(JobNotesTest, RefusesWhatNoNotesWrote) {
  EXPECT_THAT(MessageOf([] {
                NoteCountsOfJson(Json::array({{{"note", 3}}}));
              }),
              testing::HasSubstr("none that Addend wrote"));
}

}  // namespace
}  // namespace addend
