#include "core/jobs/merge.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/audit/canonical_json.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/jobs/commit.h"
#include "core/jobs/receipt.h"
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
constexpr size_t kMostListed = 20;  // shards in one message
constexpr size_t kMostFaults = 5;   // likewise

std::string MergedPath(const std::string& plan_path, const std::string& ending) {
  return absl::StrCat(ResultsFolder(plan_path), "/merged.", ending);
}

// The marker holds what "sha256sum --check" reads, to which this is a comment.
std::string SuccessOf(const std::string& plan_sha256) { return absl::StrCat("# plan ", plan_sha256, "\n"); }

std::string SuccessPath(const std::string& plan_path) { return ResultsFolder(plan_path) + "/_SUCCESS"; }

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

// Shards of a plan that cannot be taken: missing ones, and texts on wrong ones.
struct Faults {
  std::vector<int64_t> missing;
  std::vector<std::string> wrong;
};

// Calls `take(shard, committed, receipt)` for each shard with one result and its receipt, in order. What it returns is
// wrong with the shard; empty: nothing.
template <typename Take>
Faults ForEachShard(const JobPlan& plan, const std::string& digest, const CommittedShards& committed,
                    const Take& take) {
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
    } else {
      try {
        why = take(shard, found->second.front(), ReadShardReceipt(plan, digest, shard, found->second.front()));
      } catch (const Error& error) {
        why = error.what();
      }
    }
    if (!why.empty()) faults.wrong.push_back(why);
  }
  return faults;
}

// Adds the aggregates of a shard, by target, to those of the shards before it.
void AddTo(std::vector<Aggregates>& all, const std::vector<Aggregates>& own) {
  if (all.empty()) {
    all = own;
    return;
  }
  for (size_t t = 0; t < all.size(); ++t) all[t].Merge(own[t]);
}

template <typename Item>
std::string Shorten(const std::vector<Item>& items, size_t most, const char* between) {
  const size_t shown = std::min(items.size(), most);
  std::string text = absl::StrJoin(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(shown), between);
  if (shown < items.size()) absl::StrAppend(&text, between, "and ", items.size() - shown, " more");
  return text;
}

// Bytes [begin, end) of a file, piece by piece.
void Copy(const std::string& path, uint64_t begin, uint64_t end, Attempt& output) {
  const Descriptor file(OpenToRead(path));
  while (begin < end) {
    const std::string piece = ReadAt(file.get(), path, begin, std::min<uint64_t>(kPiece, end - begin));
    output.Add(piece.data(), piece.size());
    begin += piece.size();
  }
}

// Tensors whose rows are those of all shards.
void MergeTensors(const JobPlan& plan, const std::vector<CommittedShard>& shards, const NoteCounts& notes,
                  Attempt& output) {
  std::vector<std::vector<std::pair<uint64_t, uint64_t>>> places;  // of the bytes, by shard, then by tensor
  TensorLayout whole = ReadLayoutOfFile(shards.front().path);
  for (StoredTensor& tensor : whole.tensors) tensor.shape[0] = 0;
  for (const CommittedShard& own : shards) {
    const std::vector<StoredTensor> tensors = ReadLayoutOfFile(own.path).tensors;
    std::vector<std::pair<uint64_t, uint64_t>>& own_places = places.emplace_back();
    for (const StoredTensor& tensor : tensors) own_places.emplace_back(tensor.begin, tensor.end);
    bool same = tensors.size() == whole.tensors.size();
    for (size_t k = 0; same && k < tensors.size(); ++k) {
      StoredTensor& all = whole.tensors[k];
      const std::vector<int64_t>& shape = tensors[k].shape;
      same = tensors[k].name == all.name && tensors[k].dtype == all.dtype && shape.size() == all.shape.size() &&
             !shape.empty() && std::equal(shape.begin() + 1, shape.end(), all.shape.begin() + 1);
      if (same) all.shape[0] += shape[0];
    }
    if (!same) throw FailedPrecondition(absl::StrCat(own.path, " holds other tensors than ", shards.front().path));
  }
  for (const StoredTensor& tensor : whole.tensors) {
    if (tensor.shape[0] == plan.rows) continue;
    throw FailedPrecondition(
        absl::StrCat("shards hold ", tensor.shape[0], " rows of ", tensor.name, ", and the plan has ", plan.rows));
  }
  whole.metadata["notes"] = Dump(NoteCountsJson(notes));
  const std::string head = EncodeSafetensorsHead(whole);
  output.Add(head.data(), head.size());
  for (size_t k = 0; k < whole.tensors.size(); ++k) {
    for (size_t s = 0; s < shards.size(); ++s) {
      Copy(shards[s].path, places[s][k].first, places[s][k].second, output);
    }
  }
}

