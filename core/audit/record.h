// Records of decisions: what was decided, why, and everything that it was computed from, by digest.
//
// Note [What a record holds]
// A record is one line of canonical JSON. "hash" is SHA-256 of the record without that key, "previous" the hash of the
// record before it, "number" its place in the log, from 1: whoever changes, removes or exchanges a record has to change
// every later one. "model", "inputs" and "request" hold digests; the log writes what a request consists of, its
// "content", once for each time that it is opened, in the first record of that request. docs/audit.md has all keys.
#ifndef ADDEND_CORE_AUDIT_RECORD_H_
#define ADDEND_CORE_AUDIT_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/audit/model_source.h"
#include "core/base/json.h"
#include "core/document/explanation.h"
#include "core/document/report_json.h"
#include "core/explain/attribute.h"

namespace addend {

inline constexpr char kRecordFormat[] = "addend.decision";
inline constexpr int64_t kRecordVersion = 1;
// The first bytes of every record.
inline constexpr char kRecordBeginning[] = "{\"addend\":";

// An attribution with what it was asked, as a record is made of them.
struct AuditedDecision {
  const Explanation* explanation = nullptr;  // of all targets, with its run
  AttributeOptions options;                  // as asked for
  bool own_rules = false;                    // rules other than Addend's own: no record can hold them
  bool structured = false;                   // arguments that are no tensors: no record can hold them yet
  std::shared_ptr<const ModelSource> model;  // null: a live model
  std::vector<std::string> input_names;      // of the model's arguments; those without one have that of their input
};

struct DecisionOptions {
  bool keep_inputs = false;  // whether the record holds the inputs themselves
  std::string salt;          // 64 hexadecimal digits; empty: drawn anew
  std::string time;          // "2026-11-25T16:30:00.123456Z"; empty: now
  Json context;              // what the caller adds, such as the number of an application; null: nothing
  Json reasons;              // reasons that were made of the contributions; null: none
};

// Why means over several baselines are not recorded.
inline constexpr char kOneBaseline[] =
    "a decision with several baselines cannot be recorded, as a record is computed again against one; give one";

// A record without what its log adds: "hash", "number", "previous". Throws InvalidArgument for options that are none,
// and what the digest of the model throws.
Json DecisionJson(const AuditedDecision& decision, const Writer& writer, const DecisionOptions& options);

// Request of a computation: all that it depends on beside model and inputs (targets, policy, splits, baselines).
Json RequestJson(const AuditedDecision& decision);

// The line of a record, without its line end: adds its number, the hash of the record before it ("": it is the first),
// and its own hash, which `hash` gets.
std::string SealRecord(Json record, int64_t number, const std::string& previous, std::string* hash);

// A line that was read again.
struct ReadRecord {
  Json record;
  int64_t number = 0;
  std::string hash;
  std::string previous;  // "": it is the first
};
// Reads a line. Nothing where it is not exactly what SealRecord() wrote, and `why` says so: "its hash is not that of
// its content".
std::optional<ReadRecord> ReadSealed(const std::string& line, std::string* why);

// Whether a line may be a record that was damaged. Whatever else was written to a log neither begins like one nor has
// the keys that are looked for, of which one flipped bit hides one.
bool LooksLikeRecord(const std::string& line);

// Throws InvalidArgument for what is no time of a record.
void RequireTime(const std::string& time);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_RECORD_H_
