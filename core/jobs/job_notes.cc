#include "core/jobs/job_notes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"

namespace addend {
namespace {

// Differences of references that are rounding, relative to the largest number there.
constexpr double kRounding = 1e-4;

}  // namespace

void AddNotesOf(const Report& report, int64_t row, int64_t rows, NoteCounts& notes) {
  for (const std::string& note : report.notes) notes.Add(note, row, rows);
  if (report.reference_is_model_on_baseline == "yes") return;
  notes.Add(absl::StrCat("the reference ", report.reference_is_model_on_baseline == "no" ? "is not" : "may not be",
                         " what the model gives for the baseline",
                         report.reference_reason.empty() ? "" : absl::StrCat(": ", report.reference_reason)),
            row, rows);
}

void AddNotesOnReferences(const JobPlan& plan, const std::vector<Aggregates>& by_target, NoteCounts& notes) {
  const Json& inputs = plan.request.at("inputs");
  // Words (mean, blur) are made of each row.
  const auto differs = [](const Json& own) {
    return own.value("split", "") == "plain" || (own.contains("baseline") && own["baseline"].contains("word"));
  };
  if (std::any_of(inputs.begin(), inputs.end(), differs)) return;
  for (size_t t = 0; t < by_target.size(); ++t) {
    // Rows are asked about other elements of their outputs.
    if (absl::StrContains(plan.request.at("targets").at(t).get<std::string>(), "top1")) continue;
    const Aggregates& of_target = by_target[t];
    const QuantileSketch& own = of_target.references().sketch;
    const QuantileSketch& of_values = of_target.values().sketch;
    const double scale = std::max(
        {std::abs(own.least()), std::abs(own.largest()), std::abs(of_values.least()), std::abs(of_values.largest())});
    if (own.count() < 2 || !(own.largest() - own.least() > kRounding * scale)) continue;
    notes.Add(absl::StrFormat("all rows have one baseline, but their references reach from %.6g to %.6g: the model "
                              "goes other ways in some rows, and a reference is that of the row's own way",
                              own.least(), own.largest()),
              0, own.count());
  }
}

Json NoteCountsJson(const NoteCounts& notes) {
  Json json = Json::array();
  for (const CountedNote& own : notes.list()) {
    json.push_back({{"note", own.note}, {"row", own.first}, {"rows", own.count}, {"warning", own.warning}});
  }
  return json;
}

NoteCounts NoteCountsOfJson(const Json& json) {
  NoteCounts notes;
  try {
    for (const Json& own : json) {
      notes.Take({own.at("note").get<std::string>(), own.at("warning").get<bool>(), own.at("rows").get<int64_t>(),
                  own.at("row").get<int64_t>()});
    }
  } catch (const Json::exception&) {
    throw InvalidArgument("its notes are none that Addend wrote");
  }
  return notes;
}

}  // namespace addend
