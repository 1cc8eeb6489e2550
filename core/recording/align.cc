#include "core/recording/align.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/compare.h"

namespace addend {
namespace {

constexpr char kContiguous[] = "aten::contiguous";

bool IsContiguousCall(const RecordedCall& call) {
  return call.op.schema().name() == kContiguous && call.uses.size() == 1 && call.results.size() == 1 &&
         call.uses[0].value >= 0 && call.results[0] >= 0 && call.arguments.size() == 2 && call.arguments[1].isInt();
}

// Whether contiguous() would give this value back.
bool GivesBack(const RecordedValue& value, const c10::IValue& format) {
  const at::Tensor like = at::empty_strided(value.geometry.sizes, value.geometry.strides,
                                            at::TensorOptions().dtype(value.dtype).device(at::kMeta));
  const auto memory_format = static_cast<at::MemoryFormat>(format.toInt());
  const int64_t dims = memory_format == at::MemoryFormat::ChannelsLast     ? 4
                       : memory_format == at::MemoryFormat::ChannelsLast3d ? 5
                                                                           : like.dim();
  return like.dim() == dims && like.is_contiguous(memory_format);
}

void AddNumbers(Structure& structure, std::vector<int*>& numbers) {
  if (structure.kind == Structure::Kind::kTensor && structure.tensor >= 0) numbers.push_back(&structure.tensor);
  for (Structure& element : structure.elements) AddNumbers(element, numbers);
}

// Every place where the program names a value.
template <typename Visit>
void ForEachValueNumber(RecordedProgram& program, Visit visit) {
  for (RecordedCall& call : program.calls) {
    for (TensorUse& use : call.uses) visit(use.value);
    for (int& value : call.results) visit(value);
    for (int& value : call.written) visit(value);
  }
  for (RecordedStorage& storage : program.storages) visit(storage.value);
  std::vector<int*> numbers;
  for (RecordedInput& input : program.inputs) AddNumbers(input.structure, numbers);
  AddNumbers(program.output, numbers);
  for (int* number : numbers) visit(*number);
}

// Adds the call number `c` of `other`, which gives back what it reads, at the same place. Returns false, and changes
// nothing, where it would not.
bool AddCall(RecordedProgram& program, int c, const RecordedProgram& other) {
  const RecordedCall& model = other.calls[c];
  const int read = model.uses[0].value;
  const int given = model.results[0];
  if (read >= given || given > static_cast<int>(program.values.size())) return false;
  if (!GivesBack(program.values[read], model.arguments[1])) return false;
  ForEachValueNumber(program, [&](int& value) { value += value >= given ? 1 : 0; });
  for (RecordedValue& value : program.values) value.call += value.call >= c ? 1 : 0;
  for (RecordedGuard& guard : program.guards) guard.call += guard.call >= c ? 1 : 0;
  int version = 0;
  for (size_t s = 0; s < program.storages.size(); ++s) {
    RecordedStorage& storage = program.storages[s];
    for (int& writer : storage.writers) {
      if (static_cast<int>(s) == program.values[read].storage) version += writer < c ? 1 : 0;
      writer += writer >= c ? 1 : 0;
    }
    storage.filled += storage.filled >= c ? 1 : 0;
  }
  RecordedValue value = program.values[read];
  value.kind = ValueKind::kResult;
  value.version = version;
  value.wrapped_number = false;
  value.requires_grad = false;
  value.call = c;
  value.result = 0;
  program.values.insert(program.values.begin() + given, std::move(value));
  RecordedCall call = model;
  call.uses[0].version = version;
  call.is_view = true;
  call.guard = -1;
  if (call.place >= 0) {
    program.places.push_back(other.places[call.place]);
    call.place = static_cast<int>(program.places.size()) - 1;
  }
  program.calls.insert(program.calls.begin() + c, std::move(call));
  return true;
}

// Names what contiguous() gives as a recording of all its calls would.
void NameContiguous(RecordedProgram& program) {
  std::set<int> own;
  for (const RecordedCall& call : program.calls) {
    if (IsContiguousCall(call)) own.insert(call.results[0]);
  }
  std::set<std::string> taken;
  for (size_t v = 0; v < program.values.size(); ++v) {
    if (own.count(static_cast<int>(v)) == 0) taken.insert(program.values[v].name);
  }
  int count = 0;
  for (const int value : own) {
    std::string name;
    do {
      name = count == 0 ? "contiguous" : absl::StrCat("contiguous_", count);
      ++count;
    } while (!taken.insert(name).second);
    program.values[value].name = std::move(name);
  }
}

void AddMissingCalls(const std::vector<RecordedProgram*>& programs) {
  std::set<RecordedProgram*> changed;
  for (size_t c = 0;; ++c) {
    const RecordedProgram* with = nullptr;
    for (const RecordedProgram* program : programs) {
      if (c < program->calls.size() && IsContiguousCall(program->calls[c])) with = program;
    }
    const bool ended =
        std::all_of(programs.begin(), programs.end(), [&](const auto* program) { return c >= program->calls.size(); });
    if (ended) break;
    if (with == nullptr) continue;
    for (RecordedProgram* program : programs) {
      if (c > program->calls.size()) continue;
      if (c < program->calls.size() && IsContiguousCall(program->calls[c])) {
        const int read = program->calls[c].uses[0].value;
        const int other = with->calls[c].uses[0].value;
        if (SameTensor(*program, read, other) || SameTensor(*with, read, other)) continue;
      }
      if (AddCall(*program, static_cast<int>(c), *with)) changed.insert(program);
    }
  }
  for (RecordedProgram* program : changed) NameContiguous(*program);
}

// `numbers`: of one value in each program.
void Agree(const std::vector<RecordedProgram*>& programs, const std::vector<int*>& numbers) {
  for (const int* candidate : numbers) {
    bool fits = true;
    for (size_t p = 0; fits && p < numbers.size(); ++p) fits = SameTensor(*programs[p], *numbers[p], *candidate);
    if (!fits) continue;
    const int value = *candidate;
    for (int* number : numbers) *number = value;
    return;
  }
}

}  // namespace

void Align(const std::vector<RecordedProgram*>& programs) {
  const TracingPause pause;
  AddMissingCalls(programs);
  for (size_t c = 0; c < programs[0]->calls.size(); ++c) {
    for (size_t k = 0; k < programs[0]->calls[c].uses.size(); ++k) {
      std::vector<int*> numbers;
      for (RecordedProgram* program : programs) {
        if (c >= program->calls.size() || k >= program->calls[c].uses.size()) return;
        numbers.push_back(&program->calls[c].uses[k].value);
      }
      Agree(programs, numbers);
    }
  }
  std::vector<std::vector<int*>> outputs(programs.size());
  for (size_t p = 0; p < programs.size(); ++p) AddNumbers(programs[p]->output, outputs[p]);
  for (size_t k = 0; k < outputs[0].size(); ++k) {
    std::vector<int*> numbers;
    for (const std::vector<int*>& own : outputs) {
      if (k >= own.size()) return;
      numbers.push_back(own[k]);
    }
    Agree(programs, numbers);
  }
}

}  // namespace addend
