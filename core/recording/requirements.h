// Requirements of a run, found before it runs and reported all at once.
#ifndef ADDEND_CORE_RECORDING_REQUIREMENTS_H_
#define ADDEND_CORE_RECORDING_REQUIREMENTS_H_

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/model/model.h"
#include "core/program/recorded_program.h"
#include "core/rules/registry.h"

namespace addend {

enum class RequirementKind {
  kInput,     // number, kind, shape, dtype or device of what is given
  kMode,      // something runs as in training
  kOperator,  // no rule, so that parts of it are found by its derivative or left over
};
// "input", "mode", "operator".
const char* RequirementKindName(RequirementKind kind);

struct UnmetRequirement {
  RequirementKind kind = RequirementKind::kInput;
  bool error = false;  // the run would fail; else it is worth knowing
  std::string message;
  Position position;  // of the first operator concerned; empty for inputs
};

// Lists what a run of a model lacks; nothing runs. A TorchScript model or an exported program is scanned: all its
// operators, on branches that are not taken too. For other models only devices and dtypes are compared with those of
// their parameters; record such a model for more.
std::vector<UnmetRequirement> UnmetRequirements(const Model& model, const std::vector<c10::IValue>& inputs,
                                                const Registry& rules = Registry::Default());
// Lists what a replay with these inputs lacks.
std::vector<UnmetRequirement> UnmetRequirements(const RecordedProgram& program, const std::vector<c10::IValue>& inputs,
                                                const Registry& rules = Registry::Default());

// Writes the list: {"format": "addend.requirements", "version": 1, "unmet": [{"kind", "error", "position",
// "message"}]}.
Json RequirementsRecord(const std::vector<UnmetRequirement>& unmet);

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_REQUIREMENTS_H_
