#include "core/audit/chain.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/decision_log.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/base/text.h"

namespace addend {
namespace {

// A file that is read line by line, as far as it went when it was opened.
class Lines {
 public:
  explicit Lines(const std::string& path, uint64_t offset = 0) : path_(path), offset_(offset) {
    fd_ = OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd_ < 0) throw FileError("read", path, errno);
    struct stat status = {};
    const bool known = ::fstat(fd_, &status) == 0;
    if (!known || !S_ISREG(status.st_mode)) {
      ::close(fd_);
      throw InvalidArgument(absl::StrCat("cannot read ", path, ": a log of decisions is a file"));
    }
    end_ = static_cast<uint64_t>(status.st_size);
  }
  ~Lines() { ::close(fd_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  uint64_t size() const { return end_; }
  uint64_t offset() const { return offset_; }  // of the next line

  // Whether somebody has it open as a log. Asking locks nothing.
  bool in_use() const {
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    return ::fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  }

  // Reads the next line without its end; `ended`: whether it had one. False behind the last.
  bool Next(std::string* line, bool* ended) {
    line->clear();
    *ended = false;
    while (true) {
      if (at_ == piece_.size() && !Fill()) break;
      const size_t found = piece_.find('\n', at_);
      const size_t stop = found == std::string::npos ? piece_.size() : found;
      line->append(piece_, at_, stop - at_);
      offset_ += stop - at_;
      at_ = stop;
      if (found != std::string::npos) {
        ++at_;
        ++offset_;
        *ended = true;
        return true;
      }
      if (line->size() > kMostLineBytes) throw InvalidArgument(absl::StrCat(path_, " is no log of decisions"));
    }
    return !line->empty();
  }

 private:
  bool Fill() {
    const uint64_t from = offset_;
    piece_.resize(std::min<uint64_t>(size_t{1} << 20, end_ - std::min(end_, from)));
    at_ = 0;
    while (!piece_.empty()) {
      const ssize_t got = ::pread(fd_, &piece_[0], piece_.size(), static_cast<off_t>(from));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw FileError("read", path_, errno);
      piece_.resize(static_cast<size_t>(got));
      return got > 0;
    }
    return false;
  }

  std::string path_;
  uint64_t offset_;
  uint64_t end_ = 0;
  int fd_ = -1;
  std::string piece_;
  size_t at_ = 0;
};

std::string Numbers(const char* noun, int64_t first, int64_t last) {
  return first == last ? absl::StrCat(noun, " ", first) : absl::StrCat(noun, "s ", first, " to ", last);
}

// "record 5 (line 5): " or, where none stood there, "line 6: ".
std::string PlaceOf(const ChainProblem& problem) {
  const std::string lines = Numbers("line", problem.first_line, problem.last_line);
  if (problem.first_record == 0) return absl::StrCat(lines, ": ");
  if (problem.open_end && problem.last_line > problem.first_line) {
    return absl::StrCat("from record ", problem.first_record, " on (", lines, "): ");
  }
  return absl::StrCat(Numbers("record", problem.first_record, problem.last_record), " (", lines, "): ");
}

class Chain {
 public:
  Chain(const std::string& path, ChainResult* result) : path_(path), result_(*result) {}

  // `offset`: of the line in the file; `foreign`: it does not even look like a record.
  void Damaged(int64_t line, const std::string& why, uint64_t offset, bool foreign) {
    foreign_ = foreign && (!open_ || foreign_);
    if (!open_) {
      open_ = ChainProblem{"damaged", line, line, 0, 0, why, false};
      open_at_ = offset;
      return;
    }
    open_->last_line = line;
  }

  void Good(int64_t line, const ReadRecord& read) {
    const bool after_damage = open_.has_value();
    const int64_t expected = result_.last_number + 1;
    if (after_damage) Close(read.number - 1);
    const bool follows = read.number == expected && read.previous == result_.last_hash;
    // Behind lost records only the numbers can be compared; where damaged lines took no record away, all can.
    const bool fits = follows || (after_damage && read.number > expected);
    if (!fits) Report({"chain", line, line, read.number, read.number, WhyNot(read, expected), false});
    ++result_.records;
    result_.last_number = read.number;
    result_.last_hash = read.hash;
  }

  void Torn(int64_t line, size_t bytes) {
    End();
    const int64_t number = result_.last_number + 1;
    Report({"torn", line, line, number, number,
            absl::StrCat("the log ends with ", bytes,
                         " bytes without a line end: a record that was cut off before it was acknowledged, or one that "
                         "was damaged later; a log that is opened again sets them aside"),
            false});
  }

  // Closes what is damaged up to the end, where no record tells how many are lost.
  void End() {
    if (!open_) return;
    if (foreign_ && result_.last_number > 0) {
      result_.foreign_from = open_at_;
      open_->message =
          absl::StrCat("the log ends with ", ForeignBytes(path_, open_at_, result_.bytes, result_.last_number));
      return Close(result_.last_number);
    }
    open_->open_end = true;
    Close(result_.last_number + 1);
  }

 private:
  // Reports the open problem, for the records behind the last good one up to `last`.
  void Close(int64_t last) {
    ChainProblem problem = std::move(*open_);
    open_.reset();
    if (last > result_.last_number) {
      problem.first_record = result_.last_number + 1;
      problem.last_record = last;
    }
    Report(std::move(problem));
  }

  std::string WhyNot(const ReadRecord& read, int64_t expected) const {
    if (read.number != expected) {
      return absl::StrCat("it stands where record ", expected, " should: records are missing, repeated or exchanged");
    }
    if (read.previous.empty()) return "it names no record before it, as only the first one does";
    if (result_.last_hash.empty()) return "it is the first, but names a record before it: the beginning is missing";
    return absl::StrCat("the hash that it has for record ", expected - 1,
                        " is another one: that record was exchanged, or the records from here on were");
  }

  void Report(ChainProblem problem) {
    problem.message = PlaceOf(problem) + problem.message;
    result_.problems.push_back(std::move(problem));
  }

  const std::string& path_;
  ChainResult& result_;
  uint64_t open_at_ = 0;              // where the first line of open_ begins
  bool foreign_ = false;              // whether no line of open_ looks like a record
  std::optional<ChainProblem> open_;  // damaged lines of which the last may not have come yet
};

}  // namespace

std::string ForeignBytes(const std::string& path, uint64_t begin, uint64_t end, int64_t number) {
  return absl::StrCat(end - begin, " bytes that are no record, behind record ", number,
                      ", as if something was printed into it; keep a copy of the file, and cut them off: truncate -s ",
                      begin, " ", ShellWord(path));
}

ChainResult ReadChain(const std::string& path, const std::function<void(const PlacedRecord&)>& visit) {
  ChainResult result;
  Lines lines(path);
  result.in_use = lines.in_use();
  result.bytes = lines.size();
  Chain chain(path, &result);
  std::string line;
  bool ended = false;
  PlacedRecord placed;
  while (true) {
    placed.offset = lines.offset();
    if (!lines.Next(&line, &ended)) break;
    placed.line = ++result.lines;
    std::string why;
    if (!ended) {
      // A whole record with something else behind it than a line end was not cut off but damaged.
      const size_t end = line.rfind('}');
      if (end != std::string::npos && end + 1 < line.size() && ReadSealed(line.substr(0, end + 1), &why)) {
        chain.Damaged(result.lines, "its line does not end as it should", placed.offset, /*foreign=*/false);
      } else if (!result.in_use) {
        chain.Torn(result.lines, line.size());
      }
      break;
    }
    auto read = ReadSealed(line, &why);
    if (!read) {
      chain.Damaged(result.lines, why, placed.offset, !LooksLikeRecord(line));
      continue;
    }
    placed.read = std::move(*read);
    chain.Good(result.lines, placed.read);
    visit(placed);
  }
  chain.End();
  return result;
}

std::string LineAt(const std::string& path, uint64_t offset) {
  Lines lines(path, offset);
  std::string line;
  bool ended = false;
  if (!lines.Next(&line, &ended) || !ended) {
    throw FailedPrecondition(absl::StrCat(path, " changed while it was verified"));
  }
  return line;
}

}  // namespace addend
