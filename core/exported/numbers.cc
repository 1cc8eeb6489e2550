#include "core/exported/numbers.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend::exported {
namespace {

using c10::IValue;
using Arguments = c10::ArrayRef<IValue>;

Error NotNumbers() { return InvalidArgument("an exported program computes with a value that is no number"); }
Error TooLarge() { return InvalidArgument("an integer of an exported program does not fit into 64 bits"); }
Error ByZero() { return InvalidArgument("an exported program divides a number by zero"); }

const IValue& At(Arguments arguments, size_t k) {
  if (k >= arguments.size()) throw InvalidArgument("a function of numbers has too few arguments");
  return arguments[k];
}

// round(x, 2) and log(x, 2) are other functions.
void RequireOne(Arguments arguments) {
  At(arguments, 0);
  if (arguments.size() > 1) throw Unimplemented("a function of numbers has more than one argument");
}

bool Whole(const IValue& value) { return value.isInt() || value.isBool(); }

int64_t Int(const IValue& value) {
  if (value.isBool()) return value.toBool() ? 1 : 0;
  if (!value.isInt()) throw NotNumbers();
  return value.toInt();
}

double Float(const IValue& value) {
  if (value.isDouble()) return value.toDouble();
  return static_cast<double>(Int(value));
}

int64_t Rounded(double value) {
  // The bounds of int64 as floating-point numbers: the upper one is no int64 any more.
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) throw TooLarge();
  return static_cast<int64_t>(value);
}

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) throw ByZero();
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) throw TooLarge();
    return -a;
  }
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw TooLarge();
  return product;
}

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw TooLarge();
  return sum;
}

IValue Added(const IValue& a, const IValue& b) {
  if (Whole(a) && Whole(b)) return Sum(Int(a), Int(b));
  return Float(a) + Float(b);
}

IValue Add(Arguments x) { return Added(At(x, 0), At(x, 1)); }

IValue Subtract(Arguments x) {
  if (!Whole(At(x, 0)) || !Whole(At(x, 1))) return Float(x[0]) - Float(x[1]);
  int64_t difference = 0;
  if (__builtin_sub_overflow(Int(x[0]), Int(x[1]), &difference)) throw TooLarge();
  return difference;
}

IValue Multiply(Arguments x) {
  if (Whole(At(x, 0)) && Whole(At(x, 1))) return Product(Int(x[0]), Int(x[1]));
  return Float(x[0]) * Float(x[1]);
}

IValue TrueDivide(Arguments x) {
  const double divisor = Float(At(x, 1));
  if (divisor == 0) throw ByZero();
  return Float(x[0]) / divisor;
}

// Has the sign of the divisor.
double FloatRemainder(double dividend, double divisor) {
  const double remainder = std::fmod(dividend, divisor);
  return remainder != 0 && (remainder < 0) != (divisor < 0) ? remainder + divisor : remainder;
}

IValue FloorDivide(Arguments x) {
  if (Whole(At(x, 0)) && Whole(At(x, 1))) return FloorDivide(Int(x[0]), Int(x[1]));
  const double dividend = Float(x[0]);
  const double divisor = Float(x[1]);
  if (divisor == 0) throw ByZero();
  // Divide without the remainder, as Python does it: 1 // 0.1 is 9, although 1 / 0.1 rounds to 10.
  const double quotient = (dividend - FloatRemainder(dividend, divisor)) / divisor;
  return std::nearbyint(quotient);
}

// The remainder has the sign of the divisor.
IValue Remainder(Arguments x) {
  if (Whole(At(x, 0)) && Whole(At(x, 1))) {
    const int64_t a = Int(x[0]);
    const int64_t b = Int(x[1]);
    return b == -1 ? int64_t{0} : a - FloorDivide(a, b) * b;
  }
  const double divisor = Float(x[1]);
  if (divisor == 0) throw ByZero();
  return FloatRemainder(Float(x[0]), divisor);
}

IValue Power(Arguments x) {
  if (!Whole(At(x, 0)) || !Whole(At(x, 1)) || Int(x[1]) < 0) return std::pow(Float(x[0]), Float(x[1]));
  int64_t power = 1;
  int64_t base = Int(x[0]);
  for (int64_t exponent = Int(x[1]); exponent > 0;) {
    if (exponent % 2 != 0) power = Product(power, base);
    exponent /= 2;
    if (exponent > 0) base = Product(base, base);
  }
  return power;
}

