// Explanations as the sections that make them see them.
#ifndef ADDEND_C_API_EXPLANATION_H_
#define ADDEND_C_API_EXPLANATION_H_

#include <memory>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/explain/attribute.h"
#include "core/explain/target.h"

namespace addend::c_api {

struct ExplanationBody {
  Contributions numbers;
  std::string at;      // the result that is explained; empty: the first output
  std::string target;  // "[0, 7]"
  double tolerance = 0;
  std::vector<std::string> names;
  std::vector<int64_t> ranking;
  std::shared_ptr<const RunRecord> run;  // null for a composition without a run
  std::string record;                    // the JSON that it was read from; empty: it was not
};

// The explanation that ExplanationJson() wrote. Throws InvalidArgument.
ExplanationBody ReadExplanation(const std::string& json);

ExplanationBody Explain(const Composition& composition, const std::string& target, const std::string& at,
                        std::shared_ptr<const RunRecord> run);

// Of one target of an attribution, whose value is of this dtype.
ExplanationBody Explain(Contributions numbers, at::ScalarType dtype, const std::string& at,
                        std::shared_ptr<const RunRecord> run);

// All of it as core/explain/page/README.md describes it, and the page that shows it.
std::string ExplanationJson(const ExplanationBody& explanation);
std::string ExplanationPage(const ExplanationBody& explanation);
// The same of several targets of one run, with what passed through its operators; null: that was not asked for.
std::string AttributionJson(const std::vector<ExplanationBody>& targets,
                            const std::vector<OperatorRelevance>* operators);
std::string AttributionPage(const std::vector<ExplanationBody>& targets);
// Of a whole run.
std::string ReportJson(const Report& report, Preset asked);

// The names of components where nobody gave any: positions along the dimensions of a split, behind the name of the
// input where several are split so.
std::vector<std::string> ComponentNames(const std::vector<RequestInput>& inputs, int64_t numc);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_EXPLANATION_H_
