// How ids flow through operators: which operators pass them on, and which look something up by them.
#ifndef ADDEND_CORE_RULES_ID_FLOW_H_
#define ADDEND_CORE_RULES_ID_FLOW_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace addend {

// How the elements of an operator's integer or boolean result depend on those of its integer and boolean operands.
enum class IdFlow {
  kEnds,         // an element may depend on several: no component has it
  kMoves,        // each is an element of an operand, or a number that fills in
  kElementwise,  // each depends on the operands' elements at its own place
  kOneHot,       // each vector depends on one element
  kLooksUp,      // each depends on the element of `self` at its own place, and on all of the other tensors
  kReduces,      // each depends on the elements of its first operand along the dimensions that it names, or on all
};

// Looks up the flow by the name under which rules are registered, for results that are integers and booleans, whether
// their operator has a rule or not.
IdFlow IdFlowOf(const std::string& rule_name);

// How an operator reads vectors of a table, its operand 0, by ids, its operand 1.
enum class IdReading {
  kNone,     // it does not
  kVectors,  // each id gives a vector of the result: embedding
  kSums,     // vectors are added up in bags, or their means are taken
};
IdReading IdReadingOf(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments);

// Returns what each id of a call with IdReading::kSums adds to its row, [ids, width]. `ids`: int64 [ids]; `bags`: the
// row of each, int64 [ids], one of `rows` rows, -1 for none; `table` [vectors, width]; `weights`: one for each id, or
// undefined.
at::Tensor TermsOfBags(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments,
                       const at::Tensor& table, const at::Tensor& ids, const at::Tensor& bags, int64_t rows,
                       const at::Tensor& weights);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ID_FLOW_H_
