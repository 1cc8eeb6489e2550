// Attributions as the sections that make them see them.
#ifndef ADDEND_C_API_ATTRIBUTION_H_
#define ADDEND_C_API_ATTRIBUTION_H_

#include <memory>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/explain/attribute.h"

namespace addend::c_api {

struct AttributionBody {
  Attribution attribution;             // without its report, which `run` has
  std::string at;                      // as asked for
  std::vector<BaselineSpread> spread;  // by target, where there were several baselines
  std::shared_ptr<const ExplainedRun> run;
  // For records of decisions. What it was asked, without what cannot outlive the run (progress, rules, references).
  AttributeOptions asked;
  bool own_rules = false;
  bool structured = false;                    // the request has a structure
  std::shared_ptr<const ModelSource> source;  // null: a live model
  std::vector<std::string> input_names;       // of the model's arguments
};

AttributeOptions AttributeOptionsOf(const ContextBody& context, const RequestBody& request);

// Body of the handle of an attribution of these inputs; tells the context's log its notes.
AttributionBody AttributionOf(Attribution attribution, const AttributeOptions& asked, std::vector<RequestInput> inputs,
                              const ContextBody& context, const std::string& model_path);

// All targets, as documents tell of them.
Explanation AllOf(const AttributionBody& body);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_ATTRIBUTION_H_
