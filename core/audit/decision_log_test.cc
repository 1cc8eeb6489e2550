// Laws of the log: no bit changes unnoticed, nothing that was acknowledged is lost, and nothing else is written to.
#include "core/audit/decision_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/audit/chain.h"
#include "core/audit/record.h"
#include "core/base/error_testing.h"
#include "core/base/text.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// A record without numbers of a model, which logs do not look at.
Json SomeRecord(int64_t seed, size_t padding = 0) {
  return {{"addend", {{"version", "0"}}},
          {"format", kRecordFormat},
          {"request", {{"content", {{"targets", {"0"}}}}, {"sha256", absl::StrCat("request ", seed % 2)}}},
          {"targets", {{{"name", "J p \xC3\xA4\n"}, {"value", static_cast<double>(seed) / 7}}}},
          {"time", "2026-11-25T16:30:00.123456Z"},
          {"padding", std::string(padding, 'x')},
          {"version", 1}};
}

class DecisionLogTest : public testing::Test {
 protected:
  DecisionLogTest() {
    std::string folder = testing::TempDir() + "/logXXXXXX";
    if (::mkdtemp(&folder[0]) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = folder;
    log_ = folder_ / "log";
  }
  ~DecisionLogTest() override { fs::remove_all(folder_); }

  void Write(int64_t count, size_t padding = 0) const {
    DecisionLog log(log_);
    for (int64_t k = 0; k < count; ++k) log.Append(SomeRecord(k, padding));
  }

  static std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  static void Overwrite(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  ChainResult Chain() const {
    return ReadChain(log_, [](const PlacedRecord&) {});
  }

  // All problems in one text, a line each.
  std::string Problems() const {
    std::string all;
    for (const ChainProblem& problem : Chain().problems) absl::StrAppend(&all, problem.message, "\n");
    return all;
  }

  fs::path folder_;
  fs::path log_;
};

TEST_F(DecisionLogTest, GoesOnWhereItEnded) {
  Write(3);
  Write(2);
  const ChainResult chain = Chain();
  EXPECT_EQ(chain.records, 5);
  EXPECT_EQ(chain.last_number, 5);
  EXPECT_TRUE(chain.problems.empty());
  DecisionLog log(log_);
  EXPECT_EQ(log.state().records, 5);
  EXPECT_EQ(log.state().hash, chain.last_hash);
  EXPECT_EQ(log.state().torn_bytes, 0u);
  // Append() returns the line that it writes.
  const std::string line = log.Append(SomeRecord(9));
  EXPECT_THAT(Read(log_), testing::EndsWith("\n" + line + "\n"));
  // Only its owner may read it.
  struct stat status = {};
  ASSERT_EQ(::stat(log_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0u);
}

TEST_F(DecisionLogTest, WritesARequestOnce) {
  Write(4);
  Write(1);
  std::vector<bool> held;
  ReadChain(log_,
            [&](const PlacedRecord& placed) { held.push_back(placed.read.record["request"].contains("content")); });
  // Requests 0, 1, 0, 1, and 0 again once the log was opened again.
  EXPECT_EQ(held, (std::vector<bool>{true, true, false, false, true}));
}

// Expects that exactly the flipped byte is blamed.
void ExpectBlamed(const ChainResult& chain, const std::string& whole, size_t at, char flipped) {
  const auto line =
      static_cast<int64_t>(std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
  const auto lines = static_cast<int64_t>(std::count(whole.begin(), whole.end(), '\n'));
  ASSERT_EQ(chain.problems.size(), 1u) << at;
  const ChainProblem& problem = chain.problems[0];
  EXPECT_EQ(problem.kind, "damaged") << at;
  EXPECT_EQ(problem.first_line, line) << at;
  // A line end that goes joins two lines, which shows where a record comes behind; one that comes cuts a line in two.
  const bool joins = whole[at] == '\n' && line + 1 < lines;
  EXPECT_EQ(problem.last_line, flipped == '\n' ? line + 1 : line) << at;
  EXPECT_EQ(problem.first_record, line) << at;
  EXPECT_EQ(problem.last_record, joins ? line + 1 : line) << at;
  EXPECT_THAT(problem.message, HasSubstr(absl::StrCat("record", joins ? "s " : " ", line))) << at;
}

TEST_F(DecisionLogTest, EveryBitCounts) {
  Write(3);
  const std::string whole = Read(log_);
  int64_t flips = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      Overwrite(log_, changed);
      ExpectBlamed(Chain(), whole, at, changed[at]);
      ++flips;
    }
  }
  RecordProperty("flips", static_cast<int>(flips));
  Overwrite(log_, whole);
  EXPECT_EQ(Problems(), "");
}

TEST_F(DecisionLogTest, EveryBitOfALargeLogCounts) {
  Write(2000, 100);
  const std::string whole = Read(log_);
  std::mt19937_64 random(11);
  for (int k = 0; k < 60; ++k) {
    const size_t at = random() % whole.size();
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    Overwrite(log_, changed);
    ExpectBlamed(Chain(), whole, at, changed[at]);
  }
}

TEST_F(DecisionLogTest, RecordsThatAreMissingExchangedOrRepeated) {
  Write(5);
  const std::vector<std::string> lines = absl::StrSplit(Read(log_), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u);
  const auto problems_of = [&](const std::vector<size_t>& order) {
    std::string text;
    for (const size_t k : order) absl::StrAppend(&text, lines[k], "\n");
    Overwrite(log_, text);
    return Problems();
  };
  EXPECT_EQ(problems_of({0, 1, 2, 3, 4}), "");
  EXPECT_THAT(problems_of({0, 1, 3, 4}), HasSubstr("record 4 (line 3): it stands where record 3 should"));
  EXPECT_THAT(problems_of({0, 2, 1, 3, 4}), HasSubstr("record 3 (line 2): it stands where record 2 should"));
  EXPECT_THAT(problems_of({0, 1, 1, 2, 3, 4}), HasSubstr("record 2 (line 3): it stands where record 3 should"));
  EXPECT_THAT(problems_of({1, 2, 3, 4}), HasSubstr("record 2 (line 1): it stands where record 1 should"));
  // A cut at the end shows only to whoever kept the hash.
  EXPECT_EQ(problems_of({0, 1, 2}), "");
}

TEST_F(DecisionLogTest, RecordsThatWereWrittenAnew) {
  Write(3);
  std::vector<std::string> lines = absl::StrSplit(Read(log_), '\n', absl::SkipEmpty());
  std::string why;
  auto second = ReadSealed(lines[1], &why);
  ASSERT_TRUE(second.has_value());
  Json changed = second->record;
  changed["targets"][0]["value"] = 1000;
  std::string hash;
  lines[1] = SealRecord(changed, second->number, second->previous, &hash);
  Overwrite(log_, absl::StrCat(lines[0], "\n", lines[1], "\n", lines[2], "\n"));
  EXPECT_THAT(Problems(), HasSubstr("record 3 (line 3): the hash that it has for record 2 is another one"));
  // Another spelling of the same numbers has the same hash, but is no line that a log writes.
  Overwrite(log_, lines[0] + " \n");
  EXPECT_THAT(Problems(), HasSubstr("record 1 (line 1): it is not written as records are"));
}

TEST_F(DecisionLogTest, SetsATornRecordAside) {
  Write(3);
  const std::string whole = Read(log_);
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t cut = last; cut < whole.size(); cut += cut + 40 < whole.size() ? 37 : 1) {
    fs::remove(log_.string() + ".torn");
    Overwrite(log_, whole.substr(0, cut));
    if (cut > last) {
      EXPECT_THAT(Problems(), HasSubstr("record 3 (line 3): the log ends with")) << cut;
    }
    {
      DecisionLog log(log_);
      EXPECT_EQ(log.state().records, 2);
      EXPECT_EQ(log.state().torn_bytes, cut - last);
      log.Append(SomeRecord(2));
      log.Append(SomeRecord(3));
    }
    EXPECT_EQ(Problems(), "") << cut;
    const std::vector<std::string> lines = absl::StrSplit(Read(log_), '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(Json::parse(lines[2]).contains("set_aside"), cut > last);
    EXPECT_FALSE(Json::parse(lines[3]).contains("set_aside"));
    if (cut > last) {
      EXPECT_EQ(Json::parse(lines[2])["set_aside"]["bytes"], cut - last);
      EXPECT_EQ(Read(log_.string() + ".torn"), whole.substr(last, cut - last) + "\n");
    }
  }
  // The first record of a log, too.
  Overwrite(log_, whole.substr(0, 30));
  DecisionLog log(log_);
  EXPECT_EQ(log.state().records, 0);
  EXPECT_EQ(log.state().torn_bytes, 30u);
}

TEST_F(DecisionLogTest, KeepsWhatWasAcknowledgedAndDamaged) {
  Write(2);
  const std::string whole = Read(log_);
  // The last line end, and a bit of the last record: no crash leaves that.
  for (const size_t at : {whole.size() - 1, whole.size() - 10}) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    Overwrite(log_, changed);
    ExpectError(absl::StatusCode::kFailedPrecondition, {"the last record of ", "is damaged", "addend audit verify"},
                [&] { DecisionLog log(log_); });
    EXPECT_EQ(Read(log_), changed);
  }
}

TEST_F(DecisionLogTest, OneAtATime) {
  auto log = std::make_unique<DecisionLog>(log_);
  log->Append(SomeRecord(1));
  ExpectError(absl::StatusCode::kFailedPrecondition, {"is open as a log already"}, [&] { DecisionLog other(log_); });
  EXPECT_TRUE(Chain().in_use);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      DecisionLog other(log_);
    } catch (const Error& error) {
      ::_exit(error.code() == absl::StatusCode::kFailedPrecondition ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  log.reset();
  EXPECT_FALSE(Chain().in_use);
  DecisionLog other(log_);
  EXPECT_EQ(other.state().records, 1);
}

TEST_F(DecisionLogTest, ThreadsShareOne) {
  {
    DecisionLog log(log_);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int k = 0; k < 100; ++k) log.Append(SomeRecord(100 * t + k));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(Problems(), "");
  EXPECT_EQ(Chain().records, 400);
}

TEST_F(DecisionLogTest, LeavesOtherFilesAlone) {
  const std::string foreign[] = {
      "a text",          "a text\n", "\n", "{\"addend\": 1}\n", "{\"a\":1}\n{\"b\":2}\n", std::string("\x80\x02}", 3),
      "{\"addend\":1}\n"};
  for (const std::string& content : foreign) {
    Overwrite(log_, content);
    EXPECT_NE(MessageOf([&] { DecisionLog log(log_); }), "(no error)") << content;
    EXPECT_EQ(Read(log_), content);
    EXPECT_NE(Problems(), "") << content;
  }
  ExpectError(absl::StatusCode::kInvalidArgument, {"a log of decisions is a file"},
              [] { DecisionLog log("/dev/null"); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"cannot write"}, [&] { DecisionLog log(folder_); });
  ExpectError(absl::StatusCode::kNotFound, {"cannot write"}, [&] { DecisionLog log(folder_ / "none" / "log"); });
  ExpectError(absl::StatusCode::kNotFound, {"cannot read"}, [&] { ReadChain(folder_ / "none", [](const auto&) {}); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"is a file"}, [&] { ReadChain(folder_, [](const auto&) {}); });
}

// Runs in a process of its own, which may be limited, and gives its exit code.
template <typename Action>
int InChild(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = action();
    } catch (const std::exception&) {
      code = 98;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Whoever prints in a process that was started without standard output does not print into the log.
TEST_F(DecisionLogTest, IsNoStandardStream) {
  for (int closed = 1; closed < 8; ++closed) {
    EXPECT_EQ(InChild([&] {
                for (int fd = 0; fd < 3; ++fd) {
                  if ((closed >> fd & 1) != 0) ::close(fd);
                }
                DecisionLog log(log_);
                log.Append(SomeRecord(0));
                for (int fd = 0; fd < 3; ++fd) {
                  if ((closed >> fd & 1) != 0 && ::write(fd, "a table\n", 8) >= 0) return 1;
                }
                log.Append(SomeRecord(1));
                return 0;
              }),
              0)
        << closed;
    EXPECT_EQ(Problems(), "") << closed;
    EXPECT_EQ(Chain().records, 2 * closed);
  }
}

TEST_F(DecisionLogTest, SaysHowForeignBytesAreCutOff) {
  Write(2);
  const std::string whole = Read(log_);
  for (const std::string& foreign : {std::string("a table\n"), std::string("\n"), std::string("a\n\nb\nc"),
                                     std::string("\x80\x02}\n"), std::string("{\"a\": 1}\n{\"b\": 2}\n")}) {
    Overwrite(log_, whole + foreign);
    const std::string hint = absl::StrCat("truncate -s ", whole.size(), " ", log_.string());
    ExpectError(absl::StatusCode::kFailedPrecondition, {"ends with", "that are no record, behind record 2", hint},
                [&] { DecisionLog log(log_); });
    EXPECT_EQ(Read(log_), whole + foreign);
    EXPECT_THAT(Problems(), HasSubstr(hint));
    EXPECT_EQ(Chain().foreign_from, whole.size());
    EXPECT_EQ(Chain().records, 2);
  }
  // A shell reads the path as one word.
  const fs::path spaced = folder_ / "my log's.jsonl";
  Overwrite(spaced, whole + "a table\n");
  EXPECT_THAT(MessageOf([&] { DecisionLog log(spaced); }),
              HasSubstr(absl::StrCat("truncate -s ", whole.size(), " ", ShellWord(spaced.string()))));
  // A line that may be a damaged record is not proposed for cutting off: whole lines behind it are blamed on it.
  for (const size_t at : {size_t{0}, size_t{5}, whole.size() / 4, whole.size() - 2}) {
    std::string changed = whole;
    changed[whole.find('\n') + 1 + at % (whole.size() - whole.find('\n') - 2)] ^= 1;
    Overwrite(log_, changed);
    EXPECT_THAT(MessageOf([&] { DecisionLog log(log_); }), Not(HasSubstr("truncate"))) << at;
    EXPECT_THAT(Problems(), Not(HasSubstr("truncate"))) << at;
  }
  Overwrite(log_, whole);
  Write(1);
  EXPECT_EQ(Chain().records, 3);
}

TEST_F(DecisionLogTest, IsNotReplacedWhileItIsOpen) {
  Write(1);
  const std::string whole = Read(log_);
  fs::create_symlink(log_, folder_ / "link");
  {
    DecisionLog log(log_);
    for (const fs::path& path : {log_, folder_ / "link"}) {
      ExpectError(absl::StatusCode::kFailedPrecondition, {"it is open as a log of decisions"},
                  [&] { WriteFileWhole(path, "a page"); });
    }
    EXPECT_EQ(Read(log_), whole);
  }
  WriteFileWhole(log_, "a page");
  EXPECT_EQ(Read(log_), "a page");
}

TEST_F(DecisionLogTest, AFullDiskLosesNothing) {
  Write(2);
  const std::string before = Read(log_);
  const int code = InChild([&] {
    DecisionLog log(log_);
    struct rlimit limit = {};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const struct rlimit little = {before.size() + 100, limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &little);
    const std::string message = MessageOf([&] { log.Append(SomeRecord(2)); });
    if (message.find("File too large; the record was not appended") == std::string::npos) return 1;
    if (Read(log_) != before) return 2;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    log.Append(SomeRecord(2));
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(Problems(), "");
  EXPECT_EQ(Chain().records, 3);
}

// Lets this process mount what no other sees. False where the system does not.
bool OwnMounts() {
  const std::string user = absl::StrCat("0 ", ::getuid(), " 1");
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << user;
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// On a file system of 256 KiB that is really full: the system takes a part of a record before it says so.
TEST_F(DecisionLogTest, AFullFileSystemLosesNothing) {
  constexpr int kSkipped = 77;
  const fs::path small = folder_ / "small";
  fs::create_directory(small);
  const int code = InChild([&] {
    if (!OwnMounts() || ::mount("none", small.c_str(), "tmpfs", 0, "size=256k") != 0) return kSkipped;
    std::ofstream(small / "other") << std::string(100000, 'x');
    const std::string path = small / "log";
    DecisionLog log(path);
    std::string message;
    for (int k = 0; k < 100 && message.empty(); ++k) {
      const std::string before = Read(path);
      message = MessageOf([&] { log.Append(SomeRecord(k, 5000)); });
      if (message == "(no error)") {
        message.clear();
        continue;
      }
      if (message.find("No space left on device; the record was not appended") == std::string::npos) return 1;
      if (Read(path) != before) return 2;
    }
    if (message.empty()) return 3;
    const int64_t records = log.state().records;
    fs::remove(small / "other");
    log.Append(SomeRecord(1, 5000));
    const ChainResult chain = ReadChain(path, [](const PlacedRecord&) {});
    return chain.problems.empty() && chain.records == records + 1 && records > 10 ? 0 : 4;
  });
  if (code == kSkipped) GTEST_SKIP() << "no file system of our own can be made here";
  EXPECT_EQ(code, 0);
}

TEST_F(DecisionLogTest, FilesThatMayNotBeWritten) {
  Write(1);
  const std::string before = Read(log_);
  ASSERT_EQ(::chmod(log_.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  const int code = InChild([&] {
    // Nobody is refused whom the system lets do anything.
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 3;
    if (::access(log_.c_str(), R_OK) != 0) return 4;  // the folder of tests is closed to others
    if (MessageOf([&] { DecisionLog log(log_); }).find("Permission denied") == std::string::npos) return 1;
    if (MessageOf([&] { DecisionLog log(folder_ / "new"); }).find("Permission denied") == std::string::npos) return 2;
    // To verify it nothing is written.
    return ReadChain(log_, [](const PlacedRecord&) {}).records == 1 ? 0 : 5;
  });
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  if (code == 3 || code == 4) GTEST_SKIP() << "another user cannot be tried here: " << code;
  EXPECT_EQ(code, 0);
  EXPECT_EQ(Read(log_), before);
}

TEST_F(DecisionLogTest, NoticesWhatOthersDo) {
  {
    DecisionLog log(log_);
    log.Append(SomeRecord(1));
    std::ofstream(log_, std::ios::app) << "more\n";
    ExpectError(absl::StatusCode::kFailedPrecondition, {"something else wrote to "},
                [&] { log.Append(SomeRecord(2)); });
  }
  fs::remove(log_);
  DecisionLog log(log_);
  log.Append(SomeRecord(1));
  fs::remove(log_);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"was removed"}, [&] { log.Append(SomeRecord(2)); });
}

// Appends without end, and says the number of each record once it is acknowledged.
[[noreturn]] void WriteUntilKilled(const std::string& path, int say, uint64_t seed) {
  DecisionLog log(path);
  std::mt19937_64 random(seed);
  while (true) {
    // Some of them so large that they are killed in the middle of a write.
    log.Append(SomeRecord(static_cast<int64_t>(random() % 1000), random() % 4 == 0 ? 1000000 : random() % 3000));
    const int64_t number = log.state().records;
    if (::write(say, &number, sizeof(number)) != sizeof(number)) ::_exit(1);
  }
}

TEST_F(DecisionLogTest, AKilledWriterLosesNothingThatWasAcknowledged) {
  std::mt19937_64 random(23);
  int64_t acknowledged = 0;
  int torn = 0;
  for (int round = 0; round < 200; ++round) {
    int pipe[2] = {};
    ASSERT_EQ(::pipe(pipe), 0);
    const uint64_t seed = random();
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(pipe[0]);
      try {
        WriteUntilKilled(log_, pipe[1], seed);
      } catch (const std::exception&) {
        ::_exit(2);
      }
    }
    ::close(pipe[1]);
    ::usleep(static_cast<useconds_t>(random() % 20000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself, with " << WEXITSTATUS(status);
    int64_t number = 0;
    while (::read(pipe[0], &number, sizeof(number)) == sizeof(number)) {
      ASSERT_GT(number, acknowledged);
      acknowledged = number;
    }
    ::close(pipe[0]);
    const std::string before = Read(log_);
    {
      const DecisionLog log(log_);
      torn += log.state().torn_bytes > 0 ? 1 : 0;
      // One more than was told of may stand there whole.
      ASSERT_GE(log.state().records, acknowledged);
      ASSERT_LE(log.state().records, acknowledged + 1);
      acknowledged = log.state().records;
    }
    // Whatever was set aside, what is left is a beginning of what stood there.
    ASSERT_EQ(before.compare(0, Read(log_).size(), Read(log_)), 0);
    ASSERT_EQ(Problems(), "");
    ASSERT_EQ(Chain().records, acknowledged);
    if (before.size() > 4000000) {
      fs::remove(log_);
      acknowledged = 0;
    }
  }
  // Mostly none: the system seldom ends a process in the middle of a write.
  RecordProperty("torn", torn);
  std::cout << "200 kills, of which " << torn << " left a torn record\n";
}

}  // namespace
}  // namespace addend
