#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {

void RegisterSignal(OperatorTable& /*table*/) {}

}  // namespace addend::onnx
