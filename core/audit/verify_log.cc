#include "core/audit/verify_log.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/audit/chain.h"
#include "core/audit/environment.h"
#include "core/audit/model_source.h"
#include "core/audit/recompute.h"
#include "core/audit/record.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

// Facts about each record that are kept while the log is read.
struct Entry {
  int64_t line = 0;
  int64_t number = 0;
  uint64_t offset = 0;
  std::string model;  // digest; empty: a live model
};

Json ProblemJson(const ChainProblem& problem) {
  const auto number = [](int64_t record) { return record == 0 ? Json(nullptr) : Json(record); };
  return {{"kind", problem.kind},
          {"first_line", problem.first_line},
          {"last_line", problem.last_line},
          {"first_record", number(problem.first_record)},
          {"last_record", number(problem.last_record)},
          {"message", problem.message}};
}

// The positions of `count` entries of `size`, drawn at random, in order.
std::vector<size_t> Draw(size_t size, size_t count, uint64_t seed) {
  std::vector<size_t> all(size);
  for (size_t k = 0; k < size; ++k) all[k] = k;
  if (count >= size) return all;
  // The numbers of this generator are the same everywhere, which distributions of the standard library are not.
  std::mt19937_64 random(seed);
  for (size_t k = 0; k < count; ++k) std::swap(all[k], all[k + random() % (size - k)]);
  all.resize(count);
  std::sort(all.begin(), all.end());
  return all;
}

// A text of a record, "" where it has none there.
std::string TextAt(const Json& record, const char* part, const char* key) {
  const auto found = record.find(part);
  if (found == record.end() || !found->is_object()) return "";
  const auto value = found->find(key);
  return value == found->end() || !value->is_string() ? "" : value->get<std::string>();
}

class Verifier {
 public:
  Verifier(const std::string& path, const VerifyOptions& options, const Writer& writer)
      : path_(path), options_(options), writer_(writer) {}

  Json Run() {
    if (options_.sample && *options_.sample < 0)
      throw InvalidArgument("sample is a number of records, not a negative one");
    if (options_.models.empty() && (options_.sample || !options_.inputs.empty())) {
      throw InvalidArgument("nothing is computed again without a model; name its file");
    }
    if (!options_.expect.empty() && !IsHex64(options_.expect)) {
      throw InvalidArgument("expect is the hash of a record, 64 hexadecimal digits (0-9, a-f)");
    }
    std::map<std::string, std::string> models;  // files by digest
    for (const std::string& file : options_.models) models.emplace(Sha256OfModel(file), file);
    std::optional<Recomputer> recomputer;
    if (!models.empty()) {
      std::vector<TensorFile> inputs;
      for (const std::string& file : options_.inputs) {
        inputs.push_back(options_.read ? options_.read(file) : ReadTensorFile(file));
      }
      recomputer.emplace(models, inputs, writer_);
    }

    const ChainResult chain = ReadChain(path_, [&](const PlacedRecord& placed) { Visit(placed); });
    Json result = {{"format", "addend.audit"},
                   {"version", 1},
                   {"path", path_},
                   {"bytes", chain.bytes},
                   {"lines", chain.lines},
                   {"records", chain.records},
                   {"last_record", chain.last_number},
                   {"last_hash", OrNull(chain.last_hash)},
                   {"first_time", OrNull(first_time_)},
                   {"last_time", OrNull(last_time_)},
                   {"in_use", chain.in_use},
                   {"expected", nullptr},
                   {"problems", Json::array()},
                   {"set_aside", set_aside_}};
    for (const ChainProblem& problem : chain.problems) result["problems"].push_back(ProblemJson(problem));
    if (!options_.expect.empty()) result["expected"] = Expected(result["problems"]);
    result["computed"] = recomputer ? Compute(models, *recomputer) : Json(nullptr);
    result["verified"] = IsVerified(result);
    return result;
  }

