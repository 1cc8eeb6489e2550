// What a rewrite is: an operator computed by other operators that have rules. It is used where LibTorch fuses what has
// closed forms part by part: recurrent cells, attention, normalizations.
//
// Note [Rewrites]
// A rewrite runs in place of the operator, with tracing on: what it calls is recorded one by one, as the parts of a
// composite operator are. Its results are compared with what the operator itself gives, then replaced by that bit for
// bit, in the value and in the reference. So a rewrite cannot change a model, and a wrong one is an error; the rounding
// between both goes to the leftover. In-place and out= forms use the rewrite of the functional form.
#ifndef ADDEND_CORE_RULES_REWRITE_H_
#define ADDEND_CORE_RULES_REWRITE_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace addend {

// The arguments of a call, by schema position. Positions that the schema does not have count as None.
struct RewriteCall {
  std::string name;      // "aten::lstm"
  std::string overload;  // "input"
  std::vector<c10::IValue> arguments;
  std::vector<std::string> names;  // of the arguments

  // The position of an argument by its name, for operators whose schemas differ between versions of LibTorch; a
  // position that the schema does not have where there is none of that name.
  int At(const std::string& argument) const;
  bool IsNone(int argument) const;
  // Undefined where the argument is None.
  at::Tensor Tensor(int argument) const;
  // Tensors of a list; the missing ones of a list of optional tensors are undefined.
  std::vector<at::Tensor> Tensors(int argument) const;
  int64_t Int(int argument, int64_t otherwise) const;
  double Double(int argument, double otherwise) const;
  bool Bool(int argument, bool otherwise) const;
  std::vector<int64_t> Ints(int argument) const;
  std::string String(int argument, const std::string& otherwise) const;
};

// Returns the tensors among the operator's results, lists flattened, in their order. Undefined: the operator's own, for
// results that are not floating-point or have no elements. Throws Unimplemented(sentence) for what it does not cover.
using RewriteFunction = std::function<std::vector<at::Tensor>(const RewriteCall&)>;

struct Rewrite {
  std::string name;  // "aten::group_norm", or "aten::lstm.input" for one overload
  RewriteFunction run = nullptr;
  // Arguments that the operator updates although its schema does not say so, such as running statistics. The model's
  // own run updates them; nothing is known of them afterwards.
  std::vector<int> updates = {};
};

}  // namespace addend

#endif  // ADDEND_CORE_RULES_REWRITE_H_
