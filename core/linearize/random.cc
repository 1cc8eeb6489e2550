#include "core/linearize/random.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

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

bool DrewRandomNumbers(const Call& call) {
  const c10::FunctionSchema& schema = call.op.schema();
  if (!DrawsRandomNumbers(RuleName(schema.name()))) {
    const auto handle = c10::Dispatcher::singleton().findSchema({schema.name(), schema.overload_name()});
    if (!handle || !handle->hasTag(at::Tag::nondeterministic_seeded)) return false;
  }
  for (size_t a = 0; a < call.arguments.size() && a < schema.arguments().size(); ++a) {
    const std::string& name = schema.arguments()[a].name();
    const c10::IValue& value = call.arguments[a];
    if ((name == "train" || name == "training") && value.isBool() && !value.toBool()) return false;
    const bool share = name == "p" || name == "dropout" || name == "dropout_p";
    if (share && value.isDouble() && value.toDouble() == 0) return false;
  }
  return true;
}

}  // namespace addend
