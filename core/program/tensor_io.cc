#include "core/program/tensor_io.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/file_error.h"
#include "core/base/tensor_text.h"
#include "core/program/sha256.h"

// Both formats store little-endian numbers, and they are copied as they are.
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor_io.cc needs a little-endian machine"
#endif

namespace addend {
namespace {

using Json = nlohmann::json;

constexpr char kNpyMagic[] = "\x93NUMPY";
constexpr size_t kNpyMagicSize = 6;
constexpr size_t kLengthSize = 8;  // of the header of .safetensors
// What the reference implementation of the format accepts.
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
// What LibTorch's iterators accept.
constexpr size_t kMaxDims = 64;
constexpr char kMetadataKey[] = "__metadata__";

struct Dtype {
  at::ScalarType type;
  int64_t size;
  const char* npy;  // type code without byte order; empty where numpy has no such type
  const char* safetensors;
};

constexpr Dtype kDtypes[] = {
    {at::kDouble, 8, "f8", "F64"},  {at::kFloat, 4, "f4", "F32"}, {at::kHalf, 2, "f2", "F16"},
    {at::kBFloat16, 2, "", "BF16"}, {at::kLong, 8, "i8", "I64"},  {at::kInt, 4, "i4", "I32"},
    {at::kShort, 2, "i2", "I16"},   {at::kChar, 1, "i1", "I8"},   {at::kByte, 1, "u1", "U8"},
    {at::kBool, 1, "b1", "BOOL"},
};

// Every complaint about content: which file, then what is wrong with it.
Error Malformed(const std::string& name, const std::string& what) {
  return InvalidArgument(absl::StrCat(name, ": ", what));
}

// Names come from the file: whatever they hold, a message stays one line of text.
std::string Printable(const std::string& text) { return absl::Utf8SafeCEscape(text); }

std::string NameOf(const std::string& file, const std::string& tensor) {
  return absl::StrCat(file, ": tensor ", Printable(tensor));
}

// Bytes that a tensor takes. Counts a dimension of size 0 as 1 in the check: strides must not overflow either.
int64_t ByteSize(const std::string& name, const std::vector<int64_t>& shape, int64_t item) {
  if (shape.size() > kMaxDims) {
    throw Malformed(name, absl::StrCat(shape.size(), " dimensions; at most ", kMaxDims, " are supported"));
  }
  int64_t bound = item;
  int64_t size = item;
  for (const int64_t dim : shape) {
    if (dim < 0) throw Malformed(name, absl::StrCat("shape ", ShapeText(shape), " has a negative size"));
    if (dim > 0 && bound > std::numeric_limits<int64_t>::max() / dim) {
      throw Malformed(name, absl::StrCat("shape ", ShapeText(shape), " is too large for any memory"));
    }
    bound *= std::max<int64_t>(dim, 1);
    size *= dim;
  }
  return size;
}

at::Tensor CopyToTensor(const std::string& name, const Dtype& dtype, const std::vector<int64_t>& shape,
                        const char* data, int64_t size) {
  if (dtype.type == at::kBool) {
    // Any other byte in a bool is undefined behaviour later on.
    for (int64_t i = 0; i < size; ++i) {
      if (static_cast<unsigned char>(data[i]) > 1) {
        throw Malformed(name,
                        absl::StrCat("boolean byte ", static_cast<unsigned char>(data[i]), " is neither 0 nor 1"));
      }
    }
  }
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(dtype.type).device(at::kCPU));
  if (size > 0) std::memcpy(tensor.data_ptr(), data, static_cast<size_t>(size));
  return tensor;
}

// ---------------------------------------------------------------------------------------------------------- .npy

// Reads the Python literal that is the header of .npy: a dict of a string, a bool and a tuple of integers. Nothing
// else is needed, and nothing is ever evaluated.
class NpyHeader {
 public:
  NpyHeader(const std::string& name, const char* text, size_t size) : name_(name), at_(text), end_(text + size) {
    Parse();
  }

