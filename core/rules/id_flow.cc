#include "core/rules/id_flow.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "absl/container/flat_hash_map.h"
#include "core/rules/bags.h"

namespace addend {
namespace {

// An argument of a call by its name; None where the schema has none of that name.
c10::IValue Argument(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments, const char* name) {
  const auto index = schema.argumentIndexWithName(name);
  return index && static_cast<size_t>(*index) < arguments.size() ? arguments[*index] : c10::IValue();
}

}  // namespace

IdFlow IdFlowOf(const std::string& rule_name) {
  static const auto& flows = *[] {
    auto* all = new absl::flat_hash_map<std::string, IdFlow>{{"aten::one_hot", IdFlow::kOneHot}};
    for (const char* name : {"_reshape_copy",
                             "_unsafe_view",
                             "cat",
                             "constant_pad_nd",
                             "contiguous",
                             "copy",
                             "diagonal_scatter",
                             "expand_copy",
                             "fill",
                             "flip",
                             "gather",
                             "index",
                             "index_copy",
                             "index_put",
                             "index_select",
                             "permute_copy",
                             "reflection_pad1d",
                             "reflection_pad2d",
                             "repeat",
                             "replication_pad1d",
                             "replication_pad2d",
                             "roll",
                             "scatter",
                             "select_scatter",
                             "slice_scatter",
                             "stack",
                             "take",
                             "tril",
                             "triu",
                             "unsqueeze_copy",
                             "view_copy",
                             "zero"}) {
      all->emplace(std::string("aten::") + name, IdFlow::kMoves);
    }
    for (const char* name : {"bucketize", "searchsorted"}) all->emplace(std::string("aten::") + name, IdFlow::kLooksUp);
    for (const char* name : {"all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "prod", "sum"}) {
      all->emplace(std::string("aten::") + name, IdFlow::kReduces);
    }
    for (const char* name :
         {"__and__",     "__lshift__",  "__or__",      "__rshift__", "__xor__",     "_to_copy",    "abs",
          "add",         "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil",        "clamp",
          "clamp_max",   "clamp_min",   "clone",       "div",        "eq",          "floor",       "floor_divide",
          "fmod",        "ge",          "gt",          "le",         "logical_and", "logical_not", "logical_or",
          "logical_xor", "lt",          "masked_fill", "maximum",    "minimum",     "mul",         "ne",
          "neg",         "pow",         "remainder",   "round",      "rsub",        "sign",        "square",
          "sub",         "trunc",       "where"}) {
      all->emplace(std::string("aten::") + name, IdFlow::kElementwise);
    }
    return all;
  }();
  const auto it = flows.find(rule_name);
  return it == flows.end() ? IdFlow::kEnds : it->second;
}

IdReading IdReadingOf(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments) {
  const std::string& name = schema.name();
  if (name == "aten::embedding") return IdReading::kVectors;
  if (name != "aten::_embedding_bag" && name != "aten::_embedding_bag_forward_only") return IdReading::kNone;
  const c10::IValue mode = Argument(schema, arguments, "mode");
  return mode.isInt() && mode.toInt() == static_cast<int64_t>(BagMode::kMax) ? IdReading::kNone : IdReading::kSums;
}

at::Tensor TermsOfBags(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments,
                       const at::Tensor& table, const at::Tensor& ids, const at::Tensor& bags, int64_t rows,
                       const at::Tensor& weights) {
  const c10::IValue padding = Argument(schema, arguments, "padding_idx");
  const c10::IValue mode = Argument(schema, arguments, "mode");
  at::Tensor shares = ids.ne(padding.isInt() ? padding.toInt() : -1).logical_and_(bags.ge(0)).to(table.scalar_type());
  if (mode.isInt() && mode.toInt() == static_cast<int64_t>(BagMode::kMean)) {
    const at::Tensor counts = at::zeros({rows}, shares.options());
    shares = shares / counts.index_add(0, bags.clamp_min(0), shares).clamp_min(1).index_select(0, bags.clamp_min(0));
  }
  if (weights.defined()) shares = shares * weights;
  return table.index_select(0, ids) * shares.unsqueeze(1);
}

}  // namespace addend
