// How exactly LibTorch multiplies float32, which settings of the process say.
//
// Note [Reduced precision]
// On a GPU, matrices of float32 may be multiplied in TF32, which keeps 11 of 24 binary digits of each factor; LibTorch
// does so for convolutions and recurrent networks unless told otherwise, and for products of matrices if told to. On a
// CPU that has instructions for it, they may be multiplied in bfloat16, which keeps 8. A factor is rounded by half a
// unit in its last place, a product of two therefore by 2^-11 + 2^-11 (TF32) or 2^-8 + 2^-8 (bfloat16) of its size at
// most. Parts and values are such sums of products, of different factors, so that they differ by as much of the
// magnitudes that were summed. Nothing of this is seen in dtypes: it is told, and taken for the tolerance where the
// user chose none. Settings are never changed.
#ifndef ADDEND_CORE_RULES_PRECISION_H_
#define ADDEND_CORE_RULES_PRECISION_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>

namespace addend {

// Which setting says how an operator multiplies float32.
enum class Products {
  kNone,         // none: it multiplies nothing, or element by element
  kMatmul,       // that of products of matrices
  kConvolution,  // that of convolutions and recurrent networks
};

enum class ReducedPrecision { kTf32, kBfloat16 };

// The precision in which an operator on such a device may multiply numbers of a dtype; none if it is the dtype itself.
std::optional<ReducedPrecision> PrecisionOf(Products products, const at::Device& device, at::ScalarType dtype);
// How far parts may be from values, relative to the magnitudes that were summed.
double ToleranceIn(ReducedPrecision precision);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_PRECISION_H_
