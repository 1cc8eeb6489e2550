#include "core/program/recorded_program.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/base/tensor_text.h"
#include "third_party/torch/version.h"

namespace addend {
namespace {

// "1.13" of "1.13.1".
std::string MinorVersion(const std::string& version) {
  const size_t dot = version.find('.');
  return version.substr(0, dot == std::string::npos ? dot : version.find('.', dot + 1));
}

}  // namespace

std::string OtherLibTorch(const RecordedProgram& program) {
  const std::string own = LibTorchVersion();
  if (program.libtorch.empty() || MinorVersion(program.libtorch) == MinorVersion(own)) return "";
  return absl::StrCat("it was recorded with LibTorch ", program.libtorch, ", and this is LibTorch ", own);
}

const char* ValueKindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kParameter:
      return "parameter";
    case ValueKind::kBuffer:
      return "buffer";
    case ValueKind::kConstant:
      return "constant";
    case ValueKind::kResult:
      return "result";
    case ValueKind::kPart:
      return "part";
  }
  return "";
}

const char* GuardKindName(GuardKind kind) {
  switch (kind) {
    case GuardKind::kNumber:
      return "number";
    case GuardKind::kShape:
      return "shape";
    case GuardKind::kProperty:
      return "property";
  }
  return "";
}

Position PositionOf(const RecordedProgram& program, int call) {
  const RecordedCall& recorded = program.calls.at(call);
  Position position;
  if (recorded.place >= 0) position = PositionAt(program.places[recorded.place]);
  position.op_index = call;
  position.op = recorded.op.schema().name();
  for (const TensorUse& use : recorded.uses) {
    if (use.value < 0) continue;
    const RecordedStorage& storage = program.storages[program.values[use.value].storage];
    const bool own = storage.kind == ValueKind::kParameter || storage.kind == ValueKind::kBuffer;
    if (own) position.parameters.push_back(program.values[storage.value].name);
  }
  return position;
}

std::string DescribeDimension(const RecordedProgram& program, int input, int dim) {
  return absl::StrCat("dimension ", dim, " of ", program.values[input].name);
}

std::string DescribeLimits(const FreeDimension& dimension) {
  const std::string apart = dimension.step > 1 ? absl::StrCat(", ", dimension.step, " apart,") : "";
  return absl::StrCat("sizes from ", dimension.least, " to ", dimension.most, apart, " were tried");
}

std::string DescribeValue(const RecordedValue& value) { return TensorText(value.dtype, value.geometry.sizes); }

std::string DescribeCall(const RecordedProgram& program, int call) {
  const RecordedCall& recorded = program.calls.at(call);
  const auto describe = [&](int value) {
    return value < 0 ? std::string("None") : DescribeValue(program.values[value]);
  };
  CallText text;
  for (const TensorUse& use : recorded.uses) text.operands.push_back({use.argument, describe(use.value)});
  for (const int value : recorded.results) text.results.push_back(describe(value));
  if (text.results.empty()) {
    for (const int value : recorded.written) text.results.push_back(describe(value));
  }
  if (text.results.empty() && recorded.guard >= 0) {
    std::ostringstream given;
    given << program.guards[recorded.guard].value;
    text.results.push_back(given.str());
  }
  return DescribeCall(recorded.op.schema(), recorded.arguments, text);
}

std::vector<at::Generator> GivenGenerators(const RecordedProgram& program) {
  std::vector<at::Generator> generators;
  for (const RecordedCall& call : program.calls) {
    for (const c10::IValue& argument : call.arguments) {
      if (argument.isGenerator()) generators.push_back(argument.toGenerator());
    }
  }
  return generators;
}

int FindValue(const RecordedProgram& program, const std::string& name) {
  for (size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].name == name) return static_cast<int>(v);
  }
  throw NotFound(absl::StrCat("the program has no value called ", name));
}

int Producer(const RecordedProgram& program, const TensorUse& use) {
  if (use.value < 0) return -1;
  const RecordedValue& value = program.values[use.value];
  if (use.version > value.version && value.storage >= 0)
    return program.storages[value.storage].writers[use.version - 1];
  return value.call;
}

std::vector<int> Dependencies(const RecordedProgram& program, int call) {
  std::vector<int> calls;
  for (const TensorUse& use : program.calls.at(call).uses) {
    if (use.value < 0) continue;
    // A writer between the two has itself read or replaced what was there before: it depends on its predecessor.
    for (const int before : {Producer(program, use), program.values[use.value].call}) {
      if (before >= 0) calls.push_back(before);
    }
  }
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  return calls;
}

}  // namespace addend
