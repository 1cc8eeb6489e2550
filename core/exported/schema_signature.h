// Meaning of the inputs and outputs of an exported program's graph.
#ifndef ADDEND_CORE_EXPORTED_SCHEMA_SIGNATURE_H_
#define ADDEND_CORE_EXPORTED_SCHEMA_SIGNATURE_H_

#include "core/exported/json_reader.h"
#include "core/exported/program.h"

namespace addend::exported {

InputSpec ReadInputSpec(JsonReader& json);
OutputSpec ReadOutputSpec(JsonReader& json);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_SCHEMA_SIGNATURE_H_
