#include "core/explain/notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace addend {
namespace {

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
