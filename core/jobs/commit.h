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

#include "core/base/json.h"

namespace addend {

// A result that is there.
struct CommittedShard {
  std::string sha256;  // as its name says
  std::string path;
  std::string receipt;  // the path of its receipt
};

// By shard. More than one: results that differ.
using CommittedShards = std::map<int64_t, std::vector<CommittedShard>>;

// What is in a folder of results; nothing where there is no such folder. Costs one listing.
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
