#include "core/exported/run_steps.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/List.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/is_nonzero.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/select.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"

namespace addend::exported {
namespace {

using c10::IValue;
using Values = std::vector<IValue>;

// Whether a condition holds. A tensor's element leaves it by an operator, which recordings guard.
bool Holds(const IValue& condition) {
  return condition.isTensor() ? at::is_nonzero(condition.toTensor()) : IsTrue(condition);
}

const at::Tensor& TensorOf(const IValue& value) {
  if (!value.isTensor()) throw InvalidArgument("an exported program takes rows of something that is no tensor");
  return value.toTensor();
}

// One run of some steps.
class StepsRun {
 public:
  explicit StepsRun(const Steps& steps) : steps_(steps), slots_(static_cast<size_t>(steps.num_slots)) {}

  Values Run(Values inputs) {
    if (inputs.size() != steps_.inputs.size()) {
      throw InvalidArgument(absl::StrCat("a graph of the exported program takes ", steps_.inputs.size(),
                                         " inputs and is given ", inputs.size()));
    }
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (steps_.inputs[k] >= 0) Slot(steps_.inputs[k]) = std::move(inputs[k]);
    }
    for (const Step& step : steps_.all) {
      RunStep(step);
      for (const ModuleResult& result : step.told) {
        const bool known = result.slot >= 0 && Slot(result.slot).isTensor();
        const at::Tensor tensor = known ? Slot(result.slot).toTensor() : at::Tensor();
        TellModuleOutput(result.path, 0, tensor);
        // The only one that others read may be any of those that the module returned; told twice, it has no number.
        if (known) TellModuleOutput(result.path, 1, tensor);
      }
      for (const int slot : step.dead) Slot(slot) = IValue();
    }
    Values outputs;
    outputs.reserve(steps_.outputs.size());
    for (const Source& output : steps_.outputs) outputs.push_back(Get(output));
    return outputs;
  }

 private:
  IValue& Slot(int slot) { return slots_[static_cast<size_t>(slot)]; }

  IValue Get(const Source& source) {
    if (source.kind == Source::Kind::kConstant) return source.constant;
    if (source.kind == Source::Kind::kSlot) return Fitted(Slot(source.slot), source.type);
    c10::impl::GenericList list(c10::AnyType::get());
    list.reserve(source.elements.size());
    for (const Source& element : source.elements) list.push_back(Get(element));
    return Fitted(list, source.type);
  }

  Values GetAll(const Step& step) {
    Values values;
    values.reserve(step.arguments.size());
    for (const Source& argument : step.arguments) values.push_back(Get(argument));
    return values;
  }

  void Put(const Result& result, const IValue& value) {
    if (result.slot >= 0) Slot(result.slot) = value;
    if (!result.is_list) return;
    if (!value.isList()) throw InvalidArgument("a call of an exported program gives no list where one is expected");
    const auto elements = value.toList().vec();
    for (size_t k = 0; k < result.elements.size(); ++k) {
      if (result.elements[k] < 0) continue;
      if (k >= elements.size()) throw InvalidArgument("a call of an exported program gives a list that is too short");
      Slot(result.elements[k]) = elements[k];
    }
  }

  void PutAll(const Step& step, const Values& values) {
    // One list of results may stand for all of them.
    if (step.results.size() == 1 && step.results[0].is_list && !(values.size() == 1 && values[0].isList())) {
      c10::impl::GenericList list(c10::AnyType::get());
      for (const IValue& value : values) list.push_back(value);
      return Put(step.results[0], list);
    }
    for (size_t k = 0; k < step.results.size(); ++k) {
      const bool wanted = step.results[k].slot >= 0 || step.results[k].is_list;
      if (!wanted) continue;
      if (k >= values.size()) throw InvalidArgument("a call of an exported program gives too few results");
      Put(step.results[k], values[k]);
    }
  }

  void RunStep(const Step& step) {
    std::optional<PlaceScope> place;
    if (step.place != nullptr) place.emplace(step.place);
    try {
      PutAll(step, Call(step));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      Position position = step.place == nullptr ? Position() : PositionAt(*step.place);
      position.op = step.name;
      throw Error(absl::StatusCode::kInvalidArgument,
                  absl::StrCat("the model fails at ", step.name, ": ", SentenceOf(e)), std::move(position));
    }
  }

  Values Call(const Step& step) {
    Values values = GetAll(step);
    switch (step.kind) {
      case Step::Kind::kOperator:
        if (step.may_copy && NeedsCopy(values)) {
          return {at::reshape(values[0].toTensor(), values[1].toIntVector())};
        }
        step.op->Call(&values);
        return values;
      case Step::Kind::kFunction:
        step.function(&values);
        return values;
      case Step::Kind::kNumbers:
        return {step.numbers(values)};
      case Step::Kind::kSubgraph: {
        const c10::AutoGradMode grad(step.gradients.value_or(c10::GradMode::is_enabled()));
        return RunSteps(*step.bodies[0], std::move(values));
      }
      case Step::Kind::kCond: {
        const bool holds = Holds(values.at(0));
        values.erase(values.begin());
        return RunSteps(*step.bodies[holds ? 0 : 1], std::move(values));
      }
      case Step::Kind::kWhile:
        return While(step, std::move(values));
      case Step::Kind::kMap:
        return Map(step, values);
      case Step::Kind::kScan:
        return Scan(step, values);
      case Step::Kind::kFunctionalized:
        return Functionalized(step, std::move(values));
    }
    return {};
  }

