// Operators that Addend adds to LibTorch's dispatcher.
//
// Note [Elements that leave without an operator]
// item() is an operator, and what it gives is a guard of the recording and a note of the decomposition. NumPy, tolist()
// and TorchScript's own tolist() read memory instead, which no dispatcher sees. Where a front end knows of such a
// reading, it calls addend::elements_read_outside on the tensor: an operator whose result is a number made of all
// elements, so that the reading is seen, has a place, and is compared when a program is replayed.
#ifndef ADDEND_CORE_INTERCEPT_OWN_OPERATORS_H_
#define ADDEND_CORE_INTERCEPT_OWN_OPERATORS_H_

namespace addend {

// "addend::elements_read_outside(Tensor self) -> int".
inline constexpr char kElementsReadOutside[] = "addend::elements_read_outside";

// Makes them known to LibTorch, once in a process; Operator::Find() does so too.
void RegisterOwnOperators();

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_OWN_OPERATORS_H_
