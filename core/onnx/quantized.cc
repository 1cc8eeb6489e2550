#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {

void RegisterQuantized(OperatorTable& /*table*/) {}

}  // namespace addend::onnx
