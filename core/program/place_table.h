// The places of a program's calls while its run is recorded: modules and source lines.
#ifndef ADDEND_CORE_PROGRAM_PLACE_TABLE_H_
#define ADDEND_CORE_PROGRAM_PLACE_TABLE_H_

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/intercept/script_frames.h"
#include "core/program/module_paths.h"
#include "core/program/recorded_program.h"

namespace addend {

// Fills in the program's places.
class PlaceTable {
 public:
  // `program` must outlive the table.
  explicit PlaceTable(RecordedProgram* program) : program_(program) {}

  // See ProgramRecorder.
  void SetModulePaths(std::vector<std::string> paths);
  void SetModule(const std::string& path);
  void SetFrameProvider(std::function<std::vector<SourceFrame>()> frames) { frames_ = std::move(frames); }

  // The place of the call that is about to run, an index into RecordedProgram::places; -1: nothing is known of it.
  int PlaceOf(const RecordedCall& call);

 private:
  int Add(CodePlace place, int parameter);

  RecordedProgram* program_;
  CurrentModule module_;
  int module_number_ = -1;
  absl::flat_hash_map<std::string, int> module_numbers_;  // by path, of those that the caller told
  std::function<std::vector<SourceFrame>()> frames_;
  ScriptPlaces script_places_;
  absl::flat_hash_map<std::tuple<int, int, int>, int> places_;  // by script place, parameter and module
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PLACE_TABLE_H_