IValue Negative(Arguments x) {
  if (!Whole(At(x, 0))) return -Float(x[0]);
  return FloorDivide(Int(x[0]), -1);
}

IValue Positive(Arguments x) { return Whole(At(x, 0)) ? IValue(Int(x[0])) : At(x, 0); }

IValue Absolute(Arguments x) {
  if (!Whole(At(x, 0))) return std::abs(Float(x[0]));
  return Int(x[0]) < 0 ? IValue(FloorDivide(Int(x[0]), -1)) : IValue(Int(x[0]));
}

IValue ShiftLeft(Arguments x) {
  const int64_t by = Int(At(x, 1));
  if (by < 0 || by > 62) throw TooLarge();
  return Product(Int(x[0]), int64_t{1} << by);
}

IValue ShiftRight(Arguments x) {
  const int64_t by = Int(At(x, 1));
  if (by < 0) throw InvalidArgument("an exported program shifts by a negative number");
  return FloorDivide(Int(x[0]), int64_t{1} << (by > 62 ? 62 : by));
}

template <typename Bits, typename Truth>
IValue Bitwise(Arguments x, Bits bits, Truth truth) {
  if (At(x, 0).isBool() && At(x, 1).isBool()) return static_cast<bool>(truth(x[0].toBool(), x[1].toBool()));
  return static_cast<int64_t>(bits(Int(x[0]), Int(x[1])));
}

IValue And(Arguments x) {
  return Bitwise(
      x, [](int64_t a, int64_t b) { return a & b; }, [](bool a, bool b) { return a && b; });
}
IValue Or(Arguments x) {
  return Bitwise(
      x, [](int64_t a, int64_t b) { return a | b; }, [](bool a, bool b) { return a || b; });
}
IValue ExclusiveOr(Arguments x) {
  return Bitwise(
      x, [](int64_t a, int64_t b) { return a ^ b; }, [](bool a, bool b) { return a != b; });
}
IValue Invert(Arguments x) { return ~Int(At(x, 0)); }
IValue Not(Arguments x) { return !IsTrue(At(x, 0)); }

template <typename Compare>
IValue Compared(Arguments x, Compare compare) {
  if (Whole(At(x, 0)) && Whole(At(x, 1))) return static_cast<bool>(compare(Int(x[0]), Int(x[1])));
  return static_cast<bool>(compare(Float(x[0]), Float(x[1])));
}

IValue Equal(Arguments x) {
  if (At(x, 0).isString() && At(x, 1).isString()) return x[0].toStringRef() == x[1].toStringRef();
  if (x[0].isNone() || x[1].isNone()) return x[0].isNone() && x[1].isNone();
  return Compared(x, [](auto a, auto b) { return a == b; });
}
IValue NotEqual(Arguments x) { return !Equal(x).toBool(); }
IValue Less(Arguments x) {
  return Compared(x, [](auto a, auto b) { return a < b; });
}
IValue LessOrEqual(Arguments x) {
  return Compared(x, [](auto a, auto b) { return a <= b; });
}
IValue Greater(Arguments x) {
  return Compared(x, [](auto a, auto b) { return a > b; });
}
IValue GreaterOrEqual(Arguments x) {
  return Compared(x, [](auto a, auto b) { return a >= b; });
}

// Returns the least or largest argument; floating-point if any argument is.
template <typename First>
IValue Chosen(Arguments x, First first) {
  IValue chosen = At(x, 0);
  bool floating = chosen.isDouble();
  for (const IValue& other : x.slice(1)) {
    floating |= other.isDouble();
    if (first({other, chosen}).toBool()) chosen = other;
  }
  return floating ? IValue(Float(chosen)) : IValue(Int(chosen));
}

IValue Maximum(Arguments x) { return Chosen(x, Greater); }
IValue Minimum(Arguments x) { return Chosen(x, Less); }

IValue Total(Arguments x) {
  if (!At(x, 0).isList()) throw NotNumbers();
  IValue total = int64_t{0};
  for (const IValue& term : x[0].toList().vec()) total = Added(total, term);
  return total;
}

IValue IfElse(Arguments x) { return IsTrue(At(x, 0)) ? At(x, 1) : At(x, 2); }
IValue ToFloat(Arguments x) { return Float(At(x, 0)); }

