#include "core/jobs/commit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/audit/canonical_json.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/program/sha256.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

namespace fs = std::filesystem;

constexpr char kAttempts[] = "/attempts";
constexpr char kShards[] = "/shards";
constexpr char kReceiptEnding[] = "json";

// The shard and the digest of a result's name, which is exactly "00042.SHA256.ENDING"; false for another name.
bool ParseName(const std::string& name, int64_t* shard, std::string* sha256) {
  const size_t first = name.find('.');
  const size_t second = first == std::string::npos ? first : name.find('.', first + 1);
  if (second == std::string::npos || !absl::SimpleAtoi(name.substr(0, first), shard) || *shard < 0) return false;
  *sha256 = name.substr(first + 1, second - first - 1);
  const std::string ending = name.substr(second + 1);
  return IsHex64(*sha256) && (ending == "safetensors" || ending == "csv") &&
         name == absl::StrCat(ShardName(*shard), ".", *sha256, ".", ending);
}

// The names of files in a folder, in order; none where there is no such folder.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  // Only the number of the error tells: LibTorch may bring parts of the C++ library, and with them other categories of
  // errors, which are equal to none of ours.
  if (error && error.value() != ENOENT) throw FileError("read", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Attempt::Attempt(const std::string& folder, const std::string& name)
    : path_(absl::StrCat(folder, kAttempts, "/", name, ".", NewSalt().substr(0, 16))), file_([&] {
        MakeFolder(folder + kAttempts);
        return OpenFile(path_, O_WRONLY | O_CREAT | O_EXCL);
      }()) {
  if (file_.get() < 0) throw FileError("write", path_, errno);
}

Attempt::~Attempt() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void Attempt::Add(const char* data, size_t size) {
  digest_.Add(data, size);
  bytes_ += static_cast<int64_t>(size);
  const int error = WriteAll(file_.get(), data, size);
  if (error != 0) throw FileError("write", path_, error);
}

std::string Attempt::Finish() {
  int error = ::fsync(file_.get()) == 0 ? 0 : errno;
  if (!file_.Close() && error == 0) error = errno;
  if (error != 0) throw FileError("write", path_, error);
  return digest_.Hex();
}

bool Attempt::Rename(const std::string& name) {
  if (::rename(path_.c_str(), name.c_str()) != 0) {
    if (errno == ENOENT) return false;
    throw FileError("write", name, errno);
  }
  path_.clear();
  return true;
}

std::string ShardName(int64_t shard) { return absl::StrFormat("%05d", shard); }

CommittedShards FindCommitted(const std::string& folder) {
  CommittedShards found;
  const std::string shards = folder + kShards;
  for (const std::string& name : NamesIn(shards)) {
    int64_t shard = 0;
    CommittedShard own;
    if (!ParseName(name, &shard, &own.sha256)) continue;
    std::vector<CommittedShard>& results = found[shard];
    // Two endings of one digest stand for the same bytes; keep one.
    if (!results.empty() && results.back().sha256 == own.sha256) continue;
    own.path = absl::StrCat(shards, "/", name);
    own.receipt = absl::StrCat(shards, "/", ShardName(shard), ".", own.sha256, ".", kReceiptEnding);
    results.push_back(std::move(own));
  }
  return found;
}

CommittedShard CommitShard(const std::string& folder, int64_t shard, const std::string& bytes,
                           const std::string& ending, Json receipt) {
  const std::string shards = folder + kShards;
  MakeFolder(shards);
  Attempt result(folder, ShardName(shard));
  result.Add(bytes.data(), bytes.size());
  CommittedShard own;
  own.sha256 = result.Finish();
  const std::string stem = absl::StrCat(shards, "/", ShardName(shard), ".", own.sha256, ".");
  own.path = stem + ending;
  own.receipt = stem + kReceiptEnding;
  receipt["result"] = {{"bytes", bytes.size()}, {"sha256", own.sha256}};
  receipt["hash"] = Sha256Without(receipt, "hash");
  const std::string text = CanonicalJson(receipt) + "\n";
  Attempt beside(folder, ShardName(shard));
  beside.Add(text.data(), text.size());
  beside.Finish();
  if (!beside.Rename(own.receipt) || !result.Rename(own.path)) {
    // Attempts are removed where all shards are there.
    const CommittedShards committed = FindCommitted(folder);
    const auto found = committed.find(shard);
    if (found != committed.end()) return found->second.front();
    throw FailedPrecondition(absl::StrCat("somebody removed what was being written under ", folder, kAttempts));
  }
  SyncFolderOf(own.path);
  return own;
}

Json ReadReceipt(const std::string& path) {
  const std::string text = ReadFileWhole(path);
  const Json receipt = ReadJson(text, path);
  const auto hash = receipt.is_object() ? receipt.find("hash") : receipt.end();
  if (!receipt.is_object() || hash == receipt.end() || !hash->is_string()) {
    throw InvalidArgument(absl::StrCat(path, " is no receipt of a shard"));
  }
  // Two texts may be one number.
  if (CanonicalJson(receipt) + "\n" != text || Sha256Without(receipt, "hash") != hash->get_ref<const std::string&>()) {
    throw InvalidArgument(absl::StrCat(path, " is damaged: its hash is not that of its content"));
  }
  return receipt;
}

Leftovers FindAttempts(const std::string& folder) {
  Leftovers found;
  for (const std::string& name : NamesIn(folder + kAttempts)) {
    ++found.files;
    struct stat status = {};
    if (::stat(absl::StrCat(folder, kAttempts, "/", name).c_str(), &status) == 0) found.bytes += status.st_size;
  }
  return found;
}

void RemoveAttempts(const std::string& folder) {
  for (const std::string& name : NamesIn(folder + kAttempts)) {
    ::unlink(absl::StrCat(folder, kAttempts, "/", name).c_str());
  }
}

}  // namespace addend