// Lines of all shards behind one line of names.
void MergeLines(const std::vector<CommittedShard>& shards, Attempt& output) {
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
  const std::string digest = Sha256OfPlan(plan);
  JobStatus status;
  status.shards = plan.shards();
  status.rows = plan.rows;
  std::vector<Aggregates> aggregates;
  const auto take = [&](int64_t, const CommittedShard&, const ShardReceipt& receipt) {
    ++status.done;
    status.notes.Merge(receipt.notes);
    AddTo(aggregates, receipt.aggregates);
    status.rows_done += receipt.rows;
    status.refused += static_cast<int64_t>(receipt.refused().size());
    status.seconds += receipt.seconds;
    status.peak_memory = std::max(status.peak_memory, receipt.peak_memory);
    for (const Aggregates& own : receipt.aggregates) {
      status.not_finite += own.not_finite();
      status.worst_leftover_share = std::max(status.worst_leftover_share, own.leftover_shares().sketch.largest());
      NoteWorst(own.worst_recovery_error(), status.worst_recovery_error);
    }
    return std::string();
  };
  Faults faults = ForEachShard(plan, digest, committed, take);
  AddNotesOnReferences(plan, aggregates, status.notes);
  status.missing = std::move(faults.missing);
  status.wrong = std::move(faults.wrong);
  for (const auto& [shard, results] : committed) {
    if (shard >= plan.shards()) status.wrong.push_back(absl::StrCat("the plan has no shard ", shard));
  }
  const Leftovers attempts = FindAttempts(folder);
  status.attempts = attempts.files;
  status.attempt_bytes = attempts.bytes;
  const std::string success = SuccessPath(plan_path);
  status.merged = ::access(success.c_str(), F_OK) == 0 && absl::StrContains(ReadFileWhole(success), SuccessOf(digest));
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
          {"not_finite", status.not_finite},
          {"seconds", status.seconds},
          {"seconds_left", left < 0 ? Json(nullptr) : Json(left)},
          {"worst_leftover_share", status.worst_leftover_share},
          {"worst_recovery_error", status.worst_recovery_error},
          {"peak_memory", status.peak_memory},
          {"notes", NoteCountsJson(status.notes)},
          {"missing", status.missing},
          {"wrong", status.wrong},
          {"attempts", status.attempts},
          {"attempt_bytes", status.attempt_bytes},
          {"merged", status.merged}};
}

int64_t MergedJob::not_finite() const {
  int64_t count = 0;
  for (const Aggregates& own : aggregates) count += own.not_finite();
  return count;
}

Json MergedJobJson(const MergedJob& merged) {
  return {{"format", "addend.job_merged"},
          {"version", 1},
          {"path", merged.path},
          {"sha256", merged.sha256},
          {"bytes", merged.bytes},
          {"rows", merged.rows},
          {"refused_rows", merged.refused_rows},
          {"refused", merged.refused},
          {"not_finite", merged.not_finite()},
          {"notes", NoteCountsJson(merged.notes)}};
}

