// Python's functions of numbers, which exported programs call for sizes and truth values.
#ifndef ADDEND_CORE_EXPORTED_NUMBERS_H_
#define ADDEND_CORE_EXPORTED_NUMBERS_H_

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string>

namespace addend::exported {

// A function of ints, floats and bools, which computes what Python does; integers have 64 bits. Throws InvalidArgument
// where Python would raise an exception, and where an integer does not fit.
using NumberFunction = c10::IValue (*)(c10::ArrayRef<c10::IValue> arguments);

// Finds a function by its name in a file: "_operator.floordiv", "math.ceil", "torch.sym_max". Null: there is none.
NumberFunction FindNumberFunction(const std::string& target);

// Whether a number counts as true.
bool IsTrue(const c10::IValue& number);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_NUMBERS_H_