  const std::string& descr() const { return descr_; }
  bool fortran_order() const { return fortran_order_; }
  const std::vector<int64_t>& shape() const { return shape_; }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Malformed(name_, absl::StrCat("the .npy header is malformed: ", what));
  }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool Take(char c) {
    SkipSpace();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void Expect(char c) {
    if (!Take(c)) Fail(absl::StrCat("'", std::string(1, c), "' is missing"));
  }

  std::string String() {
    SkipSpace();
    if (at_ == end_ || (*at_ != '\'' && *at_ != '"')) Fail("a string is missing");
    const char quote = *at_++;
    const char* begin = at_;
    while (at_ != end_ && *at_ != quote && *at_ != '\\') ++at_;
    if (at_ == end_ || *at_ != quote) Fail("a string has no end");
    return std::string(begin, at_++);
  }

  bool Bool() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const char* word = value ? "True" : "False";
      const size_t size = std::strlen(word);
      if (static_cast<size_t>(end_ - at_) >= size && std::equal(word, word + size, at_)) {
        at_ += size;
        return value;
      }
    }
    Fail("'fortran_order' is neither True nor False");
  }

  int64_t Integer() {
    SkipSpace();
    const bool negative = Take('-');
    int64_t value = 0;
    const char* begin = at_;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      const int digit = *at_ - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) Fail("a size of 'shape' is too large");
      value = 10 * value + digit;
    }
    if (at_ == begin) Fail("'shape' is not a tuple of integers");
    if (at_ != end_ && *at_ == 'L') ++at_;  // as Python 2 wrote long integers
    return negative ? -value : value;
  }

  std::vector<int64_t> Tuple() {
    std::vector<int64_t> values;
    Expect('(');
    while (!Take(')')) {
      values.push_back(Integer());
      if (!Take(',')) {
        Expect(')');
        break;
      }
    }
    return values;
  }

  void Parse() {
    std::set<std::string> seen;
    Expect('{');
    while (!Take('}')) {
      const std::string key = String();
      if (!seen.insert(key).second) Fail(absl::StrCat("'", Printable(key), "' occurs twice"));
      Expect(':');
      if (key == "descr") {
        SkipSpace();
        if (at_ != end_ && *at_ == '[') {
          throw Malformed(name_, "records (structured dtypes) are not supported; save one plain array");
        }
        descr_ = String();
      } else if (key == "fortran_order") {
        fortran_order_ = Bool();
      } else if (key == "shape") {
        shape_ = Tuple();
      } else {
        Fail(absl::StrCat("'", Printable(key), "' is unknown"));
      }
      if (!Take(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (at_ != end_) Fail("something follows it");
    for (const char* key : {"descr", "fortran_order", "shape"}) {
      if (seen.count(key) == 0) Fail(absl::StrCat("'", key, "' is missing"));
    }
  }

  const std::string& name_;
  const char* at_;
  const char* end_;
  std::string descr_;
  bool fortran_order_ = false;
  std::vector<int64_t> shape_;
};

const Dtype& NpyDtype(const std::string& name, const std::string& descr) {
  const std::string code = descr.empty() ? descr : descr.substr(1);
  if (absl::StartsWith(code, "O")) {
    throw Malformed(name, "pickled Python objects are not supported; save an array of numbers");
  }
  for (const Dtype& dtype : kDtypes) {
    if (code.empty() || code != dtype.npy) continue;
    if (descr[0] == '<' || (descr[0] == '|' && dtype.size == 1)) return dtype;
    if (descr[0] == '>') {
      throw Malformed(name, absl::StrCat("big-endian data (", descr, ") is not supported; save it as <", code));
    }
  }
  throw Malformed(name, absl::StrCat("dtype ", Printable(descr),
                                     " is not supported; use one of f2, f4, f8, i1, i2, i4, i8, u1, b1"));
}

TensorFile DecodeNpy(const std::string& bytes, const std::string& name) {
  const auto truncated = [&] {
    return Malformed(name, absl::StrCat("truncated .npy file of ", bytes.size(), " bytes"));
  };
  if (bytes.size() < kNpyMagicSize + 2) throw truncated();
  const int major = static_cast<unsigned char>(bytes[kNpyMagicSize]);
  if (major < 1 || major > 3) {
    throw Malformed(name, absl::StrCat(".npy format version ", major, " is not supported; use version 1, 2 or 3"));
  }
  const size_t length_size = major == 1 ? 2 : 4;
  const size_t header_begin = kNpyMagicSize + 2 + length_size;
  if (bytes.size() < header_begin) throw truncated();
  uint32_t header_size = 0;
  std::memcpy(&header_size, bytes.data() + kNpyMagicSize + 2, length_size);
  if (header_size > bytes.size() - header_begin) {
    throw Malformed(name, absl::StrCat("truncated .npy file: a header of ", header_size, " bytes in a file of ",
                                       bytes.size(), " bytes"));
  }
  const NpyHeader header(name, bytes.data() + header_begin, header_size);
  const Dtype& dtype = NpyDtype(name, header.descr());
  const int64_t size = ByteSize(name, header.shape(), dtype.size);
  const size_t data_begin = header_begin + header_size;
  const auto available = static_cast<int64_t>(bytes.size() - data_begin);
  if (size != available) {
    throw Malformed(
        name, absl::StrCat(size > available ? "truncated .npy file: " : "", "shape ", ShapeText(header.shape()), " of ",
                           header.descr(), " takes ", size, " bytes, but ", available, " follow the header"));
  }
  std::vector<int64_t> shape = header.shape();
  if (header.fortran_order()) std::reverse(shape.begin(), shape.end());
  at::Tensor tensor = CopyToTensor(name, dtype, shape, bytes.data() + data_begin, size);
  if (header.fortran_order()) {
    std::vector<int64_t> dims(shape.size());
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(dims.size() - 1 - i);
    tensor = tensor.permute(dims).contiguous();
  }
  TensorFile file;
  file.tensors.emplace_back("", std::move(tensor));
  return file;
}

// -------------------------------------------------------------------------------------------------- .safetensors

// An entry of the header of .safetensors.
struct Entry {
  std::string name;
  const Dtype* dtype = nullptr;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Json ParseJson(const std::string& name, const char* begin, const char* end) {
  // The library keeps the last of two equal keys; here that would hide a tensor.
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second) {
      twice = parsed.dump(-1, ' ', true);
    }
    return true;
  };
  Json json = Json::parse(begin, end, watch, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    throw Malformed(name, "the .safetensors header is not a JSON object");
  }
  if (!twice.empty()) throw Malformed(name, absl::StrCat("the .safetensors header has ", twice, " twice"));
  return json;
}

Entry ParseEntry(const std::string& file, const std::string& key, const Json& json) {
  const std::string name = NameOf(file, key);
  const auto member = [&](const char* field) -> const Json& {
    const auto found = json.is_object() ? json.find(field) : json.end();
    if (!json.is_object() || found == json.end()) throw Malformed(name, absl::StrCat(field, " is missing"));
    return *found;
  };
  Entry entry;
  entry.name = key;

  const Json& dtype = member("dtype");
  for (const Dtype& candidate : kDtypes) {
    if (dtype == candidate.safetensors) entry.dtype = &candidate;
  }
  if (entry.dtype == nullptr) {
    throw Malformed(name, absl::StrCat("dtype ", dtype.dump(-1, ' ', true), " is not supported; use one of ",
                                       absl::StrJoin(kDtypes, ", ", [](std::string* out, const Dtype& d) {
                                         out->append(d.safetensors);
                                       })));
  }

  const Json& shape = member("shape");
  if (!shape.is_array()) throw Malformed(name, "shape is not a list");
  for (const Json& dim : shape) {
    if (!dim.is_number_integer()) throw Malformed(name, "shape is not a list of integers");
    // The library keeps what is negative as signed and everything else as unsigned.
    if (dim.is_number_unsigned() && dim.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw Malformed(name, absl::StrCat("shape with a size of ", dim.get<uint64_t>(), " is too large for any memory"));
    }
    entry.shape.push_back(dim.get<int64_t>());
  }

  const Json& offsets = member("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    throw Malformed(name, "data_offsets is not a list of two integers that are not negative");
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  return entry;
}

void CheckOffsets(const std::string& file, const std::vector<Entry>& entries, uint64_t data_size) {
  uint64_t covered = 0;
  const Entry* last = nullptr;
  for (const Entry& entry : entries) {
    const std::string name = NameOf(file, entry.name);
    const std::string offsets = absl::StrCat("data_offsets [", entry.begin, ", ", entry.end, "]");
    if (entry.begin > entry.end) throw Malformed(name, absl::StrCat(offsets, " end before they begin"));
    if (entry.end > data_size) {
      throw Malformed(name, absl::StrCat("truncated file: ", offsets, " exceed the ", data_size, " bytes of data"));
    }
    const int64_t size = ByteSize(name, entry.shape, entry.dtype->size);
    if (static_cast<uint64_t>(size) != entry.end - entry.begin) {
      throw Malformed(name, absl::StrCat(offsets, " hold ", entry.end - entry.begin, " bytes, but shape ",
                                         ShapeText(entry.shape), " of ", entry.dtype->safetensors, " takes ", size));
    }
    if (entry.begin < covered) throw Malformed(name, absl::StrCat(offsets, " overlap tensor ", Printable(last->name)));
    if (entry.begin > covered) {
      throw Malformed(name, absl::StrCat(offsets, " leave a gap: the data before end at ", covered));
    }
    covered = entry.end;
    last = &entry;
  }
  if (covered != data_size) {
    throw Malformed(file,
                    absl::StrCat("the tensors end at ", covered, ", but there are ", data_size, " bytes of data"));
  }
}

bool LooksLikeSafetensors(const std::string& bytes, uint64_t header_size) {
  if (bytes.size() <= kLengthSize || header_size == 0) return false;
  // A wrong length before a JSON object is a damaged file; text and archives have neither.
  return bytes[kLengthSize] == '{' || header_size <= bytes.size() - kLengthSize;
}

TensorFile DecodeSafetensors(const std::string& bytes, const std::string& name, uint64_t header_size) {
  const uint64_t available = bytes.size() - kLengthSize;
  if (header_size > kMaxSafetensorsHeader) {
    throw Malformed(name, absl::StrCat("the .safetensors header is too large: ", header_size, " bytes; at most ",
                                       kMaxSafetensorsHeader, " are supported"));
  }
  if (header_size > available) {
    throw Malformed(name, absl::StrCat("truncated .safetensors file: a header of ", header_size, " bytes, of which ",
                                       available, " are there"));
  }
  const char* header = bytes.data() + kLengthSize;
  const Json json = ParseJson(name, header, header + header_size);
  TensorFile file;
  std::vector<Entry> entries;
  for (const auto& item : json.items()) {
    if (item.key() != kMetadataKey) {
      entries.push_back(ParseEntry(name, item.key(), item.value()));
      continue;
    }
    if (!item.value().is_object()) throw Malformed(name, "__metadata__ is not a JSON object");
    for (const auto& pair : item.value().items()) {
      if (!pair.value().is_string()) {
        throw Malformed(name, absl::StrCat("__metadata__ ", Printable(pair.key()), " is not a string"));
      }
      file.metadata[pair.key()] = pair.value().get<std::string>();
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  CheckOffsets(name, entries, available - header_size);
  const char* data = header + header_size;
  for (const Entry& entry : entries) {
    file.tensors.emplace_back(entry.name,
                              CopyToTensor(NameOf(name, entry.name), *entry.dtype, entry.shape, data + entry.begin,
                                           static_cast<int64_t>(entry.end - entry.begin)));
  }
  return file;
}

// A tensor as the file stores it.
at::Tensor Storable(const std::string& name, const at::Tensor& tensor, const Dtype** dtype) {
  if (!tensor.defined())
    throw InvalidArgument(absl::StrCat("tensor ", Printable(name), " is undefined and cannot be saved"));
  if (tensor.layout() != at::kStrided) {
    throw InvalidArgument(
        absl::StrCat("tensor ", Printable(name), " is not dense and cannot be saved; call to_dense() first"));
  }
  *dtype = nullptr;
  for (const Dtype& candidate : kDtypes) {
    if (candidate.type == tensor.scalar_type()) *dtype = &candidate;
  }
  if (*dtype == nullptr) {
    throw InvalidArgument(absl::StrCat("tensor ", Printable(name), " has dtype ", at::toString(tensor.scalar_type()),
                                       ", which .safetensors files here cannot hold"));
  }
  return tensor.detach().cpu().resolve_neg().contiguous();
}

// -------------------------------------------------------------------------------------------------------- files

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  // Some file systems report a full disk only here.
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// Calls `take(data, size)` for each piece of the file.
template <typename Take>
void ReadPieces(const std::string& path, int fd, const Take& take) {
  std::vector<char> buffer(size_t{1} << 20);
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw FileError("read", path, errno);
    if (size == 0) return;
    take(buffer.data(), static_cast<size_t>(size));
  }
}

// Opened for reading; `size` is what a regular file holds, else 0.
int Open(const std::string& path, size_t* size = nullptr) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw FileError("open", path, errno);
  struct stat status = {};
  if (::fstat(fd, &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      ::close(fd);
      throw InvalidArgument(absl::StrCat("cannot read ", path, ": it is a folder; name a file"));
    }
    if (size != nullptr && S_ISREG(status.st_mode)) *size = static_cast<size_t>(status.st_size);
  }
  return fd;
}

// 0, or errno.
int WriteAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t size = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (size < 0 && errno != EINTR) return errno;
    if (size > 0) done += static_cast<size_t>(size);
  }
  return 0;
}