IValue Truncated(Arguments x) { return Whole(At(x, 0)) ? Int(x[0]) : Rounded(std::trunc(Float(x[0]))); }
IValue Floor(Arguments x) { return Whole(At(x, 0)) ? Int(x[0]) : Rounded(std::floor(Float(x[0]))); }
IValue Ceiling(Arguments x) { return Whole(At(x, 0)) ? Int(x[0]) : Rounded(std::ceil(Float(x[0]))); }
// To the nearest even number where two are as near.
IValue Nearest(Arguments x) {
  RequireOne(x);
  return Whole(x[0]) ? Int(x[0]) : Rounded(std::nearbyint(Float(x[0])));
}

IValue Element(Arguments x) {
  if (!At(x, 0).isList() && !x[0].isTuple()) throw NotNumbers();
  const int64_t at = Int(At(x, 1));
  const auto elements = x[0].isTuple() ? x[0].toTupleRef().elements().vec() : x[0].toListRef().vec();
  const auto size = static_cast<int64_t>(elements.size());
  if (at < -size || at >= size) throw InvalidArgument("an exported program reads behind the end of a list");
  return elements[static_cast<size_t>(at < 0 ? at + size : at)];
}

template <double (*function)(double)>
IValue Math(Arguments x) {
  RequireOne(x);
  const double value = Float(x[0]);
  const double result = function(value);
  if (std::isnan(result) && !std::isnan(value)) {
    throw InvalidArgument(absl::StrCat("a function of numbers is not defined at ", value));
  }
  return result;
}

}  // namespace

bool IsTrue(const IValue& number) { return number.isDouble() ? number.toDouble() != 0 : Int(number) != 0; }

NumberFunction FindNumberFunction(const std::string& target) {
  static const auto& functions = *new absl::flat_hash_map<std::string, NumberFunction>{
      {"_operator.add", Add},
      {"_operator.sub", Subtract},
      {"_operator.mul", Multiply},
      {"_operator.truediv", TrueDivide},
      {"_operator.floordiv", FloorDivide},
      {"_operator.mod", Remainder},
      {"_operator.pow", Power},
      {"_operator.neg", Negative},
      {"_operator.pos", Positive},
      {"_operator.abs", Absolute},
      {"_operator.lshift", ShiftLeft},
      {"_operator.rshift", ShiftRight},
      {"_operator.and_", And},
      {"_operator.or_", Or},
      {"_operator.xor", ExclusiveOr},
      {"_operator.invert", Invert},
      {"_operator.not_", Not},
      {"_operator.eq", Equal},
      {"_operator.ne", NotEqual},
      {"_operator.lt", Less},
      {"_operator.le", LessOrEqual},
      {"_operator.gt", Greater},
      {"_operator.ge", GreaterOrEqual},
      {"_operator.getitem", Element},
      {"math.trunc", Truncated},
      {"math.floor", Floor},
      {"math.ceil", Ceiling},
      {"math.pow", Power},
      {"math.sqrt", Math<std::sqrt>},
      {"math.exp", Math<std::exp>},
      {"math.log", Math<std::log>},
      {"math.log2", Math<std::log2>},
      {"math.sin", Math<std::sin>},
      {"math.cos", Math<std::cos>},
      {"math.tan", Math<std::tan>},
      {"math.sinh", Math<std::sinh>},
      {"math.cosh", Math<std::cosh>},
      {"math.tanh", Math<std::tanh>},
      {"math.asin", Math<std::asin>},
      {"math.acos", Math<std::acos>},
      {"math.atan", Math<std::atan>},
      {"builtins.round", Nearest},
      {"builtins.abs", Absolute},
      {"builtins.max", Maximum},
      {"builtins.min", Minimum},
      {"torch.sym_max", Maximum},
      {"torch.sym_min", Minimum},
      {"torch.sym_sum", Total},
      {"torch.sym_not", Not},
      {"torch.sym_ite", IfElse},
      {"torch.sym_float", ToFloat},
      {"torch.sym_int", Truncated},
      {"torch._sym_sqrt", Math<std::sqrt>},
      {"torch._sym_exp", Math<std::exp>},
      {"torch._sym_log", Math<std::log>},
      {"torch._sym_log2", Math<std::log2>},
      {"torch._sym_sin", Math<std::sin>},
      {"torch._sym_cos", Math<std::cos>},
      {"torch._sym_tan", Math<std::tan>},
      {"torch._sym_sinh", Math<std::sinh>},
      {"torch._sym_cosh", Math<std::cosh>},
      {"torch._sym_tanh", Math<std::tanh>},
      {"torch._sym_asin", Math<std::asin>},
      {"torch._sym_acos", Math<std::acos>},
      {"torch._sym_atan", Math<std::atan>},
  };
  const auto found = functions.find(target);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace addend::exported
