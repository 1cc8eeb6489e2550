// The log of decisions: a file to which one process appends records, each on the disk before the call returns.
//
// Note [What a crash leaves]
// A record is one write at the end of the file, then fdatasync; only then is it acknowledged. A process that dies in
// between leaves a beginning of a line, or a line of which nobody was told, at the end of the file. Opening the log
// again moves such a torn line to the file "LOG.torn", and the next record says so in "set_aside". Every line that was
// acknowledged ends with a line end, and stays. A write that fails (a full disk) is taken back: the log is as before.
#ifndef ADDEND_CORE_AUDIT_DECISION_LOG_H_
#define ADDEND_CORE_AUDIT_DECISION_LOG_H_

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "core/base/json.h"

namespace addend {

// The most bytes of a line.
inline constexpr size_t kMostLineBytes = size_t{1} << 29;

// State of a log: its last record, and bytes that were set aside.
struct LogState {
  std::string path;
  int64_t records = 0;    // the number of the last one
  std::string hash;       // its hash; empty: there is none
  size_t torn_bytes = 0;  // that were set aside when it was opened
};

// Any number of threads may use one; their records stand in the order in which the calls came.
class DecisionLog {
 public:
  // Opens a log to append to it, or begins one; only its owner may read it then. It is locked until the object goes.
  // Throws FailedPrecondition where another log has the file open, where the last record is damaged, and where
  // something that is no record stands behind it; InvalidArgument for a file that is no log, which is left as it is,
  // and for one that cannot be written.
  explicit DecisionLog(const std::string& path);
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  // Appends a record, as DecisionJson() makes it, and returns its line without the line end once the record is on the
  // disk. Throws InvalidArgument where it cannot be written, in which case nothing was appended, and FailedPrecondition
  // where something else wrote to the file, or moved it away, since it was opened.
  std::string Append(Json record);

  LogState state() const;

 private:
  void SetAside(const std::string& torn);
  // Throws for a last line that is no record: FailedPrecondition where records stand before what somebody else wrote,
  // of which it says how it is cut off, else InvalidArgument.
  [[noreturn]] void RefuseForeign() const;
  void Write(const std::string& bytes);

  mutable std::mutex mutex_;
  int fd_ = -1;
  uint64_t size_ = 0;  // of the file
  LogState state_;
  Json set_aside_;                  // what the next record has to say of it; null: nothing
  std::set<std::string> requests_;  // whose content was written since the log was opened
  std::string broken_;              // why nothing can be appended any more; empty: it can
};

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_DECISION_LOG_H_
