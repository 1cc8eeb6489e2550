#include "core/rules/call_arguments.h"

#include <c10/core/Scalar.h>
#include <c10/util/complex.h>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend {

int CallArguments::At(std::string_view argument) const {
  const std::vector<c10::Argument>& all = schema->arguments();
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].name() == argument) return static_cast<int>(k);
  }
  return -1;
}

const std::string& CallArguments::NameOf(int position) const { return schema->arguments().at(position).name(); }

const c10::IValue& CallArguments::Given(std::string_view argument) const {
  static const c10::IValue& none = *new c10::IValue();
  const int position = At(argument);
  return position < 0 || position >= static_cast<int>(arguments.size()) ? none : arguments[position];
}

bool CallArguments::IsNone(std::string_view argument) const {
  // Operators that are called from C++ get undefined tensors where there are none.
  const c10::IValue& given = Given(argument);
  return given.isNone() || (given.isTensor() && !given.toTensor().defined());
}

int64_t CallArguments::Int(std::string_view argument, int64_t otherwise) const {
  const c10::IValue& given = Given(argument);
  return given.isInt() ? given.toInt() : otherwise;
}

double CallArguments::Double(std::string_view argument, double otherwise) const {
  const c10::IValue& given = Given(argument);
  if (!given.isScalar()) return otherwise;
  const at::Scalar number = given.toScalar();
  if (number.isComplex()) {
    const c10::complex<double> both = number.toComplexDouble();
    if (both.imag() != 0) throw Unimplemented(absl::StrCat(name, ".", overload, " with a complex number"));
    return both.real();
  }
  return number.toDouble();
}

bool CallArguments::Bool(std::string_view argument, bool otherwise) const {
  const c10::IValue& given = Given(argument);
  return given.isBool() ? given.toBool() : otherwise;
}

std::vector<int64_t> CallArguments::Ints(std::string_view argument) const {
  const c10::IValue& given = Given(argument);
  if (given.isIntList()) return given.toIntVector();
  if (given.isInt()) return {given.toInt()};
  return {};
}

std::string CallArguments::String(std::string_view argument, const std::string& otherwise) const {
  const c10::IValue& given = Given(argument);
  return given.isString() ? given.toStringRef() : otherwise;
}

}  // namespace addend
