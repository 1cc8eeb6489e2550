#include "core/program/program_dtype.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

at::ScalarType Converted(at::ScalarType from, at::ScalarType to) {
  if (c10::isFloatingType(from)) return to;
  if (!c10::isComplexType(from)) return from;
  switch (to) {
    case at::kDouble:
      return at::kComplexDouble;
    case at::kFloat:
      return at::kComplexFloat;
    case at::kHalf:
      return at::kComplexHalf;
    default:
      throw Unimplemented(absl::StrCat("the program has complex tensors, and there are none of ", DtypeName(to)));
  }
}

bool Moves(at::ScalarType dtype) { return c10::isFloatingType(dtype) || c10::isComplexType(dtype); }

}  // namespace

RecordedProgram InDtype(const RecordedProgram& program, at::ScalarType dtype) {
  if (!c10::isFloatingType(dtype)) {
    throw InvalidArgument(absl::StrCat(DtypeName(dtype), " is no floating-point dtype"));
  }
  const TracingPause pause;
  RecordedProgram converted = program;
  std::vector<at::ScalarType> first(program.storages.size(), at::ScalarType::Undefined);
  for (size_t v = 0; v < program.values.size(); ++v) {
    const RecordedValue& value = program.values[v];
    RecordedStorage& storage = converted.storages[value.storage];
    at::ScalarType& seen = first[value.storage];
    if (seen == at::ScalarType::Undefined) {
      seen = value.dtype;
      if (Moves(seen)) {
        const auto before = static_cast<int64_t>(c10::elementSize(seen));
        storage.nbytes = storage.nbytes / before * static_cast<int64_t>(c10::elementSize(Converted(seen, dtype)));
      }
    }
    const bool split = Moves(value.dtype) != Moves(seen) ||
                       (storage.initial.defined() && Moves(storage.initial.scalar_type()) != Moves(seen));
    if (split || (value.dtype != seen && !SameNumbers(seen, value.dtype))) {
      throw Unimplemented(absl::StrCat(value.name, " sees memory of ", DtypeName(seen), " as ", DtypeName(value.dtype),
                                       ", which another dtype would give another meaning"));
    }
    converted.values[v].dtype = Converted(value.dtype, dtype);
  }
  for (RecordedStorage& storage : converted.storages) {
    if (!storage.initial.defined()) continue;
    storage.initial = storage.initial.detach().to(Converted(storage.initial.scalar_type(), dtype));
  }
  for (RecordedCall& call : converted.calls) {
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const std::string& name = call.op.schema().arguments()[a].name();
      if (name != "dtype" && name != "out_dtype") continue;
      const bool new_tensor = call.uses.empty() && call.results.size() == 1 && call.results[0] >= 0;
      if (call.arguments[a].isNone() && new_tensor && Moves(program.values[call.results[0]].dtype)) {
        call.arguments[a] = static_cast<int64_t>(converted.values[call.results[0]].dtype);  // not LibTorch's default
      }
      if (!call.arguments[a].isInt()) continue;
      const auto asked = static_cast<at::ScalarType>(call.arguments[a].toInt());
      call.arguments[a] = static_cast<int64_t>(Converted(asked, dtype));
    }
  }
  return converted;
}

}  // namespace addend
