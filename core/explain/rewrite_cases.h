// The cases by which every rewrite is judged: how to draw the arguments of its operator.
#ifndef ADDEND_CORE_EXPLAIN_REWRITE_CASES_H_
#define ADDEND_CORE_EXPLAIN_REWRITE_CASES_H_

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace addend {

// Draws the arguments of a case: tensors that are split, and plain ones.
class RewriteDraw {
 public:
  RewriteDraw(at::ScalarType dtype, double reach) : dtype_(dtype), reach_(reach) {}

  at::ScalarType dtype() const { return dtype_; }
  at::Tensor Plain(at::IntArrayRef sizes, double scale = 1) { return (Normal(sizes) * scale).to(dtype_); }
  at::Tensor Positive(at::IntArrayRef sizes) { return (Normal(sizes).abs() + 0.5).to(dtype_); }
  // A tensor that moves: its reference is drawn as well, `reach` away.
  at::Tensor Moving(at::IntArrayRef sizes) {
    const at::Tensor value = Normal(sizes).to(dtype_);
    values.push_back(value);
    references.push_back((value + Normal(sizes) * reach_).to(dtype_));
    return value;
  }

  // A tensor that moves between two numbers.
  at::Tensor MovingWithin(at::IntArrayRef sizes, double low, double high) {
    const at::Tensor place = Normal(sizes);
    const auto within = [&](const at::Tensor& t) { return (t.sigmoid() * (high - low) + low).to(dtype_); };
    values.push_back(within(place));
    references.push_back(within(place + Normal(sizes) * reach_));
    return values.back();
  }

  std::vector<at::Tensor> values;
  std::vector<at::Tensor> references;

 private:
  at::Tensor Normal(at::IntArrayRef sizes) {
    return at::randn(sizes, generator_, at::TensorOptions().dtype(at::kDouble));
  }

  at::Generator generator_ = at::detail::createCPUGenerator(20240611);
  at::ScalarType dtype_;
  double reach_;
};

struct RewriteCase {
  // "aten::lstm_cell" or "aten::lstm.input"; "newer::": of other versions of LibTorch, or other devices; "tiles::": the
  // same with the rule that stands in for the rewrite.
  std::string op;
  std::string title;
  std::function<std::vector<c10::IValue>(RewriteDraw&)> arguments;
};

inline void PrintTo(const RewriteCase& c, std::ostream* out) { *out << c.op << " " << c.title; }

const std::vector<RewriteCase>& RewriteCases();

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_REWRITE_CASES_H_
