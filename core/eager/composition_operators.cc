#include "core/eager/composition_operators.h"

#include <ATen/ops/scalar_tensor.h>

#include "core/eager/composition_ops.h"

namespace addend {
namespace {

// A number as a tensor that leaves dtypes as they are.
at::Tensor LikeValueOf(const at::Scalar& number, const Composition& composition) {
  return at::scalar_tensor(number, at::TensorOptions().dtype(composition.dtype()).device(composition.device()));
}

}  // namespace

Composition operator+(const Composition& x) { return x; }
Composition operator-(const Composition& x) { return x.neg(); }

Composition operator+(const Composition& x, const Composition& y) { return x.add(y); }
Composition operator+(const Composition& x, const at::Tensor& y) { return x.add(y); }
Composition operator+(const at::Tensor& x, const Composition& y) { return add(x, y); }
Composition operator+(const Composition& x, const at::Scalar& y) { return x.add(y); }
Composition operator+(const at::Scalar& x, const Composition& y) { return y.add(x); }

Composition operator-(const Composition& x, const Composition& y) { return x.sub(y); }
Composition operator-(const Composition& x, const at::Tensor& y) { return x.sub(y); }
Composition operator-(const at::Tensor& x, const Composition& y) { return sub(x, y); }
Composition operator-(const Composition& x, const at::Scalar& y) { return x.sub(y); }
Composition operator-(const at::Scalar& x, const Composition& y) { return y.rsub(x); }

Composition operator*(const Composition& x, const Composition& y) { return x.mul(y); }
Composition operator*(const Composition& x, const at::Tensor& y) { return x.mul(y); }
Composition operator*(const at::Tensor& x, const Composition& y) { return mul(x, y); }
Composition operator*(const Composition& x, const at::Scalar& y) { return x.mul(y); }
Composition operator*(const at::Scalar& x, const Composition& y) { return y.mul(x); }

Composition operator/(const Composition& x, const Composition& y) { return x.div(y); }
Composition operator/(const Composition& x, const at::Tensor& y) { return x.div(y); }
Composition operator/(const at::Tensor& x, const Composition& y) { return div(x, y); }
Composition operator/(const Composition& x, const at::Scalar& y) { return x.div(y); }
Composition operator/(const at::Scalar& x, const Composition& y) { return div(LikeValueOf(x, y), y); }

Composition& operator+=(Composition& x, const TensorOrComposition& y) { return x.add_(y); }
Composition& operator+=(Composition& x, const at::Scalar& y) { return x.add_(y); }
Composition& operator-=(Composition& x, const TensorOrComposition& y) { return x.sub_(y); }
Composition& operator-=(Composition& x, const at::Scalar& y) { return x.sub_(y); }
Composition& operator*=(Composition& x, const TensorOrComposition& y) { return x.mul_(y); }
Composition& operator*=(Composition& x, const at::Scalar& y) { return x.mul_(y); }
Composition& operator/=(Composition& x, const TensorOrComposition& y) { return x.div_(y); }
Composition& operator/=(Composition& x, const at::Scalar& y) { return x.div_(y); }

}  // namespace addend
