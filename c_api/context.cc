// Contexts, and the switch that ends runs.
#include <nlohmann/json.hpp>
#include <utility>

#include "c_api/bodies.h"

namespace addend::c_api {
namespace {

// Releases a payload with its last owner.
struct Payload {
  ~Payload() {
    if (release != nullptr) release(payload);
  }
  void* payload = nullptr;
  addend_release_fn release = nullptr;
};

}  // namespace

std::shared_ptr<void> OwnPayload(void* payload, addend_release_fn release) {
  const auto owner = std::make_shared<Payload>();
  auto owned = std::shared_ptr<void>(owner, payload);
  owner->payload = payload;
  owner->release = release;
  return owned;
}

const ContextBody& ContextOf(const addend_context* context) {
  static const auto& defaults = *new ContextBody();
  return context == nullptr ? defaults : Get(context, "context");
}

bool DetailOf(const addend_context* context) noexcept {
  const ContextBody* body = Peek(context);
  return body != nullptr && body->detail;
}

void LogNotes(const ContextBody& context, const Report& report) {
  if (context.log.function == nullptr) return;
  for (const std::string& note : report.notes) {
    const bool info = note.rfind("preset auto", 0) == 0;
    context.log.function(context.log.payload.get(), info ? ADDEND_LOG_INFO : ADDEND_LOG_WARNING, note.c_str());
  }
}

extern "C" {

ADDEND_API addend_status* addend_cancellation_create(addend_cancellation** out_cancellation) noexcept {
  return Guard([&] {
    RequireOut(out_cancellation, "out_cancellation");
    Give(out_cancellation);
  });
}

ADDEND_API void addend_cancellation_cancel(addend_cancellation* cancellation) noexcept {
  if (auto* body = Peek(cancellation)) body->cancelled->store(true);
}

ADDEND_API void addend_cancellation_release(addend_cancellation* cancellation) noexcept { Release(cancellation); }

ADDEND_API addend_status* addend_context_options_create(addend_context_options** out_options) noexcept {
  return Guard([&] {
    RequireOut(out_options, "out_options");
    Give(out_options);
  });
}

ADDEND_API addend_status* addend_context_options_set_policy(addend_context_options* options, const char* key,
                                                            const char* value) noexcept {
  return Guard([&] {
    auto& context = Get(options, "options").context;
    Policy policy = context.policy;
    SetPolicyField(policy, Text(key, "key"), Text(value, "value"));
    context.policy = std::move(policy);
  });
}

ADDEND_API addend_status* addend_context_options_set_log(addend_context_options* options, addend_log_fn log,
                                                         void* payload, addend_release_fn release) noexcept {
  return Guard([&] {
    auto& context = Get(options, "options").context;
    context.log = MakeCallback(log, payload, release);
  });
}

ADDEND_API addend_status* addend_context_options_set_progress(addend_context_options* options,
                                                              addend_progress_fn progress, void* payload,
                                                              addend_release_fn release) noexcept {
  return Guard([&] {
    auto& context = Get(options, "options").context;
    context.progress = MakeCallback(progress, payload, release);
  });
}

ADDEND_API addend_status* addend_context_options_set_detail(addend_context_options* options, int32_t detail) noexcept {
  return Guard([&] { Get(options, "options").context.detail = detail != 0; });
}

ADDEND_API void addend_context_options_release(addend_context_options* options) noexcept { Release(options); }

ADDEND_API addend_status* addend_context_create(const addend_context_options* options,
                                                addend_context** out_context) noexcept {
  return Guard([&] {
    const auto& body = Get(options, "options");
    RequireOut(out_context, "out_context");
    Give(out_context, body.context);
  });
}

ADDEND_API addend_status* addend_context_policy(const addend_context* context, addend_string** out_json) noexcept {
  return Guard([&] {
    const auto& body = ContextOf(context);
    RequireOut(out_json, "out_json");
    auto json = nlohmann::ordered_json::object();
    for (const auto& [key, value] : DescribePolicy(body.policy)) json[key] = value;
    Give(out_json, json.dump());
  });
}

ADDEND_API void addend_context_release(addend_context* context) noexcept { Release(context); }

}  // extern "C"

}  // namespace addend::c_api
