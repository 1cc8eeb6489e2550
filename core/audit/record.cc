#include "core/audit/record.h"

#include <time.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/audit/environment.h"
#include "core/audit/request.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/file_error.h"
#include "core/base/tensor_text.h"
#include "core/explain/target.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

std::string Now() {
  struct timespec now = {};
  if (::clock_gettime(CLOCK_REALTIME, &now) != 0) throw FileError("read", "the clock", errno);
  struct tm parts = {};
  ::gmtime_r(&now.tv_sec, &parts);
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_nsec / 1000);
  return text;
}

Json InputsJson(const AuditedDecision& decision, const DecisionOptions& options) {
  const ExplainedRun& run = *decision.explanation->run;
  const std::vector<std::string>& names = decision.input_names;
  const std::string salt = options.salt.empty() ? NewSalt() : options.salt;
  std::vector<DigestedTensor> digested;
  Json tensors = Json::array();
  for (const ExplainedInput& own : run.inputs) {
    if (!own.input.inside.empty()) continue;
    const at::Tensor& value = own.input.value;
    const size_t k = digested.size();
    const std::string& name = k < names.size() && !names[k].empty() ? names[k] : own.name;
    digested.push_back({name, value, own.input.split.parts});
    Json tensor = {{"dtype", DtypeWord(value.scalar_type())}, {"name", name}, {"shape", value.sizes().vec()}};
    if (options.keep_inputs) {
      tensor["data"] = TensorJson(value)["data"];
      if (own.input.split.parts.defined()) tensor["parts"] = TensorJson(own.input.split.parts);
    }
    tensors.push_back(std::move(tensor));
  }
  return {{"salt", salt}, {"sha256", SaltedDigest(salt, digested)}, {"tensors", tensors}};
}

Json ModelJson(const ModelSource* model) {
  if (model == nullptr || model->sha256 == nullptr) {
    return {{"dtype", nullptr}, {"methods", nullptr}, {"sha256", nullptr}};
  }
  return {{"dtype", model->dtype ? Json(DtypeWord(*model->dtype)) : Json(nullptr)},
          {"methods", model->methods.empty() ? Json(nullptr) : Json(model->methods)},
          {"sha256", model->sha256->Get()}};
}

Json TargetsJson(const Explanation& explanation) {
  Json targets = Json::array();
  for (const ExplainedTarget& target : explanation.targets) {
    const Contributions& numbers = target.numbers;
    Json contributions = Json::array();
    for (const double part : numbers.contributions) contributions.push_back(RecordedNumber(part));
    targets.push_back({{"contributions", std::move(contributions)},
                       {"leftover", RecordedNumber(numbers.leftover)},
                       {"name", target.name},
                       {"recovery_error", RecordedNumber(target.recovery_error())},
                       {"reference", RecordedNumber(numbers.reference)},
                       {"target", TargetText(numbers.target)},
                       {"value", RecordedNumber(numbers.value)}});
  }
  return targets;
}

Json NamesJson(const Explanation& explanation) {
  Json names = Json::array();
  const size_t count = explanation.targets.at(0).numbers.contributions.size();
  for (size_t k = 0; k < count; ++k) names.push_back(NameOf(explanation, static_cast<int64_t>(k)));
  return names;
}

// Device of the first argument.
std::string DeviceOf(const ExplainedRun& run) {
  for (const ExplainedInput& own : run.inputs) {
    if (own.input.inside.empty()) return c10::DeviceTypeName(own.input.value.device().type(), /*lower_case=*/true);
  }
  return "cpu";
}

}  // namespace

void RequireTime(const std::string& time) {
  constexpr char kForm[] = "0000-10-30T20:50:50.000000Z";
  bool fits = time.size() == sizeof(kForm) - 1;
  for (size_t k = 0; fits && k < time.size(); ++k) {
    const bool digit = kForm[k] >= '0' && kForm[k] <= '9';
    fits = digit ? time[k] >= '0' && time[k] <= '9' : time[k] == kForm[k];
  }
  if (!fits) throw InvalidArgument(absl::StrCat("a time is UTC to the microsecond, as 2026-11-25T16:30:00.123456Z"));
}

Json RequestJson(const AuditedDecision& decision) {
  AskedRequest asked;
  for (const ExplainedInput& own : decision.explanation->run->inputs) asked.inputs.push_back(own.input);
  asked.options = decision.options;
  asked.own_rules = decision.own_rules;
  asked.structured = decision.structured;
  return RequestJson(asked);
}

Json DecisionJson(const AuditedDecision& decision, const Writer& writer, const DecisionOptions& options) {
  const Explanation& explanation = *decision.explanation;
  const ExplainedRun& run = *explanation.run;
  if (!options.time.empty()) RequireTime(options.time);
  for (const ExplainedTarget& target : explanation.targets) {
    if (target.spread) throw InvalidArgument(kOneBaseline);
  }
  Json content = RequestJson(decision);
  const std::string request = Sha256(CanonicalJson(content));
  Json notes = run.report.notes;
  for (const std::string& note : explanation.notes) notes.push_back(note);
  Json record = {{"addend", {{"version", writer.version}}},
                 {"components", NamesJson(explanation)},
                 {"format", kRecordFormat},
                 {"inputs", InputsJson(decision, options)},
                 {"libtorch", LibTorchJson(writer, DeviceOf(run))},
                 {"model", ModelJson(decision.model.get())},
                 {"notes", std::move(notes)},
                 {"request", {{"content", std::move(content)}, {"sha256", request}}},
                 {"targets", TargetsJson(explanation)},
                 {"time", options.time.empty() ? Now() : options.time},
                 {"version", kRecordVersion}};
  if (!options.context.is_null()) record["context"] = options.context;
  if (!options.reasons.is_null()) record["reasons"] = options.reasons;
  return record;
}

std::string SealRecord(Json record, int64_t number, const std::string& previous, std::string* hash) {
  record["number"] = number;
  record["previous"] = OrNull(previous);
  *hash = Sha256Without(record, "hash");
  record["hash"] = *hash;
  return CanonicalJson(record);
}

std::optional<ReadRecord> ReadSealed(const std::string& line, std::string* why) {
  ReadRecord read;
  try {
    read.record = ReadJson(line, "it");
    const Json& record = read.record;
    if (!record.is_object() || record.value("format", Json()) != kRecordFormat || !record.contains("hash") ||
        !record["hash"].is_string() || !record.contains("number") || !record["number"].is_number_unsigned() ||
        !record.contains("previous") || !(record["previous"].is_null() || record["previous"].is_string())) {
      *why = "it is no record of a decision";
      return std::nullopt;
    }
    if (CanonicalJson(record) != line) {
      *why = "it is not written as records are, in canonical JSON";
      return std::nullopt;
    }
    read.hash = record["hash"].get<std::string>();
    read.number = record["number"].get<int64_t>();
    if (record["previous"].is_string()) read.previous = record["previous"].get<std::string>();
    if (Sha256Without(record, "hash") != read.hash) {
      *why = "its hash is not that of its content";
      return std::nullopt;
    }
  } catch (const Error& error) {
    *why = error.what();
    return std::nullopt;
  }
  return read;
}

bool LooksLikeRecord(const std::string& line) {
  const std::string format = absl::StrCat("\"format\":\"", kRecordFormat);
  return absl::StartsWith(line, kRecordBeginning) || absl::StrContains(line, format) ||
         absl::StrContains(line, "\"hash\":\"");
}

}  // namespace addend