 private:
  void Visit(const PlacedRecord& placed) {
    const Json& record = placed.read.record;
    entries_.push_back({placed.line, placed.read.number, placed.offset, TextAt(record, "model", "sha256")});
    if (placed.read.hash == options_.expect) expected_ = placed.read.number;
    const std::string time = record.value("time", Json()).is_string() ? record["time"].get<std::string>() : "";
    if (first_time_.empty()) first_time_ = time;
    last_time_ = time;
    if (record.contains("set_aside") && record["set_aside"].is_object()) {
      Json note = {{"record", placed.read.number}, {"line", placed.line}};
      note.update(record["set_aside"]);
      set_aside_.push_back(std::move(note));
    }
    const auto request = record.find("request");
    if (request != record.end() && request->is_object() && request->contains("content")) {
      requests_.emplace(TextAt(record, "request", "sha256"), placed.offset);
    }
    Tell("verify", static_cast<int64_t>(entries_.size()), 0);
  }

  Json Expected(Json& problems) const {
    if (expected_ == 0) {
      problems.push_back(
          {{"kind", "expected"},
           {"first_line", nullptr},
           {"last_line", nullptr},
           {"first_record", nullptr},
           {"last_record", nullptr},
           {"message", absl::StrCat("no record has the hash ", options_.expect,
                                    ": the log was cut off or written anew since that hash was noted")}});
    }
    return {{"hash", options_.expect}, {"record", expected_ == 0 ? Json(nullptr) : Json(expected_)}};
  }

  Json Compute(const std::map<std::string, std::string>& models, Recomputer& recomputer) const {
    std::vector<const Entry*> candidates;
    for (const Entry& entry : entries_) {
      if (models.count(entry.model) > 0) candidates.push_back(&entry);
    }
    const uint64_t seed = options_.seed ? *options_.seed : std::random_device()();
    const size_t count = options_.sample ? static_cast<size_t>(*options_.sample) : candidates.size();
    const std::vector<size_t> drawn = Draw(candidates.size(), count, seed);
    Json results = Json::array();
    int64_t same = 0;
    int64_t different = 0;
    for (const size_t k : drawn) {
      const Entry& entry = *candidates[k];
      std::string why;
      const auto read = ReadSealed(LineAt(path_, entry.offset), &why);
      if (!read) throw FailedPrecondition(absl::StrCat(path_, " changed while it was verified"));
      Json one = {{"record", entry.number}, {"line", entry.line}};
      one.update(recomputer.Compute(read->record, ContentOf(read->record)));
      same += one["result"] == "same" ? 1 : 0;
      different += one["result"] == "different" ? 1 : 0;
      results.push_back(std::move(one));
      Tell("compute", static_cast<int64_t>(results.size()), static_cast<int64_t>(drawn.size()));
    }
    const auto chosen = static_cast<int64_t>(drawn.size());
    return {{"chosen", chosen},
            {"of", candidates.size()},
            {"other_models", entries_.size() - candidates.size()},
            {"seed", options_.sample ? Json(seed) : Json(nullptr)},
            {"same", same},
            {"different", different},
            {"not_computed", chosen - same - different},
            {"records", std::move(results)}};
  }

  // Content of the record's request; null if neither it nor another whole record has it.
  Json ContentOf(const Json& record) const {
    if (record.contains("request") && record["request"].is_object() && record["request"].contains("content")) {
      return record["request"]["content"];
    }
    const auto found = requests_.find(TextAt(record, "request", "sha256"));
    if (found == requests_.end()) return nullptr;
    std::string why;
    const auto read = ReadSealed(LineAt(path_, found->second), &why);
    return read ? read->record["request"]["content"] : Json(nullptr);
  }

  void Tell(const char* stage, int64_t done, int64_t total) const {
    if (options_.progress) options_.progress(stage, done, total);
  }

  const std::string& path_;
  const VerifyOptions& options_;
  const Writer& writer_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, uint64_t> requests_;  // where the content of each stands first
  Json set_aside_ = Json::array();
  std::string first_time_;
  std::string last_time_;
  int64_t expected_ = 0;
};

}  // namespace

Json VerifyLog(const std::string& path, const VerifyOptions& options, const Writer& writer) {
  return Verifier(path, options, writer).Run();
}

bool IsVerified(const Json& verified) {
  if (!verified["problems"].empty()) return false;
  const Json& computed = verified["computed"];
  if (computed.is_null()) return true;
  return computed["same"] == computed["chosen"] && (computed["chosen"] != 0 || computed["of"] != 0);
}

}  // namespace addend
