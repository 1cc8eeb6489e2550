// Operators that Addend adds to LibTorch's dispatcher.
//
// Note [Elements that leave without an operator]
// item() is an operator, and its result is a guard of the recording and a note of the decomposition. NumPy, tolist()
// and TorchScript's own tolist() read memory instead, which no dispatcher sees. A front end that knows of such a read
// calls addend::elements_read_outside on the tensor. The result of this operator is a number made of all elements, so
// the read is seen, has a place in the program, and is compared when the program is replayed.
//
// Note [Attention as an operator]
// No model calls addend::attention. Where a model writes attention out as products and a softmax, a linearization may
// take all of that for one call of this operator; see Note [Written-out attention] in core/linearize.
#ifndef ADDEND_CORE_INTERCEPT_OWN_OPERATORS_H_
#define ADDEND_CORE_INTERCEPT_OWN_OPERATORS_H_

#include <string>

namespace addend {

// "addend::elements_read_outside(Tensor self) -> int".
inline constexpr char kElementsReadOutside[] = "addend::elements_read_outside";

// "addend::attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? shown, Tensor? hidden,
// float scale) -> Tensor": softmax(scale query key^T + attn_mask) value over the last two dimensions. What `hidden`
// says, and what `shown` does not say, has no weight.
inline constexpr char kAttention[] = "addend::attention";

// "addend::tree_ensemble(Tensor input, Tensor roots, Tensor features, Tensor modes, Tensor thresholds, Tensor children,
// Tensor missing_true, Tensor leaf_starts, Tensor targets, Tensor weights, int num_targets) -> Tensor": what an
// ensemble of decision trees gives for each row; see Note [Tree ensembles] in tree_ensemble.h.
inline constexpr char kTreeEnsemble[] = "addend::tree_ensemble";

// Whether an operator of this name would be Addend's.
bool IsOwnOperator(const std::string& name);

// Registers Addend's operators with LibTorch, once in a process; Operator::Find() does so too.
void RegisterOwnOperators();

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_OWN_OPERATORS_H_