  static bool NeedsCopy(const Values& values) {
    const at::Tensor& tensor = values[0].toTensor();
    const std::vector<int64_t> sizes = values[1].toIntVector();
    int64_t known = 1;
    int open = -1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] >= 0) {
        known *= sizes[d];
      } else {
        if (open >= 0) return false;  // the operator says what is wrong
        open = static_cast<int>(d);
      }
    }
    std::vector<int64_t> all = sizes;
    if (open >= 0) {
      if (known <= 0 || tensor.numel() % known != 0) return false;
      all[static_cast<size_t>(open)] = tensor.numel() / known;
    } else if (known != tensor.numel()) {
      return false;
    }
    return !at::detail::computeStride(tensor.sizes(), tensor.strides(), at::IntArrayRef(all));
  }

  static Values While(const Step& step, Values values) {
    const Values fixed(values.begin() + static_cast<std::ptrdiff_t>(step.changing), values.end());
    values.resize(step.changing);
    for (;;) {
      Values given = values;
      given.insert(given.end(), fixed.begin(), fixed.end());
      const Values condition = RunSteps(*step.bodies[0], given);
      if (condition.empty()) throw InvalidArgument("the condition of a loop of the exported program gives nothing");
      if (!Holds(condition[0])) return values;
      values = RunSteps(*step.bodies[1], std::move(given));
      if (values.size() != step.changing) {
        throw InvalidArgument(
            "the body of a loop of the exported program gives another number of values than it takes");
      }
    }
  }

  static int64_t Rows(const IValue& rows, int64_t dim) {
    const at::Tensor& tensor = TensorOf(rows);
    if (dim < 0 || dim >= tensor.dim())
      throw InvalidArgument("an exported program takes rows of a tensor that has none");
    return tensor.size(dim);
  }

  static IValue Stacked(const std::vector<Values>& rows, size_t k, int64_t dim) {
    std::vector<at::Tensor> tensors;
    for (const Values& row : rows) tensors.push_back(TensorOf(row.at(k)));
    return at::stack(tensors, dim);
  }

  static Values Map(const Step& step, const Values& values) {
    if (step.changing == 0) throw InvalidArgument("the exported program maps nothing");
    const int64_t count = Rows(values[0], 0);
    if (count == 0) throw InvalidArgument("the exported program maps a tensor without rows");
    std::vector<Values> rows;
    for (int64_t r = 0; r < count; ++r) {
      Values given = values;
      for (size_t k = 0; k < step.changing; ++k) given[k] = at::select(TensorOf(values[k]), 0, r);
      rows.push_back(RunSteps(*step.bodies[0], std::move(given)));
    }
    Values results;
    for (size_t k = 0; k < rows[0].size(); ++k) results.push_back(Stacked(rows, k, 0));
    return results;
  }

  // The state after the last row, then what each row gave.
  static Values Scan(const Step& step, const Values& values) {
    const auto rest = static_cast<std::ptrdiff_t>(step.state + step.changing);
    if (step.changing == 0) throw InvalidArgument("the exported program scans nothing");
    const int64_t count = Rows(values[step.state], step.dim);
    if (count == 0) throw InvalidArgument("the exported program scans a tensor without rows");
    Values state(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(step.state));
    std::vector<Values> rows(static_cast<size_t>(count));
    for (int64_t turn = 0; turn < count; ++turn) {
      const int64_t r = step.reverse ? count - 1 - turn : turn;
      Values given = state;
      for (size_t k = step.state; k < step.state + step.changing; ++k) {
        given.push_back(at::select(TensorOf(values[k]), step.dim, r));
      }
      given.insert(given.end(), values.begin() + rest, values.end());
      Values results = RunSteps(*step.bodies[0], std::move(given));
      if (results.size() < step.state) throw InvalidArgument("a scan of the exported program loses its state");
      const auto behind = results.begin() + static_cast<std::ptrdiff_t>(step.state);
      rows[static_cast<size_t>(r)].assign(behind, results.end());
      state.assign(results.begin(), behind);
    }
    Values results = std::move(state);
    for (size_t k = 0; k < rows[0].size(); ++k) results.push_back(Stacked(rows, k, step.dim));
    return results;
  }

  // The operator's results, or none, then the copies.
  static Values Functionalized(const Step& step, Values values) {
    Values copies;
    for (const size_t k : step.copied) {
      if (values[k].isTensor() && values[k].toTensor().defined()) values[k] = at::clone(values[k].toTensor());
      if (values[k].isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : values[k].toTensorVector()) list.push_back(at::clone(tensor));
        values[k] = list;
      }
      copies.push_back(values[k]);
    }
    step.op->Call(&values);
    if (values.empty()) values.emplace_back();
    values.insert(values.end(), std::make_move_iterator(copies.begin()), std::make_move_iterator(copies.end()));
    return values;
  }

  const Steps& steps_;
  Values slots_;
};

}  // namespace

std::vector<IValue> RunSteps(const Steps& steps, std::vector<IValue> inputs) {
  return StepsRun(steps).Run(std::move(inputs));
}

}  // namespace addend::exported
