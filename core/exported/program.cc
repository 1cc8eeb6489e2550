#include "core/exported/program.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/archive.h"
#include "core/exported/refusals.h"
#include "core/exported/schema.h"
#include "core/exported/tensors.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {
namespace {

// Entries of torch 2.1 to 2.7.
constexpr char kOldProgram[] = "serialized_exported_program.json";
constexpr char kOldState[] = "serialized_state_dict.pt";
constexpr char kOlderState[] = "serialized_state_dict.json";
constexpr char kOldConstants[] = "serialized_constants.pt";

// Entries since torch 2.8.
constexpr char kFormat[] = "archive_format";
constexpr char kModels[] = "models/";
constexpr char kWeights[] = "data/weights/";
constexpr char kConstants[] = "data/constants/";
constexpr char kCompiled[] = "data/aotinductor/";
constexpr char kUsualModel[] = "model";
constexpr char kJson[] = ".json";

std::string Text(const Archive& archive, const std::string& entry) {
  const Bytes bytes = archive.Read(entry);
  return std::string(bytes.data, bytes.size);
}

Program ReadGraphOf(const Archive& archive, const std::string& entry, MemoryBudget* budget) {
  const Bytes text = archive.Read(entry);
  return ReadSchema(absl::string_view(text.data, text.size), archive.Place(entry), budget);
}

// Which of the models of an archive is read.
std::string ChooseModel(const Archive& archive) {
  std::vector<std::string> names;
  for (const std::string& entry : archive.Names(kModels)) {
    if (!absl::EndsWith(entry, kJson)) continue;
    const size_t begin = sizeof(kModels) - 1;
    names.push_back(entry.substr(begin, entry.size() - begin - (sizeof(kJson) - 1)));
  }
  if (names.empty()) {
    if (!archive.Names(kCompiled).empty()) {
      throw Unimplemented(
          absl::StrCat(archive.name(), ": holds only code that AOTInductor compiled (", kCompiled,
                       "), and no graph that could be explained; save the exported program itself, with "
                       "torch.export.save"));
    }
    throw InvalidArgument(
        absl::StrCat(archive.name(), ": holds no exported program: there is no ", kModels, "*.json in it"));
  }
  for (const std::string& name : names) {
    if (name == kUsualModel) return name;
  }
  if (names.size() > 1) {
    for (std::string& name : names) name = OneLine(name);
    throw InvalidArgument(absl::StrCat(archive.name(), ": holds several models (", absl::StrJoin(names, ", "),
                                       ") and none is called ", kUsualModel,
                                       "; save the one that is wanted by itself"));
  }
  return names[0];
}

// Every tensor that the graph takes is there.
void CheckState(const Program& program, const Archive& archive) {
  for (const InputSpec& spec : program.inputs) {
    const bool stored = spec.kind == InputSpec::Kind::kParameter || spec.kind == InputSpec::Kind::kBuffer ||
                        spec.kind == InputSpec::Kind::kTensorConstant;
    if (stored && program.state.count(spec.name) == 0) {
      throw InvalidArgument(absl::StrCat(archive.name(), ": the program takes the tensor ", Quoted(spec.name),
                                         ", which the archive does not hold"));
    }
  }
}

Program ReadOld(const Archive& archive, MemoryBudget* budget) {
  if (archive.Has(kOlderState)) {
    throw Unimplemented(absl::StrCat(archive.name(),
                                     ": was written by torch 2.1, whose format no later version reads; "
                                     "export the model with torch 2.4 or newer"));
  }
  Program program = ReadGraphOf(archive, kOldProgram, budget);
  for (const char* entry : {kOldState, kOldConstants}) {
    if (archive.Has(entry)) ReadSaved(archive, entry, budget, program.state);
  }
  return program;
}

Program ReadNew(const Archive& archive, MemoryBudget* budget) {
  const std::string model = ChooseModel(archive);
  if (archive.Has("archive_version") && Text(archive, "archive_version") != "0") {
    throw InvalidArgument(absl::StrCat(archive.Place("archive_version"),
                                       ": is not 0, the only version that is known; "
                                       "export the model with an older torch"));
  }
  archive.RequireLittleEndian();
  Program program = ReadGraphOf(archive, absl::StrCat(kModels, model, kJson), budget);
  const auto read = [&](const std::string& folder, const char* what) {
    const std::string saved = absl::StrCat(folder, model, ".pt");  // torch 2.8
    if (archive.Has(saved)) return ReadSaved(archive, saved, budget, program.state);
    ReadPayload(archive, absl::StrCat(folder, model, "_", what, "_config.json"), folder, budget, program.state);
  };
  read(kWeights, "weights");
  read(kConstants, "constants");
  if (!archive.Names(kCompiled).empty()) {
    program.notes.push_back("the file also holds code that AOTInductor compiled, which is not used");
  }
  return program;
}

bool HoldsProgram(Bytes bytes) {
  MemoryBudget budget("the file", bytes.size);
  const Archive archive(std::move(bytes), "the file", &budget);
  return archive.Has(kFormat) || archive.Has(kOldProgram);
}

// Without an owner nothing is written to, and tensors are copies.
Bytes Borrowed(const void* data, size_t size) {
  Bytes bytes;
  bytes.data = const_cast<char*>(static_cast<const char*>(data));
  bytes.size = size;
  return bytes;
}

Program Read(Bytes bytes, const std::string& name) {
  MemoryBudget budget(OneLine(name), bytes.size);
  const Archive archive(std::move(bytes), name, &budget);
  Program program = archive.Has(kOldProgram) ? ReadOld(archive, &budget) : ReadNew(archive, &budget);
  CheckState(program, archive);
  for (std::string& note : archive.Notes()) program.notes.push_back(std::move(note));
  return program;
}

}  // namespace

Program ReadProgram(const std::string& path) {
  Bytes bytes = weights::MapFile(path);
  const std::shared_ptr<const weights::MappedFile> file = bytes.file;
  Program program = Read(std::move(bytes), path);
  program.file = file;
  return program;
}

Program ReadProgramBytes(const void* data, size_t size, const std::string& name) {
  return Read(Borrowed(data, size), name);
}

bool IsExportedProgram(const std::string& path) {
  try {
    return HoldsProgram(weights::MapFile(path));
  } catch (const Error&) {
    return false;
  }
}

bool IsExportedProgramBytes(const void* data, size_t size) {
  try {
    return HoldsProgram(Borrowed(data, size));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace addend::exported
