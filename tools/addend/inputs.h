// Reads what a command line names: the model, its inputs with their splits and baselines, the policy.
#ifndef ADDEND_TOOLS_ADDEND_INPUTS_H_
#define ADDEND_TOOLS_ADDEND_INPUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/explain/input.h"
#include "core/explain/several_baselines.h"
#include "core/model/model.h"
#include "core/program/recorded_program.h"
#include "core/program/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/csv_file.h"

namespace addend::cli {

struct LoadedInput {
  Input input;  // as the core takes it; inside the model its value is of the right shape only, once FindInside() ran
  std::string name;
  std::string path;  // inside the model: the selector
  std::string sha256;
  std::map<std::string, std::string> metadata;  // of its file
  std::string split;                            // "dim=1", "labels=segments"
  std::string baseline;                         // "0", "token 0", a path; empty where it is plain
  SeveralBaselines several;                     // in place of the baseline
  bool baseline_given = false;
  std::string baseline_path;  // where it is a file
  std::string baseline_sha256;
  std::vector<OtherNumber> others;  // of its table, or of its row
  std::vector<OtherNumber> baseline_others;

  bool plain() const { return input.split.kind == Split::Kind::kPlain; }
  bool inside() const { return !input.inside.empty(); }
  bool ids() const { return !inside() && !at::isFloatingType(input.value.scalar_type()); }
};

struct LoadedRun {
  std::shared_ptr<Model> model;
  std::shared_ptr<const RecordedProgram> program;  // that the model is; null for a TorchScript file
  std::string model_path;                          // of that file, or the folder of the program
  std::string model_sha256;
  std::vector<LoadedInput> inputs;  // the arguments, then what is split inside
  Policy policy;                    // as asked for
  std::optional<int64_t> row;
  RequestOptions request;  // as asked for, too

  std::vector<Input> Inputs() const;
  // Baselines by input; empty if no input has several.
  std::vector<SeveralBaselines> Several() const;
  // The arguments' tensors alone, copied: the model may write what it is given.
  std::vector<at::Tensor> Values() const;
  // Sentences about what was read, for the report of each run.
  std::vector<std::string> Notes() const;
};

// Throws addend::Error for whatever is missing, malformed or contradictory. first: what stands for the files of the
// inputs, by input; their digests are then not taken. Null: they are read.
LoadedRun Load(const RunArguments& arguments, const std::vector<TensorFile>* first = nullptr);
// Places of the inputs that --input names.
std::vector<TensorPlace> InputPlaces(const RunArguments& arguments);
// A tensor alone: FILE[#NAME], as an input of such a run and, where it says so, its one row.
at::Tensor LoadTensor(const std::string& text, const RunArguments& arguments);
// The policy alone, to complain about it before anything is read.
Policy ParsePolicy(const std::vector<std::string>& fields);
// The files that a run reads; others: what else a command reads, where it is no empty text.
std::vector<std::string> SourcesOf(const RunArguments& arguments, const std::vector<std::string>& others = {});
// Adds the files of a model: one, or those of a folder of addend trace --save.
void AddModelFiles(const std::string& model, std::vector<std::string>* files);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_INPUTS_H_
