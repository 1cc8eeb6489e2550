#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {

void RegisterAttention(OperatorTable& /*table*/) {}

}  // namespace addend::onnx
