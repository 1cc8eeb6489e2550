// C++ operators on compositions: arithmetic gives compositions, comparisons give bools computed from values. The other
// side may be a composition, a tensor or a number.
#ifndef ADDEND_CORE_EAGER_COMPOSITION_OPERATORS_H_
#define ADDEND_CORE_EAGER_COMPOSITION_OPERATORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include "core/composition/composition.h"

namespace addend {

Composition operator+(const Composition& x);
Composition operator-(const Composition& x);

Composition operator+(const Composition& x, const Composition& y);
Composition operator+(const Composition& x, const at::Tensor& y);
Composition operator+(const at::Tensor& x, const Composition& y);
Composition operator+(const Composition& x, const at::Scalar& y);
Composition operator+(const at::Scalar& x, const Composition& y);

Composition operator-(const Composition& x, const Composition& y);
Composition operator-(const Composition& x, const at::Tensor& y);
Composition operator-(const at::Tensor& x, const Composition& y);
Composition operator-(const Composition& x, const at::Scalar& y);
Composition operator-(const at::Scalar& x, const Composition& y);

Composition operator*(const Composition& x, const Composition& y);
Composition operator*(const Composition& x, const at::Tensor& y);
Composition operator*(const at::Tensor& x, const Composition& y);
Composition operator*(const Composition& x, const at::Scalar& y);
Composition operator*(const at::Scalar& x, const Composition& y);

Composition operator/(const Composition& x, const Composition& y);
Composition operator/(const Composition& x, const at::Tensor& y);
Composition operator/(const at::Tensor& x, const Composition& y);
Composition operator/(const Composition& x, const at::Scalar& y);
Composition operator/(const at::Scalar& x, const Composition& y);

Composition& operator+=(Composition& x, const TensorOrComposition& y);
Composition& operator+=(Composition& x, const at::Scalar& y);
Composition& operator-=(Composition& x, const TensorOrComposition& y);
Composition& operator-=(Composition& x, const at::Scalar& y);
Composition& operator*=(Composition& x, const TensorOrComposition& y);
Composition& operator*=(Composition& x, const at::Scalar& y);
Composition& operator/=(Composition& x, const TensorOrComposition& y);
Composition& operator/=(Composition& x, const at::Scalar& y);

#define ADDEND_COMPARISON(op, method, mirrored)                                                      \
  inline at::Tensor operator op(const Composition& x, const Composition& y) { return x.method(y); }  \
  inline at::Tensor operator op(const Composition& x, const at::Tensor& y) { return x.method(y); }   \
  inline at::Tensor operator op(const at::Tensor& x, const Composition& y) { return y.mirrored(x); } \
  inline at::Tensor operator op(const Composition& x, const at::Scalar& y) { return x.method(y); }   \
  inline at::Tensor operator op(const at::Scalar& x, const Composition& y) { return y.mirrored(x); }
ADDEND_COMPARISON(==, eq, eq)
ADDEND_COMPARISON(!=, ne, ne)
ADDEND_COMPARISON(<, lt, gt)
ADDEND_COMPARISON(<=, le, ge)
ADDEND_COMPARISON(>, gt, lt)
ADDEND_COMPARISON(>=, ge, le)
#undef ADDEND_COMPARISON

}  // namespace addend

#endif  // ADDEND_CORE_EAGER_COMPOSITION_OPERATORS_H_
