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
// Note [Packed integers]
// LibTorch has no integers of 4 and 2 bits. They are constants of the file only, and are unpacked into 8 bits when it
// is read. What they are quantized to saturates at their own ends though, so that a value keeps their type, also when
// its elements are moved. Operators that do not move elements do not take such types, but for casts and for those that
// quantize.
#ifndef ADDEND_CORE_ONNX_DATUM_H_
#define ADDEND_CORE_ONNX_DATUM_H_

#include <ATen/core/Tensor.h>

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
  at::Tensor tensor;  // as the model computes with it; may be undefined where `known` is there
  at::Tensor known;   // on the CPU, in the type of the file: see Note [Known values]
  // The type of 4 or 2 bits that the file gives the elements; kUndefined: they have the tensor's. See Note [Packed
  // integers].
  DataType packed = DataType::kUndefined;
  std::shared_ptr<const std::vector<Datum>> elements;

  bool IsNone() const { return kind == Kind::kNone; }
  bool IsTensor() const { return kind == Kind::kTensor; }
  bool IsSequence() const { return kind == Kind::kSequence; }
  // Whether it is a tensor whose numbers are known.
  bool IsKnown() const { return known.defined(); }

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

  bool are_handed_on() const { return handed_on_; }

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
