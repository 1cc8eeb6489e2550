#include "core/program/geometry.h"

#include <cstddef>

namespace addend {

int64_t Geometry::numel() const {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

bool Geometry::CoversWhole(int64_t storage_numel) const {
  if (offset != 0) return false;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return expected == storage_numel;
}

bool Continuous(at::ScalarType dtype) { return at::isFloatingType(dtype) || at::isComplexType(dtype); }

at::ScalarType RowDtype(at::ScalarType dtype) {
  if (at::isComplexType(dtype)) return dtype == at::kComplexDouble ? at::kComplexDouble : at::kComplexFloat;
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

at::ScalarType RealDtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kComplexDouble:
      return at::kDouble;
    case at::kComplexFloat:
      return at::kFloat;
    case at::kComplexHalf:
      return at::kHalf;
    default:
      return dtype;
  }
}

bool IsHalf(at::ScalarType dtype) {
  const at::ScalarType real = RealDtype(dtype);
  return real == at::kHalf || real == at::kBFloat16;
}

bool SameNumbers(at::ScalarType storage, at::ScalarType view) { return RealDtype(storage) == RealDtype(view); }

}  // namespace addend
