// Places of a tensor's elements in its storage, and the dtypes of its rows.
#ifndef ADDEND_CORE_PROGRAM_GEOMETRY_H_
#define ADDEND_CORE_PROGRAM_GEOMETRY_H_

#include <c10/core/ScalarType.h>
#include <c10/util/DimVector.h>

#include <cstdint>

namespace addend {

// Place of a tensor in its storage. Strides and offset count elements.
struct Geometry {
  c10::DimVector sizes;
  c10::DimVector strides;
  int64_t offset = 0;

  int64_t numel() const;
  // True for a contiguous tensor that covers a storage of `storage_numel` elements from its start to its end.
  bool CoversWhole(int64_t storage_numel) const;
  bool operator==(const Geometry& other) const {
    return offset == other.offset && sizes == other.sizes && strides == other.strides;
  }
};

// Whether a dtype is floating-point or complex: its numbers move, so that rows can follow them.
bool Continuous(at::ScalarType dtype);
// The dtype of a tensor's rows: its own, but float32 for half types.
at::ScalarType RowDtype(at::ScalarType dtype);
// The dtype of the real part: float32 for complex64; real dtypes as they are.
at::ScalarType RealDtype(at::ScalarType dtype);
// Whether numbers of a dtype, or the parts of complex ones, have 16 bits.
bool IsHalf(at::ScalarType dtype);
// Whether a tensor of dtype `view` may lie in a storage of dtype `storage` without its bytes getting another meaning:
// of the same dtype, or complex numbers seen as pairs of real ones, or the reverse.
bool SameNumbers(at::ScalarType storage, at::ScalarType view);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_GEOMETRY_H_
