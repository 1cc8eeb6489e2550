// Decision records.
#include <memory>
#include <string>
#include <utility>

#include "c_api/attribution.h"
#include "c_api/bodies.h"
#include "c_api/explanation.h"
#include "c_api/options.h"
#include "core/audit/canonical_json.h"
#include "core/audit/decision_log.h"
#include "core/audit/record.h"
#include "core/audit/tensors.h"
#include "core/audit/verify_log.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {

struct AuditLogBody {
  std::unique_ptr<DecisionLog> log;
  bool keep_inputs = false;
};

namespace {

// A digest that the caller gives of a model that Addend did not load.
std::shared_ptr<const ModelSource> SourceOf(const AttributionBody& body, const std::string& digest) {
  if (digest.empty()) return body.source;
  if (!IsHex64(digest)) throw InvalidArgument("options: \"model_sha256\" is no digest of 64 hexadecimal digits");
  if (body.source != nullptr && body.source->sha256 != nullptr) {
    throw InvalidArgument(
        "options: \"model_sha256\" is for models that Addend did not load; it knows this one's digest");
  }
  auto source = std::make_shared<ModelSource>();
  source->sha256 = std::make_shared<const LazyDigest>([digest] { return digest; });
  return source;
}

Json AnyJson(const Json& given) {
  // It has to be what the record can hold, whatever it is.
  if (!given.is_null()) CanonicalJson(given);
  return given;
}

VerifyOptions VerifyOptionsOf(const char* given) {
  VerifyOptions options;
  JsonOptions read(given);
  read.Read("models", &options.models);
  read.Read("inputs", &options.inputs);
  read.Read("expect", &options.expect);
  const auto number = [&](const std::string& key, auto* value) {
    const Json one = read.Read(key);
    if (one.is_null()) return;
    if (!one.is_number_unsigned()) {
      throw InvalidArgument("options: \"" + key + "\" is a whole number that is not negative");
    }
    *value = one.get<uint64_t>();
  };
  number("sample", &options.sample);
  number("seed", &options.seed);
  read.RequireAllRead();
  return options;
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_audit_log_open(const char* path, const char* options,
                                                addend_audit_log** out_log) noexcept {
  return Guard([&] {
    const std::string name = Text(path, "path");
    AuditLogBody body;
    JsonOptions read(options);
    read.Read("keep_inputs", &body.keep_inputs);
    read.RequireAllRead();
    RequireOut(out_log, "out_log");
    body.log = std::make_unique<DecisionLog>(name);
    Give(out_log, std::move(body));
  });
}

ADDEND_API addend_status* addend_audit_log_append(addend_audit_log* log, const addend_attribution* attribution,
                                                  const char* options, addend_string** out_record) noexcept {
  return Guard([&] {
    const AuditLogBody& body = Get(log, "log");
    const AttributionBody& attributed = Get(attribution, "attribution");
    DecisionOptions record;
    record.keep_inputs = body.keep_inputs;
    std::string digest;
    JsonOptions read(options);
    read.Read("salt", &record.salt);
    read.Read("time", &record.time);
    read.Read("model_sha256", &digest);
    record.context = AnyJson(read.Read("context"));
    record.reasons = AnyJson(read.Read("reasons"));
    read.RequireAllRead();
    RequireOut(out_record, "out_record");
    const TracingPause pause;
    const Explanation explanation = AllOf(attributed);
    AuditedDecision decision;
    decision.explanation = &explanation;
    decision.options = attributed.asked;
    decision.own_rules = attributed.own_rules;
    decision.structured = attributed.structured;
    decision.model = SourceOf(attributed, digest);
    decision.input_names = attributed.input_names;
    Give(out_record, body.log->Append(DecisionJson(decision, ThisLibrary(), record)));
  });
}

ADDEND_API addend_status* addend_audit_log_state(const addend_audit_log* log, addend_string** out_json) noexcept {
  return Guard([&] {
    const AuditLogBody& body = Get(log, "log");
    RequireOut(out_json, "out_json");
    const LogState state = body.log->state();
    Give(out_json, Dump({{"path", state.path},
                         {"records", state.records},
                         {"hash", OrNull(state.hash)},
                         {"torn_bytes", state.torn_bytes}}));
  });
}

ADDEND_API addend_status* addend_audit_verify(const char* path, const char* options,
                                              addend_string** out_json) noexcept {
  return Guard([&] {
    const std::string name = Text(path, "path");
    const VerifyOptions asked = VerifyOptionsOf(options);
    RequireOut(out_json, "out_json");
    RequireLibTorch();
    const TracingPause pause;
    Give(out_json, Dump(VerifyLog(name, asked, ThisLibrary())));
  });
}

ADDEND_API void addend_audit_log_release(addend_audit_log* log) noexcept { Release(log); }

}  // extern "C"

}  // namespace addend::c_api