void WriteDirectly(const std::string& path, const std::string& bytes) {
  // Appends, because /dev/stdout may be a file to which others write too.
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.get() < 0) throw FileError("write", path, errno);
  const int error = WriteAll(file.get(), bytes);
  if (error != 0) throw FileError("write", path, error);
  if (!file.Close()) throw FileError("write", path, errno);
}

// The path behind symbolic links: replacing a link by a file would surprise. Itself where there is no such file yet.
std::string BehindLinks(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

// A new file in the folder of `target`, opened for writing.
int OpenBeside(const std::string& path, const std::string& target, std::string* name) {
  static std::atomic<uint64_t> counter{0};
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  while (true) {
    // Not derived from the target's name, which may already be as long as a name can be.
    *name = absl::StrCat(folder, ".addend-", ::getpid(), "-", counter.fetch_add(1), ".tmp");
    const int fd = ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) throw FileError("write", path, errno);
  }
}

}  // namespace

const at::Tensor* TensorFile::Find(const std::string& name) const {
  for (const auto& entry : tensors) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

TensorFile DecodeTensorFile(const std::string& bytes, const std::string& name) {
  if (bytes.compare(0, kNpyMagicSize, kNpyMagic) == 0) return DecodeNpy(bytes, name);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), std::min(bytes.size(), kLengthSize));
  if (LooksLikeSafetensors(bytes, header_size)) return DecodeSafetensors(bytes, name, header_size);
  throw Malformed(name, absl::StrCat("a .npy or .safetensors file is expected, and these ", bytes.size(),
                                     " bytes are neither (or are truncated)"));
}

