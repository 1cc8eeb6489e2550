#include "core/audit/decision_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/chain.h"
#include "core/audit/record.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

// How many requests a log remembers; beyond them their content is written again.
constexpr size_t kMostRequests = 4096;

struct stat StatusOf(int fd, const std::string& path) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) throw FileError("look at", path, errno);
  return status;
}

// Offset of the line that ends before `end`: behind the line end before it.
uint64_t BeginOfLine(int fd, uint64_t end, const std::string& path) {
  constexpr uint64_t kPiece = 1 << 16;
  while (end > 0) {
    const uint64_t begin = end > kPiece ? end - kPiece : 0;
    const std::string piece = ReadAt(fd, path, begin, end - begin);
    const size_t found = piece.rfind('\n');
    if (found != std::string::npos) return begin + found + 1;
    end = begin;
  }
  return 0;
}

// 0, or errno. A limit on the size of files is looked at before, because the system ends a process that goes beyond.
int WriteAt(int fd, uint64_t at, const std::string& bytes) {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && at + bytes.size() > limit.rlim_cur) {
    return EFBIG;
  }
  return WriteAll(fd, bytes.data(), bytes.size());
}

// Whether the end of a file is a beginning of a record, whole or cut off, and so the first line of a log.
bool BeginsLikeRecord(const std::string& torn) {
  const std::string beginning = kRecordBeginning;
  const size_t size = std::min(torn.size(), beginning.size());
  return torn.compare(0, size, beginning, 0, size) == 0;
}

Error DamagedLast(const std::string& path, const std::string& why) {
  return FailedPrecondition(
      absl::StrCat("the last record of ", path, " is damaged (", why,
                   "); keep the file, look at it with addend audit verify, and begin another log"));
}

// Whether a whole record stands there with something else behind it than a line end. No write that was cut off leaves
// that.
bool HoldsRecord(const std::string& torn) {
  const size_t end = torn.rfind('}');
  std::string why;
  return end != std::string::npos && end + 1 < torn.size() && ReadSealed(torn.substr(0, end + 1), &why).has_value();
}

}  // namespace

