// Plans as the sections that make them see them.
#ifndef ADDEND_C_API_PLAN_H_
#define ADDEND_C_API_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/explain/plan.h"

namespace addend::c_api {

struct PlanBody {
  std::shared_ptr<const AttributionPlan> plan;
  AttributeOptions asked;
  std::vector<RequestInput> inputs;  // in the order of the model's arguments
  ContextBody context;
  std::string model_path;
  std::shared_ptr<const ModelSource> source;  // null: a live model
  // Null: the request had none. With one, inputs stay in their order.
  std::shared_ptr<const RequestStructure> structure;
  std::vector<std::string> input_names;  // of the model's arguments
};

}  // namespace addend::c_api

#endif  // ADDEND_C_API_PLAN_H_