std::string ReadFileWhole(const std::string& path) {
  size_t size = 0;
  const Descriptor file(Open(path, &size));
  std::string bytes;
  bytes.reserve(size);
  ReadPieces(path, file.get(), [&](const char* data, size_t count) { bytes.append(data, count); });
  return bytes;
}

TensorFile ReadTensorFile(const std::string& path) { return DecodeTensorFile(ReadFileWhole(path), path); }

std::string TensorFile::Names() const {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
}

TensorPlace ParseTensorPlace(const std::string& text) {
  const size_t hash = text.rfind('#');
  struct stat status = {};
  if (hash == std::string::npos || stat(text.c_str(), &status) == 0) return {text, ""};
  return {text.substr(0, hash), text.substr(hash + 1)};
}

const std::pair<std::string, at::Tensor>& SelectTensor(const TensorFile& file, const TensorPlace& place,
                                                       const std::vector<std::string>& usual) {
  std::vector<std::string> names = usual;
  if (!place.tensor.empty()) names = {place.tensor};
  for (const std::string& name : names) {
    for (const auto& entry : file.tensors) {
      if (entry.first == name) return entry;
    }
  }
  if (!place.tensor.empty()) {
    throw InvalidArgument(absl::StrCat(place.path, " has no tensor ", place.tensor, "; it has ", file.Names()));
  }
  if (file.tensors.empty()) throw InvalidArgument(absl::StrCat(place.path, " holds no tensor"));
  if (file.tensors.size() > 1) {
    throw InvalidArgument(absl::StrCat(place.path, " holds several tensors (", file.Names(), ") and none is called ",
                                       usual.front(), "; say which with ", place.path, "#NAME"));
  }
  return file.tensors.front();
}

