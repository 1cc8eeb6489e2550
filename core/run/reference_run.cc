#include "core/run/reference_run.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/replace_tensors.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/random_state.h"
#include "core/program/view.h"
#include "core/program/written_aside.h"
#include "core/rules/id_flow.h"

namespace addend {

void ReferenceRun::SaveGenerators(CallAtHand& own) {
  if (!own.role.traits.Draws(own.call.arguments)) return;
  for (const c10::IValue& argument : own.arguments) {
    if (!argument.isGenerator()) continue;
    const at::Generator generator = argument.toGenerator();
    own.generators.emplace_back(generator, generator.get_state());
  }
  own.ForEachOperand([&](const at::Tensor& tensor, const Operand&) {
    if (!tensor.defined() || !own.generators.empty()) return;
    const at::Generator generator = DefaultGenerator(tensor.device());
    own.generators.emplace_back(generator, generator.get_state());
  });
}

std::vector<c10::IValue> ReferenceRun::Run(const CallAtHand& own) {
  std::vector<c10::IValue> stack = Arguments(own);
  const c10::AutoGradMode grad(differentiable_);
  try {
    own.call.op.Run(&stack);
    return stack;
  } catch (const c10::Error& e) {
    // Rows start at this embedding, so that a stand-in could not be found later: fail now.
    if (IdReadingOf(own.call.op.schema(), own.call.arguments) == IdReading::kVectors) {
      throw Error(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat(own.role.full_name, " fails on the baseline: ", e.what_without_backtrace()),
                  own.call.position, "choose another baseline");
    }
    return StandIns(own);
  }
}

std::vector<c10::IValue> ReferenceRun::RunForIds(const CallAtHand& own) {
  std::vector<c10::IValue> stack = Arguments(own);
  const c10::AutoGradMode grad(differentiable_);
  try {
    own.call.op.Run(&stack);
    return stack;
  } catch (const c10::Error&) {
    return {};
  }
}

// The arguments of the operator on the baseline. Generators are set to draw what they drew for the model.
std::vector<c10::IValue> ReferenceRun::Arguments(const CallAtHand& own) {
  for (const Operand& operand : own.call.operands) {
    if (!operand.written || operand.storage < 0) continue;
    StorageState& state = states_->Of(operand.storage);
    if (state.reference.defined()) state.OwnReference();
    state.reference_known = false;
  }
  std::vector<c10::IValue> arguments = own.Replaced([&](const at::Tensor& tensor, const Operand& operand) {
    if (operand.storage < 0) return tensor;
    if (operand.written && own.call.resized_output) return at::empty({0}, tensor.options());
    if (operand.on_baseline) return ViewOf(states_->At(operand.storage).reference, operand);
    return MayBeWrittenAside(own.call.op.schema().arguments()[operand.argument]) ? tensor.clone() : tensor;
  });
  for (const auto& [generator, state] : own.generators) at::Generator(generator).set_state(state);
  return arguments;
}

// Results for a baseline outside of the operator's domain (a matrix without inverse, say): NaN, for which a stand-in is
// made later. See Note [Stand-ins].
std::vector<c10::IValue> ReferenceRun::StandIns(const CallAtHand& own) {
  std::vector<c10::IValue> results;
  for (const c10::IValue& result : own.results) {
    results.push_back(ReplaceTensors(result, [](const at::Tensor& tensor) {
      const bool numbers = tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
      return numbers ? at::full_like(tensor, std::numeric_limits<double>::quiet_NaN()) : tensor;
    }));
  }
  for (const Operand& operand : own.call.operands) {
    if (!operand.written || operand.storage < 0 || !Continuous(operand.dtype) || own.call.resized_output) continue;
    ViewOf(states_->At(operand.storage).reference, operand).fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return results;
}

std::vector<c10::IValue> ReferenceRun::RunAside(const CallAtHand& own, bool on_reference,
                                                const std::vector<int>& updates) const {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  ids_->MarkOnBaseline(own.role, /*gives_numbers=*/true, own.call);
  std::vector<c10::IValue> stack = own.Replaced([&](const at::Tensor& tensor, const Operand& operand) {
    if (operand.storage < 0) return tensor;
    if (own.call.op.schema().arguments()[operand.argument].is_out()) return at::empty({0}, tensor.options());
    const bool moves = on_reference && operand.on_baseline && states_->At(operand.storage).reference.defined();
    const at::Tensor used = moves ? ViewOf(states_->At(operand.storage).reference, operand) : tensor;
    const bool updated = std::count(updates.begin(), updates.end(), static_cast<int>(operand.argument)) > 0;
    return operand.written || (updated && on_reference) ? used.clone() : used;
  });
  try {
    own.call.op.Run(&stack);
  } catch (const std::exception&) {
    if (!on_reference) throw;
    return {};  // the baseline lies outside of its domain
  }
  return stack;
}

}  // namespace addend
