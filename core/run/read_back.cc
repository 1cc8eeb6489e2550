#include "core/run/read_back.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <c10/core/ScalarType.h>
#include <c10/util/accumulate.h>

#include <string>
#include <utility>

#include "core/program/view.h"
#include "core/rules/steps.h"

namespace addend {
namespace {

bool IsCastOfAll(const Call& call) {
  return IsCast(call.op.schema()) && call.operands.size() == 1 && call.outputs.size() == 1 &&
         call.operands[0].storage >= 0 && call.outputs[0].storage >= 0;
}

// Whether an operand is all elements of a storage, in whatever order.
bool Fills(const Operand& operand, const StorageInfo& storage) {
  return operand.dtype == storage.dtype && operand.geometry.offset == 0 &&
         c10::multiply_integers(operand.geometry.sizes) == storage.numel;
}

}  // namespace

bool ReadBack::IsNow(const Operand& operand) const {
  return operand.version + 1 == states_->Info(operand.storage).versions;
}

void ReadBack::AfterIntegers(const CallAtHand& own) {
  const Call& call = own.call;
  if (!IsCastOfAll(call) || !c10::isIntegralType(call.outputs[0].dtype, /*includeBool=*/false)) return;
  const Operand& read = call.operands[0];
  const Operand& given = call.outputs[0];
  if (!Fills(given, states_->Info(given.storage))) return;
  if (read.decomposed && c10::isFloatingType(read.dtype) && !read.negated) {
    const at::Tensor value = Flat(own.arguments[0].toTensor(), states_->Info(read.storage), /*differentiable=*/false);
    casts_[given.storage] = {given.version, read, given, value, states_->At(read.storage).reference};
    return;
  }
  const auto before = casts_.find(read.storage);
  if (before == casts_.end() || before->second.version != read.version) return;
  if (!before->second.written.SameLayout(read) || !(read.geometry == given.geometry)) return;
  Cast cast = before->second;
  cast.version = given.version;
  cast.written = given;
  casts_[given.storage] = std::move(cast);
}

std::unique_ptr<ReadBack::Found> ReadBack::StandIn(const CallAtHand& own) const {
  if (!IsCastOfAll(own.call) || !c10::isFloatingType(own.call.outputs[0].dtype)) return nullptr;
  const Operand& read = own.call.operands[0];
  const auto found = casts_.find(read.storage);
  if (found == casts_.end() || found->second.version != read.version || read.negated) return nullptr;
  const Cast& cast = found->second;
  Operand floats = cast.floats;
  if (floats.dtype != own.call.outputs[0].dtype || read.dtype != cast.written.dtype || !IsNow(floats)) return nullptr;
  if (!(read.geometry == cast.written.geometry)) {
    // A view of the integers is the same view of the floats, where these lie as the integers do.
    if (!(floats.geometry == cast.written.geometry) || !Fills(floats, states_->Info(floats.storage))) return nullptr;
    floats.geometry = read.geometry;
  }
  floats.argument = 0;
  floats.written = false;
  const at::Tensor reference = ViewOf(cast.reference, floats);
  const at::Tensor held = ViewOf(states_->At(read.storage).reference, read).to(reference.scalar_type());
  const Call& made = own.call;
  auto stand_in = std::make_unique<Found>(
      Found{Call(Truncation()), ViewOf(cast.value, floats), at::where(at::isfinite(reference), held, reference)});
  Call& call = stand_in->call;
  call.index = made.index;
  call.program_call = made.program_call;
  call.depth = made.depth;
  call.outputs = made.outputs;
  call.position = made.position;
  call.arguments.resize(1);
  call.operands.push_back(std::move(floats));
  call.made = std::make_shared<const Call>(made);
  return stand_in;
}

}  // namespace addend
