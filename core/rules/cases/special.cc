#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <limits>

#include "core/rules/cases/cases.h"

namespace addend {

// One case, one line, as far as it goes.
// clang-format off

void AddSpecial(std::vector<Case>* cases) {
  const auto anywhere = [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 1.5)}; };
  for (const char* op : {"aten::asinh", "aten::erfc", "aten::exp2", "aten::i0", "aten::special_i1", "aten::special_ndtr", "aten::special_log_ndtr",
                         "aten::sinc", "aten::log_sigmoid_forward"}) {
    cases->push_back({op, "", anywhere});
  }
  for (const char* op : {"aten::special_i0e", "aten::special_i1e"}) cases->push_back({op, "", anywhere, kCorners});
  for (const char* op : {"aten::special_bessel_j0", "aten::special_bessel_j1", "aten::special_modified_bessel_i0", "aten::special_modified_bessel_i1"}) {
    cases->push_back({op, "bessel", anywhere});
  }
  for (const char* op : {"aten::special_bessel_y0", "aten::special_bessel_y1", "aten::special_modified_bessel_k0", "aten::special_modified_bessel_k1",
                         "aten::special_scaled_modified_bessel_k0", "aten::special_scaled_modified_bessel_k1"}) {
    cases->push_back({op, "bessel", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 0.3, 4)}; }});
  }
  for (const char* op : {"aten::deg2rad", "aten::rad2deg"}) cases->push_back({op, "", anywhere});
  for (const char* op : {"aten::acos", "aten::asin", "aten::atanh", "aten::erfinv", "aten::tan", "aten::special_erfcx"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, -0.9, 0.9)}; }});
  }
  for (const char* op : {"aten::logit", "aten::special_ndtri", "aten::special_entr"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 0.1, 0.9)}; }});
  }
  for (const char* op : {"aten::acosh", "aten::lgamma"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 1.1, 4)}; }});
  }
  // Below 5 LibTorch's trigamma, their derivative, is right to 9 digits only.
  cases->push_back({"aten::digamma", "", [](Draw& d) -> Arguments { return {d.MovingWithin({5}, 5, 9)}; }});
  for (const char* op : {"aten::fmod.Tensor", "aten::remainder.Tensor"}) {
    // 7..7.9 holds 2..2.3 three times.
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 7, 7.9), d.MovingWithin({5}, 2, 2.3)}; }});
    cases->push_back({op, "negative", [](Draw& d) -> Arguments { return {d.MovingWithin({5}, -7.9, -7), d.MovingWithin({5}, 2, 2.3)}; }});
  }
  for (const char* op : {"aten::fmod.Scalar", "aten::remainder.Scalar"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 7, 7.9), 2.0}; }});
  }
  for (const char* op : {"aten::logaddexp", "aten::logaddexp2"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 3), d.Moving({5}, 3)}; }});
    cases->push_back({op, "grows", [](Draw& d) -> Arguments { return {d.Moving({2, 1}), d.Moving({3})}; }});
    cases->push_back({op, "hidden", [](Draw& d) -> Arguments { return {d.Moving({3}), d.Normal({3}) - std::numeric_limits<double>::infinity()}; }});
  }
  const std::vector<Case> others = {
      {"aten::mvlgamma", "", [](Draw& d) -> Arguments { return {d.MovingWithin({5}, 2, 5), int64_t{3}}; }},
      {"aten::polygamma", "", [](Draw& d) -> Arguments { return {int64_t{1}, d.MovingWithin({5}, 5, 9)}; }},
      {"aten::polygamma", "third", [](Draw& d) -> Arguments { return {int64_t{3}, d.MovingWithin({5}, 1, 4)}; }},
      {"aten::logit", "eps", [](Draw& d) -> Arguments { return {d.MovingWithin({9}, 0, 1), 0.2}; }, kCorners},
      {"aten::hardshrink", "", [](Draw& d) -> Arguments { return {d.MovingWithin({9}, 0.6, 2), 0.5}; }},
      {"aten::xlogy.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({5}, 0.2, 4)}; }},
      {"aten::xlogy.Tensor", "short", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({5}, 3, 3.001)}; }},
      {"aten::xlogy.Scalar_Self", "", [](Draw& d) -> Arguments { return {1.5, d.MovingWithin({5}, 0.2, 4)}; }},
      {"aten::xlogy.Scalar_Other", "", [](Draw& d) -> Arguments { return {d.Moving({5}), 1.5}; }},
      {"aten::special_xlog1py", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({5}, -0.7, 2)}; }},
      {"aten::special_xlog1py.self_scalar", "", [](Draw& d) -> Arguments { return {1.5, d.MovingWithin({5}, -0.5, 2)}; }},
      {"aten::special_xlog1py.other_scalar", "", [](Draw& d) -> Arguments { return {d.Moving({5}), 1.5}; }},
      {"aten::lerp.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), d.Moving({2, 1})}; }},
      {"aten::lerp.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({2, 3}), d.Moving({3}), 0.7}; }},
      {"aten::pow.Scalar", "", [](Draw& d) -> Arguments { return {1.5, d.Moving({5}, 2)}; }},
      {"aten::pow.Tensor_Tensor", "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 0.3, 3), d.Moving({5}, 2)}; }},
      {"aten::atan2", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({5}, 0.5, 2)}; }},
      {"aten::copysign.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.MovingWithin({5}, -2, -1)}; }, kCorners},
      {"aten::copysign.Scalar", "", [](Draw& d) -> Arguments { return {d.Moving({5}), -1.0}; }, kCorners},
      {"aten::nextafter", "", [](Draw& d) -> Arguments { return {d.MovingWithin({2, 5}, 1, 3), d.MovingWithin({5}, -9, 9)}; }},
      {"aten::_ctc_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({6, 2, 4}), at::tensor({1, 2, 2, 3, 1, 2}, at::kLong).view({2, 3}), Sizes{6, 5}, Sizes{3, 2}};
       }},
      {"aten::_ctc_loss", "hopeless", [](Draw& d) -> Arguments {  // the second sample is too short for its target
         return {d.Moving({6, 2, 4}), at::tensor({1, 2, 2, 3, 3, 2}, at::kLong).view({2, 3}), Sizes{6, 2}, Sizes{3, 3}, int64_t{0}, true};
       }},
      {"aten::rrelu_with_noise", "", [](Draw& d) -> Arguments { return {d.Moving({9}), d.Normal({9})}; }, kCorners},
      {"aten::rrelu_with_noise", "training", [](Draw& d) -> Arguments { return {d.MovingWithin({9}, -2, -1), d.Normal({9}), 0.1, 0.9, true}; }},
      {"aten::frac", "", [](Draw& d) -> Arguments { return {d.MovingWithin({5}, -2.9, -2.1)}; }},
      {"aten::frexp.Tensor", "", [](Draw& d) -> Arguments { return {d.MovingWithin({5}, 2.1, 3.9)}; }},
      {"aten::nan_to_num", "", [](Draw& d) -> Arguments { return {d.Moving({5}), 1.0, 2.0, 3.0}; }},
      {"aten::div.Tensor_mode", "floor", [](Draw& d) -> Arguments { return {d.Moving({5}, 5), d.MovingWithin({5}, 1, 2), std::string("floor")}; }},
      {"aten::div.Tensor_mode", "trunc", [](Draw& d) -> Arguments { return {d.Moving({5}, 5), d.MovingWithin({5}, 1, 2), std::string("trunc")}; }},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

void AddSelections(std::vector<Case>* cases) {
  for (const char* op : {"aten::maximum", "aten::minimum", "aten::fmax", "aten::fmin"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({2, 5})}; }, kCorners});
    cases->push_back({op, "grows", [](Draw& d) -> Arguments { return {d.Moving({2, 1}), d.Moving({3})}; }, kCorners});
  }
  for (const char* op : {"aten::max.other", "aten::min.other"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({5})}; }, kCorners});
  }
  for (const char* op : {"aten::cummax", "aten::cummin"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({2, 5, 3}), int64_t{1}}; }, kCorners});
    cases->push_back({op, "scalar", [](Draw& d) -> Arguments { return {d.Moving({}), int64_t{0}}; }});
    cases->push_back({op, "empty", [](Draw& d) -> Arguments { return {d.Moving({2, 0}), int64_t{0}}; }});
  }
  for (const char* op : {"aten::median", "aten::nanmedian"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }, kCorners});
    cases->push_back({op, "scalar", [](Draw& d) -> Arguments { return {d.Moving({})}; }});
  }
  for (const char* op : {"aten::median.dim", "aten::nanmedian.dim"}) {
    cases->push_back({op, "", [](Draw& d) -> Arguments { return {d.Moving({3, 5, 2}), int64_t{1}}; }, kCorners});
    cases->push_back({op, "keep", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{-1}, true}; }, kCorners});
  }
  const std::vector<Case> others = {
      {"aten::clamp.Tensor", "all_move", [](Draw& d) -> Arguments { return {d.Moving({2, 5}, 2), d.Moving({5}), d.Moving({2, 1})}; }, kCorners},
      {"aten::clamp.Tensor", "above", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), kNone, d.Moving({5})}; }, kCorners},
      {"aten::clamp_min.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({5})}; }, kCorners},
      {"aten::clamp_max.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5}), d.Moving({5})}; }, kCorners},
      {"aten::sort", "", [](Draw& d) -> Arguments { return {d.Moving({2, 6})}; }, kCorners},
      {"aten::sort", "descending", [](Draw& d) -> Arguments { return {d.Moving({2, 6, 3}), int64_t{1}, true}; }, kCorners},
      {"aten::sort", "scalar", [](Draw& d) -> Arguments { return {d.Moving({})}; }},
      {"aten::sort", "many", [](Draw& d) -> Arguments {
         // Nearly in order all the time, so that each rank is held by a few.
         const at::Tensor order = d.Uniform({2, 1200}, 0.9, 1.1).cumsum(1);
         return {GivenArgument{order + d.Normal({2, 1200}), order + d.Normal({2, 1200})}};
       }, kCorners},
      {"aten::sort.stable", "", [](Draw& d) -> Arguments { return {d.Moving({6, 2}), true, int64_t{0}, true}; }, kCorners},
      {"aten::topk", "", [](Draw& d) -> Arguments { return {d.Moving({2, 6}), int64_t{3}}; }, kCorners},
      {"aten::topk", "smallest", [](Draw& d) -> Arguments { return {d.Moving({6, 2}), int64_t{2}, int64_t{0}, false}; }, kCorners},
      {"aten::kthvalue", "", [](Draw& d) -> Arguments { return {d.Moving({3, 6, 2}), int64_t{2}, int64_t{1}}; }, kCorners},
      {"aten::kthvalue", "keep", [](Draw& d) -> Arguments { return {d.Moving({2, 6}), int64_t{5}, int64_t{-1}, true}; }, kCorners},
      {"aten::mode", "", [](Draw& d) -> Arguments { return {d.Moving({2, 5})}; }, kCorners},
      {"aten::mode", "keep", [](Draw& d) -> Arguments { return {d.Moving({5, 2}), int64_t{0}, true}; }, kCorners},
  };
  cases->insert(cases->end(), others.begin(), others.end());
}

// clang-format on

}  // namespace addend