DecisionLog::DecisionLog(const std::string& path) {
  state_.path = path;
  fd_ = OpenFile(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd_ < 0) throw FileError("write", path, errno);
  try {
    if (!S_ISREG(StatusOf(fd_, path).st_mode)) {
      throw InvalidArgument(absl::StrCat("cannot write ", path, ": a log of decisions is a file"));
    }
    // The lock belongs to the open file, so that it also holds within a process.
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (::fcntl(fd_, F_OFD_SETLK, &lock) != 0) {
      if (errno != EAGAIN && errno != EACCES) throw FileError("lock", path, errno);
      throw FailedPrecondition(
          absl::StrCat(path, " is open as a log already, here or in another process; one at a time writes to it"));
    }
    size_ = static_cast<uint64_t>(StatusOf(fd_, path).st_size);
    if (size_ == 0) {
      if (::fsync(fd_) != 0) throw FileError("write", path, errno);
      SyncFolderOf(path);
      return;
    }
    const uint64_t end = BeginOfLine(fd_, size_, path);
    if (size_ - end > kMostLineBytes) throw InvalidArgument(absl::StrCat(path, " is no log of decisions"));
    const std::string torn = ReadAt(fd_, path, end, size_ - end);
    if (end == 0 && !BeginsLikeRecord(torn)) {
      throw InvalidArgument(absl::StrCat(path, " is no log of decisions; name another file"));
    }
    if (end > 0) {
      const uint64_t begin = BeginOfLine(fd_, end - 1, path);
      if (end - begin > kMostLineBytes) throw InvalidArgument(absl::StrCat(path, " is no log of decisions"));
      const std::string line = ReadAt(fd_, path, begin, end - 1 - begin);
      std::string why;
      const auto last = ReadSealed(line, &why);
      if (!last) {
        if (!LooksLikeRecord(line)) RefuseForeign();
        throw DamagedLast(path, why);
      }
      state_.records = last->number;
      state_.hash = last->hash;
    }
    if (HoldsRecord(torn)) throw DamagedLast(path, "its line does not end as it should");
    if (!torn.empty()) SetAside(torn);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

DecisionLog::~DecisionLog() { ::close(fd_); }

void DecisionLog::RefuseForeign() const {
  const Error no_log = InvalidArgument(absl::StrCat(state_.path, " is no log of decisions; name another file"));
  const std::string beginning = kRecordBeginning;
  if (ReadAt(fd_, state_.path, 0, std::min<uint64_t>(size_, beginning.size())) != beginning) throw no_log;
  const ChainResult chain = ReadChain(state_.path, [](const PlacedRecord&) {});
  if (chain.records == 0) throw no_log;
  if (chain.foreign_from == 0) throw DamagedLast(state_.path, "lines behind it are no records");
  throw FailedPrecondition(absl::StrCat(state_.path, " ends with ",
                                        ForeignBytes(state_.path, chain.foreign_from, chain.bytes, chain.last_number)));
}

void DecisionLog::SetAside(const std::string& torn) {
  const std::string beside = state_.path + ".torn";
  Descriptor file(OpenFile(beside, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY, 0600));
  if (file.get() < 0) throw FileError("write", beside, errno);
  const struct stat status = StatusOf(file.get(), beside);
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgument(absl::StrCat("cannot write ", beside, ": it is no regular file; move it away"));
  }
  int error = WriteAt(file.get(), static_cast<uint64_t>(status.st_size), torn + "\n");
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (!file.Close() && error == 0) error = errno;
  if (error != 0) throw FileError("write", beside, error);
  SyncFolderOf(beside);
  if (::ftruncate(fd_, static_cast<off_t>(size_ - torn.size())) != 0 || ::fdatasync(fd_) != 0) {
    throw FileError("write", state_.path, errno);
  }
  size_ -= torn.size();
  state_.torn_bytes = torn.size();
  set_aside_ = {{"bytes", torn.size()}, {"sha256", Sha256(torn)}};
}

void DecisionLog::Write(const std::string& bytes) {
  const struct stat status = StatusOf(fd_, state_.path);
  if (status.st_nlink == 0) {
    throw FailedPrecondition(absl::StrCat(state_.path, " was removed while the log was open; open another one"));
  }
  if (static_cast<uint64_t>(status.st_size) != size_) {
    throw FailedPrecondition(absl::StrCat("something else wrote to ", state_.path,
                                          " while the log was open; look at it with addend audit verify"));
  }
  const int failed = WriteAt(fd_, size_, bytes);
  // After a failed fdatasync the bytes may be on the disk or not: the file is read again before anything is added.
  const int unsaved = failed == 0 && ::fdatasync(fd_) != 0 ? errno : 0;
  if (failed == 0 && unsaved == 0) return;
  const bool taken_back = ::ftruncate(fd_, static_cast<off_t>(size_)) == 0 && ::fdatasync(fd_) == 0;
  const Error error = FileError("write", state_.path, failed != 0 ? failed : unsaved);
  if (unsaved != 0 || !taken_back) broken_ = absl::StrCat(error.what(), "; open the log again");
  throw Error(error.code(), absl::StrCat(error.what(), "; the record was not appended"));
}

std::string DecisionLog::Append(Json record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_.empty()) throw FailedPrecondition(broken_);
  std::string request;
  if (record.contains("request")) {
    request = record["request"].value("sha256", "");
    if (requests_.count(request) > 0) record["request"].erase("content");
  }
  if (!set_aside_.is_null()) record["set_aside"] = set_aside_;
  std::string hash;
  std::string line = SealRecord(std::move(record), state_.records + 1, state_.hash, &hash);
  if (line.size() >= kMostLineBytes) {
    throw InvalidArgument("the record is larger than 512 MiB; keep its inputs elsewhere");
  }
  Write(line + "\n");
  size_ += line.size() + 1;
  state_.records += 1;
  state_.hash = std::move(hash);
  set_aside_ = nullptr;
  if (requests_.size() >= kMostRequests) requests_.clear();
  requests_.insert(std::move(request));
  return line;
}

LogState DecisionLog::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

}  // namespace addend
