// Statuses: what becomes of exceptions at the border.
#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <map>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "c_api/guard.h"
#include "core/base/text.h"

namespace addend::c_api {

struct StatusBody {
  int32_t code = ADDEND_OK;
  std::string message;
  std::string detail;
  std::map<std::string, std::string> payload;
};

namespace {

// Made when the library is loaded: when memory has run out, there is none for a status. It is never released, and not
// counted.
addend_status* MakeOutOfMemory() {
  auto* body = new StatusBody();
  body->code = ADDEND_RESOURCE_EXHAUSTED;
  body->message = "out of memory";
  return reinterpret_cast<addend_status*>(handles.table.Take(ADDEND_HANDLE_STATUS, body));
}
addend_status* const out_of_memory = MakeOutOfMemory();

std::string TypeName(const std::exception& e) {
  int failed = 0;
  char* name = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, &failed);
  std::string text = failed == 0 ? name : typeid(e).name();
  std::free(name);
  return text;
}

// The first line of an error's text that says something, as Error has it; what LibTorch says after it are pages of
// stack.
std::string FirstLine(const std::exception& e, const std::string& text) {
  for (const auto line : absl::StrSplit(text, '\n')) {
    const auto trimmed = absl::StripAsciiWhitespace(line);
    if (!trimmed.empty()) {
      const std::string shown = OneLine(Shortened(std::string(trimmed.data(), trimmed.size()), kMostMessage));
      return Shortened(shown, kMostMessage);  // what is escaped may take four times as much
    }
  }
  return absl::StrCat("no reason given (", TypeName(e), ")");
}

void AddPosition(const Position& position, StatusBody& status) {
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) status.payload[key] = value;
  };
  add("op", position.op);
  if (position.op_index >= 0) add("op_index", absl::StrCat(position.op_index));
  add("module_path", position.module_path);
  add("function", position.function);
  add("file", position.file);
  if (position.line >= 0) add("line", absl::StrCat(position.line));
  add("parameters", absl::StrJoin(position.parameters, ","));
}

// LibTorch has no class for it, and some of its errors come wrapped in ours.
bool SaysOutOfMemory(const std::string& text) {
  return absl::StrContains(text, "allocate memory") || absl::StrContains(text, "not enough memory") ||
         absl::StrContains(text, "out of memory");
}

// LibTorch names most of its errors by their class, and the rest by what it writes.
int32_t CodeOf(const c10::Error& e) {
  if (dynamic_cast<const c10::IndexError*>(&e) != nullptr) return ADDEND_OUT_OF_RANGE;
  if (dynamic_cast<const c10::NotImplementedError*>(&e) != nullptr) return ADDEND_UNIMPLEMENTED;
  const std::string text = e.what_without_backtrace();
  if (SaysOutOfMemory(text)) return ADDEND_RESOURCE_EXHAUSTED;
  return absl::StrContains(text, "INTERNAL ASSERT FAILED") ? ADDEND_INTERNAL : ADDEND_INVALID_ARGUMENT;
}

void Describe(const Error& e, StatusBody& status) {
  status.code = static_cast<int32_t>(e.code());
  status.message = FirstLine(e, e.what());
  if (status.code == ADDEND_INVALID_ARGUMENT && SaysOutOfMemory(status.message))
    status.code = ADDEND_RESOURCE_EXHAUSTED;
  AddPosition(e.position(), status);
  const auto* callback = dynamic_cast<const CallbackError*>(&e);
  const int32_t number = callback != nullptr                      ? callback->number()
                         : e.code() == absl::StatusCode::kUnknown ? TakeCallbackNumber()
                                                                  : 0;
  if (number != 0) status.payload["callback"] = absl::StrCat(number);
}

// Status of the exception in flight, by its class: derived classes before their bases.
StatusBody Describe(bool detail) {
  StatusBody status;
  const auto note = [&](const std::exception& e) {
    if (detail) status.detail = absl::StrCat(TypeName(e), ": ", e.what());
  };
  try {
    throw;
  } catch (const Error& e) {
    Describe(e, status);
    note(e);
  } catch (const c10::Error& e) {
    status.code = CodeOf(e);
    status.message = FirstLine(e, e.what_without_backtrace());
    note(e);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    status.code = ADDEND_INTERNAL;
    status.message = FirstLine(e, e.what());
    note(e);
  } catch (...) {
    status.code = ADDEND_UNKNOWN;
    status.message = "something that is no std::exception was thrown";
  }
  return status;
}

}  // namespace

namespace {
thread_local int32_t callback_number = 0;
}  // namespace

int32_t TakeCallbackNumber() noexcept { return std::exchange(callback_number, 0); }
void SetCallbackNumber(int32_t number) noexcept { callback_number = number; }

addend_status* StatusOfException(bool detail) noexcept {
  try {
    return Make<addend_status>(std::make_unique<StatusBody>(Describe(detail)));
  } catch (...) {
    return out_of_memory;
  }
}

extern "C" {

ADDEND_API int32_t addend_status_code(const addend_status* status) noexcept {
  if (status == nullptr) return ADDEND_OK;
  const auto* body = Peek(status);
  return body == nullptr ? static_cast<int32_t>(ADDEND_INVALID_ARGUMENT) : body->code;
}

ADDEND_API const char* addend_status_message(const addend_status* status) noexcept {
  if (status == nullptr) return "";
  const auto* body = Peek(status);
  return body == nullptr ? "status was released" : body->message.c_str();
}

ADDEND_API const char* addend_status_detail(const addend_status* status) noexcept {
  const auto* body = Peek(status);
  return body == nullptr ? "" : body->detail.c_str();
}

ADDEND_API const char* addend_status_payload(const addend_status* status, const char* key) noexcept {
  const auto* body = Peek(status);
  if (body == nullptr || key == nullptr) return nullptr;
  // Compared by hand: looking a std::string up could run out of memory.
  for (const auto& [name, value] : body->payload) {
    if (name == key) return value.c_str();
  }
  return nullptr;
}

ADDEND_API const char* addend_status_payload_key(const addend_status* status, size_t index) noexcept {
  const auto* body = Peek(status);
  if (body == nullptr || index >= body->payload.size()) return nullptr;
  return std::next(body->payload.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
}

ADDEND_API void addend_status_release(addend_status* status) noexcept {
  if (status == out_of_memory) return;
  Release(status);
}

}  // extern "C"

}  // namespace addend::c_api
