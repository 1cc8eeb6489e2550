// The laws of decompositions, held by models of the suite: parts sum to what the model gives, and the reference is what
// it gives on the baseline.
#ifndef ADDEND_TESTS_ONNX_LAWS_H_
#define ADDEND_TESTS_ONNX_LAWS_H_

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

struct LawOutcome {
  enum class Kind {
    kHeld,
    kHeldForward,  // forward; backward would take too long
    kNotAsked,     // no input or no output has floating-point numbers
    kConditions,   // the reference is another one, and the model has conditions, which stay as on the value
    kRefused,
    kBroken,
  };
  Kind kind = Kind::kHeld;
  std::string what;

  // "laws held", "laws not asked", "laws conditions: ...", ...
  std::string Text() const;
};

// Decomposes the model on these inputs under two presets, by forward rows and by rows that are found backward. Every
// floating-point input is split into at most eight components. Each element of the outputs is a target, which goes back
// by itself: where these are many, or the inputs are large, rows go forward only.
LawOutcome CheckLaws(const std::shared_ptr<Model>& model, const std::vector<c10::IValue>& inputs);

}  // namespace addend

#endif  // ADDEND_TESTS_ONNX_LAWS_H_
