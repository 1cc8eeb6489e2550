#include "core/exported/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/exported/archive_testing.h"

namespace addend::exported {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes View(const std::string& text) {
  Bytes bytes;
  bytes.data = const_cast<char*>(text.data());
  bytes.size = text.size();
  return bytes;
}

// Reads one entry of an archive.
std::string ReadEntry(const std::string& archive, const std::string& entry) {
  MemoryBudget budget("a.pt2", archive.size());
  const Bytes content = Archive(View(archive), "a.pt2", &budget).Read(entry);
  return std::string(content.data, content.size);
}

// Returns the message of the error with which an entry is refused, or "read".
std::string Refusal(const std::string& archive, const std::string& entry = "a") {
  try {
    ReadEntry(archive, entry);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kInvalidArgument);
    return e.what();
  }
  return "read";
}

const std::string& Long() {
  static const auto& text = *new std::string(100000, 'x');
  return text;
}

TEST(Archive, ReadsStoredAndDeflatedEntries) {
  const std::string archive =
      WriteZip({{"r/a", "stored"}, {"r/b/c", Long(), true}, {"r/empty", ""}, {"r/e", "", true}});
  EXPECT_EQ(ReadEntry(archive, "a"), "stored");
  EXPECT_EQ(ReadEntry(archive, "b/c"), Long());
  EXPECT_EQ(ReadEntry(archive, "empty"), "");
  EXPECT_EQ(ReadEntry(archive, "e"), "");
}

TEST(Archive, ReadsSizesOf64Bits) {
  ZipOptions options;
  options.zip64 = true;
  const std::string archive = WriteZip({{"a", "stored"}, {"b", Long(), true}}, options);
  EXPECT_EQ(ReadEntry(archive, "a"), "stored");
  EXPECT_EQ(ReadEntry(archive, "b"), Long());
}

TEST(Archive, RefusesWhatStandsInFrontOfItOrBehindIt) {
  ZipOptions options;
  options.before = "#!/bin/sh\n";
  EXPECT_THAT(Refusal(WriteZip({{"a", "stored"}}, options)), HasSubstr("is not where the archive says"));
  EXPECT_THAT(Refusal(WriteZip({{"a", "stored"}}) + "x"), HasSubstr("is no zip archive"));
}

TEST(Archive, AFolderAroundEverythingIsNoPartOfNames) {
  const auto names = [](const std::vector<ZipEntry>& entries) {
    const std::string archive = WriteZip(entries);
    MemoryBudget budget("a.pt2", archive.size());
    return Archive(View(archive), "a.pt2", &budget).Names("");
  };
  EXPECT_THAT(names({{"r/", ""}, {"r/a", ""}, {"r/b/c", ""}}), ElementsAre("a", "b/c"));
  EXPECT_THAT(names({{"a", ""}, {"a/b", ""}}), ElementsAre("a", "a/b"));
  EXPECT_THAT(names({{"r/a", ""}, {"s/b", ""}}), ElementsAre("r/a", "s/b"));
  EXPECT_THAT(names({{"/etc/passwd", ""}, {"/../a", ""}}), ElementsAre("../a", "etc/passwd"));
  EXPECT_THAT(names({}), ElementsAre());
}

TEST(Archive, StoredEntriesAreNotCopied) {
  const std::string archive = WriteZip({{"a", "stored"}, {"b", "other"}});
  MemoryBudget budget("a.pt2", archive.size());
  const Archive opened(View(archive), "a.pt2", &budget);
  for (const char* name : {"a", "b"}) {
    const Bytes content = opened.Read(name);
    EXPECT_GE(content.data, archive.data());
    EXPECT_LE(content.data + content.size, archive.data() + archive.size());
    EXPECT_EQ((content.data - archive.data()) % 64, 0);
  }
}

TEST(Archive, RefusesWhatIsNoArchive) {
  EXPECT_THAT(Refusal(""), HasSubstr("is no zip archive"));
  EXPECT_THAT(Refusal("PK\x05\x06"), HasSubstr("is no zip archive"));
  EXPECT_THAT(Refusal(WriteZip({})), HasSubstr("has no entry a"));
  EXPECT_THAT(Refusal(std::string(100000, 'P')), HasSubstr("is no zip archive"));
  const std::string archive = WriteZip({{"a", "stored"}});
  EXPECT_THAT(Refusal(archive.substr(0, archive.size() - 10)), HasSubstr("is no zip archive"));
}

TEST(Archive, RefusesAMissingEntryByName) {
  EXPECT_THAT(Refusal(WriteZip({{"b", ""}})), HasSubstr("a.pt2: has no entry a"));
}

TEST(Archive, RefusesTwoEntriesOfOneName) {
  EXPECT_THAT(Refusal(WriteZip({{"a", "1"}, {"b", ""}, {"a", "2"}})), HasSubstr("two entries with the name a"));
}

