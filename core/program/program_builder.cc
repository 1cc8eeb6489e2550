#include "core/program/program_builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"

namespace addend {

int ProgramBuilder::NewValue(ValueKind kind, const std::string& name, const Sizes& sizes, at::ScalarType dtype,
                             int storage) {
  const int number = static_cast<int>(program_.values.size());
  RecordedValue value;
  value.name = name;
  value.kind = kind;
  value.dtype = dtype;
  value.geometry.sizes.assign(sizes.begin(), sizes.end());
  value.geometry.strides.resize(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    value.geometry.strides[d] = step;
    step *= sizes[d];
  }
  if (storage < 0) {
    storage = static_cast<int>(program_.storages.size());
    RecordedStorage fresh;
    fresh.kind = kind;
    fresh.value = number;
    fresh.nbytes = step * static_cast<int64_t>(c10::elementSize(dtype));
    program_.storages.push_back(std::move(fresh));
  }
  value.storage = storage;
  value.version = static_cast<int>(program_.storages[storage].writers.size());
  program_.values.push_back(std::move(value));
  return number;
}

int ProgramBuilder::Add(ValueKind kind, const std::string& name, const Sizes& sizes, at::ScalarType dtype) {
  const int value = NewValue(kind, name, sizes, dtype, -1);
  if (kind == ValueKind::kInput) {
    RecordedInput input;
    input.name = name;
    input.structure.kind = Structure::Kind::kTensor;
    input.structure.tensor = value;
    program_.inputs.push_back(std::move(input));
  }
  return value;
}

std::vector<int> ProgramBuilder::Call(const std::string& op, const std::string& overload,
                                      const std::vector<BuiltArgument>& arguments, const std::vector<Sizes>& results,
                                      int place) {
  const auto found = Operator::Find(op, overload);
  if (!found) throw std::invalid_argument("no such operator: " + op);
  const int number = static_cast<int>(program_.calls.size());
  RecordedCall call(*found);
  call.place = place;
  const auto& schema = found->schema();
  int first = -1;  // the first argument that is a tensor
  std::vector<int> changed;
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    const c10::Argument& argument = schema.arguments()[a];
    call.arguments.emplace_back();
    if (a >= arguments.size()) {
      if (argument.default_value()) call.arguments[a] = *argument.default_value();
      continue;
    }
    call.arguments[a] = arguments[a].plain;
    for (const int value : arguments[a].values) {
      TensorUse use;
      use.argument = static_cast<int16_t>(a);
      use.value = value;
      use.written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      if (value >= 0) {
        const int storage = program_.values[value].storage;
        use.version = static_cast<int>(program_.storages[storage].writers.size());
        if (use.written) changed.push_back(value);
        if (first < 0) first = value;
      }
      call.uses.push_back(use);
    }
  }
  const std::string stem = absl::StrCat(op.substr(op.rfind(':') + 1), "_", number);
  for (const int value : changed) {
    const RecordedValue before = program_.values[value];
    program_.storages[before.storage].writers.push_back(number);
    const Sizes sizes(before.geometry.sizes.begin(), before.geometry.sizes.end());
    const int after = NewValue(ValueKind::kResult, stem, sizes, before.dtype, before.storage);
    program_.values[after].call = number;
    program_.values[after].result = static_cast<int>(call.written.size());
    call.written.push_back(after);
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const size_t position = std::min(r, schema.returns().size() - 1);
    const c10::AliasInfo* alias = schema.returns()[position].alias_info();
    if (!call.written.empty() && alias != nullptr) {
      call.results.push_back(call.written[std::min(r, call.written.size() - 1)]);
      continue;
    }
    const bool view = alias != nullptr && first >= 0;
    const int value =
        NewValue(ValueKind::kResult, results.size() == 1 ? stem : absl::StrCat(stem, ".", r), results[r],
                 first >= 0 ? program_.values[first].dtype : at::kFloat, view ? program_.values[first].storage : -1);
    program_.values[value].call = number;
    program_.values[value].result = static_cast<int>(r);
    call.results.push_back(value);
    call.is_view = view;
  }
  if (schema.returns().size() == 1 && schema.returns()[0].type()->kind() == c10::TypeKind::ListType) {
    call.result_sizes.push_back(static_cast<int>(results.size()));
  }
  std::vector<int> made(call.results.begin(), call.results.end());
  if (made.empty()) made.assign(call.written.begin(), call.written.end());
  program_.calls.push_back(std::move(call));
  return made;
}

int ProgramBuilder::Module(const std::string& path) { return Place({path, {}}); }

int ProgramBuilder::Place(CodePlace place) {
  program_.places.push_back(std::move(place));
  return static_cast<int>(program_.places.size()) - 1;
}

std::shared_ptr<const RecordedProgram> ProgramBuilder::Finish(const std::vector<int>& outputs) {
  Structure structure;
  structure.kind = Structure::Kind::kTuple;
  for (const int value : outputs) {
    Structure element;
    element.kind = Structure::Kind::kTensor;
    element.tensor = value;
    structure.elements.push_back(std::move(element));
    const int storage = program_.values[value].storage;
    program_.output_versions.push_back(static_cast<int>(program_.storages[storage].writers.size()));
  }
  program_.output = outputs.size() == 1 ? structure.elements[0] : structure;
  return std::make_shared<const RecordedProgram>(std::move(program_));
}

}  // namespace addend
