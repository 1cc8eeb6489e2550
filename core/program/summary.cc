#include "core/program/summary.h"

#include <cstdint>
#include <vector>

#include "core/base/tensor_text.h"
#include "core/program/call_arguments.h"

namespace addend {

Json SummaryRecord(const RecordedProgram& program) {
  Json record = {{"format", "addend.program_summary"},
                 {"version", 1},
                 {"libtorch", program.libtorch.empty() ? Json(nullptr) : Json(program.libtorch)},
                 {"operators", program.calls.size()},
                 {"inputs", Json::array()}};
  for (const RecordedInput& input : program.inputs) {
    record["inputs"].push_back({{"name", input.name}, {"structure", DescribeStructure(input.structure)}});
  }
  record["output"] = DescribeStructure(program.output);
  Json& values = record["values"] = Json::array();
  for (const RecordedValue& value : program.values) {
    const std::vector<int64_t> shape(value.geometry.sizes.begin(), value.geometry.sizes.end());
    values.push_back({{"name", value.name},
                      {"kind", ValueKindName(value.kind)},
                      {"dtype", DtypeName(value.dtype)},
                      {"shape", shape}});
  }
  Json& guards = record["guards"] = Json::array();
  for (const RecordedGuard& guard : program.guards) {
    guards.push_back({{"kind", GuardKindName(guard.kind)},
                      {"call", DescribeCall(program, guard.call)},
                      {"value", PlainJson(guard.value)},
                      {"position", PositionOf(program, guard.call).Describe()}});
  }
  Json& free = record["free"] = Json::array();
  for (const FreeDimension& dimension : program.free) {
    free.push_back({{"input", program.values[dimension.input].name},
                    {"dim", dimension.dim},
                    {"like", dimension.like < 0 ? Json(nullptr) : Json(dimension.like)}});
    if (!dimension.Limited()) continue;
    free.back()["least"] = dimension.least;
    free.back()["most"] = dimension.most;
    if (dimension.step > 1) free.back()["step"] = dimension.step;
  }
  return record;
}

}  // namespace addend
