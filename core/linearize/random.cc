#include "core/linearize/random.h"

#include "absl/container/flat_hash_set.h"

namespace addend {

bool DrawsRandomNumbers(const std::string& rule_name) {
  static const auto& names = *new absl::flat_hash_set<std::string>{"aten::native_dropout",
                                                                   "aten::rrelu_with_noise",
                                                                   "aten::bernoulli",
                                                                   "aten::normal",
                                                                   "aten::uniform",
                                                                   "aten::random",
                                                                   "aten::exponential",
                                                                   "aten::cauchy",
                                                                   "aten::log_normal",
                                                                   "aten::geometric",
                                                                   "aten::poisson",
                                                                   "aten::binomial",
                                                                   "aten::_sample_dirichlet",
                                                                   "aten::_standard_gamma",
                                                                   "aten::_scaled_dot_product_attention",
                                                                   "aten::rrelu"};
  return names.contains(rule_name);
}

}  // namespace addend