MergedJob MergeJob(const JobPlan& plan, const std::string& plan_path, const Progress& progress) {
  const std::string folder = ResultsFolder(plan_path);
  const std::string digest = Sha256OfPlan(plan);
  std::vector<CommittedShard> shards;
  MergedJob merged;
  merged.refused = Json::array();
  const auto take = [&](int64_t shard, const CommittedShard& own, const ShardReceipt& receipt) -> std::string {
    if (Sha256OfFile(own.path) != own.sha256) {
      return absl::StrCat(own.path, " is damaged: its bytes have another digest than its name says");
    }
    shards.push_back(own);
    merged.rows += receipt.rows;
    merged.refused_rows += static_cast<int64_t>(receipt.refused().size());
    for (const Json& refused : receipt.refused()) {
      if (merged.refused.size() < MergedJob::kMostRefused) merged.refused.push_back(refused);
    }
    std::vector<std::string>& machines = merged.machines;
    if (std::find(machines.begin(), machines.end(), receipt.machine) == machines.end()) {
      machines.push_back(receipt.machine);
    }
    merged.seconds += receipt.seconds;
    merged.notes.Merge(receipt.notes);
    AddTo(merged.aggregates, receipt.aggregates);
    if (progress) progress(shard + 1, plan.shards());
    return "";
  };
  const Faults faults = ForEachShard(plan, digest, FindCommitted(folder), take);
  if (!faults.wrong.empty()) {
    throw FailedPrecondition(absl::StrCat(
        faults.wrong.size(), " of ", plan.shards(), " shards are wrong: ", Shorten(faults.wrong, kMostFaults, "; "),
        "; remove what is wrong from ", folder,
        "/shards, and run those shards again; where results differ, compare the machines; addend job "
        "status ",
        plan_path, " --json lists all"));
  }
  if (!faults.missing.empty()) {
    throw FailedPrecondition(absl::StrCat(faults.missing.size(), " of ", plan.shards(),
                                          " shards are missing: ", Shorten(faults.missing, kMostListed, ", "),
                                          "; run them with addend job run ", plan_path));
  }
  AddNotesOnReferences(plan, merged.aggregates, merged.notes);
  ::unlink(SuccessPath(plan_path).c_str());
  merged.path = MergedPath(plan_path, EndingOf(plan.format));
  Attempt output(folder, "merged");
  plan.format == "csv" ? MergeLines(shards, output) : MergeTensors(plan, shards, merged.notes, output);
  merged.sha256 = output.Finish();
  merged.bytes = output.bytes();
  // Another process that merged these shards meanwhile removed the attempt, and gave its own the name.
  if (!output.Rename(merged.path) && Sha256OfFile(merged.path) != merged.sha256) {
    throw FailedPrecondition(
        absl::StrCat("somebody removed what was being written under ", folder, "; merge again, alone"));
  }
  Json aggregates = Json::array();
  for (const Aggregates& own : merged.aggregates) aggregates.push_back(own.ToJson());
  Json document = {
      {"aggregates", std::move(aggregates)},
      {"format", kMergedFormat},
      {"machines", merged.machines},
      {"notes", NoteCountsJson(merged.notes)},
      {"plan", digest},
      {"refused", merged.refused},
      {"refused_rows", merged.refused_rows},
      {"result",
       {{"bytes", merged.bytes}, {"path", merged.path.substr(merged.path.rfind('/') + 1)}, {"sha256", merged.sha256}}},
      {"rows", merged.rows},
      {"seconds", RecordedNumber(merged.seconds)},
      {"version", kMergedVersion}};
  merged.hash = Sha256Without(document, "hash");
  document["hash"] = merged.hash;
  WriteFileWhole(MergedPath(plan_path, "json"), CanonicalJson(document) + "\n");
  WriteFileWhole(
      SuccessPath(plan_path),
      absl::StrCat(merged.sha256, "  ", document["result"]["path"].get<std::string>(), "\n", SuccessOf(digest)));
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
    merged.refused_rows = document.at("refused_rows").get<int64_t>();
    merged.machines = document.at("machines").get<std::vector<std::string>>();
    merged.seconds = NumberOf(document.at("seconds"));
    merged.notes = NoteCountsOfJson(document.at("notes"));
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