std::string EncodeSafetensors(const TensorFile& file) {
  struct Stored {
    const std::string* name;
    const Dtype* dtype;
    at::Tensor tensor;
  };
  std::vector<Stored> stored;
  for (const auto& entry : file.tensors) {
    if (entry.first == kMetadataKey) throw InvalidArgument("no tensor may be named __metadata__; rename it");
    stored.push_back({&entry.first, nullptr, at::Tensor()});
    stored.back().tensor = Storable(entry.first, entry.second, &stored.back().dtype);
  }
  std::stable_sort(stored.begin(), stored.end(),
                   [](const Stored& a, const Stored& b) { return a.dtype->size > b.dtype->size; });

  Json header = Json::object();
  if (!file.metadata.empty()) header[kMetadataKey] = file.metadata;
  uint64_t offset = 0;
  for (const Stored& entry : stored) {
    if (header.contains(*entry.name)) {
      throw InvalidArgument(absl::StrCat("two tensors are named ", Printable(*entry.name), "; rename one"));
    }
    const uint64_t end = offset + static_cast<uint64_t>(entry.tensor.numel() * entry.dtype->size);
    header[*entry.name] = {
        {"dtype", entry.dtype->safetensors}, {"shape", entry.tensor.sizes().vec()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw InvalidArgument("names of tensors and metadata must be UTF-8 to be saved");
  }
  text.append((kLengthSize - text.size() % kLengthSize) % kLengthSize, ' ');

  const uint64_t header_size = text.size();
  std::string bytes;
  bytes.reserve(kLengthSize + text.size() + offset);
  bytes.append(reinterpret_cast<const char*>(&header_size), kLengthSize);
  bytes.append(text);
  for (const Stored& entry : stored) {
    const auto size = static_cast<size_t>(entry.tensor.numel() * entry.dtype->size);
    if (size > 0) bytes.append(static_cast<const char*>(entry.tensor.data_ptr()), size);
  }
  return bytes;
}

void WriteTensorFile(const std::string& path, const TensorFile& file) {
  std::string bytes;
  try {
    bytes = EncodeSafetensors(file);
  } catch (const Error& error) {
    throw Error(error.code(), absl::StrCat("cannot write ", path, ": ", error.what()));
  }
  WriteFileWhole(path, bytes);
}

void WriteFileWhole(const std::string& path, const std::string& bytes) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && (!S_ISREG(status.st_mode) || absl::StartsWith(path, "/dev/") || absl::StartsWith(path, "/proc/"))) {
    return WriteDirectly(path, bytes);
  }
  // A rename asks only the folder for permission; a file that is protected should stay as it is.
  if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) throw FileError("write", path, errno);

  const std::string target = BehindLinks(path);
  std::string temporary;
  Descriptor file(OpenBeside(path, target, &temporary));
  int error = WriteAll(file.get(), bytes);
  // Keeps who may read the file; where that fails, the new file has the usual permissions.
  if (error == 0 && exists && ::fchmod(file.get(), status.st_mode & 0777) != 0) errno = 0;
  if (!file.Close() && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    throw FileError("write", path, error);
  }
}

std::string Sha256OfFile(const std::string& path) {
  const Descriptor file(Open(path));
  Sha256Digest digest;
  ReadPieces(path, file.get(), [&](const char* data, size_t size) { digest.Add(data, size); });
  return digest.Hex();
}

}  // namespace addend
