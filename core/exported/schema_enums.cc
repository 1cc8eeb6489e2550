#include "core/exported/schema_enums.h"

#include <cstdint>
#include <exception>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace addend::exported {
namespace {

struct NumberedName {
  int64_t number;
  const char* name;  // of c10
};

constexpr NumberedName kDtypes[] = {
    {1, "Byte"},
    {2, "Char"},
    {3, "Short"},
    {4, "Int"},
    {5, "Long"},
    {6, "Half"},
    {7, "Float"},
    {8, "Double"},
    {9, "ComplexHalf"},
    {10, "ComplexFloat"},
    {11, "ComplexDouble"},
    {12, "Bool"},
    {13, "BFloat16"},
    {28, "UInt16"},
    {29, "Float8_e4m3fn"},
    {30, "Float8_e5m2"},
    {31, "Float8_e4m3fnuz"},
    {32, "Float8_e5m2fnuz"},
    {33, "Float8_e8m0fnu"},
    {34, "UInt32"},
    {35, "UInt64"},
};

constexpr c10::Layout kLayouts[] = {
    c10::Layout::Sparse,    c10::Layout::SparseCsr, c10::Layout::SparseCsc, c10::Layout::SparseBsr,
    c10::Layout::SparseBsc, c10::Layout::Mkldnn,    c10::Layout::Strided,
};

constexpr c10::MemoryFormat kMemoryFormats[] = {
    c10::MemoryFormat::Contiguous,
    c10::MemoryFormat::ChannelsLast,
    c10::MemoryFormat::ChannelsLast3d,
    c10::MemoryFormat::Preserve,
};

}  // namespace

c10::ScalarType DtypeCalled(absl::string_view name, absl::string_view said, const std::string& place) {
  for (int t = 0; t < static_cast<int>(c10::ScalarType::Undefined); ++t) {
    const auto type = static_cast<c10::ScalarType>(t);
    if (name == c10::toString(type)) return type;
  }
  throw Unimplemented(absl::StrCat(place, ": the dtype ", said, " is not known to this LibTorch"));
}

c10::ScalarType ReadDtype(JsonReader& json) {
  const int64_t number = json.Integer();
  for (const NumberedName& dtype : kDtypes) {
    if (dtype.number == number) return DtypeCalled(dtype.name, dtype.name, json.Place());
  }
  json.Fail(absl::StrCat(number, " is no dtype of the schema"));
}

// The schema counts both from 1; 0 is unknown.
c10::Layout ReadLayout(JsonReader& json) {
  const int64_t number = json.Integer();
  if (number < 1 || number > static_cast<int64_t>(std::size(kLayouts))) {
    json.Fail(absl::StrCat(number, " is no layout of the schema"));
  }
  return kLayouts[number - 1];
}

c10::MemoryFormat ReadMemoryFormat(JsonReader& json) {
  const int64_t number = json.Integer();
  if (number < 1 || number > static_cast<int64_t>(std::size(kMemoryFormats))) {
    json.Fail(absl::StrCat(number, " is no memory format of the schema"));
  }
  return kMemoryFormats[number - 1];
}

c10::Device ReadDevice(JsonReader& json) {
  std::string text;
  json.Object([&](const std::string& key) {
    if (key == "type") {
      text = absl::StrCat(json.String(), text);
    } else if (key == "index") {
      if (json.Next() == JsonReader::Kind::kNull) return json.Null();
      const int64_t index = json.Integer();
      if (index >= 0) absl::StrAppend(&text, ":", index);
    } else {
      json.SkipUnknown(key);
    }
  });
  try {
    return c10::Device(text);
  } catch (const std::exception&) {
    json.Fail(absl::StrCat("\"", OneLine(text.substr(0, 100)), "\" is no device that this LibTorch knows"));
  }
}

}  // namespace addend::exported
