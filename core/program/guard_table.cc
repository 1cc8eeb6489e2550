#include "core/program/guard_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace addend {

c10::IValue Frozen(const c10::IValue& value) {
  if (value.isList() && value.use_count() > 1) return value.toList().copy();
  return value;
}

bool GuardTable::ReadsData(const RecordedCall& call, const OperatorTraits& traits, int16_t first) const {
  if (traits.metadata_only || traits.property) return false;
  return std::any_of(call.uses.begin(), call.uses.end(), [&](const TensorUse& use) {
    if (use.value < 0 || use.argument < first || traits.shown[use.argument]) return false;
    const bool only_written = use.written && (traits.overwrites || traits.output[use.argument]);
    return !only_written && from_data_.Contains(program_->values[use.value].storage);
  });
}

void GuardTable::MarkResults(const RecordedCall& call, const OperatorTraits& traits) {
  for (const auto* values : {&call.results, &call.written}) {
    for (size_t r = 0; r < values->size(); ++r) {
      const int value = (*values)[r];
      if (value < 0 || (traits.lengths_apart && r == 1 && !ReadsData(call, traits, /*first=*/1))) continue;
      Mark(program_->values[value].storage);
    }
  }
}

// Whether the sizes of what the call gave depend on data.
bool GuardTable::TellsSizes(const RecordedCall& call, const OperatorTraits& traits) const {
  const bool boolean = std::any_of(call.uses.begin(), call.uses.end(), [&](const TensorUse& use) {
    if (use.argument <= 0 || use.value < 0) return false;
    const at::ScalarType dtype = program_->values[use.value].dtype;
    return dtype == at::kBool || dtype == at::kByte;
  });
  if (!traits.SizesFromData(call.arguments) && !(traits.data_shape_bool && boolean)) return false;
  return call.random || ReadsData(call, traits, traits.data_shape_from);
}

void GuardTable::Add(RecordedCall* call, const OperatorTraits& traits, c10::ArrayRef<c10::IValue> results,
                     bool from_data) {
  if (!traits.gives_plain && !traits.data_shape && !traits.data_shape_bool) return;
  RecordedGuard guard;
  guard.call = static_cast<int>(program_->calls.size());
  std::vector<c10::IValue> told;
  if (traits.gives_plain) {
    guard.kind = from_data ? GuardKind::kNumber : GuardKind::kProperty;
    for (size_t r = 0; r < results.size(); ++r) {
      if (traits.returns[r] == ArgumentKind::kPlain) told.push_back(Frozen(results[r]));
    }
    guard.value = told.size() == 1 ? told[0] : c10::IValue(c10::ivalue::Tuple::create(std::move(told)));
  } else if (TellsSizes(*call, traits)) {
    guard.kind = GuardKind::kShape;
    for (const int value : call->results) {
      told.emplace_back(value < 0 ? at::IntArrayRef() : at::IntArrayRef(program_->values[value].geometry.sizes));
    }
    guard.value = c10::ivalue::Tuple::create(std::move(told));
  } else {
    return;
  }
  call->guard = static_cast<int>(program_->guards.size());
  program_->guards.push_back(std::move(guard));
}

}  // namespace addend
