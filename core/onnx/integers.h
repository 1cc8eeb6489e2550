// Integers of quantized models, as numbers that components can pass; see Note [Integers as floats] in datum.h.
//
// Note [Grids as conditions]
// A model that is quantized while it runs finds the grid for its numbers, a scale and a zero point, in their least and
// greatest. By the rules these two numbers would get a part of all others' contributions. Grids that descend from an
// input's content are therefore conditions: on the baseline they are the value's, and no component moves them. Numbers
// are rounded in the grid of the value at both ends, as by a quantized model with fixed grids. With conditions=baseline
// the reference has grids of its own, and what they move is leftover.
#ifndef ADDEND_CORE_ONNX_INTEGERS_H_
#define ADDEND_CORE_ONNX_INTEGERS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/data_type.h"
#include "core/onnx/datum.h"

namespace addend::onnx {

// Notes on models.
inline constexpr char kRoundsNote[] =
    "the model is quantized: a step of what it rounds belongs to what crosses it, in proportion, so that short moves "
    "may have other parts than before quantization";
inline constexpr char kOwnGridNote[] =
    "the model is quantized while it runs: the reference is rounded in the grids that were found for the value";

// The type of the integers that input k holds. Throws InvalidArgument where it holds none.
DataType IntegersOf(const Context& context, size_t k);

// The type of the file whose elements LibTorch has as `type`.
DataType DataTypeOf(c10::ScalarType type);

// The smallest and the largest integer of a type that numbers are quantized to. Throws Unimplemented for other types.
std::pair<int64_t, int64_t> RangeOf(const Context& context, DataType type);

// Whole numbers as a tensor of integers: of that type, or of a wider one where LibTorch has none of so few bits. Those
// of 32 bits wrap.
at::Tensor AsIntegers(const at::Tensor& whole, DataType type);

// Input k as floating-point numbers without fractions.
at::Tensor WholeNumbers(const Context& context, size_t k);
// Whole numbers of input k less their zero point, which is input `zero`, if it is there. `dim`: the dimension of which
// each place may have its own.
at::Tensor WithoutZero(const Context& context, size_t k, size_t zero, int64_t dim);

// A result that holds whole numbers as integers of a type: as floats where components may pass.
Datum Integers(const Context& context, const at::Tensor& whole, DataType type);
// A result beside such ones.
Datum Numbers(const Context& context, at::Tensor tensor);

// Input k as scales, which are conditions where they descend from content: see Note [Grids as conditions].
at::Tensor ScalesOf(const Context& context, size_t k);
// Numbers that a node computed, in the same way.
at::Tensor AsCondition(const Context& context, const at::Tensor& numbers);

// The type of the integers that all of some values hold; undefined where each has the type of its tensor. Throws
// InvalidArgument where they differ.
DataType IntegersOfAll(const Context& context, const std::vector<Datum>& values);

// Elements that `make` takes from others; known where all of these are, and then no operator of the trace.
template <typename Make>
Datum Moved(bool are_known, Descent descent, const Make& make) {
  if (!are_known) return Datum::Of(make(), descent);
  const TracingPause pause;
  return Datum::Known(make(), descent);
}

// A result that holds integers of a type that LibTorch lacks, as HolderOf() has them.
Datum Held(const Context& context, at::Tensor integers, DataType type);

// Integers by their lowest bits as such of a type without sign that a wider type holds. Throws Unimplemented for a
// uint64 that int64 does not hold.
Datum AsUnsigned(const Context& context, const at::Tensor& integers, DataType type);

// A result of arithmetic as the inputs hold integers: where they hold such in a wider type, by its lowest bits. Throws
// InvalidArgument where the inputs are of different types, and what AsUnsigned() throws.
Results InRange(const Context& context, const at::Tensor& result);

// Throws Unimplemented unless a tensor of truth values, by which int64 holds results of type uint64, is true
// everywhere. It is an operator of the trace, so that recordings are held to it.
void RequireHeld(const Context& context, const at::Tensor& holds);

// Numbers in units of a scale, rounded half to even, with the zero point added, saturated. `zero` may be undefined.
Datum Rounded(const Context& context, const at::Tensor& numbers, const at::Tensor& zero, DataType type);

// Numbers as integers of 8 bits in the range that they have, with zero in it, in 255 steps.
struct OwnGrid {
  at::Tensor whole;
  at::Tensor scale;
  at::Tensor zero;  // a whole number
};
OwnGrid InOwnGrid(const Context& context, const at::Tensor& x);

// Numbers for each place of a dimension, or one, such that they broadcast to a tensor of `rank` dimensions.
at::Tensor AlongDim(const at::Tensor& levels, int64_t dim, int64_t rank);

// The product of inputs a and b without their zero points, in float64, which holds its sums. Rows of a and columns of b
// may have a zero point each.
at::Tensor WholeProduct(const Context& context, size_t a, size_t a_zero, size_t b, size_t b_zero);

// Throws Unimplemented where a sum of so many products of two inputs' integers may leave 32 bits.
void RequireNoWrap(const Context& context, int64_t terms, size_t a, size_t b);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_INTEGERS_H_
