#include "core/document/interactions_json.h"

#include "core/base/error.h"
#include "core/base/read_json.h"
#include "core/document/page_template.h"
#include "core/explain/notes.h"

namespace addend {
namespace {

constexpr char kFormat[] = "addend.interactions";
constexpr int64_t kVersion = 1;

}  // namespace

std::vector<int64_t> GroupsOf(const std::vector<BoundConcept>& concepts, size_t numc) {
  std::vector<int64_t> groups(numc);
  for (size_t k = 0; k < concepts.size(); ++k) {
    for (const int64_t component : concepts[k].components) groups.at(component) = static_cast<int64_t>(k);
  }
  return groups;
}

Json InteractionsJson(const Interactions& interactions, const std::vector<BoundConcept>& concepts,
                      const ExplainedRun& run, const std::string& at, const Writer& writer) {
  const Contributions& numbers = interactions.numbers;
  Json record = {{"format", kFormat}, {"version", kVersion}};
  record.update(OriginJson(run, writer));
  record["at"] = OrNull(at);
  record["name"] = NameTarget(interactions.attribution.value, at, run.classes, numbers.target);
  record["target"] = TargetText(numbers.target);
  record["value"] = numbers.value;
  record["reference"] = numbers.reference;
  record["leftover"] = numbers.leftover;
  record["recovery_error"] = numbers.recovery - numbers.value;
  record["tolerance"] = numbers.tolerance;
  Json groups = Json::array();
  for (size_t k = 0; k < concepts.size(); ++k) {
    Json names = Json::array();
    for (const int64_t component : concepts[k].components) names.push_back(run.components.list.at(component).name);
    groups.push_back({{"name", concepts[k].name},
                      {"components", std::move(names)},
                      {"contribution", interactions.contributions[k]},
                      {"interactions", interactions.matrix[k]},
                      {"value_without", interactions.values[k]},
                      {"leftover_without", interactions.leftovers[k]}});
  }
  record["groups"] = std::move(groups);
  record["asymmetry"] = interactions.asymmetry;
  record["notes"] = run.report.notes;
  AddWarnings(record);
  return record;
}

std::string InteractionsHtml(const std::string& json) {
  const Json record = ReadJson(json, "json");
  if (!record.is_object() || record.value("format", Json()) != kFormat || !record.contains("groups")) {
    throw InvalidArgument("json is no document of interactions as Addend writes it");
  }
  return FillPage(kInteractionsPageTemplate, record);
}

}  // namespace addend
