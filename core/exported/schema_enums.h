// Dtypes, layouts, memory formats and devices, as torch/_export/serde/schema.py writes them. Its numbers are not those
// of c10.
#ifndef ADDEND_CORE_EXPORTED_SCHEMA_ENUMS_H_
#define ADDEND_CORE_EXPORTED_SCHEMA_ENUMS_H_

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <string>

#include "absl/strings/string_view.h"
#include "core/exported/json_reader.h"

namespace addend::exported {

// The dtype that c10 calls `name`: numbers beyond the oldest were given to other dtypes as LibTorch grew. Throws
// Unimplemented, at `place`, with what the file said, where this LibTorch lacks it.
c10::ScalarType DtypeCalled(absl::string_view name, absl::string_view said, const std::string& place);

// Each throws InvalidArgument for what the schema lacks, and Unimplemented for a dtype that LibTorch lacks here.
c10::ScalarType ReadDtype(JsonReader& json);
c10::Layout ReadLayout(JsonReader& json);
c10::MemoryFormat ReadMemoryFormat(JsonReader& json);
c10::Device ReadDevice(JsonReader& json);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_SCHEMA_ENUMS_H_
