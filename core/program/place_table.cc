#include "core/program/place_table.h"

#include <algorithm>
#include <utility>

#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

// The first parameter or buffer that the call reads or writes, as a value; -1: none.
int ParameterOf(const RecordedCall& call, const RecordedProgram& program) {
  for (const TensorUse& use : call.uses) {
    if (use.value < 0) continue;
    const RecordedStorage& storage = program.storages[program.values[use.value].storage];
    if (storage.kind == ValueKind::kParameter || storage.kind == ValueKind::kBuffer) return storage.value;
  }
  return -1;
}

}  // namespace

void PlaceTable::SetModulePaths(std::vector<std::string> paths) {
  module_.SetPaths(paths);
  program_->module_paths = std::move(paths);
}

void PlaceTable::SetModule(const std::string& path) {
  module_.Set(path);
  module_number_ = module_numbers_.try_emplace(path, static_cast<int>(module_numbers_.size())).first->second;
}

int PlaceTable::PlaceOf(const RecordedCall& call) {
  const int parameter = ParameterOf(call, *program_);
  const int script = script_places_.Current();
  if (script < 0 && frames_) {
    CodePlace place;
    const TracingPause pause;
    place.frames = frames_();
    return Add(std::move(place), parameter);
  }
  const auto [found, is_new] = places_.try_emplace({script, parameter, module_number_}, -1);
  if (is_new) found->second = Add(script < 0 ? CodePlace() : script_places_.places()[script], parameter);
  return found->second;
}

int PlaceTable::Add(CodePlace place, int parameter) {
  place.module_path = module_.PathOf(place.module_path, parameter < 0 ? "" : program_->values[parameter].name);
  if (place.module_path.empty() && place.frames.empty()) return -1;
  std::vector<CodePlace>& places = program_->places;
  // Only neighbours are compared: places of a loop repeat at once or in a pattern, and the cache above knows most.
  const auto recent = places.size() > 64 ? places.end() - 64 : places.begin();
  const auto same = std::find(recent, places.end(), place);
  if (same != places.end()) return static_cast<int>(same - places.begin());
  places.push_back(std::move(place));
  return static_cast<int>(places.size()) - 1;
}

}  // namespace addend
