// Values of a run of an ONNX model.
//
// Note [Known values]
// Exporters write the arithmetic of sizes as nodes: Shape, Gather, Concat, Reshape. Numbers that descend from sizes and
// from constants alone are therefore known without an input's content. They are kept on the host and computed outside
// of the trace, so that a recorded run holds them as plain numbers, as it does for a live model. Constants of one
// number reach operators as scalars for the same reason: pow(x, 2) has a better rule than pow(x, y).
//
// Known values stay in the types of the file, because sizes must not change with the type that the model computes in.
// They get that type, and the model's device, where an operator reads them as a tensor. What has as many elements as a
// size says is no known value (a range of positions, a mask of ones): a recording has to make it anew for other sizes.
// Floating-point constants of more than kMostKnownFloats elements are weights, hence tensors from the start.
//
// Note [Integers as floats]
// A quantised model rounds what it computes to integers, and goes on with these. Integers have no components, so that
// parts would end there. Integers that are rounded from an input's content therefore stay in floating-point tensors,
// whose elements are whole numbers; Datum::integers is the type that the file means. Rounding is aten::round, which
// shares each step among what crosses it, saturation aten::clamp. float32 holds the integers of 8 and 16 bits, float64
// those of 32.
//
// The table of operators says what reads them: operators that are made for it (ReadsIntegers), and those whose results
// are elements of their inputs (KeepIntegers), and hence integers of that type. All others refuse them, because they
// might compute something else than with integers. As outputs of the model they are integers again.
//
// Note [Integers in a wider type]
// LibTorch has no uint16, uint32 and uint64 (the oldest that is supported). Their numbers are kept in int32, int64 and
// int64, and Datum::integers says what they are. Numbers of uint64 that int64 does not hold are refused: in the file,
// in inputs, and in results.
//
// They are integers of LibTorch, so that more operators read them than read those of a quantised model: comparisons,
// and arithmetic whose results are brought back into the range of the type by their lowest bits, as processors do it
// (ReadsUnsigned). All others refuse them, because their results might leave the range.
#ifndef ADDEND_CORE_ONNX_DATUM_H_
#define ADDEND_CORE_ONNX_DATUM_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/onnx/data_type.h"

namespace addend::onnx {

// The most elements of a floating-point constant that is a known value.
inline constexpr int64_t kMostKnownFloats = 16;

// Sources that a value descends from; each includes those before it.
enum class Descent {
  kConstants,  // of the file
  kSizes,      // of inputs
  kContent,    // of inputs
};

// A value: none, a tensor, or a sequence of values. An optional with a value is that value, one without is none.
struct Datum {
  enum class Kind { kNone, kTensor, kSequence };
  Kind kind = Kind::kNone;
  Descent descent = Descent::kConstants;
  // The type of the integers that the tensor holds, where it is not the tensor's own: see Note [Integers as floats] and
  // Note [Integers in a wider type].
  DataType integers = DataType::kUndefined;
  at::Tensor tensor;  // as the model computes with it; may be undefined where `known` is there
  at::Tensor known;   // on the CPU, in the type of the file: see Note [Known values]
  std::shared_ptr<const std::vector<Datum>> elements;

  bool IsNone() const { return kind == Kind::kNone; }
  bool IsTensor() const { return kind == Kind::kTensor; }
  bool IsSequence() const { return kind == Kind::kSequence; }
  // Whether it is a tensor whose numbers are known.
  bool IsKnown() const { return known.defined(); }
  // Whether it has to be read as integers of a type that is not the tensor's own.
  bool HoldsIntegers() const { return integers != DataType::kUndefined; }
  // Whether these stand in a wider type of integers: see Note [Integers in a wider type].
  bool IsWidened() const {
    const at::Tensor& held = known.defined() ? known : tensor;
    return onnx::IsWidened(integers) && held.defined() && !c10::isFloatingType(held.scalar_type());
  }

  static Datum Of(at::Tensor tensor, Descent descent) {
    Datum datum;
    datum.kind = Kind::kTensor;
    datum.descent = descent;
    datum.tensor = std::move(tensor);
    return datum;
  }
  static Datum Known(at::Tensor numbers, Descent descent) {
    Datum datum;
    datum.kind = Kind::kTensor;
    datum.descent = descent;
    datum.known = std::move(numbers);
    return datum;
  }
  static Datum Sequence(std::vector<Datum> elements) {
    Datum datum;
    datum.kind = Kind::kSequence;
    for (const Datum& element : elements) datum.descent = std::max(datum.descent, element.descent);
    datum.elements = std::make_shared<const std::vector<Datum>>(std::move(elements));
    return datum;
  }
};

// The results of an operator, in order. New tensors descend from all of its inputs, and are known where these are;
// values that are handed on stay as they are.
class Results {
 public:
  // Implicit, so that functions of operators can return a tensor.
  Results(at::Tensor tensor) { tensors_.push_back(std::move(tensor)); }                 // NOLINT
  Results(std::initializer_list<at::Tensor> tensors) : tensors_(tensors) {}             // NOLINT
  Results(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}            // NOLINT
  Results(Datum datum) : handed_on_(true) { datums_.push_back(std::move(datum)); }      // NOLINT
  Results(std::vector<Datum> datums) : handed_on_(true), datums_(std::move(datums)) {}  // NOLINT

  // The values. `is_known`: of new tensors; `descent`: theirs. Undefined tensors are none.
  std::vector<Datum> Take(bool is_known, Descent descent) {
    if (handed_on_) return std::move(datums_);
    for (at::Tensor& tensor : tensors_) {
      if (!tensor.defined()) {
        datums_.emplace_back();
      } else if (is_known) {
        datums_.push_back(Datum::Known(std::move(tensor), descent));
      } else {
        datums_.push_back(Datum::Of(std::move(tensor), descent));
      }
    }
    return std::move(datums_);
  }

 private:
  bool handed_on_ = false;
  std::vector<at::Tensor> tensors_;
  std::vector<Datum> datums_;
};

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_DATUM_H_
