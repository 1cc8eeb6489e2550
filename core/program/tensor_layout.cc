#include "core/program/tensor_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/read_json.h"
#include "core/base/tensor_text.h"
#include "core/base/text.h"

// Both formats store little-endian numbers, and their lengths are read as they are.
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor_layout.cc needs a little-endian machine"
#endif

namespace addend {
namespace {

using SortedJson = nlohmann::json;

constexpr char kNpyMagic[] = "\x93NUMPY";
constexpr size_t kNpyMagicSize = 6;
// Largest header that the reference implementation of the format accepts.
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
// Largest number of dimensions that LibTorch's iterators accept.
constexpr size_t kMaxDims = 64;

constexpr StoredDtype kDtypes[] = {
    {at::kDouble, 8, "f8", "F64"},  {at::kFloat, 4, "f4", "F32"}, {at::kHalf, 2, "f2", "F16"},
    {at::kBFloat16, 2, "", "BF16"}, {at::kLong, 8, "i8", "I64"},  {at::kInt, 4, "i4", "I32"},
    {at::kShort, 2, "i2", "I16"},   {at::kChar, 1, "i1", "I8"},   {at::kByte, 1, "u1", "U8"},
    {at::kBool, 1, "b1", "BOOL"},
};

std::string NameOf(const std::string& file, const std::string& tensor) {
  return absl::StrCat(file, ": tensor ", PrintableName(tensor));
}

// Bytes that a tensor takes. Counts a dimension of size 0 as 1 in the check: strides must not overflow either.
int64_t ByteSize(const std::string& name, const std::vector<int64_t>& shape, int64_t item) {
  if (shape.size() > kMaxDims) {
    throw MalformedFile(name, absl::StrCat(shape.size(), " dimensions; at most ", kMaxDims, " are supported"));
  }
  int64_t bound = item;
  int64_t size = item;
  for (const int64_t dim : shape) {
    if (dim < 0) throw MalformedFile(name, absl::StrCat("shape ", ShapeText(shape), " has a negative size"));
    if (dim > 0 && bound > std::numeric_limits<int64_t>::max() / dim) {
      throw MalformedFile(name, absl::StrCat("shape ", ShapeText(shape), " is too large for any memory"));
    }
    bound *= std::max<int64_t>(dim, 1);
    size *= dim;
  }
  return size;
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
    throw MalformedFile(name_, absl::StrCat("the .npy header is malformed: ", what));
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
      if (!seen.insert(key).second) Fail(absl::StrCat("'", PrintableName(key), "' occurs twice"));
      Expect(':');
      if (key == "descr") {
        SkipSpace();
        if (at_ != end_ && *at_ == '[') {
          throw MalformedFile(name_, "records (structured dtypes) are not supported; save one plain array");
        }
        descr_ = String();
      } else if (key == "fortran_order") {
        fortran_order_ = Bool();
      } else if (key == "shape") {
        shape_ = Tuple();
      } else {
        Fail(absl::StrCat("'", PrintableName(key), "' is unknown"));
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

const StoredDtype& NpyDtype(const std::string& name, const std::string& descr) {
  const std::string code = descr.empty() ? descr : descr.substr(1);
  if (absl::StartsWith(code, "O")) {
    throw MalformedFile(name, "pickled Python objects are not supported; save an array of numbers");
  }
  for (const StoredDtype& dtype : kDtypes) {
    if (code.empty() || code != dtype.npy) continue;
    if (descr[0] == '<' || (descr[0] == '|' && dtype.size == 1)) return dtype;
    if (descr[0] == '>') {
      throw MalformedFile(name, absl::StrCat("big-endian data (", descr, ") is not supported; save it as <", code));
    }
  }
  throw MalformedFile(name, absl::StrCat("dtype ", PrintableName(descr),
                                         " is not supported; use one of f2, f4, f8, i1, i2, i4, i8, u1, b1"));
}

TensorLayout NpyLayout(const std::string& head, uint64_t file_size, const std::string& name) {
  const auto truncated = [&] {
    return MalformedFile(name, absl::StrCat("truncated .npy file of ", file_size, " bytes"));
  };
  if (file_size < kNpyMagicSize + 2) throw truncated();
  const int major = static_cast<unsigned char>(head[kNpyMagicSize]);
  if (major < 1 || major > 3) {
    throw MalformedFile(name, absl::StrCat(".npy format version ", major, " is not supported; use version 1, 2 or 3"));
  }
  const size_t length_size = major == 1 ? 2 : 4;
  const size_t header_begin = kNpyMagicSize + 2 + length_size;
  if (file_size < header_begin) throw truncated();
  uint32_t header_size = 0;
  std::memcpy(&header_size, head.data() + kNpyMagicSize + 2, length_size);
  if (header_size > file_size - header_begin) {
    throw MalformedFile(name, absl::StrCat("truncated .npy file: a header of ", header_size, " bytes in a file of ",
                                           file_size, " bytes"));
  }
  const NpyHeader header(name, head.data() + header_begin, header_size);
  const StoredDtype& dtype = NpyDtype(name, header.descr());
  const int64_t size = ByteSize(name, header.shape(), dtype.size);
  const size_t data_begin = header_begin + header_size;
  const auto available = static_cast<int64_t>(file_size - data_begin);
  if (size != available) {
    throw MalformedFile(
        name, absl::StrCat(size > available ? "truncated .npy file: " : "", "shape ", ShapeText(header.shape()), " of ",
                           header.descr(), " takes ", size, " bytes, but ", available, " follow the header"));
  }
  StoredTensor stored;
  stored.place = name;
  stored.dtype = &dtype;
  stored.shape = header.shape();
  stored.fortran_order = header.fortran_order();
  stored.begin = data_begin;
  stored.end = data_begin + static_cast<uint64_t>(size);
  TensorLayout layout;
  layout.tensors.push_back(std::move(stored));
  return layout;
}

// -------------------------------------------------------------------------------------------------- .safetensors

SortedJson ParseJson(const std::string& name, const char* begin, const char* end) {
  SortedJson json = SortedJson::parse(begin, end, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    throw MalformedFile(name, "the .safetensors header is not a JSON object");
  }
  // The value keeps the last of the two, which would hide a tensor.
  if (const auto key = KeyTwice(begin, end)) {
    const std::string twice = SortedJson(Shortened(*key, kMostQuoted)).dump(-1, ' ', true);
    throw MalformedFile(name, absl::StrCat("the .safetensors header has ", twice, " twice"));
  }
  return json;
}

// Its bytes are counted from the end of the header.
StoredTensor ParseEntry(const std::string& file, const std::string& key, const SortedJson& json) {
  const std::string name = NameOf(file, key);
  const auto member = [&](const char* field) -> const SortedJson& {
    const auto found = json.is_object() ? json.find(field) : json.end();
    if (!json.is_object() || found == json.end()) throw MalformedFile(name, absl::StrCat(field, " is missing"));
    return *found;
  };
  StoredTensor entry;
  entry.name = key;
  entry.place = name;

  const SortedJson& dtype = member("dtype");
  for (const StoredDtype& candidate : kDtypes) {
    if (dtype == candidate.safetensors) entry.dtype = &candidate;
  }
  if (entry.dtype == nullptr) {
    const std::string shown = Quoted(dtype.dump(-1, ' ', true));
    throw MalformedFile(name, absl::StrCat("dtype ", shown, " is not supported; use one of ",
                                           absl::StrJoin(kDtypes, ", ", [](std::string* out, const StoredDtype& d) {
                                             out->append(d.safetensors);
                                           })));
  }

  const SortedJson& shape = member("shape");
  if (!shape.is_array()) throw MalformedFile(name, "shape is not a list");
  for (const SortedJson& dim : shape) {
    if (!dim.is_number_integer()) throw MalformedFile(name, "shape is not a list of integers");
    // The library keeps what is negative as signed and everything else as unsigned.
    if (dim.is_number_unsigned() && dim.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw MalformedFile(name,
                          absl::StrCat("shape with a size of ", dim.get<uint64_t>(), " is too large for any memory"));
    }
    entry.shape.push_back(dim.get<int64_t>());
  }

  const SortedJson& offsets = member("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    throw MalformedFile(name, "data_offsets is not a list of two integers that are not negative");
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  return entry;
}

void CheckOffsets(const std::string& file, const std::vector<StoredTensor>& entries, uint64_t data_size) {
  uint64_t covered = 0;
  const StoredTensor* last = nullptr;
  for (const StoredTensor& entry : entries) {
    const std::string& name = entry.place;
    const std::string offsets = absl::StrCat("data_offsets [", entry.begin, ", ", entry.end, "]");
    if (entry.begin > entry.end) throw MalformedFile(name, absl::StrCat(offsets, " end before they begin"));
    if (entry.end > data_size) {
      throw MalformedFile(name, absl::StrCat("truncated file: ", offsets, " exceed the ", data_size, " bytes of data"));
    }
    const int64_t size = ByteSize(name, entry.shape, entry.dtype->size);
    if (static_cast<uint64_t>(size) != entry.end - entry.begin) {
      throw MalformedFile(
          name, absl::StrCat(offsets, " hold ", entry.end - entry.begin, " bytes, but shape ", ShapeText(entry.shape),
                             " of ", entry.dtype->safetensors, " takes ", size));
    }
    if (entry.begin < covered)
      throw MalformedFile(name, absl::StrCat(offsets, " overlap tensor ", PrintableName(last->name)));
    if (entry.begin > covered) {
      throw MalformedFile(name, absl::StrCat(offsets, " leave a gap: the data before end at ", covered));
    }
    covered = entry.end;
    last = &entry;
  }
  if (covered != data_size) {
    throw MalformedFile(file,
                        absl::StrCat("the tensors end at ", covered, ", but there are ", data_size, " bytes of data"));
  }
}

bool LooksLikeSafetensors(const std::string& head, uint64_t size, uint64_t header_size) {
  if (size <= kSafetensorsLength || header_size == 0) return false;
  // A wrong length before a JSON object is a damaged file; text and archives have neither.
  return head[kSafetensorsLength] == '{' || header_size <= size - kSafetensorsLength;
}

// Size of the header of .safetensors, from the first bytes of the file.
uint64_t HeaderSize(const std::string& head) {
  uint64_t size = 0;
  std::memcpy(&size, head.data(), std::min(head.size(), kSafetensorsLength));
  return size;
}

// Names the format of a file that is not read here, by how it begins, and says what to do about it.
const char* OtherFormat(const std::string& head) {
  struct Format {
    absl::string_view beginning;
    const char* what;
  };
  constexpr Format kFormats[] = {
      {"GIF8", "a GIF image; save it as PNG"},
      {"II*", "a TIFF image; save it as PNG"},
      {"MM", "a TIFF image; save it as PNG"},
      {"BM", "a BMP image; save it as PNG"},
      {"RIFF", "a WebP image or a sound; save images as PNG"},
      {"PK", "a zip archive, as .npz and files of torch.save are; save each array as .npy, or all as .safetensors"},
      {"\x89HDF", "an HDF5 file; save its arrays as .safetensors"},
      {"\x1f\x8b", "compressed by gzip; unpack it"},
      {"\x80\x02", "a pickle of Python; save its arrays as .safetensors"},
      {"\x80\x04", "a pickle of Python; save its arrays as .safetensors"},
      {"\x89PNG", "a PNG image, which only the command line reads; save its pixels as .npy"},
      {"\xff\xd8\xff", "a JPEG image, which only the command line reads; save its pixels as .npy"},
  };
  for (const Format& format : kFormats) {
    if (absl::StartsWith(head, format.beginning)) return format.what;
  }
  return "neither (or are truncated)";
}

bool IsNpy(const std::string& head) { return head.compare(0, kNpyMagicSize, kNpyMagic) == 0; }

TensorLayout SafetensorsLayout(const std::string& head, uint64_t size, const std::string& name) {
  const uint64_t header_size = HeaderSize(head);
  const uint64_t available = size - kSafetensorsLength;
  if (header_size > kMaxSafetensorsHeader) {
    throw MalformedFile(name, absl::StrCat("the .safetensors header is too large: ", header_size, " bytes; at most ",
                                           kMaxSafetensorsHeader, " are supported"));
  }
  if (header_size > available) {
    throw MalformedFile(name, absl::StrCat("truncated .safetensors file: a header of ", header_size,
                                           " bytes, of which ", available, " are there"));
  }
  const char* header = head.data() + kSafetensorsLength;
  const SortedJson json = ParseJson(name, header, header + header_size);
  TensorLayout layout;
  std::vector<StoredTensor>& entries = layout.tensors;
  for (const auto& item : json.items()) {
    if (item.key() != kSafetensorsMetadata) {
      entries.push_back(ParseEntry(name, item.key(), item.value()));
      continue;
    }
    if (!item.value().is_object()) throw MalformedFile(name, "__metadata__ is not a JSON object");
    for (const auto& pair : item.value().items()) {
      if (!pair.value().is_string()) {
        throw MalformedFile(name, absl::StrCat("__metadata__ ", PrintableName(pair.key()), " is not a string"));
      }
      layout.metadata[pair.key()] = pair.value().get<std::string>();
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  CheckOffsets(name, entries, available - header_size);
  const uint64_t data = kSafetensorsLength + header_size;
  for (StoredTensor& entry : entries) {
    entry.begin += data;
    entry.end += data;
  }
  return layout;
}

}  // namespace

std::string PrintableName(const std::string& text) { return absl::Utf8SafeCEscape(Shortened(text, kMostQuoted)); }

Error MalformedFile(const std::string& name, const std::string& what) {
  return InvalidArgument(absl::StrCat(name, ": ", what));
}

const StoredDtype* FindStoredDtype(at::ScalarType type) {
  for (const StoredDtype& dtype : kDtypes) {
    if (dtype.type == type) return &dtype;
  }
  return nullptr;
}

uint64_t HeadSize(const std::string& beginning, uint64_t size) {
  if (IsNpy(beginning)) {
    const bool first = beginning.size() > kNpyMagicSize && beginning[kNpyMagicSize] == 1;
    const size_t length_size = first ? 2 : 4;
    const size_t length_at = kNpyMagicSize + 2;
    if (beginning.size() < length_at + length_size) return size;
    uint32_t header_size = 0;
    std::memcpy(&header_size, beginning.data() + length_at, length_size);
    return std::min<uint64_t>(size, length_at + length_size + header_size);
  }
  const uint64_t header_size = HeaderSize(beginning);
  if (!LooksLikeSafetensors(beginning, size, header_size)) return 0;
  return std::min(size, kSafetensorsLength + std::min(header_size, kMaxSafetensorsHeader));
}

std::string EncodeSafetensorsHead(const TensorLayout& layout) {
  SortedJson header = SortedJson::object();
  if (!layout.metadata.empty()) header[kSafetensorsMetadata] = layout.metadata;
  uint64_t offset = 0;
  for (const StoredTensor& stored : layout.tensors) {
    if (stored.name == kSafetensorsMetadata) throw InvalidArgument("no tensor may be named __metadata__; rename it");
    if (header.contains(stored.name)) {
      throw InvalidArgument(absl::StrCat("two tensors are named ", PrintableName(stored.name), "; rename one"));
    }
    const uint64_t end = offset + static_cast<uint64_t>(ByteSize(stored.name, stored.shape, stored.dtype->size));
    header[stored.name] = {
        {"dtype", stored.dtype->safetensors}, {"shape", stored.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const SortedJson::exception&) {
    throw InvalidArgument("names of tensors and metadata must be UTF-8 to be saved");
  }
  text.append((kSafetensorsLength - text.size() % kSafetensorsLength) % kSafetensorsLength, ' ');
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), kSafetensorsLength) + text;
}

TensorLayout ReadTensorLayout(const std::string& head, uint64_t size, const std::string& name) {
  if (IsNpy(head)) return NpyLayout(head, size, name);
  if (LooksLikeSafetensors(head, size, HeaderSize(head))) return SafetensorsLayout(head, size, name);
  throw MalformedFile(name, absl::StrCat("a .npy or .safetensors file is expected, and these ", size, " bytes are ",
                                         OtherFormat(head)));
}

}  // namespace addend
