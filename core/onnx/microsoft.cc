#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {

void RegisterMicrosoft(OperatorTable& /*table*/) {}

}  // namespace addend::onnx
