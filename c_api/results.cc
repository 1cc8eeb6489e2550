// Results: what a run or a call gives.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/explanation.h"
#include "core/explain/notes.h"
#include "core/intercept/tracing_scope.h"

namespace addend::c_api {
namespace {

const ResultEntry& EntryOf(const addend_results* results, size_t index) {
  const ResultsBody& body = Get(results, "results");
  if (index < body.entries.size()) return body.entries[index];
  throw Error(absl::StatusCode::kOutOfRange,
              absl::StrCat("index is ", index, ", but there are ", body.entries.size(), " results"));
}

const ResultEntry* PeekEntry(const addend_results* results, size_t index) noexcept {
  const ResultsBody* body = Peek(results);
  return body == nullptr || index >= body->entries.size() ? nullptr : &body->entries[index];
}

at::IntArrayRef SizesOf(const ResultEntry* entry) noexcept {
  if (entry == nullptr) return {};
  if (entry->composition) return entry->composition->sizes();
  return entry->tensor.defined() ? entry->tensor.sizes() : at::IntArrayRef();
}

const std::vector<std::string>& NotesIn(const ResultsBody& results) noexcept {
  return results.run == nullptr ? results.notes : results.run->report.notes;
}

const Report& ReportOf(const ResultsBody& results) {
  if (results.run != nullptr) return results.run->report;
  throw FailedPrecondition("these results have no report: nothing was decomposed");
}

// The composition of that name; the first one where the name is empty.
const ResultEntry& Find(const ResultsBody& results, const std::string& name) {
  std::vector<std::string> known;
  for (const ResultEntry& entry : results.entries) {
    if (!entry.composition) continue;
    if (name.empty() || entry.name == name) return entry;
    known.push_back(entry.name);
  }
  if (known.empty()) throw NotFound("there is no composition among these results");
  throw NotFound(absl::StrCat("there is no result ", name, "; there are ", absl::StrJoin(known, ", ")));
}

}  // namespace

extern "C" {

ADDEND_API size_t addend_results_size(const addend_results* results) noexcept {
  const ResultsBody* body = Peek(results);
  return body == nullptr ? 0 : body->entries.size();
}

ADDEND_API int32_t addend_results_kind(const addend_results* results, size_t index) noexcept {
  const ResultEntry* entry = PeekEntry(results, index);
  if (entry == nullptr) return ADDEND_RESULT_NONE;
  if (entry->composition) return ADDEND_RESULT_COMPOSITION;
  if (entry->tensor.defined()) return ADDEND_RESULT_TENSOR;
  return entry->number ? ADDEND_RESULT_NUMBER : ADDEND_RESULT_NONE;
}

ADDEND_API const char* addend_results_name(const addend_results* results, size_t index) noexcept {
  const ResultEntry* entry = PeekEntry(results, index);
  return entry == nullptr ? nullptr : entry->name.c_str();
}

ADDEND_API int32_t addend_results_dtype(const addend_results* results, size_t index) noexcept {
  const ResultEntry* entry = PeekEntry(results, index);
  if (entry == nullptr) return 0;
  if (entry->composition) return DtypeNumber(entry->composition->dtype());
  if (entry->tensor.defined()) return DtypeNumber(entry->tensor.scalar_type());
  return entry->number ? DtypeNumber(entry->number->type()) : 0;
}

ADDEND_API size_t addend_results_num_dims(const addend_results* results, size_t index) noexcept {
  return SizesOf(PeekEntry(results, index)).size();
}

ADDEND_API int64_t addend_results_dim_size(const addend_results* results, size_t index, size_t dim) noexcept {
  const at::IntArrayRef sizes = SizesOf(PeekEntry(results, index));
  return dim < sizes.size() ? sizes[dim] : -1;
}

ADDEND_API addend_status* addend_results_composition(const addend_results* results, size_t index,
                                                     addend_composition** out_composition) noexcept {
  return Guard([&] {
    const ResultEntry& entry = EntryOf(results, index);
    const ResultsBody& body = Get(results, "results");
    RequireOut(out_composition, "out_composition");
    if (!entry.composition) {
      throw InvalidArgument(absl::StrCat("result ", index, " is no composition: integers and bools have no parts, ",
                                         "nor has anything where no composition was given"));
    }
    Give(out_composition, *entry.composition, body.run);
  });
}

ADDEND_API addend_status* addend_results_tensor(const addend_results* results, size_t index,
                                                addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const ResultEntry& entry = EntryOf(results, index);
    RequireOut(out_tensor, "out_tensor");
    const TracingPause pause;
    if (entry.composition) {
      Give(out_tensor, entry.composition->value().detach());
    } else if (entry.tensor.defined()) {
      Give(out_tensor, entry.tensor);
    } else if (entry.number) {
      Give(out_tensor, at::full({}, *entry.number, at::TensorOptions().dtype(entry.number->type())));
    } else {
      throw InvalidArgument(absl::StrCat("result ", index, " is no tensor"));
    }
  });
}

