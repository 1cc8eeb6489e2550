// Structures: the arguments and results of a model, as tensors in nested tuples, lists and dictionaries, beside plain
// values.
#ifndef ADDEND_CORE_PROGRAM_STRUCTURE_H_
#define ADDEND_CORE_PROGRAM_STRUCTURE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace addend {

// One argument or result. A tensor is a number, to which the owner of the structure gives a meaning; other values are
// kept as they are.
struct Structure {
  enum class Kind { kTensor, kPlain, kTuple, kList, kDict };
  Kind kind = Kind::kPlain;
  int tensor = -1;                  // kTensor; -1: an undefined tensor
  c10::IValue plain;                // kPlain: None, numbers, strings, lists of numbers
  std::vector<Structure> elements;  // kTuple, kList; the values of kDict, in order
  std::vector<c10::IValue> keys;    // kDict: strings or numbers
  std::vector<std::string> names;   // kTuple: the fields of a named tuple; empty otherwise
  // kList, kDict: what an empty one would hold ("Tensor", "int", "float", "bool", "str"); kTuple: the type of a named
  // tuple.
  std::string type;
};

// Takes a value apart. `number` is called once for each tensor (undefined ones left out), in order. Throws
// Unimplemented, with `what` in the message, for objects, futures, generators and other values that a structure cannot
// hold.
Structure TakeApart(const c10::IValue& value, const std::string& what,
                    const std::function<int(const at::Tensor&)>& number);
// Makes the value again. `tensor` gives the tensors by their numbers.
c10::IValue PutTogether(const Structure& structure, const std::function<at::Tensor(int)>& tensor);
// Calls `visit` with the number of each tensor, in order; undefined tensors are left out.
void ForEachNumber(const Structure& structure, const std::function<void(int)>& visit);
// Compares two structures: containers, keys and plain values. Tensors count as equal if both are defined or both
// undefined. Returns "", or the first difference: ".1[\"mask\"] is a tuple, not a tensor".
std::string Difference(const Structure& expected, const Structure& found);
// Compares plain values by type and value; a NaN equals itself.
bool SamePlain(const c10::IValue& a, const c10::IValue& b);
// Describes a structure on one line: "(Tensor, {\"mask\": Tensor}, 3)".
std::string DescribeStructure(const Structure& structure);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_STRUCTURE_H_
