// How the result of a shard becomes visible: all of it or nothing, under the digest of its bytes.
//
// Note [Commit by content]
// A result is written to a file of its own under "attempts" and flushed to the disk; then it is renamed to
// "shards/00042.SHA256.safetensors", and the folder is flushed. A shard is a pure function of its plan, so two attempts
// that both finish have the same name and the same bytes: no lock, no coordinator and no clock is needed, and whoever
// is killed leaves a file under "attempts" at most. Two names for one shard prove that two machines computed different
// bits; the receipts name them. A receipt is renamed before its result, so that no result is without one.
#ifndef ADDEND_CORE_JOBS_COMMIT_H_
#define ADDEND_CORE_JOBS_COMMIT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/program/sha256.h"

namespace addend {

// A file under "attempts", with a name that nobody else has, that goes with its owner unless it was given another name.
class Attempt {
 public:
  // name: what it is of; the file's name begins so. Throws InvalidArgument where the file cannot be made.
  Attempt(const std::string& folder, const std::string& name);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Throws InvalidArgument where that cannot be written.
  void Add(const char* data, size_t size);
  // Flushes the file to the disk, and gives the digest of its bytes; nothing may be added afterwards. Throws likewise.
  std::string Finish();
  // Gives the file its name, in place of one that has it. False where somebody removed the attempt.
  bool Rename(const std::string& name);
  int64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  Descriptor file_;
  int64_t bytes_ = 0;
  Sha256Digest digest_;
};

// A result that is there.
struct CommittedShard {
  std::string sha256;  // as its name says
  std::string path;
  std::string receipt;  // the path of its receipt
};

// Committed results by shard. Several of one shard: results that differ.
using CommittedShards = std::map<int64_t, std::vector<CommittedShard>>;

// The results in a folder; none if there is no such folder. Files with other names than those of results and receipts
// do not count. Costs one listing.
CommittedShards FindCommitted(const std::string& folder);

// Makes a result visible with its receipt, to which "result" and "hash" are added. `ending`: "safetensors". Gives where
// it is. Throws InvalidArgument where it cannot be written (a full disk); then nothing of it is left but, where that
// fails too, a file under "attempts".
CommittedShard CommitShard(const std::string& folder, int64_t shard, const std::string& bytes,
                           const std::string& ending, Json receipt);

// Reads a receipt. Throws InvalidArgument for what is no receipt, and for one whose hash is not that of its content.
Json ReadReceipt(const std::string& path);

// Files of attempts that did not finish: how many, and their bytes.
struct Leftovers {
  int64_t files = 0;
  int64_t bytes = 0;
};
Leftovers FindAttempts(const std::string& folder);
// Removes them. A worker that still computes a shard then finds that it was done.
void RemoveAttempts(const std::string& folder);

// "00042": what the names of a shard's files begin with.
std::string ShardName(int64_t shard);

}  // namespace addend

#endif  // ADDEND_CORE_JOBS_COMMIT_H_