ADDEND_API addend_status* addend_results_number(const addend_results* results, size_t index,
                                                double* out_number) noexcept {
  return Guard([&] {
    const ResultEntry& entry = EntryOf(results, index);
    RequireOut(out_number, "out_number");
    if (!entry.number) throw InvalidArgument(absl::StrCat("result ", index, " is no number"));
    *out_number = entry.number->toDouble();
  });
}

ADDEND_API addend_status* addend_results_explain(const addend_results* results, const char* name, const char* target,
                                                 addend_explanation** out_explanation) noexcept {
  return Guard([&] {
    const ResultsBody& body = Get(results, "results");
    const std::string at = TextOrEmpty(name, "name");
    const std::string asked = Text(target, "target");
    RequireOut(out_explanation, "out_explanation");
    const ResultEntry& entry = Find(body, at);
    if (!entry.unreached.empty()) throw FailedPrecondition(entry.unreached);
    const TracingPause pause;
    Give(out_explanation, Explain(*entry.composition, ParseTarget(asked), at, body.run));
  });
}

ADDEND_API double addend_results_report_number(const addend_results* results, const char* key) noexcept {
  const ResultsBody* body = Peek(results);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (body == nullptr || key == nullptr || body->run == nullptr) return kNone;
  const Report& report = body->run->report;
  const std::pair<const char*, double> numbers[] = {
      {"operators", static_cast<double>(report.operators)},
      {"nodes", static_cast<double>(report.nodes)},
      {"worst_recovery_error", report.worst_recovery_error},
      {"worst_bracket", report.worst_bracket},
      {"conditioning", report.conditioning},
      {"leftover_share", report.leftover_share},
      {"reference_error", report.reference_error.value_or(kNone)},
      {"backward", report.backward ? 1 : 0},
      {"failures", static_cast<double>(report.failures.size())},
      {"absorbed", static_cast<double>(report.absorbed)},
      {"absorbed_failures", static_cast<double>(report.absorbed_failures)},
      {"path_ruled", static_cast<double>(report.path_ruled)},
      {"stand_in_references", static_cast<double>(report.stand_in_references)},
      {"unattributed", static_cast<double>(report.unattributed)},
      {"trace_seconds", report.trace_seconds},
      {"linearize_seconds", report.linearize_seconds},
      {"sweep_seconds", report.sweep_seconds},
  };
  const std::string_view asked = key;
  for (const auto& [name, number] : numbers) {
    if (asked == name) return number;
  }
  return kNone;
}

ADDEND_API const char* addend_results_report_text(const addend_results* results, const char* key) noexcept {
  const ResultsBody* body = Peek(results);
  if (body == nullptr || key == nullptr || body->run == nullptr) return nullptr;
  const Report& report = body->run->report;
  const std::string_view asked = key;
  if (asked == "reference_is_model_on_baseline") return report.reference_is_model_on_baseline.c_str();
  if (asked == "reference_reason") return report.reference_reason.c_str();
  return nullptr;
}

ADDEND_API const char* addend_results_note(const addend_results* results, size_t index) noexcept {
  const ResultsBody* body = Peek(results);
  if (body == nullptr) return nullptr;
  const std::vector<std::string>& notes = NotesIn(*body);
  return index < notes.size() ? notes[index].c_str() : nullptr;
}

ADDEND_API const char* addend_results_warning(const addend_results* results, size_t index) noexcept {
  const ResultsBody* body = Peek(results);
  if (body == nullptr) return nullptr;
  for (const std::string& note : NotesIn(*body)) {
    if (IsWarning(note) && index-- == 0) return note.c_str();
  }
  return nullptr;
}

ADDEND_API addend_status* addend_results_report(const addend_results* results, addend_string** out_json) noexcept {
  return Guard([&] {
    const ResultsBody& body = Get(results, "results");
    RequireOut(out_json, "out_json");
    // First of all: without a run there is no preset either.
    const Report& report = ReportOf(body);
    Give(out_json, Dump(ReportJson(report, body.run->preset)));
  });
}

ADDEND_API void addend_results_release(addend_results* results) noexcept { Release(results); }

}  // extern "C"

}  // namespace addend::c_api
