#include "core/load/load_model.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/exported/archive.h"
#include "core/exported/exported_model.h"
#include "core/exported/program.h"
#include "core/model/torchscript.h"
#include "core/onnx/onnx_model.h"
#include "core/weights/mapped_file.h"

namespace addend {
namespace {

// A mark near the beginning of a file that is no model, and the format that it tells.
struct Beginning {
  size_t at;
  std::string_view bytes;
  const char* is;
};
constexpr Beginning kBeginnings[] = {
    {0, "\x80\x02", "a pickle, or what torch.save wrote before version 1.6"},
    {0, "\x80\x03", "a pickle"},
    {0, "\x80\x04", "a pickle"},
    {0, "\x80\x05", "a pickle"},
    {0, "\x89HDF\r\n", "an HDF5 file, which Keras writes"},
    {0, "\x93NUMPY", "a NumPy file, which holds an array"},
    {0, "GGUF", "a GGUF file, which holds weights without a program that LibTorch could run"},
    {0, "\x1f\x8b", "compressed by gzip; unpack it"},
    {4, "TFL3", "a TensorFlow Lite file"},
    {0, "<", "text that begins with <, a page of a server instead of a file, perhaps"},
    {0, "version https://git-lfs", "a pointer of Git LFS to a file that was not fetched"},
};

// Format of bytes that are no TorchScript file, as far as it is known; else empty. `archive`: theirs, if any.
std::string WhatItIs(const weights::Bytes& bytes, const exported::Archive* archive) {
  if (archive != nullptr) {
    if (!archive->Has("data.pkl")) return "a zip archive of something else";
    return archive->Has("constants.pkl")
               ? "a TorchScript file that this LibTorch cannot read: one of a newer version, or with operators of a "
                 "library that is not loaded"
               : "what torch.save writes of a state dict or of a whole module, which holds weights without a program";
  }
  const std::string_view all(bytes.data, bytes.size);
  for (const Beginning& known : kBeginnings) {
    if (all.size() >= known.at && all.substr(known.at, known.bytes.size()) == known.bytes) return known.is;
  }
  // The length of a header in eight bytes, and the header.
  if (bytes.size > 9 && bytes.data[7] == 0 && bytes.data[8] == '{')
    return "a safetensors file, which holds weights only";
  // ir_version, and behind it producer_name or another field of an ONNX model that is text or a message.
  if (bytes.size > 3 && bytes.data[0] == 0x08 && bytes.data[1] > 0 && bytes.data[1] < 32 &&
      (bytes.data[2] == 0x12 || bytes.data[2] == 0x3a || bytes.data[2] == 0x42)) {
    return "an ONNX file that is not whole, it seems";
  }
  return {};
}

// Loads TorchScript from an archive whose entries are compared with their checksums first, at which LibTorch does not
// look: one flipped bit of a weight would be another model. `load` is given what a reader has to know of the archive.
template <typename Load>
std::shared_ptr<Model> LoadWhole(weights::Bytes bytes, const std::string& name, const Load& load) {
  constexpr char kZip[] = "PK\x03\x04";
  std::optional<Error> unread;
  std::vector<std::string> notes;
  std::optional<exported::Archive> archive;
  const weights::Bytes own = bytes;
  weights::MemoryBudget budget(OneLine(name), bytes.size);
  if (bytes.size >= 4 && std::memcmp(bytes.data, kZip, 4) == 0) {
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
  if (!unread) {
    try {
      return load(notes);
    } catch (const Error& error) {
      const std::string is = WhatItIs(own, archive ? &*archive : nullptr);
      if (error.code() != absl::StatusCode::kInvalidArgument || is.empty()) throw;
      throw Error(error.code(), absl::StrCat(error.what(), "; it is ", is));
    }
  }
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
weights::Bytes MapIfPossible(const std::string& path) {
  try {
    return weights::MapFile(path);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::shared_ptr<Model> LoadModel(const std::string& path, const ScriptOptions& options) {
  if (exported::IsExportedProgram(path)) return LoadExported(path, options);
  weights::Bytes bytes = MapIfPossible(path);
  if (IsOnnxBytes(bytes.data, bytes.size)) return LoadOnnx(path, options);
  return LoadWhole(std::move(bytes), path, [&](const std::vector<std::string>& notes) {
    return LoadTorchScript(path, WithNotes(options, notes));
  });
}

std::shared_ptr<Model> LoadModelBytes(const void* data, size_t size, const std::string& name,
                                      const ScriptOptions& options) {
  if (exported::IsExportedProgramBytes(data, size)) return LoadExportedBytes(data, size, name, options);
  if (IsOnnxBytes(data, size)) return LoadOnnxBytes(data, size, name, options);
  weights::Bytes bytes;
  bytes.data = const_cast<char*>(static_cast<const char*>(data));  // only read
  bytes.size = size;
  return LoadWhole(std::move(bytes), name, [&](const std::vector<std::string>& notes) {
    return LoadTorchScriptBytes(data, size, name, WithNotes(options, notes));
  });
}

std::vector<std::string> FilesBeside(const std::string& path) {
  const weights::Bytes bytes = MapIfPossible(path);
  return IsOnnxBytes(bytes.data, bytes.size) ? WeightFilesOf(path) : std::vector<std::string>();
}

}  // namespace addend
