#include "core/jobs/merge.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/audit/canonical_json.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/jobs/commit.h"
#include "core/jobs/shard_table.h"
#include "core/linearize/operator_check.h"
#include "core/program/sha256.h"
#include "core/program/tensor_io.h"
#include "core/program/tensor_layout.h"

namespace addend {
namespace {

constexpr char kMergedFormat[] = "addend.job_result";
constexpr int64_t kMergedVersion = 1;
constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kMostListed = 20;  // shards or faults in one message

std::string MergedPath(const std::string& plan_path, const std::string& ending) {
  return absl::StrCat(ResultsFolder(plan_path), "/merged.", ending);
}

std::string SuccessPath(const std::string& plan_path) { return ResultsFolder(plan_path) + "/_SUCCESS"; }

// A shard's receipt, or why it cannot be taken.
std::optional<Json> TakeReceipt(const CommittedShard& own, const std::string& plan, int64_t shard, std::string* why) {
  try {
    Json receipt = ReadReceipt(own.receipt);
    if (receipt.at("plan") != plan || receipt.at("shard") != shard || receipt.at("result").at("sha256") != own.sha256) {
      *why = absl::StrCat(own.receipt, " belongs to another plan or another shard");
      return std::nullopt;
    }
    return receipt;
  } catch (const Error& error) {
    *why = error.what();
  } catch (const Json::exception&) {
    *why = absl::StrCat(own.receipt, " lacks something that receipts hold");
  }
  return std::nullopt;
}

std::string MachineOf(const CommittedShard& own) {
  try {
    return ReadReceipt(own.receipt).at("run").at("machine").get<std::string>();
  } catch (const std::exception&) {
    return "a machine whose receipt cannot be read";
  }
}

std::string TellDifferent(int64_t shard, const std::vector<CommittedShard>& results) {
  std::vector<std::string> texts;
  for (const CommittedShard& own : results) texts.push_back(absl::StrCat(own.sha256, " of ", MachineOf(own)));
  return absl::StrCat("shard ", shard,
                      " has different results, though one plan gives one result: ", absl::StrJoin(texts, ", "));
}

// What is to be told of the shards of a plan that cannot be taken.
struct Faults {
  std::vector<int64_t> missing;
  std::vector<std::string> wrong;
};

// Calls `take(shard, committed, receipt)` for each shard with one result and its receipt, in order. What it returns is
// wrong with the shard; empty: nothing.
template <typename Take>
Faults ForEachShard(const JobPlan& plan, const CommittedShards& committed, const Take& take) {
  const std::string digest = Sha256OfPlan(plan);
  Faults faults;
  for (int64_t shard = 0; shard < plan.shards(); ++shard) {
    const auto found = committed.find(shard);
    if (found == committed.end()) {
      faults.missing.push_back(shard);
      continue;
    }
    std::string why;
    if (found->second.size() > 1) {
      why = TellDifferent(shard, found->second);
    } else if (const auto receipt = TakeReceipt(found->second.front(), digest, shard, &why)) {
      why = take(shard, found->second.front(), *receipt);
    }
    if (!why.empty()) faults.wrong.push_back(why);
  }
  return faults;
}

template <typename Item>
std::string Shorten(const std::vector<Item>& lines, const char* between) {
  const size_t shown = std::min(lines.size(), kMostListed);
  std::string text = absl::StrJoin(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), between);
  if (shown < lines.size()) absl::StrAppend(&text, between, "and ", lines.size() - shown, " more");
  return text;
}

// A file that is written piece by piece beside its place, and has its digest counted.
class Output {
 public:
  explicit Output(const std::string& path)
      : path_(path),
        temporary_(path + ".tmp"),
        file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) throw FileError("write", temporary_, errno);
  }
  ~Output() {
    if (file_.get() >= 0) ::unlink(temporary_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Add(const char* data, size_t size) {
    digest_.Add(data, size);
    bytes_ += static_cast<int64_t>(size);
    const int error = WriteAll(file_.get(), data, size);
    if (error != 0) throw FileError("write", path_, error);
  }
  // Flushes the file and gives it its name.
  std::string Finish() {
    if (::fsync(file_.get()) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      throw FileError("write", path_, errno);
    }
    file_.Close();
    return digest_.Hex();
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  std::string temporary_;
  Descriptor file_;
  int64_t bytes_ = 0;
  Sha256Digest digest_;
};

// Bytes [begin, end) of a file, piece by piece.
void Copy(const std::string& path, uint64_t begin, uint64_t end, Output& output) {
  const Descriptor file(OpenToRead(path));
  while (begin < end) {
    const std::string piece = ReadAt(file.get(), path, begin, std::min<uint64_t>(kPiece, end - begin));
    output.Add(piece.data(), piece.size());
    begin += piece.size();
  }
}

// Tensors whose rows are those of all shards.
void MergeTensors(const std::vector<CommittedShard>& shards, Output& output) {
  std::vector<TensorLayout> layouts;
  TensorLayout whole = ReadLayoutOfFile(shards.front().path);
  for (StoredTensor& tensor : whole.tensors) tensor.shape[0] = 0;
  for (const CommittedShard& own : shards) {
    layouts.push_back(ReadLayoutOfFile(own.path));
    const std::vector<StoredTensor>& tensors = layouts.back().tensors;
    bool same = tensors.size() == whole.tensors.size();
    for (size_t k = 0; same && k < tensors.size(); ++k) {
      StoredTensor& all = whole.tensors[k];
      const std::vector<int64_t>& shape = tensors[k].shape;
      same = tensors[k].name == all.name && tensors[k].dtype == all.dtype && shape.size() == all.shape.size() &&
             std::equal(shape.begin() + 1, shape.end(), all.shape.begin() + 1);
      if (same) all.shape[0] += shape[0];
    }
    if (!same) throw FailedPrecondition(absl::StrCat(own.path, " holds other tensors than ", shards.front().path));
  }
  const std::string head = EncodeSafetensorsHead(whole);
  output.Add(head.data(), head.size());
  for (size_t k = 0; k < whole.tensors.size(); ++k) {
    for (size_t s = 0; s < shards.size(); ++s) {
      const StoredTensor& own = layouts[s].tensors[k];
      Copy(shards[s].path, own.begin, own.end, output);
    }
  }
}

// Lines of all shards behind one line of names.
void MergeLines(const std::vector<CommittedShard>& shards, Output& output) {
  uint64_t names = 0;  // the length of that line
  for (const CommittedShard& own : shards) {
    uint64_t size = 0;
    const Descriptor file(OpenToRead(own.path, &size));
    if (names == 0) {
      // Names hold line ends of their own between quotation marks.
      bool quoted = false;
      for (bool ended = false; !ended && names < size; ++names) {
        const char c = ReadAt(file.get(), own.path, names, 1)[0];
        quoted = quoted != (c == '"');
        ended = c == '\n' && !quoted;
      }
      Copy(own.path, 0, names, output);
    }
    Copy(own.path, names, size, output);
  }
}

}  // namespace

double JobStatus::seconds_left() const {
  if (rows_done == 0) return -1;
  return seconds / static_cast<double>(rows_done) * static_cast<double>(rows - rows_done);
}

JobStatus StatusOfJob(const JobPlan& plan, const std::string& plan_path) {
  const std::string folder = ResultsFolder(plan_path);
  const CommittedShards committed = FindCommitted(folder);
  JobStatus status;
  status.shards = plan.shards();
  status.rows = plan.rows;
  Faults faults = ForEachShard(plan, committed, [&](int64_t shard, const CommittedShard&, const Json& receipt) {
    ++status.done;
    status.rows_done += plan.end_row(shard) - plan.first_row(shard);
    status.refused += static_cast<int64_t>(receipt.at("refused").size());
    status.seconds += NumberOf(receipt.at("run").at("seconds"));
    status.peak_memory = std::max(status.peak_memory, receipt.at("run").at("peak_memory").get<int64_t>());
    for (const Json& json : receipt.at("aggregates")) {
      const Aggregates own = Aggregates::OfJson(json);
      status.worst_leftover_share = std::max(status.worst_leftover_share, own.leftover_shares().sketch.largest());
      NoteWorst(own.worst_recovery_error(), status.worst_recovery_error);
    }
    return std::string();
  });
  status.missing = std::move(faults.missing);
  status.wrong = std::move(faults.wrong);
  for (const auto& [shard, results] : committed) {
    if (shard >= plan.shards()) status.wrong.push_back(absl::StrCat("the plan has no shard ", shard));
  }
  const Leftovers attempts = FindAttempts(folder);
  status.attempts = attempts.files;
  status.attempt_bytes = attempts.bytes;
  status.merged = ::access(SuccessPath(plan_path).c_str(), F_OK) == 0;
  return status;
}

Json JobStatusJson(const JobStatus& status) {
  const double left = status.seconds_left();
  return {{"format", "addend.job_status"},
          {"version", 1},
          {"shards", status.shards},
          {"done", status.done},
          {"rows", status.rows},
          {"rows_done", status.rows_done},
          {"refused", status.refused},
          {"seconds", status.seconds},
          {"seconds_left", left < 0 ? Json(nullptr) : Json(left)},
          {"worst_leftover_share", status.worst_leftover_share},
          {"worst_recovery_error", status.worst_recovery_error},
          {"peak_memory", status.peak_memory},
          {"missing", status.missing},
          {"wrong", status.wrong},
          {"attempts", status.attempts},
          {"attempt_bytes", status.attempt_bytes},
          {"merged", status.merged}};
}

Json MergedJobJson(const MergedJob& merged) {
  return {{"format", "addend.job_merged"}, {"version", 1},        {"path", merged.path},      {"sha256", merged.sha256},
          {"bytes", merged.bytes},         {"rows", merged.rows}, {"refused", merged.refused}};
}

MergedJob MergeJob(const JobPlan& plan, const std::string& plan_path, const Progress& progress) {
  const std::string folder = ResultsFolder(plan_path);
  std::vector<CommittedShard> shards;
  MergedJob merged;
  merged.refused = Json::array();
  const auto take = [&](int64_t shard, const CommittedShard& own, const Json& receipt) -> std::string {
    if (Sha256OfFile(own.path) != own.sha256) {
      return absl::StrCat(own.path, " is damaged: its bytes have another digest than its name says");
    }
    shards.push_back(own);
    merged.rows += receipt.at("rows").get<int64_t>();
    for (const Json& refused : receipt.at("refused")) merged.refused.push_back(refused);
    const auto machine = receipt.at("run").at("machine").get<std::string>();
    std::vector<std::string>& machines = merged.machines;
    if (std::find(machines.begin(), machines.end(), machine) == machines.end()) machines.push_back(machine);
    merged.seconds += NumberOf(receipt.at("run").at("seconds"));
    size_t target = 0;
    for (const Json& json : receipt.at("aggregates")) {
      Aggregates aggregates = Aggregates::OfJson(json);
      if (target < merged.aggregates.size()) {
        merged.aggregates[target].Merge(aggregates);
      } else {
        merged.aggregates.push_back(std::move(aggregates));
      }
      ++target;
    }
    if (progress) progress(shard + 1, plan.shards());
    return "";
  };
  const Faults faults = ForEachShard(plan, FindCommitted(folder), take);
  if (!faults.wrong.empty()) {
    throw FailedPrecondition(
        absl::StrCat(Shorten(faults.wrong, "\n"), "\nRemove what is wrong from ", folder,
                     "/shards and run those shards again; where results differ, compare the machines"));
  }
  if (!faults.missing.empty()) {
    throw FailedPrecondition(absl::StrCat(faults.missing.size(), " of ", plan.shards(), " shards are missing: ",
                                          Shorten(faults.missing, ", "), "; run them with addend job run ", plan_path));
  }
  ::unlink(SuccessPath(plan_path).c_str());
  merged.path = MergedPath(plan_path, EndingOf(plan.format));
  Output output(merged.path);
  plan.format == "csv" ? MergeLines(shards, output) : MergeTensors(shards, output);
  merged.sha256 = output.Finish();
  merged.bytes = output.bytes();
  Json aggregates = Json::array();
  for (const Aggregates& own : merged.aggregates) aggregates.push_back(own.ToJson());
  Json document = {
      {"aggregates", std::move(aggregates)},
      {"format", kMergedFormat},
      {"machines", merged.machines},
      {"plan", Sha256OfPlan(plan)},
      {"refused", merged.refused},
      {"result",
       {{"bytes", merged.bytes}, {"path", merged.path.substr(merged.path.rfind('/') + 1)}, {"sha256", merged.sha256}}},
      {"rows", merged.rows},
      {"seconds", RecordedNumber(merged.seconds)},
      {"version", kMergedVersion}};
  merged.hash = Sha256Without(document, "hash");
  document["hash"] = merged.hash;
  WriteFileWhole(MergedPath(plan_path, "json"), CanonicalJson(document) + "\n");
  WriteFileWhole(SuccessPath(plan_path),
                 absl::StrCat(merged.sha256, "  ", document["result"]["path"].get<std::string>(), "\n"));
  RemoveAttempts(folder);
  return merged;
}

MergedJob ReadMergedJob(const JobPlan& plan, const std::string& plan_path) {
  const std::string again = absl::StrCat("addend job merge ", plan_path);
  const std::string path = MergedPath(plan_path, "json");
  if (::access(SuccessPath(plan_path).c_str(), F_OK) != 0 || ::access(path.c_str(), F_OK) != 0) {
    throw FailedPrecondition(absl::StrCat(plan_path, " is not merged; run ", again));
  }
  MergedJob merged;
  Json document;
  try {
    document = ReadJson(ReadFileWhole(path), path);
    merged.hash = document.at("hash").get<std::string>();
    if (merged.hash != Sha256Without(document, "hash")) throw InvalidArgument("its hash is not that of its content");
  } catch (const Error& error) {
    throw FailedPrecondition(absl::StrCat(path, " is damaged: ", error.what(), "; write it anew by ", again));
  } catch (const Json::exception&) {
    throw FailedPrecondition(absl::StrCat(path, " is damaged: it has no hash; write it anew by ", again));
  }
  try {
    if (document.at("format") != kMergedFormat || document.at("version") != kMergedVersion) {
      throw FailedPrecondition(
          absl::StrCat(path, " is of another version of Addend than this one; write it anew by ", again));
    }
    if (document.at("plan") != Sha256OfPlan(plan)) {
      throw FailedPrecondition(absl::StrCat(path, " belongs to another plan than ", plan_path,
                                            ": its plan's digest is ", document.at("plan").get<std::string>(),
                                            "; run the shards of this one, and ", again));
    }
    merged.path = MergedPath(plan_path, EndingOf(plan.format));
    merged.sha256 = document.at("result").at("sha256").get<std::string>();
    merged.bytes = document.at("result").at("bytes").get<int64_t>();
    merged.rows = document.at("rows").get<int64_t>();
    merged.refused = document.at("refused");
    merged.machines = document.at("machines").get<std::vector<std::string>>();
    merged.seconds = NumberOf(document.at("seconds"));
    for (const Json& own : document.at("aggregates")) merged.aggregates.push_back(Aggregates::OfJson(own));
  } catch (const Json::exception&) {
    throw FailedPrecondition(
        absl::StrCat(path, " lacks something that results of jobs hold; write it anew by ", again));
  }
  uint64_t size = 0;
  const Descriptor rows(OpenToRead(merged.path, &size));
  if (size != static_cast<uint64_t>(merged.bytes)) {
    throw FailedPrecondition(absl::StrCat(merged.path, " has ", size, " bytes, and had ", merged.bytes,
                                          " when it was merged; write it anew by ", again));
  }
  return merged;
}

}  // namespace addend
