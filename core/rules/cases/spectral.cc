#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>

#include "core/rules/cases/cases.h"

namespace addend {

// clang-format off

void AddSpectral(std::vector<Case>* cases) {
  using List = std::vector<int64_t>;
  const auto anywhere = [](Draw& d) -> Arguments { return {d.MovingComplex({2, 5})}; };
  // No line from one to the other comes near zero or the negative real axis.
  const auto to_the_right = [](Draw& d) -> Arguments {
    const auto one = [&]() { return d.Complex({2, 5}, 0.4) + 1.7; };
    const at::Tensor value = one();
    return {GivenArgument(value, one())};
  };
  cases->push_back({"aten::abs", "complex", anywhere, kCorners});
  for (const char* op : {"aten::_conj_physical", "aten::conj_physical", "aten::conj_physical_", "aten::neg",
                         "aten::clone", "aten::exp", "aten::sin", "aten::cos", "aten::sinh", "aten::cosh",
                         "aten::square", "aten::sum", "aten::mean", "aten::triu", "aten::tril", "aten::zero_"}) {
    cases->push_back({op, "complex", anywhere});
  }
  for (const char* op : {"aten::sgn", "aten::angle", "aten::tanh", "aten::sigmoid", "aten::sqrt", "aten::rsqrt",
                         "aten::reciprocal", "aten::log"}) {
    cases->push_back({op, "complex", to_the_right});
  }
  cases->push_back({"aten::angle", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5})}; }});
  for (const char* op : {"aten::add.Tensor", "aten::sub.Tensor", "aten::rsub.Tensor", "aten::mul.Tensor"}) {
    cases->push_back({op, "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), d.MovingComplex({3})}; }});
    cases->push_back({op, "real_and_complex", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.MovingComplex({3})}; }});
    cases->push_back({op, "complex_and_real", [](Draw& d) -> Arguments { return {d.MovingComplex({3}), d.Moving({2, 3})}; }});
  }
  const c10::complex<double> number(0.5, -2);
  const std::vector<Case> others = {
      {"aten::_fft_r2c", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 6}), List{2}, int64_t{0}, true}; }},
      {"aten::_fft_r2c", "odd", [](Draw& d) -> Arguments { return {d.Moving({2, 7}), List{1}, int64_t{1}, true}; }},
      {"aten::_fft_r2c", "whole", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 6}), List{1, 2}, int64_t{2}, false}; }},
      {"aten::_fft_r2c", "first_dim", [](Draw& d) -> Arguments { return {d.Moving({6, 2}), List{0}, int64_t{0}, true}; }},
      {"aten::_fft_c2r", "", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3, 4}), List{2}, int64_t{2}, int64_t{6}}; }},
      {"aten::_fft_c2r", "odd", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 4}), List{0, 1}, int64_t{1}, int64_t{7}}; }},
      {"aten::_fft_c2c", "", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3, 5}), List{2}, int64_t{0}, true}; }},
      {"aten::_fft_c2c", "back", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3, 5}), List{0, 2}, int64_t{2}, false}; }},
      {"aten::complex", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3})}; }},
      {"aten::polar", "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 3}, 0.5, 2), d.Moving({3}, 2)}; }},
      {"aten::angle", "leftwards_but_above", [](Draw& d) -> Arguments {
         return {GivenArgument{d.Complex({6}, 0.3) + c10::complex<double>(-2, 2), d.Complex({6}, 0.3) + c10::complex<double>(2, 2)}};
       }},
      {"aten::abs", "past_zero", [](Draw& d) -> Arguments {
         const at::Tensor value = d.Complex({6});
         return {GivenArgument(value, value * -0.7 + d.Complex({6}, 1e-2))};
       }, kCorners},
      {"aten::abs", "from_zero", [](Draw& d) -> Arguments { return {GivenArgument{d.Complex({6}), d.Complex({6}, 0)}}; }},
      {"aten::abs", "short_lines", [](Draw& d) -> Arguments {
         const at::Tensor value = d.Complex({6});
         return {GivenArgument(value, value + d.Complex({6}, 1e-5))};
       }},
      {"aten::tanh", "short_lines", [](Draw& d) -> Arguments {
         const at::Tensor value = d.Complex({6}, 0.5);
         return {GivenArgument(value, value + d.Complex({6}, 1e-9))};
       }},
      {"aten::pow.Tensor_Scalar", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({5}), 3}; }},
      {"aten::mul.Scalar", "complex", [=](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), number}; }},
      {"aten::mul.Scalar", "real_by_complex", [=](Draw& d) -> Arguments { return {d.Moving({2, 3}), number}; }},
      {"aten::div.Scalar", "complex", [=](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), number}; }},
      {"aten::mul.Tensor", "unit", [=](Draw& d) -> Arguments { return {d.Moving({2, 3}), at::scalar_tensor(number, at::kComplexDouble)}; }},
      {"aten::div.Tensor", "complex", [](Draw& d) -> Arguments {
         return {d.MovingComplex({2, 3}), GivenArgument{d.Complex({3}, 0.3) + 1.5, d.Complex({3}, 0.3) + 1.5}};
       }},
      {"aten::div.Tensor", "complex_by_real", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), d.MovingWithin({3}, 0.5, 2)}; }},
      {"aten::addcmul", "complex", [](Draw& d) -> Arguments {
         return {d.MovingComplex({2, 3}), d.MovingComplex({3}), d.MovingComplex({2, 1}), 0.7};
       }},
      {"aten::copy_", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), d.MovingComplex({3})}; }},
      {"aten::copy_", "real_part", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.MovingComplex({3})}; }},
      {"aten::copy_", "into_complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), d.Moving({3})}; }},
      {"aten::fill_.Tensor", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), d.MovingComplex({})}; }},
      {"aten::where.ScalarOther", "complex", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.MovingComplex({2, 3}), 1.5}; }},
      {"aten::where.ScalarSelf", "complex", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), 1.5, d.MovingComplex({3})}; }},
      {"aten::where.self", "complex", [](Draw& d) -> Arguments { return {d.Booleans({2, 3}), d.MovingComplex({2, 3}), d.MovingComplex({3})}; }},
      {"aten::masked_fill.Scalar", "complex", [=](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), d.Booleans({3}), number}; }},
      {"aten::cat", "complex", [](Draw& d) -> Arguments {
         return {ListOf({d.MovingComplex({2, 3}), d.Complex({1, 3}), d.MovingComplex({2, 3})}), int64_t{0}};
       }},
      {"aten::stack", "complex", [](Draw& d) -> Arguments { return {ListOf({d.MovingComplex({2, 3}), d.MovingComplex({2, 3})}), int64_t{1}}; }},
      {"aten::_to_copy", "complex", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3}), static_cast<int64_t>(d.dtype() == at::kDouble ? at::kComplexDouble : at::kComplexFloat)};
       }},
      {"aten::_to_copy", "real", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), static_cast<int64_t>(d.dtype())}; }},
      {"aten::_unsafe_view", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), List{3, 2}}; }},
      {"aten::repeat", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), List{2, 1}}; }},
      {"aten::flip", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), List{1}}; }},
      {"aten::roll", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), List{1}, List{1}}; }},
      {"aten::constant_pad_nd", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), List{1, 2}}; }},
      {"aten::sum.dim_IntList", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), List{1}, true}; }},
      {"aten::cumsum", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), int64_t{1}}; }},
      {"aten::gather", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), int64_t{1}, d.Integers({2, 4}, 3)}; }},
      {"aten::index_select", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3}), int64_t{1}, d.Integers({4}, 3)}; }},
      {"aten::index.Tensor", "complex", [](Draw& d) -> Arguments {
         return {d.MovingComplex({4, 3}), OptionalListOf({kNone, d.Integers({5}, 3)})};
       }},
      {"aten::matmul", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3, 4}), d.MovingComplex({4, 5})}; }},
      {"aten::mm", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({3, 4}), d.MovingComplex({4, 5})}; }},
      {"aten::bmm", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 3, 4}), d.MovingComplex({2, 4, 5})}; }},
      {"aten::mv", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({3, 4}), d.MovingComplex({4})}; }},
      {"aten::addmm", "complex", [](Draw& d) -> Arguments {
         return {d.MovingComplex({5}), d.MovingComplex({3, 4}), d.MovingComplex({4, 5}), 0.5, 2.0};
       }},
      {"aten::baddbmm", "complex", [](Draw& d) -> Arguments {
         return {d.MovingComplex({2, 3, 5}), d.MovingComplex({2, 3, 4}), d.MovingComplex({2, 4, 5})};
       }},
      {"aten::addmv", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({3}), d.MovingComplex({3, 4}), d.MovingComplex({4})}; }},
      {"aten::linear", "complex", [](Draw& d) -> Arguments { return {d.MovingComplex({2, 4}), d.MovingComplex({3, 4}), d.MovingComplex({3})}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

// clang-format on

}  // namespace addend
