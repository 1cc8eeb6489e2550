#include "core/rules/precision.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>

namespace addend {
namespace {

bool AllowsTf32(Products products) {
  // CUDA's libraries obey this variable before anything else.
  const char* override = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (override != nullptr && std::strcmp(override, "0") == 0) return false;
  try {
    const at::Context& settings = at::globalContext();
    return products == Products::kConvolution ? settings.allowTF32CuDNN() : settings.allowTF32CuBLAS();
  } catch (const c10::Error&) {
    return true;  // settings of an older and a newer kind that contradict each other
  }
}

bool AllowsBfloat16() {
  try {
    return at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace

std::optional<ReducedPrecision> PrecisionOf(Products products, const at::Device& device, at::ScalarType dtype) {
  if (products == Products::kNone || (dtype != at::kFloat && dtype != at::kComplexFloat)) return std::nullopt;
  if (device.is_cuda() && AllowsTf32(products)) return ReducedPrecision::kTf32;
  if (device.is_cpu() && products == Products::kMatmul && AllowsBfloat16()) return ReducedPrecision::kBfloat16;
  return std::nullopt;
}

double ToleranceIn(ReducedPrecision precision) { return precision == ReducedPrecision::kTf32 ? 1e-3 : 1e-2; }

}  // namespace addend
