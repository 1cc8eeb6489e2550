#include "core/recording/requirements.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/tensor_text.h"
#include "core/intercept/operator.h"
#include "core/program/operator_traits.h"
#include "core/program/recorder.h"
#include "core/program/replay.h"
#include "core/program/traced_calls.h"

namespace addend {
namespace {

// Operators that give bools or integers: there is nothing in them to explain.
bool GivesNoNumbers(const std::string& rule_name) {
  static const auto& names = *new std::set<std::string>{
      "aten::eq",          "aten::ne",         "aten::lt",          "aten::le",      "aten::gt",    "aten::ge",
      "aten::logical_and", "aten::logical_or", "aten::logical_not", "aten::isnan",   "aten::isinf", "aten::isfinite",
      "aten::argmax",      "aten::argmin",     "aten::argsort",     "aten::nonzero", "aten::any",   "aten::all"};
  return names.count(rule_name) > 0;
}

class Collector {
 public:
  explicit Collector(const Registry& rules) : rules_(rules) {}

  void Input(std::string message) { unmet_.push_back({RequirementKind::kInput, true, std::move(message), {}}); }
  void Remark(std::string message) { unmet_.push_back({RequirementKind::kInput, false, std::move(message), {}}); }

  void Training(const std::string& name, const Position& position) {
    if (training_.emplace(name, true).second) {
      unmet_.push_back({RequirementKind::kMode, false,
                        absl::StrCat(name, " runs in training mode, whatever eval() says"), position});
    }
  }

  // An operator that is called; several calls of one are one complaint.
  void Call(const Operator& op, const Position& position) {
    const c10::FunctionSchema& schema = op.schema();
    const std::string name = FullName(schema);
    const auto [found, is_new] = missing_.try_emplace(name, -1);
    if (!is_new) {
      if (found->second >= 0) ++times_[found->second];
      return;
    }
    const std::string rule = RuleName(schema.name());
    const OperatorTraits traits(schema);
    const bool tensors = std::any_of(traits.arguments.begin(), traits.arguments.end(),
                                     [](ArgumentKind kind) { return kind != ArgumentKind::kPlain; }) &&
                         std::any_of(traits.returns.begin(), traits.returns.end(),
                                     [](ArgumentKind kind) { return kind != ArgumentKind::kPlain; });
    // Views are geometry, and what consists of other operators is taken apart.
    if (!tensors || traits.metadata_only || View(schema) || op.composite() || GivesNoNumbers(rule)) return;
    if (rules_.Find(rule, name) != nullptr || rules_.FindRewrite(rule, name) != nullptr) return;
    found->second = static_cast<int>(unmet_.size());
    times_[found->second] = 1;
    unmet_.push_back({RequirementKind::kOperator, false, name, position});
  }

  std::vector<UnmetRequirement> Take() {
    for (const auto& [index, times] : times_) {
      std::string& message = unmet_[index].message;
      absl::StrAppend(&message, " has no rule", times > 1 ? absl::StrCat(" (called in ", times, " places)") : "",
                      ": its parts are found by its derivative (policy missing_rule=path), or left over "
                      "(missing_rule=absorb)");
    }
    return std::move(unmet_);
  }

 private:
  static bool View(const c10::FunctionSchema& schema) {
    return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
      return result.alias_info() != nullptr && !result.alias_info()->isWrite();
    });
  }

  const Registry& rules_;
  std::vector<UnmetRequirement> unmet_;
  std::map<std::string, int> missing_;  // by operator: in unmet_, or -1
  std::map<int, int> times_;            // by index in unmet_
  std::map<std::string, bool> training_;
};

// With the parameters, where these agree among themselves.
void ComparePlace(const Model& model, const std::vector<c10::IValue>& inputs, Collector& unmet) {
  std::optional<at::Device> device;
  std::optional<at::ScalarType> dtype;
  bool one_device = true;
  bool one_dtype = true;
  for (const auto& [name, tensor] : model.NamedTensors()) {
    if (!tensor.defined()) continue;
    one_device &= !device || *device == tensor.device();
    device = tensor.device();
    if (!tensor.is_floating_point()) continue;
    one_dtype &= !dtype || *dtype == tensor.scalar_type();
    dtype = tensor.scalar_type();
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    ForEachTensor(inputs[k], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      if (device && one_device && tensor.device() != *device) {
        unmet.Input(absl::StrCat("input ", k, " is on ", tensor.device().str(), ", the model on ", device->str()));
      }
      if (dtype && one_dtype && tensor.is_floating_point() && tensor.scalar_type() != *dtype) {
        unmet.Remark(absl::StrCat("input ", k, " is ", DtypeName(tensor.scalar_type()), ", the parameters are ",
                                  DtypeName(*dtype)));
      }
    });
  }
}

}  // namespace

const char* RequirementKindName(RequirementKind kind) {
  switch (kind) {
    case RequirementKind::kInput:
      return "input";
    case RequirementKind::kMode:
      return "mode";
    case RequirementKind::kOperator:
      return "operator";
  }
  return "";
}

std::vector<UnmetRequirement> UnmetRequirements(const Model& model, const std::vector<c10::IValue>& inputs,
                                                const Registry& rules) {
  Collector unmet(rules);
  for (std::string& complaint : model.Complaints(inputs)) unmet.Input(std::move(complaint));
  ComparePlace(model, inputs, unmet);
  const std::optional<std::vector<ModelCall>> calls = model.Calls();
  if (!calls) return unmet.Take();
  for (const ModelCall& call : *calls) {
    if (call.training) unmet.Training(call.op, call.position);
    // The interpreter has operators of its own, on lists and numbers.
    if (const auto op = Operator::Find(call.op, call.overload)) unmet.Call(*op, call.position);
  }
  return unmet.Take();
}

std::vector<UnmetRequirement> UnmetRequirements(const RecordedProgram& program, const std::vector<c10::IValue>& inputs,
                                                const Registry& rules) {
  Collector unmet(rules);
  // The replay borrows the program without owning it, so it must not outlive this call.
  const std::shared_ptr<const RecordedProgram> borrowed(std::shared_ptr<const RecordedProgram>(), &program);
  for (std::string& complaint : Replay(borrowed).Complaints(inputs)) unmet.Input(std::move(complaint));
  for (size_t c = 0; c < program.calls.size(); ++c) {
    const RecordedCall& call = program.calls[c];
    const Position position = PositionOf(program, static_cast<int>(c));
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const std::string& name = call.op.schema().arguments()[a].name();
      const bool flag = name == "train" || name == "training" || name == "use_input_stats";
      if (flag && call.arguments[a].isBool() && call.arguments[a].toBool()) {
        unmet.Training(call.op.schema().name(), position);
      }
    }
    if (!call.is_view) unmet.Call(call.op, position);
  }
  return unmet.Take();
}

Json RequirementsRecord(const std::vector<UnmetRequirement>& unmet) {
  Json record = {{"format", "addend.requirements"}, {"version", 1}, {"unmet", Json::array()}};
  for (const UnmetRequirement& requirement : unmet) {
    record["unmet"].push_back({{"kind", RequirementKindName(requirement.kind)},
                               {"error", requirement.error},
                               {"position", requirement.position.Describe()},
                               {"message", requirement.message}});
  }
  return record;
}

}  // namespace addend
