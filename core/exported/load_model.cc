#include "core/exported/load_model.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/archive.h"
#include "core/exported/exported_model.h"
#include "core/exported/program.h"
#include "core/model/torchscript.h"

namespace addend {
namespace {

// Loads TorchScript from an archive whose entries are compared with their checksums first, at which LibTorch does not
// look: one flipped bit of a weight would be another model. `load` is given what a reader has to know of the archive.
template <typename Load>
std::shared_ptr<Model> LoadWhole(exported::Bytes bytes, const std::string& name, const Load& load) {
  constexpr char kZip[] = "PK\x03\x04";
  std::optional<Error> unread;
  std::vector<std::string> notes;
  if (bytes.size >= 4 && std::memcmp(bytes.data, kZip, 4) == 0) {
    exported::MemoryBudget budget(OneLine(name), bytes.size);
    std::optional<exported::Archive> archive;
    try {
      archive.emplace(std::move(bytes), name, &budget);
    } catch (const Error& error) {
      unread = error;
    }
    if (archive) {
      archive->RequireWhole();
      notes = archive->Notes();
    }
  }
  if (!unread) return load(notes);
  // For a file that only begins like a zip archive, LibTorch's error says nothing useful, so ours is added.
  try {
    load(notes);
  } catch (const Error& error) {
    throw Error(error.code(), absl::StrCat(error.what(), "; it begins as an archive does, but ", unread->what()));
  }
  throw *unread;
}

ScriptOptions WithNotes(ScriptOptions options, const std::vector<std::string>& notes) {
  options.notes.insert(options.notes.end(), notes.begin(), notes.end());
  return options;
}

// Maps a file; gives no bytes where that is not possible.
exported::Bytes MapIfPossible(const std::string& path) {
  try {
    return exported::MapFile(path);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::shared_ptr<Model> LoadModel(const std::string& path, const ScriptOptions& options) {
  if (exported::IsExportedProgram(path)) return LoadExported(path, options);
  return LoadWhole(MapIfPossible(path), path, [&](const std::vector<std::string>& notes) {
    return LoadTorchScript(path, WithNotes(options, notes));
  });
}

std::shared_ptr<Model> LoadModelBytes(const void* data, size_t size, const std::string& name,
                                      const ScriptOptions& options) {
  if (exported::IsExportedProgramBytes(data, size)) return LoadExportedBytes(data, size, name, options);
  exported::Bytes bytes;
  bytes.data = const_cast<char*>(static_cast<const char*>(data));  // only read
  bytes.size = size;
  return LoadWhole(std::move(bytes), name, [&](const std::vector<std::string>& notes) {
    return LoadTorchScriptBytes(data, size, name, WithNotes(options, notes));
  });
}

std::shared_ptr<Model> CopyModelTo(const Model& model, const c10::Device& device,
                                   std::optional<c10::ScalarType> dtype) {
  if (auto copy = exported::CopyExportedTo(model, device, dtype)) return copy;
  return CopyTo(model, device, dtype);
}

}  // namespace addend
