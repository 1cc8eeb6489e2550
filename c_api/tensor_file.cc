// Tensors in files.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "c_api/bodies.h"
#include "core/base/text.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/tensor_io.h"

namespace addend::c_api {

struct TensorFileBody {
  TensorFile file;
  absl::flat_hash_map<std::string, size_t> places;  // of tensors, by their names

  TensorFileBody() = default;
  explicit TensorFileBody(TensorFile content) : file(std::move(content)) {
    for (size_t k = 0; k < file.tensors.size(); ++k) places.emplace(file.tensors[k].first, k);
  }
  const at::Tensor* Find(const std::string& name) const {
    const auto place = places.find(name);
    return place == places.end() ? nullptr : &file.tensors[place->second].second;
  }
};

extern "C" {

ADDEND_API addend_status* addend_tensor_file_read(const char* path, addend_tensor_file** out_file) noexcept {
  return Guard([&] {
    const std::string name = Text(path, "path");
    RequireOut(out_file, "out_file");
    const TracingPause pause;
    Give(out_file, ReadTensorFile(name));
  });
}

ADDEND_API addend_status* addend_tensor_file_decode(const void* data, size_t size, const char* name,
                                                    addend_tensor_file** out_file) noexcept {
  return Guard([&] {
    RequireArray(data, size, "data");
    const std::string shown = Text(name, "name");
    RequireOut(out_file, "out_file");
    const TracingPause pause;
    Give(out_file, DecodeTensorFile(std::string(static_cast<const char*>(data), size), shown));
  });
}

ADDEND_API size_t addend_tensor_file_size(const addend_tensor_file* file) noexcept {
  const TensorFileBody* body = Peek(file);
  return body == nullptr ? 0 : body->file.tensors.size();
}

ADDEND_API const char* addend_tensor_file_name(const addend_tensor_file* file, size_t index) noexcept {
  const TensorFileBody* body = Peek(file);
  return body == nullptr || index >= body->file.tensors.size() ? nullptr : body->file.tensors[index].first.c_str();
}

ADDEND_API addend_status* addend_tensor_file_tensor(const addend_tensor_file* file, const char* name,
                                                    addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const TensorFileBody& body = Get(file, "file");
    const TensorFile& content = body.file;
    RequireOut(out_tensor, "out_tensor");
    if (content.tensors.empty()) throw NotFound("the file holds no tensor");
    const at::Tensor* found = name == nullptr ? &content.tensors.front().second : body.Find(Text(name, "name"));
    if (found == nullptr) {
      std::vector<std::string> names;
      for (const auto& tensor : content.tensors) names.push_back(tensor.first);
      throw NotFound(absl::StrCat("the file has no tensor ", Quoted(name), "; it has ", Listed(names)));
    }
    Give(out_tensor, *found);
  });
}

ADDEND_API const char* addend_tensor_file_metadata(const addend_tensor_file* file, const char* key) noexcept {
  const TensorFileBody* body = Peek(file);
  if (body == nullptr || key == nullptr) return nullptr;
  for (const auto& [name, value] : body->file.metadata) {
    if (name == key) return value.c_str();
  }
  return nullptr;
}

ADDEND_API addend_status* addend_tensor_file_create(addend_tensor_file** out_file) noexcept {
  return Guard([&] {
    RequireOut(out_file, "out_file");
    Give(out_file);
  });
}

ADDEND_API addend_status* addend_tensor_file_add(addend_tensor_file* file, const char* name,
                                                 const addend_tensor* tensor) noexcept {
  return Guard([&] {
    TensorFileBody& body = Get(file, "file");
    const std::string own = Text(name, "name");
    const at::Tensor& value = TensorOf(tensor, "tensor");
    const auto [place, added] = body.places.emplace(own, body.file.tensors.size());
    if (added) {
      body.file.tensors.emplace_back(own, value);
    } else {
      body.file.tensors[place->second].second = value;
    }
  });
}

ADDEND_API addend_status* addend_tensor_file_set_metadata(addend_tensor_file* file, const char* key,
                                                          const char* value) noexcept {
  return Guard([&] {
    auto& metadata = Get(file, "file").file.metadata;
    const std::string name = Text(key, "key");
    metadata[name] = Text(value, "value");
  });
}

ADDEND_API addend_status* addend_tensor_file_write(const addend_tensor_file* file, const char* path) noexcept {
  return Guard([&] {
    const TensorFile& content = Get(file, "file").file;
    const std::string name = Text(path, "path");
    const TracingPause pause;
    WriteTensorFile(name, content);
  });
}

ADDEND_API addend_status* addend_tensor_file_encode(const addend_tensor_file* file,
                                                    addend_string** out_bytes) noexcept {
  return Guard([&] {
    const TensorFile& content = Get(file, "file").file;
    RequireOut(out_bytes, "out_bytes");
    const TracingPause pause;
    Give(out_bytes, EncodeSafetensors(content));
  });
}

ADDEND_API void addend_tensor_file_release(addend_tensor_file* file) noexcept { Release(file); }

}  // extern "C"

}  // namespace addend::c_api