TEST(Archive, RefusesNamesWithZerosAndVeryLongNames) {
  EXPECT_THAT(Refusal(WriteZip({{std::string("a\0b", 3), ""}})), HasSubstr("holds a zero"));
  EXPECT_THAT(Refusal(WriteZip({{std::string(5000, 'a'), ""}})), HasSubstr("longer than 4096 bytes"));
}

TEST(Archive, RefusesEncryptedEntriesAndOtherMethods) {
  ZipEntry entry = {"a", "stored"};
  entry.flags = 1;
  EXPECT_THAT(Refusal(WriteZip({entry})), HasSubstr("a.pt2: a: is encrypted"));
  entry.flags = 0;
  entry.method = 14;
  EXPECT_THAT(Refusal(WriteZip({entry})), HasSubstr("compressed by method 14"));
}

TEST(Archive, ComparesChecksumsOfWhatItReads) {
  for (const bool deflated : {false, true}) {
    ZipEntry entry = {"a", Long(), deflated};
    entry.wrong_checksum = true;
    EXPECT_THAT(Refusal(WriteZip({entry})), HasSubstr("its checksum differs"));
  }
}

TEST(Archive, RequireWholeComparesAll) {
  const auto message = [](const std::vector<ZipEntry>& entries) {
    const std::string archive = WriteZip(entries);
    MemoryBudget budget("a.pt", archive.size());
    try {
      Archive(View(archive), "a.pt", &budget).RequireWhole();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("whole");
  };
  std::vector<ZipEntry> entries = {{"r/a", "stored"}, {"r/b", Long(), true}, {"r/c", "other"}, {"r/empty", ""}};
  EXPECT_EQ(message(entries), "whole");
  // Sizes and checksums behind the content, as torch writes them.
  for (ZipEntry& entry : entries) entry.flags = 8;
  EXPECT_EQ(message(entries), "whole");
  for (size_t k = 0; k < 3; ++k) {
    entries[k].wrong_checksum = true;
    EXPECT_THAT(message(entries), HasSubstr("a.pt: " + entries[k].name.substr(2) + ": is damaged")) << k;
    entries[k].wrong_checksum = false;
  }
}

TEST(Archive, AnEntryMayHaveNoChecksum) {
  ZipEntry entry = {"a", "stored"};
  entry.no_checksum = true;
  const std::string archive = WriteZip({entry, {"b", "other"}, {"empty", ""}});
  EXPECT_EQ(ReadEntry(archive, "a"), "stored");
  MemoryBudget budget("a.pt2", archive.size());
  const Archive opened(View(archive), "a.pt2", &budget);
  opened.RequireWhole();
  EXPECT_EQ(opened.CountUnchecked(), 1u);
}

TEST(Archive, RefusesSizesThatAreNotThose) {
  ZipEntry entry = {"a", Long(), true};
  for (const int64_t claimed : {int64_t{0}, int64_t{99999}, int64_t{100001}, int64_t{1} << 25}) {
    entry.claimed = claimed;
    EXPECT_THAT(Refusal(WriteZip({entry})), HasSubstr("cannot be unpacked")) << claimed;
  }
  entry = {"a", "stored"};
  entry.claimed = 1 << 20;
  EXPECT_THAT(Refusal(WriteZip({entry})), HasSubstr("is truncated: it should have 1048576 bytes"));
}

TEST(Archive, RefusesToUnpackMoreThanFourTimesTheFileAnd64MiB) {
  // 100 MiB of zeros in 100 kB.
  EXPECT_THAT(Refusal(WriteZip({{"a", std::string(size_t{100} << 20, '\0'), true}})),
              HasSubstr("would take more than 67"));
  // The limit is that of the whole archive.
  std::vector<ZipEntry> entries;
  for (int k = 0; k < 5; ++k) entries.push_back({std::to_string(k), std::string(size_t{15} << 20, '\0'), true});
  const std::string archive = WriteZip(entries);
  MemoryBudget budget("a.pt2", archive.size());
  const Archive opened(View(archive), "a.pt2", &budget);
  for (int k = 0; k < 4; ++k) opened.Read(std::to_string(k));
  EXPECT_THROW(opened.Read("4"), Error);
}

TEST(Archive, SurvivesEveryTruncationAndEveryByteOfItsHeaders) {
  ZipOptions options;
  options.zip64 = true;
  for (const std::string& archive : {WriteZip({{"a", "stored"}, {"b", "deflated", true}}),
                                     WriteZip({{"a", "stored"}, {"b", "deflated", true}}, options)}) {
    for (size_t size = 0; size < archive.size(); ++size) Refusal(archive.substr(0, size));
    for (size_t k = 0; k < archive.size(); ++k) {
      for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
        std::string damaged = archive;
        damaged[k] = value;
        Refusal(damaged, "a");
        Refusal(damaged, "b");
      }
    }
  }
}

}  // namespace
}  // namespace addend::exported
