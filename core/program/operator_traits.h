// Traits of an operator beyond its schema, for recording and replay.
#ifndef ADDEND_CORE_PROGRAM_OPERATOR_TRAITS_H_
#define ADDEND_CORE_PROGRAM_OPERATOR_TRAITS_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

namespace addend {

enum class ArgumentKind : uint8_t { kPlain, kTensor, kTensorList };

struct OperatorTraits {
  explicit OperatorTraits(const c10::FunctionSchema& schema);

  c10::SmallVector<ArgumentKind, 8> arguments;
  c10::SmallVector<ArgumentKind, 2> returns;
  c10::SmallVector<bool, 8> written;  // by argument: the schema says that it is changed
  c10::SmallVector<bool, 8> output;   // by argument: an out= argument, whose elements are not read
  bool writes = false;                // some argument is written
  bool geometry_only = false;         // what is written is where elements lie, not the elements: t_(), set_()
  // Whether written arguments may be given another geometry; a replay hands such an operator an alias.
  bool may_reshape = false;
  bool overwrites = false;     // does not read the elements that it writes: copy_(), zero_()
  bool allocates = false;      // gives memory with no defined content
  bool resizes = false;        // makes what is written larger, with no defined content behind the old one
  bool metadata_only = false;  // reads no elements of its arguments: zeros_like()
  // Tells for each argument whether only its sizes or its dtype are read, as for the second argument of expand_as() and
  // type_as().
  c10::SmallVector<bool, 8> shown;
  bool detaches = false;         // detach_(), which replays cannot call on what became a view
  bool random = false;           // may draw from a generator; see Draws()
  bool property = false;         // gives numbers known without looking at elements
  bool gives_plain = false;      // some return is no tensor
  bool reads_number = false;     // hands an element to the program around it: item(), equal()
  bool data_shape = false;       // the sizes of its results depend on elements; see SizesFromData()
  bool data_shape_bool = false;  // the same, where an index is boolean
  bool lengths_apart = false;    // its second result is made of its second argument alone: lengths of what is packed
  int16_t data_shape_from = 0;   // the first argument whose elements tell these sizes: 1 of masked_select()

  // Whether the operator gives new memory with no defined content.
  bool Uninitialized() const { return allocates && !resizes; }
  // Whether a call with these arguments draws from a generator: dropout in evaluation does not.
  bool Draws(c10::ArrayRef<c10::IValue> values) const;
  // Whether the sizes of the results of a call with these arguments depend on elements. Those of one_hot() do not if
  // the number of classes is given.
  bool SizesFromData(c10::ArrayRef<c10::IValue> values) const;
  // The arguments with running statistics, or noise, that a call with these arguments updates although its schema does
  // not mark them.
  c10::ArrayRef<int16_t> StatisticsWritten(c10::ArrayRef<c10::IValue> values) const;
  // Whether the call does not read its first argument, of which only the sizes count: baddbmm() with a beta of zero.
  bool LeavesFirst(c10::ArrayRef<c10::IValue> values) const;

 private:
  c10::SmallVector<int16_t, 2> statistics_;
  int16_t statistics_flag_ = -1;  // the argument that says that it updates them
  int16_t train_ = -1;            // the argument that says whether it trains
  int16_t probability_ = -1;      // of dropping
  int16_t beta_ = -1;             // the factor of the first argument
  int16_t given_size_ = -1;       // the argument that, where it is given, is the size that elements tell otherwise
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_OPERATOR_TRAITS_H_
